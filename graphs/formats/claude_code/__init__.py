"""Claude Code session files (JSON lines): a session is a trace, with its sub-agents, inline or in files of their own.

`/clear` empties the context: what follows it is a trace of its own.

A model call is all lines with one `message.id`, and one action. Its tool uses are effects; those that started an agent
are spawns. Tool results are joined to tool uses by `tool_use_id` alone. A session has no outcome and no task: it is a
group of its own. `docs/formats/claude-code.md` has the whole mapping.

Here: which files make a session. `lines` decodes them, `threads` tells whether they are of one session, `links` finds
who started whom, `events` writes the record.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path

from graphs.errors import Problem, TraceError
from graphs.formats.claude_code.events import write_events
from graphs.formats.claude_code.lines import Line, Transcript, identify, read_lines
from graphs.formats.claude_code.links import Chain, chains_of, conversations, find_spawns
from graphs.formats.claude_code.threads import foreign_agent, foreign_session, missing_parent
from graphs.reading.copied_files import without_copied_files
from graphs.reading.damage import MISSING_PART
from graphs.reading.decode import content
from graphs.reading.find import files_beside, identity
from graphs.reading.source import COMPRESSIONS, Source
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "claims", "read", "sniff"]

RECORDS = (Line,)

# A line with the three keys of a conversation's lines, in any order, or one of the types that stand between these. It
# may be any line of the head: the first may be damaged, the last cut off.
_LINE = re.compile(
    rb'^[ \t]*\{(?=[^\n]*"sessionId"\s*:\s*")(?=[^\n]*"parentUuid"\s*:)(?=[^\n]*"isSidechain"\s*:)'
    rb'|^[ \t]*\{(?=[^\n]*"type"\s*:\s*"(?:file-history-snapshot|summary|queue-operation)")'
    rb'(?=[^\n]*"(?:messageId|leafUuid|sessionId)"\s*:)',
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether one of the first lines is of a session file."""
    return _LINE.search(head) is not None


def claims(sessions: Iterable[Source], others: Iterable[Source]) -> list[Source]:
    """The other files that lie where sub-agents of the sessions have theirs, and are read as such."""
    folders = {_real(_folder(source.path)) for source in sessions if source.path and _folder_of_member(source) is None}
    return [source for source in others if _folder_of_member(source) in folders]


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session with its sub-agents. Their files are read from the folder beside it, named or not.

    Problem kinds, of one trace: those of `graphs.reading.json_problems`, "duplicate-id", "unknown-tool-use",
    "several-sessions", "several-agents" (in one file of a sub-agent); "no-events" (no fault: a file of summaries
    alone). Named, and the session is read without the lines in question: "orphan-subagent" (a sub-agent's file without
    its session), "empty-file" (of a sub-agent), "unlinked-subagent" (no tool use of the session started the agent),
    "missing-parent" (the first line of a file names an absent line as its parent), and those of
    `graphs.reading.find.files_beside`. Named, and read: "missing-subagent" (the lines of an agent that was started are
    not there), "repeated-messages" (a session has model calls of another one, which it went on from; they count twice).
    """
    sessions: list[tuple[Source, str, str]] = []  # with its folder and its id
    members: list[tuple[Source, str]] = []  # with the agent
    of_key: dict[str, list[int]] = {}  # session id or folder -> indices of members
    for source in sources:
        try:
            session, agent = identify(source)
        except (OSError, TraceError):
            session, agent = None, None  # `read_lines` names what is wrong
        name, folder = f"id {session}" if session else "", _folder_of_member(source)
        if agent is not None or folder is not None:
            for key in {name, folder or ""} - {""}:
                of_key.setdefault(key, []).append(len(members))
            members.append((source, agent or _agent_of(source)))
        else:
            sessions.append((source, _real(_folder(source.path)) if source.path else "", name))
        if source.path is not None:
            source.release()
    claimed: set[int] = set()
    of_call: dict[str, str] = {}  # model call -> the first session that has it
    for source, folder, name in sessions:
        own, of_id = of_key.get(folder, []), of_key.get(name, [])
        claimed.update(own, of_id)
        beside, problems = _beside(source, {identity(members[index][0].path) for index in (*own, *of_id)})
        yield from problems
        # A copied session has copies of its sub-agents beside it. Those of the original would count twice.
        agents = {members[index][1] for index in own} | {_agent_of(found) for found in beside}
        present = [*own, *(index for index in of_id if members[index][1] not in agents)]
        parts, copies = without_copied_files([members[index][0] for index in sorted({*present})] + beside)
        yield from copies
        for found in _read_session(source, parts):
            yield found
            if isinstance(found, TraceRecord):
                yield from _repeated(found, of_call)
    for index, (member, _) in enumerate(members):
        if index not in claimed and member.is_named:
            yield from _read_session(member, [])
        elif index not in claimed:
            expected = (
                "its session among the files, this file in the folder of its session, or its name to read it alone"
            )
            yield Problem("orphan-subagent", member.name, 0, "file", excerpt(Path(member.name).name), expected)


def _repeated(record: TraceRecord, of_call: dict[str, str]) -> Iterator[Problem]:
    """The problem of a session with model calls of an earlier one; its own calls are added to `of_call`."""
    calls = [name for name, acts in zip(record.ids, record.actions, strict=True) if acts]
    earlier = {of_call[name]: None for name in calls if of_call.get(name, record.trace_id) != record.trace_id}
    if earlier:
        shared = sum(of_call.get(name) in earlier for name in calls)
        value = f"{shared} of {len(calls)} model calls"
        other = excerpt(next(iter(earlier)))
        expected = (
            f"calls of this session alone: {other} has them, too, so they count twice; leave out one of the files"
        )
        yield Problem(
            "repeated-messages", record.file, record.line, "message.id", value, expected,
            record.trace_id,
        )  # fmt: skip
    of_call |= {name: record.trace_id for name in calls if name not in of_call}


def _agent_of(source: Source) -> str:
    """The agent that a file's name tells."""
    return _folder(Path(source.name)).name.removeprefix("agent-")


def _real(folder: Path) -> str:
    """A folder by one name, however it is spelled."""
    return os.path.realpath(str(folder))


def _folder(path: Path) -> Path:
    """The folder of a session's sub-agents: the session file's name without its suffixes."""
    while path.suffix in (*COMPRESSIONS, ".jsonl", ".ndjson", ".json"):
        path = path.with_suffix("")
    return path


def _folder_of_member(source: Source) -> str | None:
    """The session's folder that a sub-agent's file lies in; None if it lies elsewhere."""
    path = source.path
    if path is None or path.parent.name != "subagents" or not path.name.startswith("agent-"):
        return None
    if _folder(path).suffix == ".meta":  # what Claude Code notes about the sub-agent
        return None
    return _real(path.parent.parent)


def _beside(source: Source, present: set[Hashable]) -> tuple[list[Source], list[Problem]]:
    """Sub-agents' files in the session's folder that are not present, and the problems of those not to be opened."""
    if source.path is None:
        return [], []
    sources, problems = files_beside(source, _folder(source.path) / "subagents", "agent-*.jsonl*")
    return [beside for beside in sources if identity(beside.path) not in present], problems


def _has_file(source: Source, agent: str) -> bool:
    """Whether the session's folder has a file of a sub-agent; what is wrong with one that was not read is named."""
    if source.path is None:
        return False
    folder = _folder(source.path) / "subagents"
    return any(os.path.lexists(folder / f"agent-{agent}.jsonl{ending}") for ending in ("", *COMPRESSIONS))


def _read_session(source: Source, members: list[Source]) -> Iterator[TraceRecord | Problem]:
    try:
        blank = [member for member in members if not content(member).strip()]
        main = read_lines(source)
        others = [read_lines(member) for member in members if member not in blank]
        records, unlinked, absent = _assemble(main, others)
    except TraceError as error:
        yield error.problem
        return
    finally:
        for each in (source, *members):
            each.release()
    hanging = [missing_parent(transcript, main, records[0].trace_id) for transcript in (main, *others)]
    if any(hanging) or blank or unlinked:
        records[0].lost_part()
    silent = [[name for name in absent if name in each.instances and not _has_file(source, name)] for each in records]
    for record, names in zip(records, silent, strict=True):
        for name in names:
            record.lost_part(shown=name in record.agents)  # it has returned
        record.sources = [member.name for member in members]
        yield record
    for member in blank:
        yield Problem("empty-file", member.name, 0, "content", "empty", "a message of the agent", records[0].trace_id)
    yield from filter(None, hanging)
    for record, names in zip(records, silent, strict=True):
        if names:
            value, expected = excerpt(names[0]), "the lines of every agent that it started; its costs are lower bounds"
            trace, count = record.trace_id, len(names)
            yield Problem(MISSING_PART, record.file, record.line, "agentId", value, expected, trace, count)
    for chain in unlinked:
        (file, line, _), expected = chain.entries[0].place, "an agent that a tool use of the session started"
        value = excerpt(chain.agent or chain.entries[0].uuid)
        yield Problem("unlinked-subagent", file, line, "agentId", value, expected, records[0].trace_id)


def _assemble(main: Transcript, others: list[Transcript]) -> tuple[list[TraceRecord], list[Chain], list[str]]:
    """The records of a session, one a conversation, the chains of agents that nothing in it started, and the instances
    of agents that it started and has no line of.
    """
    if not main.entries:
        raise TraceError(Problem("no-events", main.file, 1, "content", "no message", "a message of a user or a model"))
    if not main.sessions:
        raise TraceError(Problem("missing-field", main.file, 1, "sessionId", "absent", "a line with a session id"))
    stem = _folder(Path(main.file)).name
    session = stem if stem in main.sessions else main.sessions[0]
    agent = next((entry.agent for entry in main.entries if entry.agent), "")
    is_lone = all(entry.sidechain for entry in main.entries)  # a sub-agent's file without its session
    if is_lone:
        main.make_main()
    for transcript in (main, *others):
        foreign = foreign_session(transcript, main, session)
        if foreign is None and transcript is not main:
            foreign = foreign_agent(transcript, session)
        if foreign is not None:
            raise TraceError(foreign)
    trace = f"{session}/{agent}" if is_lone and agent else session
    whole, *subs = chains_of(main, others)
    roots = conversations(whole)
    agents = {use: agent for transcript in reversed([main, *others]) for use, agent in transcript.agents.items()}
    spawns, records = find_spawns(roots, subs, agents, session), []
    for number, root in enumerate(roots):
        name, line = (f"{trace}/clear-{number}", root.entries[0].place.line) if number else (trace, 1)
        system = f"claude-code {main.version}" if main.version else ""
        record = TraceRecord(name, name, main.file, line=line, format="claude-code", system=system)
        write_events(record, root, spawns)
        if not record.ids:
            record.refuse("no-events", "content", "no message", "a message of a user or a model")
        if set(record.files) <= {main.file}:
            record.files = []
        records.append(record)
    present = {spawn.instance for spawn in spawns.values() if spawn.chain is not None}
    absent = dict.fromkeys(spawn.instance for spawn in spawns.values() if spawn.instance not in present)
    return records, [chain for chain in subs if not chain.taken], list(absent)
