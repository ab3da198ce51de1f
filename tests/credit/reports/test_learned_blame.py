"""Blame learned from other tasks: it finds a rule that holds across tasks, and nothing where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.reports.blame import blame_cases, number_scores
from credit.reports.learned_blame import FOLDS, learned_blame
from graphs.errors import CreditError
from graphs.traces.batch import Traces

ACTIONS = 6


def labelled(folder: Path, tasks: int, rule: str) -> Traces:
    """Failed runs, two a task. The blamed action says "zebra", or is the agent's last one, or is any."""
    rng = np.random.default_rng(1)
    lines = []
    for number in range(2 * tasks):
        blamed = ACTIONS - 1 if rule == "last" else int(rng.integers(ACTIONS))
        events: list[dict[str, Any]] = [
            {"id": f"e{i}", "type": "message", "agent": "ab"[i % 2], "blamed": float(i == blamed),
             "text": f"step {rng.integers(9)} {'zebra' if rule == 'text' and i == blamed else 'horse'}"}
            for i in range(ACTIONS)
        ]  # fmt: skip
        lines.append({"schema_version": "1.0", "trace_id": f"t{number}", "task_id": f"q{number // 2}",
                      "events": events, "edges": [], "rewards": {"team": 0.0}, "costs": {}})  # fmt: skip
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return credit.read(folder / "log.jsonl")


def hits(traces: Traces, *, text: bool) -> float:
    cases = blame_cases(traces)
    (step,) = (
        s for s in number_scores(cases, learned_blame(traces, cases, text=text), "learned") if s.target == "step"
    )
    return step.hits


@pytest.mark.slow
def test_a_rule_of_text_and_one_of_structure_are_learned_across_tasks(tmp_path: Path) -> None:
    of_text = labelled(tmp_path, 12, "text")
    assert hits(of_text, text=True) > 0.9 and hits(of_text, text=False) < 0.5
    assert hits(labelled(tmp_path, 12, "last"), text=False) == 1


def test_labels_without_a_rule_are_not_learned(tmp_path: Path) -> None:
    assert hits(labelled(tmp_path, 12, "none"), text=True) < 0.45  # chance is 1/6; a run of 24 draws


def test_a_task_is_judged_without_its_own_labels(tmp_path: Path) -> None:
    traces = labelled(tmp_path, FOLDS, "text")
    plain = learned_blame(traces, blame_cases(traces), text=False)
    label = traces.evidence["blamed"].array
    label[: 2 * ACTIONS] = np.roll(label[: 2 * ACTIONS], 1)  # of the first task alone
    changed = learned_blame(traces, blame_cases(traces), text=False)
    assert np.array_equal(plain[: 2 * ACTIONS], changed[: 2 * ACTIONS])
    assert not np.array_equal(plain, changed)


def test_few_tasks_are_refused(tmp_path: Path) -> None:
    traces = labelled(tmp_path, FOLDS - 1, "text")
    with pytest.raises(CreditError, match="tasks have a blamed action"):
        learned_blame(traces, blame_cases(traces))
