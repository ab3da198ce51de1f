"""The checkpoint of a fit: the whole state of training after an epoch, kept so that a killed run can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from graphs.array_files import read_arrays, write_arrays
from graphs.errors import CreditError

__all__ = ["arrays_of", "restore", "save", "tree_of"]

ABOUT = "about"
"""Name of the array that holds a JSON text as bytes: the digest of the fit and its epochs."""


def save(path: Path, identity: str, state: Any, history: list[Any]) -> None:
    """Write the state after an epoch in place of that of an earlier one, whole or not at all.

    Args:
      path: the file.
      identity: text that identifies the fit.
      state: a tree of arrays.
      history: the epochs so far.

    Raises:
      OSError: the file cannot be written.
    """
    about = json.dumps({"fit": _digest(identity), "epochs": history}).encode()
    write_arrays(path, {**arrays_of(state), ABOUT: np.frombuffer(about, np.uint8)})


def restore(path: Path, identity: str, like: Any) -> tuple[Any, list[list[Any]]]:
    """The state that was saved, in the form of `like`, and the epochs up to it.

    Raises:
      CreditError: the file is damaged, or of another fit.
    """
    try:
        arrays = read_arrays(path, "the checkpoint of a fit")
        about = json.loads(arrays.pop(ABOUT).tobytes())
        same, epochs = about["fit"] == _digest(identity), about["epochs"]
        state = tree_of(like, arrays) if same else None
    except (CreditError, KeyError, TypeError, ValueError) as error:
        raise CreditError(f"{path} is damaged; remove it to fit from the beginning") from error
    if not same:
        raise CreditError(
            f"{path} is of a fit on other traces or with other settings; remove it or choose another folder"
        )
    return state, epochs


def _digest(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()


def arrays_of(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their number: names of optimiser states differ between versions of their library."""
    return {f"{i:04d}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def tree_of(like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """A tree in the form of `like` of the arrays that `arrays_of` gave.

    Raises:
      CreditError: an array is missing, has another shape or type, or a number that is not finite.
    """
    for name, leaf in arrays_of(like).items():
        found = arrays.get(name)
        if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
            state = "missing" if found is None else f"{found.dtype} of shape {found.shape}"
            raise CreditError(f"array {name} is {state}; expected {leaf.dtype} of shape {leaf.shape}")
        if not np.isfinite(found).all():
            raise CreditError(f"array {name} holds numbers that are not finite")
    structure = jax.tree.structure(like)
    return jax.tree.unflatten(structure, [jax.numpy.asarray(arrays[name]) for name in sorted(arrays_of(like))])
