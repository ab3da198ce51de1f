"""A lead that calls workers and workers that answer in tokens: sampling, forced prefixes, log-probabilities.

Up to `PARTS` rounds. In each the lead reads the question and all that was said, and writes one token: a worker's name,
or `STOP`, which ends the trace. The named worker reads its name and the part of the question that it is asked, or
`BLANK` if its book lacks that part, and writes up to `ANSWER` tokens. Tokens that cannot be meant (a word where the
lead must call, a name where a worker answers) are excluded from sampling and from the probabilities.

The lead has parameters of its own. The workers share theirs and are told apart by their names.

Decision 2 r of a trace is the lead's in round r, decision 2 r + 1 the answer of the worker that it called.

Legend: n traces, R = `PARTS` rounds, D = 2 R decisions, P and A tokens of a part and of an answer.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from benchmarks.language.questions import (
    ANSWER,
    BLANK,
    END,
    PAD,
    PART,
    PARTS,
    PRICE,
    STOP,
    facts,
)
from credit.bench.training.tiny_transformer import TinyTransformer

__all__ = ["DECISIONS", "Said", "Team", "fresh_team", "log_probs", "play", "prompts", "questions_as_tokens"]

DECISIONS = 2 * PARTS
LEAD_LENGTH = PARTS * PART + (PARTS - 1) * (1 + ANSWER)
WORKER_LENGTH = 1 + PART + ANSWER - 1
FIRST_PLACES = [PARTS * PART - 1 + r * (1 + ANSWER) for r in range(PARTS)]
"""Where the lead's calls are read off."""

Team = dict[str, Any]
"""Parameters of "lead" and "worker", as JAX trees."""


class Said(NamedTuple):
    """The text of n traces and their outcomes.

    Attributes:
      question: int32 [n, R], facts, -1 behind the last part.
      call: int32 [n, R], ids of tokens; also in rounds that were not reached.
      answer: int32 [n, R, A], `PAD` behind `END`.
      taken: bool [n, D], decisions that were reached.
      reward: float32 [n].
    """

    question: jax.Array
    call: jax.Array
    answer: jax.Array
    taken: jax.Array
    reward: jax.Array


@functools.cache
def _network(role: str) -> tuple[Any, Any]:
    """The structure of a role's network, and its first parameters as a function of a key."""
    vocabulary = len(facts().pieces.pieces)
    length, layers = (LEAD_LENGTH, 2) if role == "lead" else (WORKER_LENGTH, 1)

    def build(key: jax.Array) -> TinyTransformer:
        return TinyTransformer(vocabulary, length, width=32, heads=4, layers=layers, rngs=nnx.Rngs(key))

    structure, _ = nnx.split(nnx.eval_shape(lambda: build(jax.random.key(0))))
    return structure, jax.jit(lambda key: nnx.to_pure_dict(nnx.split(build(key))[1]))


def fresh_team(seed: int) -> Team:
    """Random parameters of a team that has learned nothing.

    Args:
      seed: of the parameters.
    """
    keys = jax.random.split(jax.random.key(seed))
    return {role: _network(role)[1](key) for role, key in zip(("lead", "worker"), keys, strict=True)}


def _logits(team: Team, role: str, tokens: jax.Array, first: int, last: int) -> jax.Array:
    """Log-probabilities of ids `first` to `last` after each token, all other ids excluded: [n, L, last − first]."""
    structure, _ = _network(role)
    scores: jax.Array = nnx.merge(structure, team[role])(tokens)[..., first:last]
    return jax.nn.log_softmax(scores)


def questions_as_tokens(question: jax.Array) -> jax.Array:
    """The lead's first input: int32 [n, R P], parts padded to P each.

    Args:
      question: int32 [n, R], facts.
    """
    part = jnp.asarray(facts().part)[jnp.maximum(question, 0)]
    return jnp.where(question[..., None] < 0, PAD, part).reshape(len(question), -1)


def prompts(question: jax.Array, call: jax.Array) -> jax.Array:
    """A worker's first input, int32 [..., 1 + P]: its name, then the part or `BLANK`.

    Args:
      question: int32 [...], the fact that is asked.
      call: int32 [...], the name's token.
    """
    known = facts()
    held = (question >= 0) & (jnp.asarray(known.book)[jnp.maximum(question, 0)] == call - 1)
    blank = jnp.full(PART, PAD).at[0].set(BLANK)
    blank = jnp.broadcast_to(blank, (*question.shape, PART))
    text = jnp.where(held[..., None], jnp.asarray(known.part)[jnp.maximum(question, 0)], blank)
    return jnp.concatenate([call[..., None], text], axis=-1)


def play(team: Team, question: jax.Array, key: jax.Array, forced: Said | None = None, start: Any = 0) -> Said:
    """Run the team on questions; with `forced`, decisions before `start` repeat what was said there.

    Args:
      team: its parameters.
      question: int32 [n, R].
      key: of what is sampled.
      forced: traces of the same questions.
      start: int [n], the first decision of each trace that is sampled anew.
    """
    n, rounds = len(question), jnp.arange(PARTS)
    start = jnp.broadcast_to(jnp.asarray(start), (n,))
    heard = jnp.full((n, LEAD_LENGTH + 1 + ANSWER), PAD, jnp.int32)  # room for the last answer, which nobody reads
    heard = heard.at[:, : PARTS * PART].set(questions_as_tokens(question))

    def one_round(carry: Any, inputs: Any) -> Any:
        heard, going = carry
        r, place, part, forced_call, forced_answer, key = inputs
        choose, write = jax.random.split(key)
        logits = _logits(team, "lead", heard[:, :LEAD_LENGTH], 1, STOP + 1)[:, place]
        call = 1 + jax.random.categorical(choose, logits).astype(jnp.int32)
        call = jnp.where(start > 2 * r, forced_call, call)
        called = going & (call != STOP)
        read = jnp.concatenate([prompts(part, call), jnp.full((n, ANSWER), PAD)], axis=1)

        def one_token(carry: Any, inputs: Any) -> Any:
            read, ended = carry
            place, forced_token, key = inputs
            logits = _logits(team, "worker", read[:, :WORKER_LENGTH], END, len(facts().pieces.pieces))[:, place]
            token = END + jax.random.categorical(key, logits).astype(jnp.int32)
            token = jnp.where(ended, PAD, token)
            token = jnp.where(start > 2 * r + 1, forced_token, token)
            return (read.at[:, place + 1].set(token), ended | (token == END)), None

        places = PART + jnp.arange(ANSWER)
        inputs = places, forced_answer.T, jax.random.split(write, ANSWER)
        (read, _), _ = jax.lax.scan(one_token, (read, jnp.zeros(n, bool)), inputs)
        answer = read[:, -ANSWER:]
        reply = jnp.concatenate([call[:, None], answer], axis=1)
        heard = jax.lax.dynamic_update_slice_in_dim(heard, reply, place + 1, axis=1)
        return (heard, called), (call, answer, jnp.stack([going, called], axis=1))

    none = jnp.full((PARTS, n), PAD, jnp.int32), jnp.full((PARTS, n, ANSWER), PAD, jnp.int32)
    calls, answers = none if forced is None else (forced.call.T, jnp.moveaxis(forced.answer, 1, 0))
    inputs = rounds, jnp.array(FIRST_PLACES), question.T, calls, answers, jax.random.split(key, PARTS)
    _, (call, answer, taken) = jax.lax.scan(one_round, (heard, jnp.ones(n, bool)), inputs)
    call, answer = call.T, jnp.moveaxis(answer, 0, 1)
    reached = jnp.moveaxis(taken, 0, 1).reshape(n, DECISIONS)
    return Said(question, call, answer, reached, _reward(question, answer, reached[:, 1::2]))


def _reward(question: jax.Array, answer: jax.Array, called: jax.Array) -> jax.Array:
    """The share of parts that were answered right, minus the price of all calls: float32 [n]."""
    right = (answer == jnp.asarray(facts().answer)[jnp.maximum(question, 0)]).all(axis=2)
    parts = jnp.sum(question >= 0, axis=1).astype(jnp.float32)
    good = jnp.sum(right & called & (question >= 0), axis=1).astype(jnp.float32)
    return good / parts - PRICE * jnp.sum(called, axis=1).astype(jnp.float32)


def log_probs(team: Team, said: Said) -> tuple[jax.Array, jax.Array]:
    """Log-probabilities of what was said: of the lead's tokens [n, R], and of the workers' [n, R, A], 0 behind `END`.

    Numbers of rounds that were not reached mean nothing.

    Args:
      team: its parameters.
      said: the traces.
    """
    n = len(said.question)
    turns = jnp.concatenate([said.call[..., None], said.answer], axis=2).reshape(n, -1)
    heard = jnp.concatenate([questions_as_tokens(said.question), turns[:, : LEAD_LENGTH - PARTS * PART]], axis=1)
    lead = _logits(team, "lead", heard, 1, STOP + 1)[:, np.array(FIRST_PLACES)]
    of_call = jnp.take_along_axis(lead, said.call[..., None] - 1, axis=2)[..., 0]
    read = jnp.concatenate([prompts(said.question, said.call), said.answer[..., :-1]], axis=2)
    worker = _logits(team, "worker", read.reshape(n * PARTS, -1), END, len(facts().pieces.pieces))[:, PART:]
    worker = worker.reshape(n, PARTS, ANSWER, -1)
    of_token = jnp.take_along_axis(worker, jnp.maximum(said.answer - END, 0)[..., None], axis=3)[..., 0]
    return of_call, jnp.where(said.answer == PAD, 0, of_token)
