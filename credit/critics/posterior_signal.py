"""The posterior of a training run: an object that gives advantages, learns from each step, and can be saved."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from estimators.base import Credit
from estimators.critic.repaid_posterior import PosteriorState, fresh_posterior, posterior_advantage, residual_weights
from graphs.array_files import read_arrays, write_arrays
from graphs.errors import CreditError
from graphs.event_graph import TRACE_FIELDS, Array, EventGraph

__all__ = ["PosteriorSignal"]

EXPECTED = "the state of a PosteriorSignal"

OUTLIER = 100.0
"""How often a reward's square holds those of all others, from where it is told: ten standard errors."""


class PosteriorSignal:
    """Advantages from a regression on all earlier steps, as `estimators.posterior_advantage` computes them.

    Attributes:
      state: `PosteriorState` after the last step.

    Examples:
      >>> import credit, numpy as np
      >>> signal = credit.PosteriorSignal(1)
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0, 1, 1], trace=["a", "b", "c", "d"], reward=[1.0, 0.0, 1.0, 0.0])
      >>> x = np.zeros((graph.num_events, 1))
      >>> x[rows.event, 0] = [0.5, -0.5, 0.5, -0.5]
      >>> result = signal(graph, reward, np.zeros(x.shape, int), x)
      >>> int(signal.state.steps)
      1
    """

    def __init__(self, features: int, *, block: Array | None = None) -> None:
        """Nothing learned yet.

        Args:
          features: F.
          block: int [F], features that share a prior width and a weight of the residual; by default all do.

        Raises:
          CreditError: there is no feature, or `block` is not as long.
        """
        self.state: PosteriorState = fresh_posterior(features, block=block)

    def __call__(self, graph: EventGraph, reward: Array, columns: Array, values: Array) -> Credit:
        """The advantages of a step, which the next steps know of.

        Args:
          graph: the batch of the step.
          reward: float [T], NaN where a trace has none.
          columns, values: int and float [E, J], centred numbers of each choice; `estimators.choice_features` makes them
            of probabilities.

        Warns:
          UserWarning: the square of one reward, less the median, is over 100 times the sum of all others so far. It
            moves the posterior by ten of its standard errors, and nothing is forgotten. It is told before the step is
            learned: where warnings are errors, the state stays as it was.

        Raises:
          CreditError: a column is no feature, a value is infinite, the numbers overflow, or the shapes differ.
        """
        graph, reward = _without_room(graph, reward)
        self._tell_outlier(graph, reward)
        credit, state = posterior_advantage(graph, reward, self.state, columns, values)
        if int(state.steps) == int(self.state.steps):
            largest = [float(np.nanmax(np.abs(np.asarray(part)), initial=0)) for part in (values, reward)]
            raise CreditError(
                f"values reach {largest[0]:.3g} and rewards {largest[1]:.3g}, and sums of their squares overflow; "
                "expected numbers near 1"
            )
        self.state = state
        return credit

    def _tell_outlier(self, graph: EventGraph, reward: Array) -> None:
        """Name a trace whose reward would teach more than all others. Equal ones give no scale to judge it by."""
        known = np.asarray(reward, np.float64)
        if known.shape != (graph.num_traces,) or not np.isfinite(known).any():
            return
        middle = np.median(known[np.isfinite(known)])
        squares = np.nan_to_num(known - middle) ** 2
        trace = int(np.argmax(squares))
        others = float(squares.sum() - squares[trace] + self.state.square)
        if squares[trace] > OUTLIER * others > 0:
            warnings.warn(
                f"trace {trace} of the batch has reward {known[trace]:.4g}, where the median is {middle:.4g}: it "
                "outweighs all other traces so far, and nothing is forgotten. If it is a fault, pass NaN for it",
                stacklevel=3,
            )

    @property
    def residual_weights(self) -> np.ndarray:
        """ω of each block in the next step, float [B]: 1 is `control`, 0 the claims and their repayment alone."""
        return np.asarray(residual_weights(self.state))

    def save(self, path: str | Path) -> None:
        """Write the state to an .npz file, whole or not at all; a run that resumes from it gives the same numbers.

        Raises:
          OSError: the file cannot be written.
        """
        write_arrays(Path(path), {name: np.asarray(part) for name, part in self.state._asdict().items()})

    @classmethod
    def load(cls, path: str | Path) -> PosteriorSignal:
        """Read what `save` wrote.

        Raises:
          CreditError: the file is missing or damaged, or holds something else.
        """
        arrays = read_arrays(Path(path), EXPECTED)
        if set(arrays) != set(PosteriorState._fields) or arrays["block"].ndim != 1 or not arrays["block"].size:
            raise CreditError(f"{path} holds {', '.join(sorted(arrays)) or 'nothing'}; expected {EXPECTED}")
        signal = cls(len(arrays["block"]), block=arrays["block"])
        for name, fresh in signal.state._asdict().items():
            stored = arrays[name]
            if stored.shape != fresh.shape or stored.dtype.kind != np.dtype(fresh.dtype).kind:
                raise CreditError(
                    f"{path}: {name} is {stored.dtype} {stored.shape}; expected {fresh.dtype} {fresh.shape}"
                )
            if not np.isfinite(stored).all():
                raise CreditError(f"{path}: {name} holds a number that is not finite; expected {EXPECTED}")
        signal.state = PosteriorState(**{name: jnp.asarray(arrays[name]) for name in PosteriorState._fields})
        return signal


def _without_room(graph: EventGraph, reward: Array) -> tuple[EventGraph, Array]:
    """The batch with room for as many traces as it has, or the next power of two: a step takes O(T F²).

    `credit.from_columns` makes room for as many traces as events where it is not told how many there are.
    """
    if len(reward) != graph.num_traces:
        return graph, reward  # refused by the step, in words
    names = [name for name in (*TRACE_FIELDS, "cluster_ids") if getattr(graph, name) is not None]
    arrays = {name: np.asarray(getattr(graph, name)) for name in names}
    ids = [x[arrays["trace_mask"]] for name, x in arrays.items() if name != "trace_mask"]
    largest = max([int(np.flatnonzero(arrays["trace_mask"]).max(initial=0)), *(int(x.max(initial=0)) for x in ids)])
    room = 1 << largest.bit_length()
    if room >= graph.num_traces:
        return graph, reward
    return dataclasses.replace(graph, **{name: x[:room] for name, x in arrays.items()}), np.asarray(reward)[:room]
