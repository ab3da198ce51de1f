"""Values of a fitted critic for a corpus: every prefix, and prefixes that end with another event than was logged."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from estimators.critic.data import CriticData, batches, room
from estimators.critic.features import event_kinds
from estimators.critic.network import Architecture, PrefixBatch
from estimators.critic.objective import predict
from estimators.critic.train import Fitted
from graphs.errors import CreditError
from graphs.event_graph import Array

__all__ = ["predict_corpus", "predict_replaced"]

BATCH_EVENTS = 8192


def predict_corpus(fitted: Fitted, corpus: CriticData) -> tuple[np.ndarray, np.ndarray]:
    """V̂(G≤e) after each event, and V̂(∅), by member, in units of reward: float32 [M, E] and [M].

    Raises:
      CreditError: the corpus has other columns than the critic was fitted on.
    """
    if corpus.features.shape[1] != fitted.sizes.features:
        raise CreditError(
            f"the corpus has {corpus.features.shape[1]} feature columns; expected {fitted.sizes.features}, as fitted"
        )
    corpus = corpus._replace(features=fitted.scaler(corpus.features))
    run, to = _compiled(fitted.sizes), room(corpus, BATCH_EVENTS)
    parts: list[np.ndarray] = []
    start = np.zeros(0, np.float32)
    for batch in batches(corpus, np.arange(len(corpus.lengths)), to):
        values, before = run(fitted.parameters, batch.prefix)
        start = np.asarray(before)
        parts.append(np.asarray(values)[:, np.asarray(batch.prefix.mask)])
    after = np.concatenate(parts, axis=1)
    return after * fitted.scale + fitted.centre, start * fitted.scale + fitted.centre


def predict_replaced(fitted: Fitted, corpus: CriticData, at: Array, features: Array) -> np.ndarray:
    """V̂ of the prefix before each of some events together with another event in its place: float32 [M, N].

    What Q̂ of an alternative is to a critic of prefixes. An event's causes stay as they were logged.

    Args:
      at: int [N], events of the corpus.
      features: float [N, F], the features of the event that takes its place (`event_features` of a graph in which it
        does).
    """
    at, rows = np.asarray(at), np.asarray(features, np.float32)
    trace = np.searchsorted(corpus.start, at, side="right") - 1
    first = corpus.start[trace]
    lengths = at - first + 1
    start = np.concatenate([[0], np.cumsum(lengths)])
    where = np.repeat(np.arange(len(at)), lengths)
    source = np.arange(start[-1]) - start[where] + first[where]
    # Each prefix becomes a trace of its own: its rows are copied, and what points at rows moves by `shift`.
    shift = start[:-1] - first
    edges = [
        np.arange(*np.searchsorted(corpus.receivers, (low, high + 1))) for low, high in zip(first, at, strict=True)
    ]
    of_edge = np.repeat(shift, [len(e) for e in edges])
    chosen = np.concatenate(edges) if edges else np.zeros(0, np.int64)
    copy = CriticData(
        features=corpus.features[source],
        kind=corpus.kind[source],
        start=start,
        previous=corpus.previous[source] + shift[where],
        birth=corpus.birth[source] + shift[where],
        senders=corpus.senders[chosen] + of_edge,
        receivers=corpus.receivers[chosen] + of_edge,
        edge_start=np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int64),
        reward=np.zeros(len(at), np.float32),
        group=np.zeros(len(at), np.int64),
        runs=np.zeros(len(source), np.float32),
        run_mean=np.zeros(len(source), np.float32),
    )
    copy.features[start[1:] - 1], copy.kind[start[1:] - 1] = rows, event_kinds(rows)
    return predict_corpus(fitted, copy)[0][:, start[1:] - 1]


@functools.cache
def _compiled(sizes: Architecture) -> Callable[[Any, PrefixBatch], tuple[jax.Array, jax.Array]]:
    return jax.jit(functools.partial(predict, sizes))
