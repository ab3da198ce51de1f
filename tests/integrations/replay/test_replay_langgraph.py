"""A graph in the real LangGraph, forked from checkpoints, against exact values."""

from __future__ import annotations

import importlib.util
import json
import operator
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest

if importlib.util.find_spec("langgraph") is None:  # an installation that is broken fails
    pytest.skip("LangGraph is not installed", allow_module_level=True)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from stub_model import check_means, lottery, mean_and_spread, served, votes

import credit
from credit.replay.added_evidence import add_replays
from credit.replay.drivers.langgraph_driver import LangGraphReplayer, decision, write_thread_log
from credit.replay.execution import Limits, execute
from credit.replay.replayer import Prefix, PrefixError
from credit.replay.run_planning import plan_replays
from graphs import CreditError

RUNS = 60
GOOD, YES = 0.6, {"good": 0.8, "bad": 0.3}
START_LOTTERY = lottery((GOOD, votes(YES["good"], 2)), (1 - GOOD, votes(YES["bad"], 2)))


class State(TypedDict):
    code: str
    votes: Annotated[list[str], operator.add]


def policy(system: str, messages: list[dict[str, Any]], draw: Any) -> dict[str, Any]:
    if system == "coder":
        return {"content": "good" if draw("coder") < GOOD else "bad"}
    return {"content": "yes" if draw(system) < YES[messages[-1]["content"]] else "no"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(policy) as address:
        yield address


def reward(state: Any) -> float:
    return state["votes"].count("yes") / 2


def team(url: str) -> Any:
    """A coder, then two reviewers in one superstep."""

    def ask(name: str, text: str, seed: int) -> str:
        body = {"model": "stub", "seed": seed, "messages": [
            {"role": "system", "content": name}, {"role": "user", "content": text}]}  # fmt: skip
        request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])

    def seed_of(config: Any) -> int:
        return int(config["configurable"].get("seed", 0))

    def coder(state: Any, config: Any) -> dict[str, Any]:
        return {"code": ask("coder", "task", seed_of(config))}

    def reviewer(name: str) -> Any:
        def review(state: Any, config: Any) -> dict[str, Any]:
            return {"votes": [ask(name, state["code"], seed_of(config))]}

        return decision(review, name=name, idle=lambda state: {"votes": ["no"]})

    builder = StateGraph(State)
    builder.add_node("coder", decision(coder))
    builder.add_edge(START, "coder")
    for name in ("left", "right"):
        builder.add_node(name, reviewer(name))
        builder.add_edge("coder", name)
        builder.add_edge(name, END)
    return builder.compile(checkpointer=InMemorySaver())


def logged(graph: Any, path: Path) -> credit.Traces:
    for i in range(3):
        graph.invoke({"code": "", "votes": []}, {"configurable": {"thread_id": f"t{i}", "seed": 100 + i}})
    write_thread_log(graph, {f"t{i}": "q" for i in range(3)}, reward, path)
    return credit.read(path)


def test_values_of_forks_are_within_their_errors_of_the_truth(url: str, tmp_path: Path) -> None:
    graph = team(url)
    traces = logged(graph, tmp_path / "log.jsonl")
    assert traces.events["event"].to_pylist()[:3] == ["coder/1", "left/2", "right/2"]
    codes = [graph.get_state({"configurable": {"thread_id": f"t{i}"}}).values["code"] for i in range(3)]
    plan = plan_replays(traces, "value", RUNS * 9, least=RUNS)
    limits = Limits(concurrency=2, seconds=60)
    results = execute(plan, LangGraphReplayer(graph, reward), tmp_path / "results.jsonl", limits=limits)
    known = add_replays(traces, plan, results)
    truth = []
    for code in codes:  # both reviewers are drawn anew, since they are in one superstep
        truth += [START_LOTTERY, votes(YES[code], 2), votes(YES[code], 2)]
    assert results.done == RUNS * 9
    check_means(known.evidence["value"].amounts, known.evidence["replay_stderr"].amounts, RUNS, truth)
    write_thread_log(graph, {f"t{i}": "q" for i in range(3)}, reward, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "log.jsonl").read_text()  # forks left no trace
    with pytest.raises(CreditError, match="thread 't9' has no last checkpoint"):
        write_thread_log(graph, {"t9": "q"}, reward, tmp_path / "none.jsonl")


def test_replaced_and_forbidden_nodes(url: str, tmp_path: Path) -> None:
    graph = team(url)
    logged(graph, tmp_path / "log.jsonl")
    driver = LangGraphReplayer(graph, reward, alternative=lambda state: state["code"])
    for code in YES:
        runs = driver.run(Prefix("t0", "q", (), "coder/1"), replace=json.dumps({"code": code}), n=RUNS, seed=0)
        assert {run.alternative for run in runs} == {code}
        mean, spread = mean_and_spread(votes(YES[code], 2))
        assert abs(np.mean([run.reward for run in runs]) - mean) < 3.7 * spread / np.sqrt(RUNS)
    runs = driver.run(Prefix("t0", "q", ("coder/1",), "left/2"), replace='{"votes": ["yes"]}', n=40, seed=0)
    assert min(run.reward for run in runs) == 0.5  # the other reviewer of the superstep still decides
    runs = driver.run(Prefix("t0", "q"), forbid=("left", "right"), n=3, seed=0)
    assert [run.reward for run in runs] == [0.0] * 3
    with pytest.raises(CreditError, match="agent 'coder' is forbidden, and it has no idle answer"):
        driver.run(Prefix("t0", "q"), forbid=("coder",), n=1, seed=0)
    with pytest.raises(CreditError, match="expected the node's update as a JSON object"):
        driver.run(Prefix("t0", "q", (), "coder/1"), replace="good", n=1, seed=0)
    for prefix in (Prefix("t9", "q"), Prefix("t0", "q", (), "coder/7")):
        with pytest.raises(PrefixError, match="has no checkpoint before"):
            driver.run(prefix, n=1, seed=0)
