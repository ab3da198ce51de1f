"""Arrays cross to PyTorch and back with their values, their dtype, and without sharing memory unless asked."""

from __future__ import annotations

import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest

from credit.tables.bridge import from_torch, to_pandas, to_torch

CONTENT = [
    np.array([0.5, -1, np.inf], np.float32),
    np.array([True, False]),
    np.array([-128, 127], np.int8),
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.zeros((0, 2), np.float32),
    np.array(2.5, np.float32),
]


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("make", [np.array, jnp.asarray, read_only], ids=["numpy", "jax", "read-only"])
@pytest.mark.parametrize("content", CONTENT, ids=lambda a: f"{a.dtype}{a.shape}")
def test_there_and_back(content: np.ndarray, make: Callable[[np.ndarray], np.ndarray], copy: bool) -> None:
    torch = pytest.importorskip("torch")
    tensor = to_torch(make(content), copy=copy)
    assert isinstance(tensor, torch.Tensor)
    assert np.array_equal(tensor.numpy(), content) and tensor.numpy().dtype == content.dtype
    back = from_torch(tensor, copy=copy)
    assert isinstance(back, jax.Array)
    assert np.array_equal(back, content) and back.dtype == content.dtype


def test_copies_do_not_share_memory() -> None:
    pytest.importorskip("torch")
    array = jnp.arange(4.0)
    tensor = to_torch(array)
    tensor.mul_(2)
    assert array.tolist() == [0, 1, 2, 3]
    back = from_torch(tensor)
    tensor.zero_()
    assert back.tolist() == [0, 2, 4, 6]
    plain = np.arange(4.0)
    to_torch(plain).zero_()
    assert plain.tolist() == [0, 1, 2, 3]


def test_awkward_strides_and_gradients() -> None:
    torch = pytest.importorskip("torch")
    assert to_torch(np.arange(3.0)[::-1], copy=False).tolist() == [2, 1, 0]
    weights = torch.arange(6.0, requires_grad=True)
    assert from_torch(weights.reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_wide_integers_are_refused_not_wrapped() -> None:
    torch = pytest.importorskip("torch")
    assert from_torch(torch.tensor([2**31 - 1])).tolist() == [2**31 - 1]
    with pytest.raises(OverflowError, match="do not fit int32"):
        from_torch(torch.tensor([2**31]))


def test_to_pandas_keeps_repeated_strings_as_categories() -> None:
    pytest.importorskip("pandas")
    frame = to_pandas(pa.table({"agent": pa.array(["S", "V", "S"]).dictionary_encode(), "credit": [1.0, 2.0, 3.0]}))
    assert frame["agent"].dtype == "category"
    assert frame.groupby("agent", observed=True)["credit"].sum().to_dict() == {"S": 4.0, "V": 2.0}


@pytest.mark.parametrize("name", ["torch", "pandas"])
def test_a_missing_library_names_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    call = (lambda: to_torch(np.zeros(1))) if name == "torch" else (lambda: to_pandas(pa.table({})))
    with pytest.raises(ImportError, match=rf"{name} is not installed.*orchestration-credit\[{name}\]"):
        call()
