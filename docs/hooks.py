"""Tables that the site writes from the code: METHODS and PUBLISHED become rows where a page has their marks."""

from __future__ import annotations

from typing import Any

METHODS_MARK = "<!-- methods -->"
PUBLISHED_MARK = "<!-- published -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marks of a page by their tables."""
    if METHODS_MARK in markdown:
        markdown = markdown.replace(METHODS_MARK, methods_table())
    if PUBLISHED_MARK in markdown:
        markdown = markdown.replace(PUBLISHED_MARK, published_table())
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
