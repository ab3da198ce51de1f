"""Read logs of any format into one batch of traces, and the log's own record of an event again."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError, Problem, UnreadWarning
from graphs.logs.collector_pause import collector_paused
from graphs.logs.damaged_lines import noting_damage
from graphs.logs.found_logs import Item, open_logs
from graphs.logs.run_states import KEEP, check_errors
from graphs.problem_log import count_kinds
from graphs.reading.source import Source
from graphs.reading.tables.joins import Join
from graphs.reading.tables.outcome_words import check_meanings
from graphs.reading.tables.reward_sources import RewardSources
from graphs.reading.tables.rows import is_parquet
from graphs.text import excerpt, near_names
from graphs.traces.copies import REPEATED_LINES
from graphs.traces.grouping import GROUP_KEYS, check_group_by
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.record import UNSETTLED
from graphs.traces.repeated_rows import REPEATED_ROWS

if TYPE_CHECKING:  # importing it loads JAX, which processes that only read do without
    from graphs.padding import Sizes
    from graphs.traces.batch import Traces

__all__ = ["DEFAULT_CHANNEL", "missing_channel", "raw_record", "read", "read_and_count"]

DEFAULT_CHANNEL = "team"
_SHOWN = 10  # channels that are named
_WARNED = frozenset(("unordered-rows", REPEATED_LINES, REPEATED_ROWS, UNSETTLED, "outcome-again"))  # numbers are wrong


@checked_kinds("rewards", "groups")
def read(
    *paths: str | Path,
    format: str | None = None,
    reward: str = DEFAULT_CHANNEL,
    rewards: str | Path | Mapping[str, float] | None = None,
    groups: str | Path | Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    outcomes: Mapping[str, float] | None = None,
    types: Mapping[str, str] | None = None,
    group_by: str | Iterable[str] = GROUP_KEYS,
    errors: str = KEEP,
    orphans: str = KEEP,
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
        columns `trace` and `reward`, also `rewards.NAME` of other channels. They replace the log's own. A file may
        state outcomes as words of one pair, such as pass and fail; a problem of kind "worded-outcomes" says which is
        read as 1. A row is a problem if it matches no trace, if its reward is missing or not finite, or if its trace
        occurs twice. In the last two cases the trace has no outcome; the log's outcome is not used.
      groups: tasks kept outside the log, in the same forms, with columns `trace` and `group`. A trace with a bad row is
        left out, because its group is unknown. A file may state `task_kind` and `system` beside them, or beside
        one of them: without groups each trace keeps its own.
      columns: for the table reader, the columns by meaning: `{"trace": "traj_uid", "group": "uid", ...}`. For traces
        with metadata of their own, keys of these: `{"group": "ticket", "task_kind": "kind"}`.
        Beside another outcome the column of `reward` is a channel of its own name.
      outcomes: what words of outcomes mean, as `{"escalated": 0}`, in capitals or not, in tables, `rewards` and scores.
        Pairs such as pass and fail are known; a trace whose word is not has no outcome, and is a problem.
      types: for the table reader, what words of the column `type` mean, as `{"llm": "message"}`, in capitals or not.
      group_by: the keys of a group, whose traces are compared. By default traces of one task, one model and one system,
        where the log states model and system; ("task",) compares all traces of a task.
      errors: "keep" or "drop": whether runs that their log calls failed are read, with the reward that it states, or
        left out. Either way each is named in `problems` (kind "run-error"). docs/formats/index.md lists what counts.
      orphans: "keep", "root" or "refuse": whether a trace of spans with pieces whose parents are missing is read as
        cut short, work right below a missing parent as that of an agent "unknown", or of the one that it names; or, in
        `otlp` and `spans`, each piece is attached to the one agent that was at work or that it names, else to the root
        span; or it is refused. Either is named in `problems` (kinds "cut-short", "attached-orphans", "missing-parent").
      to: sizes to pad to; by default the bucket of what was read.
      limits: bounds on files, records and traces. Input beyond a bound is a problem and is not read.
      progress: wraps the iteration over files, as a progress bar does.
      watch: wraps the iteration over what readers yield, each with its file and offset: records, parts and problems.

    Returns:
      `Traces`. Its `problems` list the input that could not be read.

    Raises:
      NothingReadError: not one trace is usable.
      CreditError: an unknown `format`, `errors` or `orphans`, or an argument of a wrong type.
      UnreadWarning: some input is not in the batch, or twice, or rows of a table stand behind later ones or again; it
        counts the problems, without other notes, and quotes one.

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
    traces, _ = read_and_count(
        *paths, format=format, reward=reward, rewards=rewards, groups=groups, columns=columns, outcomes=outcomes,
        types=types, group_by=group_by, errors=errors, orphans=orphans, to=to, limits=limits, progress=progress,
        watch=watch,
    )  # fmt: skip
    if wrong := [problem for problem in traces.problems if problem.is_failure or problem.kind in _WARNED]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in count_kinds(wrong).items())
        text = f"problems of reading, which `problems` of the result has ({kinds}), the first of them: {wrong[0]}"
        warnings.warn(text, UnreadWarning, stacklevel=3)  # the caller, past the check of arguments
    return traces


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
    outcomes: Mapping[str, float] | None = None,
    types: Mapping[str, str] | None = None,
    errors: str = KEEP,
    orphans: str = KEEP,
    to: Sizes | None = None,
) -> tuple[Traces, RewardSources]:
    """The result of `read`, and the numbers of outcomes from the table of rewards and from the log.

    Args:
      paths, format, reward, rewards, groups, columns, outcomes, types, group_by, limits, progress, watch, errors,
        orphans, to: as of `read`.
    """
    from graphs.formats.table.type_words import check_types
    from graphs.traces.assembling import assemble
    from graphs.traces.cache import read_cache

    keys = check_group_by(group_by)
    check_errors(errors, orphans)
    meaning = check_meanings(outcomes)
    named = (columns or {}).get("reward", "") if reward == DEFAULT_CHANNEL else reward
    if columns and columns.get("reward") and reward != DEFAULT_CHANNEL:  # a channel beside the outcome has its own name
        columns = {**columns, "reward": "", f"rewards.{columns['reward']}": columns["reward"]}
    corpus = open_logs(
        *paths,
        format=format,
        columns=columns,
        limits=limits,
        tables=(rewards, groups),
        progress=progress,
        outcomes=meaning,
        types=check_types(types),
    )
    if corpus.cache is not None:
        if (
            format
            or columns
            or rewards
            or groups
            or outcomes
            or types
            or keys != GROUP_KEYS
            or errors != KEEP
            or orphans != KEEP
        ):
            belong = (
                "format, columns, rewards, groups, outcomes, types, group_by, errors and orphans belong to `credit "
                "convert`, its maker"
            )
            raise CreditError(f"{corpus.place!r} is a cache of read logs; {belong}")
        traces, sources = read_cache(corpus.cache, reward=reward, to=to, limits=limits), RewardSources({}, "")
    else:
        join = Join.load(channel=reward, rewards=rewards, groups=groups, limits=limits, outcomes=meaning)
        items = corpus.records(errors, orphans, has_groups=groups is not None)
        with collector_paused():
            traces = assemble(
                join.apply(watch(noting_damage(items, corpus.sources, join))),
                reward=reward,
                group_by=keys,
                to=to,
                ignored=corpus.ignored,
                limits=limits,
            )
        known = {(problem.kind, problem.file, problem.line) for problem in traces.problems}
        join.note_refused(traces.problems)
        join.met.intersection_update(traces.traces["trace"].to_pylist())  # not copies that contradict each other
        late = [p for p in join.unmatched() if p.line and (p.kind, p.file, p.line) not in known]
        traces = dataclasses.replace(traces, problems=(*traces.problems, *late), text_columns=corpus.text_columns)
        sources = join.sources()
        sources.add(traces)
        if reward == DEFAULT_CHANNEL and join.outcome:
            named = join.outcome
        elif (
            reward == DEFAULT_CHANNEL and isinstance(rewards, (str, os.PathLike)) and sources.table and not sources.log
        ):
            named = Path(rewards).name  # of all outcomes
    traces = dataclasses.replace(traces, outcome=named)
    return judge_channel(traces, reward, corpus.place), sources


def missing_channel(channel: str, logged: Sequence[str], place: str) -> Problem | None:
    """The problem of a channel that no trace has, where the logs have others; None for one that is not asked for.

    Args:
      channel: the reward channel that is the outcome.
      logged: channels that traces have.
      place: where the logs are, in words.
    """
    if channel == DEFAULT_CHANNEL or not logged or channel in logged:
        return None
    more = f" and {len(logged) - _SHOWN} more" if len(logged) > _SHOWN else ""
    near = near_names(channel, logged)
    hint = f". {near}" if near.startswith("Did") else ""
    expected = f"a channel that a trace has: {', '.join(logged[:_SHOWN])}{more}{hint}"
    return Problem("no-such-channel", place, 0, "reward", excerpt(channel), expected)


def judge_channel(traces: Traces, channel: str, place: str) -> Traces:
    """The batch with the problems of the chosen channel.

    A "several-rewards" is left out where the traces that it is about have an outcome. A "no-such-channel" is added
    where no trace has the channel and the logs have others, unless it is the default, which is not asked for by name.

    Args:
      traces: what was read, with outcomes from `channel`.
      channel: the reward channel that is the outcome.
      place: where the logs are, in words.
    """
    problems = traces.problems
    if any(problem.kind == "several-rewards" for problem in problems):
        problems = _unsettled(traces)
    missing = missing_channel(channel, traces.reward_channels, place)
    if missing is not None:
        problems = (*problems, missing)
    return traces if problems is traces.problems else dataclasses.replace(traces, problems=problems)


def _unsettled(traces: Traces) -> tuple[Problem, ...]:
    """The problems without each "several-rewards" of a file that has an outcome, or only outcomes if it is several."""
    scored = np.isfinite(np.asarray(traces.reward)[: traces.sizes.traces]).tolist()
    files = traces.traces["file"].to_pylist()
    settled = {file for file, has in zip(files, scored, strict=True) if has}
    open_ = {file for file, has in zip(files, scored, strict=True) if not has}

    def is_settled(problem: Problem) -> bool:
        return problem.file in settled and (problem.count == 1 or problem.file not in open_)

    return tuple(p for p in traces.problems if p.kind != "several-rewards" or not is_settled(p))


@checked_kinds()
def raw_record(traces: Traces, event: int) -> bytes:
    """The log's own record of an event, read again from its file: the JSON value or the line that starts there.

    In formats whose record is a whole trace (native, one trace a line) this is the trace's record; of a row of CSV it
    is the first line.

    Args:
      traces: what `credit.read` returned.
      event: the row of the event in `traces.events`.

    Raises:
      CreditError: no such event; or the batch was read from standard input or from a format without text.
    """
    if not 0 <= event < traces.events.num_rows:
        raise CreditError(f"event is {event}; expected 0 to {traces.events.num_rows - 1}")
    file, row, offset = (traces.events[name][event].as_py() for name in ("file", "line", "offset"))
    source = Source(file, Path(file))
    is_row = offset is None or offset < 0
    if not Path(file).is_file() or (is_row and is_parquet(source)):
        raise CreditError(f"event {event} has no record to read again: it came from {file!r}")
    if is_row:
        line: bytes = source.data.split(b"\n")[row - 1]
        return line.strip()
    data = source.data[offset:]
    line = data.split(b"\n", 1)[0].strip()
    try:
        text = data.decode()
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:  # the file has changed
        return line
    return text[:end].encode()
