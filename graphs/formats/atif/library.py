"""Which trajectory a reference means, among those that are read."""

from __future__ import annotations

import os
from collections.abc import Iterator

from graphs.formats.atif.trajectories import Reference, Trajectory
from graphs.reading.addresses import real_folder
from graphs.reading.source import without_compression

__all__ = ["Library"]


class Library:
    """Trajectories by what references name: a file, an id, a session."""

    def __init__(self, docs: list[Trajectory]) -> None:
        self.files = {_real(doc.place.file): doc for doc in docs}
        self.by_id = _Names()
        self.by_session = _Names()
        waiting = list(reversed(docs))
        while waiting:
            doc = waiting.pop()
            self.by_id.add(doc, doc.id, [(other.id, other) for other in doc.nested])
            self.by_session.add(doc, doc.session, [(other.session, other) for other in doc.nested])
            waiting += reversed(doc.nested)

    def find(self, reference: Reference, doc: Trajectory, root: Trajectory) -> Trajectory | None:
        """The trajectory that a reference means; None if it is not among those that are read.

        No file is opened because a log names it.

        Args:
          reference: what names the trajectory.
          doc: the trajectory that the reference stands in.
          root: the outermost trajectory of its trace.
        """
        if reference.trajectory_path:
            return self.beside(doc, reference.trajectory_path)
        if reference.trajectory_id:
            return self.by_id.nearest(reference.trajectory_id, doc, root)
        if reference.session_id:
            return self.by_session.nearest(reference.session_id, doc, root)
        return None

    def beside(self, doc: Trajectory, path: str) -> Trajectory | None:
        """The trajectory in the file of this name, relative to the file of `doc`."""
        return self.files.get(os.path.normpath(os.path.join(real_folder(doc.place.file), path)))

    def referred(self, root: Trajectory) -> Iterator[Trajectory]:
        """The trajectories that one, with all nested in it, refers to or continues in."""
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


class _Names:
    """Trajectories by names of one kind, in all files and by the trajectory that they are nested in."""

    def __init__(self) -> None:
        self._everywhere: dict[str, Trajectory] = {}
        self._nested: dict[int, dict[str, Trajectory]] = {}  # by the identity of the outer trajectory

    def add(self, doc: Trajectory, name: str, nested: list[tuple[str, Trajectory]]) -> None:
        """Note a trajectory and those nested in it. Of two with one name the first is meant."""
        self._everywhere.setdefault(name, doc)
        self._nested[id(doc)] = dict(reversed(nested))

    def nearest(self, name: str, doc: Trajectory, root: Trajectory) -> Trajectory | None:
        """The trajectory of this name: nested in `doc`, else in `root`, else anywhere."""
        return self._nested[id(doc)].get(name) or self._nested[id(root)].get(name) or self._everywhere.get(name)


def _real(file: str) -> str:
    """The name of a file in its real folder, so that references meet it however it is spelled or packed."""
    return os.path.normpath(os.path.join(real_folder(file), without_compression(file)))
