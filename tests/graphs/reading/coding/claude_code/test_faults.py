"""Sessions that are damaged: what is named, what still reads, and any change of any value."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from credit.reports.missing_lines import lacking_traces
from graphs.errors import NothingReadError, Problem, condensed
from graphs.formats.claude_code import sniff
from graphs.logs import read
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

from .logs import SESSION, Line, Log, files, inline, items


def broken(place: tuple[Any, ...], value: Any) -> Log:
    log = inline()
    target: Any = log.lines
    for step in place[:-1]:
        target = target[step]
    if value is ...:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return log


BAD: dict[str, tuple[tuple[Any, ...], Any, str, str]] = {
    "a line that is no object": ((1,), [1], "bad-type", "content"),
    "type": ((1, "type"), 5, "bad-type", "type"),
    "no type": ((1, "type"), ..., "missing-field", "type"),
    "uuid": ((1, "uuid"), 5, "bad-type", "uuid"),
    "same uuid": ((1, "uuid"), "u0-None", "duplicate-id", "uuid"),
    "parent": ((1, "parentUuid"), 5, "bad-type", "parentUuid"),
    "session": ((1, "sessionId"), 5, "bad-type", "sessionId"),
    "agent": ((1, "agentId"), 5, "bad-type", "agentId"),
    "sidechain": ((1, "isSidechain"), "no", "bad-type", "isSidechain"),
    "meta": ((1, "isMeta"), 1, "bad-type", "isMeta"),
    "summary": ((1, "isCompactSummary"), 1, "bad-type", "isCompactSummary"),
    "api error": ((1, "isApiErrorMessage"), 1, "bad-type", "isApiErrorMessage"),
    "time": ((1, "timestamp"), 5, "bad-type", "timestamp"),
    "no time": ((1, "timestamp"), "yesterday", "bad-type", "timestamp"),
    "message": ((1, "message"), "x", "bad-type", "message"),
    "no message": ((1, "message"), ..., "missing-field", "message"),
    "no call id": ((1, "message", "id"), ..., "missing-field", "message.id"),
    "call id": ((1, "message", "id"), 5, "bad-type", "message.id"),
    "model": ((1, "message", "model"), 5, "bad-type", "message.model"),
    "content": ((1, "message", "content"), 5, "bad-type", "message.content"),
    "no content": ((1, "message", "content"), ..., "missing-field", "message.content"),
    "block": ((1, "message", "content", 0), 5, "bad-type", "message.content[0]"),
    "block type": ((1, "message", "content", 0, "type"), 5, "bad-type", "message.content[0].type"),
    "text": ((1, "message", "content", 0, "text"), 5, "bad-type", "message.content[0].text"),
    "tool id": ((2, "message", "content", 0, "id"), 5, "bad-type", "message.content[0].id"),
    "no tool id": ((2, "message", "content", 0, "id"), ..., "missing-field", "message.content[0].id"),
    "tool name": ((2, "message", "content", 0, "name"), 5, "bad-type", "message.content[0].name"),
    "no tool name": ((2, "message", "content", 0, "name"), ..., "missing-field", "message.content[0].name"),
    "usage": ((1, "message", "usage"), 5, "bad-type", "message.usage"),
    "tokens": ((1, "message", "usage", "output_tokens"), "5", "bad-type", "message.usage.output_tokens"),
    "tokens below 0": ((1, "message", "usage", "output_tokens"), -5, "out-of-range", "message.usage.output_tokens"),
    "huge tokens": ((1, "message", "usage", "input_tokens"), 2**40, "out-of-range", "message.usage.input_tokens"),
    "error flag": ((13, "message", "content", 0, "is_error"), 5, "bad-type", "message.content[0].is_error"),
    "answered id": ((13, "message", "content", 0, "tool_use_id"), 5, "bad-type", "message.content[0].tool_use_id"),
    "no answered id": (
        (13, "message", "content", 0, "tool_use_id"),
        ...,
        "missing-field",
        "message.content[0].tool_use_id",
    ),
    "unknown tool use": ((13, "message", "content", 0, "tool_use_id"), "zz", "unknown-tool-use", "tool_use_id"),
    "another agent's": ((13, "message", "content", 0, "tool_use_id"), "x1", "unknown-tool-use", "tool_use_id"),
    "answered twice": ((13, "message", "content", 0, "tool_use_id"), "t2", "duplicate-id", "events[14].id"),
    "started agent": ((14, "toolUseResult", "agentId"), 5, "bad-type", "toolUseResult.agentId"),
    "started status": ((14, "toolUseResult", "status"), 5, "bad-type", "toolUseResult.status"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_and_other_sessions_read(tmp_path: Path, name: str) -> None:
    place, value, kind, field = BAD[name]
    bad = broken(place, value).write(tmp_path / "bad.jsonl")
    good = Log()
    good.human("hello")
    for line in good.lines:
        line["sessionId"] = "good"
    traces = read(bad, good.write(tmp_path / "good.jsonl"))
    assert traces.traces["trace"].to_pylist() == ["good"]
    (problem,) = traces.problems
    expected_line = place[0] + 1 + (kind == "duplicate-id" and field != "uuid")
    assert (problem.kind, problem.field, problem.file, problem.line) == (kind, field, str(bad), expected_line)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((2, "message", "content", 0, "input"), "not an object"),
        ((2, "message", "content", 0, "input"), ...),
        ((2, "message", "content", 0, "input", "prompt"), [1]),
        ((2, "message", "content", 0, "input", "subagent_type"), 5),
    ],
)
def test_what_a_model_wrote_wrongly_is_no_fault_of_the_log(tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    read_, *rest = items(broken(place, value).write(tmp_path / "x.jsonl"))
    assert isinstance(read_, TraceRecord)
    assert [p.kind for p in rest if isinstance(p, Problem)] in ([], ["unlinked-subagent"])


def refused(path: Path) -> list[tuple[str, str, int]]:
    with pytest.raises(NothingReadError) as caught:
        read(path)
    return [(problem.kind, Path(problem.file).name, problem.line) for problem in caught.value.problems]


def test_killed_sessions_are_one_note_that_counts_them(tmp_path: Path) -> None:
    """14 killed sessions were 14 lines, each with other bytes from the middle of its cut line."""
    for number in range(3):
        path = inline().write(tmp_path / f"{number}.jsonl")
        path.write_bytes(path.read_bytes()[: -30 - number].replace(SESSION.encode(), f"killed-{number}".encode()))
    cut = [problem for problem in read(tmp_path).problems if problem.kind == "unfinished-line"]
    assert len({*map(str, cut)}) == 3
    (note,) = condensed(cut)
    assert (Path(note.file).name, note.count) == ("0.jsonl", 3) and str(note).endswith("], and 2 more like it")


def test_a_last_line_that_is_still_being_written_is_named_and_the_session_reads(tmp_path: Path) -> None:
    path, count = inline().write(tmp_path / "x.jsonl"), len(inline().lines)
    path.write_bytes(path.read_bytes()[:-30])
    traces = read(path)
    assert [(p.kind, p.line, p.is_failure) for p in traces.problems] == [("unfinished-line", count, False)]
    (problem,) = traces.problems
    last = path.read_text().splitlines()[-1]
    assert problem.value == excerpt(last) and "its writer was killed, or still writes" in problem.expected
    assert traces.evidence["metrics.unlogged_calls"].amounts.tolist() == [1]  # sums of tokens are lower bounds
    assert lacking_traces(traces).all()  # and so are all counts
    path.write_bytes(path.read_bytes() + b"\n")
    assert refused(path) == [("bad-json", "x.jsonl", count), ("lost-row", "x.jsonl", count)]


def test_a_session_without_one_of_its_lines_has_sums_that_are_lower_bounds(tmp_path: Path) -> None:
    """Of a sub-agent without its lines they were; here tokens looked exact."""
    path, log = tmp_path / "x.jsonl", inline()
    assert "metrics.unlogged_calls" not in read(log.write(path)).evidence
    del log.lines[1]
    traces = read(log.write(path))
    assert "missing-parent" in [problem.kind for problem in traces.problems]
    assert traces.evidence["metrics.unlogged_calls"].amounts.tolist() == [1] and lacking_traces(traces).all()


@pytest.mark.parametrize("named", [True, False])
def test_a_damaged_file_of_a_sub_agent_refuses_its_session(named: bool, tmp_path: Path) -> None:
    """Also where the reader found it by its place: it was read without the line."""
    main, child = files(tmp_path)
    child.write_bytes(child.read_bytes()[:-30] + b"\n")
    problems = refused(main if named else tmp_path)
    assert problems == [("bad-json", child.name, 4), ("lost-row", child.name, 4)]


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([{"type": "summary", "summary": "x", "leafUuid": "y"}], "no-events"),
        ([{"type": "user", "parentUuid": None, "message": {"content": "hi"}}], "missing-field"),
        ([{"type": "user", "sessionId": SESSION, "isMeta": True, "message": {"content": "hi"}}], "no-events"),
    ],
)
def test_files_without_a_session(tmp_path: Path, lines: list[Line], kind: str) -> None:
    log = Log()
    log.lines = lines
    path = log.write(tmp_path / "x.jsonl")
    with pytest.raises(NothingReadError) as caught:
        read(path, format="claude-code")
    assert [(problem.kind, problem.file) for problem in caught.value.problems] == [(kind, str(path))]


@pytest.mark.parametrize(
    ("head", "ours"),
    [
        (b"", False),
        (b"{}", False),
        (b"\n" * 65536, False),
        (b'{"trace_id": "a", "events": []}', False),
        (b'{"type": "summary", "summary": "x", "leafUuid": "y"}', True),
        (b'{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{"content":"cut', True),
        (b'{"broken": \n{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user"}\n', True),
        (b'{"text": "\\"parentUuid\\": 1, \\"isSidechain\\": 1, \\"sessionId\\": \\"1\\""}', False),
    ],
)
def test_sniffing(head: bytes, ours: bool) -> None:
    assert sniff(head) is ours


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


PLACES = [place for place in places(inline().lines) if place]

VALUES = st.sampled_from(
    [..., None, True, -1, 10**30, 2.5, "", "x", "t1", "u5-None", "main", "c1", [], [None], {}, {"type": "tool_use"}]
)


@pytest.mark.study
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3))
def test_any_change_reads_or_is_named(tmp_path: Path, changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    log = inline()
    for place, value in changes:
        target: Any = log.lines
        try:
            for step in place[:-1]:
                target = target[step]
            if value is ...:
                del target[place[-1]]
            else:
                target[place[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    good = Log()
    good.human("hello")
    good.lines[0]["sessionId"] = "good"
    traces = read(log.write(tmp_path / "x.jsonl"), good.write(tmp_path / "good.jsonl"), format="claude-code")
    assert "good" in traces.traces["trace"].to_pylist()
    assert traces.sizes.traces == 2 or traces.problems


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(len(inline().lines))))
def test_lines_in_any_order_read_or_are_named(tmp_path: Path, order: list[int]) -> None:
    log = inline()
    log.lines = [log.lines[i] for i in order]
    for item in items(log.write(tmp_path / "x.jsonl")):
        if isinstance(item, TraceRecord):
            assert all(s < r for s, r in zip(item.senders, item.receivers, strict=True))
