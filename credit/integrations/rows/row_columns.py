"""Columns of a trainer's batch as NumPy: tensors on any device, with gradients, in bfloat16; UUID objects; stacks."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa

from credit.tables.column_values import ColumnError, as_arrow, numbers
from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = [
    "SAME",
    "as_labels",
    "as_mask",
    "as_numbers",
    "give_back",
    "of_entered",
    "of_rows",
    "on_host",
    "spread",
    "taken",
    "weighs_traces",
    "weighted",
]

SAME = 1e-6
"""Log-ratio below which two policies count as one: single precision rounds sums of log-probabilities by more."""


def on_host(column: Any) -> Any:
    """Tensors and JAX arrays as NumPy, half precision exactly; anything else as it is."""
    if hasattr(column, "detach"):
        column = column.detach().cpu()
        return (column.double() if column.is_floating_point() else column).numpy()
    return np.asarray(column) if _is_jax(column) else column


def as_labels(column: Any) -> Any:
    """Ids as `credit.from_columns` takes them: tensors become NumPy, UUID objects their text."""
    column = on_host(column)
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if hasattr(column, "tolist") and not isinstance(column, np.ndarray):
        column = column.tolist()
    if isinstance(column, tuple):
        column = list(column)
    if isinstance(column, list) or (isinstance(column, np.ndarray) and column.dtype == object):
        first = next((label for label in column if label is not None and not isinstance(label, float)), None)
        if isinstance(first, uuid.UUID):
            return [str(label) if isinstance(label, uuid.UUID) else label for label in column]
    return column


def as_numbers(name: str, column: Any, n: int) -> np.ndarray:
    """Numbers as float64 [N], NaN where a row has none; gradients are not followed, half precision is read exactly.

    Raises:
      ColumnError: not one number for each row; NaN in a column of Arrow.
    """
    column = on_host(column)
    if isinstance(column, pa.Array | pa.ChunkedArray) and len(column) == n:
        return numbers(name, column, n) if n else np.zeros(0)
    if isinstance(column, np.ma.MaskedArray):
        numbers_of = np.ma.getdata(column).astype(np.float64)  # a masked array cannot do so from bfloat16
        column = np.where(np.ma.getmaskarray(column), np.nan, numbers_of)
    if hasattr(column, "__array__"):
        column = np.asarray(column)
    if isinstance(column, list | tuple):
        try:
            column = pa.array(column, pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, RuntimeError):  # mixed, wrong, or of gradients
            column = [on_host(entry) for entry in column]
    if np.ndim(column) != 1 or len(column) != n:
        raise ColumnError(name, [], f"has shape {np.shape(column)}; expected ({n},), one number for each row")
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column.astype(np.float64)
    return numbers(name, column, n) if n else np.zeros(0)


def as_mask(mask: Any, n: int) -> Any:
    """Which tokens the policy wrote: bool [N, L], in the library and on the device of the mask.

    Raises:
      CreditError: another shape or layout; an entry that is not 0, 1, True or False, by its place.
    """
    tensor = hasattr(mask, "detach")
    if isinstance(mask, np.ma.MaskedArray):
        raise CreditError("mask is a masked array, which has no value at some tokens; expected 0 or 1 at each")
    if tensor:
        if mask.is_nested or not str(mask.layout).endswith("strided"):
            raise CreditError(f"mask is a tensor of layout {mask.layout}; expected a dense one of shape ({n}, L)")
        mask = mask.detach()
    elif not _is_jax(mask):
        try:
            mask = np.asarray(mask)
        except ValueError:
            raise CreditError(f"mask has rows of several lengths; expected ({n}, L), the tokens of each row") from None
    shape = tuple(mask.shape)
    if len(shape) != 2 or shape[0] != n:
        raise CreditError(f"mask has shape {shape}; expected ({n}, L), the tokens of each row")
    if str(mask.dtype).endswith("bool"):
        return mask
    entries = _comparable(mask)
    wrote, other = entries == 1, entries != 0
    count = np.count_nonzero if isinstance(entries, np.ndarray) else lambda some: int(some.count_nonzero())
    if count(wrote) != count(other):  # what is 1 is not 0
        row, token = np.argwhere(np.asarray((wrote != other).tolist()))[0]
        value = entries[row, token]
        value = value.item() if hasattr(value, "item") else value
        raise CreditError(f"mask is {excerpt(value)} at token {token} of row {row}; expected 0 or 1, True or False")
    if not tensor:
        return wrote if isinstance(mask, np.ndarray) else mask > 0
    import torch

    return torch.from_numpy(wrote) if isinstance(wrote, np.ndarray) else wrote


def _comparable(mask: Any) -> Any:
    """A mask as NumPy, which compares several times as fast as tensors do on the host; tensors elsewhere stay."""
    if not hasattr(mask, "detach"):
        return np.asarray(mask)
    if mask.device.type != "cpu":
        return mask
    return (mask.float() if mask.is_floating_point() else mask).numpy()


def taken(name: str, column: Any, rows: np.ndarray) -> Any:
    """Some rows of a column of ids or numbers, in their order."""
    if isinstance(column, np.ndarray):
        return column[rows]
    return as_arrow(name, column, len(column)).take(pa.array(rows))


def give_back(values: np.ndarray, like: Any) -> Any:
    """Numbers of rows [N] in the library and on the device of `like`.

    In float32, and in float64 where `like` is: advantages in half precision would lose what tells rows apart.
    """
    values = values + 0.0  # a weight of 0 makes -0.0 of an advantage below 0
    if hasattr(like, "detach"):
        import torch

        dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
        return torch.from_numpy(np.ascontiguousarray(values)).to(like.device, dtype)
    if _is_jax(like):
        import jax.numpy as jnp

        return jnp.asarray(values, jnp.float32)
    return values.astype(np.float32)


def _is_jax(column: Any) -> bool:
    return type(column).__module__.partition(".")[0] in ("jax", "jaxlib")


def spread(values: Any, wrote: Any) -> Any:
    """One number a row on each token that the policy wrote, else 0: [N] to [N, L], in the library of the mask.

    Args:
      values: [N].
      wrote: bool [N, L], of `as_mask`.
    """
    if hasattr(wrote, "detach"):
        import torch

        row = torch.as_tensor(np.asarray(values)) if not hasattr(values, "detach") else values
        zero = torch.zeros((), dtype=row.dtype, device=wrote.device)
        return torch.where(wrote, row.to(wrote.device)[:, None], zero)
    if isinstance(wrote, np.ndarray):
        return np.where(wrote, np.asarray(values)[:, None], np.float32(0))
    import jax.numpy as jnp

    return jnp.where(wrote, jnp.asarray(values)[:, None], 0)


def weighs_traces(log_ratio: Any, wrote: Any, trace: np.ndarray, trained: np.ndarray) -> bool:
    """Whether importance weights can be of whole traces: all rows and tokens of a trace have one ratio, then its own.

    Args:
      log_ratio: [N], or [N, L] of tokens.
      wrote: bool [N, L], of `as_mask`; None without tokens.
      trace: int [N], -1 of rows that did not enter, or that no trained policy decided.
      trained: bool [N], rows with an advantage other than 0; where a trace has none, its weight does not matter.
    """
    ratio, of_part = _parts(log_ratio, wrote, trace)
    one = np.zeros(trace.max(initial=-1) + 2)  # the last place is of the trace -1
    one[of_part] = ratio  # of several assignments to one place the last counts
    apart = of_part[(ratio != one[of_part]) & (of_part >= 0)]  # NaN is apart
    return not np.isin(trace[trained], apart).any()


def of_entered(log_ratio: Any, wrote: Any, trace: np.ndarray) -> np.ndarray:
    """The ratios of rows or tokens of the traces that entered: as of `weighs_traces`."""
    ratio, of_part = _parts(log_ratio, wrote, trace)
    return ratio[of_part >= 0]


def of_rows(log_ratio: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The ratio of each row, its tokens together: [N].

    Args:
      log_ratio: of `weighted`.
      shape: of the rows, or of their tokens.

    Raises:
      ColumnError: another shape.
    """
    ratio = _stated(log_ratio, shape)
    return ratio if ratio.ndim == 1 else np.where(np.isfinite(ratio), ratio, 0.0).sum(1)


def _stated(log_ratio: Any, shape: tuple[int, ...]) -> np.ndarray:
    ratio = np.asarray(on_host(log_ratio), np.float64)
    if ratio.shape not in (shape, shape[:1]):
        tokens = f", its tokens together, or {shape}, one for each token of `mask`" if len(shape) > 1 else ""
        raise ColumnError("log_ratio", [], f"has shape {ratio.shape}; expected {shape[:1]}, one number a row{tokens}")
    return ratio


def _parts(log_ratio: Any, wrote: Any, trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ratio and the trace of each row, or of each token that the policy wrote."""
    ratio = np.asarray(on_host(log_ratio), np.float64)
    if ratio.ndim == 1:
        return ratio, trace
    of_tokens = np.asarray(on_host(wrote))
    return ratio[of_tokens], np.repeat(trace, of_tokens.sum(1))


def weighted(values: Any, log_ratio: Any, most: float) -> tuple[Any, dict[str, float]]:
    """Advantages times their importance weights, min(exp(log_ratio), most), and metrics of the weights.

    Args:
      values: [N] or [N, L]; where it is 0, which it is wherever nothing is trained, it stays 0 whatever the ratio.
      log_ratio: of the same shape, or [N], which is of the whole row and weighs each of its tokens.
      most: the largest weight.

    Raises:
      ColumnError: another shape; NaN, +inf or an overflow where an advantage is not 0. The weight of -inf is 0.
    """
    shape = tuple(values.shape)
    ratio = _stated(log_ratio, shape)
    ratio = np.broadcast_to(ratio if ratio.shape == shape else ratio[:, None], shape)
    trained = np.asarray(on_host(values)) != 0
    for bad, what in ((np.isnan(ratio), "NaN"), (np.isposinf(ratio), "infinite")):
        if (bad := trained & bad).any():  # +inf: the policy that sampled the row never acts so
            raise ColumnError("log_ratio", np.unique(np.nonzero(bad)[0]), f"is {what} where an advantage is not 0")
    with np.errstate(over="ignore"):
        weight = np.exp(np.minimum(np.where(trained, ratio, 0.0), np.log(most)))
        host = np.where(trained, np.asarray(on_host(values), np.float64) * weight, 0.0)
    if (bad := np.abs(host) > np.finfo(np.float32).max).any():
        problem = f"is so large that the weight overflows; expected truncate= below {most:g}"
        raise ColumnError("log_ratio", np.unique(np.nonzero(bad)[0]), problem)
    cut = trained & (ratio > np.log(most))
    total = max(int(np.count_nonzero(trained)), 1)
    metrics = {"weight_mean": weight[trained].sum() / total, "weights_truncated": np.count_nonzero(cut) / total}
    return give_back(host, values), {f"credit/{name}": float(value) for name, value in metrics.items()}
