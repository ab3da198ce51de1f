"""Which side each trace is on: by folder, date, model, system or a table."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import itertools
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from credit.reports.durations import AT_ONCE, begins, date_text, part_later
from credit.reports.refused_traces import RefusedTraces
from graphs.errors import CreditError, Problem
from graphs.reading.source import Lost, Source
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.rows import read_rows
from graphs.text import WITHOUT_ROW, counted, excerpt, natural_key, near_names
from graphs.traces.batch import Traces
from graphs.traces.event_models import agent_models, first_models, models_of_agent

__all__ = ["Sides", "dated_sides", "read_sides", "sides_of_folders", "stated_sides"]

STATED = ("system", "model")
EXPECTED = (
    "expected two folders or files A,B, a table, `system` (such as a version), `model`, `model:AGENT` or `before=DATE`"
)
APART = "expected two folders or files that are apart, of logs"
MOST_HINTED = 3
"""Rows of unknown traces for which near names are sought."""


@dataclasses.dataclass(frozen=True)
class Sides:
    """Two sides of traces.

    Attributes:
      names: of the sides.
      side: 0 or 1 of each trace, -1 for none: int [traces].
      heads: what tables and sentences call them: folders without their paths, and earlier and later runs.
      unread: sides of traces that were refused, by their ids, where their logs, files or rows tell.
      word: by what the log states of them, `system`, `model` or `model:AGENT`; "" elsewhere.
      order: why the first is the first where nobody said so; "" elsewhere.
      turn: what turns them where dates do not order them; "" elsewhere.
      by_name: whether it is for its name, since dates do not say it either.
      of_model: whose models they are, `model` or `model:AGENT`, also where a table or folders are named after them; ""
        elsewhere.
      since: the date that parts them, in words; "" elsewhere.
    """

    names: tuple[str, str]
    side: np.ndarray
    heads: tuple[str, str]
    unread: Mapping[str, int] = dataclasses.field(default_factory=dict)
    word: str = ""
    order: str = ""
    turn: str = ""
    by_name: bool = False
    of_model: str = ""
    since: str = ""

    @property
    def agent(self) -> str:
        """Whose models they are; "" where they are no models of one agent."""
        return self.of_model.partition(":")[2]

    @property
    def change(self) -> str:
        """From what to what a change is: a sentence says it once, and then `heads`."""
        return f"from {self.since} on" if self.since else f"from {self.heads[0]} to {self.heads[1]}"

    @classmethod
    def joined(cls, text: str | None, traces: Traces) -> tuple[Traces, Sides | None]:
        """The sides that a person names, or None for none.

        Two folders or files with a comma between them; `system`, `model` or `model:AGENT` for what the log states,
        where it states two, and `system=A,B` of several; `before=DATE` for when traces begin; else the path of a table.
        Of sides that are not named in order the earlier one is the first, or where neither is (`AT_ONCE`), that of the
        first name or of the table's first row.

        Returns:
          The traces, whose problems name rows of traces that were not read, and their sides.

        Raises:
          CreditError: as `read_sides`, `sides_of_folders`, `stated_sides` and `dated_sides` do.
        """
        if text is None:
            return traces, None
        word, _, given = text.partition("=")
        unread: dict[str, int] = {}
        if Path(text).exists() and not Path(text).is_dir():
            names, side, missed, unread = read_sides(text, traces)
            traces = dataclasses.replace(traces, problems=traces.problems + missed)
        elif word == "before":
            names, since, side = dated_sides(given, traces)
            return traces, cls(names, side, ("earlier runs", "later runs"), since=since)
        elif _is_stated(word):
            names, side = stated_sides(word, [name.strip() for name in given.split(",") if given], traces)
            systems = traces.refused_systems if word == "system" else {}
            unread = {trace: names.index(system) for trace, system in systems.items() if system in names}
        else:
            names, side = sides_of_folders(text.split(","), traces)
            last = Path(names[0]).resolve().name, Path(names[1]).resolve().name
            # A table that whole paths fit into has rows in pieces.
            refused = [problem for problem in traces.problems if problem.trace and problem.may_refuse]
            inside = _sides_of_files([Path(name).resolve() for name in names], [p.file for p in refused])
            unread = {p.trace: inside[p.file] for p in reversed(refused) if inside[p.file] >= 0}
            heads = last if last[0] != last[1] else names
            return traces, cls(names, side, heads, unread, of_model=_named_after(heads, side, traces))
        word = word * _is_stated(word)
        of_model = word if word.startswith("model") else "" if word else _named_after(names, side, traces)
        later = part_later(begins(traces), side)
        if given:
            return traces, cls(names, side, names, unread, word, of_model=of_model)
        if later < AT_ONCE:
            names, side, later = (names[1], names[0]), np.where(side < 0, side, 1 - side), 1 - later
            unread = {trace: 1 - one for trace, one in unread.items()}
        named = word != "" and not later > 1 - AT_ONCE
        return traces, cls(names, side, names, unread, word, *_order(names, word, later), named, of_model)

    @classmethod
    def latest(cls, traces: Traces) -> Sides | None:
        """The two systems that the log states, or of several, such as releases, the last two; None where it states one,
        or several of which not each begins after the one before.

        Args:
          traces: what was read.
        """
        systems, begin = traces.traces["system"].to_pylist(), begins(traces)
        names = {name for name in systems if name}
        if len(names) < 3:
            return cls.joined("system", traces)[1] if len(names) == 2 else None
        of = {name: begin[np.array([one == name for one in systems])] for name in names}
        if not all(np.isfinite(one).any() for one in of.values()):
            return None
        in_time = sorted(names, key=lambda name: float(np.nanmedian(of[name])))
        for step in itertools.pairwise(in_time):
            two = np.array([step.index(name) if name in step else -1 for name in systems])
            if part_later(begin, two) <= 1 - AT_ONCE:
                return None
        (first, second), side = stated_sides("system", in_time[-2:], traces)
        unread = {trace: int(its == second) for trace, its in traces.refused_systems.items() if its in (first, second)}
        return cls((first, second), side, (first, second), unread, "system")

    def command(self, traces: Traces) -> str:
        """The command that says more of two systems.

        Args:
          traces: of these sides.
        """
        systems, begin = np.array([one or "" for one in traces.traces["system"].to_pylist()], object), begins(traces)
        others = {*systems.tolist()} - {"", *self.names}
        if not others:
            return "`credit metrics --sides system` says what else changed between the systems."
        before = max(others, key=lambda name: float(np.nanmedian(begin[systems == name])))
        this, last = (shlex.quote(f"system={one},{two}") for one, two in (self.names, (before, self.names[0])))
        return (
            f"`credit metrics --sides {this}` says what else changed between the systems, and `--sides {last}` what "
            "did in the step before."
        )


def read_sides(
    path: str | Path, traces: Traces
) -> tuple[tuple[str, str], np.ndarray, tuple[Problem, ...], dict[str, int]]:
    """Two sides of traces, from a table.

    Returns:
      Their names in the order of the file; the side of each trace, int [traces], -1 where it has none; the rows whose
      trace was not read; and the sides of those among these that were refused.

    Args:
      path: of a table with the columns `trace` and `side`.
      traces: what was read.

    Raises:
      CreditError: a row is not of that form, a trace has two sides, or the sides of the traces are not two.
    """
    names: list[str] = []
    of_trace: dict[str, int] = {}
    missed: dict[str, int] = {}
    stated: dict[str, str] = {}  # of these
    refused = {problem.trace for problem in traces.problems if problem.may_refuse} - {""}
    known = set(traces.traces["trace"].to_pylist())
    for line, row in read_rows(Source(str(path), Path(path))):
        if isinstance(row, Lost):
            raise CreditError(f"{path}: {row.problem}; expected a table with the columns `trace` and `side`")
        if row.get("trace") is None or row.get("side") is None:
            raise CreditError(f"{path}, line {line}: no trace or no side; expected the columns `trace` and `side`")
        trace, side = id_text(row["trace"]), id_text(row["side"]).strip()
        if trace in known:
            names += [] if side in names else [side]
            if of_trace.setdefault(trace, names.index(side)) != names.index(side):
                raise CreditError(f"{path}, line {line}: a second side of trace {trace!r}; expected one for each trace")
        else:
            missed.setdefault(trace, line)
            stated[trace] = side
    without = sorted(known - of_trace.keys())
    problems: list[Problem] = []
    for trace, line in missed.items():
        hint = f". {near_names(trace, without, count=WITHOUT_ROW)}" if without and len(problems) < MOST_HINTED else ""
        if trace in refused:
            continue
        expected = f"the id of a trace that was read{hint}"
        problems.append(Problem("unmatched-row", str(path), line, "trace", excerpt(trace), expected, about="side"))
    if len(names) != 2:
        found = ", ".join(map(excerpt, names)) or "none"
        raise CreditError(
            f"{path}: the sides of the traces that were read are: {found}; expected two, such as before and after"
            + _lost(traces)
            + "".join(f"\n{problem}" for problem in problems[:MOST_HINTED])
        )
    sides = [of_trace.get(name, -1) for name in traces.traces["trace"].to_pylist()]
    unread = {trace: names.index(side) for trace, side in stated.items() if trace in refused and side in names}
    return (names[0], names[1]), np.array(sides, np.int64), tuple(problems), unread


def stated_sides(word: str, given: Sequence[str], traces: Traces) -> tuple[tuple[str, str], np.ndarray]:
    """Two sides of traces, by the model or system that the log states.

    An agent's model is that with which it first acts. A given one with which it never begins, as a fallback, has the
    traces in which the agent acts with it, and these are not of the other side.

    Returns:
      Their names, and the side of each trace, int [traces], -1 where it is of neither.

    Args:
      word: "model", "system" or "model:AGENT".
      given: two of them; none where the log has two.
      traces: what was read.

    Raises:
      CreditError: they are not two, or not those of the log.
    """
    kind, _, agent = word.partition(":")
    stated, of_agents = traces.traces[kind].to_pylist(), first_models(traces) if kind == "model" else []
    if word not in STATED:
        stated = [of.get(agent, "") for of in of_agents]
    found = sorted({name for name in stated if name}, key=natural_key)
    names = list(given) or found
    acts = models_of_agent(traces, agent) if agent else []
    later = collections.Counter(name for of in acts for name in of if name not in found)
    for fallback in {*names} & later.keys():
        stated = [fallback if fallback in of else name for name, of in zip(stated, acts, strict=True)]
    if len(set(names)) != 2 or len(names) != 2 or not {*names} <= {*found, *later}:
        known = ", ".join(map(excerpt, found)) or "none is stated"
        models: dict[str, set[str]] = {}
        for who, model in (pair for of in of_agents for pair in of.items()):
            models.setdefault(who, set()).add(model)
        several = [f"model:{who}" for who, its in models.items() if len(its) > 1 and who != agent][:MOST_HINTED]
        hint = f". Of several models: {', '.join(several)}" if several else ""
        for fallback, count in later.most_common(1) if len(found) == 1 else ():
            option = shlex.quote(f"{word}={found[0]},{fallback}")
            hint = f". {agent} begins with it, and goes on with {excerpt(fallback)} in {counted(count, 'trace')}"
            hint += f": --sides {option} compares these with the others"
        options = [shlex.quote(f"{word}={first},{second}") for first, second in itertools.pairwise(found)]
        steps = " or ".join(f"--sides {option}" for option in options[-MOST_HINTED:])  # the latest, of many
        two = f"two, such as {steps}" if len(found) > 2 else f"two, or --sides {word}=A,B"
        raise CreditError(f"{word} of the traces that were read: {known}; expected {two}{hint}{_lost(traces)}")
    return (names[0], names[1]), np.array([names.index(name) if name in names else -1 for name in stated], np.int64)


def _lost(traces: Traces) -> str:
    """Which traces were not read, behind an error: a side may be among them."""
    refused = RefusedTraces.of(traces)
    return "".join(f". {one}" for one in (refused.opening(), refused.of_records()) if one)


def _is_stated(word: str) -> bool:
    return word in STATED or word.startswith("model:")


def _named_after(heads: tuple[str, str], side: np.ndarray, traces: Traces) -> str:
    """`Sides.of_model` of sides without a word: each one's name is a part of the one model that an agent has there."""
    for agent, its in agent_models(traces, every=True).items():
        of = [{model.lower() for row, model in its.items() if side[row] == one} for one in (0, 1)]
        named = (head.lower() in model for head, models in zip(heads, of, strict=True) for model in models)
        if [*map(len, of)] == [1, 1] and of[0] != of[1] and all(named):
            return f"model:{agent}"
    return ""


def _order(names: tuple[str, str], word: str, later: float) -> tuple[str, str]:
    """`Sides.order` and `Sides.turn`, by `part_later` of the sides."""
    first, second = names
    if later > 1 - AT_ONCE:
        return f"{first} is the baseline, since it ran {'' if later == 1 else 'mostly '}before {second}", ""
    why = "no dates order the sides" if np.isnan(later) else "both sides ran at once"
    if not word:
        turn = f"A row of {second} at the top of the table turns the sides."
        return f"{first} is the baseline by the table's order, since {why}", turn
    return f"{first} is the baseline by its name, since {why}", f"`--sides {word}={second},{first}` turns the sides."


def dated_sides(date: str, traces: Traces) -> tuple[tuple[str, str], str, np.ndarray]:
    """Two sides of traces, by whether they begin before a date, which is in UTC unless it states a zone.

    Returns:
      Their names, `Sides.since`, and the side of each trace, int [traces], -1 where the log has no date of it.

    Raises:
      CreditError: it is no date of ISO 8601, or no trace begins on one side of it.
    """
    try:
        moment = datetime.datetime.fromisoformat(date)
    except ValueError:
        raise CreditError(f"{date!r} is no date; expected one of ISO 8601, such as 2026-11-20") from None
    limit = (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()
    begin = begins(traces)
    if np.isnan(begin).all():
        raise CreditError("no trace that was read has a date; expected times in seconds since 1970")
    side = np.where(np.isnan(begin), -1, begin >= limit).astype(np.int64)
    names = f"before {date}", f"from {date}"
    for number, name in enumerate(names):
        if not (side == number).any():
            first, last = date_text(np.nanmin(begin)), date_text(np.nanmax(begin))
            raise CreditError(f"no trace that was read begins {name}; they begin from {first} to {last}{_lost(traces)}")
    at = moment.astimezone(datetime.UTC) if moment.tzinfo else moment
    clock = f" {at:%H:%M:%S}".removesuffix(":00") if at.time() != datetime.time() else ""
    years = {date_text(seconds)[:4] for seconds in (np.nanmin(begin), np.nanmax(begin))}
    told = f"{at.day} {at:%B}{'' if years == {str(at.year)} else f' {at.year}'}{clock}"
    return names, told, side


def sides_of_folders(folders: Sequence[str], traces: Traces) -> tuple[tuple[str, str], np.ndarray]:
    """Two sides of traces, by the folder of their logs.

    Returns:
      The folders, and the side of each trace, int [traces], -1 where its file lies in neither.

    Args:
      folders: two of them, or two files.
      traces: what was read.

    Raises:
      CreditError: they are not two, one lies in the other, or no trace that was read is from one of them.
    """
    files = traces.traces["file"].to_pylist()
    for folder in folders:
        if not Path(folder).exists():
            near = near_names(folder, files, count="Files that were read ({})")
            raise CreditError(f"{folder} does not exist; {EXPECTED}. {near}")
    if len(folders) != 2:
        raise CreditError(f"sides are {', '.join(folders)}; {EXPECTED}")
    places = [Path(folder).resolve() for folder in folders]
    if places[0].is_relative_to(places[1]) or places[1].is_relative_to(places[0]):
        raise CreditError(f"sides are {', '.join(folders)}, of which one lies in the other; {APART}")
    inside = _sides_of_files(places, files)
    side = np.array([inside[file] for file in files], np.int64)
    for number, folder in enumerate(folders):
        if not (side == number).any():
            raise CreditError(f"no trace that was read is from {folder!r}; {APART}{_lost(traces)}")
    return (folders[0], folders[1]), side


def _sides_of_files(places: Sequence[Path], files: Sequence[str]) -> dict[str, int]:
    """Of each file, in which of these folders it lies; -1 for none."""
    found = {file: Path(file).resolve() for file in dict.fromkeys(files)}
    inside = {file: [place in (path, *path.parents) for place in places] for file, path in found.items()}
    return {file: within.index(True) if any(within) else -1 for file, within in inside.items()}
