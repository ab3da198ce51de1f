"""Job folders of Harbor and Terminal-Bench: each trial's trajectory with its task and reward.

    JOB/TRIAL/result.json           {task_name, trial_name, agent_info: {name, model_info: {name}},
                                     verifier_result: {rewards: {NAME: NUMBER}}, config}
    JOB/TRIAL/config.json           {task, trial_name, agent, …}
    JOB/TRIAL/agent/*trajectory*.json    ATIF, read as `graphs.formats.atif` does
    JOB/result.json, JOB/config.json     of the whole job: no trace

A trial is a trace, by its name; its group is its task. `docs/formats/harbor.md` has the whole mapping.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats import atif
from graphs.reading.decode import content, decode_record
from graphs.reading.files import real_folder
from graphs.reading.keys import opening, opening_of
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import LARGEST_FLOAT, TraceRecord

__all__ = ["claims", "read", "sniff"]

_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]
_RESULT = frozenset({"task_name", "trial_name"})
_TRIAL_CONFIG = frozenset({"trial_name", "task", "agent"})
_CONFIGS = (_TRIAL_CONFIG, frozenset({"jobs_dir", "agents"}))
_JOB = frozenset({"n_total_trials", "stats"})


class _Verifier(msgspec.Struct):
    rewards: dict[str, _Float | None] | None = None
    reward: _Float | None = None


class _Model(msgspec.Struct):
    name: str | None = None
    provider: str | None = None


class _Agent(msgspec.Struct):
    name: str | None = None
    version: str | None = None
    model_info: _Model | None = None


class _Result(msgspec.Struct):
    task_name: str = ""
    trial_name: str = ""
    source: str | None = None
    verifier_result: _Verifier | None = None
    agent_info: _Agent | None = None


_DECODER = msgspec.json.Decoder(_Result)


def sniff(head: bytes) -> bool:
    """Whether the content begins as the result or the configuration of a trial or a job."""
    keys = frozenset(opening(head).keys)
    return keys >= _RESULT or keys >= _JOB or any(keys >= config for config in _CONFIGS)


def claims(members: list[Source], trajectories: Iterable[Source]) -> list[Source]:
    """The ATIF trajectories that lie in the folders of trials, whose results are among `members`."""
    folders = {real_folder(source.name) for source in members if os.path.basename(source.name) == "result.json"}
    return [source for source in trajectories if _trial(source) in folders]


def _trial(source: Source) -> str:
    """The folder of the trial that a trajectory is of: the one around `agent/`, or its own."""
    folder = real_folder(source.name)
    return os.path.dirname(folder) if os.path.basename(folder) == "agent" else folder


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trial that has a trajectory.

    Problem kinds: "unreadable", those of `graphs.reading.json_problems` and of the ATIF reader,
    "several-results" (of one trial), "disagreeing-rewards", "missing-result" (a trial that has a configuration alone:
    its trajectory reads as ATIF). Named, though nothing is wrong: "no-events", a trial without a trajectory.
    """
    trajectories: dict[str, list[Source]] = {}
    results: dict[str, list[Source]] = {}
    configs: dict[str, Source] = {}  # of trials, by folder
    for source in sources:
        try:
            keys = frozenset(opening_of(source).keys)
            if keys >= _RESULT:
                results.setdefault(real_folder(source.name), []).append(source)
            elif keys >= _TRIAL_CONFIG:
                configs[real_folder(source.name)] = source
            elif atif.sniff(content(source)):
                trajectories.setdefault(_trial(source), []).append(source)
        except TraceError as error:
            yield error.problem
        source.release()  # it is read when all files of its trial are known
    for folder, source in configs.items():
        if folder not in results:  # a trial that still runs, or was killed
            trial, expected = os.path.basename(folder), "the trial's result beside it, which states its task and reward"
            yield Problem("missing-result", source.name, 0, "result.json", "absent", expected, trial)
    for folder, (source, *others) in results.items():
        if others:
            trial, expected = os.path.basename(folder), f"one result in the folder of a trial; {source.name} is another"
            yield Problem("several-results", others[0].name, 0, "file", excerpt(others[0].name), expected, trial)
            continue
        try:
            result = decode_record(_DECODER, content(source), file=source.name, line=1)
        except TraceError as error:
            yield error.problem
            continue
        if folder not in trajectories:
            trial, expected = result.trial_name, "a trajectory in its folder `agent`"
            yield Problem("no-events", source.name, 0, "trajectory", "absent", expected, trial)
            continue
        for item in atif.read(trajectories[folder]):
            try:
                yield _joined(item, result, source.name) if isinstance(item, TraceRecord) else item
            except TraceError as error:
                yield error.problem
        source.release()


def _joined(record: TraceRecord, result: _Result, file: str) -> TraceRecord:
    """The trajectory's record with what the result, in this file, knows of the trial.

    Raises:
      TraceError: "disagreeing-rewards", the result has two numbers of one channel.
    """
    record.format = "harbor"
    record.trace_id = result.trial_name or record.trace_id
    task = result.task_name or record.group_id
    record.group_id = f"{result.source}/{task}" if result.source else task
    agent = result.agent_info or _Agent()
    if agent.model_info is not None and agent.model_info.name:
        record.model = "/".join(part for part in (agent.model_info.provider, agent.model_info.name) if part)
    record.system = " ".join(part for part in (agent.name, agent.version) if part) or record.system
    verifier = result.verifier_result or _Verifier()
    rewards = {name: amount for name, amount in (verifier.rewards or {}).items() if amount is not None}
    if verifier.reward is not None and rewards.setdefault("reward", verifier.reward) != verifier.reward:
        field, expected = "verifier_result.reward", f"{rewards['reward']!r}, as verifier_result.rewards.reward"
        value_text, trace = excerpt(verifier.reward), record.trace_id
        raise TraceError(Problem("disagreeing-rewards", file, 1, field, value_text, expected, trace))
    record.rewards = dict(rewards)
    if "reward" in rewards or len(rewards) == 1:
        record.rewards["team"] = rewards.get("reward", next(iter(rewards.values())))
    return record
