"""Questions of the survey's decision figure to which logs answer yes, and logs that are a step short of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from credit.methods.survey_questions import Question, answer_questions
from graphs.logs import read


def asked(path: Path, *teams: str, talk: bool = True) -> dict[str, Question]:
    """The questions by name, for traces of messages, a letter an agent; with `talk` each is sent to the next one."""
    lines = []
    for i, team in enumerate(teams):
        events = [{"id": f"{k}", "type": "message", "agent": agent} for k, agent in enumerate(team)]
        edges = [{"src": f"{k}", "dst": f"{k + 1}", "type": "message"} for k in range(len(team) - 1) if talk]
        trace = {"trace_id": f"t{i}", "task_id": "q", "events": events, "edges": edges, "rewards": {"team": i % 2}}
        lines.append(json.dumps(trace))
    path.write_text("\n".join(lines))
    return {question.name: question for question in answer_questions(read(path))}


def test_teams_of_unequal_size_are_dynamic(tmp_path: Path) -> None:
    grown = asked(tmp_path / "x.jsonl", "ab", "abc")["dynamic team size"]
    assert grown.answer and grown.stated == "agents that act in a trace: 2 to 3"
    assert "c3" in grown.advice and "rloo and c3 have no bias" in grown.evidence
    assert asked(tmp_path / "y.jsonl", "abc", "abc")["dynamic team size"].answer is False


def test_a_lead_through_which_all_talk_goes_is_a_bottleneck(tmp_path: Path) -> None:
    found = asked(tmp_path / "x.jsonl", "abac", "abac")
    assert found["orchestrator bottleneck"].answer and not found["debate"].answer
    assert found["orchestrator bottleneck"].stated == "one agent delegates in 2 of 2 traces with several agents"
    half = asked(tmp_path / "y.jsonl", "abac", "abc")["orchestrator bottleneck"]
    assert half.answer is False and "in 1 of 2 traces" in half.stated


def test_agents_that_answer_each_other_debate(tmp_path: Path) -> None:
    found = asked(tmp_path / "x.jsonl", "abcbaca", "abcbaca")
    assert found["debate"].answer and not found["orchestrator bottleneck"].answer
    assert found["debate"].stated == "agents answer each other in 2 of 2 traces with several agents"
    assert "not measured on debates" in found["debate"].evidence
    assert asked(tmp_path / "y.jsonl", "abcbaca", talk=False)["debate"].answer is False


Events = list[dict[str, Any]]
PAIR: Events = [{"type": "message", "agent": "x", "agent_reward": 0.25}, {"type": "message", "agent": "y"}]
JUDGE = {"type": "aggregate", "agent": "judge"}
# Evidence, traces that say enough for a number, and traces with the same evidence that do not.
DECIDED: dict[str, tuple[str, list[Events], list[Events]]] = {
    "when to stop": (
        "stop_propensity",
        [[{"type": kind, "agent": "a", "stop_propensity": 0.5}] for kind in ("stop", "message") * 2],
        [[{"type": "message", "agent": "a", "stop_propensity": 0.5}, {"type": "stop", "agent": "a"}]],
    ),
    "whether to spawn": (
        "spawn_propensity",
        [[{"type": kind, "agent": "a", "spawn_propensity": 0.5}] for kind in ("spawn", "message") * 2],
        [[{"type": "spawn", "agent": "a", "spawn_propensity": 0.5}]] * 4,
    ),
    "whom to ask": (
        "propensity",
        [[{"type": "orchestrator_decision", "agent": "a", "propensity": 0.5}, {"type": "message", "agent": to}]
         for to in "bbc"],
        [[{"type": "orchestrator_decision", "agent": "a", "propensity": 0.5}, {"type": "message", "agent": "a"}]] * 3,
    ),
    "what to aggregate": (
        "agent_reward",
        [[PAIR[0], PAIR[1] | {"agent_reward": 0.75}, JUDGE]],
        [[PAIR[1] | {"agent": "x"}, PAIR[1], JUDGE | {"agent_reward": 1.0}]],
    ),
}  # fmt: skip
COMPILED = ("when to stop", "whether to spawn")  # whose estimate takes seconds to compile


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in COMPILED)) for name in DECIDED]
)
def test_questions_about_decisions_are_answered_as_the_command_answers(name: str, tmp_path: Path) -> None:
    """Evidence at any event was enough, and the command that the answer named refused the log."""
    evidence, enough, lacking = DECIDED[name]
    without = [[{k: v for k, v in event.items() if k != evidence} for event in trace] for trace in enough]
    answers = []
    for traces in (enough, without, lacking):
        lines = []
        for i, trace in enumerate(traces):
            events = [{"id": str(k), **event} for k, event in enumerate(trace)]
            kind = "aggregate" if name == "what to aggregate" else "message"
            edges = [{"src": str(k), "dst": str(len(events) - 1), "type": kind} for k in range(len(events) - 1)]
            log = {"trace_id": f"t{i}", "task_id": "q", "events": events, "edges": edges, "rewards": {"team": i % 2}}
            lines.append(json.dumps(log))
        path = tmp_path / "log.jsonl"
        path.write_text("\n".join(lines))
        found = {question.name: question for question in answer_questions(read(path))}
        answers.append([other for other in DECIDED if found[other].answer])
    assert answers == [[name], [], []], found[name].stated
    assert f"{evidence} of" in found[name].stated and " has 0 numbers: " in found[name].stated
