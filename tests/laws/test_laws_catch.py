"""Every law is broken by some method that deserves it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import credit
from credit.laws import LAWS, LawError, Subject, check
from estimators.base import Credit
from graphs.traces.schema import TRACE_EVIDENCE

from . import flawed_methods as flawed

FLAWED: list[tuple[str, Callable[..., Credit], str]] = [
    ("jit", flawed.concretises, "Abstract tracer"),
    ("jit", flawed.differs_when_compiled, "credit of event"),
    ("padding_is_zero", flawed.fills_padding, "is 7.0; expected 0.0"),
    ("padding_changes_nothing", flawed.divides_by_padded_length, "scale of event"),
    ("padding_changes_nothing", flawed.takes_padding_for_a_group, "as without padding: `graph.trace_mask` and"),
    ("poison", flawed.takes_padding_for_a_group, "as with zeros in the padding: `graph.trace_mask` and"),
    ("poison", flawed.forgets_the_mask, "of event"),
    ("order", flawed.counts_from_the_first, "after renumbering"),
    ("missing_reward", flawed.takes_missing_for_zero, "trace without an outcome is valid"),
    ("independence", flawed.looks_at_the_batch, "another group"),
    ("tight_scope", flawed.looks_at_itself_only, "scope 'group' is too wide"),
    ("response", flawed.ignores_reward, "no reward of group 0"),
    ("declared", flawed.denies_its_own_outcome, "since own_outcome is False"),
    ("declared", flawed.denies_it_but_for_the_last, "since outcome_mask is False"),
    ("declared", flawed.calls_returns_centred, "since centred is True"),
    ("declared", flawed.of_others("task", "trace", centred=True), "on average over independent outcomes"),
    ("declared", flawed.turns_the_sign, "since its estimand is 'total'"),
    ("stated_error", flawed.states_its_error(10), "where the true error of its baseline is 0.421, over 64"),
    ("stated_error", flawed.states_its_error(0.1), "expected no less than 1/8 and no more than 8 times that"),
    ("regular_is_valid", flawed.refuses_agents, "is not valid, with reason NO_EVIDENCE"),
    ("finite", flawed.divides_by_zero, "scale of event"),
    ("gradients", flawed.has_infinite_slopes, "the gradient to the event reward"),
    ("dtypes", flawed.has_double_constants, "expected float32: make constants of an array's dtype"),
    ("dtypes", flawed.computes_in_bfloat16, "in bfloat16, against float32: estimators.base.check_reward"),
    ("equal_rewards", flawed.rounds_at_ties, "where every reward is"),
    ("bounded", flawed.divides_marks_by_the_spread_of_outcomes, "where rewards of a group differ by"),
    ("bounded", flawed.divides_by_the_spread_of_others, "at most, but for one that is 0.5 further,"),
    ("vmap", flawed.keeps_the_last_axis, "(mapped)"),
    ("no_event_reward", flawed.dislikes_no_event_reward, "credit of event"),
    ("no_event_reward", flawed.forgets_event_rewards, "read it, or leave the parameter out"),
    ("replays", flawed.counts_each_replay, "compare none with those of its own m.clusters.pair"),
    ("replays", flawed.is_compared_with_its_replays, "as with another outcome of its replay"),
    ("unit", flawed.splits_units, "another event of its trace"),
    ("unit", flawed.names_no_unit, "unit is 'team'"),
    *(
        ("unit", flawed.of_others(f"task,{key}", unit), f"another event of its {unit}")
        for key, unit in itertools.combinations(("turn", "agent", "role", "trace"), 2)
    ),
]


def test_every_law_is_broken_by_some_method() -> None:
    assert {law for law, _, _ in FLAWED} | {"absent_evidence"} == set(LAWS)


def test_a_fault_that_trains_wrongly_is_named_before_the_dtype_of_a_constant() -> None:
    def of_two_faults(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        return flawed.has_double_constants(graph, reward)

    with pytest.raises(LawError, match="breaks the law 'no_event_reward'") as caught:
        check(of_two_faults, skip=[law for law in LAWS if law not in ("dtypes", "no_event_reward")])
    assert [result.law for result in caught.value.report.broken] == ["no_event_reward", "dtypes"]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("name", ["gae", "coma", "remax"])
def test_law_catches_a_method_fed_with_zeros_for_absent_evidence(name: str) -> None:
    method = credit.METHODS[name]

    def fed_with_zeros(graph: Any, reward: Any, *, event_reward: Any = None, **evidence: Any) -> Credit:
        zeros = {key: jnp.where(v >= 0, v, jnp.zeros_like(v)) for key, v in evidence.items()}
        return method.fn(graph, reward, event_reward=event_reward, **zeros)

    fed = dataclasses.replace(method, fn=fed_with_zeros)
    report = check(fed, skip=[law for law in LAWS if law != "absent_evidence"], strict=False)
    assert [result.law for result in report.broken] == ["absent_evidence"]
    assert "counts as 0 where it is absent" in report.broken[0].detail


BIASED: list[tuple[Callable[..., Credit], str, str]] = [
    (flawed.expects_its_own_marks, "baseline", "the event reward of event 0 of its trace changed"),
    (flawed.is_among_the_rows_of_its_role, "baseline", "the event reward of event 2 of its trace changed"),
    (flawed.good, "baseline", "the outcome of its trace changed"),
    (flawed.divides_by_its_own_return, "scale", "the outcome of its trace changed"),
    (flawed.refuses_the_worst, "valid", "the outcome of its trace changed"),
    (flawed.omits_later_marks, "credit", "the event reward of event 1 of its trace rose by as much"),
    (flawed.expects_what_comes, "baseline", "'value' of event 2, a later one of its trace, changed"),
]
"""Methods that are not unbiased, and which of their numbers what follows an action moves, though it must not."""


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(("method", "name", "words"), BIASED, ids=[method.__name__ for method, _, _ in BIASED])
def test_who_moves_with_what_follows_an_action_is_not_unbiased(
    method: Callable[..., Credit], name: str, words: str
) -> None:
    """Only the outcome moved: `bench bias` saw a bias of 0.45 where a trace's own event rewards made its baseline."""
    others = [law for law in LAWS if law != "declared"]
    needs = ("value",) if method is flawed.expects_what_comes else ()
    with pytest.raises(LawError, match=rf"{name} of event .* before {words}, since unbiased is True"):
        check(method, needs=needs, unbiased=True, skip=others)
    assert check(method, needs=needs, skip=others, strict=False).results[0].passed is not False


def test_a_report_says_which_bias_no_law_tries() -> None:
    """Nothing later was to move a baseline: the median of traces of equal length passed, with a bias of 0.54."""
    others = [law for law in LAWS if law != "declared"]
    report = check(flawed.is_among_traces_of_its_length, unbiased=True, skip=others)
    assert "tries later rewards and evidence alone; `credit bench bias` computes it" in str(report)


def test_a_report_says_of_a_centre_that_its_mean_was_not_tried() -> None:
    """`centred=True` passed without a word where evidence makes the amounts."""
    others, words = [law for law in LAWS if law != "declared"], "but not that the mean under the policy is 0"
    assert words in str(check(credit.METHODS["coma"], skip=others))
    assert words not in str(check(credit.METHODS["rloo"], skip=others))


def test_laws_that_were_not_tried_for_one_reason_are_one_line() -> None:
    """A method that did not compile had 21 of them."""
    report = check(flawed.concretises, strict=False)
    lines = str(report).splitlines()
    assert lines[2].split("  ")[0] == f"{len(LAWS) - 1} laws" and lines[2].endswith(
        "not tried: the method cannot be compiled"
    )
    assert len(lines) == 3 + len(report.unmeasured) and len(report.results) == len(LAWS)


def test_laws_that_break_for_padding_point_to_the_law_that_names_it() -> None:
    """Numbers that move after renumbering were all that was said of a method that forgot `trace_mask`."""
    skip = [law for law in LAWS if law not in ("padding_changes_nothing", "order")]
    first, second = check(flawed.takes_padding_for_a_group, skip=skip, strict=False).results
    assert first.passed is second.passed is False and "`graph.trace_mask`" in first.detail
    assert second.detail.endswith("(after renumbering) (or of padding: see padding_changes_nothing)")


@pytest.mark.slow
def test_the_sound_method_breaks_no_law() -> None:
    report = check(flawed.good)
    assert not report.broken
    assert [result.law for result in report.results] == list(LAWS)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(("law", "method", "words"), FLAWED, ids=[f"{law}-{fn.__name__}" for law, fn, _ in FLAWED])
def test_law_catches(law: str, method: Callable[..., Credit], words: str) -> None:
    with pytest.raises(LawError, match=r"breaks the law") as caught:
        check(method, skip=[name for name in LAWS if name != law])
    assert str(caught.value).startswith(f"{method.__name__} breaks the law {law!r}: ")
    assert words in str(caught.value)


def declared(name: str, scope: Any) -> Subject:
    """A method of the table, with a scope that it may not have."""
    method = credit.METHODS[name]
    levels = {need: "trace" if need in TRACE_EVIDENCE else "event" for need in method.needs}
    return Subject(method.fn, levels, scope, seed=0)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(
    ("scope", "method", "law"),
    [
        ("trace", "rloo", "independence"),
        ("group", "reinforce_batch", "independence"),
        ("group", "moving_average", "independence"),
        ("sequence", "rloo", "independence"),
        ("group", "remax", "tight_scope"),
        ("batch", "rloo", "tight_scope"),
        ("sequence", "remax", "tight_scope"),
    ],
)
def test_a_wrong_scope_is_caught(scope: Any, method: str, law: str) -> None:
    assert declared(method, scope).try_law(law, LAWS[law]).passed is False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "needs", "what"),
    [
        (flawed.scales_event_rewards_by_the_largest, (), "event rewards"),
        (flawed.divides_by_the_number_of_outcomes, (), "outcomes, some of which are now missing,"),
        (flawed.subtracts_the_largest_value, ("value",), "evidence"),
    ],
)
def test_all_that_other_groups_log_is_beyond_the_group(
    method: Callable[..., Credit], needs: tuple[str, ...], what: str
) -> None:
    levels = {need: "event" for need in needs}
    broken = Subject(method, levels, "group", 0).try_law("independence", LAWS["independence"])
    assert broken.passed is False and f"before the {what} of another group changed" in broken.detail
    assert Subject(method, levels, "batch", 0).try_law("tight_scope", LAWS["tight_scope"]).passed


@pytest.mark.slow
def test_who_declares_that_no_outcome_enters_is_held_to_it() -> None:
    assert declared("coma", credit.METHODS["coma"].scope).try_law("response", LAWS["response"]).passed is None

    def hides_its_outcome(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        return flawed.replaced(flawed.good(graph, reward, event_reward=event_reward), own_outcome=False)

    with pytest.raises(LawError, match="though it declares that no outcome enters"):
        check(hides_its_outcome, scope="trace", skip=[name for name in LAWS if name != "response"])


@pytest.mark.slow
def test_an_overflow_is_told_with_the_rewards_that_make_it() -> None:
    def between(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        result = flawed.good(graph, reward, event_reward=event_reward)
        return flawed.replaced(result, baseline=(result.baseline + result.credit) / 2)

    with pytest.raises(LawError, match=r"event \d+ is -?inf, where rewards are ±3e38: a sum of two overflows"):
        check(between, skip=[name for name in LAWS if name != "finite"])


def test_equal_rewards_asks_nothing_of_numbers_in_the_evidence() -> None:
    """A mean of the others and the value was called broken, with a hint on rounding, by a deviation as large as it."""

    def shared(share: float) -> Callable[..., Credit]:
        def of_values(graph: Any, reward: Any, *, event_reward: Any = None, value: Any) -> Credit:
            result = flawed.good(graph, reward, event_reward=event_reward)
            return flawed.replaced(result, baseline=result.baseline + share * jnp.where(result.valid, value, 0))

        return of_values

    few = [name for name in LAWS if name != "equal_rewards"]
    (half,) = check(shared(0.5), needs=("value",), skip=few).results
    assert half.passed is None and half.detail == "it has numbers in its evidence besides rewards"
    with pytest.raises(LawError, match=r"expected 0\. Sums of scores round"):
        check(shared(1e-6), needs=("value",), skip=few)

    def ungrouped(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        result = flawed.good(graph, reward, event_reward=event_reward)
        return flawed.replaced(result, baseline=result.baseline / 2)

    with pytest.raises(LawError, match=r"in a group of 4; expected 0$"):
        check(ungrouped, skip=few)


def test_a_nan_in_the_padding_alone_breaks_no_law_of_equal_rewards() -> None:
    """It was "IndexError: index 64 is out of bounds", an error of the law itself."""

    def fills(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        result = flawed.good(graph, reward, event_reward=event_reward)
        return flawed.replaced(result, baseline=jnp.where(result.valid, result.baseline, jnp.nan))

    few = [name for name in LAWS if name not in ("padding_is_zero", "equal_rewards")]
    padding, equal = check(fills, skip=few, strict=False).results
    assert padding.passed is False and "is nan; expected 0.0 (padding)" in padding.detail
    assert equal.passed is True, equal.detail
