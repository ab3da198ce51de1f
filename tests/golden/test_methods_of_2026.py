"""Methods of 2025 and 2026 against numbers that the authors' own functions gave, or that their code was read to give.

One task, three traces of 3, 2 and 4 actions, two agents in turn. `SOURCES` says where each number is from; those that
are "executed" came from the code at that commit, the others from a transliteration of it. Where the tests below these
have no case of a source, `ELSEWHERE` names the test that has it.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import credit
from credit.methods.published import find_method
from estimators.tokens.baselines import gdpo, otb
from estimators.tokens.event_tokens import pad_tokens

pytestmark = pytest.mark.optimised

close = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-5)


class Source(NamedTuple):
    """Repository, commit and licence of the code, its function, and whether it was executed."""

    repository: str
    commit: str
    licence: str
    function: str
    executed: bool


SOURCES = {
    "max_rl": Source("PrimeIntellect-ai/prime-rl", "559b447", "Apache-2.0", "algo/max_rl.py", True),
    "prime_rl_grpo": Source("PrimeIntellect-ai/prime-rl", "559b447", "Apache-2.0", "algo/grpo.py", True),
    "hierarchical_grpo": Source(
        "PrimeIntellect-ai/prime-rl", "559b447", "Apache-2.0", "algo/hierarchical_grpo.py", True
    ),
    "prime_rl_rae": Source("PrimeIntellect-ai/prime-rl", "559b447", "Apache-2.0", "algo/rae.py", True),
    "skyrl_maxrl": Source("NovaSky-AI/SkyRL", "a956457", "Apache-2.0", "compute_maxrl_advantage", True),
    "opo": Source("volcengine/verl", "1dda039", "Apache-2.0", "compute_opo_outcome_advantage", True),
    "gpg": Source("volcengine/verl", "1dda039", "Apache-2.0", "compute_gpg_outcome_advantage", True),
    "gdpo": Source("volcengine/verl", "1dda039", "Apache-2.0", "compute_gdpo_outcome_advantage", True),
    "gdpo, TRL": Source("huggingface/trl", "f2cd577", "Apache-2.0", "grpo_trainer.py, normalize_then_sum", True),
    "otb": Source("volcengine/verl", "1dda039", "Apache-2.0", "compute_optimal_token_baseline_advantage", True),
    "tir_otb": Source("volcengine/verl", "1dda039", "Apache-2.0", "compute_multi_turn_optimal_token_baseline", True),
    "rllm_grpo": Source("rllm-org/rllm", "9beb6e0", "Apache-2.0", "trainer/algorithms/rl_algo.py", True),
    "rllm_reinforce_pp": Source("rllm-org/rllm", "9beb6e0", "Apache-2.0", "trainer/algorithms/advantage.py", True),
    "igpo": Source("GuoqingWang1/IGPO", "bff163b", "Apache-2.0", "compute_grpo_discounted_advantage", True),
    "igrpo": Source("e3trange/IGRPO", "65707c6", "Apache-2.0", "igpo/core_igpo.py", True),
    "hgpo": Source("e3trange/IGRPO", "65707c6", "Apache-2.0", "hgpo_advantage_estimate", True),
    "g2po": Source("Nala-YN/G2PO", "b8ffaf5", "Apache-2.0", "g2po/core_g2po.py", True),
    "graph_gpo": Source("zzj1111/alfworldauto", "37aec78", "Apache-2.0", "recipe/GraphGPO/core_graph.py", True),
    "at_grpo": Source("pettingllms-ai/PettingLLMs", "a054fb1", "MIT", "multi_agents_ppo_trainer.py", True),
    "turn_loo": Source("hectopascal/agent-credit-bench", "02afaf3", "MIT", "estimators/turn_loo.py", True),
    "mhgpo": Source("volcengine/verl", "1dda039", "Apache-2.0", "compute_grpo_outcome_advantage", True),
    "verl_rloo": Source("volcengine/verl", "b178a3c", "Apache-2.0", "compute_rloo_outcome_advantage", True),
    "tree_grpo": Source("AMAP-ML/Tree-GRPO", "90b1709", "Apache-2.0", "verl/trainer/ppo/core_algos.py", True),
    "hcapo": Source("an independent re-implementation", "", "", "arXiv:2603.08754", False),
    "hae": Source("JonP07/HiPER-agent", "9d3c118", "Apache-2.0", "compute_hae_advantage", True),
    "adca_grpo": Source("modelscope/AgentEvolver", "a5a8db8", "Apache-2.0", "adv_processor/adca_grpo.py", True),
    "marti": Source("TsinghuaC3I/MARTI", "a2fe2c7", "MIT", "verifiers/auto_reward_alloc.py", True),
    "unitymas_o": Source("chenyiqun/UnityMAS-O", "7f1616a", "Apache-2.0", "reward_allocators/code_turn_level.py", True),
    "sepo": Source("bhai114/ccpo", "ea50d3a", "Apache-2.0", "SEPO/, _compute_peer_role_rewards", True),
    "ccpo": Source("bhai114/ccpo", "ea50d3a", "Apache-2.0", "_compute_counterfactual_role_rewards", True),
    "vineppo": Source("AIFrameResearch/SPO", "b9fc6a2", "MIT", "vineppo_episode_generator.py", False),
    "spo_tree": Source("AIFrameResearch/SPO", "b9fc6a2", "MIT", "tree_episode_generator.py", False),
}
"""The authors of GraphGPO publish it as a recipe of verl-agent (Apache-2.0); the copy that was executed is named."""

ELSEWHERE = {
    "hierarchical_grpo": "test_agent_outcomes.py",
    "prime_rl_rae": "test_agent_outcomes.py",
    "gdpo": "test_gdpo_is_that_of_two_trainers",
    "gdpo, TRL": "test_gdpo_is_that_of_two_trainers",
    "otb": "test_otb_is_verls",
    "tir_otb": "test_otb_is_verls",
}

GAINS = [0.2, 0.1, 0, -0.1, 0, 0.3, 0, 0.2, 0]
"""Of each action; the last one's reward is the outcome."""

TASK: dict[str, Any] = {
    "group": ["q"] * 9,
    "trace": list("aaabbcccc"),
    "agent": list("SVSSVSVSV"),
    "reward": [1.0, 1, 1, 0, 0, 1, 1, 1, 1],
}
ANCHORS = {"anchor": ["s0", "s1", "s2", "s0", "s1", "s0", "s1", "s1", "s2"]}
TRACES: dict[str, Any] = {"group": ["q"] * 3, "trace": list("abc"), "reward": [1.0, 0, 1]}
VALID = np.full(128, np.nan, np.float32)
VALID[:9] = [1, 1, 1, 1, 0, 1, 1, 1, 1]  # the failed trace's last action was not understood
PENALISED = TASK | {"event_reward": [0, 0, 0, 0, -0.1, 0, 0, 0, 0]}
MARKS = TASK | {"event_reward": [1, 1, 1, -1, -1, 1, -1, 1, 1]}
ROUNDS: dict[str, Any] = {
    "group": ["q"] * 6,
    "trace": ["a"] * 6,
    "agent": list("xyxyxy"),
    "row_reward": [0.0, 1, 1, 1, 1, 0],
    "evidence": {"stage": [0, 0, 1, 1, 2, 2]},
}
ROUNDS_LEFT_OUT: dict[str, Any] = {  # in the first trace y sits a round out
    "group": ["q"] * 9,
    "trace": list("aaaaabbbb"),
    "agent": list("xyxxyxyxy"),
    "row_reward": [1.0, 1, 0, 1, 0.5, 0, 0, 1, 0],
    "evidence": {"stage": [0, 0, 1, 2, 2, 0, 0, 1, 1]},
}
SOLO: dict[str, Any] = {
    "group": ["q"] * 6,
    "trace": list("aabbcc"),
    "agent": ["thinker", "solver"] * 3,
    "reward": [1.0, 1, -1, -1, 1, 1],
    "evidence": {"solo_reward": [-1.0, None, -1.0, None, 1.0, None]},
}
RATED: dict[str, Any] = {
    "group": ["q"] * 6,
    "trace": list("aabbcc"),
    "agent": ["thinker", "solver"] * 3,
    "reward": [1.0, 1, -1, -1, 1, 1],
    "evidence": {"self_rating": [0.7, 0.5, 0.5, 0.3, 0.3, 0.5]},
}
CODE: dict[str, Any] = {  # pass rates of 0.5, 0, 1 and 0.25
    "group": ["q"] * 12,
    "trace": ["a"] * 12,
    "agent": ["planner", "coder", "reflection"] * 4,
    "row_reward": [0, 0.5, 0, 0, 0, 0, 0, 1, 0, 0, 0.25, 0],
    "evidence": {"stage": [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]},
}
SEARCH: dict[str, Any] = {  # F1 of 0.25, 0.75 and 0.5
    "group": ["q"] * 9,
    "trace": ["a"] * 9,
    "agent": ["answer"] + ["search", "summary", "update", "answer"] * 2,
    "row_reward": [0.25, 0, 0, 0, 0.75, 0, 0, 0, 0.5],
    "evidence": {"stage": [0] + [1] * 4 + [2] * 4},
}
LEAVES: dict[str, Any] = {"group": ["q"] * 4, "trace": list("abcd"), "reward": [1.0, 0, 1, 1]}
TREE = np.full(128, -1, np.int32)
TREE[:4] = [0, 0, 1, 1]
SEGMENTS: dict[str, Any] = {
    "group": ["q"] * 4,
    "trace": ["c"] * 4,
    "reward": [1.0] * 4,
    "evidence": {
        "value": [0.4, 0.5, 0.6, 0.8],
        "value_high": [0.45, 0.5, 0.7, 0.75],
        "segment": ["x", "x", "y", "y"],
    },
}
TWO_TASKS: dict[str, Any] = {"group": list("qqqrrr"), "trace": list("abcdef"), "reward": [1.0, 0, 1, 0, 0, 0.5]}

CASES: list[tuple[str, dict[str, Any], dict[str, Any], list[float]]] = [
    ("max_rl", TRACES, {}, [0.5, -1, 0.5]),
    ("opo", TRACES | {"evidence": {"tokens": [2, 3, 1]}}, {}, [0.5, -0.5, 0.5]),
    ("gpg", TRACES, {}, [0.5, -1, 0.5]),
    ("rllm_grpo", TRACES, {}, [0.707105, -1.414211, 0.707105]),
    ("rllm_reinforce_pp", TWO_TASKS, {}, [0.894425, -1.78885, 0.894425, -0.447212, -0.447212, 0.894425]),
    (
        "rllm_reinforce_pp",
        TWO_TASKS,
        {"baseline": "batch"},
        [1.299864, -0.928475, 1.299864, -0.928475, -0.928475, 0.185695],
    ),
    (
        "igpo",
        TASK | {"event_reward": GAINS},
        {"discount": 0.5},
        [0.613784, 0.9084, 2.086865, -1.153914, -0.859298, 0.54013, 0.17186, 1.203017, 2.086865],
    ),
    (
        "igrpo",
        TASK | {"event_reward": GAINS},
        {},
        [0.979627, 0.435255, 0.577349, -2.568914, -1.154699, 1.498479, 0.266297, 1.114616, 0.577349],
    ),
    (
        "hgpo",
        PENALISED | {"evidence": ANCHORS},
        {"discount": 0.95},
        [0.755591, 0.698208, 0, -1.413075, -1.540015, 0.657484, 0.596955, 0.612132, 0],
    ),
    (
        "hgpo",
        PENALISED | {"evidence": ANCHORS},
        {"discount": 0.95, "scale": "none"},
        [0.347541, 0.32925, 0, -0.649958, -0.72075, 0.302417, 0.28175, 0.274375, 0],
    ),
    (
        "g2po",
        TASK | {"evidence": ANCHORS, "reward": [10.0, 10, 10, 0, 0, 10, 10, 10, 10]},
        {"success": 10.0, "is_valid": VALID},
        [2.940646, 7.812724, 2.357646, -7.059354, -21.287276, 2.940646, 2.124599, 7.812724, 2.357646],
    ),
    (
        "g2po",
        TASK | {"evidence": ANCHORS, "reward": [10.0, 10, 10, 0, 0, 10, 10, 10, 10]},
        {"success": 10.0, "is_valid": VALID, "scale": "std"},
        [0.759351, 2.07232, 0.552095, -1.508435, -5.692389, 0.759351, 0.433289, 2.07232, 0.552095],
    ),
    (
        "graph_gpo",
        TASK | {"evidence": ANCHORS},
        {},
        [0.503951, 1.367631, 0.503951, -1.76383, -2.717562, 0.503951, -0.269676, 1.367631, 0.503951],
    ),
    (
        "adca_grpo",
        MARKS,
        {"weight": 1.0},
        [3.242569, 2.397415, 1.552261, -3.780645, -2.597429, 2.059353, 1.214199, 2.397415, 1.552261],
    ),
    (
        "adca_grpo",
        MARKS,
        {"outcome_at": "all", "root_length": True},
        [1.37113, 0.914087, 0.457043, -2.167332, -1.083666, 1.481826, 1.086015, 0.791622, 0.395811],
    ),
    (
        "adca_grpo",
        MARKS,
        {"weight": 1.0, "variant": "allocation"},
        [3.119903, 2.315637, 1.511372, -4.192584, -2.803399, 3.046788, 2.297359, 2.205965, 1.456536],
    ),
    (
        "at_grpo",
        PENALISED | {"turn": [0, 1, 2, 0, 1, 0, 1, 2, 3]},
        {},
        [0.577349, 0.577349, 0, -1.154699, -1.154699, 0.577349, 0.577349, 0, 0.999999],
    ),
    (
        "at_grpo",
        ROUNDS_LEFT_OUT,
        {"evidence": ["stage"]},
        [0.707106, 0.707106, -0.707106, 0.999999, 0.5, -0.707106, -0.707106, 0.707106, 0],
    ),
    ("turn_loo", TASK, {}, [0.5, 0.5, 0, -1, -1, 0.5, 0.5, 0, 1]),
    ("mhgpo", PENALISED, {}, [0.503219] * 3 + [-1.653432, -1.869097] + [0.503219] * 4),
    ("verl_rloo", PENALISED, {}, [0.2625] * 3 + [-0.8625, -0.975] + [0.2625] * 4),
    ("tree_grpo", LEAVES, {"tree": TREE}, [1.207105, -2.207103, 0.499999, 0.499999]),
    ("tree_grpo", LEAVES, {"tree": TREE, "mode": "tree_2norm"}, [0.707106, -0.707106, 0, 0]),
    (
        "hcapo",
        TASK | {"evidence": {"hindsight_log_prob": [-0.4, -0.6, -0.2, -0.9, -0.7, -0.5, -0.8, -0.3, -0.3]}},
        {},
        [0.998616, 1.086943, 1.17527, -3.71944, -3.71944, 0.849244, 0.932711, 1.137425, 1.258672],
    ),
    ("hae", SEGMENTS, {"lambda_": 0.9, "level": "low"}, [0.216075, 0.165, 0.331, 0.2]),
    ("hae", SEGMENTS, {"lambda_high": 0.8, "level": "high"}, [0.36225, 0, 0.25, 0]),
    ("marti", ROUNDS, {}, [0, 1, 1.25, 1.25, 1.375, -0.125]),
    ("marti", ROUNDS, {"mode": "margin"}, [0, 1, 1.25, 1.25, 1.125, -0.375]),
    ("marti", ROUNDS, {"mode": "margin", "history": "own", "outcome_weight": 0.5}, [0.5, 1, 2, 1, 1.75, -0.5]),
    ("unitymas_o", CODE, {"ahead": "reflection"}, [0.5, 0.5, -0.5, -0.5, -0.5, 1, 1, 1, -0.75, -0.75, -0.75, 0]),
    ("unitymas_o", SEARCH, {"absolute": "answer"}, [0.25, 0.5, 0.5, 0.5, 0.75, -0.25, -0.25, -0.25, 0.5]),
    ("sepo", RATED, {}, [0.688674, 0.644659, -1.337091, -1.329576, 0.648416, 0.684917]),
    (
        "ccpo",
        SOLO,
        {"bonus": "difference"},
        [0.733333, 0.666667, -1.466667, -1.333333, 0.733333, 0.666667],
    ),
]


@pytest.mark.parametrize(
    ("name", "columns", "options", "expected"),
    [
        pytest.param(
            *case,
            id=f"{case[0]} {i}",
            marks=[pytest.mark.study] if case[0] in {c[0] for c in CASES[:i]} else [],
        )
        for i, case in enumerate(CASES)
    ],
)
@pytest.mark.filterwarnings("ignore::graphs.errors.MissingColumnWarning")  # of a batch of one agent
def test_numbers_are_those_of_the_code(
    name: str, columns: dict[str, Any], options: dict[str, Any], expected: list[float]
) -> None:
    """Further settings of a method compile it anew: they are studies."""
    _, _, rows = credit.from_columns(**columns)
    result = credit.run(rows.traces, name, **options)
    found = np.asarray(rows.gather(result.advantage))
    assert np.asarray(rows.gather(result.valid)).all()
    close(found, expected)


def test_every_source_has_a_number_and_says_what_was_executed() -> None:
    assert {name for name, *_ in CASES} | set(WORKED) | set(ELSEWHERE) == set(SOURCES)
    tests = Path(__file__).read_text()
    assert all((Path(__file__).parent / test).exists() or f"def {test}(" in tests for test in ELSEWHERE.values())
    executed = [source for source in SOURCES.values() if source.executed]
    assert len(executed) >= 20
    for source in executed:
        assert len(source.commit) == 7 and source.licence in ("Apache-2.0", "MIT") and source.repository.count("/") == 1


TOKENS = {
    "pi": np.array([[0.5, 0.8, 0.7], [0.4, 0.9, 0.7], [0.6, 0.5, 0.5]]),
    "squares": np.array([[0.4, 0.7, 0.55], [0.3, 0.85, 0.6], [0.5, 0.3, 0.3]]),
    "group": np.zeros(3, np.int32),
}


@pytest.mark.parametrize(
    ("packed", "mask", "reward", "expected"),
    [
        (False, [[1, 1, 0], [1, 1, 1], [1, 0, 0]], [0, 1, 0], [0.541667, 0.52381, 0, -0.458333, -0.47619, 0, 0.041667]),
        (True, [[1, 0, 1], [1, 1, 1], [1, 0, 0]], [0, 0, 1], [0.541667, 0, 0.5, -0.458333, -0.5, 0, 0.041667]),
    ],
)
def test_otb_is_verls(packed: bool, mask: list, reward: list, expected: list) -> None:
    """At verl 1dda039 (Apache-2.0), executed: `compute_optimal_token_baseline_advantage` and its form for tools."""
    rewards = np.array([reward, [0, 0, 0], [0.5, 0, 0]], np.float64)
    given = (rewards, TOKENS["pi"], TOKENS["squares"], np.array(mask) > 0, TOKENS["group"])
    close(np.asarray(otb(*given, packed=packed)).ravel()[:7], expected)
    alone = otb(*(x[:1] for x in given), packed=packed)  # a group of one: its reward to go
    close(alone, [[1, 1, 0] if not packed else [1, 0, 1]])


@pytest.mark.parametrize("form", ["native", "table"])
def test_otb_is_verls_from_a_log_that_states_sums_of_squares(form: str, tmp_path: Path) -> None:
    """No log had Σ π²: a trainer's arrays had to be passed beside it."""
    lines = []
    for t, (mask, reward) in enumerate((([1, 1, 0], 1.0), ([1, 1, 1], 0.0), ([1, 0, 0], 0.5))):
        tokens = {
            "token_ids": [4, 5, 6],
            "token_mask": [x > 0 for x in mask],
            "token_log_probs": np.log(TOKENS["pi"][t]).tolist(),
        }
        sums = TOKENS["squares"][t].tolist()
        if form == "table":
            lines.append({"trace": t, "group": "q", "reward": reward, "sum_pi_squared": sums, **tokens})
        else:
            event = {"id": "e", "type": "message", "agent": "a", "token_sums_of_squares": sums, **tokens}
            lines.append({"trace_id": str(t), "task_id": "q", "events": [event], "rewards": {"team": reward}})
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    traces = credit.read(tmp_path / "log.jsonl")
    assert traces.tokens is not None
    rows = pad_tokens(traces.tokens)
    last = rows.mask & (np.cumsum(rows.mask[:, ::-1], axis=1)[:, ::-1] == 1)
    trace = np.asarray(traces.graph.trace_ids)[rows.events]
    rewards = np.where(last, np.asarray(traces.reward)[trace], 0.0)
    found = otb(rewards, np.exp(rows.log_probs), rows.sums_of_squares, rows.mask, np.zeros(3, np.int32))
    close(found.ravel()[:7], [0.541667, 0.52381, 0, -0.458333, -0.47619, 0, 0.041667])
    # A sum over the vocabulary below one of its terms gave a weight below 0.
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)).replace("0.85", "0.75"))
    problem, note = credit.read(tmp_path / "log.jsonl").problems
    assert note.kind == "unread-outcome"
    assert (problem.kind, problem.line, problem.value) == ("bad-tokens", 2, "'0.75 for token 1'")
    assert problem.field.endswith("token_sums_of_squares") and "log-probability is -0.105361" in problem.expected


@pytest.mark.parametrize(
    ("variant", "expected"),
    [("verl", [1.054343, -0.899672, 0.59033]), ("trl", [0.789238, -1.12431, 0.335072])],
)
def test_gdpo_is_that_of_two_trainers(variant: Any, expected: list[float]) -> None:
    """verl 1dda039, TRL f2cd577 (both Apache-2.0): they differ in eps, and in what they whiten over."""
    mask = np.arange(3)[None] < np.array([2, 3, 1])[:, None]
    rewards = np.array([[1, 0, 1], [0.2, 0.5, 0.1]])
    found = gdpo(rewards, TOKENS["group"], np.array([1, 0.5]), mask, variant=variant)
    close(found[:, 0], expected)
    equal = gdpo(np.full((2, 3), 0.1), TOKENS["group"], np.ones(2), mask, variant=variant)
    assert not np.asarray(equal).any()


WORKED: dict[str, tuple[dict[str, Any], dict[str, Any], list[float]]] = {
    "vineppo": (
        {"trace": ["a"] * 3, "reward": [1.0] * 3, "evidence": {"value": [0.3, 0.5, 0.4]}}, {}, [0.2, -0.1, 0.6]
    ),
    "spo_tree": (  # scores: the root .75, its children .5 and 1, their leaves 1, 0 and 1, 1
        {"trace": list("aabbccdd"), "reward": [1.0, 1, 0, 0, 1, 1, 1, 1], "evidence": {
            "context": ["root", "left", "root", "left", "root", "right", "root", "right"],
            "node": ["left", "1", "left", "2", "right", "3", "right", "4"]}},
        {}, [-0.25, 0.5, -0.25, -0.5, 0.25, 0, 0.25, 0],
    ),
    "skyrl_maxrl": ({"trace": list("abc"), "reward": [1.0, 0, 1]}, {}, [0.5, -1, 0.5]),
    "prime_rl_grpo": (
        {"trace": list("abc"), "reward": [1.0, 0, 1], "tokens": [2, 3, 1]}, {"output_weight": 0.3},
        [1 / 3, -11 / 15, 0.4],
    ),
}  # fmt: skip
"""Columns, options and numbers: those of prime-rl and SkyRL executed, the two of SPO worked by hand from its code."""


@pytest.mark.parametrize("name", WORKED)
def test_published_names_give_the_worked_numbers(name: str) -> None:
    columns, options, expected = WORKED[name]
    graph, reward, rows = credit.from_columns(group=[0] * len(columns["trace"]), **columns)
    close(rows.gather(find_method(name).fn(graph, reward, **rows.evidence, **options).advantage), expected)
