"""`credit assign --chunk-events`: a folder larger than memory, whole groups at a time, into one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.cli.advantages.summary import Summary
from credit.methods.option_texts import parse_options
from credit.methods.published import find_method
from credit.methods.running import has_outcomes, run_part
from credit.tables.advantages import table
from credit.tables.files import write_tables
from graphs.errors import CreditError
from graphs.readers.chunks import Chunks, read_chunks
from graphs.traces.grouping import GROUP_KEYS
from graphs.traces.limits import Limits
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

if TYPE_CHECKING:
    import pyarrow as pa

    from graphs.traces.batch import Traces

__all__ = ["assign_in_chunks"]

DIVISIBLE = ("trace", "group")
"""Scopes of methods whose numbers depend on no other group."""


def assign_in_chunks(
    paths: tuple[str, ...],
    output: str,
    method: str,
    given: tuple[str, ...],
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
        chunk has; and as `graphs.readers.chunks.read_chunks` and `credit.run`.
    """
    options = parse_options(method, given)
    entry = find_method(method)
    scope = entry.scope
    if scope not in DIVISIBLE:
        problem = f"its scope is {scope}: every trace changes the numbers of the others"
        raise CreditError(f"method {method!r} cannot be computed in chunks, since {problem}")
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
    wanted = dict.fromkeys([*entry.needs, *also])
    met: set[str] = set()
    any_outcome = False

    def tables() -> Iterator[pa.Table]:
        nonlocal any_outcome
        for traces in chunks:
            any_outcome |= has_outcomes(traces)
            present = {name for name in wanted if name in traces.evidence and traces.evidence[name].mask.any()}
            met.update(present)
            absent = _absent(traces, wanted.keys() - present)
            credit = run_part(traces, method, evidence=present.intersection(also), **absent, **options)
            summary.add(traces, credit)
            yield table(traces, credit, actions_only=actions_only)
        if not any_outcome:
            raise CreditError(
                "no trace has an outcome, so no action has credit; expected --rewards or --reward-channel"
            )
        lacking = [name for name in wanted if name not in met]
        if lacking:
            how = "; ".join(f"{name!r}: {_EVIDENCE[name].how_to_log}" for name in lacking)
            raise CreditError(f"method {method!r} needs evidence that the log does not have. {how}")

    return summary, write_tables(tables(), output), chunks


_EVIDENCE = {**EVENT_EVIDENCE, **TRACE_EVIDENCE}


def _absent(traces: Traces, names: Iterable[str]) -> dict[str, Any]:
    """Evidence that a chunk has nowhere, though another may: arrays in which all is absent."""
    arrays = {}
    for name in names:
        length = traces.graph.num_events if name in EVENT_EVIDENCE else traces.graph.num_traces
        is_float = _EVIDENCE[name].kind == "float"
        arrays[name] = np.full(length, np.nan, np.float32) if is_float else np.full(length, -1, np.int32)
    return arrays
