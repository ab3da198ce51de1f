"""What is done last in runs may follow from failing: it is said so, and stands behind what came earlier."""

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.page.findings import Findings
from credit.page.overview import overview
from credit.reports.leading_causes import leading_causes
from credit.reports.outcome_differences import outcome_differences

LAST = "the last call in {0} of {0} such runs: it may follow from failing"


def world(
    path: Path, *, after: str = "", broken: float = 0.8, rejected: float = 0.8, also: float = 0.05, helped: float = 0.0
) -> Path:
    """96 runs of 24 tasks: reads, a migration, a push, and a message. A third of migrations fail.

    Args:
      path: of the log.
      after: a tool that is called in each run behind the push, or, after a colon, where that is rejected.
      broken: the part of runs that fail where the migration does; of others 35 % do.
      rejected, also: the part of failed runs whose push is, and of others.
      helped: the part of failed runs that end in a call for help; of others 5 % do if there are such.
    """
    rng, lines = np.random.default_rng(0), []
    for number in range(96):
        wrong = rng.random() < 0.33
        failed = rng.random() < (broken if wrong else 0.35)
        refused = rng.random() < (rejected if failed else also)
        asks = rng.random() < (helped if failed else 0.05)
        calls = [("read", False)] * int(rng.integers(6, 8)) + [("migrate", wrong), ("push", refused and rejected > 0)]
        calls += [(after.lstrip(":"), False)] * (after != "" and (refused or after[0] != ":"))
        calls += [("help", False)] * (asks and helped > 0)
        time = np.cumsum(rng.integers(1, 60, len(calls) + 1))
        events = [
            {"id": f"c{i}", "type": "tool_call", "agent": "a", "tool": tool, "t": int(time[i]), "action": True,
             "content_ref": f"r{number}-{i}", "status": "error" if bad else "ok"}
            for i, (tool, bad) in enumerate(calls)
        ]  # fmt: skip
        events.append({"id": "m", "type": "message", "agent": "a", "t": int(time[-1]), "action": True})
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // 4}", "events": events, "edges": [],
                      "rewards": {"team": float(not failed)}})  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_rejected_push_at_the_end_of_failed_runs_comes_behind_the_cause(tmp_path: Path) -> None:
    """A push that is rejected since tests are red stood before what made them red, and nothing said so."""
    traces = credit.read(log := world(tmp_path / "log.jsonl"))
    assert not any(row.late for row in outcome_differences(traces).rows if row.what == "migrate, then push")
    first, second = leading_causes(traces)
    assert (first.tool, first.late, second.tool) == ("migrate", "", "push")
    assert first.p is not None and second.p is not None and second.p < first.p < 0.05
    assert second.late == LAST.format(second.traces) and f"(beyond chance; {second.late})" in second.told()
    told = json.loads(CliRunner().invoke(cli, ["summary", str(log), "--json"], catch_exceptions=False).stdout)
    assert [one["late"] for one in told["causes"]] == ["", second.late]
    assert [(one["tool"], second.late in one["why"]) for one in told["suspects"]] == [
        ("migrate", False),
        ("push", True),
    ]
    shown = overview(Findings.of(traces, {}))
    lines = [one["told"] for one in shown["findings"] if "wrong" in one["name"]]
    assert lines == [f"{one.told()[0].upper()}{one.told()[1:]}." for one in (first, second)]
    assert [one["why"] for one in shown["triage"]["suspects"]] == [one["why"] for one in told["suspects"]]


def test_what_comes_only_after_it_leaves_a_call_among_the_last(tmp_path: Path) -> None:
    """A call for help behind a rejected push is no later step of the work; one that each run makes may be."""
    causes = leading_causes(credit.read(world(tmp_path / "log.jsonl", after=":help")))
    assert [one.tool for one in causes] == ["migrate", "push"]
    assert causes[1].late.startswith(f"among the last calls in {causes[1].traces} of")
    assert not any(one.late for one in leading_causes(credit.read(world(tmp_path / "log.jsonl", after="clean"))))


def test_the_table_begins_with_no_call_after_the_end_and_the_head_names_none(tmp_path: Path) -> None:
    """`Look first` named calls for help of runs that had failed, without a word, and a trace that the table lacks."""
    log = world(tmp_path / "log.jsonl", broken=0.35, rejected=0, helped=0.8)
    traces = credit.read(log)
    (row,) = (row for row in outcome_differences(traces).rows if row.what == "calls of help")
    assert row.stands_out and row.late.startswith("the last call in ")
    for command in ("opening", "comparison"):
        said = " ".join(getattr(outcome_differences(traces), command)())
        assert row.late in said
    others = {row.what: row.late for row in outcome_differences(traces).rows if row.stands_out and not row.mostly}
    assert others["tool calls"] == "calls of help may be why" and all(others.values())
    told = json.loads(CliRunner().invoke(cli, ["summary", str(log), "--json"], catch_exceptions=False).stdout)
    head = " ".join(one["told"] for one in told["findings"])
    assert "No error, loop or end is more common in failed traces than chance allows" in head and "help" not in head
    first = told["suspects"][0]
    assert first["why"].startswith("error of migrate")
    printed = CliRunner().invoke(cli, ["summary", str(log)], catch_exceptions=False).stdout
    assert f"The first one, event {first['event']} of trace {first['trace']}:" in printed


def test_the_place_of_an_event_says_of_how_many(tmp_path: Path) -> None:
    """`# 76` does not say whether that is the end."""
    log = world(tmp_path / "log.jsonl")
    printed = CliRunner().invoke(cli, ["summary", str(log)], catch_exceptions=False).stdout
    first = json.loads(CliRunner().invoke(cli, ["summary", str(log), "--json"]).stdout)["suspects"][0]
    assert f" {first['position']} of {first['of']}  a" in printed
    number = credit.read(log).index(first["trace"])
    assert first["of"] == len(json.loads(log.read_text().splitlines()[number])["events"])


def test_the_last_call_of_succeeded_runs_too_is_not_said_to_follow_from_failing(tmp_path: Path) -> None:
    """ "The last call in 9 of 9 such runs: it may follow from failing" stood at 4 % of failed and 11 % of succeeded."""
    log = world(tmp_path / "log.jsonl", broken=0.35, rejected=0.3, also=0.3)
    told = json.loads(CliRunner().invoke(cli, ["summary", str(log), "--all", "--json"], catch_exceptions=False).stdout)
    pushes = [one["why"] for one in told["suspects"] if one["tool"] == "push"]
    assert len(pushes) > 10 and not any("may follow" in why for why in pushes)
