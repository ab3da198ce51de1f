"""METHODS: every method by name, with its needs and its properties. One literal table.

The command line, the law tests, the chooser and the documentation read it; a user's own method needs no entry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import estimators
from estimators.base import Credit, Estimand
from estimators.baselines import released
from estimators.shapley import event_credit

__all__ = ["METHODS", "Method"]

Scope = Literal["trace", "group", "batch", "sequence"]
Status = Literal["released", "reconstructed", "formula"]


@dataclasses.dataclass(frozen=True)
class Method:
    """A method and its properties. Calling it calls `fn`.

    Attributes:
      fn: `fn(graph, reward, *, event_reward=None, **evidence, **options) -> Credit`.
      summary: one line for people.
      unit: the level whose units share one number.
      estimand: what the amount estimates.
      unbiased: whether the policy gradient's mean is right when every action is weighted with the advantage, the group
        is sampled independently, and sizes do not depend on the actions.
      scope: whose rewards can change a trace's numbers: its own, its group's, the batch's, or those of earlier traces.
      needs: names of evidence it cannot do without (`graphs.traces.schema`), passed as arguments of the same names.
      status: "released", checked against the authors' or the trainer's code; "reconstructed", from that code's or a
        paper's text without executing it; "formula", a textbook formula under its own name.
      reference: paper or code.
      cost: work of one call on E events, T traces and A agents.

    Examples:
      >>> import credit
      >>> method = credit.METHODS["gae"]
      >>> method.needs, method.unit, method.estimand, method.scope, method.unbiased
      (('value',), 'event', 'return', 'trace', False)
    """

    fn: Callable[..., Credit]
    summary: str
    unit: str
    estimand: Estimand
    unbiased: bool
    scope: Scope
    status: Status
    reference: str
    needs: tuple[str, ...] = ()
    cost: str = "O(E)"

    def __call__(self, *args: Any, **kwargs: Any) -> Credit:
        return self.fn(*args, **kwargs)


METHODS: dict[str, Method] = {
    "grpo": Method(
        estimators.grpo,
        "return against the group's mean, over the group's spread",
        unit="trace",
        estimand="total",
        unbiased=False,
        scope="group",
        status="formula",
        reference="Shao et al. 2024, arXiv:2402.03300",
    ),
    "dr_grpo": Method(
        estimators.dr_grpo,
        "return against the group's mean; (n-1)/n times rloo",
        unit="trace",
        estimand="total",
        unbiased=False,
        scope="group",
        status="formula",
        reference="Liu et al. 2025, arXiv:2503.20783",
    ),
    "rloo": Method(
        estimators.rloo,
        "return against the mean of the other traces of the group",
        unit="trace",
        estimand="total",
        unbiased=True,
        scope="group",
        status="formula",
        reference="Kool et al. 2019; Ahmadian et al. 2024, arXiv:2402.14740",
    ),
    "remax": Method(
        estimators.remax,
        "return against that of a greedy run on the same task",
        unit="trace",
        estimand="total",
        unbiased=True,
        scope="trace",
        status="released",
        reference="Li et al. 2023, arXiv:2310.10505; verl",
        needs=("greedy_reward",),
    ),
    "reinforce_batch": Method(
        estimators.reinforce_batch,
        "return against the mean of all other traces of the batch",
        unit="trace",
        estimand="total",
        unbiased=True,
        scope="batch",
        status="formula",
        reference="Williams 1992, with a leave-one-out batch baseline",
    ),
    "moving_average": Method(
        estimators.moving_average,
        "return against the moving average of earlier traces",
        unit="trace",
        estimand="total",
        unbiased=True,
        scope="sequence",
        status="formula",
        reference="Williams 1992; Sutton and Barto 2018, section 13.4",
        cost="O(E + T)",
    ),
    "discounted_return": Method(
        estimators.discounted_return,
        "what was earned from each action on; no baseline",
        unit="event",
        estimand="return",
        unbiased=True,
        scope="trace",
        status="formula",
        reference="Williams 1992 (REINFORCE)",
        cost="O(E log E)",
    ),
    "gae": Method(
        estimators.gae,
        "generalised advantage estimation from logged values",
        unit="event",
        estimand="return",
        unbiased=False,
        scope="trace",
        status="released",
        reference="Schulman et al. 2016, arXiv:1506.02438; C3's MAPPO, MARFT",
        needs=("value",),
        cost="O(E log E)",
    ),
    "critic": Method(
        estimators.critic_increments,
        "what each action changed in a critic's value of the trace so far",
        unit="event",
        estimand="increment",
        unbiased=False,
        scope="trace",
        status="formula",
        reference="differences of a learned value, docs/critic.md",
        needs=("value",),
        cost="O(E log E)",
    ),
    "maac": Method(
        estimators.maac,
        "reward and next value of an agent's turn against its value, from a centralised critic",
        unit="event",
        estimand="return",
        unbiased=False,
        scope="trace",
        status="reconstructed",
        reference="CoLLM-MAAC: CoMLRL maac.py",
        needs=("value",),
        cost="O(E log E)",
    ),
    "puppeteer": Method(
        estimators.puppeteer,
        "discounted return of each choice with a price on steps and tokens; no critic, no baseline",
        unit="event",
        estimand="return",
        unbiased=False,
        scope="trace",
        status="released",
        reference="Puppeteer REINFORCE_continuous.py",
        needs=("tokens",),
        cost="O(E log E)",
    ),
    "pass_at_k": Method(
        estimators.pass_at_k,
        "only the best trace, by its lead over the second",
        unit="trace",
        estimand="score",
        unbiased=False,
        scope="group",
        status="released",
        reference="verl compute_grpo_passk_outcome_advantage",
        cost="O(E + T log T)",
    ),
    "verl_grpo": Method(
        estimators.verl_grpo,
        "GRPO as verl computes it: rows are samples",
        unit="event",
        estimand="total",
        unbiased=False,
        scope="group",
        status="released",
        reference="verl compute_grpo_outcome_advantage",
    ),
    "verl_rloo": Method(
        estimators.verl_rloo,
        "RLOO as verl computes it: rows are samples",
        unit="event",
        estimand="total",
        unbiased=False,
        scope="group",
        status="released",
        reference="verl compute_rloo_outcome_advantage",
    ),
    "trl_grpo": Method(
        estimators.trl_grpo,
        "GRPO with TRL's constants",
        unit="trace",
        estimand="total",
        unbiased=False,
        scope="group",
        status="reconstructed",
        reference="TRL GRPOTrainer",
    ),
    "openrlhf_group_norm": Method(
        estimators.openrlhf_group_norm,
        "GRPO with OpenRLHF's constants",
        unit="trace",
        estimand="total",
        unbiased=False,
        scope="group",
        status="reconstructed",
        reference="OpenRLHF group_norm",
    ),
    "slime_grpo": Method(
        estimators.slime_grpo,
        "GRPO as slime post-processes rewards (M-GRPO's trainer)",
        unit="trace",
        estimand="total",
        unbiased=False,
        scope="group",
        status="released",
        reference="slime RolloutManager._post_process_rewards",
    ),
    "agent_lightning": Method(
        estimators.agent_lightning,
        "verl's GRPO over one row a rollout, copied to its rows",
        unit="trace",
        estimand="total",
        unbiased=False,
        scope="group",
        status="released",
        reference="Agent Lightning v1 compute_rollout_level_advantage",
    ),
    "agent_lightning_rows": Method(
        estimators.agent_lightning_rows,
        "verl's GRPO over all rows (Agent Lightning before v1)",
        unit="event",
        estimand="total",
        unbiased=False,
        scope="group",
        status="released",
        reference="Agent Lightning v0.1-0.3",
    ),
    "dr_mas": Method(
        estimators.dr_mas,
        "each row against the rows of the same agent on the same task",
        unit="event",
        estimand="scale",
        unbiased=False,
        scope="group",
        status="released",
        reference="Dr. MAS compute_grpo_outcome_advantage",
        cost="O(E + A log A)",
    ),
    "dr_mas_rloo": Method(
        estimators.dr_mas_rloo,
        "each row against the other rows of the same agent on the same task",
        unit="event",
        estimand="scale",
        unbiased=False,
        scope="group",
        status="released",
        reference="Dr. MAS compute_rloo_outcome_advantage",
        cost="O(E + A log A)",
    ),
    "reinforce_pp": Method(
        estimators.reinforce_pp,
        "row scores whitened over the batch",
        unit="event",
        estimand="total",
        unbiased=False,
        scope="batch",
        status="released",
        reference="Hu 2025, arXiv:2501.03262; verl",
    ),
    "reinforce_pp_baseline": Method(
        estimators.reinforce_pp_baseline,
        "row scores minus the group's mean, whitened over the batch",
        unit="event",
        estimand="total",
        unbiased=False,
        scope="batch",
        status="released",
        reference="Dr. MAS compute_reinforce_plus_plus_baseline_outcome_advantage",
    ),
    "c3": Method(
        estimators.c3,
        "value of the chosen message against its siblings under one frozen context",
        unit="event",
        estimand="increment",
        unbiased=True,
        scope="group",
        status="released",
        reference="C3 c3/credit/c3/provider.py, reward_only with leave-one-out, before normalisation",
        needs=("context", "node"),
        cost="O(E log E)",
    ),
    "off_policy": Method(
        estimators.off_policy,
        "value of the chosen message against its context's, to a policy other than the one that drew the siblings",
        unit="event",
        estimand="increment",
        unbiased=False,
        scope="group",
        status="formula",
        reference="Dudik et al. 2011, arXiv:1103.4601; also SNIPS (2015) and SWITCH (2017), by its option",
        needs=("context", "node", "propensity", "target_propensity"),
        cost="O(E log E)",
    ),
    "coma": Method(
        estimators.coma,
        "a critic's value of the chosen action against its mean over what could have been chosen",
        unit="event",
        estimand="increment",
        unbiased=False,
        scope="trace",
        status="released",
        reference="Foerster et al. 2018, arXiv:1705.08926; pymarl coma_learner.py",
        needs=("q_value", "target_value"),
    ),
    "difference_reward": Method(
        estimators.difference_reward,
        "return against that of a re-run in which this one decision is replaced by a fixed action",
        unit="event",
        estimand="effect",
        unbiased=True,
        scope="trace",
        status="formula",
        reference="Wolpert and Tumer 2002",
        needs=("counterfactual_reward",),
    ),
    "turn_baseline": Method(
        estimators.turn_baseline,
        "what was earned from each turn on, against the other traces' from their turn of that number",
        unit="turn",
        estimand="return",
        unbiased=True,
        scope="group",
        status="formula",
        reference="Kool et al. 2019, at each turn",
        cost="O(E log E)",
    ),
    "mt_grpo": Method(
        estimators.mt_grpo,
        "each turn's reward normalised among turns of that number, summed from the turn on",
        unit="turn",
        estimand="score",
        unbiased=False,
        scope="group",
        status="reconstructed",
        reference="Zeng et al. 2025, arXiv:2505.11821 (MT-GRPO); Multi-Turn-RL-Agent mt_grpo_env_trainer.py",
        cost="O(E log E)",
    ),
    "gigpo": Method(
        estimators.gigpo,
        "return against the group's, plus each step against the steps that answered the same observation",
        unit="event",
        estimand="score",
        unbiased=False,
        scope="group",
        status="released",
        reference="Feng et al. 2025, arXiv:2505.10978; Dr. MAS compute_gigpo_outcome_advantage",
        needs=("anchor",),
        cost="O(E log E)",
    ),
    "mgrpo": Method(
        estimators.mgrpo,
        "main agents against the task's main agents, sub-agents against its sub-agents",
        unit="agent",
        estimand="scale",
        unbiased=False,
        scope="group",
        status="reconstructed",
        reference="M-GRPO (MrlX), as described",
        cost="O(E + A log A)",
    ),
    "mrlx": Method(
        released.mrlx,
        "M-GRPO as released: sub-agents against the block they arrived in",
        unit="agent",
        estimand="scale",
        unbiased=False,
        scope="batch",
        status="released",
        reference="MrlX; slime RolloutManager._post_process_rewards",
        needs=("block",),
        cost="O(E + A log A)",
    ),
    "matpo": Method(
        estimators.matpo,
        "the planner's GRPO number, copied to its workers",
        unit="trace",
        estimand="total",
        unbiased=False,
        scope="group",
        status="released",
        reference="MATPO ray_trainer.py, protocol.py",
    ),
    "wideseek_r1": Method(
        estimators.wideseek_r1,
        "mean row score against the group's; roles weigh in the loss only",
        unit="trace",
        estimand="total",
        unbiased=False,
        scope="group",
        status="released",
        reference="WideSeek-R1: RLinf compute_grpo_dynamic_advantages",
    ),
    "magrpo": Method(
        estimators.magrpo,
        "discounted return of a joint turn against the others drawn in the same place",
        unit="event",
        estimand="score",
        unbiased=False,
        scope="group",
        status="released",
        reference="MAGRPO: CoMLRL magrpo.py",
        needs=("context", "node"),
        cost="O(E log E)",
    ),
    "c3_magrpo": Method(
        estimators.c3_magrpo,
        "MAGRPO as C3 runs it: return against the group's mean over its spread (ddof 0)",
        unit="trace",
        estimand="total",
        unbiased=False,
        scope="group",
        status="released",
        reference="C3 c3/algorithms/magrpo.py, experience_maker.py",
    ),
    "foldgrpo": Method(
        estimators.foldgrpo,
        "outcome moved by the action's own process mark, against the group's outcomes",
        unit="event",
        estimand="score",
        unbiased=False,
        scope="group",
        status="reconstructed",
        reference="Context-Folding (FoldGRPO), formula as quoted in SkyRL",
    ),
    "foldgrpo_fork": Method(
        released.foldgrpo_fork,
        "marked actions take the group's best or worst advantage",
        unit="event",
        estimand="score",
        unbiased=False,
        scope="group",
        status="released",
        reference="compute_foldgrpo_advantage, third-party copy of the FoldAgent fork",
    ),
    "marshal": Method(
        estimators.marshal,
        "what a player earns from its turn on, against the mean of that player's turns",
        unit="turn",
        estimand="scale",
        unbiased=False,
        scope="batch",
        status="reconstructed",
        reference="MARSHAL, as described",
        cost="O(E log E)",
    ),
    "spiral_rae": Method(
        estimators.spiral_rae,
        "a player's reward against the moving average of its rewards in earlier traces",
        unit="turn",
        estimand="scale",
        unbiased=False,
        scope="sequence",
        status="released",
        reference="SPIRAL train_spiral.py prepare_trajectories",
        cost="O(E log E)",
    ),
    "maporl": Method(
        estimators.maporl,
        "an answer's own verdict and those of the whole team in later rounds",
        unit="event",
        estimand="score",
        unbiased=False,
        scope="trace",
        status="released",
        reference="MAPoRL score_rule",
        needs=("stage",),
        cost="O(E log E)",
    ),
    "shapley": Method(
        event_credit.shapley,
        "each agent's Shapley share of what the team is worth, solved from evaluated coalitions",
        unit="agent",
        estimand="share",
        unbiased=False,
        scope="trace",
        status="formula",
        reference="Shapley 1953; evaluated coalitions needed: credit shapley plan, solve",
        needs=("share",),
    ),
}
