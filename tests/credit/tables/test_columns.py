"""Columns of a trainer: the graph says the same as the rows, in any order and any container, and bad rows are named."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import credit
import graphs
from credit.tables.batch_rows import Rows
from credit.tables.columns import ColumnError, from_columns
from graphs.errors import CapacityError, CreditError
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

SHAPE = {"events": 16, "traces": 8, "agents": 16}

GROUP = ["q1", "q1", "q1", "q1", "q2", "q2", "q2", "q2"]
TRACE = ["a", "b", "a", "b", "c", "d", "d", "c"]  # interleaved: rows of a trace do not stand together
AGENT = ["S", "S", "V", "V", "S", "S", "V", "S"]
REWARD = [1.0, 0.0, 1.0, 0.0, 2.0, 5.0, 5.0, 2.0]


def example(**changes: Any) -> tuple[credit.EventGraph, np.ndarray, Rows]:
    columns: dict[str, Any] = {"group": GROUP, "trace": TRACE, "agent": AGENT, "reward": REWARD, **SHAPE}
    return from_columns(**(columns | changes))


def test_the_graph_says_what_the_rows_say() -> None:
    graph, reward, rows = example()
    assert graph.num_events == 16 and graph.num_agents == 16 and graph.num_traces == 8 and graph.num_edges == 8
    assert reward.tolist() == [1, 0, 2, 5, 0, 0, 0, 0]
    assert graph.trace_mask.tolist() == [True] * 4 + [False] * 4
    assert graph.group_ids.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert rows.event.tolist() == [0, 2, 1, 3, 4, 6, 7, 5]  # traces a, b, c, d, rows in the order given
    assert graph.trace_ids[:8].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    names = [AGENT[i] for i in np.argsort(rows.event)]
    assert names == ["S", "V", "S", "V", "S", "S", "S", "V"]
    assert graph.agent_name_ids[graph.agent_ids[:8]].tolist() == [0 if name == "S" else 1 for name in names]
    assert graph.agent_ids[:8].tolist() == [0, 1, 2, 3, 4, 4, 5, 6]
    assert graph.agent_trace[:7].tolist() == [0, 0, 1, 1, 2, 3, 3]
    assert not graph.edge_mask.any()
    assert graph.action_mask.sum() == graph.event_mask.sum() == 8
    assert np.isnan(graph.time).sum() == 16


def test_results_come_back_in_the_order_of_the_rows() -> None:
    graph, reward, rows = example()
    advantage = rows.gather(credit.rloo(graph, reward).advantage)
    assert np.asarray(advantage).tolist() == [1, -1, 1, -1, -3, 3, 3, -3]
    # In and out of jit, JAX and NumPy.
    assert np.array_equal(jax.jit(rows.gather)(np.arange(16)), rows.event)
    assert np.array_equal(rows.gather(np.arange(16)), rows.event)
    with pytest.raises(ValueError, match=r"shape \(8,\); expected \(16, \.\.\.\)"):
        rows.gather(np.arange(8))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["S", "V", "W"]), st.integers(-3, 3)), min_size=1, max_size=16
    )
)
def test_ids_agree_with_a_slow_reading(drawn: list[tuple[int, str, int]]) -> None:
    trace = [f"t{t}" for t, _, _ in drawn]
    group = [t % 2 for t, _, _ in drawn]
    agent = [a for _, a, _ in drawn]
    own = [float(r) for _, _, r in drawn]
    graph, reward, rows = from_columns(group=group, trace=trace, agent=agent, row_reward=own, **SHAPE)

    order = []
    for t in dict.fromkeys(trace):
        order += [i for i, other in enumerate(trace) if other == t]
    assert [int(i) for i in np.argsort(rows.event)] == order
    assert not reward.any()
    assert rows.event_reward is not None
    assert rows.event_reward[: len(own)].tolist() == [own[i] for i in order]
    assert not rows.event_reward[len(own) :].any()
    for i in range(len(drawn)):
        for j in range(len(drawn)):
            e, f = rows.event[i], rows.event[j]
            assert (graph.trace_ids[e] == graph.trace_ids[f]) == (trace[i] == trace[j])
            assert (graph.agent_ids[e] == graph.agent_ids[f]) == ((trace[i], agent[i]) == (trace[j], agent[j]))
            names = graph.agent_name_ids[graph.agent_ids[[e, f]]]
            assert (names[0] == names[1]) == (agent[i] == agent[j])
            groups = graph.group_ids[graph.trace_ids[[e, f]]]
            assert (groups[0] == groups[1]) == (group[i] == group[j])
    assert graph.turn_ids.tolist() == graph.agent_ids.tolist()


def test_columns_and_a_table_on_disk_give_the_same_graph(tmp_path: Path) -> None:
    lines = ["uid,traj_uid,agent_id,score,turn,tokens"]
    turn, tokens = [0, 0, 0, 0, 0, 0, 0, 1], list(range(8))
    lines += [",".join(map(str, row)) for row in zip(GROUP, TRACE, AGENT, REWARD, turn, tokens, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    read = credit.read(tmp_path / "rows.csv", format="table")
    for also in ({}, {"turn": turn}):
        graph, reward, rows = from_columns(group=GROUP, trace=TRACE, agent=AGENT, reward=REWARD, tokens=tokens, **also)
        for field in dataclasses.fields(graph):
            if field.name in ("senders", "receivers", "edge_type", "edge_mask") or (
                field.name == "turn_ids" and not also
            ):
                continue  # a table states the order of an instance's rows as edges; columns have none
            ours, theirs = (np.asarray(getattr(graphs.unpad(g), field.name)) for g in (graph, read.graph))
            assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"), field.name
        assert np.array_equal(reward[:4], read.reward[:4])
        assert rows.tokens is not None and np.array_equal(rows.tokens[:8], read.evidence["tokens"].array[:8])


def containers() -> list[Any]:
    pandas = pytest.importorskip("pandas")
    return [
        TRACE,
        tuple(TRACE),
        np.array(TRACE),
        np.array(TRACE, object),
        pa.array(TRACE),
        pa.array(TRACE, pa.large_string()),
        pa.array(TRACE).dictionary_encode(),
        pa.chunked_array([TRACE[:3], TRACE[3:]]),
        pa.chunked_array([pa.array(TRACE[:3]).dictionary_encode(), pa.array(TRACE[3:]).dictionary_encode()]),
        pa.DictionaryArray.from_arrays(
            pa.array([3, 1, 0, 1, 2, 4, 4, 2], pa.int8()), pa.array(["a", "b", "c", "a", "d"])
        ),
        pa.DictionaryArray.from_arrays(pa.array([2, 3, 2, 3, 0, 1, 1, 0]), pa.array(["a", "b", "c", "d"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1, 3, 4, 4, 3]), pa.array(["a", "b", "c", "d", "e"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1, 2, 3, 3, 2]), pa.array([-5, 0, 7, 8])),
        pandas.Series(TRACE),
        pandas.Series(TRACE, dtype="category"),
        pandas.Categorical(TRACE, categories=["d", "c", "unused", "b", "a"]),
        [7, -1, 7, -1, 2**40, 0, 0, 2**40],
        np.array([3, 1, 3, 1, 0, 2, 2, 0], np.uint8),
        pandas.Series([30, 10, 30, 10, 0, 20, 20, 0]),
        jax.numpy.array([3, 1, 3, 1, 0, 2, 2, 0]),
    ]


def test_every_container_gives_the_same_graph() -> None:
    expected = jax.tree.leaves(example()[0])
    for column in containers():
        graph, _, rows = example(trace=column)
        for ours, theirs in zip(jax.tree.leaves(graph), expected, strict=True):
            assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"), column
        assert rows.event.tolist() == [0, 2, 1, 3, 4, 6, 7, 5]


def test_tensors_are_columns() -> None:
    torch = pytest.importorskip("torch")
    _, reward, rows = example(trace=torch.tensor([3, 1, 3, 1, 0, 2, 2, 0]), reward=torch.tensor(REWARD))
    assert reward[:4].tolist() == [1, 0, 2, 5]
    assert rows.event.tolist() == [0, 2, 1, 3, 4, 6, 7, 5]


def test_roles_turns_tokens_and_evidence() -> None:
    role = ["solve" if a == "S" else "verify" for a in AGENT]
    graph, _, rows = example(
        role=role,
        turn=[0, 0, 0, 0, 0, 0, 0, 1],
        tokens=[10, 11, 12, 13, 14, 15, 16, 17],
        event_reward=[0.5] * 8,
        evidence={
            "value": [0.25, None, 0.5, float("nan"), 1, 2, 3, 4],
            "context": ["x", None, "y", "x", "z", "z", "z", None],
            "greedy_reward": [3.0, None, 3.0, None, 1.0, 2.0, 2.0, 1.0],
        },
    )
    assert graph.agent_role_ids[graph.agent_ids[rows.event]].tolist() == [0, 0, 1, 1, 0, 0, 1, 0]
    assert graph.turn_ids[rows.event].tolist() == [0, 2, 1, 3, 4, 6, 7, 5]
    assert rows.tokens is not None and rows.event_reward is not None
    assert rows.gather(rows.tokens).tolist() == list(range(10, 18))
    assert rows.tokens[8:].tolist() == [-1] * 8
    assert rows.gather(rows.event_reward).tolist() == [0.5] * 8
    value = rows.gather(rows.evidence["value"])
    assert np.array_equal(value, [0.25, np.nan, 0.5, np.nan, 1, 2, 3, 4], equal_nan=True)
    context = rows.gather(rows.evidence["context"])
    assert context[[1, 7]].tolist() == [-1, -1]
    assert context[0] == context[3] and len({int(c) for c in context[[0, 2, 4]]}) == 3
    greedy = rows.evidence["greedy_reward"]
    assert np.array_equal(greedy, [3, np.nan, 1, 2, *[np.nan] * 4], equal_nan=True)


def test_without_agents_each_trace_has_one() -> None:
    graph, _, _ = example(agent=None)
    assert graph.agent_mask.sum() == 4
    assert graph.agent_name_ids[:4].tolist() == [0] * 4
    graph, _, _ = example(agent=None, role=AGENT)
    assert graph.agent_mask.sum() == 7


@pytest.mark.parametrize(
    ("changes", "rows", "message"),
    [
        (
            {"reward": [1, 0, 2, 0, 2, 5, 5, 2]},
            [0, 2],
            "'reward'.*trace 'a' has different values.*row_reward=.*event_rew",
        ),
        ({"group": ["q1", "q1", "q1", "q1", "q2", "q2", "q9", "q2"]}, [5, 6], "'group'.*trace 'd'.*one group"),
        ({"role": ["x", "x", "y", "y", "x", "x", "y", "z"]}, [4, 7], "'role'.*agent 'S'.*one role"),
        ({"reward": [1, 0, 1, float("nan"), 2, 5, 5, 2]}, [3], "'reward'.*not finite float32 in 1 of 8 rows"),
        ({"reward": [1, 0, 1, None, 2, 5, 5, 2]}, [3], "'reward'.*not finite"),
        ({"reward": [1, 0, 1, float("inf"), 2, 5, 5, 2]}, [3], "not finite"),
        ({"trace": ["a", None, "a", "b", "c", "d", "d", None]}, [1, 7], "'trace'.*no id.* in 2 of 8 rows"),
        ({"group": np.array([None] * 8, object)}, [0, 1, 2, 3, 4], "'group'.*no id.* in 8 of 8 rows.*…"),
        ({"trace": pa.array(["a", None] * 4).dictionary_encode()}, [1, 3, 5, 7], "no id"),
        ({"trace": pa.DictionaryArray.from_arrays([0, 1] * 4, ["a", None])}, [1, 3, 5, 7], "no id"),
        ({"agent": pa.DictionaryArray.from_arrays([0, 1] * 4, pa.array([[1], [2]]))}, [], "'agent'.*list<"),
        ({"agent": pa.DictionaryArray.from_arrays([0, 1] * 4, [False, True])}, [], "'agent'.*bool; expected"),
        ({"agent": ["S"] * 7}, [], "'agent'.*has 7 rows; column 'trace' has 8"),
        ({"agent": ["S", 1] * 4}, [], "'agent'.*one type"),
        ({"agent": [0.5] * 8}, [], "'agent'.*0.5 in row 0; expected strings or integers.*astype"),
        ({"agent": np.zeros((8, 1))}, [], "'agent'.*1-dimensional"),
        ({"agent": "agent_id"}, [], "'agent'.*is the text 'agent_id'"),
        ({"reward": ["1"] * 8}, [], "'reward'.*string; expected numbers"),
        ({"trace": [], "group": []}, [], "'trace'.*no rows"),
        ({"reward": None}, [], "either reward= .* or row_reward="),
        ({"row_reward": REWARD}, [], "either reward= .* or row_reward="),
        ({"reward": None, "row_reward": REWARD, "event_reward": REWARD}, [], "expected one of the two"),
        ({"evidence": {"valu": REWARD}}, [], "'valu'.*is not evidence of any method; expected one of .*value"),
        ({"evidence": {"greedy_reward": range(8)}}, [0, 2], "'greedy_reward'.*trace 'a'"),
        ({"event_reward": [0, 0, float("nan"), 0, 0, 0, 0, 0]}, [2], "'event_reward'.*not finite"),
    ],
)
def test_bad_columns_are_named_with_their_rows(changes: dict[str, Any], rows: list[int], message: str) -> None:
    with pytest.raises(ColumnError, match=message) as error:
        example(**changes)
    assert error.value.rows == rows


@pytest.mark.parametrize("column", ["trace", "group", "agent", "role", "turn", "parent", "context"])
def test_ids_that_pandas_made_floats_are_refused_with_advice(column: str) -> None:
    pandas = pytest.importorskip("pandas")
    ids = pandas.Series([None, 3, 3, 3, 4, 4, 4, None])

    def given(ids: Any) -> dict[str, Any]:
        agents = {"agent": [3, 3, 3, 3, 4, 4, 4, 4]} if column == "parent" else {}
        return {**agents, **({"evidence": {column: ids}} if column == "context" else {column: ids})}

    words = f"column '{column}': ids are floats, 3.0 in row 1; expected strings or integers; .*astype.\"Int64\".*"
    with pytest.raises(ColumnError, match=words + r"none in 2 of 8 rows \(rows 0, 7\)") as error:
        example(**given(ids))
    assert error.value.rows == [0, 7]
    with pytest.raises(ColumnError, match=words.replace("row 1", "row 0") + "writes 'nan'$"):
        example(**given(ids.fillna(3.0)))
    if column == "context":  # where a row may have none
        example(**given(ids.astype("Int64")))
    elif column != "parent":
        with pytest.raises(
            ColumnError, match="no id, but null or NaN, in 2 of 8 rows; expected a string or an integer"
        ):
            example(**given(ids.astype("Int64")))


@pytest.mark.parametrize("word", ["nan", "NaN", "None", "null", "<NA>", "NaT", "", " ", " nan "])
@pytest.mark.parametrize("column", ["group", "trace"])
def test_texts_of_missing_names_join_no_rows(column: str, word: str) -> None:
    """What `Series.astype(str)` writes where a row has no id was the name of one group, or of one trace."""
    ids = {"group": GROUP, "trace": TRACE}[column]
    plain = [word, *ids[1:7], word]
    for container in (plain, pa.array(plain).dictionary_encode()):
        with pytest.raises(ColumnError, match=f"'{column}': '{word}' in 2 of 8 rows is no id") as refused:
            example(**{column: container})
        assert refused.value.rows == [0, 7]


def test_texts_of_missing_names_are_refused_as_in_a_table(tmp_path: Path) -> None:
    words = ["nan", "NaN", "None", "null", "<NA>", "NaT", "", " ", "Nat", "na", "nane"]
    rows = [{"trace": f"t{i}", "group": word, "reward": 1} for i, word in enumerate(words)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    read = credit.read(tmp_path, format="table").traces["trace"].to_pylist()
    assert read == ["t8", "t9", "t10"]
    for i, word in enumerate(words):
        if f"t{i}" in read:
            from_columns(group=[word], trace=["a"], reward=[1.0])
        else:
            with pytest.raises(ColumnError):
                from_columns(group=[word], trace=["a"], reward=[1.0])


def test_an_agent_has_a_name() -> None:
    with pytest.raises(ColumnError, match="'agent': '' in 1 of 8 rows is no id; expected an id in each row"):
        example(agent=["", *AGENT[1:]])
    example(agent=["nan", *AGENT[1:]])  # as in a table: within its trace an agent may be called so


COUNTS = [name for name, key in {**EVENT_EVIDENCE, **TRACE_EVIDENCE}.items() if key.kind == "count"]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("amount", [1.5, -1, 2**31, float("inf")])
def test_counts_are_integers_from_zero(name: str, amount: float) -> None:
    """1.5 was stored as 1, and -1 read as absent; a native log with it loses the key or the trace."""
    column = [amount, *range(1, 8)]
    given: dict[str, Any] = {"tokens": column} if name == "tokens" else {"evidence": {name: column}}
    with pytest.raises(ColumnError, match=f"'{name}': .* in 1 of 8 rows; expected an integer from 0 to 2147483647"):
        example(**given)


@pytest.mark.parametrize("name", ["value", "propensity", "trainable", "greedy_reward", "event_reward"])
@pytest.mark.parametrize("amount", [float("inf"), -float("inf"), 1e39])
def test_evidence_that_no_log_may_state_is_refused(name: str, amount: float) -> None:
    """An infinite value was absent without a word."""
    with pytest.raises(ColumnError, match=f"'{name}': .* in 1 of 8 rows; expected a number between") as refused:
        example(evidence={name: [*[0.5] * 7, amount]})
    assert refused.value.rows == [7]


@pytest.mark.parametrize("amount", [1.5, -1.0, 0.0, 2.0])
def test_propensities_are_those_of_a_native_log(tmp_path: Path, amount: float) -> None:
    """A log may state any finite number; methods find no overlap where it is no probability."""
    event = {"id": "0", "type": "message", "agent": "x", "propensity": amount}
    trace = {"trace_id": "a", "task_id": "q", "events": [event], "edges": [], "rewards": {"team": 1.0}}
    (tmp_path / "log.jsonl").write_text(json.dumps(trace))
    stated = credit.read(tmp_path).evidence["propensity"].array[:1]
    _, _, rows = from_columns(group=["q"], trace=["a"], reward=[1.0], evidence={"propensity": [amount]})
    assert stated.tolist() == rows.evidence["propensity"][:1].tolist() == [amount]


@pytest.mark.parametrize(("axis", "need"), [("events", 8), ("agents", 7), ("traces", 4)])
def test_what_does_not_fit_names_the_size_needed(axis: str, need: int) -> None:
    with pytest.raises(CapacityError, match=f"pass {axis}={need} or more"):
        example(**{axis: need - 1})


@pytest.mark.parametrize("size", [4.0, "4", True, 0, -1])
def test_sizes_are_positive_integers(size: Any) -> None:
    with pytest.raises(CreditError, match=r"^events is .*; expected a positive integer"):
        from_columns(group=["q"], trace=["a"], reward=[1.0], events=size)


def test_rewards_in_bfloat16_are_numbers() -> None:
    _, reward, _ = from_columns(
        group=["q", "q"], trace=["a", "b"], reward=jax.numpy.array([0.5, -2], jax.numpy.bfloat16)
    )
    assert reward[:2].tolist() == [0.5, -2] and reward.dtype == np.float32


def test_default_sizes_are_the_bucket_and_follow_events() -> None:
    graph, _, _ = example(events=None, traces=None, agents=None)
    assert (graph.num_events, graph.num_agents, graph.num_traces) == (128, 128, 128)
    graph, _, _ = example(events=1024, traces=None, agents=None)
    assert (graph.num_events, graph.num_agents, graph.num_traces) == (1024, 1024, 1024)


# --- Who spawned whom -------------------------------------------------------------------------------------------------

PARENT = [None, None, "S", "S", None, None, "S", None]


def test_parents_are_agents_of_the_same_trace() -> None:
    graph, reward, rows = example(parent=PARENT)
    owner = np.asarray(graph.agent_ids)[rows.event]
    for i, name in enumerate(PARENT):
        parent = int(graph.agent_parent[owner[i]])
        if name is None:
            assert parent == owner[i]
        else:
            assert graph.agent_trace[parent] == graph.agent_trace[owner[i]]
            assert parent == next(owner[j] for j in range(8) if TRACE[j] == TRACE[i] and AGENT[j] == name)
    plain, _, _ = example()
    assert plain.agent_parent[:7].tolist() == list(range(7))
    # A sub-agent is no longer compared with main agents.
    main, sub = ([i for i in range(4) if (PARENT[i] is None) == kind] for kind in (True, False))
    extra = np.zeros(16, np.float32)
    extra[rows.event[sub]] = 1
    result = rows.gather(credit.mgrpo(graph, reward, event_reward=extra).baseline)
    assert np.asarray(result)[main].tolist() == [0.5, 0.5] and np.asarray(result)[sub].tolist() == [1.5, 1.5]


@pytest.mark.parametrize("container", [list, pa.array, lambda x: pa.array(x).dictionary_encode()])
def test_parents_in_any_container(container: Any) -> None:
    expected = example(parent=PARENT)[0].agent_parent
    assert np.array_equal(example(parent=container(PARENT))[0].agent_parent, expected)


def test_parents_may_be_integers_with_holes() -> None:
    pandas = pytest.importorskip("pandas")
    agent = [1 if name == "S" else 2 for name in AGENT]
    parent = pandas.Series([None if name is None else 1 for name in PARENT]).astype("Int64")
    expected = example(parent=PARENT)[0].agent_parent
    assert np.array_equal(example(agent=agent, parent=parent)[0].agent_parent, expected)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parent": [None, None, "X", "S", None, None, "S", None]}, "'X' is no agent of the row's trace (rows 2)"),
        ({"parent": [None, None, "S", "S", "V", None, "S", "V"]}, "'V' is no agent of the row's trace (rows 4)"),
        ({"parent": [None, None, "S", "S", None, None, "S", "S"]}, "an agent has one parent within a trace"),
        ({"parent": ["V", None, "S", None, None, None, None, None]}, "spawned each other in a circle"),
        ({"parent": [None, None, 1, 1, None, None, 1, None]}, "names agents by int64, column 'agent' by string"),
        ({"parent": PARENT, "agent": None}, "there is no agent= column"),
    ],
)
def test_wrong_parents_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ColumnError) as caught:
        example(**changes)
    assert words in str(caught.value)


def test_types_and_edges_are_those_of_a_log(tmp_path: Path) -> None:
    """The same two traces as columns and as a native log: equal graphs but for the ids of turns, which logs derive."""
    kinds = ["spawn", "message", "tool_call", "tool_result", "message", "stop"]
    agents = ["boss", "solver", "solver", "solver", "boss", "boss"]
    trace = ["a", "a", "a", "b", "b", "b"]
    pairs = [(0, 1, "spawn"), (1, 2, "causal"), (3, 4, "message"), (4, 5, "temporal")]
    graph, reward, _ = from_columns(
        group=["q"] * 6,
        trace=trace,
        agent=agents,
        reward=[1.0] * 3 + [0.0] * 3,
        event_type=kinds,
        edges={"sender": [p[0] for p in pairs], "receiver": [p[1] for p in pairs], "type": [p[2] for p in pairs]},
        turn=[0, 0, 0, 0, 0, 0],
    )
    lines = []
    for name in "ab":
        rows = [i for i in range(6) if trace[i] == name]
        events = [{"id": f"{i}", "type": kinds[i], "agent": agents[i]} for i in rows]
        edges = [{"src": f"{s}", "dst": f"{d}", "type": kind} for s, d, kind in pairs if s in rows]
        rewards = {"team": float(name == "a")}
        lines.append(
            json.dumps({"trace_id": name, "task_id": "q", "events": events, "edges": edges, "rewards": rewards})
        )
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    read = credit.read(tmp_path / "log.jsonl")
    for field in dataclasses.fields(graph):
        if field.name in ("turn_ids", "agent_parent"):
            continue
        ours, theirs = (np.asarray(getattr(graphs.unpad(g), field.name)) for g in (graph, read.graph))
        assert np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"), field.name
    assert np.array_equal(reward[:2], read.reward[:2])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"event_type": ["message", "massage", "stop"]},
            "'massage' is no type; expected one of orchest",
        ),
        ({"event_type": [3, 99, 10]}, r"99 is no type"),
        ({"edges": {"sender": [0]}}, "has columns sender; expected sender, receiver and type"),
        ({"edges": {"sender": [0], "receiver": [3]}}, "3 is no row; expected 0 to 2"),
        ({"edges": {"sender": [1], "receiver": [0]}}, "the receiver does not come after the sender"),
        ({"edges": {"sender": [0], "receiver": [2]}}, "the two ends lie in different traces"),
        ({"action": [0, 1, 2]}, "values are not all True or False"),
    ],
)
def test_wrong_types_and_edges_are_named(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(ColumnError, match=words):
        from_columns(group=[0] * 3, trace=["a", "a", "b"], reward=[1.0, 1.0, 0.0], **columns)


def test_results_go_back_to_rows_from_credit_signals_and_arrays() -> None:
    graph, reward, rows = example()
    result = credit.rloo(graph, reward)
    ledger = credit.compose(graph, reward, [result])
    expected = np.asarray(result.advantage)[rows.event]
    signal = ledger.advantage("control")
    for values, numbers in (
        (result, expected),
        (result.advantage, expected),
        (np.asarray(result.advantage), expected),
        (signal, np.asarray(signal.credit.advantage)[rows.event]),
    ):
        gathered = rows.gather(values)
        assert isinstance(gathered, np.ndarray) and np.array_equal(gathered, numbers)
    traced = jax.jit(lambda values: rows.gather(values))(result.advantage)
    assert np.array_equal(traced, expected)


def test_gathering_compiles_nothing_for_a_new_number_of_rows(caplog: pytest.LogCaptureFixture) -> None:
    values = jax.numpy.zeros(16)
    with jax.log_compiles():
        for n in range(1, 9):
            _, _, rows = from_columns(group=[0] * n, trace=list(range(n)), reward=[0.0] * n, **SHAPE)
            assert rows.gather(values).shape == (n,)
        assert "Compiling" not in caplog.text
        jax.jit(lambda x: x[jax.numpy.arange(3)] * 7)(values)  # what the line above would show
        assert "Compiling" in caplog.text


def test_rows_go_into_tables_ledgers_and_run() -> None:
    graph, reward, rows = example(evidence={"value": [0.5] * 8})
    result = credit.run(rows, "gae", lambda_=0.0)
    assert np.array_equal(
        np.asarray(result.advantage),
        np.asarray(credit.gae(graph, reward, value=rows.evidence["value"], lambda_=0.0).advantage),
    )
    table = credit.table(rows, result).to_pydict()
    by_row = {int(name): i for i, name in enumerate(table["event"])}
    assert [table["trace"][by_row[i]] for i in range(8)] == [str(name) for name in TRACE]
    assert [table["agent"][by_row[i]] for i in range(8)] == list(AGENT)
    assert [table["line"][by_row[i]] for i in range(8)] == list(range(1, 9))
    np.testing.assert_array_equal([table["advantage"][by_row[i]] for i in range(8)], rows.gather(result))
    ledger = credit.compose(graph, reward, [credit.rloo(graph, reward)])
    amounts = ledger.table(rows).group_by("trace").aggregate([("amount", "sum")]).to_pydict()
    stated = dict(zip(map(str, TRACE), REWARD, strict=True))
    assert dict(zip(amounts["trace"], amounts["amount_sum"], strict=True)) == pytest.approx(stated)
