"""What a trainer's columns may hold: what is no number, no place, no truth value is refused by its row."""

from __future__ import annotations

import contextlib
import functools
import json
import pickle
import uuid
import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest

import credit
from credit.integrations import MissingColumnWarning, RowAdvantages, rows_advantage
from credit.ray.row_actors import RowActor, _sent
from credit.tables.column_values import ColumnError
from estimators.base import REASONS, Reason


@functools.cache
def halved() -> RowAdvantages:
    """A method that heeds the order of rows, compiled once."""
    return RowAdvantages("discounted_return", discount=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "order",
    [
        np.array([1_700_000_000_000_000_100, 1_700_000_000_000_000_000, 1, 0]),
        np.array([2**64 - 1, 2**64 - 2, 1, 0], np.uint64),
        np.array([1_700_000_000_000_000_100, 1_700_000_000_000_000_000, 1, 0], "datetime64[ns]"),
        pa.array([1_700_000_000_000_000_100, 1_700_000_000_000_000_000, 1, 0], pa.timestamp("ns", "UTC")),
        pa.array([1_700_000_000_000_000_100, 1_700_000_000_000_000_000, 1, 0]).dictionary_encode(),
        [1.5, 0.5, 1, -np.inf],
    ],
)
def test_places_are_compared_exactly(order: Any) -> None:
    """Nanoseconds of one second are one float64: the rows of the first trace stood in the order of the batch."""
    rows: dict[str, Any] = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "reward": np.array([1.0, 1, 0, 0])}
    got = halved()(**rows, event_reward=[0, 2, 0, 0], order=order)
    assert got.advantages.tolist() == [1, 2.5, 0, 0]


def views(words: list[str]) -> pa.Array:
    return pa.array(words, pa.string_view())


@pytest.mark.parametrize(
    "encoded",
    [
        views, lambda words: pa.chunked_array([views(words[:2]), views(words[2:])]),
        lambda words: pa.compute.run_end_encode(pa.array(words)),
        lambda words: pa.DictionaryArray.from_arrays(pa.array(range(len(words))), views(words)),
    ],
    ids=["views", "chunks of views", "runs", "a dictionary of views"],
)  # fmt: skip
def test_ids_in_each_layout_of_arrow_are_read(encoded: Any) -> None:
    """polars has views: they ended in Arrow's words about a kernel, or were refused as no strings."""
    rows: dict[str, Any] = {"group": [*"qqqp"], "trace": [*"abcd"], "agent": [*"svsv"]}
    got = RowAdvantages("rloo")(
        **{name: encoded(words) for name, words in rows.items()},
        reward=np.array([1.0, 0.0, 0.0, 1.0]), order=[3, 2, 1, 0], where=[True, True, True, False],
    )  # fmt: skip
    assert got.advantages.tolist() == [1.0, -0.5, -0.5, 0.0]


@pytest.mark.parametrize("container", [np.array, list, pa.array])
def test_a_row_without_a_place_is_refused(container: Any) -> None:
    rows: dict[str, Any] = {"group": ["q"] * 3, "trace": [0, 0, 1], "reward": np.array([1.0, 1, 0])}
    rows["event_reward"] = np.zeros(3)
    with pytest.raises(ColumnError, match=r"'order': no place, but null, NaN or NaT.*\(rows 1\)"):
        halved()(**rows, order=container([1, np.nan, 0]))
    for bad in ([1, None, 0], np.array(["2026-01-01", "NaT", "2026-01-02"], "datetime64[s]")):
        with pytest.raises(ColumnError, match=r"'order': no place.*\(rows 1\)"):
            halved()(**rows, order=bad)
    with pytest.raises(ColumnError, match="'order': places are of type string; expected numbers or times"):
        halved()(**rows, order=["b", "a", "c"])
    rows["reward"] = np.array([1.0, 1, np.nan])  # a row that does not count needs none
    halved()(**rows, order=container([1, 0, np.nan]))


def test_rows_of_one_place_keep_the_order_of_the_batch() -> None:
    rows: dict[str, Any] = {"group": ["q"] * 3, "trace": [0] * 3, "event_reward": [4.0, 8, 16], "order": [1, 1, 0]}
    with pytest.warns(MissingColumnWarning, match="2 rows of agent .* stand at one order="):
        got = halved()(**rows, reward=np.zeros(3))
    assert got.advantages.tolist() == [8, 8, 20]


@pytest.mark.parametrize(
    "where", [["True", "False", "False"], [1, np.nan, 0], [2, 1, 0], [True, None, True], np.array(["True"] * 3)]
)
def test_rows_are_counted_by_truth_values_only(where: Any) -> None:
    """A text, NaN and None were true or false as Python has them."""
    with pytest.raises(ColumnError, match=r"'where'.* True or False") as refused:
        rows_advantage("rloo", ["q"] * 3, None, None, None, np.zeros(3), where=where)
    with pytest.raises(ColumnError) as action:
        credit.from_columns(group=["q"] * 3, trace=[0, 1, 2], reward=[0.0] * 3, action=where)
    assert str(refused.value).replace("where", "action") == str(action.value)


@pytest.mark.parametrize("library", ["numpy", "list", "jax", "torch"])
@pytest.mark.parametrize(("entry", "named"), [(np.nan, "nan"), (-1.0, "-1.0"), (0.5, "0.5"), (2, "2")])
def test_tokens_are_masked_by_ones_and_zeros_only(library: str, entry: float, named: str) -> None:
    """NaN, -1 and 0.5 were tokens that the policy wrote."""
    mask: Any = [[1, 1, 0], [1, entry, 0]]
    if library == "torch":
        mask = pytest.importorskip("torch").tensor(mask)
    else:
        mask = {"numpy": np.array, "list": list, "jax": jnp.array}[library](mask)
    with pytest.raises(credit.CreditError, match=rf"^mask is {named}(\.0)? at token 1 of row 1; expected 0 or 1"):
        rows_advantage("rloo", ["q", "q"], None, None, None, np.array([1.0, 0]), mask)


@pytest.mark.parametrize("kind", [bool, np.int64, np.uint8, np.float32, np.float64])
def test_masks_of_every_kind_of_number(kind: Any) -> None:
    got = rows_advantage("rloo", ["q", "q"], None, None, None, np.array([1.0, 0]), np.array([[1, 0], [1, 1]], kind))
    assert got[0].tolist() == [[1, 0], [-1, -1]]


def test_a_mask_of_ragged_lists_is_refused() -> None:
    with pytest.raises(credit.CreditError, match=r"^mask has rows of several lengths; expected \(2, L\)"):
        rows_advantage("rloo", ["q", "q"], None, None, None, np.array([1.0, 0]), [[1, 0], [1]])


def test_an_option_that_is_an_array_is_refused_as_others_are() -> None:
    rows: dict[str, Any] = {"group": ["q", "q"], "reward": np.array([1.0, 0])}
    for discount in (np.array([0.5, 0.5]), "x"):
        with pytest.raises(credit.CreditError, match=r"discount is .*; expected a number from 0 to 1"):
            RowAdvantages("discounted_return", discount=discount)(**rows)


@pytest.mark.parametrize(
    ("column", "given", "words"),
    [
        ("where", True, "'where': is True; expected a column"),
        ("group", 5, "'group': is 5; expected a column"),
        ("reward", 1.0, "'reward': is 1.0; expected a column"),
        ("order", 5, "'order': cannot be read as one column"),
        ("order", [[1], [1, 2]], "'order': places are of type list"),
        ("mask", 5, r"^mask has shape \(\); expected \(2, L\)"),
        ("mask", [1, 0], r"^mask has shape \(2,\); expected \(2, L\)"),
    ],
)
def test_what_is_no_column_is_refused_by_name(column: str, given: Any, words: str) -> None:
    """A single value, or rows of several lengths, ended in an error of Python or NumPy."""
    columns: dict[str, Any] = {"group": ["q", "q"], "trace": [0, 1], "reward": np.array([1.0, 0])}
    with pytest.raises(credit.CreditError, match=words):
        halved()(**columns | {column: given})


@pytest.mark.parametrize("library", ["list", "numpy"])
@pytest.mark.parametrize(
    ("trace", "row", "words"),
    [
        ([7, 7, "a", 8], 2, "'a' is of type str, and 7 before it of type int"),
        (["b", None, 1, "c"], 2, "1 is of type int, and 'b' before it of type str"),
        (["b", float("nan"), "c", 0.5], 3, "0.5 is of type float, and 'b' before it of type str"),
        ([object, object, 1, 1], 0, "<class 'object'> is of type type"),
    ],
)
def test_ids_of_mixed_types_name_the_first_row_that_differs(
    library: str, trace: list[Any], row: int, words: str
) -> None:
    """Arrow's words, "Expected bytes, got a 'int' object", named no row."""
    columns: dict[str, Any] = {"group": ["q"] * 5, "reward": np.array([1.0, 1, 1, 0, np.nan])}
    given: Any = [*trace, trace[0]] if library == "list" else np.array([*trace, trace[0]], object)
    with pytest.raises(ColumnError) as refused:
        RowAdvantages("rloo")(**columns, trace=given)
    assert str(refused.value) == f"column 'trace': {words}; expected texts or numbers, all of one type (rows {row})"
    if library == "numpy":  # the row of the batch, not of those that ran
        with pytest.raises(ColumnError, match=rf"\(rows {row + 1}\)$"):
            RowAdvantages("rloo")(
                group=["q"] * 6, reward=np.ones(6), where=[False, *[True] * 5], trace=np.array([None, *given], object)
            )


def test_a_mask_of_pandas_is_one_of_numpy() -> None:
    pandas = pytest.importorskip("pandas")
    mask = pandas.DataFrame([[1, 0], [1, 1]])
    got = rows_advantage("rloo", ["q", "q"], None, None, None, np.array([1.0, 0]), mask)
    assert got[0].tolist() == [[1, 0], [-1, -1]]


@pytest.mark.parametrize("order", [None, [0, 3, 2, 1]])
def test_a_fault_in_a_row_without_a_reward_names_the_row_of_the_batch(order: Any) -> None:
    """It named the place among the rows that ran."""
    rows: dict[str, Any] = {"group": ["q"] * 4, "trace": ["pad", "a", "nan", "b"]}
    rows |= {"reward": np.array([0, 1, np.nan, 0]), "where": [False, True, True, True], "order": order}
    with pytest.raises(ColumnError, match="'trace': 'nan' in 1 of 3 rows is no id") as refused:
        RowAdvantages("rloo")(**rows, evidence={"context": ["c"] * 4})
    assert refused.value.rows == [2]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "order",
    [
        np.array([1_700_000_000_000_000_100, 1_700_000_000_000_000_000, 1, 0]),
        np.array([1_700_000_000_000_000_100, 1_700_000_000_000_000_000, 1, 0], "datetime64[ns]"),
        pa.array([1_700_000_000_000_000_100, 1_700_000_000_000_000_000, 1, 0], pa.timestamp("ns", "UTC")),
        jnp.array([3.5, 2.5, 1, 0]),
        [3, 2, 1, 0],
    ],
)
def test_places_reach_an_actor_as_they_are(order: Any) -> None:
    """They went as float64, to which nanoseconds of one second are one number; times were refused."""
    reward = np.array([1.0, 1, 0, 0])
    columns = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "event_reward": [0, 2, 0, 0], "order": order}
    sent, n = _sent(reward, columns)
    values, _, _ = RowActor("discounted_return", {"discount": 0.5}).compute(pickle.loads(pickle.dumps(sent)))
    assert n == 4 and values.tolist() == [1, 2.5, 0, 0]


@pytest.mark.slow
def test_ids_that_begin_with_none_may_be_uuids() -> None:
    """A parent is null for the first agent, and was refused as of type extension<arrow.uuid> behind it."""
    lead, worker = uuid.uuid4(), uuid.uuid4()
    rows: dict[str, Any] = {"group": ["q"] * 4, "trace": [0, 0, 1, 1], "reward": np.array([1.0, 1, 0, 0])}
    got, of_pandas = (
        RowAdvantages("dr_mas")(**rows, agent=[lead, worker] * 2, parent=[missing, lead] * 2)
        for missing in (None, np.nan)
    )
    want = RowAdvantages("dr_mas")(**rows, agent=["lead", "worker"] * 2, parent=[None, "lead"] * 2)
    assert got.advantages.tolist() == of_pandas.advantages.tolist() == want.advantages.tolist()


@pytest.mark.slow
def test_a_watch_writes_ids_that_are_integers_of_numpy(tmp_path: Path) -> None:
    advantages = RowAdvantages("rloo", watch=tmp_path)
    advantages(group=["q", "q"], trace=["a", "b"], agent=[np.int64(3), np.int64(4)], reward=np.array([1.0, 0]))
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["agent"] for row in rows] == [3, 4]


def test_tensors_in_a_list_and_masks_that_are_not_dense() -> None:
    torch = pytest.importorskip("torch")
    reward = [torch.tensor(1.0, requires_grad=True), torch.tensor(0.0)]
    assert rows_advantage("rloo", ["q", "q"], None, None, None, reward)[0].tolist() == [1, -1]
    with pytest.raises(credit.CreditError, match=r"layout torch.sparse_coo; expected a dense one of shape \(2, L\)"):
        rows_advantage("rloo", ["q", "q"], None, None, None, np.array([1.0, 0]), torch.ones(2, 3).to_sparse())


def test_what_a_mask_hides_is_absent() -> None:
    """A masked reward was read as if nothing hid it, a wrong number without a word."""
    names = {"group": ["q"] * 4, "trace": list("abcd"), "agent": None, "turn": None}
    reward = np.ma.array([1.0, 0.0, 1.0, 0.0], mask=[True, False, False, False])
    hidden, _ = rows_advantage("rloo", **names, reward=reward)
    absent, _ = rows_advantage("rloo", **names, reward=[None, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(hidden, absent)
    np.testing.assert_allclose(hidden, [0, -0.5, 1, -0.5], atol=1e-6)
    with pytest.raises(ColumnError, match="'where': values are not all True or False"):
        rows_advantage("rloo", **names, reward=[1.0, 0, 1, 0], where=np.ma.array([True] * 4, mask=[True] + [False] * 3))
    with pytest.raises(ColumnError, match="'order': no place"):
        order = np.ma.array([1, 0, 0, 1], mask=[True] + [False] * 3)
        halved()(**names, reward=[1.0, 1, 1, 1], order=order)
    with pytest.raises(credit.CreditError, match="mask is a masked array"):
        rows_advantage("rloo", **names, reward=[1.0, 0, 1, 0], mask=np.ma.array(np.ones((4, 2)), mask=np.eye(4, 2)))


def test_equal_returns_that_differ_as_sums_are_named() -> None:
    """`grpo` gave traces of one return, ten rewards of 0.1 and five of 0.2, advantages of 0.11 and 0 without a word."""
    rows: dict[str, Any] = {"group": ["q"] * 15, "trace": np.repeat([0, 1], [10, 5]), "reward": np.zeros(15)}
    with pytest.warns(UserWarning, match="1 group whose outcomes.* differ by little.*multiples of 1/8"):
        got = RowAdvantages("grpo")(**rows, event_reward=np.repeat([0.1, 0.2], [10, 5]))
    assert got.metrics["credit/condition/resolved"] == 0 and got.metrics["credit/groups_that_teach"] == 1
    with pytest.warns(UserWarning, match="1 group whose outcomes differ by little.*multiples of 1/8"):
        credit.from_columns(**rows, event_reward=np.repeat([0.1, 0.2], [10, 5]))  # a method may divide by the spread
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = RowAdvantages("rloo")(**rows, event_reward=np.repeat([0.125, 0.25], [10, 5]))
    assert got.metrics["credit/condition/resolved"] == 1 and not got.advantages.any()


@pytest.mark.parametrize(
    ("method", "steps", "made"),
    [("rloo", [-0.2, 0.15, 0.1, -0.05], False), ("rloo", [-0.1, -0.2, 0.3], False), ("rloo", [0.1] * 10, False),
     ("grpo", [-0.1, -0.2, 0.3], False), ("grpo", [-0.2, 0.15, 0.1, -0.05], True),
     ("wideseek_r1", [-0.2, 0.15, 0.1, -0.05], True), ("wideseek_r1", [0.1, 0.7, -0.8], True)],
)  # fmt: skip
def test_a_group_of_equal_returns_alarms_where_a_method_makes_something_of_rounding(
    method: str, steps: list[float], made: bool
) -> None:
    """One group of them turned `resolved` and `unbiased` of the batch to 0, and taught with 4e-9."""
    n, total = len(steps), round(sum(steps), 9)
    rows: dict[str, Any] = {"group": ["q"] * (n + 1) + ["h"] * 2, "trace": ["a"] + ["b"] * n + ["c", "d"]}
    rows |= {"reward": np.array([0.0] * (n + 1) + [1.0, 0.0]), "event_reward": np.array([total, *steps, 0.0, 0.0])}
    with contextlib.nullcontext() if not made else pytest.warns(UserWarning, match="1 group whose outcomes"):
        advantages = RowAdvantages(method, rows=16)
        got = advantages(**rows)
    assert got.metrics["credit/condition/resolved"] == (not made)
    assert got.metrics["credit/condition/unbiased"] == (method == "rloo")
    assert got.metrics["credit/groups_that_teach"] == (1 if made else 0.5)
    assert advantages.silent_groups == ([] if made else ["q"])


@pytest.mark.parametrize("of", [list, np.array, pa.array])
def test_groups_without_an_advantage_are_listed_with_the_reason(of: Any) -> None:
    """A loop knew how many rows were refused, and of which groups nothing."""
    groups = ["q", "q", "one", "unscored", "unscored", "frozen", "frozen", "fills"]
    nan, trained = np.nan, [1.0] * 5 + [0.0] * 2 + [1.0]
    advantages = RowAdvantages("rloo", rows=16)
    assert advantages.refused_groups == {}
    advantages(
        group=of(groups),
        trace=of([*"abcdefgh"]),
        reward=np.array([1.0, 0.0, 1.0, nan, nan, 1.0, 0.0, 1.0]),
        evidence={"trainable": trained},
        where=[True] * 7 + [False],
    )
    assert advantages.refused_groups == {
        REASONS[Reason.SINGLETON]: ["one"],
        REASONS[Reason.FROZEN]: ["frozen"],
        REASONS[Reason.NO_REWARD]: ["unscored"],
    }
    advantages(group=of([7, 7]), trace=of([0, 1]), reward=np.array([nan, nan]))
    assert advantages.refused_groups == {REASONS[Reason.NO_REWARD]: [7]}
    with pytest.warns(UserWarning, match="every group of the batch has one trace"):
        advantages(group=of([7, 7]), trace=of([0, 1]), reward=np.array([nan, 1]))
    assert advantages.refused_groups == {REASONS[Reason.SINGLETON]: [7]}
