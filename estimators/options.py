"""The arguments of methods: which values each may take, checked before any array is touched.

A method is decorated with `checked_options`. `graphs.argument_kinds` reads its annotations, as those of every public
function. Added here is what only methods have: bounds of numbers by name (`BOUNDS`), the choices that an annotation
lists, arrays of any library, and evidence of the trace schema, whose arrays must fit the batch. Numbers that `jax.jit`
or `jax.vmap` trace pass unchecked; their shapes are checked.
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

from estimators.base import Credit
from estimators.compared_ids import numbered, refuse_wide
from estimators.kept_functions import kept_compiled
from graphs.argument_kinds import Hint, hints_of, is_number, is_whole
from graphs.errors import ArrayTypeError, CreditError
from graphs.event_graph import Array, EventGraph
from graphs.keys import key_of
from graphs.text import excerpt
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = [
    "BOUNDS",
    "Bound",
    "check_arguments",
    "check_value",
    "checked_options",
    "refuse_option",
    "refuse_rewards_of_events",
    "refuse_traced",
    "takes_key",
]

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
    "divisor": Bound(1e-30, float(np.finfo(np.float32).max), "a finite positive number"),
    "eps": _NOT_NEGATIVE,
    "filter_ratio": _FRACTION,
    "input_weight": _NOT_NEGATIVE,
    "lambda_": _FRACTION,
    "lambda_high": _FRACTION,
    "max_steps": Bound(1, 2**31 - 1, "a positive integer", whole=True),
    "min_ess": _NOT_NEGATIVE,
    "min_ess_fraction": _FRACTION,
    "mix": _FRACTION,
    "output_weight": _NOT_NEGATIVE,
    "ridge": Bound(1e-30, float(np.finfo(np.float32).max), "a finite positive number"),
    "trust": _FRACTION,
    "turn_weight": _NOT_NEGATIVE,
    "unseen": _FRACTION,
}
"""The bound of each numeric option, by name; an option means the same in every method that takes it."""


def checked_options(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method so that it refuses arguments that it cannot take, by name, value and what was expected.

    Refused are options outside their bounds or outside the choices of their annotation, arguments of another type than
    their annotation, evidence that has not one entry for each event or trace, and integers beyond 32 bits. Ids beyond
    32 bits are numbered instead. Lists of numbers and arrays of other libraries become NumPy arrays. Arguments with
    another annotation pass unchecked, but for `BOUNDS`. The result tells whether rewards at events were passed.

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
    compiled = kept_compiled(method) if hasattr(method, "lower") else method

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for option, value in kwargs.items():
            check_value(method, option, value)
        arguments = dict(zip(names, args, strict=False)) | kwargs
        hints = hints_of(method)
        graph = arguments.get("graph")
        for name, value in arguments.items():
            if name not in hints:
                continue
            arguments[name] = _admitted(method, hints[name], name, value)
            if "Array" in hints[name].kinds:
                if isinstance(graph, EventGraph) and value is not None:
                    _check_shape(_name(method), graph, name, arguments[name])
                if name not in _COMPARED:
                    refuse_wide(f"{_name(method)}: {name}", arguments[name])
        if not _COMPARED.isdisjoint(arguments):
            arguments |= _numbered_evidence(arguments)
        positional = [arguments[name] for name, _ in zip(names, args, strict=False)]
        checked_method: Callable[..., Any] = compiled
        result = checked_method(*positional, *args[len(names) :], **{name: arguments[name] for name in kwargs})
        if isinstance(result, Credit) and "event_reward" in names:
            unpaid = all(arguments.get(name) is None for name in ("event_reward", "row_reward"))
            result = dataclasses.replace(result, unpaid=unpaid)
        return typing.cast(R, result)

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
        check_value(method, name, value)
        if name in hints_of(method):
            _admitted(method, hints_of(method)[name], name, value)


def takes_key(fn: Callable[..., Any]) -> bool:
    """Whether a method compares by a key of `graphs.keys`, as its annotation of `by` says.

    Examples:
      >>> from estimators import grpo, marshal
      >>> takes_key(grpo), takes_key(marshal)
      (True, False)
    """
    hint = hints_of(fn).get("by")
    return hint is not None and "By" in hint.kinds


def refuse_option(method: str, option: str, value: object, expected: str) -> typing.NoReturn:
    """Raise the error of an option's value, in one form for Python and the command line.

    Raises:
      CreditError: always.
    """
    raise CreditError(f"{method}: {option} is {excerpt(value)}; expected {expected}")


def check_value(method: Callable[..., Any], option: str, value: Any) -> None:
    """Refuse an option outside its bound or outside the choices of its annotation.

    Args:
      method: the function that takes it.
      option: its name.
      value: as stated.

    Raises:
      CreditError: with what was expected.
    """
    hint = hints_of(method).get(option)
    choices = hint.choices if hint is not None else ()
    if isinstance(value, jax.core.Tracer) or (value is None and (not choices or hint is None or hint.optional)):
        return
    if choices:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            refuse_option(_name(method), option, value, " or ".join(map(repr, choices)))
    elif isinstance(value, float | np.floating) and np.isnan(value):
        refuse_option(_name(method), option, value, "a number")
    elif option in BOUNDS and not BOUNDS[option].holds(value):
        refuse_option(_name(method), option, value, BOUNDS[option].words)
    elif isinstance(value, float | np.floating) and np.isinf(value):
        refuse_option(_name(method), option, value, "a finite number")


_BY_KEY = frozenset({"initial"})
"""Numbers that may also be an array, one for each key, whose length the method checks."""


def _admitted(method: Callable[..., Any], hint: Hint, name: str, value: Any) -> Any:
    """An argument as the method may take it: arrays of NumPy or JAX where the annotation says so.

    Raises:
      ArrayTypeError, CreditError: the annotation does not admit it.
    """
    if isinstance(value, jax.core.Tracer) or (value is None and hint.optional):
        return value
    if "By" in hint.kinds:
        try:
            return key_of(value)
        except CreditError as error:
            raise CreditError(f"{_name(method)}: {error}") from None
    if "AgentNames" in hint.kinds:
        if isinstance(value, str) or (isinstance(value, list | tuple) and any(isinstance(x, str) for x in value)):
            refuse_option(_name(method), name, value, "bool [A]; a graph does not hold names: call credit.run")
        return _as_array(_name(method), name, value)
    by_key = name in _BY_KEY and isinstance(value, jax.Array | np.ndarray) and np.ndim(value) == 1
    if hint.kinds & {"float", "int"} and not by_key:  # `float | Array` means one number, which JAX may trace
        bound, whole = BOUNDS.get(name), "float" not in hint.kinds
        if not is_number(value) or (whole and bound is None and not is_whole(value)):
            refuse_option(_name(method), name, value, bound.words if bound else "an integer" if whole else "a number")
    elif "Array" in hint.kinds:
        return _as_array(_name(method), name, value)
    elif not hint.choices and not hint.admits(value):
        jax.tree_util.tree_leaves(value)  # `Traces` in place of its graph has a message of its own, which this raises
        hint.refuse(f"{_name(method)}: {name}", value)
    return value


def _as_array(method: str, name: str, value: Any) -> Any:
    """An array of booleans, integers or floats, of whatever library; lists become NumPy arrays."""

    def wrong() -> str:  # to write out an array takes longer than to check it
        evidence = (EVENT_EVIDENCE | TRACE_EVIDENCE).get(name)
        numbers = "floats" if evidence is None or evidence.kind == "float" else "integers"
        return f"{method}: {name} is {excerpt(value)}, of type {type(value).__name__}; expected an array of {numbers}"

    if not isinstance(value, jax.Array | np.ndarray):
        if value is None or isinstance(value, str | bytes | Mapping | set):
            raise ArrayTypeError(wrong())
        jax.tree_util.tree_leaves(value)  # `Traces` in place of its reward has a message of its own, which this raises
        try:
            value = np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ArrayTypeError(f"{wrong()} ({error})") from error
    if value.dtype.kind not in "biuf" and not _is_extended_float(value.dtype):
        raise ArrayTypeError(
            wrong() if value.dtype.kind == "O" else f"{method}: {name} has dtype {value.dtype}; expected numbers"
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
    if name == "reward":
        refuse_rewards_of_events(method, graph, value)


def refuse_rewards_of_events(caller: str, graph: EventGraph, reward: Array) -> None:
    """Refuse rewards that lie where the batch has events and no traces: padded alike, the two have one shape.

    Args:
      caller: the function, for the error.
      graph: the batch.
      reward: [T], or [E] of the same length. A tracer passes.

    Raises:
      CreditError: names the first such number.
    """
    traced = isinstance(reward, jax.core.Tracer) or isinstance(graph.trace_mask, jax.core.Tracer)
    if traced or graph.num_events != graph.num_traces:
        return
    amounts = np.asarray(reward)
    stray = ~np.asarray(graph.trace_mask) & np.isfinite(amounts) & (amounts != 0)
    # Numbers behind the last event, too, are what fills up an array, as of np.ones_like.
    if stray.any() and not (stray & ~np.asarray(graph.event_mask)).any():
        place, count = int(np.argmax(stray)), int(np.sum(np.asarray(graph.trace_mask)))
        raise CreditError(
            f"{caller}: reward has {amounts[place]:.6g} at place {place}, and the batch has {count} traces; expected "
            "one outcome for each trace; rewards of events are event_reward"
        )


def refuse_traced(caller: str, *arrays: Any) -> None:
    """Refuse arrays that `jax.jit` or `jax.vmap` traces, where a function works on the host.

    Args:
      caller: the function, for the error.
      arrays: graphs, results or arrays.

    Raises:
      CreditError: one of them has no values yet.
    """
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arrays)):
        raise CreditError(
            f"{caller} works on the host and got arrays that jax.jit traces; expected concrete ones: return the "
            f"results of methods from the jitted function, and call {caller} on them"
        )


_COMPARED = frozenset(
    name for name, key in (EVENT_EVIDENCE | TRACE_EVIDENCE).items() if key.kind == "id" or name in ("env_step", "stage")
)
"""Evidence of which methods ask only whether, and in which order, it is equal."""


def _numbered_evidence(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence that is compared, wide ids of it numbered; keys that share their ids together."""
    given = {name: ids for name, ids in arguments.items() if name in _COMPARED and ids is not None}
    found = {name: numbered(ids) for name, ids in given.items()}
    for name, other in ((name, EVENT_EVIDENCE[name].ids_of) for name in given if name in EVENT_EVIDENCE):
        if other in given and any(found[key] is not given[key] for key in (name, other)):
            both = numbered(np.stack([np.asarray(given[key]) for key in (other, name)]))
            found |= {other: both[0], name: both[1]}
    return found


def _name(method: Callable[..., Any]) -> str:
    return getattr(inspect.unwrap(method), "__name__", "method")


def _is_extended_float(dtype: np.dtype[Any]) -> bool:
    """Whether a type is one of JAX's own floats, such as bfloat16, which NumPy counts as no number."""
    return bool(jax.numpy.issubdtype(dtype, np.floating))
