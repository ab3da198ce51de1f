"""The stack of messages, orchestrator and agent-wise scale on random teams: error, bias, variance."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from random_teams import Team

import credit
from graphs.event_graph import EventType


def stack() -> dict[str, Any]:
    """The stack on random teams: relative error, bias, variance and what the agent-wise scale does."""
    traces, group, teams = 1024, 8, 12
    fresh = [Team(1000 + seed) for seed in range(teams)]
    graph = fresh[0].graph(traces, group)
    rows: dict[str, list[float]] = {}
    for team in fresh:
        rng = team.rng
        # Messages: J siblings replayed k times; orchestrator: a critic with its own errors.
        claimed = team.increments([0.12, 0.10, 0.10, 0.12], rng)
        true = team.increments([0.0] * team.steps, rng)
        drawn = rng.choice(len(team.choices), traces, p=team.chance)
        outcome = (rng.random(traces) < team.success[tuple(team.choices[drawn].T)]).astype(float)
        flat = claimed[drawn].ravel()
        messages, critic = (
            credit.claim(graph, flat, estimand="increment", source=s, stderr=0.1, centred=True, own_outcome=False)
            for s in ("messages", "orchestrator")
        )
        expected = np.full(traces, team.start)
        made = credit.stack(graph, outcome, messages, critic, expected=expected)
        entries = np.asarray(made.ledger.increments).reshape(traces, -1)
        truth = true[drawn]

        def rel(values: np.ndarray, truth: np.ndarray = truth) -> float:
            return float(((values - truth) ** 2).sum() / (truth**2).sum())

        is_message = np.array([k == EventType.MESSAGE for k in team.kinds])
        record = {
            "rel, stack": rel(entries),
            "rel, messages alone": rel(np.where(is_message, entries, 0)),
            "rel, orchestrator alone": rel(np.where(is_message, 0, entries)),
            "rel, agent-wise normaliser (R - b) / sd": rel(
                np.asarray(credit.dr_mas(graph, outcome).advantage).reshape(traces, -1)
            ),
        }
        # Exact bias and variance: every sequence of choices and both outcomes, with the coefficients of this batch.
        beta = np.asarray(made.unscaled.beta)[:, 0]
        scores = team.scores()
        masked = np.stack([np.where(is_message, claimed, 0), np.where(is_message, 0, claimed)])
        both = np.tensordot(beta, masked, 1)
        others = both.sum(axis=1, keepdims=True) - both
        win = team.success[tuple(team.choices.T)]
        weight = np.concatenate([team.chance * win, team.chance * (1 - win)])
        results = np.concatenate([np.ones_like(win), np.zeros_like(win)])[:, None]
        exact = np.einsum("i,ij,ijp->p", weight, results * np.ones((1, team.steps)), np.tile(scores, (2, 1, 1)))
        for name, taken in (
            ("RLOO", 0 * others),
            ("messages only", None),
            ("orchestrator only", None),
            ("stack", others),
        ):
            if taken is None:
                part = masked[0] * beta[0] if name == "messages only" else masked[1] * beta[1]
                taken = part.sum(axis=1, keepdims=True) - part
            advantage = results - team.start - np.tile(taken, (2, 1))
            terms = np.einsum("ij,ijp->ip", advantage, np.tile(scores, (2, 1, 1)))
            mean = weight @ terms
            record[f"bias, {name}"] = float(np.linalg.norm(mean - exact) / np.linalg.norm(exact))
            record[f"variance, {name}"] = float(weight @ ((terms - mean) ** 2).sum(axis=1))
        # The scale: the same batch's gradient after it, against the exact one, on its best multiple.
        for name, signal in (("before", made.unscaled), ("after", made.signal)):
            advantage = np.asarray(signal.credit.advantage).reshape(traces, -1)
            found = np.einsum("ij,ijp->p", advantage, scores[drawn]) / traces
            record[f"cosine with the gradient, {name} the scale"] = float(
                found @ exact / np.linalg.norm(found) / np.linalg.norm(exact)
            )
        # Its bias in the mean: the exact advantages divided by the spread that each agent's have, on the best multiple.
        spread = np.zeros(3)
        advantage = results - team.start - np.tile(others, (2, 1))
        for a in range(3):
            mine = np.array(team.agents) == a
            values, w = advantage[:, mine], np.repeat(weight[:, None], mine.sum(), axis=1)
            centre = (w * values).sum() / w.sum()
            spread[a] = np.sqrt((w * (values - centre) ** 2).sum() / w.sum())
        scaled = np.einsum("i,ij,ijp->p", weight, advantage / spread[list(team.agents)], np.tile(scores, (2, 1, 1)))
        scaled *= scaled @ exact / (scaled @ scaled)
        record["bias that the agent-wise scale adds, best multiple"] = float(
            np.linalg.norm(scaled - exact) / np.linalg.norm(exact)
        )
        record["variance, stack over RLOO"] = record["variance, stack"] / record["variance, RLOO"]
        for key, number in record.items():
            rows.setdefault(key, []).append(number)
    out = {k: {"median": statistics.median(v), "worst": max(v), "least": min(v)} for k, v in rows.items()}
    for key, number in out.items():
        print(f"{key:60s} median {number['median']:.4g}  least {number['least']:.4g}  worst {number['worst']:.4g}")
    return out
