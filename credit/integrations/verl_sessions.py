"""Sessions of verl's v1 trainers as traces, and what an agent loop wrote beside its outputs as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphs.errors import CreditError

__all__ = ["FIELDS", "PREFIX", "method_options", "row_penalty", "session_advantage", "split_key"]

PREFIX = "credit_"

FIELDS = (
    "agent", "role", "parent", "turn", "context", "node", "sibling_parent", "trainable", "event_reward", "value",
    "anchor", "stage",
)  # fmt: skip
"""Keys of `AgentLoopOutput.extra_fields` that become columns; `agent` names the member of the team that answered."""

_COLUMNS = ("agent", "role", "parent", "turn", "event_reward")


def method_options(name: str, config: Any, by_std: bool | None = None) -> tuple[tuple[str, Any], ...]:
    """Options of `RowAdvantages` for a method: `algorithm.credit` of the configuration, and verl's switch of the scale.

    Args:
      name: the method.
      config: `algorithm` of the configuration, or None.
      by_std: `norm_adv_by_std_in_grpo`. Default: that of `config`. An option `scale` or `scaled` goes before it.
    """
    known = config is not None and hasattr(config, "get")
    chosen = dict((config.get("credit", None) if known else None) or {})
    if by_std is None:
        by_std = bool(config.get("norm_adv_by_std_in_grpo", True)) if known else True
    if not by_std and not {"scale", "scaled"} & set(chosen):
        from credit.methods.registry import METHODS

        chosen |= METHODS[name].without_spread if name in METHODS else {}
    return tuple(sorted(chosen.items()))


def row_penalty(batch: Any) -> np.ndarray | None:
    """What a KL penalty took from each row, float64 [N], or None: its own, never the team's outcome."""
    penalty = (batch["token_level_rewards"] - batch["token_level_scores"]).sum(dim=-1)
    return penalty.double().cpu().numpy() if bool((penalty != 0).any()) else None


def session_advantage(
    advantages: Any,
    data: Any,
    batch_keys: Sequence[str],
    extra_fields: Sequence[Mapping[str, Any]] | None,
    padding: Sequence[bool],
) -> dict[str, float]:
    """Write advantages and returns into a v1 batch whose rows are outputs of sessions; returns the metrics.

    The outcome of a session is the score of its last output, as in verl: a colocated reward model scores each.

    Args:
      advantages: a `RowAdvantages`.
      data: a `DataProto` with `token_level_scores`, `token_level_rewards` and `response_mask`, [N, L].
      batch_keys: `{uid}_{session}_{index}` of each row, in any order.
      extra_fields: what the agent loop wrote beside each row; None where it wrote nothing.
      padding: rows that verl made up to fill the batch; they get 0 and enter no statistics.
    """
    parts = [key.rsplit("_", 2) for key in batch_keys]
    if not all([len(part) == 3 and part[2].isdigit() for part in parts]):
        parts = [list(map(str, split_key(key))) for key in batch_keys]  # raises, and names the key
    batch = data.batch
    trace = [f"{uid}_{session}" for uid, session, _ in parts]
    order = [int(index) for _, _, index in parts]
    score = _of_last_output(batch["token_level_scores"].sum(dim=-1), trace, order)
    columns: dict[str, Any] = _field_columns(extra_fields or [], np.asarray(padding, bool))
    evidence = {name: columns.pop(name) for name in list(columns) if name not in _COLUMNS}
    evidence = {name: column for name, column in evidence.items() if advantages.accepts(name)}
    penalty = row_penalty(batch)
    if penalty is not None:
        columns["event_reward"] = penalty + np.asarray(columns.get("event_reward", 0), np.float64)
    result = advantages(
        group=[uid for uid, _, _ in parts],
        trace=trace,
        order=order,
        reward=score,
        where=~np.asarray(padding, bool),
        mask=batch["response_mask"],
        evidence=evidence,
        **columns,
    )
    batch["advantages"] = batch["returns"] = result.advantages
    metrics: dict[str, float] = result.metrics
    return metrics


def _of_last_output(score: Any, trace: Sequence[str], order: Sequence[int]) -> Any:
    """The score of the last output of each row's session, [N]."""
    scores = score.tolist()
    some = dict(zip(trace, scores, strict=True))
    if [some[name] for name in trace] == scores:
        return score  # as a rule: the agent loop copies the last one's
    last = {trace[row]: row for row in sorted(range(len(order)), key=order.__getitem__)}
    return score[[last[name] for name in trace]]


def split_key(key: str) -> tuple[str, str, int]:
    """The prompt's uid, the session and the number of the output within it, of a v1 key.

    Raises:
      CreditError: it has another form.
    """
    parts = key.rsplit("_", 2)
    if len(parts) != 3 or not parts[2].isdigit():
        raise CreditError(f"key {key!r} of the batch is not of the form uid_session_index, which names sessions")
    return parts[0], parts[1], int(parts[2])


def _field_columns(extra_fields: Sequence[Mapping[str, Any]], padding: np.ndarray) -> dict[str, Any]:
    """The columns that the agent loop wrote, from one mapping a row."""
    columns: dict[str, Any] = {}
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
        if name == "event_reward":  # an output without one earned nothing by itself
            columns[name] = [0.0 if padding[row] or value is None else value for row, value in enumerate(values)]
        else:
            columns[name] = [values[real[0]] if padding[row] else value for row, value in enumerate(values)]
    return columns
