"""Tokens of events as padded rows, and advantages of events at tokens, against loops."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from estimators.tokens.event_tokens import pad_tokens, token_advantages
from graphs.errors import ArrayTypeError, CreditError
from graphs.traces.tokens import Tokens


def drawn(seed: int, events: int = 12) -> Tokens:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 4, events)
    n = int(lengths.sum())
    mask = rng.random(n) < 0.5
    log_probs = np.where(mask, rng.normal(size=n), np.nan).astype(np.float32)
    return Tokens(np.concatenate([[0], np.cumsum(lengths)]), np.arange(n, dtype=np.int32), mask, log_probs)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("labelled", [False, True])
def test_rows_against_loops(seed: int, labelled: bool) -> None:
    tokens = drawn(seed)
    labels = np.random.default_rng(seed).integers(-1, 4, 15) if labelled else np.arange(12)
    expected: dict[int, list[tuple[int, int, bool, float]]] = {}
    for event in range(12):
        for at in range(tokens.offsets[event], tokens.offsets[event + 1]):
            if labels[event] >= 0:
                own = event, int(tokens.ids[at]), bool(tokens.mask[at]), float(tokens.log_probs[at])
                expected.setdefault(int(labels[event]), []).append(own)
    expected = {label: own for label, own in sorted(expected.items()) if any(mask for _, _, mask, _ in own)}
    rows = pad_tokens(tokens, labels if labelled else None, width=40)
    assert rows.row.tolist() == list(expected)
    for row, own in enumerate(expected.values()):
        padding = [(-1, -1, False, float("nan"))] * (40 - len(own))
        columns = (rows.events, rows.ids, rows.mask, rows.log_probs)
        np.testing.assert_equal(list(zip(*(c[row].tolist() for c in columns), strict=True)), own + padding)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_advantages_against_loops(seed: int) -> None:
    tokens = drawn(seed)
    rng = np.random.default_rng(seed)
    advantage = rng.normal(size=16).astype(np.float32)
    valid = rng.random(16) < 0.7
    advantage[~valid] = np.nan  # inert
    for events, mask in ((tokens.events, tokens.mask), pad_tokens(tokens)[1:4:2]):
        amounts, trained = token_advantages(advantage, events, mask, valid)
        for place in np.ndindex(events.shape):
            event = events[place]
            kept = bool(mask[place]) and event >= 0 and bool(valid[event])
            assert bool(trained[place]) == kept
            assert float(amounts[place]) == (float(advantage[event]) if kept else 0.0)


def test_a_log_without_generated_tokens_has_no_rows() -> None:
    tokens = Tokens(np.array([0, 2]), np.array([5, 6]), np.zeros(2, bool), np.full(2, np.nan, np.float32))
    assert pad_tokens(tokens).ids.shape == (0, 0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"row_of_event": np.zeros(11, int)}, r"int \[12\]"),
        ({"row_of_event": np.zeros(12)}, "float64"),
        ({"row_of_event": np.zeros((12, 1), int)}, r"\(12, 1\)"),
        ({"row_of_event": np.full(12, 3), "width": 2}, "row 3 has"),
    ],
)
def test_rows_that_cannot_be_are_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(CreditError, match=expected):
        pad_tokens(drawn(0), **options)


EVENTS, MASK = np.zeros(3, np.int32), np.ones(3, bool)


@pytest.mark.parametrize(
    ("arguments", "kind", "expected"),
    [
        ((np.zeros(2, int), EVENTS, MASK), ArrayTypeError, "floating"),
        ((np.zeros((2, 1)), EVENTS, MASK), CreditError, "one axis"),
        ((np.zeros(2), EVENTS * 0.5, MASK), ArrayTypeError, "integers"),
        ((np.zeros(2), EVENTS, MASK * 1.0), ArrayTypeError, "bool"),
        ((np.zeros(2), EVENTS, MASK[:2]), CreditError, "as events"),
        ((np.zeros(2), EVENTS, MASK, np.ones(2)), ArrayTypeError, "valid"),
        ((np.zeros(2), EVENTS, MASK, np.ones(3, bool)), CreditError, "valid"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arguments: Any, kind: type[Exception], expected: str) -> None:
    with pytest.raises(kind, match=expected):
        token_advantages(*arguments)


@pytest.mark.parametrize("valid", [None, np.array([True, False])])
def test_tokens_of_events_that_have_no_number_show(valid: np.ndarray | None) -> None:
    """Advantages of two rows with the tokens of three events: the third got the second's number."""
    amounts, trained = token_advantages(np.array([1.0, 2.0]), np.array([0, 2, -1]), MASK, valid)
    np.testing.assert_array_equal(amounts, [1.0, np.nan, 0.0])
    np.testing.assert_array_equal(trained, [True, True, False])


def test_every_token_of_a_batch_without_events_is_of_another() -> None:
    amounts, trained = token_advantages(np.zeros(0), np.array([0, -1], np.int8), np.ones(2, bool), np.zeros(0, bool))
    np.testing.assert_array_equal(amounts, [np.nan, 0.0])
    np.testing.assert_array_equal(trained, [True, False])
    amounts, _ = token_advantages(np.arange(300.0), np.array([0, 127], np.int8), np.ones(2, bool))
    assert amounts.tolist() == [0.0, 127.0]


def test_unsigned_ids_beyond_all_events_have_no_advantage() -> None:
    """Padding of -1 in an unsigned array took the first event's."""
    events = np.array([0, 2**32 - 1], np.uint32)
    got = token_advantages(np.float32([1, 2]), events, np.ones(2, bool))[0]
    assert got[0] == 1 and np.isnan(got[1])


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_ids_of_64_bits_beyond_all_events_have_no_advantage(dtype: type) -> None:
    """The id 2^32 took the first event's."""
    with jax.enable_x64(True):
        events = np.array([0, 2**32, 2**32 + 1, 2], dtype)
        got = token_advantages(np.float64([1, 2]), events, np.ones(4, bool))[0]
    np.testing.assert_array_equal(got, [1, np.nan, np.nan, np.nan])


def test_a_log_without_token_ids_is_named() -> None:
    with pytest.raises(CreditError, match=r"tokens is None, of type NoneType; expected Traces.tokens"):
        pad_tokens(None)  # type: ignore[arg-type]
