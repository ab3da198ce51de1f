"""The comparison key: with whom an action is compared, as one integer for each event.

A group-relative method compares an action with the samples that have the same key. A key is made of parts, such as
("task", "agent", "turn"): two actions have one key where all parts are equal. `PARTS` lists the parts by name; any
integer array [E] is a part, too. `key_of` turns what users write as `by=` into a `Key`, which passes through `jit`;
`keyed` turns a `Key` into ids.

Most keys are a property of the trace or of the agent instance. Their ids are formed over traces [T] or instances [A],
which are far fewer than events [E].
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import segment_count, segment_first
from graphs.stable_order import stable_order
from graphs.text import excerpt
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE
from graphs.turn_ends import ends_of_turns

__all__ = [
    "PARTS",
    "By",
    "Decided",
    "Key",
    "Keyed",
    "Part",
    "column_of_key",
    "decided_by",
    "event_keys",
    "evidence_of_key",
    "finer_than_trace",
    "key_of",
    "keyed",
    "names_of_key",
    "near_part",
    "number_before",
    "scope_of_key",
    "turn_numbers",
]

Level = Literal["trace", "agent", "event"]
Decided = Literal["before", "by the action", "by the log"]
LEVELS: tuple[Level, ...] = ("trace", "agent", "event")


class Part(NamedTuple):
    """What a part of a key is.

    Attributes:
      level: what has one value of it: a trace, an agent instance or an event.
      meaning: in words.
      decided: whether it is known before the action that it compares, or what the action itself may decide: a baseline
        over such a key depends on the action, and biases the policy gradient. "by the log": the log's writer knows.
      reason: why, in a sentence.
      evidence: the evidence that states it; "" where the graph itself does.
    """

    level: Level
    meaning: str
    decided: Decided
    reason: str
    evidence: str = ""


PARTS: Mapping[str, Part] = {
    "task": Part("trace", "the group of the trace", "before", "The task is given."),
    "episode": Part(
        "trace",
        "the trace itself: only samples of one trace are compared",
        "by the log",
        "Other agents of the episode may react to the action, and so may their rewards.",
    ),
    "agent": Part("agent", "the name of the agent", "before", "Who acts is known before the agent acts."),
    "role": Part("agent", "the role of the agent", "before", "Who acts is known before the agent acts."),
    "depth": Part(
        "agent",
        "number of spawns between the root of the spawn forest and the agent",
        "before",
        "An agent is spawned before it acts. The depth that a trace reaches is another number, which actions decide.",
    ),
    "turn": Part(
        "event",
        "number of earlier turns of the agent instance in which it acted",
        "before",
        "That a trace goes on up to a turn is decided before the turn. Its last turn, or its number of turns, is not.",
    ),
    "step": Part(
        "event",
        "number of earlier actions of the trace",
        "before",
        "That the trace goes on up to a step is decided before the step, which all who act at once share.",
    ),
    "stage": Part("event", "stage of a staged execution", "before", "A stage begins before its actions.", "stage"),
    "anchor": Part(
        "event",
        "the observation that the action answers",
        "before",
        "The observation is made before the action.",
        "anchor",
    ),
    "proposal": Part(
        "event",
        "the proposal that the action works on, such as a design or a question",
        "before",
        "A proposal is made before the actions that work on it. The event that makes it must not state it.",
        "proposal",
    ),
    "prefix": Part(
        "event",
        "the frozen context that the action was sampled in; draws are told apart by node",
        "before",
        "Siblings are drawn independently of each other from the prefix that they share.",
        "context",
    ),
    "key": Part(
        "event", "a key of the log's own", "by the log", "What decides it, only the log's author knows.", "key"
    ),
    "tree": Part("trace", "the sampling tree that the trace is a leaf of", "before", "A tree is begun first.", "tree"),
    "length": Part(
        "trace",
        "band of length: the number of actions of the trace, in bands from a power of two up to the next",
        "by the action",
        "Every action may make the trace longer or shorter.",
    ),
    "model": Part("trace", "the model that acted", "before", "The model is chosen before the trace.", "model"),
    "policy_version": Part(
        "trace",
        "the version of the policy that acted",
        "before",
        "The version is chosen before the trace.",
        "policy_version",
    ),
}
"""The parts of keys by name. Further names are those of evidence that is an id or a count, such as "block"."""

_OF_LOG = Part("event", "another key", "by the log", "Its author knows whether the action decides it.")
_NAMES = {"agent_name": ("task", "agent"), "role_name": ("task", "role")}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Key:
    """The parts of a key, ready for a compiled function.

    Attributes:
      names: of the parts, each once.
      levels: of the parts.
      arrays: of the parts that the graph itself does not have, ids [T], [A] or [E] by their levels; -1 where there is
        none. None of others.
      draws: int [E], the draw of each event, for a key with a prefix; None where every action is a draw of its own.

    Examples:
      >>> key_of("task,agent").names
      ('task', 'agent')
    """

    names: tuple[str, ...] = dataclasses.field(metadata={"static": True})
    levels: tuple[Level, ...] = dataclasses.field(metadata={"static": True})
    arrays: tuple[Array | None, ...]
    draws: Array | None = None

    @property
    def level(self) -> Level:
        """The coarsest level whose units have one key each."""
        return max(self.levels, key=LEVELS.index)

    @property
    def unit(self) -> str:
        """The coarsest level of `graphs.levels` whose units have one key each."""
        if self.level != "event":
            finer = [name for name in self.names if name in ("agent", "role", "depth")]
            return "role" if finer == ["role"] else "agent" if finer else "trace"
        return (
            "turn"
            if {name for name, at in zip(self.names, self.levels, strict=True) if at == "event"} == {"turn"}
            else "event"
        )

    def __repr__(self) -> str:
        return f"by {', '.join(self.names)}"


By = str | Sequence[str | Array] | Array | Key | None
"""What users write: names by commas, or in a tuple, int arrays [E] among them; None compares by task.

"agent_name" and "role_name" are short for ("task", "agent") and ("task", "role"), also among others; "agent" alone
compares agents of one name over all tasks.
"""


def key_of(by: By, evidence: Mapping[str, Array] | None = None) -> Key:
    """What users write as `by=`, as a `Key`.

    Call it outside of `jit` for ids wider than 32 bits, such as hashes: it numbers them anew, and `jit` cuts them.

    Args:
      by: names by commas, or in a tuple or list, among them int arrays [E] with -1 where an event has no key.
      evidence: arrays of the log by name, ids [E] or [T], from which parts are taken that the graph does not have.
        "model" is one of them.

    Raises:
      CreditError: no such name, a name twice, a name whose evidence is not there, or an array of no integers.

    Examples:
      >>> key_of("agent_name").names, key_of(("task", "turn")).level
      (('task', 'agent'), 'event')
      >>> key_of("task,trun")
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: by names 'trun'; did you mean 'turn'?
    """
    if isinstance(by, Key):
        return by
    if evidence is None and (by is None or isinstance(by, str)):
        return _of_names(by)
    return _made(by, evidence)


@functools.lru_cache(maxsize=256)
def _of_names(by: str | None) -> Key:
    """A key of parts that the graph has, made once: a call on a small batch takes less than to make it."""
    return _made(by, None)


def _made(by: By, evidence: Mapping[str, Array] | None) -> Key:
    parts = _parts(by)
    found: dict[str, tuple[Level, Array | None]] = {}
    for place, part in enumerate(parts):
        name = part if isinstance(part, str) else f"part {place + 1}"
        if name in found:
            raise CreditError(f"by names {name!r} twice")
        found[name] = _of_name(name, evidence) if isinstance(part, str) else ("event", _as_ids(part))
    if not found:
        raise CreditError(f"by is {excerpt(by)}; expected one name or more")
    draws = evidence.get("node") if evidence and "prefix" in found else None
    return Key(tuple(found), tuple(at for at, _ in found.values()), tuple(ids for _, ids in found.values()), draws)


def _parts(by: By) -> Sequence[Any]:
    """What users write, as a list of names and arrays."""
    if by is None:
        return ("task",)
    if isinstance(by, Key):
        return by.names
    if isinstance(by, str):
        return _in_full([name.strip() for name in by.split(",")])
    if isinstance(by, tuple) or (isinstance(by, list) and not all(isinstance(part, int | np.integer) for part in by)):
        return _in_full(by)
    return (by,)


def _in_full(parts: Sequence[Any]) -> Sequence[Any]:
    """The parts, where a name that is short for several stands for those of them that are not there."""
    full: list[Any] = []
    for part in parts:
        several = _NAMES.get(part) if isinstance(part, str) else None
        full += [part] if several is None else [name for name in several if not _names(name, (*full, *parts))]
    return full


def _names(name: str, parts: Iterable[Any]) -> bool:
    return any(isinstance(part, str) and part == name for part in parts)  # parts may be arrays


def names_of_key(by: By) -> list[str]:
    """The names of a key; arrays have none.

    Examples:
      >>> names_of_key("role_name")
      ['task', 'role']
    """
    return [part for part in _parts(by) if isinstance(part, str)]


def column_of_key(by: str) -> tuple[str, str | None]:
    """A key in which a column of a table is named "key", and that column; None where all names are known.

    Raises:
      CreditError: several unknown names, an empty one, or an unknown one beside "key".

    Examples:
      >>> column_of_key("task,shift")
      ('task,key', 'shift')
    """
    names = names_of_key(by)
    known = {*PARTS, *(name for name, key in (EVENT_EVIDENCE | TRACE_EVIDENCE).items() if key.kind != "float")}
    unknown = [name for name in names if name not in known]
    if not unknown:
        return by, None
    if len(unknown) > 1 or not unknown[0] or "key" in names:
        key_of(by)
    return ",".join("key" if name == unknown[0] else name for name in names), unknown[0]


def near_part(name: str) -> str:
    """A hint for an unknown name that is almost a known one; "" for others.

    Examples:
      >>> near_part("trun"), near_part("shift")
      ("did you mean 'turn'?", '')
    """
    near = difflib.get_close_matches(name, (*_NAMES, *PARTS), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def scope_of_key(by: By) -> Literal["trace", "group", "batch"]:
    """Whose rewards can change the numbers of a trace that is compared by a key.

    Examples:
      >>> scope_of_key("task,turn"), scope_of_key("agent")
      ('group', 'batch')
    """
    names = names_of_key(by)
    return "trace" if "episode" in names else "group" if "task" in names else "batch"


def finer_than_trace(by: By) -> bool:
    """Whether a key can differ between actions of one trace.

    Examples:
      >>> finer_than_trace("task,turn"), finer_than_trace("task,model")
      (True, False)
    """
    names = names_of_key(by)
    coarse = [PARTS[name].level == "trace" if name in PARTS else name in TRACE_EVIDENCE for name in names]
    return len(names) < len(_parts(by)) or not all(coarse)


def decided_by(by: By) -> tuple[Decided, str]:
    """Whether a key is known before the action that it compares; if not, the first part that is not, and why.

    Examples:
      >>> decided_by("task,turn")
      ('before', '')
      >>> decided_by("task,length")[0]
      'by the action'
    """
    parts = [
        (part, PARTS.get(part, _OF_LOG)) if isinstance(part, str) else ("an array", _OF_LOG) for part in _parts(by)
    ]
    for answer in ("by the action", "by the log"):
        for name, part in parts:
            if part.decided == answer:
                return part.decided, f"{name}: {part.reason}"
    return "before", ""


def evidence_of_key(by: By) -> list[str]:
    """The names of the evidence that a key takes.

    Examples:
      >>> evidence_of_key("task,anchor,prefix,block")
      ['anchor', 'context', 'node', 'block']
    """
    names: list[str] = []
    for name in names_of_key(by):
        if name not in PARTS:
            names.append(name)
        elif PARTS[name].evidence:
            names += [PARTS[name].evidence, *(["node"] if name == "prefix" else [])]
    return names


_NO_LOG = "a graph does not hold it: call credit.run"


def _of_name(name: str, evidence: Mapping[str, Array] | None) -> tuple[Level, Array | None]:
    """The level of a named part, and its ids; None where the graph has them. `evidence` is None without a log."""
    part = PARTS.get(name)
    if part is not None and not part.evidence:
        return part.level, None
    source = name if part is None else part.evidence
    if evidence is not None and source in evidence:
        level: Level = part.level if part is not None else "trace" if source in TRACE_EVIDENCE else "event"
        return level, _as_ids(evidence[source])
    stated = EVENT_EVIDENCE.get(source) or TRACE_EVIDENCE.get(source)
    if stated is not None and stated.kind != "float":
        how = _NO_LOG if evidence is None else f"the log lacks it: {stated.how_to_log}"
        raise CreditError(f"by names {name!r}, and {how}; or pass an array of integers [E] in its place")
    if part is not None:
        how = _NO_LOG if evidence is None else "the log lacks it"
        raise CreditError(f"by names {name!r}, and {how}; or pass an array of integers [E] in its place")
    hint = near_part(name) or f"expected names among {', '.join((*PARTS, *_NAMES))}"
    raise CreditError(f"by names {excerpt(name)}; {hint}")


def _as_ids(ids: Any) -> Array:
    """Integers in 32 bits, numbered anew where they are wider. Floats are no ids: 0.1 + 0.2 is not 0.3."""
    if isinstance(ids, np.ma.MaskedArray):
        raise CreditError("by has a masked array; expected -1 where an event has no key: `array.filled(-1)`")
    array = ids if isinstance(ids, jax.Array) else np.asarray(ids)
    if array.dtype.kind not in "iub":
        raise CreditError(f"by has {excerpt(ids)}, of dtype {array.dtype}; expected names, or an array of integers [E]")
    if np.can_cast(array.dtype, np.int32):
        return array
    if isinstance(array, jax.core.Tracer):  # whose numbers cannot be looked at
        raise CreditError(f"by has an array of dtype {array.dtype}; within a compiled function, expected int32")
    wide = np.asarray(array)
    if wide.size and int(wide.max()) > np.iinfo(np.int32).max:
        wide = np.where(wide < 0, -1, np.unique(wide, return_inverse=True)[1].reshape(wide.shape))
    return np.maximum(wide, -1).astype(np.int32)


class Keyed(NamedTuple):
    """The ids of a key on M entries: traces, agent instances or events, the coarsest that have one key each.

    Attributes:
      ids: int32 [M] in [0, M), equal where all parts are equal; they may skip numbers.
      mask: bool [M], the real entries.
      trace: int32 [M], of each entry.
      of_event: int32 [E], the entry of each event.
      level: what an entry is.
      absent_mask: bool [M], real entries without a part of the key; None where every entry has all.
    """

    ids: jax.Array
    mask: jax.Array
    trace: jax.Array
    of_event: jax.Array
    level: Level
    absent_mask: jax.Array | None = None


def keyed(graph: EventGraph, key: Key, least: Level = "trace") -> Keyed:
    """The ids of a key, on traces, agent instances or events: the coarsest that have one key each.

    Args:
      graph: the batch.
      key: of `key_of`.
      least: the coarsest level to use.

    Raises:
      CreditError: an array of the key has not one entry for each event, agent instance or trace, by its level.

    Examples:
      >>> import credit
      >>> graph, _, _ = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "a", "b"], agent=["x", "y", "x"], reward=[1.0] * 3)
      >>> keyed(graph, key_of("task,agent")).ids[:3].tolist()
      [0, 1, 0]
    """
    level = max(key.level, least, key=LEVELS.index)
    trace_mask, agent_mask = jnp.asarray(graph.trace_mask), jnp.asarray(graph.agent_mask)
    if level == "trace":
        places = jnp.arange(graph.num_traces, dtype=jnp.int32)
        entries = Keyed(places, trace_mask, places, jnp.asarray(graph.trace_ids), level)
    elif level == "agent":
        places = jnp.arange(graph.num_agents, dtype=jnp.int32)
        entries = Keyed(places, agent_mask, jnp.asarray(graph.agent_trace), jnp.asarray(graph.agent_ids), level)
    else:
        places = jnp.arange(graph.num_events, dtype=jnp.int32)
        entries = Keyed(places, jnp.asarray(graph.event_mask), jnp.asarray(graph.trace_ids), places, level)
    mask, absent = entries.mask, None
    ids, num_first = jnp.zeros_like(entries.trace), 1
    # From the coarsest part on: ids of few values first, so that ranges fit side by side and nothing is sorted.
    parts = zip(key.names, key.levels, key.arrays, strict=True)
    for name, at, array in sorted(parts, key=lambda part: LEVELS.index(part[1])):
        values = (_values(graph, name) if array is None else _checked(graph, name, at, array)).astype(jnp.int32)
        if at == "trace" and level != "trace":
            values = values[entries.trace]
        elif at == "agent" and level == "event":
            values = values[jnp.asarray(graph.agent_ids)]
        if array is not None:
            lacks = entries.mask & (values < 0)
            absent = lacks if absent is None else absent | lacks
            mask = mask & (values >= 0)
        if num_first == 1 and name in ("task", "episode"):
            ids, num_first = values, graph.num_traces
        else:
            ids, num_first = pair_ids(ids, values, mask, num_first), len(ids)
    if num_first > len(ids):  # fewer entries than traces
        ids = pair_ids(jnp.zeros_like(ids), ids, mask, 1)
    return entries._replace(ids=ids.astype(jnp.int32), mask=mask, absent_mask=absent)


def event_keys(graph: EventGraph, by: By, evidence: Mapping[str, Array] | None = None) -> jax.Array:
    """The key of each event: int32 [E] in [0, E), -1 in padding and where a part of the key is absent.

    Args:
      graph: the batch.
      by, evidence: as of `key_of`.

    Raises:
      CreditError: as of `key_of`.

    Examples:
      >>> import credit
      >>> graph, _, rows = credit.from_columns(
      ...     group=[0] * 4, trace=list("aaab"), agent=list("xyxx"), turn=[0, 0, 1, 0], reward=[1.0] * 4)
      >>> rows.gather(event_keys(graph, "task,agent,turn")).tolist()
      [0, 2, 1, 0]
    """
    key = key_of(by, evidence)
    dense = keyed(graph, key, least="event")
    met = jnp.zeros(len(dense.ids), jnp.int32).at[dense.ids].max(dense.mask.astype(jnp.int32))
    number = jnp.cumsum(met, dtype=jnp.int32) - 1  # the ids may skip numbers
    return jnp.where(dense.mask, number[dense.ids], -1)


def _checked(graph: EventGraph, name: str, level: Level, array: Array) -> jax.Array:
    size = {"trace": graph.num_traces, "agent": graph.num_agents, "event": graph.num_events}[level]
    if np.shape(array) != (size,):
        raise CreditError(f"by has {name} of shape {np.shape(array)}; expected ({size},), one entry for each {level}")
    return jnp.asarray(array)


def _values(graph: EventGraph, name: str) -> jax.Array:
    """The values of a part that the graph itself has: int32 [T], [A] or [E], by its level."""
    if name == "task":
        return jnp.asarray(graph.group_ids)
    if name == "episode":
        return jnp.arange(graph.num_traces, dtype=jnp.int32)
    if name == "agent":
        return jnp.asarray(graph.agent_name_ids)
    if name == "role":
        return jnp.asarray(graph.agent_role_ids)
    acts = jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask)
    trace = jnp.asarray(graph.trace_ids)
    if name == "length":
        actions = segment_count(trace, graph.num_traces, acts, jnp.int32)
        # The place of the highest bit: 31 less the number of leading zeros.
        return 31 - jax.lax.clz(jnp.maximum(actions, 1))
    if name == "depth":
        return _depths(graph)
    if name == "step":
        if graph.joint_mask is not None:  # at the last action of a joint turn alone: none of its actions is earlier
            turn, n = ends_of_turns(graph), graph.num_events
            last = jax.ops.segment_max(jnp.where(acts, jnp.arange(n, dtype=jnp.int32), -1), turn, num_segments=n)
            acts = acts & (last[turn] == jnp.arange(n, dtype=jnp.int32))
        return number_before(acts, trace, graph.num_traces)
    return turn_numbers(graph, acts)


def number_before(marked: jax.Array, ids: jax.Array, num: int) -> jax.Array:
    """How many marked places of the same id stand before each: int32 [M]; equal ids stand side by side.

    Args:
      marked: bool [M].
      ids: int32 [M] in [0, num).
      num: of ids.

    Examples:
      >>> number_before(jnp.array([True, True, False, True]), jnp.array([0, 0, 0, 2]), 3).tolist()
      [0, 1, 2, 0]
    """
    count = jnp.cumsum(marked, dtype=jnp.int32) - marked.astype(jnp.int32)
    return count - jax.ops.segment_min(count, ids, num_segments=num)[ids]


def turn_numbers(graph: EventGraph, acts: jax.Array) -> jax.Array:
    """How many earlier turns of its agent instance with an action each event has: int32 [E].

    Args:
      graph: the batch.
      acts: bool [E], the actions.

    Examples:
      >>> import credit
      >>> graph, _, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a"] * 3, agent=list("xyx"), turn=[0, 0, 1], reward=[1.0] * 3)
      >>> rows.gather(turn_numbers(graph, jnp.asarray(graph.action_mask))).tolist()
      [0, 0, 1]
    """
    turn, num = jnp.asarray(graph.turn_ids), graph.num_events
    lead_of = segment_first(turn, num, acts)[turn]
    leads = acts & (lead_of == jnp.arange(num, dtype=jnp.int32))
    # The events of an instance do not stand side by side: sorted by instance they do, in their order.
    order = stable_order(jnp.asarray(graph.agent_ids))
    number = number_before(leads[order], jnp.asarray(graph.agent_ids)[order], graph.num_agents)
    return jnp.zeros_like(number).at[order].set(number)[lead_of]


def _depths(graph: EventGraph) -> jax.Array:
    """How many spawns lie between each agent instance and its root: int32 [A].

    After k rounds an instance points to its 2^k-th ancestor, and has counted the spawns on the way.
    """
    places = jnp.arange(graph.num_agents, dtype=jnp.int32)
    parent = jnp.asarray(graph.agent_parent)
    depth = (parent != places).astype(jnp.int32)

    def further(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        jump, depth = state
        return jump[jump], depth + depth[jump]

    def unfinished(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        return jnp.any(state[0] != state[0][state[0]])

    return jax.lax.while_loop(unfinished, further, (parent, depth))[1]
