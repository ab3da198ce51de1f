"""A key that stands twice in an object is named: a decoder would keep the last value and drop the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

EVENT = {"id": "e0", "type": "message", "agent": "a", "event_reward": 0.5}


def line(name: str, events: int = 2, **more: Any) -> str:
    listed = [EVENT | {"id": f"e{i}"} for i in range(events)]
    edges = [{"src": "e0", "dst": f"e{i}", "type": "causal"} for i in range(1, events)]
    return json.dumps(
        {
            "trace_id": name,
            "task_id": "q",
            "events": listed,
            "edges": edges,
            "rewards": {"team": 1.0},
            "agents": [{"id": "a"}],
        }
        | more
    )


CASES = {
    '"rewards": {"team": 1.0}': ('"rewards": {"team": 0.0}, "rewards": {"team": 1.0}', "rewards"),
    '"team": 1.0': ('"team": 1.0, "team": 0.0', "rewards.team"),
    '"team": 1': ('"t\\u0065am": 7, "team": 1', "rewards.team"),
    '"task_id"': ('"events": [], "task_id"', "events"),
    '"task_id": "q"': ('"task_id" : "p", "task_id" : "q"', "task_id"),
    '"event_reward": 0.5': ('"event_reward": 0.5, "event_reward": 9', "events[0].event_reward"),
    '"event_reward": 0': ('"event_reward": 9, "event_reward": null, "note": 0', "events[0].event_reward"),
    '"agent": "a"': ('"agent": "a", "event_r\\u0065ward": 9', "events[0].event_reward"),
    '"id": "e0"': ('"id": "x", "id": "e0"', "events[0].id"),
    '"id": "e1"': ('"id" : "x", "id": "e1"', "events[1].id"),
    '"type": "causal"': ('"type": "spawn", "type": "causal"', "edges[0].type"),
    '"agents": [{': ('"agents": [{"role": "r", "role": "s", ', "agents[0].role"),
}


@pytest.mark.parametrize("events", [2, 400])
@pytest.mark.parametrize("written", CASES)
def test_a_repeated_key_refuses_the_trace_and_no_other(tmp_path: Path, written: str, events: int) -> None:
    twice, field = CASES[written]
    broken = line("bad", events).replace(written, twice, 1)
    assert json.loads(broken)["trace_id"] == "bad"
    (tmp_path / "x.jsonl").write_text("\n".join([line("a"), broken, line("b")]))
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["a", "b"]
    assert [(p.kind, p.line, p.trace, p.field) for p in traces.problems] == [("repeated-key", 2, "bad", field)]


def test_names_that_only_look_repeated_are_read(tmp_path: Path) -> None:
    text = 'the "event_reward": 3, "rewards": {"team": 9}'
    with_text = '"events": [' + json.dumps(EVENT | {"content_ref": text}) + "]"
    agents = [{"id": "a", "name": "x"}, {"id": "b", "name": "x"}]
    lines = [
        line("a", costs={"team": 2.0}, metrics={"team": 3.0}, agents=agents),
        line("b", events=0, system=text).replace('"events": []', with_text),
        line("c", 400, edges=[]),
        line("d", meta={"team": {"team": 1}}).replace('"id": "e0"', '"own": 1, "id": "e0", "own": {"id": 2}'),
        line("e").replace('"event_reward": 0.5', '"to": null, "event_reward": null, "event_reward": 0.5'),
        line("f").replace('"id": "e0"', '"id" : "e0", "content_ref": "sha256:1\\": 7"'),
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    traces = read(tmp_path)
    assert traces.problems == () and np.asarray(traces.reward)[:6].tolist() == [1] * 6


def test_only_a_broken_trace_is_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(line("a").replace('"team": 1.0', '"team": 1.0, "team": 0.0'))
    with pytest.raises(NothingReadError, match="repeated-key"):
        read(tmp_path)
