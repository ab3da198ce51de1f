"""Why a method is biased is said beside its numbers: a mean or a divisor that its own outcome moves."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import pytest

import credit
from credit.bias_in_log import on_log
from credit.integrations import RowAdvantages
from credit.method_summary import Summary
from credit.methods.method_page import method_page
from graphs.errors import MissingColumnWarning

CONTAINS = "the mean that is subtracted contains the trace itself"
WRONG = "values that are not the true ones bias it"
TWICE = {"anchor", "hindsight_log_prob"}
"""What methods need that count an outcome twice, each time against a mean."""

ROWS: dict[str, Any] = {"group": [0] * 6, "trace": [*"aabbcc"], "agent": [*"xyxyxy"], "turn": [0, 1] * 3}


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("grpo", {}, f"{CONTAINS}, and so does the divisor, the sd"),
        ("dr_grpo", {}, CONTAINS),
        ("dr_mas", {"scale": "none"}, CONTAINS),
        ("pass_at_k", {}, "the divisor, the sd, contains the trace itself"),
        ("rloo", {}, ""),
        ("remax", {}, ""),
        ("puppeteer", {}, f"its number is another than the return: {credit.METHODS['puppeteer'].summary}"),
        ("gae", {}, f"{WRONG}, and so do agents at once, of whom the last row gets the most; at lambda_=1 none do"),
        ("critic", {}, f"{WRONG}, and so do agents at once, whose actions it refuses"),
        ("grpo", {"ddof": 0}, "how it is biased is known of ddof=1 only"),
    ],
)
def test_a_biased_method_says_why(name: str, options: dict[str, Any], why: str) -> None:
    """`credit assign` said nothing of the bias of `grpo`, and `credit methods grpo` "no"."""
    assert credit.METHODS[name].unbiased_with(options)[1] == why
    if not options:
        answer = "yes" if credit.METHODS[name].unbiased else "with true values" if why.startswith(WRONG) else "no"
        assert method_page(name).facts["unbiased"] == (f"{answer}: {why}" if why else answer)


@pytest.mark.parametrize("name", ["grpo", "rloo"])
def test_assign_says_why_beside_how_many_have_an_advantage(name: str) -> None:
    _, _, rows = credit.from_columns(**ROWS, reward=[1.0, 1, 0, 0, 0.5, 0.5])
    summary = Summary()
    summary.add(rows.traces, credit.run(rows, name), name, {})
    said = [line for line in summary.lines(name, {}) if "policy gradient" in line]
    assert said == (
        [f"  the policy gradient is biased: {CONTAINS}, and so does the divisor, the sd"] * (name == "grpo")
    )


@pytest.mark.parametrize("name", credit.METHODS)
def test_only_a_method_without_bias_has_no_reason(name: str) -> None:
    """`assign -m gae` said nothing of its bias, nor that of ten others."""
    unbiased, why = credit.METHODS[name].unbiased_with({})
    assert bool(unbiased) == (not why)


@pytest.mark.every_method
@pytest.mark.parametrize(
    "name", [name for name, row in credit.METHODS.items() if row.unbiased_with({})[1].startswith(CONTAINS)]
)
def test_a_mean_that_is_said_to_contain_the_trace_moves_with_its_outcome(name: str) -> None:
    """An outcome that is 1 higher moves credit − baseline by less than 1; of the mean of the others, by 1."""
    given: dict[str, Any] = {"tree": [0] * 6, "anchor": [*"uvuvuv"], "block": [0] * 6, "tokens": [1.0, 2] * 3}
    given |= {"context": ["c", None] * 3, "node": ["d", None, "e", None, "f", None], "stage": [0, 1] * 3}
    given |= {"hindsight_log_prob": [-0.7] * 6}
    needs = {need: given.get(need, [0.5] * 6) for need in credit.METHODS[name].needs}

    def of_own(reward: float) -> np.ndarray:
        outcomes = [reward, reward, 0.25, 0.25, 3.0, 3.0]
        rows = credit.from_columns(**ROWS, parent=[None, "x"] * 3, reward=outcomes, evidence=needs)[2]
        result = credit.run(rows, name)
        assert np.asarray(result.valid)[0]
        found: np.ndarray = rows.gather(np.asarray(result.advantage, np.float64) * np.asarray(result.scale))
        return found

    most = 1 if TWICE.isdisjoint(needs) else 2
    assert np.abs(of_own(2.0) - of_own(1.0))[:2].max() < most - 1e-3


@pytest.mark.parametrize(
    ("method", "at_once", "after", "said"),
    [("gae", True, False, "and so do agents at once, of whom the last row gets the most; at lambda_=1"),
     ("gae", False, False, ""), ("critic", True, False, "and so do agents at once, whose actions it refuses"),
     ("critic", False, False, ""), ("critic", True, True, ""), ("gae", True, True, "")],
)  # fmt: skip
def test_a_bias_of_agents_at_once_is_said_where_the_log_has_it(
    method: str, at_once: bool, after: bool, said: str
) -> None:
    """A fitted critic values what each of a round did, and was said to refuse actions, of which it had answered all."""
    evidence = {"value": [0.5] * 6, "context": [*"uuvvww"] if at_once else [*"uvwxyz"]}
    _, _, rows = credit.from_columns(**ROWS, reward=[1.0, 1, 0, 0, 0, 0], evidence=evidence)
    value, given = np.asarray(rows.evidence["value"]), ("value", "value_after")[: 1 + (method == "critic")]
    traces, arrays = rows.traces, dict.fromkeys(given if after else (), value)
    summary, words = Summary(), f"{WRONG}, {said}" if said else WRONG
    with warnings.catch_warnings(action="ignore"):
        result = credit.run(traces, method, **arrays)
    summary.add(traces, result, method, {}, arrays)
    lines = summary.lines(method, {})
    assert [line for line in lines if "policy gradient" in line and words in line and ("at once" in line) == bool(said)]
    assert any("1 round several" in line or "3 rounds several" in line for line in lines) == (
        at_once and (after or method == "gae")
    )
    assert int(np.asarray(result.valid).sum()) == (0 if method == "critic" and at_once and not after else 6)


@pytest.mark.parametrize(("off", "said"), [(0.0, True), (0.01, False)])
def test_a_value_that_is_the_worth_of_the_choice_is_told_where_it_is_a_baseline(off: float, said: bool) -> None:
    """It saw the action: `gae` at lambda_=1 was called unbiased, and told as another method to train with."""
    draw = np.random.default_rng(1).uniform(0.2, 0.8, 6)
    evidence = {"value": draw, "q_value": draw + off, "target_value": draw}
    _, _, rows = credit.from_columns(**ROWS, reward=[1.0, 1, 0, 0, 0, 0], evidence=evidence)
    for method, options in (("gae", {"lambda_": 1.0}), ("gae", {}), ("rloo", {})):
        summary = Summary()
        warned = pytest.warns(MissingColumnWarning, match=f"{method} reads value, and value is q_value at every action")
        with warned if said and method == "gae" else contextlib.nullcontext():
            result = credit.run(rows, method, **options)
        summary.add(rows.traces, result, method, options)
        found = any("value is q_value at every action" in line for line in summary.lines(method, options))
        assert found == (said and method == "gae"), (method, options)
    beside = [one.method for one in credit.choose(rows.traces).trial.beside]
    assert ("gae --option lambda_=1" in beside) != said


def _valued(kind: str) -> tuple[dict[str, list[Any]], np.ndarray]:
    """Eight traces of two tasks, three actions each, and their values."""
    draw = np.random.default_rng(2)
    trace = np.repeat(np.arange(8), 3)
    earned = np.array([1.0, 0, 0, 1, 0, 1, 1, 0])
    earned = np.repeat([1.0, 0.0], 4) if kind == "of tasks that all traces solve or none" else earned
    columns: dict[str, Any] = {"group": trace // 4, "trace": trace, "turn": np.tile(np.arange(3), 8)}
    columns["reward"] = earned[trace]
    value = earned[trace].copy()
    if kind == "with later rewards":
        columns["event_reward"] = draw.normal(size=24).astype(np.float32)
        value += columns["event_reward"].reshape(8, 3)[:, ::-1].cumsum(1)[:, ::-1].ravel()
    if kind == "each task once":
        columns["group"] = trace
    if kind == "but for one action":
        value[4] += 0.01
    if kind == "of the last action alone":
        value[trace == np.roll(trace, -1)] = 0.5
    return {name: column.tolist() for name, column in columns.items()}, value


@pytest.mark.parametrize(
    ("kind", "said"),
    [("the outcome", True), ("with later rewards", True), ("each task once", True), ("but for one action", False),
     ("of the last action alone", False), ("of tasks that all traces solve or none", False)],
)  # fmt: skip
def test_a_value_that_is_what_its_trace_earned_is_told_where_it_is_a_baseline(kind: str, said: bool) -> None:
    """`gae` at lambda_=1 was silent, and `unbiased` 1, though all advantages were 0."""
    columns, value = _valued(kind)
    evidence = {"value": value}
    words = "value is what its own trace earned at every action"
    for method, needs in (("gae", True), ("rloo", False)):
        given = evidence if needs else {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = RowAdvantages(method, **({"lambda_": 1.0} if needs else {}))(**columns, evidence=given)
        assert any(words in str(warning.message) for warning in caught) == (said and needs)
        if kind != "each task once":
            assert ("credit/condition/unbiased" in result.metrics) != (said and needs)
    with warnings.catch_warnings(action="ignore"):
        _, _, rows = credit.from_columns(**columns, evidence=evidence)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        credit.run(rows, "gae", lambda_=1.0)
    assert any(words in str(warning.message) for warning in caught) == said
    with warnings.catch_warnings(action="ignore"):
        assert on_log(rows.traces, "gae", options={"lambda_": 1.0}).unbiased is (None if said else True)
