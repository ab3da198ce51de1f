"""Methods for roles and joint turns against plain loops, on traces that spawn different numbers of sub-agents."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

import numpy as np
import pytest

import credit
from estimators.baselines import released
from estimators.baselines.roles import matpo_reward, wideseek_r1_weights

SIZES = {"events": 128, "traces": 32, "agents": 64}


class Log:
    """Three tasks of four traces: a planner, none to three workers, one to three rows each; the last task has one."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rows: list[dict] = []
        for trace in range(9):
            outcome = round(float(rng.normal()), 3)
            for agent in ("planner", "w1", "w2", "w3")[: rng.integers(1, 5)]:
                form, block = round(float(rng.random()), 3), int(rng.integers(3))
                for _ in range(rng.integers(1, 4)):
                    self.rows.append(
                        {
                            "group": trace // 4,
                            "trace": trace,
                            "agent": agent,
                            "reward": outcome,
                            "event_reward": round(float(rng.normal()), 3),
                            "tokens": int(rng.integers(1, 30)),
                            "format_score": form,
                            "block": None if agent == "planner" else block,
                        }
                    )
        names = ("group", "trace", "agent", "reward", "event_reward", "tokens")
        columns = {name: [row[name] for row in self.rows] for name in names}
        evidence = {name: [row[name] for row in self.rows] for name in ("format_score", "block")}
        graph, self.reward, self.at = credit.from_columns(**columns, evidence=evidence, **SIZES)
        trace = np.asarray(graph.agent_trace)
        first = np.array([int(np.argmax(trace == t)) for t in range(graph.num_traces)])
        parent = np.where(graph.agent_mask, first[trace], 0).astype(np.int32)
        self.graph = dataclasses.replace(graph, agent_parent=parent)

    def instances(self) -> dict[tuple, dict]:
        """What is known of each agent instance, by (trace, agent)."""
        found: dict[tuple, dict] = {}
        for row in self.rows:
            entry = found.setdefault((row["trace"], row["agent"]), {**row, "own": 0.0, "rows": 0})
            entry["own"] += row["event_reward"]
            entry["rows"] += 1
        return found

    def per_row(self, numbers: dict[tuple, float]) -> list[float]:
        return [numbers[row["trace"], row["agent"]] for row in self.rows]

    def check(self, result: credit.Credit, expected: list[float]) -> None:
        np.testing.assert_allclose(self.at.gather(result.advantage), expected, rtol=2e-5, atol=2e-5)


def normalised(scores: dict, keys: dict, alone: str, eps: float = 1e-6) -> dict:
    pools = defaultdict(list)
    for name, x in scores.items():
        pools[keys[name]].append(x)
    out = {}
    for name, x in scores.items():
        pool = pools[keys[name]]
        if len(pool) == 1:
            out[name] = x / (1 + eps) if alone == "raw" else 0.0
        else:
            out[name] = (x - np.mean(pool)) / (np.std(pool, ddof=1) + eps)
    return out


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2))
def test_mgrpo_against_a_loop(seed: int) -> None:
    log = Log(seed)
    instances = log.instances()
    is_sub = {name: name[1] != "planner" for name in instances}
    scores = {name: (0.5 if is_sub[name] else 1.0) * i["reward"] + i["own"] for name, i in instances.items()}
    keys = {name: (i["group"], is_sub[name]) for name, i in instances.items()}
    result = credit.mgrpo(log.graph, log.reward, event_reward=log.at.event_reward, main_weight=0.5)
    log.check(result, log.per_row(normalised(scores, keys, "refuse")))
    alone = log.per_row({name: list(keys.values()).count(keys[name]) < 2 for name in instances})
    assert (np.asarray(log.at.gather(result.valid)) != np.array(alone)).all()


@pytest.mark.study
@pytest.mark.parametrize("with_format", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_mrlx_against_a_loop(seed: int, with_format: bool) -> None:
    log = Log(seed)
    rewards = np.array([0.0, 0.1, 1.0], np.float32)
    reward = np.zeros_like(log.reward)
    reward[:9] = rewards[np.random.default_rng(seed).integers(0, 3, 9)]
    scores, keys = {}, {}
    for (trace, agent), i in log.instances().items():
        r = float(reward[trace])
        if agent == "planner":
            scores[trace, agent], keys[trace, agent] = r, ("main", i["group"])
            continue
        form = i["format_score"]
        formed = 0.0 if form == 0 else 0.1 * form if r == 0 else r
        scores[trace, agent] = formed if with_format else r
        keys[trace, agent] = ("sub", i["block"])
    options = {"format_score": log.at.evidence["format_score"]} if with_format else {}
    result = released.mrlx(log.graph, reward, block=log.at.evidence["block"], **options)
    log.check(result, log.per_row(normalised(scores, keys, "zero")))


def test_a_sub_agent_without_a_block_is_refused_and_counts_nowhere() -> None:
    log = Log(0)
    there = next(row["trace"] for row in log.rows if row["agent"] != "planner")
    lost = np.array([row["trace"] == there and row["agent"] != "planner" for row in log.rows])
    block = log.at.evidence["block"].copy()
    block[log.at.event[lost]] = -1
    result = released.mrlx(log.graph, log.reward, block=block)
    assert (np.asarray(log.at.gather(result.valid)) == ~lost).all()
    scores = {n: i["reward"] for n, i in log.instances().items() if n[0] != there or n[1] == "planner"}
    keys = {n: (n[1] == "planner", i["group"] if n[1] == "planner" else i["block"]) for n, i in log.instances().items()}
    expected = normalised(scores, keys, "zero")
    found = np.asarray(log.at.gather(result.advantage))[~lost]
    kept = [row for row, gone in zip(log.rows, lost, strict=True) if not gone]
    np.testing.assert_allclose(found, [expected[r["trace"], r["agent"]] for r in kept], rtol=2e-5, atol=2e-5)


@pytest.mark.study
@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_matpo_against_a_loop(seed: int, gate: bool) -> None:
    log = Log(seed)
    accuracy = np.zeros_like(log.reward)
    accuracy[:9] = np.random.default_rng(seed).integers(0, 2, 9)
    form = log.at.evidence["format_score"]
    outcome = {}
    for trace in range(9):
        mine = {agent: i["format_score"] for (t, agent), i in log.instances().items() if t == trace}
        workers = [f for agent, f in mine.items() if agent != "planner"]
        part = 0.5 * (0.2 * mine["planner"] + (np.mean([0.2 * f for f in workers]) if workers else 0.0))
        outcome[trace] = 2.0 * accuracy[trace] + (part if accuracy[trace] == 1 or not gate else 0.0)
    weights = {"format_score": form, "accuracy_weight": 2.0, "format_weight": 0.2}
    found = matpo_reward(log.graph, accuracy, **weights, gate=gate)
    np.testing.assert_allclose(found[:9], list(outcome.values()), rtol=1e-6)
    if not gate:
        expected = normalised(outcome, {t: t // 4 for t in outcome}, "raw")
        log.check(credit.matpo(log.graph, accuracy, **weights), [expected[row["trace"]] for row in log.rows])


@pytest.mark.slow
def test_a_trace_whose_format_is_unknown_gets_no_matpo_reward() -> None:
    log = Log(0)
    form = log.at.evidence["format_score"].copy()
    gone = [i for i, row in enumerate(log.rows) if (row["trace"], row["agent"]) == (2, "planner")]
    form[log.at.event[gone]] = np.nan
    found = np.asarray(matpo_reward(log.graph, log.reward, format_score=form))
    assert np.isnan(found[2]) and np.isfinite(np.delete(found[:9], 2)).all()


@pytest.mark.study
@pytest.mark.parametrize("population", ["trace", "row"])
@pytest.mark.parametrize("seed", range(2))
def test_wideseek_r1_against_a_loop(seed: int, population: str) -> None:
    log = Log(seed)
    rows = {i: row["reward"] + row["event_reward"] for i, row in enumerate(log.rows)}
    key = {i: row["group"] for i, row in enumerate(log.rows)}
    if population == "row":
        expected = list(normalised(rows, key, "zero").values())
    else:
        mean = {t: np.mean([x for i, x in rows.items() if log.rows[i]["trace"] == t]) for t in range(9)}
        of_trace = normalised(mean, {t: t // 4 for t in mean}, "zero")
        expected = [of_trace[row["trace"]] for row in log.rows]
    result = credit.wideseek_r1(log.graph, log.reward, event_reward=log.at.event_reward, population=population)
    log.check(result, expected)


@pytest.mark.parametrize("with_tokens", [False, True])
def test_wideseek_r1_weights_against_a_loop(with_tokens: bool) -> None:
    log = Log(1)
    expected = []
    for row in log.rows:
        agents = {r["agent"] for r in log.rows if r["trace"] == row["trace"]}
        mine = [r["tokens"] for r in log.rows if (r["trace"], r["agent"]) == (row["trace"], row["agent"])]
        expected.append((row["tokens"] / sum(mine) if with_tokens else 1 / len(mine)) / len(agents))
    weights = wideseek_r1_weights(log.graph, tokens=log.at.tokens if with_tokens else None)
    np.testing.assert_allclose(log.at.gather(weights), expected, rtol=1e-6)
    assert not np.asarray(weights)[~np.asarray(log.graph.event_mask)].any()


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("by", [None, "agent_name"])
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out"])
@pytest.mark.parametrize("seed", range(2))
def test_c3_magrpo_against_a_loop(seed: int, baseline: str, by: str | None) -> None:
    log = Log(seed)
    if by is None:
        scores = {t: sum(r["event_reward"] for r in log.rows if r["trace"] == t) for t in range(9)}
        scores = {t: x + next(r["reward"] for r in log.rows if r["trace"] == t) for t, x in scores.items()}
        keys: dict = {t: t // 4 for t in scores}
    else:
        scores = {i: r["reward"] + r["event_reward"] for i, r in enumerate(log.rows)}
        keys = {i: (r["group"], r["agent"]) for i, r in enumerate(log.rows)}
    out = {}
    for name, x in scores.items():
        pool = [y for other, y in scores.items() if keys[other] == keys[name]]
        b = np.mean(pool) if baseline == "mean" else (sum(pool) - x) / max(len(pool) - 1, 1)
        out[name] = 0.0 if len(pool) == 1 else (x - b) / np.sqrt(np.var(pool) + 1e-8)
    expected = [out[row["trace"] if by is None else i] for i, row in enumerate(log.rows)]
    result = credit.c3_magrpo(log.graph, log.reward, event_reward=log.at.event_reward, baseline=baseline, by=by)
    log.check(result, expected)


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2))
def test_foldgrpo_and_its_fork_against_loops(seed: int) -> None:
    log = Log(seed)
    rng = np.random.default_rng(seed)
    outcome = np.zeros_like(log.reward)
    outcome[:9] = rng.random(9).round(3)
    marks = rng.choice([-1.0, -0.25, 0.0, 0.0, 0.5], len(log.rows))
    event_reward = np.zeros(log.graph.num_events, np.float32)
    event_reward[log.at.event] = marks
    paper, fork = [], []
    plain = normalised(dict(enumerate(outcome[:9])), {t: t // 4 for t in range(9)}, "raw")
    for row, q in zip(log.rows, marks, strict=True):
        group = [t for t in range(9) if t // 4 == row["group"]]
        r, pool = outcome[row["trace"]], outcome[group]
        moved = np.clip(r + q, 0, 1) if q else r
        value = (moved - pool.mean()) / (pool.std(ddof=1) + 1e-6) if len(pool) > 1 else 0.0
        paper.append(0.0 if q and abs(value) > np.sqrt(len(pool)) else value)  # refused
        best, worst = max(plain[t] for t in group), min(plain[t] for t in group)
        best, worst = best if best > 0 else 1.0, worst if worst < 0 else -1.0
        fork.append((1 - abs(q)) * plain[row["trace"]] + max(q, 0) * best + max(-q, 0) * worst)
    log.check(credit.foldgrpo(log.graph, outcome, event_reward=event_reward), paper)
    log.check(released.foldgrpo_fork(log.graph, outcome, event_reward=event_reward), fork)


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out", "max", "none"])
@pytest.mark.parametrize("fan_outs", [[3, 2, 2], [2, 4]])
def test_magrpo_against_a_recursion(fan_outs: list[int], baseline: str) -> None:
    rng = np.random.default_rng(len(fan_outs))
    depth = len(fan_outs)
    earned = [rng.normal(size=fan_outs[: d + 1]).round(3) for d in range(depth)]
    value = [x.copy() for x in earned]
    for d in reversed(range(depth - 1)):
        value[d] = earned[d] + 0.9 * value[d + 1].mean(axis=-1)
    rows: dict[str, list] = {name: [] for name in ("trace", "agent", "row_reward", "context", "node")}
    expected = []
    for leaf in np.ndindex(*fan_outs):
        for d in range(depth):
            at, siblings = leaf[: d + 1], value[d][leaf[:d]]
            others = np.delete(siblings, leaf[d])
            against = {"mean": siblings.mean(), "leave_one_out": others.mean(), "max": siblings.max(), "none": 0.0}
            for agent in ("a", "b"):
                for name, x in zip(rows, (str(leaf), agent, earned[d][at] / 2, f"of {leaf[:d]}", str(at)), strict=True):
                    rows[name].append(x)
                expected.append(value[d][at] - against[baseline])
    evidence = {name: rows.pop(name) for name in ("context", "node")}
    graph, reward, log = credit.from_columns(group=[0] * len(expected), **rows, evidence=evidence, **SIZES)
    result = credit.magrpo(
        graph,
        reward,
        event_reward=log.event_reward,
        context=log.evidence["context"],
        node=log.evidence["node"],
        baseline=baseline,
    )
    np.testing.assert_allclose(log.gather(result.advantage), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.study
def test_joint_turns_that_overlap_in_a_log_are_those_that_do_not() -> None:
    """An agent that answers the first joint turn after another has begun the second belongs to the first."""
    rng = np.random.default_rng(5)
    reward = {leaf: float(rng.normal()) for leaf in np.ndindex(2, 2)}

    def by_action(overlapping: set[tuple[int, int]]) -> dict[tuple, float]:
        rows: dict[str, list] = {name: [] for name in ("trace", "agent", "reward", "context", "node")}
        names = []
        for leaf, outcome in reward.items():
            order = [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
            if leaf in overlapping:
                order[1], order[2] = order[2], order[1]
            for agent, d in order:
                entry = (str(leaf), agent, outcome, f"of {leaf[:d]}", str(leaf[: d + 1]))
                for name, x in zip(rows, entry, strict=True):
                    rows[name].append(x)
                names.append((leaf, agent, d))
        evidence = {name: rows.pop(name) for name in ("context", "node")}
        graph, outcomes, log = credit.from_columns(group=[0] * len(names), **rows, evidence=evidence, **SIZES)
        given = {name: log.evidence[name] for name in evidence}
        result = credit.magrpo(graph, outcomes, **given)
        assert log.gather(result.valid).all()
        return dict(zip(names, np.asarray(log.gather(result.advantage)).tolist(), strict=True))

    apart = by_action(set())
    assert any(apart.values())
    for overlapping in ({(0, 1)}, set(reward)):
        assert by_action(overlapping) == pytest.approx(apart, abs=1e-6)


def crossed_tree(alone: bool = False) -> tuple[dict[str, list], np.ndarray, np.ndarray]:
    """Two turns of agents a (two completions) and b (three; "alone": none), all combined; rewards and returns of both.

    The second turn of a joint turn has its own completions, so the tree has K^N leaves below each of K^N joint turns.
    """
    rng = np.random.default_rng(3)
    ks = (2,) if alone else (2, 3)
    first, second = rng.normal(size=ks).round(3), rng.normal(size=ks + ks).round(3)
    value = first + 0.9 * second.mean(axis=tuple(range(len(ks), 2 * len(ks))))
    rows: dict[str, list] = {name: [] for name in ("trace", "agent", "row_reward", "context", "node", "completion")}
    for i in np.ndindex(*ks):
        for j in np.ndindex(*ks):
            for context, node, drawn, earned in (
                ("root", str(i), i, first[i]),
                (f"of {i}", str(i + j), j, second[i + j]),
            ):
                for agent, c in zip("ab", drawn, strict=False):
                    entry = (f"{i + j}", agent, earned / len(ks), context, node, f"{context} {c}")
                    for name, x in zip(rows, entry, strict=True):
                        rows[name].append(x)
    return rows, value, second


def crossed_magrpo(rows: dict[str, list], **options: str) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and validity of the rows."""
    names = ("context", "node", "completion")
    columns, evidence = {n: x for n, x in rows.items() if n not in names}, {n: rows[n] for n in names}
    sizes = {"events": 256, "traces": 64, "agents": 128}
    graph, reward, at = credit.from_columns(group=[0] * len(rows["trace"]), **columns, evidence=evidence, **sizes)
    given = {n: at.evidence[n] for n in names if n != "completion" or options.get("joint_mode") == "cross"}
    result = credit.magrpo(graph, reward, event_reward=at.event_reward, **given, **options)
    return np.asarray(at.gather(result.advantage)), np.asarray(at.gather(result.valid))


@pytest.mark.parametrize("baseline", ["mean", "leave_one_out"])
@pytest.mark.sampled
@pytest.mark.study
def test_crossed_magrpo_sums_the_joint_turns_of_a_completion(baseline: str) -> None:
    rows, value, second = crossed_tree()

    def advantages(returns: np.ndarray, agent: int) -> list[float]:
        """Of one agent's completions in one context, from the returns of all combinations."""
        sums = [0.0] * returns.shape[agent]
        for combination in np.ndindex(*returns.shape):
            sums[combination[agent]] += returns[combination]
        out = []
        for c, x in enumerate(sums):
            others = [y for d, y in enumerate(sums) if d != c]
            out.append(x - np.mean(sums if baseline == "mean" else others))
        return out

    expected = []
    for i in np.ndindex(2, 3):
        for j in np.ndindex(2, 3):
            expected += [advantages(value, agent)[i[agent]] for agent in range(2)]
            expected += [advantages(second[i], agent)[j[agent]] for agent in range(2)]
    found, valid = crossed_magrpo(rows, joint_mode="cross", baseline=baseline)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=5e-6)
    assert valid.all()


@pytest.mark.study
def test_crossed_magrpo_of_one_agent_is_aligned_and_refuses_missing_combinations() -> None:
    rows, _, _ = crossed_tree(alone=True)
    crossed, valid = crossed_magrpo(rows, joint_mode="cross")
    np.testing.assert_allclose(crossed, crossed_magrpo(rows, joint_mode="aligned")[0], atol=1e-6)
    assert valid.all() and crossed.any()
    rows, _, _ = crossed_tree()
    keep = [i for i, (context, node) in enumerate(zip(rows["context"], rows["node"], strict=True))
            if (context, node) != ("of (0, 0)", "(0, 0, 0, 0)")]  # fmt: skip
    rows = {name: [x[i] for i in keep] for name, x in rows.items()}
    _, valid = crossed_magrpo(rows, joint_mode="cross")
    assert valid.tolist() == [context != "of (0, 0)" for context in rows["context"]]


@pytest.mark.slow
def test_wrong_joint_modes_are_refused() -> None:
    log = Log(0)
    ids = np.zeros(log.graph.num_events, np.int32)
    for options, words in (
        ({"joint_mode": "crossed", "completion": ids}, "joint_mode is 'crossed'"),
        ({"joint_mode": "cross"}, "needs completion"),
        ({"completion": ids}, "joint_mode is 'aligned'; expected 'cross'"),
    ):
        with pytest.raises(ValueError, match=words):
            credit.magrpo(log.graph, log.reward, context=ids, node=ids, **options)


def test_wrong_options_are_refused() -> None:
    log = Log(0)
    ids = np.zeros(log.graph.num_events, np.int32)
    with pytest.raises(ValueError, match="baseline is 'median'"):
        credit.magrpo(log.graph, log.reward, context=ids, node=ids, baseline="median")
    with pytest.raises(ValueError, match="singleton is 'drop'"):
        credit.mgrpo(log.graph, log.reward, singleton="drop")
    with pytest.raises(TypeError, match="mask has dtype float32"):
        released.matpo_worker_tokens(np.zeros(2, np.float32), np.zeros(2, np.int32), np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="one for each row of mask"):
        released.matpo_worker_tokens(np.zeros(3, np.float32), np.zeros(2, np.int32), np.ones((2, 3), bool))
