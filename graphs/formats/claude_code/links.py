"""Which lines belong to which agent of a Claude Code session, and which tool use started it.

A chain is the lines of one agent in the order of the file. A sub-agent's are those of its file, or lines of the
session's file that hang together by `parentUuid`. A tool use named Task or Agent is a spawn if it started an agent: a
progress line or its result names an agent id, or a chain begins with its prompt.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator

import msgspec

from graphs.formats.claude_code.lines import Block, Entry, Link, Transcript, spawn_result
from graphs.reading.json_problems import JSON_ERRORS

__all__ = ["COMPACTION", "Chain", "Spawn", "agent_of_file", "chains_of", "conversations", "find_spawns", "is_prompt"]

SPAWNERS = ("Task", "Agent")
COMPACTION = "acompact"  # how ids begin of agents with which the harness sums up a conversation
# A command that Claude Code notes as text of the user. Text that quotes it begins otherwise.
_CLEAR = re.compile(r"\s*(?:<command-message>clear</command-message>\s*)?<command-name>/clear</command-name>")

_ANYTHING = msgspec.json.Decoder()


@dataclasses.dataclass(slots=True, eq=False)
class Chain:
    """The lines of one agent, the prompts of its spawns, and how many lines the spawns have taken so far."""

    entries: list[Entry]
    agent: str | None = None
    prompts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    taken: int = 0

    @property
    def prompt(self) -> str:
        """The text that the agent was started with."""
        return next((plain_text(entry) for entry in self.entries if is_prompt(entry)), "")


@dataclasses.dataclass(slots=True, eq=False)
class Spawn:
    """A tool use that started an agent, or woke it: the agent's instance, role, prompt and lines."""

    instance: str
    role: str
    prompt: str
    caller: Chain
    chain: Chain | None  # None where the log has no line of the agent
    launched: bool = False  # answered at once, while the agent works on

    def take(self) -> list[Entry]:
        """Take the lines up to the prompt of another spawn of the same agent, or all that are left."""
        chain = self.chain
        if chain is None:
            return []
        start = chain.taken
        end = start + 1
        while end < len(chain.entries) and not self._is_of_another(chain.entries[end], chain):
            end += 1
        chain.taken = min(end, len(chain.entries))
        return chain.entries[start : chain.taken]

    def _is_of_another(self, entry: Entry, chain: Chain) -> bool:
        """Whether a line is the prompt of another spawn of the agent; two spawns may have one prompt."""
        if not is_prompt(entry):
            return False
        text = plain_text(entry)
        return bool(text) and chain.prompts[text] > (text == self.prompt)


def plain_text(entry: Entry) -> str:
    """The text of a message without its other blocks."""
    return "\n".join(block.text or "" for block in entry.message.blocks if block.type == "text")


def is_prompt(entry: Entry) -> bool:
    """Whether a line is text written to the agent, and neither a tool result nor text of the harness."""
    return entry.type == "user" and not entry.harness and all(b.type != "tool_result" for b in entry.message.blocks)


def chains_of(main: Transcript, others: list[Transcript]) -> list[Chain]:
    """The main agent's chain, then those of sub-agents, inline and then by file, without compactions."""
    root = Chain([entry for entry in main.entries if not entry.sidechain])
    inside = {entry.uuid for entry in main.entries if entry.sidechain and entry.uuid is not None}
    by_root: dict[str, Chain] = {}
    known: dict[str, str | None] = {}
    for entry in main.entries:
        if entry.sidechain:
            top = _top(entry, main.links, inside, known)
            chain = by_root.setdefault(top, Chain([], entry.agent))
            chain.entries.append(entry)
    files = [Chain(other.entries, agent_of_file(other)) for other in others if other.entries]
    chains = (chain for chain in [*by_root.values(), *files] if not (chain.agent or "").startswith(COMPACTION))
    return [root, *chains]


def agent_of_file(transcript: Transcript) -> str:
    """The agent id that the lines of a sub-agent's file name, or else its name."""
    named = next((entry.agent for entry in transcript.entries if entry.agent), None)
    return named or re.split(r"[\\/]", transcript.file)[-1].split(".")[0].removeprefix("agent-")


def _top(entry: Entry, links: dict[str, Link], inside: set[str], known: dict[str, str | None]) -> str:
    """The topmost sidechain line that a sidechain line hangs on, through lines of any type.

    A line whose parents are not in the file is its own top. So is a line in a ring. `known` saves walking a path twice,
    which would take quadratic time for a long chain.

    Args:
      entry: the line.
      links: every line of the file.
      inside: the sidechain lines.
      known: for lines walked before, the topmost sidechain line at or above them, or None; grows.
    """
    path = {entry.uuid or f"line {entry.place.line}": None}
    top = next(iter(path))
    above: str | None = None  # the topmost sidechain line above the path
    current = entry.parent
    while current is not None and current in links and current not in path:
        if current in known:
            above = known[current]
            break
        path[current] = None
        top = current if current in inside else top
        current = links[current].parent
    else:
        order = list(path)
        if current is not None and current in path and order.index(current) <= order.index(top):
            above = top  # it stands in a ring with all lines above it
    at_or_above: str | None = above or top
    for step in path:
        known[step] = at_or_above
        if step == top:  # only plain lines are further up
            at_or_above = above
    return above or top


def conversations(chain: Chain) -> list[Chain]:
    """The main agent's lines, parted where `/clear` emptied its context between two model calls."""
    parts: list[list[Entry]] = [[]]
    for entry in chain.entries:
        if is_prompt(entry) and _CLEAR.match(plain_text(entry)) and _has_call(parts[-1]):
            parts.append([])
        parts[-1].append(entry)
    if len(parts) > 1 and not _has_call(parts[-1]):
        last = parts.pop()
        parts[-1] += last
    return [Chain(entries) for entries in parts]


def _has_call(entries: list[Entry]) -> bool:
    return any(entry.type == "assistant" and not entry.harness for entry in entries)


def find_spawns(roots: list[Chain], subs: list[Chain], agents: dict[str, str], trace: str) -> dict[str, Spawn]:
    """Spawns by tool use id.

    Args:
      roots: the main agent's chains.
      subs: the sub-agents'.
      agents: agent ids by tool use id, from progress lines; results add theirs.
      trace: the trace's id.

    Raises:
      TraceError: a tool result names an agent by something else than a string.
    """
    chains = [*roots, *subs]
    uses = {block.id or "": (block, chain) for chain in chains for block in _calls_of_spawners(chain)}
    named, launched = {use: agent for use, agent in agents.items() if use in uses}, set()
    for chain in chains:
        for entry in chain.entries:
            answers = [block.tool_use_id or "" for block in entry.message.blocks if block.type == "tool_result"]
            if len(answers) == 1 and answers[0] in uses:
                result = spawn_result(entry, trace)
                if result.agent is not None:
                    named.setdefault(answers[0], result.agent)
                if result.status in ("async_launched", "remote_launched"):
                    launched.add(answers[0])
    by_agent = {chain.agent: chain for chain in reversed(subs) if chain.agent is not None}
    taken = set(named.values())
    by_prompt: dict[str, list[Chain]] = {}
    for chain in reversed(subs):
        if chain.agent not in taken and chain.prompt:
            by_prompt.setdefault(chain.prompt, []).append(chain)
    spawns: dict[str, Spawn] = {}
    for use, (block, caller) in uses.items():
        wanted = _input(block)
        prompt, agent = wanted.get("prompt", ""), named.get(use)
        started = by_agent.get(agent) if agent is not None else None
        fitting = by_prompt.get(prompt)
        if started is None and fitting and (agent is None or fitting[-1].agent is None):
            started = fitting.pop()
        if agent is None and started is None:
            continue  # it was refused at once or interrupted: a tool call like any other
        instance = agent or (started.agent if started else None) or use
        spawns[use] = Spawn(instance, wanted.get("subagent_type", ""), prompt, caller, started, use in launched)
        if started is not None:
            started.prompts[prompt] += 1
    return spawns


def _calls_of_spawners(chain: Chain) -> Iterator[Block]:
    for entry in chain.entries:
        if entry.type == "assistant" and not entry.harness:
            yield from (b for b in entry.message.blocks if b.type == "tool_use" and b.name in SPAWNERS)


def _input(block: Block) -> dict[str, str]:
    """The texts of a tool use's input. A model wrote it, so wrong types are no fault of the log."""
    try:
        value = _ANYTHING.decode(block.input)
    except JSON_ERRORS:
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}
