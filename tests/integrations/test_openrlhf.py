"""OpenRLHF's own experience maker from its source, version 0.11.2; its modules need DeepSpeed and a GPU."""

from __future__ import annotations

import functools
import importlib
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sources import definitions, modules, source_of
from timing import compare

torch = pytest.importorskip("torch", reason="PyTorch is not installed here; `make integrations` runs this")
OPENRLHF = source_of("openrlhf", "OpenRLHF is not installed here; `make integrations` runs this")

from graphs.errors import CreditError  # noqa: E402


@functools.cache
def of_openrlhf() -> tuple[Any, Any]:
    """Its experience maker and its experiences, with its own penalties and rewards of tokens."""
    trainer, scope = OPENRLHF / "trainer" / "ppo_utils", {"torch": torch, "logger": logging.getLogger("openrlhf")}
    scope |= definitions(OPENRLHF / "models" / "utils.py", "compute_reward masked_mean compute_approx_kl", scope)
    penalties = "apply_overlong_penalty apply_stop_properly_penalty apply_length_penalties"
    scope |= definitions(trainer / "length_penalty.py", penalties, scope) | {"itertools": itertools}
    scope |= {"dataclass": dataclass, "field": field}
    scope |= definitions(trainer / "experience.py", "tensor_field Experience", scope)
    maker = definitions(trainer / "experience_maker.py", "RemoteExperienceMaker", scope)["RemoteExperienceMaker"]
    return maker, scope["Experience"]


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A maker of ours or, with `own=True`, OpenRLHF's, whose models would run on GPUs: what they answer is there."""
    base, _ = of_openrlhf()
    modules(monkeypatch, "openrlhf.trainer.ppo_utils.experience_maker", RemoteExperienceMaker=base)
    monkeypatch.delitem(importlib.sys.modules, "credit.integrations.openrlhf", raising=False)  # type: ignore[attr-defined]
    ours = importlib.import_module("credit.integrations.openrlhf").CreditExperienceMaker
    monkeypatch.setattr(base, "split_rollout_samples", lambda self, samples: samples)
    monkeypatch.setattr(base, "make_experience", lambda self, samples: samples)

    def make(samples: int, credit: str = "rloo", kl: float = 0.0, own: bool = False, estimator: str = "reinforce",
             **options: Any) -> Any:  # fmt: skip
        algorithm = SimpleNamespace(advantage=SimpleNamespace(estimator=estimator, gamma=1.0, no_std_norm=True))
        args = SimpleNamespace(
            algo=algorithm,
            reward=SimpleNamespace(clip_range=None),
            rollout=SimpleNamespace(n_samples_per_prompt=samples),
        )
        kind = base if own else type("Ours", (ours,), {"credit": credit, "options": options})
        return kind(None, None, None, None, SimpleNamespace(value=kl), SimpleNamespace(args=args), None)

    return make


def experiences(kl: float = 0.0) -> list[Any]:
    """Two batches whose rows were sorted by length: responses 3, 0 and 2, 1 of two prompts."""
    rewards = {0: 1.0, 1: 0.0, 2: 5.0, 3: 2.0}
    masks = [torch.tensor([[1, 1, 0], [1, 1, 1]]), torch.tensor([[1, 0, 0], [1, 1, 0]])]
    return [
        of_openrlhf()[1](
            index=index,
            rewards=torch.tensor([rewards[i] for i in index]),
            action_mask=mask.bool(),
            kl=torch.full((2, 3), kl),
        )
        for index, mask in zip([[3, 0], [2, 1]], masks, strict=True)
    ]


def drawn(rows: int, draw: np.random.Generator) -> list[Any]:
    """Batches of at most 64 responses of six tokens, of which the policy wrote the first four."""
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]] * 64).bool()
    order = [part.tolist() for part in np.array_split(draw.permutation(rows), rows // 64 + 1)]
    return [
        of_openrlhf()[1](
            index=index,
            rewards=torch.tensor(draw.normal(size=len(index)), dtype=torch.float32),
            action_mask=mask[: len(index)],
            kl=torch.zeros(len(index), 6),
        )
        for index in order
    ]


def written(batches: list[Any]) -> np.ndarray:
    """The number of each response, which is on what the policy wrote."""
    rows = [row[mask] for batch in batches for row, mask in zip(batch.advantages, batch.action_mask, strict=True)]
    assert all((row == row[0]).all() for row in rows)
    return np.array([float(row[0]) for row in rows])


@pytest.mark.parametrize(
    ("estimator", "credit"), [("rloo", "rloo"), ("group_norm", "openrlhf_group_norm"), ("dr_grpo", "dr_grpo")]
)
def test_openrlhfs_own_are_reproduced(maker: Any, estimator: str, credit: str) -> None:
    batches = [drawn(48, np.random.default_rng(0)) for _ in range(2)]
    want = written(maker(8, own=True, estimator=estimator).make_experience_batch(batches[0]))
    made = maker(8, credit, estimator=estimator)
    assert np.abs(written(made.make_experience_batch(batches[1])) - want).max() <= 2e-6 and np.abs(want).max() > 1
    assert made.credit_metrics["credit/groups"] == 6 and "group_reward_std" in batches[1][0].info


def test_rows_are_compared_with_those_of_their_prompt(maker: Any) -> None:
    first, second = maker(2).compute_advantages_and_returns(experiences())
    assert first.advantages.tolist() == [[-3, -3, 0], [1, 1, 1]]
    assert second.advantages.tolist() == [[3, 0, 0], [-1, -1, 0]]
    assert first.info["return"].tolist() == [2, 1]


@pytest.mark.parametrize(("samples", "batches"), [(2, 1), (3, 2)])
def test_groups_that_are_not_whole_are_refused(maker: Any, samples: int, batches: int) -> None:
    """A part of the responses, or groups of another size, were compared across prompts."""
    with pytest.raises(CreditError, match=f"in whole groups of n_samples_per_prompt={samples}"):
        maker(samples).compute_advantages_and_returns(experiences()[:batches])


def test_a_penalty_in_the_reward_is_refused(maker: Any) -> None:
    with pytest.raises(CreditError, match="KL penalty in the reward"):
        maker(2, kl=0.1).compute_advantages_and_returns(experiences(kl=0.2))


def test_a_renamed_hook_is_refused(maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It trained on OpenRLHF's own advantages, without a word."""
    base, _ = of_openrlhf()
    monkeypatch.setattr(base, "make_experience_batch", lambda self, samples: samples)
    with pytest.raises(CreditError, match=r"never asked 'rloo' for advantages"):
        maker(2).make_experience_batch(experiences())
    monkeypatch.delattr(base, "compute_advantages_and_returns")
    with pytest.raises(CreditError, match="RemoteExperienceMaker has no compute_advantages_and_returns"):
        maker(2)


def test_overhead_beside_openrlhfs_own(maker: Any) -> None:
    draw = np.random.default_rng(4)
    ours, theirs = maker(8, "rloo", rows=1024), maker(8, own=True, estimator="rloo")
    compare(
        "OpenRLHF",
        lambda rows: drawn(rows, draw),
        ours.compute_advantages_and_returns,
        lambda batches: theirs.compute_advantages_and_returns(
            [of_openrlhf()[1](**vars(batch) | {"kl": torch.zeros(len(batch.index), 6)}) for batch in batches]
        ),
        ours._credit,
        ran="its experience maker from its source, on its experiences",
        numbers=lambda _, batches: written(batches),
    )
