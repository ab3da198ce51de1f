"""Laws of a method as a function of arrays: compiled or not, padded, poisoned, mapped, differentiated, in any float."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credit.laws.subject import NUMBERS, QUICK, Subject, all_masked, differ, extreme, numbers, tied
from credit.laws.trial_batches import Batch, draw_rewards

_REAL = (
    "`graph.trace_mask` and `graph.event_mask` say what is real; `estimators.base.check_reward` gives 0 elsewhere, and "
    "`scored`, the traces to count"
)


def jit(s: Subject) -> str:
    """The method compiles once for all batches of one shape, and the result equals the eager one."""
    for batch in (s.padded(s.ragged()), s.padded(s.regular(1))):
        if detail := differ(s.run(batch), s.eager(batch), batch.graph.event_mask):
            return detail
    return "" if s.traced == 1 else f"traced {s.traced} times for batches of one shape; expected 1"


def padding_is_zero(s: Subject) -> str:
    """In padding and where `valid` is False all numbers are 0 and `scale` is 1; only actions are valid."""
    for batch in (s.padded(s.ragged()), all_masked(s)):
        out = s.run(batch)
        off = ~out["valid"]
        blank = {name: np.full(len(off), float(name == "scale")) for name in NUMBERS}
        if detail := differ({name: out[name] for name in NUMBERS}, blank, off, exactly=True):
            return f"{detail} ({'padding' if not batch.graph.event_mask.all() else 'invalid'})"
        wrong = out["valid"] & ~(batch.graph.event_mask & batch.graph.action_mask)
        if wrong.any():
            return f"event {int(np.argmax(wrong))} is valid; it is padding or no action"
    return ""


def padding_changes_nothing(s: Subject) -> str:
    """Padding leaves the real numbers as they are."""
    batch = s.ragged()
    n = batch.graph.num_events
    inside = {name: values[:n] for name, values in s.run(s.padded(batch)).items()}
    detail = differ(inside, s.once(batch), np.ones(n, bool))
    return f"{detail}, as without padding: {_REAL}" if detail else ""


def poison(s: Subject) -> str:
    """NaN and infinity in padded rewards, evidence and times change no number, bit for bit."""
    batch = s.ragged()
    clean, poisoned = s.run(s.padded(batch)), s.run(s.padded(batch, poison=True))
    detail = differ(poisoned, clean, np.ones(s.room.events, bool), exactly=True)
    return f"{detail}, as with zeros in the padding: {_REAL}" if detail else ""


def finite(s: Subject) -> str:
    """Valid numbers are finite (`stderr` may be infinite) and scales positive, also for rewards of ±3e38."""
    cases = (
        ("", s.padded(s.ragged())),
        ("", s.padded(s.ragged(1))),
        (", where rewards are equal", tied(s)),
        (", where nothing is real", all_masked(s)),
        (", where rewards are ±3e38: a sum of two overflows; differences and means of halves do not", extreme(s)),
    )
    for where, batch in cases:
        out = s.run(batch)
        for name in ("credit", "baseline", "scale", "advantage"):
            wrong = out["valid"] & ~(np.isfinite(out[name]) & ((out[name] > 0) | (name != "scale")))
            if wrong.any():
                return f"{name} of event {int(np.argmax(wrong))} is {out[name][np.argmax(wrong)]}{where}"
        if (np.isnan(out["stderr"]) | (out["stderr"] < 0)).any():
            return f"stderr is NaN or negative{where}"
    return ""


def gradients(s: Subject) -> str:
    """Gradients to rewards and evidence are finite at ties, in groups of one and of none, and where all is masked."""

    @functools.partial(jax.jit, compiler_options=QUICK)
    @jax.grad
    def slopes_of(floats: dict[str, Any], batch: Batch) -> jax.Array:
        evidence = {**batch.evidence, **{name: values for name, values in floats.items() if name in batch.evidence}}
        parts = numbers(s.direct(Batch(batch.graph, floats["the reward"], floats["the event reward"], evidence)))
        weight = jnp.sin(jnp.arange(1.0, 1 + s.room.events))  # uneven, so that nothing cancels
        stderr = jnp.where(jnp.isfinite(parts["stderr"]), parts["stderr"], 0)
        return sum(
            (jnp.sum(weight * parts[name]) for name in ("advantage", "credit", "baseline", "scale")),
            start=jnp.sum(weight * stderr),
        )

    for batch in (s.padded(s.ragged()), tied(s), all_masked(s)):
        s.run(batch)  # which tells whether anything is answered
        floats = {name: values for name, values in batch.evidence.items() if values.dtype.kind == "f"}
        floats |= {"the reward": batch.reward, "the event reward": batch.event_reward}
        for name, slope in slopes_of(floats, batch).items():
            wrong = ~np.isfinite(np.asarray(slope))
            if wrong.any():
                return f"the gradient to {name}, at place {int(np.argmax(wrong))}, is not finite"
    return ""


def dtypes(s: Subject) -> str:
    """float32 stays float32, also with 64 bits enabled; bfloat16 is computed in float32; float64 stays float64."""
    batch = s.padded(s.regular())
    expected = s.run(batch)
    results = {jnp.float32: expected, jnp.bfloat16: s.once(_cast(batch, jnp.bfloat16))}
    with jax.enable_x64(True):
        results[jnp.float64] = s.once(_cast(batch, jnp.float64))
        shapes = jax.eval_shape(lambda trial: numbers(s.direct(trial)), batch)
    for name in NUMBERS:
        if shapes[name].dtype != jnp.float32:
            made = "make constants of an array's dtype, as jnp.zeros_like(x)"
            return f"{name} is {shapes[name].dtype} for float32 where 64 bits are enabled; expected float32: {made}"
        for trial, out in results.items():
            promised = jnp.dtype(jnp.float64 if trial is jnp.float64 else jnp.float32)
            if out[name].dtype != promised:
                narrowed = "keep the dtype of estimators.base.check_reward, float32 or wider"
                return f"{name} is {out[name].dtype} for {jnp.dtype(trial).name}; expected {promised}: {narrowed}"
    for trial, out in results.items():
        if detail := differ(out, expected, batch.graph.event_mask):
            widened = "estimators.base.check_reward and check_event_array give float32 or wider"
            return f"{detail} (in {jnp.dtype(trial).name}, against float32: {widened})"
    return ""


def _cast(batch: Batch, dtype: Any) -> Batch:
    def cast(values: np.ndarray) -> Any:
        return jnp.asarray(values).astype(dtype) if values.dtype.kind == "f" else values

    evidence = {name: cast(values) for name, values in batch.evidence.items()}
    return Batch(batch.graph, cast(batch.reward), cast(batch.event_reward), evidence)


def vmap(s: Subject) -> str:
    """Mapped over several rewards, the method gives the result of each."""
    batch = s.padded(s.ragged())
    real = s.ragged().graph
    draws = [draw_rewards(real, np.random.default_rng(s.seed + seed)) for seed in range(3)]
    rewards = np.stack([np.where(np.isnan(batch.reward), np.nan, np.resize(r, s.room.traces)) for r in draws])
    rewards = rewards.astype(np.float32)
    over_rewards = jax.vmap(lambda r, b: numbers(s.direct(dataclasses.replace(b, reward=r))), in_axes=(0, None))
    mapped = jax.jit(over_rewards, compiler_options=QUICK)(rewards, batch)
    for i, reward in enumerate(rewards):
        single = s.run(dataclasses.replace(batch, reward=reward))
        if detail := differ({k: np.asarray(v)[i] for k, v in mapped.items()}, single, batch.graph.event_mask):
            return f"{detail} (mapped)"
    return ""
