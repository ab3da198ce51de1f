"""ATIF, the Agent Trajectory Interchange Format, v1.0 to v1.7: a JSON object a trajectory, sub-agents nested or apart.

    {schema_version: "ATIF-v1.7", session_id, trajectory_id, agent: {name, model_name}, steps: [{step_id, source,
     message, tool_calls: [{tool_call_id, function_name}], observation: {results: [{source_call_id,
     subagent_trajectory_ref: [{trajectory_id | trajectory_path | session_id}]}]}, metrics, is_copied_context}],
     subagent_trajectories: [...]}

A trajectory that no other one refers to is a trace and a group of its own, without an outcome. An agent's step is a
model call. A tool call whose result refers to a sub-agent is its spawn, and that result its return.
`docs/formats/atif.md` has the whole mapping.

`trajectories` decodes, `library` resolves references, `events` writes the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphs.errors import Problem, TraceError
from graphs.formats.atif.events import Writer
from graphs.formats.atif.library import Library
from graphs.formats.atif.trajectories import Step, Trajectory, Wire, decode_all
from graphs.reading.documents import documents, stem
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

RECORDS = (Wire, Step)

_SNIFF = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')


def sniff(head: bytes) -> bool:
    """Whether the content begins as a trajectory with a version of ATIF."""
    start = head.lstrip().removeprefix(b"[").lstrip()
    return start.startswith(b"{") and _SNIFF.search(start) is not None


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trajectory that no other refers to.

    Problem kinds, of one trace: those of `graphs.reading.json_problems`, "unknown-tool-call" (a result of a call that
    its step does not have), "duplicate-id" (two steps of a trajectory, or two calls of a step, with one id),
    "ambiguous-id" (steps 2 and "2"), "bad-value" (an unknown source, not as many log-probabilities as token ids).
    Named while the trace reads without it: "missing-continuation" (the trace is the first part of a run),
    "missing-subagent" (a sub-agent is spawned and returns, and does nothing between) and "unlinked-subagent" (a nested
    trajectory that nothing refers to).
    """
    docs: list[Trajectory] = []
    for source in sources:
        for document in documents(source):
            try:
                docs.append(decode_all(document))
            except TraceError as error:
                yield error.problem
        source.release()
    library = Library(docs)
    below = {id(referred) for doc in docs for referred in library.referred(doc)}
    # Trajectories that refer to each other in a circle have no outermost one: the first that is not placed begins.
    for doc in [*(doc for doc in docs if id(doc) not in below), *docs]:
        if not doc.is_placed:
            yield from _read_trace(doc, library)


def _read_trace(root: Trajectory, library: Library) -> Iterator[TraceRecord | Problem]:
    trace = root.id or root.session or stem(root.place.file)
    record = TraceRecord(trace, trace, root.place.file, root.place.line, root.place.offset, format="atif")
    writer = Writer(record, library, root)
    try:
        yield writer.write()
    except TraceError as error:
        yield error.problem
        return
    yield from writer.problems
