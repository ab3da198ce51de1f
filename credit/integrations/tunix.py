"""Tunix: methods as advantage estimators, and a learner that distinguishes the turns and the agents of a team.

    GRPOConfig(advantage_estimator=estimator("rloo"))                    # rows: the generations of a prompt
    CreditAgenticLearner(..., credit="turn_baseline")                    # teams: in place of the agentic GRPOLearner

Written against Tunix 0.1.7.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from tunix.rl import function_registry, rl_cluster
from tunix.rl.agentic.agentic_grpo_learner import GRPOLearner

from credit.hooks import with_globals
from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.rows.token_turns import named_turns, rows_of_turns
from credit.integrations.trainer_credit import TrainerCredit, estimator_name
from graphs.errors import CreditError

__all__ = ["CreditAgenticLearner", "estimator", "metrics_of", "token_turns"]

TRAINER, HOOKS = "Tunix 0.1.7", {GRPOLearner: ("_process_results",)}
PART = "the prompts of one micro-batch"
NAMES = "messages of the assistant carry the agent's name; stretches of its tokens are turns"


def estimator(method: str, **options: Any) -> str:
    """Register a method as an advantage estimator of Tunix and return its name, "credit_METHOD" and its options.

    Tunix calls it with the rewards of some prompts' generations, those of a prompt side by side. Each is a trace of its
    own. The agentic learner calls it for the prompts of one micro-batch.

    Args:
      method: a name in `credit.METHODS` that needs no evidence.
      options: keyword arguments of the method.

    Raises:
      CreditError: no such method or option, or the method needs evidence, which Tunix does not pass.
    """
    advantages = TrainerCredit(RowAdvantages(method, **options), trainer=TRAINER, on_cpu=False, part=PART)
    name = estimator_name(method, options)
    _ESTIMATORS[name] = advantages

    @function_registry.register_advantage_estimator(name)  # type: ignore[untyped-decorator,unused-ignore]
    def credit_estimator(rewards: Any, num_generations: int, **_: Any) -> np.ndarray:
        row = np.arange(len(rewards))
        if len(row) % num_generations:
            raise CreditError(f"{len(row)} rewards come with num_generations={num_generations}; expected whole groups")
        return np.asarray(advantages(group=row // num_generations, reward=np.asarray(rewards)).advantages)

    return name


_ESTIMATORS: dict[str, TrainerCredit] = {}  # as Tunix keeps its own: by name, for the life of the process


def metrics_of(name: str) -> Callable[..., dict[str, tuple[float, Callable[..., Any]]]]:
    """One of the learner's `metric_fns`: the metrics of the last call of a registered estimator."""
    if name not in _ESTIMATORS:
        raise CreditError(f"no estimator {name!r} is registered; expected a name that `estimator` returned")
    return lambda **_: {key: (value, np.mean) for key, value in _ESTIMATORS[name].metrics.items()}


class CreditAgenticLearner(GRPOLearner):
    """Tunix's agentic GRPO learner with one advantage for each turn, or each agent, of a trajectory.

    A turn is a stretch of tokens that the policy wrote, between those of the environment. Where messages of the
    assistant carry a "name", as those of a team do, it is the agent of its turn. Advantages become [rows, tokens].
    What Tunix logs and hands to `metric_fns` is the mean advantage of each trajectory's tokens. Trajectories are
    compared within their own group, however many prompts Tunix processes at once; `degenerate_group_masking` leaves
    out each group whose advantages are all 0.

    Args:
      credit: a method by name, or a function.
      options: keyword arguments of the method.
      args, kwargs: Tunix's.
    """

    def __init__(
        self,
        *args: Any,
        credit: str | Callable[..., Any] = "turn_baseline",
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        rows = RowAdvantages(credit, **(options or {}))
        self._credit = TrainerCredit(rows, trainer=TRAINER, hooks=HOOKS, columns=NAMES, on_cpu=False, part=PART)
        trainer = self.rl_cluster.actor_trainer
        trainer.with_gen_model_input_fn(functools.partial(self._model_input, trainer.gen_model_input_fn))
        self.algo_config: Any = copy.copy(self.algo_config)
        self._leaves_out = self.algo_config.degenerate_group_masking
        self.algo_config.degenerate_group_masking = False  # Tunix's looks at all groups of a call as one

    def _model_input(self, of_tunix: Callable[[Any], Any], example: Any) -> Any:
        self._credit.check_ran()
        return of_tunix(example)

    def _process_results(
        self, trajectories: list[Any], mode: Any = rl_cluster.Mode.TRAIN, expected_step: int | None = None
    ) -> Any:
        turns = [token_turns(item.traj) for item in trajectories]
        sample, names, number, of_token = rows_of_turns(turns, self.algo_config.max_response_length)
        group = [str(item.group_id) for item in trajectories]
        of_tokens: list[np.ndarray] = []

        def estimate(rewards: Any, **_: Any) -> np.ndarray:
            """In the place of Tunix's estimator: [trajectories], which Tunix logs; the tokens' are kept."""
            result = self._credit(
                group=[group[i] for i in sample],
                trace=sample,
                agent=names,
                turn=number,
                reward=np.asarray(rewards, np.float64)[sample],
                learns=mode == rl_cluster.Mode.TRAIN,
            )
            metrics = {key: (value, np.mean) for key, value in result.metrics.items()}
            step = 0 if expected_step is None else expected_step
            self.rl_cluster.buffer_metrics_async(metrics, mode=mode, step=step)
            values: np.ndarray = np.append(np.asarray(result.advantages, np.float32), np.float32(0))[of_token]
            of_tokens.append(values)
            mean: np.ndarray = values.sum(axis=1) / np.maximum((of_token >= 0).sum(axis=1), 1)
            return mean

        registry = types.SimpleNamespace(get_advantage_estimator=lambda name: estimate)
        process = with_globals(super()._process_results.__func__, function_registry=registry)
        (example,) = process(self, trajectories, mode=mode, expected_step=expected_step)
        (values,) = of_tokens
        if self._leaves_out:
            teaches = {name for name, row in zip(group, values, strict=True) if row.any()}
            silent = np.array([name not in teaches for name in group])
            mask = np.where(silent[:, None], 0, np.asarray(example.completion_mask))
            example = dataclasses.replace(example, completion_mask=jnp.asarray(mask))
        return [dataclasses.replace(example, advantages=jnp.asarray(values))]


def token_turns(trajectory: Mapping[str, Any]) -> tuple[np.ndarray, list[str]]:
    """The turn of each token of a trajectory, and the agent of each turn, as of `named_turns`."""
    return named_turns(np.asarray(trajectory["conversation_masks"]) > 0, trajectory.get("conversation_text") or [])
