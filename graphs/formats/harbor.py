"""Job folders of Harbor and Terminal-Bench: each trial's trajectory with its task and reward.

    JOB/TRIAL/result.json           {task_name, trial_name, agent_info: {name, model_info: {name}},
                                     verifier_result: {rewards: {NAME: NUMBER}}, config}
    JOB/TRIAL/config.json           {task, trial_name, agent, …}
    JOB/TRIAL/agent/trajectory.json      ATIF, read as `graphs.formats.atif` does, with the files that continue it
    JOB/result.json, JOB/config.json     of the whole job: no trace

A trial is a trace, named by the trial; its group is its task. `docs/formats/harbor.md` has the whole mapping.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats import atif
from graphs.formats.common.money import stated_money
from graphs.reading.addresses import real_folder
from graphs.reading.decode import content, decode_record
from graphs.reading.keys import opening, opening_of
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import LARGEST_FLOAT, TraceRecord

__all__ = ["RECORDS", "claims", "read", "sniff"]

_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]
_RESULT = frozenset({"task_name", "trial_name"})
_TRIAL_CONFIG = frozenset({"trial_name", "task", "agent"})
_CONFIGS = (_TRIAL_CONFIG, frozenset({"jobs_dir", "agents"}))
_JOB = frozenset({"n_total_trials", "stats"})
_FIRST = "trajectory.json"  # the trajectory of the trial, which may refer to others


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


class _AgentResult(msgspec.Struct):
    cost_usd: Any = None


class _Exception(msgspec.Struct):
    exception_type: str = "an exception"
    exception_message: str = ""


class _Result(msgspec.Struct):
    task_name: str = ""
    trial_name: str = ""
    source: str | None = None
    verifier_result: _Verifier | None = None
    agent_info: _Agent | None = None
    agent_result: _AgentResult | None = None
    exception_info: _Exception | None = None
    reward_valid: bool | None = None


RECORDS = (_Result,)

_DECODER = msgspec.json.Decoder(_Result)


def sniff(head: bytes) -> bool:
    """Whether the content begins as the result or the configuration of a trial or a job."""
    keys = frozenset(opening(head).keys)
    return keys >= _RESULT or keys >= _JOB or any(keys >= config for config in _CONFIGS)


def claims(members: Iterable[Source], trajectories: Iterable[Source]) -> list[Source]:
    """The ATIF trajectories that lie in folders of trials with a result among `members`."""
    folders = {real_folder(source.name) for source in members if source.file_name == "result.json"}
    return [source for source in trajectories if _trial(source) in folders]


def _trial(source: Source) -> str:
    """The folder of a trajectory's trial: its own, or the one above if its own is `agent`."""
    folder = real_folder(source.name)
    return os.path.dirname(folder) if os.path.basename(folder) == "agent" else folder


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trial that has a result and a trajectory.

    Problem kinds: those of `graphs.reading.json_problems` and of the ATIF reader; of one trial "several-results",
    "missing-result" (it has a configuration alone, and its trajectory reads as ATIF). Named while the trial reads
    without it: "unlinked-trajectory", one that `trajectory.json` does not refer to. Named, though nothing is wrong:
    "no-events", a trial without a trajectory.
    """
    trajectories: dict[str, list[Source]] = {}  # these and the others by the folder of the trial
    results: dict[str, list[Source]] = {}
    configs: dict[str, Source] = {}
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
    for folder in (folder for folder in configs if folder not in results):  # the trial still runs, or was killed
        source, trial = configs[folder], os.path.basename(folder)
        expected = "the trial's result beside it, which states its task and reward"
        yield Problem("missing-result", source.name, 0, "result.json", "absent", expected, trial)
    for folder, of_trial in results.items():
        try:
            yield from _read_trial(folder, of_trial, trajectories.get(folder, []))
        except TraceError as error:
            yield error.problem


def _read_trial(folder: str, results: list[Source], trajectories: list[Source]) -> Iterator[TraceRecord | Problem]:
    source, *others = results
    if others:
        trial, value = os.path.basename(folder), excerpt(others[0].name)
        expected = f"one result in the folder of a trial; {source.name} is another"
        raise TraceError(Problem("several-results", others[0].name, 0, "file", value, expected, trial))
    result = decode_record(_DECODER, content(source), file=source.name, line=1)
    source.release()
    unread = TraceRecord(result.trial_name, result.trial_name, source.name, unread=())
    if not trajectories:
        unread.lack_events("trajectory", "absent", "a trajectory in its folder `agent`")
    first = {source.name for source in trajectories if PurePath(source.name).name.startswith(_FIRST)}
    is_read = False
    for item in atif.read(trajectories):
        if isinstance(item, TraceRecord) and first and item.file not in first:
            value, expected = excerpt(PurePath(item.file).name), "a trajectory that the trial's first one refers to"
            yield Problem("unlinked-trajectory", item.file, item.line, "file", value, expected, result.trial_name)
            continue
        try:
            yield _joined(item, result, source.name) if isinstance(item, TraceRecord) else item
            is_read |= isinstance(item, TraceRecord)
        except TraceError as error:
            yield error.problem
    if not is_read:
        yield _joined(unread, result, source.name)


def _joined(record: TraceRecord, result: _Result, file: str) -> TraceRecord:
    """The record of a trajectory with the trial's task, model, system and rewards, which are in this file."""
    record.format = "harbor"
    record.sources = [file]
    record.trace_id = result.trial_name or record.trace_id
    if result.exception_info is not None:
        record.error = f"{result.exception_info.exception_type}: {result.exception_info.exception_message}"
    task = result.task_name or record.group_id
    record.group_id = f"{result.source}/{task}" if result.source else task
    agent = result.agent_info or _Agent()
    if agent.model_info is not None and agent.model_info.name:
        record.model = "/".join(part for part in (agent.model_info.provider, agent.model_info.name) if part)
    record.system = " ".join(part for part in (agent.name, agent.version) if part) or record.system
    if result.agent_result is not None and (money := stated_money(result.agent_result.cost_usd)) is not None:
        record.costs["money"], record.summed = money, ()
    verifier = result.verifier_result or _Verifier()
    record.rewards = {name: amount for name, amount in (verifier.rewards or {}).items() if amount is not None}
    if verifier.reward is not None:
        record.state_reward("reward", verifier.reward, "verifier_result.reward", (file, 1, 0))
    if record.rewards and result.reward_valid is False:  # Harbor leaves it out of the job's means, too
        record.invalidated = ": ".join(filter(None, ("reward_valid is false", record.error)))
    if "reward" in record.rewards:
        record.state_reward("team", record.rewards["reward"], "verifier_result.rewards", (file, 1, 0))
    record.sole_channel()
    return record
