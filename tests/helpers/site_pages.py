"""Pages as the site shows them, with the tables that it makes from stored results."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

__all__ = ["hooks", "page"]

DOCS = Path(__file__).resolve().parents[2] / "docs"


@cache
def hooks() -> ModuleType:
    """What makes the tables."""
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def page(name: str) -> str:
    """A page of docs/ by its name, without the suffix."""
    return str(hooks().on_page_markdown((DOCS / f"{name}.md").read_text(encoding="utf-8")))
