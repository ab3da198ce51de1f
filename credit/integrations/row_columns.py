"""Columns of a trainer's batch as NumPy: tensors on any device, with gradients, in bfloat16; UUID objects; stacks."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa

from credit.tables.column_values import ColumnError, as_arrow, numbers

__all__ = ["as_labels", "as_numbers", "give_back", "spread", "taken"]


def as_labels(column: Any) -> Any:
    """Ids as `credit.from_columns` takes them: tensors become NumPy, UUID objects their text."""
    if hasattr(column, "detach"):
        return column.detach().cpu().numpy()
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if hasattr(column, "tolist") and not isinstance(column, np.ndarray):
        column = column.tolist()
    if isinstance(column, tuple):
        column = list(column)
    if isinstance(column, list | np.ndarray) and len(column) and isinstance(column[0], uuid.UUID):
        return [str(label) if isinstance(label, uuid.UUID) else label for label in column]
    return column


def as_numbers(name: str, column: Any, n: int) -> np.ndarray:
    """Numbers as float64 [N], NaN where a row has none; gradients are not followed, half precision is read exactly.

    Raises:
      ColumnError: not one number for each row.
    """
    if hasattr(column, "detach"):
        column = column.detach().cpu()
        column = (column.double() if column.is_floating_point() else column).numpy()
    elif hasattr(column, "__array__"):
        column = np.asarray(column)
    if np.ndim(column) != 1 or len(column) != n:
        raise ColumnError(name, [], f"has shape {np.shape(column)}; expected ({n},), one number for each row")
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column.astype(np.float64)
    return numbers(name, column, n) if n else np.zeros(0)


def taken(name: str, column: Any, rows: np.ndarray) -> Any:
    """Some rows of a column of ids or numbers, in their order."""
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, list):
        column = as_arrow(name, column, len(column))
    return column.take(rows)


def give_back(values: np.ndarray, like: Any) -> Any:
    """Numbers of rows [N] in the library and on the device of `like`.

    In float32, and in float64 where `like` is: advantages in half precision would lose what tells rows apart.
    """
    if hasattr(like, "detach"):
        import torch

        dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
        return torch.from_numpy(np.ascontiguousarray(values)).to(like.device, dtype)
    if type(like).__module__.partition(".")[0] in ("jax", "jaxlib"):
        import jax.numpy as jnp

        return jnp.asarray(values, jnp.float32)
    return values.astype(np.float32)


def spread(values: Any, mask: Any) -> Any:
    """One number a row on each of its tokens, 0 outside the mask: [N] to [N, L], in the library of the mask."""
    if hasattr(mask, "detach"):
        import torch

        mask = mask.detach()
        row = torch.as_tensor(np.asarray(values)) if not hasattr(values, "detach") else values
        zero = torch.zeros((), dtype=row.dtype, device=mask.device)
        return torch.where(mask.bool(), row.to(mask.device)[:, None], zero)
    if isinstance(mask, np.ndarray | list):
        return np.where(np.asarray(mask, bool), np.asarray(values)[:, None], np.float32(0))
    import jax.numpy as jnp

    return jnp.where(jnp.asarray(mask) > 0, jnp.asarray(values)[:, None], 0)
