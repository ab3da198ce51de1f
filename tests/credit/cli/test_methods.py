"""`credit methods`: every promise, and what logs allow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from credit.cli.composition.explain import _number
from credit.critics.fitted_critic import Critic

from .logs import GOOD, run, trace, write


def test_methods_lists_every_promise() -> None:
    from credit.methods.registry import METHODS

    result = run("methods")
    assert result.exit_code == 0
    for name in METHODS:
        assert name in result.stdout
    plain = json.loads(run("methods", "--json").stdout)
    assert plain["remax"]["needs"] == ["greedy_reward"] and plain["rloo"]["unbiased"] is True


def states(*traces: dict[str, Any], path: Path) -> dict[str, tuple[str, str]]:
    result = run("methods", "--json", write(path, traces))
    assert result.exit_code == 0, result.output
    return {name: (m["state"], m["why"]) for name, m in json.loads(result.stdout).items()}


def test_the_page_of_a_method_says_in_words_what_its_options_are() -> None:
    shown = run("methods", "rloo").stdout
    assert "names of parts by commas or in a tuple, arrays of integers" in shown and "str or str" not in shown


def test_a_published_name_is_its_method_with_its_options() -> None:
    """The page of Turn-LOO had the summary, unit, status and papers of `rloo`, and its prose as if its own."""
    head, general, prose = run("methods", "Turn-LOO").stdout.partition("rloo, in general\n")
    assert general and prose.startswith("Leave-one-out baseline")
    facts = {line[:14].strip(): line[14:].strip() for line in head.splitlines()[1:] if line[:14].strip()}
    assert facts["published as"] == "Turn-LOO (AgentCreditBench)"
    assert facts["computes"] == "rloo with by=task,step, population=row, singleton=raw"
    assert facts["formula"].startswith("of rloo: A_i = R_i")
    assert facts["unit"].startswith("event") and (facts["estimand"], facts["status"]) == ("scale", "released")
    assert "agent-credit-bench" in facts["reference"] and "Kool" not in head
    shown = run("methods", "Dr. MAS").stdout  # taken for a file, since its name has a dot
    assert "dr_mas: each row against" in shown and "--method 'Dr. MAS' -o" in shown


def test_names_of_methods_are_methods_and_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`opo max_rl` were two files that do not exist, and a folder `c3` hid the method."""
    monkeypatch.chdir(tmp_path)
    shown = run("methods", "opo", "max_rl").stdout
    assert "\n\nmax_rl\n" in shown and shown.startswith("opo\n") and shown.count("run: credit assign") == 2
    assert list(json.loads(run("methods", "opo", "max_rl", "--json").stdout)) == ["opo", "max_rl"]
    write(tmp_path / "c3", GOOD)
    both = run("methods", "c3")
    assert both.stdout.startswith("c3\n") and "c3 is a method here; the logs of this name: ./c3" in both.stderr
    mixed = run("methods", "opo", write(tmp_path / "runs.jsonl", GOOD))
    assert mixed.exit_code == 1 and "'opo' is a method and " in mixed.stderr
    assert "no method is called 'rlo'; did you mean rloo?" in run("methods", "opo", "rlo").stderr


@pytest.mark.slow
def test_methods_says_what_logs_allow(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    found = states(*GOOD, path=path)
    assert found["grpo"] == ("computable", "")
    assert found["remax"][0] == "missing" and "greedy_reward" in found["remax"][1]

    lone = states(trace("a", "q", 1.0), trace("b", "r", 0.0), path=path)
    assert lone["grpo"][0] == lone["dr_mas"][0] == "degenerate" and "nothing to compare" in lone["grpo"][1]
    assert lone["reinforce_batch"][0] == lone["moving_average"][0] == "computable"

    even = states(trace("a", "q", 1.0), trace("b", "q", 1.0), path=path)
    assert even["grpo"][0] == even["reinforce_batch"][0] == even["dr_mas"][0] == "degenerate"
    assert "equal outcomes" in even["grpo"][1]

    penal = trace("a", "q", 1.0)
    penal["events"][0]["event_reward"], penal["events"][1]["event_reward"] = -0.5, 0.5
    rows = states(penal, trace("b", "q", 1.0), path=path)
    assert rows["grpo"][0] == "degenerate"  # equal returns of traces ...
    assert rows["verl_grpo"][0] == "computable"  # ... but rows that differ

    none = states(trace("a", "q", None), trace("b", "q", None), path=path)
    assert none["grpo"][0] == "missing" and "--rewards" in none["grpo"][1]
    assert "degenerate" in run("methods", write(path, GOOD[2:4])).stdout


def test_a_narrow_terminal_gets_blocks_in_place_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 60 columns a cell was one word wide, and a method 14 lines long."""
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("methods").stdout.splitlines()
    assert lines[0].strip() == "grpo" and max(map(len, lines[:200])) <= 60
    assert "  computes return against the group's mean, over the group's" in [line.rstrip() for line in lines]


@pytest.mark.parametrize("asked", ["logs", "--all", "--catalog"])
def test_long_cells_wrap_in_a_file_too(asked: str, good: Path) -> None:
    """A file has room, so each row was one line, of up to 700 letters."""
    lines = run("methods", str(good) if asked == "logs" else asked).stdout.splitlines()
    assert max(len(line.rstrip()) for line in lines if line.startswith(" ")) < 300


def test_methods_that_logs_allow_come_first(good: Path) -> None:
    result = run("methods", good)
    table = result.output.partition("published as")[0]
    assert 0 < table.rindex(" computable ") < table.index(" missing ")


def test_an_amount_that_single_precision_cannot_tell_from_0_is_0() -> None:
    """`explain` printed -4e-09."""
    assert _number(-4e-09, largest=1.0) == "0" and _number(-4e-09, largest=0.0) == "-4e-09"
    assert _number(0.5, largest=1.0) == "0.5"


def test_a_critic_prints_as_a_line() -> None:
    """It filled hundreds of lines with its arrays."""
    fitted: Any = [0.0] * 10_000
    critic = Critic(fitted, ("lead", "worker"), 0, fitted, ("q",), {"network": 0.25}, ())
    assert repr(critic) == "<Critic: network model, 2 roles, judged on 1 held-out task, validation loss: network 0.25>"
