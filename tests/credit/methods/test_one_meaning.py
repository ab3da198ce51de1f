"""Each key of evidence has one meaning: logs in which another reading of it would give another number."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import credit
from credit.integrations import RowAdvantages
from credit.integrations.trainer_credit import TrainerCredit
from credit.ray.row_actors import RowActor, _sent
from graphs.errors import CreditError, MissingColumnWarning
from graphs.event_graph import EventGraph


def columns(**given: Any) -> tuple[EventGraph, np.ndarray, credit.Rows]:
    return credit.from_columns(**given)


def advantages(name: str, batch: tuple[EventGraph, np.ndarray, credit.Rows], **options: Any) -> list[float]:
    rows: np.ndarray = batch[2].gather(credit.run(batch[2], name, **options))
    return [round(float(x), 4) for x in rows]


TWO_TASKS = {"group": list("qqrr"), "trace": list("abcd"), "reward": [1.0, 0.0, 4.0, 0.0]}


@pytest.mark.slow
@pytest.mark.parametrize("node", [list("wxyz"), list("wxwx")])
def test_a_context_and_a_node_are_of_their_task(node: list[str]) -> None:
    """Over both tasks a sibling of `a` would be worth 4."""
    batch = columns(**TWO_TASKS, evidence={"context": ["c"] * 4, "node": node})
    assert advantages("c3", batch) == [1.0, -1.0, 4.0, -4.0]


@pytest.mark.parametrize(
    ("first", "second", "clusters"),
    [
        ({}, {}, [0, 0, 2, 3]),  # continued from one frozen prefix
        ({"alternative": "x"}, {}, None),  # each trace drew x for itself, and met the situation again
        ({"node": "own", "alternative": "x"}, {}, None),
        ({"node": "shared"}, {}, [0, 0, 2, 3]),
        ({"node": "shared", "alternative": "x"}, {"alternative": "y"}, [0, 0, 2, 3]),
    ],
)
def test_a_context_is_a_frozen_prefix_unless_earlier_choices_are_told_apart(
    first: dict[str, str], second: dict[str, str], clusters: list[int] | None
) -> None:
    """Two traces of a context at their second action; two others beside them."""
    evidence: dict[str, list[Any]] = {name: [None] * 8 for name in ("context", "node", "alternative")}
    for trace in (0, 1):
        evidence["context"][2 * trace + 1] = "c"
        for at, given in ((0, first), (1, second)):
            for name, value in given.items():
                evidence[name][2 * trace + at] = f"{value}{trace}" if value == "own" else value
    graph, _, _ = columns(group=[0] * 8, trace=np.repeat(range(4), 2), reward=[0.0] * 8, evidence=evidence)
    found = None if graph.cluster_ids is None else np.asarray(graph.cluster_ids)[:4].tolist()
    assert found == clusters


@pytest.mark.parametrize("beside", [{}, {"alternative": ["x", "y", "x", "z", None, None]}])
def test_a_sibling_parent_is_a_replay_whatever_else_is_told(beside: dict[str, list[Any]]) -> None:
    """Two traces continue from one event: were they independent, each would be in the other's baseline."""
    evidence = {"sibling_parent": [None, "e", None, "e", None, None], **beside}
    batch = columns(group=[0] * 6, trace=list("aabbcc"), reward=np.repeat([1.0, 0.0, 0.5], 2), evidence=evidence)
    assert advantages("rloo", batch) == [0.5, 0.5, -0.5, -0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"context": ["c", "d", "e", "e"]}, "state different values of 'context' there"),
        ({"alternative": ["x", "y", None, None]}, "state different values of 'alternative' there"),
        ({"propensity": [0.5, 0.25, None, None]}, "state different values of 'propensity' there"),
        ({"target_propensity": [0.5] * 4}, "the log states 'target_propensity' but no 'alternative'"),
        ({"agent": ["solver", "judge", "solver", "solver"]}, "state different values of 'agent' there"),
    ],
)
def test_traces_that_state_two_draws_under_one_node_are_refused(changed: dict[str, Any], why: str) -> None:
    """Such a log names by `node` what was chosen: its traces were no baseline for each other."""
    evidence = {"node": list("xxyz")} | changed
    agent = evidence.pop("agent", None)
    given = {"group": [0] * 4, "trace": list("abcd"), "reward": [1.0, 0.0, 1.0, 0.0]}
    with pytest.raises(credit.CreditError, match=f"traces 'a' and 'b' share a 'node', .*{why}") as caught:
        columns(**given, agent=agent, evidence=evidence)
    assert "log what it chose as 'alternative' in place of 'node'" in str(caught.value)
    assert columns(**given, agent=agent, evidence=evidence | {"node": list("wxyz")})[0].cluster_ids is None


def test_a_node_has_one_choice_before_it() -> None:
    """Of `left` and `right`, named alike after different first choices, a replay tree has two draws."""
    with pytest.raises(credit.CreditError, match="state different values of 'node before it' there"):
        columns(group=[0] * 4, trace=list("aabb"), reward=[1.0, 1, 0, 0], evidence={"node": ["w", "left", "x", "left"]})


LEAD_AND_WORKER = {"group": ["q"] * 4, "trace": list("aabb"), "agent": ["lead", "worker"] * 2, "reward": [1.0, 1, 0, 0]}
CHAIN = {"context": ["q/1", "q/2"] * 2, "node": ["1", "p", "2", "s"], "alternative": ["good", "x", "bad", "x"]}
ROUND = CHAIN | {"context": ["q|lead", "q|worker"] * 2}  # side by side, in a context each since their prompts differ


@pytest.mark.parametrize("evidence", [CHAIN, ROUND, CHAIN | {"node": [None] * 4}])
def test_a_context_below_two_choices_is_no_frozen_prefix(evidence: dict[str, list[Any]]) -> None:
    """The worker got the outcome of the lead's choice, as an unbiased difference from its sibling."""
    with pytest.raises(
        credit.CreditError, match=r"'a' and 'b' share a 'context', .*agents or values of 'alternative' at .*before"
    ):
        columns(**LEAD_AND_WORKER, evidence=evidence)
    with pytest.raises(credit.CreditError, match="traces 'a' and 'b' share a 'context'"):
        RowAdvantages("c3")(**LEAD_AND_WORKER, evidence=evidence)


def test_agents_of_an_earlier_joint_turn_chose_differently() -> None:
    given = {"group": [0] * 6, "trace": list("aaabbb"), "agent": ["x", "y", "z"] * 2, "reward": [1.0] * 6}
    same = {"context": list("ccdccd"), "alternative": list("lrmlrm")}
    columns(**given, evidence=same)
    columns(**given | {"agent": ["x", "y", "z", "y", "x", "z"]}, evidence=same | {"alternative": list("lrmrlm")})
    for agent, other in ((["x", "y", "z"] * 2, "lrmllm"), (["x", "y", "z", "y", "x", "z"], "lrmlrm")):
        with pytest.raises(credit.CreditError, match="share a 'context'"):
            columns(**given | {"agent": agent}, evidence=same | {"alternative": list(other)})


@pytest.mark.parametrize(
    "changed",
    [
        {"alternative": ["good", "x", "good", "x"]},  # by chance, as `credit siblings` finds
        {"alternative": [None] * 4, "node": ["1", "p", "1", "s"]},  # one draw
        {"alternative": [None] * 4, "node": [None, "p", None, "s"]},  # frozen, whatever the first context says
        {"alternative": [None] * 4, "node": [None, "p", "2", "s"]},
        {"alternative": ["good", "x", None, "x"], "node": ["1", "p", "1", "s"]},
        {"context": [None, "q/2"] * 2, "alternative": ["good", "x"] * 2},
        {"context": ["q/1", "q/2", "q/1", "q/3"]},
        {"context": ["q/1", "q/2", "another", "q/2"], "alternative": [None] * 4, "node": [None, "p", None, "s"]},
        {"context": ["q/1"] * 4},  # a joint turn
        {"context": list("xyyx"), "alternative": list("lrrl"), "agent": ["lead", "worker", "worker", "lead"]},
    ],
)
def test_a_context_that_nothing_contradicts_is_taken(changed: dict[str, list[Any]]) -> None:
    changed = dict(changed)
    team = LEAD_AND_WORKER | {"agent": changed.pop("agent", LEAD_AND_WORKER["agent"])}
    graph, reward, rows = columns(**team, evidence=CHAIN | changed)
    credit.c3(graph, reward, **{name: rows.evidence[name] for name in ("context", "node")})


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"alternative": [None] * 4}, "do not all state an 'alternative' there"),
        ({"alternative": ["good", "x", None, "x"]}, "do not all state an 'alternative' there"),
        ({"alternative": [None] * 4, "context": [None, "q/2"] * 2}, "do not all state an 'alternative' there"),
        ({"context": [None, "q/2"] * 2}, "different agents or values of 'alternative'"),
        ({"context": [None, "q/2"] * 2, "node": [None] * 4}, "different agents or values of 'alternative'"),
        ({"context": ["q/1", "q/2", "another", "q/2"]}, "drew in different contexts"),
        ({"context": ["q/1", "q/2", "another", "q/2"], "alternative": [None] * 4}, "drew in different contexts"),
    ],
)
def test_a_context_below_draws_that_are_not_known_to_be_alike_is_refused(changed: dict[str, Any], why: str) -> None:
    """The worker would get the outcome of the lead's choice, which the log does not even state."""
    with pytest.raises(credit.CreditError, match=f"traces 'a' and 'b' share a 'context', but .*{why}") as caught:
        columns(**LEAD_AND_WORKER, evidence=CHAIN | changed)
    assert "give the decision one 'context' and 'alternative'; to replays, one 'node', too" in str(caught.value)
    with pytest.raises(credit.CreditError, match="share a 'context'"):
        RowAdvantages("c3")(**LEAD_AND_WORKER, evidence=CHAIN | changed)


def test_a_choice_is_stated_by_one_trace_of_a_draw_for_all() -> None:
    """Of four traces two continue one draw, of which one states what was chosen."""
    given = {"group": [0] * 8, "trace": list("aabbccdd"), "reward": [1.0] * 8}
    evidence = {"context": list("cdcdcdcd"), "node": ["n", "1", "n", "2", "m", "3", "k", "4"]}
    stated = {"alternative": ["x", None, None, None, "x", None, "x", None]}
    graph, _, _ = columns(**given, evidence=evidence | stated)
    assert np.asarray(graph.cluster_ids)[:4].tolist() == [0, 0, 2, 3]
    with pytest.raises(credit.CreditError, match="traces 'a' and 'd' share a 'context', but drew for themselves"):
        columns(**given, evidence=evidence | {"alternative": ["x", None, None, None, "x", None, None, None]})


def test_decisions_without_a_context_are_compared_as_far_as_they_go() -> None:
    """The first of two unnamed choices differs; the second is alike."""
    given = {"group": [0] * 6, "trace": list("aaabbb"), "reward": [1.0] * 6}
    evidence = {"context": [None, None, "c"] * 2, "alternative": ["l", "x", None, "r", "x", None]}
    with pytest.raises(credit.CreditError, match="state different agents or values of 'alternative'"):
        columns(**given, evidence=evidence)
    columns(**given, evidence=evidence | {"alternative": ["l", "x", None] * 2})


@pytest.mark.slow
def test_an_anchor_is_of_its_task() -> None:
    alike, apart = (
        advantages("gigpo", columns(**TWO_TASKS, evidence={"anchor": anchor})) for anchor in (["o"] * 4, list("oopp"))
    )
    assert alike == apart and alike[0] == pytest.approx(-alike[1])


@pytest.mark.study
def test_a_completion_is_of_its_agent() -> None:
    """Both agents write "x" and "y"; taken for one they would stand for four joint turns each."""
    found = []
    for other in ("xy", "uv"):
        pairs = [(a, b) for a in "xy" for b in other]
        batch = columns(
            group=[0] * 8,
            trace=np.repeat(range(4), 2),
            agent=["one", "two"] * 4,
            reward=np.repeat([1.0, 0.0, 0.5, 0.0], 2),
            evidence={
                "context": ["c"] * 8,
                "node": np.repeat(["n0", "n1", "n2", "n3"], 2),
                "completion": [text for pair in pairs for text in pair],
            },
        )
        completion = batch[2].evidence["completion"]
        found.append(advantages("magrpo", batch, joint_mode="cross", completion=completion))
    assert found[0] == found[1] and found[0][:2] == [0.25, 0.75]


@pytest.mark.study
def test_a_propensity_is_that_of_the_alternative_that_was_chosen() -> None:
    """A contrast counts by what else was possible, 1 − π; a draw by π_e / π_b."""
    graph, reward, _ = columns(group=[0] * 2, trace=[0, 1], reward=[1.0, 0.0])
    chance = np.where(np.arange(graph.num_events) == 0, 0.25, 0.75).astype(np.float32)
    contrast = credit.claim(graph, np.ones(graph.num_events), estimand="contrast", source="spawns")
    ledger = credit.compose(graph, reward, [contrast], propensity=chance)
    assert np.asarray(ledger.increments)[:2].tolist() == [0.75, 0.25]
    choice = np.array([0, 1, 1, 1] * 5)
    batch = columns(
        group=[0] * 20,
        trace=range(20),
        reward=1.0 - choice,
        evidence={
            "context": ["c"] * 20,
            "alternative": choice.astype(str),
            "propensity": np.where(choice == 0, 0.25, 0.75),
            "target_propensity": np.where(choice == 0, 0.5, 0.5),
        },
    )
    assert advantages("off_policy", batch)[:2] == [0.5, -0.5]  # V = 0.5 · 1 + 0.5 · 0


@pytest.mark.slow
def test_a_block_goes_over_tasks() -> None:
    """Sub-agents of two tasks in one block are normalised together, main agents by task."""
    given = {
        "group": list("qqrr"),
        "trace": list("aabb"),
        "agent": ["main", "sub"] * 2,
        "parent": [None, "main"] * 2,
        "reward": [1.0, 1.0, 0.0, 0.0],
    }
    assert advantages("mrlx", columns(**given, evidence={"block": [None, "b"] * 2})) == [0.0, 0.7071, 0.0, -0.7071]
    assert advantages("mrlx", columns(**given, evidence={"block": [None, "b", None, "c"]})) == [0.0] * 4


@pytest.mark.slow
def test_a_stage_says_which_actions_are_together_and_is_no_distance() -> None:
    given = {"group": [0] * 3, "trace": ["a"] * 3, "row_reward": [1.0, 0.5, 0.25]}
    near, far = (advantages("maporl", columns(**given, evidence={"stage": s})) for s in ([0, 1, 2], [0, 4, 90]))
    assert near == far != advantages("maporl", columns(**given, evidence={"stage": [0, 1, 1]}))


@pytest.mark.slow
def test_a_value_is_what_is_still_to_come() -> None:
    """Rewards at events are earned once: GAE at λ = 0 and differences of the critic are the same increments."""
    batch = columns(
        group=[0] * 3,
        trace=["a"] * 3,
        reward=[1.0] * 3,
        event_reward=[0.5, 0.0, 0.25],
        evidence={"value": [2, 1.5, 1.0]},
    )
    increments = [0.0, -0.5, 0.25]
    assert advantages("gae", batch, lambda_=0.0) == increments == advantages("critic", batch)
    ledger = credit.compose(
        batch[0], batch[1] + np.where(batch[0].trace_mask, 0.75, 0), [credit.run(batch[2], "critic")]
    )
    assert batch[2].gather(ledger.increments).tolist() == increments


TEAMS = {"group": [0] * 8, "trace": np.repeat(list("abcd"), 2), "reward": np.repeat([1.0, 0.0, 1.0, 0.5], 2)}


@pytest.mark.parametrize(
    ("method", "key", "numbers", "also"),
    [
        ("shapley", "share", [0.5, 0.25], {}),
        ("matpo", "format_score", [1.0, 0.25], {}),
        pytest.param("mrlx", "format_score", [1.0, 0.25], {"block": ["b"] * 8}, marks=pytest.mark.slow),
        pytest.param("mrlx", "block", ["b", "c"], {}, marks=pytest.mark.slow),
        pytest.param("sepo", "self_rating", [0.75, 0.25], {}, marks=pytest.mark.slow),
        pytest.param("ccpo", "solo_reward", [0.75, 0.25], {}, marks=pytest.mark.slow),
        pytest.param(
            "gigpo", "env_reward", [1.0, 0.0], {"env_step": [0] * 8, "anchor": ["o"] * 8}, marks=pytest.mark.slow
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::graphs.errors.MissingColumnWarning")  # all are one agent's
def test_what_is_one_number_of_an_agent_or_a_step_is_none_where_two_are_stated(
    method: str, key: str, numbers: list[Any], also: dict[str, Any]
) -> None:
    """The first of several would count for all: which it is, the log does not say."""
    team = TEAMS | ({"agent": ["main", "sub"] * 4, "parent": [None, "main"] * 4} if method == "mrlx" else {})
    if method == "mrlx":
        team = {name: np.repeat(column, 2) for name, column in team.items()}
        also = {name: column * 2 for name, column in also.items()}
    many, per_trace = len(team["group"]), len(team["group"]) // 4
    last = np.repeat(numbers[:1], many).tolist()
    once = columns(**team, evidence={key: last, **also})
    twice = columns(**team, evidence={key: [*last[:-1], numbers[1]], **also})
    names = [key, *also]
    wanted, found = (credit.run(batch[2], method, evidence=names) for batch in (once, twice))
    assert once[2].gather(wanted.valid)[-1] and not twice[2].gather(found.valid)[-1]
    assert twice[2].gather(found.valid)[:-per_trace].any()


@pytest.mark.parametrize("method", ["difference_reward", "stop_credit"])
def test_an_effect_is_no_contrast_with_what_else_was_possible(method: str) -> None:
    """Of three choices worth 1, 0 and 0.5, each a third: (1 − π) (R − R of the last) is (0.33, −0.33, 0), not R − V."""
    evidence = {"propensity": [1 / 3] * 3, "counterfactual_reward": [0.5] * 3, "stop_propensity": [1 / 3] * 3}
    batch = columns(group=[0] * 3, trace=list("abc"), reward=[1.0, 0.0, 0.5], evidence=evidence)
    options = {"basis": "replays", "amount": "value", "evidence": ["counterfactual_reward"]}
    effect = credit.run(batch[2], method, **(options if method == "stop_credit" else {}))
    with pytest.warns(credit.ledger.RefusedClaimWarning, match="estimates an effect"):
        ledger = credit.compose(batch[0], batch[1], [effect], propensity=batch[2].evidence["propensity"])
    assert effect.estimand == "effect" and "state estimand 'contrast'" in ledger.refused[method]


@pytest.mark.slow
@pytest.mark.parametrize("null", [[0.5, None, 0.25, 0.0], pa.array([0.5, None, 0.25, 0.0]),
    pd.Series([0.5, np.nan, 0.25, 0.0]), np.ma.masked_array([0.5, np.nan, 0.25, 0.0], [0, 1, 0, 0])])  # fmt: skip
def test_a_null_reward_of_a_row_counts_nothing_and_is_said(null: Any, tmp_path: Path) -> None:
    """A table counted it 0 without a word, and a loop refused it."""
    rows: dict[str, Any] = {"group": ["q"] * 4, "trace": list("aabc"), "reward": np.array([1.0, 1.0, 0.0, 0.0])}
    said, whole = "'event_reward'.* is null in 1 of 4 rows, where it counts 0", [1.375, 1.375, -0.5, -0.875]
    method = RowAdvantages("rloo")
    with pytest.warns(MissingColumnWarning, match=said):
        got = method(**rows, event_reward=null)
    assert got.advantages.tolist() == whole and got.metrics["credit/unpaid"] == 0.25
    sent = pickle.loads(pickle.dumps(_sent(rows["reward"], {**rows, "event_reward": null} | {"reward": None})[0]))
    with pytest.warns(MissingColumnWarning, match=said):
        assert RowActor("rloo", {}).compute(sent)[0].tolist() == whole
    with pytest.warns(UserWarning, match=said):
        assert advantages("rloo", columns(**rows, event_reward=null)) == whole
    pq.write_table(pa.table({**rows, "event_reward": pa.array(null, from_pandas=True)}), tmp_path / "rows.parquet")
    traces = credit.read(tmp_path / "rows.parquet")
    (problem,) = traces.problems
    assert (problem.kind, problem.value) == ("some-without-event-reward", "null in 1 of 4 rows, where it counts 0")
    table = credit.table(traces, credit.run(traces, "rloo"))
    assert table["advantage"].to_pylist() == whole
    labels = [
        {} if step == 0.5 else {"event_reward": step} for step in (0.25, 0.5, 0.0, 1.0)
    ]  # beside a trainer's rows
    read = TrainerCredit(RowAdvantages("rloo"), trainer="Trainer 2.1", on_cpu=False).columns_of(labels)
    assert read["event_reward"] == [0.25, None, 0.0, 1.0]
    with pytest.raises(CreditError, match="is null in 1 of 4 rows"):
        RowAdvantages("rloo", strict=True)(**rows, event_reward=null)
    for refuse in (method, columns):
        with pytest.raises(CreditError, match="'event_reward': no finite number"):
            refuse(**rows, event_reward=np.array([0.5, np.nan, 0.25, 0.0]))
