"""Rollouts of verifiers and prime-rl: episodes of v1 (`traces.jsonl`), and the older `results.jsonl`.

    {id, env: {id, name}, task: {key, hash, data}, group: {id}, run: {work: {step, policy: {start, end}}}, ok,
     traces: [{id, agent: {name, trainable, config}, nodes: [{parent, message, sampled, token_ids, mask, logprobs}],
               calls: [{node, model, usage}], rewards: {NAME: {score, weight} | null}, metrics}]}

An episode is a trace. Each of its agents' traces is an agent instance. A sampled node is a model call, and an action.
The other nodes are what the environment did. `docs/formats/verifiers.md` has the whole mapping.

`episodes` reads v1, `results` the older rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphs.errors import Problem
from graphs.formats.repeated_rows import repeated_rows
from graphs.formats.verifiers.episodes import read_episode
from graphs.formats.verifiers.results import read_result
from graphs.reading.documents import Document
from graphs.reading.files import Tasks, read_each
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

__all__ = ["read", "sniff"]

_RESULT = {"example_id", "prompt", "completion", "reward"}


def sniff(head: bytes) -> bool:
    """Whether the content begins as an episode or a trace of v1, or as a row of `results.jsonl`."""
    shown = opening(head)
    keys = set(shown.keys)
    if shown.keys[:3] == ("id", "env", "task") or {"task", "traces", "ok"} <= keys:
        return True
    return {"agent", "nodes", "rewards"} <= keys or keys >= _RESULT


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each episode, or for each row of `results.jsonl`.

    Problem kinds, the trace refused: those of `graphs.reading.json_problems`, "bad-parent", "unknown-tool-call",
    "bad-value". Named, though nothing is wrong with the log: "several-rewards", the agents have different rewards, so
    that none is the team's; "no-events", an episode in which no agent was run; "repeated-rows", lines of
    `results.jsonl` that repeat the lines before.
    """
    tasks = Tasks()
    files_of_results: set[str] = set()

    def read_one(document: Document, file: str) -> Iterator[TraceRecord | Problem]:
        raw = document.raw  # quotes within a text are escaped there, so that these bytes are keys
        is_result = b'"example_id"' in raw and b'"completion"' in raw and b'"nodes"' not in raw
        if is_result:
            files_of_results.add(document.place.file)
            return read_result(document, file, tasks)
        return read_episode(document)

    def repeated(source: Source) -> Iterator[Problem]:
        if source.name in files_of_results:  # episodes have ids, which are refused where they come again
            yield from repeated_rows(source, rows_are_runs=True)

    return read_each(sources, read_one, after=repeated)
