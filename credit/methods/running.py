"""Arguments of a method from the command line and the log: options by its signature, evidence by name."""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from credit.methods.published import find_method
from graphs.errors import CreditError
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

if TYPE_CHECKING:
    from credit.methods.registry import Method
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["evidence_for", "missing_evidence", "options_of", "parse_options", "run_method"]

EVIDENCE = {**EVENT_EVIDENCE, **TRACE_EVIDENCE}


def options_of(method: Method) -> dict[str, Any]:
    """Annotations of a method's keyword arguments that a text can be: what `--option` can set. Arrays cannot."""
    hints = typing.get_type_hints(_function(method.fn))
    options = {}
    for name in _keywords(method):
        choices, kinds = _alternatives(hints[name])
        if name not in EVIDENCE and name not in method.needs and (choices or kinds & {bool, int, float, str}):
            options[name] = hints[name]
    return options


def _keywords(method: Method) -> list[str]:
    parameters = inspect.signature(method.fn).parameters
    return [name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def parse_options(name: str, given: Iterable[str]) -> dict[str, Any]:
    """`KEY=VALUE` texts as arguments of the method `name`, each of the type that its signature says.

    Raises:
      CreditError: no such option, a value of the wrong type, or an option given twice.
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
        options[key] = _convert(f"option {key!r} of {name!r}", value, known[key], key)
    return options


def missing_evidence(traces: Traces, method: Method) -> dict[str, str]:
    """Evidence that a method needs and the log lacks altogether, each with how to log it."""
    return _lacking(traces, method.needs)


def _lacking(traces: Traces, needs: Iterable[str]) -> dict[str, str]:
    lacking = [need for need in needs if need not in traces.evidence or not traces.evidence[need].mask.any()]
    return {need: EVIDENCE[need].how_to_log if need in EVIDENCE else "see the method's page" for need in lacking}


def evidence_for(
    traces: Traces, name: str, method: Method, also: Iterable[str] = (), given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The evidence arguments of a method: what it needs, what is asked for, and event rewards where the log has them.

    `given` is evidence from elsewhere, such as a critic's; what the method takes of it replaces the log's.

    Raises:
      CreditError: the log lacks evidence that the method needs or that was asked for, with how to log it; or the method
        does not take what was asked for.
    """
    takes = [keyword for keyword in _keywords(method) if keyword in EVIDENCE]
    for asked in also:
        if asked not in takes:
            raise CreditError(f"method {name!r} takes no evidence {asked!r}; it takes: {', '.join(takes) or 'none'}")
    given = {n: values for n, values in (given or {}).items() if n in _keywords(method)}
    wanted = dict.fromkeys(n for n in (*method.needs, *also) if n not in given)
    lacking = _lacking(traces, wanted)
    if lacking:
        how = "; ".join(f"{need!r}: {text}" for need, text in lacking.items())
        raise CreditError(f"method {name!r} needs evidence that the log does not have. {how}")
    names = [*wanted, *(["event_reward"] if "event_reward" in traces.evidence else [])]
    logged = {n: traces.evidence[n].array for n in dict.fromkeys(names)}
    return {**logged, **given}


def run_method(
    traces: Traces,
    name: str,
    given: Iterable[str] = (),
    also: Iterable[str] = (),
    evidence: Mapping[str, Any] | None = None,
) -> Credit:
    """Compute a method on what was read, with options and evidence; `evidence` is what does not come from the log.

    Raises:
      CreditError: unknown method or option, an option's value that the method refuses, missing evidence.
    """
    method, options = find_method(name), parse_options(name, given)
    arrays = evidence_for(traces, name, method, also, evidence)
    try:
        return method.fn(traces.graph, traces.reward, **arrays, **options)
    except ValueError as error:
        if not options:
            raise
        raise CreditError(f"method {name!r} refuses its options: {error}") from error


def _function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The plain function under partial applications and jit, which carries the annotations."""
    while hasattr(fn, "func") or hasattr(fn, "__wrapped__"):
        fn = getattr(fn, "func", None) or fn.__wrapped__  # type: ignore[attr-defined]
    return fn


def _convert(what: str, text: str, hint: Any, key: str = "") -> Any:
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
                raise CreditError(f"{what} is {text!r}; expected a finite number that the arithmetic can hold")
            low, high, words = _BOUNDS.get(key, (-math.inf, math.inf, ""))
            if not low <= number <= high:
                raise CreditError(f"{what} is {text!r}; expected {words}")
            return number
    if str in kinds:
        return text
    expected = [repr(c) for c in choices] + [_WORDS[kind] for kind in _WORDS if kind in kinds]
    raise CreditError(f"{what} is {text!r}; expected {' or '.join(expected)}")


_FRACTION = (0, 1, "a number from 0 to 1")
_BOUNDS: dict[str, tuple[float, float, str]] = {
    **dict.fromkeys(("decay", "discount", "lambda_", "min_ess_fraction", "mix"), _FRACTION),
    **dict.fromkeys(("eps", "min_ess"), (0, math.inf, "a number that is not negative")),
    "ddof": (0, 1, "0 or 1"),
}
"""What an option of a name can be, whichever method takes it; the others take any number."""

_LARGEST: dict[type, float] = {int: 2**31 - 1, float: 3e38}  # of int32 and float32

_WORDS: dict[type, str] = {type(None): "none", bool: "true or false", int: "an integer", float: "a number"}


def _alternatives(hint: Any) -> tuple[list[Any], set[type]]:
    """Literal choices, and types, of an annotation; an array counts as the number it may stand for."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return list(typing.get_args(hint)), set()
    if origin in (typing.Union, types.UnionType):
        parts = [_alternatives(part) for part in typing.get_args(hint)]
        return [c for choices, _ in parts for c in choices], set().union(*(kinds for _, kinds in parts))
    return [], {hint} if isinstance(hint, type) and hint is not Any else set()
