"""A team in the real Inspect AI, re-run from its evaluation log, against exact values."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import math
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("inspect_ai") is None:  # an installation that is broken fails
    pytest.skip("inspect_ai is not installed here; `make integrations` runs this", allow_module_level=True)
from click.testing import CliRunner
from inspect_ai import Task, eval
from inspect_ai.agent import AgentPrompt, AgentState, agent, react, run
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatMessageSystem, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver
from inspect_ai.tool import tool
from inspect_ai.util import collect
from stub_model import check_means, lottery, mean_and_spread, uniform, votes

import credit
from credit.cli import cli
from credit.replay.drivers.inspect_calls import declared
from credit.replay.drivers.inspect_driver import InspectReplayer
from credit.replay.replayer import Prefix, PrefixError
from graphs import CreditError

RIGHT = {"coder": 0.6, "good": 0.8, "bad": 0.3}  # chances: the coder is right; a reviewer says yes after that
RUNS = 20  # of each decision
CODED = lottery((RIGHT["coder"], votes(RIGHT["good"], 2)), (1 - RIGHT["coder"], votes(RIGHT["bad"], 2)))
REVIEWERS = ("reviewer-a", "reviewer-b")


def stub(first: int = 0, *, hangs: bool = False, breaks: bool = False) -> Any:
    """A model that answers by the request and the seed of the call, or by numbers from `first` on."""
    numbers = itertools.count(first)

    async def answer(messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:
        output = await decide(messages, config)
        output.usage = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)
        return output

    async def decide(messages: Any, config: Any) -> ModelOutput:
        system = messages[0].text.partition("\n")[0]
        seed = next(numbers) if config.seed is None else config.seed
        if system == "coder":
            if messages[-1].role != "tool":
                return ModelOutput.for_tool_call("stub", "lookup", {"key": "k"})
            word = "good" if uniform(seed, "coder") < RIGHT["coder"] else "bad"
            return ModelOutput.for_tool_call("stub", "submit", {"answer": word})
        if hangs:
            await asyncio.sleep(60)
        if breaks and uniform(seed, "breaks") < 0.5:
            raise ConnectionError("the endpoint broke")
        yes = uniform(seed, system) < RIGHT[messages[-1].text]
        return ModelOutput.from_content("stub", "yes" if yes else "no")

    return get_model("mockllm/model", memoize=False, custom_outputs=answer)


class World:
    """What the task's tool does, and how often it did it."""

    def __init__(self) -> None:
        self.effects: Any = "none"
        self.found, self.lookups = "value of k", 0

    def task(self) -> Task:
        """A coder, who uses a tool; then two reviewers at the same time; half a point for each yes."""

        @tool
        def lookup() -> Any:
            async def execute(key: str) -> str:
                """Look a key up.

                Args:
                  key: what to look up.
                """
                self.lookups += 1
                return self.found

            return execute

        @agent
        def reviewer(name: str) -> Any:
            async def execute(state: AgentState) -> AgentState:
                asked = [ChatMessageSystem(content=name), state.messages[-1]]
                state.output = await get_model().generate(asked)
                return state

            return execute

        @solver
        def team() -> Any:
            async def solve(state: Any, generate: Any) -> Any:
                tools = [declared(lookup(), self.effects) if self.effects else lookup()]
                prompt = AgentPrompt(instructions="coder", assistant_prompt=None, submit_prompt=None)
                coder = react(name="coder", prompt=prompt, tools=tools)
                coded = await run(coder, state.input_text)
                word = coded.output.completion.split()[-1]  # after what was said beside the tool call
                reviews = await collect(*(run(reviewer(name), word, name=name) for name in REVIEWERS))
                state.output = ModelOutput.from_content("team", " ".join(r.output.completion for r in reviews))
                return state

            return solve

        @scorer(metrics=[accuracy()])
        def half() -> Any:
            async def score(state: Any, target: Any) -> Score:
                return Score(value=0.5 * state.output.completion.split().count("yes"))

            return score

        return Task(dataset=[Sample(id="q", input="task")], solver=team(), scorer=half(), name="quiz")


def logged(world: World, home: Path, epochs: int = 1) -> Path:
    """An evaluation log of the team, whose coder used its tool."""
    [log] = eval(world.task(), model=stub(), epochs=epochs, log_dir=str(home), display="none")
    assert log.status == "success"
    [path] = home.glob("*.eval")
    return path.rename(home / "quiz.eval")


def replayer(world: World, path: Path, **options: Any) -> InspectReplayer:
    given: dict[str, Any] = {"model": stub, "effects": {"submit": "none"}, "at_once": RUNS} | options
    return InspectReplayer(world.task, [path], **given)


def calls(path: Path) -> dict[str, list[tuple[str, str, str]]]:
    """By trace, the calls in the order of the reader: event, agent, what was said."""
    whole = read_eval_log(str(path))
    said = {f"quiz/q/{sample.epoch}": sample.events for sample in whole.samples or ()}
    traces = credit.read(path)
    n = traces.sizes.events
    names = np.array(traces.traces["trace"].to_pylist())[np.asarray(traces.graph.trace_ids)[:n]]
    agents = np.array(traces.agents["name"].to_pylist())[np.asarray(traces.graph.agent_ids)[:n]]
    actions = np.asarray(traces.graph.action_mask)[:n]
    out: dict[str, list[tuple[str, str, str]]] = {}
    for trace, agent_name, event, action in zip(
        names, agents, traces.events["event"].to_pylist(), actions, strict=True
    ):
        if action:
            out.setdefault(str(trace), []).append((event, str(agent_name), _said(said[str(trace)][int(event)].output)))
    return out


def _said(output: ModelOutput) -> str:
    message = output.choices[0].message
    return message.tool_calls[0].arguments.get("answer", "") if message.tool_calls else message.text


def truths(decisions: list[tuple[str, str, str]]) -> list[dict[float, float]]:
    """The chances of the rewards before each call of a logged run."""
    assert [name for _, name, _ in decisions] == ["coder", "coder", *REVIEWERS]
    word, first = decisions[1][2], decisions[2][2]
    chance = RIGHT[word]
    return [CODED, CODED, votes(chance, 2), votes(chance, 1, given=0.5 * (first == "yes"))]


def prefix_before(path: Path, number: int) -> Prefix:
    """The prefix of a call of the first run."""
    [decisions] = [found for trace, found in calls(path).items() if trace == "quiz/q/1"]
    events = tuple(event for event, _, _ in decisions)
    return Prefix("quiz/q/1", "quiz/q", events[:number], events[number])


def replayed(driver: Any, home: Path, monkeypatch: pytest.MonkeyPatch, *plan: str) -> credit.Traces:
    """The log in `home` with what a plan gives, through the command line."""
    module = types.ModuleType("driver_of_tasks")
    module.team = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "driver_of_tasks", module)
    monkeypatch.chdir(home)
    for arguments in (
        ["plan", "quiz.eval", *plan, "-o", "plan.jsonl"],
        ["replay", "plan.jsonl", "--driver", "driver_of_tasks:team", "--results", "results.jsonl", "--concurrency", "1",
         "--log", "quiz.eval", "-o", "with.jsonl"],
    ):  # fmt: skip
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0, result.output
    return credit.read(home / "with.jsonl")


def test_values_of_a_real_task_are_within_their_errors_of_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent with a tool, and two in parallel; every decision against the exact chances of its rewards."""
    world = World()
    path = logged(world, tmp_path, epochs=3)
    expected = [truth for decisions in calls(path).values() for truth in truths(decisions)]
    budget = ("--budget", str(RUNS * len(expected)), "--least", str(RUNS))
    known = replayed(replayer(world, path), tmp_path, monkeypatch, "--for", "value", *budget)
    n = known.sizes.events
    actions = np.asarray(known.graph.action_mask)[:n]
    value, error = (np.asarray(known.evidence[name].array)[:n][actions] for name in ("value", "replay_stderr"))
    check_means(value, error, RUNS, expected)


def worth(present: tuple[str, ...]) -> float:
    """Expected reward where the other agents answer "bad" to everything."""
    chance = mean_and_spread(CODED)[0] if "coder" in present else RIGHT["bad"]
    return sum(0.5 * chance for name in present if name.startswith("reviewer"))


def test_shapley_values_of_a_real_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    path = logged(world, tmp_path)
    mute = '{"tool_calls": [{"function": "submit", "arguments": {"answer": "bad"}}]}'
    names = ("coder", *REVIEWERS)
    units = ("--units", ",".join(names))
    driver = replayer(world, path, mute=mute)
    known = replayed(driver, tmp_path, monkeypatch, "--for", "shapley", "--budget", str(12 * 8), *units)
    n = known.sizes.events
    owner = np.array(known.agents["name"].to_pylist())[np.asarray(known.graph.agent_ids)[:n]]
    actions = np.asarray(known.graph.action_mask)[:n]
    share, error = (np.asarray(known.evidence[name].array)[:n] for name in ("share", "share_stderr"))
    for name in names:
        others = [other for other in names if other != name]
        true = sum(
            math.factorial(size) * math.factorial(2 - size) / math.factorial(3) * (worth((*team, name)) - worth(team))
            for size in range(3)
            for team in itertools.combinations(others, size)
        )
        row = int(np.flatnonzero((owner == name) & actions)[0])
        assert abs(share[row] - true) < 3.5 * error[row] and 0.005 < error[row] < 0.08


def test_replaced_and_muted_agents(tmp_path: Path) -> None:
    world = World()
    path = logged(world, tmp_path)
    driver = replayer(world, path)
    for word in ("good", "bad"):
        message = f'{{"tool_calls": [{{"function": "submit", "arguments": {{"answer": "{word}"}}}}]}}'
        runs = driver.run(prefix_before(path, 1), replace=message, n=RUNS, seed=0)
        assert {run.alternative for run in runs} == {f'submit({{"answer": "{word}"}})'}
        mean, spread = mean_and_spread(votes(RIGHT[word], 2))
        assert abs(np.mean([run.reward for run in runs]) - mean) < 3.7 * spread / np.sqrt(RUNS)
        assert all(run.tokens == 10 for run in runs)  # two reviewers
    runs = driver.run(prefix_before(path, 2), replace="yes", n=8, seed=0)
    assert {run.alternative for run in runs} == {"yes"} and min(run.reward for run in runs) >= 0.5
    runs = driver.run(Prefix("quiz/q/1", "quiz/q"), forbid=REVIEWERS, n=3, seed=0)
    assert [run.reward for run in runs] == [0.0] * 3
    with pytest.raises(CreditError, match="tool_calls of a replacement is"):
        driver.run(prefix_before(path, 1), replace='{"tool_calls": "submit"}', n=1, seed=0)


def test_a_prefix_that_does_not_reproduce_is_named(tmp_path: Path) -> None:
    world = World()
    path = logged(world, tmp_path)
    driver = replayer(world, path)
    world.found = "other"
    with pytest.raises(PrefixError, match="tool 'lookup' answered 'other'; the log has 'value of k'"):
        driver.run(prefix_before(path, 1), n=1, seed=0)
    with pytest.raises(PrefixError, match="event '0' of 'quiz/q/1' is no model call of the log"):
        driver.run(Prefix("quiz/q/1", "quiz/q", (), "0"), n=1, seed=0)
    for trace, words in (("quiz/q/9", "has no sample 'q' of epoch '9'"), ("other/q/1", "expected STEM/ID/EPOCH")):
        with pytest.raises(CreditError, match=words):
            driver.run(Prefix(trace, "quiz/q"), n=1, seed=0)


def test_tools_with_effects_are_declared_or_refused(tmp_path: Path) -> None:
    world = World()
    path = logged(world, tmp_path)
    world.effects, world.lookups = "once", 0
    driver = replayer(world, path)
    driver.run(prefix_before(path, 1), n=3, seed=0)
    assert world.lookups == 0  # answered from the log
    with pytest.raises(CreditError, match="tool:coder/lookup/0 must not be repeated"):
        driver.run(prefix_before(path, 0), n=1, seed=0)
    world.effects = ""
    with pytest.raises(CreditError, match="tool 'lookup' is not declared"):
        driver.run(prefix_before(path, 0), n=1, seed=0)
    assert world.lookups == 0


def test_runs_that_fail_or_hang_are_named_and_the_others_count(tmp_path: Path) -> None:
    world = World()
    path = logged(world, tmp_path)
    outcomes = replayer(world, path, model=lambda: stub(breaks=True)).run_seeds(
        prefix_before(path, 2), seeds=list(range(8))
    )
    failed = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert 0 < len(failed) < 8 and all("the endpoint broke" in str(outcome) for outcome in failed)
    [late] = replayer(world, path, model=lambda: stub(hangs=True), seconds=1).run_seeds(
        prefix_before(path, 2), seeds=[0]
    )
    assert str(late) == "the run did not end within 1 s"
