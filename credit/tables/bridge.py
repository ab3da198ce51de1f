"""Arrays to and from the libraries that trainers use: PyTorch by DLPack, pandas by Arrow.

Both are optional: they are imported when asked for, and a missing one is an error that names the extra to install.
"""

from __future__ import annotations

import importlib
from typing import Any

import jax
import numpy as np
import pyarrow as pa

from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError, MissingExtraError, expect
from graphs.event_graph import Array
from graphs.text import excerpt

__all__ = ["from_torch", "to_pandas", "to_torch"]


@checked_kinds()
def to_torch(array: Array, *, copy: bool = True) -> Any:
    """A `torch.Tensor` with the content of a JAX or NumPy array, on the same device.

    A copy by default: trainers scale advantages in place, and a JAX array must never change. With `copy=False` the
    tensor shares the array's memory where both libraries allow it, and nothing may write to it.

    Args:
      array: any dtype that both know, bool and int8 included; read-only arrays too.
      copy: see above.

    Returns:
      `torch.Tensor` of the same shape and dtype.

    Raises:
      CreditError: something else than numbers or booleans.
      MissingExtraError: PyTorch is not installed.

    Examples:
      >>> import torch
      >>> import credit, numpy as np
      >>> credit.to_torch(np.array([0.5, -0.5], np.float32))
      tensor([ 0.5000, -0.5000])
    """
    torch = _optional("torch")
    if isinstance(array, jax.Array):
        shared = torch.from_dlpack(array)
    else:
        original, array = array, np.asarray(array)
        if array.dtype.kind not in "biufc":
            raise CreditError(f"array is {excerpt(original)}, of dtype {array.dtype}; expected numbers or booleans")
        if copy or not array.flags.writeable or any(stride < 0 for stride in array.strides):
            return torch.from_numpy(array.copy())  # PyTorch has no read-only tensors and no negative strides
        return torch.from_numpy(array)
    return shared.clone() if copy else shared


@checked_kinds()
def from_torch(tensor: Any, *, copy: bool = True) -> jax.Array:
    """A `jax.Array` with the content of a `torch.Tensor`, on the same device; gradients are not followed.

    A copy by default: JAX takes arrays to be constant, and an optimiser's in-place step would change them. With
    `copy=False` memory is shared where both libraries allow it.

    Without `jax_enable_x64`, float64 is rounded to float32, and int64 becomes int32.

    Args:
      tensor: a `torch.Tensor` of a dtype that both libraries know.
      copy: see above.

    Returns:
      `jax.Array` of the same shape.

    Raises:
      CreditError: something else than a `torch.Tensor`.
      MissingExtraError: PyTorch is not installed.
      OverflowError: an integer does not fit the narrower type.

    Examples:
      >>> import torch
      >>> import credit
      >>> credit.from_torch(torch.tensor([0.5, -0.5])).tolist()
      [0.5, -0.5]
    """
    torch = _optional("torch")
    expect("tensor", tensor, torch.Tensor, "a torch.Tensor")
    tensor = tensor.detach()
    if tensor.dtype == torch.int64 and jax.dtypes.canonicalize_dtype(np.int64) == np.int32 and tensor.numel():
        least, most = (int(bound) for bound in tensor.aminmax())
        if least < -(2**31) or most >= 2**31:
            raise OverflowError(f"integers from {least} to {most} do not fit int32; set jax_enable_x64")
    array: jax.Array = jax.dlpack.from_dlpack(tensor.clone() if copy else tensor)
    return array


@checked_kinds()
def to_pandas(table: pa.Table) -> Any:
    """A `pandas.DataFrame` of an Arrow table such as `credit.table` returns; repeated strings become categories.

    Args:
      table: the table.

    Returns:
      `pandas.DataFrame` with a column for each of the table's.

    Raises:
      CreditError: something else than a table.
      MissingExtraError: pandas is not installed.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> frame = credit.to_pandas(credit.table(rows, credit.rloo(graph, reward)))
      >>> frame["advantage"].tolist()
      [1.0, -1.0]
    """
    _optional("pandas")
    return table.to_pandas()


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingExtraError(name, extra=name) from None
