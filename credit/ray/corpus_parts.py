"""The survey of `credit validate` on a Ray cluster: counts of each part of whole groups, added up by the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from credit.methods.absent_outcomes import found_instead
from credit.methods.running import has_outcomes
from credit.ray.cluster import EVENTS, RETRIES, chunks_on_cluster, connected, results_of
from credit.reports.corpus import Survey, Tally
from graphs.errors import NothingReadError, Problem
from graphs.logs.chunks import Chunks
from graphs.problem_log import ProblemLog
from graphs.traces.grouping import GROUP_KEYS
from graphs.traces.limits import DEFAULT, Limits

__all__ = ["survey_of_parts", "validate"]


def validate(
    *paths: str | Path,
    events: int = EVENTS,
    reward: str = "team",
    rewards: str | Path | Mapping[str, float] | None = None,
    groups: str | Path | Mapping[str, str] | None = None,
    group_by: str | Iterable[str] = GROUP_KEYS,
    limits: Limits = DEFAULT,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Survey:
    """Count what native logs hold on a Ray cluster, and sort groups into those with and without a training signal.

    The survey is that of `credit.reports.corpus.survey` on all traces at once. Its problems are the same, in another
    order; a row that matches no trace is named without the ids of traces that are left, which only workers know, and a
    note on the batch, as on groups over files, shows the numbers of the first part that has it, and counts the others.
    Nothing is written, so a run that was killed begins anew.

    Args:
      *paths: native logs, or folders of them.
      events: about how many events a part has; it has at least one group.
      reward, rewards, groups, group_by, limits, progress: as in `assign`.

    Raises:
      NothingReadError: no trace could be read.
      CreditError: as `credit.read_chunks`.
      MissingExtraError: Ray is not installed.
    """
    return survey_of_parts(chunks_on_cluster(paths, events, reward, rewards, groups, group_by, limits), progress)[0]


def survey_of_parts(chunks: Chunks, progress: Callable[[Iterable[int]], Iterable[int]]) -> tuple[Survey, str]:
    """Count parts on the cluster and add them up. Afterwards `chunks.sources` is complete.

    Args:
      chunks: what `credit.ray.cluster.chunks_on_cluster` returns.
      progress: wraps the iteration over finished parts.

    Returns:
      The survey of all traces. And, if no trace has an outcome or any other reward, what the first one has instead, in
      words; "" otherwise.

    Raises:
      NothingReadError: no trace could be read.
    """
    ray = connected()
    shared = ray.put(chunks)
    remote = ray.remote(tally_part).options(max_retries=RETRIES)
    pending = [remote.remote(shared, number) for number in range(len(chunks))]
    total: Tally | None = None
    part_problems: list[Problem] = []
    unread: list[np.ndarray] = []
    instead: list[tuple[str, int, str]] = []
    for _, part in zip(progress(range(len(chunks))), results_of(ray, pending), strict=True):
        part_problems += part.problems
        unread.append(part.unread)
        chunks.sources.add_counts(part.sources)
        if part.instead is not None:
            instead.append(part.instead)
        if total is None:
            total = part.tally
        elif part.tally is not None:
            total.add(part.tally)
    channels = () if total is None else total.channels
    every = ProblemLog(chunks.problems_without(np.concatenate(unread)))
    every.add_part(part_problems)
    every.extend(chunks.without_channel(channels))
    if total is None:
        raise NothingReadError("no trace could be read", tuple(every))
    corpus = total.in_order(chunks.files).survey(every, chunks.ignored)
    if corpus.reward_channels or len(corpus.unscored) < corpus.traces:
        return corpus, ""
    rank = {file: number for number, file in enumerate(chunks.files)}
    return corpus, min(instead, key=lambda place: (rank[place[0]], place[1]))[2]


class PartTally(NamedTuple):
    """The counts of one part.

    Attributes:
      tally: None for a part without a usable trace.
      problems: what was refused.
      unread: hashes of the ids of traces that were not found, int64.
      sources: how many outcomes come from where (`RewardSources.counts`).
      instead: if no trace has an outcome, file and line of the first one, and what it has instead; None otherwise.
    """

    tally: Tally | None
    problems: list[Problem]
    unread: np.ndarray
    sources: list[int]
    instead: tuple[str, int, str] | None = None


def tally_part(chunks: Chunks, number: int) -> PartTally:
    """Count one part, as a task of Ray."""
    traces, problems = chunks.part(number)
    if traces is None:
        return PartTally(None, list(problems), chunks.unread(number), [0, 0, 0])
    instead = None
    if not has_outcomes(traces):
        first = traces.traces.slice(0, 1).to_pylist()[0]
        instead = first["file"], first["line"], found_instead(traces)
    return PartTally(Tally.of(traces), list(problems), chunks.unread(number), chunks.sources_of(traces), instead)
