"""One log as native traces and as rows of a table: whatever is asked of it has one answer."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credit.metrics.cost_summary import cost_rows
from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.corpus import survey
from credit.sides.chosen_sides import Sides, stated_sides
from credit.sides.compare_sides import compare_sides
from graphs.errors import Problem
from graphs.formats.native.wire import EVENT_FIELDS, Trace
from graphs.formats.table.columns import FAMILIES, KNOWN
from graphs.logs import read
from graphs.padding import unpad
from graphs.traces.batch import Traces

Event = dict[str, Any]


def world(seed: int) -> list[dict[str, Any]]:
    """Native traces of two sides: a lead, a helper that it may spawn, tools that fail, and who asks which model."""
    rng = np.random.default_rng(seed)
    traces = []
    for side, task, run in ((s, q, r) for s in (0, 1) for q in range(9) for r in range(2)):
        models = {"lead": "large", "helper": ("large", "mini")[side]}
        events: list[Event] = []

        def add(kind: str, agent: str, *, events: list[Event] = events, **more: Any) -> None:
            events.append({"id": f"e{len(events)}", "type": kind, "agent": agent, **more})

        for step in range(int(rng.integers(2, 6))):
            agent = "helper" if step else "lead"
            counts: Event = {name: int(rng.integers(10, 900)) for name in ("tokens", "input_tokens")}
            counts |= {"seconds": int(rng.integers(1, 40)) / 8}
            add("message", agent, model=models[agent], money=counts["tokens"] / 1024, **counts)
            if not step:
                add("spawn", "lead", to="helper", role="worker", action=False)
            else:
                tool, owner = str(rng.choice(["look", "pay"])), str(rng.choice(["helper", "pay"]))
                add("tool_call", agent, tool=tool, action=False, content_ref=f"c{step}", trusted=bool(rng.integers(2)))
                status = str(rng.choice(["ok", "error"]))
                add("tool_result", owner if owner == tool else agent, tool=tool, status=status, seconds=0.25)
        latest: dict[str, str] = {}
        edges = []
        for event in events:  # what a table says of the order
            agent = "helper" if event["agent"] == "pay" else event["agent"]
            if agent in latest:
                edges.append({"src": latest[agent], "dst": event["id"], "type": "temporal"})
            latest[agent] = event["id"]
        traces.append(
            {"schema_version": "1.0", "trace_id": f"{side}-{task}-{run}", "task_id": f"q{task}", "events": events}
            | {"edges": edges, "system": f"v{side + 1}", "topology": "hierarchical", "costs": {"calls": len(events)}}
            | {"rewards": {"team": float(rng.integers(2)), "style": float(rng.integers(9))}, "metrics": {"rated": side}}
        )  # fmt: skip
    return traces


def rows_of(traces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row an event, with what its trace has."""
    rows = []
    for trace in traces:
        of_trace = {name: trace[name] for name in ("trace_id", "task_id", "system", "topology")}
        of_trace |= {f"{family}.{name}": cell for family in FAMILIES for name, cell in trace[family].items()}
        of_trace["reward"] = of_trace.pop("rewards.team")
        rows += [of_trace | event for event in trace["events"]]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def as_csv(rows: list[dict[str, Any]], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def as_jsonl(rows: list[dict[str, Any]], path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_parquet(rows: list[dict[str, Any]], path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


def answers(traces: Traces) -> dict[str, Any]:
    """What is read of the traces, and what is said of them, without the names of files, formats and lines."""
    assert {note.kind for note in traces.problems} <= {"turns-by-agent"}  # of rows, which no edges join
    said = dataclasses.asdict(survey(traces))
    names, side = stated_sides("system", ["v1", "v2"], traces)
    found = compare_sides(traces, Sides(names, side, names), with_costs(traces, trace_metrics(traces), None))
    units = ("agent,model", "model", "tool", "system", "trace", "role")
    return {
        "graph": {name: np.asarray(cells).tolist() for name, cells in vars(unpad(traces.graph)).items()
                  if cells is not None and name != "time"},
        "events": traces.events.drop_columns(["file", "line", "offset"]).to_pylist(),
        "agents": traces.agents.to_pylist(),
        "traces": traces.traces.drop_columns(["file", "line", "offset", "format"]).to_pylist(),
        "evidence": {name: traces.evidence[name].listed(0, 10**6) for name in sorted(traces.evidence)},
        "survey": {name: said[name] for name in said if name not in ("formats", "problems")},
        "sides": json.loads(json.dumps(found.as_json(), default=float)),
        "costs": [[dataclasses.asdict(row) for row in cost_rows(traces, unit)] for unit in units],
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rows_and_native_traces_of_one_log_have_the_same_answers(seed: int, tmp_path: Path) -> None:
    """A table lost tools, errors and systems, and its agents had models that they never asked."""
    log = world(seed)
    as_jsonl(log, tmp_path / "native.jsonl")
    expected = answers(read(tmp_path / "native.jsonl"))
    for name, write in (("rows.csv", as_csv), ("rows.jsonl", as_jsonl), ("rows.parquet", as_parquet)):
        write(rows_of(log), tmp_path / name)
        found = answers(read(tmp_path / name))
        for part, answer in expected.items():
            assert found[part] == answer, (name, part)


def test_a_table_knows_each_name_of_the_native_format() -> None:
    names = {name for known in KNOWN.values() for name in known}
    no_text = {"events", "edges", "agents", "evidence", "schema_version", "told_order", *FAMILIES}
    assert {*EVENT_FIELDS, *Trace.__struct_encode_fields__} - no_text <= names


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("status", ["ok"], "a text, or --columns status= to leave the column out"),
        (
            "system",
            "You are\na helper.",
            "a name of the harness, 200 characters at most, or --columns system= ",
        ),
        ("topology", "round", "one of centralized, "),
        ("trusted", "perhaps", "true, false, 1 or 0"),
        ("costs.money", "much", "a number"),
    ],
)
def test_a_cell_of_another_kind_is_named_and_its_column_may_be_left_out(
    column: str, cell: Any, expected: str, tmp_path: Path
) -> None:
    rows = [{"trace": "a", "reward": 1, column: cell}, {"trace": "b", "reward": 0, column: None}]
    as_jsonl(rows, tmp_path / "rows.jsonl")
    traces = read(tmp_path / "rows.jsonl")
    (problem,) = traces.problems
    assert isinstance(problem, Problem) and (problem.kind, problem.field) == ("bad-type", column)
    assert problem.expected.startswith(expected) and traces.traces["trace"].to_pylist() == ["b"]
    if column in KNOWN:
        traces = read(tmp_path / "rows.jsonl", columns={column: ""})
        assert [problem.kind for problem in traces.problems] == ["unread-columns"] and traces.sizes.traces == 2


def test_rows_of_one_trace_have_one_system(tmp_path: Path) -> None:
    rows = [{"trace": "a", "reward": 1, "system": name} for name in ("v1", "v2")] + [{"trace": "b", "reward": 0}]
    as_jsonl(rows, tmp_path / "rows.jsonl")
    (problem,) = read(tmp_path / "rows.jsonl").problems
    assert (problem.kind, problem.line) == ("inconsistent-system", 2)
