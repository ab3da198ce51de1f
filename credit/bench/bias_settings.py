"""The settings of `credit.bench.bias` for each method: sampling, evidence, and methods without a score.

A method without an entry here runs with its defaults and true evidence: on one trace if its scope is the trace,
otherwise on groups of 2 and 3 independent traces.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp

import estimators
from credit.bench.enumeration import DECISIONS
from credit.bench.given_values import values_given
from credit.methods.own_functions import is_own, load_function, own_method
from credit.methods.own_results import UnmeasuredError
from credit.methods.published import PUBLISHED, find_method, home_of, is_named
from credit.methods.registry import METHODS
from estimators.base import Credit
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.text import near_names

__all__ = ["OWN_EVIDENCE", "SETTINGS", "UNSCORED", "Setting", "Way", "family", "given_beside", "given_to", "setting"]

Way = Literal["groups", "solo", "trees", "alone", "greedy", "rerun", "frozen", "replays", "nested"]
"""What is sampled: K independent traces; these, and beside each a run without the lead; K trees of two leaves that part
at the second decision; one trace; one and a greedy run; one and, for each decision, the same with choice 0, the rest
run again or kept; one with alternatives to each decision; a tree in which each alternative fans out.
"""


@dataclasses.dataclass(frozen=True)
class Setting:
    """One row of the table.

    Attributes:
      fn: the method.
      way: what is sampled.
      options: arguments other than evidence.
      evidence: arguments by the name of the evidence that each is given (`credit.bench.stacked_batches.stack`).
      reward: "outcome", beside which event rewards are given; or "returns", the outcome together with all event
        rewards, for methods that know no event rewards or read them as something else.
      event_reward: what is given under this name; None where the method takes no event rewards.
      rescaled: whether advantages are multiplied by K / (K − 1).
    """

    fn: Callable[..., Credit]
    way: Way = "groups"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    evidence: Mapping[str, str] = dataclasses.field(default_factory=dict)
    reward: Literal["outcome", "returns"] = "outcome"
    event_reward: str | None = "event_reward"
    rescaled: bool = False

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the evidence that it takes from the world."""
        marks = () if self.event_reward in (None, "event_reward") else (self.event_reward,)
        return (*self.evidence.values(), *marks)


def c3_pooled(graph: EventGraph, reward: Array, *, context: Array, node: Array, env_step: Array) -> Credit:
    """`estimators.c3` with the plain mean over all leaves below a node as its value, in place of child means."""

    def of(number: int) -> Credit:
        only = jnp.asarray(env_step) == number  # a tree of one decision: every leaf is a child of its node
        result: Credit = estimators.c3(
            graph, reward, context=jnp.where(only, context, -1), node=jnp.where(only, node, -1)
        )
        return result

    result = of(0)
    for number in range(1, DECISIONS):
        here = jnp.asarray(env_step) == number
        result = jax.tree.map(lambda new, old, here=here: jnp.where(here, new, old), of(number), result)
    return result


_TREE = {"context": "context", "node": "node"}
_WRONG_VALUES = {"value": "wrong_value"}
_SEGMENTS = {"value": "value", "value_high": "value_high", "segment": "segment"}
_SOLO = {"solo_reward": "solo_return"}

_SPECIAL: dict[str, Setting] = {
    "remax": Setting(estimators.remax, "greedy", evidence={"greedy_reward": "greedy_reward"}),
    "critic": Setting(
        METHODS["critic"].fn, "alone", evidence={"value": "expected_return"}, reward="returns", event_reward=None
    ),
    "puppeteer": Setting(
        METHODS["puppeteer"].fn, "alone", evidence={"tokens": "tokens"}, reward="returns", event_reward=None
    ),
    "difference_reward": Setting(
        estimators.difference_reward, "rerun", evidence={"counterfactual_reward": "counterfactual_reward"}
    ),
    "c3": Setting(estimators.c3, "replays", evidence=_TREE),
    "magrpo": Setting(estimators.magrpo, "replays", evidence=_TREE),
    "off_policy": Setting(
        METHODS["off_policy"].fn,
        evidence={need: need for need in (*METHODS["off_policy"].needs, "target_support")},
    ),
    "hcapo": Setting(
        estimators.hcapo, evidence={"hindsight_log_prob": "hindsight_log_prob"}, reward="returns", event_reward=None
    ),
    "ccpo": Setting(estimators.ccpo, "solo", evidence=_SOLO, reward="returns", event_reward=None),
    "sepo": Setting(estimators.sepo, evidence={"self_rating": "self_rating"}, reward="returns", event_reward=None),
    "tree_grpo": Setting(estimators.tree_grpo, "trees", evidence={"tree": "tree"}),
    "mrlx": Setting(METHODS["mrlx"].fn, evidence={"block": "block"}, reward="returns", event_reward=None),
    "foldgrpo": Setting(METHODS["foldgrpo"].fn, reward="returns", event_reward="mark"),
    "foldgrpo_fork": Setting(METHODS["foldgrpo_fork"].fn, reward="returns", event_reward="mark"),
}

_VARIANTS: dict[str, Setting] = {
    "dr_grpo x K/(K-1)": Setting(estimators.dr_grpo, rescaled=True),
    "discounted_return, discount 0.9": Setting(estimators.discounted_return, "alone", {"discount": 0.9}),
    "gae, lambda 1": Setting(estimators.gae, "alone", {"lambda_": 1.0}, {"value": "value"}),
    "gae, lambda 1, wrong values": Setting(estimators.gae, "alone", {"lambda_": 1.0}, _WRONG_VALUES),
    "gae, wrong values": Setting(estimators.gae, "alone", evidence=_WRONG_VALUES),
    "gae, lambda 1, along agents": Setting(
        estimators.gae, "alone", {"lambda_": 1.0, "along": "agent"}, {"value": "value"}
    ),
    "critic, wrong values": Setting(
        METHODS["critic"].fn, "alone", evidence={"value": "wrong_expected_return"}, reward="returns", event_reward=None
    ),
    "coma, wrong critic": Setting(
        estimators.coma, "alone", evidence={"q_value": "wrong_q_value", "target_value": "wrong_value"}
    ),
    "difference_reward, later actions kept": Setting(
        estimators.difference_reward, "frozen", evidence={"counterfactual_reward": "counterfactual_reward"}
    ),
    "dr_mas, no division": Setting(estimators.dr_mas, options={"scale": "none"}),
    "dr_mas, one sample a trace": Setting(estimators.dr_mas, options={"population": "trace"}),
    "mt_grpo, no division": Setting(estimators.mt_grpo, options={"scale": "none"}),
    "gigpo, anchor = history": Setting(estimators.gigpo, evidence={"anchor": "history"}),
    "hae, within segments, discount and lambda 1": Setting(
        estimators.hae, "alone", {"level": "low", "discount": 1.0, "lambda_": 1.0}, _SEGMENTS
    ),
    "ccpo, middle 0.5": Setting(estimators.ccpo, "solo", {"middle": 0.5}, _SOLO, reward="returns", event_reward=None),
    "ccpo, difference": Setting(
        estimators.ccpo, "solo", {"bonus": "difference"}, _SOLO, reward="returns", event_reward=None
    ),
    "tree_grpo, tree_inner": Setting(estimators.tree_grpo, "trees", {"mode": "tree_inner"}, {"tree": "tree"}),
    "c3, nested fan-out": Setting(estimators.c3, "nested", evidence=_TREE),
    "c3, pooled leaves": Setting(
        c3_pooled, "replays", evidence={**_TREE, "env_step": "env_step"}, reward="returns", event_reward=None
    ),
    "c3, nested fan-out, pooled leaves": Setting(
        c3_pooled, "nested", evidence={**_TREE, "env_step": "env_step"}, reward="returns", event_reward=None
    ),
    "c3, equal choices one node": Setting(estimators.c3, "groups", evidence=_TREE, reward="returns", event_reward=None),
    "c3, z-norm": Setting(estimators.c3, "replays", {"normalise": True}, _TREE, reward="returns", event_reward=None),
    "c3, as released, true critic": Setting(
        estimators.c3,
        "replays",
        {"variant": "value_assisted", "normalise": True},
        {**_TREE, "q_value": "q_value"},
        reward="returns",
        event_reward=None,
    ),
    "magrpo, discount 1, others' mean": Setting(
        estimators.magrpo, "replays", {"discount": 1.0, "baseline": "leave_one_out"}, _TREE
    ),
}

UNSCORED: dict[str, str] = {
    "shapley": "a share of the worth of the team, the same whatever the agent chose: no advantage of its actions",
    "stop_credit": "its mean over the prefixes of a step has no bias (docs/stopping.md); that of one prefix may have",
    "spawn_credit": "as of stop_credit: its mean over prefixes has no bias, that of one prefix may have",
}
"""Registered methods for which bias and advantage error are not defined, and why."""


def family(name: str) -> list[str]:
    """A method and its variants, or the one variant."""
    return [name, *(variant for variant in _VARIANTS if name in METHODS and _base(variant) == name)]


def setting(name: str) -> Setting:
    """How a method of the table is tried, one under a published name, or a user's own function, MODULE:FUNCTION.

    An own function is tried on groups of 2 and 3 independent traces, and one that needs `context` and `node` on replays
    of each choice, as `c3` is. It gets true evidence for its keyword-only arguments that have no default. If it takes
    no `event_reward`, its reward is the outcome plus all event rewards.

    Raises:
      CreditError: no such row, no such function, or the worlds do not have its evidence.

    Examples:
      >>> setting("estimators:rloo").way
      'groups'
    """
    if is_own(name):
        return _own_setting(name, load_function(name))
    return SETTINGS[name] if name in SETTINGS else _published_setting(name)


_REPLAYED: frozenset[Way] = frozenset({"trees", "rerun", "frozen", "replays", "nested"})


def given_to(names: Iterable[str]) -> str:
    """What values and tokens methods of the table have, and how replays from a decision on count; "" without any.

    Examples:
      >>> given_to(["c3"]), given_to(["coma"])
      ('replays: each counts as a whole run', 'values: the true ones')
      >>> given_to(["coma", "gae, wrong values"])
      'values: the true ones; in rows named wrong, with errors'
    """
    settings = [setting(name) for name in names]
    wrong = any(logged_as.startswith("wrong_") for how in settings for logged_as in how.evidence.values())
    values = values_given("bias", {need for how in settings for need in how.evidence}, wrong=wrong)
    replays = "replays: each counts as a whole run" * any(how.way in _REPLAYED for how in settings)
    return "; ".join(filter(None, (values, replays)))


_BESIDE = {
    "solo": "a run without the lead beside each trace",
    "greedy": "a greedy run beside each trace",
    "rerun": "a run with choice 0 for each decision",
    "frozen": "a run with choice 0 for each decision, later ones kept",
    "trees": "trees of two leaves",
    "replays": "alternatives to each decision of a trace",
    "nested": "a tree in which each alternative fans out",
    "hindsight_log_prob": "the posterior of a choice given the return",
    "self_rating": "true shares of the increments",
    "anchor": "an anchor for all histories that look alike to who decides",
    "history": "an anchor for each history",
}
"""What a method has beside traces of a group, by the way that is sampled or by its evidence."""


def given_beside(name: str) -> str:
    """`given_to` of one method, and what else it alone has, by its name; "" without any.

    Examples:
      >>> given_beside("c3"), given_beside("rloo")
      ('replays: each counts as a whole run; c3: alternatives to each decision of a trace', '')
    """
    how = setting(name)
    beside = ", ".join(_BESIDE[key] for key in (how.way, *how.evidence.values()) if key in _BESIDE)
    return "; ".join(filter(None, (given_to([name]), f"{name}: {beside}" if beside else "")))


@functools.cache
def _published_setting(name: str) -> Setting:
    """That of the method, with the options that make it the published one; kept, since a function compiles once."""
    home = home_of(name) if is_named(name) else ""
    if home in UNSCORED:
        raise UnmeasuredError(f"{name!r} has no score: {UNSCORED[home]}")
    if home not in SETTINGS:
        raise CreditError(f"No method {name!r}. {near_names(name, [*SETTINGS, *PUBLISHED])}")
    method, usual = find_method(name), SETTINGS[home]
    alone = usual.way == "alone" and method.scope_of({})[0] != "trace"
    return dataclasses.replace(usual, fn=method.fn, way="groups" if alone else usual.way) if method.bound else usual


@functools.cache
def _own_setting(name: str, fn: Callable[..., Credit]) -> Setting:
    """By name and function: its module may be loaded again."""
    own_fn = own_method(name)
    lacking = [need for need in own_fn.needs if need not in OWN_EVIDENCE]
    if lacking:
        raise UnmeasuredError(
            f"method {name!r} needs {lacking[0]!r}; the worlds have: {', '.join(sorted(OWN_EVIDENCE))}"
        )
    evidence = {need: need for need in own_fn.needs}
    way: Way = "replays" if evidence.keys() == _TREE.keys() else "groups"  # siblings are replays, as for `c3`
    if "event_reward" in inspect.signature(own_fn.fn).parameters:
        return Setting(own_fn.fn, way, evidence=evidence)
    return Setting(own_fn.fn, way, evidence=evidence, reward="returns", event_reward=None)


def _base(variant: str) -> str:
    return variant.replace(",", " ").split()[0]


def _settings() -> dict[str, Setting]:
    table = {}
    for name, method in METHODS.items():
        if name in UNSCORED:
            continue
        way: Way = "alone" if method.scope == "trace" else "groups"
        plain = Setting(method.fn, way, evidence={need: need for need in method.needs})
        table[name] = _SPECIAL.get(name, plain)
        table |= {variant: _VARIANTS[variant] for variant in family(name)[1:]}
    return table


SETTINGS: dict[str, Setting] = _settings()
"""Every row of the table by name: registered methods with their defaults, each followed by its variants."""

OWN_EVIDENCE = {"value"} | {name for how in SETTINGS.values() if how.way == "groups" for name in how.given}
"""What an own function can be given beside groups of independent traces."""
