"""Checkpoints of a fit: the whole state of training after an epoch, kept by orbax so that a killed run can go on."""

from __future__ import annotations

import estimators.critic.extra  # isort: skip  # noqa: F401

import hashlib
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from graphs.atomic import atomic_write
from graphs.errors import CreditError

__all__ = ["Checkpoints", "load_tree", "save_tree"]


class Checkpoints:
    """The checkpoints of one fit in a folder.

    Args:
      directory: the folder; made where it is missing.
      identity: text that identifies this fit; a folder with another one is refused.

    Raises:
      CreditError: the folder holds checkpoints of another fit.
    """

    def __init__(self, directory: Path, identity: str) -> None:
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        mark, self.digest = self.directory / "fit.sha256", hashlib.sha256(identity.encode()).hexdigest()
        options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
        self.manager = ocp.CheckpointManager(self.directory, options=options)
        kept = _mark(mark) or self._digest_inside()
        if kept and kept != self.digest:
            raise CreditError(
                f"{self.directory} holds checkpoints of a fit on other traces or with other settings; "
                "remove it or choose another folder"
            )
        if _mark(mark) != self.digest:
            with atomic_write(mark) as file:
                file.write(self.digest.encode())

    def _digest_inside(self) -> str:
        """The digest in the last checkpoint, for a folder whose mark is lost; empty without checkpoints.

        Raises:
          CreditError: the checkpoint cannot be read, so that its fit is unknown.
        """
        if self.latest is None:
            return ""
        try:
            kept = self.manager.restore(self.latest, args=ocp.args.Composite(history=ocp.args.JsonRestore()))
            return str(kept["history"]["fit"])
        except Exception as error:  # orbax and its storage raise errors of many classes for damaged files
            raise CreditError(
                f"{self.directory / 'fit.sha256'} is empty or missing, and the checkpoint beside it cannot be read; "
                f"remove {self.directory} to fit from the beginning"
            ) from error

    @property
    def latest(self) -> int | None:
        """The last epoch that was saved."""
        step = self.manager.latest_step()
        return None if step is None else int(step)

    def save(self, epoch: int, state: Any, history: list[Any]) -> None:
        """Keep the state after an epoch; a checkpoint appears whole or not at all."""
        parts = {
            "state": ocp.args.StandardSave(_leaves(state)),
            "history": ocp.args.JsonSave({"epochs": history, "fit": self.digest}),
        }
        self.manager.save(epoch, args=ocp.args.Composite(**parts))
        self.manager.wait_until_finished()

    def restore(self, like: Any) -> tuple[Any, list[list[Any]]]:
        """The last state, in the form of `like`, and the epochs up to it.

        Raises:
          CreditError: the checkpoint is damaged.
        """
        parts = {"state": ocp.args.StandardRestore(_leaves(like)), "history": ocp.args.JsonRestore()}
        try:
            kept = self.manager.restore(self.latest, args=ocp.args.Composite(**parts))
        except Exception as error:  # orbax and its storage raise errors of many classes for damaged files
            raise CreditError(
                f"{self.directory / str(self.latest)} is damaged; remove it to resume from the checkpoint before it, "
                f"or remove {self.directory} to fit from the beginning"
            ) from error
        return _tree(like, kept["state"]), kept["history"]["epochs"]


def _mark(path: Path) -> str:
    """The digest in the mark of a folder; empty where there is none or nothing in it."""
    return path.read_bytes().decode("ascii", "replace").strip() if path.is_file() else ""


def save_tree(directory: Path, tree: Any) -> None:
    """Write the arrays of a tree to a folder, in place of what it held."""
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(Path(directory).resolve(), _leaves(tree), force=True)
        checkpointer.wait_until_finished()


def load_tree(directory: Path, like: Any) -> Any:
    """The arrays that `save_tree` wrote, in the form of `like`.

    Args:
      directory: the folder.
      like: a tree of arrays with the shapes that are expected.

    Raises:
      CreditError: the folder is missing or damaged, an array has another shape, or a number is not finite.
    """
    path, expected = Path(directory).resolve(), _leaves(like)
    if not path.is_dir():
        raise CreditError(f"{path} is missing; expected the folder of parameters")
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            arrays = checkpointer.restore(path, expected)
    except Exception as error:  # orbax and its storage raise errors of many classes for damaged files
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise CreditError(f"{path} cannot be read: {reason}; expected the parameters of a critic") from error
    for name, values in expected.items():
        own = np.asarray(arrays[name])
        if own.shape != values.shape:
            raise CreditError(f"{path}: array {name} has shape {own.shape}; expected {values.shape}")
        if not np.isfinite(own).all():
            raise CreditError(f"{path}: array {name} holds numbers that are not finite")
    return _tree(like, arrays)


def _leaves(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their number: names of optimiser states differ between versions of their library."""
    return {f"{i:04d}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def _tree(like: Any, leaves: dict[str, Any]) -> Any:
    structure = jax.tree.structure(like)
    return jax.tree.unflatten(structure, [jax.numpy.asarray(leaves[name]) for name in sorted(leaves)])
