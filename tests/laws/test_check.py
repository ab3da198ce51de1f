"""`check` as its user meets it: what it takes and refuses, what its report says, the batches that it draws."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner
from site_pages import page

import credit
import credit.laws.trial_batches
from credit.cli import cli
from credit.laws import LAWS, check
from estimators.base import Credit
from graphs.floats import at_least_float32

from .flawed_methods import concretises, good, replaced


def test_every_report_says_that_laws_measure_no_bias_and_what_does() -> None:
    """Of `grpo`, or a function that shrinks every gradient, all laws held, and nothing said that bias is another."""
    for method in (good, credit.METHODS["grpo"]):
        told = str(check(method, skip=[name for name in LAWS if name != "finite"])).splitlines()
        assert told[2].startswith("bias: no law measures it") and "`credit bench bias` computes it" in told[2]


def test_the_command_says_of_each_law_whether_it_holds() -> None:
    """Laws had no command: an error of a benchmark named the Python function, which shows no progress."""
    told = CliRunner().invoke(cli, ["check", "tests.laws.flawed_methods:concretises"])
    lines = [line.split() for line in told.stdout.splitlines()]
    assert told.exit_code == 1 and lines[1][:2] == ["jit", "BROKEN"], told.output
    assert lines[2][:4] == [str(len(LAWS) - 1), "laws", "-", "not"] and "`--unbiased` tries" in told.stdout
    assert not [line for line in told.stdout.splitlines() if line.endswith(" ")]  # one long why padded all
    assert told.stderr.startswith("error: concretises breaks the law 'jit'")
    others = ",".join(name for name in LAWS if name != "finite")
    found = CliRunner().invoke(cli, ["check", "tests.laws.flawed_methods:good", "--skip", others, "--json"])
    assert found.exit_code == 0 and json.loads(found.stdout)["laws"][0] == {
        "law": "finite", "passed": True, "untried": False, "detail": ""
    }  # fmt: skip
    refused = CliRunner().invoke(cli, ["check", "rloo", "--scope", "batch"])
    assert refused.exit_code == 1 and "rloo states its own" in refused.stderr


def test_each_law_is_told_when_it_was_tried() -> None:
    seen: list[str] = []
    report = check(concretises, strict=False, after_law=lambda result: seen.append(result.law))
    assert seen == [result.law for result in report.results]


@pytest.mark.slow
def test_check_takes_entries_of_the_table_and_partials() -> None:
    few = [name for name in LAWS if name != "response"]
    assert "laws of remax" in str(check(credit.METHODS["remax"], skip=few))
    report = check(functools.partial(credit.grpo, eps=1e-4), skip=few)
    assert report.method == "grpo" and all(result.passed for result in report.results)


@pytest.mark.study
def test_evidence_of_ones_own_is_drawn() -> None:
    def mine(graph: Any, reward: Any, *, mood: Any) -> Credit:
        seen.append(mood.shape)
        shifted = good(graph, reward)
        amount = shifted.credit + jnp.nan_to_num(at_least_float32(mood))
        return replaced(shifted, credit=jnp.where(shifted.valid, amount, 0), unit="event")

    seen: list[tuple[int, ...]] = []
    report = check(mine, needs={"mood": "event"}, skip=["equal_rewards", "absent_evidence"])
    assert set(seen) >= {(256,), (448,)}
    assert next(r for r in report.results if r.law == "no_event_reward").passed is None


def test_a_report_without_raising_tells_the_rest() -> None:
    report = check(concretises, strict=False)
    assert [result.law for result in report.broken] == ["jit"]
    assert all(result.passed is None for result in report.results[1:])
    assert "jit" in str(report) and "BROKEN" in str(report)


@pytest.mark.slow
def test_a_function_of_ones_own_reads_the_event_reward_that_it_takes() -> None:
    """It was only noted. Some published methods ignore it, and take it since all of the library do."""

    compiled = jax.jit(good)

    def forgets(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        return compiled(graph, reward)

    def of_outcomes(graph: Any, reward: Any) -> Credit:
        return compiled(graph, reward)

    few = [name for name in LAWS if name != "no_event_reward"]
    (broken,) = check(forgets, skip=few, strict=False).results
    assert broken.passed is False and "no reward at an event changes" in broken.detail
    assert check(compiled, skip=few).results[0].passed
    for method in (of_outcomes, dataclasses.replace(credit.METHODS["rloo"], fn=forgets)):
        assert check(method, skip=few).results[0].passed is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scope": "team"}, "scope is 'team'"),
        ({"skip": ["gravity"]}, "skip has 'gravity'"),
        ({"needs": ["vibes"]}, "needs has 'vibes'"),
    ],
)
def test_unknown_names_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(good, **options)


def test_ragged_batches_hold_what_they_promise() -> None:
    for seed in range(5):
        batch = credit.laws.trial_batches.ragged(seed, {"value": "event", "tokens": "event", "greedy_reward": "trace"})
        graph = batch.graph
        assert np.isnan(batch.reward).sum() == 2
        assert (np.bincount(graph.group_ids) == [5, 3, 1, 4, 2, 3, 2]).all()
        assert not np.isin(np.arange(graph.num_traces), graph.trace_ids[graph.action_mask]).all()
        assert not np.isin(np.arange(graph.num_agents), graph.agent_ids).all()
        assert (graph.senders < graph.receivers).all() and np.isnan(batch.evidence["value"]).any()
        assert (batch.evidence["tokens"] == -1).any()


def test_the_page_of_laws_lists_each_of_them() -> None:
    section = page("laws").split("## The laws")[1].split("\n## ")[0]
    listed = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    assert listed == list(LAWS)
