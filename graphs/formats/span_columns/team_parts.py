"""All plain traces of a log as one `Part`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphs.formats.otlp.dialects import Kind
from graphs.formats.span_columns.forest import AGENT, CALL, OTHER, RULED, TOOL, Forest, grow
from graphs.formats.span_columns.plain_spans import NO_TIME, Codes, PlainSpans
from graphs.formats.span_columns.team_edges import edges_of
from graphs.formats.span_columns.team_events import Instances, TeamEvents, events_of, instances_of, ordered
from graphs.reading.files import model_names
from graphs.traces.limits import Limits
from graphs.traces.part import Heading, Part, derive_turns
from graphs.traces.record import LARGEST_FLOAT

__all__ = ["teams_of"]

_KINDS = {Kind.AGENT: AGENT, Kind.CALL: CALL, Kind.TOOL: TOOL, Kind.OTHER: OTHER, Kind.GUARD: RULED, Kind.JUDGE: RULED}
_SUFFIXES = pa.array(["", ".spawn", ".return", ".result"])
_ERROR = pa.array(["error"])
_ID_DIGITS = 16
_NANO = 1_000_000_000
_EXACT = 2**53  # integers up to here are doubles
_T = TypeVar("_T")


def teams_of(
    spans: PlainSpans, ranks: np.ndarray, allowed: np.ndarray, format: str, limits: Limits
) -> tuple[Part | None, np.ndarray]:
    """The traces that are plain, as a part, and the ranks of these.

    Args:
      spans: the spans of all traces.
      ranks: the rank of each trace, by its code in `spans`.
      allowed: by rank, whether the trace may be plain.
      format: what the traces are said to be read as.
      limits: bounds on events and edges of a trace; one beyond is not plain.
    """
    log = _Log.of(spans, ranks, allowed)
    if not len(log.trace):
        return None, np.zeros(0, np.int64)
    forest = grow(log.trace, log.columns["id"], log.columns["parent"], log.kind, log.named, len(allowed))
    forest.plain &= np.bincount(log.trace[log.known], minlength=len(allowed)) > 0
    forest.plain &= np.bincount(log.trace[forest.opens], minlength=len(allowed)) > 0
    rewards = _rewards(log, forest)
    askers = _askers(log, forest)
    lone = [(calls[0], tool) for tool, calls in askers.items() if len(calls) == 1]
    row, closing = ordered(
        log.trace, log.columns["start"], log.columns["end"], forest, np.array(lone, np.int64).reshape(-1, 2)
    )
    team = instances_of(log.trace, log.kind, log.service, forest)
    events = events_of(row, closing, log.trace, log.kind, forest, team)
    edges = edges_of(events, log.kind, team, askers)
    trace = log.trace[events.row]
    sizes = [np.bincount(of, minlength=len(allowed)) for of in (trace, trace[edges[1]])]
    large = (sizes[0] > limits.events) | (sizes[1] > limits.edges)
    if large.any():
        return teams_of(spans, ranks, allowed & ~large, format, limits)
    kept = np.flatnonzero(sizes[0])
    if not len(kept):
        return None, kept
    agents = np.bincount(log.trace[team.row], minlength=len(allowed))
    return _part(log, forest, team, events, edges, format, rewards, kept, [*sizes, agents]), kept


@dataclasses.dataclass
class _Log:
    """Spans by row in the order of the log, of traces by rank; `origin` is the row in the columns as they came."""

    spans: PlainSpans
    names: list[str]  # of traces, by rank
    columns: dict[str, np.ndarray]
    origin: np.ndarray
    trace: np.ndarray
    kind: np.ndarray
    named: np.ndarray
    known: np.ndarray
    service: np.ndarray
    services: list[str]

    @classmethod
    def of(cls, spans: PlainSpans, ranks: np.ndarray, allowed: np.ndarray) -> _Log:
        columns = spans.columns()
        names = [""] * len(allowed)
        for trace, code in spans.traces.items():
            names[ranks[code]] = trace
        trace = ranks[columns["trace"]]
        origin = np.flatnonzero(allowed[trace])
        if np.any(np.diff(columns["index"][origin]) < 0):
            origin = origin[np.argsort(columns["index"][origin])]
        if len(origin) < len(trace) or np.any(np.diff(origin) < 0):
            columns = {name: column[origin] for name, column in columns.items()}
            trace = trace[origin]
        codes = columns["meaning"]
        meanings = spans.meanings.listed
        kinds = np.array([RULED if what.decides else _KINDS[what.kind] for what in meanings], np.int8)
        named, known = (np.array([getattr(what, name) for what in meanings], bool) for name in ("named", "known"))
        services = Codes()
        service = np.array([services[name or "agent"] for name in spans.services], np.int64)[columns["service"]]
        of_spans = kinds[codes], named[codes], known[codes], service
        return cls(spans, names, columns, origin, trace, *of_spans, services.listed)

    def own(self, kept: dict[int, _T]) -> Iterator[tuple[int, _T]]:
        """What few spans have, by row."""
        if kept:
            row = np.full(self.spans.count, -1, np.int64)
            row[self.origin] = np.arange(len(self.origin))
            for origin, value in kept.items():
                if row[origin] >= 0:
                    yield int(row[origin]), value


def _rewards(log: _Log, forest: Forest) -> dict[int, dict[str, float]]:
    """Reward channels by trace. A trace whose evaluations are not all of its root, or disagree, is not plain."""
    channels: dict[int, dict[str, float]] = {}
    for row, evaluations in sorted(log.own(log.spans.evaluations)):
        own = channels.setdefault(int(log.trace[row]), {})
        for evaluation in evaluations:
            name, score = "team" if evaluation.name == "reward" else evaluation.name, evaluation.score
            placed = not (evaluation.channel or evaluation.event) and (forest.root[row] or not evaluation.span)
            if not placed or abs(score) > LARGEST_FLOAT or own.setdefault(name, score) != score:
                forest.plain[log.trace[row]] = False
    return channels


def _askers(log: _Log, forest: Forest) -> dict[int, list[int]]:
    """For the span of a tool call, the spans of the model calls of the same agent that listed its id."""
    ids = {row: call_id for row, call_id in log.own(log.spans.call_ids) if log.kind[row] == TOOL}
    if not ids:
        return {}
    asked: dict[tuple[int, int, int, str], list[int]] = {}

    def key(row: int, call_id: str) -> tuple[int, int, int, str]:
        owner = int(forest.owner[row])
        return owner, int(log.trace[row]), 0 if owner >= 0 else int(log.service[row]), call_id

    for row, call_ids in log.own(log.spans.emitted):
        for call_id in call_ids if log.kind[row] == CALL else ():
            asked.setdefault(key(row, call_id), []).append(row)
    candidates = ((row, asked.get(key(row, call_id), [])) for row, call_id in ids.items())
    return {row: calls for row, calls in candidates if calls}


def _part(
    log: _Log,
    forest: Forest,
    team: Instances,
    events: TeamEvents,
    edges: tuple[np.ndarray, np.ndarray, np.ndarray],
    format: str,
    rewards: dict[int, dict[str, float]],
    kept: np.ndarray,
    sizes: list[np.ndarray],
) -> Part:
    row, closing, columns = events.row, events.closing, log.columns
    ids, meaning = columns["id"], columns["meaning"][row]
    kinds = log.kind[row]
    what, files = log.spans.meanings.listed, pa.array(log.spans.files.listed, pa.string())
    places = files.take(columns["file"][row]), pa.array(columns["line"][row]), pa.array(columns["offset"][row])
    moments = np.where(closing, columns["end"][row], columns["start"][row])
    between = kinds == AGENT
    other = np.where(closing, forest.owner[row], row)
    suffix = np.where(between, np.where(closing, 2, 1), np.where(closing, 3, 0))
    text = {"event": pc.binary_join_element_wise(_hex(ids[row]), _SUFFIXES.take(suffix), "")}
    if between.any():
        at = np.cumsum(between) - 1
        text["to"] = _hex(ids[other[between]]).take(pa.array(at, mask=~between))
    if (kinds == TOOL).any():
        text["tool"] = pa.array([one.name for one in what], pa.string()).take(pa.array(meaning, mask=kinds != TOOL))
    failed = columns["failed"][row] & (closing | (kinds == CALL))
    if failed.any():
        text["status"] = _ERROR.take(pa.array(np.zeros(len(row), np.int32), mask=~failed))
    evidence: dict[str, np.ndarray | pa.Array] = {}
    for name in ("tokens", "input_tokens"):
        amounts = np.where(kinds == CALL, columns[name][row], np.int32(-1))
        if (amounts >= 0).any():
            evidence[name] = amounts
    agent_ids, names, roles = _agents(log, team)
    owner = forest.owner[team.row]
    above = np.where(team.is_span & (owner >= 0), team.of_span[owner], np.arange(len(owner)))
    senders, receivers, edge_types = edges
    return Part(
        headings=_headings(log, events, format, rewards, kept),
        event_ends=np.cumsum(sizes[0][kept]),
        edge_ends=np.cumsum(sizes[1][kept]),
        agent_ends=np.cumsum(sizes[2][kept]),
        types=events.types,
        agents=events.agents,
        turns=derive_turns(events.types, events.agents, senders, receivers, edge_types),
        actions=events.actions,
        times=_seconds(moments),
        senders=senders,
        receivers=receivers,
        edge_types=edge_types,
        agent_ids=agent_ids,
        agent_names=names,
        agent_roles=roles,
        parents=above.astype(np.int32),
        text=text,
        evidence=evidence,
        places=places,
    )


def _agents(log: _Log, team: Instances) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The ids, names and roles of agent instances: spans, and the services of spans outside any agent."""
    numbers, meaning = _hex(log.columns["id"][team.row]), pa.array(log.columns["meaning"][team.row])
    what = log.spans.meanings.listed
    names, roles = ([one.name or None for one in what], [one.role or one.name or None for one in what])
    of_spans = numbers, *(pc.coalesce(pa.array(of, pa.string()).take(meaning), numbers) for of in (names, roles))
    if team.is_span.all():
        return of_spans
    service = pa.array(log.service[team.row])
    ids = pa.array([f"service:{name}" for name in log.services], pa.string()).take(service)
    plain = pa.array(log.services, pa.string()).take(service)
    is_span = pa.array(team.is_span)
    return tuple(pc.if_else(is_span, one, other) for one, other in zip(of_spans, (ids, plain, plain), strict=True))


def _headings(
    log: _Log, events: TeamEvents, format: str, rewards: dict[int, dict[str, float]], kept: np.ndarray
) -> list[Heading]:
    first = np.full(len(log.names), -1, np.int64)
    first[log.trace[::-1]] = np.arange(len(log.trace))[::-1]  # the last of several assignments wins
    files, what = log.spans.files.listed, log.spans.meanings.listed
    calls = events.row[log.kind[events.row] == CALL]
    pairs = np.unique(log.trace[calls].astype(np.int64) * len(what) + log.columns["meaning"][calls])
    models: dict[int, list[str]] = {}
    for trace, code in zip(*(part.tolist() for part in np.divmod(pairs, len(what))), strict=True):
        models.setdefault(trace, []).append(what[code].model)
    of_first = zip(
        kept.tolist(), *(log.columns[name][first[kept]].tolist() for name in ("file", "line", "offset")), strict=True
    )
    return [
        Heading(
            log.names[trace], log.names[trace], files[file], line, offset, format,
            model=model_names(models.get(trace, ())), rewards=rewards.get(trace, {}),
        )
        for trace, file, line, offset in of_first
    ]  # fmt: skip


def _seconds(moments: np.ndarray) -> np.ndarray:
    """The closest doubles to the seconds of time stamps, NaN where absent.

    Below 2^53 a division rounds once. From there on doubles near the seconds are 2^-29 apart or more. The fraction in
    nanoseconds lies 4e-16 or more from the middle between two of them, and its own rounding is 6e-17 at most.
    """
    whole, rest = np.divmod(moments, _NANO)
    exact = np.where(moments < _EXACT, moments / _NANO, whole + rest / _NANO)
    return np.where(moments == NO_TIME, np.nan, exact)


def _hex(ids: np.ndarray) -> pa.Array:
    """Ids as texts of 16 hexadecimal digits."""
    digits = ids.astype(">u8").tobytes().hex().encode()
    offsets = np.arange(0, _ID_DIGITS * (len(ids) + 1), _ID_DIGITS, dtype=np.int32)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(digits))
