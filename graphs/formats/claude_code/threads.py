"""Whether the lines of a Claude Code file are of one session and one agent, and whether a line is missing.

A resumed session may hold lines of an earlier one. Its own first line hangs on one of these, or is the summary of a
compaction. Two sessions that nothing joins were put into one file by something else, such as `cat`.
"""

from __future__ import annotations

from graphs.errors import Problem
from graphs.formats.claude_code.lines import Link, Transcript
from graphs.formats.claude_code.links import COMPACTION, agent_of_file
from graphs.text import excerpt

__all__ = ["foreign_agent", "foreign_session", "missing_parent"]


def foreign_session(transcript: Transcript, main: Transcript, trace: str) -> Problem | None:
    """The problem of a session that does not hang together with those before it in the file.

    Inline lines of sub-agents do not count, since they hang on no line of the main agent.
    """
    firsts: dict[str, Link] = {}  # session -> its first line
    speaking: dict[str, None] = {}  # sessions with a message
    joined: dict[str, str] = {}  # session -> one that it hangs together with, as a forest for `_root`
    for link in sorted([*transcript.links.values(), *transcript.loose], key=lambda link: link.line):
        if link.session is None or (link.is_side and transcript is main):
            continue
        firsts.setdefault(link.session, link)
        if link.is_message:
            speaking[link.session] = None
        above = transcript.links.get(link.parent if link.parent is not None else link.logical or "")
        if above is not None and above.session is not None:
            joined[_root(joined, link.session)] = _root(joined, above.session)
    known: set[str] = set()
    for session in speaking:
        link, root = firsts[session], _root(joined, session)
        # The boundary of a compaction joins only if the line that it names is there.
        is_continued = link.is_summary or link.logical in transcript.links
        if known and root not in known and not is_continued:
            value = f"{excerpt(session)}, none of whose lines hangs on a line of {excerpt(next(iter(speaking)))}"
            return Problem(
                "several-sessions", transcript.file, link.line, "sessionId", value, "one session a file", trace
            )
        known.add(root)
    return None


def foreign_agent(transcript: Transcript, trace: str) -> Problem | None:
    """The problem of a sub-agent's file with messages of another sub-agent."""
    of_agents = [entry for entry in transcript.entries if entry.agent]
    for entry in of_agents:
        first = of_agents[0]
        if entry.agent != first.agent:
            value, line = excerpt(entry.agent), entry.place.line
            expected = f"{excerpt(first.agent)}, as in line {first.place.line}: one agent a file"
            return Problem("several-agents", transcript.file, line, "agentId", value, expected, trace)
    return None


def missing_parent(transcript: Transcript, main: Transcript, trace: str) -> Problem | None:
    """The problem of a file's first line that hangs on a line which is neither there nor in the session's main file.

    Inline lines of sub-agents do not count, nor does the file of a compaction, which has copies of some lines only.
    """
    is_main = transcript is main
    if not is_main and agent_of_file(transcript).startswith(COMPACTION):
        return None
    for link in transcript.links.values():
        known = link.parent is None or link.parent in transcript.links or link.parent in main.links
        if not known and not (is_main and link.is_side):
            value, expected = excerpt(link.parent), "a line of the session, which reads without it"
            return Problem("missing-parent", transcript.file, link.line, "parentUuid", value, expected, trace)
    return None


def _root(joined: dict[str, str], session: str) -> str:
    """The representative of the sessions joined with a session: union-find, with paths shortened on the way."""
    while (above := joined.get(session, session)) != session:
        joined[session] = joined.get(above, above)
        session = above
    return session
