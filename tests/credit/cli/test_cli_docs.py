"""docs/command-line.md names every command, every option and every exit code, and its examples run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from site_pages import page

import credit.cli as door
from credit.cli import cli

ROOT = Path(__file__).resolve().parents[3]
PAGE = page("command-line")
OF_OTHERS = {
    *("--beside", "--contexts", "--repeats", "--warm", "--xla"),  # of the benchmarks' scripts and of XLA
    *("--abbrev", "--always", "--dirty", "--error-unmatch", "--exclude"),  # of git
    "--external",  # of ms-swift, whose option goes on in _plugins
    "--output-format",  # of Claude Code
    *(
        "--advantage-estimator",
        "--custom-reward-post-process-path",
        "--save",
        "--save-debug-rollout-data",
    ),  # of slime and of ADK
}


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_and_option_is_described(name: str) -> None:
    assert f"`credit {name}" in PAGE
    for parameter in cli.commands[name].params:
        for option in (o for o in parameter.opts if o.startswith("--")):
            assert f"`{option}" in PAGE, f"{name} {option}"


def options(command: click.Command) -> set[str]:
    """The names of its options and of those of its subcommands."""
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            names |= set() if inner is None else options(inner)
    return names | {"--help"}


@pytest.mark.slow
def test_every_option_that_a_page_or_a_message_names_exists() -> None:
    """Two pages and two messages told users to pass `--reward`."""
    known = options(cli) | OF_OTHERS
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    files += [path for package in ("credit", "estimators", "graphs") for path in (ROOT / package).rglob("*.py")]
    named = {
        (str(path.relative_to(ROOT)), option)
        for path in files
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", path.read_text())
    }
    assert {(path, option) for path, option in named if option not in known} == set()


def test_every_exit_code_is_described() -> None:
    codes = {door.USAGE, door.NOTHING_READ, door.INTERRUPTED, door.BROKEN_PIPE, door.TERMINATED, door.REFUSED, 0}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == codes


@pytest.mark.slow
def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    traces = [
        {
            "trace_id": f"t{i}",
            "task_id": f"q{i // 3}",
            "events": [{"id": "e0", "t": 0, "type": "message", "agent": "solver"}],
            "edges": [],
            "rewards": {"team": float(i % 3)},
            "costs": {"tokens": 1, "wall_clock_s": 1.0},
        }
        for i in range(18)
    ]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.jsonl").write_text("".join(json.dumps(t) + "\n" for t in traces))
    monkeypatch.chdir(tmp_path)
    commands = [line[2:] for line in PAGE.splitlines() if line.startswith("$ credit") and "completion" not in line]
    assert len(commands) == 23
    for command in commands:
        result = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert result.exit_code == 0, f"{command}\n{result.output}"
    assert {p.name for p in tmp_path.iterdir()} == {
        "runs",
        "advantages.parquet",
        "t17.svg",
        "traces.jsonl.zst",
        "otlp",
        "corpus.parquet",
        "ledger.parquet",
        "payments.csv",
        "methods.svg",
    }


def test_every_help_has_examples() -> None:
    def without(command: click.Command, name: str) -> list[str]:
        if isinstance(command, click.Group):
            return [n for part, inner in command.commands.items() for n in without(inner, f"{name} {part}")]
        return [] if getattr(command, "examples", ()) else [name]

    assert without(cli, "credit") == []


@pytest.mark.parametrize(
    ("name", "first"),
    [("compose", ["--output", "--method", "--advantages-to"]), ("assign", ["--output", "--method"]),
     ("compare", ["--method", "--output"]), ("show", ["--method"]), ("convert", ["--output"])],
)  # fmt: skip
def test_help_begins_with_what_most_calls_name(name: str, first: list[str]) -> None:
    text = CliRunner().invoke(cli, [name, "--help"]).stdout.partition("\nOptions:\n")[2]
    own, _, rest = text.partition("\n\n")
    options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", own, re.MULTILINE)
    assert options[: len(first)] == first and options[-1] == "--help", options
    assert "--reward-channel" in rest


def test_a_benchmark_has_no_section_on_logs() -> None:
    text = CliRunner().invoke(cli, ["bench", "snr", "--help"]).stdout
    assert "--group-size" in text and "Reading logs" not in text


def test_an_option_of_one_command_is_in_no_section_of_others() -> None:
    """`bench train --groups` stood under "Reading logs", which it does not do, and `report --title` under "Picture"."""
    told = CliRunner().invoke(cli, ["bench", "train", "--help"]).output
    assert "Groups of a step" in told.partition("Picture:")[0] and "Reading logs" not in told
    assert "Picture:" not in CliRunner().invoke(cli, ["report", "--help"]).output
