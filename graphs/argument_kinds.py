"""`checked_kinds`: public functions refuse arguments of another kind than their annotations state, by name and value.

Annotations are read as text, so that what only type checkers import need not be imported.
"""

from __future__ import annotations

import ast
import functools
import inspect
import numbers
import os
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from graphs.errors import ArrayTypeError, CreditError
from graphs.text import excerpt

__all__ = ["checked_kinds"]

P = ParamSpec("P")
R = TypeVar("R")

_WORDS = {
    "Any": "anything",
    "Array": "an array of numbers",
    "Callable": "a function",
    "Controls": "Controls",
    "Credit": "what a method returns",
    "EventGraph": "an EventGraph, as of credit.read(...).graph or credit.from_columns",
    "Iterable": "strings in a list",
    "Ledger": "what credit.compose returns",
    "Limits": "Limits",
    "Mapping": "a mapping",
    "Method": "an entry of METHODS",
    "Path": "a path",
    "Recursion": "a Recursion",
    "Rows": "the Rows of credit.from_columns",
    "Sequence": "a list",
    "Settings": "Settings",
    "Sizes": "Sizes",
    "Table": "an Arrow table",
    "Traces": "what credit.read returns",
    "bool": "True or False",
    "float": "a number",
    "int": "an integer",
    "str": "a string",
    "tuple": "a tuple",
}
"""What is expected, by the name of a kind; a name that is not here admits everything."""


def checked_kinds(*own: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function so that it refuses arguments of another kind than their annotations state.

    Checked are the annotations whose names are in a table of this module, also inside unions, lists and mappings.
    Values and shapes are the function's own to check. Signature, docstring and name stay the function's.

    Args:
      own: names of parameters that the function checks itself.

    Raises:
      ArrayTypeError: by the decorated function, where an argument is no array of numbers.
      CreditError: by the decorated function, where an argument is of another kind.

    Examples:
      >>> @checked_kinds()
      ... def head(names: list[str], count: int = 1) -> list[str]:
      ...     return names[:count]
      >>> head(["a", "b"])
      ['a']
      >>> head(["a", "b"], count="two")
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: count is 'two', of type str; expected an integer
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        ordered = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        hints = {
            p.name: p.annotation
            for p in parameters
            if isinstance(p.annotation, str) and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in own
        }

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for parameter, value in zip(ordered, args, strict=False):
                _check(parameter.name, value, hints.get(parameter.name, "Any"), function)
            for name, value in kwargs.items():
                _check(name, value, hints.get(name, "Any"), function)
            return function(*args, **kwargs)

        return checked

    return decorate


def _check(name: str, value: Any, hint: str, function: Callable[..., Any]) -> None:
    node = _parsed(hint)
    if _admits(node, value, getattr(function, "__globals__", {})):
        return
    words = _described(node)
    kind = ArrayTypeError if words.startswith(_WORDS["Array"]) else CreditError
    raise kind(f"{name} is {excerpt(value)}, of type {type(value).__name__}; expected {words}")


@functools.cache
def _parsed(hint: str) -> ast.expr:
    return ast.parse(hint, mode="eval").body


def _name(node: ast.expr) -> str:
    """The last part of a dotted name, of the origin where it is subscripted; "" of anything else."""
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _described(node: ast.expr) -> str:
    if isinstance(node, ast.BinOp):
        parts = [_described(node.left), _described(node.right)]
        return " or ".join(parts)
    if isinstance(node, ast.Constant):
        return str(node.value)
    name = _name(node)
    if isinstance(node, ast.Subscript) and name in ("Mapping", "dict") and isinstance(node.slice, ast.Tuple):
        return f"a mapping of {' to '.join(map(_plural, node.slice.elts))}"
    if isinstance(node, ast.Subscript) and name in ("Sequence", "Iterable", "list", "tuple"):
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        return f"a list of {_plural(first)}"
    return _WORDS.get(name, "a string")


def _plural(node: ast.expr) -> str:
    many = {"str": "strings", "int": "integers", "float": "numbers", "Credit": "results of methods"}
    return many.get(_name(node), _described(node))


def _admits(node: ast.expr, value: Any, names: Mapping[str, Any]) -> bool:
    if isinstance(node, ast.BinOp):
        return _admits(node.left, value, names) or _admits(node.right, value, names)
    if isinstance(node, ast.Constant):
        return value is node.value
    name = _name(node)
    if name in ("Mapping", "dict"):
        return isinstance(value, Mapping) and _parts_admitted(node, value, names)
    if name in ("Sequence", "Iterable", "list", "tuple"):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            return False
        return not isinstance(node, ast.Subscript) or _items_admitted(node, value, names)
    if name in _PLAIN:
        return _PLAIN[name](value)
    if _is_choice(names.get(name)):
        return value is None or isinstance(value, str)
    return name not in _WORDS or any(kind.__name__ == name for kind in type(value).__mro__)


def _parts_admitted(node: ast.expr, value: Mapping[Any, Any], names: Mapping[str, Any]) -> bool:
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return True
    key, item = node.slice.elts
    return all(_admits(key, k, names) and _admits(item, v, names) for k, v in value.items())


def _items_admitted(node: ast.Subscript, value: Iterable[Any], names: Mapping[str, Any]) -> bool:
    """Whether the items are of the right kind; an iterator is not consumed, and passes."""
    if not isinstance(value, Collection):
        return True
    if np.ndim(value) > 1:  # type: ignore[arg-type]
        return False
    of = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
    return all(_admits(of, item, names) for item in value)


def _is_choice(alias: Any) -> bool:
    """Whether an alias lists strings, with or without None."""
    if typing.get_origin(alias) is typing.Literal:
        return True
    parts = typing.get_args(alias)
    return bool(parts) and all(part is type(None) or _is_choice(part) for part in parts)


def _is_array(value: Any) -> bool:
    """Whether a value is an array of numbers of any library, or a list of numbers."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return str(getattr(value.dtype, "kind", "f")) in "biufV"
    if not isinstance(value, list | tuple):
        return False
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:  # lists of unequal length
        return False


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return tuple(value.shape) == () and _is_array(value)
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


_PLAIN: Mapping[str, Callable[[Any], bool]] = {
    "Any": lambda value: True,
    "Array": _is_array,
    "Callable": callable,
    "Literal": lambda value: isinstance(value, str),
    "Path": lambda value: isinstance(value, os.PathLike),
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "float": _is_number,
    "int": _is_whole,
    "str": lambda value: isinstance(value, str),
}
