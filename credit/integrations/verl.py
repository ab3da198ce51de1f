"""verl: advantages of this library by name, and sessions of several agents.

Installing the package is enough: `credit.integrations.verl_plugin`, which verl imports in every process, imports this
module. That adds an advantage estimator `credit_NAME` for each method, and trainers of verl's v1: `credit_sync`,
`credit_colocate_async` and `credit_separate_async`. In the configuration:

    trainer.v1.trainer_mode: credit_sync
    algorithm.adv_estimator: credit_dr_mas

The trainers differ from verl's in `_compute_advantage` alone. There a trace is a session of a prompt, told by the keys
`{uid}_{session}_{index}`, and what an agent loop wrote into `extra_fields` of its outputs under the names of
`TrainerCredit.columns_of` becomes a column. Written against verl 0.9.1.

Which rows fill a batch: v1 marks its own, with a uid that no other row has, as padding, and they count nowhere; a key
of two other rows is refused. The legacy trainer fills none, and gives each prompt of a step a new UUID. A fork that
appends copies of rows states nothing of them: with `traj_uid` they stay in their trace, whose rewards of rows then
count twice, and without it each is a trace. A fork's `uid` that is an index of the data set joins what one batch holds
of that index, also of two steps; it joins nothing of another batch.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

import credit.methods
from credit.hooks import after_import
from credit.integrations.harmless import harmless
from credit.integrations.trainer_credit import TrainerCredit
from credit.integrations.verl_sessions import PREFIX, method_options, row_penalty
from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = ["CREDIT_METRICS", "LEGACY", "compute_advantage", "method_names", "register", "row_estimator"]

LEGACY = {
    "trace": ("traj_uid", "rollout_id_list", "trace"),
    "agent": ("agent_id", "agent"),
    "turn": ("turn_index_list", "turn"),
}
"""Names in `non_tensor_batch` under which forks of the legacy trainer keep the ids of executions and agents."""

CREDIT_METRICS = "credit_metrics"
"""Key of `meta_info` under which `compute_advantage` leaves its metrics."""


def method_names() -> list[str]:
    """The names in `credit.METHODS`, read from its source: verl registers estimators before anything imports JAX."""
    source = Path(credit.methods.__path__[0]) / "registry.py"
    tables = [node.value for node in ast.parse(source.read_text("utf-8")).body if isinstance(node, ast.AnnAssign)]
    return [ast.literal_eval(key) for table in tables if isinstance(table, ast.Dict) for key in table.keys if key]


def register() -> None:
    """Add estimators and trainers when verl imports the modules that list them; importing this module does so."""
    after_import("verl.trainer.ppo.core_algos", _register_estimators)
    after_import("verl.trainer.ppo.v1", _register_trainers)


@harmless
def _register_estimators() -> None:
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY, register_adv_est

    for name in method_names():
        if PREFIX + name not in ADV_ESTIMATOR_REGISTRY:
            register_adv_est(PREFIX + name)(functools.partial(row_estimator, name))


@harmless
def _register_trainers() -> None:
    import credit.integrations.verl_v1  # noqa: F401  # its classes register themselves


def row_estimator(
    name: str, token_level_rewards: Any, response_mask: Any, index: Any = None, config: Any = None, **kwargs: Any
) -> tuple[Any, Any]:
    """An estimator as verl's legacy `compute_advantage` calls it: each row is a trace, its group is `index`.

    Args:
      name: of the method.
      token_level_rewards, response_mask: of verl, [rows, tokens].
      index: the group of each row.
      config: verl's `algorithm`.
      kwargs: what else verl passes; not read.

    Raises:
      CreditError: verl's v1 calls it. There rows of one session belong together, and verl passes no sessions; one line
        of the configuration selects a trainer that does.
    """
    trainer = _trainer_of(config)
    if trainer is not None and trainer.get("use_v1", False):
        raise CreditError(
            f"{PREFIX}{name} got no sessions from verl's trainer {trainer.v1.trainer_mode!r}; set "
            f"trainer.v1.trainer_mode: {PREFIX}{trainer.v1.trainer_mode}"
        )
    if index is None:
        raise _no_uid(name)
    score = token_level_rewards.sum(dim=-1)
    result = _credit_of(name, method_options(name, config))(group=index, reward=score, mask=response_mask)
    return result.advantages, result.advantages


def _trainer_of(algorithm: Any) -> Any:
    """The section `trainer` beside `algorithm` of verl's configuration; None where there is none."""
    from omegaconf import OmegaConf
    from omegaconf.errors import ConfigKeyError

    with contextlib.suppress(ConfigKeyError):  # of a configuration that stands alone
        return OmegaConf.select(algorithm, "..trainer") if OmegaConf.is_config(algorithm) else None
    return None


def _no_uid(name: str) -> CreditError:
    return CreditError(f"{PREFIX}{name} needs the uid of each row; the batch has no 'uid' in non_tensor_batch")


def compute_advantage(
    data: Any,
    adv_estimator: Any,
    gamma: float = 1.0,
    lam: float = 1.0,
    num_repeat: int = 1,
    norm_adv_by_std_in_grpo: bool = True,
    config: Any = None,
) -> Any:
    """Replace verl's legacy `compute_advantage`; executions and agents are distinguished.

    Ids are read from `data.non_tensor_batch` under the names in `LEGACY`; without an id of executions, a row is one.
    The outcome of an execution is in `token_level_scores`; what `token_level_rewards` hold besides, a KL penalty, is
    each row's own. Rows stand in the order of their turns, since verl reorders the batch before. Metrics are left in
    `data.meta_info[CREDIT_METRICS]`. Estimators other than `credit_*` are verl's.

    Args:
      data: verl's batch.
      adv_estimator: its name, or verl's own.
      gamma, lam, num_repeat, norm_adv_by_std_in_grpo: for verl's own estimators.
      config: verl's `algorithm`.

    Raises:
      CreditError: the batch has no uid; turns are no numbers although executions have several rows.
    """
    from verl.trainer.ppo import ray_trainer as of_verl

    name = str(getattr(adv_estimator, "value", adv_estimator))
    if not name.startswith(PREFIX):
        return of_verl.compute_advantage(data, adv_estimator, gamma, lam, num_repeat, norm_adv_by_std_in_grpo, config)
    name, ids, batch = name.removeprefix(PREFIX), data.non_tensor_batch, data.batch
    if "uid" not in ids:
        raise _no_uid(name)
    if "response_mask" not in set(batch.keys()):  # verl's own fills it in, too
        batch["response_mask"] = of_verl.compute_response_mask(data)
    key_of = {column: next((key for key in names if key in ids), None) for column, names in LEGACY.items()}
    columns = {column: ids[key] for column, key in key_of.items() if key is not None}
    reward = batch["token_level_rewards"].sum(dim=-1)
    if "trace" in columns:
        if "turn" in columns and (order := _places(key_of["turn"], columns["turn"], columns["trace"])) is not None:
            columns["order"] = order
            if order.dtype.kind in "iu":
                columns["turn"] = order  # the same numbers, no longer objects
        if "token_level_scores" in set(batch.keys()):
            score = batch["token_level_scores"].sum(dim=-1)
            if (penalty := row_penalty(batch, ~score.isnan())) is not None:
                reward, columns["event_reward"] = score, penalty
    result = _credit_of(name, method_options(name, config, norm_adv_by_std_in_grpo))(
        group=ids["uid"], reward=reward, mask=batch["response_mask"], **columns
    )
    batch["advantages"] = batch["returns"] = result.advantages
    data.meta_info[CREDIT_METRICS] = result.metrics
    return data


def _places(key: str | None, turn: Any, trace: Any) -> np.ndarray | None:
    """The turns of rows as their order within an execution; None where each execution has one row.

    Raises:
      CreditError: a turn is no number; the order of a batch that verl rearranged is then unknown.
    """
    turns = np.asarray(turn).tolist()
    places = np.asarray(turns)
    if places.dtype.kind in "biuf" and not np.isnan(places).any():
        return places
    if len(set(np.asarray(trace).tolist())) == len(turns):
        return None
    row = next((row for row, value in enumerate(turns) if not isinstance(value, Real) or value != value), 0)
    raise CreditError(
        f"{key!r} of non_tensor_batch is {excerpt(turns[row])} in row {row}; expected a number in each row: verl "
        "reorders the batch, and the turns tell the order of an execution's rows"
    )


@functools.lru_cache(maxsize=16)
def _credit_of(name: str, options: tuple[tuple[str, Any], ...]) -> TrainerCredit:
    from credit.integrations.rows.row_advantages import RowAdvantages

    names = ", ".join(key for keys in LEGACY.values() for key in keys)
    columns = f"compute_advantage of this module reads {names} of non_tensor_batch"
    return TrainerCredit(RowAdvantages(name, **dict(options)), trainer="verl's legacy trainer", columns=columns)


register()
