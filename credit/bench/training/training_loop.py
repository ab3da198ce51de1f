"""Train a team on a task by policy gradient with a signal, the whole loop compiled, exact numbers at every step.

The policy gives logits for every kind and decision; the gradient is that of

    L = −(1/n) Σ_traces Σ_{d, c} W_dc log π(c | kind, d)

with W of a signal: the advantage at the choice that was made, and 0 elsewhere; a method that compares alternatives may
weigh those, too. Beside each update stand the exact expected return J of the policy, the cosine between L's gradient
and the exact gradient of −J, the entropy of the policy, and the share of groups with unequal rewards.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from credit.bench.refusals import main_reason
from credit.bench.signs import residue
from credit.bench.training.learning_tasks import LearningTask
from credit.bench.training.rollouts import BERNOULLI, Rollout, draw_rollout, exact_return
from credit.bench.training.team_policies import HEADS, first_parameters, policy_logits
from credit.methods.own_results import ABOVE_0, FINITE, UnmeasuredError
from estimators.base import REASONS, Reason
from graphs.errors import CreditError, MissingExtraError
from graphs.text import counted

__all__ = ["Answer", "Curves", "Signal", "TrainingSettings", "train"]

CHUNK = 20
"""Updates of one call of the compiled function; a run stops after the chunk that uses up its budget."""


class Answer(NamedTuple):
    """The result of a signal on a rollout.

    Attributes:
      weights: float [n, D, C], W above; 0 at decisions that were not reached.
      cost: float [], events of the runs that the signal made besides the rollout.
      state: what the signal carries to the next step, such as a critic.
      reasons: int32 [len(REASONS)], how many actions have each reason, the number 0 among them; None where the signal
        refuses nothing.
      lacks_scale: whether a valid advantage stands over a scale that is not above 0.
    """

    weights: jax.Array
    cost: jax.Array | float
    state: Any
    reasons: jax.Array | None = None
    lacks_scale: jax.Array | bool = False


class Signal(NamedTuple):
    """A training signal: pure functions that JAX can trace; the same object compiles once for tasks of one shape.

    Attributes:
      start: the state before the first step, of a task.
      weigh: (rollout, state, key) to `Answer`.
    """

    start: Callable[[LearningTask], Any]
    weigh: Callable[[Rollout, Any, jax.Array], Answer]


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """Settings of training, the same for every signal.

    Attributes:
      steps: the budget is `steps` × traces of a step × D events. Runs that a signal asks for are paid from it, so that
        a signal with evidence makes fewer updates. Traces that stop early cost less, so that there are more.
      groups: groups of traces in a step; the kind of group g is g modulo K, the kinds of the task.
      group_size: traces of a group.
      policy: "tabular", "mlp" or "transformer", as `team_policies` has them.
      hidden: width of the MLP or of the transformer.
      optimizer: "adam", or "sgd" for steps along the gradient itself. Adam divides a gradient by its own size, so that
        a signal of little noise takes no larger steps than one of much.

    Raises:
      CreditError: a number is out of range.
    """

    steps: int = 60
    groups: int = 4
    group_size: int = 4
    policy: Literal["tabular", "mlp", "transformer"] = "tabular"
    hidden: int = 32
    optimizer: Literal["adam", "sgd"] = "adam"

    def __post_init__(self) -> None:
        for field, least in (("steps", 1), ("groups", 1), ("group_size", 1), ("hidden", 1)):
            if getattr(self, field) < least:
                raise CreditError(f"TrainingSettings.{field} is {getattr(self, field)!r}; expected {least} or more")
        if self.policy not in ("tabular", "mlp", "transformer"):
            raise CreditError(f"TrainingSettings.policy is {self.policy!r}; expected 'tabular', 'mlp' or 'transformer'")
        if self.optimizer not in ("adam", "sgd"):
            raise CreditError(f"TrainingSettings.optimizer is {self.optimizer!r}; expected 'adam' or 'sgd'")
        if self.policy == "transformer" and self.hidden % HEADS:
            raise CreditError(f"TrainingSettings.hidden is {self.hidden}; expected a multiple of {HEADS}, the heads")

    def budget(self, task: LearningTask) -> int:
        """Events that a run may cost.

        Examples:
          >>> from credit.bench.training.learning_tasks import learning_task
          >>> TrainingSettings(steps=10, groups=2, group_size=4).budget(learning_task("pivotal"))
          960
        """
        return self.steps * self.groups * self.group_size * task.decisions


class Curves(NamedTuple):
    """The course of training: [U + 1], before each of the U updates that fit the budget, and after the last.

    Attributes:
      expected: float64, J, the exact expected return, before each update.
      cosine: float64, between the gradient that was taken and the exact one; 0 where one of them is 0.
      entropy: float64, of the policy, mean over kinds and decisions, in nats.
      teaching: float64, share of groups whose rewards are not all equal.
      spent: float64, events that were paid before each update: decisions taken, and those of the signal's runs.
      reasons: float64 [len(REASONS)], actions of all updates by the reason why the signal gave them no number; those
        with one are the first. All 0 where the signal refuses nothing.
    """

    expected: np.ndarray
    cosine: np.ndarray
    entropy: np.ndarray
    teaching: np.ndarray
    spent: np.ndarray
    reasons: np.ndarray


def train(
    task: LearningTask,
    signal: Signal,
    settings: TrainingSettings,
    seed: int,
    learning_rate: float,
    devices: Sequence[jax.Device] | None = None,
) -> Curves:
    """Train one team from choices that are uniform (tabular) or nearly so until the budget is spent.

    Args:
      task: what is learned.
      signal: of `training_signal`, or one's own.
      settings: of the loop.
      seed: of everything random; the same seed gives the same curves bit for bit on one machine.
      learning_rate: of the optimizer.
      devices: of this process, over which the groups of a step are spread; by default one. The draws do not
        depend on the devices; sums may round differently.

    Returns:
      `Curves`.

    Raises:
      MissingExtraError: optax is not installed.
      CreditError: the learning rate is no positive number, the budget does not hold one update, the groups cannot be
        spread evenly, an advantage is no finite number, or the signal gave no action an advantage in any update, as
        methods that compare traces of one group do in groups of one.
    """
    if not 0 < learning_rate < float("inf"):
        raise CreditError(f"learning_rate is {learning_rate!r}; expected a positive number")
    mesh = None
    if devices is not None and len(devices) > 1:
        if settings.groups % len(devices):
            raise CreditError(f"groups is {settings.groups}; expected a multiple of {len(devices)}, the devices")
        mesh = Mesh(np.array(devices), ("groups",))
    begin, chunk = _compiled(signal, settings, mesh)
    noise = BERNOULLI if task.noise is None else task.noise
    shape, budget = dataclasses.replace(task, name="", noise=noise), settings.budget(task)
    key = jax.random.key(seed)
    carry, spent = begin(shape, key), 0.0
    parts: list[list[np.ndarray]] = []
    while spent <= budget:
        carry, (is_finite, lacks, *part) = chunk(shape, carry, jax.random.fold_in(key, len(parts) + 1), learning_rate)
        if np.any(lacks):
            update = len(parts) * CHUNK + int(np.argmax(lacks)) + 1
            raise UnmeasuredError(f"a scale of update {update} is not above 0 and marked valid; {ABOVE_0}")
        if not np.all(is_finite):
            update = len(parts) * CHUNK + int(np.argmin(is_finite)) + 1
            raise UnmeasuredError(f"an advantage of update {update} is no finite number and marked valid; {FINITE}")
        parts.append([np.asarray(x, np.float64) for x in part])
        spent += parts[-1][-1].sum()
    expected, cosine, entropy, teaching, reasons, cost = (np.concatenate(x) for x in zip(*parts, strict=True))
    paid = np.concatenate([[0.0], np.cumsum(cost)])[: len(cost)]
    kept = paid <= budget
    if not np.isfinite(expected[kept]).all():
        raise UnmeasuredError(
            f"the policy is no finite number from update {int(np.argmin(np.isfinite(expected)))} on; expected a "
            f"learning_rate below {learning_rate:g}"
        )
    if kept.sum() < 2:
        raise UnmeasuredError(
            f"an update costs {cost[0]:.0f} events, the budget is {budget}; expected the events of an update"
        )
    counts = reasons[kept][:-1].sum(axis=0)
    if counts.any() and not counts[Reason.VALID]:
        raise UnmeasuredError(
            f"no action had an advantage in {counted(int(kept.sum()) - 1, 'update')}: every one was refused, in groups "
            f"of {counted(settings.group_size, 'trace')}, most often: {main_reason(counts)}; expected larger groups "
            "for methods that compare their traces"
        )
    return Curves(expected[kept], cosine[kept], entropy[kept], teaching[kept], paid[kept], counts)


@functools.lru_cache(maxsize=64)
def _compiled(
    signal: Signal, settings: TrainingSettings, mesh: Mesh | None = None
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    if importlib.util.find_spec("optax") is None:
        raise MissingExtraError("optax", extra="critic")
    import optax

    optimizer = optax.scale_by_adam() if settings.optimizer == "adam" else optax.identity()

    @jax.jit
    def begin(task: LearningTask, key: jax.Array) -> Any:
        parameters = first_parameters(task, settings, key)
        return parameters, optimizer.init(parameters), signal.start(task)

    @jax.jit
    def chunk(task: LearningTask, carry: Any, key: jax.Array, learning_rate: jax.Array) -> Any:
        def step(carry: Any, key: jax.Array) -> Any:
            parameters, memory, state = carry
            draw, runs = jax.random.split(key)
            logits = policy_logits(task, settings, parameters)
            rollout = _spread(draw_rollout(task, logits, settings.groups, settings.group_size, draw), mesh)
            answer = signal.weigh(rollout, state, runs)
            # Traces of a kind see the same logits, so that their weights add up. Choice by choice: XLA computes all of
            # a signal in loops along the last axis, and two choices are a short one.
            of_choice = [answer.weights[..., c] for c in range(task.choices)]
            *summed, size = [
                jax.ops.segment_sum(part, rollout.kind, task.kinds) / len(rollout.kind)
                for part in (*of_choice, functools.reduce(jnp.add, map(jnp.abs, of_choice)))
            ]
            weights = jnp.stack(summed, axis=-1)
            back = jax.vjp(functools.partial(policy_logits, task, settings), parameters)[1]
            (slope,) = back(_slope_of_logits(weights, size, logits))

            def exact_of(p: Any) -> jax.Array:
                return exact_return(task, policy_logits(task, settings, p))

            expected, exact_slope = jax.value_and_grad(exact_of)(parameters)
            with jax.numpy_dtype_promotion("standard"):  # Adam of optax raises a float to an integer count of steps
                change, memory = optimizer.update(slope, memory, parameters)
            by_group = rollout.reward.reshape(settings.groups, settings.group_size)
            unequal = jnp.mean(by_group.max(axis=1) > by_group.min(axis=1))
            events = rollout.taken.sum().astype(jnp.float32) + answer.cost
            row = (
                jnp.all(jnp.isfinite(weights)) | ~jnp.all(jnp.isfinite(logits)),
                answer.lacks_scale,
                expected,
                -_cosine(slope, exact_slope),
                _entropy(logits),
                unequal,
                jnp.zeros(len(REASONS), jnp.int32) if answer.reasons is None else answer.reasons,
                events,
            )
            return (jax.tree.map(lambda p, c: p - learning_rate * c, parameters, change), memory, answer.state), row

        return jax.lax.scan(step, carry, jax.random.split(key, CHUNK))

    return begin, chunk


def _spread(rollout: Rollout, mesh: Mesh | None) -> Rollout:
    """The traces of a step over the devices, whole groups on each; what all traces share stays whole on all."""
    if mesh is None:
        return rollout
    by_group = NamedSharding(mesh, PartitionSpec("groups"))  # type: ignore[no-untyped-call]

    def over(leaf: Any) -> jax.Array:
        array = jnp.asarray(leaf)
        spread: jax.Array = jax.device_put(array, by_group) if array.size else array
        return spread

    parts = {name: part for name, part in rollout._asdict().items() if name not in ("task", "logits")}
    return rollout._replace(**jax.tree.map(over, parts))


def _slope_of_logits(weights: jax.Array, size: jax.Array, logits: jax.Array) -> jax.Array:
    """The gradient of L, float [K, D, C], with 0 where rounding may be all that it is.

    It is 0 where all traces chose alike and their advantages sum to 0. Adam, which divides a gradient by its own size,
    would make whole steps of what rounding leaves of that.

    Args:
      weights: float [K, D, C], sums over traces.
      size: float [K, D], the same sums of absolute values, over all choices.
      logits: float [K, D, C].
    """
    slope = jax.nn.softmax(logits) * weights.sum(axis=2, keepdims=True) - weights
    return jnp.where(jnp.abs(slope) <= residue(1.0, np.float32) * size[..., None], 0, slope)


def _entropy(logits: jax.Array) -> jax.Array:
    return -jnp.mean(jnp.sum(jax.nn.softmax(logits) * jax.nn.log_softmax(logits), axis=2))


def _cosine(first: Any, other: Any) -> jax.Array:
    """Cosine of two trees; 0 where one of them is 0."""
    pairs = list(zip(jax.tree.leaves(first), jax.tree.leaves(other), strict=True))
    product = jnp.stack([jnp.vdot(a, b) for a, b in pairs]).sum()
    squares = jnp.stack([jnp.stack([jnp.vdot(a, a), jnp.vdot(b, b)]) for a, b in pairs]).sum(axis=0)
    size = jnp.sqrt(jnp.maximum(squares[0] * squares[1], 1e-30))
    return jnp.where(squares.min() > 1e-20, product / size, 0.0)
