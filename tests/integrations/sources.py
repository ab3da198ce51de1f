"""Functions and classes of a trainer from its real source, where its modules do not import without a GPU."""

from __future__ import annotations
import __future__

import ast
import importlib.util
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from pages import DOCS

__all__ = ["definitions", "modules", "patched", "source_of"]


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


def patched(module: types.ModuleType, folder: Path) -> types.ModuleType:
    """A copy of a trainer's module with its patch of docs/upstream, under another name in the same package."""
    assert module.__file__ is not None
    source = Path(module.__file__)
    patches = [path.read_text() for path in (DOCS / "upstream").glob("*.diff")]
    named = [(text, path) for text in patches for path in re.findall(r"^\+\+\+ b/(.*)$", text, re.MULTILINE)]
    ((patch, path),) = [(text, path) for text, path in named if source.as_posix().endswith(f"/{path}")]
    copy = folder / path
    copy.parent.mkdir(parents=True)
    copy.write_text(source.read_text())
    command = ["git", "apply", f"--include={path}", "-"]
    subprocess.run(command, input=patch, text=True, cwd=folder, check=True)
    assert copy.read_text() != source.read_text()
    spec = importlib.util.spec_from_file_location(module.__name__ + "_patched", copy)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made
