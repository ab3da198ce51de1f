"""Laws that every method obeys, and `check`, which tests a method by them.

    def own(graph, reward, *, event_reward=None): ...
    print(credit.check(own, scope="group"))

Each law is a function in `LAWS`; it returns "" where the law holds and the counter-example where it does not. They run
the method on the batches of `credit.laws.trial_batches`. `docs/laws.md` says why each of them is one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from credit.laws import arrays, meaning
from credit.laws.report import LawError, LawReport, LawResult
from credit.laws.subject import Subject
from credit.laws.trial_batches import LEAST, MOST, Needs
from credit.methods.method_row import Method, Scope
from estimators.base import Credit
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.text import excerpt
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["LAWS", "LawError", "LawReport", "LawResult", "Subject", "check"]


@checked_kinds()
def check(
    fn: Callable[..., Credit] | Method,
    *,
    needs: Sequence[str] | Mapping[str, Literal["event", "trace"]] = (),
    scope: Scope = "group",
    unbiased: bool = False,
    skip: Sequence[str] = (),
    seed: int = 0,
    group_size: int | None = None,
    strict: bool = True,
    after_law: Callable[[LawResult], None] | None = None,
) -> LawReport:
    """Test a method by the laws.

    Args:
      fn: `fn(graph, reward, *, event_reward=None, **evidence) -> Credit`, with `functools.partial` for other options;
        or an entry of `METHODS`, which brings its own `needs`, `scope` and `unbiased`. `event_reward` may be missing.
      needs: names of evidence in `graphs.traces.schema` that `fn` is given; or a mapping from any name to "event" or
        "trace", for evidence of your own (floats in (0, 1), NaN where absent).
      scope: whose rewards can change a trace's numbers: "trace" its own only, "group", "batch", or "sequence" (those of
        earlier traces).
      unbiased: whether `fn` is to have no bias, so that no reward or evidence which follows an action may move its
        baseline. Later actions may not either, which no law tries: `credit bench bias` finds it.
      skip: names in `LAWS` that are left out.
      seed: seed of the batches.
      group_size: traces of a group, from 4 to 15. None: 4, or the least that is not TOO_FEW for `fn`; the report says
        which. `equal_rewards` tries groups of 3 to 9, too.
      strict: raise where a law is broken, or untried as `fn` answered nothing; otherwise the report has both.
      after_law: called with each result, such as to show how far it is.

    Returns:
      `LawReport`, one result for each law that was tried.

    Raises:
      LawError: names the first broken law and gives the counter-example; or the first untried one.
      CreditError: `scope`, `skip` or `needs` name nothing known, `seed` is negative, or `group_size` not from 4 to 15.

    Examples:
      >>> import credit
      >>> from credit.laws import LAWS
      >>> print(credit.check(credit.rloo, skip=[name for name in LAWS if name not in ("finite", "equal_rewards")]))
      laws of rloo
      finite         holds
      equal_rewards  holds
      bias: no law measures it; `unbiased=True` tries later rewards and evidence alone; `credit bench bias` computes it
    """
    method, shaped, nonnegative = fn, False, False
    if isinstance(method, Method):
        fn, needs, scope, shaped = method.fn, method.needs, method.scope, method.shaped
        nonnegative, unbiased = method.nonnegative, method.unbiased
    if seed < 0:
        raise CreditError(f"seed is {seed}; expected 0 or more")
    if group_size is not None and not LEAST <= group_size <= MOST:
        raise CreditError(f"group_size is {group_size}; expected {LEAST} to {MOST}")
    if scope not in get_args(Scope):
        raise CreditError(f"scope is {scope!r}; expected one of {', '.join(get_args(Scope))}")
    for name in skip:
        if name not in LAWS:
            raise CreditError(f"skip has {name!r}; expected names among {', '.join(LAWS)}")
    inner = fn.func if isinstance(fn, functools.partial) else fn
    is_own = method is fn and not (getattr(inner, "__module__", None) or "").startswith("estimators.")
    subject = Subject(fn, _levels(needs), scope, seed, shaped=shaped, nonnegative=nonnegative, is_own=is_own,
                      unbiased=unbiased, group_size=group_size or LEAST)  # fmt: skip
    while group_size is None and subject.try_law("", lambda s: "enlarged" if s.enlarge() else "").detail == "enlarged":
        pass
    results: list[LawResult] = []
    for name, law in LAWS.items():
        if name in skip:
            continue
        if results and results[0].passed is False and results[0].law == "jit":
            result = LawResult(name, None, "not tried: the method cannot be compiled", untried=True)
        else:
            result = subject.try_law(name, law)
        if result.passed is False and any(r.passed is False for r in results if r.law == "padding_changes_nothing"):
            result = dataclasses.replace(result, detail=f"{result.detail} (or of padding: see padding_changes_nothing)")
        results.append(result)
        if after_law is not None:
            after_law(result)
    name = getattr(inner, "__name__", excerpt(fn))
    report = LawReport(name, tuple(results), subject.group_size, subject.centre == "untried")
    if strict and not report.passed:
        raise LawError(report)
    return report


def _levels(needs: Sequence[str] | Mapping[str, Literal["event", "trace"]]) -> Needs:
    if isinstance(needs, Mapping):
        return dict(needs)
    levels: dict[str, Literal["event", "trace"]] = {}
    for name in needs:
        if name not in EVENT_EVIDENCE and name not in TRACE_EVIDENCE:
            known = ", ".join([*EVENT_EVIDENCE, *TRACE_EVIDENCE])
            raise CreditError(f"needs has {name!r}; expected names among {known}, or a mapping to 'event' or 'trace'")
        levels[name] = "event" if name in EVENT_EVIDENCE else "trace"
    return levels


LAWS: dict[str, Callable[[Subject], str]] = {
    law.__name__: law
    for law in (
        arrays.jit,
        arrays.padding_is_zero,
        arrays.padding_changes_nothing,
        arrays.poison,
        meaning.order,
        meaning.missing_reward,
        meaning.independence,
        meaning.tight_scope,
        meaning.response,
        meaning.declared,
        meaning.stated_error,
        meaning.regular_is_valid,
        arrays.finite,
        arrays.gradients,
        meaning.equal_rewards,
        meaning.bounded,
        arrays.vmap,
        meaning.no_event_reward,
        meaning.replays,
        meaning.unit,
        meaning.absent_evidence,
        arrays.dtypes,
    )
}
"""Every law by name, in the order in which they are tried: the type of a constant, which harms least, is the last."""
