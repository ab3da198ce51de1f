"""The head of a summary names the tool that a release calls more often, or less."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.page.findings import Findings
from credit.page.overview import overview
from credit.sides.compare_sides import compare_systems

TWICE = {"kb_search": ("diagnoser", 0.5), "query": ("dba", 0.3), "apply": ("remediator", 0.35)}
"""Who calls a tool, and in which part of the traces twice instead of once."""


def acted(random: np.random.Generator, name: str, agent: str, at: float) -> dict[str, Any]:
    tokens, read = (int(random.lognormal(mean, 0.4)) for mean in (4, 6))
    return {"id": name, "type": "message", "agent": agent, "t": at, "tokens": tokens, "input_tokens": read}


def log_of(folder: Path, seed: int, more: dict[str, float], runs: int = 1) -> Path:
    """80 traces of two releases, of which the second calls each tool by so many times more."""
    random, lines = np.random.default_rng(seed), []
    for number in range(80):
        new, events, now = number % 2, [], 0.0
        for tool, (agent, often) in TWICE.items():
            for at in range(1 + (random.random() < often) + int(random.poisson(more.get(tool, 0.0) * new))):
                now += random.exponential(2.0)
                call = {"type": "tool_call", "agent": agent, "tool": tool, "action": False, "t": now, "status": "ok"}
                events += [acted(random, f"{tool}{at}", agent, now), call | {"id": f"{tool}{at}c"}]
        events.append(acted(random, "end", "scribe", now + random.exponential(9)))
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // runs}", "system": f"v{1 + new}",
                      "events": events, "edges": [], "rewards": {"team": float(random.random() < 0.6)}})  # fmt: skip
    (log := folder / f"{seed}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return log


@pytest.mark.parametrize("runs", [1, 2])
def test_the_tool_that_is_called_more_often_stands_after_success_wherever_a_head_is(tmp_path: Path, runs: int) -> None:
    """A release that searched twice more in each run was told by its three consequences, tokens and seconds."""
    log = log_of(tmp_path, 0, {"kb_search": 2.0}, runs)
    printed = json.loads(CliRunner().invoke(cli, ["summary", str(log), "--json"], catch_exceptions=False).stdout)
    (told,) = (one for one in printed["findings"] if one["name"] == "What changed from v1 to v2")
    success, calls, costs = told["lines"][:3]
    assert success.startswith("Success: no change shown") and re.match("v2 takes .* times the tokens", costs)
    means = re.fullmatch(r"Calls of kb_search by diagnoser: ([\d.]+) to ([\d.]+) a trace\.", calls)
    called = [[len(re.findall(r'"kb_search\d+c"', line)) for line in log.read_text().splitlines()[side::2]]
              for side in (0, 1)]  # fmt: skip
    assert means and np.allclose([float(one) for one in means.groups()], np.mean(called, axis=1), rtol=5e-3)
    assert told in overview(Findings.of(credit.read(log), {}))["findings"]


def test_a_change_of_calls_that_is_nobody_s_is_told_of_all(tmp_path: Path) -> None:
    found = compare_systems(credit.read(log_of(tmp_path, 0, dict.fromkeys(TWICE, 0.9))))
    assert found is not None and re.fullmatch(r"Tool calls: [\d.]+ to [\d.]+ a trace\.", found.in_short()[1])


@pytest.mark.parametrize("logs", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_calls_change_by_chance_in_no_more_than_one_of_twenty_logs(tmp_path: Path, logs: int) -> None:
    """And a tool that is called twice more in a trace is named in nearly all."""
    chance, planted = (
        [compare_systems(credit.read(log_of(tmp_path, seed, more))) for seed in range(of)]
        for more, of in (({}, logs), ({"kb_search": 2.0}, logs // 2))
    )
    assert (
        sum(one is None or re.search("^(Tool c|C)alls", "\n".join(one.in_short()), re.M) is not None for one in chance)
        <= logs / 20
    )
    named = ["Calls of kb_search by diagnoser: " in " ".join(one.in_short()) for one in planted if one is not None]
    assert sum(named) >= 0.9 * (logs // 2)
