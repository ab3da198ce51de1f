"""Methods of 2025 and 2026: other weights, other divisors, information gain."""

from __future__ import annotations

import math

from .plain import Trace, grouped, mean_sd

__all__ = ["gpg", "igpo", "igrpo", "max_rl", "opo", "prime_rl_grpo", "rllm_reinforce_pp"]


def _tasks(traces: list[Trace]) -> list[list[Trace]]:
    return list(grouped([t for t in traces if t.rows], lambda t: t.group).values())


def _spread(numbers: dict[int, float], traces: list[Trace]) -> dict[int, float]:
    return {e.place: numbers[t.number] for t in traces for e in t.rows if t.number in numbers}


def max_rl(traces: list[Trace], eps: float = 0.0, alone: str = "zero") -> dict[int, float]:
    out = {}
    for task in _tasks(traces):
        mean = sum(t.total for t in task) / len(task)
        for t in task:
            if len(task) == 1:
                out[t.number] = 0.0 if alone == "zero" else t.total
            elif abs(t.total - mean) <= (len(task) - 1) * max(mean + eps, 0):
                out[t.number] = (t.total - mean) / (mean + eps) if mean + eps > 0 else 0.0
    return _spread(out, traces)


def _length(trace: Trace, name: str = "tokens") -> float | None:
    counts = [e.given[name] for e in trace.rows]
    return None if None in counts else sum(counts)


def opo(traces: list[Trace]) -> dict[int, float]:
    out = {}
    for task in _tasks([t for t in traces if _length(t) is not None]):
        length = [_length(t) for t in task]
        mean = sum(n * t.total for n, t in zip(length, task, strict=True)) / sum(length)
        out |= {t.number: t.total - (mean if len(task) > 1 else 0.0) for t in task}
    return _spread(out, traces)


def gpg(traces: list[Trace]) -> dict[int, float]:
    out, acting = {}, [t for t in traces if t.rows]
    alpha = len(acting) / max(1, sum(t.total != 0 for t in acting))
    for task in _tasks(traces):
        mean = sum(t.total for t in task) / len(task) if len(task) > 1 else 0.0
        out |= {t.number: alpha * (t.total - mean) for t in task}
    return _spread(out, traces)


def prime_rl_grpo(traces: list[Trace], output: float = 0.0, turns: float = 0.0) -> dict[int, float]:
    out = {}
    for task in _tasks([t for t in traces if not output or _length(t) is not None]):
        mean = sum(t.total for t in task) / len(task)
        lengths = [_length(t) if output else 0 for t in task]
        shaped = [
            t.total - mean * (output * n / max(1, *lengths, 1) + turns * len(t.rows) / max(len(u.rows) for u in task))
            for t, n in zip(task, lengths, strict=True)
        ]
        out |= {t.number: x - sum(shaped) / len(task) for t, x in zip(task, shaped, strict=True)}
    return _spread(out, traces)


def rllm_reinforce_pp(traces: list[Trace], batch: bool = False) -> dict[int, float]:
    out: dict[int, float] = {}
    rows = [(t, e) for t in traces for e in t.rows]
    for of_role in grouped(rows, lambda pair: pair[1].role).values():
        scores = {
            t: sum(u.outcome + e.reward for u, e in pairs) / len(pairs)
            for t, pairs in grouped(of_role, lambda pair: pair[0].number).items()
        }
        task = {t.number: t.group for t, _ in of_role}
        centre = {}
        for t in scores:
            pool = [x for u, x in scores.items() if batch or task[u] == task[t]]
            centre[t] = sum(pool) / len(pool)
        apart = {t: x - centre[t] for t, x in scores.items()}
        sd = mean_sd(list(apart.values()), ddof=0)[1]
        out |= {e.place: apart[t.number] / (sd + 1e-6) for t, e in of_role}
    return out


def _earned(trace: Trace, gamma: float) -> list[float]:
    """Discounted returns from each action; what stands between actions belongs to the one before."""
    places = [e.place for e in trace.rows]
    rewards = [0.0] * len(places)
    for e in trace.events:
        before = [k for k, place in enumerate(places) if place <= e.place]
        if before:
            rewards[before[-1]] += e.reward
    rewards[-1] += trace.outcome
    for k in range(len(rewards) - 2, -1, -1):
        rewards[k] += gamma * rewards[k + 1]
    return rewards


def igpo(traces: list[Trace], gamma: float = 1.0) -> dict[int, float]:
    out = {}
    for task in _tasks(traces):
        returns = [_earned(t, gamma) for t in task]
        if len(task) == 1:
            continue
        mean, sd = mean_sd([g[0] for g in returns])
        for t, g in zip(task, returns, strict=True):
            for e, x in zip(t.rows, g, strict=True):
                if abs(x - mean) <= 10 * math.sqrt(len(task)) * (sd + 1e-6):
                    out[e.place] = (x - mean) / (sd + 1e-6)
    return out


def igrpo(traces: list[Trace], gamma: float = 0.95) -> dict[int, float]:
    out: dict[int, float] = {}

    def z(x: float, pool: list[float]) -> float:
        if len(pool) == 1:
            return x
        mean, sd = mean_sd(pool)
        return (x - mean) / (sd + 1e-6)

    for task in _tasks(traces):
        gains = [e.reward for t in task for e in t.rows[:-1]]
        outcomes = [t.outcome for t in task]
        for t in task:
            total = 0.0
            for k in range(len(t.rows) - 1, -1, -1):
                e = t.rows[k]
                last = k == len(t.rows) - 1
                total = (z(t.outcome, outcomes) if last else z(e.reward, gains)) + gamma * total
                out[e.place] = total
    return out
