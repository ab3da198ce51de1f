"""Traces of a language team as a log in the native format: texts, tokens, masks and log-probabilities of each event.

An event is one call of a model. Its tokens are those that the call added to its reader's context: what it read since
its last call (mask False), then what it wrote (mask True). Padding is not logged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from benchmarks.language.questions import PAD, PARTS, STOP, WORKERS, facts
from benchmarks.language.signals import RERUNS, Reruns
from benchmarks.language.team import DECISIONS, Said, Team, log_probs, prompts, questions_as_tokens
from graphs.event_types import EdgeType, EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

__all__ = ["Values", "as_traces"]

MODEL = "tiny-team"


@dataclasses.dataclass(frozen=True)
class Values:
    """Mean rewards of re-runs that draw each decision anew, and their standard errors: float [n, D]; and how many."""

    mean: np.ndarray
    stderr: np.ndarray
    runs: int


def as_traces(
    team: Team, said: Said, group_size: int, *, reruns: Reruns | None = None, values: Values | None = None
) -> Traces:
    """The log of some traces; `graphs.writers.native.write` writes it.

    Args:
      team: the parameters that the traces were sampled with.
      said: n traces, groups of `group_size` one after another.
      group_size: traces of a group.
      reruns: of these traces; each becomes a trace that repeats its own up to the decision and ends with it, as
        `credit replay` logs siblings, with `context` and `node`.
      values: evidence `value`, with `replay_stderr` and `replays`.
    """
    host, scores = _on_host(team, said)
    records = [_record(host, scores, i, f"q{i // group_size}", f"t{i}", values) for i in range(len(host.reward))]
    if reruns is not None:
        runs, run_scores = _on_host(team, reruns.said)
        for j in np.flatnonzero(np.asarray(reruns.where)).tolist():
            i, d = j // RERUNS, int(reruns.decision[j])
            decision = _event_id(d)
            here = f"t{i}/{decision}"
            run = _record(runs, run_scores, j, f"q{i // group_size}", f"{here}/0", None, last=d)
            for record, node in ((records[i], f"{here}/logged"), (run, f"{here}/0")):
                for name, text in (("context", here), ("node", node)):
                    column = record.columns.setdefault(name, [None] * len(record.ids))
                    column += [None] * (len(record.ids) - len(column))
                    column[record.ids.index(decision)] = text
            records.append(run)
    return assemble(records)


def _on_host(team: Team, said: Said) -> tuple[Said, tuple[np.ndarray, np.ndarray]]:
    lead, worker = log_probs(team, said)
    host: Said = jax.tree.map(np.asarray, said)
    return host, (np.asarray(lead), np.asarray(worker))


def _event_id(decision: int) -> str:
    return f"{('call', 'answer')[decision % 2]}{decision // 2}"


def _record(
    said: Said,
    scores: tuple[np.ndarray, np.ndarray],
    row: int,
    group: str,
    name: str,
    values: Values | None,
    last: int = DECISIONS - 1,
) -> TraceRecord:
    record = TraceRecord(name, group, "", model=MODEL, system="language", rewards={"team": float(said.reward[row])})
    record.instances["lead"] = Agent("lead", "lead")
    generated = 0
    for d, read, wrote, log_probabilities in _calls(said, scores, row):
        if d > last:
            break
        called, r = int(said.call[row, d // 2]), d // 2
        agent = WORKERS[called - 1] if d % 2 else "lead"
        kind = EventType.MESSAGE if d % 2 else EventType.ORCHESTRATOR_DECISION
        record.instances.setdefault(agent, Agent(agent, "worker", "lead"))
        evidence: dict[str, Any] = {} if values is None else {
            "value": float(values.mean[row, d]), "replay_stderr": float(values.stderr[row, d]), "replays": values.runs
        }  # fmt: skip
        record.event(
            _event_id(d),
            EventType.STOP if kind == EventType.ORCHESTRATOR_DECISION and called == STOP else kind,
            agent,
            action=True,
            content_ref=facts().pieces.decode(wrote),
            token_ids=[*read, *wrote],
            token_mask=[False] * len(read) + [True] * len(wrote),
            token_log_probs=[float(x) for x in log_probabilities],
            log_prob=float(np.sum(log_probabilities)),
            tokens=len(wrote),
            **evidence,
        )
        generated += len(wrote)
        if d > 0:
            record.edge(d - 1, d, EdgeType.MESSAGE)
        if d % 2 == 0 and r > 0:
            record.edge(d - 2, d, EdgeType.TEMPORAL)
    record.costs["tokens"] = generated
    return record


def _calls(
    said: Said, scores: tuple[np.ndarray, np.ndarray], row: int
) -> Iterator[tuple[int, list[int], list[int], Sequence[float]]]:
    """The calls of models in a trace: decision, tokens read, tokens written, and log-probabilities of the latter."""
    heard = _without_padding(np.asarray(questions_as_tokens(said.question[row : row + 1]))[0])
    read_by_worker = np.asarray(prompts(said.question[row], said.call[row]))
    for r in range(PARTS):
        if not said.taken[row, 2 * r]:
            return
        yield 2 * r, heard, [int(said.call[row, r])], scores[0][row, r : r + 1].tolist()
        if not said.taken[row, 2 * r + 1]:
            return
        answer = _without_padding(np.asarray(said.answer)[row, r])
        yield 2 * r + 1, _without_padding(read_by_worker[r]), answer, scores[1][row, r, : len(answer)].tolist()
        heard = answer


def _without_padding(ids: np.ndarray) -> list[int]:
    return [int(i) for i in ids if i != PAD]
