"""A legend explains the signs that stand in its table, and no others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

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
@pytest.mark.parametrize(("whole", "told"), [(True, True), (False, True), (True, False)])
def test_a_sign_is_explained_where_it_stands(command: list[str], whole: bool, told: bool, tmp_path: Path) -> None:
    """`≥` and `–` were explained above and below tables without either."""
    name, *options = command
    printed = run(name, log(tmp_path, whole=whole, told=told), *options).stdout
    assert printed or (name == "compare" and not told)  # without outcomes there is nothing to compare
    for sign in ("≥", "–"):
        stands = re.search(rf"(^|\s){sign}( \d|\s|$)", printed, re.MULTILINE)
        assert (f"{sign}:" in printed) == bool(stands), (sign, printed)
