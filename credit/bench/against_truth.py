"""Advantages beside true increments, on drawn logs of a team of any form and size.

A world (`graphs.worlds.TeamWorld`) gives the true increment D of every decision. A method's advantages A on the same
log are scored over all decisions that a policy chose:

    slope       = Σ A D / Σ D²
    correlation = Pearson's correlation of A and D
    sign        = the share with the sign of D, of decisions at which neither is 0
    answered    = the share of decisions that have a number; the others enter no score

Let h be the log before a decision. If E[A | h, choice] = D + f(h) for some f, the slope is 1 up to the error of the
draw, because E[D | h] = 0. Noise in A lowers the correlation. Intervals are 95 % ones of Student's t, with errors of
leaving out one group of traces at a time: groups are independent of each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import numpy as np

from credit.bench.refusals import why_refused
from credit.methods.running import run
from graphs.errors import CreditError
from graphs.worlds import KINDS, TeamWorld

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["SCORES", "Draw", "Match", "draw", "score"]

SCORES = ("slope", "correlation", "sign", "answered")
DIFFICULTIES = (-0.5, 0.0, 0.5)  # of the three tasks of the world, as in docs/worlds.md
LEAST_GROUPS = 40
"""Groups for an interval: of 10 and 20 groups of four traces, 89 to 93 % of the intervals held the truth."""
SPAWN = 0.7  # of a wave of workers, where the kind allows a choice


@dataclasses.dataclass(frozen=True)
class Match:
    """Scores of one method in one world; NaN where a score is not defined.

    Attributes:
      method, world: names.
      decisions: how many there were.
      slope, correlation, sign, answered: the scores.
      slope_half, correlation_half, sign_half: half the width of their 95 % intervals; NaN where fewer than
        `LEAST_GROUPS` groups have answers, or one of them alone defines the score.
      refused: why decisions have no advantage, the most frequent reason; "" where all have one.
    """

    method: str
    world: str
    decisions: int
    slope: float
    slope_half: float
    correlation: float
    correlation_half: float
    sign: float
    sign_half: float
    answered: float
    refused: str = ""


@dataclasses.dataclass(frozen=True)
class Draw:
    """Logs of one world with the truth about them.

    Attributes:
      world: its name.
      traces: as if read from a log; its evidence is the true `value` before each event, `propensity`, `tokens` and
        `greedy_reward`.
      increments: true increments, float64 [E].
      chosen: bool [E], the decisions of a policy that had a choice.
    """

    world: str
    traces: Traces
    increments: np.ndarray
    chosen: np.ndarray


def draw(
    kind: str,
    *,
    topology: str = "swarm",
    agents: int = 5,
    events: int = 100,
    traces: int = 400,
    group_size: int = 8,
    seed: int = 0,
) -> Draw:
    """Draw logs of a world.

    Args:
      kind: of outcome, one of `graphs.worlds.KINDS`.
      topology, agents, events, group_size: of the team, as in `graphs.worlds.TeamWorld`.
      traces: how many; a multiple of the group size, two groups or more.
      seed: of all random numbers.

    Raises:
      CreditError: an argument is out of range; it is named.

    Examples:
      >>> draw("pivotal", events=30, traces=16).traces.sizes.traces
      16
    """
    if kind not in KINDS:
        raise CreditError(f"kind is {kind!r}; expected one of {', '.join(KINDS)}")
    spawn = 1.0 if kind == "poisoned" else SPAWN
    world = TeamWorld(topology, agents, events, kind, DIFFICULTIES, group_size, spawn=spawn)
    if traces < 2 * group_size or traces % group_size:
        raise CreditError(f"traces is {traces}; expected a multiple of the group size {group_size}, two groups or more")
    runs = world.sample(jax.random.key(seed), traces)
    truth = world.increments(runs)
    log = world.traces(runs, truth)
    chosen = np.asarray(log.evidence["propensity"].mask)
    return Draw(kind, log, truth.flat(log.graph.num_events), chosen)


def score(drawn: Draw, method: str | Callable[..., Credit], name: str | None = None) -> Match:
    """Score a method on drawn logs.

    Args:
      drawn: of `draw`.
      method: a name of `credit methods`, "module:function", or a function
        `fn(graph, reward, *, event_reward=None, ...) -> Credit`.
      name: the name to show; by default the method's.

    Raises:
      CreditError: the method is unknown, needs evidence that the world does not log, or gives a wrong result.

    Examples:
      >>> import credit, functools
      >>> one_step = functools.partial(credit.gae, lambda_=0.0)  # of the true values
      >>> score(draw("additive", events=30, traces=16), one_step, "one step").correlation > 0.5
      True
    """
    result = run(drawn.traces, method)
    graph = drawn.traces.graph
    group = np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)]
    used = drawn.chosen & np.asarray(result.valid)
    advantage = np.where(used, np.asarray(result.advantage, np.float64), 0.0)
    sums = _sums(advantage[used], drawn.increments[used], group[used], int(group.max()) + 1)
    whole = _scores(sums.sum(axis=0))
    halves = _halves(sums[sums[:, 0] > 0])
    (slope, correlation, sign), (slope_half, correlation_half, sign_half) = whole.tolist(), halves.tolist()
    decisions = int(drawn.chosen.sum())
    label = method if isinstance(method, str) else str(getattr(method, "__name__", "function"))
    return Match(
        name or label,
        drawn.world,
        decisions,
        slope,
        slope_half,
        correlation,
        correlation_half,
        sign,
        sign_half,
        float(used.sum()) / decisions,
        why_refused(np.asarray(result.reason)[drawn.chosen]),
    )


def _sums(a: np.ndarray, d: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """What the scores are made of, summed in each group: float64 [G, 8]."""
    both = (a != 0) & (d != 0)
    terms = (np.ones_like(a), a, d, a * a, d * d, a * d, both, both & (np.sign(a) == np.sign(d)))
    return np.stack([np.bincount(group, term, groups) for term in terms], axis=-1)


def _scores(sums: np.ndarray) -> np.ndarray:
    """Slope, correlation and share of equal signs from the sums of `_sums`, [..., 3]; NaN where one is not defined."""
    n, a, d, aa, dd, ad, both, same = np.moveaxis(sums, -1, 0)
    size = np.maximum(n, 1)
    spread = np.maximum(aa / size - (a / size) ** 2, 0) * np.maximum(dd / size - (d / size) ** 2, 0)
    together = ad / size - a * d / size**2
    floor = 1e-20 * (aa / size) * (dd / size)  # what rounding leaves of a spread of 0
    parts = ((ad, dd, 0.0), (together, np.sqrt(spread), np.sqrt(floor)), (same, both, 0.0))
    return np.stack([_ratio(over, under, least) for over, under, least in parts], axis=-1)


def _ratio(over: np.ndarray, under: np.ndarray, least: np.ndarray | float) -> np.ndarray:
    defined = under > least
    return np.where(defined, over / np.where(defined, under, 1.0), np.nan)


def _halves(sums: np.ndarray) -> np.ndarray:
    """Half the widths of the scores' 95 % intervals, by leaving out one group at a time: [3]."""
    from scipy.special import stdtrit  # comes with JAX; slow to import

    groups = len(sums)
    if groups < LEAST_GROUPS:
        return np.full(3, np.nan)
    left = _scores(sums.sum(axis=0) - sums)
    stderr = np.sqrt((groups - 1) / groups * np.sum((left - left.mean(axis=0)) ** 2, axis=0))
    halves: np.ndarray = stdtrit(groups - 1, 0.975) * stderr
    return halves
