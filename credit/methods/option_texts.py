"""Options of a method as texts, `KEY=VALUE`, converted to the types that its signature states."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from credit.methods.published import find_method
from credit.methods.running import EVIDENCE, keywords_of
from estimators.options import BOUNDS, refuse_option
from graphs.errors import CreditError

if TYPE_CHECKING:
    from credit.methods.registry import Method

__all__ = ["options_of", "parse_options"]

_LARGEST: dict[type, float] = {int: 2**31 - 1, float: 3e38}  # of int32 and float32

_WORDS: dict[type, str] = {type(None): "none", bool: "true or false", int: "an integer", float: "a number"}


def options_of(method: Method) -> dict[str, Any]:
    """The options of a method that a text can state, each with its annotation, else its default's type; no arrays."""
    fn = _function(method.fn)
    stated = typing.get_type_hints(fn)
    parameters = inspect.signature(fn).parameters
    hints = {name: stated.get(name, type(parameter.default)) for name, parameter in parameters.items()}
    options = {}
    for name in keywords_of(method.fn):
        choices, kinds = _alternatives(hints[name])
        if name not in EVIDENCE and name not in method.needs and (choices or kinds & {bool, int, float, str}):
            options[name] = hints[name]
    return options


def parse_options(name: str, given: Iterable[str]) -> dict[str, Any]:
    """`KEY=VALUE` texts as arguments of the method `name`.

    Raises:
      CreditError: no such option, a value of the wrong type or outside its bounds, or an option given twice.

    Examples:
      >>> parse_options("gae", ["lambda_=0.5"])
      {'lambda_': 0.5}
    """
    method = find_method(name)
    known = options_of(method)
    options: dict[str, Any] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign:
            raise CreditError(f"--option {text!r}; expected KEY=VALUE")
        if key not in known:
            takes = ", ".join(known) or "none"
            raise CreditError(f"method {name!r} has no option {key!r}; its options are: {takes}")
        if key in options:
            raise CreditError(f"--option {key} is given twice")
        options[key] = _convert(name, key, value, known[key])
    return options


def _convert(method: str, option: str, text: str, hint: Any) -> Any:
    """A text as the first of the hinted types that it can be read as: choices, None, bool, int, float, str."""
    choices, kinds = _alternatives(hint)
    for choice in choices:
        if text == str(choice):
            return choice
    if type(None) in kinds and text.lower() in ("none", "null"):
        return None
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        if kind in kinds:
            try:
                number = kind(text)
            except ValueError:
                continue
            if not abs(number) <= _LARGEST[kind]:
                refuse_option(method, option, text, "a finite number that the arithmetic can hold")
            if option in BOUNDS and not BOUNDS[option].holds(number):
                refuse_option(method, option, text, BOUNDS[option].words)
            return number
    if str in kinds:
        return text
    expected = [repr(c) for c in choices] + [_WORDS[kind] for kind in _WORDS if kind in kinds]
    return refuse_option(method, option, text, " or ".join(expected))


def _alternatives(hint: Any) -> tuple[list[Any], set[type]]:
    """Literal choices, and types, of an annotation; an array counts as the number it may stand for."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return list(typing.get_args(hint)), set()
    if origin in (typing.Union, types.UnionType):
        parts = [_alternatives(part) for part in typing.get_args(hint)]
        return [c for choices, _ in parts for c in choices], set().union(*(kinds for _, kinds in parts))
    return [], {hint} if isinstance(hint, type) and hint is not Any else set()


def _function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The plain function under partial applications and decorators, which carries the annotations."""
    while hasattr(fn, "func"):
        fn = fn.func
    plain: Callable[..., Any] = inspect.unwrap(fn)
    return plain
