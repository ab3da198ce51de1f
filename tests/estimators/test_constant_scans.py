"""No scan runs over what the compiler knows: XLA would compute it while it compiles, number by number.

Of 524,288 events one such scan took 40 s, before the first advantage.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Literal

import credit
from benchmarks.methods import evidence_of, graph_of

SCANS = ("cumsum", "cummax", "cummin", "cumprod", "cumlogsumexp", "sort", "reduce_window")
TRACES = 16


def absorbed(primitive: str, inputs: list[Any]) -> Any:
    """What is known of a result of which not all arguments are: what XLA's simplification of logic finds, or None."""
    of_bits = [value for value in inputs if value is not None and value.dtype == bool]
    if primitive == "and" and (zeros := [value for value in of_bits if not value.any()]):
        return zeros[0]
    if primitive == "or" and (ones := [value for value in of_bits if value.all()]):
        return ones[0]
    if primitive == "select_n" and of_bits and inputs[0] is of_bits[0] and (of_bits[0].all() or not of_bits[0].any()):
        return inputs[1 + int(of_bits[0].all())]
    return None


def constant_scans(jaxpr: Any, arguments: list[Any]) -> tuple[list[str], list[Any]]:
    """Scans of a program over known arrays, and its results; None for every argument and result that is not known."""
    values = dict(zip(jaxpr.invars, arguments, strict=True)) | dict.fromkeys(jaxpr.constvars)
    found = []

    def value_of(variable: Any) -> Any:
        return jnp.asarray(variable.val) if isinstance(variable, Literal) else values[variable]

    for equation in jaxpr.eqns:
        inputs, name = [value_of(variable) for variable in equation.invars], equation.primitive.name
        known = all(value is not None for value in inputs)
        outputs = [None] * len(equation.outvars)
        if name in ("jit", "pjit"):
            within, outputs = constant_scans(equation.params["jaxpr"].jaxpr, inputs)
            found += within
        elif name in SCANS and known:
            found.append(str(equation)[:200])
        elif known and not any("jaxpr" in key for key in equation.params):
            result = equation.primitive.bind(*inputs, **equation.params)
            outputs = result if equation.primitive.multiple_results else [result]
        elif len(outputs) == 1:
            outputs = [absorbed(name, inputs)]
        values |= dict(zip(equation.outvars, outputs, strict=True))
    return found, [value_of(variable) for variable in jaxpr.outvars]


def traced(call: Any, *arguments: Any) -> list[str]:
    program = jax.make_jaxpr(call)(*arguments).jaxpr
    return constant_scans(program, [None] * len(program.invars))[0]


def test_a_scan_of_zeros_is_found() -> None:
    def scan(x: jax.Array) -> jax.Array:
        marked = (x > 0) & jnp.zeros_like(x, bool)
        return x + jax.jit(jax.lax.cummax)(jnp.where(marked, x, 0))

    assert len(traced(scan, jnp.ones(8))) == 1
    assert not traced(lambda x: jax.lax.cummax(jnp.where(x > 0, x, 0)), jnp.ones(8))


@pytest.mark.every_method
@pytest.mark.parametrize("name", credit.METHODS)
def test_no_scan_of_a_constant(name: str) -> None:
    method, graph = credit.METHODS[name], graph_of(TRACES, 64, 8)
    offered = evidence_of(graph, np.random.default_rng(0))
    if not set(method.needs) <= set(offered):
        pytest.skip(f"{sorted(set(method.needs) - set(offered))}: not of one batch of logs")
    given = {key: jnp.asarray(offered[key]) for key in method.needs}
    reward, step = jnp.ones(TRACES), jnp.ones(graph.num_events)
    for extra in (step, None):
        assert not traced(
            lambda g, r, e, kept: method.fn(g, r, event_reward=e, **kept).advantage, graph, reward, extra, given
        )
