"""Whether failed traces have a cause more often than chance allows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from credit.reports.beyond_chance import beyond_chance
from credit.reports.cause_candidates import Candidate
from credit.reports.compared_kinds import ComparedKinds
from graphs.task_means import LEVEL, fact_of, holm

__all__ = ["CLOSE", "CauseTest", "more_failed", "p_across", "tested", "told_by_others"]

Test = tuple[float, float, float, float, float, int]
"""What `ComparedKinds.test` gives: the chance, its interval, p, the least p, and how many differ."""
CLOSE = 2 * LEVEL
"""The p below which a cause that is not beyond chance is undecided."""


def more_failed(kinds: ComparedKinds, has: np.ndarray, *, of_sides: bool = True) -> float:
    """By how many standard errors more of all failed traces have a cause than of all succeeded ones, of any task.

    Args:
      kinds: which traces failed.
      has: as of `ComparedKinds.counts`.
      of_sides: whether traces stand beside those of their side alone.

    Reference: Mantel and Haenszel 1959.
    """
    side = kinds.side * of_sides
    bad, good, bad_has, good_has, _ = kinds._replace(unit=side - side.min(initial=0)).counts(has)
    size = np.maximum(bad + good, 1)
    part, weight = (bad_has + good_has) / size, bad * good / size
    error = math.sqrt(float((weight * part * (1 - part)).sum()))
    more = float((bad_has - bad * part).sum())
    return more / error if error > 0 else 0.0


class CauseTest(NamedTuple):
    """What the test of a cause says.

    `sure`: the chance that a failed trace has it more often, 0 where it is not above 0.5 beyond chance. `close`: it is
    not, and above 0.5 by a p below `CLOSE`, were no other cause looked at. `odd`: over all tasks more failed traces
    have an agent, or lack it, beyond chance (`ComparedKinds.over_tasks`), as that p allows. `p`: corrected for all
    causes; NaN without a test, as in too few tasks. `best`: the least that it could be, whatever the outcomes; NaN
    likewise. `no_less`: the chance is 0.5 or more. `near`: 1 less the p by which
    it is undecided and named beside others, of who takes part a corrected one; 0 where it is not: of 120 logs with one
    cause 2 had another so. `across`: as of `LeadingCause`. `alone`: p were no other cause looked at.
    """

    sure: float = 0.0
    close: bool = False
    odd: bool = False
    p: float = math.nan
    no_less: bool = False
    near: float = 0.0
    across: str = ""
    alone: float = math.nan
    best: float = math.nan

    @property
    def looked(self) -> float:
        """By what p is corrected where it is sure, 1 elsewhere."""
        return max(self.p / max(self.alone, 1e-300), 1.0) if self.sure else 1.0

    def or_across(self, wider: CauseTest, of: str) -> CauseTest:
        """This test, or that of all traces of a task, of several systems and models or sides, where this one leaves it.

        Where this one misses narrowly it agrees; where it cannot tell, both were looked at, by which p is corrected.
        Of 1400 logs in which nothing that differs does harm 2.0 % had a cause, and 1.6 % without the second rule. Of
        200 whose versions fail in just the tasks in which a tool does, 6 % had, and 27 % across them alone.

        Args:
          wider: the other test.
          of: what that is across.
        """
        best = float(np.fmin(self.best, wider.best))
        if self.close and wider.sure:
            return wider._replace(across=f"{of}, just short of it within each", best=best)
        if self.no_less and math.isnan(self.p) and wider.sure and 2 * wider.p < LEVEL:
            return wider._replace(p=2 * wider.p, across=f"{of}, too few tasks to tell within each", best=best)
        undecided = self.no_less and wider.no_less and not self.sure and wider.p < CLOSE
        return self._replace(near=max(self.near, 1 - wider.p if undecided else 0.0), best=best)


def p_across(inside: float, across: float) -> float:
    """The p that decides as `CauseTest.or_across` does, of one fact, within systems and models or across them.

    Args:
      inside: of the test of traces of one system and model; NaN where it cannot tell.
      across: of that of all traces of a task.

    Examples:
      >>> p_across(0.4, 0.001), p_across(0.06, 0.001), p_across(float("nan"), 0.001)
      (0.4, 0.001, 0.002)
    """
    if math.isnan(inside):
        return min(2 * across, 1.0)
    return min(inside, across) if inside < CLOSE else inside


def tested(kinds: ComparedKinds, values: list[np.ndarray], every: list[Candidate]) -> list[CauseTest]:
    """The test of each cause.

    Agents are a family of tests, as in `outcome_differences`, and their models are another. Each family has its part of
    the level, and that of models falls to the others where all of these are told apart: an agent that is left out
    seldom is not lost among many tools, and a log of chance has a cause beyond it as seldom as with one family.
    Of 2905 logs in which an agent is left out by chance, or since the version or the task is such, or replaced, 1 % had
    who takes part as a cause. Where it is left out in hard tasks, 7 % had, and 28 % with one run of each task.
    """
    known = [value[np.isfinite(value)] for value in values]
    found = [CauseTest()] * len(values)
    vary = [i for i, of in enumerate(known) if len(of) and np.ptp(of) > 0]
    own = {i: test for i in vary if not kinds.relative and (test := every[i].test) is not None}
    for i, (chance, p, alone, _) in own.items():
        sure = chance > 0.5 and p < LEVEL
        found[i] = CauseTest(chance if sure else 0.0, chance > 0.5 and alone < CLOSE and not sure, p=p)
    by_family: dict[tuple[bool, bool], list[int]] = {}
    for i in (i for i in vary if i not in own):
        by_family.setdefault((bool(every[i].of_agent), every[i].test is not None), []).append(i)
    families = [*by_family.values()]
    parts = len(families) + any(not settled for *_, settled in own.values())
    facts = {i: fact_of(values[i]) for i in vary}
    for asked in families:
        lengths = {i: [length[kinds.rows] for length in every[i].lengths] or [None] for i in asked}
        like = kinds._replace(model=kinds.model * 0) if kinds.relative and every[asked[0]].test else kinds
        tests = {i: max((like.test(values[i], of) for of in lengths[i]), key=_least_sure) for i in asked}
        over = {i: kinds.over_tasks(values[i], beside[kinds.rows]) for i in asked
                if (beside := every[i].beside) is not None}  # fmt: skip
        if not kinds.within:
            tests |= {i: (tests[i][0], math.nan, math.nan, *one, tests[i][5]) for i, one in over.items()}
        alike, least = [facts[i] for i in asked], [tests[i][4] for i in asked]
        corrected = holm([tests[i][3] for i in asked], alike, least)
        bests = holm([tests[i][4] if tests[i][3] == tests[i][3] else math.nan for i in asked], alike, least)
        if kinds.within and every[asked[0]].of_agent:
            corrected = _of_agents([tests[i] for i in asked], [values[i] for i in asked])
        for i, p, best in zip(asked, corrected, bests, strict=True):
            chance, low, high, alone, *_ = tests[i]
            whole = min(p * parts, 1.0)  # NaN stays
            sure = chance > 0.5 and beyond_chance(whole, low, high, 0.5)
            close = chance > 0.5 and alone < CLOSE and not sure
            by = whole if every[i].of_team else alone
            near = 1 - by if close and by < CLOSE else 0.0
            found[i] = CauseTest(chance if sure else 0.0, close, p=whole, no_less=chance >= 0.5, near=near, alone=alone,
                                 best=best * parts)  # fmt: skip
        corrected = holm([p for p, _ in over.values()], [facts[i] for i in over], [least for _, least in over.values()])
        for i, p in zip(over, corrected, strict=True):
            untold = every[i].is_left_out and math.isnan(tests[i][3])
            near = bool(found[i].sure) or found[i].close or untold
            found[i] = found[i]._replace(odd=p * parts < LEVEL and near)
    return found


def _of_agents(tests: Sequence[Test], values: Sequence[np.ndarray]) -> list[float]:
    """Their p-values, corrected for each other.

    That an agent acts is a cause where more failed, and that it is left out is one where more failed. So each is one
    side of a test, and both are one test, as in `outcome_differences`, also where they are of other kinds of tasks:
    these counted as two.
    """
    sides = [p / 2 if chance > 0.5 else 1 - p / 2 for chance, _, _, p, *_ in tests]
    facts = [np.nan_to_num(value, nan=-1.0).tobytes() for value in values]
    corrected = holm(sides, facts, [least / 2 for *_, least, _ in tests])
    return [max(one, p) if one == one else one for one, (_, _, _, p, *_) in zip(corrected, tests, strict=True)]


def _least_sure(test: Test) -> tuple[bool, float]:
    """Orders tests of one cause: one that tells nothing is the least sure."""
    chance, _, _, p, *_ = test
    return chance <= 0.5 or math.isnan(p), p


def told_by_others(
    by: Sequence[ComparedKinds],
    every: list[Candidate],
    having: list[np.ndarray],
    values: list[np.ndarray],
    tests: list[CauseTest],
    trace: np.ndarray,
) -> Iterator[int]:
    """Of who takes part, what is neither sure, `near` nor `odd`, and what a sure cause before it may be why of: beside
    runs that are alike in that one it is not beyond chance. Who is called once a tool is down made nothing go wrong.

    Of 8 logs in which half the runs, at random, skip a reviewer, which does harm, and a call fails, 7 or more name it.
    4 did where the call told it if most runs with that skip the reviewer.

    Args:
      by: what the test of each compares.
      every: the candidates.
      having: the traces that have each.
      values: whether each compared trace has it.
      tests: of each.
      trace: of each event.
    """
    first = np.full((len(every), len(trace) + 1), len(trace))
    for at, one in zip(first, every, strict=True):
        np.minimum.at(at, trace[one.rows], one.rows)
    first = first[:, : len(having[0])] if every else first
    before = [(some, at) for some, at, one, test in zip(having, first, every, tests, strict=True)
              if test.sure and not one.of_team]  # fmt: skip
    if len(before) > 1:  # taken together, too
        before.append((np.any([some for some, _ in before], axis=0), np.min([at for _, at in before], axis=0)))
    for i, one in enumerate(every):
        if one.of_team:
            told = (
                2 * (some & having[i] & (at <= first[i])).sum() > (some & having[i]).sum()
                and not by[i].holds_beside(values[i], some[by[i].rows], tests[i].looked)
                for some, at in before
            )
            if not (tests[i].sure or tests[i].near or tests[i].odd) or any(told):
                yield i
            elif tests[i].sure:
                before.append((having[i], first[i]))
