"""Puppeteer's released estimator: plain REINFORCE on an outcome with step costs; no critic and no baseline."""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.options import checked_options
from estimators.sequence.chains import chains
from graphs.event_graph import Array, EventGraph

__all__ = ["puppeteer"]


@checked_options
@functools.partial(jax.jit, static_argnames=("max_steps", "stop"))
def puppeteer(
    graph: EventGraph,
    reward: Array,
    *,
    tokens: Array,
    event_reward: Array | None = None,
    cost_per_token: float | Array = 1e-5,
    max_steps: int = 5,
    scale: float | Array = 0.1,
    growth: float | Array = 1.0,
    factor: float | Array = -1.0,
    terminator: float | Array = 0.5,
    discount: float | Array = 0.99,
    stop: Literal["chosen", "appended"] = "chosen",
) -> Credit:
    """Discounted return of each choice of the orchestrator, with costs of steps and of the calls that it ordered.

    With s = 0, 1, … the number of the choice in its trace and S = `max_steps`,

        c(s) = scale · ln(1 + growth (s + 1) / (S + 1)) / ln(1 + growth)
        r_s  = factor · c(s) · cost_per_token · tokens_s          before the last choice
        r_s  = R + terminator · c(z) if R > 0, else R − terminator · c(z)          at the last one, which stops
        G_s  = r_s + discount · G_{s+1}

    with z = s + 1 if the orchestrator chose to stop, and z = s if the run ended otherwise and the stop was appended:
    the released code takes the length of the trajectory before it checks for the stop.

    Plain REINFORCE on the priced return, not on R: unbiased for its mean at discount 1. Below 1 no choice is weighted
    by the discount of its own place, which is a bias. The cost of a step *adds* to a success, so that a later success
    earns more at the last choice.

    Args:
      graph: the choices are its actions; agents that follow them are frozen there, hence no actions.
      reward: float [T]; the authors' is +1 or −1.
      tokens: int or float [E], tokens of the call that each choice ordered; negative or NaN where the log has none. A
        choice without, and those before it, are invalid; the last one needs none.
      event_reward: not used.
      cost_per_token: 2 · parameters · 1e-5 reproduces the authors' cost, floating-point operations over 100,000.
      max_steps: S, the most steps that a run may have.
      scale, growth: of c.
      factor: −1 by default there; −1.5 for web search.
      terminator: the factor of the price at the stop.
      discount: from one choice to the next.
      stop: "chosen", the last choice of a trace is the orchestrator's own decision to stop; "appended", it is the stop
        that the code adds where a run ended without one.

    Returns:
      `Credit` at level "event", estimand "return"; `stderr` infinite.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: ChatDev, branch puppeteer, `REINFORCE_continuous.py` at b24e6e6, executed, golden `puppeteer_reinforce`.
    The survey calls it a learned central critic; the code has none. Prefixes shared by forks, which the code counts
    once a fork, are not repeated here.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "a"], reward=[1.0, 1.0], tokens=[1000, 0])
      >>> result = credit.puppeteer(graph, reward, tokens=rows.evidence["tokens"])
      >>> rows.gather(result.advantage).tolist()
      [1.0187, 1.0292]
    """
    del event_reward
    outcome, scored = check_reward(graph, reward)
    trace, real = jnp.asarray(graph.trace_ids), jnp.asarray(graph.event_mask)
    spent = jnp.asarray(tokens)
    spent = jnp.where(spent >= 0, spent.astype(outcome.dtype), jnp.nan) if spent.dtype.kind in "iu" else spent
    amount, known_mask = check_event_array(graph, "tokens", spent)
    known_mask = known_mask & (amount >= 0)
    steps = chains(graph, real & jnp.asarray(graph.action_mask) & scored[trace])
    counted = jnp.cumsum(steps.row, dtype=jnp.int32)
    first = jax.ops.segment_min(jnp.where(steps.row, counted, counted.shape[0] + 1), steps.chain, graph.num_traces)
    number = jnp.where(steps.row, counted - first[steps.chain], 0).astype(outcome.dtype)

    def price_of(step: jax.Array) -> jax.Array:
        return scale * jnp.log1p(growth * (step + 1) / (max_steps + 1)) / jnp.log1p(growth)

    price, final = price_of(number), outcome[trace]
    at_end = terminator * (price_of(number + 1) if stop == "chosen" else price)
    end = jnp.where(final > 0, final + at_end, final - at_end)
    paid = factor * price * cost_per_token * steps.take(amount).astype(outcome.dtype)
    earned = jnp.where(steps.last, end, paid).astype(outcome.dtype)
    total = steps.backward(jnp.full_like(earned, 1) * discount, earned)
    missing = steps.reaches(~(steps.last | steps.take(known_mask)))
    reason = jnp.where(steps.row, jnp.where(missing, Reason.NO_EVIDENCE, Reason.VALID), Reason.NO_REWARD)
    return finish(
        graph,
        credit=total,
        baseline=jnp.zeros_like(total),
        scale=jnp.ones_like(total),
        stderr=jnp.full_like(total, jnp.inf),
        reason=reason,
        unit="event",
        estimand="return",
        source="puppeteer",
        centred=False,
        own_outcome=True,
    )
