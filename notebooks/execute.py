"""Run notebooks from start to end in a fresh process each, and with `--write` keep their outputs.

    python notebooks/execute.py                    # all of them; fails where a cell does
    python notebooks/execute.py --write 01*.ipynb  # some, and store what they show

Notebooks run in an empty folder of their own, so that nothing they write stays and nothing there can be read. They
import modules that lie beside them, as in Jupyter. What is stored says nothing about the machine: no times, no
versions, no paths. Notebooks about real logs look for them in `shared/data` beside the checkout, or where `CREDIT_DATA`
says, and run on generated logs where there are none. Those about recordings find them in `tests/recordings`, or where
`CREDIT_RECORDINGS` says.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
SECONDS = 600  # that a cell may take
DATA = HERE.parent.parent / "shared" / "data"
RECORDINGS = HERE.parent / "tests" / "recordings"


def notebooks() -> list[Path]:
    """All notebooks, in the order of their numbers."""
    return sorted(HERE.glob("*.ipynb"))


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook as it is after all its cells ran.

    Raises:
      nbclient.exceptions.CellExecutionError: a cell raised an error; it shows which.
      nbclient.exceptions.CellTimeoutError: a cell takes longer than `SECONDS`.
    """
    notebook = nbformat.read(path, as_version=4)
    os.environ.setdefault("CREDIT_DATA", str(DATA))
    os.environ.setdefault("CREDIT_RECORDINGS", str(RECORDINGS))
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        beside = os.pathsep.join(filter(None, (str(path.resolve().parent), os.environ.get("PYTHONPATH"))))
        client.execute(env={**os.environ, "PYTHONPATH": beside})
    return plain(notebook)


def plain(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what differs from machine to machine."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02d}"
        cell.metadata = {}
    return notebook


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run notebooks from start to end.")
    parser.add_argument("--write", action="store_true", help="store the outputs in the notebooks")
    parser.add_argument("paths", nargs="*", type=Path, help="by default all")
    options = parser.parse_args(arguments)
    for path in options.paths or notebooks():
        began = time.perf_counter()
        notebook = execute(path)
        print(f"{path.name}: {time.perf_counter() - began:.0f} s")
        if options.write:
            nbformat.write(notebook, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
