"""Which traces have the same models, agent by agent.

What a model does is told from what else changed only between traces of both sides with the same models. An agent that a
run did not reach has a model, too, which that run does not tell: neither another one nor none. To take the traces in
which a model acts leaves out, where one more agent has it on one side, just the runs that were cut short on the other.
An agent in whose place another acts, which never acts beside it, has none there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from graphs.traces.batch import Traces
from graphs.traces.event_models import first_models, trace_models

__all__ = ["SameModels", "same_models"]

ONE = ""
"""In place of an agent: the model of a trace whose agents all have one."""


@dataclasses.dataclass(frozen=True)
class SameModels:
    """Traces by the models of their agents: those whose models vary, and those that act in the place of one.

    Attributes:
      names: of each set of models, by these agents, else by all models.
      kind: the set of models that each trace has, -1 where several fit: int [traces].
      team: a number for traces that have agents in common, or no agent of several models, -1 where none acts: int
        [traces].
      models: of each trace the model with which each of these agents first acts.
    """

    names: tuple[str, ...]
    kind: np.ndarray
    team: np.ndarray
    models: tuple[dict[str, str], ...]

    def swapped(self, side: np.ndarray, team: int) -> list[str]:
        """The agents of a team that have no model on both sides."""
        of_side: tuple[dict[str, set[str]], dict[str, set[str]]] = {}, {}
        for row in np.flatnonzero((self.team == team) & (side >= 0)).tolist():
            for agent, model in self.models[row].items():
                of_side[side[row]].setdefault(agent, set()).add(model)
        first, second = of_side
        return sorted(agent for agent in first.keys() & second.keys() if not first[agent] & second[agent])

    def unseen(self, rows: np.ndarray) -> list[str]:
        """The agents of a team of these traces whose models are not known in some of them."""
        every = [{agent for row in np.flatnonzero(self.team == team) for agent in self.models[row]}
                 for team in range(self.team.max(initial=-1) + 1)]  # fmt: skip
        return sorted({agent for row in rows.tolist() if (team := self.team[row]) >= 0
                       for agent in every[team] - self.models[row].keys()})  # fmt: skip


def same_models(traces: Traces) -> SameModels:
    """The sets of models that teams have.

    A trace has the set with which the first models of its agents agree: with which an agent goes on may depend on how
    it went. Agents whose models do not vary in their team tell nothing. Where several sets agree, as an agent whose
    models vary did not act, nor another in its place, the trace's own is not known.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> records = [TraceRecord(name, "q", "log.jsonl", instances={"a": Agent(), "b": Agent()}) for name in "stu"]
      >>> for record, models in zip(records, ("lm", "kn", "k")):
      ...     for agent, model in zip("ab", models):
      ...         _ = record.event(agent, 3, agent, action=True, model=model)
      >>> found = same_models(assemble(records))
      >>> found.names, found.kind.tolist(), found.swapped(np.array([0, 1, 1]), 0)
      (('a: k, b: n', 'a: l, b: m'), [1, 0, 0], ['a', 'b'])
    """
    found, told = first_models(traces), trace_models(traces)
    by_name = {agent for of, its in zip(found, told, strict=True) if len(its) > 1 for agent in of}
    for row, of in enumerate(found):
        if not by_name & of.keys() and (of or not by_name):
            found[row] = {ONE: next(iter(told[row]))} if told[row] else {}
    teams = _joined(frozenset(of) for of in found if of)
    place = {agent: number for number, team in enumerate(teams) for agent in team}
    of_team = np.array([place[next(iter(of))] if of else -1 for of in found], np.int64)
    kinds: list[str] = []
    kind = np.full(len(found), -1)
    for number in range(len(teams)):
        rows = np.flatnonzero(of_team == number).tolist()
        every, beside = dict[str, set[str]](), dict[str, set[str]]()
        for of in (found[row] for row in rows):
            for who, its in of.items():
                every.setdefault(who, set()).add(its)
                beside.setdefault(who, set()).update(of)
        varying = {who for who, of in every.items() if len(of) > 1}
        varying |= {who for who in every if varying - beside[who]}
        of_rows: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for row in rows:
            found[row] = {who: its for who, its in sorted(found[row].items()) if who in varying}
            of_rows.setdefault(tuple(found[row].items()), []).append(row)
        sure = [of for of in sorted(of_rows) if len(of) == len([who for who in varying if {*dict(of)} <= beside[who]])]
        whole = {of: i for i, of in enumerate(sure)}
        for part, its_rows in of_rows.items():
            fits = [whole[part]] if part in whole else [i for of, i in whole.items() if {*part} <= {*of}]
            kind[its_rows] = len(kinds) + fits[0] if len(fits) == 1 else -1
        label = " + ".join(sorted(set().union(*every.values())))
        kinds += [", ".join(f"{who}: {its}" if who else its for who, its in of) or label for of in whole]
    return SameModels(tuple(kinds), kind, of_team, tuple(found))


def _joined(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Sets of which none has an element of another one: those that share some are one."""
    found: list[frozenset[str]] = []
    for one in dict.fromkeys(sets):
        found = [of for of in found if not of & one] + [one.union(*(of for of in found if of & one))]
    return found
