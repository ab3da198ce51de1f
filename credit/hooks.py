"""Two ways to change a trainer without editing it: run code after an import, or replace a function's globals.

Neither changes a module of the trainer: what was imported before stays as it was for everybody else.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphs.errors import CreditError

__all__ = ["after_import", "require_hooks", "with_globals"]


_ABSTRACT = "__isabstractmethod__"  # a base class declares the name, and nothing computes by it


def require_hooks(trainer: str, hooks: Mapping[Any, Iterable[str]]) -> None:
    """Refuse a trainer without a method that an integration overrides: it would run as if nothing were overridden.

    Args:
      trainer: the trainer and the version that the integration was written against.
      hooks: for each class, or module, the names.

    Raises:
      CreditError: it names what is absent.
    """
    for owner, names in hooks.items():
        if absent := [name for name in names if getattr(getattr(owner, name, None), _ABSTRACT, name not in dir(owner))]:
            raise CreditError(
                f"{owner.__name__} has no {', '.join(absent)}, which this integration overrides, so that its "
                f"advantages would be left out; it was written against {trainer}"
            )


def with_globals(function: Callable[..., Any], **names: Any) -> Callable[..., Any]:
    """A copy of a function in which the given global names mean something else.

    Raises:
      CreditError: the function does not use one of the names, so that the copy would silently do nothing.
    """
    code = function.__code__
    unused = sorted(set(names) - set(code.co_names))
    if unused:
        raise CreditError(
            f"{function.__module__}.{function.__qualname__} does not call {', '.join(unused)}: the installed version "
            "differs from those that docs/trainers.md names"
        )
    scope = {**function.__globals__, **names}
    copy = types.FunctionType(code, scope, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    return copy


def after_import(module: str, act: Callable[[], None]) -> None:
    """Call `act` once after the first import of `module`, or now if it is imported. A second request does nothing."""
    if any(isinstance(finder, _Watcher) and finder.waits_for(module, act) for finder in sys.meta_path):
        return
    if module in sys.modules and not _initialising(module):
        act()
    else:
        sys.meta_path.insert(0, _Watcher(module, act))


def _initialising(module: str) -> bool:
    spec = getattr(sys.modules[module], "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


class _Watcher(importlib.abc.MetaPathFinder):
    """Finds nothing itself: when its module is asked for, it steps aside and has the real loader call back."""

    def __init__(self, module: str, act: Callable[[], None]) -> None:
        self._module, self._act = module, act

    def waits_for(self, module: str, act: Callable[[], None]) -> bool:
        """Whether it waits for this module to call this function."""
        return (self._module, self._act) == (module, act)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Calling(spec.loader, self._act)
        return spec


class _Calling(importlib.abc.Loader):
    """A loader that calls back when its module has run."""

    def __init__(self, loader: Any, act: Callable[[], None]) -> None:
        self._loader, self._act = loader, act

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        module: types.ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._act()
