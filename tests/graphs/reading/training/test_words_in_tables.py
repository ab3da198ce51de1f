"""Words in a trainer's table: outcomes as pass and fail, and times that end in UTC."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphs.logs import read
from graphs.reading.tables.outcome_words import PAIRS
from graphs.traces.batch import Traces


def read_outcomes(folder: Path, *outcomes: str) -> Traces:
    """Two rows a trace, each with the outcome."""
    lines = [f"t{place},q,{outcome}" for place, outcome in enumerate(outcomes) for _ in range(2)]
    (path := folder / "log.csv").write_text("\n".join(["trace,group,reward", *lines, ""]))
    return read(path)


@pytest.mark.parametrize(("one", "zero"), PAIRS)
def test_an_outcome_of_a_table_may_be_a_word(one: str, zero: str, tmp_path: Path) -> None:
    """Each trace of a table with `success` was refused, though a table of `--rewards` may have it."""
    traces = read_outcomes(tmp_path, one.upper(), zero, one, "")
    assert np.asarray(traces.reward)[:4] == pytest.approx([1, 0, 1, np.nan], nan_ok=True)
    (told,) = [problem for problem in traces.problems if problem.kind == "worded-outcomes"]
    assert not told.is_failure and f"{one} is read as 1 (2 traces) and {zero} as 0 (1 trace)" in told.expected


@pytest.mark.parametrize(("outcomes", "kept"), [(("pass", "0.5", "no"), ["t1"]), (("pass", "yes", "1"), ["t2"])])
def test_a_mixture_refuses_the_traces_with_words(outcomes: tuple[str, ...], kept: list[str], tmp_path: Path) -> None:
    traces = read_outcomes(tmp_path, *outcomes)
    assert traces.traces["trace"].to_pylist() == kept
    assert [p.kind for p in traces.problems if p.is_failure] == ["mixed-outcomes"] * 2


def test_a_word_of_no_pair_names_the_pairs(tmp_path: Path) -> None:
    traces = read_outcomes(tmp_path, "1", "maybe", "cannot tell")
    assert traces.traces["trace"].to_pylist() == ["t0"]
    assert all(p.kind == "bad-type" and "success/failure" in p.expected for p in traces.problems if p.is_failure)


@pytest.mark.parametrize("form", ["{} UTC", "{}+00:00", "{}Z"])
def test_a_time_may_end_in_utc(form: str, tmp_path: Path) -> None:
    """`2026-11-29 12:00:00 UTC`, as BigQuery exports it, refused its trace."""
    moments = [form.format(f"2026-11-29 12:00:0{second}") for second in (0, 5.5)]
    (path := tmp_path / "log.csv").write_text("trace,reward,time\n" + "".join(f"t,1,{time}\n" for time in moments))
    (second, third), traces = (1795953600.0, 1795953605.5), read(path)
    assert traces.problems == () and np.asarray(traces.graph.time)[:2].tolist() == [0, third - second]
