"""Laws that every method obeys, and `check`, which tries them on a method: a published one or the user's own.

    def mine(graph, reward, *, event_reward=None): ...
    print(credit.check(mine, scope="group"))

Each law is a function in `LAWS`; it returns "" where the law holds and the counter-example where it does not. They run
the method on the batches of `credit.law_batches`. `docs/laws.md` says why each of them is one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credit.law_batches import LARGER, SIZES, Batch, Needs, draw_rewards, padded, ragged, rearranged, regular
from credit.methods import Method, Scope
from estimators.base import Credit
from graphs.errors import CreditError, excerpt
from graphs.event_graph import KINDS
from graphs.levels import LEVELS, Level, level_ids
from graphs.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["LAWS", "LawError", "LawReport", "LawResult", "check"]

NUMBERS = ("credit", "baseline", "scale", "stderr", "advantage")
RTOL, ATOL = 1e-5, 5e-6
"""Room for what the order of additions and fused arithmetic change; laws that say "bit for bit" use none."""

QUICK = {"xla_backend_optimization_level": 0}  # for what runs once: compiling it costs more than running it


@dataclasses.dataclass(frozen=True)
class LawResult:
    """What became of one law. `passed` is None where the law does not apply; `detail` says why, or how it broke."""

    law: str
    passed: bool | None
    detail: str


@dataclasses.dataclass(frozen=True)
class LawReport:
    """The laws tried on one method, in order; printing it gives a table."""

    method: str
    results: tuple[LawResult, ...]

    @property
    def broken(self) -> tuple[LawResult, ...]:
        """The laws that do not hold."""
        return tuple(result for result in self.results if result.passed is False)

    def __str__(self) -> str:
        words = {True: "holds", False: "BROKEN", None: "-"}
        width = max((len(result.law) for result in self.results), default=0)
        lines = [f"{r.law:{width}}  {words[r.passed]:6}  {r.detail}".rstrip() for r in self.results]
        return "\n".join([f"laws of {self.method}", *lines])


class LawError(CreditError):
    """A method breaks a law; `report` holds the others, too."""

    def __init__(self, report: LawReport) -> None:
        first = report.broken[0]
        super().__init__(f"{report.method} breaks the law {first.law!r}: {first.detail}")
        self.report = report


class _NotApplicable(Exception):
    """Raised by a law that says nothing about methods of this kind."""


def check(
    fn: Callable[..., Credit] | Method,
    *,
    needs: Sequence[str] | Mapping[str, Literal["event", "trace"]] = (),
    scope: Scope = "group",
    skip: Sequence[str] = (),
    seed: int = 0,
    strict: bool = True,
) -> LawReport:
    """Try the laws on a method.

    Args:
      fn: `fn(graph, reward, *, event_reward=None, **evidence) -> Credit`, with `functools.partial` for other options;
        or an entry of `METHODS`, which brings its own `needs` and `scope`. `event_reward` may be missing.
      needs: names of evidence in `graphs.schema` that `fn` is given; or a mapping from any name to "event" or "trace",
        for evidence of your own (floats in (0, 1), NaN where absent).
      scope: whose rewards can change a trace's numbers: "trace" its own only, "group", "batch", or "sequence" (those of
        earlier traces).
      skip: names in `LAWS` that are left out.
      seed: of the batches.
      strict: raise where a law is broken; otherwise the report says so.

    Raises:
      LawError: names the first broken law and gives the counter-example.
      ValueError: `scope`, `skip` or `needs` name nothing known.
    """
    method = fn
    if isinstance(method, Method):
        fn, needs, scope = method.fn, method.needs, method.scope
    if scope not in get_args(Scope):
        raise ValueError(f"scope is {scope!r}; expected one of {', '.join(get_args(Scope))}")
    for name in skip:
        if name not in LAWS:
            raise ValueError(f"skip has {name!r}; expected names among {', '.join(LAWS)}")
    subject = Subject(fn, _levels(needs), scope, seed)
    results: list[LawResult] = []
    for name, law in LAWS.items():
        if name in skip:
            continue
        if results and results[0].passed is False and results[0].law == "jit":
            results.append(LawResult(name, None, "not tried: the method cannot be compiled"))
            continue
        results.append(subject.try_law(name, law))
    inner = fn.func if isinstance(fn, functools.partial) else fn
    report = LawReport(getattr(inner, "__name__", excerpt(fn)), tuple(results))
    if strict and report.broken:
        raise LawError(report)
    return report


def _levels(needs: Sequence[str] | Mapping[str, Literal["event", "trace"]]) -> Needs:
    if isinstance(needs, Mapping):
        return dict(needs)
    levels: dict[str, Literal["event", "trace"]] = {}
    for name in needs:
        if name not in EVENT_EVIDENCE and name not in TRACE_EVIDENCE:
            known = ", ".join([*EVENT_EVIDENCE, *TRACE_EVIDENCE])
            raise ValueError(f"needs has {name!r}; expected names among {known}, or a mapping to 'event' or 'trace'")
        levels[name] = "event" if name in EVENT_EVIDENCE else "trace"
    return levels


class Subject:
    """A method under trial: its compiled form, one for all batches, and what it was declared to be."""

    def __init__(self, fn: Callable[..., Credit], needs: Needs, scope: Scope, seed: int) -> None:
        parameters = inspect.signature(fn).parameters
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        self.fn, self.needs, self.scope, self.seed = fn, needs, scope, seed
        self.takes_event_reward = open_ended or "event_reward" in parameters
        self.traced = 0
        self.jitted = jax.jit(self._counted)

    def ragged(self, seed: int = 0) -> Batch:
        return ragged(self.seed + seed, self.needs)

    def regular(self, seed: int = 0) -> Batch:
        return regular(self.seed + seed, self.needs)

    def direct(self, batch: Batch) -> Credit:
        """The method as it is called by hand."""
        extra = {"event_reward": batch.event_reward} if self.takes_event_reward else {}
        result = self.fn(batch.graph, batch.reward, **extra, **batch.evidence)
        if not isinstance(result, Credit):
            raise CreditError(f"the method returned {excerpt(result)}; expected a Credit (end with `finish`)")
        return result

    def _counted(self, graph: Any, reward: Any, event_reward: Any, evidence: Any) -> dict[str, Any]:
        self.traced += 1
        return _numbers(self.direct(Batch(graph, reward, event_reward, evidence)))

    def run(self, batch: Batch) -> dict[str, np.ndarray]:
        """Its numbers on a padded batch, compiled."""
        out = self.jitted(batch.graph, batch.reward, batch.event_reward, batch.evidence)
        return {name: np.asarray(values) for name, values in out.items()}

    def once(self, batch: Batch) -> dict[str, np.ndarray]:
        """Its numbers on a padded batch of another shape or dtype, compiled for that alone."""
        out = jax.jit(lambda given: _numbers(self.direct(given)), compiler_options=QUICK)(batch)
        return {name: np.asarray(values) for name, values in out.items()}

    def eager(self, batch: Batch) -> dict[str, np.ndarray]:
        """Its numbers on a padded batch, operation by operation."""
        with jax.disable_jit():
            return {name: np.asarray(values) for name, values in _numbers(self.direct(batch)).items()}

    def try_law(self, name: str, law: Callable[[Subject], str]) -> LawResult:
        try:
            detail = law(self)
        except _NotApplicable as reason:
            return LawResult(name, None, str(reason))
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            return LawResult(name, False, str(error).splitlines()[0])
        return LawResult(name, not detail, detail)


def _numbers(result: Credit) -> dict[str, Any]:
    return {**{name: getattr(result, name) for name in NUMBERS}, "reason": result.reason, "valid": result.valid}


def _differ(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], where: np.ndarray, exactly: bool = False
) -> str:
    """The first event among `where` at which two results differ, in words; "" where they agree."""
    for name in (name for name in (*NUMBERS, "reason", "valid") if name in expected):
        a, b = np.asarray(found[name])[where], np.asarray(expected[name])[where]
        if exactly or name in ("reason", "valid"):
            same = (a == b) | ((a != a) & (b != b))
        else:
            same = np.isclose(a, b, rtol=RTOL, atol=ATOL, equal_nan=True)
        if not same.all():
            at = int(np.argmin(same))
            return f"{name} of event {int(np.flatnonzero(where)[at])} is {a[at]}; expected {b[at]}"
    return ""


def jit(s: Subject) -> str:
    """Compiles; once for batches of one shape; and gives what it gives operation by operation."""
    for seed in range(2):
        for batch in (padded(s.ragged(seed), SIZES), padded(s.regular(seed), SIZES)):
            if detail := _differ(s.run(batch), s.eager(batch), batch.graph.event_mask):
                return detail
    return "" if s.traced == 1 else f"traced {s.traced} times for batches of one shape; expected 1"


def padding_is_zero(s: Subject) -> str:
    """In padding and where `valid` is False all numbers are 0, `scale` is 1; environment events are never valid."""
    for batch in (padded(s.ragged(), SIZES), _all_masked(s)):
        out = s.run(batch)
        off = ~out["valid"]
        blank = {name: np.full(len(off), float(name == "scale")) for name in NUMBERS}
        if detail := _differ({name: out[name] for name in NUMBERS}, blank, off, exactly=True):
            return f"{detail} ({'padding' if not batch.graph.event_mask.all() else 'invalid'})"
        wrong = out["valid"] & ~(batch.graph.event_mask & batch.graph.action_mask)
        if wrong.any():
            return f"event {int(np.argmax(wrong))} is valid; it is padding or no action"
    return ""


def padding_changes_nothing(s: Subject) -> str:
    """More padding leaves the real numbers as they are."""
    batch = s.ragged()
    small, large = s.run(padded(batch, SIZES)), s.once(padded(batch, LARGER))
    n = batch.graph.num_events
    return _differ({k: v[:n] for k, v in large.items()}, {k: v[:n] for k, v in small.items()}, np.ones(n, bool))


def poison(s: Subject) -> str:
    """NaN and infinity in padded rewards, evidence and times change no number, bit for bit."""
    batch = s.ragged()
    clean, poisoned = s.run(padded(batch, SIZES)), s.run(padded(batch, SIZES, poison=True))
    return _differ(poisoned, clean, np.ones(SIZES.events, bool), exactly=True)


def order(s: Subject) -> str:
    """Names, roles, groups and agents may be renumbered, and traces reordered unless the scope is "sequence"."""
    for seed in range(2):
        batch, rng = s.ragged(seed), np.random.default_rng(s.seed + seed)
        traces = np.arange(batch.graph.num_traces)
        moved, was = rearranged(batch, traces if s.scope == "sequence" else rng.permutation(traces), rng)
        if detail := _moved_differ(s, batch, moved, was):
            return f"{detail} (after renumbering)"
    return ""


def missing_reward(s: Subject) -> str:
    """A trace without a reward gets no credit, and to the others it is as if it were not there."""
    batch, rng = s.ragged(), np.random.default_rng(s.seed)
    without = np.isnan(batch.reward)[batch.graph.trace_ids]
    out = s.run(padded(batch, SIZES))
    if out["valid"][: len(without)][without].any():
        return "an event of a trace without reward is valid"
    rest, was = rearranged(batch, np.flatnonzero(~np.isnan(batch.reward)), rng)
    detail = _moved_differ(s, batch, rest, was)
    return f"{detail} (without the traces that have no reward)" if detail else ""


def _moved_differ(s: Subject, batch: Batch, moved: Batch, was: np.ndarray) -> str:
    expected = {name: values[was] for name, values in s.run(padded(batch, SIZES)).items()}
    found = {name: values[: len(was)] for name, values in s.run(padded(moved, SIZES)).items()}
    return _differ(found, expected, np.ones(len(was), bool))


def independence(s: Subject) -> str:
    """Rewards outside the scope change nothing, bit for bit: of other traces, other groups, or later traces."""
    if s.scope == "batch":
        raise _NotApplicable("the scope is the batch")
    batch = s.ragged()
    if s.scope == "trace":
        kept, other = np.arange(batch.graph.num_traces) == 6, "another trace"
    elif s.scope == "group":
        kept, other = batch.graph.group_ids == 3, "another group"  # one with groups before and behind it
    else:
        kept, other = np.arange(batch.graph.num_traces) < 11, "a later trace"  # which cuts that group in two
    for seed in range(2):
        if detail := _changes(s, batch, kept, np.random.default_rng(s.seed + seed)):
            return f"{detail} (before the rewards of {other} changed; the scope is {s.scope!r})"
    return ""


def tight_scope(s: Subject) -> str:
    """The declared scope is no wider than it must be: rewards beyond the next narrower one do matter."""
    batch = s.regular()
    if s.scope == "trace":
        raise _NotApplicable("no scope is narrower than the trace")
    if s.scope == "group":
        kept, other = np.arange(batch.graph.num_traces) % 4 == 0, "of the same group"
    elif s.scope == "batch":
        kept, other = batch.graph.group_ids == 0, "of other groups"
    else:
        kept, other = np.arange(batch.graph.num_traces) >= 8, "of earlier traces"
    for seed in range(8):
        if _changes(s, batch, kept, np.random.default_rng(s.seed + seed)):
            return ""
    return f"no reward {other} changed anything; the scope {s.scope!r} is too wide"


def response(s: Subject) -> str:
    """The numbers of a group change when the rewards of its traces do; never those that use no outcome at all."""
    batch = s.regular()
    mine = (batch.graph.group_ids == 0)[batch.graph.trace_ids]
    first = padded(batch, SIZES)
    before = s.run(first)["advantage"][: len(mine)][mine]
    silent = s.scope == "trace" and not jax.eval_shape(s.direct, first).own_outcome
    for seed in range(4):
        rng = np.random.default_rng(s.seed + seed)
        other = dataclasses.replace(batch, reward=draw_rewards(batch.graph, rng))
        if (s.run(padded(other, SIZES))["advantage"][: len(mine)][mine] != before).any():
            return "rewards change its advantages, though it declares that no outcome enters them" if silent else ""
    if silent:
        raise _NotApplicable("it uses evidence only, no outcome")
    return "no reward of group 0 changed the advantages of its events"


def _changes(s: Subject, batch: Batch, kept: np.ndarray, rng: np.random.Generator) -> str:
    """How the numbers of the traces `kept` change, if at all, when all other traces get other rewards."""
    fresh = np.where(np.isnan(batch.reward), np.nan, draw_rewards(batch.graph, rng))
    other = dataclasses.replace(batch, reward=np.where(kept, batch.reward, fresh).astype(np.float32))
    events = np.zeros(SIZES.events, bool)
    events[: batch.graph.num_events] = kept[batch.graph.trace_ids]
    return _differ(s.run(padded(other, SIZES)), s.run(padded(batch, SIZES)), events, exactly=True)


def regular_is_valid(s: Subject) -> str:
    """Where nothing is missing, every action is valid."""
    batch = padded(s.regular(), SIZES)
    out = s.run(batch)
    wrong = batch.graph.event_mask & batch.graph.action_mask & ~out["valid"]
    at = int(np.argmax(wrong))
    return f"event {at} is not valid, with reason {out['reason'][at]}" if wrong.any() else ""


def finite(s: Subject) -> str:
    """Valid numbers are finite (`stderr` may be infinite) and scales positive, in every awkward case."""
    for batch in (padded(s.ragged(), SIZES), padded(s.ragged(1), SIZES), _tied(s), _all_masked(s)):
        out = s.run(batch)
        for name in ("credit", "baseline", "scale", "advantage"):
            wrong = out["valid"] & ~(np.isfinite(out[name]) & ((out[name] > 0) | (name != "scale")))
            if wrong.any():
                return f"{name} of event {int(np.argmax(wrong))} is {out[name][np.argmax(wrong)]}"
        if (np.isnan(out["stderr"]) | (out["stderr"] < 0)).any():
            return "stderr is NaN or negative"
    return ""


def gradients(s: Subject) -> str:
    """Gradients to rewards and evidence are finite at ties, in groups of one and of none, and where all is masked."""

    @functools.partial(jax.jit, compiler_options=QUICK)
    @jax.grad
    def slopes_of(floats: dict[str, Any], batch: Batch) -> jax.Array:
        evidence = {**batch.evidence, **{name: values for name, values in floats.items() if name in batch.evidence}}
        parts = _numbers(s.direct(Batch(batch.graph, floats["the reward"], floats["the event reward"], evidence)))
        weight = jnp.sin(jnp.arange(SIZES.events) + 1.0)  # uneven, so that nothing cancels
        stderr = jnp.where(jnp.isfinite(parts["stderr"]), parts["stderr"], 0)
        return sum(
            (jnp.sum(weight * parts[name]) for name in ("advantage", "credit", "baseline", "scale")),
            start=jnp.sum(weight * stderr),
        )

    for batch in (padded(s.ragged(), SIZES), _tied(s), _all_masked(s)):
        floats = {name: values for name, values in batch.evidence.items() if values.dtype.kind == "f"}
        floats |= {"the reward": batch.reward, "the event reward": batch.event_reward}
        for name, slope in slopes_of(floats, batch).items():
            wrong = ~np.isfinite(np.asarray(slope))
            if wrong.any():
                return f"the gradient to {name}, at place {int(np.argmax(wrong))}, is not finite"
    return ""


def dtypes(s: Subject) -> str:
    """float32 stays float32, also where 64 bits are enabled; bfloat16 is computed in float32; float64 is kept."""
    batch = padded(s.regular(), SIZES)
    expected = s.run(batch)
    found = {jnp.float32: expected, jnp.bfloat16: s.eager(_cast(batch, jnp.bfloat16))}
    with _x64():
        found[jnp.float64] = s.once(_cast(batch, jnp.float64))
        shapes = jax.eval_shape(lambda given: _numbers(s.direct(given)), batch)
    for name in NUMBERS:
        if shapes[name].dtype != jnp.float32:
            return f"{name} is {shapes[name].dtype} for float32 where 64 bits are enabled; expected float32"
        for given, numbers in found.items():
            promised = jnp.promote_types(given, jnp.float32)
            if numbers[name].dtype != promised:
                return f"{name} is {numbers[name].dtype} for {jnp.dtype(given).name}; expected {promised}"
    for given, numbers in found.items():
        if detail := _differ(numbers, expected, batch.graph.event_mask):
            return f"{detail} (in {jnp.dtype(given).name}, against float32)"
    return ""


def _x64() -> contextlib.AbstractContextManager[Any]:
    """A context with 64 bits enabled; older JAX has it under `jax.experimental`."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64(True)


def _cast(batch: Batch, dtype: Any) -> Batch:
    def cast(values: np.ndarray) -> Any:
        return jnp.asarray(values).astype(dtype) if values.dtype.kind == "f" else values

    evidence = {name: cast(values) for name, values in batch.evidence.items()}
    return Batch(batch.graph, cast(batch.reward), cast(batch.event_reward), evidence)


def equal_rewards(s: Subject) -> str:
    """Where all rewards of the scope are equal, whatever the value, advantages are exactly 0."""
    if s.scope not in ("group", "batch"):
        raise _NotApplicable("nothing is compared within a group")
    batch = s.regular()
    groups = batch.graph.group_ids
    for values in ([0.1, 1 / 3, 10000.1, -7.3], [0.3, 0.7, 1e-3, 3e6]):
        reward = np.array(values, np.float32)[groups if s.scope == "group" else np.zeros_like(groups)]
        flat = dataclasses.replace(batch, reward=reward, event_reward=np.zeros_like(batch.event_reward))
        advantage = s.run(padded(flat, SIZES))["advantage"]
        if advantage.any():
            at = int(np.argmax(advantage != 0))
            return (
                f"advantage of event {at} is {advantage[at]} where every reward is {reward[batch.graph.trace_ids[at]]}"
            )
    return ""


def vmap(s: Subject) -> str:
    """Mapped over several rewards it gives what it gives for each of them."""
    batch = padded(s.ragged(), SIZES)
    real = s.ragged().graph
    draws = [draw_rewards(real, np.random.default_rng(s.seed + seed)) for seed in range(3)]
    rewards = np.stack([np.where(np.isnan(batch.reward), np.nan, np.resize(r, SIZES.traces)) for r in draws])
    rewards = rewards.astype(np.float32)
    over_rewards = jax.vmap(lambda r, b: _numbers(s.direct(dataclasses.replace(b, reward=r))), in_axes=(0, None))
    mapped = jax.jit(over_rewards, compiler_options=QUICK)(rewards, batch)
    for i, reward in enumerate(rewards):
        one = s.run(dataclasses.replace(batch, reward=reward))
        if detail := _differ({k: np.asarray(v)[i] for k, v in mapped.items()}, one, batch.graph.event_mask):
            return f"{detail} (mapped)"
    return ""


def no_event_reward(s: Subject) -> str:
    """No event rewards is the same as event rewards of 0."""
    if not s.takes_event_reward:
        raise _NotApplicable("the method takes no event_reward")
    batch = padded(s.ragged(), SIZES)
    zeros = s.run(dataclasses.replace(batch, event_reward=np.zeros_like(batch.event_reward)))
    with jax.disable_jit():
        none = _numbers(s.fn(batch.graph, batch.reward, event_reward=None, **batch.evidence))
    return _differ({name: np.asarray(v) for name, v in none.items()}, zeros, batch.graph.event_mask)


def unit(s: Subject) -> str:
    """The result names a known unit, and within a unit valid events have the same numbers."""
    batch = padded(s.ragged(), SIZES)
    with jax.disable_jit():
        declared = s.direct(batch).unit
    if declared not in (*LEVELS, *KINDS):
        return f"unit is {declared!r}; expected one of {', '.join((*LEVELS, *KINDS))}"
    level: Level = next((level for level in LEVELS if level == declared), "event")  # a unit of a kind is the event
    ids = np.asarray(level_ids(batch.graph, level))
    out = s.run(batch)
    for name in ("credit", "baseline", "scale"):
        first: dict[int, float] = {}
        for at in np.flatnonzero(out["valid"]):
            value = float(out[name][at])
            if first.setdefault(int(ids[at]), value) != value:
                return f"{name} of event {at} is {value}; another event of its {declared} has {first[int(ids[at])]}"
    return ""


def _tied(s: Subject) -> Batch:
    """All rewards equal, none at events."""
    batch = s.ragged()
    return padded(
        dataclasses.replace(
            batch, reward=np.full_like(batch.reward, 0.1), event_reward=np.zeros_like(batch.event_reward)
        ),
        SIZES,
    )


def _all_masked(s: Subject) -> Batch:
    """Nothing but padding."""
    batch = padded(s.ragged(), SIZES)
    off = {
        name: np.zeros_like(getattr(batch.graph, name))
        for name in ("event_mask", "action_mask", "edge_mask", "agent_mask", "trace_mask")
    }
    return dataclasses.replace(batch, graph=dataclasses.replace(batch.graph, **off))


LAWS: dict[str, Callable[[Subject], str]] = {
    law.__name__: law
    for law in (
        jit,
        padding_is_zero,
        padding_changes_nothing,
        poison,
        order,
        missing_reward,
        independence,
        tight_scope,
        response,
        regular_is_valid,
        finite,
        gradients,
        dtypes,
        equal_rewards,
        vmap,
        no_event_reward,
        unit,
    )
}
"""Every law by name, in the order in which they are tried."""
