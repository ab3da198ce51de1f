"""Runs that were cut short are named, in every format that states results of calls."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.endings import ANSWER_CUT, BROKEN_OFF, CUT, LIMITED, ended_early, endings
from credit.reports.event_errors import cut_answers
from credit.reports.leading_causes import leading_causes
from credit.reports.outcome_differences import outcome_differences
from credit.reports.triage import triage
from credit.reports.unread_outcomes import unscored_ends
from credit.sides.side_differences import side_differences
from graphs.logs import read
from tests.credit.page.test_page import embedded
from tests.graphs.reading.all_formats import ALL
from tests.graphs.reading.planted_calls import HUNG, STATED, WRITERS, Rounds
from tests.graphs.reading.samples import SAMPLES
from tests.recordings.spans import span, spans_request

RECORDINGS = Path(__file__).parents[2] / "recordings"


@pytest.mark.parametrize("name", STATED)
def test_a_session_that_ends_in_a_call_without_a_result_is_named(tmp_path: Path, name: str) -> None:
    went_on: Rounds = [["ls"], [HUNG], ["ls"]]
    for rounds in ([["ls"], [HUNG]], [["ls"], ["ls", HUNG]], [["ls"], ["ls"]], went_on):
        if rounds is went_on and name in ("codex", "rollouts"):  # calls side by side are of one message
            continue
        text = STATED[name](rounds)
        log = tmp_path / ("log.jsonl" if "\n" in text else "log.json")
        log.write_text(text)
        assert len(endings(read(log))) == (HUNG in rounds[-1]), rounds


def test_a_call_that_a_person_interrupted_is_no_call_without_a_result(tmp_path: Path) -> None:
    """A session "was cut short, or the call ended it", though the log said who had stopped it."""
    for number, told in enumerate((False, True)):
        session = [json.loads(line) for line in STATED["claude-code"]([["ls"], [HUNG]]).splitlines()]
        last = session[-1]
        (call,) = (block["id"] for block in last["message"]["content"] if block["type"] == "tool_use")
        said = {
            "type": "tool_result",
            "tool_use_id": call,
            "content": "[Request interrupted by user]",
            "is_error": True,
        }
        answer = {
            "type": "user",
            "uuid": "stop",
            "parentUuid": last["uuid"],
            "message": {"role": "user", "content": [said]},
        }
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in [*session, *[last | answer] * told]))
        assert len(endings(read(path))) == (not told)


def test_summary_and_report_name_runs_that_were_cut_short(tmp_path: Path) -> None:
    """Nothing said that a session had ended in a call whose result never came."""
    lines = []
    for number in range(3):
        line = json.loads(STATED["native"]([["ls"], [HUNG] if number else ["ls"]]))
        lines.append(json.dumps(line | {"trace_id": f"t{number}"}) + "\n")
    (tmp_path / "log.jsonl").write_text("".join(lines))
    words = (
        "2 of 3 traces end in a tool call without a result: the run was cut short, or the call ended it. "
        "Such as: event c1-0 of hung, trace t1"
    )
    assert [one.words for one in triage(read(tmp_path)).endings] == [words]
    assert words in CliRunner().invoke(cli, ["summary", str(tmp_path)]).stdout
    (told,) = json.loads(CliRunner().invoke(cli, ["summary", str(tmp_path), "--json"]).stdout)["endings"]
    first = {"trace": "t1", "event": "c1-0", "of_sides": []}
    assert told == {"words": words, "traces": 2, "failed": None, "succeeded": None} | first
    out = tmp_path / "report.html"
    assert CliRunner().invoke(cli, ["report", str(tmp_path / "log.jsonl"), "-o", str(out)]).exit_code == 0
    assert embedded(out.read_text())[0]["overview"]["triage"]["endings"] == [told]


def test_how_traces_end_is_compared_with_outcomes(tmp_path: Path) -> None:
    """All failed sessions were cut short and no other was, and the page said that there was nothing to compare."""
    lines = []
    for number in range(24):
        line = json.loads(STATED["native"]([["ls"], [HUNG] if number % 2 else ["ls"]]))
        reached = {"metrics": {"ended_at_limit": 1.0}} if number % 4 == 1 else {}
        line |= {"trace_id": f"t{number}", "rewards": {"team": 1.0 - number % 2}} | reached
        lines.append(json.dumps(line) + "\n")
    (tmp_path / "log.jsonl").write_text("".join(lines))
    traces = read(tmp_path / "log.jsonl")
    assert not traces.problems
    found = outcome_differences(traces)
    rows = {row.what: row for row in found.rows}
    assert (rows[CUT].failed, rows[CUT].succeeded, rows[CUT].stands_out) == (1, 0, True)
    assert (rows[LIMITED].failed, rows[LIMITED].succeeded) == (0.5, 0)
    assert f"More in failed ones: {CUT}" in found.headline()
    short, limited = triage(traces).endings
    assert (short.failed, short.succeeded, limited.failed, limited.succeeded) == (12, 0, 6, 0)
    assert "These are 12 of 12 failed ones and 0 of 12 succeeded ones." in short.words


def test_logs_that_state_no_results_state_no_ends(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(STATED["native"]([[HUNG], [HUNG]]))
    assert endings(read(tmp_path)) == ()


def with_key(value: Any, key: str, new: Any, beside: str) -> Any:
    """A copy of a log in which each object with a key `beside` has another one, too."""
    if isinstance(value, dict):
        inner = {name: with_key(part, key, new, beside) for name, part in value.items()}
        return inner | {key: new} if beside in value else inner
    return [with_key(part, key, new, beside) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("name", "beside", "key", "limit", "other"),
    [
        ("adk", "invocationId", "finishReason", "MAX_TOKENS", "STOP"),
        ("art", "index", "finish_reason", "length", "stop"),
        ("mini-swe-agent", "mini_version", "exit_status", "LimitsExceeded", "Submitted"),
        ("opencode", "tokens", "reason", "length", "tool-calls"),
        ("rllm", "episode_id", "termination_reason", "max_turns_exceeded", "env_done"),
        ("rollouts of skyrl", "input_prompt", "stop_reason", "length", "stop"),
        ("rollouts of nemo gym", "output", "incomplete_details", {"reason": "max_output_tokens"}, None),
        ("spans of strands", "gen_ai.request.model", "gen_ai.response.finish_reasons", ["length"], ["stop"]),
        ("swe-agent", "model_stats", "exit_status", "submitted (exit_cost)", "submitted"),
        ("tau2-bench", "reward_info", "termination_reason", "max_steps", "user_stop"),
        ("verifiers", "nodes", "stop_condition", "max_turns_reached", "stop"),
        ("verifiers", "nodes", "is_timeout", True, False),
        ("verifiers results", "completion", "is_truncated", True, False),
    ],
)
def test_a_limit_that_a_log_states_is_named(
    tmp_path: Path, name: str, beside: str, key: str, limit: Any, other: Any
) -> None:
    """A reply that was cut off at its limit of tokens looked like any other."""
    sample = SAMPLES[name]
    for number, reason in enumerate((limit, other)):
        values = with_key(sample.values, key, reason, beside)
        traces = read(sample._replace(values=values).write(tmp_path / str(number)))
        words = [one.words for one in endings(traces) if "at a limit of tokens" in one.words]
        assert len(words) == (reason == limit), (words, traces.problems)


def of_langchain(reason: str) -> dict[str, Any]:
    """Outputs of a run of LangSmith, with why the answer ended where OpenAI's integration writes it."""
    return {"generations": [[{"text": "x", "generation_info": {"finish_reason": reason}}]]}


def of_anthropic(reason: str) -> dict[str, Any]:
    message = {"lc": 1, "kwargs": {"content": "x", "response_metadata": {"stop_reason": reason}}}
    return {"generations": [[{"text": "x", "message": message}]]}


def of_choices(reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": "x"}}]}


CUT_IN = {
    "langsmith": ("langsmith", "run_type", "outputs", of_langchain),
    "langsmith of anthropic": ("langsmith", "run_type", "outputs", of_anthropic),
    "langfuse": ("langfuse lines", "traceId", "output", of_choices),
    "langfuse, of OpenTelemetry": (
        "langfuse lines", "traceId", "metadata",
        lambda reason: {"attributes": {"gen_ai.response.finish_reasons": json.dumps([reason])}},
    ),
    "weave": ("weave", "op_name", "output", of_choices),
    "braintrust": ("braintrust", "root_span_id", "output", lambda reason: of_choices(reason)["choices"]),
    "langgraph": ("langgraph", "additional_kwargs", "response_metadata", lambda reason: {"finish_reason": reason}),
    "langgraph of responses": (
        "langgraph", "additional_kwargs", "response_metadata",
        lambda reason: {"incomplete_details": {"reason": reason.replace("length", "max_output_tokens")}},
    ),
    "agent-lightning": ("agent-lightning", "logprobs", "finish_reason", str),
    "agent-lightning spans": ("agent-lightning spans", "gen_ai.response.id", "gen_ai.completion.0.finish_reason", str),
    "mini-swe-agent": ("mini-swe-agent", "actions", "response", of_choices),
    "openhands": ("openhands", "tool_call_id", "model_response", of_choices),
    "tau2-bench": ("tau2-bench", "usage", "raw_data", of_choices),
    "claude-code": ("claude-code", "model", "stop_reason", lambda reason: reason.replace("length", "max_tokens")),
    "native": ("native", "agent", "status", str),
}  # fmt: skip
"""By reader: the sample, and beside which key its model calls have which other, of why their replies ended."""


@pytest.mark.parametrize("case", CUT_IN)
def test_an_answer_that_was_cut_is_counted_for_its_agent(tmp_path: Path, case: str) -> None:
    """`finish_reason: length` was read from four formats, and of them from the last call of a run alone."""
    name, beside, key, value_of = CUT_IN[case]
    sample = ALL[name]
    for number, reason in enumerate(("length", "stop")):
        traces = read(
            sample._replace(values=with_key(sample.values, key, value_of(reason), beside)).write(tmp_path / str(number))
        )
        cut = cut_answers(traces)
        assert bool(cut.any()) == (reason == "length"), traces.problems
        assert any("was cut at a limit" in one.why for one in triage(traces, most=None).suspects) == cut.any()


def test_sessions_and_samples_that_end_at_a_limit_are_named(tmp_path: Path) -> None:
    session = [json.loads(line) for line in STATED["claude-code"]([["ls"]]).splitlines()]
    sample = json.loads(WRITERS["inspect-ai"]([["ls"]]))
    for place, (log, is_limited) in enumerate(
        (
            (with_key(session, "stop_reason", "max_tokens", "model"), True),
            (with_key(session, "stop_reason", "tool_use", "model"), False),
            ([with_key(sample, "limit", {"type": "token", "limit": 9}, "epoch")], True),
            ([with_key(sample, "stop_reason", "max_tokens", "message")], False),
            ([sample], False),
        )
    ):
        path = tmp_path / f"{place}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in log))
        assert any("at a limit" in one.words for one in endings(read(path))) == is_limited, place


def test_an_answer_of_copilot_that_was_cut_is_named(tmp_path: Path) -> None:
    text = (RECORDINGS / "copilot_cli" / "events.jsonl").read_text()
    for number, reason in enumerate(("length", "stop")):
        log = tmp_path / f"{number}.jsonl"
        log.write_text(text.replace('"finishReason": "stop"', f'"finishReason": "{reason}"'))
        assert cut_answers(read(log)).any() == (reason == "length")


CHAT = {"gen_ai.operation.name": "chat"}
LLM = {"openinference.span.kind": "LLM"}


@pytest.mark.parametrize(
    ("attributes", "is_cut"),
    [
        (CHAT | {"gen_ai.response.finish_reasons": ["stop", "length"]}, True),
        (CHAT | {"gen_ai.response.finish_reasons": ["stop"]}, False),
        (CHAT | {"gen_ai.response.finish_reasons": []}, False),
        (CHAT | {"gen_ai.completion.0.finish_reason": "max_tokens"}, True),  # of OpenLLMetry
        (CHAT | {"ai.response.finishReason": "length"}, True),  # of Vercel's SDK
        (CHAT | {"gen_ai.output.messages": json.dumps([{"role": "assistant", "finish_reason": "length"}])}, True),
        (LLM | {"llm.finish_reason": "length"}, True),
        (LLM | {"output.value": json.dumps(of_choices("length"))}, True),
        (LLM | {"output.value": "finish_reason: length"}, False),
    ],
)
def test_a_cut_answer_is_named_by_the_attributes_of_each_convention(
    tmp_path: Path, attributes: dict[str, Any], is_cut: bool
) -> None:
    """Exporters write reasons as an array, as the convention says, and it was never unpacked; others were not read."""
    (tmp_path / "log.json").write_text(json.dumps(spans_request([span(1, 0, 0, 1, attributes)])))
    traces = read(tmp_path)
    assert not traces.problems and bool(endings(traces)) == is_cut
    assert cut_answers(traces).tolist() == [is_cut]


@pytest.mark.parametrize("reason", ["length", "stop"])
def test_a_cut_answer_is_named_by_the_event_of_its_choice(tmp_path: Path, reason: str) -> None:
    """Strands writes it there alone."""
    made = span(1, 0, 0, 1, CHAT)
    attributes = [{"key": "finish_reason", "value": {"stringValue": reason}}]
    (tmp_path / "log.json").write_text(
        json.dumps(spans_request([made | {"events": [{"name": "gen_ai.choice", "attributes": attributes}]}]))
    )
    assert cut_answers(read(tmp_path)).tolist() == [reason == "length"]


def test_the_reason_for_which_autogen_stopped_may_be_a_limit(tmp_path: Path) -> None:
    """`Maximum number of turns 2 reached.` was read by nobody."""
    sample = SAMPLES["autogen"]
    for number, (reason, is_limited) in enumerate((
        ("Maximum number of turns 2 reached.", True), ("Token usage limit reached, total token count: 9", True),
        ("Maximum number of messages 3 reached, current message count: 3", True), ("Text 'OK' mentioned", False),
        (None, False),
    )):  # fmt: skip
        values = with_key(sample.values, "stop_reason", reason, "messages")
        found = endings(read(sample._replace(values=values).write(tmp_path / str(number))))
        assert [one.words.startswith("1 of 1 trace stops at a limit") for one in found] == [True] * is_limited


def cut_runs(folder: Path, agents: str, *, after: bool) -> Path:
    """Runs of a planner and a writer, half of which failed: in these an answer of an agent is cut, the last or not."""
    lines = []
    for number in range(24):
        cut = {"status": "length"} if number % 2 else {}
        events: list[dict[str, Any]] = [
            {"id": f"e{i}", "t": i, "type": "message", "agent": agent} | (cut if agent in agents else {})
            for i, agent in enumerate(["planner", "writer", *["reader"] * after])
        ]
        edges = [{"src": a["id"], "dst": b["id"], "type": "causal"} for a, b in itertools.pairwise(events)]
        head = {"trace_id": f"t{number}", "task_id": f"q{number // 4}", "rewards": {"team": 1.0 - number % 2}}
        lines.append(json.dumps(head | {"events": events, "edges": edges}))
    (folder / "runs.jsonl").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("after", [False, True])
def test_a_cut_answer_is_a_cause_whether_the_run_ends_in_it_or_not(tmp_path: Path, after: bool) -> None:
    """A report that was cut at 1,024 tokens stood nowhere, and a limit of the run took what ended in one in with it."""
    traces = read(cut_runs(tmp_path, "writer", after=after))
    assert not traces.problems
    (cause,) = leading_causes(traces)
    assert (cause.words, cause.agent) == ("answers by writer cut at a limit of tokens", "writer")
    assert (cause.failed, cause.succeeded, cause.beyond_chance) == (12, 0, True)
    told = triage(traces)
    assert [(one.agent, one.why, one.traces, one.failed) for one in told.suspects] == [
        ("writer", "the answer was cut at a limit of tokens", 12, 12)
    ]
    assert [one.words.partition(", as")[0] for one in told.endings] == (
        [] if after else ["12 of 24 traces end in an answer that was cut at a limit of tokens"]
    )
    assert not told.quiet and [row.errors for row in told.agents] == [None] * (2 + after), "a log of no errors"
    rows = {row.what: row for row in outcome_differences(traces).rows}
    assert (ANSWER_CUT in rows) == (not after) and LIMITED not in rows


def test_a_run_that_its_own_limit_ended_ends_in_no_cut_answer(tmp_path: Path) -> None:
    values = of_root_error(ALL["langsmith"].values, of_langchain("length"))
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))
    (told,) = endings(read(tmp_path))
    assert "stops at a limit" in told.words and "GraphRecursionError" in told.words


def of_root_error(values: Any, outputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs of LangSmith whose answers have these outputs, and whose root ended at a limit."""
    ended = {"error": "GraphRecursionError('Recursion limit of 25 reached')"}
    return [
        value | ({"outputs": outputs} if value.get("run_type") == "llm" else {})
        | (ended if "run_type" in value and not value.get("parent_run_id") else {})
        for value in values
    ]  # fmt: skip


def native_runs(folder: Path, *runs: str) -> Path:
    """Runs of one agent, a word an event: `say`, `stop`, and a tool for its call and its result."""
    lines = []
    for number, run in enumerate(runs):
        events: list[dict[str, Any]] = []
        for word in run.split():
            for kind in {"say": ["message"], "stop": ["stop"]}.get(word, ["tool_call", "tool_result"]):
                tool = {"tool": word} if "tool" in kind else {}
                events.append({"id": f"e{len(events)}", "t": len(events), "type": kind, "agent": "planner"} | tool)
        edges = [{"src": a["id"], "dst": b["id"], "type": "causal"} for a, b in itertools.pairwise(events)]
        head = {"schema_version": "1.0", "trace_id": f"t{number}", "task_id": f"q{number // 4}"}
        lines.append(json.dumps(head | {"events": events, "edges": edges, "rewards": {"team": float("say" in run)}}))
    log = folder / "runs.jsonl"
    log.write_text("\n".join(lines))
    return log


@pytest.mark.parametrize(
    ("runs", "broken"),
    [
        (["ls cat say"] * 3 + ["ls cat"], 1),
        (["ls cat say"] * 2 + ["ls cat"] * 3, 0),  # whole runs end in a result, as far as these logs tell
        (["ls say"] * 3 + ["ls submit"] * 2, 0),  # no run goes on after what this tool answers
        (["ls say"] * 3 + ["say"], 0),
        (["ls say stop"] * 5 + ["ls say"], 1),
        (["ls stop"] * 5 + ["ls"], 1),
        (["ls say stop"] * 3 + ["ls say"], 0),  # to stop is a choice: others end after so many rounds
    ],
)
def test_a_run_that_is_killed_while_its_model_writes_is_named(tmp_path: Path, runs: list[str], broken: int) -> None:
    """It ends in the result before, or without the stop of others, and looked like a run that had ended."""
    traces = read(native_runs(tmp_path, *runs))
    assert not traces.problems
    assert [one.traces for one in endings(traces)] == [broken] * bool(broken)
    assert ended_early(traces)[0].sum() == broken


def test_runs_that_broke_off_are_compared_with_outcomes_and_between_sides(tmp_path: Path) -> None:
    traces = read(native_runs(tmp_path, *["ls cat say", "ls cat cat say", "ls ls say", "ls cat"] * 10))
    row = next(row for row in outcome_differences(traces).rows if row.what == BROKEN_OFF)
    assert (row.failed, row.succeeded, row.stands_out) == (1, 0, True)
    (told,) = triage(traces).endings
    assert (told.traces, told.failed, told.succeeded) == (10, 10, 0)
    (last,) = triage(traces).suspects
    assert (last.trace, last.event, last.traces, last.outcome) == ("t3", "e3", 10, 0)
    assert triage(traces).quiet.startswith("Nothing else stands out") and "tokens" not in triage(traces).quiet
    assert triage(traces).look_first() == [f"{told.words}.", triage(traces).quiet]
    sides = np.arange(40) >= 20
    early = with_costs(traces, trace_metrics(traces))["ended_early"]
    assert early.value.tolist() == [0.0, 0.0, 0.0, 1.0] * 10
    compared = {row.metric: row for row in side_differences(traces, {"ended_early": early}, sides.astype(int))}
    assert (compared["ended_early"].first, compared["ended_early"].second) == (0.25, 0.25)


def test_killed_runs_without_an_outcome_are_said_to_make_success_too_high(tmp_path: Path) -> None:
    """A harness grades what ends: success was of the graded runs alone, and nothing said which those were."""
    log = native_runs(tmp_path, *["ls say", "ls ls"] * 16)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for number, line in enumerate(lines):
        line |= {"rewards": {"team": number % 4 / 2} if number % 2 == 0 else {}, "model": "ab"[number // 16]}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    traces = read(log)
    said = "16 more ended early without an outcome; counting them as failures, 75 % failed"
    assert [str(one) for one in unscored_ends(traces)] == [said]
    assert said in outcome_differences(traces).headline()
    headline = outcome_differences(traces).headline()
    (one,) = unscored_ends(traces)
    single = dataclasses.replace(one, early=1, unscored=1)
    assert str(single) == "1 more ended early without an outcome; counting it as a failure, 53 % failed"
    some = str(dataclasses.replace(one, early=15))  # which of the rest failed is another question
    assert some.startswith("15 of 16 traces without an outcome end early, 0 of 8 failed and 0 of 8 succeeded ones: ")
    assert "too high if these failed more often, too low if less often" in some
    assert "have no outcome" not in headline, "it was said twice how many they are"
    numbers = {
        "side": "",
        "early": 16,
        "unscored": 16,
        "early_failed": 0,
        "failed": 8,
        "early_succeeded": 0,
        "succeeded": 8,
        "failing": "",
        "kinds": ["failed", "succeeded"],
    }
    for command in ("metrics", "summary"):
        told = CliRunner().invoke(cli, [command, str(log)]).stdout
        assert said in told, told
        assert json.loads(CliRunner().invoke(cli, [command, str(log), "--json"]).stdout)["unscored"] == [numbers]
    compared = CliRunner().invoke(cli, ["metrics", str(log), "--sides", "model"]).stdout
    assert "8 of 8 traces of a without an outcome end early" in compared


def test_killed_runs_are_told_of_both_sides_where_they_are_of_one(tmp_path: Path) -> None:
    """2 of 2 of one version were told, and 6 of 12 of the other, which it flatters more, were not."""
    runs = ["ls say"] * 16 + ["ls ls"] * 2 + ["ls say"] * 16 + ["ls ls"] * 3 + ["ls say"] * 3
    traces = read(native_runs(tmp_path, *runs))
    scored = np.array([1.0] * 16 + [np.nan] * 2 + [1.0] * 16 + [np.nan] * 6, np.float32)
    reward = np.full_like(np.asarray(traces.reward), np.nan)
    reward[: len(runs)] = scored
    traces = dataclasses.replace(traces, reward=reward)
    side = (np.arange(len(runs)) >= 18).astype(int)
    found = unscored_ends(traces, 1.0, side, ("old", "new"))
    assert [(one.side, one.early, one.unscored) for one in found] == [("old", 2, 2), ("new", 3, 6)]
    assert unscored_ends(traces, 1.0, np.where(side == 1, 1, -1), ("old", "new")) == []


def test_what_failed_is_said_of_graded_outcomes(tmp_path: Path) -> None:
    """`metrics` counted failed ones by a median that it did not state, where `summary` compared traces of a task."""
    log = native_runs(tmp_path, *["ls say", "ls ls"] * 16)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["rewards"] = {"team": 0.1 + number % 8 / 10} if number % 2 == 0 else {}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    graded = "counting them as failures, 63 % failed (outcome below 0.3)"
    of_task = "0 of 8 worse (than others of their task) and 0 of 8 better ones"
    for more, said in (((), of_task), (("--success-at", "0.3"), graded)):
        for command in ("metrics", "summary"):
            told = CliRunner().invoke(cli, [command, str(log), *more]).stdout
            assert said in told, told
    by_task = triage(read(log)), outcome_differences(read(log))
    assert {(one.failed, one.succeeded, *one.kinds) for one in by_task} == {(8, 8, "worse", "better")}
    assert "0 of 8 worse ones (than others of their task) and 0 of 8 better ones" in by_task[0].endings[0].words
    found = outcome_differences(read(log), success_at=0.3)
    assert found.headline().startswith(
        "4 of 16 traces with an outcome failed (outcome below 0.3), 25 % (95 % interval 7 to 54 %)."
    )
    assert (
        "0 of 4 failed ones (outcome below 0.3) and 0 of 12 succeeded ones"
        in triage(read(log), success_at=0.3).endings[0].words
    )


def test_a_run_that_ends_in_an_error_is_shown_at_that_error_and_told_once(tmp_path: Path) -> None:
    """The table showed what the agent had said before, `step 0.821237 {"file"…`, and the error itself as a second
    cause of the same runs; the note of reading had one of them once more, with advice on its reward."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.output_tokens": 5}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "coder"}
    killed = {"status": {"code": 2, "message": "worker killed"}}
    spans = []
    for run in range(3):
        above, lines = agent | {"gen_ai.agent.name": "lead"}, 3 * run
        trace = {"trace": f"{run + 1:032x}"}
        said = chat | {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [
            {"type": "text", "content": "step 0.82"}]}])}  # fmt: skip
        spans += [span(lines + 1, 0, 0, 9, above | {"error.type": "WorkerKilled"}, **trace, **killed),
                  span(lines + 2, lines + 1, 1, 8, agent, **trace, **killed),
                  span(lines + 3, lines + 2, 2, 3, said, **trace)]  # fmt: skip
    (log := tmp_path / "log.json").write_text(json.dumps(spans_request(spans)))
    (row,) = triage(read(log)).suspects
    assert row.why == "the run ends in an error of its own: 'WorkerKilled: worker killed'"
    assert (row.text, row.traces, row.of - row.position) == ("", 3, 1)
    done = CliRunner().invoke(cli, ["summary", str(log)], catch_exceptions=False)
    assert done.stderr == "notes (3): 3 run-error (`credit validate` prints all)\n"
    assert "3 of 3 traces end in an error of the API" in done.stdout
    for command in (["summary", str(log), "--json"], ["costs", str(log)]):
        assert "--errors drop" in CliRunner().invoke(cli, command, catch_exceptions=False).stderr
