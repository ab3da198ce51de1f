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

SIZES = {"events": 256, "traces": 128, "agents": 256}
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
    return RowAdvantages(method, rows=SIZES["events"])


def compare(advantage: Any, valid: Any, expected: list[float | None]) -> None:
    assert np.asarray(valid).tolist() == [x is not None for x in expected]
    numbers = [0.0 if x is None else x for x in expected]
    np.testing.assert_allclose(np.asarray(advantage), numbers, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ORACLES)
def test_the_function(method: str, seed: int) -> None:
    rows, expected = logged(seed, method)
    given, evidence = columns(rows, method)
    given.pop("order")  # the rows are in it
    graph, reward, found = credit.from_columns(**given, evidence=evidence, **SIZES)
    result = getattr(credit, method, None) or getattr(estimators, method)
    result = result(graph, reward, **{name: found.evidence[name] for name in evidence})
    compare(found.gather(result.advantage), found.gather(result.valid), expected)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ORACLES)
def test_rows_of_a_trainer_in_any_order(method: str, seed: int) -> None:
    rows, expected = logged(seed, method)
    shuffled = np.random.default_rng(seed).permutation(len(rows))
    given, evidence = columns([rows[i] for i in shuffled], method)
    reward = np.array(given.pop("reward"), np.float32)
    result = of_rows(method)(**given, reward=reward, evidence=evidence)
    compare(result.advantages, result.valid, [expected[i] for i in shuffled])


@pytest.mark.parametrize("method", ORACLES)
def test_assign(method: str, tmp_path: Path) -> None:
    rows, expected = logged(1, method)
    given, evidence = columns(rows, method)
    traces: dict[str, dict[str, Any]] = {}
    for i, trace in enumerate(given["trace"]):
        record = traces.setdefault(
            trace, {"trace_id": trace, "task_id": given["group"][i], "events": [], "rewards": {"team": given["reward"][i]}}
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
