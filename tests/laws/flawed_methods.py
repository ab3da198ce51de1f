"""Methods each of which breaks one law, and a sound one that they were made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from estimators import rloo
from estimators.base import Credit, Reason, check_event_array, finish
from estimators.group import settle_alone
from estimators.medians import median_of_others
from estimators.members import members
from graphs.floats import at_least_float32
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first, segment_mean, segment_sum


def good(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    """Reward against the group's mean, each trace once: what the flawed ones below should have been."""
    reward = at_least_float32(reward)
    there = jnp.asarray(graph.trace_mask) & jnp.isfinite(reward)
    acted = segment_count(graph.trace_ids, graph.num_traces, graph.event_mask & graph.action_mask) > 0
    x = jnp.where(there, reward, 0)
    if event_reward is not None:
        step, real = check_event_array(graph, "event_reward", event_reward)
        x = x + segment_sum(step, graph.trace_ids, graph.num_traces, real)
    return against_mean(graph, x, there & acted)


def against_mean(graph: Any, x: Any, there: Any, **changes: Any) -> Credit:
    groups, num = jnp.asarray(graph.group_ids), graph.num_traces
    weight = jnp.ones_like(x)
    if graph.cluster_ids is not None:  # replays of one trace are one sample
        weight = safe_divide(weight, segment_count(graph.cluster_ids, num, there, x.dtype)[graph.cluster_ids])
    n = segment_sum(weight, groups, num, there)
    reference = x[segment_first(groups, num, there)]
    relative = segment_sum(weight * (x - reference[groups]), groups, num, there)
    mean = reference + safe_divide(relative, n)
    trace = jnp.asarray(graph.trace_ids)
    reason = jnp.where(there, jnp.where(n[groups] > 1, Reason.VALID, Reason.SINGLETON), Reason.NO_REWARD)
    return finish(
        graph,
        **{
            "credit": x[trace],
            "baseline": mean[groups][trace],
            "scale": jnp.ones_like(x[trace]),
            "stderr": jnp.full_like(x[trace], jnp.inf),
            "reason": reason[trace],
            "unit": "trace",
            "estimand": "return",
            "source": "good",
            "centred": False,
            "own_outcome": True,
            **changes,
        },
    )


def replaced(result: Credit, **changes: Any) -> Credit:
    return dataclasses.replace(result, **changes)


def concretises(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    if float(reward[0]) > 0:
        return good(graph, reward, event_reward=event_reward)
    return good(graph, reward, event_reward=event_reward)


def differs_when_compiled(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, credit=out.credit * (2.0 if isinstance(reward, jax.core.Tracer) else 1.0))


def fills_padding(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, credit=jnp.where(graph.event_mask, out.credit, 7.0))


def divides_by_padded_length(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, scale=jnp.where(out.valid, graph.num_events / 100.0, 1.0))


def takes_padding_for_a_group(graph: Any, reward: Any) -> Credit:
    """A mean of the group with the traces of the padding, whose rewards are 0 and whose group is the first."""
    has_outcome = jnp.isfinite(reward)
    groups, num = jnp.asarray(graph.group_ids), graph.num_traces
    sums = segment_sum(jnp.where(has_outcome, reward, 0.0), groups, num)
    mean = safe_divide(sums, segment_count(groups, num, has_outcome, sums.dtype))
    out = good(graph, reward)
    return replaced(out, baseline=jnp.where(out.valid, mean[graph.group_ids[graph.trace_ids]], 0.0))


def forgets_the_mask(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    step = jax.ops.segment_sum(jnp.asarray(event_reward), graph.trace_ids, num_segments=graph.num_traces)
    return good(graph, reward + step)


def counts_from_the_first(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(
        out, credit=jnp.where(out.valid, out.credit + 0.01 * jnp.asarray(graph.trace_ids, out.credit.dtype), 0)
    )


def takes_missing_for_zero(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    return good(graph, jnp.where(jnp.isfinite(reward), reward, 0), event_reward=event_reward)


def looks_at_the_batch(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    spread = jnp.max(jnp.where(jnp.isfinite(reward) & graph.trace_mask, reward, 0))
    return replaced(out, scale=jnp.where(out.valid, 1 + jnp.abs(spread), 1))


def looks_at_itself_only(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, baseline=jnp.zeros_like(out.baseline))


def ignores_reward(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, credit=jnp.zeros_like(out.credit), baseline=jnp.zeros_like(out.credit))


def denies_its_own_outcome(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    return replaced(good(graph, reward, event_reward=event_reward), own_outcome=False)


def denies_it_but_for_the_last(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    trace = jnp.asarray(graph.trace_ids)
    last = jnp.concatenate([trace[1:] != trace[:-1], jnp.ones(1, bool)])
    return replaced(good(graph, reward, event_reward=event_reward), outcome_mask=last)


def turns_the_sign(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, credit=-out.credit, baseline=-out.baseline, estimand="total")


def calls_returns_centred(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, baseline=jnp.zeros_like(out.baseline), centred=True)


def of_others(key: str, unit: str, *, centred: bool = False) -> Callable[..., Credit]:
    """The outcome minus the median of three or more others of its key, under a declaration that may be false."""

    def median_of_key(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        m = members(graph, reward, event_reward, by=key, population="trace", aggregate="return")
        middle, others = median_of_others(m)
        x = m.score[m.of_event]
        middle, reason = settle_alone(m, m.member_mask[m.of_event], others < 1, x, middle, "refuse", few=others < 3)
        return finish(graph, credit=x, baseline=middle, scale=jnp.ones_like(x), stderr=jnp.full_like(x, jnp.inf),
                      reason=reason, unit=unit, estimand="total", source="own", centred=centred,
                      own_outcome=True)  # fmt: skip

    return median_of_key


def expects_its_own_marks(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    """The mean of the others, and what the trace itself earned at its events."""
    out = rloo(graph, reward, event_reward=event_reward)
    step, real = check_event_array(graph, "event_reward", event_reward)
    own = segment_sum(step, graph.trace_ids, graph.num_traces, real)[graph.trace_ids]
    return replaced(out, baseline=jnp.where(out.valid, out.baseline + own, 0))


def is_among_the_rows_of_its_role(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    """The mean of the others' outcomes, and the mean event reward of all other rows of the group's role."""
    out = rloo(graph, reward, event_reward=event_reward)
    step, real = check_event_array(graph, "event_reward", event_reward)
    key = graph.group_ids[graph.trace_ids] * graph.num_agents + graph.agent_role_ids[graph.agent_ids]
    rows = jnp.arange(graph.num_events)
    other = real[None] & (key[:, None] == key[None]) & (rows[:, None] != rows[None])
    mean = jnp.where(other, step[None], 0).sum(1) / jnp.maximum(other.sum(1), 1).astype(step.dtype)
    return replaced(out, baseline=jnp.where(out.valid, out.baseline + mean, 0), unit="event")


def is_among_traces_of_its_length(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    """The median of the others of the group with as many actions, which later actions change."""
    acts = segment_count(graph.trace_ids, graph.num_traces, graph.event_mask & graph.action_mask, jnp.int32)
    key = (graph.group_ids * graph.num_events + acts)[graph.trace_ids]
    m = members(graph, reward, event_reward, by=key, population="trace", aggregate="sum")
    median, others = median_of_others(m)
    out = rloo(graph, reward, event_reward=event_reward)
    return replaced(out, baseline=jnp.where(out.valid & (others > 0), median, out.baseline))


def divides_by_its_own_return(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = rloo(graph, reward, event_reward=event_reward)
    return replaced(out, scale=jnp.where(out.valid, 1 + jnp.abs(out.credit), 1))


def refuses_the_worst(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    """No number for a trace that is more than 2 below the mean of the others."""
    out = rloo(graph, reward, event_reward=event_reward)
    kept = out.valid & (out.credit > out.baseline - 2)
    return replaced(
        out,
        credit=jnp.where(kept, out.credit, 0),
        baseline=jnp.where(kept, out.baseline, 0),
        reason=jnp.where(kept | ~out.valid, out.reason, Reason.TOO_FEW).astype(jnp.int8),
    )


def omits_later_marks(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    """The outcome and the action's own event reward against the mean outcome of the others."""
    out = rloo(graph, reward)
    step, _ = check_event_array(graph, "event_reward", event_reward)
    return replaced(out, credit=jnp.where(out.valid, out.credit + step, 0), unit="event", estimand="return")


def expects_what_comes(graph: Any, reward: Any, *, event_reward: Any = None, value: Any) -> Credit:
    """The return minus the mean value of the trace's states, of which the later ones follow from its actions."""
    out = rloo(graph, reward, event_reward=event_reward)
    known, real = check_event_array(graph, "value", value)
    mean = segment_mean(known, graph.trace_ids, graph.num_traces, real)[graph.trace_ids]
    return replaced(out, baseline=jnp.where(out.valid, mean, 0))


def refuses_agents(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    off = out.valid & (jnp.asarray(graph.agent_ids) % 2 == 1)
    return replaced(
        out,
        credit=jnp.where(off, 0, out.credit),
        baseline=jnp.where(off, 0, out.baseline),
        reason=jnp.where(off, Reason.NO_EVIDENCE, out.reason).astype(jnp.int8),
    )


def divides_by_spread(root: Callable[[Any], Any]) -> Callable[..., Credit]:
    def method(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        out = good(graph, reward, event_reward=event_reward)
        group = jnp.asarray(graph.group_ids)[graph.trace_ids]
        squares = segment_sum((out.credit - out.baseline) ** 2, group, graph.num_traces, out.valid)
        return replaced(out, scale=jnp.where(out.valid, root(squares)[group], 1.0))

    return method


divides_by_zero = divides_by_spread(jnp.sqrt)
has_infinite_slopes = divides_by_spread(lambda squares: jnp.sqrt(squares) + 1e-6)


def has_double_constants(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, stderr=out.stderr.astype(float) + jnp.zeros(graph.num_events))


def computes_in_bfloat16(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    if reward.dtype != jnp.bfloat16:
        return out
    return replaced(out, baseline=(out.baseline / 3).astype(jnp.bfloat16).astype(jnp.float32) * 3)


def rounds_at_ties(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, baseline=jnp.where(out.valid, out.credit * 1.000001, 0))


def divides_marks_by_the_spread_of_outcomes(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    plain = divides_by_spread(lambda squares: jnp.sqrt(squares + 1e-12))(graph, reward)
    marked = good(graph, reward, event_reward=event_reward)
    return replaced(marked, scale=plain.scale)


def divides_by_the_spread_of_others(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    """The outcome minus the mean of the group's other traces, over their spread; as it is where they are equal."""
    plain = rloo(graph, reward)
    traces, reward = jnp.arange(graph.num_traces), jnp.asarray(reward)
    there = jnp.asarray(graph.trace_mask) & jnp.isfinite(reward)
    other = there[None] & (graph.group_ids[:, None] == graph.group_ids[None]) & (traces[:, None] != traces[None])
    apart = jnp.where(other, reward[None] - reward[:, None], 0)
    n = jnp.maximum(other.sum(axis=1), 1).astype(apart.dtype)
    mean = apart.sum(axis=1) / n
    variance = jnp.where(other, (apart - mean[:, None]) ** 2, 0).sum(axis=1) / n
    scale = safe_sqrt(jnp.where(variance > 0, variance, 1))[graph.trace_ids]
    return replaced(plain, scale=jnp.where(plain.valid, scale, 1))


def keeps_the_last_axis(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    @jax.custom_batching.custom_vmap
    def double(x: Any) -> Any:
        return x

    @double.def_vmap
    def rule(size: int, batched: Any, x: Any) -> Any:
        return jnp.broadcast_to(x[:1], x.shape), True

    return good(graph, double(reward), event_reward=event_reward)


def dislikes_no_event_reward(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return out if event_reward is not None else replaced(out, credit=out.credit * 2)


def forgets_event_rewards(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    return good(graph, reward)


def counts_each_replay(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    alone = dataclasses.replace(graph, cluster_ids=None)
    return good(alone, reward, event_reward=event_reward)


def is_compared_with_its_replays(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    """Against the best of the others: to repeat an outcome changes no maximum, so only its own baseline tells."""
    out, group = good(graph, reward, event_reward=event_reward), jnp.asarray(graph.group_ids)
    x, there = jnp.nan_to_num(at_least_float32(reward)), jnp.asarray(graph.trace_mask) & jnp.isfinite(reward)
    other = (group[:, None] == group[None]) & there[None] & ~jnp.eye(len(x), dtype=bool)
    best = jnp.max(jnp.where(other, x[None], -jnp.inf), 1)
    baseline = jnp.where(jnp.isfinite(best), best, 0)[jnp.asarray(graph.trace_ids)]
    return replaced(out, baseline=jnp.where(out.valid, baseline, 0))


def splits_units(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, credit=jnp.where(out.valid, out.credit + check_event_array(graph, "e", event_reward)[0], 0))


def names_no_unit(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    return replaced(good(graph, reward, event_reward=event_reward), unit="team")


def scales_event_rewards_by_the_largest(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    step, _ = check_event_array(graph, "event_reward", event_reward)
    largest = jnp.max(jnp.abs(step))
    return good(graph, reward, event_reward=step / jnp.where(largest > 0, largest, 1))


def divides_by_the_number_of_outcomes(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    scored = jnp.sum(jnp.where(jnp.isfinite(reward) & graph.trace_mask, 1, 0)).astype(out.credit.dtype)
    return replaced(out, scale=jnp.where(out.valid, scored, 1))


def subtracts_the_largest_value(graph: Any, reward: Any, *, event_reward: Any = None, value: Any) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    largest = jnp.max(check_event_array(graph, "value", value)[0])
    return replaced(out, baseline=jnp.where(out.valid, out.baseline + largest, 0))


def states_its_error(times: float) -> Callable[..., Credit]:
    """The mean of the others with so many times its standard error."""

    def stated(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        plain = rloo(graph, reward, event_reward=event_reward)
        return replaced(plain, stderr=plain.stderr * times)

    return stated
