"""A line that cannot be read refuses the traces that it is part of, or may be, where traces are spread over lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.traces.limits import Limits


def run(own: str, trace: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    """A run of LangSmith, its keys in the order of the API."""
    kind = "chain" if parent is None else "llm"
    return {"id": own, "name": "x", "run_type": kind, "parent_run_id": parent, **more, "trace_id": trace}


def feedback(key: str, score: float, about: str) -> dict[str, Any]:
    return {"id": f"f-{key}-{about}", "run_id": about, "key": key, "score": score}


def observation(own: str, trace: str, parent: str | None = None) -> dict[str, Any]:
    kind = "SPAN" if parent is None else "GENERATION"
    return {"id": own, "traceId": trace, "type": kind, "name": "x", "startTime": "2026-01-01T00:00:00Z",
            "parentObservationId": parent}  # fmt: skip


def score(name: str, value: float, trace: str) -> dict[str, Any]:
    return {"id": f"s-{name}-{trace}", "traceId": trace, "name": name, "value": value}


def sdk_span(own: str, trace: str, parent: str | None = None) -> dict[str, Any]:
    data = {"type": "agent", "name": "a"} if parent is None else {"type": "generation"}
    return {"object": "trace.span", "id": own, "trace_id": trace, "parent_id": parent, "span_data": data}


def event(kind: str, rollout: str, **data: Any) -> dict[str, Any]:
    """An event of Agent Lightning."""
    return {"event_type": kind, "rollout_id": rollout, "attempt_id": "a", "timestamp": 0.0, "data": data}


def asked(rollout: str) -> dict[str, Any]:
    answer = {"choices": [{"message": {}}]}
    return event("model_request", rollout, model="m", request={"messages": []}, response=answer)


PARTS: dict[str, Callable[[str, str, str], tuple[dict[str, Any], ...]]] = {
    "langsmith": lambda t, a, b: (run(a, t), run(b, t, a), feedback("q", 1.0, a)),
    "langfuse": lambda t, a, b: (observation(a, t), observation(b, t, a), score("q", 1.0, t)),
    "openai": lambda t, a, b: (sdk_span(a, t), sdk_span(b, t, a)),
}
LOGS = {name: [part for t in "AB" for part in parts(t, f"{t}1", f"{t}2")] for name, parts in PARTS.items()}
"""Two traces, A and B, a part a line."""


def write(folder: Path, lines: list[Any], name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def found(
    folder: Path, lines: list[Any], name: str = "log.jsonl", **options: Any
) -> tuple[list[str], list[tuple[str, str]]]:
    """The traces, and the kinds and traces of the problems."""
    write(folder, lines, name)
    try:
        traces = read(folder, **options)
    except NothingReadError as error:
        return [], [(problem.kind, problem.trace) for problem in error.problems]
    return traces.traces["trace"].to_pylist(), [(problem.kind, problem.trace) for problem in traces.problems]


@pytest.mark.parametrize("name", LOGS)
def test_whole_logs_have_no_problem(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, LOGS[name]) == (["A", "B"], [])


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("langsmith", run("A3", "A", "A1")),
        ("langsmith", feedback("other", 0.0, "A2")),
        ("langfuse", observation("A3", "A", "A1")),
        ("langfuse", score("other", 0.0, "A")),
        ("openai", sdk_span("A3", "A", "A1")),
    ],
)
@pytest.mark.parametrize("at", [1, 3, 99])
def test_a_cut_line_refuses_the_trace_that_it_states(tmp_path: Path, name: str, cut: Any, at: int) -> None:
    """The trace was read without it, with a channel that two would not have made the outcome."""
    log = LOGS[name]
    lines = [*log[:at], json.dumps(cut)[:-2], *log[at:]]
    assert found(tmp_path, lines) == (["B"], [("bad-json", ""), ("lost-row", "A")])


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("langsmith", '{"id": "A3", "name": "x", "run_type": "llm", "parent_run_id": "A1", "inputs": {"x'),
        ("langsmith", '{"id": "f", "run_id": "A2", "trace_id": null, "ke'),
        ("langfuse", '{"id": "A3", "type": "GENERATION", "parentObservationId": "A1", "traceId'),
        ("openai", '{"object": "trace.span", "id": "A3", "parent_id": "A1", "tra'),
    ],
)
def test_a_cut_line_refuses_the_trace_of_a_span_that_it_states(tmp_path: Path, name: str, cut: str) -> None:
    assert found(tmp_path, [*LOGS[name], cut]) == (["B"], [("bad-json", ""), ("lost-row", "A")])


@pytest.mark.parametrize("name", LOGS)
def test_a_line_above_spans_at_hand_is_of_their_trace(tmp_path: Path, name: str) -> None:
    """Of the root, only its id is left; feedback on it has no run at hand."""
    root = json.dumps(LOGS[name][0])
    traces, problems = found(tmp_path, [*LOGS[name][1:], root[: root.index("A1") + 4]])
    assert traces == ["B"] and {*problems} - {("orphan-feedback", "")} == {("bad-json", ""), ("lost-row", "A")}


@pytest.mark.parametrize("name", LOGS)
def test_a_cut_line_that_states_no_trace_may_be_of_any_in_its_file(tmp_path: Path, name: str) -> None:
    other = [text.replace('"A', '"C').replace("-A", "-C") for text in map(json.dumps, LOGS[name]) if '"A' in text]
    (tmp_path / "other.jsonl").write_text("\n".join(other))
    lost = [("lost-row", "A"), ("lost-row", "B")]
    assert found(tmp_path, [*LOGS[name], json.dumps(LOGS[name][0])[:4]]) == (["C"], [("bad-json", ""), *lost])
    for other_line in ("2026-01-01 INFO saved the log", '{"level": "info", "saved'):
        assert found(tmp_path, [*LOGS[name], other_line]) == (["A", "B", "C"], [("bad-json", "")])


def test_a_cut_line_beside_traces_of_a_line_each_is_another_trace(tmp_path: Path) -> None:
    nested = [run(f"{t}1", t, child_runs=[run(f"{t}2", t, f"{t}1")]) for t in "AB"]
    cut = '{"id": "C1", "name": "x", "run_type": "chain", "inputs": {"'
    assert found(tmp_path, [*nested, cut]) == (["A", "B"], [("bad-json", "")])
    scored = found(tmp_path, [*nested, feedback("q", 1.0, "B2"), cut])
    assert scored == (["A"], [("bad-json", ""), ("lost-row", "B")])
    exported = [{"trace": {"id": t, "projectId": "p"}, "observations": [observation(f"{t}1", t, "x")]} for t in "AB"]
    assert found(tmp_path, [*exported, '{"trace": {"']) == (["A", "B"], [("bad-json", "")])
    spans = [{"object": "trace", "id": t, "spans": [sdk_span(f"{t}1", t), sdk_span(f"{t}2", t, f"{t}1")]} for t in "AB"]
    assert found(tmp_path, [*spans, '{"object": "trace", "workflow_']) == (["A", "B"], [("bad-json", "")])


def test_a_line_beyond_the_limits_refuses_the_trace_that_it_states(tmp_path: Path) -> None:
    for name, log in LOGS.items():
        lines = [*log, log[1] | {"id": "A3", "note": "x" * 4000}]
        traces, problems = found(tmp_path, lines, limits=Limits(record_bytes=2000))
        assert traces == ["B"] and set(problems) == {("too-large", ""), ("lost-row", "A")}, name


def test_a_faulty_item_that_hides_its_trace_is_of_the_span_that_it_states(tmp_path: Path) -> None:
    """Feedback without a trace's id stood alone, and the trace was read without it."""
    assert found(tmp_path, [*LOGS["langsmith"], feedback("other", 0.0, "A2") | {"score": {}}]) == (
        ["B"],
        [("bad-type", ""), ("lost-row", "A")],
    )
    assert found(tmp_path, [*LOGS["langfuse"], {"id": "A", "scores": 5}])[0] == ["B"]


def test_a_row_of_a_csv_with_too_few_cells_refuses_the_trace_that_it_states(tmp_path: Path) -> None:
    header = "id,type,name,startTime,endTime,traceId,parentObservationId,level\n"
    rows = [f"{t}{i},GENERATION,x,2026-01-01T00:00:00Z,,{t}{t},,\n" for t in "AB" for i in (1, 2)]
    for cut, refused in (
        ("A3,GENERATION,x,2026-01-01T00:00:00Z,,AA,", ["AA"]),
        ("A3,GENERATION,x,2026-01-01T00:00:00Z,,A", ["AA"]),
        ("A3,GENERATION,x,2026", ["AA", "BB"]),
    ):
        (tmp_path / "log.csv").write_text(header + "".join(rows) + cut)
        traces, problems = found(tmp_path, [], "empty.txt")
        assert problems == [("bad-row", ""), *(("lost-row", trace) for trace in refused)]
        assert traces == [trace for trace in ("AA", "BB") if trace not in refused]


def test_a_cut_line_without_a_rollout_may_be_of_any_in_its_file(tmp_path: Path) -> None:
    """The line may have been the last reward, and the reward before it was the outcome."""
    (tmp_path / "other.jsonl").write_text("\n".join(map(json.dumps, (asked("s"), event("reward", "s", value=1.0)))))
    log = [asked("r"), event("reward", "r", value=1.0), asked("q"), event("reward", "q", value=0.5)]
    assert found(tmp_path, [*log, '{"event_type": "reward", "ro']) == (
        ["s"],
        [("bad-json", ""), ("lost-row", "r"), ("lost-row", "q")],
    )
    assert found(tmp_path, [*log, '{"attempt_id": "a", "sta'])[0] == ["s"]  # a line of another kind, the only one
    assert found(tmp_path, [*log, "INFO saved"]) == (["r", "q", "s"], [("bad-json", "")])


def dumped(own: int, trace: str, **more: Any) -> dict[str, Any]:
    """A span of a dump."""
    attributes = {"gen_ai.operation.name": "chat"}
    return {"trace_id": trace * 32, "span_id": f"{own:016x}", "name": "chat", "attributes": attributes, **more}


def exported(own: int, trace: str) -> dict[str, Any]:
    """A request of OTLP with one span."""
    attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    span = {"traceId": trace * 32, "spanId": f"{own:016x}", "name": "chat", "attributes": attributes}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


@pytest.mark.parametrize("make", [dumped, exported])
def test_a_cut_line_of_spans_refuses_the_traces_that_it_states(
    make: Callable[[int, str], dict[str, Any]], tmp_path: Path
) -> None:
    """They were read without it."""
    whole = [make(1, "a"), make(2, "a"), make(3, "b")]
    assert found(tmp_path, whole) == (["a" * 32, "b" * 32], [])
    line = json.dumps(make(4, "a"))
    for end in (-2, line.index("aaaa") + 3, line.index("aaaa") + 32):
        for at in (1, 3):
            lines = [*whole[:at], line[:end], *whole[at:]]
            assert found(tmp_path, lines) == (["b" * 32], [("bad-json", ""), ("lost-row", "a" * 32)])
    upper = line[:-2].replace("a" * 32, "A" * 32)
    assert found(tmp_path, [*whole, upper])[0] == ["b" * 32]
    long = line[:-1] + ', "note": "' + "x" * 2000 + '"}'
    traces, problems = found(tmp_path, [*whole, long], limits=Limits(record_bytes=1500))
    assert traces == ["b" * 32] and ("lost-row", "a" * 32) in problems


def test_a_cut_span_in_a_row_of_objects_refuses_its_trace(tmp_path: Path) -> None:
    spans = [dumped(1, "a"), dumped(2, "a"), dumped(3, "b"), dumped(4, "a")]
    text = [json.dumps(span, indent=2) for span in spans]
    assert found(tmp_path, ["\n".join(text)], "log.json")[0] == ["a" * 32, "b" * 32]
    text[1] = text[1][:-30]
    assert found(tmp_path, ["\n".join(text)], "log.json") == (
        ["b" * 32],
        [("bad-json", ""), ("lost-row", "a" * 32)],
    )


def test_a_broken_file_of_spans_refuses_the_traces_that_others_have_of_it(tmp_path: Path) -> None:
    for make, text in ((dumped, json.dumps(dumped(1, "a"), indent=1)), (exported, json.dumps(exported(1, "a")))):
        (tmp_path / "more.json").write_text(text[:-5])
        assert found(tmp_path, [make(2, "a"), make(3, "b")]) == (
            ["b" * 32],
            [("bad-json", ""), ("lost-row", "a" * 32)],
        )


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("langsmith", '{"id": "A3", "name": "x", "inputs": {"metadata": {"trace_id": "C"}}, "outp'),
        ("langsmith", '{"id": "A3", "inputs": {"trace_id": "B", "id": "B1"}, "outp'),
        ("langfuse", '{"id": "A3", "input": {"traceId": "C", "id": "B1"}, "ou'),
        ("openai", '{"object": "trace.span", "span_data": {"id": "B1", "trace_id": "B"}, "i'),
    ],
)
def test_ids_within_what_a_cut_line_holds_do_not_tell_its_trace(tmp_path: Path, name: str, cut: str) -> None:
    """The line was of the trace in its input, and its own trace was read without it."""
    assert found(tmp_path, [*LOGS[name], cut]) == ([], [("bad-json", ""), ("lost-row", "A"), ("lost-row", "B")])


def test_a_trace_whose_list_of_parts_is_empty_has_them_on_other_lines(tmp_path: Path) -> None:
    """A cut line was of no trace where each run has an empty list, or the trace one before its spans."""
    cut = '{"id": "A3", "name": "x", "inp'
    runs = [one | {"child_runs": []} for one in LOGS["langsmith"] if "run_type" in one]
    lost = [("lost-row", "A"), ("lost-row", "B")]
    assert found(tmp_path, [*runs, cut]) == ([], [("bad-json", ""), *lost])
    whole = {"object": "trace", "id": "C", "spans": [sdk_span("C1", "C"), sdk_span("C2", "C", "C1")]}
    spans = [*({"object": "trace", "id": t, "spans": []} for t in "AB"), *LOGS["openai"]]
    cut = '{"object": "trace.span", "started'
    assert found(tmp_path, [*spans, whole, cut]) == (["C"], [("bad-json", ""), *lost])
    more = [*spans, whole, sdk_span("C3", "C", "C1"), cut]
    assert found(tmp_path, more) == ([], [("bad-json", ""), *lost, ("lost-row", "C")])


def scored(trace: str) -> dict[str, Any]:
    """A request of OTLP with an evaluation."""
    given = {"gen_ai.evaluation.name": {"stringValue": "q"}, "gen_ai.evaluation.score.value": {"doubleValue": 1.0}}
    attributes = [{"key": key, "value": value} for key, value in given.items()]
    record = {"traceId": trace * 32, "eventName": "gen_ai.evaluation.result", "attributes": attributes}
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}


@pytest.mark.parametrize("make", [dumped, exported])
def test_a_cut_line_of_spans_that_states_no_trace_may_be_of_any_in_its_file(
    make: Callable[[int, str], dict[str, Any]], tmp_path: Path
) -> None:
    """It was named alone, and its trace was read without it."""
    (tmp_path / "other.jsonl").write_text(json.dumps(make(9, "c")))
    whole = [make(1, "a"), make(2, "a"), make(3, "b")]
    line = json.dumps(make(4, "a"))
    lost = [("lost-row", "a" * 32), ("lost-row", "b" * 32)]
    for cut in (line[: line.index("aaaa") - 4], line[:8]):
        assert found(tmp_path, [*whole, cut]) == (["c" * 32], [("bad-json", ""), *lost])
    for other_line in ("2026-01-01 INFO saved the log", '{"level": "info", "saved'):
        assert len(found(tmp_path, [*whole, other_line])[0]) == 3


def test_a_cut_line_of_evaluations_may_be_of_any_trace_that_its_file_scores(tmp_path: Path) -> None:
    (tmp_path / "spans.jsonl").write_text("\n".join(json.dumps(exported(i, t)) for i, t in enumerate("abc", start=1)))
    cut = json.dumps(scored("b"))
    assert found(tmp_path, [scored("a"), cut[: cut.index("bbbb") - 4]]) == (
        ["b" * 32, "c" * 32],
        [("bad-json", ""), ("lost-row", "a" * 32)],
    )
