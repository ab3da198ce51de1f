"""Groups whose traces all share a choice: what `validate` says of them is what a method does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.method_summary import Summary
from credit.methods.availability import availability
from credit.reports.corpus import survey


def write(log: Path, contexts: list[list[list[str]]]) -> Path:
    """A log of groups of traces, each with its contexts; outcomes of 0 and 1 by turns."""
    traces = []
    for g, group in enumerate(contexts):
        for t, names in enumerate(group):
            events = [
                {"id": f"e{i}", "type": "message", "agent": "a"} | ({"context": name} if name else {})
                for i, name in enumerate(names)
            ]
            named = {"trace_id": f"{g}/{t}", "task_id": f"g{g}", "events": events, "rewards": {"team": t % 2}}
            traces.append(msgspec.json.encode(named))
    log.write_bytes(b"\n".join(traces))
    return log


def test_rounds_as_contexts_make_replays_of_all_traces_and_validate_says_so(tmp_path: Path) -> None:
    """ "24 of 24 with a signal" was said of a log of which `assign` answered no action."""
    log = write(tmp_path / "rounds.jsonl", [[["0", "1"], ["0", "1", "2"], ["0", "1"]], [["", ""], ["", ""]]])
    traces = credit.read(log)
    found, summary = survey(traces), Summary()
    summary.add(traces, credit.run(traces, "rloo"), "rloo", {})
    assert (found.teaching, [*found.unresolved], found.replays) == (1, ["g0"], 3)
    assert summary.has_signal == {"g0": False, "g1": True}
    assert summary.as_json("rloo", {})["unresolved"] == found.unresolved
    told = " ".join(CliRunner().invoke(cli, ["validate", str(log)]).output.split())
    assert "with a signal 1 of 2" in told and "sharing a choice 3 of 5 traces" in told
    assert "no signal (outcomes differ between traces that share a choice" in told and "as rounds" in told


@pytest.mark.parametrize("seed", range(8))
def test_groups_with_a_signal_are_those_that_a_method_answers(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    contexts = []
    for g in range(6):
        kind = rng.choice(["rounds", "none", "own", "one prefix", "some"])
        group = []
        for t in range(int(rng.integers(2, 5))):
            of = {"rounds": "", "own": f"{g}/{t}/", "one prefix": f"{g}/", "some": rng.choice([f"{g}/", f"{g}/{t}/"])}
            count = int(rng.integers(1, 4))
            group.append([f"{of[kind]}{i}" if kind in of else "" for i in range(count)])
        contexts.append(group)
    traces = credit.read(write(tmp_path / "log.jsonl", contexts))
    summary = Summary()
    summary.add(traces, credit.run(traces, "rloo"), "rloo", {})
    found = survey(traces)
    silent = {*found.equal, *found.singletons, *found.unscored_groups}
    assert {name for name, moves in summary.has_signal.items() if not moves} == silent
    assert (availability(traces)["rloo"].state == "computable") == bool(found.teaching)
