"""Fixtures of the tests of Shapley values."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module")
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield
