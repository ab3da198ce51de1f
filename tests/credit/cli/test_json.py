"""`--json` prints one JSON object on standard output, for every command that prints; messages go to standard error."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from rich.console import Console

import graphs.logs
from credit.cli import cli
from credit.cli.shared import progress
from credit.cli.shared.progress import ReadingBar, steps, working
from graphs.errors import Problem
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

from .logs import run, trace, write

NO_REPORT = {
    "bench plot": "draws",
    "completion": "prints a script",
    "schema": "prints JSON in any case",
    "view": "serves pages",
}
"""Commands without the option, and why."""

OWN_TESTS = {"score reliability", "score blame", "bench snr", "bench table", "report", "label", "watch"}
"""Commands whose own tests parse what `--json` prints."""

NEEDS = {"demo": ("matplotlib",), "fit critic": ("flax", "optax"), "bench train": ("optax",)}
DRIVER = """
def rerun(prefix, replace, forbid, seed):
    return float(seed % 2)
"""


def leaves(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Commands without subcommands, by their names."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            yield from leaves(inner, f"{name} {part}".strip())
    else:
        yield name, command


COMMANDS = dict(leaves(cli))

CALLS: dict[str, tuple[str, set[str]]] = {
    "validate": ("{logs}", {"traces", "groups", "teaching", "problems"}),
    "traces": ("{logs}", {"traces"}),
    "show": ("{logs}", {"trace", "agents", "events"}),
    "summary": ("{logs}", {"by", "method", "units", "without", "divided_tasks"}),
    "why": ("{logs} a e1", {"trace", "event", "method", "actions"}),
    "if-edited": ("{logs} a e0", {"invalidated", "tokens", "change"}),
    "untrusted": ("{logs} --type tool_result", {"method", "by", "units"}),
    "decisions": ("{stops}", {"of", "basis", "price", "decisions"}),
    "costs": ("{logs} --by role", {"by", "costs", "groups"}),
    "card": ("{logs}", {"lines"}),
    "doctor": ("{logs}", {"method", "level", "checks"}),
    "metrics": ("{logs}", {"by", "method", "metrics"}),
    "assign": ("{logs} -m rloo -o {out}.csv", {"method", "with_advantage", "without", "rows", "output"}),
    "methods": ("{logs}", {"rloo", "gae"}),
    "choose": ("{logs}", set()),
    "convert": ("{logs} -o {out}.jsonl", {"traces", "to", "output"}),
    "plan": ("{logs} --for value --budget 160 -o {out}.jsonl", {"for", "decisions", "runs", "output"}),
    "siblings": ("{logs} -o {out}.jsonl", {"actions", "with_siblings", "contexts", "spawn", "whom", "output"}),
    "shapley plan": ("--units a,b,c --budget 8 -o {out}.jsonl", {"method", "rows", "output"}),
    "bench bias": ("--method rloo --world stop-rewards", {"fields", "rows"}),
    "bench truth": ("--method rloo --world pivotal --events 40 --traces 16", {"team", "seed", "rows"}),
}
SLOW: dict[str, tuple[str, set[str]]] = {
    "bench worlds": ("", {"worlds"}),
    "check": ("rloo", {"method", "passed", "laws", "unmeasured"}),
    "bench doctor": ("--worlds 1 --agents 3,4 --events 40,60 --tasks 2,3", {"seed", "worlds", "rows", "to_write"}),
    "bench robustness": ("--method rloo", {"world", "seed", "rows", "to_write"}),
    "compare": ("{logs} -m rloo,gae", set()),
    "audit": ("{logs} -m rloo,gae", set()),
    "explain": ("{logs} a e0 -m gae", {"event", "entry"}),
    "compose": ("{logs} -m rloo,gae -o {out}.csv", {"rule", "took_part", "totals", "explained", "noise", "output"}),
    "demo": ("-o {out}", {"traces", "rank_correlation", "files"}),
    "fit critic": ("{logs} -o {out} --model additive --members 1", {"model", "held_out", "validation_loss"}),
    "bench train": ("--quick --methods zero --tasks bottleneck --seeds 1 --steps 2", {"rows"}),
    "replay": ("{plan} --driver driver_of_json:rerun --results {out}.jsonl", {"done", "failed"}),
    "shapley solve": ("{game} {values}", {"shares", "total"}),
}


def logs(folder: Path) -> Path:
    """Eight tasks of four traces, with values before each action."""
    lines = []
    for i in range(32):
        line = trace("a" if i == 0 else f"t{i}", f"q{i // 4}", float(i % 3 == 0))
        for event, value in zip(line["events"], (0.25, 0.5, 0.75)[:: 1 - 2 * (i % 2)], strict=True):
            event["value"] = value
        lines.append(line)
    return write(folder / "logs.jsonl", lines)


def stops(folder: Path) -> Path:
    """Four traces of one decision each, to stop or to go on."""
    lines = []
    for i, kind in enumerate(["stop", "message"] * 2):
        event = {"id": "e", "type": kind, "agent": "lead", "stop_propensity": 0.5}
        lines.append({"trace_id": f"s{i}", "task_id": "q", "events": [event], "rewards": {"team": i / 4}})
    return write(folder / "stops.jsonl", lines)


@pytest.fixture
def names(tmp_path: Path) -> dict[str, Any]:
    return {"logs": logs(tmp_path), "stops": stops(tmp_path), "out": tmp_path / "out"}


def test_every_command_that_prints_has_the_option() -> None:
    without = {name for name, command in COMMANDS.items() if not any("--json" in p.opts for p in command.params)}
    assert without <= NO_REPORT.keys()
    assert COMMANDS.keys() - NO_REPORT.keys() <= CALLS.keys() | SLOW.keys() | OWN_TESTS


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", CALLS)
def test_standard_output_is_one_object(name: str, names: dict[str, Any]) -> None:
    arguments, keys = CALLS[name]
    result = run(*name.split(), *arguments.format(**names).split(), "--json")
    assert result.exit_code == 0, result.output
    plain = json.loads(result.stdout)
    assert isinstance(plain, dict) and keys <= plain.keys(), sorted(plain)


def test_a_table_and_an_object_do_not_share_standard_output(names: dict[str, Any]) -> None:
    result = run("assign", names["logs"], "-o", "-", "--json")
    assert result.exit_code == 1 and "expected a file with --json" in result.stderr


@pytest.mark.slow
def test_the_object_has_the_numbers_that_are_printed(names: dict[str, Any]) -> None:
    log, out = names["logs"], f"{names['out']}.csv"
    plain = json.loads(run("summary", log, "--by", "agent", "-m", "gae", "--json").stdout)
    printed = run("summary", log, "--by", "agent", "-m", "gae").stdout
    for unit in plain["units"]:
        line = next(line for line in printed.splitlines() if line.startswith(unit["name"]))
        assert f"{unit['advantage']:+.3f}" in line and f" {unit['actions']} " in line, line

    plain = json.loads(run("assign", log, "-m", "rloo", "-o", out, "--json").stdout)
    printed = run("assign", log, "-m", "rloo", "-o", out).stderr
    assert f"{plain['with_advantage']} with an advantage" in printed and f"wrote {plain['rows']} rows" in printed


@pytest.mark.slow
def test_the_object_of_a_ledger_has_the_numbers_that_are_printed(names: dict[str, Any]) -> None:
    calls = ("compose", names["logs"], "-m", "rloo,gae", "-o", f"{names['out']}.csv")
    plain, printed = json.loads(run(*calls, "--json").stdout), run(*calls).stderr
    assert f"{plain['with_entry']} of {plain['actions']} actions with an entry" in printed
    assert plain["accounted_for"] is not None
    assert f"own outcome is known, too: {plain['accounted_for']:.3f}" in printed


def test_a_bar_is_shown_on_a_terminal_only() -> None:
    for terminal in (True, False):
        text = io.StringIO()
        console = Console(file=text, force_terminal=terminal, width=100)
        assert list(steps(console, ["rloo", "gae"])) == ["rloo", "gae"]
        with working(console, "computing [gae]"):
            pass
        assert ("computing gae" in text.getvalue() and "computing [gae]" in text.getvalue()) is terminal


def test_a_run_without_a_terminal_says_each_minute_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of minutes ended with "nothing is measured yet" while runs were made."""
    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    console = Console(file=(text := io.StringIO()), force_terminal=False)
    assert len(list(steps(console, [f"m{number}" for number in range(6)]))) == 6
    lines = text.getvalue().splitlines()
    assert 2 <= len(lines) <= 5 and lines[0].startswith("computing m") and lines[0].endswith(" of 6 after 0 minutes")


def test_the_bar_of_reading_knows_how_much_is_left(tmp_path: Path) -> None:
    seen: list[tuple[float, float | None]] = []

    class Bar:
        def track(self, items: Any, description: str) -> Any:
            return items

        def add_task(self, text: str, total: float | None) -> int:
            seen.append((0.0, total))
            return 0

        def update(self, task: int, completed: float) -> None:
            seen.append((completed, seen[0][1]))

    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", [trace(f"{name}{i}", "q", 1.0) for i in range(4)])
    progress: Any = Bar()
    bar = ReadingBar(progress)
    traces = graphs.logs.read(tmp_path, progress=bar.opening, watch=bar.reading)
    assert traces.sizes.traces == 8
    done = [completed for completed, _ in seen]
    assert {total for _, total in seen} == {100} and done == sorted(done) and done[-1] == 100
    found = graphs.logs.open_logs(tmp_path).sources
    size = (tmp_path / "a.jsonl").stat().st_size
    places = [(found[0], 0), (found[0], size // 2), (found[1], 0), (found[1], size // 2)]
    records: Any = [TraceRecord("t", "q", source.name, offset=offset) for source, offset in places]
    seen.clear()
    assert list(bar.reading(records)) == records
    assert [completed for completed, _ in seen] == pytest.approx([0, 0, 25, 50, 75, 100], abs=0.5)

    seen.clear()
    list(bar.opening([Source("-", None)]))
    assert list(bar.reading([Problem("bad-json", "-", 1, "content", "{", "an object")])) != []
    assert seen == [(0.0, None)]  # standard input: nobody knows how long it is


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_standard_output_of_slow_commands_is_one_object(
    name: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in NEEDS.get(name, ()):
        pytest.importorskip(module)
    if name == "replay":
        (tmp_path / "driver_of_json.py").write_text(DRIVER)
        monkeypatch.syspath_prepend(str(tmp_path))
        names["plan"] = tmp_path / "plan.jsonl"
        assert run("plan", names["logs"], "--for", "value", "--budget", 160, "-o", names["plan"]).exit_code == 0
    if name == "shapley solve":
        names |= {"game": tmp_path / "game.jsonl", "values": tmp_path / "values.jsonl"}
        assert run("shapley", "plan", "--units", "a,b,c", "--budget", 8, "-o", names["game"]).exit_code == 0
        rows = range(8)
        names["values"].write_text("".join(f'{{"row": {row}, "value": {row}.0}}\n' for row in rows))
    arguments, keys = SLOW[name]
    result = run(*name.split(), *arguments.format(**names).split(), "--json")
    assert result.exit_code == 0, result.output
    plain = json.loads(result.stdout)
    assert isinstance(plain, dict) and keys <= plain.keys(), sorted(plain)
