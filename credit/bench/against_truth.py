"""Advantages beside true increments, on drawn logs of a team of any form and size.

A world (`graphs.worlds.TeamWorld`) gives the true increment D of every decision. A method's advantages A on the same
log are scored over all decisions that a policy chose:

    slope       = Σ A D / Σ D²
    correlation = Pearson's correlation of A and D
    sign        = the share whose A, centred by nothing, has the sign of D, where neither is 0 (`credit.bench.signs`)
    answered    = the share of decisions that have a number; the others enter no score

Let h be the log before a decision. If E[A | h, choice] = D + f(h) for some f, the slope is 1 up to the error of the
draw, because E[D | h] = 0. Noise in A lowers the correlation; a number that is added to all A does not. Intervals are
95 % ones of Student's t, with errors of leaving out one group of traces at a time: groups are independent of each
other. Those of the correlation are made of its Fisher transform, those of the sign of its log odds, so that none leaves
the range of its score. All methods see the same logs. A difference of two methods is over the decisions that both
answer, of signs over those at which neither is 0: else a method gains by silence. Its intervals have the errors of
leaving out one group for both at once.

Evidence is true: values of states and of choices are those of the world. Of a method that compares alternatives in a
context (`context`, `node`), each decision is a context of `ALTERNATIVES` messages that the policy draws, the logged one
among them, whose outcomes are the trace's own and those of fresh runs of the rest.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from credit.bench.own_worlds import HEAVY, TEAMS, own_world, shown_world
from credit.bench.refusals import why_refused
from credit.bench.rounding import are_equal
from credit.bench.signs import root_mean_square, signs
from credit.methods.own_functions import own_name
from credit.methods.running import Request, missing_evidence, run
from credit.tables.columns import from_columns
from estimators.base import Reason
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.task_means import alike
from graphs.worlds import HeavyTailed, TeamWorld

if TYPE_CHECKING:
    from credit.tables.batch_rows import Rows
    from estimators.base import Credit
    from graphs.traces.batch import Traces
    from graphs.worlds import Runs

__all__ = [
    "ALTERNATIVES",
    "SCORES",
    "Difference",
    "Draw",
    "Match",
    "Scored",
    "differences",
    "draw",
    "lacking",
    "score",
    "score_by_group",
    "team_of",
]

ALTERNATIVES = 4
"""Of each decision, as in `credit bench snr`: three runs of the rest of the trace."""

SCORES = ("slope", "correlation", "sign", "answered")
DIFFICULTIES = (-0.5, 0.0, 0.5)  # of the three tasks of the world, as in docs/worlds.md
LEAST_GROUPS = 40
"""Groups for an interval: of 10 and 20 groups of four traces, 89 to 93 % of the intervals held the truth."""
LEAST_APART = 5
"""Of these, groups in which two methods differ, for an interval of their difference: where one or two do, as little as
59 % of the intervals held the truth; where five or more do, 93 % or more."""
GROUP_SIZE = 8  # of worlds of the library
SPAWN = 0.7  # of a wave of workers, where the kind allows a choice


@dataclasses.dataclass(frozen=True)
class Match:
    """Scores of one method in one world; NaN where a score is not defined.

    Attributes:
      method, world: names.
      decisions: how many there were.
      slope, correlation, sign, answered: the scores.
      slope_low, slope_high and so on: their 95 % intervals; NaN where fewer than `LEAST_GROUPS` groups have answers,
        one of them alone defines the score, or the score is at the end of its range.
      refused: why decisions have no advantage, the most frequent reason; "" where all have one.
      groups: how many have answers, over which the intervals are.
      signed: how many decisions `sign` stands on: neither number is 0.
      group_size: traces of a group.
    """

    method: str
    world: str
    decisions: int
    slope: float
    slope_low: float
    slope_high: float
    correlation: float
    correlation_low: float
    correlation_high: float
    sign: float
    sign_low: float
    sign_high: float
    answered: float
    refused: str = ""
    groups: int = 0
    signed: int = 0
    group_size: int = 0

    def counted(self, score: str) -> int:
        """How many decisions a score stands on.

        Args:
          score: one of `SCORES`.
        """
        return {"sign": self.signed, "answered": self.decisions}.get(score, round(self.answered * self.decisions))


class Scored(NamedTuple):
    """A `Match`, and of each decision what its scores are made of, float64 [8, N], with its group, int [N]."""

    match: Match
    terms: np.ndarray
    group: np.ndarray


class Difference(NamedTuple):
    """A score of a method less that of the first one on the same `decisions`: those that both answer, of signs those
    at which neither method and no true increment is 0.

    The ends of the 95 % interval are NaN where these lie in fewer than `LEAST_GROUPS` `groups`, or the two methods
    differ in fewer than `LEAST_APART`; all is NaN where a score is not defined. `group_size` is traces of a group.
    `offset` is whether correlations are equal, and advantages differ by an offset, which these do not see.
    """

    method: str
    first: str
    world: str
    score: str
    difference: float
    low: float
    high: float
    groups: int
    decisions: int
    group_size: int
    offset: bool = False


@dataclasses.dataclass(frozen=True)
class Draw:
    """Logs of one world with the truth about them.

    Attributes:
      world: its name.
      traces: as if read from a log; its evidence is the true `value` before each event, `propensity`, `tokens` and
        `greedy_reward`.
      increments: true increments, float64 [E].
      chosen: bool [E], the decisions of a policy that had a choice.
      team, runs: the world and what it drew.
      seed: that the draws, and runs that are made again, begin with.
    """

    world: str
    traces: Traces
    increments: np.ndarray
    chosen: np.ndarray
    team: TeamWorld
    runs: Runs
    seed: int

    @functools.cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The trace of each decision that was a choice, its number in the script, and the chance of a good choice."""
        chance = self.team.chance[np.asarray(self.runs.task)]
        trace, decision = np.nonzero(np.asarray(self.runs.present) & (chance < 1))
        return trace, decision, chance[trace, decision]

    @functools.cached_property
    def siblings(self) -> Rows:
        """The alternatives of each decision, `ALTERNATIVES` rows each, the logged one first."""
        trace, decision, chance = self.places
        others = np.random.default_rng(self.seed).random((len(trace), ALTERNATIVES - 1)) < chance[:, None]
        place, number = np.repeat([trace, decision], ALTERNATIVES - 1, axis=1)
        fresh = self.team.reruns(jax.random.key(self.seed), self.runs, place, number, others.ravel())
        choice = np.column_stack([np.asarray(self.runs.choice)[trace, decision], others])
        reward = np.column_stack([np.asarray(self.runs.reward)[trace], np.reshape(fresh, others.shape)])
        given = np.where(choice, chance[:, None], 1 - chance[:, None]).ravel()
        context = np.repeat(np.arange(len(trace)), ALTERNATIVES)
        rows = np.arange(choice.size)
        evidence = {"context": context, "node": rows, "alternative": 2 * context + choice.ravel()}
        evidence |= dict.fromkeys(("propensity", "target_propensity"), given)
        group = np.asarray(self.runs.group)[trace[context]]
        return from_columns(group=group, trace=rows, reward=reward.ravel(), evidence=evidence)[2]

    def true_evidence(self, name: str) -> np.ndarray:
        """Evidence that no log has: float [E].

        `target_value` is V(h), `q_value` is Q(h, a), and `counterfactual_reward` the outcome of a fresh run in which
        the decision is taken badly.
        """
        value = np.asarray(self.traces.evidence["value"].array, np.float32)
        if name != "counterfactual_reward":
            return value + self.increments.astype(np.float32) if name == "q_value" else value
        trace, decision, _ = self.places
        badly = np.zeros(len(trace), bool)
        result = np.full(len(value), np.nan, np.float32)
        result[self.chosen] = self.team.reruns(jax.random.key(self.seed), self.runs, trace, decision, badly)
        return result


@checked_kinds()
def draw(
    kind: str,
    *,
    topology: str | None = None,
    agents: int | None = None,
    events: int | None = None,
    traces: int = 400,
    group_size: int | None = None,
    seed: int = 0,
) -> Draw:
    """Draw logs of a world.

    Args:
      kind: of outcome, one of `credit.bench.own_worlds.TEAMS`, or "module:name" of your own `TeamWorld`, whose team is
        drawn.
      topology, agents, events: of the team, as in `graphs.worlds.TeamWorld`; None for "swarm", 5 and 100, and for your
        own, which states them.
      group_size: traces of a group; None for that of your own world, else 8.
      traces: how many; a multiple of the group size, two groups or more.
      seed: of all random numbers.

    Raises:
      CreditError: an argument is out of range; it is named.

    Examples:
      >>> draw("pivotal", events=30, traces=16).traces.sizes.traces
      16
    """
    kind = shown_world(kind, TeamWorld, TEAMS)
    of_team = {"topology": topology, "agents": agents, "events": events}
    stated = [name for name, value in of_team.items() if value is not None]
    if stated and kind not in TEAMS:
        raise CreditError(f"{stated[0]} does not go with the world {kind!r}: that states its team")
    world = team_of(
        kind,
        topology="swarm" if topology is None else topology,
        agents=5 if agents is None else agents,
        events=100 if events is None else events,
        traces=traces,
        group_size=group_size,
    )
    runs = world.sample(jax.random.key(seed), traces)
    truth = world.increments(runs)
    log = world.traces(runs, truth)
    chosen = np.asarray(log.evidence["propensity"].mask)
    return Draw(kind, log, truth.flat(log.graph.num_events), chosen, world, runs, seed)


def team_of(
    kind: str,
    *,
    topology: str,
    agents: int,
    events: int,
    traces: int | None = None,
    group_size: int | None = None,
    spawn: float = SPAWN,
) -> TeamWorld:
    """The world that `draw` draws from, before anything is drawn.

    Args:
      kind, topology, agents, events, group_size: as of `draw`.
      traces: as of `draw`; None for a number that is yet to be chosen.
      spawn: of a wave of workers the chance, where the kind allows a choice.

    Raises:
      CreditError: an argument is out of range; it is named.
    """
    if kind in TEAMS:
        group_size = GROUP_SIZE if group_size is None else group_size
        spawn, link = 1.0 if kind == "poisoned" else spawn, HeavyTailed(1.0, 3.0**-0.5) if kind == HEAVY else None
        of_kind = "additive" if kind == HEAVY else kind
        world = TeamWorld(topology, agents, events, of_kind, DIFFICULTIES, group_size, spawn=spawn, link=link)
    else:
        own = own_world(kind, TeamWorld, "a TeamWorld of graphs.worlds", TEAMS)
        group_size = own.group_size if group_size is None else group_size
        world = dataclasses.replace(own, group_size=group_size)
    if traces is not None and (traces < 2 * group_size or traces % group_size):
        raise CreditError(f"traces is {traces}; expected a multiple of the group size {group_size}, two groups or more")
    return world


_OF_SIBLINGS = ("context", "node", "alternative", "propensity", "target_propensity")
_TRUE = ("q_value", "target_value", "counterfactual_reward")


def lacking(drawn: Draw, needs: Iterable[str]) -> list[str]:
    """The evidence among a method's needs that neither the logs nor runs beside them have.

    Examples:
      >>> drawn = draw("pivotal", events=30, traces=16)
      >>> lacking(drawn, ["context", "node"]), lacking(drawn, ["value", "anchor"])
      ([], ['anchor'])
    """
    wanted = list(needs)
    if "context" in wanted:
        return [name for name in wanted if name not in _OF_SIBLINGS]
    return [name for name in missing_evidence(drawn.traces, wanted) if name not in _TRUE]


def _answers(drawn: Draw, method: str | Callable[..., Credit]) -> tuple[np.ndarray, np.ndarray]:
    """The advantage of each decision that was a choice, and the reason why it has none: [N]."""
    needs = Request.of(method).needs
    if "context" in needs:
        result = run(drawn.siblings, method)
        advantage, reason = (drawn.siblings.gather(x)[::ALTERNATIVES] for x in (result.advantage, result.reason))
        return np.asarray(advantage), np.asarray(reason)
    made = {name: drawn.true_evidence(name) for name in _TRUE if name in needs}
    result = run(drawn.traces, method, **made)
    return np.asarray(result.advantage)[drawn.chosen], np.asarray(result.reason)[drawn.chosen]


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
    return score_by_group(drawn, method, name).match


def score_by_group(drawn: Draw, method: str | Callable[..., Credit], name: str | None = None) -> Scored:
    """As `score`, with what `differences` takes.

    Args:
      drawn, method, name: as of `score`.
    """
    advantage, reason = _answers(drawn, method)
    graph = drawn.traces.graph
    group = np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)][drawn.chosen]
    terms = _terms(np.where(reason == Reason.VALID, advantage, np.nan), drawn.increments[drawn.chosen])
    sums = _sums(terms, group)
    table = np.column_stack([_scores(sums.sum(axis=0)), _intervals(sums[sums[:, 0] > 0])]).tolist()
    ends = ("", "_low", "_high")
    found = {
        f"{score}{end}": x
        for score, row in zip(SCORES[:3], table, strict=True)
        for end, x in zip(ends, row, strict=True)
    }
    label = own_name(method) if isinstance(method, str) else str(getattr(method, "__name__", "function"))
    match = Match(
        name or label, drawn.world, len(reason), **found, answered=float(np.mean(terms[0])),
        refused=why_refused(reason), groups=int(np.sum(sums[:, 0] > 0)), signed=int(terms[6].sum()),
        group_size=drawn.team.group_size,
    )  # fmt: skip
    return Scored(match, terms, group)


def differences(one: Scored, first: Scored) -> list[Difference]:
    """The slope, correlation and sign of one method less those of another on the same draw.

    Args:
      one, first: of the two methods; that of `first` is subtracted.

    Examples:
      >>> drawn = draw("additive", events=30, traces=16)
      >>> slope, correlation, sign = differences(*(score_by_group(drawn, name) for name in ("dr_grpo", "rloo")))
      >>> slope.score, slope.difference < 0
      ('slope', True)
    """
    pair = _paired(one, first)
    who = (one.match.method, first.match.method, one.match.world)
    found = []
    for score, (name, of) in enumerate(zip(SCORES, (0, 0, 6), strict=False)):
        ends = _difference(pair[:, pair[0, :, of] > 0], score)
        counts = int(np.sum(pair[0, :, of] > 0)), int(pair[0, :, of].sum())
        offset = name == "correlation" and are_equal(*ends) and _are_offset(pair)
        found.append(Difference(*who, name, *ends, *counts, one.match.group_size, offset))
    return found


def _paired(one: Scored, first: Scored) -> np.ndarray:
    """The sums of two methods over the decisions that both answer, of signs over those at which neither is 0:
    [2, groups, 8]."""
    terms = np.stack([one.terms, first.terms])
    both = np.all(terms[:, (0,) * 6 + (6,) * 2] > 0, axis=0)
    return np.stack([_sums(of, one.group) for of in np.where(both, terms, 0.0)])


def _difference(pair: np.ndarray, score: int) -> tuple[float, float, float]:
    """A difference with the ends of its interval, of sums over the same decisions: [2, groups, 8]."""
    whole = pair.sum(axis=1, keepdims=True)
    middle, half = float(np.subtract(*_scores(whole))[0, score]), math.nan
    apart = np.sum(np.any(pair[0][:, _TERMS[score]] != pair[1][:, _TERMS[score]], axis=1))
    if pair.shape[1] >= LEAST_GROUPS and apart >= LEAST_APART:
        half = float(_half(np.subtract(*_scores(whole - pair)))[score])
    return middle, middle - half, middle + half


def _are_offset(pair: np.ndarray) -> bool:
    """Whether the mean squares of two methods' advantages, over their variances, differ: [2, groups, 8]."""
    n, a, _, aa, *_ = np.moveaxis(pair.sum(axis=1), -1, 0)
    return not alike(*(aa / (aa - a * a / n)))


def _terms(a: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Of each decision what the scores are sums of, 0 where the advantage is NaN: float64 [8, N]."""
    known = np.isfinite(a)
    a, d = (np.where(known, x, 0.0).astype(np.float64) for x in (a, d))
    sign, truth = (signs(x, root_mean_square(x[known]), np.float32) for x in (a, d))
    product = sign * truth
    return np.stack([known, a, d, a * a, d * d, a * d, product != 0, product > 0]).astype(np.float64)


def _sums(terms: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The terms summed in each group: float64 [groups, 8]."""
    return np.stack([np.bincount(group, term) for term in terms], axis=-1)


_TERMS = (slice(4, 6), slice(0, 6), slice(6, 8))  # of each score


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


def _intervals(sums: np.ndarray) -> np.ndarray:
    """The scores' 95 % intervals, by leaving out one group at a time: [3, 2]."""
    from scipy.special import expit, logit  # comes with JAX; slow to import

    groups = len(sums)
    if groups < LEAST_GROUPS:
        return np.full((3, 2), np.nan)

    def free(scores: np.ndarray) -> np.ndarray:
        """Scores on scales without ends."""
        return np.stack([scores[..., 0], np.arctanh(scores[..., 1]), logit(scores[..., 2])], axis=-1)

    whole = sums.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # at an end of the range there is no interval
        middle, left = free(_scores(whole)), free(_scores(whole - sums))
        ends = middle[:, None] + _half(left)[:, None] * np.array([-1, 1])
    return np.stack([ends[0], np.tanh(ends[1]), expit(ends[2])])


def _half(left: np.ndarray) -> np.ndarray:
    """Half of 95 % intervals, of what is found without one group at a time: [groups, scores]."""
    from scipy.special import stdtrit  # comes with JAX; slow to import

    groups = len(left)
    stderr = np.sqrt((groups - 1) / groups * np.sum((left - left.mean(axis=0)) ** 2, axis=0))
    half: np.ndarray = stdtrit(groups - 1, 0.975) * stderr
    return half
