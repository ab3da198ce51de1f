"""Arguments of another kind than a function's annotations state are refused by name and value.

`hints_of` reads the annotations of a function; a `Hint` says which values a parameter admits, in code and in words.
Two decorators use it: `checked_kinds` here, for public functions, and `estimators.options.checked_options` for methods,
which also checks bounds and makes arrays. Annotations are read as text. So names that are imported for type checkers
alone need not be imported, and `Array`, an alias of `Any`, keeps its name.

No library does this. beartype takes a string for a sequence of strings, and True for a number. It refuses a list for an
array, fails on names that are imported for type checkers alone, and words its errors itself.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import numbers
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from graphs.errors import ArrayTypeError, CreditError
from graphs.text import excerpt, near_names

__all__ = ["Hint", "checked_kinds", "hints_of", "is_number", "is_whole"]

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
    "Path": "the name of a file or folder",
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
"""What is expected, by the name of a kind. Of other names, only classes of this library and choices are checked."""


@dataclasses.dataclass(frozen=True)
class Hint:
    """The annotation of a parameter.

    Attributes:
      node: the annotation, parsed.
      names: the globals of its function, where aliases and classes are looked up.
    """

    node: ast.expr
    names: Mapping[str, Any]

    def admits(self, value: Any) -> bool:
        """Whether the annotation admits a value. Values and shapes are left to the function."""
        return _admits(self.node, value, self.names)

    def described(self) -> str:
        """The kinds that are admitted, in words for an error message."""
        return _described(self.node, self.names)

    @functools.cached_property
    def kinds(self) -> frozenset[str]:
        """The names of the kinds that a union joins: {"float", "Array"} of `float | Array`."""
        return frozenset(_name(part) or str(getattr(part, "value", "")) for part in _united(self.node))

    @functools.cached_property
    def optional(self) -> bool:
        """Whether None is admitted, by the annotation itself or by an alias in it."""
        values = [_value(part, self.names) for part in _united(self.node)]
        return "None" in self.kinds or any(type(None) in typing.get_args(value) for value in values)

    @functools.cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values listed by an annotation that consists of `Literal`s and perhaps None; empty for others."""
        listed = [_choices(part, self.names) for part in _united(self.node) if not _is_none(part)]
        return tuple(choice for choices in listed for choice in choices) if all(listed) else ()

    def refuse(self, name: str, value: Any, more: str = "") -> typing.NoReturn:
        """Raise the error of an argument that is not admitted; `more` follows the expected kinds.

        Raises:
          ArrayTypeError: an array is expected.
          CreditError: anything else is expected.
        """
        words = self.described()
        kind = ArrayTypeError if words.startswith(_WORDS["Array"]) else CreditError
        raise kind(f"{name} is {excerpt(value)}, of type {type(value).__name__}; expected {words}{more}")


@functools.cache
def hints_of(function: Callable[..., Any]) -> Mapping[str, Hint]:
    """The annotations of a function's parameters by name, of `*args` too; none of `**kwargs` or of no expression."""
    names = getattr(inspect.unwrap(function), "__globals__", {})
    hints = {}
    for parameter in inspect.signature(function).parameters.values():
        hint = parameter.annotation
        if parameter.kind is parameter.VAR_KEYWORD or hint is parameter.empty:
            continue
        node = _parsed(hint if isinstance(hint, str) else inspect.formatannotation(hint))
        if node is not None:
            hints[parameter.name] = Hint(node, names)
    return types.MappingProxyType(hints)


def checked_kinds(*unchecked: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function so that it refuses arguments of another kind than their annotations state.

    Checked are the annotations that a `Hint` knows, also inside unions, lists and mappings. Values and shapes are left
    to the function. It keeps its signature, docstring and name.

    Args:
      unchecked: names of parameters that the function checks itself.

    Raises:
      TypeError: by the decorated function, where it has no such argument; the nearest is named.
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
      >>> head(["a", "b"], counts=1)
      Traceback (most recent call last):
          ...
      TypeError: head() got an unexpected keyword argument 'counts'. Did you mean count?
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        keywords = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
        ordered = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        several = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in () if any_keyword else kwargs.keys() - set(keywords):
                near = near_names(name, keywords, shown=1)
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}. {near}")
            hints = hints_of(function)  # at the first call, which keeps imports fast
            for name, value in (*zip(ordered, args, strict=False), *kwargs.items()):
                if name in hints and name not in unchecked and not hints[name].admits(value):
                    hints[name].refuse(name, value)
            for value in args[len(ordered) :] if several in hints else ():
                if not hints[several].admits(value):
                    hints[several].refuse(f"an argument of *{several}", value, "; several are arguments of their own")
            return function(*args, **kwargs)

        return checked

    return decorate


def _parsed(hint: str) -> ast.expr | None:
    try:
        return ast.parse(hint, mode="eval").body
    except SyntaxError:  # a class inside a function prints as `function.<locals>.Class`
        return None


def _united(node: ast.expr) -> list[ast.expr]:
    """The parts of `A | B | C`; the parser nests them to the left."""
    return [*_united(node.left), *_united(node.right)] if isinstance(node, ast.BinOp) else [node]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _name(node: ast.expr) -> str:
    """`Sequence` of `abc.Sequence[str]`: the last part of a dotted name without its subscript; "" of anything else."""
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _described(node: ast.expr, names: Mapping[str, Any]) -> str:
    if isinstance(node, ast.BinOp):
        parts = _united(node)
        if {"str", "Path"} <= {_name(part) for part in parts}:  # one thing to a reader: `Path` says it
            parts = [part for part in parts if _name(part) != "str"]
        return " or ".join(_described(part, names) for part in parts)
    if isinstance(node, ast.Constant):
        return str(node.value)
    name = _name(node)
    if isinstance(node, ast.Subscript) and name in ("Mapping", "dict") and isinstance(node.slice, ast.Tuple):
        return f"a mapping of {' to '.join(_plural(part, names) for part in node.slice.elts)}"
    if isinstance(node, ast.Subscript) and name in ("Sequence", "Iterable", "list", "tuple"):
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        return f"a list of {_plural(first, names)}"
    if name in _WORDS:
        return _WORDS[name]
    of_library = _class_of_library(node, names)
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}" if of_library else "a string"


def _plural(node: ast.expr, names: Mapping[str, Any]) -> str:
    many = {"str": "strings", "int": "integers", "float": "numbers", "Credit": "results of methods"}
    return many.get(_name(node)) or _described(node, names)


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
    if _choices(node, names):
        return value is None or isinstance(value, str)
    if name in _WORDS:  # by its name, since only type checkers may import the class
        return any(kind.__name__ == name for kind in type(value).__mro__)
    of_library = _class_of_library(node, names)
    return of_library is None or isinstance(value, of_library)


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


def _choices(node: ast.expr, names: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of `Literal[...]`, or of an alias of `Literal`s and None; empty for anything else."""
    if _name(node) == "Literal" and isinstance(node, ast.Subscript):
        listed = ast.literal_eval(node.slice)
        return listed if isinstance(listed, tuple) else (listed,)

    def choices_of(alias: Any) -> tuple[Any, ...]:
        if typing.get_origin(alias) is typing.Literal:
            return typing.get_args(alias)
        parts = [choices_of(part) for part in typing.get_args(alias) if part is not type(None)]
        return tuple(choice for part in parts for choice in part) if all(parts) else ()

    return choices_of(_value(node, names))


def _class_of_library(node: ast.expr, names: Mapping[str, Any]) -> type | None:
    """The class that an annotation names, if it is one of this library; those of others are left unchecked."""
    value = _value(node, names)
    home = getattr(value, "__module__", "").partition(".")[0]
    return value if isinstance(value, type) and home in ("graphs", "estimators", "credit") else None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a plain or dotted name stands for among the globals of a function; None of what is not imported."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    return getattr(_value(node.value, names), node.attr, None) if isinstance(node, ast.Attribute) else None


def _is_array(value: Any) -> bool:
    """Whether a value is an array of numbers of any library, or a list of numbers."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return str(getattr(value.dtype, "kind", "f")) in "biufV"  # V: bfloat16; PyTorch's types have no kind
    if not isinstance(value, list | tuple):
        return False
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:  # lists of unequal length
        return False


def is_whole(value: Any) -> bool:
    """Whether a value is one integer, of Python, NumPy or JAX; True and False are none."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return tuple(value.shape) == () and getattr(value.dtype, "kind", "") in ("i", "u")
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is one real number, of Python or of any library of arrays; True and False are none."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return tuple(value.shape) == () and _is_array(value) and getattr(value.dtype, "kind", "f") != "b"
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


_PLAIN: Mapping[str, Callable[[Any], bool]] = {
    "Any": lambda value: True,
    "Array": _is_array,
    "Callable": callable,
    "Literal": lambda value: isinstance(value, str),
    "Path": lambda value: isinstance(value, os.PathLike),
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "float": is_number,
    "int": is_whole,
    "str": lambda value: isinstance(value, str),
}
