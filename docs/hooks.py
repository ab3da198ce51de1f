"""Tables that the site writes where a page has their marks: from METHODS and PUBLISHED, and from what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

METHODS_MARK = "<!-- methods -->"
PUBLISHED_MARK = "<!-- published -->"
CLUSTERS_MARK = "<!-- clusters -->"
CLUSTERS = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "clusters.json"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page by their tables."""
    if METHODS_MARK in markdown:
        markdown = markdown.replace(METHODS_MARK, methods_table())
    if PUBLISHED_MARK in markdown:
        markdown = markdown.replace(PUBLISHED_MARK, published_table())
    if CLUSTERS_MARK in markdown:
        markdown = markdown.replace(CLUSTERS_MARK, clusters_tables(CLUSTERS))
    return markdown


def methods_table() -> str:
    """Every method with its unit, estimand, promises, needs and source."""
    from credit.methods.registry import METHODS

    lines = [
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
    return "\n".join(lines)


def published_table() -> str:
    """Every published name, what computes it, and why a log does not allow it."""
    from credit.methods.published import PUBLISHED

    lines = [
        "| published as | name | status | computed by | evidence for that, or the reason | usable part |",
        "|---|---|---|---|---|---|",
    ]
    for name, paper in PUBLISHED.items():
        by = f"`{paper.method}`" if paper.method else "-"
        options = ", ".join(f"`{key}={value}`" for key, value in paper.options.items())
        by += f" with {options}" if options else ""
        lines.append(f"| {paper.title} | `{name}` | {paper.status} | {by} | {paper.note} | {paper.portable or '-'} |")
    return "\n".join(lines)


def clusters_tables(measured: Path) -> str:
    """What `benchmarks/clusters.py` measured; a sentence where it was not run."""
    if not measured.exists():
        return f"*Not measured yet: `benchmarks/results/{measured.name}` is not there.*"
    found = json.loads(measured.read_text())
    runs, model = found["runs"], found["model beside measured"]
    lines = [
        f"{found['bytes'] / 1e9:.2g} GB, {found['traces']:,} traces, parts of about {found['chunk events']:,} events; "
        f"{found['device']}; Ray {found['versions']['ray']}. Two workers: "
        f"**{found['two workers over one process']:.2f}×** one process. The load of the machine before each run is the "
        "last column.",
        "",
        "| | seconds | by the model | start-up | memory that a worker grew by | load |",
        "|---|---|---|---|---|---|",
    ]
    for name, run in runs.items():
        modelled = f"{model[name.split()[0]]['model']:.1f}" if name.split()[0] in model else ""
        start = f"{run['start-up']:.0f} s" if "start-up" in run else ""
        load = run["load of the machine before and after"][0][0]
        grown = f"{max(run['grown']) / 1e6:.0f} MB" if run["grown"] else ""
        lines.append(f"| {name} | {run['seconds']:.1f} | {modelled} | {start} | {grown} | {load:.1f} |")
    lines += ["", "| constant of the model | |", "|---|---|"]
    lines += [f"| {name} | {value:.3g} |" for name, value in found["constants"].items()]
    lines += ["", "| logs | workers that each do half of what one does alone | seconds that no more workers shorten |"]
    lines += ["|---|---|---|"]
    for name, row in found["where it stops scaling"].items():
        lines.append(f"| {name} | {row['workers at half efficiency']:,} | {row['least seconds']:.0f} |")
    return "\n".join(lines)
