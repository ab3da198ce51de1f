"""The bridge from events to logged tokens: padded rows of tokens, and advantages of events at tokens."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.compared_ids import before_compiling, beyond
from graphs.errors import ArrayTypeError, CreditError, expect
from graphs.event_graph import Array
from graphs.text import counted
from graphs.traces.tokens import Tokens

__all__ = ["TokenRows", "pad_tokens", "token_advantages"]


class TokenRows(NamedTuple):
    """Tokens as B rows of L positions; padding is behind the tokens of a row.

    Attributes:
      row: int [B], the label of each row: an event, or an entry of `row_of_event`.
      events: int32 [B, L], the event of each token; -1 in padding.
      ids: int32 [B, L], ids of the vocabulary; -1 in padding and where the log has none.
      mask: bool [B, L], True for tokens that the policy generated; False in padding.
      log_probs: float32 [B, L], in nats; NaN in padding, outside `mask` and where the log has none.
      sums_of_squares: float32 [B, L], Σ π² at each token, likewise.
    """

    row: np.ndarray
    events: np.ndarray
    ids: np.ndarray
    mask: np.ndarray
    log_probs: np.ndarray
    sums_of_squares: np.ndarray


def pad_tokens(tokens: Tokens, row_of_event: Array | None = None, *, width: int | None = None) -> TokenRows:
    """The tokens of a log as padded rows: B rows of L positions, the form that a trainer's loss takes.

    By default a row is an event with generated tokens. With `row_of_event`, a row has the tokens of all events of one
    label in the order of the log: `graph.agent_ids` gives a row for each agent instance, with the tool results between
    its calls outside the mask. Rows are in ascending order of their labels. A row without a generated token is left
    out. In a log with branches (compaction, retries), rows of several events contain all branches one after another.

    Args:
      tokens: `Traces.tokens`.
      row_of_event: int [E], the label of the row of each event; an event with a negative label is left out. Entries
        behind the last event of `tokens` are padding and are not used.
      width: L; by default the number of tokens of the longest row.

    Raises:
      CreditError: there are no tokens, `row_of_event` is not int [E], or a row has more tokens than `width`.

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens.event_tokens import pad_tokens
      >>> from graphs.traces.tokens import Tokens
      >>> tokens = Tokens(np.array([0, 2, 3]), np.array([5, 6, 7]), np.array([False, True, True]), np.full(3, np.nan))
      >>> pad_tokens(tokens).ids.tolist()
      [[5, 6], [7, -1]]
      >>> pad_tokens(tokens, np.array([0, 0])).mask.tolist()
      [[False, True, True]]
    """
    expect("tokens", tokens, Tokens, "Traces.tokens, which is None for a log without token ids")
    count = len(tokens.offsets) - 1
    labels = np.arange(count) if row_of_event is None else np.asarray(row_of_event)
    if labels.ndim != 1 or len(labels) < count or labels.dtype.kind not in "iu":
        expected = f"int [{count}], a label for each event"
        raise CreditError(f"row_of_event is {labels.dtype} {labels.shape}; expected {expected}")
    of_token = labels[tokens.events]
    generating = np.unique(of_token[tokens.mask])
    generating = generating[generating >= 0]
    kept = np.flatnonzero(np.isin(of_token, generating))
    kept = kept[np.argsort(of_token[kept], kind="stable")]
    row = np.searchsorted(generating, of_token[kept])
    lengths = np.bincount(row, minlength=len(generating))
    position = np.arange(len(kept)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    longest = int(lengths.max(initial=0))
    if width is not None and longest > width:
        label = int(generating[np.argmax(lengths)])
        raise CreditError(f"row {label} has {counted(longest, 'token')}; expected at most width, {width}")
    shape = len(generating), longest if width is None else width

    def padded(values: np.ndarray | None, fill: float, dtype: type[np.generic]) -> np.ndarray:
        out = np.full(shape, fill, dtype)
        if values is not None:
            out[row, position] = values[kept]
        return out

    return TokenRows(
        row=generating,
        events=padded(tokens.events, -1, np.int32),
        ids=padded(tokens.ids, -1, np.int32),
        mask=padded(tokens.mask, False, np.bool_),
        log_probs=padded(tokens.log_probs, np.nan, np.float32),
        sums_of_squares=padded(tokens.sums_of_squares, np.nan, np.float32),
    )


@before_compiling(events=beyond)
@jax.jit
def token_advantages(
    advantage: Array, events: Array, mask: Array, valid: Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """Advantages of events at the tokens that they generated, and the mask of the tokens to train on.

        A_t = advantage[events[t]] under the mask, and 0 elsewhere

    Every generated token of an event gets the event's number, as in the policy gradient, whose log-probability of an
    event is the sum over its tokens. The shapes are those of `events`: [N] for `Traces.tokens`, [B, L] for `TokenRows`.

    Args:
      advantage: float [E], one number for each event; not of the actions alone. A token of an event behind its end gets
        NaN: the two are of different batches.
      events: int [N] or [B, L], the event of each token; negative in padding.
      mask: bool, shaped as `events`: tokens that the policy generated.
      valid: bool [E], `Credit.valid`. Tokens of an event without a valid advantage leave the mask and get 0.

    Returns:
      The advantages, shaped as `events`, and the mask without the tokens of events that are not valid.

    Raises:
      ArrayTypeError: `advantage` is not floating, `events` no integers, or `mask` or `valid` not bool.
      CreditError: shapes that do not fit.

    Examples:
      >>> import numpy as np
      >>> from estimators.tokens.event_tokens import token_advantages
      >>> events, mask = np.array([[0, 0, 1], [2, -1, -1]]), np.array([[False, True, True], [True, False, False]])
      >>> amounts, trained = token_advantages(np.array([0.5, -1.0, 2.0]), events, mask, np.array([True, True, False]))
      >>> amounts.tolist(), trained.tolist()
      ([[0.0, 0.5, -1.0], [0.0, 0.0, 0.0]], [[False, True, True], [False, False, False]])
    """
    amounts, events, mask = jnp.asarray(advantage), jnp.asarray(events), jnp.asarray(mask)
    if not jnp.issubdtype(amounts.dtype, jnp.floating):
        raise ArrayTypeError(f"advantage has dtype {amounts.dtype}; expected a floating type")
    if not jnp.issubdtype(events.dtype, jnp.integer):
        raise ArrayTypeError(f"events has dtype {events.dtype}; expected integers")
    if mask.dtype != jnp.bool_ or mask.shape != events.shape:
        raise (ArrayTypeError if mask.dtype != jnp.bool_ else CreditError)(
            f"mask is {mask.dtype} {mask.shape}; expected bool {events.shape}, as events"
        )
    if amounts.ndim != 1:
        raise CreditError(f"advantage has shape {amounts.shape}; expected one axis, events")
    mask = mask & (events >= 0)
    place = events if events.dtype.itemsize > 4 else events.astype(jnp.int32)  # an unsigned number may turn negative
    # Padding, and events that the batch does not have, read the extra entry behind the last event.
    extra = amounts.shape[0]
    row = jnp.where(place < 0, extra, jnp.minimum(place, extra))
    if valid is not None:
        usable = jnp.asarray(valid)
        if usable.dtype != jnp.bool_:
            raise ArrayTypeError(f"valid has dtype {usable.dtype}; expected bool")
        if usable.shape != amounts.shape:
            raise CreditError(f"valid has shape {usable.shape}; expected {amounts.shape}, that of advantage")
        mask = mask & jnp.concatenate([usable, jnp.ones(1, bool)])[row]
    known = jnp.concatenate([amounts, jnp.full(1, jnp.nan, amounts.dtype)])[row]
    return jnp.where(mask, known, jnp.zeros((), amounts.dtype)), mask
