"""The group of a rollout, put together from its records: a store writes one again when it fills something in.

A group is one task under one version of the policy. What a record leaves out another may state, in any order of files
and lines; two records that state different things disagree.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import NamedTuple

from graphs.errors import Problem, TraceError
from graphs.reading.documents import Place
from graphs.reading.files import canonical
from graphs.text import excerpt

__all__ = ["RolloutGroup"]


class _Stated(NamedTuple):
    """A part of a group, and the record that states it."""

    value: str
    place: Place


@dataclasses.dataclass(slots=True)
class RolloutGroup:
    """The parts of a rollout's group by their fields, and of each the first record that states another value."""

    parts: dict[str, _Stated] = dataclasses.field(default_factory=dict)
    others: dict[str, _Stated] = dataclasses.field(default_factory=dict)
    is_recorded: bool = False
    no_task: bytes = b""  # the input where no record states one: absent or null

    def state(self, task: bytes, data: str | None, batch: int | None, resources: str | None, place: Place) -> None:
        """Take in what a record states; None, and an input that is absent or null, states nothing."""
        self.is_recorded = True
        digest = None if task in (b"", b"null") else _digest(task)
        self.no_task = self.no_task or (task if digest is None else b"")
        number = None if batch is None else str(batch)
        values = {"input": digest, "metadata.data_id": data, "metadata.batch_idx": number, "resources_id": resources}
        for field, value in values.items():
            if value is None:
                continue
            if self.parts.setdefault(field, _Stated(value, place)).value != value:
                self.others.setdefault(field, _Stated(value, place))

    def name(self, trace: str) -> str:
        """The group; "" for a rollout without a record.

        Raises:
          TraceError: "disagreeing-groups", two records state different values of a part that counts: the input does
            not where the data have an id.
        """
        if not self.is_recorded:
            return ""
        for field, (value, place) in self.others.items():
            if field == "input" and "metadata.data_id" in self.parts:
                continue
            first = self.parts[field]
            expected = f"{excerpt(first.value)}, as by the record in {first.place.file}, line {first.place.line}"
            value_text = excerpt(value)
            raise TraceError(Problem("disagreeing-groups", place.file, place.line, field, value_text, expected, trace))
        stated = {field: value for field, (value, _) in self.parts.items()}
        data, batch, resources = (stated.get(f) for f in ("metadata.data_id", "metadata.batch_idx", "resources_id"))
        task = f"input-{stated.get('input') or _digest(self.no_task)}" if data is None else f"data-{data}"
        task = task if batch is None else f"batch-{batch}/{task}"
        return task if resources is None else f"resources-{resources}/{task}"


def _digest(task: bytes) -> str:
    return hashlib.blake2b(canonical(task), digest_size=8).hexdigest()
