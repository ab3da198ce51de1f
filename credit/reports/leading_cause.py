"""A cause of what went wrong, and the sentences that tell it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Sequence
from typing import Self

from credit.reports.cause_evidence import CauseEvidence
from credit.reports.missing_lines import FEW
from credit.reports.mostly_of import MostlyOf
from graphs.text import begin_of, counted, printable

__all__ = ["NAME", "LeadingCause", "LeadingCauses", "OneSide", "told_causes"]

NAME, SAID = 40, 100
"""Length of a name in a sentence, and of what a failed call said there."""


@dataclasses.dataclass(frozen=True)
class OneSide:
    """The side that alone has something, which may be as well what else is new there.

    Attributes:
      head: what the side is called.
      with_it, without: how many of its traces with it, and of its others, succeeded, and of how many.
    """

    head: str
    with_it: tuple[int, int]
    without: tuple[int, int]

    def told(self, good: str) -> str:
        """These counts, in words.

        Args:
          good: what succeeded traces are called.
        """
        (won, some), (others, rest) = self.with_it, self.without
        did = "did better" if good == "better" else good
        having = f"{won} of {counted(some, 'run')} with it {did}"
        having = f"all in {self.head}, where {having} and {others} of {rest} without it" if rest else (
            f"in all runs of {self.head}, where {having}, and in no other"
        )  # fmt: skip
        return f"{having}: it cannot be told from the side"


@dataclasses.dataclass(frozen=True)
class LeadingCause:
    """Something that went wrong in traces.

    Attributes:
      words: what it is: errors of a tool by an agent, unrecovered, or of one call 3 times or more in a row,
        its empty results, its loops of other calls, or an agent's of any of its tools, a loop of messages, its cut
        answers, how runs end, who takes part, or an agent's model.
      agent, tool: whose; "" of an end of the run, and the agent of a tool that fails for several. Of who takes part,
        that of the event to look at, "" where these are of several.
      trace, event: one to look at, the first of a failed trace.
      text: the beginning of what that event says; "" where the log has nothing.
      failed, succeeded: how many failed, and succeeded, traces have it; None where these are not of both kinds. With
        `where_varied`, these counts and others are of the traces of such tasks.
      of_failed, of_succeeded: of how many whose log tells.
      traces: how many traces have it; where one kind is known alone, of those that are not known to have succeeded.
      of_traces: of how many whose log tells.
      others: whether others are known to have succeeded, and none to have failed.
      kinds: what failed and succeeded traces are called.
      passed_over: in how many of all that have it only other calls of the tool by the agent succeeded later.
      beyond_chance: whether failed traces have it more often beyond chance; None where these are not of both kinds.
      p: of the test that says so, corrected for all causes, which come in its order; None without one.
      close: whether it narrowly misses that, by the corrected p, too.
      wider: whether `--group-by task`, which compares traces of several models and systems, too, decides what is not
        decided here.
      across: what it is beyond chance across, and how traces within compare, where it is so only as `--group-by task`
        compares, across sides (`CauseTest.or_across`), or of all tasks (`CauseTest.odd`); "" elsewhere.
      evidence: what traces of one task, and tasks, say of it; None where these are not of both kinds.
      of_sides: how many traces of each side have it, where sides are compared; empty elsewhere.
      more_often: the system, or the model, of which more than twice as large a part has it as of others; "" of none.
      of_team: whether it is who takes part, which may follow from what went wrong before.
      where_varied: as of `UnitCounts`, of who takes part that is beyond chance within tasks; None elsewhere.
      of_kind: the kind of these tasks, where all are of one of several, or the one in which it holds alone or mostly
        (`of_one_kind`); "" elsewhere. Counts are of this kind.
      mostly_of: else, the kind of most traces that have it, beyond chance (`mostly_of`); None without one.
      sides: what `--sides` takes to compare the runs of two models of an agent, where it is one of these; "" elsewhere.
      one_side: the side that alone has it, of what failed traces have more often where sides are not told apart, and is
        not beyond chance within that side; None elsewhere.
      in_time: that a model's runs began mostly later than others, or earlier, in words; "" where they did not.
      late: that it is what is done last in its runs, or may follow from what went wrong, in words; "" of others.
      lacking, untold: how many more lack lines, or have a log that does not tell for another reason, though its agents
        act there. Few that lack lines are told of the whole log alone (`few_lacking`).
    """

    words: str
    agent: str
    tool: str
    trace: str
    event: str
    text: str
    failed: int | None
    succeeded: int | None
    of_failed: int
    of_succeeded: int
    traces: int
    of_traces: int
    others: bool
    kinds: tuple[str, str] = ("failed", "succeeded")
    passed_over: int = 0
    lacking: int = 0
    untold: int = 0
    beyond_chance: bool | None = None
    p: float | None = None
    close: bool = False
    wider: bool = False
    across: str = ""
    evidence: CauseEvidence | None = None
    of_sides: tuple[int, ...] = ()
    more_often: str = ""
    of_team: bool = False
    where_varied: tuple[int, int, int, int, int] | None = None
    of_kind: str = ""
    mostly_of: MostlyOf | None = None
    sides: str = ""
    one_side: OneSide | None = None
    in_time: str = ""
    late: str = ""

    def told(self) -> str:
        """The cause with its counts, and what one of its events says."""
        said = f" (such as: {begin_of(self.text, SAID)})" if self.text else ""
        many = self.lacking > FEW * self.of_traces
        more = (f"{self.lacking} more lack{'s' * (self.lacking == 1)} lines" if many else "",
                f"of {self.untold} more the log does not tell" if self.untold else "")  # fmt: skip
        beside = f" ({', '.join(filter(None, more))})" if any(more) else ""
        mostly = f", {self.mostly_of.told()}" if self.mostly_of else ""
        having = self.traces if self.failed is None else self.failed + (self.succeeded or 0)
        of_these = "all of these" if self.passed_over == having else f"{self.passed_over} of these {having}"
        then = f"; in {of_these} the tool worked later, for other calls" if self.passed_over else ""
        late = f"; {self.late}" if self.late else ""
        if self.failed is None:
            but = " without an outcome" if self.others else ""
            those = f"{self.traces} of {counted(self.of_traces, 'trace')}{but}"
            return f"{self.words}{said} in {those}{then}{late}{mostly}{beside}"
        bad, good = self.kinds
        chance = ""
        if self.evidence is not None:
            side = " of one side" if self.of_sides else ""
            among_alike = self.evidence.within and self.evidence.noun != "task"  # runs of one system and model
            there = [f"another trait of {self.more_often}"] if self.more_often and not among_alike else []
            there = ["what went wrong before"] if self.of_team else there
            sure = bool(self.beyond_chance)
            chance = self.evidence.told(
                self.kinds, sure=sure, close=self.close, wider=self.wider, side=side, there=there,
                by_kind=bool(self.of_kind or self.mostly_of),
            )  # fmt: skip
            chance = f"beyond chance across {self.across}" if self.across else chance
            before = "what went wrong before may be why" * (self.of_team and sure and self.evidence.within)
            chance = "; ".join(filter(None, (chance, before)))
            option = f"`--sides {shlex.quote(self.sides)}` compares them" if self.sides else ""
            chance = f" ({'; '.join(filter(None, (chance, self.late, self.in_time, option)))})"
        if self.one_side is not None:
            chance = f" ({self.one_side.told(good)})"
        of_kind = f" of kind {printable(self.of_kind, NAME)}" if self.of_kind else ""
        if self.where_varied is not None:  # over all tasks both kinds may have an agent that is wrong in some
            won, some, rest, others, tasks = self.where_varied
            did = "did better" if good == "better" else good
            noun = "task" if self.evidence is None else self.evidence.noun
            within = f"within {counted(tasks, noun)}{of_kind} with such runs and others, "
            within *= not of_kind or noun == "task"  # the words name the kind
            told = f"{within}{won} of {some} such runs {did} and {rest} of {others} others"
            return f"{self.words}{said}: {told}{chance}{mostly}{beside}"
        return (
            f"{self.words}{said} in {self.failed} of {self.of_failed} {bad} traces{of_kind} and "
            f"{self.succeeded} of {self.of_succeeded} {good} ones{chance}{then}{mostly}{beside}"
        )


class LeadingCauses(tuple[LeadingCause, ...]):
    """Causes, the first named first.

    Attributes:
      looked_at: how many errors, loops and ends were looked at, of failed and succeeded traces; 0 elsewhere.
      tellable: how many of these could have been beyond chance, whatever the outcomes.
    """

    looked_at: int
    tellable: int

    def __new__(cls, causes: Iterable[LeadingCause], looked_at: int, tellable: int) -> Self:
        """Causes with how many were looked at.

        Args:
          causes: these.
          looked_at, tellable: as of the attributes.
        """
        made = super().__new__(cls, causes)
        made.looked_at, made.tellable = looked_at, tellable
        return made


def told_causes(causes: Sequence[LeadingCause]) -> list[str]:
    """A sentence on each cause, with the event to look at, which it quotes."""
    told = (
        f"{one.told()}, {'quoted is' if one.text else 'such as'} event {one.event} of trace {one.trace}."
        for one in causes
    )
    return [f"{one[0].upper()}{one[1:]}" for one in told]
