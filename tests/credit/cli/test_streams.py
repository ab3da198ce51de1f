"""Standard streams: pipes, readers that leave, and text that must not write to the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table

from credit.cli.shared.answers import plain_table, ruled_table, stdout

from .logs import CYCLE, ROOT, run, start, trace, write


@pytest.mark.slow
def test_standard_input_and_standard_output(good: Path) -> None:
    process = start("assign", "-", "-o", "-", "--method", "rloo", stdin=subprocess.PIPE)
    out, err = process.communicate(good.read_bytes())
    assert process.returncode == 0, err
    assert len(out.splitlines()) == 16
    assert b"\x1b" not in err and b"wrote 15 rows" in err


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    many = [trace(f"t{i}", f"q{i // 8}", float(i % 3)) for i in range(1000)]
    with start("assign", write(tmp_path / "x.jsonl", many), "-o", "-") as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stream", "command"),
    [("stdout", "--help"), ("stdout", "assign --help"), ("stdout", "--version"), ("stdout", "schema"),
     ("stdout", "methods"), ("stderr", "assign"), ("stderr", "validate missing")],
)  # fmt: skip
@pytest.mark.sampled
def test_every_command_leaves_in_silence_when_its_reader_left(stream: str, command: str) -> None:
    read, gone = os.pipe()
    os.close(read)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {stream: gone}
    process = subprocess.run([sys.executable, "-m", "credit", *command.split()], cwd=ROOT, check=False, **streams)
    os.close(gone)
    assert process.returncode == 141
    assert not process.stdout and not process.stderr


@pytest.mark.study
def test_a_stream_that_the_shell_closed(good: Path) -> None:
    command = f'"$0" -m credit assign {good} -o - --method rloo >&-; echo $?; "$0" -m credit validate - <&-; echo $?'
    done = subprocess.run(["sh", "-c", command, sys.executable], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "2"]
    assert "standard output is closed" in done.stderr and "standard input is closed" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_text_from_logs_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07[bold red]x[/]\r\n"
    path = write(tmp_path / "x.jsonl", [trace("a", evil, 1.0), trace("b", evil, 1.0), CYCLE | {"trace_id": evil}])
    for args in (["validate", path], ["assign", path, "-o", tmp_path / "o.csv"], ["methods", path], ["show", path]):
        result = run(*args)
        assert result.exit_code == 3, result.output
        for character in "\x1b\x07\r":
            assert character not in result.output
    assert "[bold red]x[/]" in run("validate", path).output


@pytest.mark.slow
def test_a_table_on_standard_output_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\u202ex"
    path = write(tmp_path / "x.jsonl", [trace(evil, "q", 1.0), trace("b", "q", 0.0)])
    out = run("assign", path, "-m", "rloo", "-o", "-").stdout
    assert "owned" in out and not any(c in out for c in "\x1b\x07\u202e")


CONTROLS = "\x1b]0;owned\x07\u202e\x9b31m\x85\u2028\x7f\U000e0041"
"""Ends in an unseen tag; `\\x9b` begins a sequence as the escape character does, and JSON may hold it raw."""

PRINTING = ["validate", "traces", "show", "choose", "methods", "summary -m rloo", "watch --once -m rloo"]
PRINTING += ["explain -m rloo", "audit -m rloo,gae", "compare -m rloo,gae"]  # which compile more


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("option", ["--json", ""])
@pytest.mark.parametrize("command", PRINTING)
def test_no_command_prints_what_could_control_a_terminal(command: str, option: str, tmp_path: Path) -> None:
    """All names of a log, also that of its file."""

    def named(number: int) -> dict[str, object]:
        more: list[dict[str, object]] = [
            {"type": "message"}, {"type": "spawn", "to": f"a1{CONTROLS}"}, {"type": "tool_call", "tool": CONTROLS},
            {"type": "message"},
        ]  # fmt: skip
        of_all = {"role": CONTROLS, "value": 0.5}
        events = [
            {"id": f"{i}{CONTROLS}", "t": i, "agent": f"a{i // 2}{CONTROLS}"} | of_all | one
            for i, one in enumerate(more)
        ]
        edges = [{"src": f"{i}{CONTROLS}", "dst": f"{i + 1}{CONTROLS}", "type": "causal"} for i in range(3)]
        names = {"trace_id": f"t{number}{CONTROLS}", "task_id": f"q{CONTROLS}", "model": CONTROLS, "system": CONTROLS}
        numbers = {"rewards": {"team": float(number % 2), CONTROLS: 0.5}, "metrics": {CONTROLS: 1.0}}
        return names | numbers | {"events": events, "edges": edges}

    bad = {"trace_id": CONTROLS, "task_id": 3}
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs" / "x\x1b[2J.jsonl", [*map(named, range(4)), bad])
    name, *options = command.split()
    event = [f"t0{CONTROLS}", f"2{CONTROLS}"] if name == "explain" else []
    result = run(name, tmp_path / "runs", *event, *options, *option.split())
    assert result.exit_code in (0, 3), result.output
    assert [c for c in result.output if not c.isprintable() and c != "\n"] == []
    if option and name in ("validate", "traces", "show", "explain", "audit", "compare"):
        assert any(CONTROLS in text for text in texts(json.loads(result.stdout)))  # which programs get as it is


def texts(value: Any) -> Iterator[str]:
    """All strings of a JSON value."""
    if isinstance(value, str):
        yield value
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        yield from texts(part)


ONE_AFTER_ANOTHER = """
import sys
from credit.__main__ import main
for command in {commands}:
    sys.argv = ["credit", *command.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (command, ended.code)
    print("\\n== end of", command)
"""


@pytest.mark.study
def test_a_console_without_a_character_shows_the_others(good: Path) -> None:
    """In one process, since loading JAX takes longer than the commands."""
    names = ("show", "audit", "compare", "validate", "methods", "choose")
    commands = [f"{name} {good}" + " --methods rloo,grpo" * (name in ("audit", "compare")) for name in names]
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER.format(commands=commands)],
        cwd=ROOT,
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "cp1252"},
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    shown = done.stdout.decode("cp1252")
    for command in commands:
        own, end, shown = shown.partition(f"== end of {command}")
        assert end and own.strip(), command


def test_a_table_in_a_file_is_as_wide_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`bench train` broke long names of methods at 120 columns; whether a table did was up to each command."""
    for table in (ruled_table("task", "method", "#area"), plain_table("task", "method", "#area"), Table("a", "b", "c")):
        table.add_row("bottleneck", "mine:an_estimator " * 9, "0.5")
        stdout().print(table)
        shown = capsys.readouterr().out
        assert ("mine:an_estimator " * 9).strip() in shown
        monkeypatch.setenv("COLUMNS", "60")
        stdout().print(table)
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
        monkeypatch.delenv("COLUMNS")
