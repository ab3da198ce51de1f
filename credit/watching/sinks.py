"""Where the numbers of a step go: a file of JSON lines, TensorBoard, wandb."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from graphs.atomic import append, locked
from graphs.errors import CreditError, MissingExtraError

__all__ = ["METRICS", "PATIENCE", "MetricsFile", "Sink", "TensorBoard", "Wandb"]

METRICS = "metrics.jsonl"
"""Name of the file of JSON lines in the folder of a watch, which `credit watch` reads."""

PATIENCE = 60
"""Seconds to wait for another process that adds to the same file."""


class Sink(Protocol):
    """Something that takes the numbers of steps."""

    def write(self, step: int, numbers: Mapping[str, float], labels: Mapping[str, str] | None = None) -> None:
        """Take the numbers of one step, and texts about it."""

    def close(self) -> None:
        """Write what is still held back."""


class MetricsFile:
    """`metrics.jsonl` in a folder: a line with the number of the step, its texts and its numbers; lines are added."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / METRICS
        self._path.touch()  # so that `credit watch` knows the folder before the first step

    def write(self, step: int, numbers: Mapping[str, float], labels: Mapping[str, str] | None = None) -> None:
        """Add a line."""
        with locked(self._path, wait=PATIENCE):
            append(self._path, (json.dumps({"step": step, **(labels or {}), **numbers}) + "\n").encode())

    def close(self) -> None:
        """Nothing is held back."""


class TensorBoard:
    """Event files in a folder, a scalar for each number.

    Raises:
      MissingExtraError: the package tensorboard is not installed. PyTorch and TensorFlow are not needed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise MissingExtraError("tensorboard", extra="tensorboard") from None
        self._event, self._summary = Event, Summary
        self._writer = EventFileWriter(str(folder))

    def write(self, step: int, numbers: Mapping[str, float], labels: Mapping[str, str] | None = None) -> None:
        """Write one event, so that all numbers of a step have one time; texts are left out."""
        scalars = [self._summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        self._writer.add_event(self._event(step=step, wall_time=time.time(), summary=self._summary(value=scalars)))
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


class Wandb:
    """A run of wandb: the one that is active, or a new one of `project`.

    Raises:
      MissingExtraError: wandb is not installed.
      CreditError: no run is active when numbers come, and no project was named.
    """

    def __init__(self, project: str | None = None) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("wandb", extra="wandb") from None
        self._wandb: Any = wandb
        self._own: Any = None if project is None else wandb.init(project=project)

    def write(self, step: int, numbers: Mapping[str, float], labels: Mapping[str, str] | None = None) -> None:
        """Log the numbers: as a step of one's own run, or with the next step of the trainer's run."""
        if self._own is not None:
            self._own.log({**numbers, **(labels or {})}, step=step, commit=True)
            return
        if self._wandb.run is None:
            raise CreditError(
                "no run of wandb is active; call wandb.init before the first step, or leave wandb=True out"
            )
        self._wandb.log(dict(numbers), commit=False)

    def close(self) -> None:
        """Finish one's own run; the trainer's stays active."""
        if self._own is not None:
            self._own.finish()
