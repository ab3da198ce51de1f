"""Arguments of a wrong type: the doors say what they expected, since what fails deep inside explains nothing."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import credit
import estimators
import graphs
from credit.laws.trial_batches import uneven
from credit.methods.published import find_method
from graphs.logs.read_logs import raw_record
from graphs.traces.schema import TRACE_EVIDENCE


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("logs") / "log.jsonl"
    events = [{"id": "1", "type": "message", "agent": "x"}]
    lines = [{"trace_id": n, "task_id": "k", "events": events, "rewards": {"team": i}} for i, n in enumerate("abc")]
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


@pytest.mark.parametrize("path", [None, 3, ["a.jsonl"], b"a.jsonl", np.zeros(2)])
@pytest.mark.parametrize("reader", [credit.read, lambda path: credit.read_chunks(path, events=3)])
def test_a_path_is_a_name(reader: Callable[[Any], Any], path: Any) -> None:
    with pytest.raises(credit.CreditError, match=f"of type {type(path).__name__}; expected the name of a file"):
        reader(path)


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        ("rewards", [1.0, 2.0, 3.0], "a mapping of trace id to reward"),
        ("rewards", np.ones(3), "a mapping of trace id to reward"),
        ("groups", 3, "a mapping of trace id to group"),
        ("limits", {"events": 3}, "Limits"),
        ("to", (8, 8, 8, 8), "Sizes"),
    ],
)
def test_arguments_of_read(argument: str, value: Any, expected: str, log: Path) -> None:
    with pytest.raises(credit.CreditError, match=f"{argument} is .*expected .*{expected}"):
        credit.read(log, **{argument: value})


def test_a_batch_in_place_of_its_arrays(log: Path) -> None:
    traces: Any = credit.read(log)
    for method in (credit.grpo, credit.rloo, credit.dr_mas, credit.turn_baseline):
        with pytest.raises(credit.CreditError, match=r"pass traces\.graph and traces\.reward"):
            method(traces, traces.reward)
    with pytest.raises(credit.CreditError, match=r"pass traces\.graph and traces\.reward"):
        credit.grpo(traces.graph, traces)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda g, r, rows: rows.gather(None), "values is None, of type NoneType; expected an array, one number for"),
        (lambda g, r, rows: rows.gather([1.0]), r"values is \[1.0\], of type list; expected an array"),
        (lambda g, r, rows: credit.rloo(g, None), "reward is None, of type NoneType; expected an array of floats"),
        (lambda g, r, rows: credit.rloo(None, r), "graph is None, of type NoneType; expected an EventGraph"),
        (lambda g, r, rows: credit.gae(g, r, value=None), "value is None, of type NoneType; expected an array"),
        (lambda g, r, rows: credit.dr_mas(g, r[:1]), "reward has shape"),
        (lambda g, r, rows: credit.choose(None), "traces is None, of type NoneType; expected what credit.read"),
        (lambda g, r, rows: credit.compare(None, {}), "traces is None, of type NoneType; expected what credit.read"),
        (lambda g, r, rows: credit.ledger.channel(None, "team"), "traces is None, of type NoneType; expected what"),
        (lambda g, r, rows: credit.explain(None, 0, 0, {}), "traces is None, of type NoneType; expected what"),
        (
            lambda g, r, rows: credit.ledger.weighted_sum(None, {}),
            "ledgers is None, of type NoneType; expected ledgers by",
        ),
        (lambda g, r, rows: credit.plot.draw_trace(None), "traces is None, of type NoneType; expected what"),
        (lambda g, r, rows: credit.plot.draw_ledger(None, None), "traces is None, of type NoneType; expected what"),
        (lambda g, r, rows: credit.plot.draw_comparison(None), "comparison is None, of type NoneType; expected what"),
        (
            lambda g, r, rows: estimators.as_increment(g, None),
            "credit is None, of type NoneType; expected what a method",
        ),
        (lambda g, r, rows: graphs.pad(None), "graph is None, of type NoneType; expected an EventGraph"),
        (lambda g, r, rows: graphs.unpad(None), "graph is None, of type NoneType; expected an EventGraph"),
        (lambda g, r, rows: find_method(None), "name is None, of type NoneType; expected the name of a method"),
    ],
)
def test_what_is_no_array_or_batch_is_named(call: Callable[..., Any], words: str) -> None:
    given = credit.from_columns(group=["q", "q"], trace=["a", "b"], reward=[1.0, 0.0])
    with pytest.raises(credit.CreditError, match=words):
        call(*given)


def test_numbers_of_a_wrong_type_are_a_type_error_too() -> None:
    """An array of int64 was said to have dtype int32, which JAX had made of it."""
    graph, reward, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], reward=[1.0, 0.0])
    for kind in (TypeError, credit.CreditError):
        with pytest.raises(kind, match="reward holds integers; expected floats"):
            credit.rloo(graph, reward.astype(int))
    with pytest.raises(TypeError, match="value holds integers; expected floats"):
        credit.run(rows, "gae", value=np.zeros(graph.num_events, np.int64))


def test_tables_take_a_batch_and_a_result(log: Path, tmp_path: Path) -> None:
    traces: Any = credit.read(log)
    result: Any = credit.rloo(traces.graph, traces.reward)
    for arguments, message in (
        ((traces, None), "credit is None, of type NoneType; expected what a method returns"),
        ((traces, result.advantage), "expected what a method returns"),
        ((result, traces), "of type Credit; expected what credit.read returns"),
        ((traces.graph, result), "of type EventGraph; expected what credit.read returns"),
    ):
        with pytest.raises(credit.CreditError, match=message):
            credit.table(*arguments)
    with pytest.raises(credit.CreditError, match="expected an Arrow table"):
        credit.write_table(result, tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()


def test_rows_of_a_batch(log: Path) -> None:
    traces: Any = credit.read(log)
    assert traces.index(np.int64(1)) == traces.index("b") == 1
    for wrong in (None, 1.5, 3, "zz"):
        with pytest.raises(credit.CreditError, match=r"trace is|No trace"):
            traces.index(wrong)
    for wrong in (None, "e", 3, -1):
        with pytest.raises(credit.CreditError, match="event is"):
            raw_record(traces, wrong)


@pytest.mark.slow
def test_methods_say_that_event_rewards_without_a_number_count_as_none() -> None:
    """A compiled method cannot refuse NaN, so that its documentation says what becomes of it."""
    silent = []
    for name, method in credit.METHODS.items():
        parts = (inspect.getdoc(method.fn) or "").partition("  event_reward:")[2]
        said = " ".join(re.split(r"\n  \S", parts)[0].split())
        if (
            "event_reward" in inspect.signature(method.fn).parameters
            and "not used" not in said
            and "NaN counts as 0" not in said
        ):
            silent.append(name)
    assert not silent
    graph, reward, _ = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
    without = credit.rloo(graph, reward, event_reward=np.zeros(graph.num_events, np.float32))
    unknown = credit.rloo(graph, reward, event_reward=np.full(graph.num_events, np.nan, np.float32))
    assert np.array_equal(without.advantage, unknown.advantage)


PAID = ("rloo", "gae", "turn_baseline")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in PAID else pytest.mark.slow) for n in credit.METHODS])
def test_an_infinite_reward_of_an_event_leaves_its_trace_without_an_outcome(name: str) -> None:
    """It counted as 0, and the trace as answered. An infinite outcome was none."""
    method = credit.METHODS[name]
    if "NaN counts as 0" not in (inspect.getdoc(method.fn) or ""):
        pytest.skip("the method adds no rewards of events")
    levels = {need: "trace" if need in TRACE_EVIDENCE else "event" for need in method.needs}
    batch = uneven(5, levels)
    reward, earned = np.array(batch.reward), np.array(batch.event_reward)
    trace = np.flatnonzero(np.asarray(batch.graph.trace_mask) & np.isfinite(reward))[0]
    place = np.flatnonzero((np.asarray(batch.graph.trace_ids) == trace) & np.asarray(batch.graph.event_mask))[-1]
    earned[place], without = -np.inf, reward.copy()
    without[trace] = np.inf
    call = functools.partial(method.fn, batch.graph, **batch.evidence)
    for run in (call, jax.jit(call)):
        found = run(reward, event_reward=earned)
        assert not found.valid[batch.graph.trace_ids == trace].any()
        for got, wanted in zip(jax.tree.leaves(found), jax.tree.leaves(run(without, event_reward=earned)), strict=True):
            assert np.array_equal(got, wanted, equal_nan=True)
