"""Keys of the object a file begins with: decoded where it is whole, by token where not, and the same either way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.reading.keys import _by_token, opening

PLAIN = st.text(st.characters(codec="ascii", exclude_characters='\\"', min_codepoint=32, max_codepoint=126), max_size=4)
LEAVES = st.none() | st.booleans() | st.integers() | PLAIN | st.sampled_from(["{[", '\\"', "é\n"])
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(PLAIN, v, max_size=3), max_leaves=6)


@pytest.mark.slow
@given(
    st.dictionaries(PLAIN, VALUES, max_size=4), st.sampled_from([None, 1]), st.sampled_from(["", "\n", "\n{}", " x"])
)
def test_decoding_shows_what_tokens_show(value: dict[str, Any], indent: int | None, behind: str) -> None:
    head = (json.dumps(value, indent=indent) + behind).encode()
    assert opening(head) == _by_token(head)


def test_heads_of_logs_show_the_same(shared_data: Path) -> None:
    for file in (path for path in shared_data.rglob("*") if path.suffix in (".json", ".jsonl")):
        head = file.read_bytes()[: 1 << 16]
        assert opening(head) == _by_token(head), file


def test_what_is_not_whole_shows_its_keys() -> None:
    seen = opening(b'{"a": 1, "b": [{"c": 2, "d": 3}, {"e')
    assert (seen.keys, seen.first, seen.complete) == (("a", "b"), {"b": frozenset("cd")}, False)
    assert opening(b'[{"a": 1}]').keys == ()
