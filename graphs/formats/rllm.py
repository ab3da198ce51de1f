"""Episodes of rLLM: one JSON file an episode, by its episode logger and by `rllm eval`.

    {episode_id | id, task, task_hash, training_step, is_correct, termination_reason, metrics,
     trajectories: [{name, uid, reward, steps: [{chat_completions, reward, response_ids, logprobs, weight_version}]}]}

A trajectory is an agent instance, and each of its steps one model call, an action. Each trajectory has a reward of its
own: where an episode of the log has several, they are the evidence `agent_reward`, else the outcome.
`docs/formats/rllm.md` has the whole mapping.
"""

from __future__ import annotations

import collections
import hashlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import ROLES, SILENT, Message, OpenCalls, decode_messages
from graphs.formats.common.team import Team
from graphs.reading.addresses import real_folder
from graphs.reading.copied_files import without_copied_files
from graphs.reading.decode import decode_record
from graphs.reading.documents import Document, Place, Places, documents
from graphs.reading.files import canonical, systems
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff"]


class _Step(msgspec.Struct):
    reward: float | None = None
    chat_completions: msgspec.Raw = msgspec.Raw(b"[]")
    response_ids: list[int] | None = None
    logprobs: list[float] | None = None
    weight_version: int | None = None


class _Trajectory(msgspec.Struct):
    name: str
    steps: list[_Step]
    reward: float | None = None


class _Episode(msgspec.Struct):
    trajectories: list[_Trajectory]
    is_correct: bool
    episode_id: str | None = None
    id: str | None = None
    task: msgspec.Raw = msgspec.Raw(b"null")
    training_step: int | None = None
    termination_reason: str | None = None
    metrics: dict[str, Any] | None = None


RECORDS = (_Episode, _Step)
_EPISODE = msgspec.json.Decoder(_Episode)

# Folders of a run in which the two writers put episodes.
_OF_STEP = re.compile(r"(?:train|val)_step_\d+_epoch_\d+|episodes")


def sniff(head: bytes) -> bool:
    """Whether the first object is an episode."""
    return {"trajectories", "is_correct"} <= set(opening(head).keys)


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each episode.

    Whether agents have outcomes of their own is a property of the run: an episode that ended before its second
    trajectory begins is compared with whole ones. So lone trajectories wait until all episodes are known.

    Problem kinds: those of `graphs.reading.json_problems`, "bad-value", "no-events".
    """
    sources, copies = without_copied_files(sources)
    yield from copies
    system_of = systems("rllm", {source.name: _run_folder(source.name) for source in sources})
    lone: list[tuple[TraceRecord, float | None]] = []
    several = False
    for source in sources:
        for document in documents(source):
            try:
                record, rewards = _record(document)
            except TraceError as error:
                yield error.problem
                continue
            record.system = system_of[source.name]
            several |= len(rewards) > 1
            if len(rewards) > 1:
                yield record
            else:
                lone.append((record, rewards[0]))
        source.release()
    for record, reward in lone:
        if reward is not None and several:
            _state(record, next(iter(record.instances)), reward)
        elif reward is not None:
            record.rewards["team"] = reward
        yield record


def _run_folder(name: str) -> str:
    """The folder of a run, which has its episodes in folders by step."""
    folder = real_folder(name)
    return os.path.dirname(folder) if _OF_STEP.fullmatch(os.path.basename(folder)) else folder


def _record(document: Document) -> tuple[TraceRecord, list[float | None]]:
    """The record of an episode, and the reward of each trajectory; the one of a lone trajectory is not stated yet."""
    raw, place = document
    episode = decode_record(_EPISODE, raw, file=place.file, line=place.line)
    name = episode.episode_id or episode.id or ""
    record = TraceRecord(name, _task(name, episode.task), *place, format="rllm")
    step = episode.training_step
    if step is not None:  # ids repeat at later steps, with another policy
        record.trace_id, record.group_id = f"{name}/step-{step}", f"{record.group_id}/step-{step}"
    versions = {each.weight_version for trajectory in episode.trajectories for each in trajectory.steps} - {None}
    version = versions.pop() if len(versions) == 1 else step
    if version is not None:
        record.evidence["policy_version"] = version
    record.error = "error" if episode.termination_reason == "error" else ""
    record.rewards["is_correct"] = float(episode.is_correct)
    numbers = (episode.metrics or {}).items()
    record.metrics = {key: float(value) for key, value in numbers if isinstance(value, int | float)}
    record.ended_by(episode.termination_reason)
    team, count, number = (
        Team(record),
        collections.Counter(trajectory.name for trajectory in episode.trajectories),
        dict[str, int](),
    )
    is_scored = any(
        each.reward for trajectory in episode.trajectories for each in trajectory.steps
    )  # 0 everywhere is the default
    found = Places(raw)  # of the messages of all steps, in their order
    for index, trajectory in enumerate(episode.trajectories):
        number[trajectory.name] = number.get(trajectory.name, -1) + 1
        alone = count[trajectory.name] == 1
        instance = trajectory.name if alone else f"{trajectory.name}.{number[trajectory.name]}"
        team.agent(instance, trajectory.name)
        _write(team, instance, trajectory, place, found, f"trajectories[{index}].steps", is_scored)
        if len(episode.trajectories) > 1 and trajectory.reward is not None and trajectory.steps:
            _state(record, instance, trajectory.reward)
    if not record.ids:
        record.lack_events("trajectories", "no step", "a step of a trajectory")
    return team.finish(), [trajectory.reward for trajectory in episode.trajectories]


def _task(name: str, task: msgspec.Raw) -> str:
    """The task, which rLLM takes from an id TASK:ROLLOUT; of another id, a digest of what the task is."""
    if ":" in name or bytes(task) == b"null":
        return name.partition(":")[0]
    return hashlib.blake2b(canonical(task), digest_size=16).hexdigest()


def _state(record: TraceRecord, instance: str, reward: float) -> None:
    """State the outcome of an instance's own trajectory at its last event, where it has one."""
    if instance not in record.agents:
        return
    column = record.columns.setdefault("agent_reward", [])
    column += [None] * (len(record.ids) - len(column))
    column[max(i for i, agent in enumerate(record.agents) if agent == instance)] = reward


def _write(
    team: Team, instance: str, trajectory: _Trajectory, place: Place, found: Places, prefix: str, is_scored: bool
) -> None:
    """Append the steps of a trajectory: what came in since the step before, the call, and its tool calls."""
    user, record = f"{instance}/user", team.record
    calls, known = OpenCalls(), list[Message]()
    for index, step in enumerate(trajectory.steps):
        name, field = f"{instance}/{index}", f"{prefix}[{index}].chat_completions"
        text = bytes(step.chat_completions)
        line, offset = found.of(text) if len(text) > len("[]") else (1, 0)
        begin = Place(place.file, place.line + line - 1, place.offset + offset)
        placed = list(decode_messages(text, begin, field, record.trace_id, text))
        messages, places = [message for message, _ in placed], [where for _, where in placed]
        has_reply = bool(messages) and messages[-1].role == "assistant"
        reply, replied = (messages.pop(), places.pop()) if has_reply else (Message("assistant"), place)
        old = len(known) if messages[: len(known)] == known else 0
        for position, (message, where) in enumerate(zip(messages[old:], places[old:], strict=True), old):
            answered = calls.take(message.tool_call_id) if message.role in ("tool", "function") else None
            if answered is not None:
                team.result(instance, f"{name}/{position}", where, answers=answered[0], tool=answered[1])
            elif message.role in ("user", "human", "environment"):
                team.agent(user, "user", "user", outside=True)
                team.input(user, f"{name}/{position}", instance, where)
            elif message.role not in (*SILENT, "assistant", "tool", "function"):
                record.refuse("bad-value", f"{field}[{position}].role", message.role, ROLES)
        known = [*messages, reply]
        ids, log_probs = step.response_ids or [], step.logprobs or []
        if log_probs and len(log_probs) != len(ids):
            record.refuse("bad-value", f"{prefix}[{index}].logprobs", len(log_probs), f"{len(ids)}, one a token")
        log_prob = math.fsum(log_probs) if log_probs else None
        reward = step.reward if is_scored else None
        call = team.call(instance, name, replied, tokens=len(ids) or None, log_prob=log_prob, env_reward=reward)
        for order, (call_id, tool) in enumerate(reply.calls):
            effect = team.tool_call(instance, f"{name}/call-{order}", replied, call=call, tool=tool)
            calls.add(call_id, effect, tool, call)
