"""Sessions of verl's v1 trainers as traces, and what an agent loop wrote beside its outputs as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphs.errors import CreditError

__all__ = ["FIELDS", "PREFIX", "method_options", "session_advantage", "split_key"]

PREFIX = "credit_"

FIELDS = (
    "agent", "role", "parent", "turn", "context", "node", "sibling_parent", "trainable", "event_reward", "value",
    "anchor", "stage",
)  # fmt: skip
"""Keys of `AgentLoopOutput.extra_fields` that become columns; `agent` names the member of the team that answered."""

_COLUMNS = ("agent", "role", "parent", "turn", "event_reward")


def method_options(config: Any) -> tuple[tuple[str, Any], ...]:
    """`algorithm.credit` of the configuration: options of the method."""
    chosen = None if config is None or not hasattr(config, "get") else config.get("credit", None)
    return tuple(sorted((chosen or {}).items()))


def session_advantage(
    advantages: Any,
    data: Any,
    batch_keys: Sequence[str],
    extra_fields: Sequence[Mapping[str, Any]] | None,
    padding: Sequence[bool],
) -> dict[str, float]:
    """Write advantages and returns into a v1 batch whose rows are outputs of sessions; returns the metrics.

    Args:
      advantages: a `RowAdvantages`.
      data: a `DataProto` with `token_level_scores`, `token_level_rewards` and `response_mask`, [N, L].
      batch_keys: `{uid}_{session}_{index}` of each row, in any order.
      extra_fields: what the agent loop wrote beside each row; None where it wrote nothing.
      padding: rows that verl made up to fill the batch; they get 0 and enter no statistics.
    """
    parts = [split_key(key) for key in batch_keys]
    batch = data.batch
    score = batch["token_level_scores"].sum(dim=-1)
    columns = _field_columns(extra_fields or [], np.asarray(padding, bool))
    evidence = {name: columns.pop(name) for name in list(columns) if name not in _COLUMNS}
    evidence = {name: column for name, column in evidence.items() if advantages.accepts(name)}
    penalty = (batch["token_level_rewards"] - batch["token_level_scores"]).sum(dim=-1)
    if bool((penalty != 0).any()):  # a KL penalty in the reward: each row's own, never the team's outcome
        own = columns.get("event_reward")
        columns["event_reward"] = penalty.double().cpu().numpy() + (0 if own is None else np.asarray(own, np.float64))
    result = advantages(
        group=[uid for uid, _, _ in parts],
        trace=[f"{uid}_{session}" for uid, session, _ in parts],
        order=[index for _, _, index in parts],
        reward=score,
        where=~np.asarray(padding, bool),
        mask=batch["response_mask"],
        evidence=evidence,
        **columns,
    )
    batch["advantages"] = batch["returns"] = result.advantages
    metrics: dict[str, float] = result.metrics
    return metrics


def split_key(key: str) -> tuple[str, str, int]:
    """The prompt's uid, the session and the number of the output within it, of a v1 key.

    Raises:
      CreditError: it has another form.
    """
    parts = key.rsplit("_", 2)
    if len(parts) != 3 or not parts[2].isdigit():
        raise CreditError(f"key {key!r} of the batch is not of the form uid_session_index, which names sessions")
    return parts[0], parts[1], int(parts[2])


def _field_columns(extra_fields: Sequence[Mapping[str, Any]], padding: np.ndarray) -> dict[str, list[Any]]:
    """The columns that the agent loop wrote, from one mapping a row."""
    columns: dict[str, list[Any]] = {}
    real = np.flatnonzero(~padding)
    for name in FIELDS:
        values = [None if fields is None else fields.get(name) for fields in extra_fields]
        absent = [int(row) for row in real if values[row] is None] if values else []
        if not values or len(absent) == len(real):
            continue
        if absent and name in ("agent", "role", "turn"):
            raise CreditError(
                f"extra_fields has {name!r} in some rows only, and not in row {absent[0]}; the agent loop must write "
                "it into every output"
            )
        columns[name] = [values[real[0]] if padding[row] else value for row, value in enumerate(values)]
    return columns
