"""One number a row (an action), from its own score against other rows."""

from __future__ import annotations

import math
from collections.abc import Hashable

from .plain import Event, Trace, grouped, mean_sd

__all__ = [
    "dr_mas_traces", "reinforce_pp", "reinforce_pp_baseline", "rloo_of_first_rows", "verl_grpo", "verl_rloo",
]  # fmt: skip

Row = tuple[Trace, Event]


def _rows(traces: list[Trace]) -> list[Row]:
    return [(t, e) for t in traces for e in t.rows]


def _score(row: Row) -> float:
    return row[0].outcome + row[1].reward


def _key(row: Row, by: str | None) -> Hashable:
    """The task, and the agent's or the role's name."""
    trace, event = row
    return trace.group if by is None else (trace.group, getattr(event, by))


def verl_grpo(traces: list[Trace], by: str | None = None, alone: str = "raw", eps: float = 1e-6) -> dict[int, float]:
    out = {}
    for members in grouped(_rows(traces), lambda r: _key(r, by)).values():
        if len(members) == 1:
            if alone == "raw":
                out[members[0][1].place] = _score(members[0]) / (1 + eps)
            continue
        mean, sd = mean_sd([_score(r) for r in members])
        for r in members:
            out[r[1].place] = (_score(r) - mean) / (sd + eps)
    return out


def verl_rloo(traces: list[Trace], by: str | None = None) -> dict[int, float]:
    out = {}
    for members in grouped(_rows(traces), lambda r: _key(r, by)).values():
        n, mean = len(members), sum(_score(r) for r in members) / len(members)
        for r in members:
            out[r[1].place] = (_score(r) - mean) * n / (n - 1) if n > 1 else _score(r)
    return out


def dr_mas_traces(traces: list[Trace], by: str | None = None, std: bool = True) -> dict[int, float]:
    """`group_by_agent_id` without rows as population: the scores of a trace under one key are averaged first."""
    out = {}
    for members in grouped(_rows(traces), lambda r: _key(r, by)).values():
        by_trace = grouped(members, lambda r: r[0].number)
        score = {number: sum(map(_score, rows)) / len(rows) for number, rows in by_trace.items()}
        mean, sd = mean_sd(list(score.values())) if len(score) > 1 else (0.0, 1.0)
        for t, e in members:
            out[e.place] = (score[t.number] - mean) / (sd + 1e-6) if std else score[t.number] - mean
    return out


def rloo_of_first_rows(traces: list[Trace]) -> dict[int, float]:
    """The first row of each trace enters the mean; every row subtracts it from its own score."""
    out = {}
    for members in grouped([t for t in traces if t.rows], lambda t: t.group).values():
        first = [t.outcome + t.rows[0].reward for t in members]
        n, mean = len(first), sum(first) / len(first)
        for t in members:
            for e in t.rows:
                out[e.place] = (_score((t, e)) - mean) * n / (n - 1) if n > 1 else _score((t, e))
    return out


def _whitened(numbers: dict[int, float]) -> dict[int, float]:
    values = list(numbers.values())
    mean = sum(values) / len(values)
    variance = sum((x - mean) ** 2 for x in values) / (len(values) - 1)
    return {place: (x - mean) / math.sqrt(variance + 1e-8) for place, x in numbers.items()}


def reinforce_pp(traces: list[Trace]) -> dict[int, float]:
    return _whitened({e.place: _score((t, e)) for t, e in _rows(traces)})


def reinforce_pp_baseline(traces: list[Trace], by: str | None = None) -> dict[int, float]:
    """By task the first row of each trace is its sample; by agent every row is one."""
    centred = {}
    for members in grouped(_rows(traces), lambda r: _key(r, by)).values():
        samples = members
        if by is None:
            samples = [rows[0] for rows in grouped(members, lambda r: r[0].number).values()]
        mean = sum(map(_score, samples)) / len(samples) if len(samples) > 1 else 0.0
        centred |= {r[1].place: _score(r) - mean for r in members}
    return _whitened(centred)
