"""Which trajectory a reference means, among those that were given to be read."""

from __future__ import annotations

import os
from collections.abc import Iterator

from graphs.formats.atif.trajectories import Reference, Trajectory
from graphs.reading.files import real_folder

__all__ = ["Library"]


class Library:
    """Trajectories by what references name: their file, their own id, their session."""

    def __init__(self, docs: list[Trajectory]) -> None:
        self.files = {_real(doc.place.file): doc for doc in docs}
        self.own: dict[str, Trajectory] = {}
        self.sessions: dict[str, Trajectory] = {}
        self.nested_own: dict[int, dict[str, Trajectory]] = {}  # by the trajectory that they are nested in
        self.nested_sessions: dict[int, dict[str, Trajectory]] = {}
        waiting = list(reversed(docs))
        while waiting:
            doc = waiting.pop()
            self.own.setdefault(doc.own, doc)
            self.sessions.setdefault(doc.session, doc)
            first = doc.nested[::-1]  # of two with one id the first is meant
            self.nested_own[id(doc)] = {other.own: other for other in first}
            self.nested_sessions[id(doc)] = {other.session: other for other in first}
            waiting += reversed(doc.nested)

    def find(self, reference: Reference, doc: Trajectory, root: Trajectory) -> Trajectory | None:
        """The trajectory that a reference in `doc`, which lies in `root`'s trace, means; None if it is not at hand.

        Only what was given to be read is looked at, never another file that a log names.
        """
        if reference.trajectory_path:
            return self.beside(doc, reference.trajectory_path)
        if reference.trajectory_id:
            return _nearest(reference.trajectory_id, self.nested_own, self.own, doc, root)
        if reference.session_id:
            return _nearest(reference.session_id, self.nested_sessions, self.sessions, doc, root)
        return None

    def beside(self, doc: Trajectory, path: str) -> Trajectory | None:
        """The trajectory in the file of this name, seen from a trajectory's own file."""
        return self.files.get(os.path.normpath(os.path.join(real_folder(doc.place.file), path)))

    def referred(self, root: Trajectory) -> Iterator[Trajectory]:
        """The trajectories of other files that one, with all nested in it, refers to or goes on in."""
        waiting = [root]
        while waiting:
            doc = waiting.pop()
            waiting += doc.nested
            following = self.beside(doc, doc.continued) if doc.continued else None
            references = (
                reference
                for step, _, _ in doc.steps
                for result in (step.observation.results if step.observation else ())
                for reference in result.references
            )
            for referred_doc in (following, *(self.find(reference, doc, root) for reference in references)):
                if referred_doc is not None and referred_doc is not root:
                    yield referred_doc


def _real(file: str) -> str:
    """The name of a file in its real folder: a reference is never looked up on the disk."""
    return os.path.normpath(os.path.join(real_folder(file), os.path.basename(file)))


def _nearest(
    name: str,
    nested: dict[int, dict[str, Trajectory]],
    everywhere: dict[str, Trajectory],
    doc: Trajectory,
    root: Trajectory,
) -> Trajectory | None:
    """The trajectory of this name: nested in `doc`, else in `root`, else anywhere."""
    return nested[id(doc)].get(name) or nested[id(root)].get(name) or everywhere.get(name)
