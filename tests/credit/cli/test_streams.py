"""Standard streams: pipes, readers that leave, and text that must not write to the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .logs import CYCLE, ROOT, run, start, trace, write


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


@pytest.mark.slow
def test_a_stream_that_the_shell_closed(good: Path) -> None:
    command = f'"$0" -m credit assign {good} -o - --method rloo >&-; echo $?; "$0" -m credit validate - <&-; echo $?'
    done = subprocess.run(["sh", "-c", command, sys.executable], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "2"]
    assert "standard output is closed" in done.stderr and "standard input is closed" in done.stderr
    assert "Traceback" not in done.stderr


def test_text_from_logs_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07[bold red]x[/]\r\n"
    path = write(tmp_path / "x.jsonl", [trace("a", evil, 1.0), trace("b", evil, 1.0), CYCLE | {"trace_id": evil}])
    for args in (["validate", path], ["assign", path, "-o", tmp_path / "o.csv"], ["methods", path], ["show", path]):
        result = run(*args)
        assert result.exit_code == 3, result.output
        for character in "\x1b\x07\r":
            assert character not in result.output
    assert "[bold red]x[/]" in run("validate", path).output


def test_a_table_on_standard_output_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\u202ex"
    path = write(tmp_path / "x.jsonl", [trace(evil, "q", 1.0), trace("b", "q", 0.0)])
    out = run("assign", path, "-m", "rloo", "-o", "-").stdout
    assert "owned" in out and not any(c in out for c in "\x1b\x07\u202e")


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


@pytest.mark.slow
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
