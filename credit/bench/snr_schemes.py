"""Schemes whose signal to noise is measured: what each runs, on which logs, at which cost, and its closed form.

Every scheme calls the library's own method on a batch and hands back sums over the decisions that the batch stands for,
one row for each independent part of the batch (a group, a trace, a context): `credit.bench.snr` makes numbers of them.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import estimators
from credit.bench import snr_theory as theory
from credit.bench.snr_logs import ROOM, Log, draw_log, fitted, plain_graph
from credit.bench.snr_theory import Setting
from credit.methods import METHODS
from estimators.base import Credit, finish
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph

__all__ = ["SCHEMES", "Effort", "Scheme", "Sums", "left_out", "registered", "scheme_of"]

_BATCH = 8  # groups of a batch whose traces are all compared
_OTHERS = 88  # traces of other groups, at least, that β is fitted on
PARTS = 10  # agents among whom decisions are split
CLAIM_ERROR = 0.25  # variance of the errors of the claims that `control` is given, in s²


class Sums(NamedTuple):
    """Over the decisions of each independent part: how many, Σ A sign(x), Σ A²; float64 [parts]."""

    number: np.ndarray
    first: np.ndarray
    second: np.ndarray


class Effort(NamedTuple):
    """How much is drawn: traces for each point of a broadcast, rows at most for each of another scheme, and the
    greatest T at which logs are full where a thin one would say the same."""

    traces: int
    rows: int
    full: int


@dataclasses.dataclass(frozen=True)
class Scheme:
    """A way to get an advantage for each decision.

    Attributes:
      name: of the scheme.
      method: what of the library it runs.
      summary: one line for people.
      longest: the greatest T that it is taken to.
      cost: rollouts that the evidence of one trace takes, its own included, from T and the setting. What a critic's
        training took is not in it.
      draw: batches of sums, from a generator, the setting, T and the effort.
      theory: the closed form of its signal to noise; None where there is none.
      exact: whether the closed form is exact (else to first order).
      log: "thin" where logs longer than `Effort.full` have an action for each agent only, "full", or "replays".
    """

    name: str
    method: str
    summary: str
    longest: int
    cost: Callable[[int, Setting], float]
    draw: Callable[[np.random.Generator, Setting, int, Effort], Iterator[Sums]]
    theory: Callable[[int, Setting], float] | None = None
    exact: bool = True
    log: str = "thin"


def _sums(advantage: Array, count: np.ndarray, signed: np.ndarray, size: int) -> Sums:
    """Sums by part: `size` events each, padding behind the last."""
    parts = int(np.flatnonzero(count)[-1]) // size + 1
    a, n, x = (np.asarray(v, np.float64)[: parts * size].reshape(parts, size) for v in (advantage, count, signed))
    return Sums(n.sum(1), (a * x).sum(1), (n * a * a).sum(1))


def _one_rollout(length: int, w: Setting) -> float:
    return 1.0


Call = Callable[[Log, np.random.Generator], Credit]


def _broadcast(
    call: Call,
    *,
    agents: int = 1,
    slope: Callable[[int], float] | None = None,
    together: bool = False,
    thin: bool = True,
    rare: bool = False,
) -> Callable[[np.random.Generator, Setting, int, Effort], Iterator[Sums]]:
    """Draws for a method that reads outcomes.

    Args:
      agents: among whom decisions are split.
      slope: β at T, of an outcome that is a success or a failure.
      together: whether a batch is one part, since its traces are compared with each other; else a group is.
      thin: whether thin logs will do.
      rare: whether traces must grow with T, since the outcome says ever less about a decision.
    """

    def draw(rng: np.random.Generator, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        full = length <= effort.full or not thin
        traces = effort.traces if thin else effort.traces // 8
        traces = max(traces, traces * length // 40) if rare else traces
        size = w.group * (length if full else agents)  # events of a group
        if size > ROOM:
            raise CreditError(f"{w.group} traces of {length} decisions are {size} events; a batch has room for {ROOM}")
        # A batch whose traces are all compared has one number of them at every T.
        groups = min(_BATCH, ROOM // size) if together else min(ROOM // size, -(-traces // w.group))
        for _ in range(-(-traces // (groups * w.group))):
            beta = None if slope is None else slope(length)
            log = draw_log(rng, w, length, groups * w.group, agents=agents, full=full, slope=beta)
            credit = call(log, rng)
            yield _sums(credit.advantage, log.count, log.signed, size * groups if together else size)

    return draw


def _plain(name: str, **options: Any) -> Call:
    return lambda log, rng: METHODS[name].fn(log.graph, log.reward, **options)


def _own_parts(log: Log, rng: np.random.Generator) -> Credit:
    nothing = np.zeros_like(log.reward)
    return estimators.group_relative(
        log.graph, nothing, event_reward=log.part, by="agent_name", baseline="leave_one_out"
    )


def _critic(
    mse: Callable[[int, Setting], float], lambda_: float
) -> Callable[[np.random.Generator, Setting, int, Effort], Iterator[Sums]]:
    """Draws for `gae` with the true values and independent errors of that mean square."""

    def draw(rng: np.random.Generator, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        traces = ROOM // length
        for _ in range(max(1, effort.rows // (4 * traces * length), -(-64 // traces))):
            log = draw_log(rng, w, length, traces, full=True)
            credit = estimators.gae(
                log.graph, log.reward, value=_values(rng, w, log, length, mse(length, w)), lambda_=lambda_
            )
            yield _sums(credit.advantage, log.count, log.signed, length)

    return draw


def _replayed_critic(replays: int) -> Callable[[np.random.Generator, Setting, int, Effort], Iterator[Sums]]:
    """Draws for `gae` with values that are means of fresh continuations from every state."""

    def draw(rng: np.random.Generator, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        traces = ROOM // length
        left = np.arange(length, 0, -1)
        for _ in range(max(1, effort.rows // (4 * traces * length), -(-64 // traces))):
            log = draw_log(rng, w, length, traces, full=True)
            # The decisions of all continuations of a state at once.
            later = 2.0 * rng.binomial(replays * left, 0.5, (traces, length)) - replays * left
            error = w.signal * later / replays + w.noise / np.sqrt(replays) * rng.standard_normal(later.shape)
            gained = w.signal * log.signed[: traces * length].reshape(traces, length)
            value = np.cumsum(gained, axis=1) - gained + error
            credit = estimators.gae(log.graph, log.reward, value=fitted(value), lambda_=0.0)
            yield _sums(credit.advantage, log.count, log.signed, length)

    return draw


def _values(rng: np.random.Generator, w: Setting, log: Log, length: int, mse: float) -> np.ndarray:
    gained = w.signal * log.signed[: log.traces * length].reshape(-1, length)
    true = np.cumsum(gained, axis=1) - gained
    return fitted(true + np.sqrt(mse) * rng.standard_normal(true.shape))


def _siblings(rng: np.random.Generator, w: Setting, left: np.ndarray, sign: np.ndarray, replays: int) -> np.ndarray:
    """Advantages that `c3` gives alternatives `sign` [C, J] in contexts with `left` decisions to come [C]: [C, J].

    The log of a replay holds the alternative; what came before and after it is in the replay's outcome.
    """
    contexts, alternatives = sign.shape
    most = ROOM // (alternatives * replays)
    if contexts > most:
        cuts = range(0, contexts, most)
        return np.concatenate([_siblings(rng, w, left[i : i + most], sign[i : i + most], replays) for i in cuts])
    shape = (contexts, alternatives, replays)
    later = 2.0 * rng.binomial(np.broadcast_to(left[:, None, None], shape), 0.5) - left[:, None, None]
    outcome = w.signal * (sign[:, :, None] + later) + w.noise * rng.standard_normal(shape)
    row = np.arange(outcome.size)
    credit = estimators.c3(
        plain_graph(outcome.size, 1, 1, alternatives * replays),
        fitted(outcome),
        context=fitted(row // (alternatives * replays), np.int32),
        node=fitted(row // replays, np.int32),
    )
    return np.asarray(credit.advantage)[: outcome.size].reshape(shape)[:, :, 0]


def _message(
    alternatives: int, replays: Callable[[int], int]
) -> Callable[[np.random.Generator, Setting, int, Effort], Iterator[Sums]]:
    """Draws for `c3`: contexts at decisions drawn evenly from the trace."""

    def draw(rng: np.random.Generator, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        s = replays(length)
        wanted = 2500 / theory.message(length, w, alternatives, s) ** 2 / alternatives  # for an error of 2 %
        most = effort.rows / (alternatives * s)
        contexts = ROOM // (alternatives * s)
        for _ in range(max(1, -(-64 // contexts), round(min(wanted, most) / contexts))):
            left = np.floor(rng.random(contexts) * length).astype(np.int64)
            sign = 2.0 * rng.integers(0, 2, (contexts, alternatives)) - 1
            advantage = _siblings(rng, w, left, sign, s)
            yield _sums(advantage.ravel(), np.ones(sign.size), sign.ravel(), alternatives)

    return draw


@jax.jit
def _claim(graph: EventGraph, amount: Array) -> Credit:
    """Centred increments, as a critic gives them whose error has mean zero under the policy."""
    amount = jnp.asarray(amount)
    return finish(
        graph, credit=amount, baseline=jnp.zeros_like(amount), scale=jnp.ones_like(amount),
        stderr=jnp.full_like(amount, jnp.inf), reason=jnp.zeros_like(amount, jnp.int8), unit="event",
        estimand="increment", source="claims", centred=True, own_outcome=False,
    )  # fmt: skip


def _control_groups(w: Setting) -> int:
    return min(64, ROOM // (64 * w.group))


def _theory_control(length: int, w: Setting, others: float) -> float:
    return theory.control(length, w, CLAIM_ERROR * w.signal**2, others, (_control_groups(w) - 1) * w.group)


def _control(known: bool) -> Callable[[np.random.Generator, Setting, int, Effort], Iterator[Sums]]:
    """Draws for `control_advantage` with centred claims on every decision.

    The last action of a long trace stands for all decisions but the first 63: its claim is the sum of theirs, which
    leaves the advantage of each of the 63 what it is. It is not counted.
    """

    def draw(rng: np.random.Generator, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        probes = min(length - 1, 63)
        traces = _control_groups(w) * w.group
        graph = plain_graph(traces, 1, probes + 1, w.group)
        count = np.tile(np.arange(probes + 1) < probes, traces)
        rest = length - probes
        error = np.sqrt(CLAIM_ERROR) * w.signal * np.sqrt(np.append(np.ones(probes), rest))
        for _ in range(max(2, effort.rows // len(count))):
            sign = 2.0 * rng.integers(0, 2, (traces, probes)) - 1
            sums = np.concatenate([sign, 2.0 * rng.binomial(rest, 0.5, (traces, 1)) - rest], axis=1)
            reward = w.signal * sums.sum(1) + w.noise * rng.standard_normal(traces)
            amount = w.signal * sums + error * rng.standard_normal(sums.shape)
            credit = estimators.control_advantage(
                graph,
                fitted(reward),
                [_claim(graph, fitted(amount))],
                baseline=np.zeros(ROOM, np.float32) if known else None,
            ).credit
            given = np.asarray(credit.advantage)[: len(count)]
            yield _sums(given, count, count * sums.ravel(), w.group * (probes + 1))

    return draw


def _control_message(
    alternatives: int, replays: int
) -> Callable[[np.random.Generator, Setting, int, Effort], Iterator[Sums]]:
    """Draws for `control_advantage` on claims that `c3` made at every decision, from replays beside the trace."""

    def draw(rng: np.random.Generator, w: Setting, length: int, effort: Effort) -> Iterator[Sums]:
        groups = 1 + -(-_OTHERS // w.group)
        traces = groups * w.group
        for _ in range(max(2, effort.rows // (traces * length * alternatives * replays))):
            log = draw_log(rng, w, length, traces, full=True)
            left = np.tile(np.arange(length - 1, -1, -1), traces)
            others = 2.0 * rng.integers(0, 2, (len(left), alternatives - 1)) - 1
            sign = np.concatenate([log.signed[: len(left), None], others], axis=1)
            claim = _claim(log.graph, fitted(_siblings(rng, w, left, sign, replays)[:, 0]))
            control = estimators.control_advantage(log.graph, log.reward, [claim]).credit
            yield _sums(control.advantage, log.count, log.signed, w.group * length)

    return draw


def _theory_control_message(length: int, w: Setting) -> float:
    # The claims' mean error variance serves: β is one number for all decisions of a trace.
    error = float(np.mean(theory.message_error(length, w, 4, 8)))
    return theory.control(length, w, error, w.group - 1, -(-_OTHERS // w.group) * w.group)


def _replayed(alternatives: int, replays: Callable[[int], int]) -> Callable[[int, Setting], float]:
    """Each decision of a trace continued from its context, half a trace on average."""
    return lambda length, w: 1 + length * alternatives * replays(length) / 2


SCHEMES: dict[str, Scheme] = {
    s.name: s
    for s in (
        Scheme(
            "shared, group mean", "dr_grpo", "the outcome minus the group's mean", 100_000, _one_rollout,
            _broadcast(_plain("dr_grpo")), lambda t, w: theory.shared(t, w, w.group - 1),
        ),
        Scheme(
            "shared, leave one out", "rloo", "the outcome minus the mean of the others", 100_000, _one_rollout,
            _broadcast(_plain("rloo")), lambda t, w: theory.shared(t, w, w.group - 1),
        ),
        Scheme(
            "shared, over the spread", "grpo", "the same over the group's standard deviation", 100_000, _one_rollout,
            _broadcast(_plain("grpo")), theory.normalised, exact=False,
        ),
        Scheme(
            "shared, batch mean", "reinforce_batch", "the outcome minus the mean of all others of a batch", 100_000,
            _one_rollout, _broadcast(_plain("reinforce_batch"), together=True),
            lambda t, w: theory.shared(t, w, _BATCH * w.group - 1),
        ),
        Scheme(
            "shared, mean known", "discounted_return", "the outcome itself, its mean being 0", 100_000, _one_rollout,
            _broadcast(_plain("discounted_return")), lambda t, w: theory.shared(t, w, float("inf")),
        ),
        Scheme(
            "split by role, outcome only", "dr_mas", "ten agents, each against its own rows, one shared outcome",
            100_000, _one_rollout, _broadcast(_plain("dr_mas"), agents=PARTS), theory.normalised, exact=False,
        ),
        Scheme(
            "split by role, parts scored", "group_relative", "ten agents, each with an outcome of its own", 100_000,
            _one_rollout, _broadcast(_own_parts, agents=PARTS), lambda t, w: theory.parts(t, w, PARTS),
        ),
        Scheme(
            "message, 1 replay", "c3", "four alternatives a decision, one continuation each", 10_000,
            _replayed(4, lambda t: 1), _message(4, lambda t: 1), lambda t, w: theory.message(t, w, 4, 1), log="replays",
        ),
        Scheme(
            "message, 8 replays", "c3", "four alternatives a decision, eight continuations each", 10_000,
            _replayed(4, lambda t: 8), _message(4, lambda t: 8), lambda t, w: theory.message(t, w, 4, 8), log="replays",
        ),
        Scheme(
            "message, T/2 replays", "c3", "four alternatives a decision, T/2 continuations each", 10_000,
            _replayed(4, lambda t: t // 2), _message(4, lambda t: t // 2),
            lambda t, w: theory.message(t, w, 4, t // 2), log="replays",
        ),
        Scheme(
            "critic, fixed error", "gae", "one-step differences of values with error variance s²", 10_000, _one_rollout,
            _critic(lambda t, w: w.signal**2, 0.0), lambda t, w: theory.critic(t, w, w.signal**2, 0.0), log="full",
        ),
        Scheme(
            "critic, error a tenth of Var R", "gae", "one-step differences of values whose error grows with R", 10_000,
            _one_rollout, _critic(lambda t, w: 0.1 * (t * w.signal**2 + w.noise**2), 0.0),
            lambda t, w: theory.critic(t, w, 0.1 * (t * w.signal**2 + w.noise**2), 0.0), log="full",
        ),
        Scheme(
            "critic, lambda 0.95", "gae", "the same critic of fixed error, twenty decisions ahead", 10_000,
            _one_rollout, _critic(lambda t, w: w.signal**2, 0.95), lambda t, w: theory.critic(t, w, w.signal**2, 0.95),
            log="full",
        ),
        Scheme(
            "critic, 8 replays a state", "gae", "one-step differences of values, each the mean of eight continuations",
            10_000, lambda t, w: 1 + 8 * (t + 1) / 2, _replayed_critic(8), lambda t, w: theory.replayed_value(t, w, 8),
            log="full",
        ),
        Scheme(
            "control, claims", "control_advantage", "centred claims with error variance s²/4, leave-one-out baseline",
            10_000, _one_rollout, _control(known=False),
            lambda t, w: _theory_control(t, w, w.group - 1), exact=False,
        ),
        Scheme(
            "control, claims, mean known", "control_advantage", "the same claims, the outcome's mean known", 10_000,
            _one_rollout, _control(known=True),
            lambda t, w: _theory_control(t, w, float("inf")), exact=False,
        ),
        Scheme(
            "control, message 8 replays", "control_advantage", "claims by c3 at every decision", 100,
            _replayed(4, lambda t: 8), _control_message(4, 8), _theory_control_message, exact=False, log="full",
        ),
        Scheme(
            "success, slope 1", "rloo", "success with probability sigma(Σ x), leave one out", 10_000, _one_rollout,
            _broadcast(_plain("rloo"), slope=lambda t: 1.0), lambda t, w: theory.bernoulli(t, w, 1.0),
        ),
        Scheme(
            "success, slope 2/sqrt(T)", "rloo", "success with probability sigma(2 Σ x / √T)", 10_000, _one_rollout,
            _broadcast(_plain("rloo"), slope=lambda t: 2 / t**0.5), lambda t, w: theory.bernoulli(t, w, 2 / t**0.5),
        ),
        Scheme(
            "success, slope 2/T", "rloo", "success with probability sigma(2 Σ x / T)", 10_000, _one_rollout,
            _broadcast(_plain("rloo"), slope=lambda t: 2 / t, rare=True), lambda t, w: theory.bernoulli(t, w, 2 / t),
        ),
    )
}  # fmt: skip
"""Schemes with a closed form."""


_GIVEN = ("value", "propensity", "tokens", "stage", "greedy_reward")


def left_out() -> dict[str, str]:
    """Registered methods without a scheme, and why."""
    with_form = {scheme.method for scheme in SCHEMES.values()}
    return {
        name: f"needs {', '.join(method.needs)}"
        for name, method in METHODS.items()
        if name not in with_form and not set(method.needs) <= set(_GIVEN)
    }


def registered() -> dict[str, Scheme]:
    """A scheme for each registered method that this world's logs allow and that is in none of `SCHEMES`."""
    with_form = {scheme.method for scheme in SCHEMES.values()}
    return {
        name: _from_function(name, method.fn, method.summary, together=method.scope in ("batch", "sequence"))
        for name, method in METHODS.items()
        if name not in with_form and set(method.needs) <= set(_GIVEN)
    }


def scheme_of(name: str) -> Scheme:
    """The scheme for a name: one of `SCHEMES`, a registered method, or a user's function "module:function".

    Raises:
      CreditError: there is none; or the function needs evidence that this world has not.
    """
    if name in SCHEMES:
        return SCHEMES[name]
    if ":" in name:
        return _from_function(name, _imported(name), "a method of the user's", together=False)
    known = registered()
    if name in known:
        return known[name]
    reasons = left_out()
    if name in reasons:
        raise CreditError(f"method {name!r} {reasons[name]}, which the logs of this benchmark do not have")
    same = [scheme.name for scheme in SCHEMES.values() if scheme.method == name]
    if same:
        return SCHEMES[same[0]]
    raise CreditError(f"no scheme or method is called {name!r}; expected one of {', '.join(SCHEMES)}, a registered "
                      "method, or module:function")  # fmt: skip


def _imported(name: str) -> Callable[..., Credit]:
    import importlib

    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        raise CreditError(f"--method {name!r} cannot be imported: {error}") from error
    if not callable(found):
        raise CreditError(f"--method {name!r} is {found!r}; expected a function")
    function: Callable[..., Credit] = found
    return function


def _from_function(name: str, fn: Callable[..., Credit], summary: str, *, together: bool) -> Scheme:
    """A scheme on full logs. Of this world's evidence the function gets what it cannot do without."""
    parameters = inspect.signature(fn).parameters.values()
    needs = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    missing = [need for need in needs if need not in _GIVEN]
    if missing:
        raise CreditError(f"method {name!r} needs {', '.join(missing)}; this world's logs have {', '.join(_GIVEN)}")
    draw = _broadcast(functools.partial(_with_evidence, fn, tuple(needs)), agents=PARTS, together=together, thin=False)
    return Scheme(name, name, summary, 1000, _one_rollout, draw, log="full")


def _with_evidence(fn: Callable[..., Credit], needs: tuple[str, ...], log: Log, rng: np.random.Generator) -> Credit:
    """`value` has the error of the critic of fixed error; the greedy run takes every decision well."""
    n = int(log.count.sum())
    length, w = n // log.traces, Setting()
    given: dict[str, Any] = {
        "value": lambda: _values(rng, w, log, length, w.signal**2),
        "propensity": lambda: fitted(np.full(n, 0.5)),
        "tokens": lambda: fitted(np.ones(n), np.int32),
        "stage": lambda: fitted(np.arange(n) % length * PARTS // length, np.int32),
        "greedy_reward": lambda: fitted(np.full(log.traces, w.signal * length)),
    }
    return fn(log.graph, log.reward, **{need: given[need]() for need in needs})
