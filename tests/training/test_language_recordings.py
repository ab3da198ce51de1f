"""The recorded language team: what its log holds, and C3 of single re-runs against values of 200."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import credit

RECORDINGS = Path(__file__).resolve().parent.parent / "recordings"


def test_the_recorded_team_states_tokens_values_and_groups_that_teach() -> None:
    path = RECORDINGS / "language_team.jsonl"
    traces = credit.read(path)
    assert not traces.problems and traces.sizes.traces == 64 and path.stat().st_size < 1_000_000
    events, tokens = traces.sizes.events, traces.tokens
    assert tokens is not None and np.isfinite(tokens.log_probs[tokens.mask]).all() and (tokens.ids >= 0).all()
    by_log_prob = np.bincount(tokens.events[tokens.mask], tokens.log_probs[tokens.mask], minlength=events)
    np.testing.assert_allclose(by_log_prob, traces.evidence["log_prob"].array[:events], atol=1e-5)
    reward = np.asarray(traces.reward)[:64].reshape(8, 8)
    assert np.ptp(reward, axis=1).max() > 0.2 and len(np.unique(traces.graph.group_ids[:64])) == 8
    value, error = (np.asarray(traces.evidence[name].array)[:events] for name in ("value", "replay_stderr"))
    assert np.isfinite(value).all() and (error < 0.04).all()  # 200 runs of rewards that lie within 1.3 of each other
    graph = traces.graph
    first = np.flatnonzero(np.r_[True, np.diff(np.asarray(graph.trace_ids)[:events]) > 0])
    gap = reward.mean(axis=1) - value[first].reshape(8, 8).mean(axis=1)
    spread = (200 / 8) ** 0.5 * error[first].reshape(8, 8).mean(axis=1)  # of the mean of eight runs
    assert (np.abs(gap) < 4 * spread).all()  # the traces of a question are draws of what the values are means of


@pytest.mark.study
def test_credit_of_the_recorded_team_adds_up_and_c3_agrees_with_the_values_on_average() -> None:
    exact = credit.read(RECORDINGS / "language_team.jsonl")
    steps = credit.METHODS["gae"](exact.graph, exact.reward, value=exact.evidence["value"].array, lambda_=0.0)
    events = exact.sizes.events
    trace = np.asarray(exact.graph.trace_ids)[:events]
    increment = np.asarray(steps.advantage)[:events]
    first = np.flatnonzero(np.r_[True, np.diff(trace) > 0])
    value = np.asarray(exact.evidence["value"].array)[first]
    np.testing.assert_allclose(np.bincount(trace, increment) + value, np.asarray(exact.reward)[:64], atol=1e-5)

    siblings = credit.read(RECORDINGS / "language_team_siblings.jsonl")
    evidence = {name: siblings.evidence[name].array for name in ("context", "node")}
    result = credit.METHODS["c3"](siblings.graph, siblings.reward, **evidence)
    places = zip(np.asarray(siblings.graph.trace_ids).tolist(), siblings.events["event"].to_pylist(), strict=False)
    names = siblings.traces["trace"].to_pylist()
    at = {(names[t], event): e for e, (t, event) in enumerate(places)}
    own = exact.traces["trace"].to_pylist()
    gaps = []
    for e, event in enumerate(exact.events["event"].to_pylist()):
        there = at[own[trace[e]], event]
        if bool(result.valid[there]):
            gaps.append(float(result.advantage[there]) - increment[e])
    assert len(gaps) > 80
    assert abs(np.mean(gaps)) < 3.5 * np.std(gaps, ddof=1) / len(gaps) ** 0.5
