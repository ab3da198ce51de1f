"""How the lines of a Claude Code file hang together: which are of a session of their own, and what is missing above.

A session that was resumed may hold lines of an earlier one, and its first line hangs on one of these, or is the summary
of a compaction. Two sessions that nothing joins were written into one file by something else.
"""

from __future__ import annotations

from graphs.errors import Problem
from graphs.readers.coding.claude_code.lines import Link, Transcript
from graphs.readers.coding.claude_code.links import COMPACTION, agent_of_file
from graphs.text import excerpt

__all__ = ["foreign_session", "missing_parent"]


def foreign_session(main: Transcript, trace: str) -> Problem | None:
    """The problem of a session in a file whose lines do not hang together with those of the sessions before it."""
    firsts: dict[str, Link] = {}  # of each session
    speaking: dict[str, None] = {}  # sessions with a message of the main agent
    joined: dict[str, str] = {}
    for link in main.links.values():
        if link.is_side or link.session is None:
            continue
        firsts.setdefault(link.session, link)
        if link.is_message:
            speaking[link.session] = None
        above = main.links.get(link.above) if link.above is not None else None
        if above is not None and above.session is not None:
            joined[_root(joined, link.session)] = _root(joined, above.session)
    known: set[str] = set()
    for session in speaking:
        link, root = firsts[session], _root(joined, session)
        if known and root not in known and not link.is_continued:
            value = f"{excerpt(session)}, none of whose lines hangs on a line of {excerpt(next(iter(speaking)))}"
            return Problem("several-sessions", main.file, link.line, "sessionId", value, "one session a file", trace)
        known.add(root)
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
