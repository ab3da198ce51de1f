"""The scope of a method under each of its options: a group alone has the numbers that it has within a batch."""

from __future__ import annotations

import typing
from collections.abc import Callable

import numpy as np
import pytest

import credit
from credit.laws.subject import differ, numbers
from credit.laws.trial_batches import SIZES, padded, ragged, rearranged
from credit.methods.chunked import DIVISIBLE, ChunkedMethod
from credit.methods.option_texts import options_of, parse_options
from credit.methods.running import keywords_of
from credit.ray.jobs import Ledgers
from estimators.base import Credit
from graphs.errors import CreditError
from graphs.traces.schema import EVENT_EVIDENCE

ALSO = {
    "variant": ("q_value",),
    "kind": ("q_value",),
    "joint_mode": ("completion",),
    "mode": ("proposal",),
    "estimator": ("q_value", "target_value"),
    "basis": ("q_value", "target_value", "counterfactual_reward"),
}
"""Evidence that a value of an option may need beside the method's own."""

BY_OPTION = [(name, *text.split("=")) for name, m in credit.METHODS.items() for text in m.scope_by_option]


def choices(name: str) -> list[tuple[str, str]]:
    """Each boolean or choice of the options of a method by itself, as texts, and its defaults where it pools errors.

    The laws say of every method's defaults that its scope is neither too narrow nor too wide.
    """
    found = [("", "")] if credit.METHODS[name].pools_errors else []
    for option, stated in options_of(credit.METHODS[name]).items():
        literals = [
            hint for hint in (stated.hint, *typing.get_args(stated.hint)) if typing.get_origin(hint) is typing.Literal
        ]
        values = (
            [True, False] if stated.hint is bool else [value for hint in literals for value in typing.get_args(hint)]
        )
        found += [(option, str(value)) for value in values if value != stated.default]
    return found


EVERY = [(name, option, value) for name in credit.METHODS for option, value in choices(name)]


def states(result: Credit) -> dict[str, np.ndarray]:
    """What must not depend on other groups, `stderr` among it."""
    return {key: np.asarray(values) for key, values in numbers(result).items()}


def errors(result: Credit) -> dict[str, np.ndarray]:
    """The errors of the values that a return rests on, under a name that `differ` compares."""
    values = None if result.recursion is None else result.recursion.values
    return {} if values is None else {"stderr": np.asarray(values.stderr), "scale": np.asarray(values.spread)}


def alone_and_within(name: str, option: str, value: str) -> tuple[str, str]:
    """How the numbers of group 0 of a ragged batch, and its errors, differ from those of the group alone.

    "" where they agree.
    """
    method = credit.METHODS[name]
    options = parse_options(name, [f"{option}={value}"] if option else [])
    needs = {key: "event" if key in EVENT_EVIDENCE else "trace" for key in (*method.needs, *ALSO.get(option, ()))}
    batch = ragged(0, needs)  # type: ignore[arg-type]
    if not set(needs) <= set(keywords_of(method.fn)):
        needs = {key: needs[key] for key in method.needs}
        batch = ragged(0, needs)  # type: ignore[arg-type]
    group = np.flatnonzero(batch.graph.group_ids == 0)
    part, was = rearranged(batch, group, np.random.default_rng(0))

    def run(which: typing.Any) -> Credit:
        ready = padded(which, SIZES)
        given = dict(ready.evidence)
        if "event_reward" in keywords_of(method.fn):
            given["event_reward"] = ready.event_reward
        return method.fn(ready.graph, ready.reward, **given, **options)

    whole, own = run(batch), run(part)

    def differing(of: Callable[[Credit], dict[str, np.ndarray]]) -> str:
        within = {key: values[was] for key, values in of(whole).items()}
        return differ({key: values[: len(was)] for key, values in of(own).items()}, within, np.ones(len(was), bool))

    return differing(states), differing(errors)


@pytest.mark.every_method
@pytest.mark.parametrize(("name", "option", "value"), EVERY)
def test_a_group_alone_has_the_numbers_that_it_has_in_a_batch(name: str, option: str, value: str) -> None:
    scope, _ = credit.METHODS[name].scope_of(parse_options(name, [f"{option}={value}"] if option else []))
    detail, pooled = alone_and_within(name, option, value)
    assert bool(pooled) == credit.METHODS[name].pools_errors
    if scope in DIVISIBLE:
        assert detail == ""
    elif scope == "batch":
        assert detail, "the scope is too wide"


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(("name", "option", "value"), BY_OPTION)
def test_an_option_that_states_a_scope_has_it(name: str, option: str, value: str) -> None:
    method = credit.METHODS[name]
    scope, why = method.scope_of(parse_options(name, [f"{option}={value}"]))
    assert scope != method.scope and why == f"{option}={value}"
    assert (alone_and_within(name, option, value)[0] == "") == (scope in DIVISIBLE)


@pytest.mark.parametrize(("name", "option", "value"), BY_OPTION)
def test_parts_refuse_an_option_that_takes_the_whole_batch(name: str, option: str, value: str) -> None:
    options = parse_options(name, [f"{option}={value}"])
    if credit.METHODS[name].scope_of(options)[0] in DIVISIBLE:
        ChunkedMethod(name, options)
        return
    with pytest.raises(CreditError, match=rf"method '{name}' .* under {option}={value} is batch.*leave out {option}"):
        ChunkedMethod(name, options)
    ChunkedMethod(name, {option: options_of(credit.METHODS[name])[option].default})


def test_errors_that_pool_the_batch_are_not_composed_in_parts() -> None:
    for rule in ("increments", "reconcile"):
        with pytest.raises(CreditError, match=r"'turn_baseline' cannot be composed in parts.*pooled over all groups"):
            Ledgers((ChunkedMethod("c3"), ChunkedMethod("turn_baseline")), rule, "event")
    Ledgers((ChunkedMethod("turn_baseline"),), "shares", "event")  # which weighs nothing by errors


NEGATIVE = "it has negative scores; a split needs weights of 0 or more"
TAKEN = "'p' divides traces already"


def test_scores_that_are_negative_in_one_part_only_are_refused_by_name() -> None:
    """Rule "shares" leaves out a method of negative scores, which other parts cannot know."""
    job = Ledgers((ChunkedMethod("pass_at_k"),), "shares", "event")
    whole = {"evidence": {"pass_at_k": []}, "outcome": True, "found": ""}
    notes = [whole | {"took_part": [p], "refused": {q: why}} for p, q, why in (("p", "a", TAKEN), ("a", "p", NEGATIVE))]
    with pytest.raises(CreditError, match="'a' divides nothing in some parts, where 'p' divides traces already"):
        job.finish(notes, [])
    with pytest.raises(CreditError, match="'p' divides nothing in some parts, where it has negative scores; a split"):
        job.finish([notes[0], whole | {"took_part": [], "refused": {"p": NEGATIVE, "a": TAKEN}}], [])
    assert job.finish(notes[:1], []) is not None


@pytest.mark.slow
def test_a_part_notes_which_methods_divide_it() -> None:
    """A turn's score is 0 where all rewards are equal, and else negative for some."""
    job = Ledgers((ChunkedMethod("mt_grpo"),), "shares", "event")
    equal, differ = (
        job.compute(credit.from_columns(group=[0, 0], trace=[0, 1], reward=reward)[2].traces)[1]
        for reward in ([1.0, 1.0], [1.0, 0.0])
    )
    assert (equal["took_part"], equal["refused"]) == (["mt_grpo"], {})
    assert (differ["took_part"], list(differ["refused"])) == ([], ["mt_grpo"])
    with pytest.raises(CreditError, match="'mt_grpo' divides nothing in some parts, where it has negative scores; a"):
        job.finish([equal, differ], [])
