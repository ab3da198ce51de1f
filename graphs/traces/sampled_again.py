"""Traces and rows whose own numbers prove them copies, though they stand alone: sampled tokens, and times of a clock.

A policy that wrote a text with log-probability L writes it again with chance e^L, so that the log itself says how
unlikely an honest repetition is, over all pairs. Log-probabilities may be of another policy than the one that sampled,
as where decoding was greedy or cooler: then unlike traces of a task share long beginnings, of which honest ones share
one nat on average. What they share more than that takes from the proof. A clock proves traces by its digits behind
the second, once a moment, where most runs are unlike and hardly a moment is of two of them; of rows `copies_in_place`
tells. Log-probabilities of whole actions show no shared beginnings: they prove traces of several, and rows where traces
share no rare one but by chance, which in single precision grows with the batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from graphs.event_graph import EventGraph
from graphs.traces.real_numbers import SURELY, are_real
from graphs.traces.repeated_rows import APART, CHANCE
from graphs.traces.repeated_traces import NEARLY, contents, contents_of_tokens, of_traces
from graphs.traces.tokens import Tokens

__all__ = ["sampled_again"]

_FEW = 4  # unlike pairs of traces, without which nothing shows how the policy samples
_DIGITS = 6
_SHARED = 1 / 20  # as many numbers that traces share are no chance
_REAL = 0.5  # of a whole action's log-probability, whose decoding may be cooler


def sampled_again(
    graph: EventGraph,
    outcome: np.ndarray,
    stated: Mapping[str, np.ndarray],
    tokens: Tokens | None,
    times: np.ndarray,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Traces that are surely copies and of which ones, and events that surely repeat one of their trace: int [n] each.

    Args:
      graph: of the batch, the events of a trace beside each other. Replays that share a choice are no copies.
      outcome: float [T].
      stated: numbers of events, [E] each, by the names of evidence.
      tokens: of the events. Without log-probabilities of these, `log_prob` is that of each action.
      times: float64 [E], of the log's clock, NaN where there is none.
    """
    events, n = int(np.count_nonzero(graph.event_mask)), len(outcome)
    trace, acts = np.asarray(graph.trace_ids)[:events], np.asarray(graph.action_mask)[:events]
    name = np.asarray(graph.agent_name_ids)[np.asarray(graph.agent_ids)[:events]]
    kinds = 2 * np.asarray(graph.event_type)[:events] + acts
    columns = [np.asarray(column)[:events] for column in stated.values()]
    whole_actions = "log_prob" in stated and (tokens is None or not np.isfinite(tokens.log_probs).any())
    if whole_actions:
        of_action = np.where(acts, np.asarray(stated["log_prob"])[:events], np.nan)
        of_action[np.bincount(trace[np.isfinite(of_action)], minlength=n)[trace] < 2] = np.nan
        tokens = _whole_actions(contents_of_tokens(tokens, events), of_action)
    of_tokens = contents_of_tokens(tokens, events)
    row = contents(kinds, name, times[:events], *columns, *of_tokens)
    content = contents(
        np.asarray(outcome, float),
        of_traces(contents(np.arange(events) - np.searchsorted(trace, trace), row), trace, n),
    )
    copy, original = _later(content)
    unlike = np.isin(np.arange(n), copy, invert=True)
    cluster = _clusters(graph, n)
    own = np.bincount(cluster, minlength=n)[cluster] == 1
    copy, original = copy[own[copy]], original[own[copy]]
    again, first = _later(contents(trace, row))
    if whole_actions:
        surely = _unlikely(of_action, cluster[trace], contents(np.asarray(graph.group_ids)[trace], name))
        again, first = again[surely[again]], first[surely[again]]
        by_chance = _equal_by_chance(of_action[surely], contents(trace, name)[surely])
        if len(again) and _log_chance(len(again), by_chance) > math.log(SURELY):
            again, first = again[:0], first[:0]
    if not len(copy) and not len(again):
        return (copy, original), (again, first)
    clock = _surprise_of_clock(times[:events], cluster[trace], acts, np.asarray(graph.group_ids)[trace], unlike[trace])
    if 2 * np.count_nonzero(unlike) <= n:  # runs may be alike as a rule, and so their times
        clock[:] = 0.0
    surprise = np.zeros(events)
    if tokens is not None:
        known = tokens.mask & np.isfinite(tokens.log_probs)
        _, which, often = np.unique(of_tokens[0], return_inverse=True, return_counts=True)
        known &= (often[which] <= 2)[tokens.events]  # what stands more often is what the policy mostly writes
        surprise += np.bincount(tokens.events[known], -tokens.log_probs[known].astype(float), events)
    every = 2 * np.bincount(trace[again], minlength=n) == np.bincount(trace, minlength=n)  # each row twice
    calls = np.where(every, 0.0, np.log(np.maximum(np.bincount(trace, minlength=n), 1)))[trace]

    def proven(share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which copies of traces and of events are proven, where this share of each trace's surprise is real."""
        nats = share[trace] * surprise
        of_copies = np.bincount(trace, nats + clock, n)[copy] >= math.log(max(n, 1) ** 2 / CHANCE)
        repeated = np.bincount(trace[again], np.maximum(nats - calls, 0)[again], n)
        return of_copies, (repeated >= math.log(max(n, 1) / CHANCE))[trace[again]]

    whole, rows = proven(np.ones(n))
    if (whole.any() or rows.any()) and tokens is not None:
        between, within = _real_shares(graph, tokens, content, row, trace, name)
        whole, rows = proven(between)[0], proven(np.minimum(between, within))[1]
    if whole_actions:
        rows = np.ones(len(again), bool)
    return (copy[whole], original[whole]), (again[rows], first[rows])


def _whole_actions(ids: list[np.ndarray], log_prob: np.ndarray) -> Tokens:
    """Each action as one token.

    Args:
      ids: of the tokens of each event, of `contents_of_tokens`.
      log_prob: [E], of each action, NaN where it is not known.
    """
    which = np.unique(contents(log_prob, *ids), return_inverse=True)[1]
    return Tokens(np.arange(len(log_prob) + 1), which, np.isfinite(log_prob), log_prob)


def _unlikely(log_prob: np.ndarray, cluster: np.ndarray, peer: np.ndarray) -> np.ndarray:
    """Actions that no two of a batch share by chance: bool [E]; none where traces share more of them
    than chance makes equal, or few can be compared.

    Args:
      log_prob: [E], of each action, NaN where it is not known. Rounded ones are equal by chance.
      cluster, peer: int [E], the replays, and the task and agent, of each.
    """
    rare = np.flatnonzero(log_prob <= math.log(CHANCE))
    unlikely = _REAL * log_prob <= math.log(CHANCE) - 2 * math.log(max(len(log_prob), 1))
    rounded = np.count_nonzero(are_real(log_prob[rare])) < NEARLY * len(rare)
    pairs = contents(peer[unlikely], cluster[unlikely])
    compared = len(np.unique(pairs)) - len(np.unique(peer[unlikely]))
    alone = all(_seldom_shared(log_prob[rare], cluster[rare], part[rare]) for part in (np.zeros_like(peer), peer))
    return unlikely & (alone and not rounded and compared >= _FEW)


def _seldom_shared(log_prob: np.ndarray, cluster: np.ndarray, part: np.ndarray) -> bool:
    """Whether clusters of one part share no more numbers than single precision makes equal: [N] each."""
    values = np.unique(contents(part, log_prob, cluster), return_index=True)[1]
    shared = len(values) - len(np.unique(contents(part, log_prob)))
    return shared == 0 or _log_chance(shared, _equal_by_chance(log_prob[values], part[values])) > math.log(_SHARED)


def _equal_by_chance(log_prob: np.ndarray, part: np.ndarray) -> float:
    """How many pairs of one part are expected to be equal in single precision, by how many are within a nat: [N]."""
    _, first, often = np.unique(contents(part, np.floor(log_prob)), return_index=True, return_counts=True)
    spacing = np.spacing(np.abs(log_prob[first]).astype(np.float32)).astype(float)
    return float((spacing * often * (often - 1) / 2).sum())


def _log_chance(found: int, expected: float) -> float:
    """The log of no less than the chance of as many, where so many are expected."""
    return 0.0 if found <= expected else found - expected - found * math.log(found / max(expected, 1e-99))


def _clusters(graph: EventGraph, n: int) -> np.ndarray:
    """The cluster of replays of each of n traces; itself where none are known."""
    return np.arange(n) if graph.cluster_ids is None else np.asarray(graph.cluster_ids)[:n]


def _later(content: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of what equals an earlier one, and that."""
    _, first, which = np.unique(content, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which] < np.arange(len(content)))
    return again, first[which[again]]


def _surprise_of_clock(
    times: np.ndarray, run: np.ndarray, acts: np.ndarray, group: np.ndarray, unlike: np.ndarray
) -> np.ndarray:
    """What the time of each action proves, in nats: its digits behind the second, where unlike runs differ in it.

    Agents of a run act at one moment, which proves once. Relative clocks show the same times in unlike runs.

    Args:
      times, acts, group: [E], of the events.
      run: int [E], the trace of each, or the replays that share its beginning.
      unlike: bool [E], whether its trace equals none before.
    """
    timed = np.flatnonzero(acts & np.isfinite(times))
    timed = timed[np.unique(contents(run[timed], times[timed]), return_index=True)[1]]
    nats = np.zeros(len(times))
    digits = np.full(len(timed), _DIGITS)
    for digit in reversed(range(_DIGITS)):
        scaled = times[timed] * 10.0**digit
        digits[np.abs(scaled - np.round(scaled)) < np.maximum(1e-3, 2 * np.spacing(scaled))] = digit
    fine = timed[(digits > 0) & unlike[timed]]
    moments, often = np.unique(times[fine], return_counts=True)
    several = len(fine) - len(np.unique(group[fine]))  # or each task may have one time
    if several >= APART and np.count_nonzero(often == 1) >= NEARLY * len(fine):
        nats[timed] = np.where(np.isin(times[timed], moments[often == 1]), math.log(10) * digits, 0.0)
    return nats


def _real_shares(
    graph: EventGraph, tokens: Tokens, content: np.ndarray, row: np.ndarray, trace: np.ndarray, name: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The share of each trace's surprise of tokens by which the policy really varies, from shared beginnings: [T].

    First between traces of a task that one agent begins, then between calls of one agent in a trace.

    Args:
      content: [T].
      row, trace, name: [E], of the events.
    """
    known = np.flatnonzero(tokens.mask & np.isfinite(tokens.log_probs))
    event, logs = tokens.events[known], tokens.log_probs[known].astype(float)
    symbols = np.where(tokens.ids[known] >= 0, tokens.ids[known], logs)
    n = len(content)
    of_trace = np.searchsorted(trace[event], np.arange(n + 1))
    of_row = np.searchsorted(event, np.arange(len(row) + 1))
    who = np.full(n, -1)
    some = of_trace[1:] > of_trace[:-1]
    who[some] = name[event[of_trace[:-1][some]]]
    group, cluster = np.asarray(graph.group_ids)[:n], _clusters(graph, n)
    between = _varies(content, group, who, of_trace, logs, symbols, cluster, untold=0.0)
    within = _varies(row, trace, name, of_row, logs, symbols, np.arange(len(row)), untold=1.0)
    return between[group], within


def _varies(
    content: np.ndarray,
    part: np.ndarray,
    who: np.ndarray,
    begins: np.ndarray,
    logs: np.ndarray,
    symbols: np.ndarray,
    cluster: np.ndarray,
    untold: float,
) -> np.ndarray:
    """How many pairs of neighbours differ, over the surprise of the tokens with which both begin, of each part: 0 to 1.

    It is that of all parts where that is less, or `untold` where pairs are few. Neighbours that are equal count, but
    for those of a few parts that stand twice: it is they that may be copies.
    """
    some = np.flatnonzero(begins[1:] > begins[:-1])
    order = some[np.lexsort((some, who[some], part[some]))]
    one, other = order[:-1], order[1:]
    asked = (cluster[one] != cluster[other]) & (part[one] == part[other]) & (who[one] == who[other])
    one, other = one[asked], other[asked]
    _, which, often = np.unique(content, return_inverse=True, return_counts=True)
    twice = (which[one] == which[other]) & (often[which[one]] == 2)
    of_parts = len(np.unique(part[one[twice]])) <= max(1, len(np.unique(part)) / APART)
    if of_parts or np.count_nonzero(twice) <= len(one) / 4:
        one, other = one[~twice], other[~twice]
    shared, differ = np.zeros(len(one)), np.zeros(len(one), bool)
    for pair, (a, b) in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
        size = min(begins[a + 1] - begins[a], begins[b + 1] - begins[b])
        unlike = np.flatnonzero(symbols[begins[a] : begins[a] + size] != symbols[begins[b] : begins[b] + size])
        differ[pair] = len(unlike) > 0
        shared[pair] = -logs[begins[a] : begins[a] + (unlike[0] if len(unlike) else size)].sum()
    parts = int(part.max()) + 1
    own = (np.bincount(part[one], differ, parts) + 1) / (np.bincount(part[one], shared, parts) + 1)
    of_all = min(1.0, differ.sum() / (shared.sum() + 1)) if len(one) >= _FEW else untold
    return np.minimum(own, of_all)
