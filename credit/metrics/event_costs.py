"""What events cost: tokens, tool calls, seconds, and money by a table of prices."""

from __future__ import annotations

import collections
import dataclasses
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from credit.reports.durations import UNSTATED
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.missing_lines import silent_agents
from credit.reports.outside_team import outside_team
from credit.reports.tool_calls import call_mask
from credit.reports.trace_numbers import TeamFacts
from graphs.errors import CreditError
from graphs.event_types import EventType
from graphs.structure.host_ids import among
from graphs.text import near_names, printable, rounds_away
from graphs.traces.batch import Traces
from graphs.traces.event_models import embeddings, event_models
from graphs.traces.record import UNLOGGED_CALLS

__all__ = [
    "COSTS_OF_EVENTS",
    "MOST_UNPRICED_TOKENS",
    "EventCosts",
    "Price",
    "PriceGaps",
    "Prices",
    "event_costs",
    "is_priced",
    "price_gaps",
    "price_names",
    "prices_of_events",
    "read_prices",
    "stated_costs",
    "token_counts",
    "whole_costs",
]

MILLION = 1_000_000
MOST_UNPRICED = 3
"""Models without a price that a sentence on a sum of money names."""
MOST_UNPRICED_TOKENS = 0.1
"""Part of the tokens without a price above which shares of money, and what a success cost, are not told."""
UNPRICED = "no row of the table prices these models:"
NAMELESS = "calls whose model the log does not state have no price; a row of the model * gives them one"
CACHED = "no cached_input in the table: reads from a cache cost as input, which is too much, of:"
UNKNOWN = "no event states tokens from a cache, which the table prices: all cost as input, which may be too much, of:"
WRITTEN = "no cache_write in the table: writes to a cache cost as input, which is too little, of:"
BESIDE = "input_tokens leaves out tokens from or into a cache, so money is too little, of:"
REQUESTED = "calls at the price of the requested model, as no row has the answer's:"
UNNAMED = "calls at the price of the requested model, as the answer names none:"
DEFAULTED = "calls at the price of the row *:"
UNUSED = "rows of the table that match nothing in these logs:"
SAID = (UNPRICED, CACHED, UNKNOWN, WRITTEN, BESIDE, REQUESTED, UNNAMED, DEFAULTED, UNUSED)
AS_LOGGED = "money at these prices is the logged cost, in every trace"
DEFAULT = "*"
"""The model of a row that prices the calls whose model is unknown or has no row."""
COLUMNS = ("model", "tool", "input", "output", "cached_input", "cache_write", "call")


@dataclasses.dataclass(frozen=True)
class Price:
    """Of a model: money for a million tokens that it reads, generates, reads from a cache, and writes to one.

    Without a price of their own, None, tokens from a cache or into one cost what others cost that are read.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None


@dataclasses.dataclass(frozen=True)
class Prices:
    """Prices by the names of models, and of a call by the names of tools; a tool that is not listed costs nothing.

    The price of `DEFAULT` is that of all other models.
    """

    models: dict[str, Price]
    tools: dict[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class EventCosts:
    """Costs of the real events; NaN where the log does not tell, 0 outside the team where they are the team's.

    Attributes:
      tokens: float64 [events], generated; 0 at events that are no action and have no count.
      input_tokens: float64 [events], read, likewise.
      tool_calls: float64 [events], 1 at a tool call, and at a spawn by a tool.
      seconds: float64 [events], what each took, as `durations` has it.
      money: float64 [events]; NaN everywhere without prices.
      least: of tokens, input_tokens, seconds and money what is known, float64 [events]; 0 where nothing is. Of an event
        that stands for calls in no event (`token_counts`) it is its own; of money, what has counts and prices.
      kinds: how many there are of what costs money, and what it cost, float64 [2, 5, events]: tokens read, generated,
        read from the cache and written to it, and calls of tools; None without prices.
    """

    tokens: np.ndarray
    input_tokens: np.ndarray
    tool_calls: np.ndarray
    seconds: np.ndarray
    money: np.ndarray
    least: dict[str, np.ndarray]
    kinds: np.ndarray | None = None


COSTS_OF_EVENTS = ("tokens", "input_tokens", "tool_calls", "seconds")
"""Costs that need no prices, which are channels of reward, too."""


def event_costs(
    traces: Traces, prices: Prices | None = None, *, of_team: bool = True, hidden: bool = True
) -> EventCosts:
    """The costs of each event.

        money(e) = (input(model) · (input_tokens(e) − cached_tokens(e) − cache_write_tokens(e))
                    + cached_input(model) · cached_tokens(e) + cache_write(model) · cache_write_tokens(e)
                    + output(model) · tokens(e)) / 10⁶ + call(tool) where e calls a tool

    The model is that of the event (`price_names`). An action needs both counts, one where the price of the other is 0.
    Of an action without one, or without a price of its model, `least` has the other terms.

    Args:
      traces: what was read.
      prices: of models and tools.
      of_team: whether what a simulated user cost counts as 0, since it is no cost of the team (`outside_team`).
      hidden: as of `token_counts`.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()}, rewards={"team": 1.0}, model="m")
      >>> _ = record.event("x", 3, "a", action=True, tokens=500, input_tokens=1000)
      >>> event_costs(assemble([record]), Prices({"m": Price(input=1.0, output=4.0)})).money.tolist()
      [0.003]
    """
    n = traces.sizes.events
    called = call_mask(traces, of_team=of_team)
    (tokens, own_tokens), (read, own_read) = (
        [token_counts(traces, name, of_team=of_team, hidden=how) for how in (hidden, False)]
        for name in ("tokens", "input_tokens")
    )
    money, least, kinds = np.full(n, np.nan), np.zeros(n), None
    if prices is not None:
        of_input, of_output, of_cached, of_written = prices_of_events(traces, prices).T
        cached, written = (
            np.nan_to_num(token_counts(traces, name, of_team=of_team, hidden=False))
            for name in ("cached_tokens", "cache_write_tokens")
        )
        cached = np.fmin(cached, own_read)
        written = np.fmin(written, own_read - cached)
        tools = traces.events["tool"].to_pylist()
        others = (
            _priced(of_cached, cached),
            _priced(of_written, written),
            np.array([prices.tools.get(tool or "", 0.0) if c else 0.0 for tool, c in zip(tools, called, strict=True)]),
        )
        terms, own = (
            [_priced(of_input, of_read - cached - written), _priced(of_output, generated), *others]
            for of_read, generated in ((read, tokens), (own_read, own_tokens))
        )
        kinds = np.array([[read - cached - written, tokens, cached, written, called], terms])
        money, least = np.sum(terms, axis=0), np.nansum(own, axis=0)
        money[_paid(traces, tokens, read) & np.isnan(of_input)] = np.nan
    seconds = TeamFacts.of(traces).durations
    known = {"tokens": np.nan_to_num(own_tokens), "input_tokens": np.nan_to_num(own_read), "money": least}
    known["seconds"] = seconds.least
    return EventCosts(tokens, read, called.astype(np.float64), seconds.event, money, known, kinds)


def prices_of_events(traces: Traces, prices: Prices) -> np.ndarray:
    """What a token costs by the model of each event, NaN without a row: read, generated, from a cache, and into one.

    Args:
      traces: what was read.
      prices: of models.

    Returns:
      float64 [events, 4].
    """
    names, model = price_names(traces, prices)
    of_model = np.array([_of(prices.models.get(name, Price(math.nan, math.nan))) for name in names])
    of_events: np.ndarray = of_model[model] / MILLION
    return of_events


def price_names(traces: Traces, prices: Prices) -> tuple[list[str], np.ndarray]:
    """Names of models, and the one by which each real event is priced: int [events]; "" where none is known.

    It is the event's model (`event_models`), or, where no row has that, the name that was requested, if a row has it.
    An event without a requested name has that of its model's calls, if these have one alone. An event without a row has
    `DEFAULT`, if that has one.

    Args:
      traces: what was read.
      prices: of models.
    """
    names, model = _named(traces, prices)
    if DEFAULT not in prices.models:
        return names, model
    own = np.array([name in prices.models for name in names])
    return [*names, DEFAULT], np.where(own[model], model, len(names))


def _named(traces: Traces, prices: Prices) -> tuple[list[str], np.ndarray]:
    names, model = event_models(traces)
    if traces.events["requested_model"].null_count == len(model):
        return names, model
    requested = traces.events["requested_model"].combine_chunks().dictionary_encode()
    asked = requested.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    every = [*names, *requested.dictionary.to_pylist()]
    priced = np.array([name in prices.models for name in every])
    asked = np.where(asked >= 0, asked + len(names), model)
    asked = np.where(priced[model] | ~priced[asked], model, asked)
    stands: dict[int, set[int]] = {}
    for own, other in {*zip(model.tolist(), asked.tolist(), strict=True)}:
        stands.setdefault(own, set()).update({other} - {own})
    alone = np.array([max(of) if len(of := stands.get(own, set())) == 1 else own for own in range(len(names))])
    distinct, which = np.unique(every, return_inverse=True)
    return distinct.tolist(), which[np.where(asked == model, alone[model], asked)]


def is_priced(traces: Traces, prices: Prices) -> bool:
    """Whether the models of all tokens but `MOST_UNPRICED_TOKENS`, read and generated, have a price.

    Args:
      traces: what was read.
      prices: of models.
    """
    names, model = price_names(traces, prices)
    bare = np.array([name not in prices.models for name in names])[model]
    counts = (token_counts(traces, name, hidden=False) for name in ("tokens", "input_tokens"))
    tokens = np.sum([np.nan_to_num(count) for count in counts], axis=0)
    return bool(tokens[bare].sum() <= MOST_UNPRICED_TOKENS * tokens.sum())


class PriceGaps(NamedTuple):
    """Where a table of prices and the logs do not meet.

    Attributes:
      unpriced: models of actions that have no price; "" for actions with counts whose model the log does not state.
      cached_as_input: models whose tokens from a cache are priced as others.
      cached_unstated: models whose tokens from a cache have a lower price, and of which no event states such a count;
        at that price, what they read would cost less in the four digits of their money.
      written_as_input: models whose tokens into a cache are priced as others.
      cached_beside: models of calls with more tokens from and into a cache than were read, which are to have them all.
      requested: how many calls have the price of which requested name, and the model that answered.
      unnamed: how many have that of which requested name, as the log does not name the model that answered.
      defaulted: how many have the price of `DEFAULT`, and their model.
      unused: rows of the table that priced nothing, tools always and models where some have no row, each with the
        nearest names of the logs: a name may be misspelt.
      as_logged: whether the log states the money of every trace, and it is the same to three digits (`as_logged`).
    """

    unpriced: list[str]
    cached_as_input: list[str]
    cached_unstated: list[str]
    written_as_input: list[str]
    cached_beside: list[str]
    requested: list[str]
    unnamed: list[str]
    defaulted: list[str]
    unused: list[str]
    as_logged: bool = False

    def unpriced_names(self) -> str:
        """Up to `MOST_UNPRICED` of the models without a price; "" where none is stated."""
        names = [printable(name, 40) for name in self.unpriced if name]
        return ", ".join(names[:MOST_UNPRICED] + ["…"] * (len(names) > MOST_UNPRICED))

    def lines(self) -> list[str]:
        """A sentence for each kind of gap that there is."""
        named = self._replace(unpriced=[name for name in self.unpriced if name])
        of_names = zip(named[:9], SAID, strict=True)
        lines = [f"{what} {', '.join(names)}" for names, what in of_names if names]
        lines += [NAMELESS] * (named.unpriced != self.unpriced)
        return [*lines, AS_LOGGED] if self.as_logged else lines


def price_gaps(traces: Traces, prices: Prices) -> PriceGaps:
    """What a table of prices lacks, and what of it matches nothing.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["x"], reward=[1.0])
      >>> price_gaps(rows.traces, Prices({}, {"grep": 0.1})).unused
      ['tool grep']
    """
    names, model = price_names(traces, prices)
    counts = [token_counts(traces, name, of_team=False) for name in ("tokens", "input_tokens")]
    paid = _paid(traces, *counts) & (np.array([name != "" for name in names])[model] | np.isfinite(sum(counts)))
    unpriced = sorted({names[i] for i in np.unique(model[paid]).tolist() if names[i] not in prices.models})

    def as_input(count: str, column: str) -> list[str]:
        found = np.unique(model[np.nan_to_num(token_counts(traces, count)) > 0]).tolist()
        priced = {names[i]: prices.models[names[i]] for i in found if names[i] in prices.models}
        return [name for name, price in priced.items() if getattr(price, column) is None]

    cached = traces.evidence.get("cached_tokens")
    silent = {*model[paid].tolist()} - {*([] if cached is None else model[cached.mask[: len(model)]].tolist())}
    priced = {i: prices.models[names[i]] for i in sorted(silent) if names[i] in prices.models}
    costs = event_costs(traces, prices)
    read, money = (np.bincount(model, of, len(names)) for of in (costs.least["input_tokens"], costs.least["money"]))
    less = {i: (_of(price)[2] - price.input) * read[i] / MILLION for i, price in priced.items()}
    unstated = [names[i] for i in priced if less[i] < 0 and not rounds_away(less[i], money[i], 4)]
    of_cache = np.zeros(len(model))
    for name in ("cached_tokens", "cache_write_tokens"):
        of_cache += np.nan_to_num(token_counts(traces, name, hidden=False))
    more = np.unique(model[of_cache > token_counts(traces, "input_tokens", hidden=False)]).tolist()
    beside = [names[i] for i in more if names[i] in prices.models]
    called = {tool for tool in traces.events["tool"].unique().to_pylist() if tool}
    unused = [("tool", name, called - prices.tools.keys()) for name in prices.tools if name not in called]
    answered, own = event_models(traces)
    pairs = collections.Counter(zip(own[paid].tolist(), model[paid].tolist(), strict=True))
    stands = [(answered[of], names[at], count) for (of, at), count in sorted(pairs.items())]
    others = {of: count for of, at, count in stands if at == DEFAULT}
    stated = {*unpriced, *others} - {""}
    unused += [("model", name, stated) for name in prices.models if stated and name not in names]
    requested = [f"{count:,} of {of} as {at}" for of, at, count in stands if at not in (of, DEFAULT)]
    defaulted = [f"{count:,} of {of or 'no stated model'}" for of, count in others.items()]
    asked = np.array([name or "" for name in traces.events["requested_model"].to_pylist()])
    priced_names = prices.models.keys() - {DEFAULT}
    bare = paid & (asked == np.array(answered)[own]) & np.array([name in priced_names for name in names])[model]
    unnamed = [f"{count:,} of {name}" for name, count in sorted(collections.Counter(asked[bare].tolist()).items())]
    cheap, written = as_input("cached_tokens", "cached_input"), as_input("cache_write_tokens", "cache_write")
    unused_rows, same = [_unused(*one) for one in unused], as_logged(traces, costs.money)
    return PriceGaps(unpriced, cheap, unstated, written, beside, requested, unnamed, defaulted, unused_rows, same)


def as_logged(traces: Traces, money: np.ndarray) -> bool:
    """Whether the log states the money of every trace, and it is this money, to three digits: then it is told once.

    Args:
      traces: what was read.
      money: of each event, by prices: float64 [events].
    """
    trace, m = np.asarray(traces.graph.trace_ids)[: traces.sizes.events], traces.sizes.traces
    priced, logged = (np.bincount(trace, of, m) for of in (money, token_counts(traces, "money")))
    stated = whole_costs(traces).get("money", np.full(m, np.nan))
    logged = np.where(np.isfinite(stated), stated, logged)
    return bool(np.isfinite(logged).all() and np.allclose(priced, logged, rtol=5e-4, atol=0)) and bool(logged.any())


def _unused(kind: str, name: str, known: set[str]) -> str:
    hint = near_names(name, sorted(known)) if known else ""
    return f"{kind} {name}" + (f" ({hint})" if hint.startswith("Did you mean") else "")


def _of(price: Price) -> tuple[float, ...]:
    of_cache = (price.input if own is None else own for own in (price.cached_input, price.cache_write))
    return price.input, price.output, *of_cache


def _paid(traces: Traces, tokens: np.ndarray, read: np.ndarray) -> np.ndarray:
    """Whether each real event is an action, or an embedding, that may cost money: bool [events]. One of 0 tokens costs
    none anywhere."""
    acts = np.asarray(traces.graph.action_mask)[: traces.sizes.events] | embeddings(traces)
    paid: np.ndarray = acts & ~((tokens == 0) & (read == 0))
    return paid


def _priced(price: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Price times count; 0 where either is 0, whatever the other is."""
    cost: np.ndarray = np.where((price == 0) | (count == 0), 0.0, price * count)
    return cost


def stated_costs(traces: Traces, name: str) -> np.ndarray:
    """A cost that the log states of each trace, NaN where it states none: float64 [T].

    The survey's form needs two costs; one that its log did not have is 0 there, with a mark, and counts as not stated.

    Args:
      traces: a batch.
      name: of the cost, as the log has it.
    """
    stated = traces.evidence[f"costs.{name}"].array.astype(np.float64)
    mark = traces.evidence.get(f"metrics.{name}{UNSTATED}")
    return stated if mark is None else np.where(mark.array == 1, np.nan, stated)


def whole_costs(traces: Traces) -> dict[str, np.ndarray]:
    """All costs that the log states of traces, by name: `stated_costs`."""
    names = [name.removeprefix("costs.") for name in traces.evidence if name.startswith("costs.")]
    return {name: stated_costs(traces, name)[: traces.sizes.traces] for name in sorted(names)}


def read_prices(path: str | Path) -> Prices:
    """Prices from a table: CSV, JSON lines or Parquet.

    A row has `model` (`*` for all that have no row), `input` and `output`, money for a million tokens, and may have
    `cached_input` and `cache_write`, for a million read from a cache and written to one; or `tool` and `call`, money
    for a call.

    Args:
      path: of the table.

    Raises:
      CreditError: no row; an unknown column; a name that is missing or stands twice; a price that is missing, negative,
        not finite, no number, or of a tool where it is a model's.
    """
    from graphs.reading.source import Lost
    from graphs.reading.tables.rows import number, read_rows

    models: dict[str, Price] = {}
    tools: dict[str, float] = {}

    def price(row: dict[str, Any], line: int, field: str) -> float:
        cell = row.get(field)
        amount = cell if isinstance(cell, int | float) else number(cell) if isinstance(cell, str) else None
        if amount is None or not (math.isfinite(amount) and amount >= 0):
            raise CreditError(f"{path}:{line}: {field} is {cell!r}; expected a price, 0 or more")
        return float(amount)

    rows = [*read_rows(path)]
    if not rows:
        raise CreditError(f"{path}: no row below the first line; expected a line with the columns {', '.join(COLUMNS)}")
    for line, row in rows:
        if isinstance(row, Lost):
            raise CreditError(str(row.problem))
        foreign = [name for name, cell in row.items() if name not in COLUMNS and cell is not None]
        if foreign:
            raise CreditError(f"{path}:{line}: column {foreign[0]!r}; expected some of {', '.join(COLUMNS)}")
        model, tool = row.get("model"), row.get("tool")
        if (model is None) == (tool is None):
            raise CreditError(
                f"{path}:{line}: model is {model!r} and tool is {tool!r}; expected one of the two, and "
                f"{DEFAULT} as the model for calls of any other"
            )
        others = ("input", "output", "cached_input", "cache_write") if model is None else ("call",)
        for name in (name for name in others if row.get(name) is not None):
            kind = "tool" if model is None else "model"
            raise CreditError(f"{path}:{line}: {name} is {row[name]!r} of a {kind}; expected none there")
        if str(tool if model is None else model) in (tools if model is None else models):
            raise CreditError(f"{path}:{line}: {tool if model is None else model!r} stands twice; expected one price")
        if model is None:
            tools[str(tool)] = price(row, line, "call")
        else:
            own = (
                None if row.get(name) is None else price(row, line, name) for name in ("cached_input", "cache_write")
            )
            models[str(model)] = Price(price(row, line, "input"), price(row, line, "output"), *own)
    return Prices(models, tools)


def token_counts(traces: Traces, name: str, *, of_team: bool = True, hidden: bool = True) -> np.ndarray:
    """A count of each real event, float64 [events]; 0 outside the team unless `of_team` is False.

    Without one it is NaN of an action, unless it is one of `failed_model_calls` and the log has the count of others,
    and at the last event of an agent that was spawned and has no action: what it did is not in the log. It is 0 of
    others. A trace with model calls that are in no event (`UNLOGGED_CALLS`) has NaN at the team's first event without a
    count, or at its first, unless `hidden` is False: so its own count is told. A tool's event that is no action comes
    last: it is no model call.

    Args:
      traces: a batch.
      name: of the count.
      of_team: whether events outside the team have 0.
      hidden: whether calls that are in no event make the count unknown.
    """
    graph, n = traces.graph, traces.sizes.events
    stated = traces.evidence.get(name)
    agent, silent = np.asarray(graph.agent_ids)[:n], silent_agents(traces)
    bare = np.asarray(graph.action_mask)[:n]
    bare = bare & ~failed_model_calls(traces) if stated is not None and stated.mask.any() else bare
    absent = np.where(bare, np.nan, 0.0)
    theirs = np.flatnonzero(silent[agent])
    last = np.zeros(len(silent), np.int64)
    last[agent[theirs]] = theirs  # the last assignment counts
    absent[last[agent[theirs]]] = np.nan
    counts: np.ndarray = absent if stated is None else np.where(stated.mask[:n], stated.array[:n], absent)
    if of_team:
        counts = np.where(outside_team(traces), 0.0, counts)
    unlogged = traces.evidence.get(f"metrics.{UNLOGGED_CALLS}") if hidden else None
    if unlogged is not None:
        trace, last = np.asarray(graph.trace_ids)[:n], np.zeros(n, np.int64)
        last += False if stated is None else stated.mask[:n]
        last += 2 * (
            among(np.asarray(graph.event_type)[:n], (EventType.TOOL_CALL, EventType.TOOL_RESULT))
            & ~np.asarray(graph.action_mask)[:n]
        )
        last += 4 * outside_team(traces)
        order = np.argsort(last, kind="stable")
        first = order[np.unique(trace[order], return_index=True)[1]]  # of each trace
        counts[first[unlogged.array[trace[first]] > 0]] = np.nan
    return counts
