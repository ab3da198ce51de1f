"""The folder of a fitted critic: written whole, read with every number checked.

    critic.json       the settings of the fit, its tasks, and its losses on held-out tasks
    arrays.npz        the networks' parameters, or the weights of the additive model
    checkpoint.npz    the state of the networks' training; a killed fit resumes from it

`critic.json` holds a checksum of itself and of `arrays.npz`. A folder whose numbers were changed is refused.
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from credit.critics.fitted_critic import Critic
from estimators.critic.additive.additive_columns import Expected, Level
from estimators.critic.additive.additive_critic import AdditiveCritic
from estimators.critic.calibration import Judged
from estimators.critic.checkpoints import arrays_of, tree_of
from estimators.critic.data import Scaler
from estimators.critic.network import Architecture
from estimators.critic.objective import initial
from estimators.critic.signs.circumstances import CIRCUMSTANCES
from estimators.critic.signs.places import HeldOutMean, PlaceTest
from estimators.critic.signs.regions import Region
from estimators.critic.train import Epoch, Fitted
from estimators.critic.validation import SignTest
from graphs.array_files import read_arrays, write_arrays
from graphs.atomic import atomic_folder, atomic_write
from graphs.errors import CreditError
from graphs.json_errors import JSON_ERRORS
from graphs.text import counted

__all__ = ["read_critic", "save_critic"]

FORMAT = 6  # raised when the fields of `critic.json` or the arrays change; other formats are refused
ARRAYS, EXPECTED = "arrays.npz", "the arrays of a critic"


class _Sizes(msgspec.Struct, forbid_unknown_fields=True):
    features: int
    hidden: int
    sums: int
    layers: int
    counts: tuple[float, ...]
    head: Literal["bernoulli", "value"]


class _Network(msgspec.Struct):
    """Numbers of a scaler are text, since JSON has no infinity."""

    sizes: _Sizes
    members: int
    scaler: dict[str, list[str]]
    centre: float
    scale: float
    history: list[tuple[int, float, float, float, int]]
    converged: bool


class _Additive(msgspec.Struct):
    head: Literal["bernoulli", "value"]
    features: int
    roles: int
    levels: int
    steps: int
    converged: bool


class _Judged(msgspec.Struct):
    tasks: int
    traces: int
    loss: dict[str, float]
    gain: dict[str, tuple[float, float | None]]
    calibration: float | None
    curve: list[tuple[float, float, float]]


class _KeptMean(msgspec.Struct):
    tasks: int
    events: int
    mean: float | None
    stderr: float | None
    p_value: float


class _KeptPlace(msgspec.Struct):
    """A `PlaceTest`."""

    place: int
    result: _KeptMean
    validated: bool


class _KeptTest(msgspec.Struct):
    """A `SignTest`; JSON has no infinity, so a bound or an error that is infinite is None."""

    kind: int
    above: list[float | None]
    to: list[float | None]
    result: _KeptMean
    p_value: float
    validated: bool
    places: list[_KeptPlace]


class _Kept(msgspec.Struct):
    format: int
    roles: tuple[str, ...]
    dense: int
    held_out: tuple[str, ...]
    validation: dict[str, float]
    judged: _Judged
    tests: list[_KeptTest]
    network: _Network | None
    additive: _Additive | None
    sha256: str = ""
    """Of `_checksum`."""


class _Version(msgspec.Struct):
    format: int


def save_critic(critic: Critic, folder: Path) -> None:
    """Write a critic to a folder, in place of the one that it held; both files or none.

    Args:
      critic: what `fit_critic` returned.
      folder: made where it is missing.

    Raises:
      OSError: a file cannot be written.
    """
    fitted, judged = critic.fitted, critic.judged
    network = additive = None
    if isinstance(fitted, AdditiveCritic):
        arrays = _arrays(fitted)
        additive = _Additive(
            fitted.head, fitted.features, fitted.roles, len(fitted.levels), fitted.steps, fitted.converged
        )
    else:
        arrays = arrays_of(fitted.parameters)
        network = _Network(
            _Sizes(**dataclasses.asdict(fitted.sizes)),
            len(fitted.parameters["start"].get_value()),
            {name: [str(x) for x in part.tolist()] for name, part in fitted.scaler._asdict().items()},
            fitted.centre,
            fitted.scale,
            [(e.number, e.train, e.validation, e.best, e.best_number) for e in fitted.history],
            fitted.converged,
        )
    kept = _Kept(
        FORMAT, critic.roles, critic.dense, critic.held_out, critic.validation,
        _Judged(judged.tasks, judged.traces, judged.loss, {k: (g, _bound(w)) for k, (g, w) in judged.gain.items()},
                judged.calibration, list(judged.curve)),
        [_kept_test(test) for test in critic.tests],
        network, additive,
    )  # fmt: skip
    with atomic_folder(folder) as new:
        write_arrays(new / ARRAYS, arrays)
        kept.sha256 = _checksum(kept, new / ARRAYS)
        with atomic_write(new / "critic.json") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept), indent=1))


def _checksum(kept: _Kept, arrays: Path) -> str:
    """SHA-256 of what `critic.json` says apart from it, and of the file of arrays."""
    # Decoded once, so that a number has one form, whether it was computed or read.
    plain = msgspec.json.decode(msgspec.json.encode(kept), type=_Kept)
    plain.sha256 = ""
    return hashlib.sha256(msgspec.json.encode(plain) + arrays.read_bytes()).hexdigest()


def read_critic(folder: Path) -> Critic:
    """The critic in a folder.

    Args:
      folder: what `save_critic` wrote.

    Raises:
      CreditError: there is none, it is of another version, or a file is damaged; the message names file and field.
    """
    path = folder / "critic.json"
    if not path.is_file():
        raise CreditError(f"{folder} holds no critic: {path.name} is missing; `credit fit critic` writes one")
    content = path.read_bytes()
    try:
        version = msgspec.json.decode(content, type=_Version).format
        if version != FORMAT:
            raise CreditError(f"{path} has format {version}; expected {FORMAT}: fit the critic again")
        kept = msgspec.json.decode(content, type=_Kept)
    except JSON_ERRORS as error:
        raise CreditError(f"{path} is damaged: {error}; expected a folder that fit_critic wrote") from error
    if (kept.network is None) == (kept.additive is None):
        raise CreditError(f"{path}: expected either network or additive, not both and not neither")
    fitted = _network(folder, kept.network) if kept.network is not None else _additive(folder, kept.additive)
    judged = Judged(
        kept.judged.tasks, kept.judged.traces, kept.judged.loss,
        {k: (g, _unbounded(w)) for k, (g, w) in kept.judged.gain.items()}, kept.judged.calibration,
        tuple(kept.judged.curve),
    )  # fmt: skip
    tests = tuple(_sign_test(path, i, test) for i, test in enumerate(kept.tests))
    if kept.sha256 != _checksum(kept, folder / ARRAYS):
        raise CreditError(f"{folder} holds other numbers than were fitted: its checksum differs; fit the critic again")
    return Critic(fitted, kept.roles, kept.dense, judged, kept.held_out, kept.validation, tests)


def _network(folder: Path, kept: _Network) -> Fitted:
    path = folder / "critic.json"
    sizes = kept.sizes
    for field in ("features", "hidden", "sums", "layers"):
        if not 1 <= getattr(sizes, field) <= 100_000:
            raise CreditError(f"{path}: network.sizes.{field} is {getattr(sizes, field)}; expected 1 to 100,000")
    least = len(Architecture(1).counts)
    if len(sizes.counts) != least or not all(np.isfinite(c) and c >= 1 for c in sizes.counts):
        raise CreditError(f"{path}: network.sizes.counts is {sizes.counts}; expected {least} numbers, 1 or more")
    if not 1 <= kept.members <= 10_000:
        raise CreditError(f"{path}: network.members is {kept.members}; expected 1 to 10,000")
    if not (np.isfinite(kept.centre) and np.isfinite(kept.scale) and kept.scale > 0):
        raise CreditError(
            f"{path}: network.centre is {kept.centre} and scale {kept.scale}; expected finite, scale above 0"
        )
    if not kept.history:
        raise CreditError(f"{path}: network.history is empty; expected an epoch or more")
    scaler = _scaler(path, kept.scaler, sizes.features)
    architecture = Architecture(sizes.features, sizes.hidden, sizes.sums, sizes.layers, sizes.counts, sizes.head)
    try:
        parameters = tree_of(initial(architecture, kept.members, 0, 0.0), read_arrays(folder / ARRAYS, EXPECTED))
    except CreditError as error:
        raise CreditError(f"{folder / ARRAYS}: {error}") from error
    history = tuple(Epoch(*epoch) for epoch in kept.history)
    return Fitted(parameters, architecture, scaler, kept.centre, kept.scale, history, kept.converged)


def _scaler(path: Path, kept: dict[str, list[str]], features: int) -> Scaler:
    """The scaler, each part with a number for each feature; spreads may be infinite, nothing may be NaN."""
    parts = []
    for name in Scaler._fields:
        texts = kept.get(name)
        if texts is None or len(texts) != features:
            state = "missing" if texts is None else f"{len(texts)} numbers long"
            raise CreditError(f"{path}: network.scaler.{name} is {state}; expected {features} numbers")
        try:
            values = np.array([float(text) for text in texts], np.float32)
        except ValueError as error:
            raise CreditError(f"{path}: network.scaler.{name} holds no number: {error}") from error
        bad = np.isnan(values) | (values <= 0) if name == "spread" else ~np.isfinite(values)
        if bad.any():
            i = int(np.argmax(bad))
            expected = "a number above 0" if name == "spread" else "a finite number"
            raise CreditError(f"{path}: network.scaler.{name}[{i}] is {texts[i]}; expected {expected}")
        parts.append(values)
    return Scaler(*parts)


def _arrays(critic: AdditiveCritic) -> dict[str, np.ndarray]:
    """The arrays of an additive critic by name."""
    out = {f"expected.{name}": part for name, part in critic.expected._asdict().items()}
    for i, level in enumerate(critic.levels):
        out |= {f"level{i}.keys": level.keys, f"level{i}.weight": level.weight}
    return out | {"start": critic.start, "ahead": critic.ahead}


def _additive(folder: Path, kept: _Additive | None) -> AdditiveCritic:
    path = folder / ARRAYS
    if kept is None or not 1 <= kept.levels <= 16:
        raise CreditError(f"{folder / 'critic.json'}: additive.levels is out of range; expected 1 to 16")
    names = [
        *(f"expected.{name}" for name in Expected._fields),
        *(f"level{i}.{name}" for i in range(kept.levels) for name in Level._fields), "start", "ahead",
    ]  # fmt: skip
    arrays = _finite_arrays(path, names)
    expected = Expected(*(arrays[f"expected.{name}"] for name in Expected._fields))
    levels = tuple(Level(arrays[f"level{i}.keys"], arrays[f"level{i}.weight"]) for i in range(kept.levels))
    members, width = len(arrays["start"]), len(expected.spread)
    places, history = len(expected.keys), expected.mean.shape[-1] - width
    shapes = {
        "expected.keys": (places,), "expected.mean": (places + 1, width + history),
        "expected.drawn": (members, places + 1, width), "expected.types": (len(expected.types),),
        "expected.slope": (len(expected.types) + 1, history, width),
        "expected.own_slope": (places + 1, history, width), "expected.spread": (width,),
        "start": (members,), "ahead": (len(arrays["ahead"]),),
    }  # fmt: skip
    for i, level in enumerate(levels):
        shapes |= {f"level{i}.keys": (len(level.keys),), f"level{i}.weight": (members, len(level.keys), width)}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise CreditError(f"{path}: {name} has shape {arrays[name].shape}; expected {shape}")
    return AdditiveCritic(
        kept.head, kept.features, kept.roles, expected, levels, arrays["start"], arrays["ahead"], kept.steps,
        kept.converged,
    )  # fmt: skip


def _finite_arrays(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    """The arrays of a file, finite numbers all.

    Raises:
      CreditError: the file is missing or damaged, or an array is missing or holds other things than finite numbers.
    """
    arrays = read_arrays(path, EXPECTED)
    for name in names:
        if name not in arrays:
            raise CreditError(f"{path} has no array {name}; expected the weights of an additive critic")
        values = arrays[name]
        if values.dtype.kind not in "fi" or values.ndim == 0 or not np.isfinite(values).all():
            raise CreditError(f"{path}: {name} is not an array of finite numbers")
    return arrays


def _kept_test(test: SignTest) -> _KeptTest:
    """A test, to be written."""
    region = test.region
    above, to = ([_bound(end) for end in ends] for ends in (region.above, region.to))
    places = [_KeptPlace(each.place, _kept_mean(each.result), each.validated) for each in test.places]
    return _KeptTest(region.kind, above, to, _kept_mean(test.result), test.p_value, test.validated, places)


def _sign_test(path: Path, number: int, kept: _KeptTest) -> SignTest:
    """A test that was read.

    Args:
      path: the file, for messages.
      number: which test it is, from 0.
      kept: what the file holds.

    Raises:
      CreditError: it has another number of bounds than there are circumstances.
    """
    for name, ends in (("above", kept.above), ("to", kept.to)):
        if len(ends) != len(CIRCUMSTANCES):
            raise CreditError(
                f"{path}: tests[{number}].{name} has {counted(len(ends), 'bound')}; expected {len(CIRCUMSTANCES)}"
            )
    above = tuple(-_unbounded(end) if end is None else end for end in kept.above)
    region = Region(kept.kind, above, tuple(_unbounded(end) for end in kept.to))
    places = tuple(PlaceTest(each.place, _mean(each.result), each.validated) for each in kept.places)
    return SignTest(region, _mean(kept.result), kept.p_value, kept.validated, places)


def _bound(value: float) -> float | None:
    """A number as JSON can hold it: None for infinity and NaN."""
    return float(value) if np.isfinite(value) else None


def _unbounded(value: float | None) -> float:
    """A number as JSON held it: infinity for None."""
    return float("inf") if value is None else value


def _kept_mean(result: HeldOutMean) -> _KeptMean:
    return _KeptMean(result.tasks, result.events, _bound(result.mean), _bound(result.stderr), result.p_value)


def _mean(kept: _KeptMean) -> HeldOutMean:
    mean = float("nan") if kept.mean is None else kept.mean
    return HeldOutMean(kept.tasks, kept.events, mean, _unbounded(kept.stderr), kept.p_value)
