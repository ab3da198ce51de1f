"""`assign` and `compose` on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from credit.ledger.from_methods import RuleName
from credit.methods.chunked import ChunkedMethod
from credit.ray.cluster import EVENTS, chunks_on_cluster
from credit.ray.jobs import Advantages, Ledgers
from credit.ray.output_folder import checked_folder
from credit.ray.part_runs import Parts, run_parts
from graphs.errors import CreditError
from graphs.traces.grouping import GROUP_KEYS
from graphs.traces.limits import DEFAULT, Limits

__all__ = ["assign", "compose"]


def assign(
    *paths: str | Path,
    output: str | Path,
    method: str = "grpo",
    options: Mapping[str, Any] | None = None,
    evidence: Iterable[str] = (),
    actions_only: bool = False,
    events: int = EVENTS,
    reward: str = "team",
    rewards: str | Path | Mapping[str, float] | None = None,
    groups: str | Path | Mapping[str, str] | None = None,
    group_by: str | Iterable[str] = GROUP_KEYS,
    limits: Limits = DEFAULT,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Parts:
    """Compute a method's advantages on a Ray cluster, and write a Parquet file for each part of whole groups.

    The rows are those of `credit.table` on all traces at once, but for their order, and for last digits of methods
    whose additions depend on the place of a trace in its batch, such as `gae` (a relative 1e-5 at most in the tests).
    Uses the cluster that `ray.init` connected this process to. Without one it calls `ray.init()`, which takes the
    cluster of `RAY_ADDRESS` or starts one on this machine.

    Args:
      *paths: native logs, or folders of them, as for `credit.read_chunks`.
      output: a folder, which is created. It may hold parts of the same run, which are kept.
      method: a name in `credit.METHODS` whose scope under the options is "trace" or "group".
      options: options of the method.
      evidence: names of further evidence to take from the log, which the method can do without.
      actions_only: leave out events that no policy chose.
      events: about how many events a part has; it has at least one group.
      reward, rewards, groups, group_by, limits: as in `credit.read_chunks`.
      progress: wraps the iteration over finished parts, as a progress bar does.

    Returns:
      `Parts`.

    Raises:
      CreditError: the method's numbers depend on the whole batch; evidence or outcomes that no part has; `output` is a
        file, or holds Parquet files that are no parts of this run; as `credit.read_chunks`. A run that was refused
        leaves no files.
      MissingExtraError: Ray is not installed.
    """
    job = Advantages(ChunkedMethod(method, dict(options or {}), tuple(evidence)), actions_only)
    folder = checked_folder(output, job)
    chunks = chunks_on_cluster(paths, events, reward, rewards, groups, group_by, limits)
    return run_parts(chunks, job, folder, progress)


def compose(
    *paths: str | Path,
    output: str | Path,
    methods: Iterable[str],
    rule: RuleName = "increments",
    level: str = "event",
    events: int = EVENTS,
    reward: str = "team",
    rewards: str | Path | Mapping[str, float] | None = None,
    groups: str | Path | Mapping[str, str] | None = None,
    group_by: str | Iterable[str] = GROUP_KEYS,
    limits: Limits = DEFAULT,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Parts:
    """Compose methods into ledgers on a Ray cluster, and write a Parquet file for each part of whole groups.

    The rows are those of `credit.compose(...).table(traces, level)` on all traces at once, but for their order, and for
    last digits of claims whose additions depend on the place of a trace in its batch, such as `gae`.

    Args:
      *paths: native logs, or folders of them.
      output: a folder; see `assign`.
      methods: names in `credit.METHODS`, each of scope "trace" or "group", with their default options. Not
        `turn_baseline`, but under rule "shares": its errors are pooled over the batch.
      rule: "increments", "reconcile" or "shares", with its default settings; see `credit.compose`.
      level: "trace", "role", "agent", "turn" or "event": what has a row.
      events, reward, rewards, groups, group_by, limits, progress: as in `assign`.

    Returns:
      `Parts`; its summary is empty.

    Raises:
      CreditError: as `assign`; and as `credit.compose`; a method whose errors are pooled over the batch; rule "shares"
        with scores that are negative in some parts only.
      MissingExtraError: Ray is not installed.
    """
    names = tuple(methods)
    if not names:
        raise CreditError("methods is empty; expected one or more names of credit.METHODS")
    job = Ledgers(tuple(ChunkedMethod(name) for name in names), rule, level)
    folder = checked_folder(output, job)
    chunks = chunks_on_cluster(paths, events, reward, rewards, groups, group_by, limits)
    return run_parts(chunks, job, folder, progress)
