"""A learned critic for logged traces: fit, save and load it.

    critic = credit.fit_critic(traces, directory="critic")
    values = critic.values(traces)                       # V of every prefix, by member of the ensemble
    result = critic.credit(traces)                       # increments, expected, outcome
    critic = credit.load_critic("critic")

Needs the extra `critic`. Two models are fitted: an additive one, which learns from a few hundred traces
(`estimators.critic.additive`), and an ensemble of networks, which learns interactions from thousands
(`estimators.critic.train`). The one with the lower loss on held-out tasks is kept. `credit.critics.critic_folder`
has the layout of the folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from credit.critics.fitted_critic import Critic, critic_data, padded_dense, predict_by, require_extra
from credit.tables.batch_rows import Rows, as_traces
from graphs.argument_kinds import checked_kinds
from graphs.atomic import locked, made_folder
from graphs.event_graph import Array
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    import jax

    from estimators.critic.additive.additive_critic import AdditiveCritic
    from estimators.critic.data import CriticData, Split
    from estimators.critic.train import Epoch, Fitted, Settings
    from estimators.critic.validation import Fold

__all__ = ["fit_critic", "load_critic"]

MOST_ROLES = 32  # roles that get a column of their own; the rest share none


@checked_kinds()
def fit_critic(
    traces: Traces | Rows,
    *,
    dense: Array | None = None,
    settings: Settings | None = None,
    replays: bool = False,
    validation: float = 0.2,
    test: float = 0.2,
    directory: str | Path | None = None,
    after_epoch: Callable[[Epoch], None] | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Critic:
    """Fit a critic on logged traces: select it on validation tasks and evaluate it on test tasks.

    Args:
      traces: what was read, or the `Rows` of `credit.from_columns`.
      dense: float [E, d] or [real events, d], your own features of each event, such as an embedding of its text.
      settings: `estimators.critic.train.Settings`.
      replays: learn from the runs of a "value" plan too, evidence `value` and `replays` of `credit replay`. The n runs
        from a prefix count as n further outcomes of it. Held-out tasks are judged by logged outcomes alone.
      validation, test: parts of the tasks that select and stop the model, and that evaluate it.
      directory: the folder to save it in. A fit that fails or is interrupted leaves its checkpoint there, from which
        the next one goes on.
      after_epoch: called with each epoch of the network.
      devices: of this process, over which the network's batches are cut; by default one.

    Returns:
      `Critic`.

    Raises:
      MissingExtraError: flax or optax is not installed.
      CreditError: too few tasks with outcomes, rewards that the head cannot take, or `replays` of a log without runs;
        `directory` holds the checkpoint of another fit, or another process fits into it.
      OSError: `directory` cannot be written to.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> credit.fit_critic(rows)
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: outcomes in 1 task; expected 3 or more, to train, to stop and to judge on
    """
    require_extra()
    from estimators.critic.additive.additive_critic import AdditiveCritic
    from estimators.critic.calibration import judge
    from estimators.critic.data import split_by_task
    from estimators.critic.train import Settings
    from estimators.critic.validation import cross_fit, validate_signs

    traces, settings = as_traces(traces), Settings() if settings is None else settings
    roles = tuple(dict.fromkeys(traces.agents["role"].to_pylist()))[:MOST_ROLES]
    padded = None if dense is None else padded_dense(traces, dense)
    columns = 0 if padded is None else padded.shape[1]
    corpus = critic_data(traces, roles, padded, replays=replays)
    split = split_by_task(corpus.group, corpus.reward, seed=settings.seed, validation=validation, test=test)
    folder = None if directory is None else Path(directory)
    with contextlib.ExitStack() as writing:
        if folder is not None:
            writing.enter_context(made_folder(folder))
            writing.enter_context(locked(folder / "critic.json"))
        checkpoint = None if folder is None else folder / "checkpoint.npz"
        fitted, losses = _fit_models(corpus, split, settings, len(roles), checkpoint, after_epoch, devices)
        names = _task_names(traces)
        held_out = tuple(names[int(g)] for g in np.unique(corpus.group[split.test]))
        after, start = predict_by(fitted, corpus)
        judged = judge(after.mean(axis=0), corpus, split, settings.head)
        acts = np.asarray(traces.graph.action_mask)[: len(corpus.features)]
        folds: tuple[Fold, ...] = ()
        if isinstance(fitted, AdditiveCritic):  # a network takes too long to be fitted five times more
            folds = cross_fit(corpus, head=fitted.head, roles=len(roles), seed=settings.seed)
        tests = validate_signs(after, start, corpus, acts, split.test, roles=len(roles), folds=folds)
        critic = Critic(fitted, roles, columns, judged, held_out, losses, tests)
        if folder is not None:
            from credit.critics.critic_folder import save_critic

            save_critic(critic, folder)
    return critic


@checked_kinds()
def load_critic(directory: str | Path) -> Critic:
    """Load the critic that `fit_critic` saved in a folder.

    Args:
      directory: the folder.

    Returns:
      `Critic`.

    Raises:
      MissingExtraError: flax or optax is not installed.
      CreditError: the folder holds no critic, one of another version, or a damaged one; the message names the file.

    Examples:
      >>> import credit
      >>> credit.load_critic("no-such-folder")
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: no-such-folder holds no critic: critic.json is missing; `credit fit critic` writes one
    """
    require_extra()
    from credit.critics.critic_folder import read_critic

    return read_critic(Path(directory))


def _fit_models(
    corpus: CriticData,
    split: Split,
    settings: Settings,
    roles: int,
    checkpoint: Path | None,
    after_epoch: Callable[[Epoch], None] | None,
    devices: Sequence[jax.Device] | None,
) -> tuple[Fitted | AdditiveCritic, dict[str, float]]:
    """The models that the settings ask for, and the better one on validation tasks.

    The networks are kept only where their loss is lower by more than a standard error over tasks: the errors of the
    additive model are better calibrated. An additive model that is kept is fitted again on training and validation
    tasks together, since it needs none to stop by.
    """
    from estimators.critic.additive.additive_critic import fit_additive
    from estimators.critic.calibration import prefix_losses
    from estimators.critic.train import check_split, fit

    check_split(corpus, split, settings.head)
    head: Literal["bernoulli", "value"] = "bernoulli" if settings.head == "bernoulli" else "value"
    models: dict[str, Fitted | AdditiveCritic] = {}
    if settings.model != "network":
        models["additive"] = fit_additive(corpus, split.train, head=head, roles=roles, seed=settings.seed)
    if settings.model != "additive":
        models["network"] = fit(
            corpus, split, settings, checkpoint=checkpoint, after_epoch=after_epoch, devices=devices
        )
    by_task = {
        name: prefix_losses(predict_by(model, corpus)[0].mean(axis=0), corpus, split.validation, head)
        for name, model in models.items()
    }
    losses = {name: float(loss.mean()) for name, loss in by_task.items()}
    if settings.model == "network":
        return models["network"], losses
    if settings.model == "auto":
        gain = by_task["additive"] - by_task["network"]
        error = float(gain.std(ddof=1) / np.sqrt(len(gain))) if len(gain) > 1 else 0.0
        if float(gain.mean()) > error:
            return models["network"], losses
    both = np.sort(np.concatenate([split.train, split.validation]))
    return fit_additive(corpus, both, head=head, roles=roles, seed=settings.seed), losses


def _task_names(traces: Traces) -> list[str]:
    """Name of the task of each group id."""
    group = np.asarray(traces.graph.group_ids)[: traces.sizes.traces]
    named = dict(zip(group.tolist(), traces.traces["group"].to_pylist(), strict=True))
    return [named.get(i, "") for i in range(int(group.max(initial=0)) + 1)]
