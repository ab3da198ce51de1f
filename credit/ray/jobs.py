"""The computation on each part, and the sum over the parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, get_args

import numpy as np

import credit
from credit.ledger.from_methods import RuleName, compose_claims
from credit.method_summary import Summary
from credit.methods.absent_outcomes import found_instead, spoilt_rows
from credit.methods.chunked import ChunkedMethod
from credit.methods.running import has_outcomes
from credit.tables.advantages import table
from graphs.errors import CreditError
from graphs.levels import LEVELS
from graphs.text import excerpt

if TYPE_CHECKING:
    import pyarrow as pa

    from graphs.errors import Problem
    from graphs.traces.batch import Traces

__all__ = ["Advantages", "Job", "Ledgers"]


class Job(Protocol):
    """The computation on one part."""

    @property
    def key(self) -> str:
        """A text that differs where the results may differ."""

    @property
    def words(self) -> str:
        """The computation in a few words."""

    def compute(self, traces: Traces) -> tuple[pa.Table, dict[str, Any]]:
        """The table of some whole groups, and a note for `finish`, which must be JSON."""

    def finish(self, notes: Sequence[dict[str, Any]], problems: Iterable[Problem]) -> Summary:
        """Sum up the notes of all parts; raise where every part lacks the same evidence.

        Args:
          notes: of the parts that have traces.
          problems: what was refused in all parts and in tables.
        """


@dataclasses.dataclass(frozen=True)
class Advantages:
    method: ChunkedMethod
    actions_only: bool

    @property
    def key(self) -> str:
        return repr((credit.__version__, "assign", _text(self.method), self.actions_only))

    @property
    def words(self) -> str:
        return f"assign {self.method.method}{excerpt(dict(self.method.options), 80) if self.method.options else ''}"

    def compute(self, traces: Traces) -> tuple[pa.Table, dict[str, Any]]:
        result, summary = self.method.run(traces), Summary()
        summary.add(traces, result, self.method.method, self.method.options, given=self.method.evidence)
        note = _evidence_note(traces, [self.method]) | {"summary": summary.to_plain()}
        return table(traces, result, actions_only=self.actions_only), note

    def finish(self, notes: Sequence[dict[str, Any]], problems: Iterable[Problem]) -> Summary:
        _refuse_missing([self.method], notes, problems)
        total = Summary()
        for note in notes:
            total.merge(Summary.from_plain(note["summary"]))
        total.refuse_mixed(self.method.method, self.method.options)
        return total


@dataclasses.dataclass(frozen=True)
class Ledgers:
    methods: tuple[ChunkedMethod, ...]
    rule: RuleName
    level: str

    def __post_init__(self) -> None:
        if self.rule not in get_args(RuleName):
            raise CreditError(f"rule is {self.rule!r}; expected one of {', '.join(get_args(RuleName))}")
        if self.level not in LEVELS:
            raise CreditError(f"level is {self.level!r}; expected one of {', '.join(LEVELS)}")
        for method in self.methods:
            if self.rule != "shares":  # which weighs nothing by errors
                method.refuse_pooled_errors()

    @property
    def key(self) -> str:
        return repr((credit.__version__, "compose", [_text(method) for method in self.methods], self.rule, self.level))

    @property
    def words(self) -> str:
        return f"compose {','.join(method.method for method in self.methods)} by {self.rule}, level {self.level}"

    def compute(self, traces: Traces) -> tuple[pa.Table, dict[str, Any]]:
        claims = {method.method: method.run(traces) for method in self.methods}
        ledger = compose_claims(traces, claims, rule=self.rule)
        took_part = sorted({claim.source for claim in claims.values()} - ledger.refused.keys())
        note = _evidence_note(traces, self.methods) | {"took_part": took_part, "refused": dict(ledger.refused)}
        return ledger.table(traces, self.level), note  # type: ignore[arg-type]

    def finish(self, notes: Sequence[dict[str, Any]], problems: Iterable[Problem]) -> Summary:
        _refuse_missing(self.methods, notes, problems)
        if self.rule == "shares":
            parts = [set(note["took_part"]) for note in notes]
            for name in sorted(set().union(*parts) - set.intersection(*parts)):
                why = next(note["refused"][name] for note in notes if name in note["refused"])
                how = "leave it out, or compose all traces at once"
                raise CreditError(f"{name!r} divides nothing in some parts, where {why}; {how}")
        return Summary()


def _text(method: ChunkedMethod) -> str:
    options = [(name, _whole(value)) for name, value in sorted(method.options.items())]
    return repr((method.method, options, method.evidence))


def _whole(value: Any) -> Any:
    """An option as something whose text shows all of it: that of a long array leaves out the middle."""
    return (np.shape(value), np.asarray(value).tolist()) if hasattr(value, "__array__") else value


def _evidence_note(traces: Traces, methods: Sequence[ChunkedMethod]) -> dict[str, Any]:
    """Which evidence a part has, by method, and whether any of its traces has an outcome, or what it has instead."""
    met = {method.method: sorted(method.present(traces)) for method in methods}
    outcome = has_outcomes(traces)
    return {"evidence": met, "outcome": outcome, "found": "" if outcome else found_instead(traces)}


def _refuse_missing(
    methods: Sequence[ChunkedMethod], notes: Sequence[dict[str, Any]], problems: Iterable[Problem]
) -> None:
    outcome = any(note["outcome"] for note in notes)
    instead = [spoilt_rows(problems), next((note["found"] for note in notes if note["found"]), "")]
    for method in methods:
        method.refuse_missing({name for note in notes for name in note["evidence"][method.method]}, outcome, instead)
