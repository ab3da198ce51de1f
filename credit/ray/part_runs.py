"""A job on all parts: the missing parts run as tasks, and the results of all parts are put together."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from credit.method_summary import Summary
from credit.ray.cluster import RETRIES, connected, results_of
from credit.ray.jobs import Job
from credit.ray.output_folder import OutputFolder, checked_folder
from credit.ray.part_notes import PartNote, part_file, read_note, write_note
from credit.tables.files import write_table
from graphs.errors import CreditError, NothingReadError, Problem
from graphs.logs.chunk_pieces import UnreadableError
from graphs.logs.chunks import Chunks
from graphs.problem_log import ProblemLog
from graphs.reading.tables.reward_sources import RewardSources

__all__ = ["Parts", "made_from", "run_parts"]


@dataclasses.dataclass(frozen=True)
class Parts:
    """The files that a run wrote.

    Attributes:
      folder: where; `part-00000.parquet` and so on, which Parquet readers take together.
      files: the parts that have rows.
      rows: of all parts.
      resumed: how many parts an earlier run had written.
      problems: what was refused while reading.
      summary: counts of `assign`; empty for `compose`.
      sources: how many outcomes are from the table of rewards.
    """

    folder: Path
    files: tuple[Path, ...]
    rows: int
    resumed: int
    problems: tuple[Problem, ...]
    summary: Summary
    sources: RewardSources


def run_parts(chunks: Chunks, job: Job, folder: Path, progress: Callable[[Iterable[int]], Iterable[int]]) -> Parts:
    """Compute the parts that `folder` does not hold yet, on the cluster, and sum up all parts.

    Raises:
      CreditError: `folder` is a file, an address, or holds something of another run; a part is refused; what
        `Job.finish` refuses. Then this run leaves no file.
      UnreadableError: a log cannot be read any more. Finished parts stay for the same command.
      NothingReadError: no trace of any part is usable.
    """
    identities = made_from(chunks, job)
    place = checked_folder(folder, job).absolute()  # workers have another current folder
    output = OutputFolder(place, identities, job)
    known = output.open()
    ray = connected()
    shared = ray.put(chunks)
    remote = ray.remote(make_part).options(max_retries=RETRIES)
    missing = [number for number in range(len(chunks)) if known[number] is None]
    pending = [remote.remote(shared, number, job, identities[number], str(place)) for number in missing]
    try:
        for number, _ in zip(progress(missing), results_of(ray, pending), strict=True):
            known[number] = _written(place, number)
        parts = _finished(chunks, job, folder, [part for part in known if part is not None], len(chunks) - len(missing))
    except UnreadableError:  # a log that could not be read may be read again: finished parts stay for the same command
        raise
    except CreditError:  # of the whole run: what is there looks like a result
        output.remove()
        raise
    output.refuse_others()  # that came meanwhile
    return parts


def _written(place: Path, number: int) -> PartNote:
    """The note of a part whose task ended.

    Raises:
      CreditError: it is not seen from here.
    """
    try:
        return read_note(place, number)
    except FileNotFoundError:
        seen = f"part {number} was written and is not in {str(place)!r} of this process"
        raise CreditError(
            f"{seen}; expected a folder that every node sees, and that nobody empties meanwhile"
        ) from None


def _finished(chunks: Chunks, job: Job, folder: Path, parts: Sequence[PartNote], resumed: int) -> Parts:
    unread = np.array([name for part in parts for name in part.unread], np.int64)
    problems = ProblemLog(chunks.problems_without(unread))
    for part in parts:
        problems.add_part(part.problems)
        chunks.sources.add_counts(part.sources)
    problems.extend(chunks.without_channel(dict.fromkeys(name for part in parts for name in part.channels)))
    notes = [part.note for part in parts if part.note is not None]
    if not notes:
        raise NothingReadError("no trace could be read", tuple(problems))
    summary = job.finish(notes, problems)
    files = tuple(part_file(folder, number) for number, part in enumerate(parts) if part.note is not None)
    return Parts(folder, files, sum(part.rows for part in parts), resumed, tuple(problems), summary, chunks.sources)


def make_part(chunks: Chunks, number: int, job: Job, identity: str, folder: str) -> None:
    """The task of a part: read its groups, compute, write its table, and then its note."""
    traces, problems = chunks.part(number)
    rows, size, note, file = 0, 0, None, part_file(Path(folder), number)
    sources = [0, 0, 0] if traces is None else chunks.sources_of(traces)
    channels = [] if traces is None else traces.reward_channels
    if traces is None:
        file.unlink(missing_ok=True)  # what another hand left there
    else:
        computed, note = job.compute(traces)
        write_table(computed, file)
        rows, size = computed.num_rows, file.stat().st_size
    part = PartNote(identity, rows, size, list(problems), chunks.unread(number).tolist(), sources, note, channels)
    write_note(Path(folder), number, part)


def made_from(chunks: Chunks, job: Job) -> list[str]:
    """For each part a hash of its content, of what is computed from it, and of the library's version."""
    common = repr((len(chunks), job.key)).encode()
    return [
        hashlib.blake2b(common + b"%d," % number + chunks.fingerprint(number), digest_size=16).hexdigest()
        for number in range(len(chunks))
    ]
