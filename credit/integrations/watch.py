"""What to look at while training, step by step: who earned what, how much of it is noise, and whether methods agree.

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

from graphs.errors import CreditError, MissingExtraError

if TYPE_CHECKING:
    from credit.integrations.row_metrics import Batch
    from estimators.base import Credit

__all__ = ["Watch", "alignment", "signal_to_noise"]


class Watch:
    """Writes, for each step that it is called for, what `step` returns, and the rows.

    Two files of JSON lines in the folder: `metrics.jsonl`, a line a step, and `rows.jsonl`, a line a row with the ids,
    the reward and the advantage. `credit.read("runs/watch/rows.jsonl")` reads the rows; a trace is `STEP/TRACE` there.

    Args:
      folder: where the files go; it is made. Lines are added to files that exist.
      compare: names of further methods that are run on the same rows.
      every: only each so many steps.
      ledger: whether the claims of the methods are composed into a ledger, which takes seconds to compile once and some
        milliseconds a step.
      rows: whether the rows are written.
      tensorboard: whether numbers go to TensorBoard, in the folder, too; needs PyTorch and tensorboard.
      wandb: whether numbers go to the run of wandb that is active, too.

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
        self._board = _tensorboard(self.folder) if tensorboard else None
        self._wandb = _wandb() if wandb else None
        self._step = 0

    def __call__(self, batch: Batch, own: Credit, metrics: Mapping[str, float]) -> dict[str, float]:
        """Look at one batch; returns the further metrics, empty in steps that are passed over."""
        number, self._step = self._step, self._step + 1
        if number % self._every:
            return {}
        others = {name: self._run(name, batch) for name in self._compare}
        measured = step(batch, own, others, ledger=self._ledger)
        numbers = {**metrics, **measured}
        with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": number, **numbers}) + "\n")
        if self._rows:
            self._write_rows(number, batch)
        if self._board is not None:
            for name, value in numbers.items():
                self._board.add_scalar(name, value, number)
            self._board.flush()
        if self._wandb is not None and self._wandb.run is not None:
            self._wandb.log(numbers, commit=False)
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
        with open(self.folder / "rows.jsonl", "a", encoding="utf-8") as file:
            for values in zip(*columns.values(), strict=True):
                row = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
                file.write(json.dumps(row) + "\n")


def step(batch: Batch, own: Credit, others: Mapping[str, Credit], *, ledger: bool = True) -> dict[str, float]:
    """Numbers of one batch.

        credit/snr                      `signal_to_noise` of the method that is trained on
        credit/alignment/NAME           `alignment` of its advantages with those of another method
        credit/ledger/coverage          of the ledger that all of them compose: 1 − Var(unexplained) / Var(R − expected)
        credit/ledger/expected, /unexplained   mean over traces, in units of reward
        credit/ledger/role/ROLE         mean over traces of what the role's actions changed; needs a column of agents
        credit/ledger/conditions_hold, _broken, _unchecked   of the ledger's advantage "control"

    The ledger's numbers are left out where no method claims increments of single actions: a broadcast of the team's
    reward says nothing about who earned it.
    """
    numbers: dict[str, float] = {}
    noise = signal_to_noise(own)
    if noise is not None:
        numbers["credit/snr"] = noise
    advantage = np.asarray(own.advantage)
    for name, other in others.items():
        numbers[f"credit/alignment/{name}"] = alignment(advantage, np.asarray(other.advantage))
    if ledger:
        numbers |= _ledger(batch, [own, *others.values()])
    return numbers


def signal_to_noise(result: Credit) -> float | None:
    """How much amounts vary beyond their own standard errors: sqrt(max(V − N, 0) / N), None without errors.

    V is the variance of credit − baseline over the rows with an answer and a finite error, N the mean of the squared
    errors. 0 says that the differences are no larger than the errors explain. Where all errors are 0 there is no ratio.
    """
    error = np.asarray(result.stderr, np.float64)
    use = np.asarray(result.valid) & np.isfinite(error)
    if np.count_nonzero(use) < 2:
        return None
    amount = (np.asarray(result.credit, np.float64) - np.asarray(result.baseline, np.float64))[use]
    noise = float(np.mean(error[use] ** 2))
    if noise <= 0:
        return None
    return float(np.sqrt(max(float(np.var(amount)) - noise, 0.0) / noise))


def alignment(one: np.ndarray, other: np.ndarray) -> float:
    """Cosine of two methods' advantages over the rows; 0 where one is 0 throughout.

    It is the cosine of the two policy gradients where the gradients of the rows' log-probabilities are orthogonal and
    of equal length.
    """
    product = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return float(np.dot(one, other)) / product if product > 0 else 0.0


def _ledger(batch: Batch, results: Sequence[Credit]) -> dict[str, float]:
    from credit.ledger import compose

    ledger = compose(batch.graph, batch.reward, list({result.source: result for result in results}.values()))
    if not ledger.claims:
        return {}
    scored = np.asarray(ledger.scored)
    numbers = {
        "coverage": ledger.coverage,
        "expected": float(np.asarray(ledger.expected)[scored].mean()),
        "unexplained": float(np.asarray(ledger.unexplained)[scored].mean()),
    }
    names = batch.columns.get("role", batch.columns.get("agent"))
    if names is not None:
        increments = np.asarray(ledger.increments)[batch.rows.event]
        labels = np.array([str(name) for name in _plain(names)])
        for role in sorted(set(labels)):
            numbers[f"role/{role}"] = float(increments[labels == role].sum()) / int(scored.sum())
    holds = [condition.holds for condition in ledger.advantage("control").conditions]
    for name, state in (("hold", True), ("broken", False), ("unchecked", None)):
        numbers[f"conditions_{name}"] = float(sum(one is state for one in holds))
    return {f"credit/ledger/{name}": value for name, value in numbers.items() if np.isfinite(value)}


def _plain(column: Any) -> list[Any]:
    return list(column.tolist() if hasattr(column, "tolist") else column)


def _tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tensorboard", extra="torch") from None
    return SummaryWriter(log_dir=str(folder))


def _wandb() -> Any:
    try:
        import wandb
    except ImportError:
        raise MissingExtraError("wandb", extra="verl") from None
    return wandb
