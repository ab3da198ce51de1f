"""A user's own function as a method: `module:function`, found beside the working directory too, as own worlds are."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from graphs.errors import CreditError, MissingExtraError
from graphs.text import near_names

if TYPE_CHECKING:
    from credit.methods.method_row import Method
    from estimators.base import Credit

__all__ = [
    "OwnName",
    "as_text",
    "function_of",
    "is_own",
    "load_function",
    "load_named",
    "own_method",
    "own_name",
    "place_and_text",
]


class OwnName(str):
    """A name that outputs show in place of the "module:function" behind it, its `function`, which may be a world."""

    function: str


def own_name(text: str, kind: str = "method", known: Collection[str] | None = None) -> str:
    """A name of a method; of "NAME=module:function" the NAME that outputs show, as an `OwnName`.

    Args:
      text: as above, or any other name of a method, which stays as it is.
      kind: what it is of, such as "world".
      known: the names of this library; default those of methods.

    Raises:
      CreditError: NAME is empty, or one of this library is called so.

    Examples:
      >>> shown = own_name("Q75 (ours)=mine:estimator")
      >>> shown, function_of(shown)
      ('Q75 (ours)', 'mine:estimator')
    """
    shown, sign, function = text.rpartition("=")
    if not sign or ":" not in function or isinstance(text, OwnName):
        return text
    from credit.methods.registry import METHODS

    if not shown.strip() or shown.strip() in (METHODS if known is None else known):
        raise CreditError(f"{kind} {text!r}: expected a NAME before '=' which no {kind} of the library has")
    name = OwnName(shown.strip())
    name.function = function.strip()
    return name


def is_own(name: str) -> bool:
    """Whether a name is that of a user's own function, world or task.

    Args:
      name: of a method, a world or a task.

    Examples:
      >>> is_own("mine:estimator"), is_own(own_name("Q75=mine:estimator")), is_own("rloo")
      (True, True, False)
    """
    return isinstance(name, OwnName) or ":" in name


def function_of(name: str) -> str:
    """The "module:function" of a user's own function; another name as it is.

    Args:
      name: of a method.
    """
    return name.function if isinstance(name, OwnName) else name


def as_text(value: Any) -> str:
    """An `OwnName` as text, for encoders of JSON that take no subclass.

    Args:
      value: that an encoder does not know.
    """
    if isinstance(value, OwnName):
        return str(value)
    raise NotImplementedError(f"JSON has no {type(value).__name__}")


def load_function(name: str) -> Callable[..., Credit]:
    """The function of "module:function"; modules of the working directory are found too.

    Args:
      name: "MODULE:FUNCTION", such as "mine:estimator" or "package.module:estimator", or an `OwnName`.

    Raises:
      CreditError: the module or the function does not exist, or it is no function.

    Examples:
      >>> load_function("estimators:rloo").__name__
      'rloo'
    """
    loaded = load_named(name, "method")
    if not callable(loaded):
        raise CreditError(f"method {name!r} is {loaded!r}; expected a function")
    function: Callable[..., Credit] = loaded
    return function


def load_named(name: str, kind: str, fits: Callable[[Any], bool] = callable) -> Any:
    """What "module:name" names; modules of the working directory are found too.

    Args:
      name: as above.
      kind: what it is to be, for messages.
      fits: whether something of the module may be meant, for messages.

    Raises:
      CreditError: the module or the name does not exist.
    """
    module, _, attribute = function_of(name).partition(":")
    here = os.getcwd()
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)
    try:
        within = importlib.import_module(module)
        if attribute and not hasattr(within, attribute):
            listed = [
                known
                for known, value in vars(within).items()
                if known[0] != "_" and (callable(value) or kind != "method") and not _imported(value, module)
            ]
            owner, _, inner = attribute.partition(".")
            if inner and hasattr(within, owner):
                held = getattr(within, owner)
                of_instance = inspect.isclass(held) and inspect.isfunction(inspect.getattr_static(held, inner, None))
                path = f"{owner}{'()' * of_instance}.{inner}"
                raise CreditError(
                    f"{kind} {name!r} cannot be imported: {attribute!r} is inside {owner!r}; expected a name of the "
                    f"module itself: write `own_{kind} = {path}` in {module} and pass {module}:own_{kind}"
                )
            near = near_names(attribute, listed)
            if not near.startswith("Did you mean"):
                near = near_names(attribute, [known for known in listed if fits(vars(within)[known])] or listed)
            raise CreditError(f"{kind} {name!r} cannot be imported: module {module!r} has no {attribute!r}. {near}")
        return getattr(within, attribute)
    except CreditError:
        raise
    except (ImportError, AttributeError, ValueError) as error:
        raise CreditError(f"{kind} {name!r} cannot be imported: {error}") from error
    except Exception as error:  # whatever the module raises: its author sees where
        raise CreditError(f"{kind} {name!r} cannot be imported: {place_and_text(error, None)}") from error
    finally:
        if added:
            sys.path.remove(here)


def _imported(value: Any, module: str) -> bool:
    """Whether a module has a name from elsewhere: a module, or a function or class that another one defines."""
    defined = inspect.isroutine(value) or inspect.isclass(value) or hasattr(value, "__wrapped__")
    return inspect.ismodule(value) or (defined and getattr(value, "__module__", module) != module)


def _naming_faults(name: str, fn: Callable[..., Credit]) -> Callable[..., Credit]:
    """The function, whose results are checked and whose exceptions name it, the file, the line and the exception."""

    from credit.methods.own_memory import check_memory
    from credit.methods.own_repeats import check_repeats
    from credit.methods.own_results import UnmeasuredError, check_finite, check_form, without_scale

    repeats = False  # the first batch tells: a function that draws or keeps a state does so on any

    @functools.wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Credit:
        nonlocal repeats
        try:
            check_memory(f"method {name!r}", fn, args, kwargs)
            result = fn(*args, **kwargs)
            check_form(f"method {name!r}", args[0], result)
            check_finite(f"method {name!r}", result)
            if not repeats:
                check_repeats(f"method {name!r}", fn, args, kwargs)
                repeats = True
            return without_scale(result)
        except MissingExtraError:
            raise  # of whatever function
        except CreditError as error:
            of_name = "" if repr(name) in str(error) else f"method {name!r}: "
            raise UnmeasuredError(f"{of_name}{error}") from error
        except Exception as error:
            source = getattr(getattr(inspect.unwrap(fn), "__code__", None), "co_filename", None)
            raise UnmeasuredError(f"method {name!r} failed at {place_and_text(error, source)}") from error

    return called


def place_and_text(error: BaseException, file: str | None) -> str:
    """Where an exception was raised, in `file` if it passed there, and what it says, on one line.

    A file below the working folder is named from there, another one by its folder and name: captions have room for
    what it says, and a published one names no path of somebody's machine.
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
    text = " ".join(str(error).split())
    here = f"{os.getcwd()}{os.sep}"
    named = place.filename.removeprefix(here)
    if named == place.filename:
        named = os.sep.join(named.split(os.sep)[-2:])
    return f"{named}:{place.lineno}: {type(error).__name__}: {text}"


def own_method(name: str) -> Method:
    """A user's own function with the weakest promises: biased, and with the whole batch as its scope.

    Args:
      name: "MODULE:FUNCTION", such as "mine:estimator".

    Returns:
      `Method`; its needs are the keyword-only parameters without a default.

    Raises:
      CreditError: the module or the function does not exist, or it is no function.

    Examples:
      >>> own_method("estimators:gae").needs
      ('value',)
    """
    from credit.methods.method_row import Method
    from estimators.options import checked_options

    fn = _naming_faults(name, load_function(name))
    parameters = inspect.signature(fn).parameters.values()
    needs = (p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty)
    summary = (inspect.getdoc(fn) or name).splitlines()[0]
    return Method(checked_options(fn), summary, "event", "score", False, "batch", "formula", name, tuple(needs))
