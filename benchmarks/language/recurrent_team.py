"""A lead and workers as small recurrent networks: sampling, forced prefixes, log-probabilities and hidden states.

A role is a GRU of width `WIDTH`. It reads all words of a turn at once, as the sum of their embeddings, and writes one
word, from its hidden state h: softmax(h W + b). The lead reads its last call, the last answer and the word of the
round, and keeps h through the trace. A worker reads its name and its word, and begins each call anew.

Legend: n traces, R rounds, D = 2 R decisions, the lead's and the worker's in turn; C calls, A answers, H `WIDTH`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.language.verified_tasks import VerifiedTask

__all__ = ["WIDTH", "Mode", "Networks", "Played", "fresh_networks", "play_task"]

WIDTH = 32

NEVER = -1e9
"""The score of what cannot be written."""

Networks = dict[str, Any]
Words = tuple[Any, Any]
Noise = tuple[Any, Any]
"""Of calls, [n, R, C], and of answers, [n, R, A]."""


class Mode(NamedTuple):
    """How a team is run, as `play_task` takes it."""

    taught: Any = False
    fixed: Any = 0


class Played(NamedTuple):
    """n traces.

    Attributes:
      call, answer: int32 [n, R], places in `workers` and `answers`; also in rounds that were not reached.
      taken: bool [n, D], decisions that were reached.
      reward: float32 [n].
      read: int32 [n, R, 2], the words that lead and worker read.
      lead, worker: float32 [n, R, C] and [n, R, A], log-probabilities of all that could have been written.
      hidden: float32 [n, R, 2, H], hidden states of lead and worker when they wrote.
    """

    call: jax.Array
    answer: jax.Array
    taken: jax.Array
    reward: jax.Array
    read: jax.Array
    lead: jax.Array
    worker: jax.Array
    hidden: jax.Array

    def log_probs(self) -> jax.Array:
        """Of each decision, [n, D]; 0 where it was not reached."""
        of_call = jnp.take_along_axis(self.lead, self.call[..., None], axis=2)[..., 0]
        of_answer = jnp.take_along_axis(self.worker, self.answer[..., None], axis=2)[..., 0]
        return jnp.where(self.taken, jnp.stack([of_call, of_answer], axis=2).reshape(self.taken.shape), 0)


def fresh_networks(task: VerifiedTask, rng: np.random.Generator) -> Networks:
    """Random parameters of both roles.

    Args:
      task: what is to be learned.
      rng: of the parameters.
    """
    read = {"name": 2 + len(task.workers), "answer": 1 + len(task.answers), "clue": len(task.clues)}

    def role(written: int) -> dict[str, np.ndarray]:
        scale = (2 * WIDTH) ** -0.5
        return {
            **{kind: rng.normal(size=(words, WIDTH)) for kind, words in read.items()},
            "gates": scale * rng.normal(size=(2 * WIDTH, 2 * WIDTH)),
            "inner": scale * rng.normal(size=(2 * WIDTH, WIDTH)),
            "out": 0.1 * rng.normal(size=(WIDTH, written)),
            "bias": np.zeros(written),
        }

    both = {"lead": role(len(task.workers) + task.stops), "worker": role(len(task.answers))}
    networks: Networks = jax.tree.map(np.float32, both)
    return networks


def _gru(role: dict[str, jax.Array], hidden: jax.Array, read: jax.Array) -> jax.Array:
    update, reset = jnp.split(jax.nn.sigmoid(jnp.concatenate([read, hidden], axis=1) @ role["gates"]), 2, axis=1)
    inner = jnp.tanh(jnp.concatenate([read, reset * hidden], axis=1) @ role["inner"])
    return update * hidden + (1 - update) * inner


def play_task(
    task: VerifiedTask, networks: Networks, question: jax.Array, noise: Noise, forced: Words, start: Any, mode: Mode
) -> Played:
    """Run the team on questions.

    Args:
      task: whose questions these are.
      networks: parameters.
      question: int32 [n, Q].
      noise: Gumbel noise of what is sampled.
      forced: calls and answers, int32 [n, R] each; decisions before `start` repeat them.
      start: int [n].
      mode: whether decisions are the right ones instead, and a fixed number of rounds, or 0 where the lead stops.
    """
    n, rounds, workers = len(question), task.rounds, len(task.workers)
    lead, worker = networks["lead"], networks["worker"]
    may = (jnp.arange(workers + task.stops) < workers) | (mode.fixed == 0)
    last = jnp.where(mode.fixed == 0, rounds, mode.fixed)

    def one_round(carry: Any, inputs: Any) -> Any:
        hidden, state, call, answer, going = carry
        r, of_call, of_answer, forced_call, forced_answer = inputs
        clue = jax.vmap(lambda q, s: task.lead_reads(q, s, r))(question, state)
        hidden = _gru(lead, hidden, lead["name"][call] + lead["answer"][answer] + lead["clue"][clue])
        scores = jax.nn.log_softmax(jnp.where(may[None], hidden @ lead["out"] + lead["bias"][None], NEVER))
        best, right = jax.vmap(lambda q, s: task.right(q, s, r))(question, state)
        call = jnp.where(start > 2 * r, forced_call, jnp.argmax(scores + of_call, axis=1))
        call = jnp.where(mode.taught, best, call)
        named = jnp.minimum(call, workers - 1)
        called = going & (call < workers)
        word = jax.vmap(lambda q, s, c: task.worker_reads(q, s, r, c))(question, state, call)
        inner = _gru(worker, jnp.zeros((n, WIDTH)), worker["name"][call] + worker["clue"][word])
        written = jax.nn.log_softmax(inner @ worker["out"] + worker["bias"][None])
        answer = jnp.where(start > 2 * r + 1, forced_answer, jnp.argmax(written + of_answer, axis=1))
        answer = jnp.where(mode.taught, jnp.maximum(right, 0), answer)
        after = jax.vmap(lambda q, s, c, a: task.after(q, s, r, c, a))(question, state, named, answer)
        state = jnp.where(called[:, None], after, state)
        row = call, answer, going, called, clue, word, scores, written, hidden, inner
        return (hidden, state, call, answer, called & (r + 1 < last)), row

    before = jnp.full(n, workers + 1), jnp.full(n, len(task.answers))
    begin = (jnp.zeros((n, WIDTH)), jax.vmap(task.begin)(question), *before, jnp.ones(n, bool))
    inputs = (jnp.arange(rounds), *(jnp.moveaxis(x, 1, 0) for x in (*noise, *forced)))
    (_, state, *_), rows = jax.lax.scan(one_round, begin, inputs)
    call, answer, going, called, clue, word, scores, written, hidden, inner = (jnp.moveaxis(x, 0, 1) for x in rows)
    reward = jax.vmap(task.reward)(question, state, called.sum(axis=1).astype(jnp.float32))
    return Played(
        call, answer, jnp.stack([going, called], axis=2).reshape(n, -1), reward.astype(jnp.float32),
        jnp.stack([clue, word], axis=2), scores, written, jnp.stack([hidden, inner], axis=2),
    )  # fmt: skip
