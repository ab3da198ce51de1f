"""Verdicts of judges as claims: numbers that a person or a model gave to agents or decisions, read from a table.

Some methods give credit as text: LangMARL's critic, HERA's reflections, a model asked who is to blame. A judgement file
states numbers for such texts. They take part in comparisons and audits like any method's result.
They are *scores*: they have no unit of reward, so they claim no increment.
`docs/judgements.md` has the format.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from estimators.base import Credit, Reason, finish
from graphs.errors import CreditError, Problem
from graphs.reading.source import Lost
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.rows import read_rows
from graphs.text import excerpt
from graphs.traces.batch import Traces

__all__ = ["Judgements", "read_judgements"]

Unit = Literal["event", "agent", "role", "trace"]
UNITS: tuple[Unit, ...] = ("event", "agent", "role", "trace")
JUDGE = "judgement"


@dataclasses.dataclass(frozen=True)
class Judgements:
    """The content of a judgement file.

    Attributes:
      claims: for each judge a `Credit` of estimand "score" on the batch; actions without a verdict are invalid.
      problems: rows that were left out, and why.
    """

    claims: Mapping[str, Credit]
    problems: tuple[Problem, ...]


def read_judgements(traces: Traces, path: str | Path) -> Judgements:
    """Read verdicts from a CSV, JSONL or Parquet table and lay them on the actions of a batch.

    Columns: `trace`, the id of a trace; `event`, `agent` (instance) or `role`, the one that is judged, and none of them
    for a verdict on the whole trace; `score`, a finite number; and optionally `judge` (one name for all by default) and
    `stderr`, the standard error of the score. Other columns, such as the judge's text, are not read. A judge's verdicts
    are all on one unit. A row that fits nothing, or contradicts an earlier one, is a problem; neither of two
    contradicting rows counts.

    Args:
      traces: a batch.
      path: of the table.

    Raises:
      CreditError: the file cannot be read, no row can be used, or a judge mixes units.
    """
    read = _Verdicts(traces, str(path))
    for line, row in read_rows(path):
        if isinstance(row, Lost):
            read.problems.append(row.problem)
        else:
            read.add(line, row)
    if not read.scores:
        reasons = "; ".join(map(str, read.problems[:3])) or "it has no rows"
        raise CreditError(f"judgement file {str(path)!r} has no verdict that can be used: {reasons}")
    return Judgements({judge: read.claim(judge) for judge in read.scores}, tuple(read.problems))


class _Verdicts:
    """Scores by judge and unit, as they are read."""

    def __init__(self, traces: Traces, file: str) -> None:
        self.traces, self.file = traces, file
        self.problems: list[Problem] = []
        self.units: dict[str, Unit] = {}
        self.scores: dict[str, dict[tuple[int, str], tuple[float, float]]] = {}
        self.contradicted: set[tuple[str, int, str]] = set()
        self.rows = {name: i for i, name in enumerate(traces.traces["trace"].to_pylist())}
        n = traces.sizes
        self.start = np.searchsorted(np.asarray(traces.graph.trace_ids)[: n.events], np.arange(n.traces + 1))
        self.agent = np.asarray(traces.graph.agent_ids)[: n.events]
        self.action = np.asarray(traces.graph.action_mask)[: n.events]
        self.members: dict[tuple[int, Unit], dict[str, list[int]]] = {}

    def events(self, unit: Unit, trace: int, name: str) -> list[int]:
        """Positions of a unit's events; empty where the trace has no such unit."""
        if (trace, unit) not in self.members:
            labels = self.members[trace, unit] = {}
            first, last = int(self.start[trace]), int(self.start[trace + 1])
            for event, label in enumerate(self._labels(unit, first, last), start=first):
                labels.setdefault(label, []).append(event)
        return self.members[trace, unit].get(name, [])

    def _labels(self, unit: Unit, first: int, last: int) -> list[str]:
        """The name of the unit that each event of a range belongs to."""
        if unit == "trace":
            return [""] * (last - first)
        if unit == "event":
            names: list[str] = self.traces.events["event"].slice(first, last - first).to_pylist()
            return names
        of_agents: list[str] = self.traces.agents[unit].take(self.agent[first:last]).to_pylist()
        return of_agents

    def add(self, line: int, row: dict[str, Any]) -> None:
        """Take one row, or note what is wrong with it."""
        judge = id_text(row["judge"]) if row.get("judge") not in (None, "") else JUDGE
        named = [unit for unit in UNITS[:3] if row.get(unit) not in (None, "")]
        if len(named) > 1:
            return self._problem("bad-row", line, "event, agent, role", row, "one of them, or none for the whole trace")
        unit: Unit = named[0] if named else "trace"
        name = id_text(row.get("trace"))
        if name not in self.rows:
            return self._problem("unmatched-row", line, "trace", row.get("trace"), "the id of a trace that was read")
        key = (self.rows[name], id_text(row[unit]) if named else "")
        events = self.events(unit, *key)
        if not events:
            return self._problem("unmatched-row", line, unit, row[unit], f"one of that trace's {unit}s", name)
        if not self.action[events].any():
            return self._problem("no-action", line, unit, row.get(unit), "a unit with an action of the team", name)
        score, stderr = _number(row.get("score")), row.get("stderr")
        error = math.inf if stderr in (None, "") else _number(stderr)
        if score is None:
            return self._problem("bad-score", line, "score", row.get("score"), "a finite number", name)
        if error is None or error < 0:
            return self._problem("bad-score", line, "stderr", stderr, "a number, 0 or more", name)
        if self.units.setdefault(judge, unit) != unit:
            raise CreditError(
                f"{self.file}:{line}: judge {judge!r} has verdicts by {unit} after some by {self.units[judge]}; "
                "expected one unit for all verdicts of a judge (give them two names)"
            )
        if (judge, *key) in self.contradicted:
            return self._problem("ambiguous-row", line, unit, key[1] or name, f"one verdict of {judge!r}", name)
        verdicts = self.scores.setdefault(judge, {})
        if key in verdicts:
            self.contradicted.add((judge, *key))
            del verdicts[key]
            return self._problem("ambiguous-row", line, unit, key[1] or name, f"one verdict of {judge!r}", name)
        verdicts[key] = (score, error)
        return None

    def _problem(self, kind: str, line: int, field: str, value: object, expected: str, trace: str = "") -> None:
        self.problems.append(Problem(kind, self.file, line, field, excerpt(value), expected, trace))

    def claim(self, judge: str) -> Credit:
        """A judge's scores as `Credit`."""
        graph, unit = self.traces.graph, self.units[judge]
        score, stderr = np.zeros(graph.num_events, np.float32), np.zeros(graph.num_events, np.float32)
        reason = np.full(graph.num_events, Reason.NO_EVIDENCE, np.int8)
        for key, (amount, error) in self.scores[judge].items():
            events = self.events(unit, *key)
            score[events], stderr[events], reason[events] = amount, error, Reason.VALID
        return finish(
            graph,
            credit=score,
            baseline=np.zeros_like(score),
            scale=np.ones_like(score),
            stderr=stderr,
            reason=reason,
            unit=unit,
            estimand="score",
            source=judge,
            centred=False,
            own_outcome=True,  # a judge who reads a log sees how it ended
        )


def _number(value: Any) -> float | None:
    """The finite number in a cell; None for anything else, true and false among it."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
