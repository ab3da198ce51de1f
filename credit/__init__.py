"""Who earned the reward of a team of LLM agents: read logged traces, assign credit, see how far to trust it.

    import credit
    traces = credit.read("runs/")
    result = credit.run(traces, "rloo")
    table = credit.table(traces, result)

The names here are types, verbs, and one function for each entry of `METHODS`, under its name. `METHODS` is a dictionary
from names to `Method`, and `FORMATS` is a dictionary from names of log formats to `Format`. Drawing is in
`credit.plot`, reports are in `credit.reports`, and parts for composing ledgers are in `credit.ledger`. `estimators` and
`graphs` are siblings of this package; a trainer may import `estimators` alone.

Names load on first use, so that the command line starts quickly.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credit.advice import choose
    from credit.critics.fitting import fit_critic, load_critic
    from credit.critics.posterior_signal import PosteriorSignal
    from credit.integrations.agent_lightning import read_store
    from credit.laws import check
    from credit.ledger import Ledger, compose, stack
    from credit.ledger.auditing import audit
    from credit.ledger.receipts.explaining import explain
    from credit.methods.method_row import Method
    from credit.methods.registry import METHODS
    from credit.methods.running import run
    from credit.replay.shapley_game import shapley_plan
    from credit.reports.comparison import compare
    from credit.tables.advantages import table
    from credit.tables.bridge import from_torch, to_pandas, to_torch
    from credit.tables.columns import from_columns
    from credit.tables.files import write_table
    from estimators import (
        Credit,
        adca_grpo,
        agent_lightning,
        agent_lightning_rows,
        at_grpo,
        c3,
        c3_magrpo,
        ccpo,
        claim,
        coma,
        difference_reward,
        discounted_return,
        dr_grpo,
        dr_mas,
        dr_mas_rloo,
        foldgrpo,
        foldgrpo_fork,
        g2po,
        gae,
        gigpo,
        gpg,
        graph_gpo,
        grpo,
        hae,
        hcapo,
        hgpo,
        hierarchical_grpo,
        igpo,
        igrpo,
        maac,
        magrpo,
        maporl,
        marshal,
        marti,
        matpo,
        max_rl,
        mgrpo,
        moving_average,
        mrlx,
        mt_grpo,
        off_policy,
        openrlhf_group_norm,
        opo,
        pass_at_k,
        prime_rl_grpo,
        puppeteer,
        reinforce_batch,
        reinforce_pp,
        reinforce_pp_baseline,
        remax,
        rllm_reinforce_pp,
        rloo,
        sepo,
        slime_grpo,
        spawn_credit,
        spiral_rae,
        stop_credit,
        tree_grpo,
        trl_grpo,
        turn_baseline,
        unitymas_o,
        verl_grpo,
        verl_rloo,
        wideseek_r1,
    )
    from estimators import critic_increments as critic
    from estimators.shapley.event_credit import shapley
    from graphs import CreditError, EventGraph, EventType, NothingReadError
    from graphs.logs import FORMATS, read
    from graphs.logs.chunks import read_chunks
    from graphs.traces.batch import Traces
    from graphs.traces.limits import Limits

__version__ = "0.1.0"

_HOME: dict[str, str] = {
    **dict.fromkeys(("fit_critic", "load_critic"), "credit.critics.fitting"),
    "PosteriorSignal": "credit.critics.posterior_signal",
    "read_store": "credit.integrations.agent_lightning",
    "check": "credit.laws",
    **dict.fromkeys(("Ledger", "compose", "stack"), "credit.ledger"),
    "audit": "credit.ledger.auditing",
    "explain": "credit.ledger.receipts.explaining",
    "choose": "credit.advice",
    "Method": "credit.methods.method_row",
    "METHODS": "credit.methods.registry",
    "run": "credit.methods.running",
    "shapley_plan": "credit.replay.shapley_game",
    "compare": "credit.reports.comparison",
    "table": "credit.tables.advantages",
    **dict.fromkeys(("from_torch", "to_pandas", "to_torch"), "credit.tables.bridge"),
    "from_columns": "credit.tables.columns",
    "write_table": "credit.tables.files",
    **dict.fromkeys(("Credit", "claim"), "estimators"),
    **dict.fromkeys(("CreditError", "EventGraph", "EventType", "NothingReadError"), "graphs"),
    **dict.fromkeys(("FORMATS", "read"), "graphs.logs"),
    "read_chunks": "graphs.logs.chunks",
    "Traces": "graphs.traces.batch",
    "Limits": "graphs.traces.limits",
}
"""The module of each name that is not a method's; methods are those of `METHODS`."""

_SUBMODULES = ("bench", "integrations", "laws", "ledger", "methods", "plot", "replay", "reports", "tables")
"""Packages that `import credit` alone makes available as attributes."""


def __getattr__(name: str) -> Any:
    """Load a name on first use: a submodule, one of `_HOME`, or the function of a method."""
    if name in _SUBMODULES:
        return importlib.import_module(f"credit.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name == "__all__":
        return sorted({*_HOME, *_methods()})
    elif not name.startswith("_") and name in _methods():
        value = _methods()[name].fn
    else:
        raise AttributeError(f"module 'credit' has no attribute {name!r}")
    globals()[name] = value
    return value


def _methods() -> Any:
    return importlib.import_module("credit.methods.registry").METHODS


def __dir__() -> list[str]:
    return ["__version__", *__getattr__("__all__")]


def _check_siblings() -> None:
    """Refuse to run with `graphs` or `estimators` of another project: both names are common words.

    Raises:
      ImportError: the package of that name that Python would import is not the one beside this package.
    """
    home = Path(__file__).resolve().parent.parent
    for name in ("graphs", "estimators"):
        spec = importlib.util.find_spec(name)
        places = [] if spec is None else [Path(p).resolve() for p in spec.submodule_search_locations or []]
        if home / name not in places:
            actual = "none is installed" if spec is None else f"Python would import {spec.origin or places}"
            raise ImportError(
                f"credit needs its own package {name!r} at {home / name}, but {actual}. A folder of that name comes "
                "first on the path: run from another directory, or use the `credit` command or `python -P`."
            )


_check_siblings()
