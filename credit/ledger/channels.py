"""Reward channels: several rewards of one trace, each with a ledger of its own, and their weighted sum as one ledger.

Composite rewards (an outcome, a bonus for working in parallel, a process reward of a role) are kept apart until they
are composed: a method runs on one channel at a time, the ledger accounts for that channel's total exactly, and training
uses the weighted sum of the ledgers (`credit.ledger.sums`), which accounts for the weighted sum of the rewards. Each
ledger shows what its reward paid to which event, and a weight can be annealed without computing anything again.

    channels = (channel(traces, "team"), channel(traces, "finish_rate", weight=annealed(0.2, 0.0, steps=1000)))
    ledgers = {c.name: credit.compose(traces.graph, c.total, claims_on(c)) for c in channels}
    ledger = credit.ledger.weighted_sum(ledgers, {c.name: c.at(step) for c in channels})
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from credit.metrics.event_costs import COSTS_OF_EVENTS, event_costs, stated_costs
from credit.reports.missing_lines import lacking_traces
from credit.reports.trace_returns import returns
from graphs.errors import CreditError, expect
from graphs.event_graph import KINDS, EventType
from graphs.structure.critical_path import critical_steps
from graphs.traces.batch import Traces

__all__ = [
    "DERIVED",
    "FAMILIES",
    "Channel",
    "Family",
    "annealed",
    "by_indicator",
    "channel",
    "depart",
    "indicator",
    "kimi_parl",
    "sharp",
]

Family = Literal["shared", "individual", "role", "process", "tool", "debate", "verifier", "orchestration", "hybrid"]
Weight = float | Callable[[int], float]

FAMILIES: dict[Family, tuple[str, str]] = {
    "shared": ("R1", "one outcome of the whole team"),
    "individual": ("R2", "an agent's own: its marginal against a run in which its output is masked"),
    "role": ("R3", "of a role: what a planner or a critic is asked for"),
    "process": ("R4", "of a turn or step, before the outcome is known"),
    "tool": ("R5", "of a tool call: it ran, its result was used"),
    "debate": ("R6", "of an exchange: who moved whom, and to what"),
    "verifier": ("R6", "of a check of an answer against the truth or a rubric"),
    "orchestration": ("R7", "of how the work was organised: parallelism, splitting, sub-tasks that were finished"),
    "hybrid": ("R8", "a weighted sum of rewards of other families"),
}
"""The eight families of rewards, numbered as in the survey; "debate" and "verifier" are both its R6."""


@dataclasses.dataclass(frozen=True)
class Channel:
    """One reward of each trace.

    Attributes:
      name: unique among the channels of a sum.
      family: one of `FAMILIES`.
      outcome: float32 [T], what arrives at the end; NaN where the trace has no such reward. 0 in a channel whose
        rewards arrive at events.
      event_reward: float32 [E], what arrives at events, 0 elsewhere; None where nothing does.
      total: float32 [T], the outcome and all that arrives at events: what its ledger accounts for.
      weight: a number, or a function of the training step.
    """

    name: str
    family: Family
    outcome: np.ndarray
    event_reward: np.ndarray | None
    total: np.ndarray
    weight: Weight

    def at(self, step: int) -> float:
        """The weight at a training step.

        Raises:
          CreditError: it is not finite.
        """
        weight = float(self.weight(step)) if callable(self.weight) else float(self.weight)
        if not math.isfinite(weight):
            raise CreditError(f"weight of channel {self.name!r} is {weight} at step {step}; expected a finite number")
        return weight


def annealed(
    start: float, end: float, steps: int, *, shape: Literal["linear", "cosine"] = "linear"
) -> Callable[[int], float]:
    """A weight that goes from `start` at step 0 to `end` at step `steps`, and stays there.

    "linear" is start + (end − start) t, "cosine" start + (end − start) (1 − cos πt) / 2, with t = step / steps. Any
    function of the step serves as well, such as optax's schedules.

    Args:
      start: the weight at step 0.
      end: the weight from step `steps` on.
      steps: of training, 1 or more.
      shape: "linear" or "cosine".

    Returns:
      A function of the step.

    Raises:
      CreditError: `steps` is not positive, or no such shape.

    Examples:
      >>> weight = annealed(0.3, 0.0, 100)
      >>> print(weight(0), weight(50), weight(1000))
      0.3 0.15 0.0
    """
    if steps < 1:
        raise CreditError(f"steps is {steps}; expected 1 or more")
    if shape not in ("linear", "cosine"):
        raise CreditError(f"shape is {shape!r}; expected 'linear' or 'cosine'")

    def weight(step: int) -> float:
        t = min(max(step / steps, 0.0), 1.0)
        return start + (end - start) * (t if shape == "linear" else (1 - math.cos(math.pi * t)) / 2)

    return weight


def by_indicator(start: float, end: float, *, low: float, high: float) -> Callable[[float], float]:
    """A weight by a measured number x, not by the step: `start` up to x = `low`, `end` from x = `high` on.

    Between them it is start + (end − start) (x − low) / (high − low). A bonus for spawning may end once most traces
    spawn:

        fade = by_indicator(0.3, 0.0, low=0.2, high=0.8)
        channel(traces, "spawn_rate", weight=fade(indicator(traces, "spawn_rate")))

    Measure x on earlier batches: a weight that the batch itself decides makes its traces depend on each other.

    Args:
      start: the weight where the indicator is at most `low`.
      end: the weight where it is at least `high`.
      low, high: of the indicator.

    Returns:
      A function of the indicator.

    Raises:
      CreditError: `low` is not less than `high`.

    Examples:
      >>> fade = by_indicator(0.3, 0.1, low=0.2, high=0.6)
      >>> print(fade(0.0), round(fade(0.4), 3), fade(1.0))
      0.3 0.2 0.1
    """
    if not low < high:
        raise CreditError(f"low is {low} and high {high}; expected low less than high")

    def weight(measured: float) -> float:
        t = min(max((measured - low) / (high - low), 0.0), 1.0)
        return end if t >= 1 else start + (end - start) * t

    return weight


def indicator(traces: Traces, name: str) -> float:
    """The mean of a channel over the traces that have it, such as "spawn_rate" or "finish_rate"; NaN where none has.

    Args:
      traces: a batch.
      name: of the channel.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=[0] * 2, trace=[0, 1], reward=[1.0, 0.0], tokens=[6, 2])
      >>> indicator(rows.traces, "tokens")
      4.0
    """
    total = channel(traces, name).total[: traces.sizes.traces].astype(np.float64)
    total = total[np.isfinite(total)]
    return float(total.mean()) if len(total) else math.nan


def channel(traces: Traces, name: str, *, weight: Weight = 1.0, family: Family | None = None) -> Channel:
    """A channel by name, out of a log.

    Names: a reward of the traces ("team", or any other key of the log's `rewards`); "event_reward", all rewards at
    events; "event_reward.KIND", those at events of one of `graphs.event_graph.KINDS` ("tool" takes the results of tool
    calls with the calls); "agent_reward.NAME", what the agents of that name earned by their own traces; "costs.NAME", a
    cost that the log states of traces; "tokens", "input_tokens", "tool_calls" and "seconds", costs at events; and
    `DERIVED`, which follow from structure or evidence.

    Costs are amounts, not rewards: their weight is −λ, with λ in units of reward for a token, a call or a second. A
    trace that lacks the cost of an event has no such channel.

    Args:
      family: of the survey; by default "shared" for rewards of traces, "process" for rewards at events ("tool" for
        those of tools), and what `DERIVED` says.

    Raises:
      CreditError: the log has no such reward; the names that it has are in the message.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> rewards = {"team": 1.0, "r_format": 0.5}
      >>> record = TraceRecord("t0", "task", "log.jsonl", instances={"a": Agent()}, rewards=rewards)
      >>> record.event("e0", 0, "a", action=True)
      0
      >>> format_channel = channel(assemble([record]), "r_format", weight=0.2)
      >>> print(format_channel.name, format_channel.family, format_channel.total[0], format_channel.at(step=0))
      r_format shared 0.5 0.2
    """
    expect("traces", traces, Traces, "what credit.read returns")
    if name in DERIVED:
        kind, derive = DERIVED[name]
        outcome, at_events = derive(traces)
        return _channel(traces, name, family or kind, outcome, at_events, weight)
    stated = traces.evidence.get(f"rewards.{name}")
    if stated is not None:
        outcome = stated.array.astype(np.float32)
        return _channel(traces, name, family or "shared", outcome, None, weight)
    base, _, kind_name = name.partition(".")
    if base == "event_reward" and "event_reward" in traces.evidence and (not kind_name or kind_name in KINDS):
        steps = traces.evidence["event_reward"]
        mask = steps.mask
        if kind_name:
            mask = mask & np.isin(np.asarray(traces.graph.event_type), _types(kind_name))
        at_events = np.where(mask, steps.array, 0).astype(np.float32)
        return _channel(traces, name, family or ("tool" if kind_name == "tool" else "process"), None, at_events, weight)
    if base == "agent_reward" and base in traces.evidence and kind_name in traces.agents["name"].to_pylist():
        return _channel(traces, name, family or "individual", _of_agents(traces, kind_name), None, weight)
    if base == "costs" and name in traces.evidence:
        return _channel(traces, name, family or "shared", stated_costs(traces, kind_name), None, weight)
    if name in COSTS_OF_EVENTS:
        outcome, at_events = _cost(traces, name)
        return _channel(traces, name, family or "process", outcome, at_events, weight)
    known = traces.reward_channels
    if "event_reward" in traces.evidence:
        known += ["event_reward", *(f"event_reward.{kind}" for kind in KINDS)]
    if "agent_reward" in traces.evidence:
        known += [f"agent_reward.{agent}" for agent in dict.fromkeys(traces.agents["name"].to_pylist())]
    known += [cost for cost in traces.evidence if cost.startswith("costs.")]
    listed = ", ".join([*known, *COSTS_OF_EVENTS, *DERIVED])
    raise CreditError(f"channel is {name!r}, which the log does not have; it has: {listed}")


def _of_agents(traces: Traces, name: str) -> np.ndarray:
    """The sum of the outcomes of the agents of a name in each trace: [T].

    It is NaN where an acting agent lacks an outcome, or all lack one. If no trace has outcomes of both kinds, an
    outcome of a trace counts as the outcome of each of its agents (`estimators.members`).
    """
    graph = traces.graph
    stated, agent = traces.evidence["agent_reward"], np.asarray(graph.agent_ids)
    outcomes = np.full(graph.num_agents, np.nan)
    outcomes[agent[stated.rows[::-1]]] = stated.amounts[::-1]  # of several assignments to one place the last counts
    trace, outcome = np.asarray(graph.agent_trace), np.asarray(traces.reward, np.float64)
    if not np.isfinite(outcomes + outcome[trace]).any():
        outcomes = np.where(np.isnan(outcomes), outcome[trace], outcomes)
    named = np.flatnonzero(np.array(traces.agents["name"].to_pylist(), object) == name)
    acts = np.bincount(agent[np.asarray(graph.action_mask)], minlength=graph.num_agents) > 0
    lacks = np.bincount(trace[named[np.isnan(outcomes[named]) & acts[named]]], minlength=graph.num_traces) > 0
    named = named[np.isfinite(outcomes[named])]
    total, count = (np.bincount(trace[named], x, graph.num_traces) for x in (outcomes[named], None))
    return np.where((count > 0) & ~lacks, total, np.nan)


def _cost(traces: Traces, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A cost at events [E], and 0 for each trace, NaN where an event's is not known or lines are missing [T]."""
    graph, n = traces.graph, traces.sizes.events
    at_events = np.zeros(graph.num_events)
    at_events[:n] = getattr(event_costs(traces), name)
    known = np.isfinite(at_events)
    lacking = np.bincount(np.asarray(graph.trace_ids)[~known], minlength=graph.num_traces) > 0
    lacking[: traces.sizes.traces] |= lacking_traces(traces)
    return np.where(lacking, np.nan, 0.0), np.where(known, at_events, 0)


def _types(kind: str) -> list[int]:
    return [int(t) for t in KINDS[kind]] + ([int(EventType.TOOL_RESULT)] if kind == "tool" else [])


def _channel(
    traces: Traces, name: str, family: Family, outcome: np.ndarray | None, at_events: np.ndarray | None, weight: Weight
) -> Channel:
    graph = traces.graph
    if outcome is None:
        outcome = np.zeros(graph.num_traces, np.float32)
    outcome = np.where(np.asarray(graph.trace_mask), outcome, 0).astype(np.float32)
    total = outcome
    if at_events is not None:
        at_events = np.where(np.asarray(graph.event_mask), at_events, 0).astype(np.float32)
        arrived = np.bincount(np.asarray(graph.trace_ids), at_events, graph.num_traces)
        total = (outcome + arrived).astype(np.float32)
    return Channel(name, family, outcome, at_events, total, weight)


def _parallel_saving(traces: Traces) -> tuple[np.ndarray, None]:
    """1 − critical steps / actions of each trace; NaN where critical steps are not defined."""
    graph, stage = traces.graph, traces.evidence.get("stage")
    steps = critical_steps(graph) if stage is None else critical_steps(graph, stage.array)
    action = np.asarray(graph.action_mask) & np.asarray(graph.event_mask)
    actions = np.bincount(np.asarray(graph.trace_ids), action, graph.num_traces)
    known = steps.defined & (actions > 0)
    return np.where(known, 1 - steps.steps / np.where(known, actions, 1), np.nan), None


def _finish_rate(traces: Traces) -> tuple[np.ndarray, None]:
    """The part of a trace's spawned agents that have a `return`; 0 where none was spawned, since none finished."""
    graph = traces.graph
    spawned = _spawned(traces)
    real = np.asarray(graph.event_mask)
    returned = np.zeros(graph.num_agents, bool)
    returned[np.asarray(graph.agent_ids)[real & (np.asarray(graph.event_type) == EventType.RETURN)]] = True
    trace = np.asarray(graph.agent_trace)
    count = np.bincount(trace, spawned, graph.num_traces)
    done = np.bincount(trace, spawned & returned, graph.num_traces)
    return done / np.where(count > 0, count, 1), None


def _spawn_rate(traces: Traces) -> tuple[np.ndarray, None]:
    """1 where a trace spawned an agent, else 0."""
    spawned = np.bincount(np.asarray(traces.graph.agent_trace), _spawned(traces), traces.graph.num_traces)
    return (spawned > 0).astype(np.float64), None


def _spawned(traces: Traces) -> np.ndarray:
    """The agent instances that another one spawned: bool [A]."""
    graph = traces.graph
    spawned: np.ndarray = np.asarray(graph.agent_mask) & (np.asarray(graph.agent_parent) != np.arange(graph.num_agents))
    return spawned


def _marginal(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """The return minus the return of a run with the agent's output masked, at the event that states the second.

    Raises:
      CreditError: the log states no such return, or several of one agent, as of single decisions.
    """
    masked = traces.evidence.get("counterfactual_reward")
    if masked is None:
        from graphs.traces.schema import EVENT_EVIDENCE

        how = EVENT_EVIDENCE["counterfactual_reward"].how_to_log
        raise CreditError(f"channel 'marginal' needs 'counterfactual_reward', which the log does not have; {how}")
    times = np.bincount(np.asarray(traces.graph.agent_ids)[masked.rows], minlength=1)
    if times.max() > 1:
        name = traces.agents["name"][int(times.argmax())].as_py()
        raise CreditError(
            f"channel 'marginal': agent {name!r} has 'counterfactual_reward' at {times.max()} events of a trace; "
            "expected one, of a run with all its output masked: those of single decisions do not add up"
        )
    earned = returns(traces)
    gain = np.zeros(traces.graph.num_events)
    gain[masked.rows] = earned[np.asarray(traces.graph.trace_ids)[masked.rows]] - masked.amounts
    scored = np.isfinite(np.asarray(traces.reward))
    return np.where(scored, 0, np.nan), np.where(np.isfinite(gain), gain, 0)


DERIVED: dict[str, tuple[Family, Callable[[Traces], tuple[np.ndarray, np.ndarray | None]]]] = {
    "parallel_saving": ("orchestration", _parallel_saving),
    "finish_rate": ("orchestration", _finish_rate),
    "spawn_rate": ("orchestration", _spawn_rate),
    "marginal": ("individual", _marginal),
}
"""Channels that follow from a log's structure or evidence: family, and (outcome [T], rewards at events [E] or None)."""


def kimi_parl(traces: Traces, *, parallel: Weight, finish: Weight, outcome: str = "team") -> tuple[Channel, ...]:
    """Kimi PARL's reward r_perf + λ₁ r_parallel + λ₂ r_finish as three channels, λ₁ and λ₂ annealed to 0.

    The report states neither the schedules nor the two forms. Here r_finish is the part of the spawned agents that
    returned, and r_parallel = 1 − critical steps / actions, one form of the saving that critical steps measure (there
    they are a budget for an episode, not a reward). To use another, make its channel by `channel` from the log.

    Args:
      traces: what was read.
      parallel: λ₁, a number or a function of the step; `annealed(λ, 0.0, steps)` is the published shape.
      finish: λ₂, likewise.
      outcome: the reward of the log that is r_perf.

    Returns:
      Three channels: the outcome, `parallel_saving` and `finish_rate`.

    Raises:
      CreditError: the log has no reward named `outcome`.
    """
    return (
        channel(traces, outcome),
        channel(traces, "parallel_saving", weight=parallel),
        channel(traces, "finish_rate", weight=finish),
    )


def sharp(
    traces: Traces, *, shared: Weight, marginal: Weight, tool: Weight, outcome: str = "team"
) -> tuple[Channel, ...]:
    """SHARP's reward w₁ R + w₂ marginal_i + w₃ tool_i as three channels; the weights were not published.

    marginal_i is the outcome less that with agent i's output masked, logged as `counterfactual_reward` at one event of
    the agent; tool_i are rewards at tool calls and their results. Marginals are effects: they add up to what the agents
    are paid, not to the outcome, so their channel has a total of its own.

    Args:
      traces: what was read.
      shared: w₁, a number or a function of the step.
      marginal: w₂, likewise.
      tool: w₃, likewise.
      outcome: the reward of the log that is R.

    Raises:
      CreditError: the log lacks one of the three.
    """
    return (
        channel(traces, outcome, weight=shared),
        channel(traces, "marginal", weight=marginal),
        channel(traces, "event_reward.tool", weight=tool),
    )


def depart(traces: Traces, *, role: Weight, task: Weight = 1.0, outcome: str = "team") -> tuple[Channel, ...]:
    """DEPART's sparse task reward and dense rewards of roles (at events) as two channels; no formula is published.

    Args:
      traces: a batch.
      role, task: weights of the two channels.
      outcome: the channel of the log that is the outcome.
    """
    return channel(traces, outcome, weight=task), channel(traces, "event_reward", weight=role, family="role")
