"""Batches of verl's legacy trainer, and what a row of one got."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from verl import DataProto

TOLERANCE = 2e-6


def legacy(scores: list[float], uid: list[str], **ids: list[Any]) -> DataProto:
    rewards = torch.zeros(len(scores), 4)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).repeat(len(scores), 1)[: len(scores)]
    rewards[:, 1] = torch.tensor(scores)
    arrays = {name: np.array(values, dtype=object) for name, values in {"uid": uid, **ids}.items()}
    return DataProto.from_dict(
        tensors={"token_level_rewards": rewards, "response_mask": mask}, non_tensors=arrays, meta_info={}
    )


def row_values(data: DataProto) -> list[float]:
    advantages, mask = data.batch["advantages"], data.batch["response_mask"].bool()
    assert (advantages[~mask] == 0).all()
    return [float(row[kept][0]) for row, kept in zip(advantages, mask, strict=True)]
