"""A function of one's own that draws or keeps a state is refused by every door that runs it, as is a scale below 0."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import credit
from credit.bench.bias import measure
from credit.cli import cli
from credit.methods.own_results import ABOVE_0
from graphs.errors import CreditError

MODULE = """
import dataclasses, functools
import jax, jax.numpy as jnp, numpy as np
import credit

calls = [0]
KEY = jax.random.key(3)
TABLE = np.random.default_rng(0).normal(size=8).astype(np.float32)

def _plus(graph, reward, more):
    result = credit.rloo(graph, reward)
    more = jnp.asarray(more).astype(result.credit.dtype)
    return dataclasses.replace(result, credit=jnp.where(result.valid, result.credit + more, result.credit))

def drawn(graph, reward):
    return _plus(graph, reward, np.float32(np.random.randn()))

def keyed(graph, reward):
    key = jax.random.key(np.random.randint(1 << 30))
    return _plus(graph, reward, jax.random.normal(key, (graph.num_events,)))

def counted(graph, reward):
    calls[0] += 1
    return _plus(graph, reward, 0.1 * calls[0])

def grown(graph, reward):
    calls[0] += 1
    return _plus(graph, reward, jnp.ones(calls[0]).sum())

@jax.jit
def compiled(graph, reward):
    return _plus(graph, reward, np.float32(np.random.randn()))

def table_drawn(graph, reward):
    return _plus(graph, reward, jnp.asarray(np.random.randn(8).astype(np.float32))[graph.agent_ids % 8])

def seeded(graph, reward, *, seed: int = 0):
    noise = jax.random.normal(jax.random.key(seed), (graph.num_events,), jnp.float32)
    noise += jax.random.normal(jax.random.clone(KEY), (), jnp.float32)
    return _plus(graph, reward, noise + jnp.asarray(TABLE)[graph.agent_ids % 8])

def negative(graph, reward):
    result = credit.rloo(graph, reward)
    return dataclasses.replace(result, scale=-result.scale)
"""
DRAWS = ("drawn", "keyed", "counted", "compiled", "table_drawn")
BENCHES = (
    ("bias", "--world", "relay-and", "--group-size", "2"),
    ("snr", "--quick", "--lengths", "10"),
    ("truth", "--world", "additive", "--traces", "16"),
    ("train", "--quick", "--tasks", "bottleneck"),
    ("robustness",),
)


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_draws.py").write_text(MODULE)
    (tmp_path / "log.csv").write_text("trace,group,reward,event\na,q,1,0\nb,q,0,0\n")
    monkeypatch.chdir(tmp_path)
    return "own_draws"


@pytest.mark.parametrize("name", [*DRAWS, "grown"])
def test_a_measurement_refuses_a_function_of_more_than_its_arguments(module: str, name: str) -> None:
    """Its numbers were printed as exact ones, and others on the next call."""
    with pytest.raises(CreditError, match=f"method '{module}:{name}': two calls on one batch differ: .*, then .*seed"):
        measure(f"{module}:{name}", "relay-and", 2)


@pytest.mark.parametrize("name", DRAWS)
def test_no_table_is_written_of_draws(module: str, name: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["assign", "log.csv", "-m", f"{module}:{name}", "-o", "out.csv"])
    assert done.exit_code == 1 and "two calls on one batch differ: credit of event 0 is " in done.output, done.output
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.slow
def test_a_function_with_a_seed_is_one_of_its_arguments(module: str) -> None:
    assert measure(f"{module}:seeded", "relay-and", 2).answered > 0
    rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])[2]
    first, other = (credit.run(rows, f"{module}:seeded", seed=seed).advantage for seed in (0, 1))
    assert float(first[0]) != float(other[0])


@pytest.mark.slow
@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench[0])
@pytest.mark.parametrize(
    ("name", "words"), [("drawn", "two calls on one batch differ"), ("negative", ABOVE_0)], ids=("drawn", "negative")
)
def test_every_benchmark_refuses_draws_and_a_scale_below_0(
    module: str, bench: tuple[str, ...], name: str, words: str
) -> None:
    """`bench bias` printed a bias of 2 of a scale of −1; then it and `bench train` called it not finite."""
    done = CliRunner().invoke(cli, ["bench", *bench, "-m", f"{module}:{name}"])
    said = " ".join(done.output.split())
    assert done.exit_code == 1 and words in said and "finite" not in said, done.output


def test_a_table_has_no_advantage_over_a_scale_below_0(module: str) -> None:
    """It was written with `valid`, and without a word."""
    done = CliRunner().invoke(cli, ["assign", "log.csv", "-m", f"{module}:negative", "-o", "out.csv"])
    assert done.exit_code == 1 and "the scale of event 0 is -1.0 and marked valid, and 1 more" in done.output
