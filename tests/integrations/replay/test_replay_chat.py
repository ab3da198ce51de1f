"""Message lists on a chat endpoint of the loopback address, re-run by the tape, against exact values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from stub_model import served

from credit.replay.drivers.call_session import Session
from credit.replay.drivers.call_tape import Tape, read_tapes, write_log, write_tapes
from credit.replay.drivers.chat_driver import converse
from credit.replay.drivers.tape_driver import TapeReplayer, record
from credit.replay.replayer import Prefix, PrefixError
from graphs import CreditError
from graphs.logs import read

GOOD, YES = 0.6, {"good": 0.8, "bad": 0.3}


def policy(system: str, messages: list[dict[str, Any]], draw: Any) -> dict[str, Any]:
    if system == "coder":
        if messages[-1]["role"] != "tool":
            call = {"name": "lookup", "arguments": '{"key": "k"}'}
            return {"content": None, "tool_calls": [{"id": "call-1", "type": "function", "function": call}]}
        return {"content": "good" if draw("coder") < GOOD else "bad"}
    return {"content": "yes" if draw("critic") < YES[messages[-1]["content"]] else "no"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(policy) as address:
        yield address


@dataclasses.dataclass
class Team:
    url: str
    effects: Any = "replayable"
    lookups: int = 0
    wrong: bool = False

    def __call__(self, session: Session, task: str, seed: int) -> float:
        def lookup(key: str) -> str:
            self.lookups += 1
            return "other" if self.wrong else f"value of {key}"

        def ask(agent: str, text: str, **options: Any) -> str:
            messages = [{"role": "system", "content": agent}, {"role": "user", "content": text}]
            return converse(session, agent, messages, url=self.url, model="stub", seed=seed, seconds=10, **options)

        code = ask("coder", task, tools=[session.tool(self.effects)(lookup)])
        return float(ask("critic", code) == "yes")


CALLS = ("coder/0", "coder/1", "critic/0")


def before(number: int) -> Prefix:
    return Prefix("t", "q", CALLS[:number], CALLS[number])


@pytest.mark.slow
def test_values_of_message_lists(url: str, tmp_path: Any) -> None:
    team = Team(url)
    tape = record(team, "t", "q", seed=3)
    code = tape.calls[2].response["content"]
    driver = TapeReplayer(team, {"t": tape}, mute="bad")
    start = GOOD * YES["good"] + (1 - GOOD) * YES["bad"]
    for number, truth in enumerate((start, start, YES[code])):
        runs = driver.run(before(number), n=60, seed=100)
        reward = np.array([run.reward for run in runs])
        assert abs(reward.mean() - truth) < 3.5 * 0.5 / np.sqrt(60)
        assert {run.tokens for run in runs} == {2 * (3 - number)}
    for word in YES:
        runs = driver.run(before(1), replace=word, n=60, seed=0)
        assert abs(np.mean([run.reward for run in runs]) - YES[word]) < 3.5 * 0.5 / np.sqrt(60)
    assert {run.reward for run in driver.run(Prefix("t", "q"), forbid=("critic",), n=3, seed=0)} == {0.0}
    write_tapes([tape], tmp_path / "tapes.jsonl")
    assert read_tapes(tmp_path / "tapes.jsonl") == {"t": tape}
    write_log([tape], tmp_path / "log.jsonl")
    traces = read(tmp_path / "log.jsonl")
    assert not traces.problems and tuple(traces.events["event"].to_pylist()) == CALLS


def test_prefixes_that_do_not_reproduce_are_named(url: str) -> None:
    team = Team(url)
    tape = record(team, "t", "q", seed=3)
    team.wrong = True
    with pytest.raises(PrefixError, match=r"tool:lookup/0 answered 'other'; the log has 'value of k'"):
        TapeReplayer(team, {"t": tape}).run(before(1), n=1, seed=0)
    team.wrong = False
    calls = tuple(dataclasses.replace(call, request="x") if call.id == "coder/0" else call for call in tape.calls)
    changed = Tape("t", "q", calls, tape.reward)
    with pytest.raises(PrefixError, match="call 'coder/0' was asked for something else than in the log"):
        TapeReplayer(team, {"t": changed}).run(before(1), n=1, seed=0)
    with pytest.raises(PrefixError, match="ended before call 'critic/5'"):
        TapeReplayer(team, {"t": tape}).run(Prefix("t", "q", CALLS, "critic/5"), n=1, seed=0)
    with pytest.raises(CreditError, match="trace is 'u'; expected one of the 1 tapes"):
        TapeReplayer(team, {"t": tape}).run(Prefix("u", "q"), n=1, seed=0)


def test_tools_that_must_not_be_repeated(url: str) -> None:
    team = Team(url, effects="once")
    driver = TapeReplayer(team, {"t": record(team, "t", "q", seed=3)})
    team.lookups = 0
    driver.run(before(1), n=2, seed=0)
    assert team.lookups == 0
    with pytest.raises(CreditError, match="tool:lookup/0 must not be repeated, and the log has no answer to it"):
        driver.run(before(0), n=1, seed=0)
    with pytest.raises(CreditError, match="effects is 'often'"):
        Session().tool("often")  # type: ignore[arg-type]
    with pytest.raises(CreditError, match="tool 'lookup' is not declared"):
        Session().check_tools(["lookup"])
