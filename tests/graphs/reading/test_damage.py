"""The one rule for damaged logs, over all formats: no trace is read without one of its records."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from graphs.errors import TraceError, UnreadWarning
from graphs.formats import FORMATS, Format
from graphs.logs import found_logs, read
from graphs.reading import damage
from graphs.reading.json_problems import is_one_record
from graphs.reading.stated_ids import folded, stated_ids

from .all_formats import ALL
from .damages import DAMAGES, damaged, faults, found
from .samples import MLFLOW

ROOT = Path(__file__).resolve().parents[3]
SEED = 33
COMPLETE = ("openhands",)
"""Logs of which each trace has the end mark of its format, `TraceRecord.complete`."""


@pytest.mark.parametrize(
    "times", [3, pytest.param(6, marks=pytest.mark.slow), pytest.param(54, marks=pytest.mark.study)]
)
@pytest.mark.parametrize("name", ALL)
def test_no_trace_is_read_without_one_of_its_records(tmp_path: Path, name: str, times: int) -> None:
    """The study has 2,000 damages; `damages` is a command that draws others."""
    assert [(what, silent) for what, silent, _ in damaged(tmp_path, name, SEED, times) if silent] == []


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", [name for name, sample in ALL.items() if sample.lines])
def test_a_line_that_is_no_json_is_named_and_refuses_what_the_rule_says(tmp_path: Path, name: str) -> None:
    path = ALL[name].write(tmp_path / "damaged")
    good = read(path).sizes.traces
    whole = path.read_text()
    path.write_text(whole + '{"broken": \n')
    left, problems = found(path)
    assert any(problem.kind == "bad-json" and problem.line for problem in problems)
    is_whole = FORMATS[ALL[name].format].holds == "traces" or name in COMPLETE
    assert len(left) == (good if is_whole else 0)
    path.write_text(whole + '{"broken": ')
    left, problems = found(path)
    assert len(left) == (0 if FORMATS[ALL[name].format].holds == "parts" else good)
    path.write_text(whole)
    assert len(found(path)[0]) == good


def test_a_user_of_python_is_told_once_of_what_was_not_read(tmp_path: Path) -> None:
    """A notebook said nothing: only `traces.problems` had it."""
    log = ALL["native"].write(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = read(log)
    log.write_text(log.read_text() + '{"broken": \n{"also": \n')
    with pytest.warns(UnreadWarning) as seen:
        assert read(tmp_path).sizes == good.sizes
    (warning,) = seen
    said = f"problems of reading, which `problems` of the result has (2 bad-json), the first of them: {log}:"
    assert str(warning.message).startswith(said) and warning.filename == __file__
    log.write_text(log.read_text().partition('{"broken"')[0])
    (tmp_path / "again.jsonl").write_text(log.read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {problem.is_failure for problem in read(tmp_path).problems} == {False}  # a run that stands twice


def reader_of_contributing() -> types.ModuleType:
    """The reader that CONTRIBUTING shows, as it stands there: nothing in it is about damage."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (code,) = re.findall(r"```py\n(.*?)```", page.partition("## A format\n")[2].partition("\n## ")[0], re.DOTALL)
    module = types.ModuleType("acme")
    exec(code, module.__dict__)
    return module


def steps(runs: int) -> list[bytes]:
    lines = [
        {"episode": f"run-{run}", "task": "q", "number": step, "actor": f"agent-{step % 2}", "note": "said " * step}
        | ({"reward": float(run)} if step == 3 else {"command": "search"} if step == 2 else {})
        for step in range(4)
        for run in range(runs)
    ]
    return [json.dumps(line).encode() + b"\n" for line in lines]


@pytest.mark.slow
def test_a_reader_without_a_line_about_damage_keeps_the_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acme, known = reader_of_contributing(), found_logs.reader_of
    monkeypatch.setitem(FORMATS, "acme", Format("acme", "steps of runs"))
    monkeypatch.setattr(found_logs, "reader_of", lambda name: acme if name == "acme" else known(name))
    files = [tmp_path / "a" / "steps.jsonl", tmp_path / "b" / "steps.jsonl"]
    lines = steps(7)
    originals = [lines[::2], lines[1::2]]  # every run lies in both files
    for file, own in zip(files, originals, strict=True):
        file.parent.mkdir()
        file.write_bytes(b"".join(own))
    intact, problems = found(tmp_path)
    assert len(intact) == 7 and not problems
    for number in range(200):
        draw = random.Random(number)
        change = draw.choice(DAMAGES)
        after = change(draw, *originals)
        for file, own in zip(files, after, strict=True):
            file.write_bytes(b"".join(own))
        changed = {str(file) for file, old, new in zip(files, originals, after, strict=True) if old != new}
        assert faults(intact, [], tmp_path, changed, change)[0] == [], (number, change.__name__)


@pytest.mark.parametrize("keys", [("run_id", "seq"), ("seq", "run_id")])
def test_two_records_glued_where_the_first_was_cut_are_not_one(keys: tuple[str, str]) -> None:
    """At every byte, before a value and within a string, too; and the second one's id is among the tokens."""
    first, second = (
        json.dumps({key: {"run_id": run, "seq": number}[key] for key in keys} | {"text": "a b", "done": False}).encode()
        for run, number in (("alpha", 0), ("beta-793", 1))
    )
    for cut in range(1, len(first)):
        glued = first[:cut] + second
        assert not is_one_record(glued), glued
        assert "beta-793" in set(damage.whole_ids(glued)), glued
    assert is_one_record(first[:-1]) and is_one_record(first.replace(b"false", b"NaN"))


def test_the_rule_names_what_to_do(tmp_path: Path) -> None:
    log = ALL["langfuse lines"].write(tmp_path)
    log.write_bytes(log.read_bytes().replace(b"\n", b'\n{"id": \n', 1))
    _, problems = found(log)
    refused = [problem for problem in problems if problem.kind == "lost-row"]
    assert refused and all("mend or delete line 2 and read again" in problem.expected for problem in refused)
    assert isinstance(TraceError(refused[0]), ValueError)


@pytest.mark.parametrize("name", ["otlp of gen_ai", "otlp of openinference", "langsmith", "braintrust", "weave"])
def test_a_trace_in_pieces_is_refused_by_the_file_and_line_that_are_damaged(name: str, tmp_path: Path) -> None:
    """The trace's only problem was an orphan of the other file, and it came before the damaged line."""
    log, other = ALL[name].write(tmp_path), tmp_path / "other.jsonl"
    lines = log.read_text().splitlines()
    if name.startswith("otlp"):
        spans = reversed(spans_of(lines))  # parents before children
        lines = [json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) for span in spans]
    if name == "langsmith":
        lines.append(json.dumps({"key": "step", "score": 1.0, "run_id": json.loads(lines[0])["id"]}))
    blamed = 0
    for at in range(1, len(lines)):
        log.write_text("\n".join([*lines[: at - 1], lines[at - 1][:-5]]) + "\n")
        other.write_text("\n".join(lines[at:]) + "\n")
        _, problems = found(tmp_path)
        assert (problems[0].file, problems[0].line, problems[0].kind) == (str(log), at, "bad-json")
        first = {problem.trace: problem for problem in reversed(problems)}
        assert {(p.file, p.line) for p in first.values() if p.is_failure} == {(str(log), at)}, problems
        blamed += any(problem.file == str(other) and problem.is_failure for problem in problems)
    assert bool(blamed) == (name in ("langsmith", "weave"))  # elsewhere what is left is cut short, no fault


def spans_of(lines: list[str]) -> list[object]:
    groups = [group for line in lines for group in json.loads(line).get("resourceSpans", ())]
    return [span for group in groups for scope in group["scopeSpans"] for span in scope["spans"]]


def test_a_trace_that_is_read_with_a_fault_stays_where_another_trace_is_damaged(tmp_path: Path) -> None:
    """Langfuse's list of traces names a score that is on no page at hand."""
    trace = {"id": "a", "timestamp": "2026-01-01T00:00:00.000Z", "scores": ["absent"], "projectId": "p"}
    trace["observations"] = [{**ALL["langfuse lines"].values[0], "traceId": "a", "parentObservationId": None}]
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    intact, problems = found(tmp_path)
    assert list(intact) == ["a"] and [problem.kind for problem in problems] == ["missing-part"]
    log = ALL["langfuse lines"].write(tmp_path)
    log.write_bytes(log.read_bytes()[:-9] + b"\n")
    left, problems = found(tmp_path)
    assert list(left) == ["a"] and {problem.trace for problem in problems if problem.kind == "lost-row"} == {"t"}


def test_a_last_line_of_mlflow_that_is_cut_refuses_no_other_trace(tmp_path: Path) -> None:
    """A line states its trace in its `info`, as `tr-…`. Its spans state it in base64, which may be cut."""
    text, trace = json.dumps(MLFLOW), MLFLOW["info"]["trace_id"].removeprefix("tr-")
    other = trace[:-1] + "0"
    first, second = (base64.b64encode(bytes.fromhex(one)).decode() for one in (trace, other))
    path = tmp_path / "log.jsonl"
    for last, left in ((text.replace(trace, other).replace(first, second), [f"tr-{trace}"]), (text, [])):
        path.write_text(f"{text}\n{last[:-9]}")
        traces, problems = found(path)
        assert list(traces) == left and [p.kind for p in problems] == ["bad-json", *["lost-row"] * (not left)]


STATING = [name for name, sample in ALL.items() if FORMATS[sample.format].states.keys]
RENAMED = ("weave, an evaluation",)
"""Logs whose records state other ids than those of the traces: of the evaluation of an example."""


def in_one_document(path: Path) -> str:
    text = path.read_text()
    values = list(map(json.loads, text.splitlines())) if path.suffix == ".jsonl" else json.loads(text)
    return json.dumps(values, indent=1)


@pytest.mark.parametrize("name", STATING)
def test_the_keys_of_a_format_state_the_traces_that_are_read(tmp_path: Path, name: str) -> None:
    path = ALL[name].write(tmp_path)
    stated = {folded(trace) for trace in stated_ids(path.read_bytes(), FORMATS[ALL[name].format].states)}
    traces = set(map(folded, found(path)[0]))
    assert stated.isdisjoint(traces) if name in RENAMED else stated == traces


@pytest.mark.parametrize("name", [name for name in STATING if name not in RENAMED])
def test_a_file_of_which_nothing_is_read_refuses_the_traces_that_it_states(tmp_path: Path, name: str) -> None:
    """Of separate exports the others are read; where one shares a trace with the file, all of that export wait."""
    path = ALL[name].write(tmp_path / "first")
    good, whole = set(found(path)[0]), in_one_document(path)
    other = whole
    for trace in good:
        other = other.replace(f'{trace}"', f'{trace[:-1]}0"' if trace[-1] != "0" else f'{trace[:-1]}1"')
    cut = tmp_path / "second.json"
    cut.write_text(other[: len(other) * 2 // 3])
    left, problems = found(tmp_path)
    assert set(left) == good and [p.file for p in problems if p.kind == "bad-json"] == [str(cut)]
    cut.write_text(whole[: len(whole) * 2 // 3])
    left, problems = found(tmp_path)
    assert not left and {p.trace for p in problems if p.kind == "lost-row"} == good
    assert all("write the file anew" in p.expected for p in problems if p.kind == "lost-row")


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_packed_file_that_is_cut_refuses_the_traces_that_it_states(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = ALL["otlp of openinference"].write(tmp_path)
    (trace,) = found(path)[0]
    noise = random.Random(SEED).randbytes(1 << 17).hex()  # a head decompresses, and tells the format
    line = json.loads(path.read_text())
    line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].append(
        {"key": "input.value", "value": {"stringValue": noise}}
    )
    other = json.dumps(line).replace(trace, trace[:-1] + ("0" if trace[-1] != "0" else "1")).encode()
    packed = pack(other + b"\n" + other)
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) - 9])
    left, problems = found(tmp_path)
    assert set(left) == {trace} and [problem.kind for problem in problems] == ["unreadable"]
    packed = pack(json.dumps(line).encode())
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) - 9])
    left, problems = found(tmp_path)
    assert not left and [problem.kind for problem in problems] == ["unreadable", "lost-row"]


def test_a_last_line_that_is_cut_refuses_the_one_trace_that_it_states(tmp_path: Path) -> None:
    """Lines of OTLP that hold a trace each: the one that is cut is of none of the others."""
    path = ALL["otlp of openinference"].write(tmp_path)
    (trace,) = found(path)[0]
    lines = [path.read_bytes().replace(trace.encode(), trace[:-1].encode() + digit) for digit in (b"0", b"1", b"2")]
    path.write_bytes(b"".join(lines)[: -len(lines[2]) // 3])
    left, problems = found(path)
    assert set(left) == {f"{trace[:-1]}{digit}" for digit in "01"} and [p.kind for p in problems] == ["bad-json"]
    path.write_bytes(b"".join(lines)[: -len(lines[2]) + 9])  # before its id
    left, problems = found(path)
    assert not left and [p.kind for p in problems] == ["bad-json", "lost-row", "lost-row"]


def otlp_lines(path: Path, *lines: str) -> tuple[list[str], str]:
    """Lines of OTLP with the spans of traces: "a" the first eight of trace a, "A" the others; and the traces' stem."""
    (trace,) = found(ALL["otlp of openinference"].write(path))[0]
    request = json.loads(next(path.iterdir()).read_text())
    (scope,) = request["resourceSpans"][0]["scopeSpans"]
    spans, written = scope["spans"], []
    for line in lines:
        halves = ((digit, spans[:8] if digit.islower() else spans[8:]) for digit in line)
        scope["spans"] = [{**span, "traceId": trace[:-1] + digit.lower()} for digit, half in halves for span in half]
        written.append(json.dumps(request))
    return written, trace[:-1]


@pytest.mark.parametrize(
    ("lines", "cut", "left"),
    [(("aAbB", "cC", "dDeEfF"), 2, "abc"), (("bB", "aAcC", "eE"), 1, "be"), (("bB", "aAcC", "AC"), 1, ""),
     (("bB", "ac", "AC"), 2, ""), (("bB", "AC", "ac"), 1, "")],
)  # fmt: skip
def test_a_record_of_several_traces_refuses_what_it_may_hold(
    tmp_path: Path, lines: tuple[str, ...], cut: int, left: str
) -> None:
    """Where each line had whole traces, a cut one refused all; where traces lay in several, one lost spans silently."""
    written, stem = otlp_lines(tmp_path / "whole", *lines)
    last = written[cut].rfind('"traceId": "' + stem + ("e" if "e" in lines[cut] else "a")) + 60
    written[cut] = written[cut][:last]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(written) + "\n")
    assert {trace.removeprefix(stem) for trace in found(path)[0]} == set(left)


def test_a_cut_call_of_an_evaluation_refuses_its_examples(tmp_path: Path) -> None:
    """Each example is a trace of its own, and its calls state that of the evaluation."""
    calls = [json.loads(line) for line in (ROOT / "tests/recordings/weave_calls.jsonl").read_text().splitlines()]
    of_evaluation = next(call["trace_id"] for call in calls if "/op/Evaluation." in call["op_name"])
    path, other = tmp_path / "calls.json", tmp_path / "other.json"
    path.write_text(json.dumps(calls))
    good = set(found(path)[0])
    sole = next(call for call in calls if call["trace_id"] in good)
    other.write_text(json.dumps([{**sole, "trace_id": "another"}] * 2)[:-30])
    assert set(found(tmp_path)[0]) == good
    other.write_text(json.dumps([call for call in calls if call["trace_id"] == of_evaluation])[:-30])
    left, problems = found(tmp_path)
    examples = {problem.trace for problem in problems if problem.kind == "lost-row"}
    assert len(examples) > 1 and not examples & left.keys() and not left


def test_a_key_within_content_states_no_trace(tmp_path: Path) -> None:
    """The cut record is of a trace that it does not state; the id in what it was given is another one's."""
    path = ALL["langsmith"].write(tmp_path)
    (trace,) = found(path)[0]
    path.write_bytes(path.read_bytes() + b'{"id": "x", "inputs": {"trace_id": "of the task"}, "trace_i')
    left, problems = found(path)
    assert not left and {problem.trace for problem in problems if problem.kind == "lost-row"} == {trace}


BESIDE = {
    "langsmith": ("01a1fd32", '{"key"', "", True),
    "otlp of gen_ai": ("20f47c33", '{"resourceLogs"', "", True),
    "langfuse lines": (
        '"t"', "-", '{"id": "s", "traceId": "t", "name": "correct", "value": 1, "dataType": "NUMERIC"}', True
    ),
    "langfuse, traces": ('"t"', "-", '{"id": "t", "timestamp": "2026-01-01T00:00:00Z", "htmlPath": ""}', False),
    "openai-agents": ("58e9f2a0", '{"object": "trace",', "", False),
    "agent-lightning": ('"r"', '{"rollout_id"', "", False),
}  # fmt: skip
"""Logs with the beginning of their traces' ids, what a line beside their runs begins with, or a further such line, and
whether these are scores."""


@pytest.mark.parametrize("name", BESIDE)
def test_a_lost_run_refuses_the_traces_of_its_file_and_not_those_of_the_file_of_scores(
    tmp_path: Path, name: str
) -> None:
    """A file of feedback shares traces with all days: a cut line of one day refused the other days, too."""
    known, begin, further, is_scores = BESIDE[name]
    lines = [*ALL[name.replace(", traces", " lines")].write(tmp_path).read_text().splitlines(), further]
    beside = ""
    for day in "abc":
        own = [line.replace(known, known[:-2] + day + known[-1]) for line in lines if line]
        own = [line.replace('"id": "s"', f'"id": "{day}"') for line in own]
        is_beside = [line.startswith(begin) or (bool(further) and line == own[-1]) for line in own]
        beside += "".join(f"{line}\n" for line, of in zip(own, is_beside, strict=True) if of)
        runs = "".join(f"{line}\n" for line, of in zip(own, is_beside, strict=True) if not of)
        (tmp_path / f"day-{day}.jsonl").write_text(runs)
    next(path for path in tmp_path.iterdir() if not path.name.startswith("day")).unlink()
    (tmp_path / "beside.jsonl").write_text(beside)
    whole, problems = found(tmp_path)
    assert (len(whole), [problem for problem in problems if problem.is_failure]) == (3, [])
    day = tmp_path / "day-c.jsonl"
    runs = day.read_text()
    day.write_text(runs + lines[0][:9])
    left, problems = found(tmp_path)
    assert len(left) == 2 and all(whole[trace] == left[trace] for trace in left)
    (lost,) = (problem for problem in problems if problem.kind == "lost-row")
    assert lost.file == str(day) and "any trace of this file;" in lost.expected
    day.write_text(runs)
    (tmp_path / "beside.jsonl").write_text(beside + beside[:9])
    left, problems = found(tmp_path)
    assert left == (whole if is_scores else {})
    kinds = [problem.kind for problem in problems if problem.is_failure]
    assert kinds == ["bad-json", *(["lost-score"] if is_scores else ["lost-row"] * 3)]
