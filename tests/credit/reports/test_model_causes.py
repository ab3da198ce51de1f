"""A fallback model of one agent that makes runs fail stood in no line on what went wrong, and had no test there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.reports.leading_cause import LeadingCause
from credit.reports.leading_causes import leading_causes
from credit.reports.outcome_differences import outcome_differences
from graphs.logs import read
from graphs.traces.batch import Traces


def logs(folder: Path, random: np.random.Generator, harm: float, *, versions: int = 2, runs: int = 3) -> Traces:
    """Runs of versions whose coder falls back to a small model in a quarter of them, of which so many more fail. Where
    one fails it asks the small one again."""
    folder.mkdir(exist_ok=True)
    lines = []
    for i in range(90):
        small = random.random() < 0.25
        failed = random.random() < 0.3 + harm * small
        coder = ("small" if small else "big", "small" if failed else "big")
        steps = [("lead", "big"), ("coder", coder[0]), ("coder", coder[1]), ("lead", "big")]
        events = [{"id": f"e{k}", "type": "message", "agent": agent, "model": model} for k, (agent, model) in
                  enumerate(steps)]  # fmt: skip
        events.insert(1, {"id": "call", "type": "tool_call", "agent": "lead", "tool": "sql", "action": False,
                          "status": "error" if random.random() < 0.3 else "ok"})  # fmt: skip
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // (versions * runs)}", "system": f"v{i % versions}",
                      "events": events, "edges": [], "rewards": {"team": float(not failed)}})  # fmt: skip
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read(folder)


def of_models(traces: Traces) -> list[LeadingCause]:
    return [one for one in leading_causes(traces) if " has " in one.words]


@pytest.mark.parametrize(("versions", "runs"), [(2, 3), (1, 1)])
def test_a_model_of_an_agent_that_makes_runs_fail_is_what_went_wrong_most(
    tmp_path: Path, versions: int, runs: int
) -> None:
    random, found = np.random.default_rng(runs), 0
    for k in range(4):
        traces = logs(tmp_path / str(k), random, 0.6, versions=versions, runs=runs)
        causes = leading_causes(traces)
        (line,) = [line for line in outcome_differences(traces).comparison() if "by model of coder" in line]
        assert ("; beyond chance" in line) == any(one.sides == "model:coder" for one in causes)
        if "; beyond chance" not in line:
            continue
        found, cause = found + 1, causes[0]
        assert cause.words == "runs in which coder has small" and cause.agent == "coder" and cause.event == "e1"
        assert cause.told().count("beyond chance") == 1, cause.told()
        assert cause.told().endswith("; `--sides model:coder` compares them)"), cause.told()
        assert ("harder tasks may be why" in cause.told()) == (runs == 1)
        row = traces.traces["trace"].to_pylist().index(cause.trace)
        assert traces.reward[row] == 0
        assert cause.failed is not None and cause.succeeded is not None
    assert found >= 3


def test_the_summary_names_it_with_a_run_and_a_command_that_works(tmp_path: Path) -> None:
    (cause,) = of_models(logs(tmp_path, np.random.default_rng(3), 0.7))
    printed = CliRunner().invoke(cli, ["summary", str(tmp_path)]).stdout
    assert f"{cause.told()[1:]}.\n  See event e1 of trace {cause.trace}.\n" in printed
    CliRunner().invoke(cli, ["report", str(tmp_path), "-o", str(tmp_path / "page.html")])
    assert "<code>--sides model:coder</code> compares them)" in (tmp_path / "page.html").read_text()
    told = CliRunner().invoke(cli, ["metrics", str(tmp_path), "--sides", cause.sides]).stdout
    assert "success 0." in told and "beyond chance" in told


def test_a_run_in_which_an_agent_does_not_act_is_no_run_of_which_the_log_does_not_tell(tmp_path: Path) -> None:
    """ "of 99 more the log does not tell" stood there, of runs without the agent."""
    logs(tmp_path, np.random.default_rng(3), 0.7)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    for i, line in enumerate(lines):
        for event in line["events"] if i % 6 == 5 else ():
            event["agent"] = "lead"
        for event in line["events"] if i == 6 else ():
            event.pop("model", None)
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (cause,) = of_models(read(tmp_path))
    assert cause.told().endswith(" compares them) (of 1 more the log does not tell)"), cause.told()


@pytest.mark.parametrize("worlds", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_a_model_that_an_agent_has_by_chance_is_no_cause_and_its_line_says_so(tmp_path: Path, worlds: int) -> None:
    random, named = np.random.default_rng(5), 0
    for k in range(worlds):
        traces = logs(tmp_path / str(k), random, 0.0)
        named += bool(of_models(traces))
        told = [line for line in outcome_differences(traces).comparison() if "by model of coder" in line]
        assert of_models(traces) or all(line.endswith("; undecided.") for line in told)
    assert named <= 1  # of 12 at 5 / 3 %
