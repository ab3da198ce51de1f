"""Every method once more, as slowly and plainly as its formula reads: lists, dicts and loops in float64.

Written from the formulas and from what the released code was read to do, not from the kernels, so that a mistake would
have to be made twice. `REFERENCES` has one for each registered method, `VARIANTS` some with options.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from estimators import Evaluation

from . import agents, newer, rows, sequences, traces, trees, turns
from .plain import Trace, perturbed, plain

__all__ = ["OF_AGENTS", "REFERENCES", "VARIANTS", "Reference", "perturbed", "plain"]

Reference = Callable[[list[Trace]], dict[int, float]]
"""Advantages by the place of the action; an action that is not there has been refused."""

REFERENCES: dict[str, Reference] = {
    "grpo": traces.grpo,
    "dr_grpo": traces.dr_grpo,
    "rloo": traces.rloo,
    "remax": traces.remax,
    "reinforce_batch": traces.reinforce_batch,
    "moving_average": traces.moving_average,
    "pass_at_k": traces.pass_at_k,
    "trl_grpo": functools.partial(traces.grpo, eps=1e-4, alone="zero"),
    "openrlhf_group_norm": functools.partial(traces.grpo, eps=1e-9),
    "slime_grpo": functools.partial(traces.grpo, alone="zero"),
    "agent_lightning": functools.partial(traces.grpo, score=traces.first_row, alone="raw"),
    "matpo": functools.partial(traces.grpo, alone="raw"),
    "wideseek_r1": functools.partial(traces.grpo, score=traces.mean_row),
    "c3_magrpo": traces.c3_magrpo,
    "foldgrpo": traces.foldgrpo,
    "foldgrpo_fork": traces.foldgrpo_fork,
    "difference_reward": traces.difference_reward,
    "verl_grpo": rows.verl_grpo,
    "agent_lightning_rows": rows.verl_grpo,
    "verl_rloo": rows.verl_rloo,
    "dr_mas": functools.partial(rows.verl_grpo, by="name"),
    "dr_mas_rloo": functools.partial(rows.verl_rloo, by="name"),
    "reinforce_pp": rows.reinforce_pp,
    "reinforce_pp_baseline": rows.reinforce_pp_baseline,
    "mgrpo": agents.mgrpo,
    "mrlx": agents.mrlx,
    "hierarchical_grpo": agents.hierarchical_grpo,
    "spiral_rae": agents.spiral_rae,
    "marshal": turns.marshal,
    "turn_baseline": turns.turn_baseline,
    "mt_grpo": turns.mt_grpo,
    "maporl": turns.maporl,
    "gigpo": turns.gigpo,
    "discounted_return": sequences.discounted_return,
    "gae": sequences.gae,
    "critic": sequences.critic,
    "maac": functools.partial(sequences.gae, lambda_=0.0, along="agent"),
    "puppeteer": sequences.puppeteer,
    "coma": sequences.coma,
    "c3": trees.c3,
    "magrpo": trees.magrpo,
    "off_policy": trees.off_policy,
    "stop_credit": trees.stop_credit,
    "spawn_credit": functools.partial(trees.stop_credit, chance="spawn_propensity", sign=-1),
    "max_rl": newer.max_rl,
    "opo": newer.opo,
    "gpg": newer.gpg,
    "prime_rl_grpo": newer.prime_rl_grpo,
    "rllm_reinforce_pp": newer.rllm_reinforce_pp,
    "igpo": newer.igpo,
    "igrpo": newer.igrpo,
    "hgpo": newer.hgpo,
    "g2po": newer.g2po,
    "graph_gpo": newer.graph_gpo,
    "tree_grpo": newer.tree_grpo,
    "hcapo": newer.hcapo,
    "hae": newer.hae,
    "adca_grpo": newer.adca_grpo,
    "ccpo": newer.ccpo,
    "marti": newer.marti,
    "unitymas_o": newer.unitymas_o,
    "at_grpo": newer.at_grpo,
    "sepo": newer.sepo,
}

VARIANTS: tuple[tuple[str, dict[str, Any], Reference], ...] = (
    ("grpo", {"ddof": 0, "singleton": "raw"}, functools.partial(traces.grpo, ddof=0, alone="raw")),
    ("rloo", {"singleton": "zero"}, functools.partial(traces.rloo, alone="zero")),
    ("moving_average", {"decay": 0.8, "initial": 0.5}, functools.partial(traces.moving_average, decay=0.8, start=0.5)),
    ("wideseek_r1", {"population": "row"}, functools.partial(rows.verl_grpo, alone="refuse")),
    ("slime_grpo", {"uneven_as_one_group": True}, functools.partial(traces.grpo, alone="zero", over="batch")),
    ("c3_magrpo", {"baseline": "leave_one_out"}, functools.partial(traces.c3_magrpo, others=True)),
    ("dr_mas", {"by": "role_name"}, functools.partial(rows.verl_grpo, by="role")),
    ("dr_mas", {"population": "trace"}, functools.partial(rows.dr_mas_traces, by="name")),
    ("dr_mas", {"by": None, "population": "trace", "scale": "none"}, functools.partial(rows.dr_mas_traces, std=False)),
    ("dr_mas_rloo", {"by": None, "population": "trace"}, rows.rloo_of_first_rows),
    (
        "reinforce_pp_baseline",
        {"by": "agent_name", "population": "row"},
        functools.partial(rows.reinforce_pp_baseline, by="name"),
    ),
    ("mgrpo", {"main_weight": 0.5, "ddof": 0}, functools.partial(agents.mgrpo, main_weight=0.5, ddof=0)),
    ("spiral_rae", {"by": "role_name", "discount": 0.9}, functools.partial(agents.spiral_rae, by="role", discount=0.9)),
    ("marshal", {"scale": "std", "discount": 0.9}, functools.partial(turns.marshal, std=True, discount=0.9)),
    ("marshal", {"over": "group", "by": "role_name"}, functools.partial(turns.marshal, over="group", by="role")),
    ("mt_grpo", {"scale": "none"}, functools.partial(turns.mt_grpo, std=False)),
    ("maporl", {"horizon": "last"}, functools.partial(turns.maporl, horizon="last")),
    ("maporl", {"horizon": "current", "discount": 0.5}, functools.partial(turns.maporl, horizon="current")),
    ("maporl", {"share": "individual"}, functools.partial(turns.maporl, share="individual")),
    ("gigpo", {"discount": 0.95, "scale": "std"}, functools.partial(turns.gigpo, discount=0.95, std=True)),
    (
        "gigpo",
        {"by": "agent_name", "population": "row", "weight": 0.5},
        functools.partial(turns.gigpo, by="name", weight=0.5),
    ),
    ("discounted_return", {"discount": 0.9}, functools.partial(sequences.discounted_return, discount=0.9)),
    (
        "discounted_return",
        {"discount": 0.9, "along": "agent"},
        functools.partial(sequences.discounted_return, discount=0.9, along="agent"),
    ),
    ("gae", {"discount": 0.9, "lambda_": 0.7}, functools.partial(sequences.gae, discount=0.9, lambda_=0.7)),
    ("gae", {"lambda_": 1.0, "along": "agent"}, functools.partial(sequences.gae, lambda_=1.0, along="agent")),
    (
        "puppeteer",
        {"cost_per_token": 0.01, "factor": -1.5, "max_steps": 3},
        functools.partial(sequences.puppeteer, cost=0.01, factor=-1.5, most=3),
    ),
    ("c3", {"baseline": "mean"}, functools.partial(trees.c3, others=False)),
    ("c3", {"normalise": True}, functools.partial(trees.c3, normalise=True)),
    ("c3", {"own_outcome": False}, functools.partial(trees.c3, own=False)),
    ("magrpo", {"baseline": "leave_one_out", "discount": 1.0}, functools.partial(trees.magrpo, kind="rloo", gamma=1.0)),
    ("magrpo", {"baseline": "max"}, functools.partial(trees.magrpo, kind="max")),
    ("magrpo", {"baseline": "none"}, functools.partial(trees.magrpo, kind="raw")),
    ("hgpo", {"discount": 0.9, "scale": "none"}, functools.partial(newer.hgpo, gamma=0.9, std=False)),
    ("g2po", {"scale": "std"}, functools.partial(newer.g2po, std=True)),
    (
        "adca_grpo",
        {"variant": "allocation", "weight": 1.0},
        functools.partial(newer.adca_grpo, allocation=True, alpha=1),
    ),
    (
        "adca_grpo",
        {"outcome_at": "all", "root_length": True},
        functools.partial(newer.adca_grpo, every=True, root=True),
    ),
    ("tree_grpo", {"mode": "tree_2norm"}, functools.partial(newer.tree_grpo, mode="tree_2norm")),
    ("hae", {"lambda_": 0.5, "lambda_high": 0.8}, functools.partial(newer.hae, low=0.5, high=0.8)),
    ("ccpo", {"bonus": "difference"}, functools.partial(newer.ccpo, difference=True)),
    (
        "marti",
        {"mode": "margin", "history": "own", "outcome_weight": 0.5},
        functools.partial(newer.marti, own=True, margin=True, beta=0.5),
    ),
    ("at_grpo", {"mode": "question"}, functools.partial(newer.at_grpo, mode="question")),
    ("at_grpo", {"mode": "last"}, functools.partial(newer.at_grpo, mode="last")),
    ("at_grpo", {"filters": "equal"}, functools.partial(newer.at_grpo, filters="equal")),
    (
        "at_grpo",
        {"filters": "spread", "filter_ratio": 0.4},
        functools.partial(newer.at_grpo, filters="spread", ratio=0.4),
    ),
    ("sepo", {"trust": 0.6, "blame_weight": 0.5}, functools.partial(newer.sepo, trust=0.6, blame=0.5)),
    ("igpo", {"discount": 0.5}, functools.partial(newer.igpo, gamma=0.5)),
    ("max_rl", {"eps": 1e-6, "singleton": "raw"}, functools.partial(newer.max_rl, eps=1e-6, alone="raw")),
    ("prime_rl_grpo", {"turn_weight": 0.5}, functools.partial(newer.prime_rl_grpo, turns=0.5)),
    ("rllm_reinforce_pp", {"baseline": "batch"}, functools.partial(newer.rllm_reinforce_pp, batch=True)),
    ("off_policy", {"evaluation": Evaluation("snips")}, functools.partial(trees.off_policy, snips=True)),
)
"""A method, options, and what they should give."""

OF_AGENTS: dict[str, Reference] = {
    "rloo of agents": agents.rloo_of_agents,
    "hierarchical_grpo of agents": functools.partial(agents.hierarchical_grpo, within=True),
    "spiral_rae of agents": agents.rae_of_agents,
}
"""Of settings of the laws in which agents have outcomes of their own."""
