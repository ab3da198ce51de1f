"""A small HTML table for notebooks, with text from logs escaped."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from graphs.text import printable

__all__ = ["html_table"]

_CELL = "text-align:left;padding:2px 10px"


def html_table(
    title: str, facts: Mapping[str, object], rows: Sequence[Mapping[str, object]] = (), more: int = 0
) -> str:
    """A title, a line for each fact, and below them rows under a heading each, as HTML.

    Text is escaped, and control characters and marks that change the direction of writing are shown as such, so that
    text from a log can neither run nor rearrange the page.

    Args:
      title: what is shown.
      facts: names and values.
      rows: rows of a second table; the keys of the first are its headings.
      more: how many rows are left out, which is stated.

    Examples:
      >>> "<script>" in html_table("Traces", {"name": "<script>"})
      False
    """
    lines = [f"<tr><th style='{_CELL}'>{_text(name)}</th><td style='{_CELL}'>{_text(value)}</td></tr>"
             for name, value in facts.items()]  # fmt: skip
    tables = [f"<table><caption style='{_CELL}'>{_text(title)}</caption>{''.join(lines)}</table>"]
    if rows:
        head = "".join(f"<th style='{_CELL}'>{_text(name)}</th>" for name in rows[0])
        body = "".join(
            "<tr>" + "".join(f"<td style='{_CELL}'>{_text(value)}</td>" for value in row.values()) + "</tr>"
            for row in rows
        )
        tables.append(f"<table><tr>{head}</tr>{body}</table>")
    if more:
        tables.append(f"<p>… and {more} more</p>")
    return f"<div>{''.join(tables)}</div>"


def _text(value: object) -> str:
    return html.escape(printable(f"{value:.4g}" if isinstance(value, float) else str(value)))
