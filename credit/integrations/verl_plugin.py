"""The entry point of verl (group `verl.plugins`), which verl imports in every process, whatever its run asks for."""

from __future__ import annotations

import importlib

from credit.integrations.harmless import harmless

__all__ = ["load"]


@harmless
def load() -> None:
    """Import `credit.integrations.verl`, which registers its estimators and trainers."""
    importlib.import_module("credit.integrations.verl")


load()
