"""The model of each event, and of agents that have another one than their trace."""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphs.distinct_columns import distinct_columns
from graphs.event_graph import EventGraph
from graphs.padding import Sizes
from graphs.traces.batch import Traces
from graphs.traces.evidence import Evidence

__all__ = [
    "agent_models",
    "embeddings",
    "event_models",
    "first_models",
    "models_of_agent",
    "trace_models",
    "with_answered_models",
    "with_unnamed_models",
    "without_joined_models",
]

_DATE = re.compile(r"[-@:_][0-9]{3}[0-9-]*")


def event_models(traces: Traces) -> tuple[list[str], np.ndarray]:
    """Names of models, and the model of each real event: int [events]; "" where none is known.

    An event has the model that it states. A call, which is an action with a count of tokens, that states none has that
    of its trace. Another event has that of the latest event of its agent instance which states one or is a call, or
    before any that of the first; where its instance has none of these, that of its trace. The model of several models,
    joined, is none of an event. That of one of `embeddings` is of no other event.

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
    trace, model = np.asarray(graph.trace_ids)[:n], model + 1
    if called.dictionary:
        of_calls = _models_of_calls(stated, trace, called.dictionary.to_pylist())
        of_traces = _of_traces([names[which] for which in model], of_calls)
        model = np.where([len(of) > 1 for of in of_traces], 0, model)[trace]
        # Effects of a call follow it among the events of its instance.
        agent = np.asarray(graph.agent_ids)[:n]
        order = np.argsort(agent, kind="stable")
        alone = embeddings(traces)
        calls = ((stated >= 0) | _is_call(graph, n, traces.evidence)) & ~alone
        latest = np.maximum.accumulate(np.where(calls[order], np.arange(n), -1))
        first = np.minimum.accumulate(np.where(calls[order], np.arange(n), n - 1)[::-1])[::-1]
        acted = (latest >= 0) & (agent[order[latest]] == agent[order])
        source = order[np.where(acted, latest, first)]
        source = np.where(agent[source] == agent[order], source, order)
        own = np.empty(n, np.int64)
        own[order] = stated[source]
        own = np.where(alone, stated, own)
        model = np.where(own >= 0, own + 1 + len(of_trace.dictionary), model)
    else:
        model = model[trace]
    distinct, which = np.unique(names, return_inverse=True)
    return distinct.tolist(), which[model]


def embeddings(traces: Traces) -> np.ndarray:
    """Whether each real event is no action and states a model and tokens that it read, as a tool that embeds: bool
    [events].

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["x"], reward=[1.0])
      >>> embeddings(rows.traces).tolist()
      [False]
    """
    n, read = traces.sizes.events, traces.evidence.get("input_tokens")
    states = traces.events["model"].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    acts = np.asarray(traces.graph.action_mask)[:n]
    found: np.ndarray = states & ~acts & (False if read is None else read.mask[:n])
    return found


def _models_of_calls(stated: np.ndarray, trace: np.ndarray, names: list[str]) -> dict[int, set[str]]:
    """Of each trace the models that its events state."""
    found: dict[int, set[str]] = {}
    known = np.flatnonzero(stated >= 0)
    for row, which in distinct_columns(trace[known], stated[known]).columns.T.tolist():
        found.setdefault(row, set()).add(names[which])
    return {row: of - {""} for row, of in found.items()}


def _is_call(graph: EventGraph, n: int, evidence: Mapping[str, Evidence]) -> np.ndarray:
    """Whether each real event is an action of which the log states a count of tokens."""
    counts = [evidence[name].mask[:n] for name in ("tokens", "input_tokens") if name in evidence]
    called: np.ndarray = np.asarray(graph.action_mask)[:n] & np.logical_or.reduce(counts or [np.zeros(n, bool)])
    return called


def with_answered_models(
    events: pa.Table,
    models: Sequence[str],
    trace: np.ndarray,
    cut: Sequence[bool],
    of_spans: Sequence[bool],
    evidence: Mapping[str, Evidence],
) -> tuple[pa.Table, list[str]]:
    """The table of events, and the models of traces, with the answers' names of models.

    An answered call whose answer names no model has the requested one, or that with a date where other answers to it
    name this. A call without an answer, as at a rate limit, has the requested name alone, which is no model of its own
    where other calls that asked for it were answered: in its trace, or else in the log, the name most often. A
    requested name stays where the answer has another one, or none.

    Args:
      events: the table.
      models: of each trace, as its log states it, "" for none.
      trace: of each event, int [events].
      cut: of each trace, whether its log lacks lines.
      of_spans: of each trace, whether it is read from calls, whose model is the requested name where no answer has one;
        else equal names that are both stated are the answer's, and without one the requested name is the model.
      evidence: of the events; a call with tokens was answered.
    """
    requested, stated, found = events["requested_model"].combine_chunks(), events["model"].combine_chunks(), [*models]
    if requested.null_count == len(requested):
        return events, found
    whole = pa.array([model or None for model in models], pa.string()).take(pa.array(trace))
    if not all(of_spans):
        others = pa.array(~np.asarray(of_spans, bool)[trace])
        answers = pc.and_(pc.equal(requested, stated).fill_null(False), others)
        requested = pc.if_else(answers, pa.scalar(None, requested.type), requested)
        bare = pc.or_kleene(pc.equal(stated, ""), pc.is_null(pc.coalesce(stated, whole)))
        stated = pc.if_else(pc.and_(others, bare).fill_null(False), pc.coalesce(requested, stated), stated)
    if requested.null_count == len(requested):
        return events, found
    n = len(trace)
    coded = pa.chunked_array([requested, pc.coalesce(stated, whole)]).combine_chunks().dictionary_encode()
    names: list[str] = coded.dictionary.to_pylist()
    asked, model = np.split(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), [n])
    by_trace: dict[tuple[int, int], dict[int, int]] = collections.defaultdict(dict)
    by_log: dict[int, collections.Counter[int]] = collections.defaultdict(collections.Counter)
    answered = (asked >= 0) & (model >= 0) & (asked != model)
    pairs = collections.Counter(zip(*(of[answered].tolist() for of in (trace, asked, model)), strict=True))
    for (row, name, answer), count in pairs.items():
        by_trace[row, name][answer] = count
        by_log[name][answer] += count
    counts = [evidence[name].array[:n] > 0 for name in ("tokens", "input_tokens") if name in evidence]
    counted = np.logical_or.reduce([*counts, np.zeros(n, bool)])
    told: np.ndarray = stated.is_valid().to_numpy(zero_copy_only=False)
    for event in np.flatnonzero((asked >= 0) & (asked == model)).tolist():
        row, name = int(trace[event]), int(asked[event])
        answers = by_trace.get((row, name)) or by_log.get(name) or {}
        if counted[event]:
            answers = {of: count for of, count in answers.items() if _is_dated(names[of], names[name])}
        if answers:
            model[event] = answer = max(answers, key=lambda one: (answers[one], names[one]))
            found[row] = names[answer] if models[row] == names[name] else found[row]
    # As `graphs.reading.files.name_models` has it.
    for row in sorted({*trace[told & (asked >= 0)].tolist()}):
        of = slice(*np.searchsorted(trace, [row, row + 1]))
        only = {*model[of][told[of]].tolist()}
        if not cut[row] and len(only) == 1 and found[row] in ("", name := names[only.pop()]):
            found[row], told[of] = name, False
    kept = (asked >= 0) & ((asked != model) | counted)
    for column, values, shown in (("model", model, told), ("requested_model", asked, kept)):
        texts = coded.dictionary.take(pa.array(values, mask=~shown))
        events = events.set_column(events.column_names.index(column), column, texts)
    return events, found


def _is_dated(answer: str, requested: str) -> bool:
    """Whether an answer's name is the requested one with a date or a revision: the same model."""
    return answer.startswith(requested) and bool(_DATE.fullmatch(answer, len(requested)))


def without_joined_models(models: Sequence[str], called: pa.ChunkedArray, trace: np.ndarray) -> list[str]:
    """The models of traces, "" where that joins the models of its events, of which one began.

    Args:
      models: of each trace, "" for none.
      called: the model of each event, null for that of its trace.
      trace: of each event, int [events].
    """
    if not any(" + " in model for model in models):
        return [*models]
    coded = called.combine_chunks().dictionary_encode()
    stated = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    of_traces = _of_traces(models, _models_of_calls(stated, trace, coded.dictionary.to_pylist()))
    return [model if len(of) < 2 else "" for model, of in zip(models, of_traces, strict=True)]


def with_unnamed_models(
    events: pa.Table, graph: EventGraph, n: Sizes, untold: Sequence[bool], evidence: Mapping[str, Evidence]
) -> pa.Table:
    """The table of events with "" as the model of calls, and of agents, that have none.

    A null stands for the model of the trace. Where the log states none of the whole, and those of some events, the
    others have none. What an agent's calls led to is left to `event_models`.

    Args:
      events: the table.
      graph, n: the graph, and its real sizes.
      untold: of each trace, whether its log states no model of the whole.
      evidence: of the events.
    """
    called = events["model"].combine_chunks()
    if called.null_count in (0, n.events) or not any(untold):
        return events
    trace, agent = np.asarray(graph.trace_ids)[: n.events], np.asarray(graph.agent_ids)[: n.events]
    stated: np.ndarray = called.is_valid().to_numpy(zero_copy_only=False)
    told, names_one = (
        np.bincount(of[stated], minlength=count) > 0 for of, count in ((trace, n.traces), (agent, n.agents))
    )
    bare = (told & untold)[trace] & ~stated & (_is_call(graph, n.events, evidence) | ~names_one[agent])
    model = pc.if_else(pa.array(bare), "", called)
    return events.set_column(events.column_names.index("model"), "model", model)


def agent_models(traces: Traces, *, every: bool = False) -> dict[str, dict[int, str]]:
    """The `first_models` of each agent, by the row of the trace.

    Args:
      traces: what was read.
      every: whether of all agents; else of those that act in traces of several, and not with the same in all.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> records = [TraceRecord(name, "q", "log.jsonl", instances={"a": Agent(), "b": Agent()}) for name in "tu"]
      >>> for record, lead in zip(records, "lm"):
      ...     _ = record.event("x", 3, "a", action=True, model=lead)
      ...     _ = record.event("y", 3, "b", action=True, model="n")
      >>> agent_models(assemble(records))
      {'a': {0: 'l', 1: 'm'}}
    """
    found: dict[str, dict[int, str]] = {}
    several = set()
    for row, of in enumerate(first_models(traces)):
        for agent, model in of.items():
            found.setdefault(agent, {})[row] = model
        several |= {row} if len({*of.values()}) > 1 else set()
    return {who: of for who, of in found.items() if every or (several & of.keys() and len({*of.values()}) > 1)}


def first_models(traces: Traces) -> list[dict[str, str]]:
    """Of each trace the known model with which each agent first acts: with which it goes on may depend on how it went.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent(), "b": Agent()})
      >>> for event, agent, model in zip("xyz", "aba", "mno"):
      ...     _ = record.event(event, 3, agent, action=True, model=model)
      >>> first_models(assemble([record]))
      [{'a': 'm', 'b': 'n'}]
    """
    graph, n = traces.graph, traces.sizes.events
    models, model = event_models(traces)
    names, name = np.unique(traces.agents["name"].to_pylist(), return_inverse=True)
    acts = np.flatnonzero(np.asarray(graph.action_mask)[:n] & (np.array(models) != "")[model])
    trace, agent = np.asarray(graph.trace_ids)[acts], name[np.asarray(graph.agent_ids)[acts]]
    _, first = np.unique(trace * len(names) + agent, return_index=True)
    found: list[dict[str, str]] = [{} for _ in range(traces.sizes.traces)]
    called = names[agent[first]].tolist(), model[acts[first]].tolist()
    for row, who, which in zip(trace[first].tolist(), *called, strict=True):
        found[row][who] = models[which]
    return found


def models_of_agent(traces: Traces, agent: str) -> list[set[str]]:
    """The known models with which an agent acts in each trace: the first one, and those of its fallbacks.

    Args:
      traces: what was read.
      agent: its name.
    """
    models, pairs = _acting_models(traces)
    trace, names = np.asarray(traces.graph.agent_trace).tolist(), traces.agents["name"].to_pylist()
    found: list[set[str]] = [set() for _ in range(traces.sizes.traces)]
    for instance, which in pairs:
        if names[instance] == agent:
            found[trace[instance]] |= {models[which]} - {""}
    return found


def trace_models(traces: Traces) -> list[set[str]]:
    """The models with which each trace's agents act; where none is known, that of the trace; empty without one.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()})
      >>> _ = [record.event(name, 3, "a", action=True, model=model) for name, model in ("xm", "yn")]
      >>> traces = assemble([record])
      >>> traces.traces["model"].to_pylist(), sorted(*trace_models(traces))
      (['m'], ['m', 'n'])
    """
    models, pairs = _acting_models(traces)
    trace = np.asarray(traces.graph.agent_trace).tolist()
    found: list[set[str]] = [set() for _ in range(traces.sizes.traces)]
    for agent, which in pairs:
        found[trace[agent]] |= {models[which]} - {""}
    of_traces = traces.traces["model"].to_pylist()
    return [of or {name or ""} - {""} for of, name in zip(found, of_traces, strict=True)]


def _acting_models(traces: Traces) -> tuple[list[str], list[list[int]]]:
    """Names of models, and the pairs of an agent and a model with which it acts."""
    models, model = event_models(traces)
    acts = np.flatnonzero(np.asarray(traces.graph.action_mask)[: traces.sizes.events])
    pairs: list[list[int]] = distinct_columns(np.asarray(traces.graph.agent_ids)[acts], model[acts]).columns.T.tolist()
    return models, pairs


def _of_traces(names: Sequence[str], of_calls: Mapping[int, set[str]]) -> list[set[str]]:
    """Names of models, those that join several models of the trace's events each in its parts."""
    parts = [{*name.split(" + ")} if " + " in name else {name} - {""} for name in names]
    return [
        of if of <= of_calls.get(row, set()) else {name}
        for row, (name, of) in enumerate(zip(names, parts, strict=True))
    ]
