"""Columns that are refused: the error names the column, the rows and what was expected."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import credit
from credit.tables.columns import ColumnError, from_columns
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, TRACE_EVIDENCE

from .eight_rows import AGENT, GROUP, REWARD, TRACE, example


@pytest.mark.parametrize(
    ("changes", "rows", "message"),
    [
        (
            {"reward": [1, 0, 2, 0, 2, 5, 5, 2]},
            [0, 2],
            "'reward'.*trace 'a' has different values.*pass event_reward= beside it.*row_reward=",
        ),
        ({"group": ["q1", "q1", "q1", "q1", "q2", "q2", "q9", "q2"]}, [5, 6], "'group'.*trace 'd'.*one group"),
        ({"role": ["x", "x", "y", "y", "x", "x", "y", "z"]}, [4, 7], "'role'.*agent 'S'.*one role"),
        (
            {"reward": [1, 0, 1, float("nan"), 2, 5, 5, 2]},
            [3],
            "'reward'.*no finite number, or beyond float32, in 1 of 8 rows",
        ),
        ({"reward": [1, 0, 1, None, 2, 5, 5, 2]}, [3], "'reward'.*no finite"),
        ({"reward": [1, 0, 1, float("inf"), 2, 5, 5, 2]}, [3], "no finite"),
        ({"trace": ["a", None, "a", "b", "c", "d", "d", None]}, [1, 7], "'trace'.*no id.* in 2 of 8 rows"),
        ({"group": np.array([None] * 8, object)}, [0, 1, 2, 3, 4], "'group'.*no id.* in 8 of 8 rows.*…"),
        ({"trace": pa.array(["a", None] * 4).dictionary_encode()}, [1, 3, 5, 7], "no id"),
        ({"trace": pa.DictionaryArray.from_arrays([0, 1] * 4, ["a", None])}, [1, 3, 5, 7], "no id"),
        ({"agent": pa.DictionaryArray.from_arrays([0, 1] * 4, pa.array([[1], [2]]))}, [], "'agent'.*list<"),
        ({"agent": pa.DictionaryArray.from_arrays([0, 1] * 4, [False, True])}, [], "'agent'.*bool; expected"),
        ({"agent": ["S"] * 7}, [], "'agent'.*has 7 rows; column 'trace' has 8"),
        ({"agent": ["S", 1] * 4}, [1], "'agent': 1 is of type int, and 'S' before it of type str; .*one type"),
        ({"agent": [0.5] * 8}, [], "'agent'.*0.5 in row 0; expected strings or integers.*astype"),
        ({"agent": np.zeros((8, 1))}, [], "'agent'.*1-dimensional"),
        ({"agent": "agent_id"}, [], "'agent'.*is the text 'agent_id'"),
        ({"reward": ["1"] * 8}, [], "'reward'.*string; expected numbers"),
        ({"trace": [], "group": []}, [], "'trace'.*no rows"),
        ({"reward": None}, [], "either reward= .* or row_reward="),
        ({"row_reward": REWARD}, [], "either reward= .* or row_reward="),
        ({"reward": None, "row_reward": REWARD, "event_reward": REWARD}, [], "expected one of the two"),
        ({"evidence": {"token_sums_of_squares": REWARD}}, [], "has a list for each row; expected numbers of rows"),
        ({"evidence": {"valu": REWARD}}, [], "'valu'.*is not evidence of any method; expected one of .*value"),
        ({"evidence": {"greedy_reward": range(8)}}, [0, 2], "'greedy_reward'.*trace 'a'"),
        ({"event_reward": [0, 0, float("nan"), 0, 0, 0, 0, 0]}, [2], "'event_reward'.*no finite.*, 0 where it earned"),
        ({"event_reward": [0, 0, float("inf"), 0, 0, 0, 0, 0]}, [2], "'event_reward': inf .*, 0 where it earned"),
    ],
)
def test_bad_columns_are_named_with_their_rows(changes: dict[str, Any], rows: list[int], message: str) -> None:
    with pytest.raises(ColumnError, match=message) as error:
        example(**changes)
    assert error.value.rows == rows


@pytest.mark.parametrize("column", ["trace", "group", "agent", "role", "turn", "parent", "context"])
def test_ids_that_pandas_made_floats_are_refused_with_advice(column: str) -> None:
    pandas = pytest.importorskip("pandas")
    ids = pandas.Series([None, 3, 3, 3, 4, 4, 4, None])

    def given(ids: Any) -> dict[str, Any]:
        agents = {"agent": [3, 3, 3, 3, 4, 4, 4, 4]} if column == "parent" else {}
        return {**agents, **({"evidence": {column: ids}} if column == "context" else {column: ids})}

    words = f"column '{column}': ids are floats, 3.0 in row 1; expected strings or integers; .*astype.\"Int64\".*"
    with pytest.raises(ColumnError, match=words + r"none in 2 of 8 rows \(rows 0, 7\)") as error:
        example(**given(ids))
    assert error.value.rows == [0, 7]
    with pytest.raises(ColumnError, match=words.replace("row 1", "row 0") + "writes 'nan'$"):
        example(**given(ids.fillna(3.0)))
    if column == "context":  # where a row may have none
        example(**given(ids.astype("Int64")))
    elif column != "parent":
        with pytest.raises(
            ColumnError, match="no id, but null or NaN, in 2 of 8 rows; expected a string or an integer"
        ):
            example(**given(ids.astype("Int64")))


@pytest.mark.parametrize("word", ["nan", "NaN", "None", "null", "<NA>", "NaT", "", " ", " nan ", "\x1c", "\u2003"])
@pytest.mark.parametrize("column", ["group", "trace", "agent", "role"])
def test_texts_of_missing_names_join_no_rows(column: str, word: str) -> None:
    """What `Series.astype(str)` writes where a row has no id was the name of one group, trace, agent or role."""
    ids = {"group": GROUP, "trace": TRACE}.get(column, AGENT)
    plain = [word, *ids[1:7], word]
    for container in (plain, pa.array(plain).dictionary_encode()):
        with pytest.raises(ColumnError, match=re.escape(f"'{column}': {word!r} in 2 of 8 rows is no id")) as refused:
            example(**{column: container})
        assert refused.value.rows == [0, 7]


def test_texts_of_missing_names_are_refused_as_in_a_table(tmp_path: Path) -> None:
    words = ["nan", "NaN", "None", "null", "<NA>", "NaT", "", " ", "Nat", "na", "nane"]
    rows = [{"trace": f"t{i}", "group": word, "reward": 1} for i, word in enumerate(words)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    read = credit.read(tmp_path, format="table").traces["trace"].to_pylist()
    assert read == ["t8", "t9", "t10"]
    for i, word in enumerate(words):
        if f"t{i}" in read:
            from_columns(group=[word], trace=["a"], reward=[1.0])
        else:
            with pytest.raises(ColumnError):
                from_columns(group=[word], trace=["a"], reward=[1.0])


@pytest.mark.parametrize("word", ["nan", "<NA>", "NaT"])
def test_ids_of_evidence_that_pandas_wrote_for_none_join_no_rows(word: str, tmp_path: Path) -> None:
    """All rows without an anchor were one place where they had stood; a choice may well be called "none"."""
    with pytest.raises(ColumnError, match=f"column 'anchor': {word!r} in 2 of 8 rows is what programs write for none"):
        example(evidence={"anchor": [word, word, *"abcdef"]})
    example(evidence={"anchor": [None, "none", *"abcdef"]})
    path = tmp_path / "table.csv"
    path.write_text(f"trace,group,reward,anchor\na,q,1,x\nb,q,0,{word}\n", encoding="utf-8")
    (problem,) = credit.read(path).problems
    assert (problem.kind, problem.field, problem.trace) == ("bad-type", "anchor", "b")


def test_an_integer_beyond_64_bits_is_named_by_its_column() -> None:
    """The error was "Python int too large to convert to C long"."""
    with pytest.raises(ColumnError, match=r"column 'trace': has an integer beyond 64 bits; expected .*, or texts"):
        example(trace=[10**30, *range(7)])


COUNTS = [name for name, key in {**EVENT_EVIDENCE, **TRACE_EVIDENCE}.items() if key.kind == "count"]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("amount", [1.5, -1, 2**31, float("inf")])
def test_counts_are_integers_from_zero(name: str, amount: float) -> None:
    """1.5 was stored as 1, and -1 read as absent; a native log with it loses the key or the trace."""
    column = [amount, *range(1, 8)]
    given: dict[str, Any] = {"tokens": column} if name == "tokens" else {"evidence": {name: column}}
    with pytest.raises(ColumnError, match=f"'{name}': .* in 1 of 8 rows; expected an integer from 0 to 2147483647"):
        example(**given)


@pytest.mark.parametrize("name", ["value", "propensity", "greedy_reward", "event_reward"])
@pytest.mark.parametrize("amount", [float("inf"), -float("inf"), 1e39])
def test_evidence_that_no_log_may_state_is_refused(name: str, amount: float) -> None:
    """An infinite value was absent without a word."""
    with pytest.raises(
        ColumnError, match=f"'{name}': .* in 1 of 8 rows; expected a number (between|from 0)"
    ) as refused:
        example(evidence={name: [*[0.5] * 7, amount]})
    assert refused.value.rows == [7]


@pytest.mark.parametrize("name", sorted(FLAGS))
@pytest.mark.parametrize("amount", [0.5, -1.0, 2.0, float("inf")])
def test_marks_are_0_or_1_as_in_a_table(name: str, amount: float) -> None:
    """An agent that was trained by a half was trained."""
    with pytest.raises(ColumnError, match=f"'{name}': .* in 1 of 8 rows; expected 0 or 1, False or True"):
        example(evidence={name: [*[1] * 7, amount]})


@pytest.mark.parametrize("name", ["event_reward", "tokens"])
def test_a_column_that_is_passed_twice_is_refused(name: str) -> None:
    """The one in evidence was left out without a word."""
    with pytest.raises(ColumnError, match=f"'{name}': is passed twice"):
        example(**{name: [1] * 8}, evidence={name: [2] * 8})


@pytest.mark.parametrize(
    ("name", "values"),
    [("reward", np.asarray(REWARD, np.float64)), ("action", np.ones(8, bool)), ("turn", np.arange(8))],
)
def test_what_a_mask_hides_is_null(name: str, values: np.ndarray) -> None:
    """NumPy's masked arrays hold numbers behind the mask, which were taken."""
    with pytest.raises(ColumnError, match=f"column '{name}'") as refused:
        example(**{name: np.ma.array(values, mask=[False] * 7 + [True])})
    assert refused.value.rows == [7]
