"""The examples in docstrings run: every module of the packages and of `benchmarks` with a `>>>` is a test of its own.

Numbers are compared to the digits that an example shows, so `0.33` stands for whatever rounds to it: examples need no
`round`, and hold on machines whose last bits differ.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.(\d*)(?:[eE]([-+]?\d+))?")
FINDER = doctest.DocTestFinder(exclude_empty=True)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
OPTIONAL = ("torch",)
"""Packages that an example may import and `dev` does not install: where one is absent, its examples are left out."""


class ToTheDigitsShown(doctest.OutputChecker):
    """Floats of the output agree with the expected ones to half a unit of the last digit written there."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        expected, found = list(NUMBER.finditer(want)), list(NUMBER.finditer(got))
        if len(expected) == len(found):
            for shown, actual in reversed(list(zip(expected, found, strict=True))):
                half = 0.5000001 * 10.0 ** (int(shown[2] or 0) - len(shown[1]))
                if abs(float(shown[0]) - float(actual[0])) <= half:
                    got = got[: actual.start()] + shown[0] + got[actual.end() :]
        return super().check_output(want, got, optionflags)


def _modules() -> list[str]:
    """Names of the modules whose text has an example; the others are not imported."""
    found = []
    for package in ("graphs", "estimators", "credit", "benchmarks"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(ROOT).with_suffix("").parts
                found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


# These compile most of the methods, the ledger and the array functions once more; laws, references and the tests of the
# ledger and of arrays run by default.
COMPILING = (
    "estimators.",
    "credit.advice",
    "credit.bench.against_truth",
    "credit.bench.training.",
    "credit.critics.",
    "credit.devices",
    "credit.doctor.",
    "credit.integrations.",
    "credit.laws",
    "credit.ledger",
    "credit.method_summary",
    "credit.methods.",
    "credit.metrics.",
    "credit.page.findings",
    "credit.plot.",
    "credit.replay.",
    "credit.sides.",
    "graphs.frozen_agents",
    "graphs.keys",
    "graphs.levels",
    "graphs.segment",
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * n.startswith(COMPILING)) for n in _modules()]
)
def test_examples_of(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)  # an example may write files
    examples = [test for test in FINDER.find(module, name) if test.examples]
    assert examples, f"{name} has '>>> ' in its text, but in no docstring that doctest finds"
    # Without the heading, the site's docstring reader takes the `[0.7]` of an example for a link.
    bare = [test.name for test in examples if "Examples:\n" not in (test.docstring or "").partition(">>> ")[0]]
    assert not bare, f"expected the heading 'Examples:' above the examples of {bare}"
    absent = [f"import {package}\n" for package in OPTIONAL if importlib.util.find_spec(package) is None]
    examples = [test for test in examples if all(example.source not in absent for example in test.examples)]
    runner = doctest.DocTestRunner(checker=ToTheDigitsShown(), optionflags=OPTIONS)
    report: list[str] = []
    for test in examples:
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False)[0] == 0, "".join(report)


@pytest.mark.parametrize(
    ("want", "got", "agree"),
    [
        ("[1.0, -0.5]\n", "[1.0, -0.4999999701976776]\n", True),
        ("[0.33, 1.2e-05]\n", "[0.33333334, 1.19e-05]\n", True),
        ("[0.34]\n", "[0.33333334]\n", False),
        ("[0.0]\n", "[nan]\n", False),
        ("[1.0]\n", "[1.0, 1.0]\n", False),
    ],
)
def test_numbers_agree_to_the_digits_shown(want: str, got: str, agree: bool) -> None:
    assert ToTheDigitsShown().check_output(want, got, 0) == agree
