"""Traces that a log or a batch has again under another id, as of a step that was read twice: each then counts twice.

Outcomes of a few kinds are equal by chance, and a policy may write a text again. So traces count as copies only where
those of a whole part stand again: of all, of a group, or of a file. Then numbers tell it that hardly come twice; or the
order does, in which a part's traces stand again. A trace alone is never called a copy: of 8 samples of a policy that
writes one of 50 texts, two are equal in 44 % of groups. A stretch that stands again in its order is, wherever it lies,
and so are a few traces at the end with real numbers, where no others are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from graphs.event_graph import EventGraph
from graphs.traces.real_numbers import are_real, ending_again
from graphs.traces.repeated_rows import APART, CHANCE
from graphs.traces.tokens import Tokens

__all__ = ["contents", "contents_of_tokens", "of_traces", "repeated_traces"]

_MOST_STEPS = 16  # from a trace to its copy that are tried, the commonest
NEARLY = 7 / 8
"""The part of the unlike traces from which on unlike numbers tell them apart."""

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, as hashes multiply with


def repeated_traces(
    graph: EventGraph,
    outcome: np.ndarray,
    stated: Iterable[np.ndarray],
    measured: Iterable[np.ndarray],
    file: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Traces that equal an earlier one in all numbers, in its group or another, and which: int [n] each.

    The first is surely a copy. Others may be twins by chance, of those that a part has again. An outcome of up to two
    decimals may be that of another trace, and is not measured.

    Args:
      graph: of the batch, the events of a trace beside each other; traces are numbered as they stand.
      outcome: float [T], without padding.
      stated: numbers of events, [E] each.
      measured: of these, what hardly comes twice, NaN or the count -1 where there is none.
      file: int [T], of each trace; None where there are no files.
    """
    outcome = np.asarray(outcome, np.float64)
    events, n = int(np.count_nonzero(graph.event_mask)), len(outcome)
    trace, names = np.asarray(graph.trace_ids)[:events], np.asarray(graph.agent_name_ids)
    begins = np.flatnonzero(np.diff(trace, prepend=-1))
    place = np.arange(events) - np.repeat(begins, np.diff(begins, append=events))
    kinds = 2 * np.asarray(graph.event_type)[:events] + np.asarray(graph.action_mask)[:events]
    rows = contents(place, kinds, names[np.asarray(graph.agent_ids)[:events]],
                    *(np.asarray(column)[:events] for column in stated))  # fmt: skip
    content = contents(outcome, of_traces(rows, trace, n))
    group = np.asarray(graph.group_ids)[:n]
    size = np.bincount(group)
    alike = of_traces(content, group, len(size))  # groups of the same traces, in any order
    if (size > 2).all() and (content == content[np.unique(group, return_index=True)[1]][group]).all():
        return group[:0], group[:0]  # a policy that does not vary
    for copy, original in _parts_again(content, group, file):
        if _chance_of_order(content[original], group[original]) <= np.log(CHANCE):
            return copy, original
    if stretches := [
        stretch
        for stretch in _stretches_again(content, group)
        if _chance_of_order(content[stretch[1]], group[stretch[1]]) <= np.log(CHANCE / n**2)  # of all pairs of places
    ]:
        copy, original = (np.concatenate(traces) for traces in zip(*stretches, strict=True))
        first = np.unique(copy, return_index=True)[1]  # one of those that it is a copy of
        return copy[first], original[first]
    known = [np.asarray(column)[:events] for column in measured]
    real = are_real(outcome)
    for column in known:
        real |= np.bincount(trace[are_real(column)], minlength=n) > 0
    asked = np.flatnonzero(real)
    copy, original = ending_again(content[asked], group[asked])
    if len(copy):
        return asked[copy], asked[original]
    fine = np.abs(outcome - np.round(outcome, 2)) > 1e-6
    has_numbers = fine
    for column in known:
        is_known = np.isfinite(column) & ((column.dtype.kind == "f") | (column >= 0))
        has_numbers = has_numbers | (np.bincount(trace[is_known], minlength=n) > 0)
    numbers = contents(np.where(fine, outcome, 0.0), of_traces(contents(place, *known), trace, n))
    asked = np.flatnonzero(has_numbers)
    content = contents(np.where(size > 1, alike, 0)[group], content)  # a group of one tells nothing
    _, unlike, which, often = np.unique(content[asked], return_index=True, return_inverse=True, return_counts=True)
    again = unlike[which] < np.arange(len(asked))
    if len(np.unique(numbers[asked][unlike])) >= NEARLY * len(unlike) and again.any():
        whole = np.zeros(len(asked), bool)
        for part in (0 * group, group, *([] if file is None else [file])):
            ids = np.unique(part[asked], return_inverse=True)[1]
            whole |= _copied(which, again, ids)[ids]
        again &= whole
    else:
        again[:] = False
    copies = np.flatnonzero(again)
    copies = copies[np.argsort(often[which[copies]], kind="stable")]  # those that stand least often are no twins
    return asked[copies], asked[unlike[which[copies]]]


def _parts_again(
    content: np.ndarray, group: np.ndarray, file: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Parts of the batch whose traces are, one by one, those of an earlier part: of all, and of files.

    Args:
      content, group, file: int [T].
    """
    n = len(content)
    traces = np.arange(n)
    for parts in range(2, n // APART + 1):
        size = n // parts
        if n % parts == 0 and (content == np.tile(content[:size], parts)).all():
            of_part = [_by_appearance(group[start : start + size]) for start in range(0, n, size)]
            if all((ids == of_part[0]).all() for ids in of_part[1:]):
                yield traces[size:], traces[size:] % size
            break  # parts of parts are as much alike
    earlier: dict[bytes, np.ndarray] = {}
    for of in [] if file is None else np.unique(file):
        members = np.flatnonzero(file == of)
        stated = np.stack([content[members], _by_appearance(group[members]).astype(np.uint64)]).tobytes()
        if (original := earlier.setdefault(stated, members)) is not members and len(members) >= APART:
            yield members, original


def _stretches_again(content: np.ndarray, group: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Stretches of the batch whose traces are, one by one, those of an earlier stretch.

    Args:
      content, group: int [T].
    """
    order = np.argsort(content, kind="stable")
    alike = content[order][1:] == content[order][:-1]
    back = np.zeros(len(content), np.int64)  # to the trace before that has the same content
    back[order[1:][alike]] = (order[1:] - order[:-1])[alike]
    steps, often = np.unique(back[back >= APART], return_counts=True)
    for step in steps[np.argsort(-often, kind="stable")][:_MOST_STEPS].tolist():
        same = np.concatenate([[False], content[step:] == content[:-step], [False]])
        for start, stop in np.flatnonzero(np.diff(same)).reshape(-1, 2) + step:
            copy = np.arange(start, stop)
            if APART <= len(copy) <= step and (_by_appearance(group[copy]) == _by_appearance(group[copy - step])).all():
                yield copy, copy - step


def _by_appearance(ids: np.ndarray) -> np.ndarray:
    _, first, which = np.unique(ids, return_index=True, return_inverse=True)
    ranks: np.ndarray = np.argsort(np.argsort(first))[which]
    return ranks


def _chance_of_order(content: np.ndarray, group: np.ndarray) -> float:
    """The log of the chance that as many other traces have these contents in this order, and no less than it.

    The chance of each is the share of the others that have its content: of those of its group, of those at its place in
    their groups, or of those behind the same one or two, whichever is most. So outcomes that are sorted, come by turns,
    or are all equal in a group, as those of a policy that hardly varies, are likely to be equal in another part.

    Args:
      content, group: int [T], of the traces of the part.

    Examples:
      >>> passed = np.array([1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0] * 2)[:30]
      >>> bool(_chance_of_order(passed, np.arange(30) // 5) < np.log(1e-4))
      True
      >>> _chance_of_order(np.arange(30) % 2, np.arange(30) // 6)
      0.0
    """
    content = np.unique(content, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[order], prepend=group[order][0] - 1))
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    before = np.concatenate([[-1], content[:-1]])
    beside = (len(content) + 1) * before + np.concatenate([[-1], before[:-1]])
    share = np.full(len(content), 1 / len(content))
    for ids in (group, place, before, beside):
        _, of, size = np.unique(ids, return_inverse=True, return_counts=True)
        _, pair, alike = np.unique(len(content) * of + content, return_inverse=True, return_counts=True)
        share = np.maximum(share, (alike[pair] - 1) / np.maximum(size[of] - 1, 1))
    return float(np.log(share).sum())


def _copied(which: np.ndarray, again: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Whether the traces of each part stand equally often, more than once, or all before it: bool [parts]."""
    found = np.zeros(int(part.max()) + 1, bool)
    order = np.argsort(part, kind="stable")
    for of, members in enumerate(np.split(order, np.flatnonzero(np.diff(part[order])) + 1)):
        unlike, often = np.unique(which[members], return_counts=True)
        times = int(np.gcd.reduce(often))
        is_whole = times > 1 or again[members].all()
        found[of] = is_whole and len(unlike) >= max(APART, NEARLY * len(members) / times)
    return found


def of_traces(rows: np.ndarray, trace: np.ndarray, n: int) -> np.ndarray:
    """A number for the rows of each trace, which tell their places: uint64 [T]."""
    total = np.zeros(n, np.uint64)
    np.add.at(total, trace, rows)
    return total


def contents(first: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """A number for the cells of each row, alike where all are: uint64 [N]."""
    content = np.zeros(len(first), np.uint64)
    for column in (first, *columns):
        cells = column if column.dtype == np.uint64 else column.astype(np.float64).view(np.uint64)
        content = (content * _ODD ^ cells) * _ODD
        content ^= content >> np.uint64(29)
    return content


def contents_of_tokens(tokens: Tokens | None, events: int) -> list[np.ndarray]:
    """A number for the ids of each event, and one for their log-probabilities: [E] each; none without tokens."""
    if tokens is None:
        return []
    lengths, of = np.diff(tokens.offsets), tokens.events
    place = np.sqrt(1.0 + np.arange(len(of)) - np.repeat(tokens.offsets[:-1], lengths))  # sums tell orders apart
    ids, logs = (np.bincount(of, place * part, events) for part in (tokens.ids, np.nan_to_num(tokens.log_probs)))
    return [contents(lengths, ids), logs]
