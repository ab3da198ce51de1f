"""How large an advantage can be, for every method that divides: docs/data/bounds.csv, attained, not exceeded."""

from __future__ import annotations

import csv
import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest

import credit

TRACES, TURNS, GROUPS = 4, 2, 2  # of a group, of a trace, of the batch
ROWS = TRACES * TURNS * GROUPS

LARGEST = {
    "(n − 1)/√n": lambda n: (n - 1) / math.sqrt(n),
    "√(n − 1)": lambda n: math.sqrt(n - 1),
    "√n": math.sqrt,
    "n − 1": lambda n: n - 1,
    "(n − 1)/√n for each of its turns": lambda n: TURNS * (n - 1) / math.sqrt(n),
    "(n − 1)/√n for its outcome and each of its turns": lambda n: (1 + TURNS) * (n - 1) / math.sqrt(n),
    "10 √n": lambda n: 10 * math.sqrt(n),
}
REFUSING = "10 √n"  # the bound of a method that refuses what is larger, and need not come near it
SAMPLES = {
    "traces": TRACES,
    "rows of the task": TRACES * TURNS,
    "rows of the agent": TRACES,
    "rows or tokens": ROWS,
    "agents": TRACES * TURNS,
}


def bound_of(formula: str, n: int) -> float | None:
    """The number that a cell stands for; None for words that are neither one of `LARGEST` nor a number."""
    if formula in LARGEST:
        return LARGEST[formula](n)
    return float(formula) if re.fullmatch(r"\d+(\.\d+)?", formula) else None


def samples_of(words: str) -> int | None:
    """How many there are in the batch below; None for words that begin with none of `SAMPLES`."""
    return next((number for begin, number in SAMPLES.items() if words.startswith(begin)), None)


def rows_of_table() -> list[list[str]]:
    """Methods, bound and samples of each row of docs/data/bounds.csv."""
    table = (Path(__file__).resolve().parents[2] / "docs" / "data" / "bounds.csv").read_text(encoding="utf-8")
    return list(csv.reader(table.splitlines()))[1:]


def stated() -> dict[str, tuple[float, float]]:
    """The bound of each method, for the batch below; and what its largest advantage must exceed."""
    bounds = {}
    for names, formula, samples in rows_of_table():
        n = samples_of(samples)
        bound = None if n is None else bound_of(formula, n)
        if bound is not None:
            least = 0.0 if formula == REFUSING else 0.6 * bound
            bounds |= dict.fromkeys(re.findall(r"`(\w+)`", names), (least, bound))
    return bounds


STATED = stated()
GRAPH, _, PLACES = credit.from_columns(
    group=np.repeat(["q", "r"], TRACES * TURNS),
    trace=np.repeat(np.arange(TRACES * GROUPS), TURNS),
    agent=["planner", "solver"] * TRACES * GROUPS,
    turn=[0, 1] * TRACES * GROUPS,
    reward=np.zeros(ROWS),
    events=32, traces=16, agents=32,
)  # fmt: skip


def advantages(name: str, reward: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Of each action, for rewards [T] of traces and marks [E] of rows."""
    outcome, step = np.zeros(GRAPH.num_traces, np.float32), np.zeros(GRAPH.num_events, np.float32)
    outcome[: len(reward)] = reward
    step[PLACES.event] = marks
    more = {"block": np.zeros(GRAPH.num_events, np.int32)} if name == "mrlx" else {}
    result = credit.METHODS[name](GRAPH, outcome, event_reward=step, **more)
    return np.asarray(PLACES.gather(result.advantage))


def attempts() -> list[tuple[np.ndarray, np.ndarray]]:
    """Rewards and marks that come near a bound: one that stands out among equal ones; and random ones."""
    rng, one, nothing = np.random.default_rng(0), np.eye(8)[0], np.zeros(ROWS)
    tries = []
    for apart in (1.0, 1e-2, 1e-4):  # with less, float32 rounds the mean by a part of the spread
        tries += [(0.5 + apart * one, nothing), (0.5 - apart * one, nothing)]
        tries += [(np.full(8, 0.5), apart * np.eye(ROWS)[i]) for i in (0, 1, 15)]
        tries += [(0.5 + apart * one, apart * (np.arange(ROWS) < TURNS))]
        tries += [(0.5 + apart * rng.normal(size=8), rng.uniform(-1, 1, ROWS) * mark) for mark in (0, apart, 1)]
    return tries


def test_every_row_of_the_page_can_be_tested() -> None:
    for names, formula, samples in rows_of_table():
        wanted = f"expected a number or one of {[*LARGEST]}"
        assert bound_of(formula, TRACES) is not None, f"{names} has the bound {formula!r}; {wanted}"
        wanted = f"expected words that begin with one of {[*SAMPLES]}"
        assert samples_of(samples) is not None, f"{names} has the samples {samples!r}; {wanted}"


QUICK = {"grpo", "foldgrpo"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in STATED])
def test_no_advantage_exceeds_the_stated_bound(name: str) -> None:
    largest = max(float(np.abs(advantages(name, *given)).max()) for given in attempts())
    least, bound = STATED[name]
    assert least < largest <= bound * (1 + 1e-3), "the bound in docs/data/bounds.csv"
    assert "exceeds" in credit.METHODS[name].fn.__doc__, f"the docstring of {name} does not say what no |A| exceeds"


def placed(values: np.ndarray, fill: float) -> np.ndarray:
    """Numbers of the rows, as an array of the batch's events."""
    out = np.full(GRAPH.num_events, fill, values.dtype)
    out[PLACES.event] = values
    return out


OF_EVIDENCE = {
    "hcapo": 5.0,
    "hgpo": math.sqrt(TRACES * TURNS - 1),  # all steps of a task at one anchor
    "g2po": 32.5,
    "tree_grpo": (TRACES - 1) / math.sqrt(TRACES) + 1 / math.sqrt(2),
}
"""The largest advantage of methods that need evidence, for outcomes of 0 and 10 and trees of two leaves."""


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_EVIDENCE)
def test_no_advantage_from_evidence_exceeds_the_stated_bound(name: str) -> None:
    rng, largest = np.random.default_rng(3), 0.0
    trees = np.arange(GRAPH.num_traces, dtype=np.int32) // 2
    for draw in range(60):
        outcome = np.zeros(GRAPH.num_traces, np.float32)
        outcome[: TRACES * GROUPS] = 10 * rng.integers(0, 2, TRACES * GROUPS) if draw % 2 else 10 * np.eye(8)[draw % 8]
        anchor = placed(rng.integers(0, 1 + draw % 4, ROWS).astype(np.int32), -1)
        hindsight = placed(rng.normal(-1, 3, ROWS), np.nan)
        of_method = {
            "hcapo": {"hindsight_log_prob": hindsight},
            "tree_grpo": {"tree": trees},
            "g2po": {"anchor": anchor, "success": 10.0},
        }
        result = credit.METHODS[name].fn(GRAPH, outcome, **of_method.get(name, {"anchor": anchor}))
        largest = max(largest, float(np.abs(PLACES.gather(result.advantage)).max()))
    assert 0.5 * OF_EVIDENCE[name] < largest <= OF_EVIDENCE[name] * (1 + 1e-4)


@pytest.mark.slow
def test_g2po_comes_near_its_bound() -> None:
    """A failure of one step, where others succeeded at once, in a task of successes of one step and of very long ones.

    In units of success, with m the mean outcome and v the mean of V(next) − V(here) over actions: V(next) of a trace is
    V(here) of its next action, so that v n = Σ (success − V(first)) − Σ V(first) over the traces that succeeded, and
    over the others. With x N first steps of traces of L steps that succeeded among the N visits of a state, and so many
    more steps elsewhere, v ≤ max x − γ^L x² − (1 − γ)(x L − 1) ≤ 5/4 − γ, as (1 − (1 − γ) L)² ≤ γ^L. As V ≤ γ, the
    third term is not below −5/4. From above, v ≥ −m: the sum of V over first steps is at most that of the outcomes over
    steps. So A ≥ −(m + w + 5/4 w), and A ≤ 1 − m + w + w (1 + m).
    """
    short, long, length, beside = 10_000, 10, 1000, 20
    trace = np.concatenate([np.arange(short), short + np.repeat(np.arange(long), length)])
    trace = np.concatenate([trace, trace[-1] + 1 + np.arange(beside + 1)])
    state = np.where(np.arange(len(trace)) < short + long * length, "often", "rarely")
    outcome = np.where(np.arange(len(trace)) < len(trace) - 1, 10.0, 0.0)
    graph, reward, rows = credit.from_columns(
        group=[0] * len(trace), trace=trace, reward=outcome, evidence={"anchor": state}
    )
    result = credit.g2po(graph, reward, anchor=rows.evidence["anchor"], discount=0.99, success=10.0)
    assert -OF_EVIDENCE["g2po"] <= rows.gather(result.advantage)[-1] < -0.95 * OF_EVIDENCE["g2po"]


@pytest.mark.slow
def test_hgpo_can_average_in_the_level_that_says_average() -> None:
    """Its code drops a term of exactly 0, so that a step's weights depend on the outcomes of the others."""
    graph, reward, rows = credit.from_columns(
        group=[0] * 6, trace=list("aabbcc"), reward=[1, 1, 0.5, 0.5, 0, 0],
        evidence={"anchor": ["x", "y", "x", "y", "z", "y"]},
    )  # fmt: skip
    anchor = rows.evidence["anchor"]
    released, averaged = (
        rows.gather(credit.hgpo(graph, reward, anchor=anchor, skip_zeros=skip).advantage) for skip in (True, False)
    )
    # The second step of b: average among all three at y (weight 2), the worse of two after x and y (weight 3).
    np.testing.assert_allclose([released[3], averaged[3]], [-1, -3 / 5], atol=1e-4)
    np.testing.assert_allclose(released[0], averaged[0], atol=1e-4)


@pytest.mark.slow
def test_with_replays_the_bound_is_that_of_the_weight() -> None:
    """Three replays of one trace and one other: n = 2 samples, and each replay weighs a third."""
    cluster_ids = np.arange(GRAPH.num_traces, dtype=np.int32)
    cluster_ids[:3] = 0
    graph, rng = dataclasses.replace(GRAPH, cluster_ids=cluster_ids), np.random.default_rng(2)
    largest = 0.0
    for reward in [*np.eye(4), *rng.normal(size=(50, 4))]:
        outcome = np.zeros(GRAPH.num_traces, np.float32)
        outcome[:4] = reward
        largest = max(largest, float(np.abs(credit.grpo(graph, outcome).advantage).max()))
    assert (4 - 1) / math.sqrt(4) < largest <= math.sqrt(2 / (1 / 3)), "more than four samples without replays can have"


@pytest.mark.every_method
@pytest.mark.parametrize("name", [n for n, m in credit.METHODS.items() if m.scope != "trace" and not m.needs])
def test_the_page_names_every_method_that_divides(name: str) -> None:
    """One that does not gives twice the advantages for twice the rewards."""
    rng = np.random.default_rng(1)
    reward, marks = rng.uniform(0.2, 0.4, 8), rng.uniform(-0.1, 0.1, ROWS)
    once, twice = advantages(name, reward, marks), advantages(name, 2 * reward, 2 * marks)
    divides = not np.allclose(twice, 2 * once, rtol=1e-4, atol=1e-5)
    if name != "foldgrpo_fork":
        assert not divides or name in STATED, (
            f"{name} divides: advantages of twice the rewards are not twice as large. "
            f"Add a row to docs/data/bounds.csv, with a number or one of {[*LARGEST]}"
        )
        assert divides or name not in STATED, f"{name} does not divide, but is in docs/data/bounds.csv"


@pytest.mark.every_method
@pytest.mark.parametrize("name", [name for name, method in credit.METHODS.items() if not method.needs])
def test_no_number_is_lost_where_squares_overflow(name: str) -> None:
    """A deviation of infinity would turn every advantage into a valid 0."""
    rewards = np.repeat([1.0, 0.0, 0.25], 2)

    def numbers(factor: float) -> tuple[np.ndarray, np.ndarray]:
        graph, reward, rows = credit.from_columns(
            group=[0] * 6, trace=[0, 0, 1, 1, 2, 2], turn=[0, 1] * 3, reward=factor * rewards
        )
        result = credit.METHODS[name].fn(graph, reward)
        return np.asarray(rows.gather(result.advantage)), np.asarray(rows.gather(result.valid))

    (small, allowed), (large, answered) = numbers(1.0), numbers(1e30)
    assert allowed.any()
    assert not np.any(answered & (large == 0) & (small != 0)), (small, large, answered)
