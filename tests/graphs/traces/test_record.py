"""The checks that every format's traces pass: order, ids, agents, numbers."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from graphs.errors import Problem, TraceError
from graphs.event_graph import EdgeType, EventType
from graphs.traces.assembling import assemble
from graphs.traces.record import Agent, TraceRecord, check


def record(n: int, edges: list[tuple[int, int]] = [], **columns: list[Any]) -> TraceRecord:  # noqa: B006
    """A trace of n messages of one agent, events named by letters."""
    draft = TraceRecord("t", "g", "file.json", line=7)
    for i in range(n):
        draft.event(chr(97 + i), EventType.MESSAGE, "x", action=True, time=float(i), line=10 + i)
    for sender, receiver in edges:
        draft.edge(sender, receiver, EdgeType.CAUSAL)
    draft.columns |= columns
    return draft


def problem_of(draft: TraceRecord) -> Problem:
    with pytest.raises(TraceError) as caught:
        check(draft)
    return caught.value.problem


def closest_order(n: int, edges: list[tuple[int, int]]) -> list[int] | None:
    """The smallest topological order in lexicographic comparison, by trying all; None if there is none."""
    for order in itertools.permutations(range(n)):
        place = {event: i for i, event in enumerate(order)}
        if all(place[s] < place[r] for s, r in edges):
            return list(order)
    return None


def test_a_record_in_order_comes_back_as_it_was() -> None:
    draft = record(3, [(0, 1), (1, 2), (0, 2)])
    assert check(draft) is draft


def test_every_small_graph_is_put_into_the_closest_order_or_refused_as_a_cycle() -> None:
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    cycles = 0
    for edges in itertools.chain.from_iterable(itertools.combinations(pairs, k) for k in range(4)):
        draft = record(4, list(edges), value=[0.0, 1.0])
        expected = closest_order(4, list(edges))
        if expected is None:
            cycles += 1
            problem = problem_of(draft)
            assert problem.kind == "cycle"
            path = problem.value.strip("'").split(" -> ")
            assert path[0] == path[-1] and len(path) > 2
            named = {(chr(97 + s), chr(97 + r)) for s, r in edges}
            assert set(itertools.pairwise(path)) <= named
            continue
        done = check(draft)
        assert done.ids == [chr(97 + i) for i in expected]
        assert done.times == [float(i) for i in expected]
        assert done.lines == [10 + i for i in expected]
        assert {(done.ids[s], done.ids[r]) for s, r in zip(done.senders, done.receivers, strict=True)} == {
            (chr(97 + s), chr(97 + r)) for s, r in edges
        }
        if done is not draft:
            assert done.columns["value"] == [{0: 0.0, 1: 1.0}.get(i) for i in expected]
    assert cycles > 20


@pytest.mark.parametrize("n", [3, 200])
def test_a_negative_time_is_refused_and_a_missing_one_is_not(n: int) -> None:
    draft = record(n)
    draft.times[0] = math.nan
    draft.times[1] = -0.0
    assert check(draft) is draft
    draft.times[n - 1] = -1e-9
    problem = problem_of(draft)
    assert (problem.field, problem.value, problem.line) == (f"events[{n - 1}].time", "-1e-09", 10 + n - 1)


@pytest.mark.parametrize(
    ("change", "kind", "field", "line"),
    [
        (lambda r: r.ids.clear(), "empty-trace", "events", 7),
        (lambda r: setattr(r, "trace_id", ""), "empty-id", "trace_id", 7),
        (lambda r: setattr(r, "group_id", ""), "empty-id", "group_id", 7),
        (lambda r: r.ids.__setitem__(2, ""), "empty-id", "events[2].id", 12),
        (lambda r: r.agents.__setitem__(1, ""), "empty-id", "events[1].agent", 11),
        (lambda r: r.instances.__setitem__("", Agent()), "empty-id", "agents", 7),
        (lambda r: r.ids.__setitem__(2, "a"), "duplicate-id", "events[2].id", 12),
        (lambda r: r.edge(1, 1, EdgeType.CAUSAL), "self-edge", "edges", 11),
        (lambda r: r.times.__setitem__(1, -1.0), "out-of-range", "events[1].time", 11),
        (lambda r: r.rewards.update(x=math.nan), "non-finite-reward", "rewards.x", 7),
        (lambda r: r.rewards.update(x=-math.inf), "non-finite-reward", "rewards.x", 7),
        (lambda r: r.rewards.update(x=1e39), "out-of-range", "rewards.x", 7),
        (lambda r: r.columns.update(event_reward=[None, math.nan]), "non-finite-reward", "events[1].event_reward", 11),
        (lambda r: r.columns.update(value=[None, None, -1e39]), "out-of-range", "events[2].value", 12),
        (lambda r: r.columns.update(tokens=[-1]), "out-of-range", "events[0].tokens", 10),
        (lambda r: r.columns.update(trainable=[None, 0.5]), "bad-value", "events[1].trainable", 11),
        (lambda r: r.columns.update(tokens=[2**31]), "out-of-range", "events[0].tokens", 10),
        (
            lambda r: r.columns.update(token_ids=[None, [1, 2]], token_log_probs=[None, [-1.0]]),
            "bad-tokens",
            "events[1].token_log_probs",
            11,
        ),
        (
            lambda r: r.columns.update(token_ids=[None, [1, 2]], token_sums_of_squares=[None, [1.0]]),
            "bad-tokens",
            "events[1].token_sums_of_squares",
            11,
        ),
        (
            lambda r: r.columns.update(
                token_mask=[None, [True, False, True]],
                token_log_probs=[None, [-0.1, -0.2]],
                token_sums_of_squares=[None, [0.81, 0.65]],
            ),
            "bad-tokens",
            "events[1].token_sums_of_squares",
            11,
        ),
        (lambda r: r.instances.update(x=Agent(parent="y")), "unknown-parent", "agents.x.parent", 7),
        (
            lambda r: r.instances.update(x=Agent(parent="y"), y=Agent(parent="z"), z=Agent(parent="y")),
            "agent-cycle",
            "agents.y.parent",
            7,
        ),
    ],
)
def test_what_is_refused(change: Any, kind: str, field: str, line: int) -> None:
    draft = record(3)
    change(draft)
    problem = problem_of(draft)
    assert (problem.kind, problem.field, problem.line, problem.file) == (kind, field, line, "file.json")


def test_numbers_at_the_edge_of_their_arrays_pass() -> None:
    draft = record(1, tokens=[2**31 - 1], value=[3.4028234663852886e38], log_prob=[None])
    draft.rewards["team"] = -3.4028234663852886e38
    assert check(draft) is draft


def test_a_root_may_be_its_own_parent() -> None:
    draft = record(1)
    draft.instances |= {"x": Agent(parent="x"), "y": Agent(parent="x"), "z": Agent(parent="y")}
    assert check(draft) is draft


@pytest.mark.parametrize(
    ("events", "line"),
    [
        (["spawn w", "w"], None),
        (["w", "spawn w"], 1),
        (["spawn w", "w", "spawn w"], None),  # spawned again
        (["spawn v", "v", "w", "spawn w"], 3),
        (["spawn x", "w"], None),  # the spawner spawns itself; w was always there
        (["spawn w", "spawn v"], None),  # nobody acts
    ],
)
def test_nobody_acts_before_being_spawned(events: list[str], line: int | None) -> None:
    draft = TraceRecord("t", "g", "f")
    for i, event in enumerate(events):
        if event.startswith("spawn "):
            draft.event(str(i), EventType.SPAWN, "x", action=True, line=i + 1, to=event.removeprefix("spawn "))
        else:
            draft.event(str(i), EventType.MESSAGE, event, action=True, line=i + 1)
    if line is None:
        assert check(draft) is draft
    else:
        problem = problem_of(draft)
        assert (problem.kind, problem.line) == ("use-before-spawn", line)
        assert "after its spawn" in problem.expected


def test_a_problem_points_at_the_event_s_own_file() -> None:
    draft = record(2)
    draft.files = ["one.json", "two.json"]
    draft.ids[1] = "a"
    assert (problem_of(draft).file, problem_of(draft).line) == ("two.json", 11)


def test_columns_of_an_event_are_filled_up_to_its_place() -> None:
    draft = TraceRecord("t", "g", "f")
    draft.event("a", EventType.MESSAGE, "x", action=True)
    draft.event("b", EventType.MESSAGE, "x", action=True, value=1.0, tool=None)
    draft.event("c", EventType.MESSAGE, "x", action=True, **{"from": "y"})
    assert draft.columns == {"value": [None, 1.0], "from": [None, None, "y"]}


def test_traces_that_are_checked_together_are_refused_as_each_is_alone() -> None:
    faults: list[dict[str, Any]] = [
        {"event_reward": [math.inf]}, {"tokens": [None, -1]}, {"context": ["nan"]}, {"is_valid": [2]},
        {"token_ids": [[1, 2]], "token_mask": [[True]]}, {"agent_reward": [1.0, 2.0]},
    ]  # fmt: skip
    drafts: list[TraceRecord] = []
    for fault in [*faults, *({} for _ in range(6))]:
        drafts += [record(3, [(0, 1)], **fault), record(3, [(2, 1)], tokens=[5])]
    drafts[-2].times[1], drafts[-4].rewards["team"], drafts[-6].ids[2] = -1.0, math.nan, "a"
    note = Problem("note", "file.json", 1, "", "", "")
    expected: list[Problem] = []
    for number, draft in enumerate(drafts):
        draft.trace_id = f"t{number}"
        try:
            check(draft)
        except TraceError as error:
            expected.append(error.problem)
        expected.append(note)
    read = assemble(item for draft in drafts for item in (draft, note))
    assert [problem for problem in read.problems if problem.file == "file.json"] == expected
    assert read.sizes.traces == len(drafts) - (len(expected) - len(drafts))
    assert len(expected) - len(drafts) == len(faults) + 3
