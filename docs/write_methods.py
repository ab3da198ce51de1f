"""Write the table of methods and their picture from METHODS, the docstrings and the measured biases: `make pictures`.

    python docs/write_methods.py

`docs/hooks.py` adds a page for each method to the site. A method's formula is the indented part of its docstring, the
commit is in the docstring's reference.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import inspect
import io
import json
import re
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

from credit.bench.bias_table import from_lists
from credit.bench.rounding import rounded
from credit.methods.citations import NoPaperError, bibtex
from credit.methods.method_page import formula as formula_of
from credit.methods.method_page import plain_function
from credit.methods.method_row import Method
from credit.methods.published import PUBLISHED
from credit.methods.registry import METHODS
from graphs.keys import PARTS

HERE = Path(__file__).resolve().parent
TABLE, PICTURE, BOUNDS = HERE / "data" / "methods.csv", HERE / "keys.svg", HERE / "data" / "bounds.csv"
BIAS = HERE.parent / "benchmarks" / "results" / "bias.json"


def table() -> str:
    """Every method with what it compares, its estimand, its worst bias and cosine, as CSV; ordered by key."""
    worst = _worst()
    keys = dict.fromkeys(method.compared.key for method in METHODS.values())
    order = sorted(keys, key=lambda key: (not key, key.count(","), list(keys).index(key)))
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(("method", "key", "sample", "minus", "over", "estimand", "bias", "cosine"))
    for name, method in sorted(METHODS.items(), key=lambda row: order.index(row[1].compared.key)):
        writer.writerow((name, *method.compared, method.estimand, *worst.get(name, ("", ""))))
    return rows.getvalue()


def formula(method: Method) -> str:
    """The indented parts of a method's docstring that stand before its arguments."""
    return formula_of(_docstring(method))


def method_page(name: str) -> str:
    """A page of one method: formula, key, bias, bound, whose code, an example, its papers."""
    method, (bias, cosine) = METHODS[name], _worst().get(name, ("not enumerated", ""))
    compared = method.compared
    terms = {
        "compared by": compared.key or "no key",
        "sample": compared.population,
        "minus": compared.baseline,
        "over": compared.scale,
        "estimand": method.estimand,
        "scope": method.scope,
        "bias": f"[{bias}](../bias.md)",
        "cosine": cosine,
        "needs": ", ".join(f"`{need}`" for need in method.needs),
        "largest size of an advantage": _bound(name, method),
        method.status: f"{method.reference}{_commits(method)}",
        "also published as": ", ".join(f"`{key}`" for key, by in PUBLISHED.items() if by.method == name != key),
    }
    table = ["| property | value |", "|---|---|", *(f"| {term} | {text} |" for term, text in terms.items() if text)]
    example = _docstring(method).partition("\nExamples:\n")[2]
    example = re.sub(rf"(?<![\w.])(?={name}\()", "credit.", example)  # a docstring's example stands beside its function
    parts = [f"# {name}", f"{method.summary[0].upper()}{method.summary[1:]}.", f"```text\n{formula(method)}\n```"]
    parts += ["\n".join(table), f"```pycon\n{textwrap.dedent(example).strip()}\n```"]
    with contextlib.suppress(NoPaperError):
        parts.append(f"```bibtex\n{bibtex(name)}\n```")
    return "\n\n".join([*parts, "[All methods](../methods.md)"]) + "\n"


def _bound(name: str, method: Method) -> str:
    stated = re.search(r"(?:[^.]|\.(?=\d))*[Nn]o\s+\|?A\|?\s+exceeds(?:[^.]|\.(?=\d))*\.", _docstring(method))
    if name in _bounded_by_laws():
        return "in the [table of bounds](../laws.md#how-large-an-advantage-can-be)"
    if stated is None:
        return "" if method.compared.scale else "no bound of its own, since it divides by nothing"
    return re.sub(r", however little [\w ]+ differ", "", " ".join(stated[0].split())).replace("|", "\\|")


def _commits(method: Method) -> str:
    commits = re.findall(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7}\b", _docstring(method).partition("\nReference:")[2])
    return f", {', '.join(dict.fromkeys(commits))}" if commits else ""


@functools.cache
def _bounded_by_laws() -> frozenset[str]:
    """Methods whose bound stands in the table of the page about laws."""
    _, *rows = csv.reader(BOUNDS.read_text(encoding="utf-8").splitlines())
    return frozenset(re.findall(r"`(\w+)`", "".join(names for names, *_ in rows)))


def _docstring(method: Method) -> str:
    return inspect.getdoc(plain_function(method.fn)) or ""


@functools.cache
def _worst() -> dict[str, tuple[str, str]]:
    """The worst bias and the worst cosine of each method over the worlds and sizes that were measured."""
    found: dict[str, tuple[float, float]] = {}
    for row in from_lists(json.loads(BIAS.read_text(encoding="utf-8"))["rows"]):
        bias, cosine = found.get(row.method, (0.0, 1.0))
        found[row.method] = max(bias, row.bias), min(cosine, row.cosine)  # a cosine that is NaN is none
    return {name: ("0" if bias < 1e-9 else f"{bias:.2g}", rounded(cosine)) for name, (bias, cosine) in found.items()}


WIDTH, LINE, STEP, LETTER = 860, 19, 26, 6.7


def picture() -> str:
    """The keys as a tree: a part of a key below those that stand before it, and the methods beside it."""
    tree: dict[str, list[str]] = {}
    for name, method in METHODS.items():
        parts = method.compared.key.split(", ") if method.compared.key else []
        for depth in range(1, len(parts) + 1):
            tree.setdefault(", ".join(parts[:depth]), [])
        if parts:
            tree[", ".join(parts)].append(name)
    for part in PARTS:  # keys that no method has by default
        if not any(part in key.split(", ") for key in tree) and part != "key":
            tree.setdefault(f"task, {part}", [])
    lines: list[str] = []
    y = LINE
    at: dict[str, int] = {}
    for key in _in_order(tree):
        depth, part = key.count(","), key.split(", ")[-1]
        x = 12 + STEP * depth
        at[key] = y
        if depth:
            above = at[key.rpartition(", ")[0]]
            lines.append(f'<path d="M{x - 16} {above + 6}V{y - 4}H{x - 4}"/>')
        biased = part in PARTS and PARTS[part].decided == "by the action"
        note = f"(none by default) {PARTS[part].meaning if part in PARTS else ''}"
        note += ": the action decides it, which biases" if biased else ""
        lines.append(f'<text x="{x}" y="{y}" class="{"bad" if biased else "key"}">{escape(part)}</text>')
        for words in _wrapped(", ".join(tree[key]) or note, int((WIDTH - 190) / LETTER)):
            lines.append(f'<text x="180" y="{y}">{escape(words)}</text>')
            y += LINE
    style = "text{font:13px sans-serif;fill:#444}.key{font-weight:bold;fill:#1f5fa8}.bad{font-weight:bold;fill:#b3402a}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img">'
    body = "\n".join(
        [f"<style>{style}path{{fill:none;stroke:#bbb}}</style>", '<rect width="100%" height="100%" fill="#fff"/>']
    )
    return (
        "\n".join([head, "<title>Comparison keys and the methods that use them</title>", body, *lines, "</svg>"]) + "\n"
    )


def _in_order(tree: dict[str, list[str]], above: str = "") -> Iterator[str]:
    """The keys below another one, each followed by those below it."""
    for key in tree:
        if key.rpartition(", ")[0] == above:
            yield key
            yield from _in_order(tree, key)


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")
