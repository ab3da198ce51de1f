"""The blocks of the pages about ledgers run as they stand, and print what they say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["ledger.md", "channels.md"])
def test_blocks_print_what_they_say(page: str) -> None:
    bodies = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert bodies
    for body in bodies:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(body, page, "exec"), {})
        expected = [line[2:] for line in body.splitlines() if line.startswith("# ")]
        assert out.getvalue().rstrip().splitlines() == expected
