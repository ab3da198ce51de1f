"""Closed forms of the signal-to-noise ratio of one decision's advantage, in the world of `credit.bench.snr_logs`.

A trace has T decisions. Each is worth x_t, which is +s or −s with equal chances, and the outcome adds noise:

    R = Σ_t x_t + ε,    ε normal with standard deviation e

Given x_t, the advantage A of decision t has mean x_t and some variance around it. Each function below returns

    SNR = s / sqrt(mean over t of Var(A | x_t))

for one way to compute A. It is exact unless its docstring says otherwise. `docs/snr.md` has the derivations.
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
    """The world's parameters.

    Attributes:
      signal: s, the size of a decision's worth.
      noise: e, the standard deviation of what the outcome adds.
      group: K, the number of traces in a group.
      world: whose noise it is, as in `credit.bench.snr_logs`; closed forms take its variance e², except `normalised`.
    """

    signal: float = 1.0
    noise: float = 1.0
    group: int = 8
    world: str = "normal"


def shared(length: int, w: Setting, others: float) -> float:
    """A = the outcome minus the mean of `others` further outcomes; infinitely many stand for the true mean.

    The mean of the whole group, the outcome itself included, scales A by 1 − 1/K. That leaves the ratio as it is.
    """
    s2, e2 = w.signal**2, w.noise**2
    return w.signal / math.sqrt((length - 1) * s2 + e2 + (length * s2 + e2) / others)


def normalised(length: int, w: Setting) -> float:
    """A = the outcome minus the group's mean, divided by S, the group's standard deviation (ddof 1).

    Exact for normal outcomes; these are sums of many terms, and nearly normal. Let σ² = Var R.

        E[A²] = (K − 1)/K               whatever the outcomes
        E[S] = c₄(K) σ                  for normal outcomes
        E[x_t | R] = R s²/σ²            for normal outcomes
        Σ_i A_i R_i = (K − 1) S         by definition of S

    The last three give the mean of A in the direction of the decision, E[A x_t]/s = (K − 1)/K · c₄(K) · s/σ.
    """
    k = w.group
    c4 = math.sqrt(2 / (k - 1)) * math.exp(math.lgamma(k / 2) - math.lgamma((k - 1) / 2))
    mean = (k - 1) / k * c4 * w.signal / math.sqrt(length * w.signal**2 + w.noise**2)
    return mean / math.sqrt((k - 1) / k - mean**2)


def parts(length: int, w: Setting, count: int) -> float:
    """A as in `shared`, from the outcome of the decision's own part alone: a trace has `count` parts, scored apart.

    In world normal each part has noise of its own. In others the parts share the trace's noise evenly.
    """
    alone = Setting(w.signal, w.noise / (math.sqrt(count) if w.world == "normal" else count), w.group)
    return shared(length // count, alone, w.group - 1)


def message_error(length: int, w: Setting, alternatives: int, replays: int) -> np.ndarray:
    """The variance of a message's counterfactual advantage given the message, for each decision: float64 [T].

    With J alternatives, S replays of each, and d decisions still to come: ((d s² + e²)/S) J/(J − 1) + s²/(J − 1).
    """
    j = alternatives
    left = np.arange(length - 1, -1, -1)
    spread = (left * w.signal**2 + w.noise**2) / replays
    return spread * j / (j - 1) + w.signal**2 / (j - 1)


def message(length: int, w: Setting, alternatives: int, replays: int) -> float:
    """A = a message's mean outcome minus that of its siblings from the same context, over `replays` runs of each."""
    return w.signal / math.sqrt(float(np.mean(message_error(length, w, alternatives, replays))))


def critic(length: int, w: Setting, mse: float, lambda_: float) -> float:
    """A by generalised advantage estimation, from values whose errors are independent and have variance `mse`.

    With n decisions from this one to the end, this one included, the variance has two parts:

        s² Σ_{0<k<n} λ^{2k} + e² λ^{2(n−1)}             of later decisions and of the outcome's noise
        mse (1 + (1 − λ)² Σ_{0≤k<n−1} λ^{2k})           of the critic; at λ = 0 it is 2 mse
    """
    n = np.arange(length, 0, -1)
    powers = np.concatenate([[0.0], np.cumsum(lambda_ ** (2.0 * np.arange(length)))])  # Σ_{k<n} λ^{2k}
    later = w.signal**2 * (powers[n] - 1) + w.noise**2 * lambda_ ** (2.0 * (n - 1))
    last_step = mse * (1 + (1 - lambda_) ** 2 * powers[n - 1])
    return w.signal / math.sqrt(float(np.mean(later + last_step)))


def replayed_value(length: int, w: Setting, replays: int) -> float:
    """A = the value after the decision minus the value before it, each the mean outcome of `replays` continuations.

    A value d decisions before the end has the error variance (d s² + e²)/S, and A has the sum of both. After the last
    decision the outcome itself, with variance e², takes the place of the second value.
    """
    error = (np.arange(length, 0, -1) * w.signal**2 + w.noise**2) / replays
    following = np.append(error[1:], w.noise**2)
    return w.signal / math.sqrt(float(np.mean(error + following)))


def bernoulli(length: int, w: Setting, slope: float) -> float:
    """A as in `shared`, where the outcome is success (1) or failure (0): Δ / sqrt(1/4 − Δ² + 1/(4 (K − 1))).

    Success has the probability σ(β Σ x_t), with σ the logistic function and β = `slope`. A good decision adds
    Δ = E σ(β (Z + s)) − 1/2 to it, where Z is the sum of the other T − 1 decisions.
    """
    n = length - 1
    k = np.arange(n + 1)
    log = np.cumsum(np.concatenate([[0.0], np.log((n - k[:-1]) / (k[:-1] + 1))])) - n * math.log(2)
    z = slope * w.signal * (2 * k - n + 1)
    delta = float(np.exp(log) @ (0.5 * np.tanh(z / 2)))
    return delta / math.sqrt(0.25 - delta**2 + 0.25 / (w.group - 1))


def control(length: int, w: Setting, error: float, others: float, fitted_on: float) -> float:
    """A = the ledger's `control` advantage: the outcome minus β times the centred claims of all other decisions.

    Claims have the error variance v = `error`, and β = s²/(s² + v) is the best coefficient. The variance is

        e² + (T − 1) s² v/(s² + v)      of the outcome, after the claims
        + (T s² + e²)/others            of the baseline, from which no claim is taken

    times 1 + 1/n for a β that was fitted on n traces, to first order.
    """
    s2, e2 = w.signal**2, w.noise**2
    variance = e2 + (length - 1) * s2 * error / (s2 + error) + (length * s2 + e2) / others
    return w.signal / math.sqrt(variance * (1 + 1 / fitted_on))
