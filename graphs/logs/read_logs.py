"""Read logs of any format into one batch of traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.logs.chosen_channel import DEFAULT_CHANNEL, judge_channel
from graphs.logs.collector_pause import collector_paused
from graphs.logs.found_logs import Item, open_logs
from graphs.logs.run_states import KEEP, check_errors
from graphs.reading.source import Source
from graphs.reading.tables.joins import Join
from graphs.reading.tables.reward_sources import RewardSources
from graphs.traces.grouping import GROUP_KEYS, check_group_by
from graphs.traces.limits import DEFAULT, Limits

if TYPE_CHECKING:  # importing it loads JAX, which processes that only read do without
    from graphs.padding import Sizes
    from graphs.traces.batch import Traces

__all__ = ["read", "read_and_count"]


@checked_kinds("rewards", "groups")
def read(
    *paths: str | Path,
    format: str | None = None,
    reward: str = DEFAULT_CHANNEL,
    rewards: str | Path | Mapping[str, float] | None = None,
    groups: str | Path | Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    group_by: str | Iterable[str] = GROUP_KEYS,
    errors: str = KEEP,
    to: Sizes | None = None,
    limits: Limits = DEFAULT,
    progress: Callable[[Iterable[Source]], Iterable[Source]] = iter,
    watch: Callable[[Iterable[Item]], Iterable[Item]] = iter,
) -> Traces:
    """Read logs into one batch of traces.

    Args:
      *paths: files, folders (searched to their depths) or "-" for standard input; `.gz` and `.zst` are unpacked. Or one
        cache that `graphs.traces.cache.write_cache` wrote.
      format: one of `FORMATS`; by default the content determines each file's format.
      reward: the reward channel that is the outcome. One other than "team" that no trace has is a problem, which names
        those that the logs have.
      rewards: outcomes kept outside the log: a mapping of trace id to number, or a CSV, JSONL or Parquet file with
        columns `trace` and `reward`. They replace the log's own. A row is a problem if it matches no trace, if its
        reward is missing or not finite, or if its trace occurs twice. In the last two cases the trace has no outcome;
        the log's outcome is not used.
      groups: tasks kept outside the log, in the same forms, with columns `trace` and `group`. A trace with a bad row is
        left out, because its group is unknown.
      columns: for the table reader, the columns by meaning: `{"trace": "traj_uid", "group": "uid", ...}`.
      group_by: the keys of a group, whose traces are compared. By default traces of one task, one model and one system,
        where the log states model and system; ("task",) compares all traces of a task.
      errors: "keep" or "drop": whether runs that their log calls failed are read, with the reward that it states, or
        left out. Either way each is named in `problems` (kind "run-error"). docs/formats/index.md lists what counts.
      to: sizes to pad to; by default the bucket of what was read.
      limits: bounds on files, records and traces. Input beyond a bound is a problem and is not read.
      progress: wraps the iteration over files, as a progress bar does.
      watch: wraps the iteration over what readers yield, each with its file and offset: records, parts and problems.

    Returns:
      `Traces`. Its `problems` list the input that could not be read.

    Raises:
      NothingReadError: not one trace is usable.
      CreditError: an unknown `format` or `errors`, or an argument of a wrong type.

    Examples:
      >>> import credit, json, pathlib, tempfile
      >>> event = {"id": "e", "type": "message", "agent": "solver"}
      >>> logs = [{"trace_id": str(i), "task_id": "q", "events": [event], "rewards": {"team": i}} for i in range(2)]
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     log = pathlib.Path(folder, "log.jsonl")
      ...     _ = log.write_text("\\n".join(map(json.dumps, logs)))
      ...     traces = credit.read(log)
      >>> traces.sizes.traces, traces.reward[:2].tolist()
      (2, [0.0, 1.0])
    """
    return read_and_count(
        *paths, format=format, reward=reward, rewards=rewards, groups=groups, columns=columns, group_by=group_by,
        errors=errors, to=to, limits=limits, progress=progress, watch=watch,
    )[0]  # fmt: skip


def read_and_count(
    *paths: str | Path,
    format: str | None,
    reward: str,
    rewards: str | Path | Mapping[str, float] | None,
    groups: str | Path | Mapping[str, str] | None,
    columns: Mapping[str, str] | None,
    group_by: str | Iterable[str],
    limits: Limits,
    progress: Callable[[Iterable[Source]], Iterable[Source]],
    watch: Callable[[Iterable[Item]], Iterable[Item]],
    errors: str = KEEP,
    to: Sizes | None = None,
) -> tuple[Traces, RewardSources]:
    """The result of `read`, and the numbers of outcomes from the table of rewards and from the log."""
    from graphs.traces.assembling import assemble
    from graphs.traces.cache import read_cache

    keys = check_group_by(group_by)
    check_errors(errors)
    corpus = open_logs(
        *paths, format=format, columns=columns, limits=limits, tables=(rewards, groups), progress=progress
    )
    if corpus.cache is not None:
        if format or columns or rewards or groups or keys != GROUP_KEYS or errors != KEEP:
            belong = "format, columns, rewards, groups, group_by and errors belong to `credit convert`, which made it"
            raise CreditError(f"{corpus.place!r} is a cache of read logs; {belong}")
        traces, sources = read_cache(corpus.cache, reward=reward, to=to, limits=limits), RewardSources({}, "")
    else:
        join = Join.load(channel=reward, rewards=rewards, groups=groups, limits=limits)
        with collector_paused():
            traces = assemble(
                join.apply(watch(corpus.records(errors))),
                reward=reward,
                group_by=keys,
                to=to,
                ignored=corpus.ignored,
                limits=limits,
            )
        sources = join.sources()
        sources.add(traces)
    return judge_channel(traces, reward, corpus.place), sources
