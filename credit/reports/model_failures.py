"""How often traces with each model failed, of the whole and of single agents, and with each system."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from credit.reports.compared_kinds import ComparedKinds, compared_kinds
from credit.reports.judged_traces import JudgedTraces, below_their_own
from credit.reports.tasks import task_ids
from graphs.dealing import dealt
from graphs.distinct_columns import distinct_columns
from graphs.task_means import LEVEL, fact_of, holm
from graphs.text import counted, natural_key, percent, printable
from graphs.traces.batch import Traces
from graphs.traces.event_models import agent_models

__all__ = ["FAMILIES", "ModelFailures", "OneModel", "model_failures", "named_agents", "within_systems"]

MOST = 10
"""Agents that are looked at, those of most traces, and names in a sentence."""
AGENTS = 3
"""Named of those that have the same models."""
FAMILIES = 3
"""Of causes, each with its part of the level: calls and ends, agents, and models of agents."""


class OneModel(NamedTuple):
    """How a model, or a system, did beside the others.

    Attributes:
      name: its name.
      failed, traces: how many of its traces failed, and of how many, in the tasks compared.
      share: the mean over these tasks of the part that failed, or, where no task is compared with itself, over
        systems of that of each, which weighs the harmonic mean of its tasks of each model (Mantel and Haenszel 1959);
        NaN of one that is in too few of them to be compared, and of all models where no system has two.
      tasks: how many these are.
      p: of the test that it fails as the others of the same tasks, corrected for how many there are: of models of
        agents, for all of these and for `FAMILIES`.
      alone: that p, not corrected.
      least: the least that it could have been, whatever the outcomes.
    """

    name: str
    failed: int
    traces: int
    share: float
    tasks: int
    p: float
    alone: float = 1.0
    least: float = 1.0


Models = tuple[OneModel, ...]


@dataclasses.dataclass(frozen=True)
class ModelFailures:
    """How often traces failed by model and by system, within tasks where any has both kinds.

    Attributes:
      models, systems: of traces in tasks that have all models compared, whether all of these end alike or not, by model
        (`OneModel`), within a side and system; likewise by system within a side, whatever its models. Empty where none
        fails more often than another. Where a trace failed beside others of its task, by the cut of the task.
      agents: the same of agents of `graphs.traces.event_models.agent_models`, by the model with which each first acts:
        its name and `models`, the largest difference first.
      used: with which of these each first acts, by its name and the row of the trace; of all by "" where no trace is of
        several, so that their models are those of traces.
      alike: the agents of each of these names: agents that have the same model wherever two of them act are one.
      within: whether traces of one task are compared; tasks are else.
      inside: of what traces are of several, "side", "system" or "side and system", so that models are compared within
        each; "" of none.
      failed: how these sentences begin.
      alone: of how many traces by which some may be in no such task; 0 where all compared are of one model and system.
      beside_own: whether numbers are compared among traces of one model and system, or relative to these.
    """

    models: Models = ()
    systems: Models = ()
    agents: tuple[tuple[str, Models], ...] = ()
    used: Mapping[str, Mapping[int, str]] = dataclasses.field(default_factory=dict)
    alike: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    within: bool = False
    inside: str = ""
    failed: str = ""
    alone: int = 0
    beside_own: bool = False

    def worst(self) -> list[tuple[str, OneModel]]:
        """Of each agent the model of which most traces failed, the surest first."""
        every = (*self.agents, ("", self.models)) if "" in self.used else self.agents
        known = ((agent, _known(models)) for agent, models in every)
        found = [(agent, max(of, key=lambda one: one.share)) for agent, of in known if of]
        return sorted(found, key=lambda one: one[1].p)

    def lines(self, most: int = MOST, agents: int = 3, *, rest: bool = True) -> list[str]:
        """That numbers may tell models or systems apart, where one fails more often, of traces and of these agents.

        Args:
          most: names in a sentence.
          agents: how many are told.
          rest: whether numbers are told beside it, of which a model may be why.
        """
        lines = []
        every = (("", self.models), ("", self.systems), *self.agents[:agents])
        for what, (agent, models) in zip(("model", "system", *("model",) * agents), every, strict=False):
            if not models:
                continue
            known = _known(models)
            of = f" of {printable(agent, 60)}" if agent else ""
            if not known:
                where, one = " in one task" if self.within else "", self.inside.partition(" ")[0]
                lines.append(f"The model{of} cannot be told apart from the {one}: no {one} has two models{where}.")
                continue
            sure = any((one.p if agent else one.alone) < LEVEL for one in known)
            named = models[:most]
            if what == "system":  # in the order of releases
                named = tuple(sorted(named, key=lambda one: natural_key(one.name)))
            why = rest and (agent or not self.beside_own) and sure
            shown = [
                f"{printable(one.name, 60)} {percent(one.share)} ({one.failed} of {counted(one.traces, 'trace')})"
                if one in known
                else f"{printable(one.name, 60)} in too few of these"
                for one in named
            ] + ["…"] * (len(models) > most)
            rows = self.alone - sum(one.traces for one in models) if self.alone and not agent else 0
            others = f"; {counted(rows, 'other trace')} not among these" if rows else ""
            of += f" within a {self.inside}" if self.inside and what == "model" else ""
            tasks = f"{counted(known[0].tasks, 'task')} with {'both' if len(known) == 2 else 'all these'}"
            parts = [f"{one}s" for one in self.inside.split(" and ") if one and one != what]
            single = all(one.tasks == one.traces for one in known)
            units = tasks if self.within else " and ".join(parts) or ("traces" if single else "tasks")
            mean = f"{'weighted ' * (parts != [] and not self.within)}mean over {units}"
            chance = f"; {_chance(known)}" if agent or (what == "model" and "" in self.used) else ""
            mixes = f"; the {what} may be why the rest differs" if why else ""
            lines.append(f"{self.failed} by {what}{of}, {mean}: {', '.join(shown)}{chance}{mixes}{others}.")
        return lines


def within_systems(traces: Traces, kinds: ComparedKinds) -> ComparedKinds:
    """The same within systems, whatever their models: a version that brings a model takes no blame of it, nor gives it.

    Args:
      traces: what was read.
      kinds: what of these is compared.
    """
    stated = [name or "" for name in traces.traces["system"].take(kinds.rows).to_pylist()]
    unit = distinct_columns(kinds.unit, np.unique(stated, return_inverse=True)[1]).of
    return kinds._replace(unit=unit, model=np.full(len(unit), -1))


def _known(models: Models) -> list[OneModel]:
    """Those that are compared."""
    return [one for one in models if not math.isnan(one.share)]


def _chance(known: Sequence[OneModel]) -> str:
    """What the tests of these say."""
    sure = [printable(one.name, 60) for one in known if one.p < LEVEL]
    if sure:
        return "beyond chance" if len(known) == 2 else f"beyond chance: {', '.join(sure)}"
    if all(one.least >= LEVEL for one in known):
        return "too few tasks to tell"
    return "undecided"


def model_failures(traces: Traces, judged: JudgedTraces, of_model: str = "") -> ModelFailures:
    """Compare models, of traces and of agents, and systems in how often their traces failed, within sides.

    Args:
      traces: what was read.
      judged: which of these failed.
      of_model: as of `Sides`: where the sides are its models, what these do is the difference of the sides.

    Reference: Holm 1979; Tarone 1990.

    Examples:
      >>> import credit
      >>> from credit.reports.judged_traces import judged_traces
      >>> _, _, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> model_failures(rows.traces, judged_traces(rows.traces)).lines()
      []
    """
    if not judged.both:
        return ModelFailures()
    compared = compared_kinds(traces, judged, between=True)
    within, task = compared.within and compared.single is None, task_ids(traces)[judged.rows]
    apart = judged.unit is not None and bool(compared.unit.max() > judged.stratum.max())
    failed, asked = compared.failed, compared.told
    if judged.of_task and apart:  # a worse half of each group says nothing of the groups
        failed, asked = below_their_own(np.asarray(traces.reward, np.float64)[judged.rows], judged.stratum)
    every = judged.rows[asked]  # tasks of which all runs fail do, of a rate
    failed, task = failed[asked], task[asked]
    _, side = np.unique(compared.side[asked], return_inverse=True)
    stated: list[list[str | None]] = [traces.traces[name].take(every).to_pylist() for name in ("model", "system")]
    _, system = np.unique([name or "" for name in stated[1]], return_inverse=True)
    system = distinct_columns(side, system).of
    parts = {"side": judged.sided, "system": len(np.unique(system)) > len(np.unique(side))}
    alike = _alike(agent_models(traces))
    used = {named_agents(names): its for names, its in alike.items()}
    models, systems = (
        _corrected([names], [_by_model(names, failed, task, of, within)], families)[0]
        for names, of, families in zip(stated, (system, side), (1 if used else FAMILIES, 1), strict=True)
    )
    found = []
    for its in used.values():
        took = np.isin(every, [*its])
        found.append(
            _by_model([its[row] for row in every[took].tolist()], failed[took], task[took], system[took], within)
        )
    named = [[its.get(row) for row in every.tolist()] for its in used.values()]
    corrected = dict(zip(used, _corrected(named, found, FAMILIES), strict=True))
    members = {named_agents(names): names for names in alike}
    used = {agent: its for agent, its in used.items() if of_model.removeprefix("model:") not in members[agent]
            and (of_model != "model" or _known(corrected[agent]))}  # fmt: skip
    agents = [(agent, corrected[agent]) for agent in used if corrected[agent]]
    agents.sort(key=lambda one: -float(np.ptp([of.share for of in _known(one[1])] or [0.0])))
    if not alike and of_model != "model":
        used = {"": {row: name for row, name in enumerate(traces.traces["model"].to_pylist()) if name}}
    bad = judged.kinds[0]
    return ModelFailures(
        models if of_model != "model" or _known(models) else (),
        systems,
        tuple(agents),
        used,
        members,
        within,
        " and ".join(name for name, several in parts.items() if several),
        f"{bad.capitalize()}{' within their task' if judged.of_task and apart else ''}",
        0 if apart else int(compared.told.sum()),
        compared.within,
    )


def _alike(used: Mapping[str, Mapping[int, str]]) -> dict[tuple[str, ...], Mapping[int, str]]:
    """The models of agents, by their names, those of most traces first. Those that have the same one wherever two of
    them act, of several, are one."""
    found: dict[tuple[str, ...], Mapping[int, str]] = {}
    for agent, its in sorted(used.items(), key=lambda one: -len(one[1])):
        for names, of in found.items():
            both = {(its[row], of[row]) for row in its.keys() & of.keys()}
            if len(both) > 1 and all(one == other for one, other in both):
                found = {(*names, agent) if known == names else known: {**its, **of} if known == names else one
                         for known, one in found.items()}  # fmt: skip
                break
        else:
            found[agent,] = its
    return dict([*found.items()][:MOST])


def named_agents(names: Sequence[str]) -> str:
    """Agents in words.

    Args:
      names: of these.
    """
    some = names if len(names) <= AGENTS else (*names[: AGENTS - 1], f"{len(names) - AGENTS + 1} more")
    return " and ".join(filter(None, (", ".join(some[:-1]), some[-1])))


def _corrected(names: Sequence[Sequence[str | None]], found: Sequence[Models], families: int = 1) -> list[Models]:
    """The same with `p` for all tests of these: those of two models are one, as are those of agents that have theirs in
    the same traces. `names` are those of all traces, by which these models were told."""
    facts: list[Hashable] = []
    for its, models in zip(names, found, strict=True):
        told, code = np.unique([name or "" for name in its], return_inverse=True)
        known = _known(models)
        heads = [known[0] if len(known) == 2 and one in known else one for one in models]
        facts += [fact_of(np.where(told[code] == "", math.nan, told[code] == head.name)) for head in heads]
    every = [one for models in found for one in models]
    p = holm([one.alone if one.tasks else math.nan for one in every], facts, [one.least for one in every])
    told_of = iter(
        one._replace(p=min(value * families, 1.0) if one.tasks else 1.0) for one, value in zip(every, p, strict=True)
    )
    return [tuple(next(told_of) for _ in models) for models in found]


def _by_model(
    models: Sequence[str | None], failed: np.ndarray, task: np.ndarray, system: np.ndarray, within: bool
) -> Models:
    """`ModelFailures.models`, the most traces first; killed runs may state none, which is no model.

    Within tasks, or else within systems, one is compared if it is in half or more of the tasks, or systems, that have
    all those of more traces. A task of several systems counts once, with the mean of these.
    """
    stated = np.array([bool(name) for name in models], bool)
    names, model = np.unique(np.array([name for name in models if name], str), return_inverse=True)
    failed, task, system = failed[stated], task[stated], system[stated]
    units, _, unit, _ = distinct_columns(task, system)
    runs, bad = np.zeros((2, units.shape[1], len(names)))
    np.add.at(runs, (unit, model), 1)
    np.add.at(bad, (unit, model), failed)
    level = np.arange(len(runs)) if within else units[1]  # what has all models compared
    has = np.zeros((level.max(initial=-1) + 1, len(names)), bool)
    np.logical_or.at(has, level, runs > 0)
    common = has.sum(axis=1) > 1
    several = common[level]
    order = [i for i in np.argsort(-runs[several].sum(axis=0), kind="stable").tolist() if runs[several, i].any()]
    taken: list[int] = []
    for i in order:
        both = common & has[:, i]
        if both.any() and (len(taken) < 2 or 2 * both.sum() >= common.sum()):
            taken, common = [*taken, i], both
    if len(taken) < 2:
        pooled = _by_model(names[model].tolist(), failed, task, np.zeros_like(task), within) if system.any() else ()
        return tuple(one._replace(share=math.nan, tasks=0) for one in pooled)
    share, compared = bad / np.where(runs, runs, math.nan), common[level]  # whatever the runs of each
    group = units[0 if within else 1]  # which weigh alike
    shares = {}
    apart = [np.unique(group[compared & (runs[:, i] > 0)], return_counts=True)[1] for i in taken]
    weight = None if within else 1 / sum(1 / many for many in apart)  # all are in each
    for i, many in zip(taken, apart, strict=True):
        its = compared & (runs[:, i] > 0)
        _, of = np.unique(group[its], return_inverse=True)
        shares[i] = float(np.average(np.bincount(of, share[its, i]) / many, weights=weight))
    if np.ptp([*shares.values()]) < 1e-9:
        return ()
    rows, cells = compared[unit] & np.isin(model, taken), np.nonzero(runs * compared[:, None])
    found = []
    for i in order:
        if i not in shares:
            found.append(
                OneModel(str(names[i]), int(bad[several, i].sum()), int(runs[several, i].sum()), math.nan, 0, 1)
            )
            continue
        if within:  # the sum of these scores is that of the differences of means
            of, mine = unit[rows], model[rows] == i
            every, its = np.bincount(of), np.bincount(of, mine)
            beside = np.bincount(group[compared], minlength=group.max() + 1)[group[of]]
            test = dealt(failed[rows] * (every / np.maximum(its * (every - its), 1))[of] / beside, mine, of)
        else:
            test = dealt(share[cells], cells[1] == i, units[1][cells[0]])
        where = compared & (runs[:, i] > 0)
        counts = int(bad[where, i].sum()), int(runs[where, i].sum())
        tasks = len(np.unique(units[0, where]))
        found.append(OneModel(str(names[i]), *counts, shares[i], tasks, test.p, *test))
    return tuple(found)
