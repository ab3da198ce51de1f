"""Recursions along a trace, or along one agent's part of it."""

from __future__ import annotations

import math
from typing import Any

from .plain import Event, Trace, grouped

__all__ = ["coma", "critic", "discounted_return", "gae", "puppeteer"]


def _chains(traces: list[Trace], along: str) -> list[tuple[list[Event], list[float]]]:
    """Actions in order, and what arrives at each before the chain's next: the outcome at the last."""
    out = []
    for t in traces:
        parts = [t.events] if along == "trace" else list(grouped(t.events, lambda e: e.agent).values())
        for events in parts:
            rows, earned = [], []
            for e in events:
                if e in t.rows:
                    rows.append(e)
                    earned.append(0.0)
                if rows:
                    earned[-1] += e.reward
            if rows:
                earned[-1] += t.outcome
                out.append((rows, earned))
    return out


def discounted_return(traces: list[Trace], discount: float = 1.0, along: str = "trace") -> dict[int, float]:
    out = {}
    for rows, earned in _chains(traces, along):
        total = 0.0
        for e, r in zip(reversed(rows), reversed(earned), strict=True):
            total = r + discount * total
            out[e.place] = total
    return out


def gae(traces: list[Trace], discount: float = 1.0, lambda_: float = 0.95, along: str = "trace") -> dict[int, float]:
    out = {}
    for rows, earned in _chains(traces, along):
        ahead: float | None = 0.0
        total: float | None = 0.0
        for e, r in zip(reversed(rows), reversed(earned), strict=True):
            value = e.given["value"]
            parts = [(w, x) for w, x in ((discount * (1 - lambda_), ahead), (discount * lambda_, total)) if w > 0]
            known = [w * x for w, x in parts if x is not None]
            total = r + sum(known) if len(known) == len(parts) else None
            ahead = value
            if total is not None and value is not None:
                out[e.place] = total - value
    return out


def critic(traces: list[Trace]) -> dict[int, float]:
    """What arrived up to the next action, and V before that minus V before this one; behind the last is the outcome."""
    out = {}
    for t in traces:
        values: list[Any] = [e.given["value"] for e in t.rows] + [t.outcome]
        ends = [e.place for e in t.rows[1:]] + [math.inf]
        for e, before, after, end in zip(t.rows, values, values[1:], ends, strict=False):
            if before is not None and after is not None:
                out[e.place] = sum(x.reward for x in t.events if e.place <= x.place < end) + after - before
    return out


def coma(traces: list[Trace]) -> dict[int, float]:
    out = {}
    for t in traces:
        for e in t.rows:
            q, mean = e.given["q_value"], e.given["target_value"]
            if q is not None and mean is not None:
                out[e.place] = q - mean
    return out


def puppeteer(
    traces: list[Trace], cost: float = 1e-5, factor: float = -1.0, most: int = 5, gamma: float = 0.99
) -> dict[int, float]:
    out = {}
    for t in traces:
        total = 0.0
        for s, e in reversed(list(enumerate(t.rows))):
            price, later = (0.1 * math.log(1 + (step + 1) / (most + 1)) / math.log(2) for step in (s, s + 1))
            if e is t.rows[-1]:
                price = later
                total = t.outcome + 0.5 * price if t.outcome > 0 else t.outcome - 0.5 * price
            elif e.given["tokens"] is None:
                break
            else:
                total = factor * price * cost * e.given["tokens"] + gamma * total
            out[e.place] = total
    return out
