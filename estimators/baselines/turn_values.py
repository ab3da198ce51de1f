"""The value of each turn before it is played, from the other traces that play a turn of that number, and its error.

`estimators.turn_baseline` counts a trace that has stopped as 0. That makes an unbiased baseline and no state value: its
differences charge the actions of a long trace with the stopping of the others. The ledger takes these values instead.
"""

from __future__ import annotations

import jax.numpy as jnp

from estimators.base import StateValues
from graphs.event_graph import Array
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first, segment_sum

__all__ = ["PRIOR_TRACES", "turn_values"]

PRIOR_TRACES = 2.0
"""How many traces the variance of the whole group counts for in the variance at one turn."""


def turn_values(
    to_go: Array,
    leads: Array,
    key: Array,
    sample: Array | None,
    trace: Array,
    whole: Array,
    group: Array,
    acts: Array,
) -> StateValues:
    """The value of each turn from the other samples of its group that play a turn of its number.

    With m such samples and G_j what sample j earned from that turn on (a mean over the traces of a sample),

        V = Σ_j G_j / m     v = ((m − 1) var G_j + ν S²) / (m − 1 + ν)     stderr = sqrt(v / m)     spread = sqrt(v)

    where S² = ((n − 1) S_g² + ν S_b²) / (n − 1 + ν), S_g² is the variance of the returns of the n traces of the group,
    own trace included, S_b² that within the groups of the batch, and ν = `PRIOR_TRACES`: two equal outcomes do not
    prove that a third would be the same. NaN where m = 0.

    `to_go`, `key`, `sample` and `whole` are used at first actions of turns only.

    Args:
      to_go: float [E], what was earned from there on.
      leads: bool [E], the first actions of turns.
      key: int [E] in [0, E), one id for each pair of a group and a number of turn.
      sample: int [E] in [0, E), one id for each pair of a key and an independent sample: traces that share a choice.
        None where each trace is one.
      trace: int [E] in [0, T), the trace of each event.
      whole: float [T], the return of each trace.
      group: int [T] in [0, T), the group of each trace.
      acts: bool [T], whether the trace has a turn.

    Returns:
      `StateValues`, at first actions; NaN elsewhere.
    """
    num = to_go.shape[0]
    reference = to_go[segment_first(key, num, leads)][key]
    heads, own = leads, to_go - reference
    if sample is not None:
        place = jnp.arange(num, dtype=jnp.int32)
        heads = leads & (segment_first(sample, num, leads)[sample] == place)
        count = segment_count(sample, num, leads, to_go.dtype)
        own = safe_divide(segment_sum(own, sample, num, leads), count)[sample]
    several = segment_count(key, num, heads, to_go.dtype)[key]
    others = several - 1
    mean = safe_divide(segment_sum(own, key, num, heads)[key], several)
    value = mean - safe_divide(own - mean, others)
    squares = segment_sum((own - mean) ** 2, key, num, heads)[key] - safe_divide((own - mean) ** 2 * several, others)

    groups = group.shape[0]
    first = whole[segment_first(group, groups, acts)][group]
    traces = segment_count(group, groups, acts, to_go.dtype)[group]
    centre = safe_divide(segment_sum(whole - first, group, groups, acts)[group], traces)
    apart = jnp.where(acts, (whole - first - centre) ** 2, 0)
    freedom = jnp.sum(jnp.where(acts, safe_divide(traces - 1, traces), 0))
    in_batch = jnp.sum(apart) / jnp.where(freedom > 0, freedom, 1)
    in_group = segment_sum(apart, group, groups)[group] + PRIOR_TRACES * in_batch
    of_trace = in_group / jnp.maximum(traces - 1 + PRIOR_TRACES, PRIOR_TRACES)
    # What a scatter writes XLA computes once a trace; else it would anew at each event.
    prior = jnp.zeros_like(of_trace).at[jnp.arange(groups)].set(of_trace)[trace]

    variance = safe_divide(jnp.maximum(squares, 0) + PRIOR_TRACES * prior, others - 1 + PRIOR_TRACES)
    known = leads & (others > 0)
    return StateValues(
        value=jnp.where(known, reference + value, jnp.nan),
        stderr=jnp.where(known, safe_sqrt(safe_divide(variance, others)), jnp.nan),
        spread=jnp.where(known, safe_sqrt(variance), jnp.nan),
    )
