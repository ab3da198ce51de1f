"""The list of mutations fits the code: each old text stands in its file exactly once. `run.py` applies them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from graphs.formats import FORMATS

from .mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.file}: {mutation.why}")
def test_the_text_that_a_mutation_changes_stands_in_its_file_once(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, "the code moved: mend this row of tests/mutations/mutations.py"
    ast.parse(text.replace(mutation.old, mutation.new))  # an error of syntax would be caught by any test


def test_no_mutation_stands_twice() -> None:
    assert len({mutation[:3] for mutation in MUTATIONS}) == len(MUTATIONS)


def test_every_format_has_a_mutation() -> None:
    files = {mutation.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for mutation in MUTATIONS}
    without = {
        name for name, row in FORMATS.items() if not any(f"{file}.".startswith(f"{row.module}.") for file in files)
    }
    assert without == set()
