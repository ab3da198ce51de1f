"""How the lines of a Claude Code file hang together: which are of a session of their own, and what is missing above.

A session that was resumed may hold lines of an earlier one, and its first line hangs on one of these, or is the summary
of a compaction. Two sessions that nothing joins were written into one file by something else.
"""

from __future__ import annotations

from graphs.errors import Problem
from graphs.formats.claude_code.lines import Link, Transcript
from graphs.formats.claude_code.links import COMPACTION, agent_of_file
from graphs.text import excerpt

__all__ = ["foreign_agent", "foreign_session", "missing_parent"]


def foreign_session(transcript: Transcript, main: Transcript, trace: str) -> Problem | None:
    """The problem of a session in a file whose lines do not hang together with those of the sessions before it.

    Of the main file, lines of the main agent: those of sub-agents hang on none of its lines.
    """
    firsts: dict[str, Link] = {}  # of each session
    speaking: dict[str, None] = {}  # sessions with a message
    joined: dict[str, str] = {}
    for link in sorted([*transcript.links.values(), *transcript.loose]):  # by line
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
        # A compaction's boundary that names a line which is not at hand may be of anything.
        is_continued = link.is_summary or link.logical in transcript.links
        if known and root not in known and not is_continued:
            value = f"{excerpt(session)}, none of whose lines hangs on a line of {excerpt(next(iter(speaking)))}"
            return Problem(
                "several-sessions", transcript.file, link.line, "sessionId", value, "one session a file", trace
            )
        known.add(root)
    return None


def foreign_agent(transcript: Transcript, trace: str) -> Problem | None:
    """The problem of a sub-agent's file with messages of another sub-agent, which would count as the first one's."""
    first = next((entry for entry in transcript.entries if entry.agent), None)
    for entry in transcript.entries if first is not None else ():
        if entry.agent and first is not None and entry.agent != first.agent:
            value, expected = excerpt(entry.agent), f"{excerpt(first.agent)}, as in line {first.line}: one agent a file"
            return Problem("several-agents", transcript.file, entry.line, "agentId", value, expected, trace)
    return None


def missing_parent(transcript: Transcript, main: Transcript, trace: str) -> Problem | None:
    """The problem of a file's first line that hangs on one which is neither there nor in the session's main file.

    Of the main file, lines of the main agent; a compaction's file has copies of some lines only, and none.
    """
    is_main = transcript is main
    if not is_main and agent_of_file(transcript).startswith(COMPACTION):
        return None
    for link in transcript.links.values():
        known = link.parent is None or link.parent in transcript.links or link.parent in main.links
        if not known and not (is_main and link.is_side):
            value, expected = excerpt(link.parent), "a line of the session, which reads without what is not at hand"
            return Problem("missing-parent", transcript.file, link.line, "parentUuid", value, expected, trace)
    return None


def _root(joined: dict[str, str], session: str) -> str:
    """The session that stands for all that are joined with one."""
    while (above := joined.get(session, session)) != session:
        joined[session] = joined.get(above, above)
        session = above
    return session
