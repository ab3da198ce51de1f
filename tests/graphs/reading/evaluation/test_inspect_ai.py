"""Reading logs of Inspect AI: samples, agents, judges, scores, archives that bite, and what is refused."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError, Problem
from graphs.event_graph import EdgeType, EventType
from graphs.formats.inspect_ai import read as read_inspect
from graphs.formats.inspect_ai import sniff
from graphs.formats.inspect_ai.archive import Archive
from graphs.formats.inspect_ai.outcomes import channels, number
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.assembling import assemble
from graphs.traces.limits import Limits
from graphs.traces.record import TraceRecord, check

RECORDED = Path(__file__).parents[3] / "recordings" / "inspect_team.eval"


def model(**more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 2}
    return {"event": "model", "output": {"choices": [{"message": {}}], "usage": usage}} | more


def sample(*events: Any, **more: Any) -> dict[str, Any]:
    return {"id": "q", "epoch": 1, "input": "hi", "scores": {"match": {"value": "C"}}, "events": list(events)} | more


def log(*samples: Any, task: str = "quiz") -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"task": task}, "samples": list(samples)}


def write(folder: Path, value: Any, name: str = "log.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(value))
    return path


def pack(folder: Path, members: dict[str, Any], how: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", how) as file:
        for name, value in members.items():
            file.writestr(name, value if isinstance(value, str) else json.dumps(value))
    return path


def items(path: Path) -> list[TraceRecord | Problem]:
    return [check(item) if isinstance(item, TraceRecord) else item for item in read_inspect([Source(str(path), path)])]


def only(path: Path) -> TraceRecord:
    (record,) = items(path)
    assert isinstance(record, TraceRecord), record
    return record


def shape(record: TraceRecord) -> list[tuple[str, str]]:
    pairs = zip(record.types, record.agents, strict=True)
    return [(EventType(kind).name.lower(), record.instances[agent].name) for kind, agent in pairs]


def test_the_recorded_team() -> None:
    """A lead looks up and asks a helper at once, hands over to a writer, and answers; twice, as two epochs."""
    records = items(RECORDED)
    assert [r.trace_id for r in records if isinstance(r, TraceRecord)] == ["inspect_team/q 1/1", "inspect_team/q 1/2"]
    for record in records:
        assert isinstance(record, TraceRecord)
        assert record.group_id == "team/q 1"
        assert record.rewards == {"match": 1.0, "style.form": 0.5, "style.polite": 1.0}
        assert shape(record) == [
            ("orchestrator_decision", "lead"),
            ("tool_call", "lead"),
            ("tool_result", "lead"),
            ("spawn", "lead"),
            ("message", "helper"),
            ("tool_call", "helper"),
            ("tool_result", "helper"),
            ("return", "helper"),
            ("orchestrator_decision", "lead"),
            ("spawn", "lead"),
            ("message", "writer"),
            ("return", "writer"),
            ("orchestrator_decision", "lead"),
            ("tool_call", "lead"),
            ("tool_result", "lead"),
        ]
        found = zip(record.senders, record.receivers, record.edge_types, strict=True)
        assert {(s, r, EdgeType(kind).name.lower()) for s, r, kind in found} == {
            (0, 1, "tool_dependency"),
            (1, 2, "return"),
            (0, 3, "causal"),
            (3, 4, "spawn"),
            (4, 5, "tool_dependency"),
            (5, 6, "return"),
            (4, 7, "causal"),
            (2, 8, "causal"),
            (7, 8, "return"),
            (0, 8, "temporal"),
            (8, 9, "causal"),
            (9, 10, "spawn"),
            (10, 11, "causal"),
            (11, 12, "return"),
            (8, 12, "temporal"),
            (12, 13, "tool_dependency"),
            (13, 14, "return"),
        }
        tokens = [t for t in record.columns["tokens"] if t is not None]
        assert tokens == [5, 2, 6, 3, 7]
        assert [i for i, action in enumerate(record.actions) if action] == [0, 4, 8, 10, 12]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("C", 1), ("P", 0.5), ("I", 0), ("N", 0), ("Yes", 1), ("TRUE", 1), ("no", 0), ("false", 0), (True, 1),
        (False, 0), (0.25, 0.25), (3, 3), ("0.75", 0.75), ("blue", None), ("nan", None), ("inf", None),
        (10**400, None), (None, None), ({}, None),
    ],
)  # fmt: skip
def test_scores_as_numbers(value: Any, expected: float | None) -> None:
    assert number(value) == expected


def test_structured_scores_are_channels() -> None:
    assert channels("s", {"a": "C", "b": [1]}) == {"s.a": 1.0, "s.b": None}
    assert channels("s", [True, "P"]) == {"s.0": 1.0, "s.1": 0.5}


def test_the_only_score_is_the_outcome_and_one_of_several_is_chosen_by_the_user(tmp_path: Path) -> None:
    path = write(tmp_path, log(sample(model())))
    assert only(path).rewards == {"match": 1.0} and read(path).reward[0] == 1
    both = log(sample(model(), scores={"a": {"value": "C"}, "b": {"value": 0.5}}))
    path = write(tmp_path, both)
    assert only(path).rewards == {"a": 1.0, "b": 0.5}
    assert read(path, reward="b").reward[0] == 0.5


def test_two_scores_of_one_name_are_none(tmp_path: Path) -> None:
    """The score "b" of scorer "a" took the place of scorer "a.b", whatever each said."""
    scores = {"a.b": {"value": 1.0}, "a": {"value": {"b": 0.0, "c": 0.5}}}
    problem, record = items(write(tmp_path, log(sample(model(), scores=scores))))
    assert isinstance(problem, Problem) and isinstance(record, TraceRecord)
    assert (problem.kind, problem.field, problem.value) == ("bad-score", "samples[0].scores.a.b", "stated twice")
    assert record.rewards == {"a.c": 0.5}


def test_a_score_that_is_no_number_is_named_and_the_sample_reads(tmp_path: Path) -> None:
    problem, record = items(write(tmp_path, log(sample(model(), scores={"a": {"value": "blue"}}))))
    assert isinstance(problem, Problem) and isinstance(record, TraceRecord)
    assert (problem.kind, problem.field, problem.value) == ("bad-score", "samples[0].scores.a", "'blue'")
    assert record.rewards == {}


def test_judges_are_not_the_team(tmp_path: Path) -> None:
    steps = [
        {"event": "step", "action": "begin", "type": "solver", "name": "generate"},
        model(),
        {"event": "step", "action": "end", "type": "solver", "name": "generate"},
        {"event": "step", "action": "begin", "type": "scorer", "name": "judge"},
        model(),
        {"event": "step", "action": "end", "type": "scorer", "name": "judge"},
    ]
    assert only(write(tmp_path, log(sample(*steps)))).ids == ["1"]
    spans = [
        {"event": "span_begin", "id": "s", "type": "scorers", "name": "scorers"},
        {"event": "span_begin", "id": "j", "parent_id": "s", "type": "scorer", "name": "judge"},
        model(span_id="j"),
        model(),
    ]
    assert only(write(tmp_path, log(sample(*spans)))).ids == ["3"]


def test_older_logs_nest_events_in_tools(tmp_path: Path) -> None:
    tool = {"event": "tool", "function": "ask", "events": [model()]}
    record = only(write(tmp_path, log(sample(model(), tool, model()))))
    assert record.ids == ["0", "1", "1.0", "1.result", "2"]


def test_a_failed_call_and_humans_are_events_and_a_call_that_has_not_ended_is_none(tmp_path: Path) -> None:
    failed = {"event": "model", "output": {"choices": []}, "error": "overloaded"}
    asked = {"event": "approval", "approver": "human", "decision": "approve"}
    passed = {"event": "approval", "approver": "auto", "decision": "approve"}
    stopped = {"event": "approval", "approver": "policy", "decision": "reject"}
    open_ = {"event": "model", "output": {"choices": []}, "pending": True}
    record = only(write(tmp_path, log(sample(failed, {"event": "input"}, asked, passed, stopped, model(), open_))))
    assert record.columns["status"][0] == "error"
    assert [kind for kind, _ in shape(record)] == [
        "message",
        "human_intervention",
        "human_intervention",
        "safety_event",
        "message",
    ]


@pytest.mark.parametrize(
    ("scorers", "named", "expected"),
    [(["a"], None, [None, 0.25]), (["a"], "a", [None, 0.25]), (["a"], "b", None), (["a", "b"], None, None)],
)
def test_intermediate_scores_are_outcomes_at_an_earlier_moment(
    tmp_path: Path, scorers: list[str], named: str | None, expected: list[float | None] | None
) -> None:
    """They were rewards: `react(attempts=3)` counted one verdict three times."""
    scored = [
        {"event": "score", "intermediate": True, "score": {"value": value}} | ({"scorer": named} if named else {})
        for value in ("P", 0.25, "odd")
    ]
    final = {"event": "score", "intermediate": False, "score": {"value": "C"}}
    scores = {name: {"value": "C"} for name in scorers}
    path = write(tmp_path, log(sample(model(), *scored, model(), final, scores=scores)))
    record = only(path)
    assert "event_reward" not in record.columns and record.rewards["a"] == 1.0
    assert record.columns.get("value") == expected
    assert [(p.kind, p.is_failure) for p in read(path).problems] == [("earlier-outcome", False)]


def test_a_branch_does_not_count_what_it_repeats(tmp_path: Path) -> None:
    begin = {"event": "span_begin", "id": "b", "type": "branch", "name": "branch"}
    record = only(
        write(tmp_path, log(sample(begin, model(span_id="b"), {"event": "branch", "span_id": "b"}, model(span_id="b"))))
    )
    assert record.ids == ["3"]


def test_log_probabilities_are_summed(tmp_path: Path) -> None:
    choices = [{"logprobs": {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -0.25}]}}]
    record = only(write(tmp_path, log(sample(model(output={"choices": choices})))))
    assert record.columns["log_prob"] == [-0.75]
    assert record.columns["token_log_probs"] == [[-0.5, -0.25]]


def test_one_sample_in_two_logs_is_one_group_unless_it_differs(tmp_path: Path) -> None:
    paths = [
        write(tmp_path, log(sample(model())), "a.json"),
        write(tmp_path, log(sample(model())) | {"eval_id": "b"}, "b.json"),  # else it would be a copy
        write(tmp_path, log(sample(model(), input="bye")), "c.json"),
        write(tmp_path, log(sample(model()), task="other"), "d.json"),
    ]
    assert read(*paths).traces["group"].to_pylist() == ["quiz/q", "quiz/q", "c/q", "other/q"]


def test_samples_of_one_id_that_differ_are_never_one_group(tmp_path: Path) -> None:
    """Within a log, and in logs of one name in two folders, which were refused as repetitions."""
    texts = ("hi", "bye", "why", "hi")
    samples = [sample(model(), input=text, epoch=1 + epoch) for epoch, text in enumerate(texts)]
    for folder in ("large", "small"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, log(*samples) | {"eval_id": folder}, "log.json")  # else one would be a copy
    traces = read(tmp_path)
    assert traces.problems == ()
    assert traces.traces["trace"].to_pylist()[::4] == ["large/log/q/1", "small/log/q/1"]
    groups = traces.traces["group"].to_pylist()
    assert groups[:4] == ["quiz/q", "large/log/q", groups[2], "quiz/q"] and groups[4:7] == [
        "quiz/q",
        "small/log/q",
        groups[6],
    ]


BAD = {
    "id": (sample(model(), id=None), "bad-type", "samples[1].id"),
    "epoch": (sample(model(), epoch="x"), "bad-type", "samples[1].epoch"),
    "events": (sample(model(), events={}), "bad-type", "events"),
    "event": (sample(5), "bad-type", "events[0]"),
    "scores": (sample(model(), scores=3), "bad-type", "samples[1].scores"),
    "tokens": (
        sample(model(output={"choices": [{}], "usage": {"output_tokens": "x"}})),
        "bad-type",
        "events[0].output.usage.output_tokens",
    ),
    "span id": (sample({"event": "span_begin", "type": "agent", "name": "a"}), "missing-field", "events[0].id"),
    "tool": (sample({"event": "tool"}), "missing-field", "events[0].function"),
    "no events": (sample(), "no-events", "events"),
    "lost span": (sample(model(span_id="x"), model()), "missing-parent", "parent_id"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_sample_is_named_and_the_others_read(tmp_path: Path, name: str) -> None:
    bad, kind, field = BAD[name]
    traces = read(write(tmp_path, log(sample(model()), bad, sample(model(), epoch=2))))
    assert traces.traces["trace"].to_pylist() == ["log/q/1", "log/q/2"]
    (problem,) = traces.problems
    assert (problem.kind, problem.field) == (kind, field)
    assert problem.is_failure == (kind != "no-events")


def run(folder: Path, name: str, *scores: str, **more: Any) -> Path:
    """A log of samples with these scores, as Inspect has them today: each has an id of its own, which a retry keeps."""
    samples = [
        sample(model(), epoch=epoch, uuid=f"u{epoch}", scores={"match": {"value": score}}, **more)
        for epoch, score in enumerate(scores)
    ]
    return write(folder, log(*samples), name)


def test_a_retry_counts_what_it_kept_once(tmp_path: Path) -> None:
    run(tmp_path, "1.json", "C", "I")
    run(tmp_path, "2.json", "C", "I", "C")
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["1/q/0", "1/q/1", "2/q/2"]
    assert [(problem.kind, problem.is_failure) for problem in traces.problems] == [("repeated-run", False)] * 2


def test_a_sample_with_two_scores_is_read_from_neither_log(tmp_path: Path) -> None:
    run(tmp_path, "1.json", "C", "C")
    run(tmp_path, "2.json", "I", "C")
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["1/q/1"]
    assert sorted(problem.kind for problem in traces.problems) == ["duplicate-trace", "duplicate-trace", "repeated-run"]


def test_samples_without_a_uuid_are_told_by_the_times_of_their_events(tmp_path: Path) -> None:
    timed = model(timestamp="2024-05-01T10:00:00+00:00")
    path = write(tmp_path, log(sample(timed), sample(timed, epoch=2)), "1.json")
    (tmp_path / "2.json").write_text(json.dumps(json.loads(path.read_text()), indent=2, sort_keys=True))
    assert read(tmp_path).traces["trace"].to_pylist() == ["1/q/1", "1/q/2"]
    write(tmp_path, log(sample(model(timestamp="2024-05-01T10:00:01+00:00"))), "2.json")
    assert read(tmp_path).traces.num_rows == 3
    for name in ("1.json", "2.json"):
        write(tmp_path, log(sample(model())), name)
    assert read(tmp_path).traces.num_rows == 2, "without times two runs may have equal answers"


HEADER = {"version": 2, "eval": {"task": "quiz"}}


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_read_however_packed(tmp_path: Path, how: int) -> None:
    members = {"_journal/start.json": HEADER, "samples/q_epoch_1.json": sample(model()), "samples/bad.json": "{"}
    record, problem = sorted(items(pack(tmp_path, members, how)), key=lambda item: isinstance(item, Problem))
    assert isinstance(record, TraceRecord) and (record.trace_id, record.rewards["match"]) == ("log/q/1", 1.0)
    assert isinstance(problem, Problem) and problem.kind == "bad-json"


@pytest.mark.parametrize("bit", [1, 128], ids=["letter", "beyond-ascii"])
@pytest.mark.parametrize("at", [0, 6, 7, -1])
def test_a_sample_whose_name_is_damaged_is_named(at: int, bit: int, tmp_path: Path) -> None:
    """Samples are found by their names in the archive's directory."""
    names = ["samples/q_epoch_1.json", "samples/r_epoch_1.json"]
    path = pack(tmp_path, {"header.json": HEADER} | dict.fromkeys(names, sample(model())))
    data = bytearray(path.read_bytes())
    start = data.rindex(names[1].encode())
    data[start + at % len(names[1])] ^= bit
    path.write_bytes(data)
    record, problem = items(path)
    assert isinstance(record, TraceRecord) and isinstance(problem, Problem)
    assert (problem.kind, problem.field) == ("bad-zip", names[1])


def refused(path: Path, **limits: int) -> Problem:
    with pytest.raises(NothingReadError) as caught:
        read(path, limits=Limits(**limits))
    return caught.value.problems[0]


def test_archives_are_bounded(tmp_path: Path) -> None:
    bomb = pack(tmp_path, {"header.json": HEADER, "samples/q.json": "0" * 3_000_000})
    assert bomb.stat().st_size < 10_000
    large = refused(bomb, record_bytes=1_000_000)
    assert (large.kind, large.field, large.value) == ("zip-bomb", "samples/q.json", "3000000 bytes")
    dense = refused(bomb, ratio=200)
    assert (dense.kind, dense.field) == ("zip-bomb", "content") and "200 times" in dense.expected
    many = pack(tmp_path, {"header.json": HEADER} | {f"samples/{i}.json": "{}" for i in range(20)})
    assert refused(many, files=20).value == "21 members"


def test_a_small_archive_may_be_packed_well(tmp_path: Path) -> None:
    path = pack(tmp_path, {"header.json": HEADER, "samples/q.json": sample(model(), note="0" * 500_000)})
    assert path.stat().st_size < 50_000
    assert read(path, limits=Limits(ratio=1)).problems == ()


def test_archives_joined_by_cat_are_refused(tmp_path: Path) -> None:
    """The samples of the last were read alone."""
    path = pack(tmp_path, {"header.json": HEADER, "samples/q.json": sample(model())})
    data, empty = path.read_bytes(), pack(tmp_path, {}).read_bytes()
    for joined in (data + data, data + empty, data[:-30] + data):
        path.write_bytes(joined)
        problem = refused(path)
        assert (problem.kind, problem.field) == ("bad-zip", "content") and "another archive" in problem.value
    for intact in (data, b"#!/bin/sh\n" + data, empty + data):  # no sample is in what is skipped
        path.write_bytes(intact)
        assert "samples/q.json" in Archive(Source(str(path), path)).members


def test_a_directory_that_lies_about_sizes_is_named(tmp_path: Path) -> None:
    """The size that an archive states is all that is ever unpacked."""
    path = pack(tmp_path, {"header.json": HEADER, "samples/q.json": sample(model(), input="x" * 5_000_000)})
    data = bytearray(path.read_bytes())
    entry = data.rfind(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = (1000).to_bytes(4, "little")
    path.write_bytes(data)
    assert refused(path).kind == "bad-zip"


@pytest.mark.parametrize("cut", [40, 400, 4000, 12_000, 17_900])
def test_damaged_archives_are_named(tmp_path: Path, cut: int) -> None:
    data, path = RECORDED.read_bytes(), tmp_path / "log.eval"
    path.write_bytes(data[:cut])
    assert refused(path).kind == "bad-zip"
    path.write_bytes(data[:cut] + bytes(byte ^ 0x55 for byte in data[cut : cut + 40]) + data[cut + 40 :])
    for item in items(path):
        assert isinstance(item, TraceRecord) or item.kind in ("bad-zip", "missing-header", "bad-json", "zip-bomb")


def test_an_archive_without_a_header_is_named(tmp_path: Path) -> None:
    assert refused(pack(tmp_path, {"samples/q.json": sample(model())})).kind == "missing-header"
    assert refused(pack(tmp_path, {"header.json": HEADER})).kind == "empty-trace"


def test_other_archives_are_not_taken(tmp_path: Path) -> None:
    assert not sniff(pack(tmp_path, {"word/document.xml": "x"}).read_bytes())
    assert sniff(io.BytesIO(RECORDED.read_bytes()).read(1 << 16))


def test_older_logs_keep_events_in_a_transcript_and_one_score(tmp_path: Path) -> None:
    """As Inspect migrates them: `EvalSample.migrate_deprecated`, `EvalLog.populate_scorer_name_for_samples`."""
    old = sample(model(), model())
    old["transcript"] = {"events": old.pop("events"), "content": {}}
    old["score"] = old.pop("scores")["match"]
    for results in ({"scores": [{"name": "includes"}]}, {"scorer": {"name": "includes"}}):
        value = log(old) | {"results": results}
        record = only(write(tmp_path, value))
        assert record.rewards == {"includes": 1.0} and read(tmp_path).reward[0] == 1
        assert sum(record.actions) == 2
        start = write(tmp_path, value).read_text()[record.offsets[1] :]
        assert start.startswith('{"event": "model"')
    unnamed = only(write(tmp_path, log(old)))
    assert unnamed.rewards == {"score": 1.0} and assemble([unnamed]).reward[0] == 1
    (problem,) = items(write(tmp_path, log(old | {"scores": {"match": {"value": "C"}}})))
    assert isinstance(problem, Problem) and (problem.kind, problem.field) == ("bad-value", "samples[0].score")


def test_a_corrupt_lzma_member_is_named_and_the_others_read(tmp_path: Path) -> None:
    members = {
        "header.json": HEADER,
        "samples/a.json": sample(model(), note="x" * 300),
        "samples/b.json": sample(model(), epoch=2),
    }
    path = pack(tmp_path, members, zipfile.ZIP_LZMA)
    data = bytearray(path.read_bytes())
    start = data.index(b"samples/a.json") + len("samples/a.json")
    data[start + 4 : start + 30] = bytes(reversed(range(200, 226)))
    path.write_bytes(data)
    problem, record = items(path)
    assert isinstance(problem, Problem) and problem.kind == "bad-zip" and problem.field == "samples/a.json"
    assert isinstance(record, TraceRecord) and record.trace_id == "log/q/2"


def test_logs_of_two_models_are_two_groups(tmp_path: Path) -> None:
    paths = []
    for name in ("gpt-4o", "llama"):
        value = log(sample(model()))
        value["eval"]["model"] = name
        paths.append(write(tmp_path, value, f"{name}.json"))
    assert read(*paths).traces["group"].to_pylist() == ["quiz/q [gpt-4o]", "quiz/q [llama]"]
    assert read(*paths, group_by=("task",)).traces["group"].to_pylist() == ["quiz/q", "quiz/q"]


def test_logs_of_two_solvers_are_two_groups(tmp_path: Path) -> None:
    """They were compared: the log of an agent with that of a plain call."""
    paths = []
    for name in ("react", "generate"):
        value = log(sample(model()))
        value["eval"] |= {"model": "m", "solver": name}
        paths.append(write(tmp_path, value, f"{name}.json"))
    assert read(*paths).traces["group"].to_pylist() == ["quiz/q [react]", "quiz/q [generate]"]
