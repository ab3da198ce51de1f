"""A method on batches of whole groups, one after another or side by side, with the numbers of one batch of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.methods.absent_outcomes import no_outcome
from credit.methods.published import find_method
from credit.methods.running import EVIDENCE, Request, run_part
from estimators.options import check_arguments, takes_key
from graphs.errors import CreditError
from graphs.keys import evidence_of_key
from graphs.traces.schema import EVENT_EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["DIVISIBLE", "ChunkedMethod"]

DIVISIBLE = ("trace", "group")
"""Scopes of methods whose numbers depend on no other group."""


@dataclasses.dataclass(frozen=True)
class ChunkedMethod:
    """A method that is computed for some whole groups at a time.

    Evidence that the method needs may be in some batches only. Where a batch has none, all its events are without it.

    Attributes:
      method: a name in `credit.METHODS`.
      options: options of the method.
      evidence: names of further evidence to take from the log, which the method can do without.

    Raises:
      CreditError: no such method; its scope under the options is "batch" or "sequence", so that every trace changes the
        others' numbers; an option that it has not, or a value that it refuses; evidence that it does not take.
    """

    method: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    evidence: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        scope, option = find_method(self.method).scope_of(self.options)
        if scope not in DIVISIBLE:
            under = "" if option is None else f" under {option}"
            instead = "" if option is None else f"; leave out {option}, or compute all traces at once"
            problem = f"its scope{under} is {scope}: every trace changes the numbers of the others{instead}"
            raise CreditError(f"method {self.method!r} cannot be computed in chunks, since {problem}")
        request = Request.of(self.method)
        request.check_names(self.options)
        request.check_evidence(self.evidence)
        check_arguments(request.fn, self.options)
        if "by" in self.options and takes_key(request.fn) and evidence_of_key(self.options["by"]):
            named = ", ".join(evidence_of_key(self.options["by"]))
            raise CreditError(
                f"by compares by {named}, evidence of the log, which chunks may lack; expected all traces at once"
            )

    def refuse_pooled_errors(self) -> None:
        """Refuse a method whose claims a ledger of some groups would weigh otherwise than a ledger of all.

        Raises:
          CreditError: the method's errors are pooled over the batch.
        """
        if find_method(self.method).pools_errors:
            why = "the errors by which a ledger weighs its claims are pooled over all groups of the batch"
            instead = "leave it out, or compose all traces at once"
            raise CreditError(f"method {self.method!r} cannot be composed in parts, since {why}; {instead}")

    @property
    def wanted(self) -> tuple[str, ...]:
        """Names of the evidence that it takes from the log."""
        return tuple(dict.fromkeys([*find_method(self.method).needs, *self.evidence]))

    def present(self, traces: Traces) -> set[str]:
        """The evidence among `wanted` that a batch has somewhere."""
        return {name for name in self.wanted if name in traces.evidence and traces.evidence[name].mask.any()}

    def run(self, traces: Traces) -> Credit:
        """The method's credit for a batch of whole groups.

        Raises:
          CreditError: as `credit.run`; not for evidence that the batch lacks: see `refuse_missing`.
        """
        present = self.present(traces)
        absent = _absent(traces, set(self.wanted) - present)
        return run_part(traces, self.method, evidence=present.intersection(self.evidence), **absent, **self.options)

    def refuse_missing(self, met: Iterable[str], any_outcome: bool, found: Iterable[str] = ()) -> None:
        """Refuse logs that lack what the method needs in every batch.

        Args:
          met: what `present` returned for all batches together.
          any_outcome: whether any trace of any batch has an outcome.
          found: what was found instead of outcomes, in words (`credit.methods.absent_outcomes`).

        Raises:
          CreditError: no outcome anywhere; evidence that no batch has.
        """
        if not any_outcome:
            raise no_outcome(found)
        lacking = [name for name in self.wanted if name not in set(met)]
        if lacking:
            how = "; ".join(f"{name!r}: {EVIDENCE[name].how_to_log}" for name in lacking)
            raise CreditError(f"method {self.method!r} needs evidence that the log does not have. {how}")


def _absent(traces: Traces, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Evidence that a batch has nowhere, though another may: arrays in which all is absent."""
    arrays = {}
    for name in names:
        length = traces.graph.num_events if name in EVENT_EVIDENCE else traces.graph.num_traces
        is_float = EVIDENCE[name].kind == "float"
        arrays[name] = np.full(length, np.nan, np.float32) if is_float else np.full(length, -1, np.int32)
    return arrays
