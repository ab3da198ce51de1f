"""An additive critic: the value of a prefix as a sum over its events, learned from a few hundred traces.

    z_t = b + Σ_{e≤t} w(e) · (x_e − x̄(e)),        V(G≤t) = σ(κ_t z_t)

x_e are the numbers of an event: its type, tokens, reward, role and the user's columns. x̄(e) is what was to be expected
of them given the prefix before the event, so an event contributes only what it adds:

    x̄(e) = mean at its place + (B_type(e) + B_place(e)) · (h_e − mean of h at its place)

and x − x̄ is divided by the spread of x. h_e holds five things: the sums of x over the trace so far and over the agent
so far, and x of the event's causes, of its agent's previous event and of the event that activated its agent. The place
of an event is its role, its depth in the spawn forest and its number among its agent's actions. The weights add up over
levels, from coarse to fine: one weight vector for all events, one for each type of event, one for each place, and one
for each place of each agent (told apart by the spawn that created it):

    w(e) = w_all + w_type(e) + w_place(e) + w_agent(e)

κ_t = 1 / √(1 + π v_t / 8) accounts for the variance v_t of what is still to come. For head "value", V is z itself.

Where further runs were made from a prefix (`CriticData.runs`), the weights are fitted a second time, to outcomes and
runs: n runs from the prefix up to t with mean m are n outcomes of chance σ(κ_t z_t), with κ_t of the first fit. For
head "value" they are one outcome of mean z_t and variance (σ² + v_t) / n, with σ² the variance of an outcome given its
trace.

Weights have Student-t priors (3 degrees of freedom) whose scale is learned for each level, so that many small effects
are shrunk together and a single large one is not. The fit is expectation-maximisation over the priors with a Laplace
approximation of the posterior: it has no learning rate, no epochs and no random start. Members are draws from the
posterior, with the means at places drawn by a Bayesian bootstrap over tasks; their spread is the standard error.

Source: automatic relevance determination (MacKay 1992; Tipping 2001) with hierarchical scales; κ_t is MacKay's (1992)
approximation of a logistic function averaged over a normal distribution. Host work in NumPy.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import numpy as np

from estimators.critic.additive.additive_columns import (
    Expected,
    Level,
    events_of,
    expected_numbers,
    levels_of,
    levels_with,
    place_keys,
    rows_of,
)
from estimators.critic.additive.posterior import Outcomes, Posterior, fit_posterior
from estimators.critic.additive.prefix_runs import outcomes_of_runs, prefix_columns, prefixes_with_runs
from estimators.critic.data import CriticData
from graphs.errors import CreditError

__all__ = ["AdditiveCritic", "fit_additive", "predict_additive"]


@dataclasses.dataclass(frozen=True)
class AdditiveCritic:
    """A fitted additive critic of M members over J numbers an event.

    Attributes:
      head: "bernoulli" or "value".
      features: F, columns of the corpus that it takes.
      roles: how many of them are roles.
      expected: what x̄ is computed from.
      levels: the weights, from coarse to fine.
      start: float64 [M], b.
      ahead: float64 [B], v by bucket of the number of events so far.
      steps: how many steps the fit took.
      converged: whether the last one changed no weight by more than `TOLERANCE` standard deviations.
    """

    head: Literal["bernoulli", "value"]
    features: int
    roles: int
    expected: Expected
    levels: tuple[Level, ...]
    start: np.ndarray
    ahead: np.ndarray
    steps: int
    converged: bool


def fit_additive(
    corpus: CriticData,
    traces: np.ndarray,
    *,
    head: Literal["bernoulli", "value"] = "bernoulli",
    roles: int = 0,
    members: int = 32,
    seed: int = 0,
) -> AdditiveCritic:
    """Fit an additive critic on some traces of a corpus.

    Args:
      corpus: features as `event_features` gives them, not standardised.
      traces: int [n], the traces to fit on; each has an outcome.
      head: "bernoulli" for outcomes in [0, 1], "value" for any.
      roles: R; columns F₀ to F₀ + R − 1 of the features are roles, with F₀ = len(feature_names()).
      members: M, draws from the posterior; an even number.
      seed: of the draws.

    Returns:
      `AdditiveCritic`.

    Raises:
      CreditError: there are no traces, one has no outcome, or `members` is odd or below 2.
    """
    if members < 2 or members % 2:
        raise CreditError(f"members is {members}; expected an even number, 2 or more")
    reward = corpus.reward[traces].astype(np.float64)
    if len(traces) == 0 or not np.isfinite(reward).all():
        raise CreditError("an additive critic needs traces to fit on, each with an outcome")
    rng = np.random.default_rng(seed)
    keys = place_keys(corpus, roles)
    event, trace = events_of(corpus, traces)
    expected = Expected.of(corpus, roles, keys[2], event, corpus.group[traces][trace], members, rng)
    x = expected_numbers(expected, corpus, roles, keys[2], None)
    columns, level, places, varies = levels_of(x[event], keys[:, event], trace, len(traces))

    def with_weights(posterior: Posterior) -> AdditiveCritic:
        drawn = np.concatenate([posterior.mean[None], posterior.draws])
        levels = levels_with(drawn, places, varies, x.shape[1])
        critic = AdditiveCritic(
            head, corpus.features.shape[1], roles, expected,
            tuple(Level(each.keys, each.weight[1:]) for each in levels), posterior.draws[:, -1],
            np.zeros(1), posterior.steps, posterior.converged,
        )  # fmt: skip
        of_mean = tuple(Level(each.keys, each.weight[:1]) for each in levels)
        score = _scores(dataclasses.replace(critic, levels=of_mean, start=drawn[:1, -1]), corpus)
        return dataclasses.replace(critic, ahead=_ahead(score[0], corpus, traces))

    outcomes = Outcomes(columns, np.ones(len(reward)), reward, np.ones(len(reward)))
    posterior = fit_posterior(outcomes, level, head, members, rng)
    critic = with_weights(posterior)
    prefixes = prefixes_with_runs(corpus, traces)
    if len(prefixes.length) == 0:
        return critic
    ahead = critic.ahead[np.minimum(_bucket(prefixes.length), len(critic.ahead) - 1)]
    sums = prefix_columns(x, keys, prefixes, places, varies)
    runs = outcomes_of_runs(sums, prefixes, ahead, head, posterior.noise)
    return with_weights(fit_posterior(outcomes.joined(runs), level, head, members, rng))


def predict_additive(critic: AdditiveCritic, corpus: CriticData) -> tuple[np.ndarray, np.ndarray]:
    """V̂(G≤e) after each event, and V̂(∅), by member, in units of reward.

    Args:
      critic: of M members.
      corpus: features as `event_features` gives them, not standardised.

    Returns:
      float32 [M, E] and [M].

    Raises:
      CreditError: the corpus has other columns than the critic was fitted on.
    """
    if corpus.features.shape[1] != critic.features:
        raise CreditError(
            f"the corpus has {corpus.features.shape[1]} feature columns; expected {critic.features}, as fitted"
        )
    score = _scores(critic, corpus)
    if critic.head == "value":
        return score.astype(np.float32), critic.start.astype(np.float32)
    shrink = 1 / np.sqrt(1 + math.pi / 8 * critic.ahead)
    bucket = np.minimum(_bucket(_so_far(corpus)), len(critic.ahead) - 1)
    after = 1 / (1 + np.exp(-np.clip(score * shrink[bucket], -30, 30)))
    start = 1 / (1 + np.exp(-np.clip(critic.start * shrink[0], -30, 30)))
    return after.astype(np.float32), start.astype(np.float32)


def _scores(critic: AdditiveCritic, corpus: CriticData) -> np.ndarray:
    """z after each event: float64 [M, E]."""
    keys = place_keys(corpus, critic.roles)
    rows = [rows_of(level.keys, key) for level, key in zip(critic.levels, keys, strict=False)]
    members = len(critic.start)
    out = np.empty((members, len(corpus.features)))
    for m, start in enumerate(critic.start):
        x = expected_numbers(critic.expected, corpus, critic.roles, keys[2], m if members > 1 else None)
        each = np.zeros(len(x))
        for level, row in zip(critic.levels, rows, strict=True):
            weight = np.concatenate([level.weight[m], np.zeros((1, x.shape[1]))])
            each += np.einsum("ij,ij->i", x, weight[row])
        total = np.concatenate([[0.0], np.cumsum(each)])
        out[m] = start + total[1:] - np.repeat(total[corpus.start[:-1]], corpus.lengths)
    return out


def _ahead(score: np.ndarray, corpus: CriticData, traces: np.ndarray) -> np.ndarray:
    """Mean square of what the score still changes, by bucket of the events so far; the empty prefix first."""
    event, trace = events_of(corpus, traces)
    final = score[corpus.start[1:][traces] - 1]
    rest = (final[trace] - score[event]) ** 2
    bucket = _bucket(_so_far(corpus)[event])
    total, count = np.bincount(bucket, rest), np.bincount(bucket)
    total[0], count[0] = np.sum((final - final.mean()) ** 2), len(final)
    return np.interp(np.arange(len(count)), np.flatnonzero(count), total[count > 0] / count[count > 0])


def _bucket(events: np.ndarray) -> np.ndarray:
    """Eight buckets for each doubling of the number of events so far; 0 for none."""
    return np.where(events > 0, 1 + np.floor(8 * np.log2(np.maximum(events, 1))), 0).astype(np.int64)


def _so_far(corpus: CriticData) -> np.ndarray:
    result: np.ndarray = np.arange(len(corpus.features)) - np.repeat(corpus.start[:-1], corpus.lengths) + 1
    return result
