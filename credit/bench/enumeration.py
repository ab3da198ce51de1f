"""Every batch that a way of sampling can give in a micro-orchestration, with its probability and its evidence.

There are four ways of sampling:

    K independent traces, and beside each, where a method needs it, a run of the team without one of its agents
    one trace, and beside it a greedy run or a re-run of each decision
    one trace with alternatives sampled at each of its decisions, which makes a replay tree
    several traces of one group, each with siblings from one of its decisions on

Legend: D batches, T traces of a batch, M decisions of a trace.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from graphs.worlds.micro.orchestration import History, Lottery, Micro

__all__ = ["DECISIONS", "Draws", "alone", "count_fan_outs", "count_replays", "fan_outs", "independent", "replays"]

DECISIONS = 4
"""M, one size for all worlds, so that a method compiles once for all of them."""


@dataclasses.dataclass(frozen=True)
class Draws:
    """Every batch of one way of sampling.

    Attributes:
      world: whose traces they are.
      chance: float64 [D], the probability of each batch; sums to 1.
      members: int [D, T], numbers of traces of the world, which may repeat; -1 behind the last.
      weight: float64 [D, T, M], of each decision in the batch's estimate of the gradient.
      evidence: what only this way of sampling gives: by name, [D, T, M] or [D, T].
      beside: int [D] or 0, runs that give evidence and are no traces of the batch.
      cluster_ids: int32 [D, T], equal for traces that share a choice; None where all traces of a batch are independent.
    """

    world: Micro
    chance: np.ndarray
    members: np.ndarray
    weight: np.ndarray
    evidence: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    beside: np.ndarray | int = 0
    cluster_ids: np.ndarray | None = None

    def part(self, start: int, stop: int) -> Draws:
        """Some of the batches, whose chances then sum to less than 1."""
        beside = self.beside if isinstance(self.beside, int) else self.beside[start:stop]
        evidence = {name: values[start:stop] for name, values in self.evidence.items()}
        arrays = (self.chance[start:stop], self.members[start:stop], self.weight[start:stop])
        return Draws(
            self.world, *arrays, evidence, beside, None if self.cluster_ids is None else self.cluster_ids[start:stop]
        )

    def rearranged(self, k: int) -> Draws:
        """The K traces of each batch in another order: of one batch the reverse, of the next the last comes first."""
        other = np.tile(np.arange(self.members.shape[1]), (len(self.members), 1))
        other[::2, :k], other[1::2, :k] = np.arange(k)[::-1], np.roll(np.arange(k), 1)
        evidence = {name: np.take_along_axis(values, other.reshape(*other.shape, *[1] * (values.ndim - 2)), 1)
                    for name, values in self.evidence.items()}  # fmt: skip
        members = np.take_along_axis(self.members, other, 1)
        return dataclasses.replace(self, members=members, evidence=evidence)  # weights are equal

    @property
    def runs(self) -> float:
        """How many runs of the team a batch takes, on average."""
        return float(self.chance @ ((self.members >= 0).sum(1) + self.beside))


def independent(
    world: Micro, k: int, room: int = 0, name: str = "", beside: Lottery = ((1.0, 0.0),), ordered: bool = True
) -> Draws:
    """K independent traces of one task, each decision of weight 1/K; padded to `room` traces if that is more.

    Args:
      name: of the evidence that a run beside each trace gives, at the trace's first decision; "" without such runs.
      beside: the lottery of these runs, drawn independently.
      ordered: False makes one of batches that differ in the order of their traces only.
    """
    odds, prizes = np.array(beside).T
    single = np.outer(world.probabilities(), odds).ravel()
    several = itertools.combinations_with_replacement(range(len(single)), k)
    rows = list(itertools.product(range(len(single)), repeat=k) if ordered else several)
    picked = np.array(rows)
    chance = np.prod(single[picked], axis=1) * (1 if ordered else np.array([*map(_orders, rows)]))
    members = np.pad(picked // len(odds), ((0, 0), (0, max(0, room - k))), constant_values=-1)
    weight = np.full((*members.shape, DECISIONS), 1 / k)
    evidence = {}
    if name:
        evidence[name] = np.full(weight.shape, np.nan)
        evidence[name][:, :k, 0] = prizes[picked % len(odds)]
    return Draws(world, chance, members, weight, evidence, k if name else 0)


def alone(world: Micro, name: str = "", beside: Callable[[int], Sequence[Lottery]] | None = None) -> Draws:
    """One trace, and what was run beside it.

    Args:
      name: of the evidence that the runs beside it give.
      beside: of a trace, by its number, the lotteries of these runs, drawn independently: one for each of its
        decisions; or, where `name` is "greedy_reward", a single one.
    """
    chance: list[float] = []
    members: list[int] = []
    prizes: list[list[float]] = []
    for trace, p in enumerate(world.probabilities()):
        for tickets in itertools.product(*(beside(trace) if beside else ())):
            chance.append(float(p) * math.prod(q for q, _ in tickets))
            members.append(trace)
            prizes.append([prize for _, prize in tickets])
    evidence = {}
    if name == "greedy_reward":
        evidence[name] = np.array(prizes)
    elif name:
        evidence[name] = np.array([[[*row, *[np.nan] * (DECISIONS - len(row))]] for row in prizes])
    weight, runs = np.ones((len(members), 1, DECISIONS)), np.array([len(row) for row in prizes])
    return Draws(world, np.array(chance), np.array(members)[:, None], weight, evidence, runs)


Leaf = tuple[int, tuple[tuple[History, int, float], ...]]
"""A trace, and at each of its first decisions: the place of the fan-out, the slot taken there, and its weight."""


def replays(world: Micro, alternatives: int, nested: bool = False) -> Draws:
    """A trace with alternatives to each of its decisions, sampled under the frozen context and continued to the end.

    Alternatives are drawn from the policy, the trace's own choice is one of them. With `nested` the continuations fan
    out again at each of their decisions, so that a context at depth d is one of `alternatives`^d; otherwise each is
    continued once, and only decisions of the first trace have siblings. The alternatives of a context share its weight.
    """
    chance, batch = zip(*_fan_outs(world, (), (), 1.0, alternatives, nested), strict=True)
    room = max(len(leaves) for leaves in batch) if nested else 1 + (alternatives - 1) * DECISIONS
    shape = (len(batch), room, DECISIONS)
    # Batches are made of the same leaves over and over: each is laid out once, and batches pick theirs by number.
    distinct = {id(leaf): leaf for leaves in batch for leaf in leaves}
    number = {key: i for i, key in enumerate(distinct)}
    picked = np.full(shape[:2], len(distinct))
    for d, leaves in enumerate(batch):
        picked[d, : len(leaves)] = [number[id(leaf)] for leaf in leaves]
    rows = (len(distinct) + 1, DECISIONS)  # the last is that of no leaf
    members, weight = np.full(len(distinct) + 1, -1), np.zeros(rows)
    context, node = np.full(rows, -1, np.int32), np.full(rows, -1, np.int32)
    contexts: dict[History, int] = {}
    nodes: dict[History, int] = {}
    for i, (trace, path) in enumerate(distinct.values()):
        members[i] = trace
        for m, (place, slot, share) in enumerate(path):
            context[i, m] = contexts.setdefault(place, len(contexts))
            node[i, m] = nodes.setdefault((*place, slot), len(nodes))
            weight[i, m] = share
    evidence = {"context": context[picked], "node": node[picked]}
    return Draws(world, np.array(chance), members[picked], weight[picked], evidence)


def count_replays(world: Micro, alternatives: int, nested: bool = False, history: History = ()) -> int:
    """How many batches `replays` gives from a history on, without any of them."""

    def options(further: bool) -> int:
        ahead = [(*history, choice) for choice in range(world.states[history].choices)]
        return sum(
            count_replays(world, alternatives, nested, after)
            if further and after in world.states
            else len(_continuations(world, after))
            for after in ahead
        )

    same = alternatives if nested else alternatives - 1
    several = math.comb(options(nested) + same - 1, same)
    return several if nested else several * options(True)


def fan_outs(world: Micro, fans: int, decision: int, siblings: int, ordered: bool = False) -> Draws:
    """Traces of one group, of each of which `siblings` are continued on their own from one decision on.

    The siblings share their first `decision` choices; a trace that ends earlier stands alone. Fan-outs are independent,
    and so, given the shared choices, are siblings. Each fan-out has the same weight, and within it each trace. Batches
    that differ in the order of their traces only are one, unless `ordered`, which methods of scope "sequence" need.
    """
    chance, fan = zip(*_siblings(world, decision, siblings, ordered), strict=True)
    several = itertools.product(range(len(fan)), repeat=fans)
    rows = list(several if ordered else itertools.combinations_with_replacement(range(len(fan)), fans))
    shape = (len(rows), fans * siblings)
    members, cluster_ids = np.full(shape, -1), np.zeros(shape, np.int32)
    weight = np.zeros((*shape, DECISIONS))
    context, node = np.full(weight.shape, -1, np.int32), np.full(weight.shape, -1, np.int32)
    tree, mass = np.full(shape, -1, np.int32), np.zeros(len(rows))
    for d, row in enumerate(rows):
        mass[d] = (1 if ordered else _orders(row)) * math.prod(chance[i] for i in row)
        t = 0
        for number, i in enumerate(row):
            first = t
            for trace in fan[i]:
                members[d, t], weight[d, t], cluster_ids[d, t] = trace, 1 / fans / len(fan[i]), first if decision else t
                tree[d, t] = number
                if len(fan[i]) > 1:
                    context[d, t, decision], node[d, t, decision] = number, t
                t += 1
    evidence = {"context": context, "node": node, "tree": tree}
    return Draws(world, mass, members, weight, evidence, cluster_ids=cluster_ids)


def count_fan_outs(world: Micro, fans: int, decision: int, siblings: int) -> int:
    """How many batches `fan_outs` gives in any order, without any of them."""
    return math.comb(len(list(_siblings(world, decision, siblings, False))) + fans - 1, fans)


def _orders(picked: Sequence[int]) -> int:
    """In how many orders the same numbers may stand."""
    return math.factorial(len(picked)) // math.prod(math.factorial(picked.count(i)) for i in set(picked))


def _siblings(world: Micro, decision: int, siblings: int, ordered: bool) -> Iterator[tuple[float, list[int]]]:
    """Every fan-out: its probability and the traces in it; unless `ordered`, in one of their orders."""
    chance = world.probabilities()
    prefixes = dict.fromkeys(end[:decision] for end, _, _ in world.ends)
    for prefix in prefixes:
        leaves = [i for i, (end, _, _) in enumerate(world.ends) if end[:decision] == prefix]
        mass = sum(float(chance[i]) for i in leaves)
        if prefix not in world.states:
            yield from ((float(chance[i]), [i]) for i in leaves)
            continue
        several = itertools.product(leaves, repeat=siblings)
        for picked in several if ordered else itertools.combinations_with_replacement(leaves, siblings):
            times = 1 if ordered else _orders(picked)
            yield mass * times * math.prod(float(chance[i]) / mass for i in picked), list(picked)


def _fan_outs(
    world: Micro, history: History, place: History, weight: float, alternatives: int, nested: bool
) -> Iterator[tuple[float, list[Leaf]]]:
    """Every way in which the fan-out at a history may come out; draws that differ in order only are one.

    Methods do not see the order of alternatives (the law `order`), so this changes no mean. Slot 0 is apart where it
    goes on to decisions that have alternatives, and the others do not.
    """
    first = list(_slot(world, history, place, weight, alternatives, nested, 0))
    same = range(0 if nested else 1, alternatives)  # slots that are drawn alike
    options = [list(_slot(world, history, place, weight, alternatives, nested, slot)) for slot in same]
    ahead = [(1.0, [])] if nested else first
    for picked in itertools.combinations_with_replacement(range(len(options[0])), len(same)):
        orders = math.factorial(len(same)) / math.prod(math.factorial(picked.count(i)) for i in set(picked))
        chosen = [options[slot][i] for slot, i in enumerate(picked)]
        chance = orders * math.prod(p for p, _ in chosen)
        rest = [leaf for _, leaves in chosen for leaf in leaves]
        yield from ((p * chance, [*leaves, *rest]) for p, leaves in ahead)


def _slot(
    world: Micro, history: History, place: History, weight: float, alternatives: int, nested: bool, slot: int
) -> Iterator[tuple[float, list[Leaf]]]:
    """Every alternative that a slot may take, with everything that may follow it."""
    here = list(world.states).index(history)
    below = weight / alternatives if nested else weight
    for choice in range(world.states[history].choices):
        after, p = (*history, choice), float(world.policy[here, choice])
        if after in world.states and (nested or slot == 0):
            follow = list(_fan_outs(world, after, (*place, slot), below, alternatives, nested))
        else:
            follow = _continuations(world, after)
        for q, leaves in follow:
            label = (place, slot, weight / alternatives / len(leaves))
            yield p * q, [(trace, (label, *path)) for trace, path in leaves]


def _continuations(world: Micro, history: History) -> list[tuple[float, list[Leaf]]]:
    """What may come of going on once from a history: one trace stands for all with the same return.

    Nothing else of such a trace is used: its later decisions have no siblings, no weight, and no part in the tree.
    """
    stands_for: dict[float, tuple[int, float]] = {}
    chance = world.probabilities()
    for i, (end, _, _) in enumerate(world.ends):
        if end[: len(history)] == history:
            prize = round(float(world.total[i]), 9)
            first, p = stands_for.get(prize, (i, 0.0))
            stands_for[prize] = first, p + float(chance[i])
    mass = sum(p for _, p in stands_for.values())
    return [(p / mass, [(trace, ())]) for trace, p in stands_for.values()]
