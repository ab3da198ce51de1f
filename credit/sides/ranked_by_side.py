"""Whether a verdict of many values, such as a judge's, became kinder or harsher from one side to another."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.doctor.ranked_verdicts import Given, RankedVerdict, ranked_verdicts
from credit.doctor.verdict_errors import kinds_by
from credit.reports.judged_traces import judged_traces
from credit.reports.trace_numbers import TraceMetric, numbered
from credit.reports.verdict_channels import held_against, with_outcomes
from credit.sides.chosen_sides import Sides
from credit.sides.side_differences import side_differences
from credit.sides.side_words import first_to_second
from graphs.traces.batch import Traces

__all__ = ["ranked_by_side"]


def ranked_by_side(traces: Traces, success_at: float | None = None, sides: Sides | None = None) -> list[RankedVerdict]:
    """`ranked_verdicts`, of each side, too, with what failed and succeeded traces got there, by `side_differences`.

    Args:
      traces: what was read.
      success_at: the least outcome of a success; None where outcomes have two values.
      sides: two sides of these traces; None for the two systems that the log states, where it states two.
    """
    if sides is None and len({name or "" for name in traces.traces["system"].to_pylist()} - {""}) == 2:
        _, sides = Sides.joined("system", traces)
    found = ranked_verdicts(traces, success_at, *(() if sides is None else (sides.side, sides.heads)))
    if sides is None or not found:
        return found
    held = held_against(traces, success_at)
    judged = judged_traces(with_outcomes(traces, held.outcome), held.success_at, sides.side)
    numbers: dict[str, TraceMetric] = {}
    kinds = dict(zip(kinds_by(held.against), (judged.failed, judged.succeeded), strict=True))
    for one in (one for one in found if not one.chosen):  # else a change of its numbers changes who is looked at
        number = held.channels[one.name]
        lacks = np.isnan(number), "no such reward"
        numbers |= {f"{one.name}, {kind}": numbered(number, lacks, (~of, f"none of the {kind}"))
                    for kind, of in kinds.items()}  # fmt: skip
    rows = {row.metric: row for row in side_differences(traces, numbers, sides.side)}
    given = {}
    for name, row in rows.items():
        told = f"{first_to_second(row.first, row.second)}, {row.says()}"
        given[name] = Given(row.first, row.second, told, row.stands_out)
    return [
        dataclasses.replace(one, given={kind: given[key] for kind in kinds if (key := f"{one.name}, {kind}") in given})
        for one in found
    ]
