"""What is to be done once another package is imported, without importing it: a process may never need it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["when_imported"]


def when_imported(package: str, act: Callable[[], None]) -> None:
    """Call `act` now if a package is imported, else right after whoever imports it first.

    A class that jitted functions take must be known to JAX before it is passed to one. A program may import JAX after
    it has read its logs, and one that only reads them starts faster without JAX.
    """
    if package in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _Watch(package, act))


class _Watch:
    """A finder that leaves a package to the other finders, and acts once the package has run."""

    def __init__(self, package: str, act: Callable[[], None]) -> None:
        self.package, self.act = package, act

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of the package; None for any other module, which the next finders look for."""
        if name != self.package:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_act(module: ModuleType) -> None:
                run(module)
                self.act()

            spec.loader.exec_module = run_and_act  # type: ignore[method-assign]
        return spec
