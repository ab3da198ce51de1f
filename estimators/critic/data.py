"""Traces as a critic trains on them: a corpus on the host, its splits by task, and batches of one padded shape."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from estimators.critic.features import relations
from estimators.critic.network import BLOCK, PrefixBatch
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.text import counted

__all__ = ["Batch", "CriticData", "Room", "Scaler", "Split", "batches", "in_batches", "pack", "room", "split_by_task"]


class CriticData(NamedTuple):
    """Real events of a batch with their features and relations, and what each trace earned; NumPy arrays.

    Attributes:
      features: float32 [E, F], of real events only, trace after trace.
      kind: int64 [E], their types.
      start: int64 [T + 1], where the events of each trace begin.
      previous, birth: int64 [E], positions in `features`.
      senders, receivers: int64 [K], likewise; receivers in order.
      edge_start: int64 [T + 1], where the edges into each trace's events begin.
      reward: float32 [T], the outcome; NaN where there is none.
      group: int64 [T], the task.
      runs: float32 [E], how many further runs were made from the prefix before each event; 0 where none was.
      run_mean: float32 [E], the mean outcome of these; 0 where there are none.
    """

    features: np.ndarray
    kind: np.ndarray
    start: np.ndarray
    previous: np.ndarray
    birth: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    edge_start: np.ndarray
    reward: np.ndarray
    group: np.ndarray
    runs: np.ndarray
    run_mean: np.ndarray

    @classmethod
    def of(
        cls, graph: EventGraph, features: Array, reward: Array, *, runs: Array | None = None,
        run_mean: Array | None = None,
    ) -> CriticData:  # fmt: skip
        """The corpus of a batch; real events and traces stand first on their axes, as in every padded batch.

        Args:
          features: float [E, F], as from `estimators.critic.features.event_features`.
          reward: float [T].
          runs, run_mean: float [E], the number of further runs from the prefix before each event and their mean
            outcome; both or neither.

        Raises:
          CreditError: shapes differ from the graph's, padding stands between real events, or a mean is missing.
        """
        real = np.asarray(graph.event_mask)
        num, traces = int(real.sum()), int(np.sum(np.asarray(graph.trace_mask)))
        features, reward = np.asarray(features, np.float32), np.asarray(reward, np.float32)
        none = np.zeros(len(real), np.float32)
        runs, run_mean = (none if rows is None else np.asarray(rows, np.float32) for rows in (runs, run_mean))
        for name, count, expected in (
            ("features", len(features), len(real)),
            ("reward", len(reward), graph.num_traces),
            ("runs", len(runs), len(real)),
            ("run_mean", len(run_mean), len(real)),
        ):
            if count != expected:
                raise CreditError(f"{name} has {counted(count, 'row')}; expected {expected}")
        if not real[:num].all():
            raise CreditError("padding stands between real events; pack the graph first (graphs.structure.prefix.pack)")
        if not np.isfinite(run_mean[runs > 0]).all():
            at = int(np.flatnonzero((runs > 0) & ~np.isfinite(run_mean))[0])
            raise CreditError(f"event {at} has {runs[at]:g} runs and no mean of them; expected both or neither")
        ran = runs[:num] > 0
        related = relations(graph)
        place = np.asarray(graph.trace_ids)[:num]
        starts = np.searchsorted(place, np.arange(traces + 1))
        return cls(
            features[:num],
            np.asarray(graph.event_type)[:num].astype(np.int64),
            starts,
            related.previous[:num].astype(np.int64),
            related.birth[:num].astype(np.int64),
            related.senders.astype(np.int64),
            related.receivers.astype(np.int64),
            np.searchsorted(related.receivers, starts),
            reward[:traces],
            np.asarray(graph.group_ids)[:traces].astype(np.int64),
            np.where(ran, runs[:num], 0),
            np.where(ran, run_mean[:num], 0),
        )

    @property
    def lengths(self) -> np.ndarray:
        """Events of each trace, int64 [T]."""
        return np.diff(self.start)

    def fingerprint(self) -> str:
        """A hash of everything that training depends on."""
        digest = hashlib.sha256()
        for values in self:
            digest.update(str((values.shape, values.dtype)).encode())
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


class Scaler(NamedTuple):
    """Means, spreads and ranges of columns over the events trained on; one that never varies there becomes 0.

    What lies outside of the range is brought to its end: a network has no sensible value at inputs that it never saw,
    such as the count of 300 agents after teams of 10. It is told the largest value that it was trained on.
    """

    mean: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray) -> Scaler:
        """Of float [E, F]; two passes."""
        mean = features.mean(axis=0, dtype=np.float64)
        spread = np.sqrt(np.mean((features - mean) ** 2, axis=0))
        varies = np.where(spread > 1e-6, spread, np.inf).astype(np.float32)
        return cls(mean.astype(np.float32), varies, features.min(axis=0), features.max(axis=0))

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Standardised columns, float32."""
        result: np.ndarray = (np.clip(features, self.low, self.high) - self.mean) / self.spread
        return result


@dataclasses.dataclass(frozen=True)
class Split:
    """Traces of three disjoint sets of tasks: int [n] each. Fitted on, stopped by, judged on."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def split_by_task(group: Array, reward: Array, *, seed: int, validation: float = 0.2, test: float = 0.2) -> Split:
    """Tasks drawn at random for validation and test, the rest for training; traces of one task stay together.

    Traces without an outcome take no part.

    Raises:
      CreditError: fewer than three tasks have an outcome, or the parts are none or leave nothing for training.
    """
    for name, part in (("validation", validation), ("test", test)):
        if not 0 <= part < 1:
            raise CreditError(f"{name} is {part}; expected a part of the tasks, from 0 to below 1")
    group, scored = np.asarray(group), np.isfinite(np.asarray(reward))
    tasks = np.unique(group[scored])
    if len(tasks) < 3:
        raise CreditError(
            f"outcomes in {counted(len(tasks), 'task')}; expected 3 or more, to train, to stop and to judge on"
        )
    held = [max(1, round(part * len(tasks))) for part in (validation, test)]
    if sum(held) >= len(tasks):
        raise CreditError(
            f"validation {validation} and test {test} leave none of {counted(len(tasks), 'task')} to train on"
        )
    order = np.random.default_rng(seed).permutation(tasks)
    cuts = np.split(order, np.cumsum(held))
    stop, judge, train = (np.flatnonzero(scored & np.isin(group, part)) for part in cuts)
    return Split(train, stop, judge)


class Batch(NamedTuple):
    """Some traces of a corpus, padded.

    Attributes:
      prefix: what the network takes; its trace ids number the rows of `trace`.
      trace: int32 [B], the trace of the corpus; 0 in padding.
      trace_mask: bool [B].
      reward: float32 [B].
      last: bool [E], the last event of its trace.
      weight: float32 [E], 1 / (events of the trace + 1), so that the outcome of every trace counts once with its empty
        prefix.
      runs, run_mean: float32 [E], further runs from the prefix up to each event, and their mean outcome; 0 for none.
      first_runs, first_mean: float32 [B], the same for the empty prefix of each trace.
    """

    prefix: PrefixBatch
    trace: Array
    trace_mask: Array
    reward: Array
    last: Array
    weight: Array
    runs: Array
    run_mean: Array
    first_runs: Array
    first_mean: Array


class Room(NamedTuple):
    """The one padded shape of all batches: events, edges, traces."""

    events: int
    edges: int
    traces: int


def room(corpus: CriticData, events: int) -> Room:
    """A shape that holds about `events` events a batch, and the longest trace in any case."""
    longest = int(corpus.lengths.max(initial=1))
    most = max(events, longest)
    size = -(-most // BLOCK) * BLOCK
    per_trace = np.diff(corpus.edge_start)
    edges = int(np.max(per_trace / np.maximum(corpus.lengths, 1), initial=1.0) * size) + 1
    edges = max(edges, int(per_trace.max(initial=1)))
    return Room(size, -(-edges // BLOCK) * BLOCK, max(1, size // max(1, int(corpus.lengths.min(initial=1)))))


def batches(corpus: CriticData, traces: np.ndarray, to: Room) -> Iterator[Batch]:
    """The traces in the order given, as many a batch as fit."""
    return (pack(corpus, chosen, to) for chosen in in_batches(corpus, traces, to))


def in_batches(corpus: CriticData, traces: np.ndarray, to: Room) -> Iterator[np.ndarray]:
    """The traces of each batch."""
    lengths, edges = corpus.lengths[traces], np.diff(corpus.edge_start)[traces]
    begin, held, wired = 0, 0, 0
    for i, (length, edge) in enumerate(zip(lengths.tolist(), edges.tolist(), strict=True)):
        if i > begin and (held + length > to.events or wired + edge > to.edges or i - begin >= to.traces):
            yield traces[begin:i]
            begin, held, wired = i, 0, 0
        held, wired = held + length, wired + edge
    if begin < len(traces):
        yield traces[begin:]


def pack(corpus: CriticData, traces: np.ndarray, to: Room) -> Batch:
    """Some traces as one batch of the shape `to`.

    Raises:
      CreditError: they do not fit.
    """
    events, where = _joined(corpus.start, traces)
    edges, _ = _joined(corpus.edge_start, traces)
    if len(events) > to.events or len(edges) > to.edges or len(traces) > to.traces:
        needed = Room(len(events), len(edges), len(traces))
        raise CreditError(f"{needed} does not fit {to}")
    shift = np.zeros(len(corpus.start) - 1, np.int64)
    lengths = corpus.lengths[traces]
    shift[traces] = np.cumsum(lengths) - lengths - corpus.start[traces]
    moved = shift[traces][where]
    of_edge = np.repeat(shift[traces], np.diff(corpus.edge_start)[traces])

    def fit(values: np.ndarray, size: int, dtype: type) -> np.ndarray:
        out = np.zeros((size, *values.shape[1:]), dtype)
        out[: len(values)] = values
        return out

    end = np.cumsum(lengths) - 1
    last = np.zeros(to.events, bool)
    last[end] = True

    def to_prefix_end(values: np.ndarray) -> np.ndarray:
        """From the event that comes after a prefix to the event that ends it."""
        moved_back = np.append(values[events][1:], 0)
        moved_back[end] = 0
        return fit(moved_back, to.events, np.float32)

    prefix = PrefixBatch(
        features=fit(corpus.features[events], to.events, np.float32),
        kind=fit(corpus.kind[events], to.events, np.int32),
        trace=fit(where, to.events, np.int32),
        mask=fit(np.ones(len(events), bool), to.events, bool),
        previous=fit(corpus.previous[events] + moved, to.events, np.int32),
        birth=fit(corpus.birth[events] + moved, to.events, np.int32),
        senders=fit(corpus.senders[edges] + of_edge, to.edges, np.int32),
        receivers=fit(corpus.receivers[edges] + of_edge, to.edges, np.int32),
        edge_mask=fit(np.ones(len(edges), bool), to.edges, bool),
    )
    return Batch(
        prefix,
        fit(traces, to.traces, np.int32),
        fit(np.ones(len(traces), bool), to.traces, bool),
        fit(np.nan_to_num(corpus.reward[traces]), to.traces, np.float32),
        last,
        fit(1 / (lengths[where] + 1), to.events, np.float32),
        to_prefix_end(corpus.runs),
        to_prefix_end(corpus.run_mean),
        fit(corpus.runs[corpus.start[:-1][traces]], to.traces, np.float32),
        fit(corpus.run_mean[corpus.start[:-1][traces]], to.traces, np.float32),
    )


def _joined(start: np.ndarray, traces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the rows of some traces, one after another, and which of the traces each belongs to."""
    counts = np.diff(start)[traces]
    where = np.repeat(np.arange(len(traces)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return start[traces][where] + within, where
