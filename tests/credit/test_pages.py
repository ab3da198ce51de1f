"""The blocks of pages run as they stand, and print what they say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["ledger.md", "channels.md", "gallery.md"])
@pytest.mark.slow
def test_blocks_print_what_they_say(page: str) -> None:
    bodies = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert bodies
    for body in bodies:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(body, page, "exec"), {})
        expected = [line[2:] for line in body.splitlines() if line.startswith("# ")]
        assert out.getvalue().rstrip().splitlines() == expected


@pytest.mark.slow
def test_the_method_of_the_guide_for_contributors_obeys_the_laws() -> None:
    body = re.search(r"```python\n(.*?)```", (DOCS.parent / "CONTRIBUTING.md").read_text(), re.DOTALL)
    assert body
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(body[1], "CONTRIBUTING.md", "exec"), {})  # raises where a law is broken
    assert "equal_rewards" in out.getvalue()
