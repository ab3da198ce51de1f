"""Rollouts of verifiers and prime-rl: episodes of v1 (`traces.jsonl`), and the older `results.jsonl`.

    {id, env: {id, name}, task: {key, hash, data}, group: {id}, run: {work: {step, policy: {start, end}}}, ok,
     traces: [{id, agent: {name, trainable, config}, nodes: [{parent, message, sampled, token_ids, mask, logprobs}],
               calls: [{node, model, usage}], rewards: {NAME: {score, weight} | null}, metrics}]}

An episode is a trace. Each of its agents' traces is an agent instance. A sampled node is a model call, and an action.
The other nodes are what the environment did. `docs/formats/verifiers.md` has the whole mapping.

`episodes` reads v1, `results` the older rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphs.errors import Problem, TraceError
from graphs.formats.verifiers.episodes import read_episode
from graphs.formats.verifiers.results import Result, read_result
from graphs.formats.verifiers.wire import AgentTrace, Episode, Node
from graphs.reading.copied_files import without_copied_files
from graphs.reading.documents import documents
from graphs.reading.files import Tasks, short_names
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

RECORDS = (Episode, AgentTrace, Node, Result)

_RESULTS = ({"example_id", "prompt", "completion", "reward"}, {"id", "prompt", "completion", "task", "reward"})


def sniff(head: bytes) -> bool:
    """Whether the content begins as an episode or a trace of v1, or as a row of `results.jsonl`."""
    shown = opening(head)
    keys = set(shown.keys)
    if shown.keys[:3] == ("id", "env", "task") or {"task", "traces", "ok"} <= keys:
        return True
    return {"agent", "nodes", "rewards"} <= keys or any(keys >= needed for needed in _RESULTS)


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each episode, or for each row of `results.jsonl`.

    Problem kinds, of one trace: those of `graphs.reading.json_problems`, "bad-parent", "unknown-tool-call",
    "bad-value", "disagreeing-metrics", "ambiguous-id". Named, though nothing is wrong:
    "no-events", an episode in which no agent was run.
    """
    sources, copies = without_copied_files(sources)
    yield from copies
    tasks, names = Tasks(), short_names(sources)
    for source in sources:
        for document in documents(source):
            try:
                if _is_result(document.raw):
                    yield read_result(document, names[source.name], tasks)
                else:
                    yield from read_episode(document)
            except TraceError as error:
                yield error.problem
        source.release()


def _is_result(raw: bytes) -> bool:
    """Whether a value is a row of `results.jsonl`. Quotes within texts are escaped, so these bytes are keys."""
    return b'"prompt"' in raw and b'"completion"' in raw and b'"nodes"' not in raw
