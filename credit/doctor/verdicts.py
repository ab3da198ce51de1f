"""Verdicts of verifiers beside outcomes: whether they drift with time, or favour an agent or a model.

A verdict is a reward channel of the log other than the outcome. Under the null hypotheses orders of the tasks of one
system, and choices within a task, system and model, are equally likely: another version of a team may have another
verifier, and call other agents.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from credit.metrics.message_contents import text_ids
from credit.reports.compared_kinds import models_and_systems
from credit.reports.judged_traces import judged_traces
from credit.reports.missing_lines import lacking_traces
from credit.reports.tasks import task_ids
from credit.reports.verdict_channels import verdict_channels
from graphs.dealing import dealt
from graphs.distinct_columns import distinct_columns
from graphs.traces.batch import Traces

__all__ = ["FAILED_TRACES", "NO_VERDICT", "Suspicion", "collusion", "drift"]

FAILED_TRACES = 120
"""Failed traces, and others, from which nine of ten verifiers that come to pass eight tenths of what failed were found:
at 112 it were 90 %, at 120 93 % of 4,000 draws, at the level of a report of ten tests."""

NO_VERDICT = "the log has no verdict beside the outcome"
LEAST_ORDERED = 5  # below which no order of tasks has a chance of 1 in 30


class Suspicion(NamedTuple):
    """The result of one of the two tests.

    Attributes:
      statistic: NaN where there is no test.
      p: of the test, corrected for how many channels and names were looked at.
      tasks: that were compared.
      rows: of the traces that show it.
      least: traces in the smallest set that was looked at.
      words: what stood out, or why there is no test.
    """

    statistic: float
    p: float
    tasks: int
    rows: np.ndarray
    words: str
    least: int = 0


def drift(traces: Traces) -> Suspicion:
    """Whether verdicts, at equal outcomes, rise or fall with time.

    Failed and succeeded traces (`judged_traces`) of each system are looked at apart. The residual of a verdict is what
    a straight line on the outcome does not explain. The statistic is r, the correlation of the sum of the residuals of
    a task with the rank of its time, the mean `policy_version` of its traces. Means would let a task with one trace
    count as much as one with ten. Under the null hypothesis every order of the n tasks is equally likely; r² then has
    nearly a Beta distribution (`_trend`).

    References: Pitman 1937 (the test and its moments); Armitage 1955 (sums for trends of proportions).
    """
    channels = verdict_channels(traces)
    version = traces.evidence.get("policy_version")
    if not channels or version is None:
        return _none(NO_VERDICT if not channels else "the log has no policy_version")
    outcome, task, when = _outcome(traces), task_ids(traces), version.array[: traces.sizes.traces].astype(np.float64)
    judged = judged_traces(traces)
    told = [f"traces that {'did ' * judged.of_task}{kind}" for kind in judged.kinds]
    kinds = (f"{told[0]}{judged.failing}", judged.failed), (told[1], judged.succeeded)
    systems, of_system = np.unique(_stated(traces, "system"), return_inverse=True)
    found = []
    for (name, verdict), (which, kind) in itertools.product(channels.items(), kinds):
        for system, stated in enumerate(systems.tolist()):
            known = kind & np.isfinite(verdict) & (when >= 0) & (of_system == system)
            of_task = np.unique(task[known], return_inverse=True)[1]
            size = np.bincount(of_task)
            if len(size) < LEAST_ORDERED or not (np.ptp(verdict[known]) > 0 and np.ptp(when[known]) > 0):
                continue
            left = _residual(verdict[known], outcome[known])
            r, p = _trend(np.bincount(of_task, when[known]) / size, np.bincount(of_task, left))
            if np.isfinite(p):
                rows = np.flatnonzero(known)[np.argsort(-np.abs(left), kind="stable")]
                of = f" of system {stated}" * (len(systems) > 1)
                words = f"{name} of {which}{of} {'rises' if r > 0 else 'falls'} with policy_version"
                found.append(Suspicion(r, p, len(size), rows, words))
    if not found:
        why = f"fewer than {LEAST_ORDERED} tasks with verdicts that differ, or all of one policy_version"
        return _none(why + ", in each system" * (len(systems) > 1))
    best = min(found, key=lambda finding: finding.p)
    return best._replace(p=min(1.0, best.p * len(found)), least=min(len(finding.rows) for finding in found))


def _trend(time: np.ndarray, amount: np.ndarray) -> tuple[float, float]:
    """The correlation of amounts with the ranks of their times, and its two-sided p; NaN where one does not differ.

    Over all orders r² has the mean m = 1 / (n − 1), and r⁴ the mean

        q = 3 / (n² − 1) (1 + (n − 2) (n − 3) / (3 n (n − 1)²) g g')        g, g' Fisher's kurtosis of ranks and amounts

    r² is taken as Beta with these moments, half a step of Σ rank · amount nearer to 0, and p is no less than the chance
    of one order and its reverse. By Student's distribution, eight tasks whose verdicts are 0 in the first half and 1 in
    the second had a sixth of their true p. Ranks bound what a single time can do: with times as they are, one task long
    after the others whose amount is large, too, has a p near 0, although one order of n has it there.
    """
    from scipy.special import betaincc  # comes with JAX; slow to import

    n, rounding = len(time), 1e-9 * float(np.ptp(amount))  # of sums of residuals
    _, place, late = np.unique(time, return_inverse=True, return_counts=True)
    rank, ordered = (np.cumsum(late) - (late - 1) / 2)[place], np.sort(amount)
    a, b = rank - rank.mean(), amount - amount.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    if not scale > 1e-9:  # sums that should all be 0
        return float("nan"), float("nan")
    gaps = np.diff(ordered)
    alike = np.bincount(np.cumsum(np.append(0, gaps > rounding)))
    step = float(np.diff(np.unique(rank)).min() * gaps[gaps > rounding].min())
    mean = 1 / (n - 1)
    of_both = (n - 2) * (n - 3) / (3 * n * (n - 1) ** 2) * _kurtosis(a) * _kurtosis(b)
    fourth = 3 / (n * n - 1) * (1 + of_both)
    shape = (mean - fourth) / (fourth - mean**2)
    near = max(abs(float(a @ b)) - step / 2, 0.0) / scale
    p = float(betaincc(mean * shape, (1 - mean) * shape, min(near**2, 1.0)))
    same = max(math.prod(math.factorial(size) for size in sizes.tolist()) for sizes in (late, alike))
    return float(np.clip(a @ b / scale, -1, 1)), min(1.0, max(p, 2 / (math.factorial(n) // same)))


def _kurtosis(x: np.ndarray) -> float:
    """Fisher's k₄ / k₂² of numbers of mean 0."""
    n, squares, fourths = len(x), float(np.sum(x**2)), float(np.sum(x**4))
    fourth = (n * (n + 1) * fourths - 3 * (n - 1) * squares**2) / ((n - 1) * (n - 2) * (n - 3))
    return fourth / (squares / (n - 1)) ** 2


def collusion(traces: Traces) -> Suspicion:
    """Whether verdicts on failed traces are higher where a certain agent, or model, took part.

    Which failed `judged_traces` says. One that lacks lines is left out: who is not in it may be in those. Traces are
    compared within strata: of one task, system and, of agents, model. Within the n failed traces of a stratum, of which
    a have the agent, every choice of a is equally likely under the null hypothesis (`graphs.dealing.dealt`). With v the
    verdicts and v̄ their mean,

        S = Σ over strata ( Σ v of traces with the agent − a v̄ )

    The test of S is one-sided. The statistic is S over Σ a (n − a) / n, by how much the verdict is higher. Where an
    agent is in one of eight traces, and a verdict passes one of eight, S is too skewed for a normal test: its p was a
    twentieth of the true one.
    """
    channels = verdict_channels(traces)
    if not channels:
        return _none(NO_VERDICT)
    judged, task = judged_traces(traces), task_ids(traces)
    kind = judged.kinds[0]
    system, model = np.unique(_stated(traces, "system"), return_inverse=True)[1], models_and_systems(traces)
    failed, found = judged.failed & ~lacking_traces(traces), []
    for (channel, verdict), (of, name, company) in itertools.product(channels.items(), _companies(traces)):
        within = model if of == "agent" else system
        usable = np.flatnonzero(failed & np.isfinite(verdict) & (within >= 0))
        if not len(usable):
            continue
        strata, _, stratum, _ = distinct_columns(task[usable], within[usable])
        said, has = verdict[usable], company[usable]
        n, with_it = np.bincount(stratum), np.bincount(stratum, has)
        off = said - (np.bincount(stratum, said) / n)[stratum]
        mixed = with_it * (n - with_it) / n
        if len(np.unique(strata[0, (mixed > 0) & (np.bincount(stratum, off**2) > 0)])) >= LEAST_ORDERED:
            excess = float(np.sum(off[has]))
            tail = dealt(said, has, stratum).p / 2
            p = tail if excess > 0 else 1 - tail
            rows = usable[has][np.argsort(-said[has], kind="stable")]
            words = f"{channel} is higher on {kind} traces{judged.failing} of {of} {name}"
            tasks = len(np.unique(strata[0, mixed > 0]))
            found.append(Suspicion(excess / float(mixed.sum()), p, tasks, rows, words))
    if not found:
        why = f"no agent or model is in some {kind} traces and not in others of {LEAST_ORDERED} tasks"
        return _none(why + ", of one system and model" * (len(np.unique(model)) > 1))
    best = min(found, key=lambda finding: finding.p)
    return best._replace(p=min(1.0, best.p * len(found)))


def _none(words: str) -> Suspicion:
    return Suspicion(float("nan"), float("nan"), 0, np.zeros(0, np.int64), words)


def _outcome(traces: Traces) -> np.ndarray:
    return np.asarray(traces.reward, np.float64)[: traces.sizes.traces]


def _residual(verdict: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """What a straight line on the outcome leaves of the verdict."""
    centred = outcome - outcome.mean()
    spread = float(centred @ centred)
    slope = float(centred @ verdict) / spread if spread > 0 else 0.0
    left: np.ndarray = verdict - verdict.mean() - slope * centred
    return left


def _stated(traces: Traces, word: str) -> np.ndarray:
    return np.array([name or "" for name in traces.traces[word].to_pylist()], str)


def _companies(traces: Traces) -> list[tuple[str, str, np.ndarray]]:
    """Agents and models by name, and the traces that each took part in: bool [traces]."""
    graph, n, m = traces.graph, traces.sizes.events, traces.sizes.traces
    acting = np.zeros(graph.num_agents, bool)
    acting[np.asarray(graph.agent_ids)[:n][np.asarray(graph.action_mask)[:n]]] = True
    acting = np.flatnonzero(acting)
    found: list[tuple[str, str, np.ndarray]] = []
    for kind, texts, trace in (
        ("agent", traces.agents["name"].take(acting), np.asarray(graph.agent_trace)[acting]),
        ("model", traces.traces["model"], np.arange(m)),
    ):
        ids = text_ids(texts)
        took_part = np.zeros((ids.max(initial=-1) + 1, m), bool)
        took_part[ids[ids >= 0], trace[ids >= 0]] = True
        names = dict.fromkeys(filter(None, texts.to_pylist()))
        found += [(kind, name, row) for name, row in zip(names, took_part, strict=True)]
    return found
