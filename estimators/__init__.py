"""Who deserves what, and how sure are we: pure, jitted functions on event-graph arrays.

A method is `method(graph, reward, *, event_reward=None, ...evidence, ...options) -> Credit`. Importing this package
imports JAX and NumPy and nothing that reads files, draws or parses a command line, so that a trainer can.
"""

from estimators.base import REASONS, Credit, Reason, Recursion
from estimators.baselines.agentwise import at_grpo, dr_mas, dr_mas_rloo, reinforce_pp, reinforce_pp_baseline
from estimators.baselines.anchors import gigpo
from estimators.baselines.influence import maporl
from estimators.baselines.information_gain import igpo, igrpo
from estimators.baselines.joint import c3_magrpo, magrpo
from estimators.baselines.moving import moving_average
from estimators.baselines.players import hierarchical_grpo, marshal, spiral_rae
from estimators.baselines.process_marks import foldgrpo
from estimators.baselines.released import foldgrpo_fork, mrlx
from estimators.baselines.rescaled import gpg, max_rl, opo, prime_rl_grpo, rllm_reinforce_pp
from estimators.baselines.roles import matpo, mgrpo, wideseek_r1
from estimators.baselines.shared import dr_grpo, grpo, pass_at_k, reinforce_batch, remax, rloo
from estimators.baselines.state_graphs import g2po, graph_gpo, hgpo
from estimators.baselines.team_rewards import adca_grpo, ccpo, marti, sepo, unitymas_o
from estimators.baselines.trainers import (
    agent_lightning,
    agent_lightning_rows,
    openrlhf_group_norm,
    slime_grpo,
    trl_grpo,
    verl_grpo,
    verl_rloo,
)
from estimators.baselines.trees_and_segments import hae, hcapo, tree_grpo
from estimators.baselines.turns import mt_grpo, turn_baseline
from estimators.composition.control import control_advantage
from estimators.composition.increments import as_increment, combine
from estimators.composition.least_squares import reconcile
from estimators.composition.votes import claim
from estimators.counterfactual.alternatives import Alternatives, Refusals
from estimators.counterfactual.contrast import Contrast, doubly_robust_contrast
from estimators.counterfactual.difference import difference_reward
from estimators.counterfactual.factored import coma
from estimators.counterfactual.messages import c3
from estimators.counterfactual.more_or_less import spawn_credit, stop_credit
from estimators.counterfactual.offpolicy import PolicyValue, off_policy, policy_value
from estimators.counterfactual.policy_estimates import Evaluation
from estimators.critic.central import centred_increments, maac
from estimators.critic.puppeteer import puppeteer
from estimators.critic.repaid_posterior import choice_features, fresh_posterior, posterior_advantage, posterior_claims
from estimators.critic.value_increments import critic_increments
from estimators.group import group_relative
from estimators.sequence.multistep import discounted_return, gae

__all__ = [
    "REASONS",
    "Alternatives",
    "Contrast",
    "Credit",
    "Evaluation",
    "PolicyValue",
    "Reason",
    "Recursion",
    "Refusals",
    "adca_grpo",
    "agent_lightning",
    "agent_lightning_rows",
    "as_increment",
    "at_grpo",
    "c3",
    "c3_magrpo",
    "ccpo",
    "centred_increments",
    "choice_features",
    "claim",
    "coma",
    "combine",
    "control_advantage",
    "critic_increments",
    "difference_reward",
    "discounted_return",
    "doubly_robust_contrast",
    "dr_grpo",
    "dr_mas",
    "dr_mas_rloo",
    "foldgrpo",
    "foldgrpo_fork",
    "fresh_posterior",
    "g2po",
    "gae",
    "gigpo",
    "gpg",
    "graph_gpo",
    "group_relative",
    "grpo",
    "hae",
    "hcapo",
    "hgpo",
    "hierarchical_grpo",
    "igpo",
    "igrpo",
    "maac",
    "magrpo",
    "maporl",
    "marshal",
    "marti",
    "matpo",
    "max_rl",
    "mgrpo",
    "moving_average",
    "mrlx",
    "mt_grpo",
    "off_policy",
    "openrlhf_group_norm",
    "opo",
    "pass_at_k",
    "policy_value",
    "posterior_advantage",
    "posterior_claims",
    "prime_rl_grpo",
    "puppeteer",
    "reconcile",
    "reinforce_batch",
    "reinforce_pp",
    "reinforce_pp_baseline",
    "remax",
    "rllm_reinforce_pp",
    "rloo",
    "sepo",
    "slime_grpo",
    "spawn_credit",
    "spiral_rae",
    "stop_credit",
    "tree_grpo",
    "trl_grpo",
    "turn_baseline",
    "unitymas_o",
    "verl_grpo",
    "verl_rloo",
    "wideseek_r1",
]
