"""ATIF, the Agent Trajectory Interchange Format, v1.0 to v1.7: a JSON object a trajectory, sub-agents nested or apart.

    {schema_version: "ATIF-v1.7", session_id, trajectory_id, agent: {name, model_name}, steps: [{step_id, source,
     message, tool_calls: [{tool_call_id, function_name}], observation: {results: [{source_call_id,
     subagent_trajectory_ref: [{trajectory_id | trajectory_path | session_id}]}]}, metrics, is_copied_context}],
     subagent_trajectories: [...]}

A trajectory that no other one refers to is a trace; its group is itself, for the format has no task, and it has no
outcome. An agent step is one model call; a tool call whose result refers to a sub-agent is its spawn, and that result
its return. A user's step is what a human wrote, a system's step no event. Steps of copied context happened elsewhere
and are no events. `docs/formats/atif.md` has the whole mapping.

`trajectories` decodes, `library` resolves references, `events` writes the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphs.errors import Problem, TraceError
from graphs.formats.atif.events import Writer
from graphs.formats.atif.library import Library
from graphs.formats.atif.trajectories import Trajectory, decode_all
from graphs.reading.documents import documents, stem
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

__all__ = ["read", "sniff"]

_SNIFF = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')


def sniff(head: bytes) -> bool:
    """Whether the content begins as a trajectory with a version of ATIF."""
    start = head.lstrip().removeprefix(b"[").lstrip()
    return start.startswith(b"{") and _SNIFF.search(start) is not None


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trajectory that no other refers to.

    Problem kinds, the trace refused: "unreadable", those of `graphs.reading.json_problems`,
    "unknown-tool-call" (a result of a call that its step does not have), "duplicate-id" (two steps of a trajectory, or
    two calls of a step, with one id), "ambiguous-id" (steps 2 and "2"), "bad-value" (an unknown source, not as many
    log-probabilities as token ids).
    Named while the trace reads without it: "missing-continuation", a run that goes on in a trajectory that is not at
    hand (the trace is its first part); "missing-subagent", a reference to no trajectory at hand (the sub-agent is
    spawned and returns, and does nothing between); and "unlinked-subagent", a nested trajectory that nothing refers to.
    """
    docs: list[Trajectory] = []
    for source in sources:
        for document in documents(source):
            try:
                if isinstance(document, Problem):
                    yield document
                else:
                    docs.append(decode_all(document))
            except TraceError as error:
                yield error.problem
        source.release()
    library = Library(docs)
    below = {id(nested_doc) for doc in docs for nested_doc in library.referred(doc)}
    for doc in [*(doc for doc in docs if id(doc) not in below), *docs]:  # those in a cycle of references come last
        if not doc.placed:
            yield from _read_trace(doc, library)


def _read_trace(root: Trajectory, library: Library) -> Iterator[TraceRecord | Problem]:
    trace = root.own or root.session or stem(root.place.file)
    record = TraceRecord(trace, trace, root.place.file, root.place.line, root.place.offset, format="atif")
    writer = Writer(record, library, root)
    try:
        yield writer.write()
    except TraceError as error:
        yield error.problem
        return
    yield from writer.problems
