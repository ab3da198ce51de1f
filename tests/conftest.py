"""Strictness for the whole suite, and the real logs where they are present."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_key_reuse", True)

ROOT = Path(__file__).resolve().parent.parent

# Compiling takes most of the suite's time, and every worker would compile the same small operations; the next run, and
# the run on the next interpreter of the same JAX, find them here.
jax.config.update("jax_compilation_cache_dir", str(ROOT / ".pytest_cache" / "xla"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one process, where they share compiled functions, unless they say otherwise."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of small real logs beside the checkout; they may not be republished, so they are not in it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real logs at {folder}")
    return folder
