"""The structs of verifiers v1, as the package's `v1/episode.py` and `v1/trace.py` define them."""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec

from graphs.formats.common.chat import Message
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT

__all__ = [
    "AgentInfo",
    "AgentTrace",
    "Call",
    "Config",
    "Episode",
    "Error",
    "Link",
    "Named",
    "Node",
    "Policy",
    "Reward",
    "Run",
    "Task",
    "Usage",
    "Work",
]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]
_Id = Annotated[str, msgspec.Meta(min_length=1)]


class Link(msgspec.Struct):
    """A typed link from another node of the trace."""

    node: _Count
    type: str


class Node(msgspec.Struct):
    """A message, and the tokens that it adds to the context."""

    message: Message
    semantic_parents: list[Link] = []
    parent: _Count | None = None
    sampled: bool = False
    timestamp: float | None = None
    token_ids: list[_Count] = []
    mask: list[bool] = []
    logprobs: list[_Float] = []


class Config(msgspec.Struct):
    """The configuration of an agent."""

    model: str | None = None


class AgentInfo(msgspec.Struct):
    """The agent of a trace."""

    name: str = "agent"
    trainable: bool = True
    config: Config | None = None


class Usage(msgspec.Struct):
    """Token counts; `prompt_tokens` leaves out what came from the cache."""

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    cached_input_tokens: _Count | None = None


class Call(msgspec.Struct):
    """A model call."""

    node: int | None = None
    model: str | None = None
    usage: Usage | None = None


class Reward(msgspec.Struct):
    """A score and its weight."""

    score: float
    weight: float = 1.0


class Error(msgspec.Struct):
    """An error of an attempt."""

    type: str = "an error"
    message: str = ""


class AgentTrace(msgspec.Struct):
    """The trace of one agent."""

    id: _Id
    agent: AgentInfo
    nodes: list[Node] = []
    calls: list[Call] = []
    rewards: dict[str, Reward | None] = {}
    metrics: dict[str, float | None] = {}
    task: msgspec.Raw = msgspec.Raw()
    ok: bool | None = None
    errors: list[Error] = []
    stop_condition: Any = None
    is_timeout: Any = None

    @property
    def models(self) -> list[str | None]:
        """The models that were called, else the one of the agent's configuration."""
        called: list[str | None] = [call.model for call in self.calls if call.model]
        return called or [self.agent.config.model if self.agent.config is not None else None]

    @property
    def reward(self) -> float | None:
        """The weighted sum of the scores, as verifiers defines it; None if nothing was scored."""
        amounts = [reward.score * reward.weight for reward in self.rewards.values() if reward is not None]
        return math.fsum(amounts) if amounts else None


class Task(msgspec.Struct):
    """The task of an episode."""

    key: str | None = None
    hash: str | None = None
    data: msgspec.Raw = msgspec.Raw()


class Named(msgspec.Struct):
    """An object with an id."""

    id: str = ""


class Policy(msgspec.Struct):
    """Versions of the policy."""

    start: _Count | None = None


class Work(msgspec.Struct):
    """The use of the episode by a training run."""

    policy: Policy | None = None


class Run(msgspec.Struct):
    """The run that an episode belongs to."""

    work: Work | None = None

    @property
    def version(self) -> int | None:
        """The policy's version when the episode began."""
        return self.work.policy.start if self.work is not None and self.work.policy is not None else None


class Episode(msgspec.Struct):
    """A team's run on one task."""

    id: _Id
    traces: list[AgentTrace]
    task: Task = msgspec.field(default_factory=Task)
    env: Named | None = None
    group: Named | None = None
    run: Run | None = None
    ok: bool | None = None
    errors: list[Error] = []

    @property
    def error(self) -> str:
        """Why the run failed; "" if it did not. An attempt that was repeated leaves its errors in a run that is ok."""
        for ok, errors in [(self.ok, self.errors), *((trace.ok, trace.errors) for trace in self.traces)]:
            if ok is False or (ok is None and errors):
                last = errors[-1] if errors else Error("ok is false")
                return f"{last.type}: {last.message}".removesuffix(": ")
        return ""
