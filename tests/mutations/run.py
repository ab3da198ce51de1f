"""Apply each mutation of a definition to a copy of the project, and see which test of `tests/definitions` catches it.

    python tests/mutations/run.py [--jobs N] [WORDS]

Prints a line for each mutation, those whose file or reason has WORDS if there are any. The exit status is 1 if one
survives, or if its old text does not stand in its file exactly once.

mutmut and cosmic-ray mutate operators and constants wherever they stand. In the nine core modules and the readers that
makes thousands of mutants, hours of runs, and most of them are equal or break what any test sees. What this list holds
are definitions, such as which event ends a turn: whole conditions and entries of tables, each with a reason for which
it must not move. A generator does not know them, and does not say when one is missing.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutations.mutations import MUTATIONS, Mutation  # noqa: E402

COPIED = (
    "graphs",
    "estimators",
    "credit",
    "tests/conftest.py",
    "tests/helpers",
    "tests/definitions",
    "tests/recordings",
)
FAILED = re.compile(r"^FAILED (?:tests/definitions/)?(.+?)(?: - .*)?$", re.MULTILINE)
SURVIVED = "SURVIVED"


def copy_project(folder: Path) -> Path:
    """The files that the tests of definitions need, in a folder of their own."""
    for name in ("pyproject.toml", *COPIED):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return folder


def caught_by(mutation: Mutation, project: Path) -> str:
    """The first test that fails with the mutation, or what is wrong with the mutation."""
    path = project / mutation.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        return f"STALE: the old text stands in {mutation.file} {text.count(mutation.old)} times"
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        # A test module of the copy is imported from the copy, and so must be the library, however it is installed.
        command = [
            sys.executable,
            "-m",
            "pytest",
            "tests/definitions",
            "-x",
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:xdist",
        ]
        done = subprocess.run(
            command,
            cwd=project,
            env=os.environ | {"PYTHONPATH": str(project)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.write_text(text, encoding="utf-8")
    failed = FAILED.search(done.stdout)
    if done.returncode == 0:
        return SURVIVED
    return failed[1] if failed is not None else f"BROKEN: {done.stdout[-400:]}{done.stderr[-400:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="?", default="", help="part of a mutation's file or reason")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at once")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.words in f"{mutation.file}: {mutation.why}"]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        projects: queue.Queue[Path] = queue.Queue()
        for number in range(options.jobs):
            projects.put(copy_project(Path(folder) / str(number)))

        def run(mutation: Mutation) -> str:
            project = projects.get()
            try:
                return caught_by(mutation, project)
            finally:
                projects.put(project)

        missed = 0
        for mutation, verdict in zip(chosen, pool.map(run, chosen), strict=True):
            missed += verdict.startswith((SURVIVED, "STALE", "BROKEN"))
            print(f"{mutation.file}: {mutation.why}\n    {verdict}", flush=True)
    print(f"{len(chosen)} mutations, {len(chosen) - missed} caught")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
