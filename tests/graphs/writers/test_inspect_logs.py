"""Advantages in copies of Inspect's logs: where they stand, that all else stays, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import CreditError
from graphs.formats.inspect_ai import samples_of
from graphs.logs import read
from graphs.reading.source import Source
from graphs.writers import inspect_logs

LOG = Path(__file__).parents[2] / "recordings" / "inspect_team.eval"


def samples(path: Path) -> list[Any]:
    return [json.loads(raw) for raw in samples_of(Source(str(path), path)) if isinstance(raw, bytes)]


def test_each_model_call_has_its_advantage_and_all_else_stays(tmp_path: Path) -> None:
    traces = read(LOG, reward="match")
    count = traces.sizes.events
    amounts = np.arange(count) / 4
    filled = inspect_logs.write(traces, amounts, np.ones(count, bool), tmp_path / "credit")
    assert filled == int(traces.graph.action_mask.sum()) == 10
    written = tmp_path / "credit" / "inspect_team.json"
    seen = []
    for new, old in zip(samples(written), samples(LOG), strict=True):
        for event in new["events"]:
            metadata = event.get("metadata") or {}
            if inspect_logs.KEY in metadata:
                assert event["event"] == "model"
                seen.append(metadata.pop(inspect_logs.KEY))
                event["metadata"] = metadata or None
        assert [{**one, "metadata": one.get("metadata")} for one in new.pop("events")] == [
            {**one, "metadata": one.get("metadata")} for one in old.pop("events")
        ]
        assert new == old
    assert sorted(seen) == sorted(amounts[np.asarray(traces.graph.action_mask)[:count]].tolist())
    again = read(written, reward="match")
    assert again.problems == ()
    assert again.events["event"].to_pylist() == traces.events["event"].to_pylist()
    assert again.reward.tolist() == traces.reward.tolist()


def test_an_advantage_that_is_not_valid_any_more_is_dropped(tmp_path: Path) -> None:
    traces = read(LOG, reward="match")
    count = traces.sizes.events
    inspect_logs.write(traces, np.ones(count), np.ones(count, bool), tmp_path / "one")
    again = read(tmp_path / "one" / "inspect_team.json", reward="match")
    assert inspect_logs.write(again, np.ones(count), np.zeros(count, bool), tmp_path / "two") == 0
    assert inspect_logs.KEY not in (tmp_path / "two" / "inspect_team.json").read_text()


def test_what_is_refused(tmp_path: Path) -> None:
    traces = read(LOG, reward="match")
    count = traces.sizes.events
    ones, valid = np.ones(count), np.ones(count, bool)
    with pytest.raises(CreditError, match="finite"):
        inspect_logs.write(traces, ones * np.nan, valid, tmp_path / "out")
    with pytest.raises(CreditError, match="expected inspect-ai alone"):
        other = read(LOG.with_name("langgraph_team.jsonl"))
        inspect_logs.write(other, ones, valid, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    copies = [tmp_path / name / "a.json" for name in ("x", "y")]
    inspect_logs.write(traces, ones, valid, tmp_path)
    text = (tmp_path / "inspect_team.json").read_text()
    for number, copy in enumerate(copies):
        copy.parent.mkdir()
        copy.write_text(text.replace('"id": "q 1"', f'"id": "q {number}"'))
    both = read(*copies, reward="match")
    many = both.sizes.events
    with pytest.raises(CreditError, match="one name a log"):
        inspect_logs.write(both, np.ones(many), np.ones(many, bool), tmp_path / "out")
    one = read(copies[0], reward="match")
    copies[0].write_text(text)
    with pytest.raises(CreditError, match="not in its file"):
        inspect_logs.write(one, ones, valid, tmp_path / "out")
