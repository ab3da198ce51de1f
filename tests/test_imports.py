"""Lightness: what an import costs. `tests/test_structure.py` says who may import whom."""

from __future__ import annotations

import ast
import functools
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
    assert "jax" in modules
    assert not (modules - modules_after("import jax")) & HEAVY  # JAX itself loads a compression library


def test_importing_credit_loads_nothing_heavy() -> None:
    assert not modules_after("import credit") & (HEAVY | {"jax", "numpy"})


@pytest.mark.slow
def test_a_process_that_only_reads_does_without_jax() -> None:
    modules = modules_after("import graphs.formats.native, graphs.formats.who_and_when")
    assert "pyarrow" in modules
    assert "jax" not in modules


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

    assert len(set(dir(credit)) - set(credit.METHODS)) <= 33  # types and verbs; beside them stand the methods
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
