"""`write_page`: findings as one HTML file. `served_page`: the same page, whose traces a server sends one at a time."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from credit.page.encoding import packed, script_json
from credit.page.findings import Findings
from credit.page.label_order import label_order
from credit.page.overview import overview
from credit.page.trace_view import TraceViews
from credit.reports.verdict_channels import people_judged
from graphs.atomic import atomic_write
from graphs.errors import CreditError, expect
from graphs.text import counted, printable
from graphs.traces.batch import Traces

__all__ = ["page", "served_page", "write_page"]

LARGEST = 2_000_000  # bytes of a file, beyond which traces are left out
ROOM = 500_000  # bytes that traces have, however many the tables of all traces take
EXCERPTS = (600, 160, 60, 0)  # lengths of excerpts of text, tried in turn until all traces fit
NAMED = 160  # length of those of traces to look at first: who is sent to an event wants to read it
BESIDE = 11  # bytes at most of a trace beside its own: quotes, commas and the number of its row
SCRIPTS = ("echarts.min.js", "format.js", "overview.js", "explorer.js", "labelling.js")


def write_page(
    findings: Findings,
    path: str | Path,
    *,
    title: str = "Credit report",
    inputs: Sequence[str] = ("LOGS",),
    watch: Callable[[Sequence[int]], Iterable[int]] = iter,
) -> list[str]:
    """Write a page that needs no network.

    The file has at most `LARGEST` bytes, unless its tables leave less than `ROOM` to its traces: these then have that.
    To fit, excerpts of text are shortened first. Then traces are left out of the explorer; they remain in every table.
    Those that the triage names are left out last, others of their groups before these.

    Args:
      findings: what the page shows.
      path: of the HTML file; it appears whole or not at all.
      title: of the page.
      inputs: paths and options of `credit show`, for the command that stands in place of a trace that is left out.
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
    html, packed_traces = page(findings, title=title, inputs=inputs, watch=watch)
    with atomic_write(path) as file:
        file.write(html.encode())
    return packed_traces


def page(
    findings: Findings,
    *,
    title: str = "Credit report",
    inputs: Sequence[str] = ("LOGS",),
    watch: Callable[[Sequence[int]], Iterable[int]] = iter,
) -> tuple[str, list[str]]:
    """The HTML of a page, and the ids of the traces that its explorer holds.

    Args:
      findings: what the page shows.
      title: of the page.
      inputs: the logs, as its commands name them.
      watch: goes over the traces, such as a progress bar.
    """
    show = printable(shlex.join(["credit", "show", *inputs]), 4000)
    explorer: dict[str, Any] = {"held": [], "show": show}
    told = overview(findings)
    head = {"title": printable(title, 200), "overview": told, "explorer": explorer}
    room = max(LARGEST - len(_filled(head, []).encode()), ROOM)
    named = [one["trace"] for one in (*told["triage"]["endings"], *told["triage"]["suspects"])]
    named.insert(0, told["differences"]["example"][1])
    rows, first = _in_order(findings.traces, [one["trace"] for one in told["traces"]], named)
    views = _views(findings, room, EXCERPTS if findings.text else (0,), rows, first, watch)
    explorer["held"] = sorted(views)
    ids = findings.traces.traces["trace"].to_pylist()
    return _filled(head, [views[row] for row in explorer["held"]]), [ids[row] for row in explorer["held"]]


def served_page(findings: Findings, *, title: str = "Credit report", labelled: bool = False) -> str:
    """The HTML of a page whose traces are asked for at `trace/ROW` beside its own address.

    Args:
      findings: what the page shows.
      title: of the page.
      labelled: whether a person labels traces on it, through `labels` beside its own address.
    """
    held = list(range(findings.traces.sizes.traces))
    explorer: dict[str, Any] = {"held": held, "served": True, "labelled": labelled}
    if labelled:
        explorer["order"] = label_order(findings.traces)
        explorer["judged"] = np.flatnonzero(people_judged(findings.traces)).tolist()
    head = {"title": printable(title, 200), "overview": overview(findings), "explorer": explorer}
    return _filled(head, [], served=True)


def _in_order(traces: Traces, ids: list[str], named: list[str]) -> tuple[list[int], int]:
    """All rows, those of named traces first, then others of their groups to compare with; and how many are named."""
    place = {name: i for i, name in reversed([*enumerate(named)])}
    group = np.asarray(traces.graph.group_ids)[: len(ids)]
    first = sorted((row for row, name in enumerate(ids) if name in place), key=lambda row: place[ids[row]])
    rest = np.setdiff1d(np.arange(len(ids)), first)
    beside = np.isin(group[rest], group[first])
    return [*first, *rest[beside].tolist(), *rest[~beside].tolist()], len(first)


def _views(
    findings: Findings,
    room: int,
    excerpts: tuple[int, ...],
    rows: list[int],
    first: int,
    watch: Callable[[Sequence[int]], Iterable[int]],
) -> dict[int, str]:
    """As many traces as fit into `room` bytes, by row, packed, with the longest excerpts with which all of these fit.

    The first of `rows` are those to look at first.
    """
    maker = TraceViews(findings)
    kept: dict[int, dict[str, Any]] = {}
    texts: dict[int, list[str]] = {}
    tasks: dict[int, list[str]] = {}
    short: dict[int, str] = {}  # packed with the shortest excerpts, so that texts are looked for where they may fit
    left = room

    def worded(row: int, limit: int) -> dict[str, Any]:
        if row not in texts:
            texts[row], tasks[row] = maker.texts(row, excerpts[0]), maker.task(row, excerpts[0])
        said, task = ([printable(text, limit) for text in of[row]] for of in (texts, tasks))
        return kept[row] | {"text": said or None, "task": task}

    def take(row: int, view: dict[str, Any]) -> bool:
        nonlocal left
        view_text = packed(view)
        more = len(view_text) - len(short[row]) if row in short else len(view_text) + BESIDE
        if more > left:
            return False
        kept[row], short[row], left = view, view_text, left - more
        return True

    waiting = iter(watch(rows))
    for row in itertools.islice(waiting, first):
        take(row, maker.of(row, excerpt=0))  # a long one that does not fit leaves room to the next
    for row in [*kept] if excerpts[0] else ():
        take(row, worded(row, NAMED))
    for row in waiting:
        if not take(row, maker.of(row, excerpt=0)):
            break
    for limit in excerpts:
        views, more = dict(short), 0
        for row, view in kept.items() if limit else ():
            if more > left:
                break
            if limit > NAMED or not view["text"]:
                views[row] = packed(worded(row, limit))
                more += len(views[row]) - len(short[row])
        if more <= left:
            break
    return views


def _plain(overview: dict[str, Any], labelled: bool) -> str:
    """What failed, what changed and the first table, for a reader without JavaScript; nothing that sways a label."""
    commands = "<code>credit summary</code>, <code>credit metrics</code> and <code>credit costs</code>"
    rest = f"<p>The rest needs JavaScript, which the page carries with it; {commands} print it as text.</p>"
    if labelled:
        return rest
    read = f"{counted(overview['corpus']['traces'], 'trace')}, {counted(overview['corpus']['events'], 'event')}."
    said: list[tuple[str, str | list[str]]] = [("What was read:", read)]
    for one in overview["findings"]:
        *lines, last = one["lines"]
        last = f"{last.removesuffix('.')} ({one['trace']})." if one["trace"] else last
        said.append((f"{one['name']}:", [*lines, last] if lines else last))
    _, differing = overview["differences"]["opening"]
    what, _, price = ((overview["sides"] or {}).get("paid") or overview["questions"]["paid"]).partition(": ")
    if overview["sides"] is not None:
        sides = overview["sides"]
        origins = [f"{one[0].upper()}{one[1:]}." for one in sides["origins"]]
        said += [("Where the changes come from:", origins)] if origins else []
        said += [("But:", sides["caveats"])] if sides["caveats"] else []
    said += [(f"{what.capitalize()}:", f"{price}.")] if price else []
    said += [(f"{overview['differences']['name']}:", differing)] if differing else []
    lines = "".join(f"<p><b>{escape(name)}</b>{_told(text)}" for name, text in said)
    columns = ("trace", "outcome", "event", "agent", "why")
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = ""
    for row in overview["triage"]["suspects"]:
        outcome = "–" if row["outcome"] is None else f"{row['outcome']:g}"
        cells = (escape(str((row | {"outcome": outcome})[name])) for name in columns)
        body += f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    return f"{lines}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _told(text: str | list[str]) -> str:
    """What ends a paragraph: its text, or a list below it."""
    if isinstance(text, str):
        return f" {_prose(text)}</p>"
    return f"</p><ul>{''.join(f'<li>{_prose(line)}</li>' for line in text)}</ul>"


def _prose(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


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
        "PLAIN": _plain(head["overview"], bool(head["explorer"].get("labelled"))),
        "DATA": script_json(head),
        "VIEWS": script_json(views),
        "SCRIPTS": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    pieces = _asset("page.html").split("@@")  # text, name, text, …, text; "@@" within data splits nothing
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))
