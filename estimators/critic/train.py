"""Fitting a critic: an ensemble trained on logged traces, stopped by held-out tasks, resumable bit for bit.

Each member minimises, over traces and their prefixes e (the empty one included),

    Σ_traces w Σ_e loss(z_e, y_e) / (events + 1)

with cross-entropy for the Bernoulli head and squared error for the value head. Targets are λ-returns of the outcome,

    y_e = (1 − λ) V̄(G≤e+1) + λ y_{e+1},        y = R at the last event,

with V̄ the member's slow parameters (moving averages); λ = 1, the default, is Monte Carlo: y_e = R. Further runs from a
prefix, where the corpus has them, enter its target and its weight (`estimators.critic.objective`). The weights w of a
member are drawn once for each task, exponential with mean 1 (a Bayesian bootstrap over tasks), so that the members'
spread shows how much the answer depends on which tasks were logged.

Everything random comes from `seed` and the number of the epoch. So what a killed run had done up to its last checkpoint
and does after it is what an uninterrupted run does.
"""

from __future__ import annotations

import estimators.critic.extra  # isort: skip  # noqa: F401

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.critic import checkpoints
from estimators.critic.data import CriticData, Room, Scaler, Split, in_batches, room
from estimators.critic.network import Architecture
from estimators.critic.objective import initial
from estimators.critic.steps import State, Steps, compiled_steps, device_mesh
from graphs.errors import CreditError
from graphs.event_graph import EventType

__all__ = ["Epoch", "Fitted", "Settings", "check_split", "fit"]

LEAST_STEPS = 1000
"""Steps of training at the least, where `Settings.epochs` is None: small data takes more passes."""
MOST_CHECKPOINTS = 20
LEAST = 8
"""Traces of a batch at the least: a trace is one outcome, however many prefixes it has."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a critic's training.

    Attributes:
      head: "bernoulli" (rewards in [0, 1]) or "value".
      members: size of the ensemble.
      hidden, sums, layers: sizes of the network (`Architecture`).
      lambda_: λ of the targets; 1 is Monte Carlo.
      epochs: the most passes over the training traces; None for 20, or as many as 1,000 steps take.
      patience: epochs without a better validation loss before training stops; None for a fifth of `epochs`, 5 or more.
      model: "network", "additive" (`estimators.critic.additive`, which needs few traces), or "auto", both, of which the
        one with the lower loss on validation tasks is kept. `fit` trains networks only.
      batch_events: events a batch holds, about; more where that is not `LEAST` traces of mean length.
      learning_rate, weight_decay: of AdamW; the rate falls as a cosine over `epochs`.
      slow: weight of the past in the moving average of parameters, for each step. The averages are what is returned.
      seed: of everything random.
    """

    head: str = "bernoulli"
    members: int = 5
    hidden: int = 16
    sums: int = 8
    layers: int = 1
    lambda_: float = 1.0
    epochs: int | None = None
    patience: int | None = None
    model: str = "auto"
    batch_events: int = 2048
    learning_rate: float = 5e-3
    weight_decay: float = 0.3
    slow: float = 0.98
    seed: int = 0

    def __post_init__(self) -> None:
        def require(holds: bool, field: str, expected: str) -> None:
            if not holds:
                raise CreditError(f"Settings.{field} is {getattr(self, field)!r}; expected {expected}")

        require(self.head in ("bernoulli", "value"), "head", "'bernoulli' or 'value'")
        require(self.model in ("auto", "network", "additive"), "model", "'auto', 'network' or 'additive'")
        for field in ("members", "hidden", "sums", "layers", "batch_events"):
            require(getattr(self, field) >= 1, field, "1 or more")
        for field in ("epochs", "patience"):
            value = getattr(self, field)
            require(value is None or value >= 1, field, "1 or more, or None")
        require(0 <= self.lambda_ <= 1, "lambda_", "0 to 1")
        require(self.learning_rate > 0, "learning_rate", "a positive number")
        require(self.weight_decay >= 0, "weight_decay", "0 or more")
        require(0 <= self.slow < 1, "slow", "0 or more and below 1")


class Epoch(NamedTuple):
    """One pass: its number from 1, mean training and validation loss, and the best of the latter with its epoch.

    Epoch 0 is the critic before training, the mean outcome: where nothing better is found, that is what is returned.
    """

    number: int
    train: float
    validation: float
    best: float
    best_number: int


class Fitted(NamedTuple):
    """A trained ensemble and all that is needed to use it.

    Attributes:
      parameters: the members' slow parameters of the best epoch, stacked on the first axis.
      sizes: the network's.
      scaler: of the features.
      centre, scale: the reward's mean and spread over training traces ("value" head); 0 and 1 for "bernoulli".
      history: the epochs, in order.
      converged: whether training stopped because the validation loss no longer fell, before it ran out of epochs.
    """

    parameters: Any
    sizes: Architecture
    scaler: Scaler
    centre: float
    scale: float
    history: tuple[Epoch, ...]
    converged: bool


def fit(
    corpus: CriticData,
    split: Split,
    settings: Settings,
    *,
    checkpoint: Path | None = None,
    after_epoch: Callable[[Epoch], None] | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Fitted:
    """Train a critic on the traces `split.train`, stopping by those of `split.validation`.

    Args:
      checkpoint: file that holds the state after an epoch. If it is of the same corpus, split and settings, training
        goes on from there.
      after_epoch: called with each epoch as it ends, including earlier ones of a resumed run.
      devices: of this process, to cut each batch over (`estimators.critic.steps`); by default one.

    Raises:
      CreditError: a reward does not suit the head, a split is empty, or `checkpoint` is of another fit.
      OSError: `checkpoint` cannot be written.
    """
    check_split(corpus, split, settings.head)
    reward = corpus.reward[split.train]
    scaler = Scaler.of(corpus.features[_events(corpus, split.train)])
    centre, scale = (0.0, 1.0) if settings.head == "bernoulli" else _centre(reward)
    corpus = corpus._replace(
        features=scaler(corpus.features), reward=(corpus.reward - np.float32(centre)) / np.float32(scale),
        run_mean=np.where(corpus.runs > 0, (corpus.run_mean - np.float32(centre)) / np.float32(scale), np.float32(0)),
    )  # fmt: skip
    sizes = Architecture(
        corpus.features.shape[1], settings.hidden, settings.sums, settings.layers,
        _counts(corpus, split.train), "bernoulli" if settings.head == "bernoulli" else "value",
    )  # fmt: skip
    to = room(corpus, max(settings.batch_events, round(LEAST * float(corpus.lengths[split.train].mean()))))
    weight = _bootstrap(corpus.group, settings)
    steps = compiled_steps(sizes, settings.weight_decay, settings.lambda_, settings.slow, device_mesh(devices))
    parameters = initial(sizes, settings.members, settings.seed, float(corpus.reward[split.train].mean()))
    state = State(parameters, parameters, jax.vmap(steps.optimiser.init)(parameters), parameters)
    history: list[Epoch] = []
    identity = _identity(corpus, split, settings)
    if checkpoint is not None and checkpoint.exists():
        state, epoch_rows = checkpoints.restore(checkpoint, identity, state)
        history = [Epoch(*row) for row in epoch_rows]
        for epoch in history:
            _report(after_epoch, epoch)
    state = steps.everywhere(state)
    epochs, patience = _length(corpus, split.train, to, settings)
    every = -(-epochs // MOST_CHECKPOINTS)
    at_first = _mean_loss(steps, parameters, corpus, split.validation, to)
    while len(history) < epochs and not _stale(history, patience):
        number = len(history) + 1
        order = np.random.default_rng([settings.seed, number]).permutation(split.train)
        done, losses = 0, []
        for batch, traces in steps.batches(corpus, order, to):
            rate = jnp.float32(_rate(settings, (number - 1 + done / len(order)) / epochs))
            state, loss = steps.step(state, batch, jnp.asarray(weight[:, batch.trace]), rate)
            losses.append(loss * traces)
            done += traces
        train = float(jnp.stack(losses).sum()) / done
        validation = _mean_loss(steps, state.slow, corpus, split.validation, to)
        best, best_number = (history[-1].best, history[-1].best_number) if history else (at_first, 0)
        if validation < best:
            state = state._replace(best=state.slow)
            best, best_number = validation, number
        epoch = Epoch(number, train, validation, best, best_number)
        history.append(epoch)
        if checkpoint is not None and (number % every == 0 or number == epochs or _stale(history, patience)):
            checkpoints.save(checkpoint, identity, state, history)
        _report(after_epoch, epoch)
    return Fitted(steps.on_one(state.best), sizes, scaler, centre, scale, tuple(history), _stale(history, patience))


def _rate(settings: Settings, progress: float) -> float:
    """The learning rate after a part of all epochs: a cosine from its full value to a twentieth."""
    return settings.learning_rate * (0.05 + 0.475 * (1 + math.cos(math.pi * progress)))


def _mean_loss(steps: Steps, parameters: Any, corpus: CriticData, traces: np.ndarray, to: Room) -> float:
    return sum(float(steps.judge(parameters, batch)) for batch, _ in steps.batches(corpus, traces, to)) / len(traces)


def _bootstrap(group: np.ndarray, settings: Settings) -> np.ndarray:
    """Weight of each trace for each member: that of its task, float32 [M, T]; 1 for an ensemble of one."""
    if settings.members == 1:
        return np.ones((1, len(group)), np.float32)
    rng = np.random.default_rng([settings.seed, 0])
    drawn = rng.exponential(size=(settings.members, int(group.max(initial=0)) + 1))
    return drawn[:, group].astype(np.float32)


def _length(corpus: CriticData, traces: np.ndarray, to: Room, settings: Settings) -> tuple[int, int]:
    """Epochs and patience: those of the settings, or those that suit the number of batches."""
    steps = max(1, sum(1 for _ in in_batches(corpus, traces, to)))
    epochs = max(20, -(-LEAST_STEPS // steps)) if settings.epochs is None else settings.epochs
    return epochs, max(5, epochs // 5) if settings.patience is None else settings.patience


def _stale(history: list[Epoch], patience: int) -> bool:
    return bool(history) and history[-1].number - history[-1].best_number >= patience


def _report(after_epoch: Callable[[Epoch], None] | None, epoch: Epoch) -> None:
    if after_epoch is not None:
        after_epoch(epoch)


def _events(corpus: CriticData, traces: np.ndarray) -> np.ndarray:
    return np.concatenate([np.arange(corpus.start[t], corpus.start[t + 1]) for t in traces])


def _counts(corpus: CriticData, traces: np.ndarray) -> tuple[float, ...]:
    """Events of each type in a trace, to the nearest power of two: other splits compile to the same as a rule."""
    number = np.bincount(corpus.kind[_events(corpus, traces)], minlength=len(EventType)) / len(traces)
    return tuple((2.0 ** np.round(np.log2(np.maximum(number, 1)))).tolist())


def _centre(reward: np.ndarray) -> tuple[float, float]:
    spread = float(reward.std(dtype=np.float64))
    return float(reward.mean(dtype=np.float64)), spread if spread > 0 else 1.0


def check_split(corpus: CriticData, split: Split, head: str) -> None:
    """Raise unless a critic with this head can be fitted on these traces.

    Raises:
      CreditError: a part of the split is empty, an outcome is missing, or one does not suit the head.
    """
    if len(split.train) == 0 or len(split.validation) == 0:
        raise CreditError("the split has no training or no validation traces; both need tasks with outcomes")
    reward = corpus.reward[np.concatenate([split.train, split.validation])]
    bad = np.flatnonzero(~np.isfinite(reward))
    if len(bad):
        raise CreditError("a trace of the split has no outcome; split_by_task leaves such traces out")
    if head == "bernoulli" and (reward.min() < 0 or reward.max() > 1):
        worst = float(reward[np.argmax(np.abs(reward - 0.5))])
        raise CreditError(f"a reward is {worst:g}; expected 0 to 1 for head 'bernoulli' (head 'value' takes any)")
    if head == "bernoulli" and (corpus.run_mean.min(initial=0) < 0 or corpus.run_mean.max(initial=0) > 1):
        worst = float(corpus.run_mean[np.argmax(np.abs(corpus.run_mean - 0.5))])
        raise CreditError(f"runs have mean {worst:g}; expected 0 to 1 for head 'bernoulli' (head 'value' takes any)")


def _identity(corpus: CriticData, split: Split, settings: Settings) -> str:
    parts = {name: np.asarray(part).tolist() for name, part in dataclasses.asdict(split).items()}
    return json.dumps({"corpus": corpus.fingerprint(), "split": parts, "settings": dataclasses.asdict(settings)})
