"""Every method of the table obeys every law, and is what its formula says."""

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
import numpy as np
import pytest

import credit
import credit.laws.trial_batches
from credit.laws import LAWS, Subject
from credit.laws.subject import differ
from estimators.baselines.roles import sub_agents
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


def solvers_within(graph: Any, reward: Any, *, event_reward: Any = None, agent_reward: Any = None) -> credit.Credit:
    """Spawned agents are compared within their trace."""
    own = {"event_reward": event_reward, "agent_reward": agent_reward}
    return credit.hierarchical_grpo(graph, reward, **own, episode_agents=sub_agents(graph))


SETTINGS |= {
    f"{name} of agents": dataclasses.replace(credit.METHODS[name], fn=fn, needs=("agent_reward",), shaped=True)
    for name, fn in (
        ("rloo", functools.partial(credit.rloo, by="task,agent", population="agent")),
        ("hierarchical_grpo", solvers_within),
        ("spiral_rae", functools.partial(credit.spiral_rae, population="agent")),
    )
}
SUBJECTS = {**credit.METHODS, **SETTINGS}

NEWER = {
    "max_rl", "opo", "gpg", "rllm_reinforce_pp", "igpo", "igrpo", "hgpo", "g2po", "graph_gpo",
    "adca_grpo", "ccpo", "marti", "tree_grpo", "hcapo", "hae", "hierarchical_grpo", "unitymas_o",
    "at_grpo", "sepo",
}  # fmt: skip
"""Methods of 2025 and 2026. The default run tries them on worked numbers (tests/golden/test_methods_of_2026.py)."""

PRESETS = {
    "agent_lightning", "agent_lightning_rows", "at_grpo", "c3_magrpo", "dr_grpo", "foldgrpo_fork", "gpg", "igrpo",
    "matpo", "max_rl", "mrlx", "openrlhf_group_norm", "prime_rl_grpo", "reinforce_batch", "rllm_reinforce_pp",
    "slime_grpo", "trl_grpo", "verl_grpo", "verl_rloo", "wideseek_r1",
}  # fmt: skip
"""Other constants for a kernel that the default run tries under another name; these are studies."""


def grouped(names: Any) -> list[Any]:
    """Parameters, marked by when they run. The name comes first: `conftest` keeps its tests in one process."""
    later = dict.fromkeys(NEWER, pytest.mark.slow) | dict.fromkeys(PRESETS, pytest.mark.study)
    return [pytest.param(name, marks=later.get(name, pytest.mark.optimised)) for name in names]


def new_subject(name: str) -> Subject:
    method = SUBJECTS[name]
    levels = {need: "trace" if need in TRACE_EVIDENCE else "event" for need in method.needs}
    of_row = {name: getattr(method, name) for name in ("shaped", "nonnegative", "unbiased")}
    return Subject(method.fn, levels, method.scope, seed=0, **of_row)


subject = functools.cache(new_subject)


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


compiled_at = 0


@pytest.fixture(autouse=True)
def forget_subjects(compiled_since: int) -> None:
    """A subject counts how often it was traced, so it goes when its compiled function goes."""
    global compiled_at
    if compiled_since != compiled_at:
        compiled_at = compiled_since
        subject.cache_clear()


COSTLY = ("jit", "padding_changes_nothing", "gradients", "dtypes", "vmap", "no_event_reward", "replays")
"""Laws that compile the method anew or run it uncompiled; the others share one compiled function."""

OPTIMISED = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
"""What users compile with, whatever flags the tests run with."""


@pytest.mark.every_method(others="slow")
@pytest.mark.parametrize("law", [law for law in LAWS if law not in COSTLY])
@pytest.mark.parametrize("name", grouped(credit.METHODS))
def test_method_obeys_law(name: str, law: str) -> None:
    result = subject(name).try_law(law, LAWS[law])
    assert result.passed is not False and not result.untried, result.detail


@pytest.mark.every_method
@pytest.mark.parametrize("law", [law for law in COSTLY if law != "jit"])
@pytest.mark.parametrize("name", credit.METHODS)
def test_method_obeys_costly_law(name: str, law: str) -> None:
    result = subject(name).try_law(law, LAWS[law])
    assert result.passed is not False and not result.untried, result.detail


@pytest.mark.every_method
@pytest.mark.parametrize("name", credit.METHODS)
def test_method_obeys_jit_in_optimised_code(name: str) -> None:
    """Optimised code fuses and reorders; single operations are quickly compiled, once for all methods."""
    s = new_subject(name)
    s.jitted = jax.jit(s._counted, compiler_options=OPTIMISED)
    result = s.try_law("jit", LAWS["jit"])
    assert result.passed is not False and not result.untried, result.detail


SAME_CODE = ("dr_mas by role, traces", "dr_mas vanilla", "dr_mas_rloo vanilla", "reinforce_pp_baseline by agent")
"""Settings that change which keys a kernel is given; the costly laws are about how its code is compiled."""

KINDS_OF_SETTINGS = ("dr_mas by role, traces", "rloo of agents")
"""CI tries a setting of the keys and one of the outcomes; the others are studies."""


@pytest.mark.parametrize(
    ("name", "law"),
    [
        pytest.param(name, law, marks=pytest.mark.slow if name in KINDS_OF_SETTINGS else pytest.mark.study)
        for name in SETTINGS
        for law in LAWS
        if not (name in SAME_CODE and law in COSTLY)
    ],
)
def test_settings_obey_laws(name: str, law: str) -> None:
    result = subject(name).try_law(law, LAWS[law])
    assert result.passed is not False and not result.untried, result.detail


# --- Each method is what its formula says, computed slowly (tests/references) -----------------------------------------


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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in NEWER | PRESETS else pytest.mark.optimised)
        for name in references.REFERENCES
    ],
)
def test_method_is_its_reference(name: str, seed: int) -> None:
    agrees(subject(name), references.REFERENCES[name], seed, joint=name == "magrpo")


@pytest.mark.every_method
@pytest.mark.parametrize(
    ("name", "options", "reference"),
    [pytest.param(*variant, id=f"{variant[0]} {variant[1]}") for variant in references.VARIANTS],
)
def test_options_are_their_references(name: str, options: dict[str, Any], reference: Callable[..., Any]) -> None:
    method, needs = credit.METHODS[name], subject(name).needs
    s = Subject(functools.partial(method.fn, **options), needs, method.scope, seed=0, nonnegative=method.nonnegative)
    for seed in range(3):
        agrees(s, reference, seed, joint=name == "magrpo")


@pytest.mark.slow
@pytest.mark.parametrize("name", references.OF_AGENTS)
def test_outcomes_of_agents_are_paid_as_their_references(name: str) -> None:
    for seed in range(3):
        agrees(subject(name), references.OF_AGENTS[name], seed, joint=False)


@pytest.mark.parametrize("name", grouped(credit.METHODS))
def test_method_is_what_the_table_says(name: str) -> None:
    method, s = credit.METHODS[name], subject(name)
    same = True
    for batch in map(s.padded, (s.regular(), s.ragged())):
        paid, unpaid = s.run(batch), s.run(dataclasses.replace(batch, event_reward=np.zeros_like(batch.event_reward)))
        same &= not differ(paid, unpaid, batch.graph.event_mask, exactly=True)
    assert (s.unit, s.estimand, same) == (method.unit, method.estimand, method.outcome_alone)
