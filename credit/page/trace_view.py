"""One trace for the explorer: lanes, events, edges, credit by method and the lines of receipts, as columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from credit.ledger.receipts.explaining import AMOUNTS
from credit.page.encoding import harmless, numbers
from credit.page.findings import Findings, doubts
from credit.plot.lane_order import lanes
from credit.reports.endings import lasts
from credit.reports.event_errors import error_mask
from credit.reports.tool_calls import ToolCalls
from credit.tables.advantages import TYPE_NAMES, turn_in_trace
from graphs.event_graph import EdgeType
from graphs.structure.forest import spawn_forest
from graphs.traces.event_models import event_models

__all__ = ["TraceViews"]

EDGE_NAMES = [member.name.lower() for member in sorted(EdgeType)]


class TraceViews:
    """Traces as columns of plain data; what depends on the batch is computed once.

    Args:
      findings: what the page shows.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> view = TraceViews(Findings.of(rows.traces, {"rloo": credit.rloo(graph, reward)})).of(0)
      >>> view["id"], view["lanes"][0]["label"], view["methods"]["rloo"]["advantage"]
      ('a', 'agent', [1.0])
    """

    def __init__(self, findings: Findings) -> None:
        graph, n = findings.traces.graph, findings.traces.sizes
        self._findings = findings
        self._forest = spawn_forest(graph)
        self._errors = error_mask(findings.traces)
        self._trace = np.asarray(graph.trace_ids)
        self._edges = np.flatnonzero(np.asarray(graph.edge_mask))
        self._edge_trace = self._trace[np.asarray(graph.receivers)[self._edges]]
        self._turns = turn_in_trace(np.asarray(graph.turn_ids)[: n.events], np.asarray(graph.trace_ids)[: n.events])
        self._models, self._model = event_models(findings.traces)
        self._lasts = lasts(findings.traces, ToolCalls.of(findings.traces))
        self._doubts = {name: doubts(claim, findings.errors) for name, claim in findings.claims.items()}

    def of(self, row: int, *, excerpt: int = 160) -> dict[str, Any]:
        """The trace of a row of the batch.

        Args:
          row: of the trace.
          excerpt: length of the excerpts of text; 0 leaves them out.
        """
        traces, graph = self._findings.traces, self._findings.traces.graph
        first, last = (int(place) for place in self._findings.first_events[row : row + 2])
        rows = np.arange(first, last)
        about = traces.traces.slice(row, 1).to_pylist()[0]
        order, labels = lanes(traces, row, self._forest)
        lane = {agent: i for i, agent in enumerate(order)}
        parents = np.asarray(graph.agent_parent)[order] if order else np.zeros(0, int)
        events = traces.events.slice(first, last - first)
        tokens = traces.evidence.get("tokens")
        time = np.asarray(graph.time)[rows]
        edges = self._edges[self._edge_trace == row]
        reward = float(np.asarray(traces.reward)[row])
        end, *early = self._lasts.get(row, (first, ""))
        return {
            "id": harmless(about["trace"]),
            "group": harmless(about["group"]),
            "reward": reward if np.isfinite(reward) else None,
            "file": harmless(about["file"]),
            "lanes": [
                {
                    "label": label.strip(),
                    "depth": (len(label) - len(label.lstrip())) // 3,
                    "parent": None if int(p) == agent else lane.get(int(p)),
                }
                for agent, label, p in zip(order, labels, parents, strict=True)
            ],
            "event": harmless(events["event"].to_pylist(), 80),
            "type": _coded([TYPE_NAMES[kind] for kind in np.asarray(graph.event_type)[rows].tolist()]),
            "lane": [lane[int(agent)] for agent in np.asarray(graph.agent_ids)[rows]],
            "turn": self._turns[first:last].tolist(),
            "time": numbers(time),
            "tool": _coded(events["tool"].to_pylist()),
            "status": _coded(events["status"].to_pylist()),
            "model": _coded(
                [
                    self._models[model] or None if acts else None
                    for model, acts in zip(self._model[rows], np.asarray(graph.action_mask)[rows], strict=True)
                ]
            ),
            "error": self._errors[first:last].astype(int).tolist(),
            "tokens": [None] * len(rows) if tokens is None else numbers(tokens.array[rows], tokens.mask[rows]),
            "line": [line or 0 for line in events["line"].to_pylist()],
            "action": np.asarray(graph.action_mask)[rows].astype(int).tolist(),
            "text": self.texts(row, excerpt) if excerpt and self._findings.text else None,
            "task": self.task(row, excerpt),
            "senders": (np.asarray(graph.senders)[edges] - first).tolist(),
            "receivers": (np.asarray(graph.receivers)[edges] - first).tolist(),
            "edge": _coded([EDGE_NAMES[kind] for kind in np.asarray(graph.edge_type)[edges].tolist()]),
            "methods": {
                name: {
                    "advantage": numbers(np.asarray(claim.advantage)[rows], np.asarray(claim.valid)[rows]),
                    "doubt": self._doubts[name][rows].tolist(),
                }
                for name, claim in self._findings.claims.items()
            },
            "receipt": self._receipts(rows),
            "early": [end - first, "".join(early)] if any(early) else None,
        }

    def texts(self, row: int, excerpt: int) -> list[str]:
        """Excerpts of what the events of a trace said."""
        first, last = self._findings.first_events[row : row + 2].tolist()
        return self._findings.texts(np.arange(first, last), excerpt)

    def task(self, row: int, excerpt: int) -> list[str]:
        """Excerpts of what the trace was asked and of what it came to, each "" where the log does not say it."""
        return list(self._findings.task(row, excerpt))

    def _receipts(self, rows: np.ndarray) -> dict[str, Any] | None:
        """The receipts of events as columns; None without claims."""
        receipts = self._findings.receipts
        if receipts is None or not len(rows):
            return None
        columns, account = receipts.columns(rows), receipts.account(int(self._trace[rows[0]]))
        lines = [
            {
                **{key: harmless(getattr(line, key)) for key in ("claim", "estimand", "source", "unit")},
                **{key: numbers(getattr(line, key)) for key in AMOUNTS},
                "why": _coded(line.why),
            }
            for line in columns.lines
        ]
        stated = columns.stated.tolist()
        return {
            "lines": lines,
            "call": _coded(columns.call),
            **{key: numbers(getattr(columns, key)) for key in ("entry", "naive", "rest", "others")},
            "stderr": numbers(columns.stderr, columns.stated),
            "noise": [bool(noise) if known else None for noise, known in zip(columns.noise, stated, strict=True)],
            **harmless(account),
            "rule": receipts.rule,
        }


def _coded(values: Iterable[str | None]) -> dict[str, Any]:
    """Texts as places in a list of distinct ones; -1 for None."""
    names: dict[str, int] = {}
    codes = [-1 if value is None else names.setdefault(value, len(names)) for value in values]
    return {"names": harmless(list(names)), "codes": codes}
