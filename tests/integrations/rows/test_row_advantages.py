"""Rows of a trainer to advantages: hand-computed numbers, every kind of column, few compilations."""

from __future__ import annotations

import ast
import contextlib
import os
import pickle
import re
import uuid
import warnings
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import credit
from credit.integrations import MissingColumnWarning, RowAdvantages, TrainerCredit, jax_on_cpu, rows_advantage
from credit.integrations.rows.row_advantages import STRUCTURE
from credit.integrations.verl import method_names
from credit.integrations.verl_sessions import session_advantage
from credit.reports.corpus import survey
from credit.tables.column_values import ColumnError
from estimators.base import REASONS, Reason
from estimators.group import group_relative
from graphs.errors import CreditError

TEAM: dict[str, Any] = {
    "group": ["q"] * 5,
    "trace": ["a", "a", "a", "b", "b"],
    "agent": ["s", "v", "s", "s", "v"],
    "reward": np.array([1.0, 1.0, 1.0, 0.0, 0.0]),
}


def test_names_are_those_of_the_methods() -> None:
    assert method_names() == list(credit.METHODS)


def test_no_integration_lists_methods() -> None:
    """A second list would not know the next method."""
    for file in Path(jax_on_cpu.__file__).parent.rglob("*.py"):
        words = {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}
        assert len(words & credit.METHODS.keys()) < 5, file.name


class Trainer:
    def score(self) -> None: ...


def test_an_integration_is_guarded() -> None:
    credit_of = TrainerCredit(RowAdvantages("rloo"), trainer="Trainer 2.1", hooks={Trainer: ("score",)})
    with pytest.raises(CreditError, match=r"never asked 'rloo' for advantages.*written against Trainer 2.1"):
        credit_of.check_ran()
    assert credit_of(group=["q", "q"], reward=np.array([1.0, 0.0])).advantages.tolist() == [1, -1]
    credit_of.check_ran()
    assert credit_of.metrics["credit/traces"] == 2
    with pytest.raises(CreditError, match=r"Trainer has no grade, which this integration overrides.*Trainer 2.1"):
        TrainerCredit(RowAdvantages("rloo"), trainer="Trainer 2.1", hooks={Trainer: ("score", "grade")})


def test_evidence_is_asked_for_in_the_words_of_the_trainer() -> None:
    with pytest.raises(CreditError, match=r"'gae' needs value, which Trainer 2.1 does not pass"):
        TrainerCredit(RowAdvantages("gae"), trainer="Trainer 2.1")
    words: dict[str, Any] = {"trainer": "Trainer 2.1", "columns": "write it into notes", "evidence": True}
    with pytest.raises(CreditError, match="'gae' needs value: write it into notes"):
        TrainerCredit(RowAdvantages("gae"), **words)(group=["q"], reward=np.zeros(1))
    with pytest.raises(CreditError, match=r"'dr_mas' needs the column 'agent', and .*: write it into notes"):
        TrainerCredit(RowAdvantages("dr_mas", strict=True), **words)(group=["q"], reward=np.zeros(1))


def test_a_label_spelt_almost_like_a_column_is_named() -> None:
    """Rewards of events under another name were left out without a word."""
    credit_of = TrainerCredit(RowAdvantages("rloo"), trainer="Trainer 2.1", columns="write it", on_cpu=False)
    with pytest.warns(
        MissingColumnWarning, match="labelled 'event_rewards', .*did you mean 'event_reward'[?] write it"
    ):
        assert credit_of.columns_of([{"event_rewards": 0.5, "tokens": 3}]) == {"evidence": {}}
    assert credit_of.columns_of([{"agent_id": 1, "return": 2.0}, None]) == {"evidence": {}}
    for labels in ([{}, {"event_rewards": 0.5}], [{"event_reward": 0.5}, {"Event_reward": 0.5}]):
        with pytest.warns(MissingColumnWarning, match="did you mean 'event_reward'"), contextlib.suppress(CreditError):
            credit_of.columns_of(labels)


def test_labels_that_the_method_takes_are_read() -> None:
    """Frozen agents of slime, ms-swift, Trinity and SkyRL were trained without a word; verl's sessions asked for
    evidence that stood there."""
    words: dict[str, Any] = {"trainer": "Trainer 2.1", "columns": "write it", "evidence": True, "on_cpu": False}
    labels = [{"agent": name, "trainable": name == "a", "greedy_reward": 0.5, "value": 9.0} for name in "abab"]
    columns = TrainerCredit(RowAdvantages("rloo"), **words).columns_of(labels)
    assert columns == {"agent": list("abab"), "evidence": {"trainable": [True, False] * 2}}
    rows = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "reward": np.array([1.0, 1.0, 0.0, 0.0])}
    assert TrainerCredit(RowAdvantages("rloo"), **words)(**rows, **columns).advantages.tolist() == [1, 0, -1, 0]
    remax = TrainerCredit(RowAdvantages("remax"), **words)
    assert remax(**rows, **remax.columns_of(labels)).advantages.tolist() == [0.5, 0, -0.5, 0]
    assert sessions(["q_0_0", "q_1_0"], [1.0, 0.0], [{"greedy_reward": 0.5}] * 2, method="remax") == [0.5, -0.5]


def test_agents_may_state_what_they_earned() -> None:
    """What the trainer passes for it stood in its place."""
    credit_of = TrainerCredit(RowAdvantages("rloo", population="agent"), trainer="Trainer 2.1", on_cpu=False)
    rows = {"group": ["q"] * 2, "reward": np.zeros(2), "agent_reward": np.zeros(2)}
    assert credit_of(**rows, evidence={"agent_reward": [1.0, 0.0]}).advantages.tolist() == [1, -1]
    with pytest.raises(CreditError, match="event_reward is passed twice, as a column and in evidence="):
        RowAdvantages("rloo")(group=["q"], reward=[0.0], event_reward=[1.0], evidence={"event_reward": [0.0]})


def test_a_state_of_something_else_is_named() -> None:
    """Runs that went on from it began anew without a word."""
    rows = {"group": ["q"] * 2, "trace": [0, 1], "agent": ["a", "b"], "reward": np.array([1.0, 0.0])}
    for method, state, words in (
        ("rloo", {"a": 0.5}, "expected none: the method carries none"),
        ("spiral_rae", [0.5], "expected a mapping from names"),
        ("moving_average", {"a": 0.5}, "state names a; expected one number, under the name ''"),
    ):
        advantages = RowAdvantages(method)
        advantages.state = state  # type: ignore[assignment]
        with pytest.raises(CreditError, match=words):
            advantages(**rows)
    advantages = RowAdvantages("spiral_rae", strict=True)  # warns all the same: another task may have other agents
    advantages.state = {"A": 0.5}
    with pytest.warns(MissingColumnWarning, match="goes on from a state of A, and none of them acts in the batch"):
        advantages(**rows)


def test_a_batch_without_any_answer_is_named() -> None:
    with pytest.warns(MissingColumnWarning, match="'rloo' answers no row of the batch: an action of a frozen agent"):
        RowAdvantages("rloo")(group=["q"] * 2, reward=np.array([1.0, 0.0]), evidence={"trainable": [0, 0]})


def test_a_state_that_checkpoints_lose_is_named() -> None:
    """A run that was resumed began with averages of 0 without a word."""
    with pytest.warns(
        UserWarning, match="'spiral_rae' carries averages .* which checkpoints of Trainer 2.1 do not hold"
    ):
        TrainerCredit(RowAdvantages("spiral_rae"), trainer="Trainer 2.1", on_cpu=False)


def test_a_method_that_sees_a_part_of_the_batch_is_named() -> None:
    """Trainers that ask for one group at a time whitened each by itself, without a word."""
    words: dict[str, Any] = {"trainer": "Trainer 2.1", "on_cpu": False, "part": "one group"}
    for method, options in (("reinforce_pp", {}), ("rloo", {"by": "agent"})):
        with pytest.warns(UserWarning, match="compares over the batch, and Trainer 2.1 asks for one group at a time"):
            TrainerCredit(RowAdvantages(method, **options), **words)
    TrainerCredit(RowAdvantages("rloo"), **words)
    TrainerCredit(RowAdvantages("reinforce_pp"), trainer="Trainer 2.1", on_cpu=False)


def test_an_evaluation_moves_no_averages() -> None:
    with pytest.warns(UserWarning, match="carries averages"):
        credit_of = TrainerCredit(RowAdvantages("moving_average"), trainer="Trainer 2.1", on_cpu=False)
    batch = {"group": ["q"] * 2, "reward": np.array([1.0, 0.0])}
    credit_of(**batch)
    kept = credit_of.rows.state
    credit_of(**batch, learns=False)
    assert credit_of.rows.state == kept
    credit_of(**batch)
    assert credit_of.rows.state != kept


def test_jax_leaves_the_gpu_to_the_trainer(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Beside a trainer it took most of the card, unless a variable was set that only the page named."""
    before = jax.config.jax_platforms
    for name in jax_on_cpu.CHOICES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # a choice
    try:
        jax.config.update("jax_platforms", None)
        TrainerCredit(RowAdvantages("rloo"), trainer="Trainer 2.1")
        assert "JAX_PLATFORMS" not in os.environ
        monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE")
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(jax, "default_backend", lambda: "gpu")
            with pytest.raises(CreditError, match=r"started on the gpu before this trainer.*set JAX_PLATFORMS=cpu"):
                TrainerCredit(RowAdvantages("rloo"), trainer="Trainer 2.1")
        jax.config.update("jax_platforms", None)
        monkeypatch.setenv("JAX_PLATFORMS", "")
        monkeypatch.delenv("JAX_PLATFORMS")  # so that what is set next is taken back
        TrainerCredit(RowAdvantages("rloo"), trainer="Trainer 2.1")
        assert os.environ["JAX_PLATFORMS"] == jax.config.jax_platforms == "cpu" and "JAX runs on the CPU" in caplog.text
    finally:
        jax.config.update("jax_platforms", before)


@pytest.mark.parametrize(
    ("method", "column", "like"),
    [("dr_mas", "agent", "all actions are one agent's"), ("mgrpo", "parent", "no agent is spawned"),
     ("turn_baseline", "turn", "every agent has one turn")],
)  # fmt: skip
def test_a_forgotten_column_is_named_once(method: str, column: str, like: str) -> None:
    """All rows were pooled, everybody a main agent, and the turn baseline was RLOO, without a word."""
    columns = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "reward": np.array([1.0, 1.0, 0.0, 0.0])}
    units = {"agent": ["a", "b"] * 2, "parent": [None, "a"] * 2, "turn": [0, 1] * 2}
    told = {"agent": units["agent"]} if column == "parent" else {}
    advantages = RowAdvantages(method)
    advantages.warmup(4)
    with pytest.warns(MissingColumnWarning, match="none has a reward"):
        assert not advantages(**{**columns, "reward": np.full(4, np.nan)}).valid.any()
    with pytest.warns(MissingColumnWarning, match=f"{method!r} needs the column {column!r}, and {like}"):
        metrics = advantages(**columns, **told).metrics
    assert (metrics["credit/agents"], metrics["credit/turns"]) == ((2, 4) if told else (1, 2))
    assert advantages(**columns, **told).metrics["credit/groups_of_one"] == 0
    strict = RowAdvantages(method, strict=True)
    strict.warmup(4)
    assert strict(**columns, **told, **{column: units[column]}).valid.all()
    with pytest.raises(CreditError, match=f"needs the column {column!r}, and {like}"):
        strict(**columns, **told)  # a later batch lost it


@pytest.mark.parametrize(
    ("method", "stated", "words"),
    [("dr_mas", {"agent": ["a"] * 4}, "'agent', which tells nothing apart here: all actions are one agent's"),
     ("mgrpo", {"agent": ["a", "b"] * 2, "parent": [None] * 4}, "'parent', which .*: no agent is spawned by another"),
     ("turn_baseline", {"turn": [0] * 4}, "'turn', which tells nothing apart here: every trace has one turn")],
)  # fmt: skip
def test_a_column_that_tells_nothing_apart_is_not_called_forgotten(method: str, stated: Any, words: str) -> None:
    """It was asked for under the name under which it was passed."""
    columns = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "reward": np.array([1.0, 1.0, 0.0, 0.0])}
    with pytest.warns(MissingColumnWarning, match=f"compares by the column {words}$"):
        RowAdvantages(method)(**columns, **stated)


def test_rewards_of_rows_alone_need_an_outcome_of_zero() -> None:
    """The words asked for a reward, and did not say that zeros make the return the sum of the rows' own."""
    columns: dict[str, Any] = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "event_reward": [1.0, 0.0, 0.0, 0.5]}
    with pytest.warns(
        MissingColumnWarning, match="none has a reward; where event_reward is all that was earned, pass z"
    ):
        assert not RowAdvantages("rloo")(**columns, reward=np.full(4, np.nan)).valid.any()
    assert RowAdvantages("rloo")(**columns, reward=np.zeros(4)).advantages.tolist() == [0.5, 0.5, -0.5, -0.5]


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"group": [0, 0, 1, 1]}, "every group of the batch has one trace"),
     ({"trace": None}, "got turns but no column 'trace'"),
     ({"trace": None, "turn": None, "agent": ["p", "s"] * 2}, "got several agents in a group but no column 'trace'")],
)  # fmt: skip
def test_ids_that_leave_nothing_to_compare_are_named(changed: dict[str, Any], words: str) -> None:
    """All advantages were 0 where executions were passed for tasks; without executions, long ones counted more."""
    columns = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "turn": [0, 1, 0, 1], "reward": [1.0, 1.0, 0.0, 0.0]}
    strict = RowAdvantages("rloo", strict=True)
    strict(**columns)
    with pytest.warns(MissingColumnWarning, match=words):
        RowAdvantages("rloo")(**{**columns, **changed})
    with pytest.raises(CreditError, match=words):  # what a later batch lacks went unnoticed
        strict(**{**columns, **changed})


@pytest.mark.slow
def test_rows_out_of_the_order_of_their_turns_are_named() -> None:
    """A trainer that balances rows by length moves them: returns from a turn on were sums of other turns."""
    columns = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "reward": np.array([1.0, 1.0, 0.0, 0.0])}
    columns |= {"turn": [0, 1, 1, 0], "event_reward": [0.5, 0.0, 0.0, 0.25]}
    falls = "turn 0 of an agent stands behind its turn 1, 1 times in the batch: pass order=, or instance="
    with pytest.warns(MissingColumnWarning, match=falls):
        moved = RowAdvantages("turn_baseline")(**columns)
    right = RowAdvantages("turn_baseline", strict=True)(order=[0, 1, 1, 0], **columns)
    assert moved.advantages.tolist() != right.advantages.tolist()
    with pytest.raises(CreditError, match=falls):
        RowAdvantages("discounted_return", strict=True)(**columns)
    assert moved.metrics["credit/condition/ordered"] == 0 and right.metrics["credit/condition/ordered"] == 1
    strict, loose = RowAdvantages("turn_baseline", strict=True), RowAdvantages("turn_baseline")
    in_order = {**columns, "turn": [0, 1, 0, 1]}
    assert strict(**in_order).advantages.tolist() == loose(**in_order).advantages.tolist()
    for _ in range(2):  # batches after the first, too
        with pytest.raises(CreditError, match=falls):
            strict(**columns)
    with pytest.warns(MissingColumnWarning, match=falls):
        assert loose(**columns).metrics["credit/condition/ordered"] == 0
    assert loose(**columns).metrics["credit/condition/ordered"] == 0  # said once
    RowAdvantages("rloo", strict=True)(**columns)  # its numbers are of sums over the trace
    with pytest.raises(CreditError, match=falls):
        RowAdvantages("rloo", by="task,turn", strict=True)(**columns)
    RowAdvantages("turn_baseline", strict=True)(**{**columns, "turn": ["a", "b", "b", "a"]})  # names have no order


@pytest.mark.filterwarnings("ignore:method .* answers only")
@pytest.mark.every_method
@pytest.mark.parametrize("name", [name for name in sorted(credit.METHODS) if not credit.METHODS[name].reads_types])
def test_methods_name_the_columns_on_which_their_numbers_depend(name: str) -> None:
    """Numbers move without a column that a method names, and not without another one."""
    entry, draw, traces = credit.METHODS[name], np.random.default_rng(0), np.repeat(np.arange(8), 6)
    agent = np.array(["p", "w", "p", "w", "v", "p", "p", "w", "p", "v", "p", "w"] * 4)
    columns: dict[str, Any] = {
        "group": traces // 4, "trace": traces, "agent": agent, "turn": np.tile([*"abcdefabcdfe"], 4),
        "parent": np.where(agent == "p", None, "p"), "reward": draw.normal(size=8)[traces],
        "event_reward": draw.normal(size=48),
    }  # fmt: skip
    known: dict[str, Any] = {"stage": traces % 2, "tokens": traces + 1, "block": traces // 2, "greedy_reward": traces}
    known |= dict.fromkeys(("propensity", "target_propensity"), np.full(48, 1 / 4))  # of the four rows of a context
    known |= {"hindsight_log_prob": np.log(draw.uniform(0.1, 0.9, 48))}
    known |= {"tree": traces // 2, "segment": np.tile([0, 0, 1, 1, 2, 2], 8)}
    known |= {"anchor": [f"{traces[i] // 4}/{i % 3}" for i in range(48)]}
    known |= {"context": [None if i % 6 else f"{traces[i] // 4}" for i in range(48)]}
    labels = {key: [f"{i}" for i in range(48)] for key in ("node", "alternative")}
    evidence = {key: {**labels, **known}.get(key, draw.uniform(0.1, 0.9, 48)) for key in entry.needs}
    advantages = RowAdvantages(name)
    whole = advantages(**columns, evidence=evidence).advantages
    for column in ("agent", "parent", "turn"):
        absent = {"agent", "parent"} if column == "agent" else {column}
        rest = {key: cells for key, cells in columns.items() if key not in absent}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingColumnWarning)
            advantages.state = None  # begin anew, where a method carries averages from batch to batch
            moved = not np.allclose(advantages(**rest, evidence=evidence).advantages, whole, atol=1e-5)
        depends = column in entry.columns or (column == "agent" and "parent" in entry.columns)
        assert moved == depends, column


def test_a_trace_counts_once_however_many_rows_it_has() -> None:
    result = RowAdvantages("rloo")(**TEAM)
    assert result.advantages.tolist() == [1, 1, 1, -1, -1]
    assert result.valid.all()
    assert result.metrics["credit/traces"] == 2 and result.metrics["credit/groups_that_teach"] == 1


@pytest.mark.slow
def test_agents_are_compared_with_their_like() -> None:
    got = RowAdvantages("dr_mas")(**TEAM).advantages
    solver, critic = np.std([1, 1, 0], ddof=1) + 1e-6, np.std([1, 0], ddof=1) + 1e-6
    assert got == pytest.approx(
        [1 / 3 / solver, 0.5 / critic, 1 / 3 / solver, -2 / 3 / solver, -0.5 / critic], abs=2e-6
    )


@pytest.mark.slow
def test_rows_out_of_order_get_the_same_numbers() -> None:
    """The turn baseline reads the order of turns; `order` restores it."""
    columns = {
        "group": ["q"] * 4,
        "trace": ["a", "a", "b", "b"],
        "turn": [0, 1, 0, 1],
        "reward": np.zeros(4),
        "event_reward": [1.0, 0.0, 0.0, 4.0],
        "order": [0, 1, 0, 1],
    }
    assert RowAdvantages("turn_baseline")(**columns).advantages.tolist() == [1 - 4, 0 - 4, 4 - 1, 4 - 0]
    back = {name: list(column)[::-1] for name, column in columns.items()}
    back["reward"] = np.zeros(4)
    assert RowAdvantages("turn_baseline")(**back).advantages.tolist() == [4, 3, -4, -3]


def test_rows_without_a_reward_get_nothing_and_enter_no_baseline() -> None:
    got = RowAdvantages("rloo")(group=["q"] * 4, reward=np.array([1.0, np.nan, 0.0, 0.5]))
    assert got.advantages.tolist() == [0.75, 0.0, -0.75, 0.0]
    assert got.valid.tolist() == [True, False, True, True]
    assert got.metrics["credit/unscored"] == 0.25 and got.metrics["credit/condition/scored"] == 0


@pytest.mark.slow
def test_rows_that_only_fill_the_batch_enter_nothing() -> None:
    got = RowAdvantages("reinforce_batch")(
        group=["q", "q", "pad"], reward=np.array([1.0, 0.0, 9.0]), where=[True, True, False]
    )
    assert got.advantages.tolist() == [1, -1, 0]
    assert (got.metrics["credit/rows"], got.metrics["credit/unscored"]) == (2, 0)
    assert got.metrics["credit/condition/scored"] == 1
    with pytest.warns(MissingColumnWarning, match="none has a reward"):
        none = RowAdvantages("rloo")(group=["q", "pad"], reward=np.array([np.nan, 9.0]), where=[True, False]).metrics
    assert (none["credit/rows"], none["credit/unscored"], none["credit/condition/scored"]) == (1, 1, 0)


def test_a_frozen_row_is_not_one_that_could_not_be_compared() -> None:
    rows = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "agent": ["x", "y"] * 2, "reward": np.array([1.0, 1, 0, 0])}
    got = RowAdvantages("rloo")(**rows, evidence={"trainable": [1, 0, 1, 0]}).metrics
    # It was refused 0.5: an alarm on that went off in every team with a frozen planner.
    assert (got["credit/condition/compared"], got["credit/refused"], "credit/refused/frozen" in got) == (1, 0, False)
    of_one = {"group": [*rows["group"], "r"], "trace": [0, 0, 1, 1, 2], "agent": [*rows["agent"], "x"]}
    alone = RowAdvantages("rloo")(**of_one, reward=np.array([1.0, 1, 0, 0, 1]), evidence={"trainable": [1, 0, 1, 0, 1]})
    assert alone.metrics["credit/condition/compared"] == 0
    assert [alone.metrics[f"credit/refused{why}"] for why in ("", "/singleton")] == pytest.approx([1 / 3] * 2)
    with pytest.warns(MissingColumnWarning, match="answers no row of the batch"):
        none = RowAdvantages("rloo")(**rows, evidence={"trainable": [0] * 4}).metrics
    assert none["credit/refused"] == 0 and "credit/condition/unbiased" not in none


def test_groups_of_one_are_those_of_the_key_that_is_compared() -> None:
    rows = {"group": ["q"] * 4, "trace": [0, 1, 2, 3], "reward": np.array([1.0, 0, 1, 0])}
    got = RowAdvantages("rloo", by="task,policy_version")(**rows, evidence={"policy_version": [1, 1, 2, 3]}).metrics
    assert got["credit/groups_of_one"] == pytest.approx(2 / 3) and got["credit/groups"] == 1


def test_rows_whose_key_one_trace_has_are_counted() -> None:
    """An agent that acts once in its group kept its raw reward, and no metric showed such a row."""
    rows = {"group": ["q", "q", "q", "r", "r"], "trace": list("aabcd"), "agent": ["s", "c", "s", "s", "s"]}
    rows |= {"reward": np.array([1.0, 1, 0, 0, 1])}
    advantages = RowAdvantages("dr_mas")
    got = advantages(**rows)
    assert got.metrics["credit/keys_of_one"] == 1 / 5 and got.advantages[1] == pytest.approx(1, abs=1e-5)
    assert got.metrics["credit/groups_of_one"] == 0
    assert advantages(**{**rows, "reward": np.full(5, np.nan)}).metrics["credit/keys_of_one"] == 0
    assert RowAdvantages("rloo", by="task,agent")(**rows).metrics["credit/keys_of_one"] == 1 / 5
    assert "credit/keys_of_one" not in RowAdvantages("rloo")(**rows).metrics


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("singleton", ["raw", "refuse"])
@pytest.mark.parametrize("method", ["dr_mas", "dr_mas_rloo"])
def test_rows_of_one_trace_are_not_called_compared(method: str, singleton: str) -> None:
    """Two rows of an agent in one trace were compared with each other, got 0, and `compared` was 1."""
    rows = {"group": ["q"] * 5, "trace": list("aaabb"), "agent": ["p", "c", "c", "p", "p"], "reward": [1.0, 1, 1, 0, 0]}
    alone = RowAdvantages(method, singleton=singleton)(**rows).metrics
    assert (alone["credit/keys_of_one"], alone["credit/condition/compared"]) == (2 / 5, 0)
    both = RowAdvantages(method, singleton=singleton)(**rows | {"agent": ["p", "c", "p", "p", "c"]}).metrics
    assert (both["credit/keys_of_one"], both["credit/condition/compared"]) == (0, 1)
    lone = RowAdvantages("verl_grpo")(group=["q", "q", "r"], trace=list("abc"), reward=[1.0, 0.0, 1.0])
    assert lone.valid.all() and lone.metrics["credit/condition/compared"] == 0


@pytest.mark.parametrize(
    ("changed", "what"),
    [({"group": ["q", "q ", "q", "q"]}, "groups 'q', 'q '"), ({"trace": ["a", "b", "a ", "c"]}, "traces 'a', 'a '"),
     ({"agent": ["p", "p ", "p", "p"]}, "agents 'p', 'p '")],
)  # fmt: skip
def test_labels_that_differ_in_blanks_are_named(changed: dict[str, Any], what: str) -> None:
    rows = {"group": ["q"] * 4, "trace": list("abcd"), "agent": ["p"] * 4, "reward": [1.0, 0.0, 0.0, 1.0]}
    with pytest.warns(MissingColumnWarning, match=f"compares {what}, which are spelt almost alike, as several"):
        RowAdvantages("rloo")(**rows | changed)


def test_many_labels_that_differ_in_capitals_are_named_once() -> None:
    """Of 16 such groups there were 16 warnings."""
    tasks = [f"q{number}" for number in range(16)]
    rows = {"group": [*tasks, *map(str.upper, tasks)], "trace": [*range(32)], "reward": [1.0, 0.0] * 16}
    for call in (RowAdvantages("rloo"), credit.from_columns):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            call(**rows)
        alike = [str(one.message) for one in said if "almost alike" in str(one.message)]
        assert len(alike) == 1 and "groups 'q0', 'Q0' and 15 more like them" in alike[0]


def test_a_used_method_is_pickled_with_its_state() -> None:
    rows = {"group": ["q"] * 2, "reward": [1.0, 0.0]}
    used = RowAdvantages("moving_average")
    used(**rows)
    again = pickle.loads(pickle.dumps(used))
    assert again.state == used.state
    assert again(**rows).advantages.tolist() == used(**rows).advantages.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("by", ["task,agent", "task", "agent", "task,key"])
def test_keys_of_one_are_counted_in_rows_of_any_order(by: str) -> None:
    rng = np.random.default_rng(len(by))
    trace = rng.integers(0, 12, 40)  # rows of a trace do not stand side by side
    columns = {"task": trace // 4, "agent": rng.integers(0, 6, 40), "key": rng.integers(0, 9, 40)}
    stated = {"key": [None if key == 8 else int(key) for key in columns["key"]]} if by == "task,key" else {}
    keys = list(zip(*(columns[name] for name in by.split(",")), strict=True))
    keys = [None if stated and stated["key"][row] is None else key for row, key in enumerate(keys)]
    traces: dict[object, set[int]] = {}
    for key, of in zip(keys, trace.tolist(), strict=True):
        traces.setdefault(key, set()).add(of)
    alone = {key for key, those in traces.items() if len(those) == 1}
    rows = {"group": columns["task"], "trace": trace, "agent": columns["agent"], "reward": (trace % 3).astype(float)}
    got = RowAdvantages("grpo", by=by)(**rows, evidence=stated).metrics
    assert got["credit/keys_of_one"] == pytest.approx(sum(key in alone for key in keys) / 40)
    assert got["credit/groups_of_one"] == pytest.approx(len(alone) / len(traces))


def test_a_group_of_one_is_refused_by_reason() -> None:
    got = RowAdvantages("rloo")(group=["q", "q", "r"], reward=np.array([1.0, 0.0, 1.0]))
    assert got.advantages.tolist() == [1, -1, 0] and got.valid.tolist() == [True, True, False]
    assert got.metrics["credit/refused/singleton"] == pytest.approx(1 / 3)
    assert got.metrics["credit/groups_of_one"] == 0.5 and got.metrics["credit/groups_that_teach"] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reward", "event_reward", "resolved", "teach"),
    [
        ([1e6, 1e6 + 0.1, 1e6 + 0.2], None, 1, 1),
        ([1e6, 1e6 + 0.01, 1e6 + 0.02], None, 1, 1),
        ([2**53, 2**53 + 1, 2**53 + 2], None, 0, 0),  # the columns themselves are coarse
        ([1e6] * 3, [0.0, 0.01, 0.02], 0, 0),  # gave 0 everywhere, without a warning, and "all groups teach"
        ([1e6, 1e6 + 0.25, 1e6 + 0.5], None, 1, 1),
        ([1.0, 0.1, 0.2], [0.0, 0.3, 0.0], 1, 1),
    ],
)
def test_a_metric_tells_where_single_precision_changes_the_differences_of_rewards(
    reward: list[float], event_reward: list[float] | None, resolved: int, teach: int
) -> None:
    steps = None if event_reward is None else np.array(event_reward, float)
    with contextlib.nullcontext() if resolved else pytest.warns(UserWarning, match="single precision"):
        metrics = RowAdvantages("rloo")(group=["q"] * 3, reward=np.array(reward), event_reward=steps).metrics
    assert metrics["credit/condition/resolved"] == resolved and metrics["credit/groups_that_teach"] == teach


@pytest.mark.parametrize("method", ["rloo", "grpo", "dr_grpo", "dr_mas"])
def test_a_large_offset_of_rewards_changes_nothing(method: str) -> None:
    """Of 10,000,000.1 less 10,000,000.0 single precision kept nothing: `rloo` gave 0, 0, 0 and 1."""
    small = np.array([0.0, 0.1, 0.3, 0.6, 1.0, 0.0])
    names = {"group": list("qqqqpp"), "agent": ["x"] * 6, "trace": range(6)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", MissingColumnWarning)
        advantages = RowAdvantages(method)
        plain = advantages(**names, reward=small)
        moved = advantages(**names, reward=small + np.array([1e7] * 4 + [0.0] * 2))
    np.testing.assert_allclose(moved.advantages, plain.advantages, rtol=1e-5)
    assert moved.metrics["credit/condition/resolved"] == 1 and advantages.compilations == 1


@pytest.mark.parametrize(
    ("method", "options"), [("discounted_return", {}), ("rloo", {"singleton": "raw", "by": "agent_name"})]
)
def test_a_large_offset_stays_where_a_method_takes_more_than_differences(method: str, options: dict[str, str]) -> None:
    """Beside a trace that is alone under its key, whose raw reward counts, none is subtracted."""
    reward = 1e7 + np.array([0.0, 0.1, 0.3, 0.6])
    with pytest.warns(UserWarning, match="single precision"):
        got = RowAdvantages(method, **options)(group=["q"] * 4, trace=range(4), agent=list("xxxy"), reward=reward)
    assert got.advantages[3] == np.float32(reward[3]) and got.metrics["credit/condition/resolved"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rloo", "dr_mas"])
def test_rows_compared_with_none_are_told_under_any_key(method: str) -> None:
    """With `by=` named, the default key included, all rows counted as compared, even where none was."""
    ids = {"group": list("qqqqrr"), "trace": list("aabbcc"), "agent": list("pcpcpc")}
    columns: dict[str, Any] = {**ids, "reward": np.array([1.0, 1.0, 0.0, 0.0, 1.0, 1.0])}
    for by in (None, "task" if method == "rloo" else "task,agent"):
        named = {} if by is None else {"by": by}
        assert RowAdvantages(method, singleton="raw", **named)(**columns).metrics["credit/condition/compared"] == 0
    both = {name: cells[:4] for name, cells in columns.items()}
    assert RowAdvantages(method, by="task,agent")(**both).metrics["credit/condition/compared"] == 1
    within = RowAdvantages(method, by="task,policy_version", singleton="raw", strict=True)
    with pytest.raises(CreditError, match="each key of the batch has one trace"):
        within(**columns, policy_version=[1, 1, 2, 2, 3, 3])


def test_a_value_of_the_size_of_the_offset_is_no_difference() -> None:
    """`gae` gave -9,024,999 for -0.73."""
    reward = 1e7 + np.array([0.0, 0.1, 0.3, 0.6])
    for value in (reward + 0.5, np.full(4, 1e10)):
        with pytest.warns(UserWarning, match="single precision"):
            got = RowAdvantages("gae")(group=["q"] * 4, trace=range(4), reward=reward, evidence={"value": value})
        assert got.advantages == pytest.approx(np.float32(reward) - np.float32(value))


@pytest.mark.parametrize("scored", [4, 3])
def test_each_group_has_an_offset_of_its_own(scored: int) -> None:
    """A mean over the batch takes off what all groups are raised by; a trace without a reward takes off nothing."""
    draw = np.random.default_rng(scored)
    group = np.repeat(np.arange(64), 4)
    rest = draw.normal(size=256)
    rest[3::4][:8] = rest[3::4][:8] if scored == 4 else np.nan
    reward = rest + 1e7 * (1 + group % 3)
    rloo = RowAdvantages("rloo")(group=group, trace=range(256), reward=reward)
    by_hand = [
        np.nan_to_num(rest[i] - np.nanmean(np.delete(rest[group == group[i]], i % 4)) if rest[i] == rest[i] else 0)
        for i in range(256)
    ]
    assert rloo.advantages == pytest.approx(np.array(by_hand), abs=1e-6)
    with pytest.warns(UserWarning, match="single precision"):
        batch = RowAdvantages("reinforce_batch")(group=group, trace=range(256), reward=reward)
    assert np.nanmax(np.abs(batch.advantages)) > 1e6


@pytest.mark.parametrize("columns", [[], np.zeros(0)])
def test_an_empty_batch_gives_empty_advantages(columns: Any) -> None:
    got = RowAdvantages("rloo")(group=columns, reward=np.zeros(0), mask=np.zeros((0, 7)))
    assert got.advantages.shape == (0, 7) and got.metrics["credit/rows"] == 0


def test_a_batch_without_any_reward_gives_zeros() -> None:
    with pytest.warns(MissingColumnWarning, match="none has a reward"):
        got = RowAdvantages("rloo")(group=["q", "q"], reward=np.full(2, np.nan))
    assert got.advantages.tolist() == [0, 0] and not got.valid.any()


def test_silent_groups_are_named() -> None:
    """Groups of equal outcomes, by the caller's ids: not one that differs, one of one trace, or one without rewards."""
    advantages = RowAdvantages("rloo")
    group = ["won", "mixed", "won", "alone", "mixed", "unscored", "unscored", "lost", "lost"]
    advantages(group=group, reward=np.array([1.0, 0.0, 1.0, 1.0, 1.0, np.nan, np.nan, 0.0, 0.0]))
    assert advantages.silent_groups == ["won", "lost"]
    advantages(group=[7, 7], reward=np.full(2, np.nan))
    assert advantages.silent_groups == []
    advantages(group=[7, 7, 8, 8], reward=np.array([2.0, 2.0, 1.0, 0.0]))
    assert advantages.silent_groups == [7]


@pytest.mark.parametrize(("name", "silent"), [("dr_mas", []), ("rloo", ["q"])])
def test_a_group_is_silent_where_the_method_gives_zeros(name: str, silent: list[str]) -> None:
    """Rewards of events cancel in the trace: groups were silent in which agents, or rows, were told apart."""
    advantages = RowAdvantages(name, rows=4)
    steps = np.array([0.5, -0.5, 0.0, 0.0])
    columns = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "agent": ["x", "y"] * 2, "turn": [0] * 4}
    got = advantages(**columns, reward=np.ones(4), event_reward=steps)
    assert bool(np.any(got.advantages)) == (not silent) == bool(got.metrics["credit/groups_that_teach"])
    assert advantages.silent_groups == silent


@pytest.mark.slow
def test_groups_that_event_rewards_alone_teach_are_counted() -> None:
    """A process reward that teaches by itself was not told from an outcome; `validate` told them apart."""
    rows: dict[str, Any] = {"group": [*"aabbccdd"], "reward": np.array([1.0, 0, 1, 1, 1, 1, 0, 0])}
    steps = np.array([0.5, 0, 0.5, 0, 0, 0, 0.25, 0.25])
    got = RowAdvantages("rloo")(**rows, event_reward=steps).metrics
    assert (got["credit/groups_that_teach"], got["credit/groups_by_event_rewards"]) == (0.5, 0.25)
    found = survey(credit.from_columns(**rows, trace=[*range(8)], event_reward=steps)[2].traces)
    assert found.teaching - found.outcomes_apart == 0.25 * found.groups
    assert "credit/groups_by_event_rewards" not in RowAdvantages("rloo")(**rows).metrics
    of_agents = {"agent_reward": [1.0, 0, 0, 0, 0, 0, 0, 0]}
    rows |= {"group": [*"aaaaaaaa"], "trace": [*"abcdefgh"], "agent": [*"xyxyxyxy"], "reward": np.zeros(8)}
    got = RowAdvantages("spiral_rae")(**rows, event_reward=steps, evidence=of_agents).metrics
    assert (got["credit/groups_that_teach"], got["credit/groups_by_event_rewards"]) == (1, 0)


def test_a_group_that_is_refused_is_not_silent() -> None:
    advantages = RowAdvantages("rloo", rows=4)
    with pytest.warns(MissingColumnWarning, match="answers no row of the batch: no finite number"):
        got = advantages(group=["q"] * 4, reward=np.array([-3e38, 3e38, 3e38, 0.0]))
    assert not got.valid.any() and advantages.silent_groups == [] and got.metrics["credit/groups_that_teach"] == 0


@pytest.mark.filterwarnings("ignore:method 'dr_mas' compares only 0 of 2")
@pytest.mark.parametrize("name", ["rloo", "dr_mas"])
def test_every_batch_has_the_same_metrics(name: str) -> None:
    """A page of a trainer that reads "groups_that_teach" ended in a KeyError on a step whose rewards all failed."""
    advantages = RowAdvantages(name)
    usual = advantages(group=["q"] * 2, trace=[0, 1], agent=["a", "b"], reward=np.array([1.0, 0.0])).metrics
    for reward in (np.full(2, np.nan), np.zeros(0)):
        ids = {"group": ["q"] * len(reward), "agent": ["a"] * len(reward)}
        metrics = advantages(**ids, reward=reward).metrics
        unknown = {f"credit/condition/{name}" for name in ("compared", "ordered", "resolved", "unbiased")}
        assert metrics.keys() == usual.keys() - unknown and np.isfinite(list(metrics.values())).all()
        assert metrics["credit/groups_that_teach"] == 0 and metrics["credit/unscored"] == (len(reward) > 0)


def test_rows_that_fill_the_batch_may_hold_anything() -> None:
    where = [True, True, False]
    got = RowAdvantages("rloo")(group=["q"] * 3, reward=np.array([1.0, 0.0, np.inf]), where=where)
    assert got.advantages.tolist() == [1.0, -1.0, 0.0]
    assert len(RowAdvantages("rloo")(group=[], reward=np.zeros(0), order=[]).advantages) == 0


@pytest.mark.slow
def test_finding_traces_that_lack_a_reward_is_linear() -> None:
    """Ids as objects were compared each with each: 20,000 rows took 2.9 s."""
    compared = 0

    class Id(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    n = 600
    trace = np.array([Id(f"t{i}") for i in range(n)], dtype=object)
    reward = np.where(np.arange(n) % 4 == 0, np.nan, np.arange(n) % 2)
    RowAdvantages("rloo")(group=["q"] * n, trace=trace, reward=reward)
    assert compared < 20 * n


@pytest.mark.slow
def test_ids_may_be_uuids_integers_arrays() -> None:
    one, two = uuid.UUID(int=1), uuid.UUID(int=2)
    want = [1.0, -1.0, 1.0, -1.0]
    reward = np.array([1.0, 0.0, 1.0, 0.0])
    for group in (
        [one, one, two, two],
        np.array([one, one, two, two], object),
        np.array([1, 1, 2, 2]),
        jnp.array([1, 1, 2, 2]),
    ):
        assert RowAdvantages("rloo")(group=group, reward=reward).advantages.tolist() == want


@pytest.mark.slow
def test_the_result_is_of_the_library_of_the_reward() -> None:
    got = rows_advantage("rloo", ["q", "q"], None, None, None, jnp.array([1.0, 0.0]), jnp.array([[1, 0], [1, 1]]))[0]
    assert isinstance(got, type(jnp.zeros(1))) and got.tolist() == [[1, 0], [-1, -1]]
    from_numpy = rows_advantage("rloo", ["q", "q"], None, None, None, np.array([1.0, 0.0]), [[1, 0], [1, 1]])[0]
    assert isinstance(from_numpy, np.ndarray) and from_numpy.tolist() == [[1, 0], [-1, -1]]


def test_tensors_of_any_precision_with_gradients() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        reward = torch.tensor([1.0, 0.25], dtype=dtype, requires_grad=True) * 1
        mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
        got = RowAdvantages("rloo")(group=torch.tensor([3, 3]), reward=reward, mask=mask).advantages
        assert got.dtype == (torch.float64 if dtype == torch.float64 else torch.float32) and not got.requires_grad
        assert got.tolist() == [[0.75, 0.75, 0], [-0.75, 0, 0]]


def test_what_cannot_be_used_is_named() -> None:
    rloo = RowAdvantages("rloo")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"reward": np.array([1.0, np.inf])}, r"'reward': is infinite.*rows 1"),
        ({"reward": np.array([1.0, np.nan]), "trace": ["a", "a"]}, "its outcome in each of its rows.*rows 0, 1"),
        ({"reward": np.array([1.0, 0.0]), "trace": ["a", "a"]}, "'reward': trace 'a' has different values"),
        ({"reward": np.array([1.0, 0.0]), "agent": ["a"]}, "'agent': has 1 rows; column 'reward' has 2"),
        ({"reward": np.zeros((2, 3))}, r"'reward': has shape \(2, 3\)"),
        ({"reward": np.zeros(2), "mask": np.ones((3, 2))}, r"mask has shape \(3, 2\); expected \(2, L\)"),
        ({"reward": np.zeros(2), "evidence": {"value": [0.0, 0.0]}}, "'rloo' takes no value"),
        ({"reward": np.zeros(2), "where": [True]}, "'where'"),
    ]
    for columns, message in cases:
        with pytest.raises(credit.CreditError, match=message):
            rloo(group=["q", "q"], **columns)
    with pytest.raises(credit.CreditError, match="'gae' needs value"):
        RowAdvantages("gae")(group=["q"], reward=np.zeros(1))
    with pytest.raises(credit.CreditError, match="no method is called 'nope'"):
        RowAdvantages("nope")
    with pytest.raises(credit.CreditError, match="no option 'epz'"):
        RowAdvantages("grpo", epz=1)


def test_row_numbers_of_an_error_are_those_of_the_batch() -> None:
    """Rows without a reward are left out first, and the error still names the trainer's rows."""
    with pytest.raises(ColumnError) as caught:
        RowAdvantages("rloo")(group=["q"] * 4, trace=["x", "x", "a", "a"], reward=np.array([np.nan, np.nan, 1.0, 0.0]))
    assert caught.value.rows == [2, 3]


@pytest.mark.slow
def test_evidence_reaches_the_method() -> None:
    got = RowAdvantages("c3")(
        group=["q"] * 3,
        trace=[0, 1, 2],
        reward=np.array([1.0, 0.0, 0.5]),
        evidence={"context": ["c"] * 3, "node": ["x", "y", "z"]},
    )
    assert got.advantages == pytest.approx([0.75, -0.75, 0.0])


SIBLINGS = {"context": [None, "c"] * 3, "node": [x for i in range(3) for x in (None, f"n{i}")]}


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore:method .* answers no row of the batch")  # that is what is asked for
@pytest.mark.parametrize("name", ["rloo", "turn_baseline"])
def test_replays_and_frozen_agents_reach_the_graph_of_every_method(name: str) -> None:
    """Three siblings of one first action: a method that takes no `context` still must not compare them.

    The columns were refused with the advice to leave them out, and the advantages without them are biased.
    """
    rows: dict[str, Any] = {"group": ["q"] * 6, "trace": [0, 0, 1, 1, 2, 2], "turn": [0, 1] * 3}
    reward = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    advantages = RowAdvantages(name)
    assert all(advantages.accepts(column) for column in STRUCTURE) and not advantages.accepts("value")
    got = advantages(**rows, reward=reward, evidence=SIBLINGS)
    assert not got.valid.any() and got.metrics["credit/refused/shared_prefix"] == 1
    part = advantages(**rows, reward=reward, evidence={"trainable": [1.0, 0.0] * 3})
    assert part.valid.tolist() == [True, False] * 3 and part.metrics["credit/refused"] == 0


CHAIN = {
    "context": [None, "c", None, None, "c", "d", None, None, "d", None, None, None],
    "node": [None, "n1", None, None, "n2", "n3", None, None, "n4", None, None, None],
}
"""`u` replays the second action of `a`, `b` the third of `u`, and each names that action alone; `i` is of its own."""


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("name", ["rloo", "turn_baseline"])
@pytest.mark.parametrize("rows", ["in order", "mixed"])
def test_a_trace_without_a_reward_still_says_which_traces_are_replays(name: str, rows: str) -> None:
    """Rows without a reward were left out before replays were looked for: `b`, of the same first action, entered the
    baseline of `a`, which became (0.5 + 0) / 2."""
    trace = np.repeat(["a", "u", "b", "i"], 3)
    columns: dict[str, Any] = {"group": ["q"] * 12, "trace": trace, "turn": np.tile(np.arange(3), 4)}
    reward = np.repeat([1.0, 0.0, 0.5, 0.0], 3)
    graph, outcome, to = credit.from_columns(**columns, reward=reward, evidence=CHAIN)
    outcome[1] = np.nan
    whole = to.gather(credit.METHODS[name].fn(graph, outcome))
    assert whole == pytest.approx([1.0] * 3 + [0.0] * 3 + [0.5] * 3 + [-0.75] * 3)

    at = np.arange(12) if rows == "in order" else np.random.default_rng(0).permutation(12)
    shuffled = {key: np.asarray(column)[at] for key, column in columns.items()}
    evidence = {key: [ids[i] for i in at] for key, ids in CHAIN.items()}
    withheld = np.where(trace == "u", np.nan, reward)[at]
    got = RowAdvantages(name)(**shuffled, order=shuffled["turn"], reward=withheld, evidence=evidence)
    assert got.advantages == pytest.approx(whole[at]) and got.valid.tolist() == (trace != "u")[at].tolist()


@pytest.mark.parametrize("last", [0.0, np.nan])
def test_ids_of_one_task_link_nothing_in_another_whoever_has_no_reward(last: float) -> None:
    """Nodes numbered from 0 in each task: one row without a reward made replays of the traces of other tasks."""
    got = RowAdvantages("rloo")(
        group=["g1"] * 4 + ["g2"] * 4 + ["g3"] * 4,
        trace=[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
        reward=np.array([1, 1, 0, 0, 1, 1, 0, 0, 1, 1, last, last]),
        evidence={"node": [0, 1, 2, 3, 0, 2, 4, 5, 6, 7, 8, 9]},
    )
    assert got.advantages[:8].tolist() == [1, 1, -1, -1] * 2


def test_a_row_that_fills_the_batch_needs_no_trace() -> None:
    reward = np.array([1, 0, np.nan, 0.0])
    got = RowAdvantages("rloo")(
        group=["q"] * 4, trace=["a", "b", "c", None], reward=reward, where=[True, True, True, False]
    )
    assert got.advantages.tolist() == [1, -1, 0, 0]


def test_rows_that_fill_the_batch_link_nothing() -> None:
    """verl fills a batch with made-up rows, which have the ids of a real one."""
    rows: dict[str, Any] = {"group": ["q"] * 4, "trace": ["a", "b", "pad", "pad"], "reward": np.array([1.0, 0, 0, 0])}
    evidence = {"context": ["c"] * 4, "node": ["x", "y", "x", "y"]}
    got = RowAdvantages("rloo")(**rows, where=[True, True, False, False], evidence=evidence)
    assert got.advantages.tolist() == [1.0, -1.0, 0.0, 0.0]


@pytest.mark.study
def test_an_option_that_biases_is_not_called_unbiased() -> None:
    rows: dict[str, Any] = {"group": ["q"] * 3, "reward": np.array([1.0, 0.0, 0.5])}
    siblings = {"context": ["c"] * 3, "node": ["x", "y", "z"]}
    plain, divided = RowAdvantages("c3"), RowAdvantages("c3", normalise=True)
    assert plain(**rows, evidence=siblings).metrics["credit/condition/unbiased"] == 1
    assert "credit/condition/unbiased" not in divided(**rows, evidence=siblings).metrics
    assert RowAdvantages("discounted_return", discount=1.0)(**rows).metrics["credit/condition/unbiased"] == 1


@pytest.mark.parametrize(
    ("method", "options", "unbiased"),
    [("rloo", {"by": "task,turn", "singleton": "raw"}, 1), ("rloo", {"by": "task,turn"}, None), ("Dr. MAS", {}, 0),
     *(pytest.param(*more, marks=pytest.mark.slow) for more in (
         ("rloo", {"by": "task"}, 1), ("rloo", {"by": "task,length", "singleton": "raw"}, 0),
         ("grpo", {"by": "task,turn"}, 0), ("shared_grpo", {}, 0), ("grpo", {"ddof": 0}, None),
         ("rloo", {"population": "row"}, 0)))],
)  # fmt: skip
def test_the_bias_of_a_key_is_stated_where_it_is_known(
    method: str, options: dict[str, Any], unbiased: int | None
) -> None:
    """With `by=` the metric was absent. That all share a turn here is no proof: who plays it is a choice."""
    rows = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "agent": ["a", "b"] * 2, "reward": [1.0, 1.0, 0.0, 0.0]}
    got = RowAdvantages(method, **options)(**rows, turn=[0, 1] * 2).metrics
    assert got.get("credit/condition/unbiased") == unbiased


def test_sessions_of_verl_bring_their_siblings_and_frozen_agents() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    score = torch.tensor([[1.0], [1.0], [0.0], [0.0]])
    batch = {"token_level_scores": score, "token_level_rewards": score, "response_mask": torch.ones(4, 1)}
    fields = [
        {"agent": "solver", "turn": i % 2, "context": [None, "c"][i % 2], "node": [None, f"n{i}"][i % 2],
         "trainable": 1.0}
        for i in range(4)
    ]  # fmt: skip
    keys, data = ["q_0_0", "q_0_1", "q_1_0", "q_1_1"], SimpleNamespace(batch=batch)
    with pytest.warns(MissingColumnWarning, match="answers no row of the batch: no independent trace"):
        metrics = session_advantage(of_verl("rloo"), data, keys, fields, [False] * 4)
    assert metrics["credit/refused/shared_prefix"] == 1 and not batch["advantages"].any()
    frozen = [{"agent": "solver", "turn": i % 2, "trainable": float(i % 2)} for i in range(4)]
    session_advantage(of_verl("rloo"), data, keys, frozen, [False] * 4)
    assert batch["advantages"].flatten().tolist() == [0.0, 1.0, 0.0, -1.0]


def of_verl(method: str) -> TrainerCredit:
    return TrainerCredit(RowAdvantages(method), trainer="verl", columns="write it", evidence=True, on_cpu=False)


def sessions(
    keys: list[str],
    scores: list[float],
    fields: Any = None,
    padding: Any = None,
    penalty: float = 0,
    method: str = "rloo",
) -> list[float]:
    """Leave-one-out over the sessions of v1 keys, or another method, one number a row."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    score, mask = torch.tensor(scores)[:, None], torch.ones(len(keys), 1)
    batch = {"token_level_scores": score, "token_level_rewards": score - penalty, "response_mask": mask}
    session_advantage(of_verl(method), SimpleNamespace(batch=batch), keys, fields, padding or [False] * len(keys))
    values: list[float] = batch["advantages"].flatten().tolist()
    return values


def test_sessions_of_an_empty_batch() -> None:
    assert sessions([], []) == []


def test_a_row_that_fills_the_batch_is_no_output_of_its_session() -> None:
    """It bears the key of a real output, as a copy does, and the greatest number."""
    keys, padding = ["q_0_0", "q_1_0", "q_0_1", "q_0_0"], [False, False, True, True]
    assert sessions(keys, [1.0, 0.0, 0.0, 0.5], padding=padding) == [1.0, -1.0, 0.0, 0.0]


def test_the_score_of_an_output_that_does_not_count_may_be_nan() -> None:
    """It ended the step, and the error named an `event_reward` that nobody had passed."""
    keys, nan = ["q_0_0", "q_0_1", "q_1_0", "q_2_0"], float("nan")
    assert sessions(keys, [nan, 1.0, 0.0, nan]) == [1.0, 1.0, -1.0, 0.0]
    with pytest.raises(CreditError, match="token_level_scores is NaN in row 0, so that its KL penalty is unknown"):
        sessions(keys, [nan, 1.0, 0.0, nan], penalty=0.25)
    assert sessions(keys[1:], [1.0, 0.0, nan], penalty=0.25) == [1.0, -1.0, 0.0]


def test_a_reward_of_an_output_that_is_no_number_is_named() -> None:
    for value in (float("nan"), float("inf")):
        fields = [None, {"event_reward": value}, {"event_reward": value}]
        with pytest.raises(CreditError, match=f"extra_fields has 'event_reward' {value} in row 2; expected a finite"):
            sessions(["q_0_0", "q_1_0", "q_1_1"], [1.0, 0.0, 0.0], fields, [False, True, False])


@pytest.mark.parametrize("number", [2, 4])
def test_another_number_of_extra_fields_than_rows_is_named(number: int) -> None:
    """Fewer ended in an IndexError; the last of more were dropped."""
    with pytest.raises(CreditError, match=f"{number} entries have 'agent', for 3 rows"):
        sessions(["q_0_0", "q_1_0", "q_1_1"], [1.0, 0.0, 0.0], [{"agent": "a"}] * number)


@pytest.mark.slow
def test_a_batch_that_is_refused_moves_no_state() -> None:
    """A wrong `log_ratio`, which is read last, moved the averages: passed again, the batch counted twice."""
    rows: dict[str, Any] = {"group": ["q"] * 2, "trace": [0, 0], "agent": ["a", "b"], "reward": np.zeros(2)}
    rows["evidence"] = {"agent_reward": [1.0, -1.0]}
    once, again = (RowAdvantages("spiral_rae", decay=0.5) for _ in range(2))
    once(**rows)
    for wrong in ({"log_ratio": [0.0]}, {"log_ratio": [np.nan, np.inf]}):
        with pytest.raises(ColumnError, match="log_ratio"):
            again(**rows, **wrong)
    assert again.state is None
    again(**rows)
    assert again.state == once.state is not None


def test_a_key_that_two_outputs_have_is_refused() -> None:
    """A copied row counted twice where rows have rewards of their own."""
    data = SimpleNamespace(batch={})
    with pytest.raises(CreditError, match="key 'q_1_0' of the batch names 2 outputs; expected one"):
        session_advantage(of_verl("rloo"), data, ["q_0_0", "q_1_0", "q_1_0", "p_0_0"], None, [False] * 4)


@pytest.mark.parametrize("key", ["0_0", "q", "q_0_x", "q_0_", "q_0_-1", "q_0_²", "q_0_0x1", f"q_0_{10**30}"])
def test_keys_that_name_no_session_are_refused(key: str) -> None:
    with pytest.raises(CreditError, match=re.escape(f"key {key!r} of the batch is not of the form uid_session_index")):
        sessions(["q_0_0", "a_b_1_0", key], [1.0, 0.0, 0.0])


@pytest.mark.slow
def test_a_method_of_ones_own() -> None:
    def centred(graph: Any, reward: Any, *, event_reward: Any = None) -> Any:
        return group_relative(graph, reward, event_reward=event_reward, source="centred")

    got = RowAdvantages(centred)(group=["q", "q"], reward=np.array([1.0, 0.0]))
    assert got.advantages == pytest.approx([0.5, -0.5]) and "credit/condition/unbiased" not in got.metrics


@pytest.mark.slow
def test_scale_may_be_left_out() -> None:
    got = RowAdvantages("trl_grpo", scaled=False)(group=["q", "q"], reward=np.array([3.0, 1.0]))
    assert got.advantages == pytest.approx([1.0, -1.0])


@pytest.mark.slow
def test_several_agents_of_one_name_are_told_apart() -> None:
    columns = {"trace": [0, 0, 0, 1, 1], "agent": ["s"] * 5, "reward": np.zeros(5)}
    evidence = {"agent_reward": [1.0, 0.0, 0.0, 0.5, 0.25]}
    rows = RowAdvantages("dr_grpo", by="episode,agent", population="agent")
    result = rows(group=["q"] * 5, instance=[0, 1, 1, 0, 1], evidence=evidence, **columns)
    assert result.advantages.tolist() == [0.5, -0.5, -0.5, 0.125, -0.125]
    assert result.metrics["credit/groups_that_teach"] == 1  # the outcomes of traces are all 0
    with pytest.raises(ColumnError, match="with instance= a name may stand for several"):
        rows(group=["q"] * 5, instance=[0, 1, 1, 0, 1], parent=["s"] * 5, **columns)


@pytest.mark.slow
def test_what_a_method_carries_lasts_from_batch_to_batch() -> None:
    """Each batch began with averages of 0, whatever was trained before."""
    games = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "evidence": {"agent_reward": [1.0, -1.0, 1.0, -1.0]}}
    rows = RowAdvantages("spiral_rae", decay=0.5, initial=0.25, rows=8)
    rows.warmup(evidence=["agent_reward"])
    assert rows.state is None
    first = rows(agent=["x", "y"] * 2, reward=np.zeros(4), **games)
    second = rows(agent=["y", "z"] * 2, reward=np.zeros(4), **games)
    assert first.advantages.tolist() == [0.75, -1.25, 0.375, -0.625] and second.metrics["credit/compilations"] == 0
    assert second.advantages.tolist() == [1.6875, -1.25, 0.84375, -0.625]  # y began at −0.6875, z at 0.25
    assert rows.state == {"x": 0.8125, "y": 0.578125, "z": -0.6875}
    again = RowAdvantages("spiral_rae", decay=0.5, initial=0.25)
    again.state = {"x": 0.8125, "y": -0.6875}  # of a checkpoint
    assert again(agent=["y", "z"] * 2, reward=np.zeros(4), **games).advantages.tolist() == second.advantages.tolist()
    with pytest.raises(CreditError, match=r"initial is .*; expected a number, for names not seen before"):
        RowAdvantages("spiral_rae", initial=np.zeros(3))
    for _ in range(2):  # one call has no batch before it
        assert rows_advantage("moving_average", [0], [0], None, None, np.ones(1))[0].tolist() == [1]


@pytest.mark.slow
def test_rows_of_several_versions_of_the_policy() -> None:
    columns: dict[str, Any] = {"group": ["q"] * 4, "reward": np.array([1.0, 0.0, 2.0, 0.0])}
    version = [3, 2, 2, None]
    result = RowAdvantages("rloo")(policy_version=version, **columns)
    assert result.advantages.tolist() == pytest.approx([1 / 3, -1, 5 / 3, -1])
    names = ("policy_age", "policy_age_mean", "groups_of_several_versions", "versions_unknown")
    assert [result.metrics[f"credit/{name}"] for name in names] == [1, pytest.approx(2 / 3), 1, 1 / 4]
    assert RowAdvantages("rloo")(policy_version=[None] * 4, **columns).metrics["credit/versions_unknown"] == 1
    within = RowAdvantages("rloo", by="task,policy_version", singleton="raw")(policy_version=version, **columns)
    assert within.advantages.tolist() == [1, -2, 2, 0]


@pytest.mark.slow
def test_stale_rows_have_truncated_weights() -> None:
    """e^1 is cut to 2; a token outside the mask, and a row that answers 0, may have any ratio."""
    columns: dict[str, Any] = {"group": ["q", "q", "p", "p"], "reward": np.array([1.0, 0.0, 1.0, 1.0])}
    result = RowAdvantages("rloo")(log_ratio=[1.0, -1.0, np.nan, 3.0], **columns)
    assert result.advantages.tolist() == pytest.approx([2, -np.exp(-1), 0, 0])
    assert result.metrics["credit/weights_truncated"] == 1 / 2
    mask, ratio = np.array([[1, 0], [1, 1], [1, 1], [1, 1]]), np.array([[0, np.nan], [0.5, 0], [0, 0], [0, 0]])
    tokens = RowAdvantages("rloo", truncate=1.25)(log_ratio=ratio, mask=mask, **columns).advantages
    assert tokens[:2].ravel().tolist() == pytest.approx([1, 0, -1.25, -1])
    with pytest.raises(ColumnError, match=r"log_ratio.*is NaN where an advantage is not 0 \(rows 0\)"):
        RowAdvantages("rloo")(log_ratio=[np.nan, 0, 0, 0], **columns)
    with pytest.raises(ColumnError, match=r"log_ratio.*is infinite where an advantage is not 0.*\(rows 0\)"):
        RowAdvantages("rloo")(log_ratio=[np.inf, 0, np.inf, 0], **columns)
    gone = RowAdvantages("rloo")(log_ratio=[-np.inf, 0, 0, 0], **columns)  # the new policy never acts so
    assert gone.advantages.tolist() == [0, -1, 0, 0] and gone.metrics["credit/weight_mean"] == 1 / 2
    with pytest.raises(ColumnError, match=r"log_ratio.*has shape \(4, 2\); expected \(4,\), one number a row$"):
        RowAdvantages("rloo")(log_ratio=ratio, **columns)  # tokens without a mask
    with pytest.raises(CreditError, match="truncate is 0; expected a number above 0"):
        RowAdvantages("rloo", truncate=0)


def test_whole_weights_are_asked_for_by_an_infinite_bound() -> None:
    """It was refused, without a word on what asks for them."""
    columns: dict[str, Any] = {"group": ["q"] * 2, "reward": np.array([1.0, 0.0])}
    whole = RowAdvantages("rloo", truncate=np.inf)
    result = whole(log_ratio=[3.0, 0.0], **columns)
    assert result.advantages.tolist() == pytest.approx([np.exp(3), -1])
    assert result.metrics["credit/weights_truncated"] == 0
    with pytest.raises(ColumnError, match=r"log_ratio.*weight overflows.*\(rows 0\)"):
        whole(log_ratio=[800.0, 0.0], **columns)


@pytest.mark.parametrize(
    ("reward", "why"), [([np.nan, np.nan], "none has a reward"), ([1.0, 0.0], "not an action of the team's policy")]
)
def test_a_batch_without_any_answer_is_an_error_where_faults_are(reward: list[float], why: str) -> None:
    """docs/trainers.md says so. It was a warning."""
    columns: dict[str, Any] = {"group": ["q"] * 2, "reward": np.array(reward), "evidence": {"trainable": [0.0, 0.0]}}
    with pytest.warns(MissingColumnWarning, match=f"answers no row of the batch: {why}|frozen"):
        RowAdvantages("rloo")(**columns)
    strict = RowAdvantages("rloo", strict=True)
    with pytest.raises(CreditError, match=f"answers no row of the batch: {why}|frozen"):
        strict(**columns)
    assert strict(group=["q"] * 2, reward=np.array([1.0, 0.0])).advantages.tolist() == [1, -1]


def test_reasons_of_refused_groups_are_those_of_a_result_in_words() -> None:
    """They were said to be in `credit.REASONS`, which there is not."""
    advantages = RowAdvantages("rloo")
    advantages(group=["q", "q", "r"], trace=[0, 1, 2], reward=np.array([1.0, 0.0, 1.0]))
    graph, reward, rows = credit.from_columns(group=["q", "q", "r"], trace=[0, 1, 2], reward=[1.0, 0.0, 1.0])
    result = credit.rloo(graph, reward)
    assert advantages.refused_groups == {result.why[rows.event][2]: ["r"]}


@pytest.mark.parametrize("method", ["max_rl", "rloo", "dr_mas"])
@pytest.mark.parametrize("most", [True, False])
def test_a_batch_of_which_most_rows_are_not_compared_is_told_once(method: str, most: bool) -> None:
    """`max_rl` refused 76 % of the rows of groups with returns below 0, and a metric alone said so."""
    groups, lone = 10, 7 if most else 5
    group, trace = np.repeat(np.arange(groups), 4), np.arange(4 * groups)
    reward = np.where(group < lone, -1.0, 1.0) + trace % 2 * 0.5
    why = "beyond the method's bound: "
    if method != "max_rl":
        group = np.where(group < lone, 100 + trace, group)
        why = {"rloo": "nothing to compare with", "dr_mas": "no other trace to compare with, so the raw reward"}[method]
    agent = ["p", "q"] * 2 * groups  # each on its own traces
    columns = {"group": group, "trace": trace, "agent": agent, "reward": reward}
    advantages = RowAdvantages(method)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        advantages(**columns)
        advantages(**columns)
    rows = f"{'compares' if method == 'dr_mas' else 'answers'} only 12 of 40 trained rows: {why}"
    assert [rows in str(one.message) for one in told] == [True] * most


def test_refused_groups_are_listed_by_why_without_the_rows_that_are_meant_to_be_frozen() -> None:
    """A tool's row stood first in the reason of each of a dozen groups."""
    ids = {"group": np.repeat(np.arange(12), 2), "trace": np.repeat(np.arange(12), 2)}
    advantages = RowAdvantages("rloo")
    with pytest.warns(MissingColumnWarning, match="every group of the batch has one trace"):
        advantages(**ids, reward=np.zeros(24), evidence={"trainable": [1.0, 0.0] * 12})
    assert advantages.refused_groups == {REASONS[Reason.SINGLETON]: [*range(12)]}


@pytest.mark.slow
def test_sizes_grow_and_never_shrink() -> None:
    advantages = RowAdvantages("dr_grpo")
    for rows in (200, 140, 256, 3, 129):
        advantages(group=np.arange(rows) // 2, reward=np.arange(rows) % 2.0)
    assert advantages.compilations == 1
    advantages(group=np.arange(300) // 2, reward=np.arange(300) % 2.0)
    advantages(group=np.arange(7) // 2, reward=np.arange(7) % 2.0)
    assert advantages.compilations == 2


@pytest.mark.slow
@pytest.mark.parametrize("names", [("context",), ("context", "node", "trainable")])
def test_after_warmup_neither_replays_nor_frozen_agents_compile(names: tuple[str, ...]) -> None:
    """The first batch with replays compiled once more, at whatever step it came."""
    advantages = RowAdvantages("rloo", rows=6)
    advantages.warmup(evidence=names)
    rows = {"group": ["q"] * 6, "trace": [0, 0, 1, 1, 2, 2], "reward": np.array([1.0, 1, 0, 0, 0, 0])}
    linked = []
    for ids in (list("abcdef"), list("ababef"), [None] * 6):
        for trainable in (np.ones(6), np.array([1, 1, 1, 1, 1, 0])):
            given = {"context": ids, "node": ids, "trainable": trainable}
            advantages(**rows, evidence={name: given[name] for name in names})
            assert advantages.last is not None
            linked.append(len(set(np.asarray(advantages.last.graph.cluster_ids).tolist()[:3])) < 3)
    assert linked == [False, False, True, True, False, False]
    assert advantages.compilations == 1  # there were up to 8, seconds each


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rloo", "grpo", "dr_mas", "turn_baseline", "hierarchical_grpo"])
def test_columns_that_link_and_freeze_nothing_move_no_number(name: str) -> None:
    """They fill fields of the graph that are None without them, so that what does link compiles nothing."""
    draw = np.random.default_rng(3)
    rows: dict[str, Any] = {
        "group": np.repeat(np.arange(4), 12), "trace": np.repeat(np.arange(16), 3), "agent": ["a", "b", "a"] * 16,
        "turn": [0, 0, 1] * 16, "reward": np.repeat(draw.normal(size=16), 3), "event_reward": draw.normal(size=48),
    }  # fmt: skip
    without = RowAdvantages(name)(**rows)
    beside = RowAdvantages(name)(**rows, evidence={"context": np.arange(48), "trainable": np.ones(48)})
    np.testing.assert_allclose(beside.advantages, without.advantages, atol=2e-6)
    assert beside.valid.tolist() == without.valid.tolist()


def test_methods_of_one_name_and_the_same_options_are_compiled_once() -> None:
    """A trainer's validation compiled again what its training had compiled, and so did each test."""
    traced = []

    def counted(graph: Any, reward: Any, *, event_reward: Any = None, weight: Any = 1.0) -> Any:
        traced.append(weight)
        return credit.rloo(graph, reward * weight, event_reward=event_reward)

    rows = {"group": ["q"] * 4, "reward": np.array([1.0, 0, 0, 1])}
    for options in ({"weight": 2.0}, {"weight": 2.0}, {"weight": 2}, {}, {}):
        credit_of = RowAdvantages(counted, **options)
        assert credit_of(**rows).metrics["credit/compilations"] == credit_of.compilations == 1
    assert [(type(weight), weight) for weight in traced] == [(float, 2), (int, 2), (float, 1)]


def test_a_batch_above_the_largest_that_was_expected_is_named_once() -> None:
    """It was compiled anew at whatever step it came, without a word."""

    def said(advantages: RowAdvantages, *sizes: int) -> list[str]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for rows in sizes:
                advantages(group=np.arange(rows) // 2, reward=np.arange(rows) % 2.0)
        return [str(warning.message) for warning in seen]

    above = "method 'rloo' got {} rows, more than rows={}, and is compiled once more"
    assert said(RowAdvantages("rloo", rows=128), 128, 129, 128, 130, 300) == [above.format(129, 128)]
    assert said(RowAdvantages("rloo", rows=100), 110) == []  # it has room
    assert said(RowAdvantages("rloo"), 100, 129) == []
    warm = RowAdvantages("rloo", rows=100)
    warm.warmup(200)
    assert said(warm, 256, 257) == [above.format(257, 200)] and warm.compilations == 2


def test_after_warmup_nothing_compiles(caplog: pytest.LogCaptureFixture) -> None:
    advantages = RowAdvantages("gae", rows=200, discount=0.9375)  # as no other test has it, who would share it
    value = np.random.default_rng(0).random(150)
    step = {"group": np.zeros(150, int), "trace": np.arange(150), "agent": ["s", "v"] * 75, "reward": [1.0] * 150}
    step |= {"mask": np.ones((150, 2))}
    with jax.log_compiles():
        advantages.warmup(evidence=["value"])
        assert "Compiling" in caplog.text
        caplog.clear()
        got = advantages(**step, log_ratio=np.zeros((150, 2)), evidence={"value": value})
    assert "Compiling" not in caplog.text  # not the method alone, but whatever a step runs
    assert got.metrics["credit/compilations"] == 0 and advantages.compilations == 1
    with pytest.raises(credit.CreditError, match="pass rows="):
        RowAdvantages("rloo").warmup()


@pytest.mark.parametrize("method", ["stop_credit", "spawn_credit"])
def test_methods_that_read_what_a_decision_was_are_refused(method: str) -> None:
    with pytest.raises(CreditError, match="types of events, which rows do not state"):
        RowAdvantages(method)


def test_a_state_that_is_no_number_is_refused() -> None:
    credit_of = RowAdvantages("spiral_rae")
    credit_of.state = {"x": float("nan")}
    with pytest.raises(CreditError, match="state of 'x' is nan"):
        credit_of(group=["q", "q"], trace=["a", "b"], agent=["x", "x"], reward=[1.0, 0.0])


def test_numbers_of_numpy_and_jax_are_numbers() -> None:
    """A finite state in single precision was refused: "expected a finite number"."""
    for number in (np.float32(0.5), jnp.float32(0.5), np.float64(0.5)):
        credit_of = RowAdvantages("spiral_rae", rows=np.int64(2), truncate=number)
        credit_of.state = {"x": number}
        got = credit_of(group=["q", "q"], trace=["a", "b"], agent=["x", "y"], reward=[1.0, 0.0])
        assert got.advantages.shape == (2,) and isinstance(credit_of.state["x"], float)
    with pytest.raises(CreditError, match="initial is inf; expected a number"):
        RowAdvantages("spiral_rae", initial=np.inf)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(
    ("method", "options"), [("rloo", {"population": "agent", "by": "task,agent"}), ("spiral_rae", {})]
)
def test_an_outcome_that_is_paid_twice_is_named_once(method: str, options: dict[str, Any]) -> None:
    """The team's outcome beside the agents' own doubled an agent's average, without a word."""
    rows = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "agent": ["p0", "p1"] * 2, "reward": np.array([1.0, 1, 0, 0])}
    own = {"agent_reward": [1.0, 0.0, 0.0, 1.0]}
    credit_of = RowAdvantages(method, **options)
    with pytest.warns(MissingColumnWarning, match="adds 'agent_reward' to 'reward'.* in 1 of 4 rows.*reward of 0"):
        credit_of(**rows, evidence=own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        credit_of(**rows, evidence=own)
        RowAdvantages(method, **options)(**{**rows, "reward": np.zeros(4)}, evidence=own)
        TrainerCredit(RowAdvantages("rloo", population="agent"), trainer="T", on_cpu=False)(
            **rows,
            agent_reward=own["agent_reward"],  # in the place of the reward
        )


@pytest.mark.parametrize(
    ("event_reward", "said"),
    [([1.0, 1, 0, 0], "in every row"), ([0.0, 1, 0, 0], "in the sum of each trace"), ([0.0, 0.5, 0, 0], ""),
     ([0.2, 1, 0.3, 0], "in the last row of each trace"), ([0.0] * 4, "")],
)  # fmt: skip
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 1, 3]])
def test_an_outcome_that_is_paid_again_is_named(event_reward: list[float], said: str, order: list[int]) -> None:
    """The score in both columns, in each row or as the last step's reward, counted twice without a word."""
    turns, steps = np.array([0, 1, 0, 1])[order], np.array(event_reward)[order]
    rows = {"group": ["q"] * 4, "trace": np.array([0, 0, 1, 1])[order], "turn": turns, "event_reward": steps}
    reward = np.array([1.0, 1, 0, 0])[order]
    for call in (RowAdvantages("mt_grpo"), credit.from_columns):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call(**rows, reward=reward)  # type: ignore[operator]
        texts = [str(warning.message) for warning in seen]
        assert [said in text and "the outcome again" in text for text in texts] == [True] * bool(said)


@pytest.mark.parametrize("strict", [False, True, "warn"])
def test_a_first_batch_without_any_reward_is_named(strict: Any) -> None:
    """Rewards that are all NaN gave zeros without a word."""
    rows = {"group": ["q"] * 2, "trace": [0, 1]}
    none, some = np.full(2, np.nan), np.array([1.0, 0.0])
    credit_of, said = RowAdvantages("rloo", strict=strict), "'rloo' answers no row of the batch: none has a reward"
    with pytest.raises(CreditError, match=said) if strict is True else pytest.warns(MissingColumnWarning, match=said):
        credit_of(**rows, reward=none)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        credit_of(**rows, reward=some)
        RowAdvantages("rloo", strict=strict)(**rows, reward=none, where=[False] * 2)  # padding alone
        if strict is False:
            credit_of(**rows, reward=none)


def test_a_look_at_every_batch_may_be_a_warning() -> None:
    rows = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "reward": np.array([1.0, 1.0, 0.0, 0.0])}
    credit_of = RowAdvantages("turn_baseline", strict="warn")
    credit_of(**rows, turn=[0, 1, 0, 1])
    for _ in range(2):
        with pytest.warns(MissingColumnWarning, match="behind its turn"):
            credit_of(**rows, turn=[0, 1, 1, 0])
    with pytest.raises(CreditError, match="strict is 'yes'; expected True, False or 'warn'"):
        RowAdvantages("rloo", strict="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("agent", [None, ["p", "v"] * 6])
def test_a_round_of_several_agents_is_one_turn_without_agents_only(agent: list[str] | None) -> None:
    """Colleagues who passed rounds as turns got other numbers than MT-GRPO's by round, which one row a round has."""
    group, trace, turn = ["q"] * 12, np.repeat([0, 1, 2], 4), [0, 0, 1, 1] * 3
    reward, earned = np.repeat([1.0, 0.0, 0.0], 4), np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0])
    method = RowAdvantages("mt_grpo", scale="none")
    rows = method(group=group, trace=trace, turn=turn, agent=agent, reward=reward, event_reward=earned).advantages
    of_round = earned.reshape(-1, 2).sum(1)
    rounds = method(group=["q"] * 6, trace=trace[::2], turn=turn[::2], reward=reward[::2], event_reward=of_round)
    assert np.allclose(rows, np.repeat(rounds.advantages, 2), atol=1e-6) == (agent is None)


def test_exact_decimals_are_numbers(tmp_path: Path) -> None:
    """A column of a database was of type "decimal128(2, 1)", and a table with one could not be read."""
    reward = [Decimal("1.5"), Decimal("0"), None]
    got = RowAdvantages("rloo")(group=["q"] * 3, reward=reward)
    assert got.advantages.tolist() == [1.5, -1.5, 0] and got.valid.tolist() == [True, True, False]
    pq.write_table(pa.table({"trace": ["a", "b", "c"], "reward": reward}), tmp_path / "rows.parquet")
    assert credit.read(tmp_path).reward[:2].tolist() == [1.5, 0]


@pytest.mark.parametrize("by", ["task", "task,policy_version"])
@pytest.mark.parametrize("version", [1.5, np.inf, -1])
def test_a_version_of_the_policy_is_an_integer_from_0(version: float, by: str) -> None:
    """-1, which trainers write for none, was a version wherever only metrics read it."""
    with pytest.raises(ColumnError, match=r"'policy_version': .* integer from 0 .*null or NaN for none \(rows 2\)"):
        RowAdvantages("rloo", by=by)(reward=[1.0, 0.0, 1.0], group=[0, 0, 0], policy_version=[1, None, version])


def test_a_trace_that_spans_versions_has_its_first_as_in_a_log(tmp_path: Path) -> None:
    """Asynchronous rollouts ended in an error that named two rows of one trace."""
    rows = {"group": ["q"] * 6, "trace": list("aabbcc"), "reward": np.array([1.0, 1.0, 0.0, 0.0, 0.5, 0.5])}
    version = [2, 3, None, 2, 3, 2]
    own = RowAdvantages("rloo", by="task,policy_version")
    result = own(**rows, policy_version=version, order=[0, 1, 0, 1, 0, 1])
    assert result.advantages.tolist() == [1, 1, -1, -1, 0, 0] and result.valid.tolist() == [True] * 4 + [False] * 2
    assert result.metrics["credit/policy_age"] == 1  # of rows
    assert own(**rows, policy_version=version, order=[0, 1, 0, 1, 1, 0]).valid.all()  # c begins with its last row
    table = pa.table({name: pa.array(column) for name, column in {**rows, "policy_version": version}.items()})
    pq.write_table(table, tmp_path / "rows.parquet")
    logged = credit.run(credit.read(tmp_path), "rloo", by="task,policy_version")
    assert np.asarray(logged.advantage)[:6].tolist() == result.advantages.tolist()


def test_ids_used_again_at_a_later_version_are_named_and_a_trace_that_goes_on_is_not() -> None:
    """Rollouts of two steps under one id were one trace without a word where their outcomes agree."""
    rows = {"group": ["q"] * 8, "trace": list("aaaabbbb"), "reward": np.array([1.0] * 4 + [0.0] * 4)}
    again = rows | {"turn": [0, 1, 0, 1] * 2, "policy_version": [10, 10, 12, 12] * 2}
    said = "rows of several 'policy_version' in the first turn of 2 traces: where ids are used again"
    with pytest.warns(MissingColumnWarning, match=said):
        assert "credit/condition/unbiased" not in RowAdvantages("rloo")(**again, trained_version=12).metrics
    with pytest.raises(CreditError, match=said):
        RowAdvantages("rloo", strict=True)(**again)
    with warnings.catch_warnings(action="error"):
        RowAdvantages("rloo", strict=True)(**again | {"turn": [0, 1, 2, 3] * 2})


@pytest.mark.parametrize(
    ("by", "how"), [("policy_version", "policy_version="), ("stage", r"evidence=\{'stage': ...\}")]
)
def test_a_key_without_its_column_says_how_rows_state_it(by: str, how: str) -> None:
    """The advice was how to write JSON of a log."""
    with pytest.raises(
        CreditError, match=f"by names '{by}', and the rows have no such column; pass {how}, and to warmup"
    ):
        RowAdvantages("rloo", by=f"task,{by}")(group=["q"] * 2, reward=[1.0, 0.0])


@pytest.mark.parametrize(
    ("agent", "turn"),
    [("pppp", ["0", "1", "10", "9"]), ("psps", [0, 2, 1, 3]), ("pppp", ["step_8", "step_9", "step_11", "step_10"])],
    ids=["texts", "through the trace", "texts that end in a number"],
)
def test_turns_out_of_order_are_told_from_texts_and_across_agents(agent: str, turn: list[Any]) -> None:
    """Rows of one agent after another stood in the order of their agents, and `ordered` was 1."""
    rows = {"group": ["q"] * 8, "trace": list("aaaabbbb"), "agent": list(agent) * 2, "reward": [1.0] * 4 + [0.0] * 4}
    method = RowAdvantages("turn_baseline", strict=True)
    with pytest.raises(CreditError, match="stands behind its turn"):
        method(**rows, turn=turn * 2, event_reward=np.arange(8) / 8)
    in_order = sorted(turn, key=lambda label: int(str(label).removeprefix("step_")))
    assert method(**rows, turn=in_order * 2, event_reward=np.arange(8) / 8).metrics["credit/condition/ordered"] == 1


@pytest.mark.parametrize(
    ("agent", "turn", "ordered"),
    [("ppss", [0, 1, 0, 1], None), ("ppss", [*"0101"], None), ("psps", [0, 0, 1, 1], 1), ("ppss", [0, 1, 2, 3], 1),
     ("pppp", [0, 1, 2, 3], 1), ("pppp", ["t0", "t1", "t2", "u3"], None), ("pppp", ["-3", "-2", "-1", "-0"], None),
     ("ppss", [1, 0, 0, 1], 0), ("psps", [*"abcd"], None), ("psps", None, None)],
)  # fmt: skip
def test_an_order_that_turns_leave_open_is_not_called_kept(agent: str, turn: Any, ordered: float | None) -> None:
    """Rows of one agent after another whose turns count within agents stood in order, said the metric."""
    rows = {"group": ["q"] * 8, "trace": list("aaaabbbb"), "agent": list(agent) * 2, "reward": [1.0] * 4 + [0.0] * 4}
    rows |= {"event_reward": np.arange(8) / 8} | ({} if turn is None else {"turn": turn * 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingColumnWarning)
        assert RowAdvantages("discounted_return")(**rows).metrics.get("credit/condition/ordered") == ordered
        placed = RowAdvantages("discounted_return")(**rows, order=np.arange(8)).metrics["credit/condition/ordered"]
    assert placed == (1 if ordered is None else ordered)
    each = {**rows, "trace": np.arange(8)} | ({} if turn is None else {"turn": [0] * 8})
    assert RowAdvantages("discounted_return")(**each).metrics["credit/condition/ordered"] == 1  # one row a trace


def test_a_batch_without_an_answer_is_told_beside_what_else_it_lacks() -> None:
    """That no row had an advantage was not said where the agents were missing, too."""
    huge = np.array([0.0, 1e30, 0.0, 1e30], np.float32)
    with pytest.warns(MissingColumnWarning) as seen:
        result = RowAdvantages("dr_mas")(group=["q"] * 4, trace=[*"abcd"], reward=huge)
    assert not result.valid.any()
    said = [str(warning.message) for warning in seen]
    assert any("needs the column 'agent'" in text for text in said)
    assert any("answers no row of the batch: no finite number" in text for text in said)


@pytest.mark.parametrize("kind", ["object", "bfloat16", "pandas"])
def test_a_null_reward_of_a_row_counts_0_whatever_holds_the_column(kind: str) -> None:
    """These are read-only where they were converted: "assignment destination is read-only", without a column's name."""
    paid: Any = np.array([0.5, None, 0.25, 0.0], object)
    if kind == "bfloat16":
        paid = jnp.array([0.5, 0.0, 0.25, 0.0], jnp.bfloat16)
    elif kind == "pandas":
        paid = pytest.importorskip("pandas").Series([0.5, None, 0.25, 0.0], dtype=object)
    rows = {"group": ["q"] * 4, "trace": list("aabb"), "reward": np.array([1.0, 1.0, 0.0, 0.0])}
    with warnings.catch_warnings(action="ignore"):
        result = RowAdvantages("discounted_return")(**rows, event_reward=paid)
    assert result.advantages.tolist() == [1.5, 1.0, 0.25, 0.0]


@pytest.mark.parametrize("scalar", [np.array, jnp.asarray])
def test_columns_may_be_lists_of_arrays_without_dimensions(scalar: Any) -> None:
    """A loop over rows that calls a model gathers them; tensors were read, and arrays refused."""
    rows: dict[str, list[Any]] = {
        "group": [7, 7, 7], "trace": [0, 1, 2], "reward": [1.0, 0.0, 0.5], "order": [2, 1, 0], "where": [True] * 3,
    }  # fmt: skip
    plain = RowAdvantages("rloo")(**rows)
    arrays = RowAdvantages("rloo")(**{name: [scalar(entry) for entry in column] for name, column in rows.items()})
    assert arrays.advantages.tolist() == plain.advantages.tolist() == [0.75, -0.75, 0.0]
    del rows["where"]
    read = [credit.from_columns(**{name: [of(entry) for entry in column] for name, column in rows.items()})[1]
            for of in (scalar, lambda entry: entry)]  # fmt: skip
    assert read[0].tolist() == read[1].tolist()
    with pytest.raises(ColumnError, match="expected texts or numbers, all of one type"):
        credit.from_columns(**rows | {"reward": [scalar(1.0), "one", 0.0]})


def test_columns_of_pandas_with_unlike_indices_are_warned_of() -> None:
    """Sorted rewards were taken by their place beside unsorted ids, without a word."""
    pd = pytest.importorskip("pandas")
    reward = pd.Series([1.0, 0.0, 0.5])
    rows = {"group": pd.Series(["q"] * 3), "trace": pd.Series([0, 1, 2])}
    RowAdvantages("rloo")(**rows, reward=reward)
    credit.from_columns(**rows, reward=reward)
    for call in (RowAdvantages("rloo"), credit.from_columns):
        with pytest.warns(UserWarning, match="'group' and 'reward' have unlike indices of pandas"):
            call(**rows, reward=reward.sort_values())


@pytest.mark.parametrize(("method", "option"), [("gae", {"lambda_": 2.0}), ("grpo", {"ddof": 7})])
def test_options_out_of_bounds_are_refused_where_they_are_stated(method: str, option: dict[str, Any]) -> None:
    """They were refused at the first batch, hours after the start of a run."""
    with pytest.raises(CreditError, match=f"{next(iter(option))} is"):
        RowAdvantages(method, **option)
