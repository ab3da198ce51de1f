"""Numbers to watch at each training step: credit by agent and role, its noise, and the agreement of methods.

    RowAdvantages("dr_mas", watch=Watch("runs/watch", compare=["rloo", "turn_baseline"]))

Every integration passes the option on: `CreditGRPOTrainer(..., options={"watch": watch})`, `estimator("rloo",
watch=watch)`, and in verl's configuration `+algorithm.credit.watch=runs/watch`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.watching.sinks import PATIENCE, MetricsFile, Sink, TensorBoard, Wandb
from credit.watching.step_numbers import alignments, ledger_numbers, noise_number
from graphs.atomic import append, locked
from graphs.errors import CreditError

if TYPE_CHECKING:
    from credit.integrations.rows.row_metrics import Batch
    from estimators.base import Credit

__all__ = ["Watch"]


class Watch:
    """Computes the numbers of `credit.watching.step_numbers` at each step, and writes them and the rows.

    Two files of JSON lines in the folder: `metrics.jsonl`, a line a step, and `rows.jsonl`, a line a row with the ids,
    the reward and the advantage. `credit.read("runs/watch/rows.jsonl")` reads the rows; a trace is `STEP/TRACE` there.

    Args:
      folder: where the files go; it is made. Lines are added to files that exist.
      compare: names of further methods that are run on the same rows.
      every: only each so many steps.
      ledger: whether the claims of the methods are composed into a ledger, which takes seconds to compile once and some
        milliseconds a step.
      rows: whether the rows are written.
      tensorboard: whether numbers go to TensorBoard, in the folder, too; needs the package tensorboard.
      wandb: whether numbers go to the run of wandb that is active, too. Without one, the first step is an error.

    Raises:
      CreditError: no such method; `every` is no positive integer.
      MissingExtraError: TensorBoard or wandb is wanted and not installed.

    Examples:
      >>> import tempfile
      >>> import numpy as np
      >>> from credit.integrations import RowAdvantages, Watch
      >>> folder = tempfile.mkdtemp()
      >>> watched = RowAdvantages("rloo", watch=Watch(folder, compare=["dr_grpo"], ledger=False))
      >>> result = watched(group=["q"] * 3, agent=["a"] * 3, reward=np.array([1.0, 0.0, 0.0]))
      >>> result.metrics["credit/alignment/dr_grpo"]
      1.0
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        compare: Sequence[str] = (),
        every: int = 1,
        ledger: bool = True,
        rows: bool = True,
        tensorboard: bool = False,
        wandb: bool = False,
    ) -> None:
        from credit.methods.registry import METHODS

        for name in compare:
            if name not in METHODS:
                raise CreditError(f"compare names {name!r}; expected names among {', '.join(sorted(METHODS))}")
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise CreditError(f"every is {every!r}; expected a positive integer")
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._compare, self._every, self._ledger, self._rows = tuple(compare), every, ledger, rows
        self._sinks: list[Sink] = [MetricsFile(self.folder)]
        self._sinks += [TensorBoard(self.folder)] if tensorboard else []
        self._sinks += [Wandb()] if wandb else []
        self._step = 0

    def __call__(self, batch: Batch, result: Credit, metrics: Mapping[str, float]) -> dict[str, float]:
        """Look at one batch; returns the further metrics, empty in steps that are passed over."""
        number, self._step = self._step, self._step + 1
        if number % self._every:
            return {}
        others = {name: self._run(name, batch) for name in self._compare}
        measured = _step_numbers(batch, result, others, ledger=self._ledger)
        for sink in self._sinks:
            sink.write(number, {**metrics, **measured})
        if self._rows:
            self._write_rows(number, batch)
        return measured

    def _run(self, name: str, batch: Batch) -> Credit:
        from credit.methods.registry import METHODS

        fn = METHODS[name].fn
        accepted = inspect.signature(fn).parameters
        evidence = {key: values for key, values in batch.evidence.items() if key in accepted}
        lacking = [need for need in METHODS[name].needs if need not in evidence]
        if lacking:
            raise CreditError(f"compare names {name!r}, which needs {', '.join(lacking)}; the rows have no such column")
        result: Credit = fn(batch.graph, batch.reward, **evidence)
        return result

    def _write_rows(self, number: int, batch: Batch) -> None:
        event = batch.rows.event
        columns = {name: _plain(column) for name, column in batch.columns.items()}
        columns["advantage"] = batch.advantage[event].tolist()
        columns["trace"] = [f"{number}/{trace}" for trace in columns["trace"]]
        columns["group"] = [f"{number}/{group}" for group in columns["group"]]
        lines = []
        for values in zip(*columns.values(), strict=True):
            row = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
            lines.append(json.dumps(row, default=_as_json) + "\n")
        with locked(self.folder / "rows.jsonl", wait=PATIENCE):
            append(self.folder / "rows.jsonl", "".join(lines).encode())


def _step_numbers(batch: Batch, chosen: Credit, others: Mapping[str, Credit], *, ledger: bool) -> dict[str, float]:
    """Noise and alignment of one batch, and the numbers of the ledger that all methods compose."""
    numbers = noise_number(chosen) | alignments(chosen, others)
    if not ledger:
        return numbers
    from credit.ledger.composition import ledger_of

    claims = {result.source: result for result in (chosen, *others.values())}
    names = batch.columns.get("role", batch.columns.get("agent"))
    roles = None if names is None else [str(name) for name in _plain(names)]
    whole = ledger_of(batch.graph, batch.reward, list(claims.values()), event_reward=batch.rows.event_reward)
    return numbers | ledger_numbers(whole, roles, batch.rows.event)


def _as_json(value: Any) -> Any:
    """Scalars of NumPy within a list of ids; other types have no form in JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"an id is {value!r}; expected a text or an integer")


def _plain(column: Any) -> list[Any]:
    return list(column.tolist() if hasattr(column, "tolist") else column)
