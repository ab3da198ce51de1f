"""Schemes whose signal-to-noise ratio is measured: the method, logs, cost and closed form of each."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import estimators
from credit.bench import snr_theory as theory
from credit.bench.refusals import LeftOut
from credit.bench.snr_draws import (
    BATCH,
    CLAIM_ERROR,
    OTHERS,
    Call,
    Drawer,
    broadcast,
    control,
    control_groups,
    control_message,
    critic,
    message,
    replayed_critic,
    values,
)
from credit.bench.snr_logs import PARTS, WORLDS, Log, fitted, fitted_traces
from credit.bench.snr_theory import Setting
from credit.methods.own_functions import is_own, own_method, own_name
from credit.methods.own_results import UnmeasuredError
from credit.methods.published import find_method, home_of, is_named
from credit.methods.registry import METHODS
from estimators.base import Credit
from graphs.errors import CreditError

__all__ = ["SCHEMES", "Scheme", "left_out", "needs_of", "registered", "scheme_of", "schemes_of"]


@dataclasses.dataclass(frozen=True)
class Scheme:
    """A way to get an advantage for each decision.

    Attributes:
      name: of the scheme.
      method: what of the library it runs, with options that are not its defaults: the name of a method alone is
        that method as it is registered.
      summary: one line for people.
      longest: the greatest T that it is taken to.
      cost: rollouts that the evidence of one trace takes, its own included, from T and the setting. What a critic's
        training took is not in it.
      draw: batches of sums, from streams, the setting, T and the effort.
      theory: the closed form of its signal to noise; None where there is none.
      exact: whether the closed form is exact (else to first order).
      of_variance: whether the closed form takes the variance of the noise alone; else it is of normal noise.
      log: "thin" where logs longer than `Effort.full` have an action for each agent only, "full", or "replays".
    """

    name: str
    method: str
    summary: str
    longest: int
    cost: Callable[[int, Setting], float]
    draw: Drawer
    theory: Callable[[int, Setting], float] | None = None
    exact: bool = True
    of_variance: bool = True
    log: str = "thin"

    def closed_form(self, length: int, w: Setting) -> float | None:
        """The closed form in this world; None where there is none, as of noise whose variance is not known."""
        known = w.world == "normal" or (self.of_variance and w.world in WORLDS)
        return self.theory(length, w) if self.theory is not None and known else None


def _one_rollout(length: int, w: Setting) -> float:
    return 1.0


def _plain(name: str, **options: Any) -> Call:
    return lambda log, rng: METHODS[name].fn(log.graph, log.reward, **options)


def _own_parts(log: Log, rng: np.random.Generator) -> Credit:
    nothing = np.zeros_like(log.reward)
    return estimators.group_relative(
        log.graph, nothing, event_reward=log.part, by="agent_name", baseline="leave_one_out"
    )


def _theory_control(length: int, w: Setting, others: float) -> float:
    return theory.control(length, w, CLAIM_ERROR * w.signal**2, others, (control_groups(w) - 1) * w.group)


def _theory_control_message(length: int, w: Setting) -> float:
    # The claims' mean error variance serves: β is one number for all decisions of a trace.
    error = float(np.mean(theory.message_error(length, w, 4, 8)))
    return theory.control(length, w, error, w.group - 1, -(-OTHERS // w.group) * w.group)


def _replayed(alternatives: int, replays: Callable[[int], int]) -> Callable[[int, Setting], float]:
    """Each decision of a trace continued from its context, half a trace on average."""
    return lambda length, w: 1 + length * alternatives * replays(length) / 2


SCHEMES: dict[str, Scheme] = {
    s.name: s
    for s in (
        Scheme(
            "shared, group mean", "dr_grpo", "the outcome minus the group's mean", 100_000, _one_rollout,
            broadcast(_plain("dr_grpo")), lambda t, w: theory.shared(t, w, w.group - 1),
        ),
        Scheme(
            "shared, leave one out", "rloo", "the outcome minus the mean of the others", 100_000, _one_rollout,
            broadcast(_plain("rloo")), lambda t, w: theory.shared(t, w, w.group - 1),
        ),
        Scheme(
            "shared, over the spread", "grpo", "the same over the group's standard deviation", 100_000, _one_rollout,
            broadcast(_plain("grpo")), theory.normalised, exact=False, of_variance=False,
        ),
        Scheme(
            "shared, batch mean", "reinforce_batch", "the outcome minus the mean of all others of a batch", 100_000,
            _one_rollout, broadcast(_plain("reinforce_batch"), together=True),
            lambda t, w: theory.shared(t, w, BATCH * w.group - 1),
        ),
        Scheme(
            "shared, mean known", "discounted_return", "the outcome itself, its mean being 0", 100_000, _one_rollout,
            broadcast(_plain("discounted_return")), lambda t, w: theory.shared(t, w, float("inf")),
        ),
        Scheme(
            "split by role, outcome only", "dr_mas", "ten agents, each against its own rows, one shared outcome",
            100_000, _one_rollout, broadcast(_plain("dr_mas"), agents=PARTS), theory.normalised, exact=False,
            of_variance=False,
        ),
        Scheme(
            "split by role, parts scored", "group_relative, by agent_name, leave one out",
            "ten agents, each with an outcome of its own", 100_000, _one_rollout,
            broadcast(_own_parts, agents=PARTS), lambda t, w: theory.parts(t, w, PARTS),
        ),
        Scheme(
            "message, 1 replay", "c3", "four alternatives a decision, one continuation each", 10_000,
            _replayed(4, lambda t: 1), message(4, lambda t: 1), lambda t, w: theory.message(t, w, 4, 1), log="replays",
        ),
        Scheme(
            "message, 8 replays", "c3", "four alternatives a decision, eight continuations each", 10_000,
            _replayed(4, lambda t: 8), message(4, lambda t: 8), lambda t, w: theory.message(t, w, 4, 8), log="replays",
        ),
        Scheme(
            "message, T/2 replays", "c3", "four alternatives a decision, T/2 continuations each", 10_000,
            _replayed(4, lambda t: t // 2), message(4, lambda t: t // 2),
            lambda t, w: theory.message(t, w, 4, t // 2), log="replays",
        ),
        Scheme(
            "critic, fixed error", "gae, lambda 0", "one-step differences of values with error variance s²", 10_000,
            _one_rollout, critic(lambda t, w: w.signal**2, 0.0), lambda t, w: theory.critic(t, w, w.signal**2, 0.0),
            log="full",
        ),
        Scheme(
            "critic, error a tenth of Var R", "gae, lambda 0",
            "one-step differences of values whose error grows with R", 10_000, _one_rollout,
            critic(lambda t, w: 0.1 * (t * w.signal**2 + w.noise**2), 0.0),
            lambda t, w: theory.critic(t, w, 0.1 * (t * w.signal**2 + w.noise**2), 0.0), log="full",
        ),
        Scheme(
            "critic, lambda 0.95", "gae", "the same critic of fixed error, twenty decisions ahead", 10_000,
            _one_rollout, critic(lambda t, w: w.signal**2, 0.95), lambda t, w: theory.critic(t, w, w.signal**2, 0.95),
            log="full",
        ),
        Scheme(
            "critic, 8 replays a state", "gae, lambda 0",
            "one-step differences of values, each the mean of eight continuations", 10_000,
            lambda t, w: 1 + 8 * (t + 1) / 2, replayed_critic(8), lambda t, w: theory.replayed_value(t, w, 8),
            log="full",
        ),
        Scheme(
            "control, claims", "control_advantage", "centred claims with error variance s²/4, leave-one-out baseline",
            10_000, _one_rollout, control(known=False),
            lambda t, w: _theory_control(t, w, w.group - 1), exact=False,
        ),
        Scheme(
            "control, claims, mean known", "control_advantage, mean known", "the same claims, the outcome's mean known",
            10_000, _one_rollout, control(known=True), lambda t, w: _theory_control(t, w, float("inf")), exact=False,
        ),
        Scheme(
            "control, message 8 replays", "control_advantage", "claims by c3 at every decision", 100,
            _replayed(4, lambda t: 8), control_message(4, 8), _theory_control_message, exact=False, log="full",
        ),
        Scheme(
            "success, slope 1", "rloo", "success with probability sigma(Σ x), leave one out", 10_000, _one_rollout,
            broadcast(_plain("rloo"), slope=lambda t: 1.0), lambda t, w: theory.bernoulli(t, w, 1.0),
        ),
        Scheme(
            "success, slope 2/sqrt(T)", "rloo", "success with probability sigma(2 Σ x / √T)", 10_000, _one_rollout,
            broadcast(_plain("rloo"), slope=lambda t: 2 / t**0.5), lambda t, w: theory.bernoulli(t, w, 2 / t**0.5),
        ),
        Scheme(
            "success, slope 2/T", "rloo", "success with probability sigma(2 Σ x / T)", 10_000, _one_rollout,
            broadcast(_plain("rloo"), slope=lambda t: 2 / t, rare=True), lambda t, w: theory.bernoulli(t, w, 2 / t),
        ),
    )
}  # fmt: skip
"""Schemes with a closed form."""


_GIVEN = ("value", "propensity", "tokens", "stage", "greedy_reward")


OF_VERDICTS = ("unitymas_o",)
"""Methods of which outcomes alone leave nothing but 0 after the first turn, without noise to divide by."""


def left_out() -> dict[str, str]:
    """Registered methods without a scheme, and why."""
    with_form = {scheme.method for scheme in SCHEMES.values()}
    return {
        name: f"needs {', '.join(method.needs)}"
        for name, method in METHODS.items()
        if name not in with_form and not set(method.needs) <= set(_GIVEN)
    } | dict.fromkeys(OF_VERDICTS, "needs a verdict on each turn")


def registered() -> dict[str, Scheme]:
    """A scheme for each registered method that this world's logs allow and that is in none of `SCHEMES`."""
    with_form = {scheme.method for scheme in SCHEMES.values()}
    return {
        name: _from_function(name, method.fn, method.summary, together=method.scope in ("batch", "sequence"))
        for name, method in METHODS.items()
        if name not in with_form and set(method.needs) <= set(_GIVEN) and name not in OF_VERDICTS
    }


def scheme_of(name: str) -> Scheme:
    """The scheme for a name.

    A method is run with its defaults. Of several schemes that do so, as for `c3` with more or fewer replays, it is the
    first.

    Args:
      name: of `SCHEMES`, of a method, also a published one, or of a user's function, "module:function".

    Raises:
      CreditError: there is none.
      UnmeasuredError: the method needs evidence that the logs of this world do not have.
    """
    if is_own(name := own_name(name)):
        return _from_function(name, own_method(name).fn, "a method of the user's", together=False)
    if name in SCHEMES:
        return SCHEMES[name]
    if is_named(name):
        home, method = home_of(name), find_method(name)
        if method.bound:
            together = method.scope_of({})[0] in ("batch", "sequence")
            return _from_function(name, method.fn, method.summary, together=together)
        reasons = left_out()
        if home in reasons:
            raise UnmeasuredError(f"method {name!r} {reasons[home]}, which the logs of this benchmark do not have")
        same = [scheme for scheme in SCHEMES.values() if scheme.method == home]
        return dataclasses.replace(same[0] if same else registered()[home], name=name)
    near = difflib.get_close_matches(name, [*METHODS, *SCHEMES], n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}? Expected" if near else "expected"
    schemes = ", ".join(map(repr, SCHEMES))  # a name has commas in it
    raise CreditError(f"no scheme or method is called {name!r}; {hint} a registered method, module:function, or one of "
                      f"the schemes {schemes}")  # fmt: skip


def schemes_of(asked: Iterable[Scheme | str]) -> tuple[list[Scheme], dict[str, str]]:
    """Schemes, those of names by `scheme_of`, and by name why a method has none, which keeps no other from being
    measured.

    Raises:
      CreditError: no scheme has a name.
      UnmeasuredError: none of them can be measured.

    Examples:
      >>> found, lacking = schemes_of(["rloo", "gigpo"])
      >>> [scheme.name for scheme in found], lacking["gigpo"][:27]
      (['rloo'], "method 'gigpo' needs anchor")
    """
    without = LeftOut()
    tried = (
        one if isinstance(one, Scheme) else without.try_one(one, "", functools.partial(scheme_of, one)) for one in asked
    )
    found = [scheme for scheme in tried if scheme is not None]
    lacking = {one.method: one.why for one in without.absent}
    if lacking and not found:
        raise UnmeasuredError("; ".join(lacking.values()))
    return found, lacking


def needs_of(scheme: Scheme) -> tuple[str, ...]:
    """The evidence that the method of a scheme cannot do without.

    Examples:
      >>> needs_of(SCHEMES["critic, fixed error"]), needs_of(SCHEMES["split by role, parts scored"])
      (('value',), ())
    """
    method = scheme.method if is_own(scheme.method) else scheme.method.partition(",")[0]  # before its options
    return find_method(method).needs if is_own(method) or is_named(method) else ()


def _from_function(name: str, fn: Callable[..., Credit], summary: str, *, together: bool) -> Scheme:
    """A scheme on full logs. Of this world's evidence the function gets what it cannot do without."""
    parameters = inspect.signature(fn).parameters.values()
    needs = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    missing = [need for need in needs if need not in _GIVEN]
    if missing:
        raise UnmeasuredError(f"method {name!r} needs {', '.join(missing)}; this world's logs have {', '.join(_GIVEN)}")
    draw = broadcast(functools.partial(_with_evidence, fn, tuple(needs)), agents=PARTS, together=together, thin=False)
    return Scheme(name, name, summary, 1000, _one_rollout, draw, log="full")


def _with_evidence(fn: Callable[..., Credit], needs: tuple[str, ...], log: Log, rng: np.random.Generator) -> Credit:
    """`value` has the error of the critic of fixed error; the greedy run takes every decision well."""
    n = int(log.count.sum())
    length, w = n // log.traces, Setting()
    arrays: dict[str, Any] = {
        "value": lambda: values(rng, w, log, length, w.signal**2),
        "propensity": lambda: fitted(np.full(n, 0.5)),
        "tokens": lambda: fitted(np.ones(n), np.int32),
        "stage": lambda: fitted(np.arange(n) % length * PARTS // length, np.int32),
        "greedy_reward": lambda: fitted_traces(np.full(log.traces, w.signal * length)),
    }
    return fn(log.graph, log.reward, **{need: arrays[need]() for need in needs})
