"""What an additive critic sums: the numbers of events, what was to be expected of them, and the places they stand at.

Everything about an event is a function of the prefix up to it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from estimators.critic.features import feature_names

if TYPE_CHECKING:  # it needs flax, which `import estimators` must not
    from estimators.critic.data import CriticData

__all__ = [
    "Expected",
    "Level",
    "events_of",
    "expected_numbers",
    "levels_of",
    "levels_with",
    "place_keys",
    "rows_of",
    "sums_by_place",
]

NAMES = feature_names()
TYPES = [i for i, name in enumerate(NAMES) if name.startswith("type.")]
EMITTED = [*TYPES, NAMES.index("tokens"), NAMES.index("earned")]
ACTION, ROOT, DEPTH = (NAMES.index(name) for name in ("action", "root", "depth"))

LEAST_EVENTS = 10
"""Training events at a place for it to have weights and a mean of its own."""
MOST_PLACES = 24
"""Actions of an agent that are distinguished by their number; later ones share a place."""
MOST_COLUMNS = 1000
MOST_MULTIPLIED = 6
"""Columns of the user's whose products are columns, too."""
MOST_HISTORY = 48
"""Columns of x that enter h; the user's columns beyond do not."""
RIDGES = (1e12, 1e5, 1e4, 1e3, 1e2, 10.0)
CAUTION = 1.4


class Level(NamedTuple):
    """One level: places that have weights, int64 [P] in order, and their weights by member, float64 [M, P, J]."""

    keys: np.ndarray
    weight: np.ndarray


class Expected(NamedTuple):
    """The terms of x̄ of an event.

    Attributes:
      keys: int64 [P], places with means of their own, in order.
      mean: float64 [P + 1, J + H], means of x and h at places; the last row is that of all events.
      drawn: float64 [M, P + 1, J], means of x by member.
      types: int64 [Y], types of events that have a B.
      slope: float64 [Y + 1, H, J], B of each type; the last is 0.
      own_slope: float64 [P + 1, H, J], what each place adds to it.
      spread: float64 [J], of x, the unit of weights.
    """

    keys: np.ndarray
    mean: np.ndarray
    drawn: np.ndarray
    types: np.ndarray
    slope: np.ndarray
    own_slope: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(
        cls, corpus: CriticData, roles: int, key: np.ndarray, event: np.ndarray, task: np.ndarray, members: int,
        rng: np.random.Generator,
    ) -> Expected:  # fmt: skip
        """Fit on some events of a corpus: keys of all events; the tasks of those fitted on."""
        x = _numbers(corpus, roles)
        both = np.concatenate([x, _history(corpus, x)], axis=1)[event]
        keys, count = np.unique(key[event], return_counts=True)
        keys = keys[count >= LEAST_EVENTS]
        place = np.where((row := rows_of(keys, key[event])) >= 0, row, len(keys))
        width = x.shape[1]
        mean = _means(both, place, len(keys), np.ones(len(event)))
        _, task = np.unique(task, return_inverse=True)
        drawn = np.stack([
            _means(both[:, :width], place, len(keys), rng.exponential(size=int(task.max(initial=0)) + 1)[task])
            for _ in range(members)
        ])  # fmt: skip
        apart = both - mean[place]
        types = np.unique(corpus.kind[event])
        of_type = rows_of(types, corpus.kind[event])
        slope = np.zeros((len(types) + 1, both.shape[1] - width, width))
        own_slope = np.zeros((len(keys) + 1, both.shape[1] - width, width))
        spread = np.sqrt(np.mean(apart[:, width:] ** 2, axis=0)) + 1e-9
        for i in range(len(types)):
            own = apart[of_type == i]
            slope[i] = _ridge(own[:, width:], own[:, :width], spread)
            apart[of_type == i, :width] -= own[:, width:] @ slope[i]
        for i in range(len(keys)):
            own = apart[place == i]
            own_slope[i] = _ridge(own[:, width:], own[:, :width], spread)
        spread_x = x[event].std(axis=0)
        return cls(keys, mean, drawn, types, slope, own_slope, spread_x)


def expected_numbers(
    expected: Expected, corpus: CriticData, roles: int, key: np.ndarray, member: int | None
) -> np.ndarray:
    """x − x̄ of each event of a corpus, by one member's means, or by those of all: float64 [E, J]."""
    x = _numbers(corpus, roles)
    width = x.shape[1]
    row = rows_of(expected.keys, key)
    mean = expected.mean[:, :width] if member is None else expected.drawn[member]
    h = _history(corpus, x) - expected.mean[:, width:][row]
    out = x - mean[row]
    kind = rows_of(expected.types, corpus.kind)
    for i in range(len(expected.types)):
        own = kind == i
        out[own] -= h[own] @ expected.slope[i]
    for i in range(len(expected.keys)):
        own = row == i
        out[own] -= h[own] @ expected.own_slope[i]
    result: np.ndarray = out / np.where(expected.spread > 1e-6, expected.spread, np.inf)
    return result


def place_keys(corpus: CriticData, roles: int) -> np.ndarray:
    """Where each event stands, from coarse to fine: int64 [4, E], equal numbers for equal places.

    All events, those of a type, those at a place, and those at a place of an agent.
    """
    features = corpus.features
    here = np.arange(len(features))
    acts = _agent_total(corpus, (features[:, ACTION] > 0).astype(np.float64)).astype(np.int64)
    # What an action emitted stands at the action's number, apart from it.
    number = np.minimum(2 * acts + (features[:, ACTION] <= 0), 2 * MOST_PLACES + 1)
    of_role = features[:, len(NAMES) : len(NAMES) + roles]
    role = np.where(of_role.any(axis=1), of_role.argmax(axis=1), roles) if roles else np.zeros(len(features), np.int64)
    depth = np.minimum(np.rint(np.expm1(features[:, DEPTH])).astype(np.int64), 7)
    agent = (role * 8 + depth) * 2 + features[:, ROOT].astype(np.int64)
    place = agent * (2 * MOST_PLACES + 2) + number
    events = _agent_total(corpus, np.ones(len(features))).astype(np.int64)
    spawned = np.where(corpus.birth != here, 1 + np.minimum(events[corpus.birth], 4 * MOST_PLACES), 0)
    return np.stack([np.zeros(len(features), np.int64), corpus.kind, place, place * (4 * MOST_PLACES + 2) + spawned])


def levels_of(
    x: np.ndarray, keys: np.ndarray, trace: np.ndarray, traces: int
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Sums over traces of x at each place of each level that there is room for; the coarsest always.

    Args:
      x: float [N, J].
      keys: int64 [4, N].
      trace: int [N], in [0, traces).

    Returns:
      The columns that vary, float64 [n, C]; the level of each, int [C]; the places of each level; and for each level
      which of its P J columns these are, bool [P J].
    """
    room = min(MOST_COLUMNS, int(math.sqrt(2e10 / max(traces, 1))))
    columns, level, kept, varies = [], [], [], []
    for i, key in enumerate(keys):
        places, count = np.unique(key, return_counts=True)
        places = places[count >= LEAST_EVENTS]
        sums = sums_by_place(x, key, places, trace, traces)
        vary = sums.std(axis=0) > 1e-6
        room -= int(vary.sum())
        if i > 0 and room < 0:
            break
        columns.append(sums[:, vary])
        level.append(np.full(int(vary.sum()), i))
        kept.append(places)
        varies.append(vary)
    return np.concatenate(columns, axis=1), np.concatenate(level), kept, varies


def levels_with(
    weights: np.ndarray, places: list[np.ndarray], varies: list[np.ndarray], numbers: int
) -> tuple[Level, ...]:
    """The levels with weights of the columns of `levels_of`; 0 for columns that did not vary.

    Args:
      weights: float64 [M, C] or more columns, of which the first C are taken.
      places, varies: as `levels_of` returns them.
      numbers: J.
    """
    levels, at = [], 0
    for keys, kept in zip(places, varies, strict=True):
        full = np.zeros((len(weights), kept.size))
        size = int(kept.sum())
        full[:, kept] = weights[:, at : at + size]
        shape = (len(full), len(keys), numbers)  # a level without keys has no number to infer it from
        levels.append(Level(keys, full.reshape(shape)))
        at += size
    return tuple(levels)


def sums_by_place(x: np.ndarray, key: np.ndarray, places: np.ndarray, trace: np.ndarray, traces: int) -> np.ndarray:
    """Sum of x over the events of each trace at each place: float64 [n, P J]."""
    row = rows_of(places, key)
    at = np.where(row >= 0, trace * len(places) + row, traces * len(places))
    size = traces * len(places)
    sums = [np.bincount(at, column, size + 1)[:size].reshape(traces, len(places)) for column in x.T]
    return np.stack(sums, axis=2).reshape(traces, -1)


def events_of(corpus: CriticData, traces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The events of some traces, and which of these each belongs to: int [N] and [N]."""
    lengths = corpus.lengths[traces]
    trace = np.repeat(np.arange(len(traces)), lengths)
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(corpus.start[:-1][traces], lengths) + np.arange(len(trace)) - first, trace


def rows_of(keys: np.ndarray, key: np.ndarray) -> np.ndarray:
    """The row of each key among sorted keys; −1 where it is not one of them: int [N]."""
    if len(keys) == 0:
        return np.full(len(key), -1)
    at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return np.where(keys[at] == key, at, -1)


def _numbers(corpus: CriticData, roles: int) -> np.ndarray:
    """x of each event: float64 [E, J]; the user's columns with their products, where there are few."""
    columns = [*EMITTED, *range(len(NAMES), corpus.features.shape[1])]
    x = corpus.features[:, columns].astype(np.float64)
    own = x[:, len(EMITTED) + roles :]
    if own.shape[1] > MOST_MULTIPLIED:
        return x
    pairs = [own[:, i] * own[:, j] for i in range(own.shape[1]) for j in range(i)]
    return np.column_stack([x, *pairs])


def _history(corpus: CriticData, x: np.ndarray) -> np.ndarray:
    """h of each event: float64 [E, 5 H']."""
    x = x[:, :MOST_HISTORY]
    here = np.arange(len(x))[:, None]
    total = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)])
    of_trace = total[:-1] - np.repeat(total[corpus.start[:-1]], corpus.lengths, axis=0)
    of_agent = np.stack([_agent_total(corpus, column) for column in x.T], axis=1) - x
    fan_in = np.bincount(corpus.receivers, minlength=len(x))
    sums = [np.bincount(corpus.receivers, column, len(x)) for column in x[corpus.senders].T]
    causes = np.stack(sums, axis=1) / np.maximum(fan_in, 1)[:, None]
    before = np.where(corpus.previous[:, None] != here, x[corpus.previous], 0)
    born = np.where(corpus.birth[:, None] != here, (of_agent + x)[corpus.birth], 0)
    return np.concatenate([of_trace, of_agent, causes, before, born], axis=1)


def _agent_total(corpus: CriticData, values: np.ndarray) -> np.ndarray:
    """Sum over the events of the same agent up to and including each: float64 [E]."""
    agent = corpus.previous.copy()
    while True:  # each pass doubles how far back the first event of the agent was looked for
        further = agent[agent]
        if np.array_equal(further, agent):
            break
        agent = further
    order = np.argsort(agent, kind="stable")
    ranked = values[order]
    total = np.cumsum(ranked)
    begins = np.concatenate([[True], np.diff(agent[order]) != 0])
    first = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    out = np.empty(len(values))
    out[order] = total - (total - ranked)[first]
    return out


def _ridge(h: np.ndarray, x: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Slopes of x on h, both centred: float64 [H, J]; the ridge of each column of x by generalised cross-validation.

    A degree of freedom counts `CAUTION` times, as Wood (2017, section 6.2) advises against overfitting.
    """
    n, h = len(h), h / spread
    size, axes = np.linalg.eigh(h.T @ h)
    size = np.maximum(size, 0)
    along = axes.T @ (h.T @ x)
    square = np.sum(x**2, axis=0)
    best, slopes = np.full(x.shape[1], np.inf), np.zeros_like(along)
    for ridge in RIDGES:
        used = float(np.sum(size / (size + ridge)))
        if CAUTION * used >= n:
            continue
        left = square - np.sum(along**2 * ((size + 2 * ridge) / (size + ridge) ** 2)[:, None], axis=0)
        score = left / (n - CAUTION * used) ** 2
        better = score < best
        best = np.where(better, score, best)
        slopes = np.where(better, along / (size + ridge)[:, None], slopes)
    result: np.ndarray = np.asarray(axes @ slopes) / spread[:, None]
    return result


def _means(values: np.ndarray, place: np.ndarray, places: int, weight: np.ndarray) -> np.ndarray:
    """Weighted means at places, and of all rows: float64 [P + 1, C]; every place has rows."""
    total = np.bincount(place, weight, places + 1)
    out = np.empty((places + 1, values.shape[1]))
    for j, column in enumerate(values.T):
        sums = np.bincount(place, weight * column, places + 1)
        out[:-1, j] = sums[:-1] / total[:-1]
        out[-1, j] = sums.sum() / total.sum()
    return out
