"""Logs of a world of independent decisions, as arrays, for measuring signal to noise.

    R = Σ_t x_t + ε,    x_t = ±s with equal chances

A *full* log has every decision as an action. A *thin* log has one action for each agent, which stands for all of that
agent's decisions. Their sum is one binomial draw, and `count` is their number. A method that gives all actions of an
agent one number gives the same on a thin log as on the full one, at a cost that does not grow with T. A test compares
the two.

A full log has the decisions of the thin one, shuffled. Each kind of number has its own generator (`Streams`). So
trace number i is the same run, whatever the form of the log and the size of a batch.

Outcomes have normal noise, or that of another world: of heavy tails, or your own function `f(rng, shape)`. There a
trace has one draw, which its parts share evenly.

Every log is padded to `ROOM` events and agents, and `TRACES` traces, so a method compiles once for all T.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Callable
from types import FunctionType
from typing import NamedTuple

import numpy as np

from credit.bench.own_worlds import own_world
from credit.bench.snr_theory import Setting
from credit.methods.own_functions import function_of
from graphs.errors import CreditError
from graphs.event_graph import EventGraph, EventType
from graphs.padding import Sizes, pad, pad_array

__all__ = [
    "PARTS",
    "ROOM",
    "TRACES",
    "WORLDS",
    "Log",
    "Noise",
    "Streams",
    "draw_log",
    "fitted",
    "fitted_traces",
    "noise_of",
    "outcome_noise",
    "plain_graph",
    "sample_variance",
]

ROOM = 1 << 15  # larger logs cost more memory a draw, smaller ones more calls
TRACES = ROOM + 8  # no length is that of another axis: one number a trace would pass for one an event

PARTS = 10  # parts that the decisions of a trace are drawn in, and the most agents among whom they are split


Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

WORLDS: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "heavy": lambda rng, shape: rng.standard_t(3.0, shape) / 3.0**0.5,
}
"""The noise of outcomes by the name of the world, in units of `Setting.noise`: both have variance 1, so that they
differ in tails alone; that of "heavy" has no fourth moment."""


def noise_of(world: str) -> Noise:
    """The noise of a world of `WORLDS`, or your own function by "module:name".

    Raises:
      CreditError: there is none, or it is something else.
    """
    if world in WORLDS:
        return WORLDS[world]
    expected = "a function f(rng, shape) of a numpy Generator that returns noise of that shape"
    own: Noise = own_world(world, FunctionType, expected, WORLDS)
    return own


BLOCKS, BLOCK = 16, 1 << 16
"""Draws of noise of your own whose variance is looked at."""
SETTLED = 0.1
"""Of the squares of a block, at most, those of one draw. Half of the blocks of a t of 2 degrees of freedom, the first
without a variance, have 0.12; of one of 3, 0.02."""


def sample_variance(world: str, seed: int) -> float:
    """The variance of the noise of a world, over some 1,000,000 draws.

    Raises:
      CreditError: it does not settle, as that of a Cauchy: a ratio to noise, and its band, would say nothing; or the
        noise does not come from the generator that it is given.
    """
    key = [seed, zlib.crc32(function_of(world).encode())]
    drawn = _drawn(world, np.random.default_rng(key), (BLOCKS, BLOCK))
    one, again, other = (_drawn(world, np.random.default_rng(of), (BLOCK,)) for of in (key, key, [*key, 1]))
    if not np.array_equal(one, again) or (np.array_equal(one, other) and np.ptp(one) > 0):
        how = "two seeds have the same draws" if np.array_equal(one, again) else "one seed has other draws each time"
        raise CreditError(
            f"world {world!r}: its noise does not come from the rng that it is given: {how}; expected a function that "
            "draws from `rng` alone, so that outcomes are independent and `--seed` repeats them"
        )
    squares = (drawn - np.median(drawn)) ** 2
    share = float(np.median(squares.max(axis=1) / np.maximum(squares.sum(axis=1), np.finfo(np.float64).tiny)))
    if share > SETTLED:
        raise CreditError(
            f"world {world!r}: the variance of its noise does not settle: in half of the {BLOCKS} samples of {BLOCK:,} "
            f"draws one draw has {share:.0%} or more of the sum of squares. Without a variance there is no ratio to "
            "noise and no band; expected noise with lighter tails, such as those of t with 3 degrees of freedom"
        )
    return float(drawn.var())


def _drawn(world: str, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    drawn = np.asarray(noise_of(world)(rng, shape), np.float64)
    if drawn.shape != shape or not np.isfinite(drawn).all():
        found = f"has shape {drawn.shape}" if drawn.shape != shape else "has numbers that are not finite"
        raise CreditError(f"world {world!r}: its noise {found}; expected finite numbers of shape {shape}")
    return drawn


def outcome_noise(rng: np.random.Generator, w: Setting, shape: tuple[int, ...], runs: int = 1) -> np.ndarray:
    """The mean noise of the outcomes of so many runs each: float64 [shape].

    Raises:
      CreditError: your own function gives another shape, or numbers that are not finite.
    """
    result: np.ndarray
    if w.world == "normal":
        result = w.noise / np.sqrt(runs) * rng.standard_normal(shape)
        return result
    result = w.noise * _drawn(w.world, rng, (*shape, runs)).mean(axis=-1)
    return result


class Streams(NamedTuple):
    """Generators.

    Attributes:
      good: of how many decisions of each part are taken well.
      noise: of outcomes.
      order: of decisions within a part.
      evidence: of what is logged beside a trace.
      own: of what no other scheme draws.
    """

    good: np.random.Generator
    noise: np.random.Generator
    order: np.random.Generator
    evidence: np.random.Generator
    own: np.random.Generator

    @classmethod
    def of(cls, seed: int, length: int, group: int, scheme: str) -> Streams:
        """Those of a point: all but the last are the same for every scheme."""
        keys = [[i] for i in range(4)] + [[4, zlib.crc32(scheme.encode())]]
        return cls(*(np.random.default_rng([seed, length, group, *key]) for key in keys))


@dataclasses.dataclass(frozen=True)
class Log:
    """A batch of traces in groups of K, padded: E = A = `ROOM`, T = `TRACES`.

    Attributes:
      graph: all events are actions; no edges.
      traces: how many are real.
      part: float32 [E], at the last action of each agent what the agent's part earned, noise included; else 0. These
        sum to the outcome.
      reward: float32 [T].
      count: [E], decisions that an action stands for; 0 in padding.
      signed: [E], Σ x_t / s over them.
    """

    graph: EventGraph
    traces: int
    part: np.ndarray
    reward: np.ndarray
    count: np.ndarray
    signed: np.ndarray


@functools.lru_cache(maxsize=4)
def plain_graph(traces: int, agents: int, actions: int, group: int) -> EventGraph:
    """Traces of `agents` agents, each of which acts `actions` times in a row; no edges."""
    events, instances = traces * agents * actions, traces * agents
    agent = np.repeat(np.arange(instances, dtype=np.int32), actions)
    names = np.tile(np.arange(agents, dtype=np.int32), traces)
    none = np.zeros(8, np.int32)
    graph = EventGraph(
        event_type=np.full(events, int(EventType.MESSAGE), np.int32),
        action_mask=np.ones(events, bool),
        event_mask=np.ones(events, bool),
        time=np.full(events, np.nan, np.float32),
        trace_ids=(agent // agents).astype(np.int32),
        agent_ids=agent,
        turn_ids=agent,
        senders=none,
        receivers=none,
        edge_type=none,
        edge_mask=none.astype(bool),
        agent_name_ids=names,
        agent_role_ids=names,
        agent_parent=np.arange(instances, dtype=np.int32),
        agent_trace=np.repeat(np.arange(traces, dtype=np.int32), agents),
        agent_mask=np.ones(instances, bool),
        group_ids=(np.arange(traces) // group).astype(np.int32),
        trace_mask=np.ones(traces, bool),
    )
    return pad(graph, Sizes(events=ROOM, edges=8, agents=ROOM, traces=TRACES))


def fitted(values: np.ndarray, dtype: type = np.float32) -> np.ndarray:
    """Values of real events, padded."""
    return pad_array(values.astype(dtype).ravel(), ROOM)


def fitted_traces(values: np.ndarray) -> np.ndarray:
    """Values of real traces, padded."""
    return pad_array(values.astype(np.float32).ravel(), TRACES)


def draw_log(
    streams: Streams,
    w: Setting,
    length: int,
    traces: int,
    *,
    agents: int = 1,
    full: bool,
    slope: float | None = None,
) -> Log:
    """A log of the next `traces` traces of `length` decisions, equally many for each agent; both are parts of `PARTS`.

    With `slope` β the outcome is a success with probability σ(β Σ x_t), without noise of its own.
    """
    each = length // PARTS
    good = streams.good.binomial(each, 0.5, (traces, PARTS))
    total = 2.0 * good - each
    if full:
        signed = np.where(np.arange(each) < good[:, :, None], np.int8(1), np.int8(-1))
        if each > 1:
            streams.order.permuted(signed, axis=2, out=signed)
        signed = signed.reshape(traces, agents, -1)
    else:
        signed = total.reshape(traces, agents, -1).sum(axis=2, keepdims=True)
    actions = signed.shape[2]
    count = np.full(signed.size, length / agents / actions)
    if slope is not None and w.world != "normal":
        raise CreditError(f"a success or a failure has no noise of its own that world {w.world!r} could change")
    if slope is None:
        if w.world == "normal":
            noise = w.noise / np.sqrt(PARTS) * streams.noise.standard_normal((traces, PARTS))
        else:  # a trace at a time: its draw must not depend on the size of a batch
            noise = np.array([outcome_noise(streams.noise, w, (1,)) for _ in range(traces)]) / PARTS
        earned = w.signal * total + noise
        reward = earned.sum(axis=1)
    else:
        chance = 1 / (1 + np.exp(-slope * w.signal * total.sum(axis=1)))
        reward = (streams.noise.random(traces) < chance).astype(np.float64)
        earned = np.concatenate([np.zeros((traces, PARTS - 1)), reward[:, None]], axis=1)
    part = np.zeros(signed.shape)
    part[:, :, -1] = earned.reshape(traces, agents, -1).sum(axis=2)
    graph = plain_graph(traces, agents, actions, w.group)
    return Log(graph, traces, fitted(part), fitted_traces(reward), pad_array(count, ROOM), fitted(signed, np.float64))
