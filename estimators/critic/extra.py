"""Raises, when imported, an error that names the extra to install where a library of a critic is missing."""

from __future__ import annotations

import importlib.util

from graphs.errors import MissingExtraError

__all__ = ["LIBRARIES"]

LIBRARIES = ("flax", "optax")
"""What the extra `critic` brings."""

for _library in LIBRARIES:
    if importlib.util.find_spec(_library) is None:
        raise MissingExtraError(_library, extra="critic")
