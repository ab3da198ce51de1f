"""What an agent made of the results that it combined: its outcome beside the best and the mean of them."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
import numpy as np

from credit.metrics.clustered_error import clustered_error
from credit.reports.missing_lines import lacking_traces
from credit.reports.tasks import task_ids
from credit.reports.trace_returns import exact_outcomes, refuse_coarse
from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.segment import segment_count, segment_first
from graphs.structure.forest import real_edges
from graphs.traces.batch import Traces

__all__ = ["AggregateValue", "aggregate_values"]


@dataclasses.dataclass(frozen=True)
class AggregateValue:
    """The aggregations by agents of one name.

    Attributes:
      agent: name of the agent that combined.
      decisions: aggregations with an outcome and with two results or more whose reward is known.
      unknown: aggregations that lack one of these, or are of a trace that lacks lines.
      results: mean number of results that one combined.
      outcome, best, mean: means over aggregations of the trace's outcome, the best result and the mean result.
      over_best, over_mean: means of outcome − best and outcome − mean.
      over_best_stderr, over_mean_stderr: their standard errors over tasks (`clustered_error`); None of few tasks.
    """

    agent: str
    decisions: int
    unknown: int
    results: float
    outcome: float
    best: float
    mean: float
    over_best: float
    over_best_stderr: float | None
    over_mean: float
    over_mean_stderr: float | None


def aggregate_values(traces: Traces) -> list[AggregateValue]:
    """What aggregation added to the results that it combined, by agent.

    An action of type `aggregate` combines the agent instances from which an edge leads to it. The reward of a result is
    the `agent_reward` of its instance, in the units of the outcome. Choosing the best result gives outcome − best = 0,
    choosing at random outcome − mean = 0.

    Args:
      traces: what was read, with `agent_reward` at events of the combined agents.

    Raises:
      CreditError: no action of type `aggregate`, no `agent_reward`, no aggregation of which all is known, or
        differences that single precision does not hold.

    Examples:
      >>> import json, pathlib, tempfile
      >>> import credit
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.jsonl"
      >>> _ = path.write_text(json.dumps({
      ...     "trace_id": "a", "task_id": "q", "rewards": {"team": 1.0}, "costs": {},
      ...     "events": [{"id": "0", "type": "message", "agent": "x", "agent_reward": 1.0},
      ...                {"id": "1", "type": "message", "agent": "y", "agent_reward": 0.0},
      ...                {"id": "2", "type": "aggregate", "agent": "judge"}],
      ...     "edges": [{"src": "0", "dst": "2", "type": "aggregate"}, {"src": "1", "dst": "2", "type": "aggregate"}]}))
      >>> row = aggregate_values(credit.read(path))[0]
      >>> row.over_best, row.over_mean
      (0.0, 0.5)
    """
    graph = traces.graph
    agent, trace = np.asarray(graph.agent_ids), np.asarray(graph.trace_ids)
    combines = np.asarray(graph.action_mask) & (np.asarray(graph.event_type) == EventType.AGGREGATE)
    if not combines.any():
        raise CreditError("the log has no action of type aggregate")
    if "agent_reward" not in traces.evidence:
        raise CreditError("aggregation is compared with the 'agent_reward' of what it combines, and the log has none")
    stated = np.asarray(traces.evidence["agent_reward"].array, np.float64)
    known, num = jnp.asarray(np.isfinite(stated)), graph.num_agents
    has = np.asarray(segment_count(jnp.asarray(agent), num, known)) > 0
    rewards = np.where(has, stated[np.asarray(segment_first(jnp.asarray(agent), num, known))], np.nan)
    senders, receivers = real_edges(graph)
    within = combines[receivers] & (agent[senders] != agent[receivers])
    combined: dict[int, set[int]] = {}
    for sender, receiver in zip(senders[within].tolist(), receivers[within].tolist(), strict=True):
        combined.setdefault(receiver, set()).add(int(agent[sender]))
    outcome, _ = exact_outcomes(traces)
    sample = task_ids(traces)  # traces of a task share its luck
    found: dict[str, list[tuple[int, float, float, float, int]]] = {}
    unknown: dict[str, int] = {}
    lacking = lacking_traces(traces)
    for event in np.flatnonzero(combines).tolist():
        name = traces.agents["name"][int(agent[event])].as_py()
        results = rewards[sorted(combined.get(event, ()))]
        number = int(trace[event])
        if lacking[number] or len(results) < 2 or not np.isfinite(results).all() or not math.isfinite(outcome[number]):
            unknown[name] = unknown.get(name, 0) + 1
        else:
            mean = float(results.mean())
            row = (int(sample[number]), float(outcome[number]), float(results.max()), mean, len(results))
            found.setdefault(name, []).append(row)
    if not found:
        raise CreditError(
            f"none of {sum(unknown.values())} aggregations has an outcome and two results with an 'agent_reward'"
        )
    off = [outcome - mean for rows in found.values() for _, outcome, _, mean, _ in rows]
    refuse_coarse("'agent_reward'", rewards, np.array(off))
    return [_row(name, rows, unknown.get(name, 0)) for name, rows in sorted(found.items())]


def _row(name: str, rows: list[tuple[int, float, float, float, int]], unknown: int) -> AggregateValue:
    sample, outcome, best, mean, count = (np.array(column) for column in zip(*rows, strict=True))
    over_best, over_mean = outcome - best, outcome - mean
    return AggregateValue(
        name, len(rows), unknown, float(count.mean()), float(outcome.mean()), float(best.mean()), float(mean.mean()),
        float(over_best.mean()), _known(over_best, sample), float(over_mean.mean()), _known(over_mean, sample),
    )  # fmt: skip


def _known(values: np.ndarray, sample: np.ndarray) -> float | None:
    error = clustered_error(values, sample)
    return error if math.isfinite(error) else None
