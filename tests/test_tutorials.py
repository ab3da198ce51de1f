"""Every block of the tutorials runs, in the order of its page, and prints what the page shows."""

from __future__ import annotations

import contextlib
import html
import importlib.util
import io
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.integrations import MissingColumnWarning, RowAdvantages

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
BLOCK = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def squeezed(line: str) -> str:
    """A line of a table whatever the widths of its columns."""
    return " ".join(line.split())


def execute(body: str, page: str, namespace: dict[str, object]) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(body, page, "exec"), namespace)
    expected = [line[2:].rstrip() for line in body.splitlines() if line.startswith("# ")]
    printed = [line.rstrip() for line in out.getvalue().rstrip().splitlines()]
    assert [squeezed(line) for line in printed] == [squeezed(line) for line in expected]


def call(body: str) -> str:
    """Run the commands of a block; returns what the last one printed."""
    output = ""
    for line in body.splitlines():
        command = shlex.split(line.removeprefix("$ "))
        if command[0] != "credit":
            assert command[:2] == ["pip", "install"], line
            continue
        if command[1:] == ["demo"] and Path("demo").exists():
            continue
        result = CliRunner().invoke(cli, command[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"
        output = result.output
    return output


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: page.stem)
def test_every_block_runs_and_prints_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in ("matplotlib", "pandas"):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    namespace: dict[str, object] = {}
    printed = ""
    blocks = BLOCK.findall(page.read_text())
    assert {kind for kind, _, _ in blocks} <= {"python", "console", "text"}
    for kind, title, body in blocks:
        if title:
            Path(title).write_text(body)
            sys.modules.pop(title.removesuffix(".py"), None)
            importlib.invalidate_caches()
        elif kind == "python":
            execute(body, page.name, namespace)
        elif kind == "console":
            printed = call(body)
        else:
            lines = {squeezed(line) for line in printed.splitlines()}
            missing = [line for line in body.splitlines() if squeezed(line) not in lines]
            assert not missing, printed
    sys.modules.pop("mine", None)


EXAMPLES = sorted((FOLDER.parents[1] / "examples").glob("*.py"))
EXTRA_OF = {"optax": "critic", "torch": "torch", "trl": "trl", "verl": "verl"}
"""Libraries that the README's install leaves out, and the extras that have them; a trainer's extra has PyTorch, too."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_whatever_names_an_example_names_the_extra_that_it_needs(example: Path) -> None:
    """After the README's install both ended in a ModuleNotFoundError."""
    imported = re.findall(r"^(?:import|from) (\w+)", example.read_text(), re.MULTILINE)
    extra = [extra for name, extra in EXTRA_OF.items() if name in imported][-1]
    wanted = f'pip install ".[{extra}]"'
    assert wanted in example.read_text()
    pages = [page for page in FOLDER.parent.rglob("*.md") if f"examples/{example.name}" in page.read_text()]
    assert len(pages) >= 2
    for page in pages:
        parts = [part for part in page.read_text().split("\n\n") if f"examples/{example.name}" in part]
        assert all(wanted in part for part in parts), page


def test_the_part_that_is_refused_is_of_trained_rows_with_a_reward() -> None:
    rewards = np.array([1.0, 0.0, 1.0, np.nan], np.float32)  # of two traces to compare, one alone, one without
    ids = {"group": ["q", "q", "r", "q"], "trace": ["a", "b", "c", "d"], "agent": ["x", "y", "x", "x"]}
    result = RowAdvantages("rloo")(**ids, reward=rewards)
    assert result.valid.tolist() == [True, True, False, False]
    assert result.metrics["credit/refused"] == pytest.approx(1 / 3)
    frozen = RowAdvantages("rloo")(**ids, reward=rewards, evidence={"trainable": [1, 1, 0, 1]})
    assert not frozen.valid[2] and frozen.metrics["credit/refused"] == 0
    with pytest.warns(MissingColumnWarning, match="compares only 0 of 3 trained rows: no other trace to compare with"):
        kept = RowAdvantages("dr_mas")(**ids, reward=rewards)
    assert kept.valid[2] and kept.advantages[2] == pytest.approx(1, abs=1e-5)
    page = " ".join((FOLDER / "in-your-trainer.md").read_text().split())
    assert "as of `rloo` in a group of one, where `dr_mas` keeps the outcome." in page
    assert "`refused` is the part of trained rows with an outcome that get no advantage." in page


@pytest.mark.slow
def test_the_recording_shows_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("draw_pictures", FOLDER.parent / "draw_pictures.py")
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    stored = (FOLDER.parent / "terminal.svg").read_text()
    assert "cdnjs" not in stored and "@font-face" not in stored
    monkeypatch.chdir(tmp_path)
    shown = script.recording()
    assert words(script.terminal(shown)) == words(stored)  # drawn alike, so that long lines fold at the same words


def words(svg: str) -> list[str]:
    return html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).split()


@pytest.mark.slow
def test_an_own_baseline_by_role_keeps_the_rewards_of_the_other_role() -> None:
    """The page summed the rewards of a role's own events, so that a coder was not paid for what its critic earned."""
    import credit

    text = (FOLDER / "your-own-estimator.md").read_text()
    (code,) = (body for _, title, body in BLOCK.findall(text) if title == "mine.py")
    names: dict[str, Any] = {}
    by_role = code.replace("by=None", 'by="task,role"').replace(
        "rloo(graph, reward,", 'rloo(graph, reward, by="task,role",'
    )
    exec(compile(by_role, "mine.py", "exec"), names)
    graph, reward, rows = credit.from_columns(
        group=[0] * 6, trace=list("aabbcc"), agent=["coder", "critic"] * 3, role=["coder", "critic"] * 3,
        reward=[1.0, 1.0, 0.0, 0.0, 0.0, 0.0], event_reward=[0.0, 4.0, 0.25, 0.5, 0.0, 2.0],
    )  # fmt: skip
    found = names["against_best"](graph, reward, event_reward=rows.event_reward)
    assert rows.gather(found.baseline).tolist() == [2.0, 2.0, 5.0, 5.0, 5.0, 5.0]  # the returns are 5, 0.75 and 2
    assert rows.gather(found.advantage).tolist() == [3.0, 3.0, -4.25, -4.25, -3.0, -3.0]
