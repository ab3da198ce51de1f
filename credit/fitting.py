"""A learned critic for traces that were read: fit one, keep it, load it, ask it.

    critic = credit.fit_critic(traces, directory="critic")
    values = critic.values(traces)                       # V of every prefix, by member of the ensemble
    result = critic.credit(traces)                       # increments, expected, outcome
    critic = credit.load_critic("critic")

Needs the extra `critic`. The folder holds `critic.json` (what was fitted, on which tasks, and how good it is on
others), the parameters, and checkpoints of the training, from which a killed fit goes on when it is called again.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphs.atomic import atomic_write
from graphs.errors import CreditError, expect
from graphs.event_graph import Array
from graphs.text import counted
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    from estimators.critic.calibration import Judged
    from estimators.critic.data import Corpus
    from estimators.critic.train import Epoch, Fitted, Settings
    from estimators.critic.value_increments import CriticCredit, PrefixValues

__all__ = ["Critic", "fit_critic", "load_critic", "require_extra"]

FORMAT = 2
MOST_ROLES = 32  # roles that get a column of their own; the rest share none


@dataclasses.dataclass(frozen=True)
class Critic:
    """An ensemble that values prefixes of traces.

    Attributes:
      fitted: parameters, sizes and scaler.
      roles: names of roles with a column of their own.
      dense: columns of the user's own features, 0 for none.
      judged: how good it is on held-out tasks.
      held_out: names of those tasks.
    """

    fitted: Fitted
    roles: tuple[str, ...]
    dense: int
    judged: Judged
    held_out: tuple[str, ...]

    def values(self, traces: Traces, *, dense: Array | None = None) -> PrefixValues:
        """V̂ before and after each event, in units of reward: float [M, E].

        Raises:
          CreditError: `dense` is missing, or has another number of columns than the critic was fitted on.
        """
        from estimators.critic.predict import predict_corpus
        from estimators.critic.value_increments import prefix_values

        columns = 0 if dense is None else np.shape(dense)[-1]
        if columns != self.dense:
            raise CreditError(
                f"dense has {counted(columns, 'column')}; expected {self.dense}, as the critic was fitted with"
            )
        after, start = predict_corpus(self.fitted, corpus_of(traces, self.roles, dense))
        padded = np.zeros((len(after), traces.graph.num_events), np.float32)
        padded[:, : after.shape[1]] = after
        return prefix_values(traces.graph, padded, start)

    def credit(self, traces: Traces, *, dense: Array | None = None) -> CriticCredit:
        """Increments of V̂ with their standard error, and what they leave of the reward."""
        from estimators.critic.value_increments import critic_credit

        return critic_credit(traces.graph, traces.reward, self.values(traces, dense=dense))

    def evidence(self, traces: Traces, *, dense: Array | None = None) -> dict[str, np.ndarray]:
        """What methods take from a critic, float32 [E] each: `value`, `value_after`, `value_stderr` and `q_value`."""
        values = self.values(traces, dense=dense)
        before, after = (np.asarray(part.mean(axis=0)) for part in values)
        change = np.asarray(values.after - values.before)
        spread = change.std(axis=0, ddof=1) if len(change) > 1 else np.full(len(before), np.inf)
        return {"value": before, "value_after": after, "value_stderr": spread.astype(np.float32), "q_value": after}


def fit_critic(
    traces: Traces,
    *,
    dense: Array | None = None,
    settings: Settings | None = None,
    validation: float = 0.2,
    test: float = 0.2,
    directory: str | Path | None = None,
    after_epoch: Callable[[Epoch], None] | None = None,
) -> Critic:
    """Fit a critic on logged traces, stop by held-out tasks, and judge it on others.

    Args:
      dense: float [E, d] or [real events, d], numbers of one's own for each event, such as an embedding of its text.
      settings: `estimators.critic.train.Settings`.
      validation, test: parts of the tasks that stop the training and that judge the critic.
      directory: where to keep it; a fit that was killed goes on from its last epoch.
      after_epoch: told of each epoch.

    Raises:
      MissingExtraError: flax, optax or orbax is not installed.
      CreditError: too few tasks with outcomes, or rewards that the head cannot take.
    """
    expect("traces", traces, Traces, "what credit.read returns")
    require_extra()
    from estimators.critic.calibration import judge
    from estimators.critic.data import split_by_task
    from estimators.critic.predict import predict_corpus
    from estimators.critic.train import Settings, fit

    settings = Settings() if settings is None else settings
    roles = tuple(dict.fromkeys(traces.agents["role"].to_pylist()))[:MOST_ROLES]
    columns = 0 if dense is None else int(np.shape(dense)[-1])
    corpus = corpus_of(traces, roles, dense)
    split = split_by_task(corpus.group, corpus.reward, seed=settings.seed, validation=validation, test=test)
    folder = None if directory is None else Path(directory)
    checkpoints = None if folder is None else folder / "checkpoints"
    fitted = fit(corpus, split, settings, directory=checkpoints, after_epoch=after_epoch)
    names = _task_names(traces)
    held_out = tuple(names[int(g)] for g in np.unique(corpus.group[split.test]))
    judged = judge(predict_corpus(fitted, corpus)[0].mean(axis=0), corpus, split, settings.head)
    critic = Critic(fitted, roles, columns, judged, held_out)
    if folder is not None:
        _save(critic, folder)
    return critic


def load_critic(directory: str | Path) -> Critic:
    """The critic that `fit_critic` kept in a folder.

    Raises:
      MissingExtraError: flax, optax or orbax is not installed.
      CreditError: the folder holds no critic, or one of another version.
    """
    expect("directory", directory, (str, os.PathLike), "the folder that fit_critic wrote")
    require_extra()
    from estimators.critic.calibration import Judged
    from estimators.critic.checkpoints import load_tree
    from estimators.critic.data import Scaler
    from estimators.critic.network import Architecture
    from estimators.critic.objective import initial
    from estimators.critic.train import Epoch, Fitted

    path = Path(directory) / "critic.json"
    if not path.is_file():
        raise CreditError(f"{directory} holds no critic: there is no {path.name}; `credit fit critic` makes one")
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept.get("format") != FORMAT:
        raise CreditError(f"{path} has format {kept.get('format')!r}; expected {FORMAT}")
    sizes = Architecture(**{**kept["sizes"], "counts": tuple(kept["sizes"]["counts"])})
    scaler = Scaler(*(np.array([float(x) for x in kept["scaler"][name]], np.float32) for name in Scaler._fields))
    parameters = load_tree(Path(directory) / "parameters", initial(sizes, kept["members"], 0, 0.0))
    history = tuple(Epoch(*row) for row in kept["history"])
    judged = Judged(**{**kept["judged"], "curve": tuple(map(tuple, kept["judged"]["curve"]))})
    fitted = Fitted(parameters, sizes, scaler, kept["centre"], kept["scale"], history)
    return Critic(fitted, tuple(kept["roles"]), kept["dense"], judged, tuple(kept["held_out"]))


def corpus_of(traces: Traces, roles: tuple[str, ...], dense: Array | None) -> Corpus:
    """The corpus of some traces, with features of everything that the log states."""
    from estimators.critic.data import Corpus
    from estimators.critic.features import event_features

    graph = traces.graph
    column = {role: i for i, role in enumerate(roles)}
    of_agent = np.full(graph.num_agents, -1)
    of_agent[: traces.agents.num_rows] = [column.get(role, -1) for role in traces.agents["role"].to_pylist()]
    given = {name: traces.evidence[name].array for name in ("tokens", "event_reward") if name in traces.evidence}
    if dense is not None:
        dense = np.asarray(dense)
        if len(dense) == traces.sizes.events:
            dense = np.concatenate([dense, np.zeros((graph.num_events - len(dense), *dense.shape[1:]), dense.dtype)])
    features = event_features(graph, role_columns=of_agent, num_roles=len(roles), dense=dense, **given)
    return Corpus.of(graph, features, traces.reward)


def _task_names(traces: Traces) -> list[str]:
    """Name of the task of each group id."""
    group = np.asarray(traces.graph.group_ids)[: traces.sizes.traces]
    named = dict(zip(group.tolist(), traces.traces["group"].to_pylist(), strict=True))
    return [named.get(i, "") for i in range(int(group.max(initial=0)) + 1)]


def _save(critic: Critic, folder: Path) -> None:
    """Parameters first, `critic.json` last: a folder with the latter is complete."""
    from estimators.critic.checkpoints import save_tree

    fitted = critic.fitted
    (folder / "critic.json").unlink(missing_ok=True)
    save_tree(folder / "parameters", fitted.parameters)
    kept = {
        "format": FORMAT,
        "sizes": dataclasses.asdict(fitted.sizes),
        "members": len(fitted.parameters["start"].get_value()),
        # Numbers as text, since JSON has no infinity.
        "scaler": {name: [str(x) for x in part.tolist()] for name, part in fitted.scaler._asdict().items()},
        "centre": fitted.centre,
        "scale": fitted.scale,
        "history": fitted.history,
        "roles": critic.roles,
        "dense": critic.dense,
        "held_out": critic.held_out,
        "judged": dataclasses.asdict(critic.judged),
    }
    with atomic_write(folder / "critic.json") as file:
        file.write(json.dumps(kept, indent=1).encode())


def require_extra() -> None:
    """Raise `MissingExtraError` where a library of the extra is missing, before anything is read or computed."""
    importlib.import_module("estimators.critic.extra")
