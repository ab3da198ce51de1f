"""The notebooks run from start to end, and as they are stored they show what they ran, and nothing of the machine."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import resource
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MACHINE = re.compile(r"(?<![\w.])/(home|root|tmp|usr|opt|work|Users|private)/|site-packages|\b0x[0-9a-f]{8,}\b")
"""Absolute paths and addresses of objects."""

LARGEST = 300_000  # bytes of a picture
LONGEST = 180  # seconds of CPU of a notebook


def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _of_children() -> float:
    """Seconds of CPU that processes which have ended took; a clock would say how busy the machine is."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["cells"]


def outputs(path: Path) -> list[dict[str, Any]]:
    return [output for cell in cells(path) for output in cell.get("outputs", ())]


def test_notebooks_are_numbered_and_titled() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        assert re.fullmatch(r"\d\d_[a-z_]+\.ipynb", path.name)
        opening = "".join(cells(path)[0]["source"])
        assert opening.startswith("# ") and "**Question.**" in opening, path.name
        text = "\n".join("".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "markdown")
        assert "**Answer.**" in text and "**What this does not show.**" in text, path.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_those_of_one_whole_run(path: Path) -> None:
    counts = [cell["execution_count"] for cell in cells(path) if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    kinds = {output["output_type"] for output in outputs(path)}
    assert "error" not in kinds
    assert not [output for output in outputs(path) if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs(path)), "no picture"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_is_small_and_says_nothing_of_the_machine(path: Path) -> None:
    for output in outputs(path):
        data = output.get("data", {})
        if "image/png" in data:
            assert len(base64.b64decode(data["image/png"])) < LARGEST
        words = json.dumps([output.get("text"), data.get("text/plain"), data.get("text/html")])
        assert not MACHINE.search(words), MACHINE.search(words)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the machinery that talks with kernels
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_start_to_end(path: Path) -> None:
    pytest.importorskip("nbclient", reason="needs the extra `run-notebooks`")
    pytest.importorskip("ipykernel", reason="needs the extra `run-notebooks`")
    execute = runner()
    began = _of_children()
    notebook = execute.execute(path)
    assert _of_children() - began < LONGEST
    stored = [[o["output_type"] for o in cell["outputs"]] for cell in cells(path) if cell["cell_type"] == "code"]
    found = [[o.output_type for o in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]
    assert found == stored, "the stored outputs are of another run: python notebooks/execute.py --write"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_notebook_imports_a_module_that_lies_beside_it(tmp_path: Path) -> None:
    """In Jupyter it did; here it ended in a ModuleNotFoundError."""
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `run-notebooks`")
    pytest.importorskip("nbclient", reason="needs the extra `run-notebooks`")
    pytest.importorskip("ipykernel", reason="needs the extra `run-notebooks`")
    (tmp_path / "beside_it.py").write_text("answer = 41 + 1\n")
    code = "import os\nimport beside_it\nprint(beside_it.answer, os.listdir())"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbformat.write(notebook, tmp_path / "own.ipynb")
    assert runner().execute(tmp_path / "own.ipynb").cells[0].outputs[0].text == "42 []\n"
