"""Columns of a trainer: the graph holds what the rows hold, in any order and any container."""

from __future__ import annotations

import dataclasses
import functools
import warnings
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
from credit.integrations.rows.row_advantages import RowAdvantages
from credit.tables.column_values import factorise
from credit.tables.columns import from_columns
from graphs.errors import CapacityError, CreditError, MissingColumnWarning, UnusedRewardsWarning

from .eight_rows import AGENT, GROUP, REWARD, SHAPE, TRACE, example


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


@pytest.mark.slow
def test_results_come_back_in_the_order_of_the_rows() -> None:
    graph, reward, rows = example()
    advantage = rows.gather(credit.rloo(graph, reward).advantage)
    assert np.asarray(advantage).tolist() == [1, -1, 1, -1, -3, 3, 3, -3]
    # In and out of jit, JAX and NumPy.
    assert np.array_equal(jax.jit(rows.gather)(np.arange(16)), rows.event)
    assert np.array_equal(rows.gather(np.arange(16)), rows.event)
    with pytest.raises(ValueError, match=r"shape \(8,\); expected \(16, \.\.\.\)"):
        rows.gather(np.arange(8))


@pytest.mark.slow
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


@pytest.mark.parametrize("ids", [[7, 5, 7, 6], [0, 0, 1, 2], [-3, 2**40, -3, 0], [2**63 - 1, 2**63 - 2, 0, 0]])
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_integers_are_numbered_alike_however_they_come(ids: list[int], kind: str) -> None:
    """Arrays of integers that lie close together are numbered by a table, others and Arrow's by hashing."""
    array = np.array(ids).astype(kind)
    codes, distinct = factorise("trace", array, 4)
    want_codes, want_distinct = factorise("trace", pa.array(array), 4)
    assert codes.tolist() == want_codes.tolist() and distinct.equals(want_distinct)


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


@pytest.mark.parametrize(("axis", "need"), [("events", 8), ("agents", 7), ("traces", 4)])
def test_what_does_not_fit_names_the_size_needed(axis: str, need: int) -> None:
    with pytest.raises(CapacityError, match=f"pass {axis}={need} or more"):
        example(**{axis: need - 1})


@pytest.mark.parametrize("size", [4.0, "4", True, 0, -1])
def test_sizes_are_positive_integers(size: Any) -> None:
    with pytest.raises(CreditError, match=r"^events is .*; expected a positive integer"):
        from_columns(group=["q"], trace=["a"], reward=[1.0], events=size)


@pytest.mark.slow
@pytest.mark.parametrize("none", [None, float("nan")])
def test_a_trace_without_a_reward_is_one_as_in_a_trainer(none: float | None) -> None:
    """It was refused, where `RowAdvantages` takes it; with its rows left out, so were the choices that they name."""
    reward = [1.0, 0.0, 1.0, 0.0, none, 5.0, 5.0, none]
    graph, outcome, rows = example(reward=reward)
    np.testing.assert_array_equal(outcome[:4], [1.0, 0.0, np.nan, 5.0])
    result = credit.rloo(graph, outcome)
    assert rows.gather(result.valid).tolist() == [True] * 4 + [False] * 4
    assert rows.gather(result.advantage).tolist() == [1.0, -1.0, 1.0, -1.0, 0, 0, 0, 0]
    there = RowAdvantages("rloo")(group=GROUP, trace=TRACE, agent=AGENT, reward=np.array(reward, float))
    assert rows.gather(result.advantage).tolist() == there.advantages.tolist()
    assert rows.traces.reward[:4].tolist()[:2] == [1.0, 0.0] and np.isnan(rows.traces.reward[2])
    with pytest.raises(
        credit.CreditError, match=r"no finite number, .* in 1 of 8 rows; expected a number in every row"
    ):
        example(reward=[1.0, 0.0, 1.0, 0.0, none, 5.0, 5.0, 2.0])


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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_rows_out_of_the_order_of_their_turns_are_named_and_ordered() -> None:
    """Returns from a turn on were those of other turns, without a word."""
    columns: dict[str, Any] = {
        "group": ["q"] * 4,
        "trace": list("aabb"),
        "turn": [1, 0, 1, 0],
        "reward": [1.0, 1, 0, 0],
    }
    columns["event_reward"] = [0, 0.5, 0, 0]
    with pytest.warns(
        UserWarning, match="turn 0 of an agent stands behind its turn 1, 2 times in the batch: pass order="
    ):
        from_columns(**columns)
    graph, reward, rows = from_columns(**columns, order=columns["turn"])
    found = rows.gather(credit.turn_baseline(graph, reward, event_reward=rows.event_reward))
    later = np.array([1.0, 1.5, 0.0, 0.0])  # what each row's trace earned from its turn on; the other trace's turn
    np.testing.assert_allclose(found, later - later[[2, 3, 0, 1]])
    sorted_rows = {name: [column[i] for i in (1, 0, 3, 2)] for name, column in columns.items()}
    graph, reward, again = from_columns(**sorted_rows)
    same = again.gather(credit.turn_baseline(graph, reward, event_reward=again.event_reward))
    np.testing.assert_array_equal(np.asarray(same)[[1, 0, 3, 2]], found)
    with pytest.raises(CreditError, match="column 'order'"):
        from_columns(**columns, order=[0, 1, None, 3])


@pytest.mark.parametrize("none", [np.nan, None])
def test_a_batch_without_a_reward_has_no_answer(none: float | None) -> None:
    """A batch of which no trace was scored was refused, and accepted with a warning as rows of a trainer."""
    columns: dict[str, Any] = {"group": ["q"] * 2, "trace": ["a", "b"], "reward": [none] * 2}
    with pytest.warns(UserWarning, match="answer no row of the batch: none has a reward"):
        graph, reward, rows = from_columns(**columns)
    assert np.isnan(reward[:2]).all() and not np.asarray(rows.gather(credit.rloo(graph, reward).valid)).any()
    _, _, paid = from_columns(**columns, evidence={"agent_reward": [1.0, 0.0]})
    found = credit.run(paid, "rloo")
    assert paid.gather(found.advantage).tolist() == [1.0, -1.0]


@pytest.mark.parametrize(
    ("column", "other"), [("group", "q\u00a01"), ("group", "Q 1"), ("trace", "a\u030a"), ("agent", "\uff50")]
)
def test_ids_that_a_person_takes_for_one_are_named(column: str, other: str) -> None:
    """They were compared as several, which reading a log and RowAdvantages said, and this did not."""
    rows = {
        "group": ["q 1"] * 4,
        "trace": ["\u00e5", "b", "c", "d"],
        "agent": ["p"] * 4,
        "reward": [1.0, 0.0, 0.0, 1.0],
    }
    rows[column] = [*rows[column][:-1], other]
    with pytest.warns(UserWarning, match=f"{column}s .* are spelt almost alike, and count as several"):
        credit.from_columns(**rows)


@pytest.mark.slow
def test_outcomes_of_agents_alone_are_zeros_for_rows_and_no_reward_in_a_log(tmp_path: Path) -> None:
    """As docs/trainers.md has it: a reward of 0 in a log is an outcome of the trace, which a command refuses to mix."""
    path, own = tmp_path / "log.csv", np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
    rows = {"group": ["q"] * 6, "trace": [*"aabbcc"], "agent": [*"xyxyxy"]}
    lines = [f"q,{t},{agent},{amount}\n" for t, agent, amount in zip(rows["trace"], rows["agent"], own, strict=True)]
    path.write_text("group,trace,agent,agent_reward\n" + "".join(lines))
    logged = credit.run(credit.read(path), "spiral_rae").advantage[:6]
    trained = RowAdvantages("spiral_rae")(**rows, reward=np.zeros(6), evidence={"agent_reward": own}).advantages
    np.testing.assert_allclose(trained, logged, atol=1e-6)


@pytest.mark.parametrize("by_row", [False, True])
def test_rewards_of_rows_that_a_direct_call_forgot_are_told_of_its_result(by_row: bool) -> None:
    """The jitted loop of the README dropped them: advantages were off by up to 1.8, and nothing warned."""
    paid, outcome = [0.5, 0.0, -0.25, 0.0], [1.0, 1.0, 0.0, 0.0]
    ids = {"group": [0] * 4, "trace": ["a", "a", "b", "b"], "turn": [0, 1, 0, 1]}
    rewards = {"row_reward": paid} if by_row else {"reward": outcome, "event_reward": paid}
    graph, reward, rows = credit.from_columns(**ids, **rewards, evidence={"value": [0.3] * 4})
    by_values = functools.partial(credit.gae, value=rows.evidence["value"])
    for method in (credit.rloo, jax.jit(credit.turn_baseline), credit.mt_grpo, credit.dr_mas, by_values):
        for told in (rows.gather, functools.partial(credit.table, rows), functools.partial(credit.table, rows.traces)):
            with pytest.warns(
                UnusedRewardsWarning, match=r"event_reward of 2 (rows|events) .* pass event_reward="
            ) as w:
                told(method(graph, reward))
            assert [one.filename for one in w] == [__file__]
            with warnings.catch_warnings(action="error"):
                told(method(graph, reward, event_reward=rows.event_reward))
    with warnings.catch_warnings(action="error"):
        rows.gather(credit.rloo(graph, reward).advantage)
        jax.jit(lambda reward: rows.gather(credit.rloo(graph, reward)))(reward)


def test_rewards_of_a_tool_that_a_direct_call_forgot_are_told() -> None:
    """Rows that are no actions earned them, and a sum over the actions saw none: advantages were off by 0.19."""
    columns = {"group": [0] * 4, "trace": ["a", "a", "b", "b"], "reward": [1.0, 1.0, 0.0, 0.0]}
    kinds = ["message", "tool_result"] * 2
    graph, reward, rows = credit.from_columns(**columns, event_reward=[0.0, -0.05, 0.0, 0.0], event_type=kinds)
    with pytest.warns(UnusedRewardsWarning, match=r"event_reward of 1 row is not used: rloo was called without it"):
        rows.gather(credit.rloo(graph, reward))
    with pytest.warns(UnusedRewardsWarning, match="<lambda> counts outcomes alone") as told:
        credit.table(rows, credit.run(rows, lambda graph, reward: credit.rloo(graph, reward)))
    assert len(told) == 1


def test_rewards_of_rows_that_add_up_to_nothing_are_not_called_forgotten() -> None:
    columns = {"group": [0] * 4, "trace": ["a", "a", "b", "b"], "reward": [1.0, 1.0, 0.0, 0.0]}
    graph, reward, rows = credit.from_columns(**columns, event_reward=[0.5, -0.5, 0.0, 0.0])
    with warnings.catch_warnings(action="error"):
        rows.gather(credit.rloo(graph, reward, event_reward=rows.event_reward))


def test_a_direct_call_that_misses_a_column_or_an_order_is_told_of_it() -> None:
    """`RowAdvantages` and `credit.run` said so of the same rows, and the loop of the README nothing."""
    columns = {"group": [0] * 8, "trace": [*"aaaabbbb"], "agent": [*"pqpqpqpq"], "reward": [1.0] * 4 + [0.0] * 4}
    graph, reward, rows = credit.from_columns(**columns)
    for method, column in (("turn_baseline", "turn"), ("mgrpo", "parent")):
        with pytest.warns(MissingColumnWarning, match=f"{method} compares by the {column}, and") as direct:
            rows.gather(getattr(credit, method)(graph, reward))
        with pytest.warns(MissingColumnWarning) as run:
            result = credit.run(rows, method)
        assert [str(one.message) for one in direct] == [str(one.message) for one in run]
        with warnings.catch_warnings(action="error"):  # it was said
            rows.gather(result)
    for options in ({"mode": "question"}, {"mode": "last"}):
        with warnings.catch_warnings(action="error"):  # no turns are compared
            rows.gather(credit.at_grpo(graph, reward, **options))
    graph, reward, rows = credit.from_columns(**columns, turn=[0, 0, 1, 1] * 2)
    with warnings.catch_warnings(action="error"):
        rows.gather(credit.turn_baseline(graph, reward))
    trace = [0, 1, 0, 1, 2, 0, 2, 1]
    graph, reward, rows = credit.from_columns(group=[0] * 8, trace=trace, reward=[float(name) for name in trace])
    with pytest.warns(MissingColumnWarning, match="gae reads the order of rows, and those of a trace are scattered"):
        rows.gather(credit.gae(graph, reward, value=np.full(graph.num_events, 0.5), lambda_=0.5))


@pytest.mark.parametrize("call", [credit.gae, jax.jit(credit.gae, static_argnames="along")], ids=["eager", "jitted"])
def test_a_direct_call_that_reads_the_order_of_agents_at_once_is_told_of_it(call: Any) -> None:
    """What both searchers brought went to the one whose row stands last, without a word."""
    graph, reward, rows = from_columns(
        group=["q"] * 3, trace=["a"] * 3, agent=["s0", "s1", "w"], order=[0, 0, 1], reward=[1.0] * 3,
        evidence={"value": [0.5, 0.5, 0.7]},
    )  # fmt: skip
    value = rows.evidence["value"]
    with pytest.warns(MissingColumnWarning, match="gae reads which action .* in 1 round several agents act at once"):
        rows.gather(call(graph, reward, value=value, lambda_=0.0))
    with warnings.catch_warnings(action="error"):  # these read no order
        for options in ({"lambda_": 1.0}, {"along": "agent"}):
            rows.gather(call(graph, reward, value=value, **options))
    with pytest.warns(MissingColumnWarning, match="act at once"):
        result = credit.run(rows, "gae")
    with warnings.catch_warnings(action="error"):  # it was said
        rows.gather(result)


def test_all_that_takes_traces_takes_rows() -> None:
    """`choose` and `compare` refused the rows that `run` and `table` took, though they hold the traces."""
    columns = {"group": [0] * 4 + [1] * 4, "trace": [*"aabbccdd"], "agent": ["x", "y"] * 4, "reward": [1, 1, 0, 0] * 2}
    _, _, rows = credit.from_columns(**columns, turn=[0, 1] * 4, event_reward=[0.5, 0, 0.25, 0] * 2)
    assert credit.choose(rows) == credit.choose(rows.traces)
    both = {name: credit.run(rows, name) for name in ("rloo", "turn_baseline")}
    assert credit.compare(rows, both).as_json() == credit.compare(rows.traces, both).as_json()
    assert credit.explain(rows, "a", "0", both) == credit.explain(rows.traces, "a", "0", both)
    with pytest.warns(UnusedRewardsWarning, match="grpo was called without it"):
        credit.compare(rows, {**both, "grpo": credit.grpo(rows.names.graph, rows.names.reward)})
