"""`write_page`: findings as one HTML file. `served_page`: the same page, whose traces a server sends one at a time."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from credit.page.encoding import packed, script_json
from credit.page.findings import Findings
from credit.page.overview import overview
from credit.page.trace_view import TraceViews
from graphs.atomic import atomic_write
from graphs.errors import CreditError, expect
from graphs.text import counted, printable

__all__ = ["page", "served_page", "write_page"]

LARGEST = 2_000_000  # bytes of a file, beyond which traces are left out
EXCERPTS = (600, 160, 60, 0)  # lengths of excerpts of text, tried in turn until all traces fit
SCRIPTS = ("echarts.min.js", "format.js", "overview.js", "explorer.js", "labelling.js")


def write_page(
    findings: Findings,
    path: str | Path,
    *,
    title: str = "Credit report",
    watch: Callable[[Sequence[int]], Iterable[int]] = iter,
) -> list[str]:
    """Write a page that needs no network.

    The file has at most `LARGEST` bytes, unless the overview alone has more. To fit, excerpts of text are shortened
    first. Then the last traces are left out of the explorer; they remain in every table.

    Args:
      findings: what the page shows.
      path: of the HTML file; it appears whole or not at all.
      title: of the page.
      watch: wraps the iteration over traces, such as a bar of progress.

    Returns:
      The ids of the traces that the explorer holds.

    Raises:
      CreditError: `findings` is something else.
      OSError: the file cannot be written.

    Examples:
      >>> import credit, pathlib, tempfile
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> findings = Findings.of(rows.traces, {"rloo": credit.rloo(graph, reward)})
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     write_page(findings, pathlib.Path(folder, "page.html"))
      ['a', 'b']
    """
    expect("findings", findings, Findings, "what Findings.of returns")
    html, packed_traces = page(findings, title=title, watch=watch)
    with atomic_write(path) as file:
        file.write(html.encode())
    return packed_traces


def page(
    findings: Findings,
    *,
    title: str = "Credit report",
    watch: Callable[[Sequence[int]], Iterable[int]] = iter,
) -> tuple[str, list[str]]:
    """The HTML of a page, and the ids of the traces that its explorer holds."""
    head = {"title": printable(title, 200), "overview": overview(findings), "explorer": None}
    frame = _filled(head, [])
    room = LARGEST - len(frame.encode())
    views, count = _views(findings, room, EXCERPTS if findings.text else (0,), watch)
    ids = findings.traces.traces["trace"].to_pylist()[:count]
    head["explorer"] = {"held": count, "traces": findings.traces.sizes.traces}
    return _filled(head, views), ids


def served_page(findings: Findings, *, title: str = "Credit report", labelled: bool = False) -> str:
    """The HTML of a page whose traces are asked for at `trace/ROW` beside its own address.

    Args:
      findings: what the page shows.
      title: of the page.
      labelled: whether a person labels traces on it, through `labels` beside its own address.
    """
    number = findings.traces.sizes.traces
    explorer = {"held": number, "traces": number, "served": True, "labelled": labelled}
    head = {"title": printable(title, 200), "overview": overview(findings), "explorer": explorer}
    return _filled(head, [], served=True)


def _views(
    findings: Findings, room: int, excerpts: tuple[int, ...], watch: Callable[[Sequence[int]], Iterable[int]]
) -> tuple[list[str], int]:
    """As many traces as fit into `room` bytes, packed, with the longest excerpts with which all of these fit."""
    maker = TraceViews(findings)
    kept: list[dict[str, Any]] = []
    bare: list[str] = []  # packed without text, so that texts are looked for only where they may fit
    spent = 0
    for row in watch(range(findings.traces.sizes.traces)):
        view = maker.of(row, excerpt=0)
        kept.append(view)
        bare.append(packed(view))
        spent += len(bare[-1]) + 3
        if spent > room:
            del kept[-1], bare[-1]
            break
    texts: dict[int, list[str]] = {}
    for limit in excerpts:
        views, size = list(bare), sum(map(len, bare)) + 3 * len(bare) + 100
        for row, view in enumerate(kept if limit else ()):
            if size > room:
                break
            if row not in texts:
                texts[row] = maker.texts(row, excerpts[0])
            views[row] = packed(view | {"text": [printable(text, limit) for text in texts[row]] or None})
            size += len(views[row]) - len(bare[row])
        if size <= room:
            return views, len(views)
    # Without text all were too large by a part of the margin of 100 bytes: one trace less is small enough.
    return views[:-1], max(len(views) - 1, 0)


def _plain(overview: dict[str, Any], labelled: bool) -> str:
    """What failed, what changed and the first table, for a reader without JavaScript; nothing that sways a label."""
    commands = "<code>credit summary</code>, <code>credit metrics</code> and <code>credit costs</code>"
    rest = f"<p>The rest needs JavaScript, which the page carries with it; {commands} print it as text.</p>"
    if labelled:
        return rest
    unknown = "" if overview["corpus"]["with_outcome"] else "Which traces failed is not known: none has an outcome."
    failed = f"{overview['differences']['headline']} {unknown}".strip()
    read = f"{counted(overview['corpus']['traces'], 'trace')}, {counted(overview['corpus']['events'], 'event')}."
    said = {"What was read:": read, "What failed:": failed}
    if overview["sides"] is not None:
        said[f"What changed from {' to '.join(overview['sides']['heads'])}:"] = f"{overview['sides']['changed']}."
    said["Look first:"] = overview["triage"]["quiet"]
    lines = "".join(f"<p><b>{escape(name)}</b> {escape(text)}</p>" for name, text in said.items())
    columns = ("trace", "outcome", "event", "agent", "why")
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = ""
    for row in overview["triage"]["suspects"]:
        outcome = "–" if row["outcome"] is None else f"{row['outcome']:g}"
        cells = (escape(str((row | {"outcome": outcome})[name])) for name in columns)
        body += f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    return f"{lines}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _asset(name: str) -> str:
    return resources.files("credit.page").joinpath("assets", name).read_text(encoding="utf-8")


def _filled(head: dict[str, Any], views: list[str], *, served: bool = False) -> str:
    """The template with its scripts, whose hashes are the only ones that the page's policy lets run."""
    scripts = [_asset(name) for name in SCRIPTS]
    for name, script in zip(SCRIPTS, scripts, strict=True):
        if "</script" in script.lower():
            raise CreditError(f"{name} contains </script; expected a script that an HTML page can hold")
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src {hashes}"
    ) + ("; connect-src 'self'" if served else "")
    parts = {
        "TITLE": escape(head["title"]),
        "POLICY": policy,
        "STYLE": _asset("page.css"),
        "PLAIN": _plain(head["overview"], bool(head["explorer"] and head["explorer"].get("labelled"))),
        "DATA": script_json(head),
        "VIEWS": script_json(views),
        "SCRIPTS": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    pieces = _asset("page.html").split("@@")  # text, name, text, …, text; "@@" within data splits nothing
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))
