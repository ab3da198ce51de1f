"""Episodes of verifiers v1: the message graphs of all agents' traces as one trace."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from graphs.errors import Problem
from graphs.event_types import EdgeType, EventType
from graphs.formats.verifiers.wire import AgentTrace, Episode, Link, Node, Task, Usage
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place
from graphs.reading.files import model_names, name_models
from graphs.text import counted
from graphs.traces.record import Agent, TraceRecord

__all__ = ["read_episode"]

_LINKS = {
    "subagent_return": EdgeType.RETURN,
    "agent_message": EdgeType.MESSAGE,
    "continuation": EdgeType.TEMPORAL,
    "compaction": EdgeType.TEMPORAL,
}

_EPISODE = msgspec.json.Decoder(Episode)
_LONE = msgspec.json.Decoder(AgentTrace)
_TASK = msgspec.json.Decoder(Task)


def read_episode(document: Document) -> Iterator[TraceRecord | Problem]:
    """The record of an episode, or of an agent's trace that stands outside one.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode_record`; "bad-parent", a node whose parent is not before it;
        "bad-value", not as many log-probabilities as sampled tokens; "disagreeing-metrics".
    """
    raw, place = document
    if b'"traces"' in raw or b'"nodes"' not in raw:
        episode = decode_record(_EPISODE, raw, file=place.file, line=place.line)
    else:
        lone = decode_record(_LONE, raw, file=place.file, line=place.line)
        task = decode(_TASK, lone.task, file=place.file, line=place.line, field="task") if bytes(lone.task) else Task()
        episode = Episode(lone.id, [lone], task, ok=True)
    record = TraceRecord(episode.id, _group(episode), place.file, place.line, place.offset, format="verifiers")
    if episode.run is not None and episode.run.version is not None:
        record.evidence["policy_version"] = episode.run.version
    record.error = episode.error
    if len(episode.traces) == 1:  # one of several agents may stop at a limit of its own
        record.ended_by("timeout" if episode.traces[0].is_timeout is True else episode.traces[0].stop_condition)
    record.model = model_names(model for trace in episode.traces for model in trace.models)
    _set_rewards(record, episode.traces)
    for index, trace in enumerate(episode.traces):
        start = len(record.ids)
        _Graph(record, trace, f"traces[{index}]", place).write()
        if trace.reward is not None and "team" not in record.rewards:
            _pay(record, trace, start)
    if record.ids:
        name_models(record)
    else:
        record.lack_events("traces", "no message", "what an agent did")
    yield record


def _group(episode: Episode) -> str:
    """The stated group, else the task in its environment, else the episode alone."""
    if episode.group is not None and episode.group.id:
        return episode.group.id
    task = episode.task.key or episode.task.hash
    if not task:
        return episode.id
    return f"{episode.env.id}/{task}" if episode.env is not None and episode.env.id else task


def _pay(record: TraceRecord, trace: AgentTrace, start: int) -> None:
    """Write the reward of an agent's trace at the agent's last action, else at its last event, from `start` on."""
    events = [place for place in range(start, len(record.ids)) if record.agents[place] == trace.id]
    acted = [place for place in events if record.actions[place]]
    if events and trace.reward is not None:
        record.add_reward((acted or events)[-1], trace.reward, "agent_reward")


def _set_rewards(record: TraceRecord, traces: list[AgentTrace]) -> None:
    """Write reward channels and metrics; "team" if all agents that were scored have one reward, and no score is due.

    Raises:
      TraceError: "disagreeing-metrics", two of them have one name, such as `c` of the agent `a.b` and `b.c` of `a`.
    """
    count = collections.Counter(trace.agent.name for trace in traces)
    number: dict[str, int] = {}
    totals: dict[str, float] = {}
    for index, trace in enumerate(traces):
        name = trace.agent.name
        number[name] = number.get(name, -1) + 1
        prefix = "" if len(traces) == 1 else f"{name}." if count[name] == 1 else f"{name}.{number[name]}."
        rewards = {key: reward.score * reward.weight for key, reward in trace.rewards.items() if reward is not None}
        metrics = {key: value for key, value in trace.metrics.items() if value is not None}
        for key, amount in rewards.items():
            record.state_reward(prefix + key, amount, f"traces[{index}].rewards")
        for key, amount in metrics.items():
            if record.metrics.setdefault(prefix + key, amount) != amount:
                expected = f"{record.metrics[prefix + key]!r}, which {prefix + key!r} has already, or another name"
                record.refuse("disagreeing-metrics", f"traces[{index}].metrics", amount, expected)
        if trace.reward is not None:
            totals[prefix + "reward"] = trace.reward
            if len(traces) > 1:
                record.state_reward(prefix + "reward", trace.reward, f"traces[{index}].rewards")
    is_due = any(trace.rewards and trace.reward is None for trace in traces)
    if len(set(totals.values())) == 1 and not is_due:
        record.state_reward("team", next(iter(totals.values())), "traces[0].rewards")


class _Graph:
    """Appends one agent's message graph to the record.

    A call is caused by the nodes on its path alone, since a branch does not know what another branch did. Many branches
    may share a long prompt. An event of the prompt has an edge to the first call only, and `_join_prompt` joins the
    others.
    """

    def __init__(self, record: TraceRecord, trace: AgentTrace, field: str, place: Place) -> None:
        self.record, self.trace, self.field, self.place = record, trace, field, place
        self.calls = {call.node: call for call in trace.calls if call.node is not None}
        self.event: dict[int, int] = {}  # node -> position
        self.tool_calls: dict[int, dict[str, int]] = {}  # sampled node -> tool call id -> position
        self.sampled: list[int] = []  # for each node, the nearest sampled node on its path, itself included; -1 without
        self.prompt: list[int] = []  # for each node, the nearest prompt event since then, itself included; -1 without
        self.known: set[int] = set()  # prompt events that have an edge to a call
        self.joined: set[int] = set()  # prompt events that have an edge from the one before them in the prompt

    def write(self) -> None:
        agent = self.trace.agent
        self.record.instances.setdefault(self.trace.id, Agent(name=agent.name, role=agent.name))
        for index, node in enumerate(self.trace.nodes):
            start = len(self.record.senders)
            if node.parent is not None and node.parent >= index:
                expected = f"the index of a node before {index}"
                self._refuse("bad-parent", f"nodes[{index}].parent", node.parent, expected)
            above = -1 if node.parent is None else self.sampled[node.parent]
            self.sampled.append(index if node.sampled else above)
            role = node.message.role
            if node.sampled:
                self._call(index, node, above)
            elif role == "tool":
                self._result(index, node, above)
            elif role == "user":
                self._input(index, node, above)
            elif role not in ("system", "assistant", "developer"):
                self._refuse("bad-value", f"nodes[{index}].message.role", role, "system, user, assistant or tool")
            is_prompt = index in self.event and not node.sampled
            self.prompt.append(index if is_prompt else -1 if node.sampled else self._prompt_above(index))
            if node.semantic_parents:
                self._links(index, node.semantic_parents, start)

    def _prompt_above(self, index: int) -> int:
        """The nearest prompt event above a node, since the nearest call above it; -1 without one."""
        parent = self.trace.nodes[index].parent
        return -1 if parent is None else self.prompt[parent]

    def _links(self, index: int, links: list[Link], start: int) -> None:
        """Draw the typed links of a node, whose other edges begin at `start`.

        Links may form loops, so those from later nodes are left out.
        """
        ends = set(zip(self.record.senders[start:], self.record.receivers[start:], strict=True))
        for number, link in enumerate(links):
            if link.node >= len(self.trace.nodes):
                field, expected = f"nodes[{index}].semantic_parents[{number}].node", "the index of a node of this trace"
                self._refuse("bad-parent", field, link.node, expected)
            sender, receiver = self.event.get(link.node), self.event.get(index)
            if sender is None or receiver is None or sender >= receiver or (sender, receiver) in ends:
                continue
            self.record.edge(sender, receiver, _LINKS.get(link.type, EdgeType.CAUSAL))
            ends.add((sender, receiver))

    def _append(
        self, index: int, node: Node, kind: EventType, agent: str, *, action: bool = False, **columns: Any
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

    def _call(self, index: int, node: Node, above: int) -> None:
        sampled = sum(node.mask)
        if node.logprobs and len(node.logprobs) != sampled:
            shown = counted(len(node.logprobs), "number")
            self._refuse("bad-value", f"nodes[{index}].logprobs", shown, f"{sampled}, one a sampled token")
        call = self.calls.get(index)
        usage = Usage() if call is None or call.usage is None else call.usage
        prompt = None if usage.prompt_tokens is None else usage.prompt_tokens + (usage.cached_input_tokens or 0)
        position = self._append(
            index, node, EventType.MESSAGE, self.trace.id, action=True, tokens=sampled or usage.completion_tokens,
            trainable=float(self.trace.agent.trainable), input_tokens=prompt,
            cached_tokens=usage.cached_input_tokens,
            model=call.model or None if call is not None else None,
            log_prob=math.fsum(node.logprobs) if node.logprobs else None,
        )  # fmt: skip
        self._join_prompt(index, position)
        if above >= 0:
            self.record.edge(self.event[above], position, EdgeType.TEMPORAL)
        positions = self.tool_calls.setdefault(index, {})
        for number, (call_id, tool) in enumerate(node.message.calls):
            effect = self.record.event(
                f"{self.trace.id}/{index}/call-{number}", EventType.TOOL_CALL, self.trace.id, action=False,
                line=self.place.line, offset=self.place.offset, tool=tool,
            )  # fmt: skip
            self.record.edge(position, effect, EdgeType.TOOL_DEPENDENCY)
            positions[call_id or ""] = effect

    def _join_prompt(self, index: int, position: int) -> None:
        """Draw the edges to a call from what was added to its prompt since the call before.

        Of the part that an earlier call had in its prompt, too, only the last event has an edge to this call. The
        events of that part are joined to each other, once. So edges grow with nodes, not with calls times messages.
        """
        current = self._prompt_above(index)
        while current >= 0:
            kind = EdgeType.CAUSAL if self.trace.nodes[current].message.role == "tool" else EdgeType.MESSAGE
            self.record.edge(self.event[current], position, kind)
            if current in self.known:
                break
            self.known.add(current)
            current = self._prompt_above(current)
        while current >= 0 and current not in self.joined and (earlier := self._prompt_above(current)) >= 0:
            self.joined.add(current)
            self.record.edge(self.event[earlier], self.event[current], EdgeType.TEMPORAL)
            current = earlier

    def _result(self, index: int, node: Node, above: int) -> None:
        """Append a tool's result. If no call on the path asked for it, it is part of a prompt, and no event."""
        answered = self.tool_calls.get(above, {}).get(node.message.tool_call_id or "")
        if answered is None:
            return
        tool = self.record.columns["tool"][answered]
        position = self._append(index, node, EventType.TOOL_RESULT, self.trace.id, tool=tool)
        self.record.edge(answered, position, EdgeType.RETURN)

    def _input(self, index: int, node: Node, above: int) -> None:
        user = f"{self.trace.id}/user"
        self.record.instances.setdefault(user, Agent(name="user", role="user"))
        position = self._append(index, node, EventType.MESSAGE, user)
        if above >= 0:
            self.record.edge(self.event[above], position, EdgeType.MESSAGE)

    def _refuse(self, kind: str, field: str, value: object, expected: str) -> NoReturn:
        self.record.refuse(kind, f"{self.field}.{field}", value, expected)
