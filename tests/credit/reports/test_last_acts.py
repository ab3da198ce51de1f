"""What is done last in runs may follow from failing: it is said so, and stands behind what came earlier."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.page.findings import Findings
from credit.page.overview import overview
from credit.reports.leading_causes import leading_causes

LAST = "the last call in {0} of {0} such runs: it may follow from failing"


def world(
    path: Path, seed: int = 0, *, then: str = "", breaks: float = 0.85, rejected: tuple[float, float] = (0.8, 0.05)
) -> Path:
    """96 runs of 24 tasks: reads, a migration that fails and makes runs fail, and a push that is rejected afterwards.

    `then` is a tool that is called in each run behind the push, or, after a colon, where that is rejected. `breaks`: how
    often a failed migration makes a run fail. `rejected`: how often pushes of failed runs are, and of others.
    """
    rng, lines = np.random.default_rng(seed), []
    for number in range(96):
        broken = rng.random() < 0.35
        failed = rng.random() < (max(breaks, 0.3) if broken else 0.3)
        wrong = rng.random() < rejected[not failed]
        calls = [("read", False)] * int(rng.integers(5, 9)) + [("migrate", broken), ("push", wrong)]
        calls += [(then.lstrip(":"), False)] * (then != "" and (wrong or then[0] != ":"))
        events = [{"id": f"c{i}", "type": "tool_call", "agent": "a", "tool": tool, "t": i, "content_ref": f"r{number}-{i}",
                   "action": True, **({"status": "error"} if bad else {"status": "ok"})}
                  for i, (tool, bad) in enumerate(calls)]  # fmt: skip
        events.append({"id": "m", "type": "message", "agent": "a", "t": 99, "action": True})
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // 4}", "events": events, "edges": [],
                      "rewards": {"team": float(not failed)}})  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_rejected_push_at_the_end_of_failed_runs_comes_behind_the_cause(tmp_path: Path) -> None:
    """A push that is rejected since tests are red stood before what made them red, and nothing said so."""
    traces = credit.read(log := world(tmp_path / "log.jsonl"))
    first, second = leading_causes(traces)
    assert (first.tool, first.late, second.tool) == ("migrate", "", "push")
    assert first.p is not None and second.p is not None and second.p < first.p < 0.05
    assert second.late == LAST.format(second.traces) and f"(beyond chance; {second.late})" in second.told()
    told = json.loads(CliRunner().invoke(cli, ["summary", str(log), "--json"], catch_exceptions=False).stdout)
    assert [one["late"] for one in told["causes"]] == ["", second.late]
    lines = [one["told"] for one in overview(Findings.of(traces, {}))["findings"] if "wrong" in one["name"]]
    assert lines == [f"{one.told()[0].upper()}{one.told()[1:]}." for one in (first, second)]


def test_what_comes_only_after_it_leaves_a_call_among_the_last(tmp_path: Path) -> None:
    """A call for help behind a rejected push is no later step of the work; one that each run makes may be."""
    causes = leading_causes(credit.read(world(tmp_path / "log.jsonl", then=":help")))
    assert [one.tool for one in causes] == ["migrate", "push"]
    assert causes[1].late.startswith(f"among the last calls in {causes[1].traces} of")
    assert not any(one.late for one in leading_causes(credit.read(world(tmp_path / "log.jsonl", then="clean"))))
