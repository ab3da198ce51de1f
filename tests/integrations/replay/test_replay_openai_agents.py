"""A team in the real OpenAI Agents SDK, re-run call by call, against exact values."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import json
import math
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("agents") is None:  # an installation that is broken fails
    pytest.skip("the OpenAI Agents SDK is not installed", allow_module_level=True)
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from click.testing import CliRunner
from openai import AsyncOpenAI
from stub_model import check_means, lottery, mean_and_spread, served, uniform, votes

import credit
from credit.cli import cli
from credit.replay.drivers.agents_sdk_driver import taped_model
from credit.replay.drivers.call_session import Session
from credit.replay.drivers.call_tape import read_tapes, write_log, write_tapes
from credit.replay.drivers.tape_driver import TapeReplayer, record
from credit.replay.replayer import Prefix, PrefixError
from graphs import CreditError

RIGHT = {"coder": 0.6, "good": 0.8, "bad": 0.3}  # chances: the coder is right; a reviewer says yes after that
HAND = 0.7  # the planner hands over


def policy(system: str, messages: list[dict[str, Any]], draw: Any) -> dict[str, Any]:
    if system == "planner":
        if draw("planner") < HAND:
            call = {"name": "transfer_to_coder", "arguments": "{}"}
            return {"content": None, "tool_calls": [{"id": "call-h", "type": "function", "function": call}]}
        return {"content": "alone"}
    if system == "coder":
        if not any(m["role"] == "tool" and m.get("tool_call_id") == "call-l" for m in messages):
            call = {"name": "lookup", "arguments": '{"key": "k"}'}
            return {"content": None, "tool_calls": [{"id": "call-l", "type": "function", "function": call}]}
        return {"content": "good" if draw("coder") < RIGHT["coder"] else "bad"}
    chance = RIGHT[messages[-1]["content"]]
    return {"content": "yes" if draw(system) < chance else "no"}


RUNS = 20  # of each decision
CODED = lottery((RIGHT["coder"], votes(RIGHT["good"], 2)), (1 - RIGHT["coder"], votes(RIGHT["bad"], 2)))
START = lottery((HAND, CODED), (1 - HAND, {0.25: 1.0}))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    set_tracing_disabled(True)
    with served(policy) as address:
        yield address


class Team:
    """Planner, who hands over to the coder, who uses a tool; then two reviewers at the same time."""

    def __init__(self, url: str) -> None:
        self.url, self.lookups, self.wrong, self.effects, self.declared = url, 0, False, "none", True

    def __call__(self, session: Session, task: str, seed: int) -> float:
        return asyncio.run(asyncio.wait_for(self._play(session, task, seed), 30))

    async def _play(self, session: Session, task: str, seed: int) -> float:
        def lookup(key: str) -> str:
            """Look a key up."""
            self.lookups += 1
            return "other" if self.wrong else f"value of {key}"

        tool = function_tool(session.tool(self.effects)(lookup) if self.declared else lookup)
        async with AsyncOpenAI(base_url=self.url, api_key="none", timeout=10, max_retries=0) as client:
            settings = ModelSettings(extra_args={"seed": seed})

            def agent(name: str, **options: Any) -> Agent[Any]:
                model = taped_model(session, name, OpenAIChatCompletionsModel("stub", client))
                return Agent(name, instructions=name, model=model, model_settings=settings, **options)

            coder = agent("coder", tools=[tool])
            hand = handoff(coder)
            if self.declared:
                session.effects[hand.tool_name] = "none"
            result = await Runner.run(agent("planner", handoffs=[hand]), task)
            if result.last_agent.name == "planner":
                return 0.25 if result.final_output else 0.0
            reviews = await asyncio.gather(
                *(Runner.run(agent(name), result.final_output) for name in ("reviewer-a", "reviewer-b"))
            )
            return sum(0.5 for review in reviews if review.final_output == "yes")


def truths(tape: Any) -> dict[str, dict[float, float]]:
    """The chances of the rewards before each model call of a recorded run."""
    answers = {call.id: json.dumps(call.response) for call in tape.calls}
    out = {"planner/0": START}
    if "coder/0" in answers:
        chance = RIGHT["good" if '"good"' in answers["coder/1"] else "bad"]
        out |= {"coder/0": CODED, "coder/1": CODED}
        order = [call.id for call in tape.calls if call.agent.startswith("reviewer")]
        out[order[0]] = votes(chance, 2)
        out[order[1]] = votes(chance, 1, given=0.5 if '"yes"' in answers[order[0]] else 0.0)
    return out


def replayed(team: Team, home: Path, monkeypatch: pytest.MonkeyPatch, *plan: str, mute: str = "") -> credit.Traces:
    """The recorded runs in `home` with what a plan gives, through the command line."""
    module = types.ModuleType("driver_of_agents")
    module.team = TapeReplayer(team, read_tapes(home / "tapes.jsonl"), mute=mute)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "driver_of_agents", module)
    monkeypatch.chdir(home)
    for arguments in (
        ["plan", "log.jsonl", *plan, "-o", "plan.jsonl"],
        ["replay", "plan.jsonl", "--driver", "driver_of_agents:team", "--results", "results.jsonl", "--seconds", "60",
         "--log", "log.jsonl", "-o", "with.jsonl"],
    ):  # fmt: skip
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0, result.output
    return credit.read(home / "with.jsonl")


def test_values_of_a_real_team_are_within_their_errors_of_the_truth(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hand-offs, a tool, and two branches at the same time; every decision against the exact chances of its rewards."""
    team = Team(url)
    tapes = [record(team, f"t{i}", "q", seed=i) for i in range(3)]
    assert {len(tape.calls) for tape in tapes} == {1, 6}  # alone; planner, coder, tool, coder, two reviewers
    write_tapes(tapes, tmp_path / "tapes.jsonl")
    write_log(tapes, tmp_path / "log.jsonl")
    assert read_tapes(tmp_path / "tapes.jsonl") == {tape.trace: tape for tape in tapes}
    decisions = sum(len([c for c in tape.calls if c.agent]) for tape in tapes)
    budget = ("--budget", str(RUNS * decisions), "--least", str(RUNS))
    known = replayed(team, tmp_path, monkeypatch, "--for", "value", *budget)
    n = known.sizes.events
    names = np.array(known.traces["trace"].to_pylist())[np.asarray(known.graph.trace_ids)[:n]]
    truth = {tape.trace: truths(tape) for tape in tapes}
    expected = [truth[t][e] for t, e in zip(names, known.events["event"].to_pylist(), strict=True)]
    value, error = (np.asarray(known.evidence[name].array)[:n] for name in ("value", "replay_stderr"))
    check_means(value, error, RUNS, expected)


def worth(present: tuple[str, ...]) -> float:
    """Expected reward where the other agents answer "bad" to everything."""
    if "planner" not in present:
        return 0.25
    chance = mean_and_spread(CODED)[0] if "coder" in present else RIGHT["bad"]
    return (1 - HAND) * 0.25 + HAND * sum(0.5 * chance for name in present if name.startswith("reviewer"))


def test_shapley_values_of_a_real_team(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = Team(url)
    tape = full(team)
    write_tapes([tape], tmp_path / "tapes.jsonl")
    write_log([tape], tmp_path / "log.jsonl")
    names = ("planner", "coder", "reviewer-a", "reviewer-b")
    known = replayed(team, tmp_path, monkeypatch, "--for", "shapley", "--budget", str(12 * 16), mute="bad")
    n = known.sizes.events
    owner = np.array(known.agents["name"].to_pylist())[np.asarray(known.graph.agent_ids)[:n]]
    share, error = (np.asarray(known.evidence[name].array)[:n] for name in ("share", "share_stderr"))
    for name in names:
        others = [other for other in names if other != name]
        true = sum(
            math.factorial(size) * math.factorial(3 - size) / math.factorial(4) * (worth((*team_, name)) - worth(team_))
            for size in range(4)
            for team_ in itertools.combinations(others, size)
        )
        row = int(np.flatnonzero(owner == name)[0])
        assert abs(share[row] - true) < 3.5 * error[row] and 0.005 < error[row] < 0.08


def prefix_before(tape: Any, decision: str) -> Prefix:
    calls = [call.id for call in tape.calls if call.agent]
    return Prefix(tape.trace, tape.group, tuple(calls[: calls.index(decision)]), decision)


def full(team: Team) -> Any:
    return next(tape for tape in (record(team, "t", "q", seed=i) for i in range(20)) if len(tape.calls) == 6)


def test_replaced_and_muted_agents(url: str) -> None:
    team = Team(url)
    tape = full(team)
    driver = TapeReplayer(team, {"t": tape}, mute="bad")
    for word in ("good", "bad"):
        runs = driver.run(prefix_before(tape, "coder/1"), replace=word, n=RUNS, seed=0)
        assert {run.alternative for run in runs} == {word}
        mean, spread = mean_and_spread(votes(RIGHT[word], 2))
        assert abs(np.mean([run.reward for run in runs]) - mean) < 3.7 * spread / np.sqrt(RUNS)
        assert all(run.tokens == 4 for run in runs)  # two reviewers, two tokens each
    runs = driver.run(Prefix("t", "q"), forbid=("coder",), n=RUNS, seed=0)
    mean, spread = mean_and_spread(lottery((HAND, votes(RIGHT["bad"], 2)), (1 - HAND, {0.25: 1.0})))
    assert abs(np.mean([run.reward for run in runs]) - mean) < 3.7 * spread / np.sqrt(RUNS)


def test_a_tool_that_answers_otherwise_is_named(url: str) -> None:
    team = Team(url)
    tape = full(team)
    team.wrong = True
    with pytest.raises(PrefixError, match=r"tool:lookup/0 answered 'other'; the log has 'value of k'"):
        TapeReplayer(team, {"t": tape}).run(prefix_before(tape, "coder/1"), n=1, seed=0)


def test_tools_with_effects_are_declared_or_refused(url: str) -> None:
    team = Team(url)
    tape = full(team)
    team.effects, team.lookups = "once", 0
    driver = TapeReplayer(team, {"t": tape})
    driver.run(prefix_before(tape, "coder/1"), n=3, seed=0)
    assert team.lookups == 0  # answered from the tape
    with pytest.raises(CreditError, match="tool:lookup/0 must not be repeated"):
        driver.run(Prefix("t", "q", (), "planner/0"), n=20, seed=0)
    team.declared = False
    with pytest.raises(CreditError, match="tool 'lookup' is not declared"):
        record(team, "t", "q", seed=tape_seed(team))


def tape_seed(team: Team) -> int:
    """A seed with which the planner hands over."""
    return next(seed for seed in range(50) if uniform(seed, "planner") < HAND)
