"""Apply each mutation of a definition to a copy of the project, and see which test of `tests/definitions` catches it.

    python tests/mutations/run.py [--jobs N] [WORDS]

Prints a line for each mutation, those whose file or reason has WORDS if there are any. The exit status is 1 if one
survives, if its old text does not stand in its file exactly once, or if a test fails without any.

mutmut and cosmic-ray mutate operators and constants wherever they stand. In the nine core modules and the readers that
makes thousands of mutants, hours of runs, and most of them are equal or break what any test sees. What this list holds
are definitions, such as which event ends a turn: whole conditions and entries of tables, each with a reason for which
it must not move. A generator does not know them, and does not say when one is missing.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import re
import shutil
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
# Loaded once and inherited by each process: they take longer than the tests.
LIBRARIES = ("jax", "numpy", "pyarrow.compute", "pyarrow.parquet", "msgspec", "networkx", "pytest")


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
    write(path, text.replace(mutation.old, mutation.new))
    failed = first_failure(project)
    write(path, text)
    return failed or SURVIVED


def write(path: Path, text: str) -> None:
    """Write a file with a later time than before: bytecode of the same second and size would be taken for its own."""
    later = path.stat().st_mtime + 2
    path.write_text(text, encoding="utf-8")
    os.utime(path, (later, later))


def first_failure(project: Path) -> str:
    """The first test of the copy that fails; "" if all pass."""
    output = project / "output.txt"
    process = multiprocessing.get_context("fork").Process(target=run_tests, args=(project, output))
    process.start()
    process.join()
    if process.exitcode == 0:
        return ""
    said = output.read_text(encoding="utf-8")
    failed = FAILED.search(said)
    return failed[1] if failed is not None else f"BROKEN: {said[-800:]}"


def run_tests(project: Path, output: Path) -> None:
    """Run the tests of definitions of a copy, in a process of their own that has imported nothing of the project."""
    import pytest

    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    sys.path[:] = [str(project), *(entry for entry in sys.path if Path(entry).resolve() != ROOT)]
    os.chdir(project)
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
    with output.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        code = pytest.main(
            ["tests/definitions", "-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
        )
    os._exit(int(code))


def of_job(chosen: list[Mutation], verdicts: multiprocessing.SimpleQueue[tuple[Mutation, str]]) -> None:
    """Try mutations one after another in one copy."""
    with tempfile.TemporaryDirectory() as folder:
        project = copy_project(Path(folder))
        for mutation in chosen:
            verdicts.put((mutation, caught_by(mutation, project)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="?", default="", help="part of a mutation's file or reason")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at once")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.words in f"{mutation.file}: {mutation.why}"]
    for library in LIBRARIES:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory() as folder:
        failed = first_failure(copy_project(Path(folder)))
    if failed:
        print(f"without a mutation, a test fails: {failed}")
        return 1
    fork = multiprocessing.get_context("fork")
    verdicts: multiprocessing.SimpleQueue[tuple[Mutation, str]] = fork.SimpleQueue()
    jobs = [fork.Process(target=of_job, args=(chosen[n :: options.jobs], verdicts)) for n in range(options.jobs)]
    for job in jobs:
        job.start()
    missed = 0
    for _ in chosen:
        mutation, verdict = verdicts.get()
        missed += verdict.startswith((SURVIVED, "STALE", "BROKEN"))
        print(f"{mutation.file}: {mutation.why}\n    {verdict}", flush=True)
    for job in jobs:
        job.join()
    print(f"{len(chosen)} mutations, {len(chosen) - missed} caught")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
