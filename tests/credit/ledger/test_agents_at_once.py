"""What agents brought that acted at once is their turn's: no row of it has a part, whichever stands last."""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.ledger_summary import ledger_summary
from estimators import Reason

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "gae": [{"lambda_": 1.0}, {"lambda_": 0.6}, {"lambda_": 0.0}],
    "mt_grpo": [{"scale": "none"}],
}
COMPOSED = [
    (name, options)
    for name, method in credit.METHODS.items()
    if method.estimand in ("increment", "return", "contrast") or name == "mt_grpo"
    for options in OPTIONS.get(name, [{}])
]


def drawn(seed: int, needs: tuple[str, ...]) -> dict[str, Any]:
    """Rounds of two or three agents, of one agent, and single actions, in traces of uneven length."""
    draw = np.random.default_rng(seed)
    rows: list[tuple[int, int, str]] = []
    for trace in range(8):
        for number in range(int(draw.integers(1, 5))):
            agents = draw.permutation([*"xyz"])[: draw.integers(1, 4)] if number else [*"x" * int(draw.integers(1, 3))]
            rows += [(trace, number, str(agent)) for agent in agents]
    trace, number, agent = (np.array(column) for column in zip(*rows, strict=True))
    n = len(trace)
    known: dict[str, Any] = {
        "context": [f"{t}/{k}" for t, k in zip(trace, number, strict=True)],
        "node": np.arange(n), "alternative": np.arange(n), "tokens": draw.integers(1, 9, n),
    }  # fmt: skip
    evidence = {name: known.get(name, draw.uniform(0.1, 0.9, n)) for name in {*needs, "context"}}
    return {
        "group": trace // 4, "trace": trace, "agent": agent, "turn": number, "reward": draw.normal(size=8)[trace],
        "event_reward": draw.normal(size=n), "event_type": draw.choice(["message", "stop", "spawn"], n),
        "evidence": evidence,
    }  # fmt: skip


def taken(columns: dict[str, Any], at: np.ndarray) -> dict[str, Any]:
    evidence = {name: np.asarray(column)[at] for name, column in columns["evidence"].items()}
    return {name: np.asarray(c)[at] for name, c in columns.items() if name != "evidence"} | {"evidence": evidence}


def composed(columns: dict[str, Any], name: str, options: dict[str, Any]) -> tuple[credit.Ledger, Any]:
    graph, reward, rows = credit.from_columns(**columns)
    needs = {need: rows.evidence[need] for need in credit.METHODS[name].needs}
    claim = credit.METHODS[name].fn(graph, reward, event_reward=rows.event_reward, **needs, **options)
    return credit.compose(graph, reward, [claim], event_reward=rows.event_reward), rows


@pytest.mark.filterwarnings("ignore::credit.ledger.RefusedClaimWarning")
@pytest.mark.filterwarnings("ignore:'event_reward'")
@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(("name", "options"), COMPOSED, ids=[f"{n}-{o}" for n, o in COMPOSED])
def test_the_order_of_rows_of_a_round_moves_no_entry(name: str, options: dict[str, Any]) -> None:
    """The row that stood last got all that a drafter and a checker brought, 1.047; its neighbour 0."""
    told = 0
    for seed in range(4):
        columns, draw = drawn(seed, credit.METHODS[name].needs), np.random.default_rng([seed, 1])
        of = list(zip(columns["trace"].tolist(), columns["turn"].tolist(), strict=True))
        several = np.array(
            [len({a for a, one in zip(columns["agent"], of, strict=True) if one == at}) > 1 for at in of]
        )
        seen = []
        for _ in range(3):
            key = draw.random(len(of)) * several  # rows of one agent keep their order
            at = np.lexsort((key, columns["turn"], columns["trace"]))
            ledger, rows = composed(taken(columns, at), name, options)
            parts = np.zeros((3, len(of)))
            parts[:, at] = [
                rows.gather(np.asarray(x, float)) for x in (ledger.increments, ledger.claimed, ledger.at_once)
            ]
            seen.append((parts, np.asarray(ledger.unexplained), np.asarray(ledger.remainder)))
            trace = np.asarray(ledger.graph.trace_ids)
            sums = np.bincount(trace, np.asarray(ledger.increments, float), len(ledger.expected))
            total = np.asarray(ledger.expected, float) + sums + np.asarray(ledger.unexplained, float)
            total += np.asarray(ledger.outcome, float) + np.asarray(ledger.remainder, float)
            np.testing.assert_array_equal(total, np.asarray(ledger.reward, float))
        for other in seen[1:]:
            for one, two in zip(seen[0], other, strict=True):
                np.testing.assert_allclose(one, two, atol=2e-5)
        if credit.METHODS[name].estimand == "return" or name in ("critic", "mt_grpo"):
            assert not (seen[0][0][1, several]).any()  # no entry
        told += int(seen[0][0][1].sum())
    assert told or name not in ("gae", "critic", "turn_baseline", "mt_grpo")


def test_actions_around_a_round_keep_theirs_and_its_sum_is_unexplained() -> None:
    """A plan, a round of two, of which one states 0.5, and an end: V is 0.2, 0.3 and 0.5 in the round, then 0.9."""
    value = [0.2, 0.3, 0.5, 0.9]
    rows = {"group": ["q"] * 4, "trace": ["a"] * 4, "agent": [*"pxyp"], "reward": [1.0] * 4, "order": [0, 1, 1, 2],
            "event_reward": [0.1, 0.5, 0.0, 0.0], "evidence": {"value": value}}  # fmt: skip
    for options in ({"lambda_": 1.0}, {"lambda_": 0.5}):
        ledger, out = composed(rows, "gae", options)
        expected = [0.1 + 0.4 - 0.2, 0, 0, 1 - 0.9]  # the state before the round is worth the mean of both
        assert out.gather(ledger.increments).tolist() == pytest.approx(expected, abs=1e-6)
        assert float(ledger.unexplained[0]) == pytest.approx(1.6 - float(ledger.expected[0]) - sum(expected), abs=1e-6)
        assert out.gather(np.asarray(ledger.claims[0].reason)).tolist() == [0, Reason.AT_ONCE, Reason.AT_ONCE, 0]
        summary = ledger_summary(out.traces, ledger)
        said = "2 actions of agents that act at once: what each brought is not known, and unexplained holds their sum"
        assert f"  no entries of {said}" in summary.lines() and said in repr(ledger)
    ledger, out = composed(rows | {"agent": [*"pxxp"]}, "gae", {"lambda_": 1.0})  # one agent's rows have an order
    assert out.gather(ledger.claimed).all() and not ledger.without_share


def test_compose_counts_actions_of_rounds_once(tmp_path: Path) -> None:
    lines = [
        {
            "group": "q",
            "trace": t,
            "reward": float(t > 0),
            "agent": a,
            "turn": k,
            "context": f"{t}/{k}",
            "id": f"{k}{a}",
        }
        for t in range(3)
        for k, a in ((0, "drafter"), (0, "checker"), (1, "editor"))
    ]
    path, out = tmp_path / "rows.jsonl", tmp_path / "ledger.csv"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = CliRunner().invoke(cli, ["compose", str(path), "--methods", "rloo,turn_baseline", "-o", str(out)])
    assert found.exit_code == 0 and "3 of 9 actions with an entry" in found.output
    assert found.output.count("  no entries of 6 actions of agents that act at once") == 1


def logit(z: float) -> float:
    return float(1 / (1 + np.exp(-z)))


@pytest.mark.parametrize("stated", ["context", "order"])
@pytest.mark.parametrize("finished", [False, True])
def test_the_gradient_of_agents_at_once_is_the_true_one_in_the_order_of_their_ends(
    stated: str, finished: bool, tmp_path: Path
) -> None:
    """A lead closes, or asks two at once, of which the first ends first where it chooses 1. All outcomes are 1.

    Over all batches of two traces the gradient of that choice was −0.06, where the truth is 0.
    """
    asks, quick = logit(0.1), logit(0.4)
    chance = {(0, 0): 1 - asks, (1, 0): asks * (1 - quick), (1, 1): asks * quick}
    batches = list(itertools.product(chance, repeat=2))
    rows: list[dict[str, Any]] = []
    for number, batch in enumerate(batches):
        for k, (asked, choice) in enumerate(batch):
            base = {"group": f"q{number}", "trace": f"{number}/{k}", "reward": 1.0}
            pair = [base | {"agent": agent, "time": 1.0, "turn": 1} for agent in "ab"]
            if stated == "context":
                pair = [one | {"context": f"{number}/{k}"} for one in pair]
            rows.append(base | {"agent": "lead", "time": 0.0, "turn": 0})
            rows += (pair[::-1] if finished and not choice else pair) if asked else [{**pair[0], "agent": "editor"}]
    if stated == "context":
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        traces = credit.read(path)
        table = credit.table(traces, credit.run(traces, "turn_baseline")).to_pylist()
        found = {(row["trace"], row["agent"]): row["advantage"] for row in table}
    else:
        names = {"order": "time"} | {name: name for name in ("group", "trace", "agent", "turn", "reward")}
        columns = {name: [row[key] for row in rows] for name, key in names.items()}
        graph, reward, out = credit.from_columns(**columns)
        numbers = out.gather(credit.turn_baseline(graph, reward))
        found = {(row["trace"], row["agent"]): a for row, a in zip(rows, numbers, strict=True)}
    gradient = np.zeros(2)
    for number, batch in enumerate(batches):
        weight = chance[batch[0]] * chance[batch[1]] / 2
        for k, (asked, choice) in enumerate(batch):
            gradient[0] += weight * found[f"{number}/{k}", "lead"] * (asked - asks)
            gradient[1] += weight * found[f"{number}/{k}", "a"] * (choice - quick) if asked else 0
    np.testing.assert_allclose(gradient, 0, atol=1e-7)


@pytest.mark.parametrize(("times", "said"), [([0, 1, 1], True), ([0, 1, 2], False)])
def test_rows_of_a_file_at_one_time_without_a_context_are_warned_of(
    times: list[int], said: bool, tmp_path: Path
) -> None:
    """`RowAdvantages` and `credit assign` said that nothing tells who was first; `credit.run` did not."""
    path = tmp_path / "rows.jsonl"
    rows = [
        {"group": "q", "trace": t, "reward": float(t), "agent": agent, "time": time, "turn": k}
        for t in range(2)
        for k, (agent, time) in enumerate(zip("lab", times, strict=True))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        credit.run(credit.read(path), "turn_baseline")
    words = "turn_baseline reads the order of agents, and in 2 traces several actions have one time or overlap"
    assert any(words in str(one.message) for one in found) == said
