"""`Labels`: outcomes that a person gives to traces, kept in a file that `--rewards` reads."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from credit.tables.files import FORMULA
from graphs.atomic import atomic_write, locked
from graphs.errors import CreditError, TraceError, expect
from graphs.reading.source import Lost, Source
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.outcome_words import CANNOT_TELL, OUTCOME_CELL, OutcomeWords
from graphs.reading.tables.rows import Row, number, read_rows
from graphs.text import excerpt
from graphs.traces.record import LARGEST_FLOAT

__all__ = ["Label", "LabelFileError", "Labels", "Outcome"]

Outcome = float | Literal["cannot tell"]
"""A number, more is better; or that a person looked and could not tell."""

COLUMNS = ("trace", "reward", "rater", "note")
SUFFIXES = (".csv", ".jsonl")
OUTCOMES = f"a finite number, or {CANNOT_TELL!r}"
PATIENCE = 10  # seconds to wait for another process that writes the file


class LabelFileError(CreditError):
    """The file of labels holds something that a change would lose, or cannot be read back."""


@dataclasses.dataclass(frozen=True)
class Label:
    """The outcome of a trace as a person sees it.

    Attributes:
      trace: id of the trace.
      reward: a finite number, more is better; "cannot tell" where somebody looked and gave none.
      rater: who gave it; "" where nobody is named.
      note: why, in words; "" where nothing is stated.
    """

    trace: str
    reward: Outcome
    rater: str = ""
    note: str = ""


class Labels:
    """Labels by trace, one for each, with the file that holds them.

    Every change is written at once, into what the file holds by then: other processes and a person with an editor may
    change it too. The file has the columns `trace`, `reward`, `rater` and `note`.

    Args:
      path: a `.csv` or `.jsonl` file. Its labels are read where it exists; the first change writes it.
      rater: who labels from now on.

    Raises:
      CreditError: another suffix.
      LabelFileError: a row is no label; the message names the file, the line and the value.
      OSError: the file cannot be read.

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

    def refresh(self) -> None:
        """Take the labels that the file holds by now.

        Raises:
          LabelFileError: a row is no label.
          OSError: the file cannot be read.
        """
        self.by_trace = _read(self.path)

    def put(
        self,
        trace: str,
        reward: Outcome | None,
        *,
        note: str = "",
        is_seen: Callable[[Label | None], bool] | None = None,
    ) -> None:
        """Replace or remove the label of a trace, and write the file.

        Args:
          trace: id of the trace.
          reward: a finite number, or "cannot tell"; None removes the label.
          note: why, in words. White space in it becomes single spaces.
          is_seen: whether the label in the file (None where there is none) is the one that the person saw. By default
            it is compared with `by_trace`.

        Raises:
          CreditError: `reward` is another word, or no finite number of the range of single precision; or another
            process writes the file for longer than 10 s.
          LabelFileError: the file holds another label of the trace than the person saw, or a row that is no label; or
            the id cannot be kept in such a file. The file is then as before.
          OSError: the file cannot be read or written. The labels are then as before.
        """
        is_text = isinstance(reward, str) and reward != CANNOT_TELL  # a file has numbers as texts, a caller has not
        outcome = None if is_text else _outcome(reward)
        if reward is not None and outcome is None:
            raise CreditError(f"reward of trace {trace!r} is {excerpt(reward)}; expected {OUTCOMES}")
        new = None if outcome is None else Label(trace, outcome, self.rater, " ".join(note.split()))
        previous = self.by_trace.get(trace)
        with locked(self.path, wait=PATIENCE):
            self.refresh()
            stored = self.by_trace.get(trace)
            if stored != new and not (stored == previous if is_seen is None else is_seen(stored)):
                by = f" by {stored.rater}" if stored is not None and stored.rater else ""
                now = "removed" if stored is None else f"set to {_shown(stored.reward)}{by}"
                what = f"the label of trace {excerpt(trace)} was {now} in {self.path} meanwhile"
                raise LabelFileError(f"{what}; look at it, and label again")
            changed = {**self.by_trace, trace: new}  # a label that is replaced keeps its place
            kept = {name: label for name, label in changed.items() if label is not None}
            _write(self.path, kept)
            self.by_trace = kept


def _outcome(value: object) -> Outcome | None:
    """An outcome; None for what is none."""
    if value == CANNOT_TELL:
        return "cannot tell"
    amount = number(value)
    return amount if amount is not None and math.isfinite(amount) and abs(amount) <= LARGEST_FLOAT else None


def _shown(reward: Outcome) -> str:
    return reward if isinstance(reward, str) else f"{reward:g}"


def _read(path: Path) -> dict[str, Label]:
    """The labels of a file by trace; none where no file exists or it is empty.

    Raises:
      LabelFileError: a row is no label.
      OSError: the file cannot be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    return _decoded(path, content) if content else {}


def _decoded(path: Path, content: bytes) -> dict[str, Label]:
    labels: dict[str, Label] = {}
    outcomes = OutcomeWords()
    source = Source(str(path), path)
    source.__dict__["data"] = content  # the bytes that were read; the file may have changed since
    try:
        for line, row in read_rows(source):
            if isinstance(row, Lost):
                raise LabelFileError(f"{path}: {row.problem}; expected a file of labels")
            label = _label(f"{path}, line {line}", line, row, outcomes)
            if path.suffix == ".csv":
                label = dataclasses.replace(label, rater=_armed(label.rater), note=_armed(label.note))
            if label.trace in labels:
                raise LabelFileError(
                    f"{path}, line {line}: a second label of trace {label.trace!r}; expected one label for each trace"
                )
            labels[label.trace] = label
    except TraceError as error:
        raise LabelFileError(f"{error}; expected a file of labels") from error
    for mixed in outcomes.problems():
        if mixed.is_failure:
            raise LabelFileError(f"{path}, line {mixed.line}: reward {mixed.value}; expected {mixed.expected}")
    return labels


def _label(place: str, line: int, row: Row, outcomes: OutcomeWords) -> Label:
    unknown = [name for name in row if name not in COLUMNS]
    if unknown:
        expected = f"only the columns {', '.join(COLUMNS)}: the file would be rewritten without others"
        raise LabelFileError(f"{place}: column {unknown[0]!r}; expected {expected}")
    if row.get("trace") is None:
        raise LabelFileError(f"{place}: no trace; expected the id of a trace")
    trace = id_text(row["trace"])
    stated = outcomes.as_number(trace, ("", line), row.get("reward"))
    outcome = "cannot tell" if outcomes.untold.get(trace) == ("", line) else _outcome(stated)
    if outcome is None:
        raise LabelFileError(f"{place}: reward {excerpt(row.get('reward'))}; expected {OUTCOME_CELL}")
    rater, note = (str(row.get(column) or "") for column in ("rater", "note"))
    return Label(trace, outcome, rater, note)


def _armed(text: str) -> str:
    """A text without the apostrophe that keeps a spreadsheet from running it."""
    return text[1:] if text.startswith("'") and re.match(FORMULA, text[1:]) else text


def _write(path: Path, labels: dict[str, Label]) -> None:
    """Write labels, if reading them gives the same.

    Raises:
      LabelFileError: a label cannot be kept in such a file.
      OSError: the file cannot be written.
    """
    if path.suffix == ".jsonl":
        encoder = msgspec.json.Encoder()
        content = b"".join(encoder.encode(label) + b"\n" for label in labels.values())
    else:
        # A writer quotes the characters of its line ends only, and both of CR and LF need quotes.
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\r\n")
        rows = [COLUMNS, *map(dataclasses.astuple, labels.values())]
        for trace, *_ in rows:
            # An apostrophe before a formula would change the id, and no log would have it. One that it has is harmless.
            if re.match(FORMULA, trace.lstrip()) and not trace.startswith("'"):
                raise LabelFileError(
                    f"{path}: a spreadsheet would run the id of trace {excerpt(trace)}; expected a .jsonl file for it"
                )
        for trace, reward, *words in rows:
            writer.writerow((trace, reward, *(f"'{text}" if re.match(FORMULA, text) else text for text in words)))
            text.seek(text.tell() - 2)
            text.write("\n")
            text.truncate()
        content = text.getvalue().encode()
    if labels and _decoded(path, content) != labels:
        raise LabelFileError(f"{path} cannot hold these labels: they would read otherwise")
    with atomic_write(path) as file:
        file.write(content)
