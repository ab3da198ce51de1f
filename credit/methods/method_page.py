"""All facts about one method, as plain data, as `credit methods NAME` prints them."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from credit.methods.method_row import Method
from credit.methods.option_texts import options_of
from credit.methods.published import PUBLISHED, Published, find_method, home_of, key_of
from credit.methods.registry import METHODS
from credit.methods.running import EVIDENCE, keywords_of
from estimators.options import BOUNDS
from graphs.keys import By

__all__ = ["MethodPage", "formula", "method_page", "plain_function"]

SCOPES = {
    "trace": "nothing outside a trace changes its numbers",
    "group": "the rewards of its group change a trace's numbers",
    "batch": "all rewards of the batch change a trace's numbers",
    "sequence": "the rewards of earlier traces change a trace's numbers",
}


UNKNOWN_OF_OWN = {
    "estimand": "not known: the function declares it when it runs",
    "unit": "not known: the function declares it when it runs",
    "unbiased": "not known: `credit bench bias` computes it, where a world has its evidence",
    "scope": "not known: treated as a function of the whole batch",
}
"""Facts of your own function: the promises of `own_method` are what is safe to assume, and no findings."""


@dataclasses.dataclass(frozen=True)
class MethodPage:
    """One method.

    Attributes:
      name: its key in `METHODS`, or the published name that was asked for.
      method: its key in `METHODS`; "" for a published name that no log allows.
      facts: what it computes, promises and costs, in words.
      needs: evidence that it cannot do without, each with how to log it.
      takes: evidence that it can do without, each with what it means.
      options: each with its default and what it can be.
      published: names of papers that it computes, each with how sure that is; none of a published name.
      docstring: the documentation of the function that computes it.
    """

    name: str
    method: str
    facts: dict[str, str]
    needs: dict[str, str]
    takes: dict[str, str]
    options: dict[str, str]
    published: dict[str, str]
    docstring: str

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        return dataclasses.asdict(self)


def method_page(name: str) -> MethodPage:
    """The page of a method, or of a published name.

    Args:
      name: a key of `METHODS`, a name of `PUBLISHED`, or your own "module:function".

    Raises:
      CreditError: nothing has that name; the nearest names are in the message.

    Examples:
      >>> page = method_page("rloo")
      >>> page.facts["unbiased"], list(page.options)
      ('yes', ['by', 'population', 'singleton', 'filters'])
    """
    paper = None if name in METHODS or ":" in name else PUBLISHED.get(key_of(name))
    if paper is not None and paper.method is None:
        return _paper(key_of(name))
    method, home, own = find_method(name), home_of(name), ":" in name
    options = {name: _option(name, option.default, option.hint) for name, option in options_of(method).items()}
    others = [n for n in keywords_of(method.fn) if n in EVIDENCE and n not in method.needs]
    docstring = inspect.getdoc(plain_function(method.fn)) or ""
    return MethodPage(
        name=name,
        method=home,
        facts={
            **({"computes": method.summary} if paper is None else _published(home, paper, method, docstring)),
            **(UNKNOWN_OF_OWN if own else _promises(method)),
            "status": "your own function" if own else method.status,
            "reference": method.reference,
            "cost": "not known" if own else method.cost,
        },
        needs={n: EVIDENCE[n].how_to_log if n in EVIDENCE else "an argument from Python" for n in method.needs},
        takes={n: EVIDENCE[n].meaning for n in others},
        options=options,
        published={other.title: other.note for other in PUBLISHED.values() if other.method == home and paper is None},
        docstring=docstring,
    )


def _published(home: str, paper: Published, method: Method, docstring: str) -> dict[str, str]:
    """What a published name is: its title, its method with its options, the formula of that, and how sure that is."""
    options = ", ".join(f"{name}={_text(value)}" for name, value in paper.options.items())
    return {
        "published as": paper.title,
        "computes": f"{home} with {options}" if options else f"{home}: {method.summary}",
        "formula": f"of {home}: {formula(docstring)}" if formula(docstring) else f"see {home}",
        "note": paper.note,
    }


def formula(docstring: str) -> str:
    """The indented parts of a method's docstring that stand before its arguments.

    Examples:
      >>> formula("A mean.\\n\\n    A = R − μ\\n\\nArgs:\\n  graph: the batch.")
      'A = R − μ'
    """
    body = re.split(r"\n(?:Args|Returns):\n", docstring)[0]
    # A block is whole lines of four spaces or more behind a blank line; deeper lines belong to the same block.
    blocks = re.findall(r"\n\n((?: {4}.*\n?)+)", body)
    return "\n".join(line[4:].rstrip() for block in blocks for line in block.rstrip().split("\n"))


def _text(value: Any) -> str:
    """An option as a call on the command line states it."""
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _promises(method: Method) -> dict[str, str]:
    return {
        "estimand": method.estimand,
        "unit": f"{method.unit}: its events share one number",
        "unbiased": _unbiased(method),
        "scope": _scope(method),
    }


def _unbiased(method: Method) -> str:
    unbiased, why = method.unbiased_with({})
    open_answer = "with true values" if method.valued else "not known"
    answer = "yes" if unbiased else open_answer if unbiased is None else "no"
    return f"{answer}: {why}" if why else answer


def _paper(key: str) -> MethodPage:
    paper = PUBLISHED[key]
    facts = {"published as": paper.title, "status": paper.status, "note": paper.note, "usable part": paper.portable}
    if paper.function:
        facts["computed by"] = f"{paper.function} ({paper.kind})"
    needs = {n: EVIDENCE[n].how_to_log for n in paper.needs}
    return MethodPage(key, "", facts, needs, {}, {}, {}, "")


def _scope(method: Method) -> str:
    """The scope in words, with the options that change it."""
    changed = [f"with {option}, {scope}: {SCOPES[scope]}" for option, scope in method.scope_by_option.items()]
    return "; ".join([f"{method.scope}: {SCOPES[method.scope]}", *changed])


def _option(name: str, default: Any, hint: Any) -> str:
    allowed = BOUNDS[name].words if name in BOUNDS else _hint(hint)
    return f"default {default!r}; {allowed}"


def _hint(hint: Any) -> str:
    """An annotation in words: choices, or names of types."""
    import typing

    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    if hint == By:
        return "names of parts by commas or in a tuple, arrays of integers [E] among them"
    parts = typing.get_args(hint)
    if parts:  # an array is an argument from Python, and is `Any` where JAX is not imported
        kept = (part for part in parts if part is not Any and "Array" not in str(part) and "ndarray" not in str(part))
        return " or ".join(dict.fromkeys(map(_hint, kept)))
    return "None" if hint is type(None) else getattr(hint, "__name__", str(hint))


def plain_function(fn: Any) -> Any:
    """The function under partial applications and decorators, which has the docstring.

    Args:
      fn: of a method.
    """
    while hasattr(fn, "func"):
        fn = fn.func
    return inspect.unwrap(fn)
