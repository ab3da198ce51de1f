"""Several agents that draw in one context: nested rollouts in plain Python against every door of the methods.

A rollout tree has decisions of one agent, joint turns whose agents share a node, and agents that act side by side from
one prefix with nodes of their own. The siblings of a draw are the draws of other traces, never those of a partner.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import credit
import estimators
from credit.cli import cli
from credit.integrations import RowAdvantages
from estimators import REASONS, Reason
from estimators.counterfactual.replays import subtree_values

SEEDS = (1, 2, 3, 4, 7, 8)  # of up to 128 rows: logs, rows and what is written by hand share compiled functions
AGENTS = ("planner", "worker", "critic")
KINDS = ("solo", "joint", "parallel")


@dataclasses.dataclass
class Draw:
    """One draw in a context: what it led to, outcomes of traces that end in it, and decisions that follow it."""

    names: dict[str, str]
    alternative: str
    ended: list[float]
    below: list[Decision]

    def value(self, discount: float = 1.0) -> float:
        """The mean over what followed."""
        return mean([*self.ended, *(discount * d.value(discount) for d in self.below)])


@dataclasses.dataclass
class Decision:
    context: str
    draws: list[Draw]

    def value(self, discount: float) -> float:
        return mean([draw.value(discount) for draw in self.draws])


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


class Rollouts:
    """Nested rollouts of one task, their rows as logged, and what each row should get."""

    def __init__(self, seed: int, task: str, depth: int = 3, always: str = "") -> None:
        self.rng, self.task, self.count, self.always = np.random.default_rng(seed), task, 0, always
        self.top = self.decision(depth)
        self.rows: list[dict[str, Any]] = []
        self.draws: list[tuple[Decision, Draw]] = []  # of each row
        self.traces = 0
        self.walk(self.top, [])

    def name(self) -> str:
        self.count += 1
        return f"{self.task}{self.count}"

    def decision(self, depth: int) -> Decision:
        rng = self.rng
        kind = self.always or str(rng.choice(KINDS))
        agents = [str(rng.choice(AGENTS))] if kind == "solo" else list(AGENTS[: rng.integers(2, 4)])
        context, draws = self.name(), []
        for _ in range(int(rng.integers(2 if depth > 2 else 1, 4))):
            shared = self.name()
            names = {agent: shared if kind != "parallel" else self.name() for agent in agents}
            below = [self.decision(depth - 1) for _ in range(int(rng.integers(0, 2)))] if depth > 1 else []
            ended = int(rng.integers(0 if below else 1, 3))
            outcomes = rng.normal(size=ended).round(3).tolist()
            draws.append(Draw(names, str(rng.integers(0, 2)), outcomes, below))
        return Decision(context, draws)

    def walk(self, decision: Decision, path: list[tuple[Decision, Draw]]) -> None:
        for draw in decision.draws:
            here = [*path, (decision, draw)]
            for outcome in draw.ended:
                self.log(here, outcome)
            for below in draw.below:
                self.walk(below, here)

    def log(self, path: list[tuple[Decision, Draw]], outcome: float) -> None:
        """The rows of one trace; the agents of a joint turn in any order."""
        trace, place = f"{self.task} trace {self.traces}", 0
        self.traces += 1
        for decision, draw in path:
            for agent in self.rng.permutation(sorted(draw.names)).tolist():
                self.rows.append(
                    {"group": self.task, "trace": trace, "order": place, "agent": agent, "reward": outcome}
                    | {"context": decision.context, "node": draw.names[agent], "alternative": draw.alternative}
                )
                self.draws.append((decision, draw))
                place += 1


def c3(decision: Decision, draw: Draw) -> float | None:
    others = [d.value() for d in decision.draws if d is not draw]
    return draw.value() - mean(others) if others else None


def magrpo(decision: Decision, draw: Draw) -> float | None:
    return draw.value(0.9) - decision.value(0.9) if len(decision.draws) > 1 else None


def off_policy(decision: Decision, draw: Draw) -> float | None:
    """Doubly robust with the other draws as the model, where π_e = (0.4, 0.6) and π_b = (0.5, 0.5)."""
    chosen = sorted({d.alternative for d in decision.draws})
    if len(chosen) < 2:
        return None
    target, weight = {"0": 0.4, "1": 0.6}, {"0": 0.8, "1": 1.2}
    others = [d for d in decision.draws if d is not draw]
    rest = sum(weight[d.alternative] * d.value() for d in others) / sum(weight[d.alternative] for d in others)
    values = {a: [d.value() for d in others if d.alternative == a] for a in chosen}
    baseline = sum(target[a] * (mean(found) if found else rest) for a, found in values.items())
    return mean([d.value() for d in decision.draws if d.alternative == draw.alternative]) - baseline


ORACLES = {"c3": c3, "magrpo": magrpo, "off_policy": off_policy}
METHODS = ["c3", *(pytest.param(name, marks=pytest.mark.slow) for name in ("magrpo", "off_policy"))]
NAMES = {"c3": ("context", "node"), "magrpo": ("context", "node"), "off_policy": ("context", "alternative", "node")}


def logged(seed: int, method: str, **options: Any) -> tuple[list[dict[str, Any]], list[float | None]]:
    """Rows of several tasks and what each should get; None where a context has one alternative."""
    tasks = [Rollouts(10 * seed + k, "pqr"[k], **options) for k in range(3)]
    expected = [ORACLES[method](*draw) for task in tasks for draw in task.draws]
    return [row for task in tasks for row in task.rows], expected


def columns(rows: list[dict[str, Any]], method: str) -> tuple[dict[str, list], dict[str, list]]:
    given = {name: [row[name] for row in rows] for name in ("group", "trace", "agent", "reward", "order")}
    evidence = {name: [row[name] for row in rows] for name in NAMES[method]}
    if method == "off_policy":
        chosen = evidence["alternative"]
        evidence |= {"propensity": [0.5] * len(rows), "target_propensity": [{"0": 0.4, "1": 0.6}[a] for a in chosen]}
    return given, evidence


@functools.cache
def of_rows(method: str) -> RowAdvantages:
    return RowAdvantages(method)


def compare(advantage: Any, valid: Any, expected: list[float | None]) -> None:
    assert np.asarray(valid).tolist() == [x is not None for x in expected]
    numbers = [0.0 if x is None else x for x in expected]
    np.testing.assert_allclose(np.asarray(advantage), numbers, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", METHODS)
def test_the_function(method: str, seed: int) -> None:
    rows, expected = logged(seed, method)
    given, evidence = columns(rows, method)
    given.pop("order")  # the rows are in it
    graph, reward, found = credit.from_columns(**given, evidence=evidence)
    result = getattr(credit, method, None) or getattr(estimators, method)
    result = result(graph, reward, **{name: found.evidence[name] for name in evidence})
    compare(found.gather(result.advantage), found.gather(result.valid), expected)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("seed", SEEDS[:3])
@pytest.mark.parametrize("method", METHODS)
def test_rows_of_a_trainer_in_any_order(method: str, seed: int) -> None:
    rows, expected = logged(seed, method)
    shuffled = np.random.default_rng(seed).permutation(len(rows))
    given, evidence = columns([rows[i] for i in shuffled], method)
    reward = np.array(given.pop("reward"), np.float32)
    result = of_rows(method)(**given, reward=reward, evidence=evidence)
    compare(result.advantages, result.valid, [expected[i] for i in shuffled])


@pytest.mark.parametrize("method", METHODS)
def test_assign(method: str, tmp_path: Path) -> None:
    rows, expected = logged(1, method)
    given, evidence = columns(rows, method)
    traces: dict[str, dict[str, Any]] = {}
    for i, trace in enumerate(given["trace"]):
        record = traces.setdefault(
            trace,
            {"trace_id": trace, "task_id": given["group"][i], "events": [], "rewards": {"team": given["reward"][i]}},
        )
        event = {"id": str(i), "type": "message", "agent": given["agent"][i]}
        record["events"].append(event | {name: values[i] for name, values in evidence.items()})
    log, out = tmp_path / "log.jsonl", tmp_path / "out.parquet"
    log.write_text("\n".join(map(json.dumps, traces.values())))
    ran = CliRunner().invoke(cli, ["assign", str(log), "-o", str(out), "--method", method])
    assert ran.exit_code == 0, ran.output
    table = pyarrow.parquet.read_table(out).to_pylist()
    by_event = {int(row["event"]): row for row in table}
    found = [by_event[i] for i in range(len(rows))]
    compare([row["advantage"] for row in found], [row["valid"] for row in found], expected)


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("c3", {"own_outcome": False}),
    ("c3", {"baseline": "mean"}),
    ("c3", {"normalise": True}),
    ("c3", {"variant": "value_assisted", "mix": 0.5}),
    ("c3", {"variant": "value_only"}),
    ("magrpo", {"baseline": "leave_one_out"}),
    ("magrpo", {"baseline": "max"}),
    ("off_policy", {"evaluation": estimators.Evaluation("snips")}),
    ("off_policy", {"q": True}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "options"), OPTIONS)
def test_an_action_of_a_joint_turn_gets_what_it_would_alone(method: str, options: dict[str, Any]) -> None:
    """Rows of all agents against those of one agent of each turn, which is the log of single-agent decisions."""
    rows, _ = logged(4, method)
    rng = np.random.default_rng(0)
    q = {context: rng.random(2) for context in {row["context"] for row in rows}}

    def run(kept: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[float, float, int]]:
        given, evidence = columns(kept, method)
        given.pop("order")
        critic = {"q_value": [float(q[row["context"]][int(row["alternative"])]) for row in kept]}
        if "q" in options:
            critic["target_value"] = [float(q[row["context"]] @ [0.4, 0.6]) for row in kept]
        evidence |= critic if {"q", "variant"} & options.keys() else {}
        graph, reward, found = credit.from_columns(**given, evidence=evidence)
        taken = {name: found.evidence[name] for name in evidence}
        function = getattr(estimators, method)
        result = function(graph, reward, **taken, **{k: v for k, v in options.items() if k != "q"})
        numbers = zip(
            *(found.gather(x).tolist() for x in (result.advantage, result.stderr, result.reason)), strict=True
        )
        return {(row["trace"], row["context"]): n for row, n in zip(kept, numbers, strict=True)}

    first: dict[tuple[str, str], str] = {}  # by name: replays of a draw have its actions in any order
    for row in rows:
        first[row["trace"], row["context"]] = min(row["agent"], first.get((row["trace"], row["context"]), "z"))
    alone = run([row for row in rows if row["agent"] == first[row["trace"], row["context"]]])
    together = run(rows)
    assert any(reason == Reason.VALID for *_, reason in alone.values())
    for place, number in together.items():
        assert number == pytest.approx(alone[place], rel=1e-5, abs=1e-5), place


TEAM = {"group": ["q"] * 6, "trace": list("aabbcc"), "agent": ["planner", "worker"] * 3}
REWARD = np.repeat([1.0, 0.0, 0.5], 2)
AT_THE_ROOT = [list("aabbcc"), ["a1", "a2", "b1", "b2", "c1", "c2"]]


@pytest.mark.sampled(others="slow")
@pytest.mark.filterwarnings("ignore:method")  # one turn an agent
@pytest.mark.parametrize("node", AT_THE_ROOT, ids=["one node", "own nodes"])
@pytest.mark.parametrize("method", ["rloo", "dr_mas_rloo", "turn_baseline", "c3"])
def test_a_first_joint_turn_is_no_replay(method: str, node: list[str]) -> None:
    evidence = {"context": ["q"] * 6, "node": node}
    result = RowAdvantages(method)(**TEAM, reward=REWARD, evidence=evidence)
    expected = RowAdvantages("rloo")(**TEAM, reward=REWARD)
    assert result.valid.all()
    np.testing.assert_allclose(result.advantages, expected.advantages, atol=1e-6)


def test_a_joint_turn_after_a_decision_is_one() -> None:
    """The planner's choice is shared by the traces of a context below it."""
    columns = {"group": ["q"] * 6, "trace": list("aaabbb"), "agent": ["planner", "x", "y"] * 2, "reward": [1.0] * 6}
    graph, _, _ = credit.from_columns(
        **columns, evidence={"context": [None, "c", "c"] * 2, "node": [None, *"ss", None, *"tt"]}
    )
    assert graph.cluster_ids is not None


def reasons(method: str, evidence: dict[str, list], **changes: Any) -> set[str]:
    """The reasons of a log's rows, the same at the function and at a trainer's door."""
    rows = TEAM | {"reward": REWARD} | changes
    unread = set() if method == "off_policy" else {"alternative"}
    graph, reward, found = credit.from_columns(**rows, evidence=evidence)
    result = getattr(estimators, method)(
        graph, reward, **{name: found.evidence[name] for name in evidence.keys() - unread}
    )
    by_row = RowAdvantages(method)(**rows, evidence=evidence)
    assert by_row.valid.tolist() == found.gather(result.valid).tolist()
    return {REASONS[code] for code in found.gather(result.reason).tolist()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:method")
@pytest.mark.parametrize("method", METHODS[:2])
def test_what_is_no_single_draw_is_refused(method: str) -> None:
    partly = {"context": ["q"] * 6, "node": ["x", "a", "x", "b", "y", "c"]}  # a and b answer one draw of the planner
    assert reasons(method, partly) == {REASONS[Reason.CONTEXTS_DIFFER]}
    without = {"context": ["q"] * 6, "node": ["x", "a", "x", "x", "y", "c"]}
    assert reasons(method, without) == {REASONS[Reason.CONTEXTS_DIFFER]}
    # An agent decides at q, at p, and at q again.
    back = {"context": list("qpqqpq"), "node": list("abcdef"), "alternative": list("lrllrl")}
    alone = {"trace": list("aaabbb"), "agent": ["planner"] * 6, "reward": [1.0] * 3 + [0.0] * 3}
    assert REASONS[Reason.CONTEXTS_DIFFER] in reasons(method, back, **alone)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:method")
def test_decisions_above_an_unclear_one_are_refused() -> None:
    """Two workers log one node under a context each: the planner above them has no value, and 0 is none."""
    columns = {
        "group": ["q"] * 9,
        "trace": list("aaabbbccc"),
        "agent": ["planner", "x", "y"] * 3,
        "reward": np.repeat([1.0, 0.0, 0.5], 3),
    }
    evidence = {"context": ["top", *"uv", "top", *"wz", "top", *"mn"], "node": [*"abb", *"cdd", *"eff"]}
    assert reasons("c3", evidence, **columns) == {REASONS[Reason.CONTEXTS_DIFFER]}
    graph, reward, found = credit.from_columns(**columns, evidence=evidence)
    tree = {name: found.evidence[name] for name in evidence}
    assert np.isnan(found.gather(subtree_values(graph, reward, **tree))).all()


@pytest.mark.filterwarnings("ignore:method")
@pytest.mark.slow
def test_chances_that_the_actions_of_a_joint_turn_state_must_agree() -> None:
    chances = {"propensity": [0.5] * 6, "target_propensity": [0.5] * 6}
    own = {"context": ["q"] * 6, "alternative": ["yes", "no", "no", "yes", "yes", "yes"], **chances}
    assert reasons("off_policy", own) <= {REASONS[Reason.CONTEXTS_DIFFER], REASONS[Reason.CONTRADICTION]}
    apart = {"context": ["q"] * 6, "alternative": ["1", "1", "2", "2", "1", "1"], **chances}
    apart["propensity"] = [0.5, 0.25] * 3
    assert reasons("off_policy", apart) == {REASONS[Reason.CONTRADICTION]}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:method")
def test_values_that_the_actions_of_a_joint_turn_state_must_agree() -> None:
    for values in ([0.5, 0.25] * 3, [0.5, np.nan] * 3):
        tree = {"context": ["q"] * 6, "node": list("aabbcc"), "q_value": values}
        graph, reward, found = credit.from_columns(**TEAM, reward=REWARD, evidence=tree)
        result = credit.c3(graph, reward, **{name: found.evidence[name] for name in tree}, variant="value_only")
        assert set(found.gather(result.reason).tolist()) == {Reason.CONTRADICTION}


@pytest.mark.filterwarnings("ignore:method", "ignore:.*several agents act at once")
@pytest.mark.sampled(others="slow")
@pytest.mark.filterwarnings("ignore::credit.ledger.RefusedClaimWarning")
@pytest.mark.parametrize(
    "name",
    ["coma", *(n for n, row in credit.METHODS.items() if row.estimand in ("increment", "return") and n != "coma")],
)
def test_no_ledger_counts_twice_what_a_joint_turn_states_at_each_action(name: str) -> None:
    """`coma` was counted twice where both workers had the one Q of their context: .031 for a gradient of .125."""
    draw, n = np.random.default_rng(4), 24
    needs = credit.METHODS[name].needs
    evidence = {need: np.repeat(draw.uniform(0.2, 0.8, n), 2) for need in {*needs} - {"tokens"}}
    evidence |= {"tokens": np.full(2 * n, 5)} if "tokens" in needs else {}
    evidence |= {need: np.repeat(np.arange(n), 2) for need in ("node", "alternative") if need in needs}
    evidence["context"] = np.repeat(np.arange(n) // (4 if {"node", "alternative"} & {*needs} else 1), 2)
    kind = next((need.removesuffix("_propensity") for need in needs if need[:4] in ("stop", "spaw")), "message")
    _, _, rows = credit.from_columns(
        group=np.repeat(np.arange(n) // 4, 2), trace=np.repeat(np.arange(n), 2), agent=["x", "y"] * n,
        reward=np.repeat(draw.normal(size=n).astype(np.float32), 2), evidence=evidence, event_type=[kind] * (2 * n),
    )  # fmt: skip
    traces = rows.traces
    claim = credit.run(traces, name)
    first, second = (
        np.asarray(rows.gather(credit.compose(traces.graph, traces.reward, [claim]).increments)).reshape(n, 2).T
    )
    twice = np.isclose(first, second, rtol=1e-3) & (np.abs(first) > 1e-3)
    assert not twice.all()
    assert not estimators.control_advantage(traces.graph, traces.reward, [claim]).used


def test_actions_of_a_joint_turn_with_numbers_of_their_own_are_claims() -> None:
    """Two amounts that are alike in some turns by chance are no copies of the turn's."""
    evidence = {
        "context": np.arange(6) // 2,
        "q_value": [0.75, 0.75, 0.75, 0.25, 0.25, 0.75],
        "target_value": [0.5] * 6,
    }
    graph, reward, rows = credit.from_columns(
        group=[0] * 6, trace=list("aabbcc"), agent=["x", "y"] * 3, reward=[1.0, 1, 0, 0, 0, 0], evidence=evidence
    )
    claim = credit.coma(graph, reward, **{name: rows.evidence[name] for name in ("q_value", "target_value")})
    assert not credit.compose(graph, reward, [claim]).refused


@pytest.mark.filterwarnings("ignore:method")
@pytest.mark.parametrize("node", AT_THE_ROOT, ids=["one node", "own nodes"])
def test_a_ledger_refuses_increments_of_joint_turns(node: list[str]) -> None:
    """Each action has the increment of the turn: their sum is twice what the turn changed."""
    evidence = {"context": ["q"] * 6, "node": node}
    graph, reward, rows = credit.from_columns(**TEAM, reward=REWARD, evidence=evidence)
    claim = credit.c3(graph, reward, **{name: rows.evidence[name] for name in evidence})
    with pytest.warns(credit.ledger.RefusedClaimWarning, match="1 of 1 claim refused, so no action .* joint turn"):
        ledger = credit.compose(graph, reward, [claim])
    assert "joint turn" in ledger.refused["c3"] and not np.asarray(ledger.claimed).any()
    assert "joint turn" in estimators.control_advantage(graph, reward, [claim]).refused["c3"]
    advice = credit.choose(rows.traces)
    assert "c3" in [branch.method for branch in advice.branches]
    assert "c3" not in advice.compose and "joint turn" in advice.trial.refused["control"]


def test_siblings_of_a_later_action_are_claims_beside_a_round_without_any() -> None:
    """Two agents that shared a context put all siblings of their log out of `choose`, without a word."""
    draw, n = np.random.default_rng(5), 120
    trace, draws = np.repeat(np.arange(n), 3), np.arange(n)
    better = draw.random(n) < 0.5
    _, _, rows = credit.from_columns(
        group=trace // 12, trace=trace, agent=["x", "y", "w"] * n,
        reward=np.repeat((draw.random(n) < 0.2 + 0.6 * better).astype(float), 3),
        evidence={
            "context": [name for k in draws for name in (f"{k // 3}.r", f"{k // 3}.r", f"{k // 3}.w")],
            "node": [name for k in draws for name in (None, None, f"{k}.w")],
            "alternative": [name for k in draws for name in (None, None, f"w{better[k]:d}")],
        },
    )  # fmt: skip
    advice = credit.choose(rows.traces)
    assert advice.trial.claims == advice.compose == ("c3",) and not advice.trial.refused
    assert not [line for line in advice.warnings if "nothing in the log" in line]
