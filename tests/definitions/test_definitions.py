"""What logs mean, written out by hand: a definition that moves fails here, whatever function it stands in.

Round trips and laws compare functions that share a definition, so they do not see it move. The logs are `CASES` of
`core`, which state their graph, a sample of every format in `formats`, and all recordings.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from graphs.logs import FORMATS, read

from .core import CASES
from .meaning import meaning
from .samples import SAMPLES

RECORDINGS = Path(__file__).parents[1] / "recordings"
RECORDED = {path.stem: path for path in sorted(Path(__file__).with_name("recordings").glob("*.txt"))}
LONG = {
    # Bob is asked once. Each event is an action and begins a turn, as the lead and the workers alternate.
    "language_team.jsonl": (64, 322),
    "language_team_siblings.jsonl": (224, 831),
}
"""Recordings of many traces: their traces and events."""
FIRST_OF_LONG = """\
agent 0:lead
agent 1:bob bob/worker < 0:lead
0.0 0:lead orchestrator_decision* 0
1.0 1:bob message* 1
2.1 0:lead stop* 2
0 > 1 message
0 > 2 temporal
1 > 2 message
path 3: 0 1 2"""


@pytest.mark.parametrize("name", CASES)
def test_a_log_that_states_its_graph_means_what_is_written_beside_it(name: str, tmp_path: Path) -> None:
    log, expected = CASES[name]
    (tmp_path / "log.jsonl").write_text(log)
    traces = read(tmp_path / "log.jsonl")
    assert traces.problems == ()
    assert meaning(traces) == expected


@pytest.mark.parametrize("name", SAMPLES)
def test_a_log_of_each_format_means_what_is_written_beside_it(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    traces = read(sample.write(tmp_path))
    earlier = {"earlier-outcome"} if name in ("agent-lightning", "inspect-ai") else set()
    notes = {"codex-fork": {"lone-subagent"}, "table": {"some-without-event-reward"}, "weave": {"category-score"}}
    assert {problem.kind for problem in traces.problems} == notes.get(name, earlier)
    assert set(traces.traces["format"].to_pylist()) == {sample.format}
    assert meaning(traces) == sample.meaning


def test_every_format_has_a_sample() -> None:
    assert {sample.format for sample in SAMPLES.values()} == set(FORMATS)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_means_what_is_written_for_it(name: str) -> None:
    assert meaning(read(RECORDINGS / name), numbered=True) == RECORDED[name].read_text().rstrip("\n")


@pytest.mark.parametrize("name", LONG)
def test_each_event_of_the_language_team_is_an_action_and_a_turn(name: str) -> None:
    traces = read(RECORDINGS / name)
    num_traces, num_events = LONG[name]
    assert (traces.sizes.traces, traces.sizes.events) == (num_traces, num_events)
    assert traces.graph.turn_ids[:num_events].tolist() == list(range(num_events))
    assert traces.graph.action_mask[:num_events].all()
    lines = [line.partition(" | ")[0] for line in meaning(traces, numbered=True).split("\n\n")[0].splitlines()]
    assert "\n".join(lines[1:]) == FIRST_OF_LONG


def test_two_exports_of_one_run_by_phoenix_mean_the_same() -> None:
    rows, spans = (meaning(read(RECORDINGS / f"spans_phoenix.{kind}"), numbered=True) for kind in ("parquet", "json"))
    assert rows == spans


def test_every_recording_is_written_out() -> None:
    paths = [path for path in RECORDINGS.iterdir() if path.suffix not in (".py", ".mjs")]
    logs = Counter(path.name for path in paths if path.name != "__pycache__")
    assert logs == Counter([*RECORDED, *LONG, "spans_phoenix.parquet"])
