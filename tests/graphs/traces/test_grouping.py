"""A group is a task under one policy: model and system are part of its key, in every form that a batch can take."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_time import assert_linear

import credit
from credit.reports.corpus import survey
from graphs.errors import CreditError
from graphs.logs import read
from graphs.logs.chunks import read_chunks
from graphs.structure.networkx_graphs import from_networkx, to_networkx
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.cache import read_cache, write_cache
from graphs.traces.event_models import event_models
from graphs.traces.grouping import group_names
from graphs.writers import native, otlp


def write(folder: Path, runs: list[tuple[str, str | None, str | None]]) -> Path:
    lines = []
    for i, (task, model, system) in enumerate(runs):
        document: dict[str, Any] = {"trace_id": f"t{i}", "task_id": task, "rewards": {"team": float(i)}}
        document["events"] = [{"id": "e", "type": "message", "agent": "a"}]
        document |= {"model": model} if model else {}
        document |= {"system": system} if system else {}
        lines.append(json.dumps(document))
    (folder / "runs.jsonl").write_text("\n".join(lines))
    return folder / "runs.jsonl"


RUNS: list[tuple[str, str | None, str | None]] = [
    ("q1", "large", "h"), ("q1", "small", "h"), ("q1", "large", "h"), ("q1", "small", "h"), ("q2", "small", None),
    ("q2", "small", None), ("q3", None, None), ("q3", "small", None), ("q4", "m", "one"), ("q4", "m", "two"),
]  # fmt: skip
NAMES = [
    "q1 [large]", "q1 [small]", "q1 [large]", "q1 [small]", "q2", "q2", "q3 [unknown]", "q3 [small]", "q4 [one]",
    "q4 [two]",
]  # fmt: skip


def same_groups(one: Traces, other: Traces) -> None:
    for name in ("trace", "group", "task", "model", "system"):
        assert one.traces[name].to_pylist() == other.traces[name].to_pylist(), name
    np.testing.assert_array_equal(one.graph.group_ids, other.graph.group_ids)


def test_runs_of_several_models_are_not_compared(tmp_path: Path) -> None:
    traces = read(write(tmp_path, RUNS))
    assert traces.traces["group"].to_pylist() == NAMES
    assert traces.traces["task"].to_pylist() == [task for task, _, _ in RUNS]
    assert traces.traces["model"].to_pylist() == [model for _, model, _ in RUNS]
    assert len(set(traces.graph.group_ids[:10].tolist())) == len(set(NAMES))
    advantage = credit.rloo(traces.graph, traces.reward).advantage[:4]
    np.testing.assert_allclose(advantage, [-2, -2, 2, 2])  # 0 against 2, and 1 against 3
    found = survey(traces)
    assert found.mixed == {} and found.divided == 3


def test_what_a_run_that_was_cut_short_does_not_state_is_no_second_model(tmp_path: Path) -> None:
    """A group with such a run was named as one of several models, "haiku, v1 and v1"."""
    path = write(tmp_path, [("q", "m", "v"), ("q", None, "v"), ("p", "m", "v"), ("p", "n", "v")])
    lines = [
        json.loads(line) | {"metrics": {"lost_parts": i % 2}} for i, line in enumerate(path.read_text().splitlines())
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert survey(read(path, group_by=("task",))).mixed == {"p": ("m, v", "n, v")}
    path.write_text("\n".join(json.dumps(line | {"metrics": {}}) for line in lines))
    assert survey(read(path, group_by=("task",))).mixed == {"q": ("m, v", "v"), "p": ("m, v", "n, v")}


def test_group_by_task_compares_all_and_validate_names_the_mixed(tmp_path: Path) -> None:
    traces = read(write(tmp_path, RUNS), group_by=("task",))
    assert traces.traces["group"].to_pylist() == [task for task, _, _ in RUNS]
    assert survey(traces).mixed == {
        "q1": ("large, h", "small, h"), "q3": ("unknown", "small"), "q4": ("m, one", "m, two")
    }  # fmt: skip
    by_model = read(tmp_path / "runs.jsonl", group_by=("model", "task"))
    assert by_model.traces["group"].to_pylist()[-2:] == ["q4", "q4"]


def test_groups_survive_every_form_of_a_batch(tmp_path: Path) -> None:
    traces = read(write(tmp_path, RUNS))
    native.write(traces, tmp_path / "again.jsonl")
    same_groups(read(tmp_path / "again.jsonl"), traces)
    otlp.write(traces, tmp_path / "otlp")
    same_groups(read(tmp_path / "otlp"), traces)
    write_cache(traces, tmp_path / "cache.parquet")
    same_groups(read_cache(tmp_path / "cache.parquet"), traces)
    graphs = [from_networkx(to_networkx(traces.graph, traces, trace)) for trace in range(10)]
    same_groups(assemble(graphs), traces)
    chunks = list(read_chunks(tmp_path / "runs.jsonl", events=2))
    assert len(chunks) > 1
    found = {
        t: g for one in chunks for t, g in zip(*(one.traces[k].to_pylist() for k in ("trace", "group")), strict=True)
    }
    assert [found[f"t{i}"] for i in range(10)] == NAMES


def test_a_table_has_a_column_for_the_model(tmp_path: Path) -> None:
    rows = ["trace,group,model,reward", "a,q,small,1", "b,q,large,0", "c,q,small,0"]
    (tmp_path / "rows.csv").write_text("\n".join([*rows, ""]))
    assert read(tmp_path).traces["group"].to_pylist() == ["q [small]", "q [large]", "q [small]"]


def test_rows_of_a_table_keep_the_models_of_their_calls(tmp_path: Path) -> None:
    """A frozen judge of another model is a member of the team, as in logs of calls."""
    rows = ["trace,group,agent,model,reward", "a,q,s,small,1", "a,q,judge,large,1", "b,q,s,small,0", "b,q,judge,,0", ""]
    (tmp_path / "rows.csv").write_text("\n".join(rows))
    traces = read(tmp_path)
    assert not traces.problems and traces.traces["model"].to_pylist() == ["small", "small"]
    names, model = event_models(traces)
    assert [names[which] for which in model] == ["small", "large", "small", ""]
    assert traces.traces["group"].to_pylist() == ["q [small; judge: large]", "q [small; judge: unknown]"]


def test_a_name_that_another_task_bears_is_another_group() -> None:
    names = group_names(["q", "q", "q [a]"], ["a", "b", ""], ["", "", ""])
    assert len(set(names)) == 3 and names[2] == "q [a]"


@pytest.mark.parametrize("group_by", [("model",), ("task", "task"), ("task", "color"), "model", ()])
def test_keys_that_are_none_are_refused(tmp_path: Path, group_by: Any) -> None:
    with pytest.raises(CreditError, match="group_by"):
        read(write(tmp_path, RUNS), group_by=group_by)


def test_many_policies_of_one_task_take_linear_time() -> None:
    """As where each run lies in a folder of its own, and nothing names its model."""

    def prepare(size: int) -> Callable[[], object]:
        systems = [str(number) for number in range(size)]
        return lambda: group_names(["q"] * size, [""] * size, systems)

    assert_linear(prepare, 8000)


@pytest.mark.parametrize("stated", ["", "large + small"])
def test_a_fallback_is_no_other_policy(tmp_path: Path, stated: str) -> None:
    """Each run with a call that failed and was answered by another model was alone in a group of its own."""
    lines = []
    for run, models in enumerate((("large", "large"), ("large", "small"), ("large", "large"), ("small", "small"))):
        events = [
            {"id": f"{agent}{k}", "type": "message", "agent": agent, "model": model, "tokens": 5}
            for k, model in enumerate(models)
            for agent in ("lead", "coder")
        ]
        line = {"trace_id": f"t{run}", "task_id": "q", "rewards": {"team": run}, "events": events, "edges": []}
        lines.append(line | ({"model": stated} if stated and len(set(models)) > 1 else {}))
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    traces = read(tmp_path / "runs.jsonl")
    assert traces.traces["group"].to_pylist() == ["q [large]"] * 3 + ["q [small]"]
    assert traces.traces["model"].to_pylist() == ["large"] * 3 + ["small"]
    names, model = event_models(traces)
    assert [names[which] for which in model[4:8]] == ["large", "large", "small", "small"]
    write_cache(traces, tmp_path / "cache.parquet")
    same_groups(read_cache(tmp_path / "cache.parquet"), traces)
    native.write(traces, tmp_path / "again.jsonl")
    same_groups(read(tmp_path / "again.jsonl"), traces)
