"""Files that programs write beside their logs: settings, summaries and copies, which are no runs and are passed over.

A companion is known by its name, and by its keys if other programs use the name, too. It is passed over only in a
folder in which logs of its program are read. A file that the user named is read or refused like any other.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from graphs.errors import Problem, TraceError
from graphs.reading.keys import opening_of
from graphs.reading.source import COMPRESSIONS, Source

__all__ = ["without_companions"]

Verdict = str | Problem | None


class _Companion(NamedTuple):
    """A file beside logs of a format: its name or a pattern of it, and top-level keys that it has.

    With `lacks`, a key of the format's logs that it has not, it is no log though it may begin as one.
    """

    format: str
    name: str
    keys: frozenset[str] = frozenset()
    lacks: str = ""


COMPANIONS = (
    _Companion("verifiers", "metadata.json", frozenset({"env_id", "model"})),
    _Companion("inspect-ai", "eval-set.json", frozenset({"eval_set_id", "tasks"})),
    _Companion("inspect-ai", "logs.json"),  # headers by file, of `write_log_dir_manifest`
    _Companion("inspect-ai", "listing.json"),  # the same in a bundle of the viewer
    _Companion("swe-agent", "preds.json"),  # empty; else the reader takes the models from it
    _Companion("openhands", "metadata.json", frozenset({"agent_class", "llm_config"})),
    _Companion("rllm", "batch_summary.json", frozenset({"num_episodes", "episode_files"})),
    _Companion("rllm", "meta.json", frozenset({"benchmark", "agent", "attempts"})),
    # Of each sub-agent of Claude Code 2.1.197 its type and the tool use that started it, which its session states, too.
    _Companion("claude-code", "agent-*.meta.json", frozenset({"agentType"})),
    _Companion("rollouts", "aggregated_results.jsonl"),  # of SkyRL: metrics of an evaluation by name
    # NeMo Gym writes OUTPUT_materialized_inputs.jsonl before the rollouts, and metrics of them after.
    _Companion("rollouts", "*_materialized_inputs.jsonl", frozenset({"responses_create_params"}), lacks="response"),
    _Companion("rollouts", "*_reward_profiling.jsonl", frozenset({"mean/reward"})),
    _Companion("rollouts", "*_agent_metrics.json"),
    _Companion("rollouts", "*_aggregate_metrics.json"),
    _Companion("rollouts", "quality_summary.json", frozenset({"run"})),
    _Companion("rollouts", "rollout_verdicts.jsonl", frozenset({"rollout_id", "verdict"})),
    _Companion("rollouts", "*_failures.jsonl"),  # empty where no run has failed; else it is read
    _Companion("cline", "*.json", frozenset({"session_id", "messages_path"})),  # SESSION.json, the session's manifest
    # Gemini CLI (logger.ts, checkpointUtils.ts) keeps, too, what was typed, first `[]`, and states to go back to.
    _Companion("gemini-cli", "logs.json"),
    _Companion("gemini-cli", "checkpoint-*.json", frozenset({"history"})),
    _Companion("gemini-cli", "*.json", frozenset({"toolCall", "commitHash"})),
)

# prime-rl writes each finished episode to rollouts/step_N/KIND/all/traces.jsonl. The episodes that it trains on stand
# once more in the folder `effective` of the step of training, perhaps without the frozen agents.
_COPY = ("effective", "traces.jsonl")
_WHOLE = ("all", "traces.jsonl")
_COMPACTED = ".compaction.json"  # what Cline sends on after it has summed a session up, beside SESSION.messages.json


def without_companions(verdicts: Sequence[tuple[Source, Verdict]]) -> list[tuple[Source, Verdict]]:
    """Sources with the formats that they have, None for a companion."""
    formats = {verdict for _, verdict in verdicts if isinstance(verdict, str)}
    wholes = {_run(source) for source, verdict in verdicts if verdict == "verifiers" and _ends(source, _WHOLE)}
    return [
        (source, None if _is_companion(source, verdict, formats) or _is_copy(source, verdict, wholes) else verdict)
        for source, verdict in verdicts
    ]


def _is_companion(source: Source, verdict: Verdict, formats: set[str]) -> bool:
    is_unknown = isinstance(verdict, Problem) and verdict.kind in ("unknown-format", "empty-file")
    known = [
        row
        for row in COMPANIONS
        if row.format in formats
        and (is_unknown or (row.lacks and row.format == verdict))
        and fnmatch.fnmatchcase(_parts(source)[-1], row.name)
    ]
    if source.is_named or not known:
        return False
    try:
        keys = set(opening_of(source).keys)
        return any(row.keys <= keys and row.lacks not in keys for row in known)
    except TraceError:
        return False


def _is_copy(source: Source, verdict: Verdict, wholes: set[tuple[str, ...]]) -> bool:
    if source.is_named:
        return False
    if verdict == "cline":
        return _parts(source)[-1].endswith(_COMPACTED)
    return _ends(source, _COPY) and _run(source) in wholes


def _parts(source: Source) -> tuple[str, ...]:
    path = PurePath(source.name)
    return (path.with_suffix("") if path.suffix in COMPRESSIONS else path).parts


def _ends(source: Source, parts: tuple[str, ...]) -> bool:
    return _parts(source)[-2:] == parts


def _run(source: Source) -> tuple[str, ...]:
    """The folder of a run of prime-rl, and whether it is of training or evaluation."""
    parts = _parts(source)
    return (*parts[:-4], *parts[-3:-2])
