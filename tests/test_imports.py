"""Lightness: what an import costs. `tests/test_structure.py` says who may import whom."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {
    "pyarrow",
    "msgspec",
    "zstandard",
    "networkx",
    "matplotlib",
    "click",
    "rich",
    "pandas",
    "torch",
    "flax",
    "optax",
}


@functools.cache
def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join({{m.split('.')[0] for m in sys.modules}}))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(result.stdout.split())


@pytest.mark.parametrize("code", ["from estimators import grpo", "from graphs import EventGraph"])
@pytest.mark.slow
def test_trainers_import_no_reading_plotting_or_command_line_library(code: str) -> None:
    modules = modules_after(code)
    assert ("jax" in modules) == code.startswith("from estimators")
    assert not (modules - modules_after("import jax")) & HEAVY  # JAX itself loads a compression library


def test_importing_credit_loads_nothing_heavy() -> None:
    assert not modules_after("import credit") & (HEAVY | {"jax", "numpy"})


@pytest.mark.slow
def test_a_process_that_only_reads_does_without_jax() -> None:
    modules = modules_after("import graphs.logs.read_logs, graphs.traces.assembling")
    assert "pyarrow" in modules
    assert "jax" not in modules


@pytest.mark.slow
@pytest.mark.parametrize("command", ["validate", "traces", "show", "card", "convert --output copy.jsonl"])
def test_commands_without_methods_import_neither_jax_nor_pandas(command: str, tmp_path: Path) -> None:
    trace = {"trace_id": "t", "task_id": "q", "events": [{"id": "e", "type": "message", "agent": "a"}]}
    (tmp_path / "log.jsonl").write_text(json.dumps(trace | {"rewards": {"team": 1.0}}))
    arguments = [*command.replace("copy", str(tmp_path / "copy")).split(), str(tmp_path / "log.jsonl")]
    run = "from credit.__main__ import main\ntry:\n  main()\nexcept SystemExit as end:\n  assert not end.code"
    modules = modules_after(f"sys.argv[1:] = {arguments}\n{run}")
    assert "pyarrow" in modules
    assert not modules & {"jax", "pandas"}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["methods", "methods --all", "methods --json", "methods --catalog"])
def test_the_tables_of_methods_are_read_without_jax(command: str) -> None:
    run = "from credit.__main__ import main\ntry:\n  main()\nexcept SystemExit as end:\n  assert not end.code"
    assert "jax" not in modules_after(f"sys.argv[1:] = {command.split()}\n{run}")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["--help", "methods --help", "report --help", "assign --help"])
def test_help_imports_what_parses_the_command_line_and_no_more(command: str) -> None:
    run = "from credit.__main__ import main\ntry:\n  main()\nexcept SystemExit as end:\n  assert not end.code"
    modules = modules_after(f"sys.argv[1:] = {command.split()}\n{run}")
    assert modules & (HEAVY | {"jax", "numpy", "scipy"}) == {"click"}


@pytest.mark.slow
def test_a_graph_that_was_read_before_jax_was_imported_passes_through_jit() -> None:
    code = """
from graphs.event_graph import EventGraph
from graphs.traces.batch import Traces
assert "jax" not in sys.modules
import dataclasses, jax
graph = EventGraph(*range(len(dataclasses.fields(EventGraph))))
assert jax.jit(lambda graph: graph.event_type + graph.joint_mask)(graph) == len(dataclasses.fields(EventGraph)) - 1
try:
  jax.jit(lambda traces: 0)(Traces(graph, 0, {}, 0, 0, 0))
except ValueError as error:
  assert "pass traces.graph" in str(error)
else:
  raise AssertionError
"""
    modules_after(code)


def test_every_lazy_name_resolves() -> None:
    import credit
    import graphs

    assert graphs._HOME.keys() == set(graphs.__all__)
    for name in graphs.__all__:
        assert getattr(graphs, name) is not None

    assert dir(credit) == sorted([*credit.__all__, "__version__"]) and dir(graphs) == sorted(graphs.__all__)
    for name in credit.__all__:
        assert getattr(credit, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = credit.nonsense


def test_the_door_is_small_and_gives_each_name_one_function() -> None:
    import credit
    import estimators

    assert len(set(dir(credit)) - set(credit.METHODS)) <= 34  # types and verbs; beside them stand the methods
    for name, method in credit.METHODS.items():
        assert getattr(credit, name) is method.fn
        assert getattr(estimators, name, method.fn) is method.fn or name in (
            "critic",
            "shapley",
        )  # packages of `estimators`
    assert credit.critic is estimators.critic_increments
    for name in set(credit.__all__) & set(estimators.__all__):
        assert getattr(credit, name) is getattr(estimators, name)


def test_lazy_names_are_those_declared_for_type_checkers() -> None:
    tree = ast.parse((ROOT / "credit" / "__init__.py").read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in guarded.body if isinstance(node, ast.ImportFrom)]
    declared = {alias.asname or alias.name for node in imports for alias in node.names}
    import credit

    assert declared <= set(credit.__all__)
    assert set(credit.__all__) - declared <= set(credit.METHODS), "only a method's row may bring a name by itself"


def test_a_foreign_sibling_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "__init__.py").write_text("raise RuntimeError('the foreign package was imported')\n")
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import credit"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode != 0
    assert "ImportError: credit needs its own package 'graphs'" in result.stderr
    assert "the foreign package was imported" not in result.stderr
