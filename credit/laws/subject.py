"""A method under trial: its compiled form, one for all batches, the batches it is tried on, and how results differ."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from credit.laws.report import LawResult
from credit.laws.trial_batches import SIZES, Batch, Needs, elsewhere, padded, ragged, regular
from credit.methods.method_row import Scope
from credit.methods.own_results import check_form
from estimators.base import Credit
from graphs.errors import CreditError

__all__ = [
    "NUMBERS",
    "QUICK",
    "NotApplicable",
    "Subject",
    "all_masked",
    "changes",
    "differ",
    "extreme",
    "numbers",
    "tied",
]

NUMBERS = ("credit", "baseline", "scale", "stderr", "advantage")
RTOL, ATOL = 1e-5, 5e-6
"""Room for what the order of additions and fused arithmetic change; laws that say "bit for bit" use none."""

QUICK = {"xla_backend_optimization_level": 0}  # for what runs once: compiling it costs more than running it


class NotApplicable(Exception):
    """Raised by a law that does not apply to methods of this kind."""


class Subject:
    """A method under trial: its compiled form, one for all batches, and what it was declared to be."""

    def __init__(
        self,
        fn: Callable[..., Credit],
        needs: Needs,
        scope: Scope,
        seed: int,
        *,
        shaped: bool = False,
        nonnegative: bool = False,
        is_own: bool = False,
        unbiased: bool = False,
    ) -> None:
        parameters = inspect.signature(fn).parameters
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        self.fn, self.needs, self.scope, self.seed = fn, needs, scope, seed
        self.shaped = shaped
        self.nonnegative = nonnegative
        self.unbiased = unbiased
        self.is_own = is_own  # a function of the user's, no entry of METHODS
        self.takes_event_reward = open_ended or "event_reward" in parameters
        self.traced = 0
        self.unit = self.estimand = ""
        self.jitted = jax.jit(self._counted)

    def ragged(self, seed: int = 0) -> Batch:
        return ragged(self.seed + seed, self.needs)

    def regular(self, seed: int = 0, *, even: bool = True) -> Batch:
        return regular(self.seed + seed, self.needs, even=even)

    def direct(self, batch: Batch) -> Credit:
        """The method as it is called by hand."""
        extra = {"event_reward": batch.event_reward} if self.takes_event_reward else {}
        result = self.fn(batch.graph, batch.reward, **extra, **batch.evidence)
        check_form("the method", batch.graph, result)
        return result

    def _counted(self, graph: Any, reward: Any, event_reward: Any, evidence: Any) -> dict[str, Any]:
        result = self.direct(Batch(graph, reward, event_reward, evidence))
        self.traced, self.unit, self.estimand = self.traced + 1, result.unit, result.estimand
        return numbers(result)

    def run(self, batch: Batch) -> dict[str, np.ndarray]:
        """Its numbers on a padded batch, compiled."""
        out = self.jitted(batch.graph, batch.reward, batch.event_reward, batch.evidence)
        return {name: np.asarray(values) for name, values in out.items()}

    def once(self, batch: Batch) -> dict[str, np.ndarray]:
        """Its numbers on a padded batch of another shape or dtype, compiled for that alone."""
        out = jax.jit(lambda arrays: numbers(self.direct(arrays)), compiler_options=QUICK)(batch)
        return {name: np.asarray(values) for name, values in out.items()}

    def eager(self, batch: Batch) -> dict[str, np.ndarray]:
        """Its numbers on a padded batch, operation by operation."""
        with jax.disable_jit():
            return {name: np.asarray(values) for name, values in numbers(self.direct(batch)).items()}

    def try_law(self, name: str, law: Callable[[Subject], str]) -> LawResult:
        try:
            detail = law(self)
        except NotApplicable as reason:
            return LawResult(name, None, str(reason))
        except Exception as error:  # noqa: BLE001 - whatever the method raises, the report says it
            text = next(iter(str(error).splitlines()), "")
            return LawResult(name, False, text if isinstance(error, CreditError) else f"{type(error).__name__}: {text}")
        return LawResult(name, not detail, detail)


def numbers(result: Credit) -> dict[str, Any]:
    """The numbers that laws compare, by name."""
    return {**{name: getattr(result, name) for name in NUMBERS}, "reason": result.reason, "valid": result.valid}


def differ(
    actual: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], where: np.ndarray, exactly: bool = False
) -> str:
    """A sentence on the first event among `where` at which two results differ; "" where they agree."""
    for name in (name for name in (*NUMBERS, "reason", "valid") if name in expected):
        a, b = np.asarray(actual[name])[where], np.asarray(expected[name])[where]
        if exactly or name in ("reason", "valid"):
            same = (a == b) | ((a != a) & (b != b))
        else:
            same = np.isclose(a, b, rtol=RTOL, atol=ATOL, equal_nan=True)
        if not same.all():
            row = int(np.argmin(same))
            return f"{name} of event {int(np.flatnonzero(where)[row])} is {a[row]}; expected {b[row]}"
    return ""


def changes(s: Subject, batch: Batch, kept: np.ndarray, rng: np.random.Generator) -> tuple[str, str]:
    """How the numbers of the traces `kept` change, if at all, and what of the other traces had changed: two sentences.

    All other traces get other outcomes, then other rewards at events, then a third of them no outcome, then other
    numbers as evidence.
    """
    events = np.zeros(SIZES.events, bool)
    events[: batch.graph.num_events] = kept[batch.graph.trace_ids]
    before = s.run(padded(batch, SIZES))
    for what, other in elsewhere(batch, s.needs, ~kept, rng):
        if detail := differ(s.run(padded(other, SIZES)), before, events, exactly=True):
            return detail, what
    return "", ""


def extreme(s: Subject) -> Batch:
    """Rewards at both ends of float32, so that sums, differences and squares overflow."""
    batch = s.ragged()
    ends = np.where(np.arange(len(batch.reward)) % 3 > 0, 3e38, -3e38).astype(np.float32)
    return padded(dataclasses.replace(batch, reward=np.where(np.isnan(batch.reward), np.nan, ends)), SIZES)


def tied(s: Subject) -> Batch:
    """All rewards equal, none at events."""
    batch = s.ragged()
    return padded(
        dataclasses.replace(
            batch, reward=np.full_like(batch.reward, 0.1), event_reward=np.zeros_like(batch.event_reward)
        ),
        SIZES,
    )


def all_masked(s: Subject) -> Batch:
    """Nothing but padding."""
    batch = padded(s.ragged(), SIZES)
    off = {
        name: np.zeros_like(getattr(batch.graph, name))
        for name in ("event_mask", "action_mask", "edge_mask", "agent_mask", "trace_mask")
    }
    return dataclasses.replace(batch, graph=dataclasses.replace(batch.graph, **off))
