"""What a language team is asked: questions of one to three parts, each part from one of three books.

The reward of a trace is the share of the parts answered right, minus `PRICE` for each call of a worker. The workers
hold one book each. A worker that is asked from another's book sees `BLANK` in place of the part.

Legend: F facts, P tokens of a part, A tokens of an answer, n traces.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.language.word_pieces import WordPieces, train_pieces

__all__ = [
    "ANSWER", "BLANK", "END", "PAD", "PART", "PARTS", "PRICE", "STOP", "WORKERS", "Facts", "draw_questions", "facts",
    "optimum",
]  # fmt: skip

PAD, STOP, BLANK, END = 0, 4, 5, 6
"""Reserved ids; 1 to 3 are the workers' names."""

WORKERS = ("ada", "bob", "cyd")
PARTS = 3
PART, ANSWER = 5, 3
"""P and A."""
PRICE = 0.1
SIZE = 112
"""Ids of the tokenizer."""

BOOKS = {
    "capital": "togo lome, ghana accra, italy rome, mali bamako, egypt cairo, qatar doha",
    "young": "cow calf, dog pup, ewe lamb, goat kid, bear cub, horse foal",
    "opposite": "hot cold, in out, up down, wet dry, old new, shy bold",
}
"""A book for each worker: what a part says, and pairs of a noun and the answer."""


class Facts(NamedTuple):
    """All facts as tokens.

    Attributes:
      pieces: the tokenizer, trained on these texts.
      texts: of the parts, F of them.
      book: int32 [F], the worker that holds it.
      part: int32 [F, P], padded.
      answer: int32 [F, A], with `END` behind it if there is room, then padded.
    """

    pieces: WordPieces
    texts: tuple[str, ...]
    book: np.ndarray
    part: np.ndarray
    answer: np.ndarray


@functools.cache
def facts() -> Facts:
    """The facts of all books, and the tokenizer that is trained on them.

    Examples:
      >>> facts().texts[0]
      'capital togo'
    """
    rows = [
        (number, f"{says} {noun}", answer)
        for number, (says, pairs) in enumerate(BOOKS.items())
        for noun, answer in (pair.split() for pair in pairs.split(","))
    ]
    reserved = ("<pad>", *(f"<{name}>" for name in WORKERS), "<stop>", "<blank>", "<end>")
    pieces = train_pieces([text for _, part, answer in rows for text in (part, answer)], SIZE, reserved)
    part = np.full((len(rows), PART), PAD, np.int32)
    answers = np.full((len(rows), ANSWER), PAD, np.int32)
    for row, (_, text, answer) in enumerate(rows):
        ids, reply = pieces.encode(text), [*pieces.encode(answer), END][:ANSWER]
        part[row, : len(ids)], answers[row, : len(reply)] = ids, reply
    return Facts(pieces, tuple(row[1] for row in rows), np.array([row[0] for row in rows], np.int32), part, answers)


def optimum() -> float:
    """The mean reward of the best team: each part right, and one call for each.

    Examples:
      >>> round(optimum(), 6)
      0.8
    """
    return 1 - PRICE * (1 + PARTS) / 2


def draw_questions(groups: int, size: int, key: jax.Array) -> jax.Array:
    """Questions of 1 to `PARTS` parts, `size` traces each: facts int32 [groups size, PARTS], -1 behind the last part.

    Args:
      groups: how many questions.
      size: traces of a question.
      key: of the draw.
    """
    fact, count = jax.random.split(key)
    number = jax.random.randint(count, (groups, 1), 1, PARTS + 1)
    drawn = jax.random.randint(fact, (groups, PARTS), 0, len(facts().texts))
    return jnp.repeat(jnp.where(jnp.arange(PARTS)[None] < number, drawn, -1), size, axis=0)
