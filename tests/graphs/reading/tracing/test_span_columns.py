"""Graphs of spans made from columns are those made span by span: samples, teams at random, and faults in them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphs.errors import NothingReadError, Problem, TraceError
from graphs.formats import span_dumps
from graphs.formats.otlp.gathering import Gathering
from graphs.formats.span_columns import forest, turns
from graphs.formats.span_dumps.envelopes import dumped_spans
from graphs.formats.span_dumps.spans import lost_spans, plain_span, stray_in
from graphs.reading.documents import Lost, refused_lines
from graphs.reading.source import Source
from graphs.traces.assembling import assemble
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord
from graphs.traces.record_checks import topological_order

from ..samples import RECORDINGS, SAMPLES
from ..test_every_format import VALUES, changed, places

Item = TraceRecord | Part | Problem


def one_by_one(sources: list[Source]) -> list[Item]:
    """What the reader gives without columns."""
    gathering, found = Gathering("spans", lost_spans()), list[Item]()
    for source in sources:
        for batch in dumped_spans(source):
            if isinstance(batch, Lost):
                found.append(gathering.lose(batch))
                continue
            if isinstance(batch, Problem):
                found.append(batch)
                continue
            for dumped in map(batch.dumped, range(len(batch.spans))):
                try:
                    wire, resource = plain_span(dumped)
                    gathering.add_span(wire, resource, dumped.place)
                except TraceError as error:
                    problem = gathering.spoil(error.problem)
                    if problem is not None:
                        gathering.strays.note(problem, stray_in(dumped.span))
                        found.append(problem)
        for line in refused_lines(source):
            gathering.lose(line)
    return [*found, *gathering.results()]


def content(items: list[Item], limits: Limits = DEFAULT) -> Any:
    """All that a batch holds."""
    try:
        traces = assemble(items, limits=limits)
    except NothingReadError as error:
        return error.problems
    arrays = {name: np.asarray(value).tolist() for name, value in vars(traces.graph).items() if value is not None}
    arrays["time"] = repr(arrays["time"])
    evidence = {name: (one.array[one.mask].tolist(), one.mask.tolist()) for name, one in traces.evidence.items()}
    tables = [table.to_pydict() for table in (traces.events, traces.agents, traces.traces)]
    return arrays, evidence, repr(tables), repr(np.asarray(traces.reward).tolist()), traces.problems


def compare(folder: Path, *logs: str, limits: Limits = DEFAULT) -> list[Item]:
    sources = []
    for number, text in enumerate(logs):
        path = folder / f"{number}.jsonl"
        path.write_text(text)
        sources.append(Source(path.name, path, limits))
    found = list(span_dumps.read(sources))
    assert content(found, limits) == content(one_by_one(sources), limits)
    return found


def in_columns(items: list[Item]) -> int:
    return sum(len(item.headings) for item in items if isinstance(item, Part))


def lines(spans: list[Any]) -> str:
    return "".join(json.dumps(span) + "\n" for span in spans)


def team(draw: random.Random, trace: int) -> list[dict[str, Any]]:
    """Spans of a trace: a tree of any kinds, in any order, with clocks that may lie."""
    spans: list[dict[str, Any]] = []
    odd = draw.random() < 0.5  # also what only the slow way takes
    for number in range(1, draw.randint(2, 14)):
        agents = [span for span in spans if "agent" in span["name"]] or spans
        parent = draw.choice(spans if odd else agents)["span_id"] if spans else None
        kind = draw.choice(("invoke_agent", "chat", "chat", "execute_tool", "http")) if spans else "invoke_agent"
        name = draw.choice(("a", "b", "c"))
        given: dict[str, Any] = {} if kind == "http" else {"gen_ai.operation.name": kind}
        if kind == "invoke_agent" and draw.random() < 0.9:
            given["gen_ai.agent.name"] = name
        if kind == "chat":
            given |= {"gen_ai.request.model": draw.choice("mn"), "gen_ai.usage.output_tokens": draw.randint(0, 9)}
            if draw.random() < 0.4:
                parts = [{"type": "tool_call", "id": draw.choice("xyz")} for _ in range(2)]
                given["gen_ai.output.messages"] = json.dumps([{"parts": parts}])
        if kind == "execute_tool":
            given |= {"gen_ai.tool.name": name}
            given |= {"gen_ai.tool.call.id": draw.choice("xyz")} if draw.random() < 0.5 else {}
        if not spans and draw.random() < 0.4:
            given |= {f"trace.evaluations.0.evaluation.{key}": to for key, to in (("name", "reward"), ("score", 0.5))}
        if odd and draw.random() < 0.05:
            given |= draw.choice(({"orchestration_credit.event.type": "stop"}, {"gen_ai.usage.output_tokens": -1},
                                  {"evaluations.0.evaluation.name": "step", "evaluations.0.evaluation.score": 1.0},
                                  {"openinference.span.kind": "AGENT"}, {"gen_ai.operation.name": "plan"}))  # fmt: skip
        start = draw.choice((None, 0, 10 * number + draw.randint(-15, 15) if draw.random() < 0.3 else 10 * number))
        spans.append(
            {"trace_id": f"{trace:032x}", "span_id": f"{number:016x}", "parent_span_id": parent,
             "name": f"{kind} {name}",
             "start_time": start, "end_time": None if draw.random() < 0.1 else (start or 0) + draw.choice((1, 500)),
             "status": {"code": draw.choice(("OK", "ERROR"))}, "attributes": given}
        )  # fmt: skip
    if draw.random() < 0.3:
        draw.shuffle(spans)
    if draw.random() < 0.1:
        spans[-1]["parent_span_id"] = draw.choice((spans[-1]["span_id"], f"{99:016x}", spans[0]["span_id"]))
    if draw.random() < 0.3:
        spans = [span for span in spans if "invoke" not in span["name"]] or spans
    return spans


@pytest.mark.parametrize("seed", range(3))
def test_teams_at_random(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    traces = [team(draw, number + 1) for number in range(150)]
    mixed = [span for spans in traces for span in spans]
    found = compare(tmp_path, lines(mixed))
    assert 30 < in_columns(found) < 150
    draw.shuffle(mixed)
    half = len(mixed) // 2
    compare(tmp_path, lines(mixed[:half]), lines(mixed[half:]))


@pytest.mark.parametrize("name", [name for name in SAMPLES if name.startswith("spans")])
def test_samples_and_changed_samples(tmp_path: Path, name: str) -> None:
    sample, draw = SAMPLES[name], random.Random(name)
    compare(tmp_path, sample.text)
    everywhere = [place for place in places(sample.values) if len(place) > 1]
    for _ in range(60):
        values = changed(sample.values, draw.choice(everywhere), draw.choice((..., *VALUES)))
        compare(tmp_path, sample._replace(values=values).text)


@pytest.mark.parametrize("name", ["console", "mlflow", "ag2", "any_agent", "phoenix", "strands"])
def test_recordings(tmp_path: Path, name: str) -> None:
    compare(tmp_path, (RECORDINGS / f"spans_{name}.json").read_text())


def test_changed_teams(tmp_path: Path) -> None:
    draw = random.Random(7)
    for _ in range(60):
        spans = team(draw, 1) + team(draw, 2)
        for _ in range(draw.randint(1, 3)):
            everywhere = [place for place in places(spans) if len(place) > 1]
            spans = changed(spans, draw.choice(everywhere), draw.choice((..., *VALUES, "0" * 16, 2**63, 2**64)))
        compare(tmp_path, lines(spans))


def chain(length: int) -> list[dict[str, Any]]:
    return [
        {"trace_id": f"{1:032x}", "span_id": f"{i + 1:016x}", "parent_span_id": f"{i:016x}" if i else None, "name": "x",
         "start_time": i, "end_time": 2 * length - i,
         "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"a{i}"} if i < length - 1 else
         {"gen_ai.operation.name": "chat"}} for i in range(length)
    ]  # fmt: skip


def test_limits_and_depth(tmp_path: Path) -> None:
    two = [span | {"trace_id": f"{2:032x}"} for span in chain(2)]
    for length in (2, 64, 66, 200):
        assert in_columns(compare(tmp_path, lines(chain(length) + two))) >= 1
    spans = [span for number in range(5) for span in team(random.Random(number), number + 1)]
    for most in (1, 3, 8):
        compare(tmp_path, lines(spans), limits=Limits(events=most))
        compare(tmp_path, lines(spans), limits=Limits(edges=most))


def test_ids_whose_keys_collide_are_told_apart(tmp_path: Path) -> None:
    """Ids are looked up by one number for trace and span; another pair with that number is not taken for it."""
    mix = int(forest._MIX)
    spans = chain(3)
    first = (int(spans[1]["span_id"], 16) ^ (1 * mix)) & (2**64 - 1)
    other = (first ^ (2 * mix)) & (2**64 - 1)
    second = [span | {"trace_id": f"{2:032x}"} for span in chain(3)]
    second[2] |= {"span_id": f"{other:016x}"}
    found = compare(tmp_path, lines(spans + second))
    assert in_columns(found) == 0


def test_times_are_the_closest_doubles(tmp_path: Path) -> None:
    spans = chain(2)
    spans[1] |= {"start_time": 1_786_569_488_291_881_985, "end_time": 1_786_569_488_291_881_987}
    found = compare(tmp_path, lines(spans))
    (part,) = (item for item in found if isinstance(item, Part))
    assert part.times.tolist() == [1_786_569_488_291_881_985 / 10**9]


def test_most_logs_take_the_quick_way(tmp_path: Path) -> None:
    for sample in ("spans of strands", "spans one a line", "spans of any-agent"):
        assert in_columns(compare(tmp_path, SAMPLES[sample].text)) == 1


@pytest.mark.parametrize(
    "traces, longest, room", [(40, 12, 1 << 22), (200, 30, 1 << 12), (5, 40, 1 << 22), (60, 50, 1)]
)
def test_turns_of_many_are_those_of_each(traces: int, longest: int, room: int) -> None:
    """Whatever is taken together, each trace gets the turns that it gets alone; circles stop their own trace."""
    draw = random.Random(traces)
    sizes = [draw.randrange(1, longest) for _ in range(traces)]
    listed: list[list[tuple[int, int]]] = []
    for size in sizes:
        backwards = draw.random() < 0.2
        rank = list(range(size))
        draw.shuffle(rank)
        pairs = [(draw.randrange(size), draw.randrange(size)) for _ in range(draw.randrange(2 * size))]
        listed.append([(a, b) for a, b in pairs if backwards or rank[a] < rank[b]])
    of = np.repeat(np.arange(traces), [len(pairs) for pairs in listed])
    pairs = np.array([pair for own in listed for pair in own], np.int64).reshape(-1, 2)
    with mock.patch.object(turns, "_ROOM", room):
        found = turns.in_turns(np.array(sizes), of, pairs)
    alone = [topological_order(size, own) for size, own in zip(sizes, listed, strict=True)]
    assert [[i for i in own.tolist() if i != turns.STUCK] for own in found] == alone
    assert [len(own) for own in found] == sizes
    if traces > 5:
        assert any(len(own) < size for own, size in zip(alone, sizes, strict=True))
        assert any(own != sorted(own) for own in alone)
