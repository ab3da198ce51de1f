"""Train a recurrent team on a verified task with a signal: a short supervised warm-up, then policy gradient with Adam.

Features of a decision, for critic and posterior, are 0 in the mean under the policy that acted:

- tokens: a number for each word that was read and each that could be written, 1 at the one that was, less its
  probability π. They tell all that the outcome of `facts` and the progress of `search` are made of, but for pairs.
- hidden states: (P h)_j (Q (1 − π))_j, with h the writer's hidden state and random signs P, Q: a sketch of h ⊗ (1 − π),
  the slope of log π in the output layer. `posterior_reference` takes h from the network before training, which reads
  the same words, as loops with a penalty on the distance to it do; `posterior_hidden` takes that of the policy, which
  moves.

Legend: n traces, D decisions, E = n D events, F features.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.language.recurrent_team import WIDTH, Mode, Networks, Played, fresh_networks, play_task
from benchmarks.language.signals import LanguageRollout, as_graph
from benchmarks.language.verified_tasks import TASKS, VerifiedTask
from credit.bench.training.online_coefficients import fresh_coefficients, learn_coefficients, solved_coefficients
from credit.bench.training.training_signals import centred_claim
from credit.methods.registry import METHODS
from estimators.cholesky import cholesky
from estimators.composition.control import control_advantage
from estimators.critic.repaid_posterior import (
    fresh_posterior,
    posterior_advantage,
    posterior_claims,
    residual_weights,
)

__all__ = [
    "GROUPS", "GROUP_SIZE", "SIGNALS", "Update", "claim_correlations", "hidden_features", "increments",
    "token_features", "training", "warm_networks",
]  # fmt: skip

GROUPS, GROUP_SIZE = 4, 4
"""Questions of an update, and traces of each."""

SIGNALS = (
    "rloo", "dr_mas", "control_critic", "posterior", "posterior_hidden", "posterior_reference", "posterior_entry",
    "exact",
)  # fmt: skip

SKETCH = (48, 80)
"""Numbers of hidden states, of lead and workers."""

MEMORY, RIDGE = 0.95, 3.0
"""Of the critic's sums after a step, and the traces that its prior counts for, as in `credit.bench`."""


def token_features(task: VerifiedTask, played: Played) -> tuple[jax.Array, jax.Array, np.ndarray]:
    """Columns and numbers of each decision, int32 and float32 [n, D, J]; and the role of each of the F features."""
    lead, worker = (played.lead.shape[2], played.worker.shape[2])
    width, clues = max(lead, worker), len(task.clues)
    columns, values = [], []
    for role, (choices, first) in enumerate(((lead, 0), (worker, clues * lead))):
        column = first + played.read[..., role, None] * choices + jnp.arange(choices)[None, None]
        value = _centred(played, role)
        room = ((0, 0), (0, 0), (0, width - choices))
        columns.append(jnp.pad(column, room))
        values.append(jnp.pad(value, room))
    n, d = played.taken.shape
    of_role = np.repeat([0, 1], [clues * lead, clues * worker])
    return jnp.stack(columns, axis=2).reshape(n, d, -1), jnp.stack(values, axis=2).reshape(n, d, -1), of_role


def _centred(played: Played, role: int) -> jax.Array:
    score, chosen = ((played.lead, played.call), (played.worker, played.answer))[role]
    return (chosen[..., None] == jnp.arange(score.shape[2])[None, None]).astype(score.dtype) - jnp.exp(score)


def hidden_features(played: Played, hidden: jax.Array) -> tuple[jax.Array, jax.Array, np.ndarray]:
    """Columns and numbers of each decision as those of `token_features`, of hidden states [n, R, 2, H]."""
    values = []
    for role, size in enumerate(SKETCH):
        centred, rng = _centred(played, role), np.random.default_rng(role)
        of_state, of_word = (rng.choice([-1.0, 1.0], (rows, size)) for rows in (WIDTH, centred.shape[2]))
        sketch = (hidden[:, :, role] @ of_state.astype(np.float32)) * (centred @ of_word.astype(np.float32))
        values.append(jnp.pad(sketch, ((0, 0), (0, 0), (sum(SKETCH[:role]), sum(SKETCH[role + 1 :])))))
    value = jnp.stack(values, axis=2).reshape(*played.taken.shape, -1)
    return jnp.broadcast_to(jnp.arange(sum(SKETCH)), value.shape), value, np.repeat([0, 1], SKETCH)


def increments(
    name: str, networks: Networks, question: np.ndarray, played: Played, rng: np.random.Generator, runs: int
) -> np.ndarray:
    """What each decision added to the mean outcome of so many re-runs, float32 [L, n, D], one lane after another.

    Their sums are R less the mean outcome of re-runs of the whole.
    """
    rows: list[np.ndarray] = []
    _, n, d = played.taken.shape
    for lane in range(len(question)):
        at = np.repeat(np.arange(n), d * runs)
        start = np.tile(np.repeat(np.arange(d), runs), n)
        one = jax.tree.map(lambda x, lane=lane: x[lane][None], networks)
        words = tuple(np.asarray(x)[lane, at][None] for x in (played.call, played.answer))
        again = _play(name)(one, question[lane, at][None], _noise(name, 1, len(at), rng), words, start[None], Mode())
        rows.append(np.asarray(again.reward).reshape(n, d, runs).mean(axis=2))
    return np.diff(np.concatenate([rows, np.asarray(played.reward)[..., None]], axis=2), axis=2)


def exact_increments(played: Played, shown: Played) -> jax.Array:
    """What each decision of `facts` adds, float32 [L, n, D]: a bound, which no log holds.

    Args:
      played: the traces.
      shown: the same questions with right calls and answers, by the same networks.
    """
    chance = jnp.exp(jnp.take_along_axis(shown.worker, shown.answer[..., None], axis=3)[..., 0])
    called = jnp.exp(jnp.take_along_axis(played.lead, shown.call[..., None], axis=3)[..., 0])
    asked = (played.call == shown.call).astype(chance.dtype)
    right = (played.answer == shown.answer).astype(chance.dtype)
    of_rounds = jnp.stack([(asked - called) * chance, asked * (right - chance)], axis=3) / chance.shape[2]
    return of_rounds.reshape(played.taken.shape)


def fresh_task_state(task: VerifiedTask, signal: str) -> Any:
    """What a signal keeps between steps, before the first."""
    tokens = np.repeat([0, 1], [len(task.clues) * x for x in (len(task.workers) + task.stops, len(task.answers))])
    if signal == "control_critic":
        return jnp.zeros((len(tokens), len(tokens))), jnp.zeros(len(tokens)), fresh_coefficients(1)
    if signal.startswith("posterior"):
        block = tokens if signal in ("posterior", "posterior_entry") else np.repeat([0, 1], SKETCH)
        return fresh_posterior(len(block), block=block)
    return None


def weigh_task(signal: str, task: VerifiedTask, group_size: int, played: Played, state: Any, extra: Any) -> Any:
    """Advantages of decisions, float32 [n, D], and the next state.

    Args:
      signal: one of `SIGNALS`.
      task, group_size: what was played.
      played: the traces.
      state: of the signal.
      extra: hidden states for `posterior_reference`, increments for `exact`.
    """
    if signal == "exact":
        return extra, state
    rollout = as_graph(played, group_size, len(task.workers), 0)
    if signal in METHODS:
        result = METHODS[signal](rollout.graph, rollout.reward)
    elif signal == "control_critic":
        return _control(task, rollout, played, state)
    else:
        columns, values = (x[rollout.order] for x in _features(signal, task, played, extra))
        result, learned = posterior_advantage(rollout.graph, rollout.reward, state, columns, values)
        if signal == "posterior_entry":
            return _entry(rollout, state, columns, values), learned
        state = learned
    return rollout.of_decisions(jnp.where(result.valid, result.advantage, 0)), state


def _entry(rollout: LanguageRollout, state: Any, columns: jax.Array, values: jax.Array) -> jax.Array:
    """The claims of earlier steps without a repayment, and ω of what they leave: A_e = c_e + ω (R − b − Σ_f c_f)."""
    claims = rollout.of_decisions(posterior_claims(state, columns, values).mean)
    above = METHODS["rloo"](rollout.graph, rollout.reward)
    left = rollout.of_decisions(jnp.where(above.valid, above.advantage, 0)) - claims.sum(axis=1, keepdims=True)
    omega = residual_weights(state)[jnp.arange(claims.shape[1]) % 2]
    return jnp.where(rollout.taken, claims + omega[None] * left, 0)


def _features(signal: str, task: VerifiedTask, played: Played, extra: Any) -> tuple[jax.Array, jax.Array]:
    """Columns and numbers of (trace, decision), [n D, J]."""
    hidden = played.hidden if signal == "posterior_hidden" else extra
    words = signal in ("posterior", "posterior_entry")
    found = token_features(task, played) if words else hidden_features(played, hidden)
    columns, values = (x.reshape(played.taken.size, -1) for x in found[:2])
    return columns, values


def _control(task: VerifiedTask, rollout: LanguageRollout, played: Played, state: Any) -> Any:
    """`control` with the claims of a ridge regression of earlier outcomes on the sums of token features."""
    gram, moment, fits = state
    columns, values, _ = token_features(task, played)
    values = jnp.where(played.taken[..., None], values, 0)
    factor = cholesky((gram + RIDGE * jnp.eye(len(moment)))[None])[0]
    weights = jax.scipy.linalg.cho_solve((factor, True), moment)
    claims = rollout.of_events(jnp.sum(values * weights[columns], axis=2))
    claim = centred_claim(rollout.graph, claims, "critic", rollout.graph.action_mask, own_outcome=False)
    composed = control_advantage(rollout.graph, rollout.reward, [claim], beta=solved_coefficients(fits))
    result, n = composed.credit, len(played.reward)
    phi = jnp.zeros((n, len(moment))).at[jnp.arange(n)[:, None, None], columns].add(values)
    above = METHODS["rloo"](rollout.graph, rollout.reward)
    of_trace = rollout.of_decisions(jnp.where(above.valid, above.advantage, 0))[:, 0]
    learned = MEMORY * gram + phi.T @ phi, MEMORY * moment + of_trace @ phi, learn_coefficients(fits, rollout, composed)
    return rollout.of_decisions(jnp.where(result.valid, result.advantage, 0)), learned


@functools.cache
def _play(name: str) -> Any:
    """`play_task` of several lanes side by side: networks and traces of each, [L, ...]."""
    run = functools.partial(play_task, TASKS[name])
    return jax.jit(jax.vmap(run, in_axes=(0, 0, 0, 0, 0, None)))


@functools.cache
def _weigh(name: str, signal: str, group_size: int) -> Any:
    return jax.jit(jax.vmap(functools.partial(weigh_task, signal, TASKS[name], group_size)))


@functools.cache
def _step(name: str) -> Any:
    """An update of several lanes by Adam, along the gradient of the mean over traces of Σ A log π."""
    import optax

    task, adam = TASKS[name], optax.scale_by_adam()

    def step(carry: Any, question: Any, noise: Any, words: Any, advantage: Any, rate: Any, mode: Mode) -> Any:
        networks, memory = carry

        def loss(networks: Networks) -> jax.Array:
            played = play_task(task, networks, question, noise, words, 2 * task.rounds, mode)
            return -jnp.sum(jnp.where(played.taken, advantage * played.log_probs(), 0)) / len(question)

        slope = jax.grad(loss)(networks)
        with jax.numpy_dtype_promotion("standard"):  # Adam of optax raises a float to an integer count of steps
            change, memory = adam.update(slope, memory, networks)
        return jax.tree.map(lambda p, c: p - rate * c, networks, change), memory

    return jax.jit(jax.vmap(step, in_axes=(0, 0, 0, 0, 0, 0, None))), jax.jit(jax.vmap(adam.init))


def _noise(name: str, lanes: int, n: int, rng: np.random.Generator) -> Any:
    task = TASKS[name]
    sizes = len(task.workers) + task.stops, len(task.answers)
    return tuple(rng.gumbel(size=(lanes, n, task.rounds, size)).astype(np.float32) for size in sizes)


def _drawn(name: str, seeds: Sequence[int], number: int, groups: int, size: int) -> tuple[np.ndarray, Any]:
    """Questions [L, n, Q] and noise of an update; those of a seed are the same whatever it is trained with."""
    rngs = [np.random.default_rng([seed, number]) for seed in seeds]
    question = np.stack([np.repeat(TASKS[name].draw(groups, rng), size, axis=0) for rng in rngs])
    noise = [_noise(name, 1, groups * size, rng) for rng in rngs]
    return question, tuple(np.concatenate(x) for x in zip(*noise, strict=True))


def warm_networks(name: str, seeds: Sequence[int], steps: int, n: int) -> Networks:
    """Networks [L, ...] after so many supervised steps of n right traces each, by Adam at 0.01."""
    step, begin = _step(name)
    fresh = [fresh_networks(TASKS[name], np.random.default_rng([seed, 0])) for seed in seeds]
    carry = jax.tree.map(lambda *x: np.stack(x), *fresh)
    carry = carry, begin(carry)
    for number in range(steps):
        question, noise = _drawn(name, seeds, 10**6 + number, n, 1)
        none = np.zeros((len(seeds), n, TASKS[name].rounds), np.int32)
        each = np.ones((len(seeds), n, 2 * TASKS[name].rounds), np.float32)
        rate = np.full(len(seeds), 0.01, np.float32)
        carry = step(carry, question, noise, (none, none), each, rate, Mode(True, 0))
    networks: Networks = carry[0]
    return networks


class Update(NamedTuple):
    """Before the step of an update: networks, those before training, questions, noise and traces, [L, ...]."""

    networks: Networks
    reference: Networks
    question: np.ndarray
    noise: Any
    played: Played

    def reference_hidden(self, name: str) -> jax.Array:
        """Hidden states of the networks before training on the same words, [L, n, R, 2, H]."""
        words = self.played.call, self.played.answer
        whole = np.full(self.question.shape[:2], 2 * TASKS[name].rounds, np.int32)
        hidden: jax.Array = _play(name)(self.reference, self.question, self.noise, words, whole, Mode()).hidden
        return hidden


def training(
    name: str, signal: str, seeds: Sequence[int], rates: Sequence[float], updates: int, warm: int, fixed: int = 0
) -> Iterator[Update]:
    """Train a team for each seed and rate, side by side.

    Args:
      name: of the task.
      signal: one of `SIGNALS`.
      seeds, rates: L of them: of parameters, questions and samples; and of Adam.
      updates: how many.
      warm: supervised steps before.
      fixed: a fixed number of rounds; 0 where the lead stops, or the task has no stop.
    """
    task, lanes, n, mode = TASKS[name], len(seeds), GROUPS * GROUP_SIZE, Mode(False, fixed)
    networks = warm_networks(name, seeds, warm, n)
    step, begin = _step(name)
    reference, carry = networks, (networks, begin(networks))
    state = jax.tree.map(lambda x: jnp.stack([x] * lanes), fresh_task_state(task, signal))
    none, rate = np.zeros((lanes, n, task.rounds), np.int32), np.asarray(rates, np.float32)
    for number in range(updates):
        question, noise = _drawn(name, seeds, number, GROUPS, GROUP_SIZE)
        played = _play(name)(carry[0], question, noise, (none, none), np.zeros((lanes, n), np.int32), mode)
        update = Update(carry[0], reference, question, noise, played)
        yield update
        extra: Any = update.reference_hidden(name) if signal == "posterior_reference" else None
        if signal == "exact":
            words = played.call, played.answer
            shown = _play(name)(carry[0], question, noise, words, np.zeros((lanes, n), np.int32), Mode(taught=True))
            extra = exact_increments(played, shown)
        advantage, state = _weigh(name, signal, GROUP_SIZE)(played, state, extra)
        carry = step(carry, question, noise, (played.call, played.answer), advantage, rate, mode)


def claim_correlations(
    name: str, seeds: Sequence[int], rate: float, warm: int, at: Sequence[int], runs: int
) -> dict[str, list[float]]:
    """How claims go with what decisions added by re-runs, at some updates of training with `rloo`: [len(at)] each.

    "posterior", "posterior_hidden" and "posterior_reference": correlations, over decisions that were reached, of claims
    that learned from all earlier updates. "own": the mean square of what a decision added over the variance of outcomes
    within groups. "sum": that of all decisions of a trace; what it has above 1 is the noise of re-runs, and the root of
    it times a correlation is that without the noise.

    Args:
      name, seeds, rate, warm: as of `training`.
      at: numbers of updates.
      runs: re-runs from each decision.
    """
    task, kinds = TASKS[name], SIGNALS[3:6]
    state = {kind: jax.tree.map(lambda x: jnp.stack([x] * len(seeds)), fresh_task_state(task, kind)) for kind in kinds}
    found: dict[str, list[float]] = {key: [] for key in (*kinds, "own", "sum")}
    for number, update in enumerate(training(name, "rloo", seeds, [rate] * len(seeds), max(at) + 1, warm)):
        played, taken, added = update.played, np.asarray(update.played.taken), None
        if number in at:
            rng = np.random.default_rng([number, *seeds])
            added = increments(name, update.networks, update.question, played, rng, runs)
            within = np.asarray(played.reward).reshape(len(seeds), GROUPS, GROUP_SIZE).var(axis=2, ddof=1).mean()
            squares = (added**2)[taken].mean()
            found["own"].append(float(squares / within))
            found["sum"].append(float(squares * taken.sum(axis=2).mean() / within))
        for kind in kinds:
            extra = update.reference_hidden(name) if kind == "posterior_reference" else None
            if added is not None:
                claims = np.asarray(_claims(name, kind)(played, state[kind], extra)).reshape(taken.shape)
                found[kind].append(float(np.corrcoef(claims[taken], added[taken])[0, 1]))
            _, state[kind] = _weigh(name, kind, GROUP_SIZE)(played, state[kind], extra)
    return found


@functools.cache
def _claims(name: str, signal: str) -> Any:
    def claims(played: Played, state: Any, extra: Any) -> jax.Array:
        columns, values = _features(signal, TASKS[name], played, extra)
        return posterior_claims(state, columns, values).mean

    return jax.jit(jax.vmap(claims))
