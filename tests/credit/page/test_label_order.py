"""The order in which `credit label` asks: a sample of the log from its beginning."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

import credit
from credit.page import Findings
from credit.page.html import served_page
from credit.page.label_order import label_order
from graphs.traces.batch import Traces

from ...graphs.reading.native.logs import extended_trace
from .test_serving import embedded


def log(path: Path, order: list[int]) -> Traces:
    """The first half of 200 traces is of one system; each has two kinds of task, and a judge that passes most."""
    lines = []
    for i in order:
        one = extended_trace() | {"trace_id": f"t{i}", "system": "old" if i < 100 else "new", "task_kind": f"k{i % 2}"}
        lines.append(json.dumps(one | {"rewards": {"judge": float(i % 5 > 0)}}))
    path.write_text("\n".join(lines))
    return credit.read(path)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    return log(tmp_path_factory.mktemp("labelled") / "log.jsonl", list(range(200)))


@pytest.mark.parametrize("count", [10, 20, 50])
def test_the_first_traces_are_of_each_system_kind_and_verdict(traces: Traces, count: int) -> None:
    """Tickets that run once were asked for in the order of the log: the first 20 were of the first days."""
    first = label_order(traces)[:count]
    assert sorted(label_order(traces)) == list(range(200))
    assert Counter(row < 100 for row in first)[True] == pytest.approx(count / 2, abs=1)
    assert Counter(row % 5 > 0 for row in first)[False] == pytest.approx(count / 5, abs=2)
    assert Counter(row % 2 for row in first)[0] == pytest.approx(count / 2, abs=4)
    assert first != sorted(first)


def test_the_order_is_of_the_ids_and_not_of_the_log(traces: Traces, tmp_path: Path) -> None:
    shuffled = list(range(200))
    random.Random(5).shuffle(shuffled)
    again = log(tmp_path / "log.jsonl", shuffled)
    ours, theirs = (one.traces["trace"].to_pylist() for one in (traces, again))
    assert [ours[row] for row in label_order(traces)] == [theirs[row] for row in label_order(again)]


def test_the_page_of_labels_has_the_order(traces: Traces) -> None:
    head, _ = embedded(served_page(Findings.of(traces, {}), labelled=True))
    assert head["explorer"]["order"] == label_order(traces)
