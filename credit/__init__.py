"""Who earned the reward of a team of LLM agents: read logged traces, assign credit, see how far to trust it.

    import credit
    traces = credit.read("runs/")
    result = credit.grpo(traces.graph, traces.reward)
    table = credit.table(traces, result)

Everything that users need is an attribute of this package: what `_HOME` lists below, and all that `estimators` exports.
Attributes load on first use, so that the command line answers at once and no one pays for what they do not call.
`estimators` and `graphs` are its siblings: trainers may import `estimators` alone.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credit.fitting import Critic, fit_critic, load_critic
    from credit.laws import LawError, check
    from credit.ledger import ContradictionError, Ledger, Signal, compose, stack
    from credit.ledger.auditing import Audit, audit
    from credit.ledger.channels import Channel, annealed, channel, depart, kimi_parl, sharp
    from credit.ledger.receipt import Receipt, explain
    from credit.ledger.sums import weighted_sum
    from credit.methods.advice import Advice, choose
    from credit.methods.published import PUBLISHED, Published, find_method
    from credit.methods.registry import METHODS, Method
    from credit.plot import draw_calibration, draw_comparison, draw_ledger, draw_methods, draw_snr, draw_trace
    from credit.reports.comparison import Comparison, compare
    from credit.reports.judgements import Judgements, read_judgements
    from credit.tables.advantages import table
    from credit.tables.bridge import from_torch, to_pandas, to_torch
    from credit.tables.columns import Rows, from_columns
    from credit.tables.files import write_table
    from estimators import *
    from graphs import (
        CapacityError,
        CreditError,
        EdgeType,
        EventGraph,
        EventType,
        MissingExtraError,
        NothingReadError,
        Problem,
        Sizes,
        TraceError,
        bucket,
        pad,
        unpad,
    )
    from graphs.readers import FORMATS, read
    from graphs.readers.chunks import Chunks, read_chunks
    from graphs.readers.raw import raw_record
    from graphs.traces.batch import Traces
    from graphs.traces.evidence import Evidence
    from graphs.traces.limits import Limits

__version__ = "0.1.0"

_HOME: dict[str, str] = {
    **dict.fromkeys(("from_torch", "to_pandas", "to_torch"), "credit.tables.bridge"),
    **dict.fromkeys(("Rows", "from_columns"), "credit.tables.columns"),
    **dict.fromkeys(("Channel", "annealed", "channel", "depart", "kimi_parl", "sharp"), "credit.ledger.channels"),
    "weighted_sum": "credit.ledger.sums",
    **dict.fromkeys(("Advice", "choose"), "credit.methods.advice"),
    **dict.fromkeys(("Critic", "fit_critic", "load_critic"), "credit.fitting"),
    **dict.fromkeys(("Comparison", "compare"), "credit.reports.comparison"),
    **dict.fromkeys(("Audit", "audit"), "credit.ledger.auditing"),
    **dict.fromkeys(("Receipt", "explain"), "credit.ledger.receipt"),
    **dict.fromkeys(("Judgements", "read_judgements"), "credit.reports.judgements"),
    **dict.fromkeys(("LawError", "check"), "credit.laws"),
    **dict.fromkeys(("ContradictionError", "Ledger", "Signal", "compose", "stack"), "credit.ledger"),
    **dict.fromkeys(("METHODS", "Method"), "credit.methods.registry"),
    **dict.fromkeys(
        ("draw_calibration", "draw_comparison", "draw_ledger", "draw_methods", "draw_snr", "draw_trace"), "credit.plot"
    ),
    **dict.fromkeys(("PUBLISHED", "Published", "find_method"), "credit.methods.published"),
    "table": "credit.tables.advantages",
    "write_table": "credit.tables.files",
    **dict.fromkeys(
        (
            "CapacityError",
            "CreditError",
            "EdgeType",
            "EventGraph",
            "EventType",
            "MissingExtraError",
            "NothingReadError",
            "Problem",
            "Sizes",
            "TraceError",
            "bucket",
            "pad",
            "unpad",
        ),
        "graphs",
    ),
    "raw_record": "graphs.readers.raw",
    "Limits": "graphs.traces.limits",
    **dict.fromkeys(("FORMATS", "read"), "graphs.readers"),
    **dict.fromkeys(("Chunks", "read_chunks"), "graphs.readers.chunks"),
    "Evidence": "graphs.traces.evidence",
    "Traces": "graphs.traces.batch",
}


_SUBMODULES = ("bench", "laws", "ledger", "methods", "plot", "reports", "tables")
"""Packages that `import credit` alone makes available as attributes."""


def __getattr__(name: str) -> Any:
    """Load a name on first use: a submodule, one of `_HOME`, or one that `estimators` exports."""
    if name == "__all__":
        return sorted({*_HOME, *importlib.import_module("estimators").__all__})
    if name in _SUBMODULES:
        return importlib.import_module(f"credit.{name}")
    home = _HOME.get(name)
    if home is None:
        if name.startswith("_") or name not in importlib.import_module("estimators").__all__:
            raise AttributeError(f"module 'credit' has no attribute {name!r}")
        home = "estimators"
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *__getattr__("__all__")]


def _check_siblings() -> None:
    """Refuse to run with someone else's `graphs` or `estimators`: both names are common words.

    Raises:
      ImportError: the package of that name that Python would import is not the one beside this package.
    """
    home = Path(__file__).resolve().parent.parent
    for name in ("graphs", "estimators"):
        spec = importlib.util.find_spec(name)
        places = [] if spec is None else [Path(p).resolve() for p in spec.submodule_search_locations or []]
        if home / name not in places:
            found = "none is installed" if spec is None else f"Python would import {spec.origin or places}"
            raise ImportError(
                f"credit needs its own package {name!r} at {home / name}, but {found}. A folder of that name comes "
                "first on the path: run from another directory, or use the `credit` command or `python -P`."
            )


_check_siblings()
