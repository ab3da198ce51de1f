"""Questions of the survey's decision figure to which logs answer yes, and logs that are a step short of it."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_decisions_with_their_evidence_are_told_apart(tmp_path: Path) -> None:
    """Each kind of decision with its evidence, with none, and the evidence without such a decision."""
    cases = {
        "when to stop": ("stop", "stop_propensity"),
        "whether to spawn": ("spawn", "spawn_propensity"),
        "whom to ask": ("orchestrator_decision", "propensity"),
        "what to aggregate": ("aggregate", "agent_reward"),
    }
    for name, (kind, evidence) in cases.items():
        answers = []
        for content in ({"type": kind, evidence: 0.5}, {"type": kind}, {"type": "message", evidence: 0.5}):
            event = {"id": "0", "agent": "lead"} | content
            log = {"trace_id": "t", "task_id": "q", "events": [event], "edges": [], "rewards": {"team": 1.0}}
            path = tmp_path / "log.jsonl"
            path.write_text(json.dumps(log))
            found = {question.name: question for question in answer_questions(read(path))}
            answers.append([other for other in cases if found[other].answer])
        assert answers == [[name], [], []], name
