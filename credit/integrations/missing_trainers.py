"""Which extra installs a trainer, said where the module of it is imported without the trainer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["EXTRAS", "say_extras"]

EXTRAS = ("agent-lightning", "areal", "art", "openrlhf", "skyrl", "swift", "trinity", "trl", "tunix", "verl")
"""Those of trainers that a module here imports; the module's name begins so. Others are not on PyPI."""


def say_extras(package: str) -> None:
    """Let modules of a package name the extra where a library is missing, as `MissingExtraError`, which it becomes.

    Args:
      package: its name.
    """
    sys.meta_path.insert(0, _Trainers(package))


class _Trainers:
    """A finder of the modules of trainers; others it leaves to the next."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module; None of one without an extra."""
        package, _, module = name.rpartition(".")
        extra = next((extra for extra in EXTRAS if module.replace("_", "-").startswith(extra)), None)
        if package != self.package or extra is None:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_or_say(module: ModuleType) -> None:
                from graphs.errors import MissingExtraError

                try:
                    run(module)
                except ModuleNotFoundError as error:
                    raise MissingExtraError(str(error.name), extra) from error

            spec.loader.exec_module = run_or_say  # type: ignore[method-assign]
        return spec
