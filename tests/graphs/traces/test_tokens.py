"""Lists of tokens by event against a slow reading of the same rules, and parts joined and cut."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from graphs.traces.token_lists import gather_tokens
from graphs.traces.tokens import TOKEN_COLUMNS, Tokens, join_tokens

Lists = dict[str, list[Any]]


def slow(lists: Lists, actions: list[bool]) -> tuple[list[list[tuple[int, bool, float, float]]], list[bool]]:
    """(id, generated, log-probability, sum of squares) of each token by event, and which events have lists that fit."""
    tokens, sound = [], []
    for ids, mask, log_probs, sums, action in zip(*(lists[name] for name in TOKEN_COLUMNS), actions, strict=True):
        stated = [one for one in (ids, mask, log_probs, sums) if one is not None]
        n = len(stated[0]) if stated else 0
        fits = mask is None or len(mask) == n
        mask = [action] * n if mask is None or not fits else mask
        numbers = []
        for given in (log_probs, sums):
            scores = [np.nan] * n
            if given is not None and len(given) == n:
                scores = list(given)
            elif given is not None and len(given) == sum(mask):
                rest = iter(given)
                scores = [next(rest) if generated else np.nan for generated in mask]
            elif given is not None:
                fits = False
            numbers.append([score if generated else np.nan for score, generated in zip(scores, mask, strict=True)])
        sound.append(fits)
        ids = [-1] * n if ids is None else ids
        tokens.append(list(zip(ids, mask, *numbers, strict=True)) if fits else [])
    return tokens, sound


def drawn(seed: int, events: int = 40) -> tuple[Lists, list[bool]]:
    rng = np.random.default_rng(seed)
    lists: Lists = {name: [] for name in TOKEN_COLUMNS}
    for _ in range(events):
        n = int(rng.integers(0, 5))
        mask = (rng.random(n) < 0.6).tolist()
        scores = int(sum(mask)) if rng.random() < 0.5 else n
        row: list[Any] = [rng.integers(0, 99, n).tolist(), mask, np.float32(rng.normal(size=scores)).tolist()]
        row.append(np.float32(rng.uniform(size=int(sum(mask)) if rng.random() < 0.5 else n)).tolist())
        if rng.random() < 0.2:
            row[int(rng.integers(4))].append(1)
        row = [None if rng.random() < 0.3 else one for one in row]
        row[1] = None if row[1] is None else [bool(x) for x in row[1]]
        for name, one in zip(TOKEN_COLUMNS, row, strict=True):
            lists[name].append(one)
    return lists, (rng.random(events) < 0.5).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_lists_against_a_slow_reading(seed: int) -> None:
    lists, actions = drawn(seed)
    expected, fits = slow(lists, actions)
    tokens, sound = gather_tokens(lists, np.array(actions))
    assert sound.tolist() == fits and not all(fits)
    assert tokens is not None
    for event, own in enumerate(expected):
        part = tokens.slice(event, event + 1)
        assert part.sums_of_squares is not None
        arrays = (part.ids, part.mask, part.log_probs, part.sums_of_squares)
        rows = list(zip(*(array.tolist() for array in arrays), strict=True))
        np.testing.assert_equal(rows, own)
        assert tokens.generated[event] == sum(generated for _, generated, *_ in own)
    assert tokens.events.tolist() == [event for event, own in enumerate(expected) for _ in own]


@pytest.mark.parametrize("seed", range(4))
def test_written_lists_give_the_same_tokens(seed: int) -> None:
    tokens, _ = gather_tokens(*(lambda lists, actions: (lists, np.array(actions)))(*drawn(seed)))
    assert tokens is not None
    n = len(tokens.offsets) - 1
    again, sound = gather_tokens(tokens.listed(0, n), np.zeros(n, bool))
    assert sound.all() and again is not None
    assert_same(again, tokens)


@pytest.mark.parametrize("seed", range(4))
def test_parts_joined_are_the_whole(seed: int) -> None:
    lists, actions = drawn(seed)
    whole, _ = gather_tokens(lists, np.array(actions))
    cuts = [0, 3, 3, 17, 40]
    pairs = list(itertools.pairwise(cuts))
    parts = [
        gather_tokens({name: column[a:b] for name, column in lists.items()}, np.array(actions[a:b]))[0]
        for a, b in pairs
    ]
    joined = join_tokens(parts, [b - a for a, b in pairs])
    assert whole is not None and joined is not None
    assert_same(joined, whole)
    assert_same(join_tokens([None, whole.slice(3, 17)], [5, 14]).slice(5, 19), whole.slice(3, 17))  # type: ignore[union-attr]
    assert join_tokens([None, None], [2, 3]) is None


def test_no_list_has_no_tokens() -> None:
    tokens, sound = gather_tokens({"token_ids": [None, []]}, np.array([True, True]))
    assert tokens is None and sound.all()


def assert_same(a: Tokens, b: Tokens) -> None:
    for name, array in vars(a).items():
        np.testing.assert_array_equal(array, getattr(b, name), err_msg=name)
        assert array.dtype == getattr(b, name).dtype
