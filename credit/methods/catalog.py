"""The methods that two surveys name, each with what this library does about it: runs, a channel, a need, or neither.

The rows of the second survey (Zhang 2026, arXiv:2604.09459) are those of its repository
xxzcc/Awesome-Credit-Assignment-in-LLM-RL, `data/papers.csv` (MIT): 73 at commit 1352532 and two that b336ac7 added. The
last rows are names of the first survey's pool (arXiv:2605.02801). Papers were not all read: a note says what follows
from the catalogue's own description, from an abstract, or from code that another row of the documentation cites.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from credit.methods.published import home_of
from credit.methods.registry import METHODS
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["CATALOG", "CatalogRow", "State"]

State = Literal["runs", "channel", "needs", "not computable"]
"""A method here computes its advantages; its rewards enter as a channel or as rewards at events, for a method here;
evidence that must be made first; or nothing that a log holds gives its numbers."""


@dataclasses.dataclass(frozen=True)
class CatalogRow:
    """A method as a survey lists it.

    Attributes:
      name: its name, or the beginning of its title.
      paper: arXiv or OpenReview id.
      state: what this library does about it.
      by: the method that computes it or that takes its rewards; "" where there is none.
      note: what differs, what must be logged, or why it cannot be computed.
    """

    name: str
    paper: str
    state: State
    by: str = ""
    note: str = ""

    @property
    def needs(self) -> dict[str, str]:
        """Evidence that `by` cannot do without, each with how a log states it."""
        if not self.by:
            return {}
        keys = EVENT_EVIDENCE | TRACE_EVIDENCE
        return {need: keys[need].how_to_log for need in METHODS[home_of(self.by)].needs}  # options need no other


def _rewards(what: str) -> str:
    return f"{what}, as rewards at events (`event_reward`)"


def _judged(what: str) -> str:
    return f"{what}, as scores of a judgement file (docs/judgements.md) or as rewards at events"


WEIGHTS = "it weighs the tokens of one answer, below the event, by"

CATALOG: tuple[CatalogRow, ...] = (
    CatalogRow("VinePPO", "2410.01679", "runs", "vineppo", "values are means of re-runs: `credit plan --for value`"),
    CatalogRow("RED", "2411.08302", "channel", "reinforce_pp", _rewards("its token rewards, summed over an action")),
    CatalogRow("T-REG", "2412.02685", "not computable", note="it trains on pairs; it has no advantage of an action"),
    CatalogRow(
        "From r to Q*",
        "2404.12358",
        "channel",
        "discounted_return",
        _rewards("β times the log-ratio of policy and reference, summed over an action"),
    ),
    CatalogRow("SPO", "2505.23564", "runs", "spo_tree", "its tree form; its chain form is `vineppo` at its cut points"),
    CatalogRow(
        "SCAR",
        "2505.20417",
        "needs",
        "shapley",
        "its players are segments; here they are agents of a game that you run",
    ),
    CatalogRow("TEMPO", "2509.18314", "needs", "spo_tree", "its branch term only; it adds GRPO's number of the trace"),
    CatalogRow(
        "PURE", "2504.08662", "not computable", note="it takes the least later process reward; here rewards add up"
    ),
    CatalogRow("SPRO", "2507.01551", "channel", "turn_baseline", _rewards("its self-guided process rewards")),
    CatalogRow("CAPO", "2508.02298", "channel", "foldgrpo", _rewards("the critique's marks of steps")),
    CatalogRow("ACPO", "2510.08899", "not computable", note="attributions by gradients of the model are in no log"),
    CatalogRow("HICRA", "2509.03646", "not computable", note=f"{WEIGHTS} whether they plan, which no log marks"),
    CatalogRow("PRL", "2601.10201", "channel", "discounted_return", _rewards("its process rewards")),
    CatalogRow(
        "InT",
        "2601.14209",
        "needs",
        "difference_reward",
        "its interventions as re-runs; it then trains on corrected answers, without an advantage",
    ),
    CatalogRow("FinePO", "2601.05688", "channel", "mt_grpo", _rewards("its process rewards of sub-steps")),
    CatalogRow(
        "AgentPRM", "2511.08325", "runs", "gae", "with the promise of its model, or `credit fit critic`, as value"
    ),
    CatalogRow(
        "SWEET-RL", "2503.15478", "channel", "turn_baseline", _judged("its privileged critic's numbers of turns")
    ),
    CatalogRow("Turn-level reward design (MT-GRPO)", "2505.11821", "runs", "mt_grpo", "for any number of turns"),
    CatalogRow("Turn-PPO", "2512.17008", "runs", "gae", "one action a turn; importance ratios belong to the trainer"),
    CatalogRow(
        "SORL", "2511.20718", "runs", "grpo", "the advantage; its importance weights of turns belong to the trainer"
    ),
    CatalogRow("TARL", "2509.14480", "channel", "mt_grpo", _judged("its judge's scores of turns")),
    CatalogRow("ITPO", "2603.23550", "channel", "mt_grpo", _rewards("the changes of log-probability that it pays for")),
    CatalogRow("HCAPO", "2603.08754", "needs", "hcapo", "the tokens scored again with the final state in the prompt"),
    CatalogRow("C3", "2603.06859", "runs", "c3", "before the division by the siblings' spread"),
    CatalogRow("CCPO", "2603.21563", "runs", "ccpo", "the released form, without its vote that leaves one agent out"),
    CatalogRow("CriticSearch", "2511.12159", "channel", "foldgrpo", _rewards("its critic's marks of turns")),
    CatalogRow("GiGPO", "2505.10978", "runs", "gigpo", "observations are compared by equality"),
    CatalogRow("POAD", "2405.15821", "not computable", note="it needs a critic of tokens within an action"),
    CatalogRow("ArCHer", "2402.19446", "runs", "coma", "its critic's Q and V of the turn as q_value and target_value"),
    CatalogRow("PilotRL", "2508.00344", "channel", "grpo", "rewards of its stages as channels with annealed weights"),
    CatalogRow("CARL", "2512.04949", "not computable", note="entropies of actions, by which it selects, are in no log"),
    CatalogRow(
        "IGPO",
        "2510.14967",
        "runs",
        "igrpo",
        _rewards("log-probabilities of the answer, their differences") + "; `igpo` is released code of another formula",
    ),
    CatalogRow("iStar", "2509.19199", "channel", "igrpo", _rewards("its implicit step rewards")),
    CatalogRow("StepAgent", "2411.03817", "channel", "discounted_return", _rewards("what its discriminator pays")),
    CatalogRow("Agent Lightning", "2508.03680", "runs", "agent_lightning"),
    CatalogRow("RAGEN", "2504.20073", "runs", "grpo", "StarPO's advantage of a trace; with a critic `gae`"),
    CatalogRow(
        "SPA-RL",
        "2505.20732",
        "channel",
        "discounted_return",
        _rewards("parts of the outcome, fitted by `estimators.critic.outcome_parts`") + "; the rest is left out",
    ),
    CatalogRow("LaRe", "2412.16989", "channel", "discounted_return", _rewards("its decoded rewards of steps")),
    CatalogRow("SCRIBE", "2601.03555", "channel", "mt_grpo", _judged("its judge's scores by skill")),
    CatalogRow(
        "PRS and VSPO", "2512.07478", "channel", "grpo", "stages of its reward as channels with annealed weights"
    ),
    CatalogRow(
        "Adaptive segment-level reward", "2411.00809", "channel", "mt_grpo", _rewards("its rewards of segments")
    ),
    CatalogRow("M-GRPO", "2511.13288", "runs", "m_grpo", "after a review of the paper; as released `mrlx`"),
    CatalogRow("LLM-MCA", "2502.16863", "channel", "dr_mas", _judged("its critic's numbers of agents")),
    CatalogRow(
        "QLLM",
        "2504.12961",
        "needs",
        note="the function that its model wrote: `credit assign --method module:function`",
    ),
    CatalogRow("SHARP", "2602.08335", "channel", "dr_mas", "the channels of `credit.ledger.sharp` (docs/channels.md)"),
    CatalogRow("MAPPA", "2601.23228", "channel", "dr_mas", _judged("the coach's scores of actions")),
    CatalogRow("Dr. MAS", "2602.08847", "runs", "dr_mas"),
    CatalogRow("GRPO-λ", "2510.00194", "not computable", note=f"{WEIGHTS} traces of eligibility over tokens"),
    CatalogRow("DelTA", "2605.21467", "not computable", note=f"{WEIGHTS} coefficients from gradients of tokens"),
    CatalogRow("SCRL", "2605.22074", "channel", "mt_grpo", _rewards("verdicts of subproblems")),
    CatalogRow("TRIAGE", "2606.32017", "channel", "foldgrpo", _rewards("its bounded rewards of segments by role")),
    CatalogRow("OAR", "2601.07408", "not computable", note=f"{WEIGHTS} how perturbing them moves the answer"),
    CatalogRow(
        "CRAFT", "2606.29476", "needs", "c3", "siblings; it spreads their difference over tokens by distillation"
    ),
    CatalogRow(
        "SC-GRPO", "2606.18810", "not computable", note=f"{WEIGHTS} divergences from the self-conditioned model"
    ),
    CatalogRow("GRAIL", "2606.04889", "not computable", note=f"{WEIGHTS} saliency from gradients and activations"),
    CatalogRow("VPR", "2605.10325", "channel", "mt_grpo", _rewards("its oracles' verdicts of turns")),
    CatalogRow("APPO", "2606.12384", "not computable", note="its scale of procedures was not found in public code"),
    CatalogRow("OPID", "2606.26790", "not computable", note="its advantages of tokens are a distillation's"),
    CatalogRow("PAPO", "2605.11775", "not computable", note=f"{WEIGHTS} the sign of their entropy's change"),
    CatalogRow(
        "Progress Advantage",
        "2606.26080",
        "channel",
        "discounted_return",
        _judged("the log-ratio of the trained policy and its reference"),
    ),
    CatalogRow("QVal", "2606.32034", "not computable", note="a benchmark of signals; `credit bench truth` is one here"),
    CatalogRow("STARE", "2606.19236", "not computable", note=f"{WEIGHTS} surprisal"),
    CatalogRow("Temporal scheduling", "2605.25381", "channel", "grpo", "channels with annealed weights"),
    CatalogRow("SDAR", "2605.15155", "not computable", note="its dense signal is a distillation's loss"),
    CatalogRow(
        "AT²PO", "2601.04767", "needs", "spo_tree", "siblings of its tree; its choice of branches is the trainer's"
    ),
    CatalogRow("GVPO", "RY47Tq0VsV", "channel", "foldgrpo", _rewards("verdicts of executed actions")),
    CatalogRow("AEM", "2605.00425", "not computable", note="it scales advantages by entropies of answers, in no log"),
    CatalogRow("T²PO", "2605.02178", "not computable", note="it decides what to sample again; it has no advantage"),
    CatalogRow(
        "Orchestration traces", "2605.02801", "not computable", note="the first survey; its format is read here"
    ),
    CatalogRow(
        "A²TGPO", "2605.06200", "channel", "mt_grpo", _rewards("information gains") + "; its rescaling is not here"
    ),
    CatalogRow("A³ (CLI agents)", "2605.08013", "not computable", note="its residuals were not found in public code"),
    CatalogRow("Rubric-Grounded RL", "2605.08061", "channel", "grpo", "criteria of the rubric as channels"),
    CatalogRow(
        "In-context credit via the core",
        "2605.06920",
        "not computable",
        note="of contributors to a text, not of a policy; a game's Shapley values are `credit shapley`",
    ),
    CatalogRow("PivoARL", "2607.03702", "needs", "difference_reward", "re-runs from the pivotal turn: `credit replay`"),
    CatalogRow("ΔBelief-RL", "2602.12342", "channel", "mt_grpo", _rewards("changes of the target's log-probability")),
    CatalogRow("OWL", "2505.23885", "not computable", note="its planner is trained on demonstrations and pairs"),
    CatalogRow("CoMAS", "2510.08529", "channel", "reinforce_pp", _rewards("its judge's rewards of interactions")),
    CatalogRow("ReMA", "2503.09501", "channel", "dr_mas", "the rewards of its two levels, at the events of each agent"),
    CatalogRow("HALO", "2505.13516", "not computable", note="a search over prompts at test time; nothing is trained"),
    CatalogRow(
        "ParaManager",
        "2604.17009",
        "channel",
        "grpo",
        "success, protocol, diversity and efficiency as channels; the weights were not found in public code",
    ),
    CatalogRow(
        "AgentSpawn", "2602.07072", "not computable", note="an architecture that spawns by rules; nothing is trained"
    ),
    CatalogRow(
        "MAGIC", "2602.01539", "channel", "spiral_rae", "the rewards of its two sides, at the events of each agent"
    ),
    CatalogRow("LAMO", "2604.13488", "channel", "grpo", "rewards of roles as channels; their forms were not found"),
    CatalogRow("SAGE", "", "channel", "rllm_prpo", "the rewards of its roles, at the events of each"),
    CatalogRow(
        "MAE (Multi-Agent Evolve)", "2510.23595", "channel", "rllm_prpo", "rewards of proposer, solver and judge"
    ),
    CatalogRow(
        "CollabUIAgents",
        "2502.14496",
        "not computable",
        note="its critic's scores make pairs for DPO; the scores themselves can be a judgement file",
    ),
    CatalogRow("Debate-as-Reward", "2604.16723", "runs", "dr_grpo", "on the verdict of its debate as outcome"),
    CatalogRow(
        "Learning to Deliberate",
        "2509.03817",
        "not computable",
        note="SoftRankPO takes normal quantiles of the ranks of rewards, a form that is not here",
    ),
    CatalogRow(
        "MARTI-MARS2", "2602.07848", "needs", "spo_tree", "siblings of its tree; its shaping of paths is not here"
    ),
)
"""Every row, in the order of the surveys."""
