"""The only channel of a log is the outcome; that of one trace alone is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from graphs.logs import read

from ..samples import LANGFUSE, OBSERVATIONS

Scores = dict[str, float]
BOTH: list[Scores] = [{"correct": 1.0}, {"correct": 0.0, "judge": 1.0}, {"judge": 1.0}]
APART: list[Scores] = [{"correct": 1.0}, {"judge": 1.0}]
ALONE: list[Scores] = [{"correct": 1.0}, {"correct": 0.0}, {}]


def langsmith(traces: list[Scores]) -> list[Any]:
    rows: list[Any] = []
    for number, scores in enumerate(traces):
        of = {"name": "x", "trace_id": f"t{number}"}
        stats = {key: {"n": 1, "avg": value} for key, value in scores.items()}
        rows += [of | {"id": f"t{number}", "run_type": "chain", "feedback_stats": stats}]
        rows += [of | {"id": f"a{number}", "run_type": "llm", "parent_run_id": f"t{number}"}]
    return rows


def langfuse(traces: list[Scores]) -> list[Any]:
    rows: list[Any] = []
    for number, scores in enumerate(traces):
        of = [
            {"id": f"{key}{number}", "traceId": f"t{number}", "name": key, "value": value, "dataType": "NUMERIC"}
            for key, value in scores.items()
        ]
        own = json.loads(json.dumps(OBSERVATIONS).replace('"t"', f'"t{number}"'))
        rows.append({"trace": LANGFUSE["trace"] | {"id": f"t{number}", "scores": of}, "observations": own})
    return rows


def inspect(traces: list[Scores]) -> list[Any]:
    event = {"event": "model", "output": {"choices": [{"message": {}}], "usage": {"input_tokens": 3}}}
    of = [{key: {"value": value} for key, value in scores.items()} for scores in traces]
    samples = [
        {"id": "q", "epoch": n, "input": "hi", "scores": scores, "events": [event]} for n, scores in enumerate(of, 1)
    ]
    return [{"version": 2, "status": "success", "eval": {"task": "quiz"}, "samples": samples}]


@pytest.mark.parametrize("log", [langsmith, langfuse, inspect])
def test_a_channel_is_the_outcome_where_no_trace_has_another(
    tmp_path: Path, log: Callable[[list[Scores]], list[Any]]
) -> None:
    """Unlabelled traces had a judge's verdict as outcome, beside traces with a person's."""
    for name, traces in (("both", BOTH), ("apart", APART), ("alone", ALONE)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, log(traces))))
        found = read(path)
        outcome = np.asarray(found.reward)[: found.sizes.traces]
        assert found.sizes.traces == len(traces)
        np.testing.assert_equal(outcome, [1, 0, np.nan] if name == "alone" else [np.nan] * len(traces))


def test_two_words_that_nobody_has_explained_may_be_the_outcome(tmp_path: Path) -> None:
    """A judge's verdict was the outcome beside a person's `accepted` and `rejected`. A topic is a category."""
    for words, outcome in ((("accepted", "rejected"), [np.nan] * 3), (("tax", "home", "car"), [1, 1, 0])):
        rows = langfuse([{"judge": value} for value in (1.0, 1.0, 0.0)])
        for number, row in enumerate(rows):
            word = {"name": "review", "stringValue": words[number % len(words)], "dataType": "CATEGORICAL"}
            row["trace"]["scores"].append(word | {"id": f"r{number}", "traceId": f"t{number}"})
        path = tmp_path / f"{len(words)}.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        np.testing.assert_equal(np.asarray(read(path).reward)[:3], outcome)
    told = read(tmp_path / "2.jsonl", outcomes={"accepted": 1, "rejected": 0}, reward="review")
    np.testing.assert_equal(np.asarray(told.reward)[:3], [1, 0, 1])


def test_commands_say_which_channels_there_are(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, langsmith(BOTH))))
    for command in ("validate", "summary", "doctor", "metrics"):
        told = CliRunner().invoke(cli, [command, str(path)]).output
        assert "could be it: correct (2 of 3 traces), judge (2); `--reward-channel correct` takes one" in told, command


def test_a_table_of_outcomes_goes_before_the_only_channel(tmp_path: Path) -> None:
    """And its bad row leaves none; other traces keep that of the log."""
    path, table = tmp_path / "log.jsonl", tmp_path / "outcomes.csv"
    path.write_text("\n".join(map(json.dumps, langsmith([{"correct": 1.0}] * 3))))
    table.write_text("trace,reward\nt0,0.5\nt1,nan\n")
    with pytest.warns(match="non-finite-reward"):
        found = read(path, rewards=table)
    np.testing.assert_equal(np.asarray(found.reward)[:3], np.array([0.5, np.nan, 1], np.float32))
