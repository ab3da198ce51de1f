"""The luck share: its interval over worlds drawn by seed, from a log to a plan, runs and advice, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from benchmarks.luck_share import KINDS, World, judged, world_of
from credit.cli import cli
from credit.replay.luck_share import luck_of_log, luck_share
from graphs.errors import CreditError

DRIVER = """
import random
from credit.replay.replayer import Continuation

def rerun(prefix, replace, forbid, seed):
    draw = random.Random(f"{prefix.trace} {seed}")
    made = int(prefix.trace.split("-")[1]) % 2
    return Continuation(made + float(draw.random() < LUCK), "choice")
"""


def command(*args: object) -> str:
    result = CliRunner().invoke(cli, list(map(str, args)))
    assert result.exit_code == 0, result.output
    return result.output


def log(path: Path, tasks: int = 6, traces: int = 4) -> Path:
    events = [{"id": f"e{i}", "t": i, "type": "message", "agent": "solver"} for i in range(3)]
    path.write_text("".join(
        json.dumps({"trace_id": f"{q}-{i}", "task_id": q, "events": events, "edges": [], "costs": {},
                    "rewards": {"team": float(i % 2)}}) + "\n"
        for q in map(str, range(tasks)) for i in range(traces)
    ))  # fmt: skip
    return path


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_the_interval_holds_what_it_says(kind: int) -> None:
    # Three worlds of each kind; benchmarks/luck_share.py has many more.
    found = [
        judged(world_of(seed), np.random.default_rng(seed), 120) for seed in range(kind, 3 * len(KINDS), len(KINDS))
    ]
    answers = np.array([row["answers"] for row in found])
    covered = np.nansum([row["covered"] * row["answers"] for row in found if row["answers"]]) / answers.sum()
    assert answers.sum() > 100
    assert 0.95 - 3.5 * np.sqrt(0.05 * 0.95 / answers.sum()) < covered < 0.9999


@pytest.mark.parametrize(("kind", "size", "share"), [
    ("success or failure", (22, 8, 2), 0.12), ("rare failure", (16, 5, 2), 0.8),
])  # fmt: skip
def test_an_interval_that_some_logs_get_holds_what_it_says(kind: str, size: tuple[int, int, int], share: float) -> None:
    # Repeats of about ten traces or fewer differ: it is the logs with more luck than usual that get two ends.
    found = judged(World(kind, *size, share), np.random.default_rng(7), 300)
    assert 10 < found["answers"] < 200
    assert found["covered"] > 0.95 - 3.5 * np.sqrt(0.05 * 0.95 / found["answers"])


def test_the_share_is_one_less_the_intraclass_correlation() -> None:
    rng, trace = np.random.default_rng(3), np.repeat(np.arange(60), 4)
    y = (rng.normal(size=60)[trace] + 0.7 * rng.normal(size=240)).reshape(60, 4)
    within = y.var(axis=1, ddof=1).mean()
    between = 4 * y.mean(axis=1).reshape(12, 5).var(axis=1, ddof=1).mean()
    correlation = (between - within) / (between + 3 * within)
    found = luck_share(y.ravel(), trace, trace // 5)
    assert found.share == pytest.approx(1 - correlation, rel=1e-9) and found.low < found.share < found.high
    moved = luck_share(1e3 - 5 * y.ravel() + 100.0 * (trace // 5), trace, trace // 5)
    assert (moved.share, moved.low, moved.high) == pytest.approx((found.share, found.low, found.high), rel=1e-6)


def test_repeats_that_agree_give_a_bound_and_too_few_give_words() -> None:
    trace = np.repeat(np.arange(40), 3)
    sure = luck_share((trace % 2).astype(float), trace, trace // 4)
    assert (sure.share, sure.low) == (0.0, 0.0) and 0.05 < sure.high < 0.5
    tenths = luck_share(np.where(trace % 2, 0.1, 0.3), trace, trace // 4)
    assert (tenths.share, tenths.high) == pytest.approx((0.0, sure.high))
    with pytest.raises(CreditError, match="19 traces can be repeated, 18 of them in tasks with another"):
        luck_share(np.arange(38.0), np.arange(38) // 2, np.arange(38) // 4)
    with pytest.raises(CreditError, match="all outcomes of every task are equal"):
        luck_share(np.full(120, 0.1), trace, trace // 4)
    alone = np.where(np.arange(120) % 3 == 0, 1.0, np.nan)
    with pytest.raises(CreditError, match="0 traces can be repeated"):
        luck_share(alone, trace, trace // 4)


@pytest.mark.slow
@pytest.mark.parametrize(("luck", "words"), [(0.0, "claims pay"), (0.5, "too wide or too large")])
def test_from_a_plan_to_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, luck: float, words: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"luck_{int(10 * luck)}.py").write_text(DRIVER.replace("LUCK", str(luck)))
    source = log(tmp_path / "log.jsonl", tasks=8)
    assert "no last action was drawn again" in command("choose", source)
    command("plan", source, "--for", "luck", "--budget", 128, "-o", "plan.jsonl")
    jobs = [json.loads(line) for line in Path("plan.jsonl").read_text().splitlines()[1:]]
    assert {(job["event"], job["runs"]) for job in jobs} == {("e2", 4)} and len(jobs) == 32
    driver = f"luck_{int(10 * luck)}:rerun"
    shown = command("replay", "plan.jsonl", "--driver", driver, "--results", "runs.jsonl", "--log", source, "-o",
                    "with.jsonl")  # fmt: skip
    assert "of the variance of outcomes within tasks, given all decisions but the last: 128 outcomes" in shown
    found = luck_of_log(credit.read("with.jsonl"))
    assert (found.traces, found.tasks, found.outcomes) == (32, 8, 160)  # the logged outcomes are draws, too
    assert words in command("choose", "with.jsonl")


def test_a_plan_for_luck_says_what_it_lacks(tmp_path: Path) -> None:
    source = str(log(tmp_path / "l.jsonl", tasks=2))
    few = CliRunner().invoke(cli, ["plan", source, "--for", "luck", "--budget", "99",
                                   "-o", str(tmp_path / "p.jsonl")])  # fmt: skip
    assert few.exit_code != 0 and "8 traces can be repeated" in few.output
    with pytest.raises(CreditError, match="no last action was drawn again, and too few can be: 8 traces"):
        luck_of_log(credit.read(source))  # no advice to plan what a plan refuses


def test_siblings_of_an_earlier_action_say_nothing_of_luck(tmp_path: Path) -> None:
    source = log(tmp_path / "log.jsonl", tasks=10)
    documents = [json.loads(line) for line in source.read_text().splitlines()]
    for document in documents:
        document["events"][1]["context"] = document["task_id"]
    source.write_text("".join(json.dumps(document) + "\n" for document in documents))
    with pytest.raises(CreditError, match="no last action was drawn again"):
        luck_of_log(credit.read(source))


@pytest.mark.parametrize("node", ["one node", "own nodes"])
def test_a_last_joint_turn_is_one_decision(node: str) -> None:
    """Two agents that act at once have the luck of one: neither's context is at an earlier decision."""
    rng = np.random.default_rng(0)
    traces = [f"{task}{run}" for task in range(20) for run in range(6)]
    tasks, reward = [name[:-1] for name in traces], rng.normal(size=len(traces))
    contexts = [f"{name[:-1]} {int(name[-1]) // 3}" for name in traces]
    alone = {"context": contexts, "node": traces}
    _, _, single = credit.from_columns(group=tasks, trace=traces, reward=reward, evidence=alone)

    def twice(names: list[str]) -> list[str]:
        return [name for name in names for _ in range(2)]

    own = [f"{name}{agent}" for name in traces for agent in "xy"]
    joint = {"context": twice(contexts), "node": own if node == "own nodes" else twice(traces)}
    _, _, both = credit.from_columns(
        group=twice(tasks),
        trace=twice(traces),
        agent=["x", "y"] * len(traces),
        reward=np.repeat(reward, 2),
        evidence=joint,
    )
    assert luck_of_log(both.traces) == luck_of_log(single.traces)
