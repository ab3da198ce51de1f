"""Longer tasks of a language team whose outcome a verifier tells from the tokens alone: a trace holds no luck.

In each of up to R rounds the lead reads a word and names a worker, or writes `STOP` where the task has it. The worker
reads a word and writes one.

- `calculation`: the lead reads the word of an operation and names a tool, whose clerk reads a number and writes it as a
  digit. The outcome is the share of ten running values that are right, so that a mistake stands in all later ones.
- `facts`: twelve parts, a round each, from the books of `questions`. The outcome is the share answered right.
- `search`: a chain of `CHAIN` parts. A right answer leads on to the next part, a wrong one leaves its part for another
  call. The outcome is the share of the chain that was found, less `PRICE` for each call.

Words are places in `clues` and `answers`, and a worker is its place in `workers`; `STOP` is the place behind. Methods
take one question, its state, the round, and what was written in it. A state is integers, which question and tokens fix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from benchmarks.language.questions import BOOKS, WORKERS

__all__ = ["CHAIN", "PRICE", "TASKS", "VerifiedTask", "verify"]

PRICE = 0.03
CHAIN = (2, 6)
"""The least and the greatest number of parts of a search."""
OF_BOOK = 4
"""Facts of a book, the first that it has."""
PAIRS = tuple(pair.split() for book in BOOKS.values() for pair in book.split(", ")[:OF_BOOK])
"""Nouns and answers of all facts."""


class VerifiedTask(Protocol):
    """Sizes and rules of a task, and its verifier."""

    rounds: int
    stops: bool
    workers: tuple[str, ...]
    clues: tuple[str, ...]
    answers: tuple[str, ...]

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Questions, int [count, Q]."""
        ...

    def begin(self, question: Any) -> Any:
        """The state before the first round, int32 [S]."""
        ...

    def lead_reads(self, question: Any, state: Any, r: Any) -> Any:
        """A place in `clues`."""
        ...

    def worker_reads(self, question: Any, state: Any, r: Any, call: Any) -> Any:
        """A place in `clues`."""
        ...

    def right(self, question: Any, state: Any, r: Any) -> tuple[Any, Any]:
        """The best call, and the right answer to it."""
        ...

    def after(self, question: Any, state: Any, r: Any, call: Any, answer: Any) -> Any:
        """The state after a worker was called."""
        ...

    def reward(self, question: Any, state: Any, calls: Any) -> Any:
        """The outcome of a trace that ends in this state, after so many calls of workers."""
        ...


class Calculation(VerifiedTask):
    """A question is a number below ten, then the word of the operation and the number of each line."""

    rounds, stops, workers = 10, False, ("add", "subtract", "multiply", "greatest")
    answers = tuple("0123456789")
    words = ("plus", "and", "more", "minus", "less", "without", "times", "by", "fold", "or", "versus", "against")
    clues = (*words, "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(0, [10] + [12, 10] * 10, (count, 21))

    def begin(self, question: Any) -> Any:
        """What the tools gave, what is right, and how many of the former were right."""
        return jnp.stack([question[0], question[0], 0 * question[0]])

    def lead_reads(self, question: Any, state: Any, r: Any) -> Any:
        return question[1 + 2 * r]

    def worker_reads(self, question: Any, state: Any, r: Any, call: Any) -> Any:
        return len(self.words) + question[2 + 2 * r]

    def right(self, question: Any, state: Any, r: Any) -> tuple[Any, Any]:
        return question[1 + 2 * r] // 3, question[2 + 2 * r]

    def after(self, question: Any, state: Any, r: Any, call: Any, answer: Any) -> Any:
        def applied(value: Any, tool: Any, number: Any) -> Any:
            results = value + number, value - number, value * number, jnp.maximum(value, number)
            return jnp.stack(results)[tool] % 10

        value, truth = applied(state[0], call, answer), applied(state[1], *self.right(question, state, r))
        return jnp.stack([value, truth, state[2] + (value == truth).astype(state.dtype)])

    def reward(self, question: Any, state: Any, calls: Any) -> Any:
        return state[2] / self.rounds


class Facts(VerifiedTask):
    """A question is twelve facts. A worker that is asked from another's book reads `<blank>`, the last clue."""

    rounds, stops, workers = 12, False, WORKERS
    clues = (*(noun for noun, _ in PAIRS), "<blank>")
    answers = tuple(answer for _, answer in PAIRS)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(0, len(PAIRS), (count, self.rounds))

    def begin(self, question: Any) -> Any:
        """How many answers were right."""
        return jnp.zeros(1, jnp.int32)

    def lead_reads(self, question: Any, state: Any, r: Any) -> Any:
        return question[r]

    def worker_reads(self, question: Any, state: Any, r: Any, call: Any) -> Any:
        return jnp.where(call == question[r] // OF_BOOK, question[r], len(PAIRS))

    def right(self, question: Any, state: Any, r: Any) -> tuple[Any, Any]:
        return question[r] // OF_BOOK, question[r]

    def after(self, question: Any, state: Any, r: Any, call: Any, answer: Any) -> Any:
        worker, word = self.right(question, state, r)
        return state + jnp.asarray((call == worker) & (answer == word)).astype(state.dtype)

    def reward(self, question: Any, state: Any, calls: Any) -> Any:
        return state[0] / self.rounds


class Search(Facts):
    """A question is a chain of facts, −1 behind its last; the state is how many were found. `<found>` is behind it."""

    stops = True
    clues = (*Facts.clues[:-1], "<found>", "<blank>")

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        length = rng.integers(CHAIN[0], CHAIN[1] + 1, (count, 1))
        facts = rng.integers(0, len(PAIRS), (count, CHAIN[1] + 1))
        return np.where(np.arange(CHAIN[1] + 1) < length, facts, -1)

    def lead_reads(self, question: Any, state: Any, r: Any) -> Any:
        fact = question[state[0]]
        return jnp.where(fact < 0, len(PAIRS), fact)

    def worker_reads(self, question: Any, state: Any, r: Any, call: Any) -> Any:
        fact = question[state[0]]
        return jnp.where((fact >= 0) & (call == fact // OF_BOOK), fact, len(PAIRS) + 1)

    def right(self, question: Any, state: Any, r: Any) -> tuple[Any, Any]:
        fact = question[state[0]]
        return jnp.where(fact < 0, len(WORKERS), fact // OF_BOOK), fact

    def reward(self, question: Any, state: Any, calls: Any) -> Any:
        return state[0] / jnp.sum(question >= 0) - PRICE * calls


TASKS: dict[str, VerifiedTask] = {"calculation": Calculation(), "search": Search(), "facts": Facts()}


def verify(name: str, question: Sequence[int], said: Sequence[str]) -> float:
    """The outcome of a transcript: a call and an answer a round, as words; a search may end with "stop".

    Examples:
      >>> round(verify("search", [0, 5, -1, -1, -1, -1, -1], ["ada lome", "ada lome", "bob pup", "stop"]), 2)
      0.91

    Args:
      name: of the task.
      question: as the task draws it.
      said: what was written in each round.
    """
    task, asked, calls = TASKS[name], jnp.asarray(question), 0
    state = task.begin(asked)
    for r, (call, *answer) in enumerate(line.split() for line in said):
        if call != "stop":
            calls += 1
            state = task.after(asked, state, r, task.workers.index(call), task.answers.index(answer[0]))
    return float(task.reward(asked, state, calls))
