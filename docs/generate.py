"""Write the pages that follow from the code: docs/api/*.md from docstrings, docs/methods.md from METHODS.

Run `python docs/generate.py`; a test fails when the pages are not what the code says.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import inspect
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
PACKAGES: dict[str, tuple[str, ...]] = {
    "credit": (
        "credit",
        "credit.methods.published",
        "credit.ledger.channels",
        "credit.ledger",
        "credit.plot",
        "credit.reports.reliability",
        "credit.bench.snr",
        "credit.bench.bias",
        "credit.bench.bias_settings",
    ),
    "estimators": (
        "estimators",
        "estimators.base",
        "estimators.group",
        "estimators.counterfactual.replays",
        "estimators.tokens.rows",
        "estimators.tokens.losses",
        "estimators.counterfactual.factored",
        "estimators.baselines.released",
        "estimators.composition.increments",
        "estimators.composition.control",
        "estimators.counterfactual.contrast",
        "estimators.counterfactual.offpolicy",
        "estimators.counterfactual.alternatives",
        "estimators.counterfactual.fidelity",
        "estimators.tokens.turn_masks",
        "estimators.composition.exact",
        "estimators.composition.least_squares",
        "estimators.composition.votes",
        "estimators.composition.nesting",
        "estimators.composition.top_down",
        "estimators.shapley",
        "estimators.shapley.structured",
        "estimators.critic.features",
        "estimators.critic.network",
        "estimators.critic.data",
        "estimators.critic.train",
        "estimators.critic.predict",
        "estimators.critic.value_increments",
        "estimators.critic.calibration",
        "estimators.critic.contrasts",
    ),
    "graphs": (
        "graphs",
        "graphs.event_graph",
        "graphs.segment",
        "graphs.levels",
        "graphs.padding",
        "graphs.structure.forest",
        "graphs.structure.critical_path",
        "graphs.structure.prefix",
        "graphs.structure.topology",
        "graphs.invariants",
        "graphs.structure.networkx_graphs",
        "graphs.worlds",
        "graphs.worlds.quality",
        "graphs.worlds.micro.orchestration",
        "graphs.worlds.micro.examples",
        "graphs.traces.record",
        "graphs.traces.schema",
        "graphs.traces.batch",
        "graphs.readers",
        "graphs.writers.native",
        "graphs.writers.otlp",
    ),
}


def pages() -> dict[Path, str]:
    """Every generated page and its text."""
    written = {DOCS / "api" / f"{package}.md": api_page(package, modules) for package, modules in PACKAGES.items()}
    written[DOCS / "methods.md"] = methods_page()
    return written


def api_page(package: str, modules: tuple[str, ...]) -> str:
    """The public names of some modules, each with its signature and docstring."""
    lines = [f"# `{package}`", "", "Written by `python docs/generate.py` from the docstrings.", ""]
    for name in modules:
        module = importlib.import_module(name)
        lines += [f"## `{name}`", "", inspect.getdoc(module) or "", ""]
        for public in sorted(module.__all__, key=str.lower):
            lines += entry(public, getattr(module, public), name)
    return "\n".join(lines).rstrip() + "\n"


def entry(name: str, value: Any, module: str) -> list[str]:
    """One name: its signature and docstring, or where it is described."""
    home = getattr(inspect.unwrap(value), "__module__", module) if callable(value) else module
    heading = f"### `{name}`"
    if callable(value) and home != module and home.split(".")[0] != module.split(".")[0]:
        return [heading, "", f"From `{home}`: {first_line(value)}", ""]
    if callable(value) and not isinstance(value, functools.partial):
        text = inspect.getdoc(value) or ""
        return [heading, "", "```python", f"{name}{signature(value)}", "```", "", "```text", text, "```", ""]
    kind = type(value).__name__
    size = f", {len(value)} entries" if isinstance(value, dict | tuple | frozenset | list) else ""
    return [heading, "", f"`{kind}`{size}.", ""]


def signature(value: Any) -> str:
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return ""  # it says how enumerations are made, in other words in each version of Python
    try:
        return str(inspect.signature(inspect.unwrap(value)))
    except (TypeError, ValueError):  # type aliases have none
        return ""


def first_line(value: Any) -> str:
    return (inspect.getdoc(value) or "").split("\n")[0]


def methods_page() -> str:
    """The table of methods, and what its columns mean."""
    from credit.methods.published import PUBLISHED
    from credit.methods.registry import METHODS, Method

    lines = [
        "# Methods",
        "",
        "Written by `python docs/generate.py` from `credit.METHODS`; `credit methods` prints the same, and",
        "`credit methods runs/` says which of them the logs at hand allow.",
        "",
        "| name | what it computes | unit | estimand | unbiased | scope | needs | cost | status | reference |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, m in METHODS.items():
        needs = ", ".join(f"`{n}`" for n in m.needs) or "-"
        unbiased = "yes" if m.unbiased else "no"
        lines.append(
            f"| `{name}` | {m.summary} | {m.unit} | {m.estimand} | {unbiased} | {m.scope} | {needs} | {m.cost} "
            f"| {m.status} | {m.reference} |"
        )
    lines += [
        "",
        "## Published names",
        "",
        "`--method` takes these names too. A method that no log allows says why, and which piece of it can be used.",
        "",
        "| published as | name | status | by | how sure, or why not | what can be used |",
        "|---|---|---|---|---|---|",
    ]
    for name, paper in PUBLISHED.items():
        by = f"`{paper.method}`" if paper.method else "-"
        options = ", ".join(f"`{key}={value}`" for key, value in paper.options.items())
        by += f" with {options}" if options else ""
        lines.append(f"| {paper.title} | `{name}` | {paper.status} | {by} | {paper.note} | {paper.portable or '-'} |")
    lines += ["", "## Columns", "", "```text", inspect.getdoc(Method) or "", "```", ""]
    assert dataclasses.is_dataclass(Method)
    return "\n".join(lines)


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
