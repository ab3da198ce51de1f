"""True values of a scripted team's traces, in float64: the expected outcome before each event.

Linear outcomes. With p_d the chance of a good choice at d and M_d what a good choice is worth in expectation,

    M_d = w_d + Σ_{c just below d} p_c M_c        increment of d = (x_d − p_d) M_d where all above d are 1, else 0

Logistic outcomes. V(log) = E m(Z). The part of Z that is still open is a sum of independent terms: one for each
decision d to come that counts, together with the decisions below d. The characteristic function of a term at θ is

    C_d(θ) = 1 − p_d + p_d A_d(θ),        A_d(θ) = exp(iθ w_d) Π_{c just below d} C_c(θ)

and before any choice the one of Z is Φ(θ) = Π_{roots} C_d(θ). A choice replaces the factor C_d by A_d (good) or by 1
(bad). With as many θ as there are scores, V = Re Σ_θ Φ(θ) G(θ), G the inverse Fourier transform of m: exact but for
rounding, for a cost of decisions times scores in each trace.
"""

from __future__ import annotations

import numpy as np

from graphs.worlds.scripted.scores import ScoreRule
from graphs.worlds.team import Additive, Bernoulli, Outcome, Pivotal

__all__ = ["counted", "expectations", "linear"]

_CHUNK = 1 << 21  # complex numbers held at once for each array


def counted(rule: ScoreRule, choice: np.ndarray) -> np.ndarray:
    """Decisions above which all choices are good: bool [n, D]."""
    counts = np.ones_like(choice)
    for d in np.flatnonzero(rule.gate >= 0):  # a gate comes before what hangs on it
        above = rule.gate[d]
        counts[:, d] = choice[:, above] & counts[:, above]
    return counts


def linear(link: Outcome) -> tuple[float, float] | None:
    """(a, b) where the expected outcome given the score z is a + b z; None where it is not linear.

    A `Pivotal` outcome is linear because its scores are 0 and 1.
    """
    if isinstance(link, Additive):
        return 0.0, float(link.scale)
    if isinstance(link, Pivotal):
        return float(link.bad), float(link.good) - float(link.bad)
    return None


def expectations(rule: ScoreRule, chance: np.ndarray, link: Outcome, choice: np.ndarray) -> np.ndarray:
    """E[R | first j choices] of traces of one task: float64 [n, D + 1], j = 0 … D.

    Args:
      chance: float64 [D], of a good choice.
      choice: bool [n, D].
    """
    counts = counted(rule, choice)
    line = linear(link)
    if line is None:
        assert isinstance(link, Bernoulli)
        return _logistic(rule, chance, link, choice, counts)
    worth = rule.weight.astype(np.float64)
    for d in np.flatnonzero(rule.gate >= 0)[::-1]:
        worth[rule.gate[d]] += chance[d] * worth[d]
    roots = rule.gate < 0
    start = line[0] + line[1] * float(np.sum((chance * worth)[roots]))
    steps = np.where(counts, (choice - chance) * worth, 0.0) * line[1]
    return start + np.concatenate([np.zeros((len(choice), 1)), np.cumsum(steps, axis=1)], axis=1)


def _logistic(
    rule: ScoreRule, chance: np.ndarray, link: Bernoulli, choice: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    low, high = int(np.minimum(rule.weight, 0).sum()), int(np.maximum(rule.weight, 0).sum())
    size, decisions = high - low + 1, len(chance)
    score = np.arange(low, high + 1)
    mean = 1 / (1 + np.exp(-np.clip(link.slope * (score - link.centre), -700, 700)))
    # Of real functions the frequencies above size / 2 mirror those below.
    weight = np.fft.rfft(np.roll(mean, low)) / size
    weight[1 : (size + 1) // 2] *= 2
    values = np.zeros((len(choice), decisions + 1))
    step = max(1, _CHUNK // (decisions + 1))
    for first in range(0, len(weight), step):
        theta = 2 * np.pi * np.arange(first, min(first + step, len(weight))) / size
        # Sums of logarithms, with factors of exactly 0 counted apart: a factor that is replaced leaves by subtraction,
        # and a product over hundreds of agents does not vanish before they have chosen.
        after, no_after = 1j * np.outer(rule.weight, theta), np.zeros((decisions, len(theta)), np.int32)
        before, no_before = np.empty_like(after), np.empty_like(no_after)
        for d in range(decisions - 1, -1, -1):
            factor = 1 - chance[d] + chance[d] * np.where(no_after[d] > 0, 0, np.exp(after[d]))
            no_before[d] = factor == 0
            before[d] = np.log(np.where(factor == 0, 1, factor))
            if rule.gate[d] >= 0:
                after[rule.gate[d]] += before[d]
                no_after[rule.gate[d]] += no_before[d]
        logs, zeros = (before, after), (no_before, no_after)
        roots = rule.gate < 0
        for i in range(len(choice)):
            good, counting = choice[i][:, None], counts[i][:, None]
            log, zero = (
                np.concatenate(
                    [f[0][roots].sum(0)[None], np.where(counting, np.where(good, f[1], 0) - f[0], 0)]
                ).cumsum(axis=0)
                for f in (logs, zeros)
            )
            values[i] += np.real(np.where(zero > 0, 0, np.exp(log)) @ weight[first : first + len(theta)])
    return values
