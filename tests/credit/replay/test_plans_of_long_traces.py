"""Plans of long traces and of many groups take linear time and memory: decisions of a trace share its list of ids."""

from __future__ import annotations

import copy
import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_time import assert_linear

from credit.replay.before import TraceEvents
from credit.replay.replay_plan import Job, ReplayPlan, read_plan, write_plan
from credit.replay.replayer import Prefix
from credit.replay.run_planning import outcome_spread, plan_replays
from graphs.logs import read
from graphs.traces.batch import Traces


def log(folder: Path, traces: list[tuple[str, int, float]]) -> Traces:
    """Traces of a task, a number of events and an outcome."""
    lines = []
    for i, (task, events, reward) in enumerate(traces):
        listed: list[dict[str, Any]] = [{"id": f"e{j}", "type": "message", "agent": "a"} for j in range(events)]
        lines.append(json.dumps({"trace_id": f"t{i}", "task_id": task, "events": listed, "rewards": {"team": reward}}))
    (folder / "log.jsonl").write_text("\n".join(lines))
    return read(folder / "log.jsonl")


@pytest.mark.study
def test_a_plan_of_a_long_trace_is_linear(tmp_path: Path) -> None:
    """It listed all events before each decision: 15 GB and no end at 100,000 events."""

    def prepare(events: int) -> Callable[[], object]:
        (tmp_path / str(events)).mkdir()
        traces = log(tmp_path / str(events), [("q", events, 1.0)])

        def plan() -> None:
            write_plan(plan_replays(traces, "value", 2 * events), tmp_path / str(events) / "plan.jsonl")
            read_plan(tmp_path / str(events) / "plan.jsonl")

        return plan

    assert_linear(prepare, 16_000, runs=1)
    events = 2_000
    plan = plan_replays(log(tmp_path, [("q", events, 1.0)]), "value", 2 * events)
    write_plan(plan, tmp_path / "plan.jsonl")
    again = read_plan(tmp_path / "plan.jsonl")
    assert (tmp_path / "plan.jsonl").stat().st_size < 250 * events
    assert again == plan and len(plan.jobs) == events
    assert again.jobs[-1].prefix.events[-1] == f"e{events - 2}"
    assert [job.key for job in again.jobs] == [job.key for job in plan.jobs]


def test_prefixes_in_any_order_are_written_and_read_back(tmp_path: Path) -> None:
    events = [("a", "b", "c"), ("a",), (), ("a", "b", "c", "d"), ("x", "y"), ("a", "b"), ("x",), ("x", "y", "z")]
    jobs = tuple(Job(Prefix(f"t{i % 2}", "g", one, "end"), None, (), 1) for i in range(2) for one in events)
    write_plan(ReplayPlan("value", jobs), tmp_path / "plan.jsonl")
    again = read_plan(tmp_path / "plan.jsonl").jobs
    assert again == jobs and [tuple(job.prefix.events) for job in again] == 2 * events


def test_the_first_ids_are_as_a_tuple() -> None:
    shared = TraceEvents("abcd")
    one, two = shared.first(2), shared.first(3)
    shared.extend("ef")
    assert one == ("a", "b") and two == ("a", "b", "c") and one != two and one != ["a", "b"]
    assert one == TraceEvents("abx").first(2) and hash(one) == hash(TraceEvents("abx").first(2))
    assert (two[0], two[-1], two[1:], two[::-1]) == ("a", "c", ("b", "c"), ("c", "b", "a"))
    assert list(two) == list(reversed(tuple(reversed(two)))) == ["a", "b", "c"] and "d" not in two
    assert two.begins_with(one) and not one.begins_with(two) and repr(one) == "('a', 'b')"
    for other in (pickle.loads(pickle.dumps(two)), copy.deepcopy(two)):
        assert other == two and hash(other) == hash(two)


@pytest.mark.study
def test_the_spread_of_many_groups_is_that_of_a_slow_reading(tmp_path: Path) -> None:
    """A pass over all traces for each group took the square of their number."""
    rng = np.random.default_rng(0)
    rewards = np.round(rng.random(200), 1).tolist()
    rewards[:3] = [0.1, 0.1, 0.1]
    traces = log(tmp_path, [(f"q{max(i - 2, 0) // 3}", 1, reward) for i, reward in enumerate(rewards)])
    group = np.asarray(traces.graph.group_ids)[:200]
    reward = np.asarray(traces.reward)[:200].astype(np.float64)
    squares = {g: len(reward[group == g]) * reward[group == g].var() for g in set(group.tolist())}
    mean = sum(squares.values()) / sum((group == g).sum() - 1 for g in squares)
    slow = [np.sqrt((squares[g] + 2 * mean) / ((group == g).sum() - 1 + 2)) for g in group.tolist()]
    np.testing.assert_allclose(outcome_spread(traces), slow, rtol=1e-12)
    assert np.isnan(outcome_spread(log(tmp_path, [("q", 1, 0.1)] * 3))).all()  # no spread, not that of rounding
    many = log(tmp_path, [(f"q{i // 2}", 1, float(i % 2)) for i in range(40_000)])
    start = time.process_time()
    assert (outcome_spread(many) > 0).all()
    assert time.process_time() - start < 1
