"""A user's own function as a method: `module:function`, found beside the working directory too."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphs.errors import CreditError

if TYPE_CHECKING:
    from credit.methods.registry import Method
    from estimators.base import Credit

__all__ = ["load_function", "own_method"]


def load_function(name: str) -> Callable[..., Credit]:
    """The function of "module:function"; modules of the working directory are found too.

    Args:
      name: "MODULE:FUNCTION", such as "mine:estimator" or "package.module:estimator".

    Raises:
      CreditError: the module or the function does not exist, or it is no function.

    Examples:
      >>> load_function("estimators:rloo").__name__
      'rloo'
    """
    module, _, attribute = name.partition(":")
    here = os.getcwd()
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)
    try:
        loaded = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise CreditError(f"method {name!r} cannot be imported: {error}") from error
    finally:
        if added:
            sys.path.remove(here)
    if not callable(loaded):
        raise CreditError(f"method {name!r} is {loaded!r}; expected a function")
    function: Callable[..., Credit] = loaded
    return function


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
    from credit.methods.registry import Method
    from estimators.options import checked_options

    fn = load_function(name)
    parameters = inspect.signature(fn).parameters.values()
    needs = (p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty)
    summary = (inspect.getdoc(fn) or name).splitlines()[0]
    return Method(checked_options(fn), summary, "event", "score", False, "batch", "formula", name, tuple(needs))
