"""The model of each event, and of agents that have another one than their trace."""

from __future__ import annotations

import collections

import numpy as np

from graphs.traces.batch import Traces

__all__ = ["agent_models", "event_models"]


def event_models(traces: Traces) -> tuple[list[str], np.ndarray]:
    """Names of models, and the model of each real event: int [events].

    An action has the model that it states, another event that of the latest action of its agent instance, or before any
    that of the first. Where these state none it is the trace's, that of the agent that begins.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()}, model="m + n")
      >>> _ = [record.event(name, 3, "a", action=True, model=model) for name, model in (("x", "m"), ("y", "n"))]
      >>> names, model = event_models(assemble([record]))
      >>> [names[i] for i in model]
      ['m', 'n']
    """
    graph, n = traces.graph, traces.sizes.events
    called, of_trace = (table["model"].combine_chunks().dictionary_encode() for table in (traces.events, traces.traces))
    stated, model = (texts.indices.fill_null(-1).to_numpy(zero_copy_only=False) for texts in (called, of_trace))
    names = ["", *of_trace.dictionary.to_pylist(), *called.dictionary.to_pylist()]
    model = model[np.asarray(graph.trace_ids)[:n]] + 1
    if called.dictionary:
        # Effects of a call follow it among the events of its instance.
        agent = np.asarray(graph.agent_ids)[:n]
        order = np.argsort(agent, kind="stable")
        calls = (stated >= 0) | np.asarray(graph.action_mask)[:n]
        latest = np.maximum.accumulate(np.where(calls[order], np.arange(n), -1))
        first = np.minimum.accumulate(np.where(calls[order], np.arange(n), n - 1)[::-1])[::-1]
        acted = (latest >= 0) & (agent[order[latest]] == agent[order])
        source = order[np.where(acted, latest, first)]
        source = np.where(agent[source] == agent[order], source, order)
        own = np.empty(n, np.int64)
        own[order] = stated[source]
        model = np.where(own >= 0, own + 1 + len(of_trace.dictionary), model)
    distinct, which = np.unique(names, return_inverse=True)
    return distinct.tolist(), which[model]


def agent_models(traces: Traces) -> dict[str, dict[int, set[str]]]:
    """Of agents that somewhere act with another model than that of their trace: the models with which each acts, by
    the row of the trace; "" where none is stated.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent(), "b": Agent()}, model="m")
      >>> _ = [record.event(name, 3, agent, action=True, model=model) for name, agent, model in ("xam", "ybn")]
      >>> agent_models(assemble([record]))
      {'b': {0: {'n'}}}
    """
    models, model = event_models(traces)
    names: list[str] = traces.agents["name"].to_pylist()
    of_trace = [name or "none stated" for name in traces.traces["model"].to_pylist()]
    trace = np.asarray(traces.graph.agent_trace).tolist()
    acts = np.flatnonzero(np.asarray(traces.graph.action_mask)[: traces.sizes.events])
    pairs = np.unique(np.stack([np.asarray(traces.graph.agent_ids)[acts], model[acts]]), axis=1).T.tolist()
    apart = {names[agent] for agent, which in pairs if models[which] not in ("", of_trace[trace[agent]])}
    found: dict[str, dict[int, set[str]]] = {}
    for agent, which in pairs:
        if names[agent] in apart:
            of_agent = found.setdefault(names[agent], collections.defaultdict(set))
            of_agent[trace[agent]].add(models[which])
    return {agent: dict(rows) for agent, rows in found.items()}
