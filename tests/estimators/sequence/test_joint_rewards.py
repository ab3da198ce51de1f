"""Rewards of a joint turn count for all its actions, wherever they stand; a slow oracle moves them to its last one."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
import estimators
from credit.integrations import MissingColumnWarning, RowAdvantages
from credit.ledger.from_methods import compose_channels
from credit.metrics.candidate_values import candidate_values
from credit.metrics.event_influence import if_edited
from credit.replay.added_evidence import add_replays
from credit.replay.run_planning import plan_replays
from credit.replay.run_results import Results
from graphs.joint_rewards import turn_ends, with_joint_rewards
from graphs.padding import Sizes, pad, unpad
from graphs.structure.prefix import pack, prefix
from graphs.structure.whole_groups import cut_groups
from graphs.turn_ends import ends_of_turns

METHODS: dict[str, dict[str, Any]] = {
    "discounted_return": {"discount": 0.9},
    "gae": {"lambda_": 0.5},
    "critic": {},
    "turn_baseline": {},
    "mt_grpo": {},
    "igpo": {},
    "hae": {},
    "stop_credit": {},
}
VALUES = {
    "gae": ("value",),
    "critic": ("value",),
    "hae": ("value", "value_high", "segment"),
    "stop_credit": ("stop_propensity",),
}


def ends(trace: list[int], agent: list[str], context: list[Any]) -> list[int]:
    """By plain loops: the end of the joint turn that each row stands in, and of the one that stands there."""
    result = list(range(len(trace)))
    for t in set(trace):
        here = [i for i in range(len(trace)) if trace[i] == t]
        spans = []
        for c in {context[i] for i in here} - {None}:
            of_turn = [i for i in here if context[i] == c]
            back = any(
                agent[i] == agent[j] == agent[k] and context[j] not in (None, c)
                for i, k in itertools.combinations(of_turn, 2)
                for j in range(i, k)
            )
            spans += [] if back else [(of_turn[0], of_turn[-1])]
        for i in reversed(here):
            result[i] = max([result[last] for first, last in spans if first <= i < last], default=i)
    return result


def drawn(seed: int, *, joint: bool) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, 6)
    trace = np.repeat(np.arange(6), lengths).tolist()
    n = len(trace)
    names = [None, "r", "s", "t"] if joint else [None]
    context = [None if c is None else f"{t % 2}{c}" for t, c in zip(trace, rng.choice(names, n), strict=True)]
    return {
        "group": [t % 2 for t in trace],
        "trace": trace,
        "agent": rng.choice(["x", "y", "z"], n).tolist(),
        "event_type": rng.choice(["message", "stop"], n).tolist(),
        "reward": rng.integers(0, 3, 6).astype(float)[trace],
        "event_reward": rng.integers(-2, 3, n).astype(float).tolist(),
        "context": context,
        "value": rng.random(n).round(2),
        "value_high": rng.random(n).round(2),
        "segment": rng.choice(["1", "2"], n).tolist(),
        "stop_propensity": np.full(n, 0.5),
    }


def numbers(method: str, rows: dict[str, Any], *, stated: bool) -> np.ndarray:
    names = VALUES.get(method, ())
    told = ("context",) if stated and any(rows["context"]) else ()
    evidence = {name: rows[name] for name in {*names, *told, "value"}}  # which tells calls of a context from copies
    columns = {name: rows[name] for name in ("group", "trace", "agent", "event_type", "reward", "event_reward")}
    graph, reward, out = credit.from_columns(**columns, evidence=evidence, events=64, agents=64, traces=8)
    graph = dataclasses.replace(graph, cluster_ids=None)  # contexts link traces, too; here is about rewards alone
    given = {name: out.evidence[name] for name in names}
    run = credit.METHODS[method].fn
    result = run(graph, reward, event_reward=out.event_reward, **given, **METHODS[method])
    return np.asarray(out.gather(np.stack([result.advantage, result.reason], 1)))


@pytest.mark.filterwarnings("ignore:'event_reward' is the outcome again")
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize(
    "method", [pytest.param(m, marks=[pytest.mark.slow] * (m not in ("gae", "turn_baseline"))) for m in METHODS]
)
def test_rewards_of_joint_turns_are_earned_at_their_last_action(method: str, joint: bool) -> None:
    """Those before it were lost for all but the first agents of the turn, under a name that said unbiased."""
    differ = 0
    for seed in range(6):
        rows = drawn(seed, joint=joint)
        end = ends(*(rows[name] for name in ("trace", "agent", "context")))
        plain = {**rows, "event_reward": np.bincount(end, rows["event_reward"], len(end)).tolist()}
        if method in ("turn_baseline", "mt_grpo"):  # here a turn is all that an agent does: it begins at its first row
            whose = zip(rows["trace"], rows["agent"], strict=True)
            begins = [rows["agent"].index(a, rows["trace"].index(t)) for t, a in whose]
            plain["agent"] = [str(end[first]) for first in begins]
        agents = {turn: {a for a, at in zip(rows["agent"], end, strict=True) if at == turn} for turn in end}
        several = np.array([len(agents[turn]) > 1 for turn in end]) & (method == "critic")
        means = np.bincount(end, rows["value"], len(end)) / np.maximum(np.bincount(end, minlength=len(end)), 1)
        plain["value"] = np.where(several, means[end], rows["value"])
        expected = np.where(several[:, None], [0, estimators.Reason.AT_ONCE], numbers(method, plain, stated=False))
        got = numbers(method, rows, stated=True)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6 if several.any() else 0)
        differ += not np.array_equal(got, numbers(method, rows, stated=False))
    assert bool(differ) == joint


JOINT: dict[str, Any] = {
    "group": ["q"] * 4,
    "trace": list("aabb"),
    "agent": ["x", "y"] * 2,
    "turn": [0] * 4,
    "reward": [0.0] * 4,
}
TREE = {"context": ["r"] * 4, "node": list("1122")}


@pytest.mark.parametrize(
    "method", [*(pytest.param(m, marks=pytest.mark.slow) for m in ("turn_baseline", "c3")), "rloo"]
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_reward_of_a_round_counts_for_all_its_agents_in_rows_and_in_files(
    method: str, place: int, tmp_path: Path
) -> None:
    step = [0.0] * 4
    step[place] = 1.0
    credit_of = RowAdvantages(method, strict=True)
    got = credit_of(**JOINT, event_reward=step, evidence=TREE).advantages
    assert got.tolist() == [1, 1, -1, -1]
    lines = [
        {"trace_id": t, "task_id": "q", "rewards": {"team": 0.0}, "events": [
            {"id": f"{t}{i}", "type": "message", "agent": "xy"[i], "context": "r", "node": t,
             "event_reward": step[2 * k + i]}
            for i in (0, 1)]}
        for k, t in enumerate("ab")
    ]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    traces = credit.read(tmp_path / "log.jsonl")
    assert np.asarray(credit.run(traces, method).advantage)[:4].tolist() == [1, 1, -1, -1]


@pytest.mark.parametrize("method", ["turn_baseline", "discounted_return"])
def test_the_gradient_of_each_agent_of_a_joint_turn_is_the_true_one(method: str) -> None:
    """Over all choices of y in two traces: E[A (y - 1/2)] is the derivative 1/4 of y's mean; it was 0."""
    credit_of = RowAdvantages(method)
    total = 0.0
    for first, second in itertools.product((0, 1), repeat=2):
        step = [float(first), 0.0, float(second), 0.0]
        got = np.asarray(credit_of(**JOINT, event_reward=step, evidence=TREE).advantages)[1::2]
        total += float(np.mean(got * (np.array([first, second]) - 0.5))) / 4
    assert total == pytest.approx(0.25)


def test_a_chain_of_one_agent_keeps_the_rewards_of_its_own_events() -> None:
    graph, reward, rows = credit.from_columns(**JOINT, event_reward=[1.0, 0, 0, 0], evidence=TREE)
    got = credit.discounted_return(graph, reward, event_reward=rows.event_reward, along="agent").advantage
    assert rows.gather(got).tolist() == [1, 0, 0, 0]


def test_the_mask_goes_with_its_events() -> None:
    graph, reward, rows = credit.from_columns(**JOINT, event_reward=[1.0, 0, 0, 0], evidence=TREE)
    mask = np.asarray(graph.joint_mask)
    assert mask[:4].tolist() == [True, False, True, False]
    larger = pad(unpad(graph), Sizes(events=256, edges=4, agents=256, traces=256))
    np.testing.assert_array_equal(unpad(larger).joint_mask, mask[:4])
    for earned in (None, np.zeros(graph.num_events)):  # claims count a joint turn once, paid or not
        np.testing.assert_array_equal(
            with_joint_rewards(graph, rows.evidence["context"], earned).joint_mask, graph.joint_mask
        )
    cut = cut_groups(graph, 1)
    assert cut.join_events(cut.graph.joint_mask).tolist() == mask.tolist() == pack(graph).joint_mask.tolist()
    alone = prefix(graph, 0, 1)
    got = credit.discounted_return(alone, reward, event_reward=rows.event_reward).advantage
    assert float(np.asarray(got)[0]) == 1.0  # the turn's last action is not there


def test_batches_of_joint_turns_are_compiled_by_warmup() -> None:
    credit_of = RowAdvantages("turn_baseline", rows=8)
    credit_of.warmup(evidence=["context", "node"], event_reward=True)
    for step in ([1.0, 0, 0, 0], [0.0, 1, 0, 0]):
        result = credit_of(**JOINT, event_reward=step, evidence=TREE)
        assert result.metrics["credit/compilations"] == 0


def asked(place: int) -> list[dict[str, Any]]:
    """A scribe and a lead act at once, and the lead asks one of two; the reward of both stands at one of them."""
    lines = []
    for number in range(12):
        picked = ("coder", "tester")[number % 2]
        step = [0.0, 0.0]
        step[place] = float(number % 2) + number / 8
        events = [{"id": f"e{i}", "type": "message", "agent": agent, "context": "r", "event_reward": step[i],
                   "propensity": 0.5} for i, agent in enumerate(("scribe", "lead"))]  # fmt: skip
        events.append({"id": "e2", "type": "message", "agent": picked, "event_reward": 0.25})
        edges = [{"src": "e1", "dst": "e2", "type": "message"}]
        line = {"trace_id": f"t{number}", "task_id": "q", "rewards": {"team": 0.5}, "events": events, "edges": edges}
        lines.append(line | {"costs": {}})
    return lines


def test_numbers_of_later_rewards_are_those_wherever_a_joint_turn_states_them(tmp_path: Path) -> None:
    """At its first action the reward was no later reward of the lead: runs, candidates and edits were short of it."""
    found = []
    for place in (0, 1):
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in asked(place)))
        traces = credit.read(tmp_path / "log.jsonl")
        plan = plan_replays(traces, "value", 2 * traces.sizes.events)
        jobs = len(plan.jobs)
        rewards = tuple({0: float(job), 1: float(job) + 0.5} for job in range(jobs))
        results = Results(rewards, (frozenset[int](),) * jobs, {}, (0,) * jobs, ({},) * jobs)
        known = add_replays(traces, plan, results)
        values = [(one.candidate, one.value, one.stderr) for one in candidate_values(traces)]
        assert len(values) == 2 and all(value is not None for _, value, _ in values)
        edits = [if_edited(known, row).change for row in range(6)]
        found.append((known.evidence["value"].array[: traces.sizes.events].tolist(), values, edits))
    assert found[0] == found[1]


def test_rewards_of_a_channel_are_those_of_its_joint_turns() -> None:
    """The log has no rewards at events; its tokens are a channel with some."""
    evidence = TREE | {"tokens": [8, 0, 2, 0]}
    moved = TREE | {"tokens": [0, 8, 0, 2]}
    found = []

    def run_all(traces: credit.Traces, names: Any) -> dict[str, credit.Credit]:
        return {name: credit.run(traces, name) for name in names}

    for one in (evidence, moved):
        _, _, rows = credit.from_columns(**JOINT, evidence=one)
        claims = compose_channels(rows.traces, {"tokens": -1.0}, ["turn_baseline"], run_all, outcome="team")[1]
        found.append(np.asarray(claims["tokens/turn_baseline"].advantage)[:4].tolist())
    assert found[0] == found[1]


ROUND: dict[str, Any] = {
    "group": ["q"] * 6,
    "trace": list("aaabbb"),
    "agent": list("xyxxyx"),
    "turn": [0, 0, 1] * 2,
    "order": [0, 0, 1] * 2,
    "reward": np.array([1.0, 1, 1, 0, 0, 0]),
    "event_reward": np.array([0.5, 0, 0, -0.5, 0, 0]),
}


@pytest.mark.parametrize("method", ["turn_baseline", "discounted_return", "gae"])
def test_rows_at_one_place_are_a_round_in_any_order(method: str) -> None:
    """Two agents act at once, and one row states the reward of both: which stood first decided the numbers."""
    evidence = {"value": np.full(6, 0.25)} if method == "gae" else {}
    seen = []
    for places in itertools.permutations(range(3)):
        at = np.array([*places, *(3 + np.array(places[::-1]))])
        credit_of = RowAdvantages(method, strict=True, **({"lambda_": 1.0} if method == "gae" else {}))
        columns = {name: np.asarray(column)[at] for name, column in ROUND.items()}
        got = np.zeros(6)
        got[at] = credit_of(**columns, evidence=evidence).advantages
        seen.append(got.tolist())
    expected = {
        "turn_baseline": [2, 2, 1, -2, -2, -1],
        "discounted_return": [1.5, 1.5, 1, -0.5, -0.5, 0],
        "gae": [1.25, 1.25, 0.75, -0.75, -0.75, -0.25],
    }
    assert seen == [expected[method]] * 6
    graph, reward, out = credit.from_columns(**ROUND, evidence=evidence)
    plain = credit.METHODS[method].fn(
        graph, reward, event_reward=out.event_reward,
        **({"value": out.evidence["value"], "lambda_": 1.0} if method == "gae" else {}),
    )  # fmt: skip
    assert out.gather(plain.advantage).tolist() == expected[method]


def test_rows_of_one_agent_at_one_place_leave_their_order_unknown() -> None:
    """One agent does not act at once with itself, so nothing states which of its rows came first.

    Those of several agents stand by their names.
    """
    columns = {name: column for name, column in ROUND.items() if name not in ("agent", "turn")}
    in_order, tied = [1.5, 1, 1, -0.5, 0, 0], ROUND["order"]
    at_once = {"agent": ROUND["agent"], "turn": ROUND["turn"]}
    cases: list[Any] = [(tied, {}, in_order, False), ([0, 1, 2] * 2, {}, in_order, True),
                        (tied, at_once, [1.5, 1.5, 1, -0.5, -0.5, 0], True)]  # fmt: skip
    for order, more, expected, known in cases:
        with contextlib.nullcontext() if known else pytest.warns(MissingColumnWarning, match="stand at one order="):
            result = RowAdvantages("discounted_return")(**{**columns, **more, "order": order})
        assert result.advantages.tolist() == expected
        assert ("credit/condition/ordered" in result.metrics) == known


def test_a_round_by_order_compiles_no_more_than_rows_in_order() -> None:
    credit_of = RowAdvantages("turn_baseline", rows=8)
    credit_of.warmup(event_reward=True)
    without = {name: column for name, column in ROUND.items() if name != "order"}
    for columns in (without, ROUND):
        assert credit_of(**columns).metrics["credit/compilations"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_joint_turns_end_alike_on_the_host_and_in_compiled_functions(seed: int) -> None:
    """A prefix, too, which may end within a turn."""
    rows = drawn(seed, joint=True)
    columns = {name: rows[name] for name in ("group", "trace", "agent", "reward")}
    evidence = {name: rows[name] for name in ("context", "value")}
    graph, _, _ = credit.from_columns(**columns, evidence=evidence, events=64)
    lengths = np.bincount(rows["trace"])
    cut = [prefix(graph, trace, int(length) - 1) for trace, length in enumerate(lengths) if length > 1]
    for one in (graph, *cut):
        np.testing.assert_array_equal(turn_ends(one), ends_of_turns(one))
