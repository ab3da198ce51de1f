"""The layout of the library: imports run downwards without circles, names are distinct."""

from __future__ import annotations

import ast
import collections
import functools
import re
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("graphs", "estimators", "credit")


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for layer in LAYERS for file in sorted((ROOT / layer).rglob("*.py"))}


@functools.cache
def import_statements(file: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """The import statements of a file, anywhere in it: at the top, in functions, for type checkers."""
    found: list[ast.Import | ast.ImportFrom] = []
    pending: list[ast.AST] = [ast.parse(file.read_text())]
    while pending:
        for node in ast.iter_child_nodes(pending.pop()):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.append(node)
            elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):  # no expression holds a statement
                pending.append(node)
    return tuple(found)


def imported(file: Path) -> set[str]:
    """Modules of this library that a file imports."""
    names: set[str] = set()
    for node in import_statements(file):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif node.module and node.level == 0:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name for name in submodules if name in MODULES}
            names |= {node.module} if any(name not in MODULES for name in submodules) else set()
    return names & MODULES.keys()


@functools.cache
def imports() -> dict[str, set[str]]:
    """What each module imports. Not while tests are collected, which every process of a run does."""
    return {name: imported(file) for name, file in MODULES.items()}


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        "import a\nif a:\n  import b\nelse:\n  import c\ntry:\n  import d\nexcept OSError:\n  import e\n"
        "finally:\n  import f\nwith a:\n  import g\nfor x in a:\n  import h\nmatch a:\n  case 1:\n    import i\n"
        "class C:\n  def method(self):\n    while a:\n      async def inner():\n        from j import k\n"
    )
    found = import_statements(tmp_path / "module.py")
    assert {alias.name for node in found for alias in node.names} == set("abcdefghik")


def test_no_import_is_relative() -> None:
    for name, file in MODULES.items():
        relative = [n.lineno for n in import_statements(file) if isinstance(n, ast.ImportFrom) and n.level]
        assert not relative, f"{name} imports relatively in lines {relative}"


@pytest.mark.parametrize("package", LAYERS)
def test_packages_import_downwards_only(package: str) -> None:
    allowed = LAYERS[: LAYERS.index(package) + 1]
    for name, targets in imports().items():
        if name.split(".")[0] == package:
            upwards = {target for target in targets if target.split(".")[0] not in allowed}
            assert not upwards, f"{name} imports {sorted(upwards)}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """A package's `__init__` that gathers the names of its own modules is above them, so it closes no circle."""
    graph = nx.DiGraph((name, target) for name, targets in imports().items() for target in targets)
    circles = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    assert not circles, circles


def test_folders_of_a_package_import_each_other_one_way_only() -> None:
    """Two folders beside each other that import each other are one topic in two places."""
    edges: set[tuple[str, str]] = set()
    for name, targets in imports().items():
        for target in targets:
            one, other = name.split("."), target.split(".")
            shared = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
            if shared is None or shared == 0:
                continue
            pair = ".".join(one[: shared + 1]), ".".join(other[: shared + 1])
            if all(MODULES[part].name == "__init__.py" for part in pair):
                edges.add(pair)
    circles = [sorted(part) for part in nx.strongly_connected_components(nx.DiGraph(edges)) if len(part) > 1]
    assert not circles, circles


# Files of one log format, and commands of the command line, carry the plain name of their part: `events`, `compose`.
OWN_NAMES = ("graphs.formats.", "graphs.reading.", "graphs.writers.", "credit.cli.")


def test_no_two_modules_have_one_name() -> None:
    at: dict[str, list[str]] = collections.defaultdict(list)
    for name, file in MODULES.items():
        if file.name != "__init__.py" and not name.startswith(OWN_NAMES):
            at[name.split(".")[-1]].append(name)
    same = {leaf: names for leaf, names in at.items() if len(names) > 1}
    assert not same


def test_no_module_is_shadowed_by_a_name_of_its_package() -> None:
    for name, file in MODULES.items():
        if file.name != "__init__.py":
            continue
        submodules = {other.rpartition(".")[2] for other in MODULES if other.rpartition(".")[0] == name}
        bound: set[str] = set()
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                bound |= {a.asname or a.name for a in node.names if f"{node.module}.{a.name}" not in MODULES}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound.add(node.name)
        assert not submodules & bound, f"{name}: {sorted(submodules & bound)} are both modules and names"


def test_one_rule_says_what_an_error_of_json_is() -> None:
    """msgspec raises three kinds of errors, which `JSON_ERRORS` lists. Old releases have a `DecodeError` that is no
    `ValueError`, so that what catches fewer passes here and ends a command there."""
    partial = [
        name for name, file in MODULES.items() if re.search(r"msgspec\.(Decode|Msgspec)Error\b", file.read_text())
    ]
    assert partial == ["graphs.json_errors"]


def printed(tree: ast.Module) -> list[str]:
    """The text of each string of a module, docstrings left out."""
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    said = {id(part.value) for body in bodies for part in body if isinstance(part, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    ]


def test_a_plus_minus_is_one_standard_error_and_its_module_says_so() -> None:
    """Of the ledger it looked like a 95 % interval; elsewhere it was half of one of 95 or 99 %."""
    met = set()
    sources = {name: file.read_text() for name, file in MODULES.items() if name.startswith("credit")}
    for name in (name for name, source in sources.items() if re.search(r"±|\\[xuN]", source)):
        parts = printed(ast.parse(sources[name]))
        shown = [text for text in parts if "±" in re.sub(r"± ?(1\.96|\d+e\d+)", "", text)]  # a stated multiple; signs
        if shown:
            met.add(name)
            module = " ".join(parts) + " LEGEND" * ("credit.ledger.receipts.receipt" in imports()[name])
            assert "one standard error" in module or "LEGEND" in module, (name, shown)
            assert not any(re.search(r"half of|\bband|\d %|interval", text) for text in shown), (name, shown)
    assert {"credit.ledger_summary", "credit.cli.composition.explain", "credit.plot.nested_bars"} <= met
