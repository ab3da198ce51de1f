"""Outcomes of refused traces stand in each result over outcomes: a log that lacks its failures shows only successes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.reports.unread_outcomes import unread_outcomes
from graphs.logs import read
from tests.credit.page.test_page import embedded
from tests.graphs.reading.samples import OBSERVATIONS, SAMPLES
from tests.recordings.spans import agent, chat, evaluation, logs_request, pairs, spans_request

PLACE = " (first: log.jsonl:1, duplicate-id)"
SAID = f"3 of 18 traces were not read{PLACE}; their outcomes: 1 succeeded, 2 failed"
SIDES = "1 trace of before and 2 traces of after were not read; their outcomes: before 1 succeeded, "
SIDES += "0 failed; after 0 succeeded, 2 failed"


def native(name: str, *, is_broken: bool = False) -> dict[str, Any]:
    """A trace of two events; a broken one has one id for both, and is refused."""
    events = [{"id": "x" if is_broken else f"{i}", "type": "message", "agent": "a"} for i in range(2)]
    return {"trace_id": name, "task_id": name[-1], "events": events}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two folders with broken traces, which have rows of rewards, and a row that matches nothing."""
    rows = ["trace,reward", "nobody,1"]
    for folder, broken in (("before", {"b0": 1}), ("after", {"a0": 0, "a1": 0})):
        (tmp_path / "runs" / folder).mkdir(parents=True)
        names = [f"{folder[0]}{task}" for task in range(9)]
        lines = [json.dumps(native(name, is_broken=name in broken)) + "\n" for name in names]
        (tmp_path / "runs" / folder / "log.jsonl").write_text("".join(lines))
        rows += [f"{name},{broken.get(name, i % 2)}" for i, name in enumerate(names)]
    (tmp_path / "rewards.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def short(text: str) -> str:
    """Without the folders of files."""
    return re.sub(r"\(first: \S+/", "(first: ", text)


def run(logs: Path, *arguments: str) -> str:
    command = [arguments[0], str(logs / "runs"), "--rewards", str(logs / "rewards.csv"), *arguments[1:]]
    done = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert done.exit_code == 3, done.output
    return short(done.stdout)


def test_a_row_of_a_refused_trace_is_told_from_one_that_matches_nothing(logs: Path) -> None:
    traces = read(logs / "runs", rewards=logs / "rewards.csv")
    rows = {problem.kind: problem for problem in traces.problems if problem.about == "reward"}
    assert rows["unmatched-row"].value == "'nobody'"
    refused = [problem.trace for problem in traces.problems if problem.kind == "unread-outcome"]
    assert sorted(refused) == ["a0", "a1", "b0"] and not rows["unread-outcome"].is_failure
    told = f"{SAID.replace(' of 18', '').replace(PLACE, '')}; with these 56 % failed"
    assert [str(found) for found in unread_outcomes(traces)] == [told]
    assert unread_outcomes(traces, success_at=2.0)[0].failed == 3
    assert not unread_outcomes(read(logs / "runs"))  # nothing states their outcomes


def test_metrics_and_summary_say_what_was_not_read(logs: Path) -> None:
    """`credit metrics` printed a success of 0.61 in place of 0.5, and another stream called the rows unmatched."""
    assert SAID in run(logs, "metrics") and SAID in run(logs, "summary")
    numbers = {"side": "", "traces": 3, "succeeded": 1, "failed": 2, "failing": "", "kinds": ["failed", "succeeded"]}
    numbers |= {"refused": 0, "stated": [], "are_empty": False, "rate": pytest.approx(10 / 18)}
    assert json.loads(run(logs, "metrics", "--json"))["unread"] == [numbers]
    told = json.loads(run(logs, "summary", "--json"))["failed_against_succeeded"]
    assert SAID in short(told["headline"]) and short(told["unread"]) == f"{SAID}; with these 56 % failed"
    assert told["unread"] == told["lines"][0][:-1]


NO_EVENTS = "2 runs without events were not read; their outcomes: 0 succeeded, 2 failed; with these 75 % failed"


@pytest.mark.parametrize("outcomes", ["log", "table"])
@pytest.mark.parametrize("name", ["langfuse", "native"])
def test_runs_without_events_count_by_their_outcomes(tmp_path: Path, name: str, outcomes: str) -> None:
    """Runs that crashed at once left the rate: 17 % had failed of 28 %, and a row of theirs was of no trace."""
    lines = []
    for number in range(4):
        events, score = native("t")["events"] if number < 2 else [], int(not number)
        run: dict[str, Any] = {"trace_id": f"t{number}", "task_id": "q", "events": events, "rewards": {"ok": score}}
        if name == "langfuse":
            parts = [{**part, "traceId": f"t{number}"} for part in OBSERVATIONS if events]
            scores = [{"id": f"s{number}", "name": "ok", "value": score, "dataType": "BOOLEAN"}]
            run = {"id": f"t{number}", "projectId": "p", "timestamp": "2026", "observations": parts, "scores": scores}
        if outcomes == "table":
            del run["scores" if name == "langfuse" else "rewards"]
        lines.append(json.dumps(run) + "\n")
    (tmp_path / "log.jsonl").write_text("".join(lines))
    (tmp_path / "rewards.csv").write_text("trace,reward\nt0,1\nt1,0\nt2,0\nt3,0\n")
    given = ["--rewards", str(tmp_path / "rewards.csv")] if outcomes == "table" else ["--reward-channel", "ok"]
    done = CliRunner().invoke(cli, ["summary", str(tmp_path / "log.jsonl"), *given])
    said = NO_EVENTS if name != "native" else NO_EVENTS.replace("runs without events", "of 4 traces")
    assert (
        said in re.sub(r" \(first: \S+/log.jsonl:3, [a-z-]+\)", "", done.stdout) and "unmatched-row" not in done.stderr
    )
    assert done.exit_code == (3 if name == "native" else 0)


def test_a_lost_page_refuses_its_traces_and_keeps_their_outcomes(tmp_path: Path) -> None:
    """A trace without all of its observations was a note, as a run without events, and its score was lost."""
    listed = [{"id": name, "timestamp": "2026", "observations": [name], "scores": [f"s{name}"]} for name in ("t", "u")]
    parts = [{**OBSERVATIONS[2], "id": "t", "type": "GENERATION"}]
    values = [("st", "t", 1), ("su", "u", 0)]
    scores = [{"id": of, "traceId": t, "name": "ok", "value": x, "dataType": "BOOLEAN"} for of, t, x in values]
    for name, page in (("traces", listed), ("parts", parts), ("scores", scores)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"data": page, "meta": {"page": 1}}))
    problems = read(tmp_path).problems
    assert [(p.kind, p.trace, p.is_failure) for p in problems if "part" in p.kind] == [("missing-part", "u", True)]
    done = CliRunner().invoke(cli, ["summary", str(tmp_path)])
    said = "1 of 2 traces was not read (first: traces.json:1, missing-part); its outcome: 0 succeeded, 1 failed"
    assert done.exit_code == 3 and f"{said}; with it 50 % failed" in short(done.stdout)


def test_each_format_keeps_the_outcomes_of_runs_without_events(tmp_path: Path) -> None:
    episode, tinker = SAMPLES["rllm"].values[0], SAMPLES["rollouts of tinker"].values[0]
    no_steps = [trajectory | {"steps": [], "reward": 0.0} for trajectory in episode["trajectories"][:1]]
    harbor = {"trial_name": "a__2", "task_name": "a", "verifier_result": {"rewards": {"reward": 0.0}}}
    of_team = SAMPLES["verifiers"].values[0]
    crashed = [of_team["traces"][0] | {"nodes": []}]
    rewarded = of_team | {"id": "e", "traces": crashed}
    empty: dict[str, tuple[str, Any]] = {
        "rllm": ("other.json", episode | {"episode_id": "x:1", "trajectories": no_steps, "is_correct": False}),
        "rollouts of tinker": ("other.jsonl", tinker | {"steps": [], "total_reward": 0.0, "final_reward": 0.0}),
        "harbor": ("a__2/result.json", harbor),
        "verifiers": ("other.jsonl", rewarded),
    }
    channels = {"rllm": "is_correct"}
    for name, (file, value) in empty.items():
        (tmp_path / name / file).parent.mkdir(parents=True)
        (tmp_path / name / file).write_text(json.dumps(value) + "\n")
        if name == "harbor":
            (tmp_path / name / "log.jsonl").write_text(json.dumps(native("t")) + "\n")
        else:
            SAMPLES[name].write(tmp_path / name)
        noted = [
            (p.kind, p.value)
            for p in read(tmp_path / name, reward=channels.get(name, "team")).problems
            if p.file.endswith(file)
        ]
        assert [kind for kind, _ in noted] == ["no-events", "unread-outcome"] and noted[1][1] in ("0.0", "1.5"), name


@pytest.mark.parametrize("cut", [30, 70])
def test_a_damaged_line_and_the_rows_of_its_trace_are_one_problem(tmp_path: Path, cut: int) -> None:
    """The rows of the trace in --groups and --rewards were a second and a third problem for one cut line."""
    log, groups, rewards = (tmp_path / name for name in ("log.jsonl", "groups.csv", "rewards.csv"))
    lines = [json.dumps(native(f"run-{number}")) for number in range(3)]
    log.write_text("\n".join([lines[0], lines[1][:cut], lines[2]]))
    groups.write_text("trace,group\nrun-0,q\nrun-1,q\nrun-2,q\n")
    rewards.write_text("trace,reward\nrun-0,1\nrun-1,0\nrun-2,1\n")
    traces = read(log, groups=groups, rewards=rewards)
    found = [(problem.kind, problem.file) for problem in traces.problems if problem.is_failure]
    assert found == [("bad-json", str(log))]
    assert next(map(str, unread_outcomes(traces))).startswith("1 trace was not read; its outcome: 0 succ")


@pytest.mark.parametrize("by", ["folders", "table"])
def test_sides_say_what_was_not_read_of_each(logs: Path, by: str) -> None:
    sides = f"{logs}/runs/before,{logs}/runs/after"
    if by == "table":
        sides = str(logs / "sides.csv")
        rows = [f"{side[0]}{task},{side}" for side in ("before", "after") for task in range(9)]
        Path(sides).write_text("\n".join(["trace,side", *rows]) + "\n")
    said = run(logs, "metrics", "--sides", sides)
    assert SIDES in said and "success" in said
    found = json.loads(run(logs, "metrics", "--sides", sides, "--json"))
    assert [row["side"] for row in found["unread"]] == ["before", "after"] and SIDES in found["but"]


def test_refused_outcomes_stand_beside_the_share_of_successes(tmp_path: Path) -> None:
    """With 29 "escalated" in a table success was 0.77 in place of 0.63, and "65 of these have no outcome" beside it."""
    words = ("resolved", "escalated", "unresolved", "resolved", "", "Escalated")
    log, table, sides = (tmp_path / name for name in ("log.jsonl", "outcomes.csv", "sides.csv"))
    log.write_text("".join(json.dumps(native(f"t{i}-{i % 6}")) + "\n" for i in range(36)))
    table.write_text("trace,reward\n" + "".join(f"t{i}-{i % 6},{words[i // 6]}\n" for i in range(36) if words[i // 6]))
    sides.write_text("trace,side\n" + "".join(f"t{i}-{i % 6},{'old' if i < 12 else 'new'}\n" for i in range(36)))

    def printed(*arguments: str, code: int = 3) -> str:
        done = CliRunner().invoke(cli, [arguments[0], str(log), "--rewards", str(table), *arguments[1:]])
        assert done.exit_code == code, done.output
        return " ".join(done.stdout.split())

    said = "were refused ('escalated', 'Escalated'), and counted as none: --outcomes says what words mean"
    for command in ("summary", "metrics"):
        assert f"12 outcomes {said}" in printed(command)
        assert "refused" not in printed(command, "--outcomes", "escalated=0", code=0)
    head, beside = printed("summary"), printed("summary", "--sides", str(sides))
    assert "outcomes.csv: 6 to 18 of 30 traces failed, 20 to 60 %. 6 more have none: " in head, "6 of 18, 33 %"
    assert "Success is not compared: outcomes were refused." in beside and "success: no" not in beside.lower()
    of_sides = json.loads(printed("metrics", "--sides", str(sides), "--json"))
    assert [(row["side"], row["traces"], row["refused"]) for row in of_sides["unread"]] == [
        ("old", 0, 6),
        ("new", 0, 6),
    ]
    assert f"6 outcomes of old and 6 outcomes of new {said}" in of_sides["but"]
    assert "12 outcomes were refused." in of_sides["caveats"]
    found = json.loads(printed("metrics", "--outcomes", "escalated=0,resolved=1", "--json", code=0))["metrics"]
    assert {row["metric"]: row["mean"] for row in found}["success"] == pytest.approx(0.4)
    for wrong in ("escalated", "escalated=x", "=1", "a=1,A=2", str(table)):
        done = CliRunner().invoke(cli, ["validate", str(log), "--outcomes", wrong])
        assert done.exit_code == 1 and "WORD=NUMBER" in done.output


def test_no_rate_and_no_cost_of_a_success_is_told_of_the_outcomes_that_were_read(tmp_path: Path) -> None:
    """8 of 20 were "escalated": "all outcomes are equal, 1", "8 of 20 traces have no outcome", a success cost 0.1."""
    log, table = tmp_path / "log.jsonl", tmp_path / "outcomes.csv"
    log.write_text("".join(json.dumps(native(f"t{i}-{i % 6}") | {"costs": {"money": 0.1}}) + "\n" for i in range(20)))
    table.write_text(
        "trace,reward\n" + "".join(f"t{i}-{i % 6},{('resolved', 'escalated')[i < 8]}\n" for i in range(20))
    )
    done = CliRunner().invoke(cli, ["summary", str(log), "--rewards", str(table)])
    assert "words mean.\n  All others are 1.\n" in done.stdout and "logged of all 20 traces: 2" in done.stdout
    assert not any(words in done.stdout for words in ("equal", "20 traces have no outcome", "of a success"))


@pytest.mark.parametrize(
    ("refused", "told"), [(1, "40 of 80 traces with an outcome failed"), (8, "36 to 44 of 81 traces failed")]
)
def test_one_refused_outcome_of_eighty_silences_no_rate(tmp_path: Path, refused: int, told: str) -> None:
    """Bounds stood in place of all rates, costs and changes of success, however few were refused."""
    log, table = tmp_path / "log.jsonl", tmp_path / "outcomes.csv"
    log.write_text("".join(json.dumps(native(f"t{i}-{i % 6}") | {"costs": {"money": 0.1}}) + "\n" for i in range(81)))
    words = ["escalated" if i < refused else ("resolved", "unresolved")[i % 2] for i in range(81)]
    table.write_text("trace,reward\n" + "".join(f"t{i}-{i % 6},{word}\n" for i, word in enumerate(words)))
    done = CliRunner().invoke(cli, ["summary", str(log), "--rewards", str(table)])
    assert ("of a success" in done.stdout) == ("of the logged cost (" in done.stdout) == (refused == 1)
    assert f"{refused} outcome{'s were' if refused > 1 else ' was'} refused" in done.stdout
    assert told in done.stdout


@pytest.mark.parametrize("options", [[], ["--no-text"]])
def test_a_report_says_it_too(logs: Path, options: list[str]) -> None:
    """Without texts it fell: "could not convert string to float: 'withheld'"."""
    page = logs / "page.html"
    run(logs, "report", "-o", str(page), "--sides", f"{logs}/runs/before,{logs}/runs/after", *options)
    shown = embedded(page.read_text())[0]["overview"]
    assert SAID in short(shown["differences"]["opening"][0]) and SIDES in shown["sides"]["but"]


def test_killed_runs_are_an_ending_that_is_tested(tmp_path: Path) -> None:
    """All failed for one reason, and the summary named an agent called as the service, `crew (0.4 against 0)`."""
    requests, rows = [], ["trace,reward"]
    for number in range(32):
        trace, is_killed = f"{number + 1:032x}", number % 2 == 0
        of = {"orchestration_credit.group": f"task {number // 4}"}
        root = agent(2, 0, 0.5, 9, "lead", trace=trace, attributes=of)
        spans = [chat(3, 2, 1, 2, trace=trace, attributes=of), agent(5, 2, 3, 5, "worker", trace=trace)]
        spans += [chat(6, 5, 4, 5, trace=trace)]
        requests.append(spans_request(spans + [root] * (not is_killed), resource={"service.name": "crew"}))
        rows.append(f"{trace},{int(not is_killed)}")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(request) + "\n" for request in requests))
    (tmp_path / "rewards.csv").write_text("\n".join(rows) + "\n")
    command = ["summary", str(tmp_path / "log.jsonl"), "--rewards", str(tmp_path / "rewards.csv")]
    done = CliRunner().invoke(cli, [*command, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (ending,) = found["endings"]
    assert ending["words"].startswith("16 of 32 traces lack spans above others") and "cut short" in ending["words"]
    assert (ending["failed"], ending["succeeded"]) == (16, 0)
    assert "crew" not in {row["agent"] for row in found["agents"]}
    (row,) = [row for row in found["failed_against_succeeded"]["rows"] if row["what"].startswith("traces that lack")]
    assert row["stands_out"] and (row["failed"], row["succeeded"]) == (1, 0)


def test_a_summary_whose_traces_have_no_outcome_says_what_was_not_read(logs: Path) -> None:
    """All read traces had no outcome, and the one whose outcome is known was not read: nothing said so."""
    (logs / "rewards.csv").write_text("trace,reward\na0,0\nnobody,1\n")
    said = "3 of 18 traces were not read (first: log.jsonl:1, duplicate-id); of 1 of these the outcome is known: "
    said += "0 succeeded, 1 failed"
    assert f"  {said}.\n  No trace has an outcome: which failed is not known.\n" in run(logs, "summary")
    assert json.loads(run(logs, "summary", "--json"))["unread"] == [
        {
            "side": "",
            "traces": 1,
            "succeeded": 0,
            "failed": 1,
            "failing": "",
            "kinds": ["failed", "succeeded"],
            "refused": 0,
            "stated": [],
            "are_empty": False,
            "rate": None,
        }
    ]
    run(logs, "report", "-o", str(logs / "page.html"))
    assert said in short((logs / "page.html").read_text().partition("<noscript>")[2].partition("</noscript>")[0])


def test_refused_traces_are_of_the_system_that_their_log_states(logs: Path) -> None:
    """With `system` they were of an unknown side, and where one system was refused whole nothing named it."""
    for file in (logs / "runs").glob("*/log.jsonl"):
        rows = [json.loads(line) | {"system": file.parent.name} for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = run(logs, "metrics", "--sides", "system=before,after")
    assert SIDES in said
    (logs / "rewards.csv").write_text("trace,reward\n" + "".join(f"b{i},{i % 2}\na{i},{i % 2}\n" for i in range(2, 9)))
    said = run(logs, "metrics", "--sides", "system=before,after")
    assert said.startswith("2 traces of after and 1 trace of before were not read\n") and "outcomes: " not in said
    folders = run(logs, "metrics", "--sides", f"{logs}/runs/before,{logs}/runs/after")
    assert "unknown side" not in folders  # where their files tell it


OUTPUT = "gen_ai.usage.output_tokens"
OF_OTLP: dict[str, Any] = {
    "an id twice": lambda call: [call, call | {"startTimeUnixNano": "1"}],
    "a circle": lambda call: [call | {"parentSpanId": call["spanId"]}],
    "a count": lambda call: [call | {"attributes": pairs({"gen_ai.operation.name": "chat", OUTPUT: "many"})}],
    "no span can be read": lambda call: [call | {"startTimeUnixNano": "soon"}],
}


@pytest.mark.parametrize("fault", [*OF_OTLP, "native", "native, an outcome in words"])
def test_what_a_reader_refuses_has_the_system_and_the_outcome_that_the_log_states(tmp_path: Path, fault: str) -> None:
    """Of a release that broke, "7 traces of an unknown side were not read", and success was 0.633 to 0.913: 0.733."""
    lines, of_v2 = list[Any](), []
    for i in range(1, 31):
        good, is_v2, broken = i % 3 > 0, i % 2 == 0, i % 6 == 0 or i == 2
        of_v2 += [good] * broken
        name, system = f"{i:032x}", f"v{1 + is_v2}"
        if fault in OF_OTLP:
            call = chat(i, 0, i, i + 1, trace=name)
            spans = OF_OTLP[fault](call) if broken else [call]
            lines += [spans_request(spans, {"service.version": system})]
            lines += [logs_request([evaluation("reward", float(good), trace=name)])]
        else:
            event = {"type": "nonsense" if broken else "message", "agent": "a", "id": "e"}
            outcome = "lost" if broken and "words" in fault else float(good)
            row = {"trace_id": name, "task_id": name, "events": [event], "system": system, "edges": []}
            lines += [row | {"rewards": {"team": outcome}}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = CliRunner().invoke(cli, ["metrics", str(tmp_path), "--sides", "system"]).stdout
    told = f"But 6 traces of v2 were not read; their outcomes: {sum(of_v2)} succeeded, {6 - sum(of_v2)} failed."
    assert (told if "words" not in fault else "6 traces of v2 were not read\n") in said and "unknown side" not in said
    traces = read(tmp_path)
    assert set(traces.refused_systems.values()) == {"v2"} and len(traces.refused_systems) == 6


def test_a_circle_of_spans_is_of_the_system_that_its_trace_states(tmp_path: Path) -> None:
    """In LangSmith and Langfuse, too, a refused trace was of no system."""
    for system in ("v1", "v2"):
        parents = {"a": "b" if system == "v2" else None, "b": "a"}
        run = {"trace_id": system, "session_name": system, "name": "m", "run_type": "llm"}
        runs = [run | {"id": one, "parent_run_id": parent or system} for one, parent in parents.items()]
        (tmp_path / f"langsmith-{system}.json").write_text(json.dumps([run | {"id": system}, *runs]))
        of = {"traceId": system, "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z"}
        spans = [of | {"id": one, "parentObservationId": parent} for one, parent in parents.items()]
        log = {"trace": {"id": system, "version": system}, "observations": spans}
        (tmp_path / f"langfuse-{system}.json").write_text(json.dumps(log))
    for name in ("langsmith", "langfuse"):
        logs = [tmp_path / f"{name}-{system}.json" for system in ("v1", "v2")]
        assert read(*logs).refused_systems == {"v2": "v2"}


def test_graded_outcomes_of_refused_traces_are_not_called_failed(logs: Path) -> None:
    """Traces that were read were worse or better than others of their task, and refused ones failed by another cut."""
    lines = [json.dumps(native(f"r{number}-{number % 9}")) + "\n" for number in range(45)]
    (logs / "runs" / "before" / "more.jsonl").write_text("".join(lines))
    rows = [f"r{number}-{number % 9},{number % 9 / 10 + number // 9 / 50}" for number in range(45)]
    (logs / "rewards.csv").write_text("\n".join(["trace,reward", "b0,0.2", "a0,0.9", "a1,0.1", *rows]) + "\n")
    said = run(logs, "summary")
    assert " did worse (below the median outcome of their task" in said
    words = f"3 of 63 traces were not read{PLACE}; their outcomes: 1 higher, 2 lower (outcome below 0.44, the median)"
    assert words in said and words in run(logs, "metrics")
    told = run(logs, "metrics", "--success-at", "0.15")
    assert "their outcomes: 2 succeeded, 1 failed (outcome below 0.15)" in told


def test_the_head_says_that_a_whole_system_was_refused(logs: Path) -> None:
    """One cut line refused a release, and "In short" spoke of all traces: the other release's."""
    for system, file in (("v1", logs / "runs/before/log.jsonl"), ("v2", logs / "runs/after/log.jsonl")):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for row in rows:
            row["events"] = row["events"] if system == "v1" else row["events"][:1] * 2
        file.write_text("".join(json.dumps(row | {"system": system}) + "\n" for row in rows))
    with (logs / "runs/before/log.jsonl").open("a") as log_of_v1:
        log_of_v1.write('{"costs": {"mon')
    (logs / "rewards.csv").write_text("trace,reward\nb1,1\nb2,0\na0,0\na3,0\n")
    said = "10 of 18 traces were not read, among them all of v2 (first: log.jsonl:1, duplicate-id)"
    lost = "1 record that names no trace was not read (first: log.jsonl:10, bad-json)"
    told = f"{said}; of 2 of these the outcome is known: 0 succeeded, 2 failed; with these 75 % failed; {lost}."
    (first, *_) = json.loads(run(logs, "summary", "--json"))["findings"]
    assert told in first["lines"]
    run(logs, "report", "-o", str(logs / "page.html"))
    (shown, *_) = embedded((logs / "page.html").read_text())[0]["overview"]["findings"]
    assert [*map(short, shown["lines"])] == first["lines"]
    log, table = str(logs / "runs"), logs / "rewards.csv"
    without = CliRunner().invoke(cli, ["summary", log])
    assert f"  {said}; {lost}.\n" in short(without.stdout), "where nothing states an outcome"
    done = CliRunner().invoke(cli, ["summary", log, "--rewards", str(table), "--sides", "system"])
    assert done.exit_code == 1 and f"expected two, or --sides system=A,B. {said}. {lost}" in short(done.output)


def test_the_head_names_a_file_of_which_no_trace_is_left(tmp_path: Path) -> None:
    """A damaged row may be of any trace of its file; without logged systems nothing said that the file is missing."""
    for name in "ab":
        rows = [{"trace": f"{name}{i // 2}", "agent": "x", "type": "message", "reward": i % 4 // 2} for i in range(8)]
        lines = [json.dumps(row) for row in rows] + ['{"tra', json.dumps(rows[0])] * (name == "b")
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    done = CliRunner().invoke(cli, ["summary", str(tmp_path)])
    said = f"4 of 8 traces were not read, among them all of {tmp_path}/b.jsonl (first: b.jsonl:9, lost-row); "
    assert f"{said}their outcomes: 2 succeeded, 2 failed; with these 50 % failed" in short(done.stdout)


def test_refused_traces_that_are_not_listed_are_said_to_be_more(tmp_path: Path) -> None:
    lines = [json.dumps(native(f"t{i}", is_broken=i > 1)) + "\n" for i in range(1202)]
    (tmp_path / "log.jsonl").write_text("".join(lines))
    done = CliRunner().invoke(cli, ["summary", str(tmp_path)])
    assert "  At least 1001 traces were not read (first: log.jsonl:3, duplicate-id).\n" in short(done.stdout)
