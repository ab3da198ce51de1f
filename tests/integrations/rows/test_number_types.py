"""A column of numbers says the same in each type that holds its numbers, and is never written into."""

from __future__ import annotations

import functools
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import credit
from credit.integrations import MissingColumnWarning, RowAdvantages
from credit.ray.row_actors import _sent
from graphs.errors import PrecisionWarning

ROWS: dict[str, Any] = {"group": [*"qqqqqqpp"], "trace": [0, 0, 1, 1, 2, 2, 3, 4], "agent": [*"svsvsvss"]}
OUTCOME, ONES = [1, 1, 0, 0, 1, 1, 0, 1], [1, 0, 1, 1, 0, 0, 0, 1]
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "event_reward": ("rloo", ONES),
    "reward": ("rloo", OUTCOME),
    "value": ("gae", ONES),
    "agent_reward": ("spiral_rae", ONES),
    "trainable": ("rloo", [1, 1, 1, 1, 1, 0, 1, 1]),
    "policy_version": ("rloo", OUTCOME),
    "where": ("rloo", [1, 1, 1, 1, 1, 1, 0, 0]),
    "order": ("discounted_return", [1, 0, 0, 1, 0, 1, 0, 0]),
    "log_ratio": ("rloo", OUTCOME),
    "mask": ("rloo", [[row, 1] for row in ONES]),
}
"""Columns by name, with a method that reads them: numbers that every type holds."""

OF_NUMPY: tuple[Any, ...] = (
    np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float32, np.float64, ">f4", np.int64, np.uint8,
    np.bool_, np.object_)  # fmt: skip
OF_JAX: tuple[Any, ...] = jnp.float16, jnp.bfloat16, jnp.float32, jnp.int32, jnp.bool_


def read_only(numbers: list[Any], kind: Any) -> np.ndarray:
    column = np.array(numbers).astype(kind)
    column.setflags(write=False)
    return column


KINDS: dict[str, Callable[[list[Any]], Any]] = {
    **{f"numpy {np.dtype(kind)}": functools.partial(read_only, kind=kind) for kind in OF_NUMPY},
    **{f"jax {np.dtype(kind)}": functools.partial(jnp.array, dtype=kind) for kind in OF_JAX},
    "arrow": lambda numbers: pa.array(numbers, pa.float64()),
    "arrow decimal": lambda numbers: pa.array(numbers).cast(pa.decimal128(21, 2)),
}


def in_the_loop(column: str, method: str, numbers: Any) -> np.ndarray:
    rows = {**ROWS, "reward": OUTCOME} | ({"event_reward": ONES} if column == "order" else {})
    evidence = {column: numbers} if column in ("value", "agent_reward", "trainable") else {}
    rows |= {"evidence": evidence} if evidence else {column: numbers}
    return np.asarray(RowAdvantages(method, rows=8)(**rows).advantages)


def of_columns(column: str, method: str, numbers: Any) -> np.ndarray:
    rows = {**ROWS, "reward": OUTCOME} | ({"event_reward": ONES} if column == "order" else {})
    evidence = {column: numbers} if column in ("value", "agent_reward", "trainable", "policy_version") else {}
    rows |= {"evidence": evidence} if evidence else {"action" if column == "where" else column: numbers}
    graph, reward, read = credit.from_columns(**rows, events=8, traces=8, agents=8)
    taken = {name: read.evidence[name] for name in ("event_reward", *evidence) if name in read.evidence}
    takes = credit.METHODS[method].needs
    named = {name: array for name, array in taken.items() if name in ("event_reward", "agent_reward", *takes)}
    numbers_of_rows = [read.gather(credit.METHODS[method].fn(graph, reward, **named))]
    return np.concatenate([*numbers_of_rows, *taken.values()])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # of what these few rows hold
@pytest.mark.parametrize("column", COLUMNS)
def test_numbers_say_the_same_in_each_type(column: str) -> None:
    """Event rewards in bfloat16 ended in NumPy's "assignment destination is read-only", and float8 was refused."""
    method, numbers = COLUMNS[column]
    for run in (in_the_loop, of_columns) if column not in ("log_ratio", "mask") else (in_the_loop,):
        of_numbers = [*map(bool, numbers)] if column == "where" else np.array(numbers)
        expected = run(column, method, of_numbers)
        for kind, made in KINDS.items():
            if kind.startswith("arrow") and column in ("log_ratio", "mask", "order", "where"):
                continue
            given = made(numbers)
            np.testing.assert_allclose(run(column, method, given), expected, 1e-6, err_msg=f"{run.__name__}, {kind}")
            assert np.array_equal(np.asarray(given), np.asarray(made(numbers)))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, "arrow", "list", "jax"])
@pytest.mark.parametrize("column", ["reward", "event_reward", "agent_reward"])
def test_what_a_type_lost_is_not_resolved(kind: Any, column: str) -> None:
    """Rewards about 5 that differ by 0.1 were off by 10 % in bfloat16, `resolved` stood at 1, and nobody was warned."""
    base = {np.float32: 1e6, ml_dtypes.bfloat16: 5.0, "jax": 5.0}.get(kind, 50.0)
    draw = np.random.default_rng(0)
    types: dict[Any, Callable[[np.ndarray], Any]] = {
        "arrow": lambda numbers: pa.array(numbers.astype(np.float16)), "list": lambda numbers: [*np.float16(numbers)],
        "jax": lambda numbers: jnp.asarray(numbers, jnp.bfloat16),
    }  # fmt: skip
    made = types.get(kind, lambda numbers: numbers.astype(kind))
    rows: dict[str, Any] = {"group": [0] * 8, "trace": np.arange(8)}
    method = RowAdvantages("hierarchical_grpo" if column == "agent_reward" else "dr_grpo", rows=8)

    def remote(*, reward: Any, **columns: Any) -> Any:
        """As the actor is sent rows, which had float64 whatever the type of the rewards."""
        return method(**pickle.loads(pickle.dumps(_sent(reward, columns)[0])))

    for numbers, resolved in (
        (base + 0.1 * draw.normal(size=8), False),
        (base * draw.normal(size=8), True),
        (np.array([1.0, 0.0, 0.5, 0.75] * 2), True),
        (np.full(8, 0.9), True),
        (np.arange(8) + base, True),
    ):
        given = {"reward": np.zeros(8)} if column != "reward" else {}
        given |= {"evidence": {column: made(numbers)}} if column == "agent_reward" else {column: made(numbers)}
        for call in (method, remote, credit.from_columns):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always", PrecisionWarning)
                warnings.simplefilter("ignore", MissingColumnWarning)
                result = call(**rows, **given)
            said = any("for the type of their column" in str(one.message) for one in found)
            assert said != resolved, numbers
            if call is not credit.from_columns:
                assert result.metrics["credit/condition/resolved"] == (resolved or not found)


def test_nan_is_no_outcome_where_a_column_has_no_null(tmp_path: Path) -> None:
    """A Parquet file refused NaN, and its own columns, passed as rows, took it for no outcome."""
    ids = {"group": ["q"] * 4, "trace": [*"abcd"]}
    scores = np.array([1.0, 0.0, np.nan, 0.5])
    table = pa.table({**ids, "reward": pa.array(scores, from_pandas=False)})
    pq.write_table(table, tmp_path / "nan.parquet")
    assert [problem.kind for problem in credit.read(tmp_path / "nan.parquet").problems] == ["non-finite-reward"]
    loop = RowAdvantages("rloo", rows=4)
    for call in (loop, credit.from_columns):
        for column in (table["reward"], table["reward"].combine_chunks()):
            with pytest.raises(credit.CreditError, match=r"'reward': NaN in 1 of 4 rows; .* null for none \(rows 2\)"):
                call(**ids, reward=column)
    none = pa.table({**ids, "reward": pa.array(scores, from_pandas=True)})
    pq.write_table(none, tmp_path / "null.parquet")
    expected = [0.75, -0.75, 0.0, 0.0]
    read = credit.read(tmp_path / "null.parquet")
    assert np.asarray(credit.run(read, "rloo").advantage)[:4].tolist() == expected
    for reward in (none["reward"], scores, scores.tolist(), [1.0, 0.0, None, 0.5], np.ma.masked_invalid(scores)):
        assert loop(**ids, reward=reward).advantages.tolist() == expected
        graph, outcome, rows = credit.from_columns(**ids, reward=reward)
        assert rows.gather(credit.rloo(graph, outcome)).tolist() == expected
