"""A page and the terminal's summary begin with the same lines, at most six."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import credit
from credit.cli import cli
from credit.cli.shared.answers import print_facts
from credit.main_findings import MOST
from credit.metrics.event_costs import read_prices
from credit.page.findings import Findings
from credit.page.html import page
from credit.page.overview import overview
from credit.sides.chosen_sides import Sides

WON = {("v1", "home"): 1, ("v2", "home"): 3, ("v1", "travel"): 3, ("v2", "travel"): 1}
"""How many of four runs of a task succeed."""


def run(number: int, task: int, system: str, place: int) -> dict[str, Any]:
    """A run whose agent loops where it fails, and whose checker passes nearly all; of v2 at twice the tokens."""
    kind = ("home", "travel")[task % 2]
    good = place < WON[system, kind]
    steps = [("lead", "message", None, 40 + task)]
    steps += [("scout", "tool_call", "look", 10)] * (1 if good else 4)
    steps += [("booker", "tool_call", "book", 5)] * (1 + (not good and task % 3 == 0))
    events = []
    for agent, type_, tool, tokens in steps:
        more = {"tool": tool, "content_ref": f"{number}-{tool}"} if tool else {}
        times = 1 + (system == "v2")
        events.append({"id": f"e{len(events)}", "type": type_, "agent": agent, "t": len(events), "model": "m"} | more)
        events[-1] |= {"tokens": times * tokens, "input_tokens": times * 10}
        if tool:
            status = "error" if tool == "book" and not good and task % 3 == 0 else "ok"
            result = {"id": f"e{len(events)}", "type": "tool_result", "agent": agent, "tool": tool, "status": status}
            events.append(result | {"t": len(events), "action": False})
    rewards = {"team": float(good), "checker": 1.0 - (not good and number % 16 == 3)}
    return {"trace_id": f"t{number}", "task_id": f"q{task}", "task_kind": kind, "system": system, "rewards": rewards,
            "events": events, "edges": []}  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    of = [(task, system, place) for task in range(32) for system in ("v1", "v2") for place in range(4)]
    lines = (json.dumps(run(number, *one)) + "\n" for number, one in enumerate(of))
    (path := tmp_path / "log.jsonl").write_text("".join(lines))
    (tmp_path / "prices.csv").write_text("model,input,output\nm,1,4\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("sides", [False, True])
def test_the_page_and_the_summary_begin_with_the_same_lines(log: Path, sides: bool) -> None:
    """Of a team better at home, worse in travel and twice as dear, with a checker that passes all and an agent that
    loops, the page told the kinds, the checker and the loops in its last paragraphs, the summary others first."""
    prices = log.with_name("prices.csv")
    call = ["summary", str(log), "--prices", str(prices), *["--sides", "system"] * sides]
    told = json.loads(CliRunner().invoke(cli, [*call, "--json"], catch_exceptions=False).stdout)["findings"]
    traces, chosen = Sides.joined("system" if sides else None, credit.read(log))
    found = Findings.of(traces, {}, prices=read_prices(prices), sides=chosen)
    shown = overview(found)["findings"]
    assert shown == told and len(told) <= MOST
    by = {one["name"]: one["told"] for one in told}
    assert [*by] == ["What failed", "What changed from v1 to v2", "What went wrong most", "What else went wrong",
                     "What a verdict is worth", "What it costs"]  # fmt: skip
    assert by["What failed"] == (
        "128 of 256 traces with an outcome failed, 50 % (95 % interval 44 to 56 %). "
        "v1 64 of 128 (50 %), v2 64 of 128 (50 %). Failed by kind of task: "
        "home 64 of 128 (50 %), travel 64 of 128 (50 %)."  # by side in the next line
    )
    assert by["What changed from v1 to v2"] == (
        "v2 is better for home (success 0.25 to 0.75) and worse for travel (success 0.75 to 0.25). Success over all "
        "tasks: no change shown (0.5 to 0.5; a change of 0.26 would be). "
        "v2 takes 2 times the money (mostly of lead) in the typical task."
    )
    assert by["What went wrong most"].startswith("Loops of look by scout in 128 of 128 failed traces and 0 of 128")
    assert by["What a verdict is worth"].startswith(
        "checker says little: it passes 112 of 128 failed traces (88 %) and 128 of 128 succeeded ones "
        "(100 %; it rejects 0), a difference of 12 percentage points (95 % interval "
    )
    dearest, failed, repeated, how = by["What it costs"].removesuffix(".").split(". ")
    assert dearest.startswith("59 % of the money at the given prices (") and ") went to lead, because of " in dearest
    assert how.startswith("A token of it costs as much as one of the others (")
    assert failed.endswith("went into failed traces")
    assert "went into calls that repeat a failed call or a loop" in repeated
    printed = CliRunner().invoke(cli, call, catch_exceptions=False).stdout.splitlines()
    where = [[f"See event {one['event']} of trace {one['trace']}."] if one["trace"] else [] for one in told]
    assert printed[1 : printed.index("")] == [
        line
        for one, at in zip(told, where, strict=True)
        for line in (f"{one['name']}:", *(f"  {fact}" for fact in (*one["lines"], *at)))
    ]
    html = page(found)[0].replace("&#x27;", "'")
    places = [html.index(f"<b>{one['name']}:</b>") for one in told]
    assert all(line.removesuffix(".") in html for one in told for line in (*one["lines"], *one["more"]))
    assert places == sorted(places)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_head_has_a_fact_a_line_and_a_terminal_breaks_it_at_its_width(terminal: bool) -> None:
    """It was paragraphs of up to 100 words, broken by the terminal in the middle of words."""
    told = io.StringIO()
    console = Console(file=told, width=60, force_terminal=terminal, color_system=None)
    facts = ["75 of 255 traces failed.", f"See event {'long ' * 20}here."]
    print_facts(console, "In short", [("What failed", facts), ("What was lost", ["Little."])])
    title, name, first, *rest = told.getvalue().splitlines()
    assert (title, name, first) == ("In short", "What failed:", "  75 of 255 traces failed.")
    *second, other, last, empty = rest
    assert [other, last, empty] == ["What was lost:", "  Little.", ""]
    assert len(second) == (3 if terminal else 1) and " ".join(" ".join(second).split()) == facts[1]
    if terminal:
        assert all(len(line) <= 60 for line in second)
        assert [len(line) - len(line.lstrip()) for line in second] == [2, 4, 4]


def test_a_log_that_tells_little_has_fewer_lines(tmp_path: Path) -> None:
    event = {"id": "e", "type": "message", "agent": "a", "t": 0}
    line = {"trace_id": "t", "task_id": "q", "events": [event], "edges": [], "rewards": {}}
    (log := tmp_path / "log.jsonl").write_text(json.dumps(line) + "\n")
    (one, look) = overview(Findings.of(credit.read(log), {}))["findings"]
    told = ["Errors are not logged, 0 loops.", "No trace has an outcome: which failed is not known."]
    assert (one["name"], one["lines"], one["told"]) == ("What failed", told, " ".join(told))
    assert look["name"] == "Look first" and look["told"].startswith("Nothing stands out")


def test_what_changed_names_the_agent_of_the_cost_and_the_time(tmp_path: Path) -> None:
    """The line said what a version costs, not that one agent alone does, nor that the version is faster."""
    random, lines = np.random.default_rng(0), []
    for number in range(160):
        task, new = number // 4, number % 2
        took = np.cumsum(random.uniform(3, 4, 3) * (0.5 if new else 1))
        events = [
            {"id": f"e{i}", "type": "message", "agent": agent, "t": float(took[i]), "action": True,
             "tokens": int(random.integers(90, 110) * (3 if new and agent == "search" else 1))}
            for i, agent in enumerate(("plan", "search", "write"))
        ]  # fmt: skip
        lines.append({"trace_id": f"t{number}", "task_id": f"q{task}", "system": f"v{1 + new}", "events": events,
                      "edges": [], "rewards": {"team": float(random.integers(2))}})  # fmt: skip
    (log := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = CliRunner().invoke(cli, ["summary", str(log), "--sides", "system"]).stdout
    line = said.partition("\nWhat changed from v1 to v2:\n")[2].splitlines()[1]
    told = r"^ *v2 takes 1\.6\d* times the tokens generated \(mostly of search\) and 0\.\d+ times the seconds"
    assert re.search(told, line)
    assert line.endswith("of wall clock in the typical task.")


def test_a_cause_far_from_beyond_chance_is_no_finding(tmp_path: Path) -> None:
    """Loops in 17 of 36 failed and 22 of 84 succeeded runs, undecided, stood there; 6,928 tasks were to tell."""
    random, lines = np.random.default_rng(6), []
    for number in range(160):
        hard = number // 8 % 2  # whose runs fail and loop more, whether or not they loop
        looped = random.random() < (0.7 if hard else 0.2)
        events: list[dict[str, Any]] = [{"id": "lead", "type": "message", "agent": "lead", "t": 0, "action": True}]
        for i in range(4):
            call = {"id": f"c{i}", "type": "tool_call", "agent": "lead", "tool": "look", "t": i + 1, "action": False}
            events.append(call | {"arguments": {"at": 0 if looped else i}})
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // 8}", "events": events, "edges": [],
                      "rewards": {"team": float(random.random() < (0.4 if hard else 0.8))}})  # fmt: skip
    (log := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    head, _, rest = CliRunner().invoke(cli, ["summary", str(log)]).stdout.partition("\n\n")
    assert "\nWhat went wrong most:\n  No error, loop or end is more common in failed traces than chance" in head
    assert "Loops of look" not in head and rest.startswith("What may have gone wrong\nLoops of look")


@pytest.mark.parametrize("sides", [[], ["--sides", "before=2026-03-01T12:00:00Z"]])
def test_a_cause_without_a_test_behind_it_stands_in_no_head(tmp_path: Path, sides: list[str]) -> None:
    """Of 315 logs of chance 54 had "Look first: billing, error of ledger" with its counts of failed and succeeded runs,
    surely more common if one cause had been looked at, and no word that none is more common than chance allows."""
    random, lines = np.random.default_rng(3), []
    for number in range(140):
        down = {tool: random.random() < 0.25 for tool in "abcdefgh"}
        events: list[dict[str, Any]] = []
        for at, (tool, wrong) in enumerate(down.items()):
            call = {"id": tool, "type": "tool_call", "agent": "billing", "tool": tool, "action": False,
                    "t": f"2026-03-01T{6 + number // 12:02d}:{number % 12:02d}:{at:02d}Z"}  # fmt: skip
            result = {"id": f"{tool}r", "type": "tool_result", "status": "error" if wrong else "ok"}
            events += [call | {"arguments": {"q": number}}, call | result]
        edges = [{"src": tool, "dst": f"{tool}r", "type": "return"} for tool in down]
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number}", "task_kind": "ab"[number % 2], "edges": edges,
                      "events": events, "rewards": {"team": float(random.random() < 0.6)}})  # fmt: skip
    (log := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = CliRunner().invoke(cli, ["summary", str(log), *sides], catch_exceptions=False).stdout
    head, _, rest = said.partition("\n\n")
    assert "What went wrong most:\n  No error, loop or end is more common in failed traces than chance allows" in head
    assert "Look first" not in head and "error of " not in head and "come first; none is beyond chance" in rest


def test_a_number_that_differs_is_told_where_no_cause_is_known(tmp_path: Path) -> None:
    """Of a team whose failed runs have twice the actions of one agent, the page told who generated 10 tokens."""
    random, lines = np.random.default_rng(0), []
    for number in range(80):
        won = number % 2
        again = 0 if won or random.random() < 0.3 else int(random.integers(3, 6))
        steps = ["lead", *["coder"] * (1 + again), *["writer"] * (6 - again)]  # of one length
        events = [{"id": f"e{i}", "type": "message", "agent": agent, "t": i, "action": True, "tokens": 10}
                  for i, agent in enumerate(steps)]  # fmt: skip
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // 4}", "events": events, "edges": [],
                      "rewards": {"team": float(won)}})  # fmt: skip
    (log := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = json.loads(CliRunner().invoke(cli, ["summary", str(log), "--json"]).stdout)["findings"]
    said = next(one["told"] for one in told if one["name"] == "Look first")
    assert re.search(r"^Actions of (coder|writer): \d+ in this failed trace, on average [\d.]+ in failed", said)
    assert "Most tokens" not in said


def test_another_reward_that_changed_in_a_kind_is_not_called_unchanged(tmp_path: Path) -> None:
    """People passed one kind less and one more, and beside a judge it said of their verdicts "no change shown"."""
    lines = []
    for i in range(40):
        kind, system = i % 2, i // 2 % 2
        rewards = {"judge": float(i % 3 > 0), "people": float(kind == system)}
        line = {"trace_id": f"t{i}", "task_id": f"q{i // 4}{kind}", "task_kind": "ab"[kind], "system": f"v{system}"}
        lines.append(line | {"events": [{"id": "e", "type": "message", "agent": "a"}], "edges": [], "rewards": rewards})
    (log := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = ["summary", str(log), "--reward-channel", "judge", "--sides", "system"]
    assert "on 20 tasks of both, no change shown of all kinds together." in CliRunner().invoke(cli, command).stdout


def test_another_reward_that_could_be_the_outcome_stands_beside_the_chosen_one(log: Path) -> None:
    """With the judge as the outcome the verdict on two releases turned, and nothing named what people had said."""
    judged = (
        json.loads(line) | {"rewards": {"judge": (number % 7 + 3 * ("v2" in line)) / 9} | (
            {"accepted": json.loads(line)["rewards"]["checker"]} if number % 5 else {})}
        for number, line in enumerate(log.read_text().splitlines())
    )  # fmt: skip
    log.write_text("".join(f"{json.dumps(line)}\n" for line in judged))

    def said(*call: str) -> str:
        return " ".join(CliRunner().invoke(cli, [call[0], str(log), *call[1:]], catch_exceptions=False).stdout.split())

    chosen = "--reward-channel", "judge", "--sides", "system"
    success = json.loads(said("metrics", "--sides", "system", "--reward-channel", "accepted", "--json"))["changed"]
    before_to_after = success.split("success ")[1].split(",")[0]
    told = f"Also in the log, by `--reward-channel`: accepted of 204 traces, {before_to_after} on 32 tasks of both, "
    assert told in said("summary", *chosen) and told in said("metrics", *chosen)
    assert "accepted of 204 traces, mean 0.9" in said("metrics", "--reward-channel", "judge")
    traces, sides = Sides.joined("system", credit.read(log, reward="judge"))
    assert any(told in one["told"] for one in overview(Findings.of(traces, {}, sides=sides))["findings"])
    assert "Also in the log" not in said("summary")  # nothing was chosen
    few = (re.sub('"accepted": ...(, )?', "", line) if number > 15 else line
           for number, line in enumerate(log.read_text().splitlines()))  # fmt: skip
    log.write_text("".join(f"{line}\n" for line in few))
    for call in ("summary", "metrics"):  # "people of 54 traces, 0 to 1" rested on one task that both ran
        assert re.search("accepted of 12 traces, mean [0-9.]+, no change shown[.]", said(call, *chosen))


def test_a_verdict_that_changed_its_meaning_is_no_change_of_the_runs(log: Path) -> None:
    """Below "What changed" the judge's 0.616 to 0.827, beyond chance, read as success; it had come to pass failures."""
    lines = []
    for number, line in enumerate(log.read_text().splitlines()):
        won = number // 2 % 2
        judged = float(won or number % 10 == 0 or '"v2"' in line)
        lines.append(json.dumps(json.loads(line) | {"rewards": {"people": float(won), "judge": judged}}))
    log.write_text("".join(f"{line}\n" for line in lines))
    for sides in ((), ("--sides", "system")):
        call = ["summary", str(log), "--reward-channel", "people", *sides]
        said = CliRunner().invoke(cli, call, catch_exceptions=False).stdout
        assert "What changed from v1 to v2:" in said and "Failures that judge passes" in said
        assert "Also in the log" not in said


def test_counts_of_a_cause_by_side_say_that_they_are_not_tested(log: Path) -> None:
    """42 of 169 and 18 of 176 traces read as a change, of which no test was made."""
    said = CliRunner().invoke(cli, ["summary", str(log), "--sides", "system"], catch_exceptions=False).stdout
    assert re.search(r"\n  In v1 \d+ of 128 traces, in v2 \d+ of 128 traces \(not tested\)[.]\n", said)


def test_a_second_cause_that_is_undecided_stands_below_the_head(tmp_path: Path) -> None:
    """In a head it suggests more than its test supports."""
    for second, words in (
        ("shell", "Unrecovered errors of shell by coder"),
        ("tech", "Runs in which tech acts instead of billing"),
    ):
        lines = []
        for number in range(120):
            task, won = divmod(
                number, 2
            )  # the index is down in 50 failed runs, the second thing in 9 or 10, and 2 others
            failed = task >= 50 if second == "tech" else task % 6 == 5 and task < 54  # beside runs alike in the first
            other = task in (1, 2) if won else failed
            steps = [("coder", "index", not won and task < 50), ("coder", "shell", second == "shell" and other),
                     ("tech" if second == "tech" and other else "billing", "send", False)]  # fmt: skip
            events = []
            for agent, tool, down in steps:
                call = {
                    "id": f"e{len(events)}",
                    "type": "tool_call",
                    "agent": agent,
                    "tool": tool,
                    "arguments": {"q": 1},
                }
                status = "error" if down else "ok"
                events += [call, {**call, "id": f"e{len(events)}r", "type": "tool_result", "status": status}]
            edges = [{"src": one["id"], "dst": f"{one['id']}r", "type": "return"} for one in events[::2]]
            lines.append({"trace_id": f"t{number}", "task_id": f"q{task}", "rewards": {"team": float(won)},
                          "events": events, "edges": edges})  # fmt: skip
        (log := tmp_path / f"{second}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        said = CliRunner().invoke(cli, ["summary", str(log)], catch_exceptions=False).stdout
        head, below, *_ = said.split("\n\n")
        assert words not in head and "(beyond chance)" in head
        assert below.startswith("What may have gone wrong\n") and words in below
        assert "that differ in it, the failed one has it in" in below


def test_errors_that_rose_come_before_those_that_are_a_step_of_the_work(tmp_path: Path) -> None:
    """Red tests of coding agents led; the calls of git that failed since the release, in fewer runs, came second."""
    rng, rows = np.random.default_rng(0), []
    for number in range(120):
        late, events = number % 2, []
        for tool, failing in (("run_tests", 0.5), ("git", (0.02, 0.4)[late])):
            call = {"id": f"{tool}{number}", "type": "tool_call", "agent": "coder", "tool": tool}
            status = "error" if rng.random() < failing else "ok"
            events += [
                call,
                {"id": f"{tool}r", "type": "tool_result", "agent": "coder", "tool": tool, "status": status},
            ]
        of = {"trace_id": f"t{number}", "task_id": f"q{number}", "system": f"v{late + 1}", "edges": []}
        rows.append(json.dumps(of | {"events": [event | {"t": t} for t, event in enumerate(events)]}) + "\n")
    (path := tmp_path / "log.jsonl").write_text("".join(rows))
    said = CliRunner().invoke(cli, ["summary", str(path)], catch_exceptions=False).stdout
    assert "\nWhat went wrong more in v2:\n  Unrecovered errors of git by coder" in said
    assert "\nWhat went wrong most:\n  Unrecovered errors of run_tests by coder" in said.partition("more in v2:")[2]
