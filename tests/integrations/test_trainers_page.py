"""The blocks of docs/trainers.md that need no trainer run and print what they say."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from typing import Any

import numpy as np
import pytest
from pages import PAGE, block

from credit.integrations import RowAdvantages


def run(body: str) -> tuple[dict[str, Any], list[str]]:
    out, namespace = io.StringIO(), {}
    with contextlib.redirect_stdout(out):
        exec(compile(body, str(PAGE), "exec"), namespace)
    return namespace, out.getvalue().rstrip().splitlines()


@pytest.mark.parametrize("holds", ["advantages.warmup(", "jax.jit("])
def test_blocks_print_what_they_say(holds: str) -> None:
    body = block("python", holds)
    _, printed = run(body)
    assert printed == [line[2:] for line in body.splitlines() if line.startswith("# ")]


def test_the_readme_shows_blocks_of_the_page() -> None:
    """What the stage runs is the page's block, so the README's is run, too."""
    section = (PAGE.parents[1] / "README.md").read_text().split("## Inside a trainer\n")[1].split("\n## ")[0]
    shown = re.findall(r"```(yaml|py)\n(.*?)```", section, re.DOTALL)
    assert [language for language, _ in shown] == ["yaml", "py"]
    page = re.findall(r"```(yaml|py)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert set(shown) <= set(page)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:method '.*' (needs the column|compares)")
@pytest.mark.parametrize("place", range(4))
def test_what_the_page_says_of_a_group_of_one(place: int) -> None:
    """It said that a lone trace of `dr_mas` is refused with singleton="refuse", and an agent's two rows were not."""
    (sentence,) = re.findall(r"- A group of one trace .*?\n- ", PAGE.read_text(), re.DOTALL)
    names = [*dict.fromkeys(re.findall(r"`(\w+)`", sentence))]
    assert len(names) == 4
    name = names[place]
    kept = {"gigpo": ["a", "ab", "aa"], "verl_grpo": ["a"]}.get(name, ["a", "ab"])  # rows of a lone trace
    for rows in ("a", "ab", "aa"):
        batch: dict[str, Any] = {"group": ["q"] * len(rows), "trace": [0] * len(rows), "agent": [*rows]}
        batch |= {"turn": range(len(rows)), "reward": np.full(len(rows), 0.5)}
        batch["evidence"] = {"anchor": [f"state {row}" for row in range(len(rows))]} if name == "gigpo" else None
        alone = rows in kept
        assert RowAdvantages(name)(**batch).advantages == pytest.approx([0.5 * alone] * len(rows), abs=1e-5), rows
        if name != "verl_grpo":
            refused = RowAdvantages(name, singleton="refuse")(**batch)
            assert refused.advantages.tolist() == [0] * len(rows) and refused.valid.any() != alone


@pytest.mark.parametrize(
    ("language", "holds", "lines"),
    [("yaml", "credit_sync", 2), ("py", "read_store(", 1), ("py", "trainer_cls=", 1)],
)
def test_lines_that_a_user_writes(language: str, holds: str, lines: int) -> None:
    written = [line for line in block(language, holds).splitlines() if line]
    assert len([line for line in written if not line.startswith(("from ", "import "))]) == lines


def test_classes_of_the_page_are_imported_there() -> None:
    """A block that is pasted knows the names of this library that it uses."""
    bodies = re.findall(r"```(?:py|python)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for body in bodies:
        tree = ast.parse(body)
        imported = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id.startswith("Credit")}
        assert used <= imported, used - imported
    assert sum("CreditAgenticLearner" in body for body in bodies) == 1
