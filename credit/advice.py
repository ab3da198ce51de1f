"""Which methods some logs call for: a decision tree whose questions are answered by the logs' own evidence.

For each unit that credit can attach to, the tree asks whether the logs have such units, and which method their evidence
allows: an increment that was measured (siblings, values) before a return, a return before a factor, a factor before a
score. Then it recommends a command and tries it on the logs. A recommended command trains on numbers that are not all
zero, from methods whose policy gradient has no bias. `docs/choosing.md` has the tree.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from credit.advice_trial import Trial, try_advice, try_beside
from credit.bias_in_log import OnLog, on_log
from credit.methods.absent_outcomes import action_counts, found_instead, left_out, spoilt_rows
from credit.methods.availability import Availability, availability
from credit.methods.registry import METHODS
from credit.methods.running import optional_evidence, run_part
from credit.methods.survey_questions import Question, answer_questions
from credit.methods.units_apart import alike_in_log
from credit.replay.luck_share import luck_of_log
from credit.reports.corpus import survey
from credit.reports.own_outcomes import has_agent_outcomes, said_of_odd
from credit.reports.trace_returns import precision_notes
from credit.tables.batch_rows import Rows, as_traces
from credit.telling_apart import NOTHING_DISTINGUISHES, apart_by_events
from estimators.composition.increments import states_twice
from graphs.argument_kinds import checked_kinds
from graphs.distinct_columns import distinct_columns
from graphs.errors import CreditError, MissingColumnWarning
from graphs.event_graph import KINDS
from graphs.structure.host_ids import distinct
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["Advice", "Branch", "choose", "methods_to_read"]

BRANCHES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("team", ("rloo", "reinforce_batch")),
    ("orchestrator", ("c3", "gae", "coma", "puppeteer")),
    ("message", ("c3", "gae", "coma", "maporl")),
    ("tool", ("c3", "gae", "gigpo", "mt_grpo")),
    ("turn", ("gae", "turn_baseline", "mt_grpo")),
    ("agent", ("dr_mas", "hierarchical_grpo")),
    ("role", ("mgrpo",)),
    ("token", ("reinforce_pp",)),
)
"""For each unit, the methods to try, best first; one whose evidence some tasks lack comes behind the others."""

CENTRED = ("c3", "coma")
"""Methods of these whose claims have mean zero under the policy, as advantages by control variates need."""


NO_UNITS = "the logs have no such units to compare"

TRAINED_WITH: dict[str, str] = {
    "": "no published method, gae and turn_baseline among them, and no composition beat rloo on any of 8 tasks",
    "c3": "control with paid siblings learned less than rloo on 8 of 8 tasks at equal cost; siblings that are logged "
    "anyway were not compared",
    "coma": "control with the claims of a learned critic did not differ from rloo on any of 8 tasks",
}
"""What docs/training.md measured of advantages like the recommended ones, by the centred claim; "" for a baseline."""

TRAINED_ON = "exact teams of 12 decisions, 16 traces a step, Adam, area over 20 seeds; docs/training.md"


LITTLE, MUCH = 0.3, 0.6
"""Shares of luck up to which claims were measured to pay, and from which on nothing was sure to."""

CLAIMS_PAY = (
    "claims pay: credit.PosteriorSignal needed 0.25 to 0.92 times the events of rloo, in the median, where outcomes "
    "add up over 30 to 300 decisions and steps have 16 to 128 traces"
)
UNDECIDED = "that is too wide or too large for a recommendation: `credit plan --for luck` narrows it"
NEITHER = "neither claims nor re-runs pay for sure: credit.PosteriorSignal needed 0.26 to 1.42 times the events of rloo"
RERUNS = "re-runs that training pays for did not pay at 30 decisions, with or without luck (docs/training.md)"
"""What docs/training.md measured on tasks drawn by length and luck."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Branch(OnLog):
    """One unit of the tree, with what is known of its method's bias on the logs.

    Attributes:
      unit: what credit would attach to.
      stated: what the logs have of it, in words and counts.
      method: the first method that the logs allow; "" where they have no such unit, or allow none.
      why: what the method computes; or why there is none.
      needs: the methods before it, each with what it would need, or with why it is not used.
    """

    unit: str
    stated: str
    method: str = ""
    why: str
    needs: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Advice:
    """Recommended methods for some logs.

    Attributes:
      branches: one a unit.
      questions: those of the survey's decision figure, with answers.
      baseline: the method that supplies the total, "" where none gives a number other than 0.
      compose: methods whose results are claims on increments, for a ledger.
      luck: the share of the variance of outcomes that no decision explains, and what pays at it; or why it is unknown.
      warnings: what keeps these logs from giving a training signal.
      inputs: the paths and reading options of the commands.
      trial: which advantages the training command writes, and their effect on these logs.
    """

    branches: tuple[Branch, ...]
    questions: tuple[Question, ...]
    baseline: str
    compose: tuple[str, ...]
    luck: str
    warnings: tuple[str, ...]
    inputs: tuple[str, ...] = ("PATH...",)
    trial: Trial = dataclasses.field(default_factory=Trial)

    @property
    def command(self) -> str:
        """The command that writes advantages to train on; "" where no number other than 0 is known to be unbiased."""
        if self.trial.method == "control":
            return self._control
        return "" if self.trial.unless else self._assign

    @property
    def command_if_not(self) -> str:
        """The command to train with if what `trial.unless` says is not so; "" where it says nothing."""
        return self._assign if self.trial.unless else ""

    @property
    def command_if_so(self) -> str:
        """The command to train with if `trial.question` is answered with yes; "" without a question."""
        if not self.trial.question:
            return ""
        return self._control + "".join(f" --decided-before {name}" for name in self.trial.claims)

    @property
    def trained_with(self) -> str:
        """The result of the stored comparison of training signals for such advantages; "" without one."""
        if self.baseline != "rloo":
            return ""
        claim = self.trial.claims[0] if self.trial.method == "control" else ""
        return f"{TRAINED_WITH[claim]} ({TRAINED_ON})"

    @property
    def report(self) -> str:
        """The command that writes a ledger to read, with all claims; "" where there are none."""
        if not self.trial.effect_of_report:
            return ""
        return f"credit compose {self._logs} {self._methods(self.compose)} -o ledger.parquet"

    @property
    def commands(self) -> tuple[tuple[str, str, str], ...]:
        """Every command to run on the logs: what it is for, itself, and its effect on the logs as it was tried."""
        rows = (
            ("to train", self.command, self.trial.effect),
            ("then to train", self.command_if_not, self.trial.effect),
            ("if it was", self.command_if_so, self.trial.effect_if_so),
            *(
                (f"or, if {one.provided}" if one.provided else "or", self._assign_by(one.method), one.effect)
                for one in self.trial.beside
                if one.method != self.trial.method
            ),
            ("to read", self.report, self.trial.effect_of_report),
        )
        return tuple(row for row in rows if row[1])

    @property
    def _control(self) -> str:
        return (
            f"credit compose {self._logs} {self._methods(self.trial.claims)} -o ledger.parquet "
            "--advantage control --advantages-to advantages.parquet"
        )

    @property
    def _assign(self) -> str:
        return self.trial.method and self._assign_by(self.trial.method)

    def _assign_by(self, method: str) -> str:
        return f"credit assign {self._logs} --method {method} -o advantages.parquet"

    def _methods(self, claims: Sequence[str]) -> str:
        return f"--methods {','.join([self.baseline, *claims])}"

    @property
    def _logs(self) -> str:
        return " ".join(text if text == "PATH..." else shlex.quote(text) for text in self.inputs)

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        derived = {
            "command": self.command,
            "command_if_so": self.command_if_so,
            "command_if_not": self.command_if_not,
            "report": self.report,
            "trained_with": self.trained_with,
        }
        return dataclasses.asdict(self) | derived


@checked_kinds()
def choose(traces: Traces | Rows, *, inputs: Sequence[str] = ("PATH...",)) -> Advice:
    """Recommend methods for some logs by the evidence that they hold, and try the training command on them.

    Args:
      traces: what was read, or the `Rows` of `credit.from_columns`.
      inputs: the paths and reading options that the recommended commands get.

    Returns:
      `Advice`: a `Branch` for each unit with the method to use, answers to the survey's questions, and two commands:
      `command` writes advantages to train on, `report` writes a ledger to read. `trial` states the command's effect.

    Raises:
      CreditError: `traces` is neither.

    Examples:
      >>> import credit, json, pathlib, tempfile
      >>> event = {"id": "e", "type": "message", "agent": "solver"}
      >>> logs = [{"trace_id": str(i), "task_id": "q", "events": [event], "rewards": {"team": i}} for i in range(2)]
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     log = pathlib.Path(folder, "log.jsonl")
      ...     _ = log.write_text(chr(10).join(map(json.dumps, logs)))
      ...     traces = credit.read(log)
      >>> credit.choose(traces, inputs=["log.jsonl"]).command
      'credit assign log.jsonl --method rloo -o advantages.parquet'
    """
    traces = as_traces(traces)
    branches, baseline, compose = _recommended(traces)
    allowed = {branch.method: branch for branch in branches if branch.method}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingColumnWarning)  # of methods that nobody asked for; the branches say it
        controls = _controls(traces)
        trial = try_advice(traces, baseline, compose, controls, allowed)
        beside, refused = try_beside(traces)
        trial = dataclasses.replace(trial, beside=beside, refused={**trial.refused, **refused})
    return Advice(
        branches=branches,
        questions=tuple(_on_these_logs(question, allowed) for question in answer_questions(traces)),
        baseline=baseline,
        compose=compose,
        luck=_luck(traces),
        warnings=tuple(_warnings(traces, (*compose, *trial.claims), controls)),
        inputs=tuple(inputs),
        trial=trial,
    )


def _on_these_logs(question: Question, allowed: Mapping[str, Branch]) -> Question:
    """A question with what these logs leave open of the bias of methods that its advice names."""
    named = [allowed[name] for name in allowed if re.search(rf"\b{name}\b", question.advice)]
    doubts = (f"; on these logs {of.method} may be biased: {of.but}" for of in named if of.unbiased is None)
    return dataclasses.replace(question, evidence="".join([question.evidence, *doubts]))


def methods_to_read(traces: Traces) -> tuple[str, ...]:
    """The methods of the ledger that `choose` recommends to read, the baseline first; "rloo" where it recommends none.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> methods_to_read(rows.traces)
      ('rloo',)
    """
    _, baseline, claims = _recommended(traces)
    return tuple(filter(None, (baseline, *claims))) or ("rloo",)


def _recommended(traces: Traces) -> tuple[tuple[Branch, ...], str, tuple[str, ...]]:
    """The branches, and of a ledger to read the baseline and the claims."""
    states = availability(traces)
    branches = tuple(_branch(traces, unit, methods, states) for unit, methods in BRANCHES)
    baseline = branches[0].method
    methods = [name for name in dict.fromkeys(branch.method for branch in branches) if name]
    claims = [
        name
        for name in methods
        # An increment, or a return by values of what was chosen: a ledger takes no other.
        if (METHODS[name].estimand == "increment" or "value" in METHODS[name].needs) and not _of_turns(traces, name)
    ]
    if not claims and _pays_events(traces):
        claims = [name for name in methods if name == "turn_baseline"]
    return branches, baseline, tuple(claims)


def _controls(traces: Traces) -> dict[str, OnLog]:
    """The methods whose claims `control` may take, whichever a branch prefers, and what is known of them."""
    states = availability(traces)
    return {name: on_log(traces, name, control=True) for name in CENTRED if states[name].state == "computable"}


def _of_turns(traces: Traces, name: str) -> bool:
    """Whether siblings give all actions of a joint turn the turn's number, which no sum over a trace can hold."""
    return "context" in METHODS[name].needs and bool(states_twice(traces.graph, run_part(traces, name)))


def _luck(traces: Traces) -> str:
    """What the share of luck is, and what paid at such a share."""
    try:
        found = luck_of_log(traces)
    except CreditError as error:
        return f"unknown: {error}"
    if found.high <= LITTLE:
        pays = CLAIMS_PAY
    elif found.low >= MUCH and found.given == "every decision":
        pays = NEITHER
    else:
        pays = UNDECIDED
    return f"{found}. {pays}; {RERUNS}"


def _branch(traces: Traces, unit: str, methods: tuple[str, ...], states: dict[str, Availability]) -> Branch:
    stated, has_units = UNITS[unit](traces)
    if not has_units:
        why = "no trace has an outcome" if unit == "team" else NO_UNITS
        return Branch(unit=unit, stated=stated, why=why)
    needs: dict[str, str] = {}
    lacking: dict[str, str] = {}
    for name in methods:
        state = states[name]
        why = state.why if state.state != "computable" else _too_little(traces, name)
        if why:
            needs[name] = why
            continue
        lacking[name] = _lacking(traces, name)
        if not lacking[name]:
            break
    if not lacking:
        return Branch(unit=unit, stated=stated, why="the logs allow none of its methods", needs=needs)
    name = min(lacking, key=lambda name: bool(lacking[name]))  # the first of those that lack something, or nothing
    needs |= {other: why for other, why in lacking.items() if other != name}
    method, found = METHODS[name], on_log(traces, name, control=name in CENTRED)
    bias = "no bias" if found.unbiased else "unbiased under control" if name in CENTRED else "biased"
    bias = f"may be biased: {found.but}" if found.unbiased is None else bias
    by = f", by {found.by}" if found.by else ""
    unused = [key for key in optional_evidence(name) if key in traces.evidence]
    more = [f"takes {', '.join(unused)} with --evidence"] if unused else []
    some = "; ".join([f"{method.summary}{by} ({method.estimand}; {bias})", *filter(None, [lacking[name]]), *more])
    return Branch(unit=unit, stated=stated, method=name, why=some, needs=needs, **vars(found))


def _lacking(traces: Traces, name: str) -> str:
    """What a method needs and whole groups lack, in words; siblings aside, which are drawn at single decisions."""
    graph, actions = traces.graph, _actions(traces)
    group = np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)]
    groups = distinct(group[actions])
    words = []
    for need in METHODS[name].needs if name != "c3" else ():
        mask = np.asarray(traces.evidence[need].mask)
        with_it = distinct((group if len(mask) == len(group) else np.asarray(graph.group_ids))[mask])
        without = len(groups) - int(np.isin(groups, with_it).sum())
        words += [f"{without} of {counted(len(groups), 'group')} have no {need}"] if without else []
    return "; ".join(words)


def _too_little(traces: Traces, name: str) -> str:
    """Why logged evidence does not suffice."""
    for column, alike in alike_in_log(traces, METHODS[name].columns).items():
        return f"compares by the {column}, and {alike}"
    if name == "rloo" and has_agent_outcomes(traces) and _repeated_names(traces):
        return "a trace has several agents of one name, which enter each other's baseline"
    if name == "mt_grpo" and "event_reward" not in traces.evidence:
        return "no rewards at events: all turns of a trace have its outcome's number alone"
    return ""


def _repeated_names(traces: Traces) -> bool:
    """Whether a trace has two agent instances of one name."""
    graph, n = traces.graph, traces.sizes.agents
    pairs = distinct_columns(np.asarray(graph.agent_trace)[:n], np.asarray(graph.agent_name_ids)[:n])
    return len(pairs.first) < n


def _actions(traces: Traces) -> np.ndarray:
    return np.flatnonzero(np.asarray(traces.graph.action_mask) & np.asarray(traces.graph.event_mask))


def _team(traces: Traces) -> tuple[str, bool]:
    corpus = survey(traces)
    scored = corpus.traces - len(corpus.unscored) - len(corpus.odd)
    of_agents = f", of agents in {corpus.of_agents}" if corpus.of_agents and not corpus.odd else ""
    words = (
        f"{scored} of {counted(corpus.traces, 'trace')} with an outcome{of_agents}; "
        f"{corpus.teaching} of {counted(corpus.groups, 'group')} with different ones"
    )
    return words, scored > 0


def _of_kind(kind: str) -> Callable[[Traces], tuple[str, bool]]:
    def count(traces: Traces) -> tuple[str, bool]:
        types = np.asarray(traces.graph.event_type)[_actions(traces)]
        number = int(np.isin(types, [int(t) for t in KINDS[kind]]).sum())
        return f"{number} of {counted(len(types), 'action')}", number > 0

    return count


def _turns(traces: Traces) -> tuple[str, bool]:
    actions, joint = _actions(traces), traces.graph.joint_mask
    ends = actions if joint is None else actions[~np.asarray(joint)[actions]]  # a joint turn is one, as to methods
    turns, used = (
        len(distinct(np.asarray(traces.graph.turn_ids)[ends])),
        len(distinct(np.asarray(traces.graph.trace_ids)[actions])),
    )
    return f"{counted(turns, 'turn')} with an action in {counted(used, 'trace')}", turns > used


def _acting(column: str) -> Callable[[Traces], tuple[str, bool]]:
    """Names or roles that act; several of them in some trace are needed to tell them apart."""

    def count(traces: Traces) -> tuple[str, bool]:
        graph, actions = traces.graph, _actions(traces)
        ids = np.asarray(graph.agent_name_ids if column == "name" else graph.agent_role_ids)
        agent = np.asarray(graph.agent_ids)[actions]
        pairs = distinct_columns(np.asarray(graph.trace_ids)[actions], ids[agent]).columns
        most = int(np.bincount(pairs[0]).max(initial=0))
        word = "agent name" if column == "name" else "role"
        return f"{counted(len(np.unique(pairs[1])), word)} with an action, at most {most} in a trace", most > 1

    return count


def _tokens(traces: Traces) -> tuple[str, bool]:
    tokens = traces.evidence.get("tokens")
    number = 0 if tokens is None else int(tokens.mask[_actions(traces)].sum())
    return f"tokens generated are logged for {number} of {counted(len(_actions(traces)), 'action')}", number > 0


UNITS: dict[str, Callable[[Traces], tuple[str, bool]]] = {
    "team": _team,
    "orchestrator": _of_kind("orchestrator"),
    "message": _of_kind("message"),
    "tool": _of_kind("tool"),
    "turn": _turns,
    "agent": _acting("name"),
    "role": _acting("role"),
    "token": _tokens,
}
"""For each unit, what the logs have of it, and whether that is enough to tell units apart."""


def _pays_events(traces: Traces) -> bool:
    """Whether the reward of any event differs from 0."""
    rewards = traces.evidence.get("event_reward")
    return rewards is not None and bool(np.any(rewards.array[rewards.mask] != 0))


def _warnings(traces: Traces, claims: Sequence[str], controls: Collection[str]) -> list[str]:
    corpus = survey(traces)
    lines = []
    if len(corpus.unscored) == corpus.traces:
        instead = "".join(f"; {text}" for text in (spoilt_rows(traces.problems), found_instead(traces)) if text)
        lines.append(f"no trace has an outcome: pass --rewards FILE or --reward-channel NAME{instead}")
    elif not corpus.teaching:
        lost = "; ".join(dict.fromkeys(corpus.unresolved.values()))
        what = f"a difference of outcomes that methods see ({lost})" if lost else "traces of different outcomes"
        lines.append(f"no group has {what}: group-relative advantages are 0 or refused everywhere")
    elif corpus.teaching < corpus.groups:
        silent = f"{corpus.groups - corpus.teaching} of {corpus.groups}"
        lines.append(f"groups without a training signal: {silent}; `credit validate` names them")
    lines += precision_notes(traces) if corpus.teaching else []
    far = ", ".join(f"{name} ({ranges})" for name, ranges in corpus.far.items())
    lines += [f"evidence far from outcomes, as numbers in another unit are: {far}"] if far else []
    lost = "" if has_agent_outcomes(traces) else left_out(action_counts(traces))
    lines += filter(None, [lost, said_of_odd(corpus.odd, corpus.traces)])
    if any(note.kind == "several-versions" for note in traces.problems):
        lines.append(
            "traces of an older policy_version train a newer policy only where the loss weighs them by its ratio"
        )
    by_events = _pays_events(traces) and not set(claims) - {"turn_baseline"}
    if claims and not by_events and not set(claims) & set(CENTRED):
        lines.append(
            f"{', '.join(claims)}: claims are right only where the logged values are right; the ledger is for reading"
        )
    apart = apart_by_events(traces) if by_events else []
    if apart:
        use = "use them" if len(apart) > 1 else "uses them"
        lines.append(
            f"only rewards at events tell the actions of a trace apart, by what came after each: {' and '.join(apart)} "
            f"{use}; siblings or values would say more"
        )
    elif by_events:
        lines.append(
            "rewards at events tell no actions of a trace apart by discounted_return or turn_baseline; log siblings or "
            "values"
        )
    elif not claims and not controls and not has_agent_outcomes(traces):
        lines.append(f"{NOTHING_DISTINGUISHES}; log siblings or values")
    return lines
