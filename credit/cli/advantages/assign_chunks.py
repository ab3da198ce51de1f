"""`credit assign --chunk-events`: a folder larger than memory, whole groups at a time, into one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from credit.assign_summary import Summary
from credit.methods.chunked import ChunkedMethod
from credit.methods.lost_outcomes import found_instead, spoilt_rows
from credit.methods.running import has_outcomes
from credit.tables.advantages import table
from credit.tables.files import write_tables
from graphs.errors import CreditError
from graphs.logs.chunks import Chunks, read_chunks
from graphs.traces.grouping import GROUP_KEYS
from graphs.traces.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["assign_in_chunks"]


def assign_in_chunks(
    paths: tuple[str, ...],
    output: str,
    method: str,
    options: Mapping[str, Any],
    also: tuple[str, ...],
    *,
    events: int,
    actions_only: bool,
    format_: str | None,
    columns: dict[str, str] | None,
    rewards: str | None,
    groups: str | None,
    group_by: tuple[str, ...] | None,
    reward_channel: str,
    limits: tuple[str, ...],
) -> tuple[Summary, int, Chunks]:
    """Write the table of a method's advantages, some whole groups at a time: what was counted, the rows, the chunks.

    Raises:
      CreditError: the method's numbers depend on the whole batch; a format other than the native one; evidence that no
        chunk has; and as `graphs.logs.chunks.read_chunks` and `credit.run`.
    """
    computed = ChunkedMethod(method, options, also)
    if columns is not None or format_ not in (None, "native"):
        raise CreditError("--chunk-events reads native logs; `credit convert` writes any format as native")
    chunks = read_chunks(
        *paths,
        events=events,
        reward=reward_channel,
        rewards=rewards,
        groups=groups,
        group_by=GROUP_KEYS if group_by is None else group_by,
        limits=Limits.parse(limits),
    )
    summary = Summary()
    met: set[str] = set()
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
            summary.add(traces, credit)
            yield table(traces, credit, actions_only=actions_only)
        computed.refuse_missing(met, any_outcome, [spoilt_rows(chunks.problems), instead])

    return summary, write_tables(tables(), output), chunks
