"""The arguments of methods: which values each may take, checked in one place before any array is touched.

A method is decorated with `checked_options`. Its keyword arguments are then compared with `BOUNDS`, by name, and with
the choices that its annotations list. Its arrays are checked against their annotation and, where they are evidence of
the trace schema, against the sizes of the batch. Numbers that `jax.jit` or `jax.vmap` trace pass unchecked; their
shapes are checked.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from estimators.compared_ids import numbered, refuse_wide
from graphs.errors import ArrayTypeError, CreditError
from graphs.event_graph import EventGraph
from graphs.text import excerpt
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["BOUNDS", "Bound", "check_arguments", "checked_options", "refuse_option"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class Bound:
    """The values that a numeric option may take.

    Attributes:
      low, high: the closed interval.
      words: the same for people, after "expected".
      whole: whether only integers are allowed.

    Examples:
      >>> Bound(0, 1, "a number from 0 to 1").holds(0.5)
      True
    """

    low: float
    high: float
    words: str
    whole: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a number, or every number of an array, lies within the bound; NaN never does."""
        try:
            numbers = np.asarray(value)
        except ValueError:  # lists of unequal length
            return False
        if numbers.dtype.kind not in "biuf" and not _is_extended_float(numbers.dtype):
            return False
        numbers = numbers.astype(np.float64)
        within = (numbers >= self.low) & (numbers <= self.high)
        return bool(np.all(within & (numbers == np.round(numbers)) if self.whole else within))


_FRACTION = Bound(0, 1, "a number from 0 to 1")
_NOT_NEGATIVE = Bound(0, float(np.finfo(np.float32).max), "a finite number that is not negative")

BOUNDS: Mapping[str, Bound] = {
    "ddof": Bound(0, 1, "0 or 1", whole=True),
    "decay": _FRACTION,
    "discount": _FRACTION,
    "eps": _NOT_NEGATIVE,
    "lambda_": _FRACTION,
    "max_steps": Bound(1, 2**31 - 1, "a positive integer", whole=True),
    "min_ess": _NOT_NEGATIVE,
    "min_ess_fraction": _FRACTION,
    "mix": _FRACTION,
    "unseen": _FRACTION,
}
"""The bound of each numeric option, by name; an option means the same in every method that takes it."""


def checked_options(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method so that it refuses arguments that it cannot take, by name, value and what was expected.

    Refused are options outside their bounds or outside the choices of their annotation, arguments of another type than
    their annotation, evidence that has not one entry for each event or trace, and integers beyond 32 bits. Ids beyond
    32 bits are numbered instead. Lists of numbers and arrays of other libraries become NumPy arrays. Arguments with
    another annotation pass unchecked, but for `BOUNDS`.

    The decorator goes above `jax.jit`, which would hide the values. Signature, docstring and name stay the method's.

    Raises:
      ArrayTypeError: by the decorated method, where an argument is no array of numbers; a CreditError and a TypeError.
      CreditError: by the decorated method, where an option has a value, or an array a shape, that it cannot take.

    Examples:
      >>> from estimators import grpo
      >>> grpo(None, None, ddof=-3)
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: grpo: ddof is -3; expected 0 or 1
    """

    names = tuple(inspect.signature(method).parameters)

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for option, value in kwargs.items():
            _check(method, option, value)
        given = dict(zip(names, args, strict=False)) | kwargs
        kinds = _kinds(method)
        graph = given.get("graph")
        for name, value in given.items():
            if name in kinds:
                given[name] = kinds[name].check(_name(method), name, value)
                if isinstance(graph, EventGraph) and kinds[name].array and value is not None:
                    _check_shape(_name(method), graph, name, given[name])
                if kinds[name].array:
                    given[name] = _in_32_bits(_name(method), name, given[name])
        positional = [given[name] for name, _ in zip(names, args, strict=False)]
        checked_method: Callable[..., R] = method
        return checked_method(*positional, *args[len(names) :], **{name: given[name] for name in kwargs})

    return checked


def check_arguments(method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that a decorated method would refuse, before there is a batch to give it.

    Shapes are left to the method.

    Raises:
      ArrayTypeError, CreditError: as the method.

    Examples:
      >>> from estimators import grpo
      >>> check_arguments(grpo, {"ddof": -3})
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: grpo: ddof is -3; expected 0 or 1
    """
    for name, value in arguments.items():
        _check(method, name, value)
        if name in _kinds(method):
            _kinds(method)[name].check(_name(method), name, value)


def refuse_option(method: str, option: str, value: object, expected: str) -> typing.NoReturn:
    """Raise the error of an option's value, in one form for Python and the command line.

    Raises:
      CreditError: always.
    """
    raise CreditError(f"{method}: {option} is {excerpt(value)}; expected {expected}")


def _check(method: Callable[..., Any], option: str, value: Any) -> None:
    choices = _choices(method).get(option)
    if value is None and choices is not None and type(None) not in typing.get_args(_hints(method)[option]):
        refuse_option(_name(method), option, value, " or ".join(map(repr, choices)))
    if value is None or isinstance(value, jax.core.Tracer):
        return
    if choices is not None:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            refuse_option(_name(method), option, value, " or ".join(map(repr, choices)))
    elif isinstance(value, float | np.floating) and np.isnan(value):
        refuse_option(_name(method), option, value, "a number")
    elif option in BOUNDS and not BOUNDS[option].holds(value):
        refuse_option(_name(method), option, value, BOUNDS[option].words)


_BY_KEY = frozenset({"initial"})
"""Numbers that may also be an array, one for each key, whose length the method checks."""


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What the annotation of a parameter admits: a type of its own, an array, a number, or None."""

    types: tuple[type, ...]
    array: bool
    number: bool
    optional: bool

    def check(self, method: str, name: str, value: Any) -> Any:
        """The value, as an array where it is one; raises where the annotation does not admit it."""
        if isinstance(value, jax.core.Tracer) or (value is None and self.optional):
            return value
        if self.number:
            if BOUNDS.get(name) is not None:  # compared already, but for None and for arrays
                words = BOUNDS[name].words
            else:
                words = "an integer" if int in self.types and float not in self.types else "a number"
            if name in _BY_KEY and isinstance(value, jax.Array | np.ndarray) and np.ndim(value) == 1:
                return _as_array(method, name, value)
            if not _is_number(value):
                refuse_option(method, name, value, words)
        elif self.array:
            return _as_array(method, name, value)
        elif bool in self.types:
            if not isinstance(value, bool | np.bool_):
                refuse_option(method, name, value, "True or False")
        elif not isinstance(value, self.types):
            jax.tree_util.tree_leaves(value)  # where `Traces` came in place of its graph, this says so
            words = " or ".join("a string" if kind is str else _with_article(kind.__name__) for kind in self.types)
            raise CreditError(f"{method}: {name} is {excerpt(value)}, of type {type(value).__name__}; expected {words}")
        return value


@functools.cache
def _kinds(method: Callable[..., Any]) -> dict[str, _Kind]:
    """What each parameter admits; none of those whose annotation states nothing that can be checked."""
    kinds = {}
    for name, parameter in inspect.signature(method).parameters.items():
        hint = _hints(method).get(name, Any)
        text = parameter.annotation if isinstance(parameter.annotation, str) else ""
        parts = [part.strip() for part in text.split("|")]
        array, number = "Array" in parts, bool({"float", "int"} & set(parts))
        types = tuple(part for part in typing.get_args(hint) or (hint,) if isinstance(part, type) and _is_own(part))
        if number:
            types = tuple(kind for kind, word in ((float, "float"), (int, "int")) if word in parts)
        if array or types:
            kinds[name] = _Kind(types, array, number, "None" in parts)
    return kinds


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _is_own(kind: type) -> bool:
    """Whether an annotation is checked: a type of this library, text or a truth value."""
    return kind in (bool, str) or kind.__module__.partition(".")[0] in ("estimators", "graphs")


def _is_number(value: Any) -> bool:
    """Whether a value is one real number, of Python, NumPy or JAX."""
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, int | float):
        return True
    dtype = getattr(value, "dtype", None)
    if dtype is None or np.shape(value) != ():
        return False
    return dtype.kind in "iuf" or _is_extended_float(dtype)


def _as_array(method: str, name: str, value: Any) -> Any:
    """An array of booleans, integers or floats, of whatever library; lists become NumPy arrays."""
    wrong = f"{method}: {name} is {excerpt(value)}, of type {type(value).__name__}; expected an array of floats"
    if name in EVENT_EVIDENCE | TRACE_EVIDENCE and (EVENT_EVIDENCE | TRACE_EVIDENCE)[name].kind != "float":
        wrong = wrong.removesuffix("floats") + "integers"
    if not isinstance(value, jax.Array | np.ndarray):
        if value is None or isinstance(value, str | bytes | Mapping | set):
            raise ArrayTypeError(wrong)
        jax.tree_util.tree_leaves(value)  # where `Traces` came in place of its reward, this says so
        try:
            value = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ArrayTypeError(f"{wrong} ({error})") from error
    if value.dtype.kind not in "biuf" and not _is_extended_float(value.dtype):
        raise ArrayTypeError(
            wrong if value.dtype.kind == "O" else f"{method}: {name} has dtype {value.dtype}; expected numbers"
        )
    return value


_PER_EVENT = frozenset(EVENT_EVIDENCE) | {"correct", "leaf", "row_reward", "value_after", "value_stderr"}
_PER_TRACE = frozenset(TRACE_EVIDENCE) | {"bootstrap", "reward"}


def _check_shape(method: str, graph: EventGraph, name: str, value: Any) -> None:
    """Refuse an array that has not one entry for each event, or for each trace."""
    for names, size, each in ((_PER_EVENT, graph.num_events, "event"), (_PER_TRACE, graph.num_traces, "trace")):
        if name in names and np.shape(value) != (size,):
            raise CreditError(
                f"{method}: {name} has shape {np.shape(value)}; expected ({size},), one entry for each {each}"
            )


_COMPARED = frozenset(
    name for name, key in (EVENT_EVIDENCE | TRACE_EVIDENCE).items() if key.kind == "id" or name in ("env_step", "stage")
)
"""Evidence of which methods ask only whether, and in which order, it is equal."""


def _in_32_bits(method: str, name: str, value: Any) -> Any:
    """An array as JAX may take it: wide ids are numbered, other integers that JAX would cut are refused."""
    if name in _COMPARED:
        return numbered(value)
    refuse_wide(f"{method}: {name}", value)
    return value


@functools.cache
def _hints(method: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function; none where they name what cannot be resolved."""
    try:
        return typing.get_type_hints(inspect.unwrap(method))
    except (NameError, TypeError):
        return {}


@functools.cache
def _choices(method: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """The options of a method whose annotation is a list of choices, perhaps with None."""
    choices = {}
    for name, hint in _hints(method).items():
        parts = typing.get_args(hint) if typing.get_origin(hint) is not typing.Literal else (hint,)
        literals = [part for part in parts if typing.get_origin(part) is typing.Literal]
        if literals and all(part in literals or part is type(None) for part in parts):
            choices[name] = tuple(choice for part in literals for choice in typing.get_args(part))
    return choices


def _name(method: Callable[..., Any]) -> str:
    return getattr(inspect.unwrap(method), "__name__", "method")


def _is_extended_float(dtype: np.dtype[Any]) -> bool:
    """Whether a type is one of JAX's own floats, such as bfloat16, which NumPy counts as no number."""
    return bool(jax.numpy.issubdtype(dtype, np.floating))
