"""What logs say in at most six lines: with these a page and `credit summary` begin."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from credit.doctor.ranked_verdicts import RankedVerdict
from credit.doctor.verdict_errors import VerdictErrors
from credit.methods.absent_outcomes import by_people, channels_instead, channels_of_rest
from credit.reports.leading_cause import LeadingCause
from credit.reports.missing_lines import lacking_traces
from credit.reports.outcome_differences import OutcomeDifferences
from credit.reports.trace_list import has_statuses
from credit.reports.triage import TOKENS, Triage
from credit.reports.verdict_channels import left_out, of_one_source, outcome_name, own_channel, people_channels
from credit.sides.other_outcomes import chosen_outcome, other_outcomes
from credit.sides.side_comparison import SideComparison
from graphs.text import begin_of, counted, printable
from graphs.traces.batch import Traces

__all__ = ["LOOK_FIRST", "MOST", "MainFinding", "main_findings"]

MOST = 6
"""Findings."""
LOOK_FIRST = "Look first"
"""The name of the event that a table of events begins with."""
MOST_VERDICTS = 3
"""Verdicts of several that are named."""
AGENT, TEXT = 40, 100
"""Length of a name, and of a text, of an event to look at first."""


@dataclasses.dataclass(frozen=True)
class MainFinding:
    """One line.

    Attributes:
      name: the question that it answers, such as "What failed".
      lines: the answer, a fact each.
      trace, event: to look at; "" without one. A trace alone is one whole.
      more: what stands behind the answer, told below the head.
    """

    name: str
    lines: tuple[str, ...]
    trace: str = ""
    event: str = ""
    more: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The answer and what stands behind it, in one line."""
        return " ".join([*self.lines, *self.more])

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        return dataclasses.asdict(self) | {"told": self.told}


def main_findings(
    traces: Traces,
    *,
    differing: OutcomeDifferences,
    of_kinds: Sequence[str],
    selected: Sequence[str],
    corrected: Sequence[str],
    causes: Sequence[LeadingCause],
    triaged: Triage,
    verdicts: Sequence[VerdictErrors],
    ranked: Sequence[RankedVerdict],
    by_system: str,
    lost: Sequence[str],
    dearest: tuple[Sequence[str], Sequence[str]],
    compared: SideComparison | None,
) -> list[MainFinding]:
    """What failed, of which traces that is known, what changed, what went wrong most, what a verdict is worth, what was
    lost, where time goes, where to look first.

    Of more than `MOST` these give way, the first named first: where to look first, a third cause, where time goes, what
    was lost, what a verdict is worth, a second cause. Of failed and succeeded traces a cause stands here if it is
    beyond chance, or of one side alone; without any, one line says so. Where one of these kinds is unknown, errors of a
    tool come first that rose beyond chance from one side to the other: others may be a step of the work.

    Args:
      traces: what was read.
      differing: `outcome_differences` of these.
      of_kinds: `failed_by_kind` of these.
      selected: `selected_outcomes` of these.
      corrected: `corrected_failures` of these.
      causes: `leading_causes` of these.
      triaged: `triage` of these, with these causes.
      verdicts: `verdict_errors` of these.
      ranked: `ranked_verdicts` of these.
      by_system: `verdicts_by_system` of these.
      lost: what failed traces, repeated calls and idle agents cost, in sentences.
      dearest: `dearest_agent` of these.
      compared: two sides of these; None where none are chosen and the log does not state two systems.
    """
    change = [] if compared is None else compared.in_short()
    changed = by_system or ("" if compared is None else compared.by_verdict(certain=True))
    others = other_outcomes(traces, None if compared is None else compared.sides, changed)
    n = int(np.isfinite(traces.reward[: traces.sizes.traces]).sum())
    compared_ones = int(np.isfinite(of_one_source(traces).reward[: traces.sizes.traces]).sum())
    differing = dataclasses.replace(differing, without=differing.without - (n - compared_ones))
    failed, behind = _failed(traces, differing, triaged, compared, corrected, of_kinds, changed)
    named = f"What failed, by {printable(traces.outcome, AGENT)}" if traces.outcome else "What failed"
    given = traces.by_people.get(own_channel(traces), 0)
    whose = left_out(traces) or by_people(n, given) * (given < n)
    named += f" ({whose})" * bool(whose)
    found = [(0, _finding(named, failed, more=[*behind, others]))]
    if selected:
        found.append((0, _finding("Traces with an outcome", selected)))
    if compared is not None and change:
        where = (_sentence(more) for more in (compared.by_team(), compared.in_time) if more)
        found.append((1, _finding(f"What changed {compared.sides.change}", [*change, *where])))
    if triaged.unsure:
        most, *behind = triaged.look_first()
        found.append((2, _finding("What went wrong most", [most], more=behind)))
    causes = [one for one in causes if one.beyond_chance is not False or one.one_side]  # others are told below
    failing = () if compared is None else compared.failing
    rose = {one.tool for one in failing if one.share.stands_out and one.share.rises}
    causes.sort(key=lambda one: one.beyond_chance is not None or one.tool not in rose)
    rising = sum(one.beyond_chance is None and one.tool in rose for one in causes)
    for place, one in enumerate(causes):
        told = [_sentence(one.told()), "" if one.one_side else _by_side(one.of_sides, triaged, compared)]
        name = "What else went wrong" if place > rising else "What went wrong most"
        if one.one_side:
            name = "Only on one side"
        elif compared and place < rising:
            name = f"What went wrong more in {compared.sides.heads[1]}"
        gives_way = (2, 2, 4) if one.beyond_chance else (2, 5, 7)
        found.append((gives_way[min(place, 2)], _finding(name, told, one.trace, one.event)))
    swap, run = differing.swap
    if swap and not any(one.beyond_chance for one in causes):  # which may be why
        found.append((2, _finding("What may have gone wrong", [_sentence(swap)], run)))
    both = [one for one in verdicts if not one.good.all() and one.good.any()]
    people = people_channels(traces)
    both.sort(key=lambda one: (one.found is not True, one.name in people))  # the outcome before others
    of = next(iter(both), None)
    little = [one for one in ranked if one.worth_telling or not both][:1]
    name, against = next(((one.name, one.against) for some in (both, little) for one in some), ("", ""))
    outcome = against or chosen_outcome(traces) or "the outcome" * (name in people)
    sure = not outcome or outcome in {*people, against, "the outcome"}
    worth = [f"{one.in_short(sure)}." for one in little]
    if of is not None:
        worth = [*(_several(both, traces, sure) if len(both) > 1 else [of.in_short(outcome, sure)]), *worth]
    if worth:
        worth += [_sentence(changed)] if changed else []
        first, second = (f"{printable(of, 60)}{' (by people)' * (of in people)}" for of in (name, outcome))
        agrees = "verdicts agree" if len(both) > 1 else f"{first} agrees"
        of_which = "verdicts are" if len(both) > 1 else "a verdict is"
        head = f"How {agrees} with {second}" if outcome else f"What {of_which} worth"
        found.append((3, _finding(head, worth[:1], more=worth[1:])))
    told, behind = ([_sentence(one) for one in some if one] for some in ([*dearest[0], *lost], dearest[1]))
    if told:
        found.append((4, _finding("What it costs" if dearest[0] else "What was lost", told, more=behind)))
    if triaged.slowest:
        found.append((4, _finding("Where time goes", [_sentence(triaged.slowest)])))
    if look := _look_first(causes, triaged, compared):
        found.append((6, look))
    kept = sorted(sorted(range(len(found)), key=lambda i: found[i][0])[:MOST])
    return [found[i][1] for i in kept]


def _finding(
    name: str, lines: Iterable[str], trace: str = "", event: str = "", more: Iterable[str] = ()
) -> MainFinding:
    return MainFinding(name, tuple(filter(None, lines)), trace, event, tuple(filter(None, more)))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith(('.', '…')) else '.'}"


def _several(verdicts: Sequence[VerdictErrors], traces: Traces, sure: bool) -> list[str]:
    """Verdicts, the first of which says least, in a clause each; and that one held against the outcome."""
    told = [one.among_others(place == 0, sure) for place, one in enumerate(verdicts[:MOST_VERDICTS])]
    told[0] += "; full agreement has 100, a coin 0"
    told += [f"{len(verdicts) - MOST_VERDICTS} more in --json"] * (len(verdicts) > MOST_VERDICTS)
    if (beside := next((one.by_outcome for one in verdicts if one.by_outcome), None)) is not None:
        by = printable(outcome_name(traces), AGENT)
        told.append(f"Held against {by}, on {counted(len(beside.rows), 'trace')}: {beside.among_others(True, False)}")
    return [f"{one}." for one in told]


def _by_side(having: Sequence[int], triaged: Triage, compared: SideComparison | None) -> str:
    """In how many traces of each side something is, where sides were chosen."""
    if compared is None or not triaged.sides or not having:
        return ""
    sides = zip(compared.sides.heads, having, triaged.sides, strict=True)
    return _sentence(", ".join(f"in {head} {some} of {of} traces" for head, some, of in sides) + " (not tested)")


def _failed(
    traces: Traces,
    differing: OutcomeDifferences,
    triaged: Triage,
    compared: SideComparison | None,
    corrected: Sequence[str],
    of_kinds: Sequence[str],
    changed: str,
) -> tuple[list[str], list[str]]:
    """How many traces failed, or what went wrong in them; and of each side and kind of task.

    Beside a corrected rate, sides and kinds say whose counts they are. Where outcomes were refused no rate is told.
    """
    if corrected:  # one rate has an interval
        differing = dataclasses.replace(differing, rate=(math.nan, math.nan))
    opening, n = differing.known(), traces.sizes.traces
    without = int(np.isnan(np.asarray(traces.reward, np.float64)[:n]).sum())
    if without == n:
        unknown = "No trace has an outcome: which failed is not known."
        others = [_sentence(instead)] if (instead := channels_instead(traces)) else []
        return [_went_wrong(traces, triaged), *opening, unknown, *others], []
    if differing.refused:
        return [*opening, *[_went_wrong(traces, triaged)] * (not np.isnan(differing.equal))], []
    sides = f"{sides}." if compared is not None and (sides := compared.failed()) else ""
    if corrected:
        judge = chosen_outcome(traces) or printable(traces.outcome or "the outcome", AGENT)
        judge = f"By {judge}{', which changed' * (f' {judge} ' in changed)}"
        sides, of_kinds = f"{judge}: {sides}" * bool(sides), [f"{judge}, {one[0].lower()}{one[1:]}" for one in of_kinds]
    if rest := channels_of_rest(traces):
        opening.append(_sentence(rest))
    told = [*opening, *corrected[:2], *of_kinds[1:]]
    if without and not np.isnan(differing.equal):
        told += [f"{without} of {counted(n, 'trace')} have no outcome.", _went_wrong(traces, triaged)]
    return told, [*corrected[2:], sides, *of_kinds[:1]]


def _went_wrong(traces: Traces, triaged: Triage) -> str:
    """How many errors, retries and loops there are, as far as the log tells."""
    lost, told = bool(lacking_traces(traces).any()), []
    for name, noun in (("errors", "error"), ("retries", "retry"), ("loops", "loop")):
        known = [count for row in triaged.agents if (count := getattr(row, name)) is not None]
        lacks = not has_statuses(traces).all() if name == "errors" else len(known) < len(triaged.agents)
        if not known:
            told += ["errors are not logged"] * (name == "errors")
        elif sum(known) == 0 and (lost or lacks):
            told.append(f"no {noun} in the part that was logged")
        else:
            least, count = "at least " * (lost or lacks), triaged.loops if name == "loops" else sum(known)
            told.append(f"{least}{count:,} {noun if count == 1 else name}")
    return _sentence(", ".join(told))


def _look_first(causes: Sequence[LeadingCause], triaged: Triage, compared: SideComparison | None) -> MainFinding | None:
    """How traces end early, and the first of the events to look at, where it is not that of the first cause; where no
    cause is beyond chance, the trace of a number that is, or, without counts, of traces too few for a test."""
    told, worst = triaged.look_first(), next(iter(triaged.suspects), None)
    if triaged.unsure:
        told = []  # which stands above
        if worst is None or (worst.position is not None and not triaged.too_few):
            return None
    if (
        triaged.quiet.endswith(TOKENS)
        or worst is None
        or (causes and (worst.trace, worst.event) == (causes[0].trace, causes[0].event))
    ):
        return _finding(LOOK_FIRST, told) if told else None
    text, _, asked = worst.text.partition(" ← ")
    whose = f"{printable(worst.agent, AGENT)}, " if worst.agent else ""
    quoted = " ← ".join(filter(None, (begin_of(text, TEXT), printable(asked, AGENT))))
    told.append(f"{whose}{worst.why if whose else _sentence(worst.why)[:-1]}{f' ({quoted})' if quoted else ''}.")
    if worst.traces > 1 and triaged.unsure:
        told.append(f"It happened in {worst.traces} traces.")
    elif worst.traces > 1:
        of = (worst.of_failed or triaged.failed, worst.of_succeeded or triaged.succeeded)
        kinds = zip(triaged.kinds, (worst.failed, worst.succeeded), of, strict=True)
        parts = " and ".join(f"{some} of {of} {kind}" for kind, some, of in kinds)
        parts = f": {parts} ones" if worst.failed or worst.succeeded else ""
        told.append(f"It happened in {worst.traces} traces{parts}.")
    told.append(_by_side(worst.of_sides, triaged, compared))
    return _finding(LOOK_FIRST, told, worst.trace, worst.event)
