"""Published methods under their authors' names: the method that computes each, its status, and what logs cannot give.

`METHODS` holds functions; this table holds names. A name of a paper leads to a function of `METHODS` (with the options
that make it the paper's), or says why no log allows one and which piece of it can be used. `find_method` knows both.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from credit.methods.own_functions import is_own, own_method, own_name
from graphs.errors import CreditError, expect

if TYPE_CHECKING:
    from credit.methods.method_row import Method

__all__ = ["PUBLISHED", "Published", "find_method", "home_of", "is_named", "key_of"]

NOT_COMPUTABLE, NOT_FITTED = "not computable", "not fitted"


@dataclasses.dataclass(frozen=True)
class Published:
    """A method as its authors call it.

    Attributes:
      title: the name in the paper.
      method: the entry of `METHODS` that computes it; None where no log allows it.
      note: with a method, how sure it is and what differs; without one, why logs do not allow it.
      portable: the part of it that can be used here, and its place. Never empty without a method.
      function: the function that computes it, if it was published as something else than advantages; "" otherwise.
      kind: what those numbers are.
      needs: evidence of the log that `function` needs.
      fitted: False for a method that needs a model which this library does not fit.
      options: keyword arguments that make the function of `METHODS` this method.
      paper: what to cite, where no entry of `METHODS` has that paper.
      differs: fields of the entry that are others, as under the options.
    """

    title: str
    method: str | None
    note: str
    portable: str = ""
    function: str = ""
    kind: str = "a reward"
    needs: tuple[str, ...] = ()
    fitted: bool = True
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    paper: str = ""
    differs: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def status(self) -> str:
        """Its own or that of its entry in `METHODS`, "reconstructed" of a `function`, or why logs give none."""
        from credit.methods.registry import METHODS

        if self.method is not None:
            return str(self.differs.get("status", METHODS[self.method].status))
        if self.function:
            return "reconstructed"
        return NOT_COMPUTABLE if self.fitted else NOT_FITTED


def key_of(name: str) -> str:
    """A name as a key: "Dr. MAS" and "dr-mas" are `dr_mas`; "REINFORCE++" is `reinforce_pp`.

    Examples:
      >>> key_of("Dr. MAS"), key_of("REINFORCE++")
      ('dr_mas', 'reinforce_pp')
    """
    text = name.strip().lower().replace("++", " pp").replace(".", " ")
    return "_".join("".join(c if c.isalnum() else " " for c in text).split())


def find_method(name: str) -> Method:
    """The method of a name: a key of `METHODS`, a published name that one computes, or your own "module:function".

    Raises:
      CreditError: no method is called so (the nearest names are in the message), or no log allows it, with the reason
        and the piece that can be used.

    Examples:
      >>> find_method("Dr. MAS").reference
      'Dr. MAS, arXiv:2602.08847; Dr. MAS compute_grpo_outcome_advantage'
    """
    home = home_of(name)
    from credit.methods.registry import METHODS

    if is_own(home):
        return own_method(home)
    method, paper = METHODS[home], None if name in METHODS else PUBLISHED.get(key_of(name))
    if paper is None:
        return method
    reference = f"{paper.paper}; computed by {home}" if paper.paper else method.reference
    method = dataclasses.replace(method, reference=reference, **paper.differs)
    if not paper.options:
        return method
    fn, state = functools.partial(method.fn, **paper.options), method.state
    if state is not None:
        takes = inspect.signature(state).parameters
        state = functools.partial(state, **{name: paper.options[name] for name in paper.options if name in takes})
    return dataclasses.replace(method, fn=fn, state=state)


def home_of(name: str) -> str:
    """The key of `METHODS` that computes what a name says; the name itself of your own "module:function".

    Raises:
      CreditError: as `find_method`.

    Examples:
      >>> home_of("Turn-LOO"), home_of("Dr. MAS")
      ('rloo', 'dr_mas')
    """
    expect("name", name, str, "the name of a method, such as 'rloo'")
    from credit.methods.registry import METHODS

    if name in METHODS or is_own(name):
        return own_name(name)
    key = key_of(name)
    if key in PUBLISHED:
        paper = PUBLISHED[key]
        if paper.method is None:
            why = f"{paper.kind}, not a method" if paper.function else f"{paper.status} from logs"
            raise CreditError(
                f"method {name!r} ({paper.title}) is {why}: {paper.note}; what can be used: {paper.portable}"
            )
        return paper.method
    if key in METHODS:
        return key
    near = difflib.get_close_matches(key, dict.fromkeys([*METHODS, *PUBLISHED]), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`credit methods` lists them"
    raise CreditError(f"no method is called {name!r}; {hint}")


def is_named(name: str) -> bool:
    """Whether a method is called so, in `METHODS` or in `PUBLISHED`, computable or not.

    Args:
      name: in any spelling that `find_method` takes.

    Examples:
      >>> is_named("Turn-LOO"), is_named("QMIX"), is_named("rloo, twice")
      (True, True, False)
    """
    from credit.methods.registry import METHODS

    return not {name, key_of(name)}.isdisjoint({*METHODS, *PUBLISHED})


PUBLISHED: dict[str, Published] = {
    "shared_grpo": Published(
        "shared-outcome GRPO",
        "dr_mas",
        "golden `drmas_grpo`, its setting without agents: a trace is one sample and its number goes to every action",
        options={"by": None, "population": "trace"},
        paper="Shao et al. 2024, arXiv:2402.03300; Dr. MAS compute_grpo_outcome_advantage without agents",
        differs={"unit": "trace", "estimand": "total"},
    ),
    "magrpo": Published(
        "MAGRPO", "magrpo", "golden `comlrl_magrpo`; C3's baseline of the same name is another algorithm, `c3_magrpo`"
    ),
    "maporl": Published(
        "MAPoRL", "maporl", "golden `maporl_score_rule`; a verifier's verdicts are the rewards at events"
    ),
    "marft": Published(
        "MARFT",
        "gae",
        "golden `marft_action_gae`, before the normalisation of a minibatch: "
        "`estimators.baselines.released.marft_normalised`; "
        "the discount is applied once an agent action, not once a step",
        options={"discount": 0.99, "lambda_": 0.95},
        paper="MARFT 2025, arXiv:2504.16129",
    ),
    "dr_mas": Published("Dr. MAS", "dr_mas", "golden `drmas_grpo`: across the rollouts of a task, not within one"),
    "collm_maac": Published(
        "CoLLM-MAAC (CoLLM-CC)",
        "maac",
        "the one-step target and the division by the spread of an agent's turns in its buffer, read in "
        "`comlrl/trainers/actor_critic/maac.py`, not executed; `kind=q` is its critic of prompts and answers",
        options={"normalise": True},
        differs={"estimand": "scale"},
    ),
    "langmarl": Published(
        "LangMARL",
        None,
        "its critic answers in text and its update rewrites prompts: it has no number",
        "the critic's verdicts turned into numbers by their author, as scores of a judgement file (docs/judgements.md)",
        paper="Yao et al. 2026, arXiv:2604.00722",
    ),
    "malt": Published(
        "MALT",
        None,
        "offline: it labels the nodes of a tree of generations, verifications and refinements by the mean of their "
        "leaves, and trains on pairs, without an advantage; the tree must be logged",
        "the mean of the leaves below a node, `estimators.counterfactual.replays.subtree_values` with `context` "
        "and `node`",
        function="estimators.counterfactual.replays.subtree_values",
        kind="a label of nodes",
        needs=("context", "node"),
        paper="Motwani et al. 2024, arXiv:2412.01928",
    ),
    "matpo": Published(
        "MATPO",
        "matpo",
        "goldens `matpo_broadcast`, `matpo_reward`; no advantage of a role of its own: workers copy the planner's",
    ),
    "puppeteer": Published(
        "Puppeteer",
        "puppeteer",
        "golden `puppeteer_reinforce`: REINFORCE on an outcome with step costs, without the critic that surveys name; "
        "`cost_per_token` and `max_steps` are the run's own",
    ),
    "agent_q_mix": Published(
        "Agent Q-Mix",
        None,
        "it needs Q values of each agent and the weights of a mixer, which no log holds, and which is not fitted here",
        "its reward `estimators.counterfactual.factored.agent_qmix_reward` (golden), and `qmix`, `mixer_credit` "
        "on given values",
        fitted=False,
        paper="Jiang et al. 2026, arXiv:2604.00344",
    ),
    "m_grpo": Published(
        "M-GRPO",
        "mgrpo",
        "after a review of the paper, which was not read itself: eps and ddof are choices; what was released "
        "normalises sub-agents within blocks of arrival: `mrlx`, golden `mrlx_sub_reward`",
    ),
    "marsrl": Published(
        "MarsRL",
        None,
        "each role has a verifiable reward of its own at its stage (an answer is right; a verdict agrees with the "
        "truth of the answer it judges), normalised within the role; known from descriptions: no trainer was "
        "released, and its groups, ddof, eps and filters of samples are unknown",
        "the checks as rewards at events, one at every action (an absent one counts as 0), in the channel "
        "`channel(traces, 'event_reward', family='role')`, which leaves the team's outcome out; then `dr_mas` on its "
        "outcome and event_reward with `by=role_name`: a role's stages on one task are one group, whatever they read",
        function="credit.ledger.channel",
        needs=("event_reward",),
        paper="Liu et al. 2025, arXiv:2511.11373",
    ),
    "c3": Published(
        "C3",
        "c3",
        "golden `c3_provider`: siblings under one frozen context, against the mean of the others, before the "
        "division by their spread that is on by default there",
    ),
    "sharp": Published(
        "SHARP",
        None,
        "no public code, weights unknown: its reward is the outcome, each agent's marginal against a run in "
        "which its output is masked, and rewards of tools",
        "the channels of `credit.ledger.sharp` under any method (docs/channels.md); exact and sampled Shapley values"
        " in `estimators.shapley`",
        function="credit.ledger.sharp",
        needs=("counterfactual_reward",),
    ),
    "hera": Published(
        "HERA",
        None,
        "frozen models: experience and prompts are rewritten in text, and the form of its ranking was not published",
        "a ranking of sampled topologies, as scores of a judgement file (docs/judgements.md)",
    ),
    "kimi_parl": Published(
        "Kimi PARL",
        None,
        "the forms and schedules of r_parallel and r_finish were not published; sub-agents are frozen, so "
        "that only the main agent's actions are trained",
        "the channels of `credit.ledger.kimi_parl` with the weights that you name (docs/channels.md), and critical "
        "steps, `graphs.structure.critical_path.critical_steps`",
        function="credit.ledger.kimi_parl",
    ),
    "wideseek_r1": Published(
        "WideSeek-R1",
        "wideseek_r1",
        "golden `rlinf_wideseek`: all agents of a trace get one number; roles weigh in the loss only",
    ),
    "context_folding": Published(
        "Context-Folding (FoldGRPO)",
        "foldgrpo",
        "the paper's formula as another project quotes it; a third party's copy of the fork is `foldgrpo_fork` "
        "(golden)",
    ),
    "marshal": Published(
        "MARSHAL",
        "marshal",
        "as described; the release's own steps are `estimators.baselines.released.marshal_tokens`, goldens "
        "`marshal_turn_level`, "
        "`marshal_normalize_unique`",
    ),
    "depart": Published(
        "DEPART (HIMPO)",
        None,
        "no public code, and the abstract states no formula but a sum of dense rewards of roles and a sparse "
        "one of the task",
        "the channels of `credit.ledger.depart`, each with a ledger of its own (docs/channels.md)",
        function="credit.ledger.depart",
        needs=("event_reward",),
    ),
    "agent_lightning": Published(
        "Agent Lightning", "agent_lightning", "golden `agl_rollout_level`; before v1: `agent_lightning_rows`"
    ),
    "spiral": Published("SPIRAL (RAE)", "spiral_rae", "golden `spiral_rae`; the order of traces is that of the games"),
    "prime_rl_rae": Published(
        "RAE as prime-rl computes it",
        "spiral_rae",
        "golden: each agent's trace of an episode is a reward of its own, in the order of the batch",
        options={"population": "agent"},
        paper="SPIRAL, arXiv:2506.24119; prime-rl algo/rae.py at 559b447",
    ),
    "rloo": Published("RLOO", "rloo", "the formula; Dr. MAS' and verl's code are `dr_mas_rloo`, `verl_rloo` (goldens)"),
    "reinforce_pp": Published(
        "REINFORCE++", "reinforce_pp", "golden `drmas_rfpp`; with a baseline `drmas_rfpp_baseline`"
    ),
    "igpo": Published(
        "IGPO",
        "igpo",
        "golden `igpo`: a function of the authors' repository that nothing there calls, and not the paper's formula; "
        "the paper divides gains and outcomes by their spread in the group and then sums them, as `igrpo` does",
    ),
    "gigpo": Published("GiGPO", "gigpo", "golden `drmas_gigpo`, observations compared by equality"),
    "coma": Published(
        "COMA",
        "coma",
        "worked by hand in `coma_adv_by_hand`; `estimators.counterfactual.factored.coma_advantage` makes its two "
        "numbers of a critic's values of all alternatives; siblings sampled from the policy are `c3`",
    ),
    "qmix": Published(
        "QMIX",
        None,
        "it needs Q values of each agent, the state and the weights of a mixer, which no log holds; this library does "
        "not fit them",
        "`estimators.counterfactual.factored.qmix` and the slopes of `mixer_credit` on given values (golden "
        "`pymarl_qmix`)",
        fitted=False,
        paper="Rashid et al. 2018, arXiv:1803.11485",
    ),
    "skyrl_maxrl": Published(
        "MaxRL as SkyRL computes it",
        "max_rl",
        "SkyRL adds 1e-6 to the mean and keeps the raw reward of a group of one; prime-rl's is `max_rl`",
        options={"eps": 1e-6, "singleton": "raw"},
    ),
    "rllm_grpo": Published(
        "rLLM's GRPO",
        "dr_mas",
        "golden `rllm_grpo`: trajectories of a role on a task, ddof 0",
        options={"by": "role_name", "population": "trace", "ddof": 0},
        paper="rLLM: rllm-org/rllm trainer/algorithms/rl_algo.py at 9beb6e0",
        differs={"unit": "role"},
    ),
    "rllm_prpo": Published(
        "rLLM's PRPO",
        "rllm_reinforce_pp",
        "golden `rllm_reinforce_pp`: each trajectory of a role against the batch",
        options={"baseline": "batch"},
    ),
    "at_grpo": Published(
        "AT-GRPO",
        "at_grpo",
        "golden `at_grpo`: rows of one agent at one turn of a task. Where the best of several was copied on, "
        "later rows share a prefix that reward selected: their mean is that of the best, not of the policy",
    ),
    "turn_loo": Published(
        "Turn-LOO (AgentCreditBench)",
        "rloo",
        "golden `turn_loo`: rows at one step of a task against the traces that still act there; a step that one trace "
        "alone has keeps the return",
        options={"by": ("task", "step"), "population": "row", "singleton": "raw"},
        paper="AgentCreditBench: hectopascal/agent-credit-bench estimators/turn_loo.py",
        differs={"unit": "event", "estimand": "scale", "status": "released"},
    ),
    "dapo": Published(
        "DAPO",
        "grpo",
        "`grpo` without groups of equal outcomes, which its dynamic sampling draws anew; its clip, its loss over "
        "tokens and its price on length are the trainer's",
        options={"filters": "equal"},
        paper="Yu et al. 2025, arXiv:2503.14476",
        differs={"status": "reconstructed"},
    ),
    "mhgpo": Published(
        "MHGPO",
        "verl_grpo",
        "all agents' rows of a task in one group, as its paper describes; agents' penalties are rewards at events, and "
        "its ddof and eps are unknown: no code was found",
        paper="MHGPO 2025, arXiv:2506.02718",
        differs={"status": "reconstructed"},
    ),
    "otb": Published(
        "OTB (optimal token baseline)",
        None,
        "it needs each token's probability and the sum of squared probabilities at its place, and its numbers are of "
        "tokens, not events",
        "`estimators.tokens.baselines.otb` on arrays of rows and tokens (golden)",
        function="estimators.tokens.baselines.otb",
        kind="an advantage of tokens",
    ),
    "tir_otb": Published(
        "TIR-OTB",
        None,
        "as OTB, with positions counted over generated tokens only",
        "`estimators.tokens.baselines.otb` with `packed=True` (golden)",
        function="estimators.tokens.baselines.otb",
        kind="an advantage of tokens",
    ),
    "gdpo": Published(
        "GDPO",
        None,
        "it normalises each of several rewards within the task before it adds them; a method here has one reward",
        "`estimators.tokens.baselines.gdpo` on arrays of channels and rows, verl's (golden) or TRL's form; or a "
        "channel for each reward under `grpo`, whose ledgers are added with weights (docs/channels.md)",
        function="estimators.tokens.baselines.gdpo",
        kind="an advantage of rows with several rewards",
        paper="Liu et al. 2026, arXiv:2601.05242",
    ),
    "spa_rl": Published(
        "SPA-RL",
        None,
        "it learns a part of the outcome for each turn so that the parts add up to it, up to the fit, from features of "
        "turns that no log holds (MIT, `prm/` at ed20087)",
        "`estimators.critic.outcome_parts.outcome_parts` on features of your own, as a claim on increments without "
        "an error: a ledger shows what the parts leave unexplained; or parts of another model as rewards at events",
        function="estimators.critic.outcome_parts.outcome_parts",
        kind="a fitted claim",
    ),
    "sepo": Published(
        "SEPO (with CCPO)",
        "sepo",
        "golden `sepo`: two agents rate how credit or blame is split; the ratings are in the "
        "trainer's prompts, so a log must state them (`self_rating`)",
    ),
    "unitymas_o": Published(
        "UnityMAS-O",
        "unitymas_o",
        "golden `unitymas_o`: it pays the change of a turn's verdict to two or three agents at once; `credit audit` "
        "shows what is paid twice",
    ),
    "vineppo": Published(
        "VinePPO",
        "gae",
        "`gae` with λ = 0 on values that are means of re-runs from each state: `credit plan --for value`",
        options={"lambda_": 0.0},
        paper="Kazemnejad et al. 2024, arXiv:2410.01679",
        differs={"status": "reconstructed"},
    ),
    "spo_tree": Published(
        "SPO-tree",
        "c3",
        "siblings of nested contexts against the mean of all of them; the code can divide by the parent's spread, and "
        "drops edges whose score and gain in best of 4 cancel",
        options={"baseline": "mean"},
        paper="Guo et al. 2025, arXiv:2505.23564",
        differs={"status": "reconstructed"},
    ),
    "mappo": Published(
        "MAPPO",
        "gae",
        "`gae` along the trace on a centralised critic's values of the whole log (`value`)",
        options={"lambda_": 0.95},
        paper="Yu et al. 2021, arXiv:2103.01955",
    ),
    "ippo": Published(
        "IPPO",
        "gae",
        "`gae` along each agent's own actions on that agent's values (`value`)",
        options={"lambda_": 0.95, "along": "agent"},
        paper="de Witt et al. 2020, arXiv:2011.09533",
    ),
    "vdn": Published(
        "VDN",
        None,
        "it needs Q values of each agent; no log holds them, and this library does not fit them",
        "`estimators.counterfactual.factored.vdn`; its parts are the agents' values themselves",
        fitted=False,
        paper="Sunehag et al. 2017, arXiv:1706.05296",
    ),
}
