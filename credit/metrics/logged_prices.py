"""Prices that the money of a log follows, where it follows any."""

from __future__ import annotations

import numpy as np

from credit.metrics.event_costs import MILLION, Price, Prices, token_counts
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models

__all__ = ["logged_prices"]

ROUNDED = 0.01
"""Part of the money of a call by which a log may have rounded it."""


def logged_prices(traces: Traces) -> Prices:
    """Prices of models at which the tokens of each call cost what the log states, to `ROUNDED`.

    A model has none where no prices fit all its calls, where its calls do not tell the prices of kinds of tokens apart,
    or where they are no more than these kinds.

    Args:
      traces: what was read.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()}, rewards={"team": 1.0}, model="m")
      >>> for read, wrote in ((1000, 500), (2000, 100), (300, 300)):
      ...     cost = (read + 4 * wrote) / 1e6
      ...     _ = record.event(f"x{read}", 3, "a", action=True, input_tokens=read, tokens=wrote, money=cost)
      >>> price = logged_prices(assemble([record])).models["m"]
      >>> round(price.input, 6), round(price.output, 6)
      (1.0, 4.0)
    """
    (names, model), money = event_models(traces), token_counts(traces, "money")
    read, generated = (token_counts(traces, name) for name in ("input_tokens", "tokens"))
    cached, written = (np.nan_to_num(token_counts(traces, name)) for name in ("cached_tokens", "cache_write_tokens"))
    counts = np.stack([read - cached - written, generated, cached, written], axis=1)
    known = np.isfinite(money) & np.isfinite(counts).all(axis=1) & (counts >= 0).all(axis=1) & counts.any(axis=1)
    models = {}
    for at, name in enumerate(names):
        calls = known & (model == at)
        used = counts[calls].any(axis=0)
        of, paid, rate = counts[calls][:, used], money[calls], np.zeros(4)
        if not name or len(of) <= used.sum():
            continue
        rate[used], _, rank, _ = np.linalg.lstsq(of, paid)
        if rank == used.sum() and (rate >= 0).all() and np.allclose(of @ rate[used], paid, rtol=ROUNDED, atol=0):
            models[name] = Price(*(rate * MILLION).tolist())
    return Prices(models)
