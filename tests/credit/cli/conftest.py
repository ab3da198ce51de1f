"""Logs in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from .logs import CYCLE, GOOD, write


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "good.jsonl", GOOD)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return write(tmp_path / "bad.jsonl", [*GOOD, CYCLE])
