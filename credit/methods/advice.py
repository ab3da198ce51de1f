"""Which methods some logs call for: a decision tree whose questions are answered by the logs' own evidence.

The tree asks, for each unit that credit can attach to, whether the logs have such units, and then for the best number
that their evidence allows, in this order: an increment that was measured (siblings, values), a return, a factor, a
score. A question is answered with counts, an answer that needs more says how to log it. `docs/choosing.md` has the
tree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from credit.methods.availability import Availability, availability
from credit.methods.registry import METHODS
from credit.reports.corpus import survey
from graphs.errors import expect
from graphs.event_graph import KINDS
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["Advice", "Branch", "choose"]

BRANCHES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("team", ("rloo", "reinforce_batch", "moving_average")),
    ("orchestrator", ("c3", "gae", "coma", "puppeteer")),
    ("message", ("c3", "gae", "coma", "maporl")),
    ("tool", ("c3", "gae", "gigpo", "mt_grpo")),
    ("turn", ("gae", "turn_baseline", "mt_grpo")),
    ("agent", ("dr_mas",)),
    ("role", ("mgrpo",)),
    ("token", ("reinforce_pp",)),
)
"""For each unit, the methods to try, best first."""

CENTRED = ("c3", "coma")
"""Methods of these whose claims have mean zero under the policy, as advantages by control variates need."""


@dataclasses.dataclass(frozen=True)
class Branch:
    """One unit of the tree.

    Attributes:
      unit: what credit would attach to.
      found: what the logs have of it, in words and counts.
      method: the first method that the logs allow; "" where they have no such unit, or allow none.
      why: why that one; or why none.
      needs: the methods before it, each with what it would need.
    """

    unit: str
    found: str
    method: str
    why: str
    needs: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to run on some logs.

    Attributes:
      branches: one a unit.
      baseline: the method that supplies the total, "" where none can.
      compose: methods whose results are claims on increments: what `credit compose --methods` should be given after the
        baseline.
      scale: a method whose factor to apply last, "" for none.
      warnings: what keeps these logs from teaching.
    """

    branches: tuple[Branch, ...]
    baseline: str
    compose: tuple[str, ...]
    scale: str
    warnings: tuple[str, ...]

    @property
    def command(self) -> str:
        """The call that follows from it, without paths; "" where nothing can be computed."""
        if not self.baseline:
            return ""
        if not self.compose:
            return f"credit assign PATH... --method {self.scale or self.baseline} -o advantages.parquet"
        scale = f" --scale {self.scale}" if self.scale else ""
        kind = "control" if set(self.compose) & set(CENTRED) else "entry"
        methods = ",".join(dict.fromkeys([self.baseline, *self.compose, *([self.scale] if self.scale else [])]))
        return (
            f"credit compose PATH... --methods {methods} -o ledger.parquet "
            f"--advantage {kind} --advantages-to advantages.parquet{scale}"
        )

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        return dataclasses.asdict(self) | {"command": self.command}


def choose(traces: Traces) -> Advice:
    """Go through the tree with the evidence of some logs; nothing is computed but counts."""
    expect("traces", traces, Traces, "what credit.read returns")
    states = availability(traces)
    branches = tuple(_branch(traces, unit, methods, states) for unit, methods in BRANCHES)
    by_unit = {branch.unit: branch for branch in branches}
    claims = [b.method for b in branches if b.method and METHODS[b.method].estimand in ("increment", "return")]
    strong = [name for name in dict.fromkeys(claims) if name != "turn_baseline"]
    baseline = by_unit["team"].method
    return Advice(
        branches=branches,
        baseline=baseline,
        compose=tuple(strong) if baseline else (),
        scale=by_unit["agent"].method,
        warnings=tuple(_warnings(traces, strong)),
    )


def _branch(traces: Traces, unit: str, methods: tuple[str, ...], states: dict[str, Availability]) -> Branch:
    found, there = UNITS[unit](traces)
    if not there:
        return Branch(unit, found, "", "there is no such unit to tell apart", {})
    needs: dict[str, str] = {}
    for name in methods:
        if name not in METHODS:
            continue
        state = states[name]
        why = state.why if state.state != "computable" else _too_little(traces, name)
        if not why:
            kind = METHODS[name].estimand
            return Branch(unit, found, name, f"{METHODS[name].summary} ({kind})", needs)
        needs[name] = why
    return Branch(unit, found, "", "the logs allow none of its methods", needs)


def _too_little(traces: Traces, name: str) -> str:
    """Why evidence that is there is not enough."""
    if name == "c3" and not _siblings(traces):
        return "no context has two alternatives: sample siblings of an action from the same frozen prompt"
    if name == "mt_grpo" and "event_reward" not in traces.evidence:
        return "no rewards at events: without them every turn of a trace has the outcome alone"
    return ""


def _siblings(traces: Traces) -> int:
    """Actions whose context has another alternative."""
    context, node = traces.evidence["context"], traces.evidence["node"]
    there = context.mask & node.mask & np.asarray(traces.graph.action_mask)
    pairs = np.unique(np.stack([context.array[there], node.array[there]]), axis=1)
    several = np.unique(pairs[0])[np.unique(pairs[0], return_counts=True)[1] > 1]
    return int(np.isin(context.array[there], several).sum())


def _actions(traces: Traces) -> np.ndarray:
    return np.flatnonzero(np.asarray(traces.graph.action_mask) & np.asarray(traces.graph.event_mask))


def _team(traces: Traces) -> tuple[str, bool]:
    found = survey(traces)
    scored = found.traces - len(found.unscored)
    words = (
        f"{scored} of {counted(found.traces, 'trace')} with an outcome; "
        f"{found.teaching} of {counted(found.groups, 'group')} with different ones"
    )
    return words, scored > 0


def _of_kind(kind: str) -> Callable[[Traces], tuple[str, bool]]:
    def count(traces: Traces) -> tuple[str, bool]:
        types = np.asarray(traces.graph.event_type)[_actions(traces)]
        number = int(np.isin(types, [int(t) for t in KINDS[kind]]).sum())
        return f"{number} of {counted(len(types), 'action')}", number > 0

    return count


def _turns(traces: Traces) -> tuple[str, bool]:
    actions = _actions(traces)
    turns, used = (
        len(np.unique(np.asarray(traces.graph.turn_ids)[actions])),
        len(np.unique(np.asarray(traces.graph.trace_ids)[actions])),
    )
    return f"{counted(turns, 'turn')} with an action in {counted(used, 'trace')}", turns > used


def _acting(column: str) -> Callable[[Traces], tuple[str, bool]]:
    """Names or roles that act; several of them in some trace are needed to tell them apart."""

    def count(traces: Traces) -> tuple[str, bool]:
        graph, actions = traces.graph, _actions(traces)
        ids = np.asarray(graph.agent_name_ids if column == "name" else graph.agent_role_ids)
        pairs = np.unique(np.stack([np.asarray(graph.trace_ids), ids[np.asarray(graph.agent_ids)]])[:, actions], axis=1)
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


def _warnings(traces: Traces, claims: list[str]) -> list[str]:
    found = survey(traces)
    lines = []
    if len(found.unscored) == found.traces:
        lines.append("no trace has an outcome: pass --rewards FILE or --reward-channel NAME")
    elif not found.teaching:
        lines.append(
            "no group has traces of different outcomes: what compares within groups is 0 or refused everywhere"
        )
    elif found.teaching < found.groups:
        silent = f"{found.groups - found.teaching} of {found.groups}"
        lines.append(f"groups that teach nothing: {silent}; `credit validate` names them")
    if claims and not set(claims) & set(CENTRED):
        lines.append(
            f"{', '.join(claims)}: not centred under the policy, so that `--advantage control` would leave it out and "
            "give the baseline's numbers; `--advantage entry` has its information, and its bias where it is wrong"
        )
    if not claims:
        lines.append(
            "no evidence tells the actions of a trace apart: every method here broadcasts the outcome, or splits it "
            "by a rule that looks at no action. Splitting without new information gains nothing; log siblings or values"
        )
    return lines
