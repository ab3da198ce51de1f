"""How the schemes of signal to noise draw: batches of logs, a method of the library on each, and sums over decisions.

A drawer takes streams, the setting, T and the effort, and yields `Sums`, one row for each independent part of a batch:
a group, a trace, a context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import estimators
from credit.bench import snr_theory as theory
from credit.bench.snr_logs import (
    ROOM,
    TRACES,
    Log,
    Streams,
    draw_log,
    fitted,
    fitted_traces,
    outcome_noise,
    plain_graph,
)
from credit.bench.snr_theory import Setting
from estimators.base import REASONS, Credit, finish
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph

__all__ = [
    "BATCH",
    "CLAIM_ERROR",
    "OTHERS",
    "Call",
    "Drawer",
    "Effort",
    "Sums",
    "broadcast",
    "control",
    "control_groups",
    "control_message",
    "critic",
    "message",
    "replayed_critic",
    "values",
]

BATCH = 8  # groups of a batch whose traces are all compared
OTHERS = 88  # traces of other groups, at least, that β is fitted on
CLAIM_ERROR = 0.25  # variance of the errors of the claims that `control` is given, in s²


class Sums(NamedTuple):
    """Over the decisions of each independent part: float64 [parts].

    Attributes:
      traces: how many it has, the next ones in their order; 0 where it is of none.
      number: decisions.
      first, second: Σ A sign(x) and Σ A².
      reasons: decisions of a batch that have each reason, 0 (`Reason.VALID`) among them, [batches, reasons].
    """

    traces: np.ndarray
    number: np.ndarray
    first: np.ndarray
    second: np.ndarray
    reasons: np.ndarray


class Effort(NamedTuple):
    """How much is drawn.

    Attributes:
      traces: traces for each point of a broadcast; of one that needs long full logs as many as fit `rows`, a fifth at
        least.
      rows: the most rows for each point of another scheme.
      full: the greatest T at which logs are full although a thin log would give the same numbers.
    """

    traces: int
    rows: int
    full: int


def _sums(
    advantage: Array,
    count: np.ndarray,
    signed: np.ndarray,
    size: int,
    traces: int,
    reason: np.ndarray | None = None,
) -> Sums:
    """Sums by part: `size` events of `traces` each, padding behind the last. Without `reason` all have a number."""
    parts = int(np.flatnonzero(count)[-1]) // size + 1
    a, n, x = (np.asarray(v, np.float64)[: parts * size].reshape(parts, size) for v in (advantage, count, signed))
    codes = np.zeros(n.size, np.int64) if reason is None else reason[: n.size].astype(np.int64)
    reasons = np.bincount(codes, n.ravel(), len(REASONS))[None]
    return Sums(np.full(parts, float(traces)), n.sum(1), (a * x).sum(1), (n * a * a).sum(1), reasons)


Drawer = Callable[[Streams, Setting, int, Effort], Iterator[Sums]]
Call = Callable[[Log, np.random.Generator], Credit]


def broadcast(
    call: Call,
    *,
    agents: int = 1,
    slope: Callable[[int], float] | None = None,
    together: bool = False,
    thin: bool = True,
    rare: bool = False,
) -> Drawer:
    """Draws for a method that reads outcomes.

    Args:
      agents: among whom decisions are split.
      slope: β at T, of an outcome that is a success or a failure.
      together: whether a batch is one part, since its traces are compared with each other; else a group is.
      thin: whether thin logs will do.
      rare: whether traces must grow with T, since the outcome depends ever less on a decision.
    """

    def draw(streams: Streams, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        full = length <= effort.full or not thin
        traces = effort.traces if thin else max(effort.traces // 5, min(effort.traces, effort.rows // length))
        traces = max(traces, traces * length // 40) if rare else traces
        size = w.group * (length if full else agents)  # events of a group
        if size > ROOM:
            raise CreditError(f"{w.group} traces of {length} decisions are {size} events; a batch has room for {ROOM}")
        # A batch whose traces are all compared has one number of them at every T.
        groups = min(BATCH, ROOM // size) if together else min(ROOM // size, -(-traces // w.group))
        for _ in range(-(-traces // (groups * w.group))):
            beta = None if slope is None else slope(length)
            log = draw_log(streams, w, length, groups * w.group, agents=agents, full=full, slope=beta)
            credit = call(log, streams.evidence)
            part = groups if together else 1  # groups
            yield _sums(credit.advantage, log.count, log.signed, part * size, part * w.group, np.asarray(credit.reason))

    return draw


def critic(mse: Callable[[int, Setting], float], lambda_: float) -> Drawer:
    """Draws for `gae` with the true values and independent errors of that mean square."""

    def draw(streams: Streams, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        traces = ROOM // length
        for _ in range(max(1, effort.rows // (4 * traces * length), -(-64 // traces))):
            log = draw_log(streams, w, length, traces, full=True)
            credit = estimators.gae(
                log.graph, log.reward, value=values(streams.evidence, w, log, length, mse(length, w)), lambda_=lambda_
            )
            yield _sums(credit.advantage, log.count, log.signed, length, 1)

    return draw


def replayed_critic(replays: int) -> Drawer:
    """Draws for `gae` with values that are means of fresh continuations from every state."""

    def draw(streams: Streams, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        traces = ROOM // length
        left = np.arange(length, 0, -1)
        for _ in range(max(1, effort.rows // (4 * traces * length), -(-64 // traces))):
            log = draw_log(streams, w, length, traces, full=True)
            # The decisions of all continuations of a state at once.
            rng = streams.evidence
            later = 2.0 * rng.binomial(replays * left, 0.5, (traces, length)) - replays * left
            error = w.signal * later / replays + outcome_noise(rng, w, later.shape, replays)
            gained = w.signal * log.signed[: traces * length].reshape(traces, length)
            value = np.cumsum(gained, axis=1) - gained + error
            credit = estimators.gae(log.graph, log.reward, value=fitted(value), lambda_=0.0)
            yield _sums(credit.advantage, log.count, log.signed, length, 1)

    return draw


def values(rng: np.random.Generator, w: Setting, log: Log, length: int, mse: float) -> np.ndarray:
    """State values with independent errors of that mean square, flat over a batch of traces of one length."""
    gained = w.signal * log.signed[: log.traces * length].reshape(-1, length)
    true = np.cumsum(gained, axis=1) - gained
    return fitted(true + np.sqrt(mse) * rng.standard_normal(true.shape))


def _siblings(rng: np.random.Generator, w: Setting, left: np.ndarray, sign: np.ndarray, replays: int) -> np.ndarray:
    """Advantages that `c3` gives alternatives `sign` [C, J] in contexts with `left` decisions to come [C]: [C, J].

    The log of a replay holds the alternative; what came before and after it is in the replay's outcome.
    """
    contexts, alternatives = sign.shape
    # More contexts than one padded log holds are cut into logs; contexts are independent, so the numbers are the same.
    most = ROOM // (alternatives * replays)
    if contexts > most:
        cuts = range(0, contexts, most)
        return np.concatenate([_siblings(rng, w, left[i : i + most], sign[i : i + most], replays) for i in cuts])
    shape = (contexts, alternatives, replays)
    later = 2.0 * rng.binomial(np.broadcast_to(left[:, None, None], shape), 0.5) - left[:, None, None]
    outcome = w.signal * (sign[:, :, None] + later) + outcome_noise(rng, w, shape)
    row = np.arange(outcome.size)
    credit = estimators.c3(
        plain_graph(outcome.size, 1, 1, alternatives * replays),
        fitted_traces(outcome),
        context=fitted(row // (alternatives * replays), np.int32),
        node=fitted(row // replays, np.int32),
    )
    return np.asarray(credit.advantage)[: outcome.size].reshape(shape)[:, :, 0]


def message(alternatives: int, replays: Callable[[int], int]) -> Drawer:
    """Draws for `c3`: contexts at decisions drawn evenly from the trace."""

    def draw(streams: Streams, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        s = replays(length)
        wanted = 2500 / theory.message(length, w, alternatives, s) ** 2 / alternatives  # for an error of 2 %
        most = effort.rows / (alternatives * s)
        contexts, rng = ROOM // (alternatives * s), streams.own
        for _ in range(max(1, -(-64 // contexts), round(min(wanted, most) / contexts))):
            left = np.floor(rng.random(contexts) * length).astype(np.int64)
            sign = 2.0 * rng.integers(0, 2, (contexts, alternatives)) - 1
            advantage = _siblings(rng, w, left, sign, s)
            yield _sums(advantage.ravel(), np.ones(sign.size), sign.ravel(), alternatives, 0)

    return draw


@jax.jit
def _claim(graph: EventGraph, amount: Array) -> Credit:
    """Centred increments, as a critic gives them whose error has mean zero under the policy."""
    amount = jnp.asarray(amount)
    return finish(
        graph, credit=amount, baseline=jnp.zeros_like(amount), scale=jnp.ones_like(amount),
        stderr=jnp.full_like(amount, jnp.inf), reason=jnp.zeros_like(amount, jnp.int8), unit="event",
        estimand="increment", source="claims", centred=True, own_outcome=False,
    )  # fmt: skip


def control_groups(w: Setting) -> int:
    """Groups of one draw: as many as leave room for the claims of all, 64 at most."""
    return min(64, ROOM // (64 * w.group))


def control(known: bool) -> Drawer:
    """Draws for `control_advantage` with centred claims on every decision.

    A log has 64 actions at most. In a longer trace the last of them stands for all decisions after the first 63, and
    its claim is the sum of theirs. That changes nothing for the first 63, and the last action is not counted.
    """

    def draw(streams: Streams, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        probes = min(length - 1, 63)
        traces = control_groups(w) * w.group
        graph = plain_graph(traces, 1, probes + 1, w.group)
        count = np.tile(np.arange(probes + 1) < probes, traces)
        rest = length - probes
        error = np.sqrt(CLAIM_ERROR) * w.signal * np.sqrt(np.append(np.ones(probes), rest))
        for _ in range(max(2, effort.rows // len(count))):
            log = draw_log(streams, w, length, traces, full=False)
            sums = _first_of(streams.order, log.signed[:traces], length, probes)
            amount = w.signal * sums + error * streams.evidence.standard_normal(sums.shape)
            credit = estimators.control_advantage(
                graph,
                log.reward,
                [_claim(graph, fitted(amount))],
                baseline=np.zeros(TRACES, np.float32) if known else None,
            ).credit
            advantage = np.asarray(credit.advantage)[: len(count)]
            yield _sums(advantage, count, count * sums.ravel(), w.group * (probes + 1), w.group)

    return draw


def _first_of(rng: np.random.Generator, total: np.ndarray, length: int, probes: int) -> np.ndarray:
    """Signs of the first decisions of traces whose signs sum to `total`, and the sum of the rest: [traces, probes + 1].

    Any of the decisions that are left may be the next.
    """
    sums = np.zeros((len(total), probes + 1))
    good, drawn = (total + length) / 2, rng.random((len(total), probes))
    for i in range(probes):
        well = drawn[:, i] * (length - i) < good
        sums[:, i] = np.where(well, 1, -1)
        good = good - well
    sums[:, probes] = 2 * good - (length - probes)
    return sums


def control_message(alternatives: int, replays: int) -> Drawer:
    """Draws for `control_advantage` on claims that `c3` made at every decision, from replays beside the trace."""

    def draw(streams: Streams, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        groups = 1 + -(-OTHERS // w.group)
        traces = groups * w.group
        for _ in range(max(2, effort.rows // (traces * length * alternatives * replays))):
            log = draw_log(streams, w, length, traces, full=True)
            left = np.tile(np.arange(length - 1, -1, -1), traces)
            rng = streams.evidence
            others = 2.0 * rng.integers(0, 2, (len(left), alternatives - 1)) - 1
            sign = np.concatenate([log.signed[: len(left), None], others], axis=1)
            claim = _claim(log.graph, fitted(_siblings(rng, w, left, sign, replays)[:, 0]))
            credit = estimators.control_advantage(log.graph, log.reward, [claim]).credit
            yield _sums(credit.advantage, log.count, log.signed, w.group * length, w.group)

    return draw
