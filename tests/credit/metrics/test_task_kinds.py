"""Kinds of tasks: which failed, and what each did from one side to the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credit.metrics.trace_metrics import trace_metrics
from credit.page.findings import Findings
from credit.page.overview import overview
from credit.reports.task_kinds import MOST_KINDS, task_kinds
from credit.sides.chosen_sides import Sides
from credit.sides.compare_sides import compare_sides
from credit.sides.side_comparison import SideComparison
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord
from tests.credit.cli.logs import run


def traces_of(kinds: dict[str, list[tuple[list[float], list[float]]]]) -> Traces:
    """Traces of systems v1 and v2: of each kind, tasks with the outcomes of both."""
    records = []
    for kind, tasks in kinds.items():
        for number, sides in enumerate(tasks):
            for system, outcomes in zip(("v1", "v2"), sides, strict=True):
                for i, outcome in enumerate(outcomes):
                    name = f"{kind}-{number}"
                    record = TraceRecord(f"{name}-{system}-{i}", name, "log.jsonl", system=system, task_kind=kind)
                    record.instances = {"a": Agent()}
                    record.event("e", EventType.MESSAGE, "a", action=True)
                    record.rewards = {"team": outcome}
                    records.append(record)
    return assemble(records)


def compared(traces: Traces) -> SideComparison:
    _, sides = Sides.joined("system", traces)
    assert sides is not None
    return compare_sides(traces, sides, trace_metrics(traces))


BETTER, WORSE = ([0.0, 0.0], [1.0, 1.0]), ([1.0, 1.0], [0.0, 0.0])
MIXED = {"auto": [BETTER] * 10 + [([0.0], [0.0])], "theft": [WORSE] * 10, "water": [BETTER] * 3}


def test_a_side_that_is_better_in_one_kind_and_worse_in_another_is_told() -> None:
    """Over all tasks nothing could be told, and no row was of a kind."""
    found = compared(traces_of(MIXED))
    assert [row.name for row in found.shown()][:4] == [
        "success", "success of auto", "success of theft", "success of water"
    ]  # fmt: skip
    assert [(row.tasks, row.stands_out, row.without) for row in found.kinds] == [
        (11, True, ""), (10, True, "no spread"), (3, False, "–")
    ]  # fmt: skip
    assert "beyond chance for theft 1 to 0, auto 0 to 0.909" in found.changed()
    assert found.by_kind().startswith("success by kind of task: auto 0 to 0.909 in 11 tasks, beyond chance; theft 1 ")
    told: dict[str, Any] = found.as_json()
    assert [row["kind"] for row in told["kinds"]] == ["auto", "theft", "water"]
    assert [row["metric"] for row in told["differences"]].count("success") == 1


def test_the_page_has_the_kinds() -> None:
    traces = traces_of(MIXED)
    _, sides = Sides.joined("system", traces)
    told = overview(Findings.of(traces, {}, sides=sides))["sides"]
    assert [row["name"] for row in told["kinds"]] == ["success of auto", "success of theft", "success of water"]
    assert "beyond chance for theft" in told["changed"]


def test_tasks_of_one_kind_have_no_row() -> None:
    assert compared(traces_of({"auto": [BETTER] * 10})).kinds == ()


def test_few_kinds_are_shown_and_a_kind_is_one_of_a_task() -> None:
    names, kind = task_kinds(traces_of({f"k{i}": [BETTER] * (20 - i) for i in range(MOST_KINDS + 3)}))
    assert names == [*(f"k{i}" for i in range(MOST_KINDS)), "other kinds"]
    assert np.bincount(kind)[-1] == 4 * (12 + 11 + 10)
    records = [TraceRecord(name, task, "x", task_kind=of) for name, task, of in
               (("a", "q", "x"), ("b", "q", ""), ("c", "r", "x"), ("d", "r", "y"), ("e", "s", ""))]  # fmt: skip
    for record in records:
        record.instances = {"a": Agent()}
        record.event("e", EventType.MESSAGE, "a", action=True)
    names, kind = task_kinds(assemble(records))
    assert names == ["several kinds", "x"] and kind.tolist() == [1, 1, 0, 0, -1]


def test_a_column_of_the_table_of_groups_tells_kinds_apart(tmp_path: Path) -> None:
    event = {"id": "e", "type": "message", "agent": "x", "t": 0}
    runs = [{"trace_id": f"t{i}", "task_id": f"t{i}", "rewards": {"team": i % 3 % 2}, "costs": {}, "events": [event],
             "edges": []} for i in range(12)]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in runs))
    table = "trace,group,task_kind\n" + "".join(f"t{i},q{i // 2},{'auto' if i < 8 else 'theft'}\n" for i in range(12))
    (tmp_path / "tasks.csv").write_text(table)
    asked = ("summary", tmp_path / "log.jsonl", "--groups", tmp_path / "tasks.csv")
    line = "Failed by kind of task: theft 3 of 4 (75 %), auto 5 of 8 (63 %)."
    assert line in run(*asked).stdout and json.loads(run(*asked, "--json").stdout)["failed_by_kind"] == line
    for i, one in enumerate(runs):  # a trace without an outcome, of which there was an error, and two systems
        one |= {"rewards": {} if i == 1 else one["rewards"], "system": f"v{i % 2}"}
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in runs))
    line = "theft 3 of 4 (75 %; v0 50 %, v1 100 %), auto 5 of 7 (71 %; v0 75 %, v1 67 %)."
    assert f"Failed by kind of task: {line}" in run(*asked).stdout


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "runs"), [(10, (2, 2)), (30, (1, 3))])
def test_kinds_of_sides_that_are_alike_have_a_star_in_one_of_twenty(tasks: int, runs: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    stars = 0
    for _ in range(120):
        worlds = {}
        for kind in "abcd":
            chances = rng.beta(1, 1, tasks)
            worlds[kind] = [tuple((rng.random(many) < chance).astype(float).tolist() for many in runs)
                            for chance in chances]  # fmt: skip
        stars += any(row.stands_out for row in compared(traces_of(worlds)).kinds)  # type: ignore[arg-type]
    assert stars <= 12  # of 120, at 5 %: more in one of 70 cases
