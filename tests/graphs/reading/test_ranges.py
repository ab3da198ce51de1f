"""Evidence beyond its range is refused where it is read, in words, through every door: no method meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credit.tables.columns import ColumnError, from_columns
from graphs.errors import NothingReadError
from graphs.event_types import EventType
from graphs.logs import read
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import TraceRecord
from graphs.traces.schema import EVENT_EVIDENCE, FLOAT_RANGE, TRACE_EVIDENCE
from graphs.writers import native, otlp

NARROW = {name: key for name, key in EVENT_EVIDENCE.items() if key.kind == "float" and key.within.words != FLOAT_RANGE}
BEYOND = [
    (name, amount)
    for name, key in NARROW.items()
    for amount in (key.within.least - 0.1, key.within.most + 0.1)
    if abs(amount) < 1e30
]
"""What `credit validate` passed: a propensity of 1.5, a log-probability of .7, a standard error below 0."""
OF_TRACES = [
    *(("tree", amount) for amount in (-1.0, 2.5, 3e9)),
    *(("policy_version", amount) for amount in (-1.0, 2.5, 3e9)),
    ("greedy_reward", 1e39),
]
"""Tree 2.5 was the sampling tree 2, and 3e9 another one than it is."""


def trace(**more: Any) -> dict[str, Any]:
    events = [{"id": "0", "type": "message", "agent": "a"}]
    return {"schema_version": "1.0", "trace_id": "t", "task_id": "q", "events": events, "rewards": {"team": 1.0}} | more


def refused(folder: Path) -> tuple[str, str, str]:
    with pytest.raises(NothingReadError) as caught:
        read(folder)
    (problem,) = caught.value.problems
    return problem.kind, problem.field, problem.expected


def test_which_evidence_has_a_range() -> None:
    """A new probability belongs here."""
    words = ("probability", "standard error", "share of the team's", "mass", "seconds", "cost")
    meant = {name for name, key in EVENT_EVIDENCE.items() if any(word in key.meaning for word in words)}
    assert meant == NARROW.keys()


@pytest.mark.parametrize(("name", "amount"), BEYOND)
def test_evidence_of_events_beyond_its_range(tmp_path: Path, name: str, amount: float) -> None:
    words = NARROW[name].within.words
    log = trace()
    log["events"][0][name] = amount
    (tmp_path / "log.json").write_text(json.dumps(log))
    assert refused(tmp_path) == ("out-of-range", f"events[0].{name}", words)
    (tmp_path / "log.json").unlink()
    (tmp_path / "rows.csv").write_text(f"trace,group,reward,{name}\nt,q,1,{amount}\n")
    assert refused(tmp_path) == ("out-of-range", f"events[0].{name}", words)
    with pytest.raises(ColumnError, match=f"'{name}': .* expected {words}"):
        from_columns(group=["q"], trace=["t"], reward=[1.0], evidence={name: [amount]})


@pytest.mark.parametrize(("name", "amount"), BEYOND)
def test_in_the_surveys_own_form_it_is_another_key(tmp_path: Path, name: str, amount: float) -> None:
    """As a text under this name would be: it is named, and left out."""
    log = trace()
    del log["schema_version"]
    log["events"][0][name] = amount
    (tmp_path / "log.json").write_text(json.dumps(log))
    traces = read(tmp_path)
    assert [(p.kind, p.field) for p in traces.problems] == [("foreign-key", f"events[0].{name}")]
    assert name not in traces.evidence


@pytest.mark.parametrize(("name", "amount"), BEYOND[:3])
def test_marks_of_spans_beyond_their_range(tmp_path: Path, name: str, amount: float) -> None:
    otlp.write(sound(**{name: NARROW[name].within.most}), tmp_path)
    changed = 0
    for file in tmp_path.iterdir():
        text, count = re.subn(rf'({name}","value":{{"doubleValue":)[^}}]*', rf"\g<1>{amount}", file.read_text())
        file.write_text(text)
        changed += count
    assert changed == 1
    assert refused(tmp_path) == ("out-of-range", f"events[0].{name}", NARROW[name].within.words)


def sound(**columns: Any) -> Traces:
    record = TraceRecord("t", "q", "hand", rewards={"team": 1.0})
    record.event("0", EventType.MESSAGE, "a", action=True, **columns)
    return assemble([record])


@pytest.mark.parametrize("name", NARROW)
def test_the_ends_of_a_range_are_in_it(tmp_path: Path, name: str) -> None:
    key = NARROW[name]
    for number, amount in enumerate((key.within.least, key.within.most)):
        log = trace()
        log["events"][0][name] = amount
        (tmp_path / f"{number}.json").write_text(json.dumps(log | {"trace_id": str(number)}))
    traces = read(tmp_path)
    assert traces.sizes.traces == 2 and not traces.problems
    native.write(traces, tmp_path / "again.jsonl")


@pytest.mark.parametrize(("name", "amount"), OF_TRACES)
def test_evidence_of_traces_beyond_its_range(tmp_path: Path, name: str, amount: float) -> None:
    (tmp_path / "log.json").write_text(json.dumps(trace(evidence={name: amount})))
    assert refused(tmp_path) == ("out-of-range", f"evidence.{name}", TRACE_EVIDENCE[name].within.words)


@pytest.mark.parametrize("name", ["value", "propensity", "event_reward", "log_prob"])
@pytest.mark.parametrize("amount", [float("inf"), -float("inf")])
def test_infinite_evidence_is_not_absent(tmp_path: Path, name: str, amount: float) -> None:
    columns = {"trace": ["t"], "group": ["q"], "reward": [1.0], name: [amount]}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    kind, field, _ = refused(tmp_path)
    assert (kind, field) in {("out-of-range", f"events[0].{name}"), ("non-finite-reward", f"events[0].{name}")}


@pytest.mark.parametrize("form", ["native", "csv"])
def test_log_probabilities_of_tokens_are_not_above_0(tmp_path: Path, form: str) -> None:
    if form == "native":
        log = trace()
        log["events"][0]["token_log_probs"] = [-0.5, 0.7]
        (tmp_path / "log.json").write_text(json.dumps(log))
    else:
        (tmp_path / "rows.csv").write_text('trace,group,reward,token_log_probs\nt,q,1,"[-0.5, 0.7]"\n')
    assert "token_log_probs" in refused(tmp_path)[1]
    record = TraceRecord("t", "q", "hand", rewards={"team": 1.0})
    record.event("0", EventType.MESSAGE, "a", action=True, token_log_probs=[-0.5, 0.7])
    with pytest.raises(NothingReadError, match=r"token_log_probs is 0\.7; expected the logarithm of a probability"):
        assemble([record])
