"""Calls that are wrong: their exit codes, and no file that is replaced or left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.cli.shared.commands import SEED

from .logs import run


@pytest.mark.parametrize(
    "args",
    [
        ["assign"],
        ["assign", "{good}"],
        ["assign", "{good}", "-o", "x.csv", "--columns", "trace"],
        ["assign", "{good}", "-o", "x.csv", "--rewards", "missing.csv"],
        ["assign", "{good}", "-o", "x.txt"],
        ["assign", "{good}", "-o", "missing/x.csv"],
        ["validate", "{good}", "--nonsense"],
        ["convert", "{good}", "-o", "x.json"],
        ["show", "{good}", "--trace", "zz"],
        ["show", "{good}", "--plot", "x.docx"],
        ["show", "{good}", "--plot", "missing/x.svg"],
        ["convert", "{good}", "-o", "missing/x.jsonl"],
        ["convert", "{good}", "-o", "missing/x.parquet"],
        ["completion", "tcsh"],
        ["nonsense"],
    ],
)
def test_usage_errors_exit_1(good: Path, args: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(a.format(good=good) for a in args))
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert [p.name for p in tmp_path.iterdir()] == ["good.jsonl"]


@pytest.mark.parametrize(
    ("call", "value"),
    [
        *(((f"bench {name}", "-m", "rloo", "-m", "rloo"), "'rloo'") for name in ("bias", "snr", "truth", "robustness")),
        (("bench truth", "--world", "pivotal", "--world", "pivotal"), "'pivotal'"),
        (("bench bias", "--world", "chain", "--world", "chain"), "'chain'"),
        (("bench snr", "--lengths", "10,100,10"), "10"),
        (("bench train", "--methods", "rloo,rloo"), "'rloo'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_value_that_is_given_twice_is_refused(call: tuple[str, ...], value: str) -> None:
    """A second one was dropped, or run again, without a word: `-m rloo -m rloo` may be a slip for `-m rloo -m grpo`."""
    first, *rest = call
    result = run(*first.split(), *rest)
    assert result.exit_code == 1 and f"{value} is given twice" in result.stderr, result.output


LISTS = {
    **{f"bench {name} -m": "rloo,gae" for name in ("bias", "truth", "snr", "robustness", "train")},
    "bench bias --world": "relay-and,spawn-and",
    "bench truth --world": "additive,pivotal",
    "bench train --tasks": "stopping*,mine:task",
    "bench table {file} -m": "rloo,gae",
    "bench table {file} -q": "bias,cosine",
    "bench plot {file} -o a.svg -m": "rloo,gae",
    "bench plot {file} -o a.svg -q": "bias,cosine",
    **{f"{name} {{file}} -m": "rloo,grpo" for name in ("compare", "audit", "compose -o out.csv")},
}


@pytest.mark.parametrize("option", LISTS)
def test_every_list_of_names_takes_the_same_forms(option: str, tmp_path: Path) -> None:
    """`bench truth --world a,b` was a world 'a,b'; `-m "rloo, gae"` a method; `bench train --tasks` took one list.

    `credit compare -m rloo -m grpo` was refused as given twice.
    """
    (tmp_path / "t.csv").write_text("")
    *names, last = option.format(file=tmp_path / "t.csv").split(" ")
    one, other = LISTS[option].split(",")
    forms: list[list[str]] = [[f"{one},{other}"], [f"{one}, {other}"], [one, other]]
    if last == "-m" and names[0] == "bench":
        forms += [[f"{one},gae, lambda 1, {other}"], [one, "gae, lambda 1", other]]
    group = cli.commands[names[0]] if names[0] == "bench" else cli
    assert isinstance(group, click.Group)
    name, *rest = names[1:] if names[0] == "bench" else names
    command = group.commands[name]
    for form in forms:
        found = command.make_context(name, [*rest, *(part for value in form for part in (last, value))]).params
        expected = (one, "gae, lambda 1", other) if "lambda" in str(form) else (one, other)
        assert expected in found.values(), (option, form, found)
    with pytest.raises(click.BadParameter, match="expected names, separated by commas"):
        command.make_context(name, [*rest, last, f"{one},,{other}"])


@pytest.mark.parametrize("command", ["assign", "score reliability", "metrics", "watch", "summary"])
def test_a_second_method_is_refused_where_a_command_takes_one(good: Path, command: str) -> None:
    """The last was taken, and the first dropped without a word."""
    result = run(*command.split(), good, "--method", "rloo", "-m", "grpo")
    assert result.exit_code == 1 and "given twice, and this command takes one" in result.stderr, result.output
    shown = run(*command.split(), "--method", "rloo", "-m", "grpo", "--help")
    assert shown.exit_code == 0 and "Usage" in shown.stdout


@pytest.mark.parametrize("option", ["--rewards", "--groups", "--success-at"])
def test_a_second_table_is_refused(good: Path, tmp_path: Path, option: str) -> None:
    """Labels of three traces beside `--rewards` of all lost the outcomes of 141, without a word."""
    for name in ("1", "2"):
        (tmp_path / name).write_text("trace,reward,group\n")
    result = run("summary", good, option, tmp_path / "1", option, tmp_path / "2")
    assert result.exit_code == 1 and f"'{option}': it is given twice" in result.stderr, result.output


@pytest.mark.parametrize("command", ["validate", "assign", "show", "methods", "convert"])
def test_nothing_read_exits_2(tmp_path: Path, command: str) -> None:
    out = ["-o", str(tmp_path / "out.jsonl")] if command in ("assign", "convert") else []
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"trace_id": "a", "task_id": "q", "events": [')
    result = run(command, broken, tmp_path / "missing.json", *out)
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[0] == "error: no trace could be read"
    assert "[no-such-file]" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["broken.jsonl"]


@pytest.mark.parametrize("command", ["assign", "compose", "audit"])
def test_no_output_replaces_an_input(command: str, good: Path) -> None:
    before = good.read_bytes()
    chosen = ["--method", "rloo"] if command == "assign" else ["--methods", "rloo"]
    result = run(command, good, *chosen, "-o", good)
    assert result.exit_code == 1 and "is an input; expected another file" in result.output
    assert good.read_bytes() == before


def test_whether_a_path_can_be_read_is_seen_by_reading_it(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot is a problem beside what the others hold, not a wrong call."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert run("validate", good).exit_code == 0


def test_no_output_replaces_a_log_in_a_folder_that_is_read(good: Path, tmp_path: Path) -> None:
    before = good.read_bytes()
    result = run("convert", tmp_path, "-o", good)
    assert result.exit_code == 1 and "is a log in a folder that is read; expected another file" in result.output
    good.rename(tmp_path / "spans.jsonl")
    for logs in (tmp_path, tmp_path / "spans.jsonl"):
        result = run("convert", logs, "--to", "otlp", "-o", tmp_path)
        assert result.exit_code == 1 and "expected another file" in result.output
    assert (tmp_path / "spans.jsonl").read_bytes() == before
    for _ in range(2):  # a table of results is no log
        assert run("assign", tmp_path, "-o", tmp_path / "advantages.csv").exit_code == 0


def test_two_outputs_are_two_files(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "l.csv"
    result = run("compose", good, "--methods", "rloo", "-o", out, "--advantage", "entry", "--advantages-to", out)
    assert result.exit_code == 1 and "expected another file" in result.output
    assert not out.exists()


def test_the_call_without_arguments_says_what_to_do_first() -> None:
    result = run()
    assert result.exit_code == 0
    for command in ("credit demo", "credit validate", "credit choose"):
        assert command in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["asign"], "No command 'asign'. Did you mean assign?"),
        (["zzz"], "`credit --help` lists all."),
        (["rloo"], "No command 'rloo'. Python has it: `python -c \"import credit; help(credit.rloo)\"`."),
    ],
)
def test_a_wrong_command_is_answered_by_near_names_under_one_prefix(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 1 and words in result.stderr
    assert "\nerror: " in result.stderr and "Error:" not in result.stderr


def test_every_command_has_examples_that_name_it() -> None:
    from credit.cli.shared.commands import Command

    def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for part in command.list_commands(context):
                found = command.get_command(context, part)
                assert found is not None
                yield from leaves(found, f"{name} {part}")
        else:
            yield name, command

    for name, command in leaves(cli, "credit"):
        if name == "credit completion":
            continue
        assert isinstance(command, Command) and command.examples, name
        assert any(line.startswith(name) for line in command.examples), name


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["validate", "{good}", "--format", "tau"], "expected one of native, tau-bench, "),
        (["validate", "{good}", "--format", "tau"], "spans, table. Did you mean tau-bench or tau2-bench?"),
        (["assign", "{good}", "-o", "x.csv", "-m", "gae", "--option", "lambda=1"], "; did you mean lambda_?"),
        (["methods", "no_such_folder/"], "'no_such_folder/' does not exist; expected logs or a method"),
        (["methods", "runs.jsonl"], "'runs.jsonl' does not exist; expected logs or a method"),
        (["methods", "rlo"], "no method is called 'rlo'; did you mean rloo?"),
        (
            ["convert", "{good}", "-o", "x.foo"],
            "Invalid value for --output: 'x.foo'; expected a name ending in .jsonl, ",
        ),
        (["bench", "snr", "-m", "rlo"], "did you mean 'rloo'"),
        (["bench", "snr", "-m", "zzzz"], "or one of the schemes 'shared, group mean', 'shared, leave one out', "),
    ],
)
def test_errors_name_what_was_meant(
    good: Path, args: list[str], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(a.format(good=good) for a in args))
    assert result.exit_code == 1 and message in result.stderr, result.stderr


def test_a_folder_without_logs_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("hi")
    result = run("validate", folder)
    assert result.exit_code == 2 and f"no log among 1 file of {folder}; logs end in .json" in result.stderr


def test_every_seed_is_refused_by_name_where_no_generator_takes_it() -> None:
    """`bench snr --seed -1` ended in a traceback, and each command had a rule of its own."""

    def leaves(command: click.Command, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
        if isinstance(command, click.Group):
            with click.Context(command) as ctx:
                for name in command.list_commands(ctx):
                    yield from leaves(command.get_command(ctx, name), (*names, name))  # type: ignore[arg-type]
        else:
            yield names, command

    seeds = [(names, p) for names, command in leaves(cli, ()) for p in command.params if "--seed" in p.opts]
    assert len(seeds) >= 10
    for names, parameter in seeds:
        assert parameter.type is SEED, names
    found = CliRunner().invoke(cli, ["bench", "snr", "--quick", "--seed", "-1"])
    assert found.exit_code == 1 and "Invalid value for '--seed'" in found.output and "Traceback" not in found.output


@pytest.mark.parametrize(
    "command", ["why a e", "doctor", "metrics", "summary", "choose", "compare --methods rloo,grpo"]
)
def test_every_command_names_once_what_single_precision_changes(tmp_path: Path, command: str) -> None:
    """`why` and `doctor` used numbers that were a third off, without a word."""
    event = {"id": "e", "type": "message", "agent": "a"}
    lines = [{"schema_version": "1.0", "trace_id": name, "task_id": "q", "events": [event], "edges": [], "costs": {},
              "rewards": {"team": 1e6 + 0.1 * i}} for i, name in enumerate("abcd")]  # fmt: skip
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    name, *rest = command.split()
    result = run(name, tmp_path / "x.jsonl", *rest)
    assert result.exit_code == 0 and result.output.count("single precision") == 1, result.output
