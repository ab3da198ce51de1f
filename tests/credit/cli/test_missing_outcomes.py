"""Traces without an outcome end no command: a list of outcomes is shorter than that of traces then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.credit.cli.logs import run, trace, write

SIDES = ("--sides", "system")
COMMANDS = [
    ("summary",), ("summary", "--group-by", "task"), ("summary", *SIDES), ("metrics",), ("metrics", *SIDES),
    ("metrics", "--sides", "model:writer"), ("report", *SIDES), ("doctor",), ("costs", "--by", "system,agent"),
    ("choose",), ("compare",), ("card",), ("validate",), ("traces",), ("audit",),
]  # fmt: skip
PRICED = {"summary", "metrics", "report", "costs"}


@pytest.mark.slow
@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_reads_such_a_log(tmp_path: Path, command: tuple[str, ...], graded: bool) -> None:
    rng = np.random.default_rng(9)
    lines = []
    for i in range(64):
        events = [
            {"id": "a", "type": "message", "agent": "planner", "model": "big", "t": 0, "tokens": 10},
            {"id": "b", "type": "tool_call", "agent": "planner", "tool": "sql", "t": 1, "action": False,
             "status": ("ok", "error")[int(rng.integers(2))]},
            {"id": "c", "type": "message", "agent": "writer", "model": ("big", "small")[int(rng.integers(2))], "t": 2},
        ]  # fmt: skip
        outcome = float(rng.random()) if graded else float(rng.integers(2))
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 4}", "task_kind": "xy"[i // 4 % 2], "events": events,
                      "system": f"v{i % 2}", "edges": [],
                      "rewards": {} if i in (0, 21, 63) else {"team": outcome}})  # fmt: skip
    log, prices = write(tmp_path / "log.jsonl", lines), tmp_path / "prices.csv"
    prices.write_text("model,input,output\nbig,1,10\nsmall,0.2,1\n")
    asked = [*command[:1], log, *command[1:], *(["--prices", prices] if command[0] in PRICED else [])]
    done = run(*asked, *(["-o", tmp_path / "page.html"] if command[0] == "report" else []))
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", ["costs", "summary", "validate", "metrics", "assign"])
def test_the_last_line_is_the_command_with_a_reward_of_the_log(tmp_path: Path, command: str) -> None:
    """`credit costs` ended in "no outcome is known", and the option stood inside a sentence of `summary`."""
    lines = [trace(name, "q", None, rewards={"grader": 1.0, "people": 0.0}) for name in "ab"]
    log, file = write(tmp_path / "log.jsonl", lines), tmp_path / "a.parquet"
    asked = [command, str(log), *(["-o", str(file)] if command == "assign" else [])]
    told = run(*asked).stderr.splitlines()
    assert told[-1] == f"run: credit {' '.join(asked)} --reward-channel grader"
    assert not any(line.startswith("run:") for line in run(*asked, "--reward-channel", "team").stderr.splitlines())
