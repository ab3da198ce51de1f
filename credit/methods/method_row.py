"""What is said of a method beside its function: its unit, estimand, scope, evidence, cost and source."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from graphs.argument_kinds import is_number
from graphs.text import excerpt

if TYPE_CHECKING:
    from estimators.base import Credit, Estimand

__all__ = ["OF_KEYS", "Compared", "Method", "Scope", "Seen", "Status", "named"]

Scope = Literal["trace", "group", "batch", "sequence"]
Status = Literal["released", "reconstructed", "formula"]


class Compared(NamedTuple):
    """With whom a method compares an action by default, in words; "" where it compares with nobody.

    Attributes:
      key: what they have in common: parts of `graphs.keys.PARTS`, or the batch.
      population: what one sample is.
      baseline: what is subtracted.
      scale: what is divided by.
    """

    key: str
    population: str
    baseline: str
    scale: str


_NOBODY = Compared("", "", "", "")


def named(function: str) -> Any:
    """The function of a row by its name "module:function", as `Method` takes it.

    Examples:
      >>> Method(named("estimators:rloo"), "", "trace", "total", True, "group", "formula", "").fn.__name__
      'rloo'
    """
    return function


class _Named:
    """A field whose value may be the name "module:function", which is imported where the field is first read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, row: object, owner: type) -> Any:
        value = vars(row)[self.name]
        if isinstance(value, str):
            module, _, function = value.partition(":")
            value = vars(row)[self.name] = getattr(importlib.import_module(module), function)
        return value

    def __set__(self, row: object, value: object) -> None:
        vars(row)[self.name] = value


OF_KEYS = ("by", "population", "singleton", "filters")
"""Options about which `Method.unbiased_with` knows more than that they are no defaults."""


_OF_SCALE = {"scale", "eps", "ddof"}
"""Options that move the scale alone."""


class Seen(NamedTuple):
    """What logs show of that by which a comparison may be biased.

    Attributes:
      repeated: whether a trace has two samples of one key.
      alone: whether an action has no number, or 0, for want of another trace with its key.
      keyless: whether an action has no number for want of its key, or of a trace other than its replays with it.
      rewarded: whether events have rewards of their own; None where they may, and none has any here.
      refused: whether actions of agents at once are refused.
      last_gains: whether the last row of agents at once gains what all brought.
    """

    repeated: bool
    alone: bool
    keyless: bool
    rewarded: bool | None
    refused: bool = True
    last_gains: bool = True


@dataclasses.dataclass(frozen=True)
class Method:
    """A method and its properties. Calling it calls `fn`.

    Attributes:
      fn: `fn(graph, reward, *, event_reward=None, **evidence, **options) -> Credit`; `named` by a text, it is
        imported where it is first read.
      summary: one line for people.
      compared: with whom it compares an action, for the page of methods.
      unit: the level whose units share one number.
      estimand: what the amount estimates.
      unbiased: whether the policy gradient's mean is right when every action is weighted with the advantage, the group
        is sampled independently, and sizes do not depend on the actions. With replays: a fan-out weighs as one trace,
        and stands under one task.
      unbiased_at: options under which a method that is biased by default has no bias, with the defaults of all others.
      valued: along whose actions values are compared, where true ones leave no bias but that of rewards off this chain.
      scope: whose rewards can change a trace's numbers: its own, its group's, the batch's, or those of earlier traces.
      pools_errors: whether the errors by which a ledger weighs its claims are pooled over the groups of the batch,
        though no other group changes the claims.
      shaped: whether it pays for progress or marks by itself, so that advantages differ where all outcomes are equal.
      nonnegative: whether it refuses traces of a group whose mean return is not above 0.
      scope_by_option: the scope under values of options that change it, by texts as `over=batch`; see `scope_of`.
      needs: names of evidence it cannot do without (`graphs.traces.schema`), passed as arguments of the same names.
      outcome_alone: whether rewards at events change none of its numbers, as in the code of some papers.
      reads_types: whether it reads the types of events, such as which decisions stopped; rows of a trainer lack them.
      order: when the order of a trace's rows moves its numbers: "always", with "event_reward", or never; "row_reward"
        with such that count at their row alone; "turns" always, where a joint turn is one place. See `reads_order`.
      chain: whose rows follow each other in that order, and at a discount: the trace's, or each agent's own, whatever
        others do between them.
      state: for scope "sequence", the function of the batch that gives `initial` of the next one.
      columns: of a trainer's columns `agent`, `parent` and `turn`, those without which it is another method: it would
        take every row for one agent's, nobody for spawned, or what an agent did for one turn.
      status: "released", checked against the authors' or the trainer's code; "reconstructed", from that code's or a
        paper's text without executing it; "formula", a textbook formula under its own name.
      reference: paper or code.
      cost: work of one call on E events, T traces and A agents.

    Examples:
      >>> import credit
      >>> method = credit.METHODS["gae"]
      >>> method.needs, method.unit, method.estimand, method.scope, method.unbiased
      (('value',), 'event', 'return', 'trace', False)
    """

    fn: Callable[..., Credit]
    summary: str
    unit: str
    estimand: Estimand
    unbiased: bool
    scope: Scope
    status: Status
    reference: str
    needs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    cost: str = "O(E)"
    pools_errors: bool = False
    shaped: bool = False
    nonnegative: bool = False
    compared: Compared = _NOBODY
    scope_by_option: Mapping[str, Scope] = dataclasses.field(default_factory=dict)
    outcome_alone: bool = False
    reads_types: bool = False
    order: Literal["", "event_reward", "row_reward", "turns", "always"] = ""
    chain: Literal["trace", "agent"] = "trace"
    state: Callable[..., Any] | None = None
    unbiased_at: Mapping[str, float] = dataclasses.field(default_factory=dict)
    valued: Literal["", "trace", "agent"] = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Credit:
        return self.fn(*args, **kwargs)

    @property
    def bound(self) -> Mapping[str, Any]:
        """The options that a published name binds, by name."""
        bound: Mapping[str, Any] = getattr(self.fn, "keywords", {})
        return bound

    def given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options with those of a published name, and the defaults of a comparison."""
        stated = inspect.signature(getattr(self.fn, "func", self.fn)).parameters
        of_rows = {"by": self.compared.key.replace(" ", ""), "population": "row"} if self.of_rows else {}
        of_rows |= {"along": self.valued} if self.valued else {}
        return of_rows | {name: stated[name].default for name in OF_KEYS if name in stated} | {**self.bound, **options}

    @property
    def of_rows(self) -> bool:
        """Whether it compares rows with the mean of others: biased, and not where a trace has one row of each key."""
        return self.compared[1:] == ("row", "mean of the others", "")

    def scope_of(self, options: Mapping[str, Any]) -> tuple[Scope, str | None]:
        """The scope under options, and the option with its value that makes it so; None where the entry itself does.

        Examples:
          >>> import credit
          >>> credit.METHODS["c3_magrpo"].scope_of({"over": "batch"})
          ('batch', 'over=batch')
          >>> credit.METHODS["c3_magrpo"].scope_of({"eps": 0.0})
          ('group', None)
        """
        options = {**self.bound, **options}
        for option, scope in self.scope_by_option.items():
            name, _, value = option.partition("=")
            if name in options and str(options[name]).lower() == value:
                return scope, option
        if self.scope == "group" and self._compares_by_key(options):
            from graphs.keys import scope_of_key

            scope = scope_of_key(options["by"])
            return scope, None if scope == self.scope else "by"
        return self.scope, None

    def reads_order(self, options: Mapping[str, Any], given: Collection[str], *, of_agents: bool = False) -> bool:
        """Whether the order of a trace's rows moves its numbers, under options and with the evidence that is given.

        Args:
          of_agents: ask whether the order does in which rows of several agents stand among each other.

        Examples:
          >>> import credit
          >>> gigpo = credit.METHODS["gigpo"]
          >>> gigpo.reads_order({}, ["anchor"]), gigpo.reads_order({}, ["anchor", "event_reward"])
          (False, True)
          >>> rloo = credit.METHODS["rloo"]  # turns are counted within agents
          >>> rloo.reads_order({"by": "task,turn"}, []), rloo.reads_order({"by": "task,turn"}, [], of_agents=True)
          (True, False)
          >>> credit.METHODS["gae"].reads_order({"lambda_": 1}, ["value"])  # the values between add up to nothing
          False
          >>> at_grpo = credit.METHODS["at_grpo"]
          >>> at_grpo.reads_order({}, [], of_agents=True), at_grpo.reads_order({"mode": "last"}, [], of_agents=True)
          (False, True)
        """
        options = {**self.bound, **options}
        if self._reads_chain(options, given, of_agents=of_agents):
            return True
        if not self._compares_by_key(options):
            return False
        from graphs.keys import PARTS, names_of_key

        parts = {name: PARTS[name] for name in names_of_key(options["by"]) if name in PARTS}
        counted = {name for name, part in parts.items() if part.level == "event" and not part.evidence}
        return not counted <= ({"turn"} if of_agents else set())

    def _reads_chain(self, options: Mapping[str, Any], given: Collection[str], *, of_agents: bool) -> bool:
        """`reads_order` but for the key under which it compares."""
        sums = bool(self.unbiased_at) and all(_alike(options.get(name), at) for name, at in self.unbiased_at.items())
        order = "event_reward" if sums or self.order == "row_reward" else self.order
        chained = str(options.get("discount", 1)) not in ("1", "1.0") or order in ("always", "turns", *given)
        own = options.get("along", self.valued) == "agent"
        own |= self.chain == "agent" and self.scope_of(options)[0] != "trace"
        return chained and not (of_agents and own)

    def columns_with(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """`columns` under options: `by` names others in their place, and AT-GRPO compares turns by its default alone.

        Examples:
          >>> import credit
          >>> method = credit.METHODS["at_grpo"]
          >>> method.columns_with({}), method.columns_with({"mode": "question"}), method.columns_with({"by": "task"})
          (('agent', 'turn'), ('agent',), ())
        """
        of_turns = options.get("mode", "turn") not in ("design", "question", "last")
        return tuple(name for name in self.columns if "by" not in options and (of_turns or name != "turn"))

    def reads_rounds(self, options: Mapping[str, Any], given: Collection[str], *, of_one: bool = False) -> bool:
        """Whether the order moves numbers in which rows of agents that act at once stand, as of `reads_order`.

        Rewards at events count for the whole round, but for the order "row_reward". A `stage` states it, and a `node`
        in its `context`; to the order "turns", and to a key by steps, it is one place; values of one agent's
        rows there follow each other, and so do those of a `value_after`.

        Args:
          of_one: ask of the rows of one agent in a round.

        Examples:
          >>> import credit
          >>> gae = credit.METHODS["gae"]
          >>> gae.reads_rounds({}, []), gae.reads_rounds({"lambda_": 1}, ["event_reward"])
          (True, False)
          >>> gae.reads_rounds({"lambda_": 1, "discount": 0.9}, []), gae.reads_rounds({"along": "agent"}, [])
          (True, False)
          >>> credit.METHODS["spiral_rae"].reads_rounds({"discount": 0.9}, [])  # it counts along an agent's own rows
          False
        """
        one_place = self.order == "turns" and not (of_one and self.valued) and "value_after" not in given
        if {"stage", "node"} & {*self.needs} or one_place:
            return False
        of_rows = given if self.order == "row_reward" else {*given} - {"event_reward"}
        return self._reads_chain({**self.bound, **options}, of_rows, of_agents=not of_one)

    def unbiased_with(self, options: Mapping[str, Any], seen: Seen | None = None) -> tuple[bool | None, str]:
        """`unbiased` under options, and why it is not, or why None: nobody can say. Only True has no reason.

        Of options other than a comparison key and what goes with it, `unbiased` is stated of the defaults alone. A mean
        that contains the trace itself shrinks the gradient of what is compared, without a scale, too. Whether a method
        that is `valued` is biased depends on the values.

        Under a key finer than the trace, every action must have the key, and share it with an independent trace or with
        none: the others are refused.

        Args:
          options: as the call states them.
          seen: what the logs show. What may happen and did not in them makes an answer of None, not False.

        Examples:
          >>> import credit
          >>> credit.METHODS["rloo"].unbiased_with({"by": "task,turn", "singleton": "raw"})
          (True, '')
          >>> credit.METHODS["gae"].unbiased_with({})
          (None, 'values that are not the true ones bias it, and so do agents at once, of whom the last row gets the \
most; at lambda_=1 none do')
          >>> credit.METHODS["gae"].unbiased_with({"lambda_": 1.0})
          (True, '')
          >>> credit.METHODS["gae"].unbiased_with({"lambda_": 1, "discount": 0.9})
          (False, 'discount=0.9 counts what comes later for less than it is worth')
          >>> credit.METHODS["rloo"].unbiased_with({"by": "task,length", "singleton": "raw"})
          (False, 'length: Every action may make the trace longer or shorter.')
        """
        from estimators.options import takes_key
        from graphs.keys import decided_by

        plain = getattr(self.fn, "func", self.fn)
        defaults = {name: one.default for name, one in inspect.signature(plain).parameters.items()}
        given = self.given(options)
        changed = {name: given[name] for name in given if name in defaults and not _alike(given[name], defaults[name])}
        changed.pop("along", None)  # of `_biases`
        known = self.unbiased or self.of_rows
        if (self.unbiased or self.unbiased_at) and "discount" in changed and _alike(defaults["discount"], 1):
            return False, f"discount={excerpt(changed['discount'])} counts what comes later for less than it is worth"
        but = ""
        if changed and changed.keys() == self.unbiased_at.keys():
            off = [name for name, at in self.unbiased_at.items() if not _alike(changed[name], at)]
            but = ", ".join(
                f"{name}={excerpt(changed[name])}; without bias is {self.unbiased_at[name]}" for name in off
            )
            known, changed = not off, {}
        other = [name for name in changed if name not in OF_KEYS or not (known or takes_key(self.fn))]
        if known and other:
            return None, f"that it has no bias is known of {other[0]}={defaults[other[0]]} only"
        decided, why = decided_by(given.get("by")) if takes_key(self.fn) else ("before", "")
        if decided != "before":
            return (None if known and decided == "by the log" else False), why
        if other:
            contains = self.compared.baseline == "mean" and given.get("scale") == "none" and {*other} <= _OF_SCALE
            unknown = f"how it is biased is known of {other[0]}={defaults[other[0]]} only"
            return (False, _contains("mean", "")) if contains else (None, unknown)
        if not known and not self.valued:
            why = _contains(self.compared.baseline, self.compared.scale)
            return False, why or f"its number is another than the return: {self.summary}"
        # What is sure comes first.
        found = min(_biases(given, seen, self.of_rows), key=lambda answer: answer[0] is None, default=(True, ""))
        unless = "".join(f"; at {name}={at} none do" for name, at in self.unbiased_at.items())
        wrong = but or f"values that are not the true ones bias it{self._of_rounds(given, seen)}{unless}"
        return (None, wrong) if found[0] and not known else found

    def _of_rounds(self, given: Mapping[str, Any], seen: Seen | None) -> str:
        """That agents at once bias a method though values are the true ones, where they may or do; else ""."""
        if self.order == "turns":
            return ", and so do agents at once, whose actions it refuses" if seen is None or seen.refused else ""
        reads = given.get("along") == "trace" and self.reads_rounds(given, ())
        said = reads and (seen is None or seen.last_gains)
        return ", and so do agents at once, of whom the last row gets the most" if said else ""

    def _compares_by_key(self, options: Mapping[str, Any]) -> bool:
        from estimators.options import takes_key

        return options.get("by") is not None and takes_key(self.fn)


def _contains(baseline: str, scale: str) -> str:
    """Which of the numbers that a trace is compared with its own outcome moves, by the words of `Compared`.

    Examples:
      >>> _contains("mean", "sd")
      'the mean that is subtracted contains the trace itself, and so does the divisor, the sd'
    """
    subtracts = "the mean that is subtracted contains the trace itself"
    divides = f"so does the divisor, the {scale}"
    if baseline.startswith("mean") and baseline != "mean of the others":
        return f"{subtracts}, and {divides}" if scale else subtracts
    return f"the divisor, the {scale}, contains the trace itself" if scale else ""


def _alike(value: Any, default: Any) -> bool:
    """Whether an option is a default: as a number, such as 1 and 1.0, or as it is written."""
    return (is_number(value) and is_number(default) and value == default) or repr(value) == repr(default)


def _biases(given: Mapping[str, Any], seen: Seen | None, of_rows: bool) -> Iterator[tuple[bool | None, str]]:
    """What biases a leave-one-out mean whose key is decided before the action, or a chain; None for what may."""
    from graphs.keys import finer_than_trace, names_of_key

    def answer(what: str, happened: bool | None, unknown: bool | None = False) -> tuple[bool | None, str]:
        said = what.format(here=" (here none)" if happened is False else "")
        return {True: False, False: None, None: unknown}[happened], said

    names, population, singleton = names_of_key(given.get("by")), given.get("population"), given.get("singleton")
    repeated, alone, keyless, rewarded = seen[:4] if seen else (None, None, False, None)
    along, finer = given.get("along", "trace"), finer_than_trace(given.get("by"))
    # The rest of the return of an action at t: every r_s with s >= t. An agent's own chain lacks those at others'
    # events, whose mean may depend on the action; the outcome ends each chain, and alone makes every return the whole.
    if along != "trace" and rewarded is not False:
        why = f"a chain along the {along} lacks rewards at events of others, which an action may change"
        yield None if rewarded is None else False, why
    if population in ("agent", "row") and "step" not in names:
        if population == "agent" and "agent" in names and not repeated:
            what = "a trace may have several instances of one name{here}, which then enter each other's baseline"
            yield answer(what, repeated, unknown=None)
        else:
            yield answer("a trace has several samples of one key{here}, which enter each other's baseline", repeated)
    if (population == "row" or of_rows) and rewarded is not False:
        why = "an action gets the outcome and its own reward, not the rewards at later events"
        yield None if rewarded is None else False, why
    # The sum of the gradient stays: equal outcomes give 0. The divisor of a mean over what is left depends on outcomes,
    # also of a batch in which nothing was left out.
    if given.get("filters", "none") != "none":
        yield None, "what is filtered out depends on outcomes, and so does a mean over the actions that are left"
    # Who shares a key that is finer than the trace depends on choices: that all do here is no proof. Sizes of groups
    # do not.
    if singleton == "zero" and (finer or alone is not False):
        yield answer("an action whose key no other trace has{here} gets 0 in place of its return", alone)
    elif singleton == "refuse" and finer:
        what = "an action whose key no other trace has{here} gets nothing; singleton=raw gives it its return"
        yield answer(what, alone)
    if finer and keyless:
        yield None, "an action without the key, or whose key only its replays have, gets nothing"


for _field in ("fn", "state"):
    setattr(Method, _field, _Named(_field))
