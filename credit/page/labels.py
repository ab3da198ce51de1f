"""`Labels`: outcomes that a person gives to traces, kept in a file that `--rewards` reads."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from pathlib import Path

import msgspec

from graphs.atomic import atomic_write
from graphs.errors import CreditError, expect
from graphs.reading.source import Lost
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.rows import number, read_rows
from graphs.text import excerpt
from graphs.traces.record import LARGEST_FLOAT

__all__ = ["Label", "Labels"]

COLUMNS = ("trace", "reward", "rater", "note")
SUFFIXES = (".csv", ".jsonl")


@dataclasses.dataclass(frozen=True)
class Label:
    """The outcome of a trace as a person sees it.

    Attributes:
      trace: id of the trace.
      reward: a finite number, more is better.
      rater: who gave it; "" where nobody is named.
      note: why, in words; "" where nothing is stated.
    """

    trace: str
    reward: float
    rater: str = ""
    note: str = ""


class Labels:
    """Labels by trace, one for each, with the file that holds them.

    Every change is written at once. The file has the columns `trace`, `reward`, `rater` and `note`.

    Args:
      path: a `.csv` or `.jsonl` file. Its labels are read where it exists; the first change writes it.
      rater: who labels from now on.

    Raises:
      CreditError: another suffix, or a row that is no label; the message names the file, the line and the value.

    Examples:
      >>> import pathlib, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     labels = Labels(pathlib.Path(folder, "labels.csv"), rater="ann")
      ...     labels.put("t1", 1.0, note="booked the right flight")
      ...     print(labels.path.read_text())
      trace,reward,rater,note
      t1,1.0,ann,booked the right flight
      <BLANKLINE>
    """

    def __init__(self, path: str | Path, *, rater: str = "") -> None:
        expect("path", path, (str, Path), "the path of a .csv or .jsonl file")
        expect("rater", rater, str, "a name")
        self.path = Path(path)
        self.rater = " ".join(rater.split())
        if self.path.suffix not in SUFFIXES:
            raise CreditError(f"{str(path)!r}; expected a name ending in {' or '.join(SUFFIXES)}")
        self.by_trace: dict[str, Label] = _read(self.path)

    def put(self, trace: str, reward: float | None, *, note: str = "") -> None:
        """Replace or remove the label of a trace, and write the file.

        Args:
          trace: id of the trace.
          reward: a finite number; None removes the label.
          note: why, in words. White space in it becomes single spaces.

        Raises:
          CreditError: `reward` is not a finite number of the range of single precision.
          OSError: the file cannot be written. The labels are then as before.
        """
        changed = dict(self.by_trace)
        if reward is None:
            changed.pop(trace, None)
        else:
            if isinstance(reward, bool) or not isinstance(reward, int | float) or not _usable(float(reward)):
                raise CreditError(f"reward of trace {trace!r} is {excerpt(reward)}; expected a finite number")
            changed[trace] = Label(trace, float(reward), self.rater, " ".join(note.split()))
        _write(self.path, changed)
        self.by_trace = changed


def _usable(reward: float) -> bool:
    return math.isfinite(reward) and abs(reward) <= LARGEST_FLOAT


def _read(path: Path) -> dict[str, Label]:
    """The labels of a file by trace; none where no file exists or it is empty."""
    labels: dict[str, Label] = {}
    if not path.exists() or not path.stat().st_size:
        return labels
    for line, row in read_rows(path):
        if isinstance(row, Lost):
            raise CreditError(f"{path}: {row.problem}; expected a file of labels")
        place = f"{path}, line {line}"
        unknown = [name for name in row if name not in COLUMNS]
        if unknown:
            expected = f"only the columns {', '.join(COLUMNS)}: the file would be rewritten without others"
            raise CreditError(f"{place}: column {unknown[0]!r}; expected {expected}")
        trace, amount = row.get("trace"), number(row.get("reward"))
        if trace is None:
            raise CreditError(f"{place}: no trace; expected the id of a trace")
        if amount is None or not _usable(amount):
            raise CreditError(f"{place}: reward {excerpt(row.get('reward'))}; expected a finite number")
        name = id_text(trace)
        if name in labels:
            raise CreditError(f"{place}: a second label of trace {name!r}; expected one label for each trace")
        rater, note = (str(row.get(column) or "") for column in ("rater", "note"))
        labels[name] = Label(name, float(amount), rater, note)
    return labels


def _write(path: Path, labels: dict[str, Label]) -> None:
    with atomic_write(path) as file:
        if path.suffix == ".jsonl":
            encoder = msgspec.json.Encoder()
            for label in labels.values():
                file.write(encoder.encode(label) + b"\n")
        else:
            text = io.StringIO(newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(dataclasses.astuple(label) for label in labels.values())
            file.write(text.getvalue().encode())
