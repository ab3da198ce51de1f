"""A fitted critic of traces that were read: values of their prefixes, credit, and evidence for methods."""

from __future__ import annotations

import dataclasses
import importlib
from typing import TYPE_CHECKING

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import Array
from graphs.text import counted
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    from estimators.critic.additive.additive_critic import AdditiveCritic
    from estimators.critic.calibration import Judged
    from estimators.critic.data import CriticData
    from estimators.critic.train import Fitted
    from estimators.critic.validation import SignTest
    from estimators.critic.value_increments import CriticCredit, PrefixValues

__all__ = ["Critic", "critic_data", "padded_dense", "predict_by", "require_extra"]


@dataclasses.dataclass(frozen=True)
class Critic:
    """An ensemble that values prefixes of traces.

    Attributes:
      fitted: the model that was kept: networks (`Fitted`) or additive (`AdditiveCritic`).
      roles: names of roles with a column of their own.
      dense: columns of the user's own features, 0 for none.
      judged: how good it is on held-out tasks.
      held_out: names of those tasks.
      validation: mean loss of each model on the validation tasks, by "network" and "additive".
      tests: for each region (a type of event under some circumstances) and each place in it, whether the signs of
        increments held on held-out tasks.
    """

    fitted: Fitted | AdditiveCritic
    roles: tuple[str, ...]
    dense: int
    judged: Judged
    held_out: tuple[str, ...]
    validation: dict[str, float]
    tests: tuple[SignTest, ...]

    def __repr__(self) -> str:
        """What was fitted, in a line; the arrays of an ensemble would fill hundreds."""
        losses = ", ".join(f"{name} {loss:.4g}" for name, loss in self.validation.items())
        return (
            f"<Critic: {self.model} model, {counted(len(self.roles), 'role')}, "
            f"judged on {counted(len(self.held_out), 'held-out task')}, validation loss: {losses or 'none'}>"
        )

    @property
    def model(self) -> str:
        """The kind of model that was kept: "network" or "additive"."""
        from estimators.critic.additive.additive_critic import AdditiveCritic

        return "additive" if isinstance(self.fitted, AdditiveCritic) else "network"

    def values(self, traces: Traces, *, dense: Array | None = None) -> PrefixValues:
        """V̂ before and after each event, in units of reward: float [M, E].

        Raises:
          CreditError: `dense` is missing, or has another number of columns than the critic was fitted on.
        """
        return self._values(traces, self._corpus(traces, dense))

    def _corpus(self, traces: Traces, dense: Array | None) -> CriticData:
        padded = None if dense is None else padded_dense(traces, dense)
        columns = 0 if padded is None else padded.shape[1]
        if columns != self.dense:
            raise CreditError(
                f"dense has {counted(columns, 'column')}; expected {self.dense}, as the critic was fitted with"
            )
        return critic_data(traces, self.roles, padded)

    def _values(self, traces: Traces, corpus: CriticData) -> PrefixValues:
        from estimators.critic.value_increments import prefix_values

        after, start = predict_by(self.fitted, corpus)
        padded = np.zeros((len(after), traces.graph.num_events), np.float32)
        padded[:, : after.shape[1]] = after
        result: PrefixValues = prefix_values(traces.graph, padded, start)
        return result

    def credit(self, traces: Traces, *, dense: Array | None = None) -> CriticCredit:
        """Increments of V̂, and the rest of the reward.

        The increments have no standard error (`stderr` is infinite; `intervals_withheld` says why); `spread` is how far
        the members of the ensemble disagree. The sign of an increment is reported (`undecided` is False) only in a
        region and at a place whose signs held on held-out tasks (`tests`).

        Args:
          traces: what `credit.read` returns.
          dense: float [E, d], as in the fit.

        Returns:
          `CriticCredit`, whose parts add up to the reward of each trace.

        Raises:
          CreditError: `dense` is missing, or has another number of columns than the critic was fitted on.
        """
        from estimators.critic.validation import validated_events
        from estimators.critic.value_increments import critic_credit

        graph, corpus = traces.graph, self._corpus(traces, dense)
        values, real = self._values(traces, corpus), len(corpus.features)
        mask = np.zeros(graph.num_events, bool)
        mask[:real] = validated_events(
            self.tests, np.asarray(values.before)[:, :real], np.asarray(values.after)[:, :real], corpus,
            np.asarray(graph.action_mask)[:real], roles=len(self.roles),
        )  # fmt: skip
        result: CriticCredit = critic_credit(graph, traces.reward, values, mask)
        return result

    @property
    def intervals_withheld(self) -> str:
        """Why the increments have no standard error."""
        from estimators.critic.value_increments import INTERVALS_WITHHELD

        return INTERVALS_WITHHELD

    def evidence(self, traces: Traces, *, dense: Array | None = None) -> dict[str, np.ndarray]:
        """The critic's evidence for methods, float32 [E] each: `value`, `value_after` and `q_value`.

        There is no `value_stderr`: `intervals_withheld` says why.

        Args:
          traces: what `credit.read` returns.
          dense: float [E, d], as in the fit.

        Raises:
          CreditError: `dense` is missing, or has another number of columns than the critic was fitted on.
        """
        before, after = (np.asarray(part.mean(axis=0)) for part in self.values(traces, dense=dense))
        return {"value": before, "value_after": after, "q_value": after}


def predict_by(fitted: Fitted | AdditiveCritic, corpus: CriticData) -> tuple[np.ndarray, np.ndarray]:
    """V̂ after each event [M, E] and of the empty prefix [M], by whichever model it is."""
    from estimators.critic.additive.additive_critic import AdditiveCritic, predict_additive
    from estimators.critic.predict import predict_corpus

    return predict_additive(fitted, corpus) if isinstance(fitted, AdditiveCritic) else predict_corpus(fitted, corpus)


def padded_dense(traces: Traces, dense: Array) -> np.ndarray:
    """The user's numbers of each event, with rows of 0 for padded events: float32 [E, d].

    Args:
      traces: what `credit.read` returns.
      dense: numbers [E, d] or [real events, d].

    Raises:
      CreditError: `dense` does not have a row of numbers for each event.
    """
    events, room, values = traces.sizes.events, traces.graph.num_events, np.asarray(dense)
    if values.ndim != 2 or len(values) not in (events, room) or values.dtype.kind not in "fiu":
        shown = f"shape {values.shape} and type {values.dtype}"
        raise CreditError(f"dense has {shown}; expected numbers, ({events}, d), one row for each event")
    padded = np.zeros((room, values.shape[1]), np.float32)
    with np.errstate(over="ignore"):  # beyond single precision is infinite, which `event_features` refuses
        padded[: len(values)] = values
    return padded


def critic_data(
    traces: Traces, roles: tuple[str, ...], dense: np.ndarray | None, *, replays: bool = False
) -> CriticData:
    """What a critic reads of some traces: features of all that the log states, and the runs of a "value" plan.

    Args:
      traces: what `credit.read` returns.
      roles: the roles that have a column each.
      dense: what `padded_dense` returns.
      replays: whether the runs of a "value" plan are read.
    """
    from estimators.critic.data import CriticData
    from estimators.critic.features import event_features

    graph = traces.graph
    column = {role: i for i, role in enumerate(roles)}
    of_agent = np.full(graph.num_agents, -1)
    of_agent[: traces.agents.num_rows] = [column.get(role, -1) for role in traces.agents["role"].to_pylist()]
    logged = {name: traces.evidence[name].array for name in ("tokens", "event_reward") if name in traces.evidence}
    features = event_features(graph, role_columns=of_agent, num_roles=len(roles), dense=dense, **logged)
    runs = _value_runs(traces) if replays else {}
    return CriticData.of(graph, features, traces.reward, **runs)


def _value_runs(traces: Traces) -> dict[str, np.ndarray]:
    """The number of runs from the prefix before each event, and their mean outcome.

    Raises:
      CreditError: the log has no such evidence, or its counts belong to other runs.
    """
    evidence = {name: traces.evidence[name].array for name in ("value", "replays") if name in traces.evidence}
    if len(evidence) < 2:
        missing = " and ".join(repr(name) for name in ("value", "replays") if name not in evidence)
        raise CreditError(
            f"the log has no evidence {missing}; expected the result of `credit plan --for value` and `credit replay`"
        )
    if "counterfactual_reward" in traces.evidence:
        raise CreditError(
            "the log has evidence 'value' and 'counterfactual_reward', and 'replays' counts the runs of one of them; "
            "expected a log with the runs of a 'value' plan only"
        )
    value, count = np.asarray(evidence["value"]), np.asarray(evidence["replays"])
    return {"runs": np.maximum(count, 0).astype(np.float32), "run_mean": value}


def require_extra() -> None:
    """Raise `MissingExtraError` where a library of the extra is missing, before anything is read or computed."""
    importlib.import_module("estimators.critic.extra")
