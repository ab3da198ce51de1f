"""The summary of `credit assign`: counts, reasons in words, and groups without a training signal."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from credit.cli.shared.reading import SHOWN
from graphs.text import counted

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["Summary"]


class Summary:
    """Counts over one batch, or over several of whole groups."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.reasons: collections.Counter[int] = collections.Counter()
        self.has_signal: dict[str, bool] = {}  # by group, in order of appearance

    def add(self, traces: Traces, credit: Credit) -> None:
        """Count a batch and a method's result on it."""
        import numpy as np

        n = traces.sizes
        action = np.asarray(traces.graph.action_mask[: n.events])
        valid = np.asarray(credit.valid)[: n.events]
        reason = np.asarray(credit.reason)[: n.events][action & ~valid]
        self.counts.update(
            {"traces": n.traces, "events": n.events, "actions": int(action.sum()), "valid": int(valid.sum())}
        )
        codes, counts = np.unique(reason, return_counts=True)
        self.reasons.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))

        groups = list(dict.fromkeys(traces.traces["group"].to_pylist()))
        group = np.asarray(traces.graph.group_ids)[np.asarray(traces.graph.trace_ids[: n.events])]
        moved = np.abs(np.asarray(credit.advantage)[: n.events]) > 0
        moved_by_group = np.bincount(group[valid & moved], minlength=len(groups)) > 0
        self.has_signal.update(zip(groups, moved_by_group.tolist(), strict=False))

    def lines(self, method: str) -> list[str]:
        """What was computed, why some actions have no advantage, and which groups have no signal."""
        from estimators.base import REASONS

        count = self.counts
        lines = [
            f"{method}: {counted(count['traces'], 'trace')} in {counted(len(self.has_signal), 'group')}, "
            f"{counted(count['events'], 'event')}, {counted(count['actions'], 'action')}, "
            f"{count['valid']} with an advantage"
        ]
        lines += [
            f"  {counted(count, 'action')} without: {REASONS[code]}" for code, count in sorted(self.reasons.items())
        ]
        silent = [name for name, signal in self.has_signal.items() if not signal]
        if silent:
            more = f", … and {len(silent) - SHOWN} more" if len(silent) > SHOWN else ""
            lines.append(
                f"  {counted(len(silent), 'group')} without a training signal: {', '.join(silent[:SHOWN])}{more}"
            )
        return lines
