"""What an integration of a trainer is written on: rows in, advantages out, and a guard of the trainer's hooks."""

from __future__ import annotations

import difflib
import functools
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.hooks import require_hooks
from credit.integrations.jax_on_cpu import keep_jax_on_cpu
from graphs.errors import CreditError, MissingColumnWarning
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

if TYPE_CHECKING:
    from credit.integrations.rows.row_advantages import Advantages

__all__ = ["COLUMNS", "EVIDENCE", "TrainerCredit", "estimator_name"]

COLUMNS = ("agent", "role", "parent", "turn", "event_reward")
"""Columns of rows that a team writes beside each of them."""

EVIDENCE = tuple(sorted({*EVENT_EVIDENCE, *TRACE_EVIDENCE} - {*COLUMNS, "policy_version"}))
"""Further columns, which are read where the method takes them. Trainers pass the versions themselves."""

PARTLY = (
    "parent",
    "event_reward",
    *(name for name in EVIDENCE if name in EVENT_EVIDENCE and EVENT_EVIDENCE[name].kind == "id"),
)
"""What some rows may lack: ids of who spawned nobody, and of choices that a row did not make; a reward of their own."""


class TrainerCredit:
    """A method inside a trainer: called with the trainer's rows, it answers with advantages and keeps the metrics.

    An integration translates names. It passes the trainer's columns under the names of `RowAdvantages`, puts the answer
    where the trainer reads advantages, and asks `check_ran` before the loss:

        class CreditTrainer(Trainer):
            def __init__(self, *args, credit="rloo", **kwargs):
                super().__init__(*args, **kwargs)
                hooks = {Trainer: ("score", "loss")}
                self._credit = TrainerCredit(RowAdvantages(credit), trainer="Trainer 2.1", hooks=hooks)

            def score(self, batch):
                batch = super().score(batch)
                result = self._credit(group=batch["uid"], reward=batch["reward"], mask=batch["mask"])
                batch["advantages"] = result.advantages
                return batch

            def loss(self, batch):
                self._credit.check_ran()
                return super().loss(batch)

    Args:
      rows: a `RowAdvantages`, or what is called like one.
      trainer: the trainer and the version that the integration was written against, for errors.
      hooks: for each class of the trainer, the names of what the integration overrides.
      columns: how a user of this trainer passes a column, for errors. Default: not at all.
      evidence: whether evidence of methods can be passed, too.
      part: what one call of the trainer holds, where that may be less than the batch that is trained on.
      on_cpu: whether JAX is kept on the CPU, since the trainer needs the GPU (`keep_jax_on_cpu`).

    Attributes:
      metrics: those of the last batch.
      trainer, hooks: as passed.

    Raises:
      CreditError: a class of the trainer has no such name; the method needs evidence that the trainer cannot pass; JAX
        already runs on a GPU.

    Warns:
      UserWarning: the method carries a state from batch to batch, which the trainer's checkpoints do not hold; or it
        compares over the batch, of which a call holds a part.

    Examples:
      >>> import numpy as np
      >>> from credit.integrations import RowAdvantages, TrainerCredit
      >>> credit_of = TrainerCredit(RowAdvantages("rloo"), trainer="a trainer")
      >>> credit_of(group=["q", "q"], reward=np.array([1.0, 0.0])).advantages.tolist()
      [1.0, -1.0]
      >>> credit_of.metrics["credit/groups_that_teach"]
      1.0
    """

    def __init__(
        self,
        rows: Any,
        *,
        trainer: str,
        hooks: Mapping[Any, Iterable[str]] | None = None,
        columns: str | None = None,
        evidence: bool = False,
        part: str | None = None,
        on_cpu: bool = True,
    ) -> None:
        require_hooks(trainer, hooks or {})
        if on_cpu:
            keep_jax_on_cpu()
        if rows.needs and not evidence:
            raise CreditError(f"method {rows.name!r} needs {', '.join(rows.needs)}, which {trainer} does not pass")
        if rows.carries_state:
            warnings.warn(
                f"method {rows.name!r} carries averages from batch to batch, which checkpoints of {trainer} do not "
                "hold: a run that goes on from one begins them anew",
                stacklevel=3,
            )
        if part is not None and rows.scope == "batch":
            warnings.warn(
                f"method {rows.name!r} compares over the batch, and {trainer} asks for {part} at a time, which then "
                "count as one",
                stacklevel=3,
            )
        rows.how_to_pass = columns or f"this integration of {trainer} passes no columns; choose another method"
        self.rows, self.accepts, self.metrics = rows, rows.accepts, dict[str, float]()
        self.trainer, self.hooks, self._ran = trainer, dict(hooks or {}), False

    def columns_of(
        self,
        labels: Sequence[Mapping[str, Any] | None],
        rows: int | None = None,
        *,
        partly: Collection[str] = PARTLY,
        real: np.ndarray | None = None,
    ) -> dict[str, Any]:
        """Columns of rows from what a team wrote beside each: `COLUMNS`, and `EVIDENCE` that the method takes.

        Args:
          labels: one mapping a row, or None.
          rows: how many rows there are. Default: N of `real`, or as many as labels.
          partly: names that some rows may lack; these have None.
          real: bool [N], False for rows that fill the batch; they get what the first other row has.

        Raises:
          CreditError: some rows lack a label that others have; another number of labels than rows.

        Warns:
          MissingColumnWarning: rows lack a label, and some have one that is spelt almost like it.
        """
        if rows is None:
            rows = len(labels) if real is None else len(real)
        known: set[Any] = set().union(*(label for label in labels if label))
        names = (*COLUMNS, *filter(self.accepts, EVIDENCE))
        counted = range(rows) if real is None else np.flatnonzero(real).tolist()
        columns: dict[str, Any] = {}
        evidence: dict[str, Any] = {}
        how = self.rows.how_to_pass
        for name in names:
            column = [None if row is None else row.get(name) for row in labels] if name in known else []
            stated = any(label is not None for label in column)
            if stated and len(column) != rows:
                raise CreditError(f"{len(labels)} entries have {name!r}, for {rows} rows: {how}")
            lacking = [place for place in counted if column[place] is None] if stated else counted
            if lacking and (near := _spelt_almost(name, frozenset(known.difference(names)))):
                text = f"rows are labelled {near!r}, which is not read; did you mean {name!r}? {how}"
                warnings.warn(text, MissingColumnWarning, stacklevel=3)
            if len(lacking) == len(counted):
                continue
            if lacking and name not in partly:
                raise CreditError(f"{name!r} is in some rows only, and not in row {lacking[0]}: {how}")
            if len(counted) < len(column):
                kept = set(counted)
                column = [label if place in kept else column[counted[0]] for place, label in enumerate(column)]
            (columns if name in COLUMNS else evidence)[name] = column
        return {**columns, "evidence": evidence}

    def __call__(self, *, agent_reward: Any = None, learns: bool = True, **columns: Any) -> Advantages:
        """Advantages of one batch; columns and answer as of `RowAdvantages.__call__`.

        Args:
          learns: False for an evaluation, whose rewards must not move what the method carries from batch to batch.
          agent_reward: what each row's agent earned by itself; a method that pays agents gets it in the place of
            `reward`, unless `evidence` states it.
          columns: those of `RowAdvantages.__call__`.

        Raises:
          CreditError: as there; evidence that the method needs is absent.
        """
        stated = columns.get("evidence") or {}
        if agent_reward is not None and self.rows.pays_agents and "agent_reward" not in stated:
            columns |= {"evidence": {**stated, "agent_reward": agent_reward}, "reward": np.zeros(len(agent_reward))}
        passed = {*(columns.get("evidence") or {}), *(name for name in columns if columns[name] is not None)}
        if lacking := [name for name in self.rows.needs if name not in passed]:
            raise CreditError(f"method {self.rows.name!r} needs {', '.join(lacking)}: {self.rows.how_to_pass}")
        before = None if learns else self.rows.state
        result: Advantages = self.rows(**columns)
        if not learns:
            self.rows.state = before
        self.metrics, self._ran = result.metrics, True
        return result

    def check_ran(self) -> None:
        """Refuse a loss before any advantages were asked for: the trainer would train on its own.

        Raises:
          CreditError: no batch came yet.
        """
        if not self._ran:
            raise CreditError(
                f"the trainer computes a loss, and never asked {self.rows.name!r} for advantages: it would train on "
                f"its own. This integration was written against {self.trainer}; expected a version that calls it"
            )


@functools.lru_cache(maxsize=64)  # rows of all steps have the same labels
def _spelt_almost(name: str, labels: frozenset[Any]) -> str | None:
    """The label that `name` was probably meant to be: "agents", "Agent" and "event_rewards", but not "agent_id"."""
    texts = {label.lower(): label for label in sorted(label for label in labels if isinstance(label, str))}
    return next((texts[near] for near in difflib.get_close_matches(name, texts, n=1, cutoff=0.85)), None)


def estimator_name(method: str, options: Mapping[str, Any]) -> str:
    """The name of a method with its options in a trainer's registry.

    Examples:
      >>> estimator_name("grpo", {"eps": 0.0001, "watch": "runs"})
      'credit_grpo,eps=0.0001'
    """
    return f"credit_{method}" + "".join(f",{name}={options[name]!r}" for name in sorted(options.keys() - {"watch"}))
