"""Graphs of LangGraph: a run forks from the checkpoint before a decision, so nothing before it runs again.

    builder.add_node("writer", decision(write, idle=lambda state: {"text": ""}))
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"task": "q"}, {"configurable": {"thread_id": "t-1"}})
    driver = LangGraphReplayer(graph, reward=lambda state: state["score"])

A decision is known by its node and superstep, as in "writer/2"; a trace by its thread. Nodes of one superstep run in
parallel; those beside the decision are drawn anew.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from credit.replay.json_lines import write_lines
from credit.replay.replayer import Continuation, Prefix, PrefixError
from graphs.errors import CreditError, MissingExtraError

__all__ = ["LangGraphReplayer", "decision", "write_thread_log"]

Update = Mapping[str, Any]


def decision(
    node: Callable[..., Update], *, name: str = "", idle: Callable[[Any], Update] | None = None
) -> Callable[..., Update]:
    """A node that can be replaced or forbidden in a replay.

    Args:
      node: a function of (state, config) or of (state); `config["configurable"]["seed"]` is the seed of a replay.
      name: of the node and agent. Default: the name of the function.
      idle: what a forbidden agent returns; None where it cannot be forbidden.

    Returns:
      The function to give to `add_node`, under the same name.

    Raises:
      MissingExtraError: LangGraph is not installed.
    """
    try:
        from langchain_core.runnables import RunnableConfig
    except ModuleNotFoundError as error:
        raise MissingExtraError("langgraph", "langgraph") from error
    label = name or node.__name__
    with_config = len(inspect.signature(node).parameters) > 1

    @functools.wraps(node)
    def wrapped(state: Any, config: Any) -> Update:
        options = config.get("configurable", {})
        if label in options.get("credit_forbid", ()):
            if idle is None:
                raise CreditError(
                    f"agent {label!r} is forbidden, and it has no idle answer; expected decision(idle=...)"
                )
            return idle(state)
        replacement = options.get("credit_replacement")
        if replacement is not None and replacement.node == label:
            update: Update | None = replacement.take()
            if update is not None:
                return update
        own_update: Update = node(state, config) if with_config else node(state)
        return own_update

    # LangGraph passes `config` to parameters that are annotated so, and reads the annotations of the wrapper.
    wrapped.__annotations__ = {"config": RunnableConfig}
    wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter("state", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            inspect.Parameter("config", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunnableConfig),
        ]
    )
    del wrapped.__wrapped__
    return wrapped


@dataclasses.dataclass(frozen=True)
class LangGraphReplayer:
    """A driver that forks threads of a compiled graph. `replace` is the state update of the node, as JSON.

    A forbidden agent gives the `idle` answer of its `decision`. A fork never changes the thread that it starts from.

    Attributes:
      graph: compiled with the checkpointer that holds the threads.
      reward: the return of a run by its last state.
      alternative: what was chosen, by the last state; "" by default.
      tokens: tokens of a run by its last state; 0 by default.
    """

    graph: Any
    reward: Callable[[Any], float]
    alternative: Callable[[Any], str] = lambda state: ""
    tokens: Callable[[Any], int] = lambda state: 0

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> list[Continuation]:
        """Fork the thread `n` times, with the seeds `seed`, `seed + 1`, …

        Raises:
          PrefixError: the thread has no checkpoint before the decision.
          CreditError: the replacement is no JSON object, or a forbidden agent has no idle answer.
        """
        update = None if replace is None else _object(replace)
        start = self._checkpoint(prefix)
        outcomes = []
        for number in range(seed, seed + n):
            options = {**start, "seed": number, "credit_forbid": tuple(forbid)}
            if update is not None and prefix.decision is not None:
                options["credit_replacement"] = _Replacement(prefix.decision.rpartition("/")[0], update)
            state = self.graph.invoke(None, {"configurable": options})
            outcomes.append(Continuation(float(self.reward(state)), self.alternative(state), int(self.tokens(state))))
        return outcomes

    @functools.cached_property
    def _starts(self) -> dict[tuple[str, str | None], dict[str, Any]]:
        return {}  # forks add checkpoints to the thread, so each search takes longer than the one before

    def _checkpoint(self, prefix: Prefix) -> dict[str, Any]:
        """Where the run starts: the thread's checkpoint before the decision, or before its first node."""
        key = prefix.trace, prefix.decision
        if key in self._starts:
            return self._starts[key]
        for snapshot in _history(self.graph, prefix.trace):
            if prefix.decision is None or prefix.decision in _decisions(snapshot):
                return self._starts.setdefault(key, dict(snapshot.config["configurable"]))
        where = "its first node" if prefix.decision is None else repr(prefix.decision)
        raise PrefixError(f"thread {prefix.trace!r} has no checkpoint before {where}")


def write_thread_log(graph: Any, threads: Mapping[str, str], reward: Callable[[Any], float], path: Path,
                     only: Iterable[str] | None = None) -> None:  # fmt: skip
    """Write threads as a native log: an event for each node that ran, whose id is the node and its superstep.

    Every event is caused by those of the superstep before it.

    Args:
      graph: compiled with the checkpointer that holds the threads.
      threads: the task of each thread.
      reward: the return of a run by its last state.
      path: the log; it appears whole or not at all.
      only: nodes that are decisions. Default: all.

    Raises:
      CreditError: a thread without a run that ended.
    """
    kept = None if only is None else frozenset(only)
    write_lines(path, (_trace(graph, thread, task, reward, kept) for thread, task in threads.items()))


def _trace(
    graph: Any, thread: str, task: str, reward: Callable[[Any], float], only: frozenset[str] | None
) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []
    earlier: list[str] = []
    history = _history(graph, thread)
    if not history:
        raise CreditError(f"thread {thread!r} has no last checkpoint; expected a run that ended")
    for time, snapshot in enumerate(history):
        names = [name for name in _decisions(snapshot) if only is None or name.rpartition("/")[0] in only]
        events += [{"id": name, "t": time, "type": "message", "agent": name.rpartition("/")[0]} for name in names]
        edges += [{"src": source, "dst": name, "type": "causal"} for source in earlier for name in names]
        earlier = names or earlier
    return {"trace_id": thread, "task_id": task, "events": events, "edges": edges,
            "rewards": {"team": float(reward(history[-1].values))}, "costs": {}}  # fmt: skip


def _history(graph: Any, thread: str) -> list[Any]:
    """Snapshots of the logged run, first to last, without those of forks.

    A fork's checkpoints hang on the logged ones, so the logged run is the chain of parents of the first end.
    """
    every = list(graph.get_state_history({"configurable": {"thread_id": thread}}))
    by_id = {snapshot.config["configurable"]["checkpoint_id"]: snapshot for snapshot in every}
    ends = [snapshot for snapshot in every if not snapshot.next]
    if not ends:
        return []
    chain, snapshot_at = [], min(ends, key=lambda snapshot: snapshot.created_at or "")
    while snapshot_at is not None:
        chain.append(snapshot_at)
        parent = snapshot_at.parent_config
        snapshot_at = by_id.get(parent["configurable"]["checkpoint_id"]) if parent else None
    return chain[::-1]


def _decisions(snapshot: Any) -> list[str]:
    """Nodes that run after a checkpoint, with their superstep."""
    step = snapshot.metadata["step"] + 1
    return [f"{name}/{step}" for name in snapshot.next if name != "__start__"]


class _Replacement:
    """What a node returns the first time that it runs in a fork, which is at the decision."""

    def __init__(self, node: str, update: Update) -> None:
        self.node, self._lock = node, threading.Lock()
        self._update: Update | None = update

    def take(self) -> Update | None:
        """The update; None after the first time."""
        with self._lock:
            update, self._update = self._update, None
        return update


def _object(text: str) -> Update:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CreditError(f"replace is {text!r}; expected the node's update as a JSON object")
    return value
