"""Episodes of verifiers v1: the message graphs of all agents' traces as one trace."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EdgeType, EventType
from graphs.readers.common.chats.messages import Message
from graphs.readers.common.files import model_names
from graphs.readers.common.places import Document, Place
from graphs.readers.common.typed import decode
from graphs.text import counted, excerpt
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, Agent, TraceRecord

__all__ = ["read_episode"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]


class _Node(msgspec.Struct):
    message: Message
    parent: _Count | None = None
    sampled: bool = False
    timestamp: float | None = None
    token_ids: list[_Count] = []
    mask: list[bool] = []
    logprobs: list[_Float] = []


class _Config(msgspec.Struct):
    model: str | None = None


class _Agent(msgspec.Struct):
    name: str = "agent"
    trainable: bool = True
    config: _Config | None = None


class _Usage(msgspec.Struct):
    """Token counts; `prompt_tokens` leaves out what came from the cache."""

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    cached_input_tokens: _Count | None = None


class _Call(msgspec.Struct):
    node: int | None = None
    model: str | None = None
    usage: _Usage | None = None


class _Reward(msgspec.Struct):
    score: float
    weight: float = 1.0


class _Trace(msgspec.Struct):
    id: _Id
    agent: _Agent
    nodes: list[_Node] = []
    calls: list[_Call] = []
    rewards: dict[str, _Reward | None] = {}
    metrics: dict[str, float | None] = {}
    task: msgspec.Raw = msgspec.Raw()

    @property
    def models(self) -> list[str | None]:
        """The models that were called, or that the agent was set up with."""
        called: list[str | None] = [call.model for call in self.calls if call.model]
        return called or [self.agent.config.model if self.agent.config is not None else None]

    @property
    def reward(self) -> float | None:
        """The weighted sum of the scores, as verifiers defines it; None where nothing was scored."""
        amounts = [reward.score * reward.weight for reward in self.rewards.values() if reward is not None]
        return math.fsum(amounts) if amounts else None


class _Task(msgspec.Struct):
    key: str | None = None
    hash: str | None = None
    data: msgspec.Raw = msgspec.Raw()


class _Named(msgspec.Struct):
    id: str = ""


class _Policy(msgspec.Struct):
    start: _Count | None = None


class _Work(msgspec.Struct):
    policy: _Policy | None = None


class _Run(msgspec.Struct):
    work: _Work | None = None

    @property
    def version(self) -> int | None:
        """The policy's version when the episode was begun."""
        return self.work.policy.start if self.work is not None and self.work.policy is not None else None


class _Episode(msgspec.Struct):
    id: _Id
    traces: list[_Trace]
    task: _Task = msgspec.field(default_factory=_Task)
    env: _Named | None = None
    group: _Named | None = None
    run: _Run | None = None


_EPISODE = msgspec.json.Decoder(_Episode)
_LONE = msgspec.json.Decoder(_Trace)
_TASK = msgspec.json.Decoder(_Task)


def read_episode(document: Document) -> Iterator[TraceRecord | Problem]:
    """The record of an episode, or of a trace that stands outside one.

    Raises:
      TraceError: kinds of `graphs.readers.common.typed.decode`; "bad-parent", a node whose parent is not before it;
        "bad-value", not as many log-probabilities as sampled tokens.
    """
    raw, place = document
    if b'"traces"' in raw or b'"nodes"' not in raw:
        episode = decode(_EPISODE, raw, file=place.file, line=place.line)
    else:
        lone = decode(_LONE, raw, file=place.file, line=place.line)
        task = decode(_TASK, lone.task, file=place.file, line=place.line, at="task") if bytes(lone.task) else _Task()
        episode = _Episode(lone.id, [lone], task)
    record = TraceRecord(episode.id, _group(episode), place.file, place.line, place.offset, format="verifiers")
    if episode.run is not None and episode.run.version is not None:
        record.evidence["policy_version"] = episode.run.version
    record.model = model_names(model for trace in episode.traces for model in trace.models)
    problem = _set_rewards(record, episode.traces)
    for index, trace in enumerate(episode.traces):
        _Graph(record, trace, f"traces[{index}]", place).write()
    if not record.ids:
        problem = Problem("no-events", place.file, place.line, "traces", "no message", "what an agent did", episode.id)
    else:
        yield record
    if problem is not None:
        yield problem


def _group(episode: _Episode) -> str:
    """The consumer's group, else the task in its environment, else the episode alone."""
    if episode.group is not None and episode.group.id:
        return episode.group.id
    task = episode.task.key or episode.task.hash
    if not task:
        return episode.id
    return f"{episode.env.id}/{task}" if episode.env is not None and episode.env.id else task


def _set_rewards(record: TraceRecord, traces: list[_Trace]) -> Problem | None:
    """Write reward channels and metrics; the problem that no reward is the whole team's, where agents differ."""
    count: dict[str, int] = {}
    for trace in traces:
        count[trace.agent.name] = count.get(trace.agent.name, 0) + 1
    number: dict[str, int] = {}
    totals: dict[str, float] = {}
    for trace in traces:
        name = trace.agent.name
        number[name] = number.get(name, -1) + 1
        prefix = "" if len(traces) == 1 else f"{name}." if count[name] == 1 else f"{name}.{number[name]}."
        for channel, reward in trace.rewards.items():
            if reward is not None:
                record.rewards[prefix + channel] = reward.score * reward.weight
        record.metrics |= {prefix + key: value for key, value in trace.metrics.items() if value is not None}
        if trace.reward is not None:
            totals[prefix + "reward"] = trace.reward
    if len(traces) > 1:
        record.rewards |= totals
    if len(set(totals.values())) == 1:
        record.rewards["team"] = next(iter(totals.values()))
    elif totals:
        shown, expected = excerpt(totals), "one reward of all agents; choose a channel with --reward"
        return Problem("several-rewards", record.file, record.line, "traces.rewards", shown, expected, record.trace_id)
    return None


class _Graph:
    """Appends one agent's message graph to the record.

    The causes of a call are the nodes on its own path: a branch knows nothing of what another branch did.
    """

    def __init__(self, record: TraceRecord, trace: _Trace, at: str, place: Place) -> None:
        self.record, self.trace, self.at, self.place = record, trace, at, place
        self.calls = {call.node: call for call in trace.calls if call.node is not None}
        self.event: dict[int, int] = {}  # node -> position
        self.asked: dict[int, dict[str, int]] = {}  # sampled node -> tool call id -> position
        self.before: list[int] = []  # for each node, the nearest sampled node on its path, itself included, or -1

    def write(self) -> None:
        agent = self.trace.agent
        self.record.instances.setdefault(self.trace.id, Agent(name=agent.name, role=agent.name))
        for index, node in enumerate(self.trace.nodes):
            if node.parent is not None and node.parent >= index:
                expected = f"the index of a node before {index}"
                self._refuse("bad-parent", f"nodes[{index}].parent", node.parent, expected)
            above = -1 if node.parent is None else self.before[node.parent]
            self.before.append(index if node.sampled else above)
            role = node.message.role
            if node.sampled:
                self._call(index, node, above)
            elif role == "tool":
                self._result(index, node, above)
            elif role == "user":
                self._input(index, node, above)
            elif role not in ("system", "assistant", "developer"):
                self._refuse("bad-value", f"nodes[{index}].message.role", role, "system, user, assistant or tool")

    def _append(
        self, index: int, node: _Node, kind: EventType, agent: str, *, action: bool = False, **columns: Any
    ) -> int:
        if node.token_ids and node.mask and len(node.token_ids) != len(node.mask):
            shown = counted(len(node.mask), "value")
            self._refuse("bad-value", f"nodes[{index}].mask", shown, f"{len(node.token_ids)}, one a token")
        time = math.nan if node.timestamp is None else node.timestamp
        position = self.record.event(
            f"{self.trace.id}/{index}", kind, agent, action=action, time=time,
            line=self.place.line, offset=self.place.offset, token_ids=node.token_ids or None,
            token_mask=node.mask or [False] * len(node.token_ids) or None,  # without a mask, no token was sampled
            token_log_probs=node.logprobs or None, **columns,
        )  # fmt: skip
        self.event[index] = position
        return position

    def _call(self, index: int, node: _Node, above: int) -> None:
        sampled = sum(node.mask)
        if node.logprobs and len(node.logprobs) != sampled:
            shown = counted(len(node.logprobs), "number")
            self._refuse("bad-value", f"nodes[{index}].logprobs", shown, f"{sampled}, one a sampled token")
        call = self.calls.get(index)
        usage = _Usage() if call is None or call.usage is None else call.usage
        prompt = None if usage.prompt_tokens is None else usage.prompt_tokens + (usage.cached_input_tokens or 0)
        position = self._append(
            index, node, EventType.MESSAGE, self.trace.id, action=True, tokens=sampled or usage.completion_tokens,
            trainable=float(self.trace.agent.trainable), input_tokens=prompt,
            log_prob=math.fsum(node.logprobs) if node.logprobs else None,
        )  # fmt: skip
        current = node.parent
        while current is not None and current != above:  # what was added to the prompt since the last call
            if current in self.event:
                kind = EdgeType.CAUSAL if self.trace.nodes[current].message.role == "tool" else EdgeType.MESSAGE
                self.record.edge(self.event[current], position, kind)
            current = self.trace.nodes[current].parent
        if above >= 0:
            self.record.edge(self.event[above], position, EdgeType.TEMPORAL)
        asked = self.asked.setdefault(index, {})
        for number, (call_id, tool) in enumerate(node.message.calls):
            effect = self.record.event(
                f"{self.trace.id}/{index}/call-{number}", EventType.TOOL_CALL, self.trace.id, action=False,
                line=self.place.line, offset=self.place.offset, tool=tool,
            )  # fmt: skip
            self.record.edge(position, effect, EdgeType.TOOL_DEPENDENCY)
            asked[call_id or ""] = effect

    def _result(self, index: int, node: _Node, above: int) -> None:
        """A tool's result; one of a call that no model made here is part of a prompt, and no event."""
        answered = self.asked.get(above, {}).get(node.message.tool_call_id or "")
        if answered is None:
            return
        tool = self.record.columns["tool"][answered]
        position = self._append(index, node, EventType.TOOL_RESULT, self.trace.id, tool=tool)
        self.record.edge(answered, position, EdgeType.RETURN)

    def _input(self, index: int, node: _Node, above: int) -> None:
        user = f"{self.trace.id}/user"
        self.record.instances.setdefault(user, Agent(name="user", role="user"))
        position = self._append(index, node, EventType.MESSAGE, user)
        if above >= 0:
            self.record.edge(self.event[above], position, EdgeType.MESSAGE)

    def _refuse(self, kind: str, field: str, value: object, expected: str) -> None:
        record = self.record
        problem = Problem(
            kind, record.file, record.line, f"{self.at}.{field}", excerpt(value), expected, record.trace_id
        )
        raise TraceError(problem)
