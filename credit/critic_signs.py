"""The tests of a critic's signs, as the folder of a critic keeps them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from estimators.critic.signs.circumstances import CIRCUMSTANCES
from estimators.critic.signs.places import HeldOutMean, PlaceTest
from estimators.critic.signs.regions import Region
from estimators.critic.validation import SignTest
from graphs.errors import CreditError
from graphs.text import counted

__all__ = ["KeptPlace", "KeptTest", "bound", "kept_test", "sign_test", "unbounded"]


class _KeptMean(msgspec.Struct):
    tasks: int
    events: int
    mean: float
    stderr: float | None
    p_value: float


class KeptPlace(msgspec.Struct):
    """A `PlaceTest`."""

    place: int
    result: _KeptMean
    validated: bool


class KeptTest(msgspec.Struct):
    """A `SignTest`; JSON has no infinity, so a bound or an error that is infinite is None."""

    kind: int
    above: list[float | None]
    to: list[float | None]
    result: _KeptMean
    p_value: float
    validated: bool
    places: list[KeptPlace]


def kept_test(test: SignTest) -> KeptTest:
    """A test, to be written."""
    region = test.region
    above, to = ([bound(end) for end in ends] for ends in (region.above, region.to))
    places = [KeptPlace(each.place, _kept_mean(each.result), each.validated) for each in test.places]
    return KeptTest(region.kind, above, to, _kept_mean(test.result), test.p_value, test.validated, places)


def sign_test(path: Path, at: int, kept: KeptTest) -> SignTest:
    """A test that was read.

    Args:
      path: the file, for messages.
      at: which test it is.
      kept: what the file holds.

    Raises:
      CreditError: it has another number of bounds than there are circumstances.
    """
    for name, ends in (("above", kept.above), ("to", kept.to)):
        if len(ends) != len(CIRCUMSTANCES):
            raise CreditError(
                f"{path}: tests[{at}].{name} has {counted(len(ends), 'bound')}; expected {len(CIRCUMSTANCES)}"
            )
    above = tuple(-unbounded(end) if end is None else end for end in kept.above)
    region = Region(kept.kind, above, tuple(unbounded(end) for end in kept.to))
    places = tuple(PlaceTest(each.place, _mean(each.result), each.validated) for each in kept.places)
    return SignTest(region, _mean(kept.result), kept.p_value, kept.validated, places)


def bound(value: float) -> float | None:
    """A number as JSON can hold it: None for infinity."""
    return float(value) if np.isfinite(value) else None


def unbounded(value: float | None) -> float:
    """A number as JSON held it: infinity for None."""
    return float("inf") if value is None else value


def _kept_mean(result: HeldOutMean) -> _KeptMean:
    return _KeptMean(result.tasks, result.events, result.mean, bound(result.stderr), result.p_value)


def _mean(kept: _KeptMean) -> HeldOutMean:
    return HeldOutMean(kept.tasks, kept.events, kept.mean, unbounded(kept.stderr), kept.p_value)
