"""The loops without a trainer, of at most 60 lines each, learn: chance solves one run in 25."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import jax
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LOOPS = [("torch_loop", "torch"), ("jax_loop", "optax")]


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "library"), LOOPS)
@pytest.mark.parametrize("method", ["rloo", "dr_mas"])
@pytest.mark.sampled
def test_the_team_learns(name: str, library: str, method: str) -> None:
    pytest.importorskip(library)
    rewards: list[float] = []
    compilations: list[float] = []

    def log(step: int, reward: float, metrics: dict[str, float]) -> None:
        rewards.append(reward)
        compilations.append(metrics["credit/compilations"])

    with jax.numpy_dtype_promotion("standard"):  # which optax' Adam needs
        last = load(name).train(steps=120, credit=method, log=log)
    assert sum(rewards[:5]) / 5 < 0.3
    assert last == rewards[-1] and sum(rewards[-10:]) / 10 > 0.7
    assert sum(compilations) == 0, "compiled before the first step"


@pytest.mark.parametrize("name", [name for name, _ in LOOPS])
def test_they_are_short(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 60


@pytest.mark.parametrize("name", [name for name, _ in LOOPS])
def test_their_loss_is_a_sum_over_rows_divided_by_the_runs(name: str) -> None:
    """Where the policy decides how many rows there are, a mean over them adds a bias."""
    text = (EXAMPLES / f"{name}.py").read_text()
    (loss,) = [line for line in text.splitlines() if " loss = " in line]
    assert re.search(r"\.sum\(\) / len\(task\)$", loss.partition("  #")[0], re.IGNORECASE), loss
