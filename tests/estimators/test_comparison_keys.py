"""Group-relative credit by any key: numbers of released code, loops, replays, filters, and where keys come from."""

from __future__ import annotations

import collections
import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import credit
from credit.integrations import RowAdvantages
from credit.methods.role_methods import run_by_role
from estimators import Reason
from graphs.keys import column_of_key, key_of

close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)

# One task, three traces, agents S and V, nine calls; row 4 has a penalty.
TRACE, AGENT, TURN = list("aaabbcccc"), list("SVSSVSVSV"), [0, 0, 1, 0, 0, 0, 0, 1, 1]
OUTCOME, PENALTY = [1.0] * 3 + [0.0] * 2 + [1.0] * 4, [0.0] * 4 + [-0.1] + [0.0] * 4
COLUMNS: dict[str, Any] = {"group": ["q"] * 9, "trace": TRACE, "agent": AGENT, "turn": TURN, "reward": OUTCOME}

# PettingLLMs `_assign_consistent_uids` at a054fb1 (MIT), then verl's GRPO, executed.
AT_GRPO = [0.577349, 0.577349, 0, -1.154699, -1.154699, 0.577349, 0.577349, 0, 0.999999]
# AgentCreditBench `turn_loo.py` at 02afaf3: outcomes by step, over traces that are still active.
TURN_LOO = [0.5, 0.5, 0, -1, -1, 0.5, 0.5, 0, 1]


def test_numbers_of_released_code() -> None:
    graph, reward, rows = credit.from_columns(**COLUMNS, event_reward=PENALTY)
    options: dict[str, Any] = {"population": "row", "singleton": "raw", "by": "task,agent,turn"}
    close(rows.gather(credit.grpo(graph, reward, event_reward=rows.event_reward, **options).advantage), AT_GRPO)
    by_step = credit.rloo(graph, reward, by=("task", "step"), singleton="raw")
    close(rows.gather(by_step.advantage), TURN_LOO)
    assert (by_step.unit, by_step.estimand) == ("event", "scale")


@pytest.mark.slow
def test_rows_a_log_and_the_command_line_take_keys_by_name(tmp_path: Path) -> None:
    advantages = RowAdvantages("rloo", by="task,key", singleton="raw")
    assert advantages.accepts("key") and not advantages.accepts("anchor")
    result = advantages(**COLUMNS, evidence={"key": [0, 1, 2, 0, 1, 0, 1, 2, 3]})
    close(result.advantages, TURN_LOO)
    assert "credit/condition/unbiased" not in result.metrics
    _, _, rows = credit.from_columns(**COLUMNS, evidence={"key": [0, 1, 2, 0, 1, 0, 1, 2, 3]})
    close(rows.gather(credit.run(rows.traces, "rloo", by="task,key", singleton="raw").advantage), TURN_LOO)
    with pytest.raises(credit.CreditError, match="method 'rloo': by names 'anchor', and the log lacks it"):
        credit.run(rows.traces, "rloo", by="task,anchor")


@pytest.mark.sampled
@pytest.mark.parametrize("population", ["trace", "agent", "row"])
@pytest.mark.slow
def test_every_population_and_score_is_that_of_loops(population: str) -> None:
    rng = np.random.default_rng(5)
    n = 60
    trace, agent = np.sort(rng.integers(0, 12, n)), rng.integers(0, 3, n)
    key = rng.integers(-1, 3, n)
    outcome, step = rng.normal(size=12), rng.normal(size=n)
    graph, reward, rows = credit.from_columns(
        group=trace // 4, trace=trace, agent=agent, reward=outcome[trace], event_reward=step
    )
    ids = np.full(graph.num_events, -1)
    ids[rows.event] = key
    named = [(t // 4, k) for t, k in zip(trace.tolist(), key.tolist(), strict=True)]
    unit = {"trace": trace, "agent": trace * 3 + agent, "row": np.arange(n)}[population].tolist()
    total = np.bincount(trace, step, 12)
    samples: dict[Any, dict[Any, float]] = collections.defaultdict(dict)
    for row in range(n):
        own = outcome[trace[row]] + (step[row] if population == "row" else total[trace[row]])
        if key[row] >= 0:
            samples[named[row]][unit[row]] = own
    expected, reasons = [], []
    for row in range(n):
        others = [x for u, x in samples[named[row]].items() if u != unit[row]]
        reasons.append(Reason.NO_EVIDENCE if key[row] < 0 else Reason.VALID if others else Reason.SINGLETON)
        expected.append(samples[named[row]][unit[row]] - np.mean(others) if reasons[-1] == 0 else 0.0)
    found = credit.rloo(graph, reward, event_reward=rows.event_reward, by=("task", ids), population=population)
    close(rows.gather(found.advantage), expected, rtol=1e-4, atol=1e-5)
    assert rows.gather(found.reason).tolist() == reasons


@pytest.mark.slow
def test_replays_leave_the_baseline_of_every_key() -> None:
    graph, reward, rows = credit.from_columns(
        group=[0] * 8, trace=[0, 0, 1, 1, 2, 2, 3, 3], turn=[0, 1] * 4, reward=[1.0, 1, 0, 0, 0.5, 0.5, 0.25, 0.25]
    )
    ids = np.arange(graph.num_traces, dtype=np.int32)
    ids[1] = 0  # the second trace is a replay of the first
    graph = dataclasses.replace(graph, cluster_ids=ids)
    found = credit.rloo(graph, reward, by=("task", "turn"))
    close(rows.gather(found.baseline), [0.375] * 4 + [(0.5 + 0.25) / 2] * 2 + [(0.5 + 0.5) / 2] * 2)


@pytest.mark.slow
def test_siblings_of_a_prefix_have_the_baseline_of_c3() -> None:
    """Traces 0 and 1 continued from one draw at the first context: they count as one."""
    evidence = {"context": list("pqpqpqpr"), "node": [*"axaybzcw"], "alternative": [*"lmlnlord"]}
    reward = [1.0, 1, 0, 0, 0.25, 0.25, 0.75, 0.75]
    _, _, rows = credit.from_columns(group=[0] * 8, trace=[0, 0, 1, 1, 2, 2, 3, 3], reward=reward, evidence=evidence)
    found = credit.run(rows.traces, "rloo", by="prefix")
    siblings = credit.run(rows.traces, "c3")
    assert rows.gather(found.valid).tolist() == rows.gather(siblings.valid).tolist() == [True] * 7 + [False]
    close(rows.gather(found.baseline), rows.gather(siblings.baseline))
    close(rows.gather(found.baseline)[::2], [0.5, 0.5, 0.625, 0.375])


@pytest.mark.slow
def test_actions_side_by_side_are_one_draw_of_a_prefix() -> None:
    """Traces a and b continued from one draw of two agents, which the log has in either order."""
    evidence = {"context": ["q", "q", "r"] * 4, "node": [*"xys", *"yxt", *"uvw", *"mno"]}
    evidence["alternative"] = [*"lrs", *"rlt", *"lrw", *"lro"]
    columns = {"group": ["p"] * 12, "trace": [*"aaabbbcccddd"], "agent": ["1", "2", "3", "2", "1", "3", *"123123"]}
    _, _, rows = credit.from_columns(**columns, reward=np.repeat([1.0, 0.0, 0.25, 0.75], 3), evidence=evidence)
    found = credit.run(rows.traces, "rloo", by="prefix")
    siblings = credit.run(rows.traces, "c3")
    first = np.tile([True, True, False], 4)
    close(np.asarray(rows.gather(found.baseline))[first], np.asarray(rows.gather(siblings.baseline))[first])
    close(np.asarray(rows.gather(found.baseline))[first][::2], [0.5, 0.5, 0.625, 0.375])


@pytest.mark.slow
def test_groups_without_spread_are_filtered_out_by_key() -> None:
    graph, reward, rows = credit.from_columns(**COLUMNS)
    found = credit.grpo(graph, reward, by="task,agent,turn", filters="equal")
    reasons = rows.gather(found.reason).tolist()
    assert [Reason(code) for code in reasons] == [
        *(Reason.VALID, Reason.VALID, Reason.NO_SPREAD, Reason.VALID, Reason.VALID, Reason.VALID, Reason.VALID),
        *(Reason.NO_SPREAD, Reason.SINGLETON),
    ]


@pytest.mark.slow
def test_a_design_is_compared_with_designs_and_its_executions_with_each_other() -> None:
    """AT-GRPO's trees: one designer acts twice on a task, each design is executed by two rows."""
    scores = [1.0, 0.5, 0.0, 0.0, 0.25, 0.75]
    _, _, rows = credit.from_columns(
        group=["q"] * 6, trace=list("aaabbb"), agent=list("DEEDEE"), row_reward=scores,
        evidence={"proposal": [None, "a", "a", None, "b", "b"]},
    )  # fmt: skip

    def z(*own: int) -> np.ndarray:
        x = np.array(scores)[list(own)]
        return (x - x.mean()) / (x.std(ddof=1) + 1e-6)

    found = rows.gather(credit.run(rows, "at_grpo", evidence=["proposal"], mode="design").advantage)
    close(found[[0, 3]], z(0, 3))
    close(found[[1, 2]], z(1, 2))
    close(found[[4, 5]], z(4, 5))
    close(rows.gather(credit.run(rows, "at_grpo", mode="question").advantage)[[1, 2, 4, 5]], z(1, 2, 4, 5))
    with pytest.raises(credit.CreditError, match="mode is 'design', and proposal is missing"):
        credit.run(rows, "at_grpo", mode="design")


@pytest.mark.slow
def test_the_keys_of_least_spread_are_filtered_out_together() -> None:
    """Variance over squared range: 1/4 of two values, 2/9 of one among three, 0 of equal ones."""
    graph, reward, rows = credit.from_columns(
        group=[0] * 2 + [1] * 3 + [2] * 3 + [3] * 2, trace=range(10), reward=[0, 1, 5, 8, 5, 0, 0, 1, 0.5, 0.5]
    )

    def kept(ratio: float) -> list[int]:
        found = credit.at_grpo(graph, reward, filters="spread", filter_ratio=ratio)
        reasons = set(rows.gather(found.reason).tolist())
        assert reasons <= {Reason.VALID, Reason.NO_SPREAD}
        return np.flatnonzero(rows.gather(found.valid)).tolist()

    assert kept(0.2) == list(range(10))
    assert kept(0.25) == list(range(8))
    assert kept(0.5) == kept(0.74) == [0, 1]
    assert kept(1.0) == []


def test_a_short_name_is_known_among_others() -> None:
    """`agent_name` was a key alone, and unknown in `agent_name,turn`."""
    for by in ("agent_name,turn", ("agent_name", "turn"), "task, agent_name ,turn", "agent_name,agent,turn"):
        assert sorted(key_of(by).names) == ["agent", "task", "turn"]
    assert column_of_key("agent_name,shift") == ("task,agent,key", "shift")
    ids = np.zeros(4, np.int32)
    assert key_of(("agent_name", ids)).names == ("task", "agent", "part 3")
    with pytest.raises(credit.CreditError, match="by names 'agent_nam'; did you mean 'agent_name'"):
        key_of("agent_nam")


def test_a_biased_key_is_not_called_unbiased() -> None:
    rloo, raw = credit.METHODS["rloo"], {"singleton": "raw"}
    assert rloo.unbiased_with({}) == (True, "")
    assert [rloo.unbiased_with({"by": by} | raw)[0] for by in ("task,step", "task,length", "task,mine")] == [
        *(True, False, None),
    ]
    assert rloo.unbiased_with({"by": "task,step"})[0] is False  # refused actions push nothing
    assert rloo.unbiased_with({"by": "task", "population": "row"})[0] is False
    assert [rloo.scope_of({"by": by}) for by in ("task,turn", "agent")] == [("group", None), ("batch", "by")]
    assert credit.METHODS["grpo"].unbiased_with({"by": "task"})[0] is False


# prime-rl `algo/rae.py` and `hierarchical_grpo.py` at 559b447 (Apache-2.0), each call an agent's trace.
RAE = [1, 1, 0.95, -0.0975, -0.15, 0.907375, 0.9575, 0.862006, 0.909625]
HIERARCHICAL = [0.16, 0, 0.16, -0.44, 0, 0.06, 0.5, 0.06, -0.5]


@pytest.mark.slow
def test_an_outcome_of_each_agent_is_paid_to_it() -> None:
    names = [f"{agent}{row}" for row, agent in enumerate(AGENT)]
    own = [0.6, 1, 0.6, 0, 0, 0.5, 1, 0.5, 0]
    _, _, rows = credit.from_columns(
        group=["q"] * 9,
        trace=TRACE,
        agent=names,
        role=AGENT,
        evidence={"agent_reward": own},
    )
    result = credit.run(rows.traces, "dr_grpo", by="task,role", population="agent", singleton="zero")
    solvers, others = np.array(AGENT) == "S", np.array(AGENT) == "V"
    close(rows.gather(result.advantage)[solvers], np.array(HIERARCHICAL)[solvers])
    within = credit.run(rows.traces, "dr_grpo", by="episode,role", population="agent", singleton="zero")
    close(rows.gather(within.advantage)[others], np.array(HIERARCHICAL)[others])
    assert (result.unit, result.estimand) == ("agent", "scale")
    with pytest.raises(credit.CreditError, match="population is 'trace'; expected 'agent' or 'row'"):
        credit.run(rows.traces, "rloo", by="task")
    with pytest.raises(credit.CreditError, match="'discounted_return' does not pay agents outcomes of their own"):
        credit.run(rows.traces, "discounted_return")


@pytest.mark.slow
def test_an_outcome_of_each_agent_in_a_moving_average() -> None:
    amounts = [1, 1, 1, 0, -0.1, 1, 1, 1, 1]
    _, _, rows = credit.from_columns(group=["q"] * 9, trace=range(9), agent=AGENT, evidence={"agent_reward": amounts})
    close(rows.gather(credit.run(rows.traces, "spiral_rae").advantage), RAE)


def test_two_outcomes_of_one_agent_and_of_agents_and_traces_are_refused() -> None:
    columns = {"group": [0] * 2, "trace": [0] * 2, "agent": ["x"] * 2, "reward": [1.0] * 2}
    with pytest.raises(credit.CreditError, match=r"column 'agent_reward'.*has different values"):
        credit.from_columns(**columns, evidence={"agent_reward": [1.0, 0.5]})
    _, _, rows = credit.from_columns(**columns, evidence={"agent_reward": [None, 0.5]})
    with pytest.raises(credit.CreditError, match="has outcomes of traces and of agents; expected"):
        credit.run(rows.traces, "rloo", population="agent")


@pytest.mark.slow
def test_each_role_of_a_batch_has_a_method_of_its_own() -> None:
    """rLLM's GRPO (ddof 0) for one role and a leave-one-out mean for the other."""
    columns: dict[str, Any] = {"group": ["q"] * 6, "trace": list("aabbcc"), "role": ["S", "V"] * 3}
    _, _, rows = credit.from_columns(**columns, reward=[1.0, 1, 0, 0, 1, 1])
    own = {"S": ("grpo", {"ddof": 0, "by": "task,role"}), "V": ("rloo", {"by": "task,role"})}
    result = run_by_role(rows, own)
    close(rows.gather(result.advantage), [0.707105, 0.5, -1.414211, -1, 0.707105, 0.5])
    assert (result.source, result.unit, result.estimand) == ("S: grpo, V: rloo", "role", "scale")
    with pytest.raises(
        credit.CreditError, match="methods has no method for the role 'V'; expected one for each of S, V"
    ):
        run_by_role(rows, {"S": "grpo"})


def test_a_sum_that_lacks_a_part_is_not_compared() -> None:
    """A missing outcome of the team counted as 0 beside outcomes of agents."""
    columns: dict[str, Any] = {"group": [0] * 6, "trace": [0, 0, 1, 1, 2, 2], "agent": ["x", "y"] * 3}
    own = {"agent_reward": [1.0, 0, 0, 1, 0.5, 0.5]}
    _, _, rows = credit.from_columns(**columns, reward=[1, 1, 0, 0, np.nan, np.nan], evidence=own)
    found = credit.run(rows, "rloo", by="task,agent", population="agent", evidence=["agent_reward"])
    assert rows.gather(found.valid).tolist() == [True] * 4 + [False] * 2
    assert rows.gather(found.advantage).tolist() == [2.0, 0.0, -2.0, 0.0, 0.0, 0.0]
    _, _, rows = credit.from_columns(**columns, reward=[1.0] * 6, evidence={"agent_reward": [1, 0, 0, 1, np.nan, 0]})
    found = credit.run(rows, "rloo", by="task,agent", population="agent", evidence=["agent_reward"])
    assert rows.gather(found.valid).tolist() == [True] * 4 + [False, True]


@pytest.mark.parametrize("others", [[np.nan, np.nan], [np.nan, 2.0], [3.0, np.nan], [3.0, 2.0]])
def test_an_agent_that_was_not_scored_has_no_outcome_whoever_else_was(others: list[float]) -> None:
    """It earned 0 where no agent of its name was scored in the group, and was refused where one was."""
    own = np.array([1.0, others[0], 4.0, others[1]])
    scored = ~np.isnan(own)
    rows: dict[str, Any] = {"group": ["q"] * 4, "trace": list("aabb"), "agent": list("xyxy"), "reward": [0.0] * 4}
    rows["evidence"] = {"agent_reward": own}
    found = RowAdvantages("rloo", population="agent")(**rows)
    expected = [own[i] - np.delete(own, i)[np.delete(scored, i)].mean() if scored[i] else 0.0 for i in range(4)]
    assert found.valid.tolist() == scored.tolist()
    np.testing.assert_allclose(found.advantages, expected, rtol=1e-6)
    before, earned = {"x": 0.0, "y": 0.0}, np.zeros(4)
    for i, name in enumerate("xyxy"):
        if scored[i]:
            earned[i] = own[i] - before[name]
            before[name] = 0.95 * before[name] + 0.05 * own[i]
    averages = RowAdvantages("spiral_rae", population="agent")
    got = averages(**rows)
    assert got.valid.tolist() == scored.tolist()
    np.testing.assert_allclose(got.advantages, earned, rtol=1e-6)
    assert averages.state is not None and averages.state["y"] == pytest.approx(before["y"])


def test_a_batch_of_rows_in_which_no_agent_was_scored_pays_none() -> None:
    """An outage paid all agents 0 and moved their averages."""
    averages = RowAdvantages("spiral_rae", initial=1.0)
    rows = {"group": ["q"] * 2, "trace": list("ab"), "agent": list("xy"), "reward": [0.0] * 2}
    with pytest.warns(UserWarning, match="answers no row of the batch: no outcome is known"):
        got = averages(**rows, evidence={"agent_reward": [np.nan] * 2})
    assert not got.valid.any() and averages.state == {"x": 1.0, "y": 1.0}


def test_arrays_that_hide_ids_are_refused() -> None:
    """A masked array was read under its mask, and large unsigned ids within a compiled function became absent."""
    graph, reward, _ = credit.from_columns(group=[0] * 4, trace=[0, 1, 2, 3], reward=[1.0, 0, 1, 0])
    with pytest.raises(credit.CreditError, match="masked array"):
        credit.rloo(graph, reward, by=np.ma.array(np.zeros(graph.num_events, int), mask=True))
    wide = jax.numpy.zeros(graph.num_events, jax.numpy.uint32)
    with pytest.raises(credit.CreditError, match="expected int32"):
        jax.jit(lambda ids: credit.rloo(graph, reward, by=ids).advantage)(wide)


def test_a_column_that_is_a_key_keeps_its_own_meaning(tmp_path: Path) -> None:
    """`--by task,type` turned every event into a message, and tool results into actions."""
    kinds = ["tool_call", "tool_result"] * 2
    lines = [f"{trace},q,{kind},{reward}" for trace, kind, reward in zip("aabb", kinds, "1100", strict=True)]
    (tmp_path / "log.csv").write_text("\n".join(["trace,group,type,reward", *lines]) + "\n")
    plain, keyed = (credit.read(tmp_path / "log.csv", columns=columns) for columns in (None, {"key": "type"}))
    np.testing.assert_array_equal(plain.graph.event_type, keyed.graph.event_type)
    np.testing.assert_array_equal(plain.graph.action_mask, keyed.graph.action_mask)
    assert keyed.evidence["key"].mask.sum() == 4


def test_whose_samples_enter_a_baseline_decides_what_is_said_of_its_bias() -> None:
    rloo = credit.METHODS["rloo"]
    assert rloo.unbiased_with({"population": "agent"})[0] is False
    assert rloo.unbiased_with({"by": "task,agent", "population": "agent", "singleton": "raw"})[0] is None
