"""`credit assign` of native logs in parts of whole groups: one after another, or side by side on Ray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from credit.cli.shared.engines import options_of_parts
from credit.method_summary import Summary
from graphs.text import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from graphs.errors import Problem
    from graphs.reading.tables.reward_sources import RewardSources

__all__ = ["Written", "assign_in_chunks", "assign_on_ray"]


class Written(NamedTuple):
    """What was written.

    Attributes:
      summary: what was counted.
      rows: rows of the table.
      place: where they are, in words.
      counts: further numbers of the JSON answer.
      sources: where the outcomes came from.
      problems: what was refused.
    """

    summary: Summary
    rows: int
    place: str
    counts: dict[str, int]
    sources: RewardSources
    problems: tuple[Problem, ...]


def assign_in_chunks(
    paths: tuple[str, ...],
    output: str,
    method: str,
    options: Mapping[str, Any],
    also: tuple[str, ...],
    *,
    events: int,
    actions_only: bool,
    **reading: Any,
) -> Written:
    """Write one table of a method's advantages, some whole groups at a time: for logs larger than memory.

    Raises:
      CreditError: the method's numbers depend on the whole batch; a format other than the native one; evidence that no
        chunk has; and as `credit.read_chunks` and `credit.run`.
    """
    from credit.methods.absent_outcomes import found_instead, spoilt_rows
    from credit.methods.chunked import ChunkedMethod
    from credit.methods.running import has_outcomes
    from credit.tables.advantages import table
    from credit.tables.files import write_tables
    from graphs.logs.chunks import read_chunks

    computed = ChunkedMethod(method, options, also)
    chunks = read_chunks(*paths, events=events, **options_of_parts(reading, "--chunk-events"))
    summary = Summary()
    met: set[str] = set()  # evidence that some chunk has: a chunk without it is no error
    any_outcome = False
    instead = ""

    def tables() -> Iterator[pa.Table]:
        nonlocal any_outcome, instead
        for traces in chunks:
            any_outcome |= has_outcomes(traces)
            if not any_outcome and not instead:
                instead = found_instead(traces)
            met.update(computed.present(traces))
            credit = computed.run(traces)
            summary.add(traces, credit, method, options, given=also)
            yield table(traces, credit, actions_only=actions_only)
        computed.refuse_missing(met, any_outcome, [spoilt_rows(chunks.problems), instead])
        summary.refuse_mixed(method, options)

    rows = write_tables(tables(), output)
    place = f"{output}, from {counted(len(chunks), 'chunk')}"
    return Written(summary, rows, place, {"chunks": len(chunks)}, chunks.sources, tuple(chunks.problems))


def assign_on_ray(
    paths: tuple[str, ...],
    output: str,
    method: str,
    options: Mapping[str, Any],
    also: tuple[str, ...],
    *,
    events: int | None,
    actions_only: bool,
    **reading: Any,
) -> Written:
    """Write a folder with a table for each part, by `credit.ray.assign`, which a repeated call resumes.

    Raises:
      CreditError: as `credit.ray.assign`.
    """
    import credit.ray
    from credit.cli.shared.answers import stderr
    from credit.cli.shared.progress import steps
    from credit.ray.cluster import EVENTS

    written = credit.ray.assign(
        *paths,
        output=output,
        method=method,
        options=options,
        evidence=also,
        actions_only=actions_only,
        events=EVENTS if events is None else events,
        **options_of_parts(reading, "--engine"),
        progress=lambda numbers: map(int, steps(stderr(), map(str, numbers), "computing part")),
    )
    kept = f", {written.resumed} of them kept from an earlier run" if written.resumed else ""
    place = f"{counted(len(written.files), 'part')} in {output}{kept}"
    counts = {"parts": len(written.files), "resumed": written.resumed}
    return Written(written.summary, written.rows, place, counts, written.sources, written.problems)
