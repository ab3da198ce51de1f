"""Functions and classes of a trainer from its real source, where its modules do not import without a GPU."""

from __future__ import annotations
import __future__

import ast
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest

__all__ = ["definitions", "modules", "source_of"]


def source_of(package: str, reason: str) -> Path:
    """The folder of a package on the path, which is not imported; the calling test module is skipped without it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(reason, allow_module_level=True)
    return Path(spec.submodule_search_locations[0])


def definitions(file: Path, names: str, scope: dict[str, Any]) -> dict[str, Any]:
    """Some functions and classes of a file, or methods as functions, by their names; other names are of `scope`."""
    wanted = names.split()
    found = [node for node in ast.walk(ast.parse(file.read_text())) if getattr(node, "name", None) in wanted]
    assert {node.name for node in found} == set(wanted), f"{file} lacks some of {names}"
    module = types.ModuleType(f"read.{file.stem}")
    sys.modules[module.__name__] = module  # where dataclasses and pydantic look for what annotations name
    vars(module).update(scope)
    tree = ast.Module(found, [])
    exec(compile(tree, str(file), "exec", __future__.annotations.compiler_flag), vars(module))
    return {name: vars(module)[name] for name in wanted}


def modules(monkeypatch: pytest.MonkeyPatch, name: str, **names: Any) -> None:
    """A module of a trainer, and those above it, that hold what was read from its source."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if not isinstance(sys.modules.get(path), types.ModuleType):
            monkeypatch.setitem(sys.modules, path, types.ModuleType(path))
    for key, value in names.items():
        monkeypatch.setattr(sys.modules[name], key, value, raising=False)
