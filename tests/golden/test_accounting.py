"""Every oracle case is checked somewhere, and this table says where; one that is not fails here."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path

import pytest

import credit

pytestmark = pytest.mark.optimised

TESTS = Path(__file__).resolve().parent.parent
CASES = [case["name"] for case in json.loads((TESTS / "golden" / "oracles.json").read_text())["cases"]]

CHECKED: dict[str, tuple[str, ...]] = {
    "drmas_grpo": ("golden/test_goldens.py::test_drmas_grpo",),
    "drmas_grpo_full_tensor": ("golden/test_goldens.py::test_drmas_grpo_full_tensor",),
    "drmas_rloo": ("golden/test_goldens.py::test_drmas_rloo",),
    "drmas_rfpp_baseline": ("golden/test_goldens.py::test_drmas_rfpp_baseline",),
    "drmas_rfpp": ("golden/test_goldens.py::test_drmas_rfpp",),
    "drmas_passk": ("golden/test_goldens.py::test_drmas_passk",),
    "verl_gae": ("golden/test_values.py::test_verl_gae",),
    "verl_remax": (
        "golden/test_goldens.py::test_verl_remax_tokens",
        "golden/test_goldens.py::test_verl_remax_events",
    ),
    "drmas_gigpo": ("golden/test_anchors.py::test_gigpo", "golden/test_anchors.py::test_step_returns"),
    "verl_agg_loss": ("golden/test_losses.py::test_verl_agg_loss",),
    "c3_provider": ("estimators/counterfactual/test_counterfactual.py::test_c3_provider",),
    "c3_baselines": ("golden/test_counterfactual.py::test_c3_baselines",),
    "c3_magrpo": (
        "golden/test_roles.py::test_c3_magrpo",
        "golden/test_roles.py::test_c3_magrpo_over_tokens_and_without_groups",
    ),
    "c3_mappo_step_gae": ("estimators/sequence/test_multistep.py::test_c3_mappo_step_gae",),
    "c3_magrpo_joint_action": ("golden/test_roles.py::test_c3_magrpo_joint_action",),
    "c3_analysis_metrics": ("golden/test_counterfactual.py::test_c3_analysis_metrics",),
    "marshal_turn_level": ("golden/test_players.py::test_marshal_tokens",),
    "marshal_normalize_unique": ("golden/test_players.py::test_marshal_normalize_unique",),
    "marshal_score_normalize": (
        "golden/test_players.py::test_marshal_score_normalize",
        "golden/test_players.py::test_marshal_score_normalize_in_its_other_settings",
        "golden/test_players.py::test_marshal_score_normalize_under_a_mask",
    ),
    "marshal_masks": ("golden/test_players.py::test_marshal_masks",),
    "matpo_broadcast": ("golden/test_roles.py::test_matpo_broadcast",),
    "matpo_agg_loss_num_valid": ("golden/test_losses.py::test_matpo_agg_loss_num_valid",),
    "matpo_reward": ("golden/test_roles.py::test_matpo_reward",),
    "slime_grpo_used_by_MrlX": (
        "golden/test_goldens.py::test_slime_grpo",
        "golden/test_goldens.py::test_slime_grpo_without_variance",
        "golden/test_roles.py::test_main_agents_of_m_grpo_get_slime_grpo",
        "golden/test_roles.py::test_sub_agents_of_mrlx_are_compared_within_their_block",
    ),
    "mrlx_sub_reward": ("golden/test_roles.py::test_mrlx_sub_reward",),
    "spiral_rae": (
        "golden/test_players.py::test_spiral_rae",
        "golden/test_players.py::test_spiral_rae_discounts_earlier_turns",
    ),
    "agl_rollout_level": ("golden/test_goldens.py::test_agl_rollout_level",),
    "marft_action_gae": (
        "estimators/sequence/test_multistep.py::test_marft_action_gae",
        "golden/test_values.py::test_marft_normalised",
    ),
    "marft_token_gae": (
        "golden/test_values.py::test_marft_token_gae_as_tokens_of_one_row",
        "golden/test_values.py::test_marft_token_gae_as_events",
    ),
    "maporl_score_rule": ("golden/test_values.py::test_maporl",),
    "rlinf_wideseek": ("golden/test_roles.py::test_wideseek_r1", "golden/test_roles.py::test_wideseek_r1_weights"),
    "pymarl_td_lambda": ("golden/test_values.py::test_pymarl_td_lambda",),
    "pymarl_qmix": ("golden/test_values.py::test_qmix",),
    "coma_adv_by_hand": ("golden/test_values.py::test_coma",),
    "agent_qmix_reward": ("golden/test_values.py::test_agent_qmix_reward",),
    "comlrl_magrpo": ("golden/test_roles.py::test_comlrl_magrpo", "golden/test_roles.py::test_comlrl_magrpo_returns"),
    "foldgrpo_fork": (
        "golden/test_roles.py::test_foldgrpo",
        "golden/test_roles.py::test_foldgrpo_fork_where_all_outcomes_are_equal",
    ),
}

ELSEWHERE = {"puppeteer_reinforce": "the learned critic's"}
"""Cases that are no part of the published credit methods: checked beside what they belong to."""


def test_every_case_is_accounted_for() -> None:
    assert set(CHECKED) | set(ELSEWHERE) == set(CASES)
    assert not set(CHECKED) & set(ELSEWHERE)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", CHECKED)
def test_the_case_is_read_where_the_table_says(name: str) -> None:
    for place in CHECKED[name]:
        file, _, function = place.partition("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
        assert found, f"{place} is not there"
        words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert name in words, f"{file} does not read the case {name!r}"


def test_a_case_worked_by_hand_makes_no_method_a_released_one() -> None:
    """COMA was called checked against its authors' code, which needs a whole controller to run."""
    by_hand = [name for name in CASES if name.endswith("_by_hand")]
    assert by_hand
    for name, method in credit.METHODS.items():
        if method.status == "released":
            assert not any(case in (inspect.getdoc(getattr(credit, name)) or "") for case in by_hand), name
