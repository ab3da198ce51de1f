"""Checkpoints of a fit: the whole state of training after an epoch, kept by orbax so that a killed run can go on."""

from __future__ import annotations

import estimators.critic.extra  # isort: skip  # noqa: F401

import hashlib
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from graphs.errors import CreditError

__all__ = ["Checkpoints", "load_tree", "save_tree"]


class Checkpoints:
    """The checkpoints of one fit in a folder.

    Args:
      directory: the folder; made where it is missing.
      identity: text that tells this fit from others; a folder with another one is refused.

    Raises:
      CreditError: the folder holds checkpoints of another fit.
    """

    def __init__(self, directory: Path, identity: str) -> None:
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        mark, digest = self.directory / "fit.sha256", hashlib.sha256(identity.encode()).hexdigest()
        if mark.exists() and mark.read_text() != digest:
            raise CreditError(
                f"{self.directory} holds checkpoints of a fit on other traces or with other settings; "
                "remove it or choose another folder"
            )
        mark.write_text(digest)
        options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
        self.manager = ocp.CheckpointManager(self.directory, options=options)

    @property
    def latest(self) -> int | None:
        """The last epoch that was saved."""
        step = self.manager.latest_step()
        return None if step is None else int(step)

    def save(self, epoch: int, state: Any, history: list[Any]) -> None:
        """Keep the state after an epoch; a checkpoint appears whole or not at all."""
        parts = {"state": ocp.args.StandardSave(_leaves(state)), "history": ocp.args.JsonSave({"epochs": history})}
        self.manager.save(epoch, args=ocp.args.Composite(**parts))
        self.manager.wait_until_finished()

    def restore(self, like: Any) -> tuple[Any, list[list[Any]]]:
        """The last state, in the form of `like`, and the epochs up to it."""
        parts = {"state": ocp.args.StandardRestore(_leaves(like)), "history": ocp.args.JsonRestore()}
        kept = self.manager.restore(self.latest, args=ocp.args.Composite(**parts))
        return _tree(like, kept["state"]), kept["history"]["epochs"]


def save_tree(directory: Path, tree: Any) -> None:
    """Write the arrays of a tree to a folder, in place of what it held."""
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(Path(directory).resolve(), _leaves(tree), force=True)
        checkpointer.wait_until_finished()


def load_tree(directory: Path, like: Any) -> Any:
    """The arrays that `save_tree` wrote, in the form of `like`."""
    with ocp.StandardCheckpointer() as checkpointer:
        return _tree(like, checkpointer.restore(Path(directory).resolve(), _leaves(like)))


def _leaves(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their number: names of optimiser states differ between versions of their library."""
    return {f"{i:04d}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def _tree(like: Any, leaves: dict[str, Any]) -> Any:
    structure = jax.tree.structure(like)
    return jax.tree.unflatten(structure, [jax.numpy.asarray(leaves[name]) for name in sorted(leaves)])
