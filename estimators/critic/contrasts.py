"""The value of a decision over its alternative at the same prefix: doubly robust, with a critic as outcome model.

Spawn or not, stop or go on: of the two only one is in the log. Where the policy took either with a known probability,
the mean effect over prefixes is identified, and a critic's values of both make its error small; they cannot make it
wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from estimators.counterfactual.contrast import Contrast, doubly_robust_contrast
from graphs.errors import CreditError
from graphs.event_graph import Array

__all__ = ["DecisionContrast", "Overlap", "decision_contrast"]

BINS = 10


class Overlap(NamedTuple):
    """How comparable the two sides are.

    Attributes:
      treated, control: decisions on either side.
      least, most: of the propensities of the treatment; NaN without decisions.
      treated_bins, control_bins: int [10], decisions by propensity in tenths, to be drawn one against the other.
      effective: effective sample size of the smaller side.
    """

    treated: int
    control: int
    least: float
    most: float
    treated_bins: np.ndarray
    control_bins: np.ndarray
    effective: float


class DecisionContrast(NamedTuple):
    """The effect (`contrast.effect[0]`, `stderr[0]`, `valid[0]`, `reason[0]`) and how far both sides overlap."""

    contrast: Contrast
    overlap: Overlap


def decision_contrast(
    reward: Array,
    trace: Array,
    *,
    treated: Array,
    propensity: Array,
    value_treated: Array,
    value_control: Array,
    fitted_on: Array = (),
    min_ess: float = 50.0,
) -> DecisionContrast:
    """Mean of Q(h, treatment) − Q(h, alternative) over the prefixes h at which a decision of one kind was made.

    A front of `estimators.doubly_robust_contrast` for critics: standard errors are over traces, and traces that the
    critic was fitted on are refused, since a model that has seen an outcome understates the error of its own residual.

    Args:
      reward: float [T], outcome of each trace.
      trace: int [N], the trace of each decision.
      treated: bool [N], True where the decision fell that way (spawned, stopped).
      propensity: float [N], the policy's probability of that; NaN where it was not logged.
      value_treated, value_control: float [N], or [M, N] of an ensemble whose mean is taken: V̂ of the prefix with
        either decision, as `estimators.critic.predict.predict_replaced` gives it.
      fitted_on: int [..], traces that the critic was fitted on or stopped by.
      min_ess: smallest effective sample size of either side.

    Returns:
      `DecisionContrast`; the contrast refuses, with a `Reason`, where a propensity is missing, 0 or 1, where a side is
      empty or its effective size too small.

    Raises:
      CreditError: a decision's trace is among `fitted_on`.
    """
    trace, took = np.asarray(trace), np.asarray(treated, bool)
    seen = np.intersect1d(trace, np.asarray(fitted_on, int))
    if len(seen):
        raise CreditError(
            f"trace {seen[0]} and {len(seen) - 1} others were used to fit the critic; "
            "expected decisions of other traces (its held-out tasks, or cross-fitting)"
        )
    models = [np.asarray(v, np.float32) for v in (value_treated, value_control)]
    m1, m0 = (v.mean(axis=0) if v.ndim == 2 else v for v in models)
    p = np.asarray(propensity, np.float32)
    contrast = doubly_robust_contrast(
        jnp.asarray(np.asarray(reward, np.float32)[trace]),
        jnp.asarray(took),
        jnp.asarray(p),
        jnp.asarray(m1),
        jnp.asarray(m0),
        cluster_ids=jnp.asarray(trace, jnp.int32),
        min_ess=min_ess,
    )
    known = np.isfinite(p)
    tenth = np.where(known, np.clip(p, 0, 0.999) * BINS, 0).astype(int)
    bins = [np.bincount(tenth[known & side], minlength=BINS) for side in (took, ~took)]
    overlap = Overlap(
        int(took.sum()),
        int((~took).sum()),
        float(p[known].min()) if known.any() else float("nan"),
        float(p[known].max()) if known.any() else float("nan"),
        bins[0],
        bins[1],
        float(contrast.ess[0]),
    )
    return DecisionContrast(contrast, overlap)
