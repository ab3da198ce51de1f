"""The blocks of pages run as they stand, and print what they say."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from estimators.base import Credit

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["ledger.md", "channels.md"])
@pytest.mark.slow
def test_blocks_print_what_they_say(page: str) -> None:
    bodies = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert bodies
    for body in bodies:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(body, page, "exec"), {})
        expected = [line[2:] for line in body.splitlines() if line.startswith("# ")]
        assert out.getvalue().rstrip().splitlines() == expected


def blocks_of_the_guide() -> list[str]:
    """The blocks of Python in the guide for contributors that are no excerpt."""
    return re.findall(r"```python\n(import.*?)```", (DOCS.parent / "CONTRIBUTING.md").read_text(), re.DOTALL)


@pytest.mark.slow
def test_the_method_of_the_guide_for_contributors_obeys_the_laws() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(blocks_of_the_guide()[0], "CONTRIBUTING.md", "exec"), {})  # raises where a law is broken
    assert "equal_rewards" in out.getvalue()


def median_of_the_guide() -> Callable[..., Credit]:
    names: dict[str, Any] = {}
    exec(compile(blocks_of_the_guide()[1], "CONTRIBUTING.md", "exec"), names)
    return names["median_baseline"]


@pytest.mark.study
def test_the_median_of_the_guide_for_contributors_obeys_the_laws() -> None:
    credit.check(median_of_the_guide(), scope="group")


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [None, [0, 0, 0, 3, 4, 5, 5, 5, 8], [0, 0, 0, 0, 0, 5, 6, 6, 8]])
def test_the_median_of_the_guide_for_contributors_leaves_replays_out(cluster: list[int] | None) -> None:
    """Against a loop: the median over the other clusters of the group, each with the mean of its traces."""
    group, reward = [0] * 5 + [1] * 3 + [2], [3.0, 1.0, 0.0, 2.0, 2.0, 1.0, 4.0, 0.5, 1.0]
    graph, outcome, rows = credit.from_columns(
        group=group, trace=list(range(9)), reward=reward, events=16, traces=16, agents=16
    )
    if cluster is not None:
        graph = dataclasses.replace(graph, cluster_ids=np.array(cluster + [0] * 7, np.int32))
    own = cluster or list(range(9))
    found = median_of_the_guide()(graph, outcome)
    for trace, event in enumerate(rows.event.tolist()):
        others = [t for t in range(9) if group[t] == group[trace] and own[t] != own[trace]]
        assert bool(found.valid[event]) == bool(others)
        if others:
            means = [np.mean([reward[t] for t in others if own[t] == c]) for c in {own[t] for t in others}]
            assert float(found.baseline[event]) == pytest.approx(np.median(means), abs=1e-6)
