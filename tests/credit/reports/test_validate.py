"""The survey of a corpus, against counts made by hand."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import credit
from credit.method_summary import Summary, large_advantages
from credit.methods.availability import availability
from credit.page.overview import group_rows
from credit.reports.corpus import Spread, Tally, survey
from credit.reports.trace_list import trace_rows
from credit.reports.trace_returns import returns
from graphs.errors import PrecisionWarning, Problem
from graphs.event_graph import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord


def record(
    name: str,
    group: str,
    outcome: float | None,
    steps: Sequence[float | None] = (None, None),
    tokens: Sequence[int | None] = (None, None),
) -> TraceRecord:
    """A trace of a solver and a verifier who alternate, and one tool result that is no action."""
    made = TraceRecord(name, group, f"{name}.json", format="native")
    for i, (step, count) in enumerate(zip(steps, tokens, strict=True)):
        agent = ("solver", "verifier")[i % 2]
        made.event(f"e{i}", EventType.MESSAGE, agent, action=True, event_reward=step, tokens=count)
    made.event("tool", EventType.TOOL_RESULT, "solver", action=False)
    made.rewards = {"format": 1.0} if outcome is None else {"team": outcome, "format": 1.0}
    return made


PROBLEM = Problem("cycle", "x.json", 3, "edges", "'a -> b -> a'", "edges without a cycle", "x")


@pytest.fixture(scope="module")
def traces() -> Traces:
    return assemble(
        [
            record("t1", "mixed", 1.0, tokens=(10, 5)),
            record("t2", "mixed", 0.0, tokens=(7, None)),
            PROBLEM,
            record("t3", "even", 1.0),
            record("t4", "even", 1.0),
            record("t5", "even", None),
            record("t6", "lone", 1.0, steps=(None,), tokens=(None,)),
            record("t7", "half", None),
            record("t8", "half", 0.5),
            record("t9", "paid", 1.0, steps=(0.0, -0.25)),
            record("t10", "paid", 0.75),
        ],
        ignored=["notes.txt"],
    )


def test_groups_are_sorted_by_what_they_teach(traces: Traces) -> None:
    found = survey(traces)
    assert found.groups == 5
    assert found.group_sizes == {1: 1, 2: 3, 3: 1}
    assert found.teaching == 1
    # Outcomes 1 and 0.75 with a step penalty of 0.25: equal returns, though the outcomes differ.
    assert found.equal == {"even": 1.0, "paid": 0.75}
    assert found.singletons == ("lone",)
    assert found.unscored_groups == ("half",)
    assert found.unscored == ("t5", "t7")
    assert found.teaching + len(found.equal) + len(found.singletons) + len(found.unscored_groups) == found.groups


def test_traces_without_an_action_are_named_and_not_compared() -> None:
    """`validate` counted a signal in a group whose advantages are all 0."""
    _, _, rows = credit.from_columns(
        group=["q", "q", "q", "r", "r"], trace=list("abcde"), reward=[1.0, 0, 1, 1, 0], action=[1, 0, 1, 1, 0]
    )
    found = survey(rows.traces)
    assert found.idle == ("b", "e")
    assert (found.teaching, found.equal, found.unscored_groups) == (0, {"q": 1.0}, ("r",))
    assert [row["signal"] for row in group_rows(rows.traces)] == ["equal", "unscored"]
    assert not credit.run(rows.traces, "rloo").advantage.any()


def test_traces_whose_masks_train_no_token_are_named(tmp_path: Path) -> None:
    """They enter baselines, as in the trainers, and nothing said so."""
    masks = {"a": [False, False], "b": [False, True], "c": None}
    log = tmp_path / "log.jsonl"
    with log.open("w") as file:
        for name, mask in masks.items():
            event = {"id": "1", "type": "message", "agent": "x"} | (
                {"token_ids": [1, 2], "token_mask": mask} if mask else {}
            )
            trace = {"trace_id": name, "task_id": "q", "events": [event], "rewards": {"team": float(name == "a")}}
            file.write(json.dumps(trace) + "\n")
    assert survey(credit.read(log)).masked == ("a",)


@pytest.mark.parametrize(
    ("first", "second", "teaches"),
    [
        (0.0, 1e-40, False),  # below the normal numbers of float32, which XLA takes for 0
        (-1e-38, 1e-38, False),
        (1.5e-38, 1.2e-38, False),  # normal numbers whose difference is none
        (0.0, 2e-38, True),
        (1.0, 1 + 1e-9, False),  # one number in float32
        (1.0, 1 + 2**-23, True),
    ],
)
def test_groups_teach_where_methods_see_a_difference(first: float, second: float, teaches: bool) -> None:
    traces = assemble([record("t1", "g", first), record("t2", "g", second)])
    found = survey(traces)
    assert (found.teaching, len(found.equal)) == ((1, 0) if teaches else (0, 1))
    for method in (credit.rloo, credit.grpo):
        summary = Summary()
        summary.add(traces, method(traces.graph, traces.reward), method.__name__, {})
        assert summary.has_signal == {"g": teaches}
    state = availability(traces)["rloo"].state
    assert state == ("computable" if teaches else "degenerate")


@pytest.mark.parametrize(
    ("rewards", "why"),
    [
        ((16777217.0, 16777216.0), "less"),
        ((1000000000.5, 1000000000.25), "less"),
        ((1.0, 1 + 1e-9), "less"),
        ((0.0, 1e-40), "less"),
        ((3e38, -3e38, 0.0), "more"),
        ((0.1 + 0.2, 0.3), ""),
        ((16777217.0, 16777217.0), ""),
        ((16777217.0, 16777219.0), ""),
        ((1e12, 1e12 + 1), "less"),  # integers that double precision holds: no rounding of a sum
        ((1e13 + 0.1 + 0.2, 1e13 + 0.3), ""),
        ((float(2**53), float(2**53 + 1)), "less"),  # one number as soon as they are read
    ],
)
def test_outcomes_that_differ_in_the_log_only_are_named_as_such(rewards: tuple[float, ...], why: str) -> None:
    """They were called equal, or, beyond single precision, a signal that no method has."""
    traces = assemble([record(f"t{i}", "g", reward) for i, reward in enumerate(rewards)])
    found, summary = survey(traces), Summary()
    summary.add(traces, credit.rloo(traces.graph, traces.reward), "rloo", {})
    words = f"outcomes differ by {why} than single precision, in which methods compute, holds"
    assert [reason[: len(words)] for reason in found.unresolved.values()] == ([words] if why else [])
    assert found.as_json()["unresolved"] == summary.as_json("rloo", {})["unresolved"] == found.unresolved
    assert found.unresolved.keys() <= found.equal.keys() and found.teaching + len(found.equal) == 1
    assert summary.has_signal == {"g": found.teaching == 1}
    last = summary.lines("rloo", {})[-1]
    assert ("without a training signal, though outcomes differ" in last) == bool(why)
    assert last.endswith(": g") or found.teaching
    again = Summary.from_plain(msgspec.json.decode(msgspec.json.encode(summary.to_plain())))
    assert again.lines("rloo", {}) == summary.lines("rloo", {})
    if not found.teaching:
        assert (words in availability(traces)["rloo"].why) == (words in credit.choose(traces).warnings[0]) == bool(why)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("rewards", "steps", "rounded"),
    [
        ((1e6, 1e6 + 0.1, 1e6 + 0.2), (None, None, None), True),  # 0, 0.125 and 0.1875 in single precision
        ((16777217.0, 16777219.0), (None, None), True),  # a difference of 2 becomes 4
        ((1e6, 1e6), (0.0, 0.1), True),  # lost in the sum
        ((1e6, 1e6 + 5.0, 1e6 + 5.01), (None, None, None), False),
        ((1e6, 1e6 + 0.25), (None, None), False),
        ((16777216.0, 16777218.0, 16777220.0), (None,) * 3, True),  # a mean of 16777219 becomes 16777220
        ((0.1, 0.3), (0.2, None), False),  # 0.1 + 0.2 is not 0.3, by rounding of double precision
        ((0.3, 0.7), (0.4, None), True),  # 0.3 + 0.4 is more than 0.7 in single precision: equal, and methods see two
        ((1e17, 0.0), (None, None), False),
    ],
)
def test_differences_that_single_precision_changes_are_named(
    rewards: tuple[float, ...], steps: tuple[float | None, ...], rounded: bool
) -> None:
    """Rewards of 1,000,000 and 1,000,000.1 gave advantages a quarter too large without a word."""
    batch = [record(f"t{i}", "g", r, (s, None)) for i, (r, s) in enumerate(zip(rewards, steps, strict=True))]
    traces = assemble(batch)
    found, summary = survey(traces), Summary()
    with contextlib.nullcontext() if not rounded else pytest.warns(PrecisionWarning, match="1 group whose"):
        summary.add(traces, credit.run(traces, "rloo"), "rloo", {})
    assert found.rounded == (("g",) if rounded else ())
    assert summary.as_json("rloo", {})["rounded"] == list(found.rounded) and not found.unresolved
    words = "changes the differences, or a baseline between them, by more than 1 %"
    assert any(words in line for line in summary.lines("rloo", {})) == rounded
    again = Summary.from_plain(msgspec.json.decode(msgspec.json.encode(summary.to_plain())))
    assert again.lines("rloo", {}) == summary.lines("rloo", {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options", "compared"),
    [
        ("c3_magrpo", {"over": "batch"}, 1),
        ("grpo", {"singleton": "zero"}, 0),
    ],
)
def test_lone_traces_count_where_the_options_compare_them(method: str, options: dict[str, str], compared: int) -> None:
    """The scope of the method without its options had the say."""
    traces = assemble([record("t1", "g", 1.0), record("t2", "g", 0.0), record("t3", "h", 1.0)])
    result, summary = credit.run(traces, method, **options), Summary()
    summary.add(traces, result, method, options)
    alone = summary.counts["alone"]
    assert alone > 0
    plain = summary.as_json(method, options)
    assert plain["with_advantage"] == result.valid.sum()  # as of the table
    assert list(plain["uncompared"].values()) == ([] if compared else [alone])
    assert not any("the group has one trace" in why for why in plain["without"])


def test_rounding_of_event_rewards_is_no_difference() -> None:
    """0.1 + 0.2 and 0.3 are two numbers in the single precision in which events have them."""
    found = survey(assemble([record("t1", "g", 0.0, (0.1, 0.2)), record("t2", "g", 0.0, (0.3, None))]))
    assert list(found.equal) == ["g"] and not found.unresolved


def test_rounding_of_outcomes_of_columns_is_no_difference() -> None:
    """1310.2 − 0.46 and 1309.74 are equal; from outcomes in single precision they were said to differ."""
    for outcome, step in ((1310.2, -0.46), (177.8, -0.97)):
        _, _, rows = credit.from_columns(
            group=[0, 0], trace=[0, 1], reward=[outcome, round(outcome + step, 2)], event_reward=[step, 0.0]
        )
        assert not survey(rows.traces).unresolved


def test_a_step_reward_too_small_to_change_a_return_teaches_nothing() -> None:
    found = survey(assemble([record("t1", "g", 1.0, steps=(1e-9, None)), record("t2", "g", 1.0)]))
    assert found.equal == {"g": 1.0}


def test_counts(traces: Traces) -> None:
    found = survey(traces)
    assert (found.traces, found.events, found.actions, found.agents) == (10, 29, 19, 19)
    assert found.formats == {"native": 10}
    assert found.agents_per_trace == Spread(1, 2.0, 2, 19)
    assert found.actions_per_trace == Spread(1, 2.0, 2, 19)
    assert found.events_per_agent == Spread(1, 2.0, 2, 29)
    assert found.tokens_per_trace == Spread(7, 11.0, 15, 22)  # over the two traces that log tokens
    assert found.reward_channels == {"team": 8, "format": 10}
    assert found.evidence == {"tokens": 3, "event_reward": 2}
    assert found.problems == (PROBLEM,) and found.problem_kinds == {"cycle": 1}
    assert found.ignored == ("notes.txt",)


def test_returns_add_event_rewards_to_outcomes(traces: Traces) -> None:
    expected = [1, 0, 1, 1, math.nan, 1, math.nan, 0.5, 0.75, 0.75]
    assert returns(traces).tolist() == pytest.approx(expected, nan_ok=True)


def test_without_tokens_there_is_no_spread_of_them() -> None:
    found = survey(assemble([record("t", "g", 1.0)]))
    assert found.tokens_per_trace is None
    assert found.evidence == {}


@pytest.mark.slow
def test_large_advantages_of_a_group_of_equal_outcomes_are_counted() -> None:
    """They were not, since no difference between outcomes measures them; now that of the other groups does."""
    graph, reward, rows = credit.from_columns(
        group=["even", "even", "mixed", "mixed"],
        trace=["a", "b", "c", "d"],
        reward=[1.0, 1.0, 2.0, 0.0],
        evidence={"value": [1000.0, 1.0, 1.0, 1.0]},
    )
    result = credit.gae(graph, reward, value=rows.evidence["value"])
    assert large_advantages(rows.traces, result) == (1, 499.5, "a")


def test_programs_get_everything(traces: Traces) -> None:
    plain = msgspec.json.decode(msgspec.json.encode(survey(traces).as_json()))
    assert plain["equal"] == {"even": 1.0, "paid": 0.75}
    assert plain["group_sizes"] == {"1": 1, "2": 3, "3": 1}
    assert plain["problems"] == [
        {
            "kind": "cycle",
            "file": "x.json",
            "line": 3,
            "field": "edges",
            "value": "'a -> b -> a'",
            "expected": "edges without a cycle",
            "trace": "x",
            "count": 1,
            "about": "",
        }
    ]
    assert plain["tokens_per_trace"] == {"least": 7, "median": 11.0, "greatest": 15, "total": 22}


def test_a_spread_in_words() -> None:
    assert str(Spread(2, 2.0, 2, 8)) == "2"
    assert str(Spread(1, 2.5, 9, 20)) == "1 to 9, median 2.5"


@pytest.mark.parametrize(
    ("numbers", "far"),
    [
        ([0.2, 0.9, None, 0.5], ""),
        ([20.0, 90.0, None, 50.0], "20 to 90 beside outcomes of 0 to 1"),  # percent beside outcomes of 0 and 1
        ([-60.0, 60.5, None, 0.5], "-60 to 60.5 beside outcomes of 0 to 1"),
        ([-0.4, 1.4, None, 2.0], ""),
    ],
)
@pytest.mark.parametrize("key", ["value", "greedy_reward"])
def test_evidence_in_another_unit_than_outcomes_is_named(key: str, numbers: list[float | None], far: str) -> None:
    """A critic's percent beside outcomes of 0 and 1: advantages of -50 without a word."""
    batch = [record(f"t{i}", "g", float(i % 2)) for i in range(4)]
    for made, number in zip(batch, numbers, strict=True):
        if number is not None and key == "value":
            made.columns["value"] = [number]
        elif number is not None:
            made.evidence[key] = number
    found = survey(assemble(batch))
    assert found.far == ({key: far} if far else {})
    first, second = (Tally.of(assemble(part)) for part in (batch[:1], batch[1:]))
    first.add(second)
    assert first.survey((), ()).far == found.far


def test_rewards_at_events_widen_what_a_value_may_be() -> None:
    batch = [record(f"t{i}", "g", float(i % 2), steps=(-5.0, None)) for i in range(4)]
    for made in batch:
        made.columns["value"] = [-5.0, 5.0]
    assert not survey(assemble(batch)).far


@pytest.mark.parametrize(("scale", "far"), [(100.0, "0.3 to 0.6 beside outcomes of 0 to 100"), (1.0, "")])
def test_outcomes_in_another_unit_than_values_are_named(scale: float, far: str) -> None:
    """Values in percent beside outcomes of 0 and 1 were named, and outcomes in percent beside values not."""
    batch = [record(f"t{i}", "g", scale * (i % 2)) for i in range(30)]
    for i, made in enumerate(batch):
        made.columns["value"] = [0.3 + 0.3 * (i % 3 == 0)]
    found = survey(assemble(batch)).far
    assert found == ({"value": far} if far else {})
    said = [line for line in credit.choose(assemble(batch)).warnings if "far from outcomes" in line]
    assert said == [f"evidence far from outcomes, as numbers in another unit are: value ({far})"] * bool(far)


@pytest.mark.parametrize(("rewards", "value"), [([0.0] * 2, 0.5), ([0.0] * 49 + [100.0], 0.4)])
def test_few_equal_outcomes_and_rare_ones_tell_no_unit(rewards: list[float], value: float) -> None:
    """Two traces of outcome 0, 0.04 paid at events: values of 0.5 were told as beside outcomes of -0.04 to 0.04."""
    batch = [record(f"t{i}", "g", reward, steps=(0.04, None)) for i, reward in enumerate(rewards)]
    for made in batch:
        made.columns["value"] = [value, value]
    assert not survey(assemble(batch)).far


def test_names_that_look_alike_are_named() -> None:
    """Agents 'Solver' and 'solver' had no baseline in common, nor had tasks 'q' and 'q '."""
    batch = [record(f"t{i}", group, 1.0) for i, group in enumerate(["q", "Q ", "caf\u00e9", "cafe\u0301", "q-1", "q1"])]
    batch[0].agents[0] = "Solver"
    batch[0].instances["Solver"] = Agent()
    assert survey(assemble(batch)).alike == ("'q', 'Q '", r"'caf\xe9', 'cafe\u0301'", "'Solver', 'solver'")


def test_agents_are_those_that_act_in_every_list() -> None:
    """Of LangGraph, the node that only runs tools has no event; a user acts for nobody of the team."""
    record = TraceRecord("t", "q", "log.jsonl", instances={name: Agent(name) for name in ("solver", "user", "tools")})
    record.event("u", EventType.HUMAN_INTERVENTION, "user", action=False)
    record.event("c", EventType.MESSAGE, "solver", action=True)
    traces = assemble([record])
    found = survey(traces)
    assert (found.agents, str(found.agents_per_trace), str(found.events_per_agent)) == (1, "1", "1")
    assert [row["agents"] for row in trace_rows(traces)] == [1]
    silent = msgspec.structs.replace(record, actions=[False, False])
    found = survey(assemble([silent]))
    assert (found.agents, str(found.events_per_agent)) == (0, "0")
