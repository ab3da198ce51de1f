"""`credit bench worlds`: each name that a benchmark takes, in words."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from click.testing import CliRunner

from credit.bench.own_worlds import TEAMS
from credit.bench.training.learning_tasks import TASKS, learning_task
from credit.cli import cli
from credit.cli.shared import provenance
from graphs.event_graph import EventType
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import Decision, Micro


@pytest.mark.parametrize("bench", ["bias", "truth", "snr", "train"])
def test_each_world_of_a_benchmark_is_said_in_words(bench: str) -> None:
    """What a world is stood in the built site alone, and of tasks of training nowhere but in the source."""
    known = {"bias": [*MICRO], "truth": [*TEAMS], "snr": ["normal", "heavy"], "train": [*TASKS, "heavy"]}
    rows = json.loads(CliRunner().invoke(cli, ["bench", "worlds", "--json"]).stdout)["worlds"]
    told = {row["world"]: row["about"] for row in rows if row["bench"] == bench}
    assert [*told] == known[bench] and all(text.endswith(".") and len(text) > 15 for text in told.values())
    shown = " ".join(CliRunner().invoke(cli, ["bench", "worlds"]).stdout.split())
    assert all(" ".join(text.split()) in shown for text in told.values())


def test_worlds_of_ones_own_are_said_in_words_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench worlds` took names of the library alone, though every benchmark takes `module:name`."""
    (tmp_path / "worlds_of_mine.py").write_text(
        "from credit.bench.training.learning_tasks import learning_task\n"
        "from graphs.worlds import TeamWorld\n"
        "from graphs.worlds.micro.examples import MICRO\n"
        "small, team, task, no = MICRO['relay-and'], TeamWorld(kind='pivotal'), learning_task('bottleneck'), 3\n"
        "def noise(rng, shape): return rng.normal(size=shape)\n"
        "def decide(history): return None\n"
    )
    monkeypatch.chdir(tmp_path)
    kinds = {"small": "bias", "team": "truth", "noise": "snr", "Mine=worlds_of_mine:task": "train"}
    names = [name if ":" in name else f"worlds_of_mine:{name}" for name in kinds]
    found = CliRunner().invoke(cli, ["bench", "worlds", "relay-and", *names, "--json"])
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)["worlds"]
    shown = [name.partition("=")[0] for name in names]
    assert [(row["bench"], row["world"]) for row in told] == [
        ("bias", "relay-and"),
        *zip(kinds.values(), shown, strict=True),
    ]
    assert told[0]["about"] == told[1]["about"] and told[0]["parameters"] == told[1]["parameters"]
    for name, why in (("no", "expected a Micro, a TeamWorld"), ("decide", "decide"), ("x", "has no 'x'")):
        refused = CliRunner().invoke(cli, ["bench", "worlds", f"worlds_of_mine:{name}"])
        assert refused.exit_code == 1 and why in refused.stderr, refused.output


def test_a_world_can_be_rebuilt_from_what_json_says_of_it() -> None:
    """The price, the gain and the policy of `stop-rewards` stood in the source alone."""
    found = json.loads(CliRunner().invoke(cli, ["bench", "worlds", "--json"]).stdout)["worlds"]
    for name, world in MICRO.items():
        told = next(row for row in found if row["world"] == name)["parameters"]
        outcomes: dict[tuple[int, ...], list[tuple[float, float]]] = {}
        steps: dict[tuple[int, ...], float] = {}
        for trace in told["traces"]:
            end = tuple(trace["choices"])
            outcomes.setdefault(end, []).append((trace["outcome_chance"], trace["outcome"]))
            steps |= {end[: i + 1]: reward for i, reward in enumerate(trace["step_rewards"])}
        decisions = {
            tuple(d["history"]): Decision(d["agent"], EventType[d["type"].upper()], len(d["policy"]), tuple(d["sees"]),
                                          d["stage"], d["role"]) for d in told["decisions"]
        }  # fmt: skip
        rebuilt = Micro(name, "", decisions.get, lambda end, of=outcomes: tuple(of[end]), steps.__getitem__)
        np.testing.assert_allclose(rebuilt.gradient(), world.gradient(), atol=1e-12)
        policy = [d["policy"] + [0.0] * (world.policy.shape[1] - len(d["policy"])) for d in told["decisions"]]
        np.testing.assert_allclose(policy, world.policy, atol=1e-12)
        returns = sum(trace["probability"] * trace["return"] for trace in told["traces"])
        assert returns == pytest.approx(world.probabilities() @ world.total)
        assert [*rebuilt.roles] == [*world.roles] and rebuilt.anchors.tolist() == world.anchors.tolist()
    of_bench = {row["bench"]: row["parameters"] for row in found if row["world"] == "heavy" and "parameters" in row}
    assert of_bench["truth"]["link"]["form"] == "HeavyTailed" and of_bench["snr"]["noise"] == 1.0
    task = json.loads(CliRunner().invoke(cli, ["bench", "worlds", "router", "--json"]).stdout)["worlds"]
    values, router = task[0]["parameters"]["reward"], learning_task("router")
    np.testing.assert_array_equal(np.reshape(values["values"], values["shape"]), router.reward)
    refused = CliRunner().invoke(cli, ["bench", "worlds", "ruoter"])
    assert refused.exit_code == 1 and "Did you mean router" in refused.output


OWN = """
from credit.bench.training.learning_tasks import LearningTask
from graphs.worlds import HeavyTailed, TeamWorld
import numpy as np

squad = TeamWorld(events=60, spawn=0.6, link=HeavyTailed(1.0, 1.0))
both = LearningTask("both", (0, 1), 2, (0, 1), np.array([[[0.0, 0.0], [0.0, 1.0]]]))


def rloo(graph, reward):
    import estimators
    return estimators.rloo(graph, reward)


def uniform(rng, shape):
    return rng.uniform(-1.0, 1.0, shape) * 3**0.5
"""
CALLS = {
    "truth": ("--world pivotal,heavy,Squad=mine:squad --traces 16 -o t.csv",
              ["pivotal: One message decides", "heavy: Every good decision adds its weight. Its noise has heavy tails: "
               "Student's t with three degrees of freedom, of variance 1",
               "Squad: Every good decision adds its weight. Its noise has heavy tails: "
               "Student's t with three degrees of freedom, of variance 3. spawn = 0.6"]),
    "snr": ("--quick --lengths 10 --world mine:uniform --table t.csv",
            ["mine:uniform: The return is the sum of the choices, each 1 or -1 with equal chances, and noise. "
             "Its noise is that of mine:uniform"]),
    "train": ("--tasks pivotal,Both=mine:both --seeds 1 --steps 2 --learning-rates 0.1 --table t.csv",
              ["pivotal: One of twelve choices decides",
               "Both: 2 decisions of 2 agents, 2 choices each, as in mine:both"]),
}  # fmt: skip


@pytest.mark.parametrize("bench", CALLS)
def test_a_table_says_what_happens_in_its_worlds_and_which_text_a_module_of_yours_had(
    bench: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of `truth` said "outcomes of the kind pivotal", and of world heavy nothing of its tails; others were empty.

    An edited module had the source of the one before it.
    """
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.setattr(provenance, "STARTED", time.time() + 60 * (bench != "snr"))
    os.utime("mine.py", (later := time.time() + 9, later))
    options, texts = CALLS[bench]
    found = CliRunner().invoke(cli, ["bench", bench, "-m", "mine:rloo", *options.split()])
    assert found.exit_code == 0, found.output
    rows = pyarrow.csv.read_csv("t.csv").to_pylist()
    sys.modules.pop("mine")
    assert {part for row in rows for part in row["about"].split(" | ")} >= {*texts}
    digest = f"mine.py sha256 {hashlib.sha256(OWN.encode()).hexdigest()[:12]}"
    edited = ", changed after the program started" * (bench == "snr")
    assert {row["source"].rpartition("; ")[2] for row in rows} == {digest + edited}
