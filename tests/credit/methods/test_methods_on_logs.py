"""Every method on a log with every evidence, from file to numbers; against the world's truth where it estimates that.

The world is enumerated: three decisions, right with probability 1/2 each, reward 1 if all are right, so that its eight
traces are one group, and a replay tree with two alternatives in each context. With V before a decision, Q of its choice
and D = Q − V, every number below is known exactly; the tolerance is that of float32, 1e-6.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import credit
from credit.methods.option_texts import parse_options
from credit.methods.published import PUBLISHED
from estimators import Reason
from estimators.composition.increments import as_increment
from graphs.errors import CreditError
from graphs.logs import read
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, TRACE_EVIDENCE
from graphs.worlds import Bernoulli, World
from graphs.writers import native

LEAVES = list(itertools.product((0, 1), repeat=3))
AGENTS = ("planner", "solver", "solver")


def value(choices: tuple[int, ...]) -> float:
    """V after these choices."""
    return float(all(choices)) / 2 ** (3 - len(choices))


def known(leaf: tuple[int, ...], k: int) -> dict[str, Any]:
    """Evidence of the k-th decision of a trace."""
    before, through = leaf[:k], leaf[: k + 1]
    name = "".join(map(str, before)) or "root"
    return {
        "value": value(before),
        "q_value": value(through),
        "target_value": value(before),  # the policy's mean of Q over the two choices
        "propensity": 0.5,
        "log_prob": float(np.log(0.5)),
        "context": name,
        "node": "".join(map(str, through)),
        "alternative": str(leaf[k]),
        "sibling_parent": name,
        "anchor": name,
        "env_step": k,
        "stage": k,
        "tokens": 3 + k,
        "event_reward": 0.0,
        "env_reward": value(through) - value(before),
        "counterfactual_reward": 0.0,  # any decision made wrong costs the reward
        "block": "b",
    }


def write(path: Path, without: str = "") -> Path:
    """The log, with every key of evidence that there is but one."""
    lines = []
    for leaf in LEAVES:
        events = []
        for k in range(3):
            event: dict[str, Any] = {"id": f"e{k}", "t": k, "type": "message", "agent": AGENTS[k], "action": True}
            filler: dict[str, Any] = {
                key: 1 if key in FLAGS else {"float": 0.5, "count": 1, "id": "x"}[spec.kind]
                for key, spec in EVENT_EVIDENCE.items()
            } | dict.fromkeys(("log_prob", "hindsight_log_prob"), -0.5)
            absent = (without, "agent_reward")  # beside the outcome of the team it would be another reward
            events.append(event | {key: v for key, v in (filler | known(leaf, k)).items() if key not in absent})
        content: dict[str, Any] = {"trace_id": "t" + "".join(map(str, leaf)), "task_id": "q", "events": events}
        edges = [{"src": f"e{k}", "dst": f"e{k + 1}", "type": "causal"} for k in range(2)]
        content |= {"edges": edges, "rewards": {"team": float(all(leaf))}, "costs": {"tokens": 9, "wall_clock_s": 1.0}}
        per_trace = {key: 1.0 for key in TRACE_EVIDENCE if key != without}
        lines.append(json.dumps(content | {"schema_version": "1.0", "evidence": per_trace}))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> credit.Traces:
    return read(write(tmp_path_factory.mktemp("logs") / "x.jsonl"))


V = np.array([[value(leaf[:k]) for k in range(3)] for leaf in LEAVES])
Q = np.array([[value(leaf[: k + 1]) for k in range(3)] for leaf in LEAVES])
R = np.array([[float(all(leaf))] * 3 for leaf in LEAVES])


def increments(traces: credit.Traces, result: credit.Credit) -> np.ndarray:
    return np.asarray(as_increment(traces.graph, result).credit)


def difference(traces: credit.Traces, result: credit.Credit) -> np.ndarray:
    return np.asarray(result.credit) - np.asarray(result.baseline)


TRUTH: dict[str, tuple[tuple[str, ...], Callable[[credit.Traces, credit.Credit], np.ndarray], np.ndarray]] = {
    "gae": ((), increments, Q - V),  # at any λ, its increments are the differences of the values
    "coma": ((), difference, Q - V),
    "c3": ((), difference, 2 * (Q - V)),  # against the other of two alternatives: (Q − V) / (1 − π)
    "magrpo": (("discount=1.0",), difference, Q - V),  # against the mean of both
    "dr_grpo": ((), difference, R - V[0, 0]),  # the mean of the eight is V at the start
    # The four traces of one first choice are replays of it, so the others' mean is that of the other four.
    "rloo": (
        (),
        difference,
        R - np.array([[np.mean([all(other) for other in LEAVES if other[0] != leaf[0]])] * 3 for leaf in LEAVES]),
    ),
    "remax": ((), difference, R - 1.0),  # the greedy run earns 1
    "discounted_return": ((), difference, R),
    "difference_reward": ((), difference, R),
}


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TRUTH))
def test_numbers_are_the_worlds(traces: credit.Traces, name: str) -> None:
    options, number, truth = TRUTH[name]
    result = credit.run(traces, name, **parse_options(name, options))
    found = number(traces, result)[: 3 * len(LEAVES)].reshape(len(LEAVES), 3)
    np.testing.assert_allclose(found, truth, atol=1e-6)


@pytest.mark.study
def test_increments_of_a_sampled_world_come_back_from_its_log(tmp_path: Path) -> None:
    """Written, read, run and converted: what every action changed, the last one with the luck that came after it."""
    world = World(outcome=Bernoulli(slope=0.8, centre=5.0))
    episodes = world.sample(jax.random.key(0), 32)
    truth = world.increments(episodes)
    native.write(world.traces(episodes, truth), tmp_path / "x.jsonl")
    logged = read(tmp_path / "x.jsonl")
    graph = logged.graph
    claim = as_increment(graph, credit.run(logged, "gae", lambda_=0.8))
    expected = np.array(truth.flat(graph.num_events), np.float64)
    actions = np.flatnonzero(graph.action_mask)
    last = actions[np.searchsorted(graph.trace_ids[actions], np.arange(logged.sizes.traces), side="right") - 1]
    expected[last] += np.asarray(truth.outcome)
    np.testing.assert_allclose(np.asarray(claim.credit)[actions], expected[actions], atol=1e-6)


@pytest.mark.every_method
@pytest.mark.filterwarnings("ignore:mgrpo compares by the parent")
@pytest.mark.parametrize("name", sorted(credit.METHODS))
def test_every_method_runs_on_logs_that_have_its_evidence(traces: credit.Traces, name: str) -> None:
    result = credit.run(traces, name)
    there = np.asarray(result.valid)
    if name == "hgpo":  # compares within states alone, and who shares a later state here shares the choices before it
        there = there | (np.asarray(result.reason) == Reason.SHARED_PREFIX)
    if name in ("stop_credit", "spawn_credit"):  # two of the traces must be independent of the trace itself
        there = there | (np.asarray(result.reason) == Reason.TOO_FEW)
    if name == "unitymas_o":  # the trace that won states no verdict of a turn
        there = there | (np.asarray(result.reason) == Reason.NO_EVIDENCE)
    assert there[: 3 * len(LEAVES)].all() and not there[3 * len(LEAVES) :].any()
    assert np.isfinite(np.asarray(result.advantage)).all()


@pytest.mark.parametrize("name", sorted(name for name, method in credit.METHODS.items() if method.needs))
def test_what_is_missing_is_named(tmp_path: Path, name: str) -> None:
    for need in credit.METHODS[name].needs:
        path = write(tmp_path / f"{need}.jsonl", without=need)
        # Probabilities of alternatives beside nodes alone are refused as they are read: nodes are draws, not choices.
        missing = f"needs evidence that the log does not have. '{need}'|log what it chose as '{need}'"
        with pytest.raises(CreditError, match=missing):
            credit.run(read(path), name)


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("folder", ["tau_bench_airline", "who_and_when"])
def test_every_name_runs_on_real_logs_or_names_what_is_missing(shared_data: Path, folder: str) -> None:
    real = read(shared_data / folder)
    for name in [*credit.METHODS, *PUBLISHED]:
        try:
            result = credit.run(real, name)
        except CreditError as error:
            named = (
                "needs evidence that the log does not have",
                "not computable from logs",
                "not fitted from logs",
                "not a method",
            )
            assert any(reason in str(error) for reason in named), error
        else:
            assert np.isfinite(np.asarray(result.advantage)).all()
            assert result.credit.shape == (real.graph.num_events,)
