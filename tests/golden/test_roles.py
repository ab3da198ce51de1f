"""Methods for main agents, sub-agents and joint turns against the numbers that the authors' own code gave."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import credit
from estimators.baselines import released
from estimators.baselines.roles import matpo_reward, wideseek_r1_weights
from estimators.tokens import rows as tokens

pytestmark = pytest.mark.optimised

Batch = Callable[..., tuple]
Oracle = Callable[[str], dict]


def close(found: object, expected: object, atol: float = 2e-6) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def spawned_by_first(graph: credit.EventGraph) -> credit.EventGraph:
    """The same, the first instance of every trace being the parent of the others."""
    trace = np.asarray(graph.agent_trace)
    first = np.array([np.flatnonzero(trace == t)[0] if (trace == t).any() else 0 for t in range(graph.num_traces)])
    parent = np.where(graph.agent_mask, first[trace], 0).astype(np.int32)
    return dataclasses.replace(graph, agent_parent=parent)


# --- M-GRPO -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mgrpo", "mrlx"])
def test_main_agents_of_m_grpo_get_slime_grpo(batch: Batch, oracle: Oracle, method: str) -> None:
    case = oracle("slime_grpo_used_by_MrlX")
    graph, reward, _, _, row = batch(
        group=[0] * 4 + [1] * 4, trace=list(range(8)), agent=["main"] * 8, reward=case["inputs"]["rewards"]
    )
    evidence = {"block": np.full(graph.num_events, -1, np.int32)} if method == "mrlx" else {}
    close(credit.METHODS[method](graph, reward, **evidence).advantage[row], case["outputs"]["2 groups of 4"])


def test_sub_agents_of_mrlx_are_compared_within_their_block(batch: Batch, oracle: Oracle) -> None:
    case = oracle("slime_grpo_used_by_MrlX")
    rewards = case["inputs"]["rewards"]  # in order of arrival: two blocks of four, from eight traces of four tasks
    graph, reward, _, evidence, row = batch(
        group=[i // 4 for i in range(16)],
        trace=[i // 2 for i in range(16)],
        agent=["main", "sub"] * 8,
        reward=[rewards[i // 2] for i in range(16)],
        evidence={"block": [None if i % 2 == 0 else f"block {i // 8}" for i in range(16)]},
    )
    found = np.asarray(released.mrlx(spawned_by_first(graph), reward, **evidence).advantage)[row]
    close(found[1::2], case["outputs"]["2 groups of 4"])


def test_mrlx_sub_reward(oracle: Oracle) -> None:
    for name, expected in oracle("mrlx_sub_reward")["outputs"].items():
        form, main = (float(part.partition("=")[2]) for part in name.split(","))
        close(released.mrlx_sub_reward(form, main), expected)


# --- MATPO ------------------------------------------------------------------------------------------------------------


def test_matpo_reward(batch: Batch, oracle: Oracle) -> None:
    case = oracle("matpo_reward")
    given = case["inputs"]
    # the rows of the oracle: a planner with two workers, then two planners without; accuracy is given per planner
    trace = [0, 0, 0, 1, 2]
    graph, reward, _, evidence, row = batch(
        group=[0] * 5,
        trace=trace,
        agent=["planner", "w1", "w2", "planner", "planner"],
        reward=[given["accuracy_main"][0]] * 3 + given["accuracy_main"][3:],
        evidence={"format_score": given["format_score"]},
    )
    options = {"accuracy_weight": given["w_acc"], "format_weight": given["w_fmt"]}
    found = matpo_reward(spawned_by_first(graph), reward, **evidence, **options)
    close(np.asarray(found)[np.asarray(graph.trace_ids)[row]], case["outputs"]["row_reward"])


def matpo_rows(batch: Batch, given: dict) -> tuple:
    """Planners m0, m1, m2, and after each its workers; the row of every planner and worker in that order."""
    workers = [[i for i, parent in enumerate(given["worker_parent"]) if parent == f"m{m}"] for m in range(3)]
    trace = [m for m in range(3) for _ in range(1 + len(workers[m]))]
    agent = [name for m in range(3) for name in ("planner", *(f"worker {i}" for i in workers[m]))]
    masks = [
        mask
        for m in range(3)
        for mask in (given["main_loss_mask"][m], *(given["worker_loss_mask"][i] for i in workers[m]))
    ]
    graph, reward, _, _, row = batch(
        group=[0] * len(trace), trace=trace, agent=agent, reward=[given["main_rewards"][m] for m in trace]
    )
    planners = [trace.index(m) for m in range(3)]
    worker_rows = [agent.index(f"worker {i}") for i in range(len(given["worker_parent"]))]
    planner_row = np.array([planners[m] for m in trace])
    return spawned_by_first(graph), reward, row, np.array(masks) > 0, planners, worker_rows, planner_row


def test_matpo_broadcast(batch: Batch, oracle: Oracle) -> None:
    case = oracle("matpo_broadcast")
    graph, reward, row, mask, planners, workers, planner_row = matpo_rows(batch, case["inputs"])
    advantage = np.asarray(credit.matpo(graph, reward).advantage)[row]
    intended = np.asarray(tokens.spread(advantage, mask))
    close(intended[planners], case["outputs"]["main_adv"])
    for worker, parent in zip(workers, case["inputs"]["worker_parent"], strict=True):
        expected = max(case["outputs"]["main_adv"][int(parent[1:])], key=abs) * mask[worker]
        close(intended[worker], expected)
    as_released = np.asarray(released.matpo_worker_tokens(advantage, planner_row, mask))
    close(as_released[workers], case["outputs"]["worker_effective_adv(=adv*worker_mask)"])
    written = np.asarray(released.matpo_worker_tokens(advantage, planner_row, mask[planner_row]))
    close(written[workers], case["outputs"]["worker_adv_tensor_as_written"])


# --- WideSeek-R1 ------------------------------------------------------------------------------------------------------


def wideseek_rows(batch: Batch, given: dict) -> tuple:
    trajectory = given["idx_to_traj"]
    return batch(
        group=[t // given["group_size"] for t in trajectory],
        trace=trajectory,
        agent=[f"sub {s}" for s in given["idx_to_sub_traj"]],
        row_reward=[turn[0] for turn in given["turn_rewards"]],
        evidence={"tokens": [int(sum(mask)) for mask in given["response_mask"]]},
    )


@pytest.mark.parametrize(("output", "population"), [("trajectory", "trace"), ("turn", "row")])
@pytest.mark.sampled
def test_wideseek_r1(batch: Batch, oracle: Oracle, output: str, population: str) -> None:
    case = oracle("rlinf_wideseek")
    graph, reward, event_reward, _, row = wideseek_rows(batch, case["inputs"])
    result = credit.wideseek_r1(graph, reward, event_reward=event_reward, population=population)
    close(result.advantage[row], case["outputs"][output])


def test_wideseek_r1_weights(batch: Batch, oracle: Oracle) -> None:
    case = oracle("rlinf_wideseek")
    graph, _, _, evidence, row = wideseek_rows(batch, case["inputs"])
    close(wideseek_r1_weights(graph)[row], case["outputs"]["agent_scale"])
    weights = np.asarray(wideseek_r1_weights(graph, **evidence))
    close(weights[row], case["outputs"]["turn_scale"])
    close(np.bincount(np.asarray(graph.trace_ids)[row], weights[row]), 1.0)
    rows = len(case["inputs"]["idx_to_traj"])
    close(rows / case["inputs"]["global_batch"], case["outputs"]["group_scale_adv"][0])


# --- MAGRPO -----------------------------------------------------------------------------------------------------------

C3_FORMS = [("group_mean", "mean", "zero"), ("rloo", "leave_one_out", "raw")]
MODES = {"mean": "mean", "raw": "none", "max": "max", "rloo": "leave_one_out"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.sampled
def test_comlrl_magrpo(batch: Batch, oracle: Oracle, mode: str) -> None:
    case = oracle("comlrl_magrpo")
    returns = case["inputs"]["returns"]
    trace = [j for j in range(4) for _ in range(2)]  # four joint turns of two agents
    graph, reward, _, evidence, row = batch(
        group=[0] * 8,
        trace=trace,
        agent=["a", "b"] * 4,
        reward=[returns[j] for j in trace],
        evidence={"context": ["root"] * 8, "node": trace},
    )
    found = np.asarray(credit.magrpo(graph, reward, **evidence, baseline=MODES[mode]).advantage)[row]
    close(found[::2], case["outputs"][mode])
    close(found[1::2], case["outputs"][mode])


@pytest.mark.slow
def test_comlrl_magrpo_returns(batch: Batch, oracle: Oracle) -> None:
    case = oracle("comlrl_magrpo")
    tree = case["outputs"]["tree_returns_gamma0.9"]
    rows: dict[str, list] = {name: [] for name in ("trace", "agent", "context", "node", "row_reward")}
    expected: list[float] = []
    for j, child in enumerate(tree["children"]):
        for k in range(2):
            for context, node, earned, value in (
                ("root", f"{j}", tree["rewards"][j], tree["returns"][j]),
                (f"of {j}", f"{j}{k}", child["rewards"][k], child["returns"][k]),
            ):
                for agent in ("a", "b"):  # the joint turn's reward arrives once, at its last agent
                    for name, entry in zip(
                        rows, (f"{j}{k}", agent, context, node, earned if agent == "b" else 0.0), strict=True
                    ):
                        rows[name].append(entry)
                    expected.append(value)
    evidence = {name: rows.pop(name) for name in ("context", "node")}
    graph, reward, event_reward, evidence, row = batch(group=[0] * len(expected), **rows, evidence=evidence)
    result = credit.magrpo(graph, reward, event_reward=event_reward, **evidence, discount=0.9)
    close(result.credit[row], expected)


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(
    ("output", "baseline", "singleton"), [("group_mean", "mean", "zero"), ("rloo", "leave_one_out", "raw")]
)
@pytest.mark.sampled
def test_c3_magrpo(batch: Batch, oracle: Oracle, output: str, baseline: str, singleton: str, normalise: bool) -> None:
    case = oracle("c3_magrpo")
    given, mask = case["inputs"], np.array(case["inputs"]["action_mask"]) > 0
    graph, reward, _, _, row = batch(
        group=given["group_ids"], trace=list(range(5)), agent=["a"] * 5, reward=given["rewards"]
    )
    options = {"baseline": baseline, "singleton": singleton, "normalise": normalise}
    found = np.asarray(tokens.spread(credit.c3_magrpo(graph, reward, **options).advantage[row], mask))
    expected = np.array(case["outputs"][f"{output}|normalize={normalise}"]["adv"])
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=2e-6)  # the raw ones are 5,000 and 20,000


@pytest.mark.slow
def test_c3_magrpo_over_tokens_and_without_groups(batch: Batch, oracle: Oracle) -> None:
    case = oracle("c3_magrpo")
    given, mask = case["inputs"], np.array(case["inputs"]["action_mask"]) > 0
    graph, reward, _, _, row = batch(
        group=given["group_ids"], trace=list(range(5)), agent=["a"] * 5, reward=given["rewards"]
    )
    spread = tokens.spread(credit.c3_magrpo(graph, reward).advantage[row], mask)
    whitened = tokens.masked_whiten(spread, mask, ddof=0)
    close(whitened, case["outputs"]["group_mean|normalize=True|token_normalize=True"]["adv"])
    no_group = credit.c3_magrpo(graph, reward, over="batch").advantage[row]
    close(tokens.spread(no_group, mask), case["outputs"]["no_group"]["adv"])


@pytest.mark.slow
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(
    ("output", "baseline", "singleton"), [("group_mean", "mean", "zero"), ("rloo", "leave_one_out", "raw")]
)
def test_c3_magrpo_joint_action(
    batch: Batch, oracle: Oracle, output: str, baseline: str, singleton: str, normalise: bool
) -> None:
    case = oracle("c3_magrpo_joint_action")
    given = case["inputs"]
    graph, reward, _, _, row = batch(
        group=given["qids"], trace=given["trajs"], agent=given["leaf"], reward=given["row_rewards"]
    )
    result = credit.c3_magrpo(graph, reward, baseline=baseline, singleton=singleton, normalise=normalise)
    expected = case["outputs"][f"{output}|{normalise}"]
    np.testing.assert_allclose(result.advantage[row], expected["adv"], rtol=2e-7, atol=2e-6)
    if normalise:
        close(result.scale[row], expected["std"])


# --- FoldGRPO ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["fork", "paper"])
@pytest.mark.parametrize("marked", [True, False])
def test_foldgrpo(batch: Batch, oracle: Oracle, form: str, marked: bool) -> None:
    case = oracle("foldgrpo_fork")
    given = case["inputs"]
    mask = np.array(given["mask"]) > 0
    marks = np.array(given["process_reward_mask"]) * marked
    at = np.argwhere(mask)  # each trained token is an action here, since marks are per token
    n = len(at)
    graph, reward, event_reward, _, row = batch(
        group=[0] * n,
        trace=[given["gen_uid"][i] for i, _ in at],
        agent=["main"] * n,
        reward=[given["row_reward"][i] for i, _ in at],
    )
    event_reward = np.zeros(graph.num_events, np.float32)
    event_reward[row] = [marks[i, t] for i, t in at]
    method = released.foldgrpo_fork if form == "fork" else credit.foldgrpo
    found = np.asarray(method(graph, reward, event_reward=event_reward).advantage)[row]
    outputs = case["outputs"]
    if form == "fork" or not marked:
        close(found, np.array(outputs["adv_with_process" if marked else "adv_no_process"])[mask])
    else:  # the example leaves out that the second row of r0 ends early, and marks nothing there
        close(found, np.array(outputs["paper_formula_clip(R+Q,0,1)_example_NOT_from_code"])[mask])


def test_foldgrpo_fork_where_all_outcomes_are_equal(batch: Batch, oracle: Oracle) -> None:
    expected = oracle("foldgrpo_fork")["outputs"]["zero_variance_group_with_process"]
    graph, reward, _, _, row = batch(group=[0] * 8, trace=[0] * 4 + [1] * 4, agent=["a"] * 8, reward=[1.0] * 8)
    event_reward = np.zeros(graph.num_events, np.float32)
    event_reward[row] = [0, 1, -1, 0, 0, 0, 0, 0]
    found = released.foldgrpo_fork(graph, reward, event_reward=event_reward).advantage
    close(found[row], np.ravel(expected))
