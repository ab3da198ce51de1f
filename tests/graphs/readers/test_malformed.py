"""Hostile input: every fault has a name, a file and a line, and harms no other trace."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from graphs.errors import NothingReadError, Problem, TraceError
from graphs.readers import read
from graphs.traces.batch import Traces

Document = dict[str, Any]
pytestmark = pytest.mark.usefixtures("way")


def trace(name: str = "a", reward: float = 1.0) -> Document:
    """A small good trace: an orchestrator spawns a worker, which calls a tool and returns."""
    return {
        "schema_version": "1.0",
        "trace_id": name,
        "task_id": "task",
        "events": [
            {"id": "e0", "t": 0, "type": "orchestrator_decision", "agent": "lead"},
            {"id": "e1", "t": 1, "type": "spawn", "agent": "lead", "to": "worker"},
            {"id": "e2", "t": 2, "type": "tool_call", "agent": "worker", "tool": "search"},
            {"id": "e3", "t": 3, "type": "tool_result", "agent": "search", "tool": "search"},
            {"id": "e4", "t": 4, "type": "return", "agent": "worker", "to": "lead"},
        ],
        "edges": [
            {"src": "e0", "dst": "e1", "type": "causal"},
            {"src": "e1", "dst": "e2", "type": "spawn"},
            {"src": "e2", "dst": "e3", "type": "return"},
        ],
        "rewards": {"team": reward},
        "costs": {"tokens": 1, "wall_clock_s": 2},
    }


def changed(*path: Any, to: Any) -> Callable[[], str]:
    """The good trace with the value at `path` replaced (or removed, where `to` is Ellipsis), as text."""

    def make() -> str:
        document = trace()
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        if to is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = to
        return json.dumps(document)

    return make


def with_text(old: str, new: str) -> Callable[[], str]:
    """The good trace's text with a piece replaced: for what `json.dumps` would not write."""

    def make() -> str:
        text = json.dumps(trace())
        assert old in text
        return text.replace(old, new, 1)

    return make


def edge(src: str, dst: str) -> list[Document]:
    return [{"src": src, "dst": dst, "type": "causal"}]


FAULTS: dict[str, tuple[str, str, Callable[[], str]]] = {
    # name: (kind, a piece of the field, the text)
    "truncated in the middle": ("bad-json", "content", lambda: json.dumps(trace())[:150]),
    "truncated before the end": ("bad-json", "content", lambda: json.dumps(trace())[:-1]),
    "trailing comma": ("bad-json", "content", with_text('"wall_clock_s": 2}', '"wall_clock_s": 2,}')),
    "garbage behind": ("bad-json", "content", lambda: json.dumps(trace()) + "x"),
    "trace_id missing": ("missing-field", "trace_id", changed("trace_id", to=...)),
    "trace_id null": ("bad-type", "trace_id", changed("trace_id", to=None)),
    "trace_id number": ("bad-type", "trace_id", changed("trace_id", to=7)),
    "trace_id empty": ("empty-id", "trace_id", changed("trace_id", to="")),
    "task_id missing": ("missing-field", "task_id", changed("task_id", to=...)),
    "task_id list": ("bad-type", "task_id", changed("task_id", to=["x"])),
    "task_id empty": ("empty-id", "task_id", changed("task_id", to="")),
    "group empty": ("empty-id", "group", changed("group", to="")),
    "group number": ("bad-type", "group", changed("group", to=1)),
    "schema_version number": ("bad-type", "schema_version", changed("schema_version", to=1)),
    "schema_version of the future": ("unknown-version", "schema_version", changed("schema_version", to="2.0")),
    "system number": ("bad-type", "system", changed("system", to=1)),
    "topology unknown": ("unknown-topology", "topology", changed("topology", to="ring")),
    "events missing": ("missing-field", "events", changed("events", to=...)),
    "events null": ("bad-type", "events", changed("events", to=None)),
    "events object": ("bad-type", "events", changed("events", to={})),
    "events empty": ("empty-trace", "events", changed("events", to=[])),
    "event null": ("bad-type", "events[1]", changed("events", 1, to=None)),
    "event text": ("bad-type", "events[1]", changed("events", 1, to="spawn")),
    "event id missing": ("missing-field", "events[2].id", changed("events", 2, "id", to=...)),
    "event id number": ("bad-type", "events[2].id", changed("events", 2, "id", to=2)),
    "event id empty": ("empty-id", "events[2].id", changed("events", 2, "id", to="")),
    "event id twice": ("duplicate-id", "events[2].id", changed("events", 2, "id", to="e0")),
    "type missing": ("missing-field", "events[0].type", changed("events", 0, "type", to=...)),
    "type number": ("bad-type", "events[0].type", changed("events", 0, "type", to=1)),
    "type unknown": ("unknown-event-type", "events[0].type", changed("events", 0, "type", to="think")),
    "agent missing": ("missing-field", "events[4].agent", changed("events", 4, "agent", to=...)),
    "agent null": ("bad-type", "events[4].agent", changed("events", 4, "agent", to=None)),
    "agent empty": ("empty-id", "events[4].agent", changed("events", 4, "agent", to="")),
    "t negative": ("out-of-range", "events[0].t", changed("events", 0, "t", to=-1)),
    "t text": ("bad-type", "events[0].t", changed("events", 0, "t", to="0")),
    "t bool": ("bad-type", "events[0].t", changed("events", 0, "t", to=True)),
    "t overflows": ("non-finite", "events[0].t", with_text('"t": 0', '"t": 1e999')),
    "role number": ("bad-type", "events[0].role", changed("events", 0, "role", to=1)),
    "from number": ("bad-type", "events[0].from", changed("events", 0, "from", to=1)),
    "to list": ("bad-type", "events[1].to", changed("events", 1, "to", to=["worker"])),
    "tool object": ("bad-type", "events[2].tool", changed("events", 2, "tool", to={})),
    "content_ref number": ("bad-type", "events[2].content_ref", changed("events", 2, "content_ref", to=0.5)),
    "trusted number": ("bad-type", "events[2].trusted", changed("events", 2, "trusted", to=1)),
    "action text": ("bad-type", "events[2].action", changed("events", 2, "action", to="yes")),
    "turn float": ("bad-type", "events[2].turn", changed("events", 2, "turn", to=0.5)),
    "turn at one event only": ("mixed-turns", "events[0].turn", changed("events", 2, "turn", to=1)),
    "status number": ("bad-type", "events[2].status", changed("events", 2, "status", to=1)),
    "agent_name number": ("bad-type", "events[2].agent_name", changed("events", 2, "agent_name", to=1)),
    "value text": ("bad-type", "events[2].value", changed("events", 2, "value", to="high")),
    "log_prob bool": ("bad-type", "events[2].log_prob", changed("events", 2, "log_prob", to=False)),
    "propensity list": ("bad-type", "events[2].propensity", changed("events", 2, "propensity", to=[0.5])),
    "event_reward text": ("bad-type", "events[2].event_reward", changed("events", 2, "event_reward", to="1")),
    "value beyond float32": ("out-of-range", "events[2].value", changed("events", 2, "value", to=1e39)),
    "context number": ("bad-type", "events[2].context", changed("events", 2, "context", to=1)),
    "context empty": ("empty-id", "events[2].context", changed("events", 2, "context", to="")),
    "tokens negative": ("out-of-range", "events[2].tokens", changed("events", 2, "tokens", to=-1)),
    "tokens huge": ("out-of-range", "events[2].tokens", changed("events", 2, "tokens", to=10**30)),
    "tokens of 5000 digits": (
        "non-finite",
        "events[2].tokens",
        with_text('"tool": "search"', '"tool": "search", "tokens": ' + "9" * 5000),
    ),
    "tokens fraction": ("bad-type", "events[2].tokens", changed("events", 2, "tokens", to=1.5)),
    "edges object": ("bad-type", "edges", changed("edges", to={})),
    "edge null": ("bad-type", "edges[0]", changed("edges", 0, to=None)),
    "edge without src": ("missing-field", "edges[0].src", changed("edges", 0, "src", to=...)),
    "edge type unknown": ("unknown-edge-type", "edges[0].type", changed("edges", 0, "type", to="because")),
    "edge from nowhere": ("dangling-edge", "edges[0].src", changed("edges", to=edge("zzz", "e1"))),
    "edge to nowhere": ("dangling-edge", "edges[0].dst", changed("edges", to=edge("e1", "zzz"))),
    "edge to itself": ("self-edge", "edges", changed("edges", to=edge("e1", "e1"))),
    "cycle": ("cycle", "edges", changed("edges", to=edge("e1", "e2") + edge("e2", "e3") + edge("e3", "e1"))),
    "use before spawn": ("use-before-spawn", "events[0].agent", changed("events", 0, "agent", to="worker")),
    "agents object": ("bad-type", "agents", changed("agents", to={})),
    "agents without id": ("missing-field", "agents[0].id", changed("agents", to=[{"name": "x"}])),
    "agents twice": ("duplicate-agent", "agents", changed("agents", to=[{"id": "x"}, {"id": "x"}])),
    "parent unknown": ("unknown-parent", "agents.x.parent", changed("agents", to=[{"id": "x", "parent": "y"}])),
    "parent cycle": (
        "agent-cycle",
        "parent",
        changed("agents", to=[{"id": "x", "parent": "y"}, {"id": "y", "parent": "x"}]),
    ),
    "reward NaN": ("non-finite", "rewards.team", with_text('"team": 1.0', '"team": NaN')),
    "reward Infinity": ("non-finite", "rewards.team", with_text('"team": 1.0', '"team": Infinity')),
    "reward -Infinity": ("non-finite", "rewards.team", with_text('"team": 1.0', '"team": -Infinity')),
    "reward overflows": ("non-finite", "rewards.team", with_text('"team": 1.0', '"team": 1e999')),
    "reward beyond float32": ("out-of-range", "rewards.team", changed("rewards", "team", to=1e39)),
    "reward text": ("bad-type", "rewards.team", changed("rewards", "team", to="1.0")),
    "reward bool": ("bad-type", "rewards.team", changed("rewards", "team", to=True)),
    "reward null": ("bad-type", "rewards.team", changed("rewards", "team", to=None)),
    "rewards list": ("bad-type", "rewards", changed("rewards", to=[1.0])),
    "cost negative": ("out-of-range", "costs.tokens", changed("costs", "tokens", to=-1)),
    "cost text": ("bad-type", "costs.tokens", changed("costs", "tokens", to="many")),
    "metrics text": ("bad-type", "metrics.x", changed("metrics", to={"x": "y"})),
    "evidence text": ("bad-type", "evidence.greedy_reward", changed("evidence", to={"greedy_reward": "1"})),
    "NaN where nobody looks": ("non-finite", "note.x[1]", changed("note", to={"x": [0, float("nan")]})),
    "deep nesting": (
        "too-deep",
        "content",
        with_text('"costs"', '"note": ' + "[" * 100_000 + "]" * 100_000 + ', "costs"'),
    ),
    "half a surrogate pair": ("bad-json", "content", with_text('"task_id": "task"', '"task_id": "\\ud800"')),
}


def only_problem(*paths: Any, **options: Any) -> Problem:
    """The one problem of input of which nothing can be read."""
    with pytest.raises(NothingReadError) as caught:
        read(*paths, **options)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_a_name_and_a_place_and_harms_no_neighbour(name: str, tmp_path: Path) -> None:
    kind, field, make = FAULTS[name]
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join([json.dumps(trace("before")), "", make(), json.dumps(trace("behind"))]))
    traces = read(file)
    (problem,) = traces.problems
    assert (problem.kind, problem.file, problem.line) == (kind, str(file), 3)
    assert field in problem.field
    assert problem.value and problem.expected
    assert traces.traces["trace"].to_pylist() == ["before", "behind"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_first_line_does_not_hide_the_format(name: str, tmp_path: Path) -> None:
    kind, _, make = FAULTS[name]
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join([make(), json.dumps(trace("behind"))]))
    traces = read(file)
    assert [(p.kind, p.line) for p in traces.problems] == [(kind, 1)]
    assert traces.traces["trace"].to_pylist() == ["behind"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_list_of_traces(name: str, tmp_path: Path) -> None:
    kind, _, make = FAULTS[name]
    file = tmp_path / "log.json"
    file.write_text("[\n" + ",\n".join([json.dumps(trace("before")), make()]) + "\n]")
    if kind in {"bad-json", "too-deep"} or "NaN" in make() or "Infinity" in make():  # the list itself is broken
        assert only_problem(file).kind in {kind, "bad-json"}
        return
    traces = read(file)
    assert [(p.kind, p.line) for p in traces.problems] == [(kind, 3)]
    assert traces.traces["trace"].to_pylist() == ["before"]


def test_the_offending_value_is_quoted(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text(changed("events", 2, "value", to="very high")())
    assert str(only_problem(file)) == (
        f"{file}:1: trace 'a': events[2].value is 'very high'; expected a number or null, got a text [bad-type]"
    )


def test_malformed_json_over_many_lines_tells_the_line(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    text = json.dumps(trace(), indent=1)
    line = text[: text.index('"type": "tool_call"')].count("\n") + 1
    file.write_text(text.replace('"type": "tool_call"', '"type": tool_call', 1))
    problem = only_problem(file)
    assert (problem.kind, problem.line) == ("bad-json", line)
    file.write_text("\n" + text[:-20])
    problem = only_problem(file)
    assert (problem.kind, problem.line) == ("bad-json", 1 + text[:-20].count("\n") + 1)


def test_the_second_trace_of_an_id_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(json.dumps(trace(name, reward)) for name, reward in (("a", 1), ("b", 2), ("a", 3))))
    traces = read(file)
    (problem,) = traces.problems
    assert (problem.kind, problem.line, problem.trace) == ("duplicate-trace", 3, "a")
    assert f"{file}:1" in problem.expected
    assert traces.reward[:2].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty-file"),
        (b" \n\n ", "empty-file"),
        (b"[]", "unknown-format"),
        (b"{}", "unknown-format"),
        (b"null", "unknown-format"),
        (b"7", "unknown-format"),
        (bytes(range(256)) * 10, "unknown-format"),
        (json.dumps(trace()).encode("utf-16"), "not-utf-8"),
        (json.dumps(trace()).encode("utf-32-le"), "not-utf-8"),
        (b"[" * 100_000, "unknown-format"),
        (b'{"a":' * 20_000, "unknown-format"),
        (gzip.compress(json.dumps(trace()).encode())[:-40], "unreadable"),
        (gzip.compress(json.dumps(trace()).encode())[:-1], "unreadable"),
        (b"\x1f\x8b" + b"no gzip at all", "unreadable"),
        (gzip.compress(b"x" * 1000)[:12] + b"\xff" * 20, "unreadable"),
        (zstandard.compress(json.dumps(trace()).encode())[:-10], "unreadable"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 20, "unreadable"),
        (gzip.compress(b""), "empty-file"),
    ],
    # gzip stamps the time into its header: an id made of it would differ between the workers of a run.
    ids=lambda value: value if isinstance(value, str) else repr(value[:4]),
)
def test_files_that_are_no_logs(content: bytes, kind: str, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    bad.write_bytes(content)
    problem = only_problem(bad)
    assert (problem.file, problem.kind) == (str(bad), kind)
    good.write_text(json.dumps(trace()))
    traces = read(tmp_path)
    assert [p.kind for p in traces.problems] == [kind]
    assert traces.sizes.traces == 1


@pytest.mark.parametrize(
    "content", [b"", b" ", b"[]", b"7", b"null", b'"x"', b"[[]]", b"[null]", b"\x80{}", bytes(256)]
)
def test_the_native_reader_refuses_what_it_is_made_to_read(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    assert only_problem(file, format="native").kind in {"empty-file", "bad-type", "bad-json"}


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    good = json.dumps(trace("good")).encode()
    bad = json.dumps(trace("bad")).encode().replace(b"lead", b"l\xe9ad")
    file.write_bytes(good + b"\n" + bad)
    traces = read(file)
    assert [(p.kind, p.line) for p in traces.problems] == [("not-utf-8", 2)]
    assert traces.traces["trace"].to_pylist() == ["good"]


@pytest.mark.parametrize("format", [None, "native", "table"])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", ["", "\N{ZERO WIDTH NO-BREAK SPACE}"])
def test_wide_text_is_named_with_its_encoding(format: str | None, codec: str, mark: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes((mark + json.dumps(trace())).encode(codec))
    name = codec.upper().replace("-LE", "LE").replace("-BE", "BE")
    problem = only_problem(file, format=format)
    assert (problem.kind, problem.field) == ("not-utf-8", "encoding") and problem.value.startswith(name)
    assert f"`iconv -f {name} -t UTF-8`" in problem.expected
    rewards = tmp_path / "rewards.csv"
    rewards.write_bytes((mark + "trace,reward\nx,1\n").encode(codec))
    file.write_text(json.dumps(trace()))
    with pytest.raises(TraceError, match=f"encoding is {name}"):
        read(file, rewards=rewards)


def test_a_byte_order_mark_of_utf_8_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(trace()).encode())
    assert read(file).problems == ()


def test_many_keys_and_brackets_do_not_slow_the_telling_of_formats_down(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b'{"a":[' + b"{}," * 100_000)
    assert only_problem(file).kind == "unknown-format"


def hundred(skip: int | None = None) -> list[str]:
    """A hundred different traces as lines, without number `skip`."""
    lines = []
    for i in range(100):
        document = trace(f"t{i}", reward=float(i % 7))
        document["task_id"] = f"task{i // 4}"
        document["events"] = document["events"][: 3 + i % 3]
        document["edges"] = document["edges"][: 1 + i % 2]
        document["events"][0]["value"] = i / 8
        document["events"][0]["context"] = f"context{i % 5}"
        if i != skip:
            lines.append(json.dumps(document))
    return lines


def assert_same(a: Traces, b: Traces) -> None:
    for field, array in vars(a.graph).items():
        np.testing.assert_array_equal(array, getattr(b.graph, field), err_msg=field)
    np.testing.assert_array_equal(a.reward, b.reward)
    assert a.evidence.keys() == b.evidence.keys()
    for name in a.evidence:
        np.testing.assert_array_equal(a.evidence[name].array, b.evidence[name].array, err_msg=name)
        np.testing.assert_array_equal(a.evidence[name].mask, b.evidence[name].mask, err_msg=name)
    assert a.agents.equals(b.agents)
    assert a.events.drop_columns(["line", "offset", "file"]).equals(b.events.drop_columns(["line", "offset", "file"]))


@pytest.mark.parametrize("name", ["truncated in the middle", "reward NaN", "cycle", "type unknown", "parent cycle"])
def test_one_bad_trace_in_a_hundred_leaves_exactly_the_ninety_nine(name: str, tmp_path: Path) -> None:
    kind, _, make = FAULTS[name]
    lines = hundred()
    lines[42] = make()
    (tmp_path / "with.jsonl").write_text("\n".join(lines))
    (tmp_path / "without.jsonl").write_text("\n".join(hundred(skip=42)))
    traces = read(tmp_path / "with.jsonl")
    assert [(p.kind, p.line) for p in traces.problems] == [(kind, 43)]
    assert traces.sizes.traces == 99
    assert_same(traces, read(tmp_path / "without.jsonl"))


def test_one_bad_file_in_a_folder_leaves_the_others(tmp_path: Path) -> None:
    for i, line in enumerate(hundred()[:10]):
        (tmp_path / f"{i:03d}.json").write_text(line)
    (tmp_path / "004.json").write_text('{"trace_id": "t4", "task_id": "x", "events": [')
    traces = read(tmp_path)
    assert [(p.kind, p.file) for p in traces.problems] == [("bad-json", str(tmp_path / "004.json"))]
    assert traces.traces["trace"].to_pylist() == [f"t{i}" for i in range(10) if i != 4]


def test_a_long_chain_of_spawns_is_read_in_linear_time(tmp_path: Path) -> None:
    """Deep chains and many second spawns: quadratic checks would take minutes."""
    n = 20_000
    events: list[Document] = []
    for i in range(n):
        events.append({"id": f"s{i}", "type": "spawn", "agent": f"a{i}", "to": f"a{i + 1}"})
    events += [{"id": f"r{i}", "type": "spawn", "agent": "a0", "to": f"a{i + 1}"} for i in range(n)]
    agents = [{"id": f"a{i}", "parent": f"a{max(0, i - 1)}"} for i in range(n, -1, -1)]
    document = trace() | {"events": events, "edges": [], "agents": agents}
    file = tmp_path / "deep.json"
    file.write_text(json.dumps(document))
    traces = read(file)
    assert traces.sizes.agents == n + 1
    assert traces.problems == ()


@pytest.mark.sampled
@pytest.mark.parametrize("seed", [11, 12])
def test_random_damage_never_escapes_as_another_error(tmp_path: Path, seed: int) -> None:
    """Bytes replaced, cut out and doubled: what is read is read, the rest is named."""
    rng = np.random.default_rng(seed)
    content = "\n".join(hundred()[:4]).encode()
    file = tmp_path / "x.jsonl"
    kinds: set[str] = set()
    for _ in range(200):
        damaged = bytearray(content)
        for _ in range(rng.integers(1, 6)):
            at, length = rng.integers(len(damaged)), rng.integers(1, 30)
            way = rng.integers(4)
            if way == 0:
                damaged[at] = rng.integers(256)
            elif way == 1:
                del damaged[at : at + length]
            elif way == 2:
                damaged[at:at] = damaged[at : at + length]
            else:
                damaged[at : at + 1] = rng.choice([b'"', b"{", b"]", b"null", b"1e999", b"-", b"\\", b"\n", b"true"])
        file.write_bytes(damaged)
        try:
            kinds |= {p.kind for p in read(file).problems}
        except NothingReadError as error:
            kinds |= {p.kind for p in error.problems}
    assert kinds >= {"bad-json", "bad-type", "missing-field"}


def test_every_scalar_of_a_trace_replaced_by_every_kind_of_value(tmp_path: Path) -> None:
    """No place of a trace takes a wrong type badly: it reads, or has a problem of its own line."""
    document = trace("x") | {"agents": [{"id": "lead", "parent": "lead"}], "evidence": {"greedy_reward": 1}}
    text = json.dumps(document)
    values = ["null", "true", "-1", "1e999", "1e39", '""', '"e0"', "[]", "{}", "[[]]", '{"id": 1}', "9" * 400]
    scalars = [m.span() for m in re.finditer(r'(?<=: )("[^"]*"|-?[\d.]+)', text)]
    lines = [text[:a] + value + text[b:] for a, b in scalars for value in values]
    lines = [line.replace('"trace_id": "x"', f'"trace_id": "x{i}"') for i, line in enumerate(lines)]
    file = tmp_path / "x.jsonl"
    file.write_text("\n".join(lines))
    traces = read(file)
    read_lines = traces.traces["line"].to_pylist()
    assert sorted(read_lines + [p.line for p in traces.problems]) == list(range(1, len(lines) + 1))
    assert all(p.field and p.expected and p.file == str(file) for p in traces.problems)
    assert len(traces.problems) > len(read_lines) > 0
