"""What failed traces have more of, and whose it is."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import credit
from credit.metrics.part_costs import agents_paid
from credit.reports.outcome_differences import UNRECOVERED, WITH, Difference, OutcomeDifferences, outcome_differences
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.record import Agent, TraceRecord

TASKS = 12


def failing(folder: Path, errors: dict[tuple[str, str], int], others: dict[tuple[str, str], int]) -> OutcomeDifferences:
    """Traces of which one of two failed: errors of it, and of the others, by agent and tool."""
    lines = []
    for task in range(TASKS):
        for outcome in (0, 1):
            events: list[dict[str, Any]] = []
            for (agent, tool), count in (others if outcome else errors).items():
                called = {"type": "tool_call", "agent": agent, "tool": tool}
                events += [called | {"status": "error", "id": f"{agent}{tool}{i}"} for i in range(count)]
                events += [called | {"status": "ok", "id": f"{agent}{tool}"}]
            events += [{"id": f"p{i}", "type": "message", "agent": "boss"} for i in range(1 + (task == 4 and outcome))]
            lines.append({"trace_id": f"{task}.{outcome}", "task_id": f"q{task}", "events": events, "edges": [],
                          "rewards": {"team": outcome}})  # fmt: skip
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return outcome_differences(credit.read(log))


@pytest.mark.parametrize("have", [10, 15])
def test_both_means_are_over_the_tasks_that_are_compared(tmp_path: Path, have: int) -> None:
    """Where killed runs had no number, their tasks counted for succeeded ones alone: 4.5 against 6.25, `100 %`.

    Of more than a tenth of the failed runs the number is left out: which runs lack it was a choice by outcome.
    """
    lines = []
    for task in range(16):
        for outcome in (0, 1):
            count = None if task >= have and not outcome else 50 if task >= have else 7 - 2 * outcome
            event = {"id": "e", "type": "message", "agent": "a"} | ({} if count is None else {"tokens": count})
            lines.append({"trace_id": f"{task}.{outcome}", "task_id": f"q{task}", "events": [event], "edges": [],
                          "rewards": {"team": outcome}})  # fmt: skip
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(log))
    rows = [(row.failed, row.succeeded, row.chance, row.tasks) for row in found.rows if "tokens" in row.what]
    assert rows == [(7, 5, 1, 15)] * (have == 15)
    said = f"tokens generated (known of {have} of 16 failed and 16 of 16 succeeded)."
    assert any(line.endswith(said) for line in found.comparison())
    plain = found.as_json()
    assert [row["known"] for row in plain["rows"]] == [(15, 16)] * (have == 15)
    assert plain["left"] == (("tokens generated", (10, 16)),) * (have == 10)


def test_a_number_that_is_lacking_by_what_it_would_be_is_not_compared(tmp_path: Path) -> None:
    """Failed calls that never succeeded, 0.8 against 0.35 a run, were 0.06 against 0.28 where calls had no arguments.

    Where another call of the tool succeeded later nobody knows, so that the number was of the runs without.
    """

    def log(**arguments: dict[str, str]) -> OutcomeDifferences:
        rng, lines = np.random.default_rng(3), []
        for i in range(160):
            won, events = float(i % 2), []
            for k in range(4):
                status = "error" if rng.random() < (0.2 if won else 0.4) else "ok"
                said = {name: value | {"k": str(k)} for name, value in arguments.items()}
                events.append(
                    {"id": f"e{k}", "type": "tool_call", "agent": "a", "tool": "sh", "status": status, **said}
                )
            lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 8}", "events": events, "edges": [],
                          "rewards": {"team": won}})  # fmt: skip
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return outcome_differences(credit.read(tmp_path / "log.jsonl"))

    found = log(arguments={"of": "x"})
    (row,) = (row for row in found.rows if row.what == UNRECOVERED)
    assert row.failed > row.succeeded and row.known is None and not found.left
    found = log()
    (left,) = (known for what, known in found.left if what == UNRECOVERED)
    assert UNRECOVERED not in {row.what for row in found.rows} and UNRECOVERED not in found.headline()
    assert max(left) < 60 and any("Not compared, as which traces lack" in line for line in found.comparison())


def test_a_format_that_has_no_such_number_leaves_others_theirs(tmp_path: Path) -> None:
    """Tasks whose traces all lack it make no choice among the traces of a task; of how many it is is said."""
    lines = []
    for i in range(64):
        event = {"id": "e", "type": "message", "agent": "a"} | ({"tokens": 5 + i % 2} if i < 40 else {})
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 4}", "events": [event], "edges": [],
                      "rewards": {"team": i % 2}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (row,) = outcome_differences(credit.read(tmp_path / "log.jsonl")).rows
    assert (row.what, row.known, row.tasks) == ("tokens generated", (20, 20), 10)


@pytest.mark.parametrize(("more", "told"), [(1, False), (2000, True)])
def test_what_three_digits_round_away_is_in_no_headline(tmp_path: Path, more: int, told: bool) -> None:
    """`tokens generated (10,001 against 10,000)` stood first: it is sure, since all tasks have it."""
    lines = []
    for task in range(16):
        for outcome in (0, 1):
            event = {"id": "e", "type": "message", "agent": "a", "tokens": 10_000 + 3 * task + more * (1 - outcome)}
            lines.append({"trace_id": f"{task}.{outcome}", "task_id": f"q{task}", "events": [event], "edges": [],
                          "rewards": {"team": outcome}})  # fmt: skip
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(log))
    (row,) = (row for row in found.rows if "tokens" in row.what)
    assert row.stands_out and ("tokens" in found.headline()) == told
    assert told or "differs beyond chance" in found.headline()


def test_whose_errors_differ_is_said(tmp_path: Path) -> None:
    """`errors * 4 against 1` did not say that a team's one tool had them."""
    found = failing(tmp_path, {("ann", "edit"): 3, ("bob", "edit"): 1, ("bob", "read"): 1}, {("bob", "read"): 1})
    errors = next(row for row in found.rows if row.what == "errors")
    assert errors.stands_out and [(one.tool, one.agent) for one in errors.owners.named] == [("edit", "ann")]
    assert (
        "The difference in errors is mostly of tool edit by ann (3 against 0), then of tool edit by bob (1 against 0)."
        in found.comparison()
    )
    assert ", mostly of tool edit by ann)" in found.headline()
    assert not any(row.owners.named for row in found.rows if row.what not in ("errors", "retries"))


def test_no_owner_is_named_where_none_has_most(tmp_path: Path) -> None:
    spread = {(agent, tool): 1 for agent, tool in zip("abcd", ("w", "x", "y", "z"), strict=True)}
    found = failing(tmp_path, spread, dict.fromkeys(spread, 0))
    errors = next(row for row in found.rows if row.what == "errors")
    assert errors.stands_out and not errors.owners.named and not any("mostly" in line for line in found.comparison())
    assert "The difference in errors is spread over tools and agents." in found.comparison()


def test_the_only_tool_of_a_log_is_named(tmp_path: Path) -> None:
    """What is outside of it could fail as well."""
    found = failing(tmp_path, {("a", "sh"): 3}, {("a", "sh"): 0})
    errors = next(row for row in found.rows if row.what == "errors")
    assert [(one.tool, one.agent) for one in errors.owners.named] == [("sh", "a")]
    assert errors.failed == pytest.approx(3)


def test_whether_an_agent_took_part_is_compared(tmp_path: Path) -> None:
    """Where a verifier acted or not, only its number of actions was compared, which says it less directly."""
    lines = []
    for i in range(2 * TASKS):
        acts = (0, 1, 3)[i % 3] if i % 2 else 0
        events = [{"id": f"e{k}", "type": "message", "agent": "check"} for k in range(acts)]
        for agent in ("ann", *(["once"] if i % 2 and i % 4 == 1 else []), *(["half"] if i // 2 < 8 else [])):
            events.append({"id": agent, "type": "message", "agent": agent})
        lines.append({"trace_id": f"{i}", "task_id": f"q{i // 2}", "events": events, "edges": [],
                      "rewards": {"team": float(i % 2)}})  # fmt: skip
    for task in (1, 3):  # `once` is then in 8 traces
        lines[2 * task + 1]["events"].append({"id": "once", "type": "message", "agent": "once"})
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = {row.what: row for row in outcome_differences(credit.read(tmp_path / "log.jsonl")).rows}
    check = found["traces with check"]
    assert (check.failed, check.succeeded, check.tasks, check.stands_out) == (0, pytest.approx(2 / 3), 8, True)
    assert found["actions of check"].succeeded == pytest.approx(4 / 3)
    assert "traces with once" in found and "actions of once" not in found  # the same number
    assert "traces with ann" not in found and "traces with half" not in found  # of a task, all have it or none


def test_a_number_that_says_what_another_one_says_counts_once(tmp_path: Path) -> None:
    """`agents` and `traces with bob` were two of the numbers that Holm's method corrects for, and two that differ."""
    found = failing(tmp_path, {("ann", "edit"): 1, ("bob", "edit"): 1}, {("ann", "edit"): 1})
    rows = {row.what: row for row in found.rows}
    assert rows["traces with bob"].same_as == "agents" and rows["agents"].same_as == ""
    once = [row for row in found.rows if not row.same_as]
    assert rows["traces with bob"].p == rows["agents"].p == rows["agents"].least * sum(row.p == row.p for row in once)
    stars = sum(row.stands_out for row in once)
    said = f"{stars} of {len(once)} numbers that were looked at differ beyond chance. A difference need not"
    assert sum(row.stands_out for row in found.rows) > stars and found.comparison()[1].startswith(said)
    assert found.same()[0].startswith("Same information as errors: traces with ")
    assert found.as_json()["same"] == found.same() and not {*found.same()} & {*found.comparison()}
    (told,) = re.findall("More in failed ones: (.*)[.]$", found.headline())
    assert told == "errors (2 against 1, mostly of tool edit by bob); events (5 against 3.08)"
    tail = dataclasses.replace(rows["events"], failed=5.0, succeeded=9.0, same_as="")  # of one very long success
    assert "events (but 5 against 9)" in dataclasses.replace(found, rows=(tail,)).headline()
    folded = {row["what"]: row["folded"] for row in found.as_json()["rows"]}
    assert folded["agents"] and folded["traces with bob"] and not folded["errors"]
    assert found.of_units("agent").startswith("Failed and succeeded traces differ beyond chance in traces with bob (1 ")
    assert not found.of_units("turn")


def mixed(folder: Path, *tasks: str) -> OutcomeDifferences:
    """Tasks by the outcomes of their traces, failed ones with another event."""
    lines = []
    for task, outcomes in enumerate(tasks):
        for i, outcome in enumerate(outcomes):
            events = [{"id": f"e{k}", "type": "message", "agent": "a"} for k in range(1 + (outcome == "0"))]
            lines.append({"trace_id": f"{task}.{i}", "task_id": f"q{task}", "events": events, "edges": [],
                          "rewards": {"team": int(outcome)}})  # fmt: skip
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return outcome_differences(credit.read(log))


def test_how_many_traces_were_compared_is_said_where_some_are_in_no_task_with_both(tmp_path: Path) -> None:
    """Means of 20 against 20 traces stood below "55 traces failed, 45 succeeded"."""
    some = mixed(tmp_path, *["0011"] * 10, *"0" * 35, *"1" * 25)
    said = "20 failed and 20 succeeded traces were compared."
    assert (some.failed, some.succeeded, some.compared, some.as_json()["compared"]) == (55, 45, (20, 20), (20, 20))
    assert some.comparison()[0].endswith(said) and some.headline().endswith(said) and said in some.as_json()["headline"]
    between = mixed(tmp_path, "0011", *"0" * 12, *"1" * 10)
    assert not between.within and between.compared == (14, 12)
    told = "Compared between 23 tasks, one number each, two of those with both: failed ones may have been harder."
    assert between.comparison()[0].startswith(told)
    few = mixed(tmp_path, "0011")  # the first words on a page said nothing of what differs
    assert few.comparison()[1].startswith("Too few for a test") and few.headline().endswith(few.comparison()[1])
    every = mixed(tmp_path, *["0011"] * 10)
    assert every.compared == (20, 20) and not any(
        "were compared" in text for text in (*every.comparison(), every.headline())
    )


def test_one_task_and_one_number_are_said_of_one(tmp_path: Path) -> None:
    """`Compared within 1 task that have both`, `None of the 1 number`."""
    said = " ".join(mixed(tmp_path, "0001111").comparison())
    assert (
        "Compared within 1 task with both, 12 pairs of a failed and a succeeded trace." in said
        and "1 number that" not in said
    )
    row = Difference("events", 1.0, 1.0, 0.5, 0.4, 0.6, 0.9, 0.001, 9)
    found = OutcomeDifferences(5, 5, 1.0, math.nan, True, 5, (row,)).comparison()
    assert "The one number that was looked at does not differ beyond chance within the 5 tasks with both." in found


def test_one_number_in_several_rows_is_said_to_be_one_and_means_order_equal_rows(tmp_path: Path) -> None:
    """ "1 of 1 number that were looked at differ" stood above 15 rows with a star, of which `events` came first."""
    lines = []
    for i in range(20):
        events = [{"id": f"m{k}", "type": "message", "agent": "a"} for k in range(5 - i % 2)]
        events += [{"id": "c", "type": "tool_call", "agent": "a", "tool": "sh", "status": "error"}] * (1 - i % 2)
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i}", "events": events, "edges": [],
                      "rewards": {"team": i % 2}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    assert [row.what for row in found.rows] == ["errors", UNRECOVERED, "tool calls", "calls of sh", "events"]
    assert found.comparison()[1].startswith("1 of 1 number that was looked at differs beyond chance. ")
    assert found.folded()[0][1] == [UNRECOVERED, "tool calls", "calls of sh", "events"] and len(found.folded()) == 1
    assert found.same() == [f"Same information as errors: {UNRECOVERED}; tool calls; calls of sh; events."]


def test_rows_that_may_tell_models_apart_say_so(tmp_path: Path) -> None:
    """Length stood out where one model was long and failed often, and neither a line nor the headline said so."""

    def said(*tasks: str, by: tuple[str, ...] = ("task",)) -> list[str]:
        """Traces of `A` and `a`, which failed, and of `B` and `b`, by model."""
        lines = []
        for task, traces in enumerate(tasks):
            for i, trace in enumerate(traces):
                events = [{"id": f"e{k}", "type": "message", "agent": "a"} for k in range(1 + (trace in "Aa"))]
                model, rewards = ("small", "big")[trace in "AB"], {"team": int(trace in "Bb")}
                lines.append({"trace_id": f"{task}.{i}", "task_id": f"q{task}", "events": events, "edges": [],
                              "model": model, "rewards": rewards})  # fmt: skip
        log = tmp_path / "log.jsonl"
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = outcome_differences(credit.read(log, group_by=by))
        lines = [line for line in found.comparison() if "by model" in line]
        assert ("by model" in found.headline()) == bool(lines) and all(line in found.headline() for line in lines)
        return lines

    why, counts = "the model may be why the rest differs", "big 80 % (40 of 50 traces), small 20 % (10 of 50 traces)"
    apart = [f"Failed by model, mean over 10 tasks with both: {counts}; beyond chance."]
    assert said(*["AAAABabbbb"] * 10) == apart  # each is relative to its model, so that the model is not why
    assert said(*["ABab"] * 10) == []  # they fail alike
    assert said(*["AAAAB", "abbbb"] * 10) == []  # a task has one model, and is compared with itself
    alone = f"{apart[0][:-1]}; 20 other traces not among these."
    assert said(*["AAAABabbbb"] * 10, *["AAAAB"] * 4) == [alone]
    shares = "big 53 % (40 of 55 traces), small 13 % (10 of 55 traces)"  # 4 and 1 of 5 in 10 tasks, and none in 5
    ends_alike = [f"Failed by model, mean over 15 tasks with both: {shares}; beyond chance."]
    assert said(*["AAAABabbbb"] * 10, *["Bb"] * 5) == ends_alike  # tasks without failures were left out of rates
    assert said(*["AAAABabbbb"] * 10, *["Bb"] * 5, by=("task", "model")) == ends_alike
    between = "Failed by model, mean over traces: big 80 % (8 of 10 traces), small 20 % (2 of 10 traces)"
    assert said(*["A"] * 8, *["B"] * 2, *["a"] * 2, *["b"] * 8) == [f"{between}; undecided; {why}."]
    assert said(*["AAAABabbbb"] * 10, by=("task", "model")) == apart


@pytest.mark.parametrize("fallback", [False, True])
def test_a_model_that_one_agent_has_in_failed_traces_is_told(tmp_path: Path, fallback: bool) -> None:
    """The traces' own model, the lead's, was one, and all that failed did so with another coder. One that answered in
    its place once, at a limit of rates, made a third setup of both, `small + spare`."""
    lines = []
    for i in range(40):
        of = {"lead": "big", "coder": ("big", "small")[i % 2], "critic": ("big", "small")[i // 2 % 2]}
        events = [{"id": name, "type": "message", "agent": name, "model": model} for name, model in of.items()]
        events += [{"id": "x", "type": "message", "agent": "lead"}] * (i % 2)
        spare = {"id": "y", "type": "message", "agent": "coder", "model": "spare"}
        events += [spare] * (fallback and i % 3 == 0)
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 4}", "events": events, "edges": [], "model": "big",
                      "rewards": {"team": float(i % 2 == 0 or i == 1)}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    assert found.by_model.models == () and [one[:5] for one in dict(found.by_model.agents)["coder"]] == [
        ("big", 0, 20, 0.0, 10), ("small", 19, 20, 0.95, 10)
    ]  # fmt: skip
    both, why = "mean over 10 tasks with both", "beyond chance; the model may be why the rest differs"
    said = f"Failed by model of coder, {both}: big 0 % (0 of 20 traces), small 95 % (19 of 20 traces); {why}."
    told = [line for line in found.comparison() if "by model" in line]
    assert told[0] == said and told[1].startswith(
        "Failed by model of critic, mean over 10 tasks with both: big 45 % (9 of 20 traces), small 50 % "
    )
    assert len(told) == 2 and said in found.headline() and "critic" not in found.headline()


def test_numbers_of_two_traces_are_not_one_fact(tmp_path: Path) -> None:
    """Of a pair every number is a function of every other, and what each was would be hidden."""
    lines = []
    for i in range(2):
        events = [{"id": f"e{k}", "type": "message", "agent": "a", "tokens": 7} for k in range(2 + i)]
        lines.append({"trace_id": f"t{i}", "task_id": "q", "events": events, "edges": [], "rewards": {"team": i}})
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    assert {row.what for row, _ in found.folded()} == {"events", "tokens generated"} == {row.what for row in found.rows}


def test_models_are_told_where_nothing_else_tells_failed_from_succeeded_traces(tmp_path: Path) -> None:
    """ "... the same length, agents, errors, tools and ends: nothing to compare" stood there without the models."""
    lines = []
    for i in range(40):
        event = {"id": "e", "type": "message", "agent": "a"}
        failed = i % 10 < (4 if i % 4 > 1 else 2)
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 8}", "events": [event], "edges": [],
                      "model": ("small", "big")[i % 4 > 1], "rewards": {"team": 1 - failed}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    assert not found.rows and found.comparison()[0].endswith("tools and ends: only models or systems differ.")
    assert (
        found.comparison()[1].startswith("Failed by model, mean over 5 tasks with both: ")
        and found.comparison()[1] in found.headline()
    )


def test_what_differs_between_tasks_alone_is_told_as_such(tmp_path: Path) -> None:
    """An error in all runs of 8 tasks, 52 of 64 failed, and in none of 8 was "the same errors: nothing to compare"."""
    lines = []
    for task in range(16):
        for k in range(8):
            events = [{"id": "m", "type": "message", "agent": "a", "status": "error" if task < 8 else "ok"}]
            won = float(k >= (6 + task % 2 if task < 8 else 1 + task % 2))
            lines.append({"trace_id": f"t{task}-{k}", "task_id": f"q{task}", "events": events, "edges": [],
                          "rewards": {"team": won}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    alike = "Within tasks, failed and succeeded traces have the same length, agents, errors, tools and ends"
    tasks = "Within no task, but over all tasks, failed and succeeded traces differ in errors (0.812 against 0.188)"
    assert found.comparison() == [
        f"{alike}: nothing to compare there.",
        f"{tasks}: harder tasks, or chance, may be why.",
    ]
    assert all(line in found.headline() for line in found.comparison()) and found.between == (
        ("errors", 0.8125, 0.1875),
    )


def test_no_star_stands_beside_an_interval_that_holds_an_equal_chance() -> None:
    """ "24 to 53 %" had a star, which was of another test than the interval."""
    row = Difference("tokens generated", 292, 326, 0.385, 0.24, 0.53, 0.02, 0.001, 12)
    assert not row.stands_out and dataclasses.replace(row, high=0.49).stands_out
    assert dataclasses.replace(row, low=float("nan"), high=float("nan")).stands_out


def test_how_often_traces_with_an_agent_succeeded_is_said(tmp_path: Path) -> None:
    """Which agent matters was asked first, and only tests of numbers of actions answered."""
    lines = []
    for i in range(20):
        agents = ["ann", *(["rare"] if i < 5 else [])]
        events = [{"id": name, "type": "message", "agent": name} for name in agents]
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 2}", "events": events, "edges": [],
                      "rewards": {"team": float(i >= 4)}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    assert found.agents == (("rare", 1, 5, 15, 15),)  # ann is in every trace
    assert (
        "Traces that succeeded: with rare 1 of 5, without it 15 of 15 (undecided) "
        "(an agent may be called where a task is hard)." in found.comparison()
    )


@pytest.mark.parametrize("seed", range(2))
def test_an_agent_that_does_worse_within_tasks_is_not_said_to_be_called_where_they_are_hard(
    tmp_path: Path, seed: int
) -> None:
    """Of a desk that got another one's tasks it was said that it may be called where a task is hard."""
    random = np.random.default_rng(seed)
    for harm in (0.6, 0.0):
        lines = []
        for i in range(160):
            hard = i // 8 % 2 == 0
            wrong = random.random() < (0.5 if harm or not hard else 0.95)
            won = random.random() < ((0.8 - harm * wrong) if harm else 0.2 if hard else 0.9)
            events = [
                {"id": name, "type": "message", "agent": name} for name in ("desk", "wrong" if wrong else "right")
            ]
            lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 8}", "events": events, "edges": [],
                          "rewards": {"team": float(won)}})  # fmt: skip
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
        told = next(line for line in found.comparison() if line.startswith("Traces that succeeded"))
        assert {one[0] for one in found.agents} == {"right", "wrong"}
        assert ("(an agent may be called where a task is hard)" in told) == (not harm)
        assert found.agents_within.keys() == ({"right", "wrong"} if harm else set())
        if harm:
            one, other, tasks = found.agents_within["wrong"]
            assert (
                one < other - 0.4
                and tasks >= 18
                and told.endswith(
                    "chance). What went wrong before may be why. These tests are corrected for the 2 agents."
                )
            )
            within = f" ({one:.0%} against {other:.0%} within {tasks} tasks with both, beyond chance)"
            assert within.replace("%", " %") in told


def with_narrator(random: np.random.Generator, effect: float, tasks: int = 24, runs: int = 6) -> credit.Traces:
    """Whether it acts is a coin; tasks are hard or easy, and it adds `effect` to the chance of each."""
    columns: dict[str, list[Any]] = {name: [] for name in ("group", "trace", "agent", "reward", "tokens")}
    for task in range(tasks):
        easy = random.uniform(0.2, 0.8 - effect)
        for k in range(runs):
            narrated = random.random() < 0.5
            won = float(random.random() < easy + effect * narrated)
            for agent, tokens in (("lead", 97), *[("narrator", 6)] * narrated):
                of = (f"q{task}", f"t{task}-{k}", agent, won, tokens)
                for name, value in zip(columns, of, strict=True):
                    columns[name].append(value)
    return credit.from_columns(**columns)[2].traces


def test_an_agent_that_does_nothing_has_an_interval_and_its_part_of_what_is_paid() -> None:
    """ "with narrator 54 of 85, without it 46 of 73" said neither whether it helps nor what it costs."""
    traces = with_narrator(np.random.default_rng(1), 0.0)
    found = outcome_differences(traces, paid=agents_paid(traces))
    ((name, won, of, rest, others),) = found.agents
    points, low, high, tasks = found.agents_alike[name]
    assert low < 0 < high and low < points < high and tasks <= 24 and found.paid_in == "tokens generated"
    told = next(line for line in found.comparison() if line.startswith("Traces that succeeded"))
    ends = f"{100 * points:+.0f} percentage points, {100 * low:+.0f} to {100 * high:+.0f}"
    paid = f"{100 * 6 * of / (6 * of + 97 * 144):.1f} % of the tokens generated"
    within = f"undecided within {tasks} tasks with both"
    assert f"narrator {won} of {of}, without it {rest} of {others} ({ends}, {within}; {paid})" in told


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 0.15])
def test_what_an_agent_adds_within_tasks_is_in_its_interval(effect: float) -> None:
    random, held, known = np.random.default_rng(5), 0, 0
    for _ in range(200):
        found = outcome_differences(with_narrator(random, effect))
        for _, low, high, _ in found.agents_alike.values():
            known += 1
            held += low <= effect <= high
    assert known > 100 and held >= 0.9 * known


def test_an_agent_that_restates_the_format_or_the_kill_is_not_named(tmp_path: Path) -> None:
    """ "with tester 59 of 115, without it 0 of 4; with main 30 of 63, without it 29 of 56": formats, and 4 kills."""

    def line(i: int, *agents: str) -> dict[str, Any]:
        events = [{"id": name, "type": "message", "agent": name} for name in agents]
        return {"trace_id": f"t{i}", "task_id": f"q{i // 2}", "events": events, "edges": [],
                "rewards": {"team": float(i % 2)}}  # fmt: skip

    killed = {"metrics": {"ended_in_error": 1.0}}
    lines = [line(i, "lead", *(["tester"] if i % 4 else [])) | ({} if i % 4 else killed) for i in range(20)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    rows = [{"group": f"r{i // 2}", "trace": f"r{i}", "agent": "main", "reward": float(i % 2)} for i in range(20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    traces = credit.read(tmp_path)
    found = outcome_differences(traces)
    assert len({*traces.traces["format"].to_pylist()}) == 2 and found.agents == ()
    assert not {"actions of main", "actions of lead"} & {row.what for row in found.rows}  # one number in each task
    lines[0]["events"] = line(0, "lead", "helper")["events"]
    lines[1]["events"] += line(0, "helper")["events"]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert outcome_differences(credit.read(tmp_path)).agents == (("helper", 1, 2, 9, 18),)
    lines = [line(i, "lead", *(["fixer"] if i % 4 < 2 else [])) | (killed if i % 4 == 0 else {}) for i in range(20)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    # All runs that it ended are runs with it: 5 of 5 stood there, for 5 of 10.
    assert outcome_differences(credit.read(tmp_path)).agents == (("fixer", 5, 10, 5, 10),)
    lost = {"metrics": {"lost_parts": 1}}  # 41 of 70 and 35 of 74 stood there as 75 % against 39 %
    lines = [line | (lost if i < 4 else {}) for i, line in enumerate(lines)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    found = outcome_differences(credit.read(tmp_path))
    assert found.agents == (("fixer", 4, 8, 4, 8),) and found.lacking == (2, 2)
    left = "The log lacks lines of 2 failed and 2 succeeded ones: what follows of counts and agents leaves these out."
    assert left in found.comparison()[0]


def test_a_pair_of_calls_is_of_one_agent(tmp_path: Path) -> None:
    """`Read, then Edit` was of two agents, whichever wrote first."""
    lines = []
    for i in range(20):
        calls = [("a", "read"), ("b", "edit"), ("a", "run" if i % 2 else "stop")]
        events = [
            {"id": f"e{k}", "type": "tool_call", "agent": who, "tool": tool} for k, (who, tool) in enumerate(calls)
        ]
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 2}", "events": events, "edges": [],
                      "rewards": {"team": float(i % 2)}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    names = {row.what for row in outcome_differences(credit.read(tmp_path)).rows}
    assert {"read, then run", "read, then stop"} <= names and not [name for name in names if "edit" in name]


def test_the_larger_difference_comes_first_whatever_number_of_tasks_it_is_of(tmp_path: Path) -> None:
    """A tool of five tasks of ten, which made 75 %, stood behind eight rows of 55 %, out of sight."""
    lines = []
    for i in range(40):
        task, bad = i // 4, i % 2 == 0
        events = [{"id": "m", "type": "message", "agent": "a"}]
        events += [{"id": f"n{k}", "type": "message", "agent": "a"} for k in range((i * 7 + task) % 5)]
        events += [{"id": "c", "type": "tool_call", "agent": "a", "tool": "rm", "action": False}] * (bad and task < 5)
        lines.append({"trace_id": f"t{i}", "task_id": f"q{task}", "events": events, "edges": [],
                      "rewards": {"team": float(not bad)}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = outcome_differences(credit.read(tmp_path / "log.jsonl")).rows
    sizes = [(not row.stands_out, -round(abs(row.chance - 0.5), 9)) for row in rows]
    assert sizes == sorted(sizes) and rows[0].what in ("tool calls", "calls of rm")


@pytest.mark.parametrize("alone", [False, True])
def test_whose_error_decides_is_found_where_all_make_as_many(tmp_path: Path, alone: bool) -> None:
    """Errors of the coder failed 12 of 12 runs beside none of 12 that succeeded, and nothing said so."""
    rng = np.random.default_rng(int(alone))
    lines = []
    for i in range(24):
        others = ["planner"] * int(rng.integers(2)) + ["tester"] * int(rng.integers(2))
        wrong = [*others, "coder" if i % 2 else ("planner", "tester")[i // 2 % 2]]
        events = [{"id": f"{k}{agent}", "type": "tool_call", "agent": agent, "tool": "sh",
                   "status": "error" if k < wrong.count(agent) else "ok"}
                  for agent in ("planner", "coder", "tester") for k in range(3)]  # fmt: skip
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i if alone else i // 4}", "events": events, "edges": [],
                      "rewards": {"team": 1 - i % 2}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    rows = {row.what: row for row in found.rows}
    coder = rows["traces with an error of coder"]
    assert (coder.failed, coder.succeeded, coder.chance, coder.stands_out) == (1, 0, 1, True)
    assert not rows["errors"].stands_out and "traces with an error of planner" in rows
    assert "More in failed ones: traces with an error of coder (100 % against 0 %)." in found.headline()
    assert found.of_units("agent").endswith(" beyond chance in traces with an error of coder (1 against 0).")
    assert found.of_units("tool") == ""


def test_errors_that_no_later_call_mended_are_told_from_those_that_one_did(tmp_path: Path) -> None:
    """A search that never succeeded was in 24 % of failed and 10 % of succeeded traces, of as many errors."""
    lines = []
    for i in range(24):
        # Another call succeeds last in all; the one that failed does only where the trace succeeds.
        steps = [("error", "q")] * (1 + i // 2 % 2) + [("ok", "q" if i % 2 else "p"), ("ok", "r")]
        events = [{"id": f"c{k}", "type": "tool_call", "agent": "a", "tool": "search", "status": status,
                   "content_ref": asked} for k, (status, asked) in enumerate(steps)]  # fmt: skip
        events += [{"id": "m", "type": "message", "agent": "a", "status": "error"}] * (i % 5 == 0)  # of no tool
        events += [{"id": "o", "type": "tool_call", "agent": "b", "tool": "read", "status": "ok"}]
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 4}", "events": events, "edges": [],
                      "rewards": {"team": i % 2}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    (row,) = (row for row in found.rows if row.what == "unrecovered errors")
    assert (row.failed, row.succeeded, row.stands_out, row.same_as) == (1, 0, True, "")
    assert not next(row for row in found.rows if row.what == "errors").stands_out
    said = "More in failed ones: unrecovered errors (1 against 0, mostly of tool search by a)."
    assert said in found.headline()


def test_of_hundreds_of_agents_that_err_ten_are_looked_at_whose_errors_differ_most(tmp_path: Path) -> None:
    """Those that err in every trace, or in hardly any, would take the place of those that could differ."""
    lines = []
    for i in range(24):
        names = [f"always{k}" for k in range(150)] + [f"rare{k}" for k in range(150) if k % 24 == i]
        names += ["coder"] * (i % 2) + [f"half{k:02}" for k in range(12) if (i * 7 + k * k) % 12 < 6]
        # Of many instances of a name, the name is looked at.
        events = [{"id": f"{k}", "type": "tool_call", "agent": name, "tool": "sh", "status": "error"}
                  for k, name in enumerate(names)] + [{"id": "e", "type": "message", "agent": "coder"}]  # fmt: skip
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 4}", "events": events, "edges": [],
                      "rewards": {"team": 1 - i % 2}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    errors = [row for row in found.rows if row.what.startswith(f"{WITH} an error of ")]
    assert len(errors) == 10 and {row.what.split()[-1][:4] for row in errors} == {"code", "half"}
    assert errors[0].what.endswith("coder") and errors[0].stands_out


def drawn_team(
    folder: Path, seed: int, *, tasks: int, each: int, agents: int, decides: float = 0
) -> OutcomeDifferences:
    """Traces of agents that act and err at rates of their own, which fail by a coin of their task.

    Args:
      decides: the part of traces that fail if `a0` errs and not else; another agent errs where it does not.
    """
    rng = np.random.default_rng(seed)
    rates, acts, hard = rng.uniform(0.02, 0.6, agents), rng.choice([1.0, 0.8, 0.3], agents), rng.beta(2, 2, tasks)
    lines = []
    for trace in range(tasks * each):
        errs, there = rng.random(agents) < rates, rng.random(agents) < acts
        failed = rng.random() < hard[trace // each]
        if decides:
            errs[0] = rng.random() < 0.5
            errs[rng.integers(1, agents)] |= not errs[0]
            there[:], failed = True, errs[0] if rng.random() < decides else failed
        events = [{"id": f"{a}.{k}", "type": "tool_call", "agent": f"a{a}", "tool": f"t{a % 7}",
                   "status": "error" if errs[a] and not k else "ok"}
                  for a in np.flatnonzero(there).tolist() for k in range(int(rng.integers(1, 3)))]  # fmt: skip
        events += [{"id": "m", "type": "message", "agent": "boss"}]
        lines.append({"trace_id": f"{trace}", "task_id": f"q{trace // each}", "events": events, "edges": [],
                      "rewards": {"team": float(not failed)}})  # fmt: skip
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return outcome_differences(credit.read(log))


@pytest.mark.slow
@pytest.mark.parametrize("worlds", [20, 600])
def test_outcomes_by_chance_have_a_star_in_no_more_than_the_level(tmp_path: Path, worlds: int) -> None:
    starred, with_errors = [], 0
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 1])
        tasks, agents = (int(np.exp(rng.uniform(*np.log(ends)))) for ends in ((4, 40), (2, 30)))
        each = max(int(rng.integers(1, 7)), -(-24 // tasks))
        found = drawn_team(tmp_path, seed, tasks=tasks, each=each, agents=agents)
        if any(math.isfinite(row.p) for row in found.rows):
            starred.append(any(row.stands_out for row in found.rows))
            with_errors += any(row.what.startswith(f"{WITH} an error of ") for row in found.rows if row.p == row.p)
    assert len(starred) > 0.7 * worlds and with_errors > 0.6 * worlds
    assert np.mean(starred) <= 0.05 + 2 * (0.05 * 0.95 / len(starred)) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("worlds", [16, 200])
def test_an_error_that_decides_is_found(tmp_path: Path, worlds: int) -> None:
    """Alone, within tasks, in teams of 3 to 9, and where a fifth of outcomes are coins."""
    found, of_all = [], []
    for seed in range(worlds):
        tasks, each, decides = ((32, 1, 1.0), (8, 4, 1.0), (48, 1, 0.8), (12, 5, 0.8))[seed % 4]
        drawn = drawn_team(tmp_path, seed, tasks=tasks, each=each, agents=3 + seed % 7, decides=decides)
        stars = [row.what for row in drawn.rows if row.stands_out]
        found.append(f"{WITH} an error of a0" in stars)
        of_all.append("errors" in stars)
    assert np.mean(found) >= 0.9 and np.mean(of_all) <= 0.2, (np.mean(found), np.mean(of_all))


def scored(tmp_path: Path, rows: Iterable[tuple[str, str, float, int]]) -> Path:
    """A log of traces with this task, system, outcome and number of events."""
    log = tmp_path / "log.jsonl"
    lines = []
    for i, (task, system, outcome, length) in enumerate(rows):
        events = [{"id": f"e{k}", "type": "message", "agent": "a"} for k in range(length)]
        lines.append({"trace_id": f"t{i}", "task_id": task, "system": system, "events": events, "edges": [],
                      "rewards": {"team": outcome}})  # fmt: skip
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return log


def test_what_a_better_system_does_more_of_is_not_success(tmp_path: Path) -> None:
    """Simpson: system B succeeded more and was longer, and within each system length said nothing of outcomes.

    "Less in failed ones: events" stood over a folder with both.
    """
    rng = np.random.default_rng(0)
    rows = [(f"q{task}", system, float(rng.random() < chance), int(rng.integers(1, 4)) + more)
            for task in range(30) for system, chance, more in (("A", 0.35, 0), ("B", 0.8, 3))
            for _ in range(4)]  # fmt: skip
    log = scored(tmp_path, rows)
    found = outcome_differences(credit.read(log))
    assert found.apart and [row.what for row in found.rows] == ["events"] and not found.rows[0].stands_out
    assert "only with traces of the same model and system" in found.comparison()[0]
    assert (
        found.comparison()[-1].startswith("Failed by system, mean over 30 tasks with both: ")
        and "may be why" not in found.comparison()[-1]
    )
    above: dict[str, list[float]] = collections.defaultdict(list)  # by hand, over pairs of one task and system
    for task, system in {row[:2] for row in rows}:
        of = [row for row in rows if row[:2] == (task, system)]
        pairs = [(bad[3], good[3]) for bad in of for good in of if bad[2] < good[2]]
        above[task] += [float(np.mean([(bad > good) + (bad == good) / 2 for bad, good in pairs]))] if pairs else []
    shares = [np.mean(of) for of in above.values() if of]
    assert found.rows[0].chance == pytest.approx(np.mean(shares)) and found.tasks == len(shares)
    mixed = outcome_differences(credit.read(log, group_by="task"))
    assert not mixed.apart and not mixed.rows[0].stands_out, "each is relative to its system"
    beside = (
        "with both, {} pairs of a failed and a succeeded trace, each relative to traces of its own model and system."
    )
    assert mixed.mixed and beside.format(mixed.pairs) in mixed.comparison()[0]
    assert found.pairs < found.wider[0] == mixed.pairs and found.wider[1] == mixed.tasks
    wider = "`--group-by task` compares traces of several models and systems, too: {} pairs in {} tasks."
    assert found.hints() == [wider.format(mixed.pairs, mixed.tasks)] and not mixed.hints()


def test_of_two_sides_only_traces_of_one_are_compared(tmp_path: Path) -> None:
    """The new week failed more and its log has more events: more events stood first of what failed traces have."""
    rng = np.random.default_rng(3)
    rows = [(f"q{task}", "", float(rng.random() < (0.7, 0.3)[week]), int(rng.integers(1, 4)) + 4 * week)
            for task in range(30) for week in (0, 1) for _ in range(4)]  # fmt: skip
    traces = credit.read(scored(tmp_path, rows))
    side = np.array([i // 4 % 2 for i in range(len(rows))])
    mixed, found = (outcome_differences(traces, side=of) for of in (None, side))
    assert mixed.rows[0].stands_out and not found.rows[0].stands_out and not found.apart
    assert "only with traces of the same side." in found.comparison()[0] and "side" not in mixed.comparison()[0]
    said = " ".join(found.opening())  # a page's first screen, where what went wrong most is of traces of both sides
    assert "Within a side, the one number" in said
    assert "of tasks that have both on one side were compared." in found.comparison()[0]
    assert "side" not in mixed.headline() and "than in succeeded ones of their side" not in said
    more = dataclasses.replace(mixed, sided=True).headline()
    assert "More in failed ones than in succeeded ones of their side: events" in more
    above: dict[str, list[float]] = collections.defaultdict(list)  # by hand, over pairs of one task and week
    for number in range(0, len(rows), 4):
        of = rows[number : number + 4]
        pairs = [(bad[3], good[3]) for bad in of for good in of if bad[2] < good[2]]
        above[of[0][0]] += [float(np.mean([(bad > good) + (bad == good) / 2 for bad, good in pairs]))] if pairs else []
    shares = [np.mean(each) for each in above.values() if each]
    assert found.rows[0].chance == pytest.approx(np.mean(shares)) and found.tasks == len(shares)


@pytest.mark.parametrize("runs", [1, 2])
def test_a_task_of_one_side_is_not_held_against_one_of_the_other(tmp_path: Path, runs: int) -> None:
    """One run of a task and version each, the usual design: the wordier, worse version made words a sign of failure."""
    rng = np.random.default_rng(runs)
    rows = [(f"q{task}", "", float(rng.random() < (0.8, 0.3)[new]), int(rng.integers(1, 4)) + 4 * new)
            for task in range(12) for new in (0, 1) for _ in range(runs)]  # fmt: skip
    traces = credit.read(scored(tmp_path, rows))
    side = np.array([new for _ in range(12) for new in (0, 1) for _ in range(runs)])
    rows = [(*row, int(new)) for row, new in zip(rows, side, strict=True)]
    both = {
        of for of in {(row[0], row[4]) for row in rows} if len({row[2] for row in rows if (row[0], row[4]) == of}) > 1
    }
    assert outcome_differences(traces).rows[0].stands_out
    found = outcome_differences(traces, side=side)
    assert not any(row.stands_out for row in found.rows) and found.tasks == len({task for task, _ in both})
    assert found.compared == tuple(
        sum((row[0], row[4]) in both and row[2] == outcome for row in rows) for outcome in (0, 1)
    )
    assert bool(both) == (runs > 1) and ("only with traces of the same side" in found.comparison()[0]) == bool(both)
    assert ("No task has failed and succeeded traces of one side" in found.headline()) == (not both)


@pytest.mark.parametrize(
    ("bare", "said"),
    [(0, ""), (1, " 1 more has none: how it did is not known."), (5, " 5 more have none: how these did is not known.")],
)
def test_the_first_sentence_counts_what_has_no_outcome(tmp_path: Path, bare: int, said: str) -> None:
    """ "4 of 8 traces with an outcome failed." left a reader to think that these were all, and its rate that of all."""
    lines = [
        {"trace_id": f"t{i}", "task_id": f"q{i // 2}", "events": [{"id": "a", "type": "message", "agent": "x"}],
         "edges": [], "rewards": {"team": float(i % 2)} if i < 8 else {}}
        for i in range(8 + bare)
    ]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path / "log.jsonl"))
    assert found.opening()[0] == f"4 of 8 traces with an outcome failed.{said}"


@pytest.mark.parametrize(
    ("models", "unlike"),
    [
        ([("a", 4, 7), ("b", 3, 6)], False),
        ([("a", 9, 10), ("b", 3, 10)], True),
        ([("a", 5, 5), ("b", 5, 5)], False),
        ([("a", 30, 60), ("b", 25, 60), ("c", 35, 60)], False),
        ([("a", 30, 60), ("b", 10, 60), ("c", 35, 60)], True),
    ],
)
def test_a_model_may_be_why_only_where_failures_differ_by_model(
    models: list[tuple[str, int, int]], unlike: bool, tmp_path: Path
) -> None:
    """4 of 7 against 3 of 6 was said to be why the rest may differ."""
    rows = [(f"{name}{i}", name, float(i >= bad), 1 + (i < bad)) for name, bad, of in models for i in range(of)]
    found = outcome_differences(credit.read(scored(tmp_path, rows)))
    said = [line for line in found.comparison() if "by system" in line]
    assert len(said) == (len({bad / of for _, bad, of in models}) > 1)
    assert any("; the system may be why the rest differs" in line for line in said) == unlike


def test_each_task_weighs_alike_for_all_systems(tmp_path: Path) -> None:
    """Simpson: "v1 33 %, v2 66 %" of two systems that fail alike in each task, of which v2 ran the hard ones more."""

    def log(*runs: tuple[str, str, int, int]) -> OutcomeDifferences:
        """Of each task and system: how many runs failed, of how many."""
        rows = [(task, name, float(i >= bad), 1) for task, name, bad, of in runs for i in range(of)]
        return outcome_differences(credit.read(scored(tmp_path, rows)))

    alike = [run for i in range(12) for run in ((f"easy{i}", "v1", 2, 8), (f"easy{i}", "v2", 1, 4),
                                                (f"hard{i}", "v1", 3, 4), (f"hard{i}", "v2", 6, 8))]  # fmt: skip
    assert log(*alike).by_model.systems == ()
    found = log(*alike, ("more", "v1", 1, 4), ("more", "v2", 3, 4))
    said = "Failed by system, mean over 25 tasks with both: v1 49 % (61 of 148 traces), v2 51 % (87 of 148 traces)."
    assert said in found.comparison() and said in found.as_json()["headline"] and said in found.opening()[1]
    assert all(one.p == 1 or one.p > 0.05 for one in found.by_model.systems)
    worse = [(f"hard{i}", "v3", 4, 4) for i in range(12)]  # in half the tasks: compared there alone
    by = {one.name: one[1:5] for one in log(*alike, *worse).by_model.systems}
    assert by == {"v1": (36, 48, 0.75, 12), "v2": (72, 96, 0.75, 12), "v3": (48, 48, 1.0, 12)}
    lines = log(*alike, *worse[:5], ("more", "v1", 1, 4), ("more", "v2", 3, 4)).comparison()
    assert any("v2 51 % (87 of 148 traces), v3 in too few of these." in line for line in lines)


def test_a_system_whose_grades_are_all_better_is_said_to_be(tmp_path: Path) -> None:
    """Half of each group is worse than the rest of it: the report said 25 % of the bad system and 50 % of the good."""
    rng = np.random.default_rng(2)
    rows = [(f"q{task}", system, round(low + 0.1 * int(rng.integers(0, 3)), 1), 1 + int(rng.integers(0, 3)))
            for task in range(20) for system, low in (("bad", 0.1), ("good", 0.6)) for _ in range(4)]  # fmt: skip
    found = outcome_differences(credit.read(scored(tmp_path, rows)))
    assert found.of_task and found.apart and {one.name: one[1:3] for one in found.by_model.systems} == {
        "bad": (80, 80), "good": (0, 80)
    }  # fmt: skip
    said = "Worse within their task by system, mean over 20 tasks with both: "
    said += "bad 100 % (80 of 80 traces), good 0 % (0 of 80 traces)."
    assert said in found.headline() and said in found.comparison()


def test_graded_outcomes_are_cut_in_each_task(tmp_path: Path) -> None:
    """In each task the worse runs were longer. One cut for all, at the median, left out 18 of 20 tasks."""
    rng = np.random.default_rng(1)
    rows = []
    for task in range(20):
        for run in range(4):
            length = int(rng.integers(1, 3)) + 2 * (run < 2)
            rows.append((f"q{task}", "", 10.0 * task + 2 - (run < 2) + rng.random() / 2, length))
    found = outcome_differences(credit.read(scored(tmp_path, [*rows, *[("same", "", 5.0, 9)] * 4])))
    assert found.of_task and found.within and found.tasks == 20 and (found.failed, found.succeeded) == (40, 40)
    assert math.isnan(found.cut) and math.isnan(found.median) and found.rows[0].stands_out
    assert found.rows[0].chance == pytest.approx(1.0, abs=0.1)
    assert found.headline().startswith(
        "40 of 80 traces did worse than others of their task. More in worse ones: events ("
    )
    # What a person calls a success is one cut for all.
    told = outcome_differences(credit.read(tmp_path / "log.jsonl"), success_at=100.0)
    assert not told.of_task and told.cut == 100.0 and (told.failed, told.succeeded) == (44, 40)
    assert (told.failed, told.within) == (44, False)


@pytest.mark.parametrize("worlds", [5, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("runs", [1, 2])
def test_what_a_model_has_more_of_is_no_sign_of_failure(worlds: int, runs: int) -> None:
    """Two versions and models of 40 tasks; one model fails more and is longer, whatever the outcome.

    With one run of each no group has both kinds. Traces of both models were compared as they are, and 72 % of such
    worlds had a star for length. Where models are alike, and failed traces longer, that is found as often as before.
    """
    starred, found, mixed = [], [], []
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        of = np.array([(q, v, m) for q in range(40) for v in (0, 1) for m in (0, 1) for _ in range(runs)])
        hard, size = rng.normal(size=40)[of[:, 0]], rng.normal(6, 0.7, 40)[of[:, 0]]
        for gap, effect, stars in ((1, 0, starred), (0, 0.8, found)):
            failed = rng.random(len(of)) < ndtr(hard + gap * (of[:, 2] - 0.5))
            length = size + gap * of[:, 2] + effect * failed + rng.normal(0, 0.6, len(of))
            records = []
            for i, (row, number, bad) in enumerate(zip(of.tolist(), np.exp(length), failed, strict=True)):
                record = TraceRecord(
                    f"t{i}", f"q{row[0]}", "log.jsonl", model=f"m{row[2]}", rewards={"team": 1.0 - bad}
                )
                record.instances["a"] = Agent()
                record.event("e", EventType.MESSAGE, "a", action=True, tokens=int(1 + number))
                records.append(record)
            told = outcome_differences(assemble(records), side=of[:, 1])
            (row_of,) = told.rows
            stars.append(row_of.stands_out)
            mixed.append(told.mixed)
    assert all(mixed) if runs == 1 else not any(mixed)
    assert np.mean(starred) <= 0.05 + 2 * (0.05 * 0.95 / worlds) ** 0.5 and np.mean(found) > 0.8, (starred, found)


def test_what_rises_with_the_number_of_events_is_told_behind_it(tmp_path: Path) -> None:
    """Of a team whose failed runs have more steps, tokens, seconds, calls and actions of each agent had a star each."""
    random, lines = np.random.default_rng(8), []
    for number in range(96):
        won, late = float(random.random() < 0.5), random.random() < 0.5
        events: list[dict[str, Any]] = []
        for turn in range(int(random.integers(3, 7)) * (1 if won else 2)):
            agent, time = ("a", "b")[turn % 2], float(turn + random.random() / 4)
            said = {"type": "message", "agent": agent, "t": time, "tokens": int(random.integers(80, 120))}
            events += [said | {"id": f"m{turn}"}]
        if late or not won:
            events += [{"id": "z", "type": "message", "agent": "c", "t": float(len(events)), "tokens": 1}]
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // 8}", "events": events, "edges": [],
                      "rewards": {"team": won}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path))
    starred = {row.what for row in found.rows if row.stands_out}
    assert {"events", "tokens generated", "actions of a", "actions of b", "traces with c"} <= starred
    assert {row.what for row, _ in found.folded() if row.stands_out} == {"events", "traces with c"}, "not of length"
    (mostly,) = (line for line in found.same() if line.startswith("Mostly the same as events: "))
    assert {*mostly.removeprefix("Mostly the same as events: ").rstrip(".").split("; ")} >= {
        "tokens generated", "actions of a", "actions of b"}  # fmt: skip
    assert "tokens generated (" not in found.headline() and "events (" in found.headline()
    folded = {row["what"]: row["folded"] for row in found.as_json()["rows"]}
    assert folded["tokens generated"] and not folded["events"]


def test_what_follows_a_number_with_a_star_has_no_row_without_one(tmp_path: Path) -> None:
    """Failed runs were longer: seconds had a star, and five rows of counts that rise with them had none behind it."""
    random, lines = np.random.default_rng(3), []
    for number in range(60):
        won, size = float(number % 2), int(random.integers(4, 12))
        times = np.arange(size) * (1.0 if won else 1.4)
        events = [{"id": f"m{i}", "type": "message", "agent": "ab"[i % 2], "t": time} for i, time in enumerate(times)]
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number}", "events": events, "edges": [],
                      "rewards": {"team": won}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome_differences(credit.read(tmp_path))
    stars = {row.what for row in found.rows if row.stands_out}
    assert "wall clock in seconds" in stars and "events" not in stars
    assert "events" not in {row.what for row, _ in found.folded()}
    (mostly,) = (line for line in found.same() if line.startswith("Mostly the same as wall clock in seconds: "))
    assert "events" in mostly
