"""Train a team on a task by policy gradient with a signal, the whole loop compiled, exact numbers at every step.

The policy gives logits for every kind and decision; the gradient is that of

    L = −(1/n) Σ_traces Σ_{d taken} A_d log π(choice_d | kind, d)

with A whatever the signal says. Beside each step stand the exact expected return J of the policy, the cosine between
L's gradient and the exact gradient of −J, the entropy of the policy, and the share of groups with unequal rewards.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credit.bench.training.learning_tasks import LearningTask
from graphs.errors import CreditError
from graphs.event_graph import EventGraph, EventType

__all__ = ["Curves", "Rollout", "Signal", "TrainingSettings", "exact_return", "train"]


class Rollout(NamedTuple):
    """Traces of one step, and what is true of them.

    Attributes:
      graph: the batch, E = n D events of which those taken come first.
      reward: float32 [n].
      order: int32 [E], the (trace, decision) of each event, numbered trace D + decision.
      value: float32 [E], the exact expected reward before each event.
      increments: float32 [E], what each event's choice changed in it, exactly; centred under the policy.
    """

    graph: EventGraph
    reward: jax.Array
    order: jax.Array
    value: jax.Array
    increments: jax.Array


Signal = Callable[[Rollout], jax.Array]
"""The advantage of each event, float [E]; 0 where there is none."""


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How a team is trained; the same for every signal.

    Attributes:
      steps: updates.
      groups: groups of traces in a step; the kind of group g is g modulo K.
      group_size: traces of a group.
      learning_rate: of Adam.
      policy: "tabular", a logit for each kind, decision and choice, or "mlp", shared by all decisions.
      hidden: width of the MLP.

    Raises:
      CreditError: a number is out of range.
    """

    steps: int = 200
    groups: int = 8
    group_size: int = 8
    learning_rate: float = 0.05
    policy: Literal["tabular", "mlp"] = "tabular"
    hidden: int = 32

    def __post_init__(self) -> None:
        for field, least in (("steps", 1), ("groups", 1), ("group_size", 1), ("hidden", 1)):
            if getattr(self, field) < least:
                raise CreditError(f"TrainingSettings.{field} is {getattr(self, field)!r}; expected {least} or more")
        if not self.learning_rate > 0:
            raise CreditError(f"TrainingSettings.learning_rate is {self.learning_rate!r}; expected a positive number")
        if self.policy not in ("tabular", "mlp"):
            raise CreditError(f"TrainingSettings.policy is {self.policy!r}; expected 'tabular' or 'mlp'")


class Curves(NamedTuple):
    """What training went through, float32 [steps] each; a number of step i is of the policy before update i.

    Attributes:
      expected: J, the exact expected return.
      cosine: between the gradient that was taken and the exact one; 0 where one of them is 0.
      entropy: of the policy, mean over kinds and decisions, in nats.
      teaching: share of groups whose rewards are not all equal.
      events: decisions taken in the step's traces.
    """

    expected: jax.Array
    cosine: jax.Array
    entropy: jax.Array
    teaching: jax.Array
    events: jax.Array


def exact_return(task: LearningTask, logits: jax.Array) -> jax.Array:
    """J, the expected return of a policy, by summing over all choices; differentiable.

    Examples:
      >>> import jax.numpy as jnp
      >>> from credit.bench.training.learning_tasks import learning_task
      >>> float(exact_return(learning_task("pivotal"), jnp.zeros((1, 8, 2))))
      0.50

    Args:
      task: K kinds, equally likely.
      logits: float [K, D, C].

    Returns:
      float [].
    """
    return _values(task, logits)[0].mean()


def train(task: LearningTask, signal: Signal, settings: TrainingSettings, seed: int) -> Curves:
    """Train one team from uniform choices (tabular) or small random ones (MLP).

    Args:
      task: what is learned.
      signal: a pure function that JAX can trace; the same object compiles once for all seeds.
      settings: of the loop.
      seed: of everything random; the same seed gives the same curves bit for bit on one machine.

    Returns:
      `Curves`.
    """
    return Curves(*_compiled(task, signal, settings)(jax.random.key(seed)))


@functools.lru_cache(maxsize=64)
def _compiled(task: LearningTask, signal: Signal, settings: TrainingSettings) -> Callable[[jax.Array], Any]:
    import optax

    optimiser = optax.adam(settings.learning_rate)

    def step(carry: tuple[Any, Any], key: jax.Array) -> tuple[tuple[Any, Any], Curves]:
        parameters, memory = carry
        logits = _logits(task, settings, parameters)
        rollout, kind, choice, taken = _rollout(task, settings, logits, key)
        advantage = jnp.zeros(taken.size).at[rollout.order].set(signal(rollout)).reshape(taken.shape)
        advantage = jax.lax.stop_gradient(jnp.where(taken, advantage, 0))

        def loss(p: Any) -> jax.Array:
            log_policy = jax.nn.log_softmax(_logits(task, settings, p))[kind]
            chosen = jnp.take_along_axis(log_policy, choice[:, :, None], axis=2)[:, :, 0]
            return -jnp.sum(jnp.where(taken, advantage * chosen, 0)) / len(kind)

        slope = jax.grad(loss)(parameters)
        exact = jax.grad(lambda p: -exact_return(task, _logits(task, settings, p)))(parameters)
        change, memory = optimiser.update(slope, memory, parameters)
        policy = jax.nn.softmax(logits)
        entropy = -jnp.mean(jnp.sum(jnp.where(policy > 0, policy * jnp.log(jnp.maximum(policy, 1e-30)), 0), axis=2))
        by_group = rollout.reward.reshape(settings.groups, settings.group_size)
        curves = Curves(
            exact_return(task, logits), _cosine(slope, exact), entropy,
            jnp.mean(by_group.max(axis=1) > by_group.min(axis=1)), taken.sum().astype(jnp.float32),
        )  # fmt: skip
        return (optax.apply_updates(parameters, change), memory), curves

    @jax.jit
    def run(key: jax.Array) -> Curves:
        first, rest = jax.random.split(key)
        parameters = _initial(task, settings, first)
        carry = parameters, optimiser.init(parameters)
        return jax.lax.scan(step, carry, jax.random.split(rest, settings.steps))[1]

    return run


def _initial(task: LearningTask, settings: TrainingSettings, key: jax.Array) -> Any:
    shape = (task.kinds, task.decisions, task.choices)
    if settings.policy == "tabular":
        return jnp.zeros(shape)
    one, two = jax.random.split(key)
    inputs = _inputs(task).shape[-1]
    return {
        "into": jax.random.normal(one, (inputs, settings.hidden)) / jnp.sqrt(3.0),
        "bias": jnp.zeros(settings.hidden),
        "out": 0.01 * jax.random.normal(two, (settings.hidden, task.choices)),
    }


def _inputs(task: LearningTask) -> np.ndarray:
    """What a decision sees: kind, agent and its own number, one column each: float32 [K, D, F]."""
    kind = np.eye(task.kinds)[:, None].repeat(task.decisions, axis=1)
    agent = np.eye(max(task.agents) + 1)[list(task.agents)][None].repeat(task.kinds, axis=0)
    number = np.eye(task.decisions)[None].repeat(task.kinds, axis=0)
    return np.concatenate([kind, agent, number], axis=2).astype(np.float32)


def _logits(task: LearningTask, settings: TrainingSettings, parameters: Any) -> jax.Array:
    """float32 [K, D, C]."""
    if settings.policy == "tabular":
        return jnp.asarray(parameters)
    hidden = jnp.tanh(_inputs(task) @ parameters["into"] + parameters["bias"][None, None])
    return jnp.asarray(hidden @ parameters["out"])


def _values(task: LearningTask, logits: jax.Array) -> list[jax.Array]:
    """Expected reward given the kind and the first r decisive choices, for r from 0 to R: [K], [K, C], [K, C, C] …"""
    policy = jax.nn.softmax(logits)
    values = [jnp.asarray(task.reward, jnp.float32)]
    for r in reversed(range(len(task.decisive))):
        own = policy[:, task.decisive[r]]
        own = own.reshape(task.kinds, *(1,) * r, task.choices)
        values.append(jnp.sum(values[-1] * own, axis=-1))
    return values[::-1]


def _rollout(
    task: LearningTask, settings: TrainingSettings, logits: jax.Array, key: jax.Array
) -> tuple[Rollout, jax.Array, jax.Array, jax.Array]:
    """Draw traces: the rollout, their kinds [n], choices [n, D], and which decisions were taken [n, D]."""
    n, size = settings.groups * settings.group_size, task.decisions
    choose, draw = jax.random.split(key)
    kind = jnp.repeat(jnp.arange(settings.groups) % task.kinds, settings.group_size)
    choice = jax.random.categorical(choose, logits[kind])
    decisive = tuple(choice[:, d] for d in task.decisive)
    taken = jnp.asarray(task.taken)[decisive]
    expected = jnp.asarray(task.reward, jnp.float32)[(kind, *decisive)]
    if task.noise is None:
        reward = (jax.random.uniform(draw, (n,)) < expected).astype(jnp.float32)
    else:
        reward = expected + task.noise * jax.random.normal(draw, (n,))

    values = _values(task, jax.lax.stop_gradient(logits))
    along = jnp.stack([v[(kind, *decisive[:r])] for r, v in enumerate(values)], axis=1)  # [n, R + 1]
    known = np.searchsorted(task.decisive, np.arange(size))  # decisive decisions before each
    changes = np.isin(np.arange(size), task.decisive).astype(np.int64)
    order = jnp.argsort(~taken.ravel(), stable=True)
    value = along[:, known]
    graph = _graph(task, settings, taken.ravel()[order], order)
    rollout = Rollout(graph, reward, order, value.ravel()[order], (along[:, known + changes] - value).ravel()[order])
    return rollout, kind, choice, taken


def _graph(task: LearningTask, settings: TrainingSettings, real: jax.Array, order: jax.Array) -> EventGraph:
    """The batch whose events are the decisions taken, in order; no edges."""
    n, size, team = settings.groups * settings.group_size, task.decisions, max(task.agents) + 1
    trace, decision = order // size, order % size
    agent = trace * team + jnp.asarray(task.agents)[decision]
    number = np.arange(n * team, dtype=np.int32)
    none = np.zeros(0, np.int32)

    def fit(values: jax.Array) -> jax.Array:
        return jnp.where(real, values, 0).astype(jnp.int32)

    return EventGraph(
        event_type=fit(jnp.full(real.shape, int(EventType.MESSAGE))),
        action_mask=real,
        event_mask=real,
        time=jnp.full(real.shape, jnp.nan, jnp.float32),
        trace_ids=fit(trace),
        agent_ids=fit(agent),
        turn_ids=fit(jnp.arange(len(real))),
        senders=none,
        receivers=none,
        edge_type=none,
        edge_mask=np.zeros(0, bool),
        agent_name_ids=number % team,
        agent_role_ids=number % team,
        agent_parent=number - number % team,
        agent_trace=number // team,
        agent_mask=np.ones(n * team, bool),
        group_ids=np.repeat(np.arange(settings.groups, dtype=np.int32), settings.group_size),
        trace_mask=np.ones(n, bool),
    )


def _cosine(one: Any, other: Any) -> jax.Array:
    """Cosine of two trees; 0 where one of them is 0."""
    pairs = list(zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))
    product = jnp.stack([jnp.vdot(a, b) for a, b in pairs]).sum()
    squares = jnp.stack([jnp.stack([jnp.vdot(a, a), jnp.vdot(b, b)]) for a, b in pairs]).sum(axis=0)
    size = jnp.sqrt(jnp.maximum(squares[0] * squares[1], 1e-30))
    return jnp.where(squares.min() > 1e-20, product / size, 0.0)
