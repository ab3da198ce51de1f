"""The list of mutations fits the code: each old text stands in its file exactly once. `run.py` applies them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.file}: {mutation.why}")
def test_the_text_that_a_mutation_changes_stands_in_its_file_once(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, "the code moved: mend this row of tests/mutations/mutations.py"
    ast.parse(text.replace(mutation.old, mutation.new))  # an error of syntax would be caught by any test


def test_no_mutation_stands_twice() -> None:
    assert len({mutation[:3] for mutation in MUTATIONS}) == len(MUTATIONS)
