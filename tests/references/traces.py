"""One number a trace, from its outcome against those of other traces."""

from __future__ import annotations

import math
from collections.abc import Callable

from .plain import Trace, grouped, mean_sd

__all__ = [
    "c3_magrpo", "difference_reward", "dr_grpo", "first_row", "foldgrpo", "foldgrpo_fork", "grpo", "mean_row",
    "moving_average", "pass_at_k", "reinforce_batch", "remax", "rloo", "total",
]  # fmt: skip


def total(trace: Trace) -> float:
    return trace.total


def first_row(trace: Trace) -> float:
    return trace.outcome + trace.rows[0].reward


def mean_row(trace: Trace) -> float:
    return sum(trace.outcome + e.reward for e in trace.rows) / len(trace.rows)


def _by_group(traces: list[Trace], over: str = "group") -> list[list[Trace]]:
    """Traces that have an outcome and an action, those compared with each other together."""
    acting = [t for t in traces if t.rows]
    return [acting] if over == "batch" else list(grouped(acting, lambda t: t.group).values())


def _spread(numbers: dict[int, float], traces: list[Trace]) -> dict[int, float]:
    """Numbers of traces to their actions."""
    return {e.place: numbers[t.number] for t in traces for e in t.rows if t.number in numbers}


def grpo(
    traces: list[Trace],
    eps: float = 1e-6,
    alone: str = "refuse",
    ddof: int = 1,
    score: Callable[[Trace], float] = total,
    over: str = "group",
) -> dict[int, float]:
    out = {}
    for members in _by_group(traces, over):
        scores = [score(t) for t in members]
        if len(members) == 1:
            if alone != "refuse":
                out[members[0].number] = 0.0 if alone == "zero" else scores[0] / (1 + eps)
            continue
        mean, sd = mean_sd(scores, ddof)
        for t, x in zip(members, scores, strict=True):
            out[t.number] = (x - mean) / (sd + eps)
    return _spread(out, traces)


def dr_grpo(traces: list[Trace]) -> dict[int, float]:
    out = {}
    for members in _by_group(traces):
        if len(members) > 1:
            mean = sum(t.total for t in members) / len(members)
            out |= {t.number: t.total - mean for t in members}
    return _spread(out, traces)


def rloo(traces: list[Trace], alone: str = "refuse", over: str = "group") -> dict[int, float]:
    out = {}
    for members in _by_group(traces, over):
        for t in members:
            others = [u.total for u in members if u is not t]
            if others:
                out[t.number] = t.total - sum(others) / len(others)
            elif alone == "zero":
                out[t.number] = 0.0
    return _spread(out, traces)


def reinforce_batch(traces: list[Trace]) -> dict[int, float]:
    return rloo(traces, over="batch")


def remax(traces: list[Trace]) -> dict[int, float]:
    return _spread(
        {
            t.number: t.total - t.given["greedy_reward"]
            for t in traces
            if t.rows and t.given["greedy_reward"] is not None
        },
        traces,
    )


def moving_average(traces: list[Trace], decay: float = 0.95, start: float = 0.0) -> dict[int, float]:
    average, out = start, {}
    for t in traces:
        if t.rows:
            out[t.number] = t.total - average
            average = decay * average + (1 - decay) * t.total
    return _spread(out, traces)


def pass_at_k(traces: list[Trace]) -> dict[int, float]:
    out = {}
    for members in _by_group(traces):
        if len(members) < 2:
            continue
        second, best = sorted(t.total for t in members)[-2:]
        sd = mean_sd([t.total for t in members])[1]
        for t in members:
            leads = t.total == best and best > second
            out[t.number] = (best - second) / (sd + 1e-6) if leads else 0.0
    return _spread(out, traces)


def c3_magrpo(traces: list[Trace], others: bool = False) -> dict[int, float]:
    out = {}
    for members in _by_group(traces):
        totals = [t.total for t in members]
        mean = sum(totals) / len(totals)
        variance = sum((x - mean) ** 2 for x in totals) / len(totals)
        for t in members:
            against = mean
            if others and len(members) > 1:
                against = (sum(totals) - t.total) / (len(totals) - 1)
            out[t.number] = (t.total - against) / math.sqrt(variance + 1e-8)
    return _spread(out, traces)


def foldgrpo(traces: list[Trace], low: float = 0.0, high: float = 1.0) -> dict[int, float]:
    out = {}
    for members in _by_group(traces):
        if len(members) < 2:
            continue
        mean, sd = mean_sd([t.outcome for t in members])
        for t in members:
            for e in t.rows:
                moved = min(max(t.outcome + e.reward, low), high) if e.reward != 0 else t.outcome
                value = (moved - mean) / (sd + 1e-6)
                if e.reward != 0 and abs(value) > math.sqrt(len(members)):
                    continue
                out[e.place] = value
    return out


def foldgrpo_fork(traces: list[Trace]) -> dict[int, float]:
    out = {}
    for members in _by_group(traces):
        if len(members) == 1:
            mean, sd = 0.0, 1.0
        else:
            mean, sd = mean_sd([t.outcome for t in members])
        advantage = {t.number: (t.outcome - mean) / (sd + 1e-6) for t in members}
        best, worst = max(advantage.values()), min(advantage.values())
        best, worst = best if best > 0 else 1.0, worst if worst < 0 else -1.0
        for t in members:
            for e in t.rows:
                q = e.reward
                out[e.place] = (1 - abs(q)) * advantage[t.number] + max(q, 0) * best + max(-q, 0) * worst
    return out


def difference_reward(traces: list[Trace]) -> dict[int, float]:
    return {
        e.place: t.total - e.given["counterfactual_reward"]
        for t in traces
        for e in t.rows
        if e.given["counterfactual_reward"] is not None
    }
