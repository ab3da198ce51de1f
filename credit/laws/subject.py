"""A method under trial: its compiled form, one for all batches, the batches it is tried on, and how results differ."""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from credit.laws.report import LawResult
from credit.laws.trial_batches import (
    BETWEEN,
    LEAST,
    MOST,
    SIZES,
    Batch,
    Needs,
    elsewhere,
    padded,
    ragged,
    regular,
    uneven,
)
from credit.methods.method_row import Scope
from credit.methods.own_results import check_form
from estimators.base import Credit, Reason
from graphs.errors import CreditError
from graphs.padding import Sizes

__all__ = [
    "ATOL",
    "NUMBERS",
    "QUICK",
    "RTOL",
    "NotApplicable",
    "Subject",
    "all_masked",
    "changes",
    "differ",
    "extreme",
    "numbers",
    "reason_name",
    "tied",
]

NUMBERS = ("credit", "baseline", "scale", "stderr", "advantage")
RTOL, ATOL = 1e-5, 5e-6
"""Room for what the order of additions and fused arithmetic change; laws that say "bit for bit" use none."""

QUICK = {"xla_backend_optimization_level": 0}  # for what runs once: compiling it costs more than running it


_WANT_ANSWERS = ("tight_scope", "response", "no_event_reward")
"""Laws that something must change: where nothing is answered, nothing does."""


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
        group_size: int = LEAST,
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
        self.group_size = group_size
        self.answered, self.refusals = False, Counter[str]()  # of the law that is tried
        self.unit = self.estimand = self.centre = ""
        self.jitted = jax.jit(self._counted)

    def ragged(self, seed: int = 0) -> Batch:
        return ragged(self.seed + seed, self.needs, self.group_size)

    def regular(self, seed: int = 0, *, even: bool = True, groups: tuple[int, ...] | None = None) -> Batch:
        return regular(self.seed + seed, self.needs, even=even, groups=groups or (self.group_size,) * 4)

    def uneven(self) -> Batch:
        return uneven(self.seed, self.needs, self.group_size)

    @property
    def room(self) -> Sizes:
        return _roomy(SIZES, self.group_size)

    def padded(self, batch: Batch, *, poison: bool = False) -> Batch:
        return padded(batch, self.room, poison)

    def enlarge(self) -> bool:
        """Take groups of one trace more, if those that laws look at are TOO_FEW for the method; whether it did.

        Laws look at regular groups, and at the one of a ragged batch that stays as it is while others change.
        """
        ragged = self.ragged()
        between = (ragged.graph.group_ids == BETWEEN)[ragged.graph.trace_ids]
        for batch, where in ((self.regular(), None), (ragged, between)):
            self.answered, self.refusals = False, Counter()
            self.run(self.padded(batch), where)
            if self.unanswered == Reason.TOO_FEW.name and self.group_size < MOST:
                room, self.group_size = self.room, self.group_size + 1
                if self.room != room:
                    self.traced = 0  # of arrays of this length
                return True
        return False

    @property
    def unanswered(self) -> str:
        """Why no event was answered since the law began, by the commonest reason; "" where one was."""
        return "" if self.answered or not self.refusals else self.refusals.most_common(1)[0][0]

    def _note(self, batch: Batch, out: dict[str, np.ndarray], where: np.ndarray | None) -> dict[str, np.ndarray]:
        """Note what was answered among the real actions `where` that have an outcome."""
        asked = np.asarray(batch.graph.event_mask & batch.graph.action_mask)
        asked = asked & ~np.isnan(np.asarray(batch.reward, np.float32))[np.asarray(batch.graph.trace_ids)]
        if where is not None:
            asked[len(where) :] = False
            asked[: len(where)] &= where
        self.answered |= bool(out["valid"][asked].any())
        self.refusals.update(map(reason_name, out["reason"][asked & ~out["valid"]].tolist()))
        return out

    def direct(self, batch: Batch) -> Credit:
        """The method as it is called by hand."""
        extra = {"event_reward": batch.event_reward} if self.takes_event_reward else {}
        result = self.fn(batch.graph, batch.reward, **extra, **batch.evidence)
        check_form("the method", batch.graph, result)
        return result

    def _counted(self, graph: Any, reward: Any, event_reward: Any, evidence: Any) -> dict[str, Any]:
        result = self.direct(Batch(graph, reward, event_reward, evidence))
        self.traced, self.unit, self.estimand = self.traced + 1, result.unit, result.estimand
        if result.centred:  # of other amounts evidence and choices make the mean, and trial batches have no policy
            can_try = result.own_outcome and not self.needs and self.scope in ("trace", "group") and self.group_size < 9
            self.centre = "tried" if can_try else "untried"
        return numbers(result)

    def run(self, batch: Batch, where: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Its numbers on a padded batch, compiled. A law that looks at the events `where` alone says so."""
        out = self.jitted(batch.graph, batch.reward, batch.event_reward, batch.evidence)
        return self._note(batch, {name: np.asarray(values) for name, values in out.items()}, where)

    def once(self, batch: Batch, where: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Its numbers on a padded batch of another shape or dtype, compiled for that alone."""
        out = jax.jit(lambda arrays: numbers(self.direct(arrays)), compiler_options=QUICK)(batch)
        return self._note(batch, {name: np.asarray(values) for name, values in out.items()}, where)

    def eager(self, batch: Batch) -> dict[str, np.ndarray]:
        """Its numbers on a padded batch, operation by operation."""
        with jax.disable_jit():
            return {name: np.asarray(values) for name, values in numbers(self.direct(batch)).items()}

    def try_law(self, name: str, law: Callable[[Subject], str]) -> LawResult:
        self.answered, self.refusals = False, Counter()
        try:
            detail = law(self)
        except NotApplicable as reason:
            return LawResult(name, None, str(reason))
        except Exception as error:  # noqa: BLE001 - whatever the method raises, the report says it
            text = next(iter(str(error).splitlines()), "")
            return LawResult(name, False, text if isinstance(error, CreditError) else f"{type(error).__name__}: {text}")
        why = self.unanswered
        asks_for_more = name in _WANT_ANSWERS or (name == "regular_is_valid" and why == Reason.TOO_FEW.name)
        if why and (asks_for_more or not detail):
            return LawResult(name, None, f"not tried: {why} in groups of {self.group_size}", untried=True)
        return LawResult(name, not detail, detail)


def _roomy(sizes: Sizes, group_size: int) -> Sizes:
    return sizes if group_size <= 6 else Sizes(*(2 * size for size in sizes))


def reason_name(code: int) -> str:
    """The name of a reason; the number itself where no reason has it."""
    return Reason(code).name if code in tuple(Reason) else str(code)


def numbers(result: Credit) -> dict[str, Any]:
    """The numbers that laws compare, by name."""
    beside = {"reason": result.reason, "valid": result.valid, "holds": result.holds_outcome}
    return {**{name: getattr(result, name) for name in NUMBERS}, **beside}


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
            found, wanted = (reason_name(v[row]) if name == "reason" else v[row] for v in (a, b))
            return f"{name} of event {int(np.flatnonzero(where)[row])} is {found}; expected {wanted}"
    return ""


def changes(s: Subject, batch: Batch, kept: np.ndarray, rng: np.random.Generator) -> tuple[str, str]:
    """How the numbers of the traces `kept` change, if at all, and what of the other traces had changed: two sentences.

    All other traces get other outcomes, then other rewards at events, then a third of them no outcome, then other
    numbers as evidence.
    """
    events = np.zeros(s.room.events, bool)
    events[: batch.graph.num_events] = kept[batch.graph.trace_ids]
    before = s.run(s.padded(batch), events)
    for what, other in elsewhere(batch, s.needs, ~kept, rng):
        if detail := differ(s.run(s.padded(other), events), before, events, exactly=True):
            return detail, what
    return "", ""


def extreme(s: Subject) -> Batch:
    """Rewards at both ends of float32, so that sums, differences and squares overflow."""
    batch = s.ragged()
    ends = np.where(np.arange(len(batch.reward)) % 3 > 0, 3e38, -3e38).astype(np.float32)
    return s.padded(dataclasses.replace(batch, reward=np.where(np.isnan(batch.reward), np.nan, ends)))


def tied(s: Subject) -> Batch:
    """All rewards equal, none at events."""
    batch = s.ragged()
    flat, none = np.full_like(batch.reward, 0.1), np.zeros_like(batch.event_reward)
    return s.padded(dataclasses.replace(batch, reward=flat, event_reward=none))


def all_masked(s: Subject) -> Batch:
    """Nothing but padding."""
    batch = s.padded(s.ragged())
    off = {
        name: np.zeros_like(getattr(batch.graph, name))
        for name in ("event_mask", "action_mask", "edge_mask", "agent_mask", "trace_mask")
    }
    return dataclasses.replace(batch, graph=dataclasses.replace(batch.graph, **off))
