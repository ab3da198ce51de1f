"""Every method of the table obeys every law; every law is broken by some method that deserves it."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
import credit.laws.trial_batches
from credit.laws import LAWS, LawError, Subject, check
from estimators.base import Credit, Reason, check_event_array, finish
from graphs.floats import at_least_float32
from graphs.segment import safe_divide, segment_count, segment_first, segment_sum
from graphs.traces.schema import TRACE_EVIDENCE

SETTINGS: dict[str, credit.Method] = {
    name: dataclasses.replace(credit.METHODS[method], fn=functools.partial(credit.METHODS[method].fn, **options))
    for name, method, options in (
        ("dr_mas by role, traces", "dr_mas", {"by": "role_name", "population": "trace"}),
        ("dr_mas vanilla", "dr_mas", {"by": None, "population": "trace"}),
        ("dr_mas_rloo vanilla", "dr_mas_rloo", {"by": None, "population": "trace"}),
        ("reinforce_pp_baseline by agent", "reinforce_pp_baseline", {"by": "agent_name", "population": "row"}),
        ("gae along agents", "gae", {"along": "agent", "discount": 0.9}),
        ("gae along causes", "gae", {"along": "causal", "discount": 0.9}),
    )
}
SETTINGS["reinforce_pp with tokens"] = dataclasses.replace(credit.METHODS["reinforce_pp"], needs=("tokens",))
SUBJECTS = {**credit.METHODS, **SETTINGS}

PRESETS = {
    "agent_lightning", "agent_lightning_rows", "c3_magrpo", "dr_grpo", "foldgrpo_fork", "matpo", "mrlx",
    "openrlhf_group_norm", "reinforce_batch", "slime_grpo", "trl_grpo", "verl_grpo", "verl_rloo", "wideseek_r1",
}  # fmt: skip
"""Other constants for a kernel that the default run tries under another name; these run with the slow tests."""


def grouped(names: Any) -> list[Any]:
    """Parameters, those of presets marked as slow. The name comes first: `conftest` keeps its tests in one process."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in PRESETS)) for name in names]


@functools.cache
def subject(name: str) -> Subject:
    method = SUBJECTS[name]
    levels = {need: "trace" if need in TRACE_EVIDENCE else "event" for need in method.needs}
    return Subject(method.fn, levels, method.scope, seed=0)


compiled_at = 0


@pytest.fixture(autouse=True)
def forget_subjects(compiled_since: int) -> None:
    """A subject counts how often it was traced, so it goes when its compiled function goes."""
    global compiled_at
    if compiled_since != compiled_at:
        compiled_at = compiled_since
        subject.cache_clear()


COSTLY = ("jit", "padding_changes_nothing", "gradients", "dtypes", "vmap", "no_event_reward")
"""Laws that compile the method anew or run it uncompiled; the others share one compiled function."""


@pytest.mark.optimised
@pytest.mark.parametrize("law", [law for law in LAWS if law not in COSTLY])
@pytest.mark.parametrize("name", grouped(credit.METHODS))
def test_method_obeys_law(name: str, law: str) -> None:
    result = subject(name).try_law(law, LAWS[law])
    assert result.passed is not False, result.detail


@pytest.mark.optimised
@pytest.mark.every_method
@pytest.mark.parametrize("law", COSTLY)
@pytest.mark.parametrize("name", credit.METHODS)
def test_method_obeys_costly_law(name: str, law: str) -> None:
    result = subject(name).try_law(law, LAWS[law])
    assert result.passed is not False, result.detail


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", grouped(SETTINGS))
def test_settings_obey_laws(name: str, law: str) -> None:
    result = subject(name).try_law(law, LAWS[law])
    assert result.passed is not False, result.detail


# --- Each method is what its formula says, computed slowly (tests/references) -----------------------------------------


def _references() -> ModuleType:
    folder = Path(__file__).parents[1] / "references"
    spec = importlib.util.spec_from_file_location(
        "references", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["references"] = module
    spec.loader.exec_module(module)
    return module


references = _references()


def agrees(s: Subject, reference: Callable[..., dict[int, float]], seed: int, joint: bool) -> None:
    """On a batch with noise on every number and NaN in the padding: same actions answered, same advantages."""
    batch = references.perturbed(seed, s.needs, joint)
    found = s.run(credit.laws.trial_batches.padded(batch, credit.laws.trial_batches.SIZES, poison=True))
    expected = reference(references.plain(batch))
    assert expected and np.flatnonzero(found["valid"]).tolist() == sorted(expected)
    places = sorted(expected)
    numbers = [expected[place] for place in places]
    # Small spreads enlarge float32's rounding of the scores that they divide.
    np.testing.assert_allclose(found["advantage"][places], numbers, rtol=1e-5, atol=1e-5)
    assert not found["advantage"][~found["valid"]].any()


def test_references_are_of_registered_methods() -> None:
    """A new method may come without one; a renamed or removed one may not leave its reference behind."""
    assert set(references.REFERENCES) <= set(credit.METHODS)
    assert {name for name, _, _ in references.VARIANTS} <= set(credit.METHODS)


@pytest.mark.optimised
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", references.REFERENCES)
def test_method_is_its_reference(name: str, seed: int) -> None:
    agrees(subject(name), references.REFERENCES[name], seed, joint=name == "magrpo")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "reference"),
    [pytest.param(*variant, id=f"{variant[0]} {variant[1]}") for variant in references.VARIANTS],
)
def test_options_are_their_references(name: str, options: dict[str, Any], reference: Callable[..., Any]) -> None:
    method, needs = credit.METHODS[name], subject(name).needs
    s = Subject(functools.partial(method.fn, **options), needs, method.scope, seed=0)
    for seed in range(3):
        agrees(s, reference, seed, joint=name == "magrpo")


@pytest.mark.parametrize("name", grouped(credit.METHODS))
def test_method_is_what_the_table_says(name: str) -> None:
    method, s = credit.METHODS[name], subject(name)
    s.run(credit.laws.trial_batches.padded(s.regular(), credit.laws.trial_batches.SIZES))
    assert (s.unit, s.estimand) == (method.unit, method.estimand)


# --- Each law is broken by the method below it ------------------------------------------------------------------------


def good(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    """Reward against the group's mean, each trace once: what the flawed ones below should have been."""
    reward = at_least_float32(reward)
    there = jnp.asarray(graph.trace_mask) & jnp.isfinite(reward)
    acted = segment_count(graph.trace_ids, graph.num_traces, graph.event_mask & graph.action_mask) > 0
    x = jnp.where(there, reward, 0)
    if event_reward is not None:
        step, real = check_event_array(graph, "event_reward", event_reward)
        x = x + segment_sum(step, graph.trace_ids, graph.num_traces, real)
    return against_mean(graph, x, there & acted)


def against_mean(graph: Any, x: Any, there: Any, **changes: Any) -> Credit:
    groups, num = jnp.asarray(graph.group_ids), graph.num_traces
    n = segment_count(groups, num, there, x.dtype)
    reference = x[segment_first(groups, num, there)]
    relative = segment_sum(x - reference[groups], groups, num, there)
    mean = reference + safe_divide(relative, n)
    trace = jnp.asarray(graph.trace_ids)
    reason = jnp.where(there, jnp.where(n[groups] > 1, Reason.VALID, Reason.SINGLETON), Reason.NO_REWARD)
    return finish(
        graph,
        **{
            "credit": x[trace],
            "baseline": mean[groups][trace],
            "scale": jnp.ones_like(x[trace]),
            "stderr": jnp.full_like(x[trace], jnp.inf),
            "reason": reason[trace],
            "unit": "trace",
            "estimand": "return",
            "source": "good",
            "centred": False,
            "own_outcome": True,
            **changes,
        },
    )


def replaced(result: Credit, **changes: Any) -> Credit:
    return dataclasses.replace(result, **changes)


def concretises(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    if float(reward[0]) > 0:
        return good(graph, reward, event_reward=event_reward)
    return good(graph, reward, event_reward=event_reward)


def differs_when_compiled(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, credit=out.credit * (2.0 if isinstance(reward, jax.core.Tracer) else 1.0))


def fills_padding(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, credit=jnp.where(graph.event_mask, out.credit, 7.0))


def divides_by_padded_length(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, scale=jnp.where(out.valid, graph.num_events / 100.0, 1.0))


def forgets_the_mask(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    step = jax.ops.segment_sum(jnp.asarray(event_reward), graph.trace_ids, num_segments=graph.num_traces)
    return good(graph, reward + step)


def counts_from_the_first(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(
        out, credit=jnp.where(out.valid, out.credit + 0.01 * jnp.asarray(graph.trace_ids, out.credit.dtype), 0)
    )


def takes_missing_for_zero(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    return good(graph, jnp.where(jnp.isfinite(reward), reward, 0), event_reward=event_reward)


def looks_at_the_batch(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    spread = jnp.max(jnp.where(jnp.isfinite(reward) & graph.trace_mask, reward, 0))
    return replaced(out, scale=jnp.where(out.valid, 1 + jnp.abs(spread), 1))


def looks_at_itself_only(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, baseline=jnp.zeros_like(out.baseline))


def ignores_reward(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, credit=jnp.zeros_like(out.credit), baseline=jnp.zeros_like(out.credit))


def refuses_agents(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    off = out.valid & (jnp.asarray(graph.agent_ids) % 2 == 1)
    return replaced(
        out,
        credit=jnp.where(off, 0, out.credit),
        baseline=jnp.where(off, 0, out.baseline),
        reason=jnp.where(off, Reason.NO_EVIDENCE, out.reason).astype(jnp.int8),
    )


def divides_by_spread(root: Callable[[Any], Any]) -> Callable[..., Credit]:
    def method(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        out = good(graph, reward, event_reward=event_reward)
        group = jnp.asarray(graph.group_ids)[graph.trace_ids]
        squares = segment_sum((out.credit - out.baseline) ** 2, group, graph.num_traces, out.valid)
        return replaced(out, scale=jnp.where(out.valid, root(squares)[group], 1.0))

    return method


divides_by_zero = divides_by_spread(jnp.sqrt)
has_infinite_slopes = divides_by_spread(lambda squares: jnp.sqrt(squares) + 1e-6)


def has_double_constants(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, stderr=out.stderr.astype(float) + jnp.zeros(graph.num_events))


def computes_in_bfloat16(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    if reward.dtype != jnp.bfloat16:
        return out
    return replaced(out, baseline=(out.baseline / 3).astype(jnp.bfloat16).astype(jnp.float32) * 3)


def rounds_at_ties(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, baseline=jnp.where(out.valid, out.credit * 1.000001, 0))


def divides_marks_by_the_spread_of_outcomes(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    plain = divides_by_spread(lambda squares: jnp.sqrt(squares + 1e-12))(graph, reward)
    marked = good(graph, reward, event_reward=event_reward)
    return replaced(marked, scale=plain.scale)


def keeps_the_last_axis(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    @jax.custom_batching.custom_vmap
    def double(x: Any) -> Any:
        return x

    @double.def_vmap
    def rule(size: int, batched: Any, x: Any) -> Any:
        return jnp.broadcast_to(x[:1], x.shape), True

    return good(graph, double(reward), event_reward=event_reward)


def dislikes_no_event_reward(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return out if event_reward is not None else replaced(out, credit=out.credit * 2)


def splits_units(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    return replaced(out, credit=jnp.where(out.valid, out.credit + check_event_array(graph, "e", event_reward)[0], 0))


def names_no_unit(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    return replaced(good(graph, reward, event_reward=event_reward), unit="team")


FLAWED: list[tuple[str, Callable[..., Credit], str]] = [
    ("jit", concretises, "Abstract tracer"),
    ("jit", differs_when_compiled, "credit of event"),
    ("padding_is_zero", fills_padding, "is 7.0; expected 0.0"),
    ("padding_changes_nothing", divides_by_padded_length, "scale of event"),
    ("poison", forgets_the_mask, "of event"),
    ("order", counts_from_the_first, "after renumbering"),
    ("missing_reward", takes_missing_for_zero, "trace without reward is valid"),
    ("independence", looks_at_the_batch, "another group"),
    ("tight_scope", looks_at_itself_only, "scope 'group' is too wide"),
    ("response", ignores_reward, "no reward of group 0"),
    ("regular_is_valid", refuses_agents, "is not valid, with reason 5"),
    ("finite", divides_by_zero, "scale of event"),
    ("gradients", has_infinite_slopes, "the gradient to the event reward"),
    ("dtypes", has_double_constants, "stderr is float64 for float32"),
    ("dtypes", computes_in_bfloat16, "in bfloat16, against float32"),
    ("equal_rewards", rounds_at_ties, "where every reward is"),
    ("bounded", divides_marks_by_the_spread_of_outcomes, "where rewards of a group differ by"),
    ("vmap", keeps_the_last_axis, "(mapped)"),
    ("no_event_reward", dislikes_no_event_reward, "credit of event"),
    ("unit", splits_units, "another event of its trace"),
    ("unit", names_no_unit, "unit is 'team'"),
]


def test_every_law_is_broken_by_some_method() -> None:
    assert {law for law, _, _ in FLAWED} | {"absent_evidence"} == set(LAWS)


@pytest.mark.parametrize("name", ["gae", "coma", "remax"])
def test_law_catches_a_method_fed_with_zeros_for_absent_evidence(name: str) -> None:
    method = credit.METHODS[name]

    def fed_with_zeros(graph: Any, reward: Any, *, event_reward: Any = None, **evidence: Any) -> Credit:
        zeros = {key: jnp.where(v >= 0, v, jnp.zeros_like(v)) for key, v in evidence.items()}
        return method.fn(graph, reward, event_reward=event_reward, **zeros)

    flawed = dataclasses.replace(method, fn=fed_with_zeros)
    report = check(flawed, skip=[law for law in LAWS if law != "absent_evidence"], strict=False)
    assert [result.law for result in report.broken] == ["absent_evidence"]
    assert "counts as 0 where it is absent" in report.broken[0].detail


@pytest.mark.slow
def test_the_sound_method_breaks_no_law() -> None:
    report = check(good)
    assert not report.broken
    assert [result.law for result in report.results] == list(LAWS)


@pytest.mark.parametrize(("law", "method", "words"), FLAWED, ids=[f"{law}-{fn.__name__}" for law, fn, _ in FLAWED])
def test_law_catches(law: str, method: Callable[..., Credit], words: str) -> None:
    with pytest.raises(LawError, match=r"breaks the law") as caught:
        check(method, skip=[name for name in LAWS if name != law])
    assert str(caught.value).startswith(f"{method.__name__} breaks the law {law!r}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("scope", "method", "law"),
    [
        ("trace", "rloo", "independence"),
        ("group", "reinforce_batch", "independence"),
        ("group", "moving_average", "independence"),
        ("sequence", "rloo", "independence"),
        ("group", "remax", "tight_scope"),
        ("batch", "rloo", "tight_scope"),
        ("sequence", "remax", "tight_scope"),
    ],
)
def test_a_wrong_scope_is_caught(scope: Any, method: str, law: str) -> None:
    s = subject(method)
    wrong = Subject(s.fn, s.needs, scope, 0)
    wrong.jitted = s.jitted
    assert wrong.try_law(law, LAWS[law]).passed is False


def scales_event_rewards_by_the_largest(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    step, _ = check_event_array(graph, "event_reward", event_reward)
    largest = jnp.max(jnp.abs(step))
    return good(graph, reward, event_reward=step / jnp.where(largest > 0, largest, 1))


def divides_by_the_number_of_outcomes(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    scored = jnp.sum(jnp.where(jnp.isfinite(reward) & graph.trace_mask, 1, 0)).astype(out.credit.dtype)
    return replaced(out, scale=jnp.where(out.valid, scored, 1))


def subtracts_the_largest_value(graph: Any, reward: Any, *, event_reward: Any = None, value: Any) -> Credit:
    out = good(graph, reward, event_reward=event_reward)
    largest = jnp.max(check_event_array(graph, "value", value)[0])
    return replaced(out, baseline=jnp.where(out.valid, out.baseline + largest, 0))


@pytest.mark.parametrize(
    ("method", "needs", "what"),
    [
        (scales_event_rewards_by_the_largest, (), "event rewards"),
        (divides_by_the_number_of_outcomes, (), "outcomes, some of which are now missing,"),
        (subtracts_the_largest_value, ("value",), "evidence"),
    ],
)
def test_all_that_other_groups_log_is_beyond_the_group(
    method: Callable[..., Credit], needs: tuple[str, ...], what: str
) -> None:
    levels = {need: "event" for need in needs}
    broken = Subject(method, levels, "group", 0).try_law("independence", LAWS["independence"])
    assert broken.passed is False and f"before the {what} of another group changed" in broken.detail
    assert Subject(method, levels, "batch", 0).try_law("tight_scope", LAWS["tight_scope"]).passed


def test_who_declares_that_no_outcome_enters_is_held_to_it() -> None:
    assert subject("coma").try_law("response", LAWS["response"]).passed is None

    def hides_its_outcome(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        return replaced(good(graph, reward, event_reward=event_reward), own_outcome=False)

    with pytest.raises(LawError, match="though it declares that no outcome enters"):
        check(hides_its_outcome, scope="trace", skip=[name for name in LAWS if name != "response"])


def test_an_overflow_is_told_with_the_rewards_that_make_it() -> None:
    def between(graph: Any, reward: Any, *, event_reward: Any = None) -> Credit:
        result = good(graph, reward, event_reward=event_reward)
        return replaced(result, baseline=(result.baseline + result.credit) / 2)

    with pytest.raises(LawError, match=r"event \d+ is -?inf, where rewards are ±3e38: a sum of two overflows"):
        check(between, skip=[name for name in LAWS if name != "finite"])


def test_check_takes_entries_of_the_table_and_partials() -> None:
    few = [name for name in LAWS if name not in ("jit", "response")]
    assert "laws of remax" in str(check(credit.METHODS["remax"], skip=few))
    report = check(functools.partial(credit.grpo, eps=1e-4), skip=few)
    assert report.method == "grpo" and all(result.passed for result in report.results)


def test_evidence_of_ones_own_is_drawn() -> None:
    def mine(graph: Any, reward: Any, *, mood: Any) -> Credit:
        seen.append(mood.shape)
        shifted = good(graph, reward)
        amount = shifted.credit + jnp.nan_to_num(at_least_float32(mood))
        return replaced(shifted, credit=jnp.where(shifted.valid, amount, 0), unit="event")

    seen: list[tuple[int, ...]] = []
    report = check(mine, needs={"mood": "event"}, skip=["equal_rewards", "absent_evidence"])
    assert set(seen) >= {(256,), (448,)}
    assert next(r for r in report.results if r.law == "no_event_reward").passed is None


def test_a_report_without_raising_tells_the_rest() -> None:
    report = check(concretises, strict=False)
    assert [result.law for result in report.broken] == ["jit"]
    assert all(result.passed is None for result in report.results[1:])
    assert "jit" in str(report) and "BROKEN" in str(report)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scope": "team"}, "scope is 'team'"),
        ({"skip": ["gravity"]}, "skip has 'gravity'"),
        ({"needs": ["vibes"]}, "needs has 'vibes'"),
    ],
)
def test_unknown_names_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(good, **options)


def test_ragged_batches_hold_what_they_promise() -> None:
    for seed in range(5):
        batch = credit.laws.trial_batches.ragged(seed, {"value": "event", "tokens": "event", "greedy_reward": "trace"})
        graph = batch.graph
        assert np.isnan(batch.reward).sum() == 2
        assert (np.bincount(graph.group_ids) == [5, 3, 1, 4, 2, 3, 2]).all()
        assert not np.isin(np.arange(graph.num_traces), graph.trace_ids[graph.action_mask]).all()
        assert not np.isin(np.arange(graph.num_agents), graph.agent_ids).all()
        assert (graph.senders < graph.receivers).all() and np.isnan(batch.evidence["value"]).any()
        assert (batch.evidence["tokens"] == -1).any()


def test_the_page_of_laws_lists_each_of_them() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "laws.md").read_text()
    section = page.split("## The laws")[1].split("\n## ")[0]
    listed = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    assert listed == list(LAWS)
