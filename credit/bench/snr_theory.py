"""Closed forms of the signal to noise of one decision's advantage, in the world of `credit.bench.snr_logs`.

    R = Σ_t x_t + ε,    x_t = ±s with equal chances, T of them,    ε normal with standard deviation e

SNR = s / sd(A | x_t) wherever the advantage has mean ±s given the decision; every form below is the root of s² over the
variance, averaged over the decisions of a trace. The derivations are in `docs/snr.md`. Exact, except where said.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

__all__ = [
    "Setting",
    "bernoulli",
    "control",
    "critic",
    "message",
    "message_error",
    "normalised",
    "parts",
    "replayed_value",
    "shared",
]


class Setting(NamedTuple):
    """Of the world: s, e, and K, the traces of a group."""

    signal: float = 1.0
    noise: float = 1.0
    group: int = 8


def shared(length: int, w: Setting, others: float) -> float:
    """The outcome minus the mean of `others` further outcomes (infinite: minus its true mean).

    The group's mean in place of that of the others scales the advantage by 1 − 1/K and changes nothing here.
    """
    s2, e2 = w.signal**2, w.noise**2
    return w.signal / math.sqrt((length - 1) * s2 + e2 + (length * s2 + e2) / others)


def normalised(length: int, w: Setting) -> float:
    """The outcome minus the group's mean, over the group's standard deviation (ddof 1). Exact for normal outcomes.

    With σ² = Var R: E A x_t / s = (K − 1)/K · E[S] s/σ², since Σ_i A_i R_i = (K − 1) S and E[x_t | R] = R s²/σ²; the
    second moment of A is (K − 1)/K whatever the outcomes. E[S] = c₄(K) σ. Outcomes are sums, and nearly normal.
    """
    k = w.group
    c4 = math.sqrt(2 / (k - 1)) * math.exp(math.lgamma(k / 2) - math.lgamma((k - 1) / 2))
    mean = (k - 1) / k * c4 * w.signal / math.sqrt(length * w.signal**2 + w.noise**2)
    return mean / math.sqrt((k - 1) / k - mean**2)


def parts(length: int, w: Setting, count: int) -> float:
    """The outcome of the decision's own part, one of `count`, each scored apart: as `shared` with T/count decisions."""
    alone = Setting(w.signal, w.noise / math.sqrt(count), w.group)
    return shared(length // count, alone, w.group - 1)


def message_error(length: int, w: Setting, alternatives: int, replays: int) -> np.ndarray:
    """Variance of a message counterfactual given the message, for each decision: float64 [T].

    With d decisions still to come: ((d s² + e²)/S) J/(J − 1) + s²/(J − 1).
    """
    j = alternatives
    left = np.arange(length - 1, -1, -1)
    spread = (left * w.signal**2 + w.noise**2) / replays
    return spread * j / (j - 1) + w.signal**2 / (j - 1)


def message(length: int, w: Setting, alternatives: int, replays: int) -> float:
    """A sampled message against J − 1 siblings under one frozen context, each continued S times."""
    return w.signal / math.sqrt(float(np.mean(message_error(length, w, alternatives, replays))))


def critic(length: int, w: Setting, mse: float, lambda_: float) -> float:
    """Generalised advantage estimation from values with independent errors of variance `mse`.

    With n decisions from this one to the end: s² Σ_{0<k<n} λ^{2k} + e² λ^{2(n−1)} of the outcome's own noise, and
    mse (1 + (1 − λ)² Σ_{0<=k<n−1} λ^{2k}) of the critic's. At λ = 0 that is 2 mse.
    """
    n = np.arange(length, 0, -1)
    powers = np.concatenate([[0.0], np.cumsum(lambda_ ** (2.0 * np.arange(length)))])  # Σ_{k<n} λ^{2k}
    later = w.signal**2 * (powers[n] - 1) + w.noise**2 * lambda_ ** (2.0 * (n - 1))
    last_step = mse * (1 + (1 - lambda_) ** 2 * powers[n - 1])
    return w.signal / math.sqrt(float(np.mean(later + last_step)))


def replayed_value(length: int, w: Setting, replays: int) -> float:
    """One-step differences of values that are each the mean of S fresh continuations.

    A value d decisions before the end has error variance (d s² + e²)/S; a difference has those of both its values, the
    last one the outcome's noise e² in place of the second.
    """
    error = (np.arange(length, 0, -1) * w.signal**2 + w.noise**2) / replays
    following = np.append(error[1:], w.noise**2)
    return w.signal / math.sqrt(float(np.mean(error + following)))


def bernoulli(length: int, w: Setting, slope: float) -> float:
    """Success with probability σ(β Σ x_t), against the mean of the others: Δ / sqrt(1/4 − Δ² + 1/(4 (K − 1))).

    Δ = E σ(β (Z + s)) − 1/2 over the sum Z of the other T − 1 decisions.
    """
    n = length - 1
    k = np.arange(n + 1)
    log = np.cumsum(np.concatenate([[0.0], np.log((n - k[:-1]) / (k[:-1] + 1))])) - n * math.log(2)
    z = slope * w.signal * (2 * k - n + 1)
    delta = float(np.exp(log) @ (0.5 * np.tanh(z / 2)))
    return delta / math.sqrt(0.25 - delta**2 + 0.25 / (w.group - 1))


def control(length: int, w: Setting, error: float, others: float, fitted_on: float) -> float:
    """The ledger's `control` advantage: the outcome less β times the centred claims of all other decisions.

    With claims of error variance v: β = s²/(s² + v), and e² + (T − 1) s² v/(s² + v) + (T s² + e²)/others, the last
    being the baseline's, which no claim takes out; times 1 + 1/n for a β fitted on n traces (to first order).
    """
    s2, e2 = w.signal**2, w.noise**2
    variance = e2 + (length - 1) * s2 * error / (s2 + error) + (length * s2 + e2) / others
    return w.signal / math.sqrt(variance * (1 + 1 / fitted_on))
