"""A trace or a row that stands again is named alone, where its tokens or times prove it. Honest policies never are."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credit.integrations import RowAdvantages
from credit.tables.columns import built_from_columns, from_columns
from graphs.logs.read_logs import read
from graphs.traces.sampled_again import sampled_again
from graphs.traces.tokens import Tokens

Table = list[dict[str, Any]]


def rollouts(seed: int, *, tokens: int = 6, clock: float = 0.0) -> Table:
    """Teams of two in five tasks: sampled tokens with their log-probabilities, and a clock with digits of this size."""
    draw = np.random.default_rng([91, seed])
    table: Table = []
    for trace in range(40):
        score = round(float(draw.normal()), 1)
        for call in range(5):
            at = 1000.0 * trace + 7 * call + (np.floor(draw.random() / clock) * clock if clock else 0.0)
            row = {"traj_uid": f"t{trace}", "uid": f"q{trace // 8}", "agent_id": "ab"[call % 2], "reward": score}
            row["time"] = float(at)
            if tokens:
                row["response_ids"] = draw.integers(0, 30_000, tokens).tolist()
                row["rollout_log_probs"] = (-draw.exponential(1, tokens)).tolist()
            table.append(row)
    return table


def of(table: Table, *traces: int) -> Table:
    return [row for row in table if row["traj_uid"] in {f"t{trace}" for trace in traces}]


def named(folder: Path, table: Table) -> list[tuple[str, int | None]]:
    pq.write_table(pa.Table.from_pylist(table), folder / "log.parquet")
    return [(note.trace, note.count) for note in read(folder).problems if note.kind == "repeated-rows"]


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("rows", [{"tokens": 8}, {"tokens": 0, "clock": 1e-6}, {"tokens": 2, "clock": 1e-3}])
@pytest.mark.parametrize("count", [1, 7, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("beside", [False, True])
def test_copied_traces_are_named_however_few(tmp_path: Path, rows: dict[str, Any], count: int, beside: bool) -> None:
    """1, 5 and 7 copies of 40 were silent, with equal tokens, log-probabilities and times."""
    once = rollouts(count, **rows)
    again = [row | {"traj_uid": row["traj_uid"] + "-again"} for row in of(once, *range(3, 39, 5)[:count])]
    assert not named(tmp_path, once)
    both = sorted(once + again, key=lambda row: int(row["traj_uid"].split("-")[0][1:])) if beside else once + again
    assert named(tmp_path, both) == [("t3-again", 5 * count)]
    later = [row | {"time": row["time"] + 0.125, "rollout_log_probs": None} for row in again]
    assert not named(tmp_path, once + later)


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("rows", [{"tokens": 40}, {"tokens": 8, "clock": 1e-6}])
@pytest.mark.parametrize("count", [1, 5])
def test_copied_rows_of_one_trace_are_named(tmp_path: Path, rows: dict[str, Any], count: int) -> None:
    """A row and a trace whose rows stood twice were silent."""
    once = rollouts(count, **rows)
    assert named(tmp_path, once + of(once, 3)[:count]) == [("t3", count)] or count == 5
    assert sum(number or 0 for _, number in named(tmp_path, once + of(once, 3)[:count])) == count


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("ties", [1, 24])
def test_agents_that_act_at_one_moment_leave_a_copied_trace_named(tmp_path: Path, ties: int) -> None:
    """One such moment of another trace, as teams with workers at once have, was silent."""
    once = rollouts(ties, tokens=0, clock=1e-6)
    for trace in range(ties):
        of(once, trace)[2]["time"] = of(once, trace)[1]["time"]
    again = [row | {"traj_uid": "again"} for row in of(once, 30)]
    assert not named(tmp_path, once)
    assert named(tmp_path, once + again) == [("again", 5)]


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("clock", ["of the run", "of the run, at once", "of the task", "whole seconds"])
def test_times_that_runs_share_prove_no_copy(tmp_path: Path, clock: str, seed: int) -> None:
    """Runs of 40 calls, a third of a second apart, were called copies; so were those of a task's clock."""
    draw = np.random.default_rng([94, seed])
    of_tasks = 1e4 * np.arange(6)[:, None] + draw.random((6, 40)).cumsum(1)
    table: Table = []
    for trace in range(24):
        times = of_tasks[trace // 4] if clock == "of the task" else np.round(np.arange(40) / 3, 6)
        times = np.floor(1000 * trace + 3 * times) if clock == "whole seconds" else times
        times = times[np.arange(40) // 2 * 2] if clock == "of the run, at once" else times
        score = float(draw.integers(2))
        for call, time in enumerate(times.tolist()):
            row = {"traj_uid": f"t{trace}", "uid": f"q{trace // 4}", "agent_id": "ab"[call % 2], "reward": score}
            table.append(row | {"time": time})
    assert not named(tmp_path, table)


def sampled(draw: np.random.Generator) -> dict[str, Any]:
    """A batch of one policy: how sharp, how warm, how long its texts are, and what its clock shows, are drawn."""
    tasks, size, words = int(draw.integers(2, 12)), int(draw.choice([4, 8])), int(draw.choice([3, 8, 40]))
    warmth, sharp, most = draw.choice([0.0, 0.3, 0.7, 1.0]), draw.choice([0.5, 2.0, 6.0]), int(draw.choice([1, 4, 30]))
    traces = tasks * size
    task = np.repeat(np.arange(tasks), size)
    logits = sharp * draw.normal(size=(tasks, words, words))  # of the next word, by the last
    last, ids, logs = np.zeros(traces, int), [], []
    for _ in range(most):
        scores = logits[task, last]
        noise = draw.gumbel(size=scores.shape)
        log = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        last = np.argmax(scores + warmth * noise, axis=1)
        ids.append(last)
        logs.append(log[np.arange(traces), last].astype(np.float32))
    clock = draw.choice(["none", "of the trace", "of the batch", "of the task"])
    stamp = {"none": np.full(traces, np.nan), "of the trace": np.full(traces, 0.123456)}
    stamp |= {"of the batch": np.full(traces, 1.7e9 + 0.123456), "of the task": 1.7e9 + draw.random(tasks)[task]}
    score = draw.choice([0.0, 1.0], traces) if warmth else draw.choice([0.0, 1.0], tasks)[task]
    return {"group": task, "ids": np.array(ids).T, "logs": np.array(logs).T, "score": score, "time": stamp[clock]}


def judged(batch: dict[str, Any], which: np.ndarray, trace: np.ndarray, *, whole: bool = False) -> tuple[Any, Any]:
    """`sampled_again` of rows of a batch, of these traces, one call a row; by the log-probability of whole calls."""
    first = np.unique(trace, return_index=True)[1]
    group, times, score = batch["group"][which], batch["time"][which], batch["score"][which][first][trace]
    graph = built_from_columns({"group": group, "trace": trace, "reward": score, "agent": ["a"] * len(which)})[0]
    ids, logs = (batch[name][which] for name in ("ids", "logs"))
    if whole:
        return sampled_again(graph, score[first], {"log_prob": logs.sum(1)}, None, np.full(len(which), np.nan))
    offsets = np.arange(len(which) + 1) * ids.shape[1]
    tokens = Tokens(offsets, ids.ravel(), np.ones(ids.size, bool), logs.ravel())
    return sampled_again(graph, score[first], {}, tokens, times)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_no_honest_batch_is_accused(seed: int) -> None:
    """2,000 batches: greedy, cool and warm policies of short and long texts, whose log-probabilities are of warmth 1.

    Clocks are of the trace, the task or the batch. Each call is a trace, or four calls are.
    """
    draw = np.random.default_rng([92, seed])
    for trial in range(500):
        batch = sampled(draw)
        n = len(batch["group"])
        for whole in (False, True):
            found, rows = judged(batch, np.arange(n), np.arange(n) // (1 + 3 * (trial % 2)), whole=whole)
            assert not len(found[0]) and not len(rows[0]), trial


@pytest.mark.parametrize("count", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_a_copy_is_named_where_the_texts_are_unlikely_enough(count: int) -> None:
    """Of warm policies with long texts; and each copied row of a trace."""
    found = []
    draw = np.random.default_rng(93)
    while len(found) < count:
        batch = sampled(draw)
        n = len(batch["group"])
        surprise = -batch["logs"].sum(1)
        alike = batch["ids"][:-1, 0] == batch["ids"][1:, 0]
        if surprise.min() < 60 or alike.mean() > 0.7:
            continue
        copied = int(draw.integers(n))
        (copies, originals), _ = judged(batch, np.append(np.arange(n), copied), np.arange(n + 1))
        found.append((copies.tolist(), originals.tolist()) == ([n], [copied]))
    assert np.mean(found) > 0.9


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
def test_log_probabilities_of_whole_actions_name_a_copied_trace(tmp_path: Path) -> None:
    """They were silent, though they summed to -200: only lists of tokens were asked. A likely trace may come twice."""
    draw = np.random.default_rng(95)
    once = [row | {"log_prob": round(float(draw.uniform(-70, -20)), 6)} for row in rollouts(1, tokens=0)]
    for row in once:
        del row["time"]
    again = [row | {"traj_uid": "again"} for row in of(once, 30)]
    assert not named(tmp_path, once)
    assert named(tmp_path, once + again) == [("again", 5)]
    names = {"group": "uid", "trace": "traj_uid", "agent": "agent_id", "reward": "reward"}
    columns: dict[str, Any] = {ours: [row[theirs] for row in once + again] for ours, theirs in names.items()}
    with pytest.warns(UserWarning, match="5 rows of 1 trace that equal earlier ones in every number"):
        from_columns(**columns, evidence={"log_prob": [row["log_prob"] for row in once + again]})
    with pytest.warns(UserWarning, match="5 rows of 1 trace that equal earlier ones in every number"):
        told = RowAdvantages("rloo")(**columns, evidence={"log_prob": [row["log_prob"] for row in once + again]})
    assert told.metrics["credit/copied"] > 0
    assert "credit/condition/unbiased" not in told.metrics
    likely = [row | {"log_prob": row["log_prob"] / 20} for row in once + again]
    assert not named(tmp_path, likely)


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
def test_traces_of_other_tokens_are_no_copies(tmp_path: Path) -> None:
    """All traces of a file seemed to stand again, by their numbers: their tokens differed."""
    once = [row | {"reward": 0.1234567 * int(row["traj_uid"][1:])} for row in rollouts(1)]
    again = [row | {"traj_uid": row["traj_uid"] + "-again"} for row in once]
    assert named(tmp_path, once + again) == [("t0-again", 200)]
    other = [row | {"response_ids": row["response_ids"][::-1]} for row in again]
    assert not named(tmp_path, once + other)


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("rows", [2048, 4096, pytest.param(100_000, marks=pytest.mark.slow)])
def test_rows_that_stand_again_are_named_in_large_batches(tmp_path: Path, rows: int, in_file: bool) -> None:
    """Above 1,600 rows two traces share a log-probability of single precision by chance, and copies were silent."""
    draw = np.random.default_rng([96, rows])
    trace, call = np.divmod(np.arange(rows), 8)
    log_prob = -draw.gamma(20, 6, rows)
    log_prob[[9, 100]] = -150.25371  # as by chance

    def said(again: list[int]) -> bool:
        which = np.sort(np.append(np.arange(rows), again)).astype(int)
        task, of = trace[which] // 8, trace[which]
        columns = {"group": task, "trace": of, "agent": np.array(list("ab"))[call[which] % 2], "turn": call[which] // 2}
        reward = (of * of % 5 > 1).astype(float)
        if in_file:
            table = {"task": task, "run": of, "agent": columns["agent"], "turn": columns["turn"], "reward": reward}
            pq.write_table(pa.table(table | {"log_prob": log_prob[which]}), tmp_path / "log.parquet")
            notes = read(tmp_path / "log.parquet", columns={"group": "task", "trace": "run"}).problems
            return "repeated-rows" in {note.kind for note in notes}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            live = RowAdvantages("rloo")(**columns, reward=reward, evidence={"log_prob": log_prob[which]})
        assert bool(caught) is ("credit/condition/unbiased" not in live.metrics)
        return any(f"gets {len(again)} row" in str(warning.message) for warning in caught)

    assert not said([])
    assert said(draw.choice(rows, 30, replace=False).tolist())
    assert said([1000, 1001, 1002])
    assert rows > 10_000 or said([1000])


def test_a_copy_that_chance_may_explain_leaves_open_whether_a_batch_is_unbiased() -> None:
    """It was called unbiased: one pair of 20,000 rows may be equal in single precision."""
    trace, call = np.divmod(np.arange(20_000), 8)
    log_prob = -np.random.default_rng(97).gamma(20, 6, len(trace))
    for copied in (0, 1):
        which = np.sort(np.append(np.arange(len(trace)), np.full(copied, 5000)))
        of = trace[which]
        columns = {"group": of // 8, "trace": of, "agent": ["a"] * len(which), "turn": call[which] // 2}
        reward = (of * of % 5 > 1).astype(float)
        metrics = RowAdvantages("rloo")(**columns, reward=reward, evidence={"log_prob": log_prob[which]}).metrics
        assert ("credit/condition/unbiased" not in metrics) is bool(copied)
