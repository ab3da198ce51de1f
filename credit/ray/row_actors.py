"""Advantages of a trainer's rows, computed by an actor or a task of the trainer's own Ray cluster.

Only ids and rewards are sent, a few numbers for each row. Token ids, masks and log-probabilities are not: the answer
is one number a row, and the caller copies it to the tokens.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.integrations.rows.row_advantages import Advantages, RowAdvantages, rows_advantage
from credit.integrations.rows.row_columns import as_labels, as_mask, as_numbers, give_back, on_host, spread
from credit.ray.cluster import RETRIES, connected, results_of
from credit.tables.column_values import PAID, nulls, type_name

if TYPE_CHECKING:
    from estimators.base import Credit

__all__ = ["RemoteRowAdvantages", "rows_advantage_task"]

ON_CPU = {"env_vars": {"JAX_PLATFORMS": "cpu"}}  # the accelerator of the node is the trainer's


class RemoteRowAdvantages:
    """`credit.integrations.RowAdvantages` in an actor on the cluster, compiled once; called in the same way.

    Give it to an integration in the place of a `RowAdvantages`. The actor takes one CPU and no accelerator. If its
    process dies, Ray starts it again and repeats the call. What a method carries from batch to batch then begins anew.

    Args:
      method: a name in `credit.METHODS`, or a function `(graph, reward, *, event_reward=None, ...) -> Credit`.
      name: the name of the actor. Processes that give one name share one actor, and its compiled method.
      actor_options: options of Ray for the actor, such as `{"num_cpus": 2}`.
      **options: keyword arguments of `RowAdvantages`: `rows`, `scaled`, `watch` and the method's.

    Raises:
      CreditError: as `RowAdvantages`.
      MissingExtraError: Ray is not installed.
    """

    def __init__(
        self,
        method: str | Callable[..., Credit],
        *,
        name: str | None = None,
        actor_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        # One of the caller's own process: it refuses wrong arguments here, and has what integrations ask of it.
        local = RowAdvantages(method, **{key: value for key, value in options.items() if key != "watch"})
        self.name, self.needs, self.accepts = local.name, local.needs, local.accepts
        self.pays_agents, self.carries_state = local.pays_agents, local.carries_state
        self.scope = local.scope
        self._ray = connected()
        settings: dict[str, Any] = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": RETRIES}
        settings |= {"runtime_env": ON_CPU, **(actor_options or {})}
        if name is not None:
            settings |= {"name": name, "get_if_exists": True}
        self._actor = self._ray.remote(RowActor).options(**settings).remote(method, options)

    @property
    def compilations(self) -> int:
        """How often the actor compiled the method so far."""
        return int(self._answer(self._actor.compilations.remote()))

    def warmup(self, rows: int | None = None, *, evidence: Collection[str] = (), event_reward: bool = False) -> float:
        """Compile before the first step; see `RowAdvantages.warmup`."""
        return float(self._answer(self._actor.warmup.remote(rows, tuple(evidence), event_reward)))

    def __call__(self, *, reward: Any, mask: Any = None, **columns: Any) -> Advantages:
        """Advantages of one batch; called, and warns, as `RowAdvantages.__call__`. `mask` is not sent."""
        sent, n = _sent(reward, columns)
        (values, valid, metrics), said = self._answer(self._actor.heard.remote(sent))
        _warn(said)
        return Advantages(_on_tokens(values, reward, mask, n), valid, metrics)

    def _answer(self, pending: Any) -> Any:
        return next(iter(results_of(self._ray, [pending])))


class RowActor:
    """The actor: one compiled method."""

    def __init__(self, method: str | Callable[..., Credit], options: Mapping[str, Any]) -> None:
        self._advantages = RowAdvantages(method, **options)

    def compute(self, sent: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
        """One number for each row, which rows have an answer, and the metrics."""
        result = self._advantages(**sent)
        return np.asarray(result.advantages), result.valid, result.metrics

    def heard(self, sent: Mapping[str, Any]) -> tuple[Any, list[Warning | str]]:
        """`compute`, and what it warned of."""
        return heard(self.compute, sent)

    def warmup(self, rows: int | None, evidence: tuple[str, ...], event_reward: bool) -> float:
        """Compile, and return the seconds that it took."""
        return self._advantages.warmup(rows, evidence=evidence, event_reward=event_reward)

    def compilations(self) -> int:
        """How often it compiled."""
        return self._advantages.compilations


def rows_advantage_task(method: str, *, reward: Any, mask: Any = None, **columns: Any) -> tuple[Any, dict[str, float]]:
    """Advantages of a trainer's rows and metrics, by a task on the cluster instead of an actor.

    For single calls. A worker keeps its compiled methods, but each task may go to another worker.

    Args:
      method: a name in `credit.METHODS`.
      reward, mask, **columns: as of `credit.integrations.RowAdvantages.__call__`. `mask` is not sent.

    Returns:
      The advantages, [N] or [N, L], and the metrics.

    Raises:
      CreditError: as `RowAdvantages`.
      MissingExtraError: Ray is not installed.
    """
    ray = connected()
    sent, n = _sent(reward, columns)
    remote = ray.remote(heard).options(max_retries=RETRIES, runtime_env=ON_CPU)
    (values, metrics), said = next(iter(results_of(ray, [remote.remote(compute_rows, method, sent)])))
    _warn(said)
    return _on_tokens(values, reward, mask, n), metrics


def compute_rows(method: str, sent: Mapping[str, Any]) -> tuple[np.ndarray, dict[str, float]]:
    """The answer of a task."""
    named = {name: sent.get(name) for name in ("group", "trace", "agent", "turn")}
    values, metrics = rows_advantage(method, **{**named, **sent})
    return np.asarray(values), metrics


def heard(call: Callable[..., Any], *given: Any) -> tuple[Any, list[Warning | str]]:
    """What a call in a worker answers, and its warnings, which the caller's process would not see."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        answer = call(*given)
    return answer, [one.message for one in said]


def _warn(said: Collection[Warning | str]) -> None:
    for text in said:
        warnings.warn(text, stacklevel=3)


def _sent(reward: Any, columns: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """The columns as NumPy arrays and lists, without tensors, devices and gradients; and the number of rows."""
    n = len(reward)
    sent: dict[str, Any] = {"reward": _paid("reward", reward, n)}
    for name, column in columns.items():
        if column is None:
            continue
        if name == "evidence":
            sent[name] = {key: _paid(key, of, n) if key in PAID else as_labels(of) for key, of in column.items()}
        elif name == "order":
            sent[name] = on_host(column)  # integers and times as they are: places are compared exactly
        else:
            sent[name] = _paid(name, column, n) if name in PAID else as_labels(column)
    return sent, n


def _paid(name: str, column: Any, n: int) -> np.ndarray:
    """Numbers in the type that they have, by which it is known how coarse they are; masked where an event has none."""
    from jax.numpy import bfloat16  # NumPy itself has none

    types = {"bfloat16": bfloat16.dtype, "float16": np.float16, "halffloat": np.float16}
    types |= {"float32": np.float32, "float": np.float32}
    amounts = as_numbers(name, column, n)
    typed = amounts.astype(types.get(type_name(column), amounts.dtype))
    return np.ma.masked_array(typed, nulls(column, n)) if name == "event_reward" else typed  # null counts 0, NaN not


def _on_tokens(values: np.ndarray, reward: Any, mask: Any, n: int) -> Any:
    result = give_back(values, reward)
    if mask is None:
        return result
    return spread(result, as_mask(mask, n))
