"""A legend is short, and explains the signs that stand in its table and no others."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from credit.cli.shared import answers
from tests.credit.reports.test_missing_lines import LOST, line

from .logs import run, write

COMMANDS = [
    ["summary"], ["summary", "--by", "tool"], ["traces"], ["costs", "--by", "trace"], ["costs", "--by", "tool"],
    ["card"], ["untrusted"], ["why", "t1", "r0"], ["compare", "--methods", "rloo,turn_baseline"],
    ["metrics", "--sides", "model"],
]  # fmt: skip


def log(folder: Path, *, whole: bool, told: bool) -> Path:
    """Traces with outcomes, times, arguments and counts, or with lines missing, or without what a cell would tell."""
    lines: list[dict[str, Any]] = []
    for i in range(4):
        more: dict[str, Any] = {} if whole or i else {"metrics": LOST}
        one = line(f"t{i}", failed=told, **more) | {"rewards": {"team": float(i % 2)}, "model": f"m{i // 2}"}
        for event in one["events"]:
            event["trusted"] = event["type"] != "tool_result"
            if event["type"] == "tool_call" and told:
                event["arguments"] = {"q": event["id"]}
            if not told:
                event.pop("t"), event.pop("tokens", None), event.pop("status", None)
        lines.append(one if told else one | {"rewards": {}})
    return write(folder / "log.jsonl", lines)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("whole", "told"), [pytest.param(True, True, marks=pytest.mark.slow), (False, True), (True, False)]
)
def test_a_sign_is_explained_where_it_stands(command: list[str], whole: bool, told: bool, tmp_path: Path) -> None:
    """`≥` and `–` were explained above and below tables without either."""
    name, *options = command
    printed = run(name, log(tmp_path, whole=whole, told=told), *options).stdout
    assert printed or (name == "compare" and not told)  # without outcomes there is nothing to compare
    for sign in ("≥", "–"):
        stands = re.search(rf"(^|\s){sign}( \d|\s|$)", printed, re.MULTILINE)
        assert (f"{sign}:" in printed) == bool(stands), (sign, printed)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("command", [*COMMANDS, ["metrics"], ["metrics", "--of", "team"], ["doctor"]], ids=" ".join)
def test_a_legend_is_read(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of 80 to 120 words stood under each table: what columns say by their names, and signs of no cell."""
    name, *options = command
    log = log_of_many(tmp_path)
    run(name, log, *options)  # so that its modules are there
    said: list[list[str]] = []

    class Told:
        def print(self, text: object, **how: Any) -> None:
            said[-1].append(str(text))

    def explain(console: object, *of: Any) -> None:
        said.append([])
        answers_explain(Told(), *of)  # type: ignore[arg-type]

    answers_explain = answers.explain
    for module in [*sys.modules.values()]:
        if getattr(module, "explain", None) is answers_explain:
            monkeypatch.setattr(module, "explain", explain)
    printed = run(name, log, *options).stdout
    assert said, printed
    for lines in said:
        assert sum(len(line.split()) for line in lines) <= 60, lines
        assert all(len(line.split()) <= 20 for line in lines), lines


def log_of_many(folder: Path) -> Path:
    """Two versions with errors, loops, lost counts and outcomes of both kinds in each of ten tasks."""
    lines = []
    for i in range(80):
        one = line(f"t{i}", failed=i % 3 > 0) | {"task_id": f"q{i % 10}", "rewards": {"team": float(i % 7 > 2)}}
        one |= {"model": f"m{i % 20 // 10}", "system": f"v{i % 40 // 20}"}
        for event in one["events"]:
            event["trusted"] = event["type"] != "tool_result"
            if event["type"] == "tool_call":
                event["arguments"] = {"q": 1}
            if i == 5:
                event.pop("tokens", None)
        lines.append(one)
    return write(folder / "log.jsonl", lines)
