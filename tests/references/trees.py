"""Replay trees, walked from the root: contexts hold alternatives, alternatives hold contexts and ended traces."""

from __future__ import annotations

import dataclasses
import math

from .plain import Event, Trace

__all__ = ["c3", "magrpo", "off_policy", "stop_credit"]


@dataclasses.dataclass
class Node:
    """An alternative: the traces that pass it, with the steps they took there, and how they go on."""

    context: int
    passing: list[tuple[Trace, int]]
    below: set[int]
    ended: list[Trace]


class Tree:
    """The steps of each trace (runs of actions with one node), and the nodes they make."""

    def __init__(self, traces: list[Trace], chosen: str = "node") -> None:
        self.steps: dict[int, list[list[Event]]] = {}
        self.nodes: dict[int, Node] = {}
        self.alternatives: dict[int, set[int]] = {}
        for t in traces:
            path: list[list[Event]] = []
            for e in t.rows:
                if e.given["context"] is None or e.given[chosen] is None:
                    continue
                if path and path[-1][0].given[chosen] == e.given[chosen]:
                    path[-1].append(e)
                else:
                    path.append([e])
            self.steps[t.number] = path
            for i, step in enumerate(path):
                node, context = step[0].given[chosen], step[0].given["context"]
                known = self.nodes.setdefault(node, Node(context, [], set(), []))
                known.passing.append((t, i))
                self.alternatives.setdefault(context, set()).add(node)
                if i + 1 < len(path):
                    known.below.add(path[i + 1][0].given["context"])
                else:
                    known.ended.append(t)

    def weights(self, node: int) -> dict[int, float]:
        """The part of each trace in the mean over children of the mean over alternatives of their means, and so on."""
        here = self.nodes[node]
        children = [{t.number: 1.0} for t in here.ended]
        for context in here.below:
            child: dict[int, float] = {}
            for other in self.alternatives[context]:
                for trace, w in self.weights(other).items():
                    child[trace] = child.get(trace, 0.0) + w / len(self.alternatives[context])
            children.append(child)
        out: dict[int, float] = {}
        for child in children:
            for trace, w in child.items():
                out[trace] = out.get(trace, 0.0) + w / len(children)
        return out


def c3(traces: list[Trace], others: bool = True, normalise: bool = False, own: bool = True) -> dict[int, float]:
    tree, outcome = Tree(traces), {t.number: t.total for t in traces if t.outcome is not None}
    share = {node: tree.weights(node) for node in tree.nodes}
    value = {node: sum(w * outcome[t] for t, w in parts.items()) for node, parts in share.items()}
    out = {}
    for rivals in tree.alternatives.values():
        if len(rivals) < 2:
            continue
        against = {r: _mean([value[s] for s in rivals if not others or s != r]) for r in rivals}
        advantage = {r: value[r] - against[r] for r in rivals}
        if normalise:
            mean = _mean(list(advantage.values()))
            variance = _mean([(a - mean) ** 2 for a in advantage.values()])
            advantage = {r: (a - mean) / max(math.sqrt(variance + 1e-8), 1e-8) for r, a in advantage.items()}
        found: dict[int, float] = {}
        complete = True
        for r in rivals:
            for t, i in tree.nodes[r].passing:
                number = advantage[r]
                if not own:
                    kin = _sharing_a_later_choice(tree, r, t, i)
                    rest = {u: w for u, w in share[r].items() if u not in kin}
                    complete = complete and bool(rest)
                    if rest:
                        number = sum(w * outcome[u] for u, w in rest.items()) / sum(rest.values()) - against[r]
                found |= {e.place: number for e in tree.steps[t.number][i]}
        out |= found if complete else {}
    return out


def _sharing_a_later_choice(tree: Tree, node: int, trace: Trace, step: int) -> set[int]:
    """The trace, and those through the node that pass the node of its next step too; its context after own choices."""
    path = tree.steps[trace.number]
    if step + 1 == len(path):
        return {trace.number}
    after = path[step + 1][0]
    between = any(path[step][-1].place < e.place < after.place for e in trace.rows)
    name = "context" if between else "node"
    kin = {trace.number}
    for other, i in tree.nodes[node].passing:
        steps = tree.steps[other.number]
        if i + 1 < len(steps) and steps[i + 1][0].given[name] == after.given[name]:
            kin.add(other.number)
    return kin


def magrpo(traces: list[Trace], kind: str = "mean", gamma: float = 0.9) -> dict[int, float]:
    tree = Tree(traces)
    to_go: dict[tuple[int, int], float] = {}
    for t in traces:
        path = tree.steps[t.number]
        total = 0.0
        for i in reversed(range(len(path))):
            end = path[i + 1][0].place if i + 1 < len(path) else math.inf
            r = sum(e.reward for e in t.events if path[i][0].place <= e.place < end)
            total = r + (gamma * total if i + 1 < len(path) else t.outcome)
            to_go[t.number, i] = total
    value = {}
    for node, here in tree.nodes.items():
        parts, at = tree.weights(node), {t.number: i for t, i in here.passing}
        value[node] = sum(w * to_go[t, at[t]] for t, w in parts.items())
    out = {}
    for node, here in tree.nodes.items():
        rivals = [value[r] for r in tree.alternatives[here.context]]
        k = len(rivals)
        if k < 2:
            continue
        against = {
            "mean": sum(rivals) / k,
            "max": max(rivals),
            "raw": 0.0,
            "rloo": (sum(rivals) - value[node]) / (k - 1),
        }[kind]
        for t, i in here.passing:
            out |= {e.place: value[node] - against for e in tree.steps[t.number][i]}
    return out


def off_policy(traces: list[Trace], snips: bool = False) -> dict[int, float]:
    """The alternative's mean outcome minus the siblings' estimate of what the target policy would get, without oneself.

    Doubly robust with the siblings as model: an alternative is worth the mean of the other draws of it, and one that
    nobody else drew, or nobody at all, the others' self-normalised mean.
    """
    tree, out = Tree(traces, "alternative"), {}
    for rivals in tree.alternatives.values():
        draws = [(node, t, e) for node in sorted(rivals) for t, i in tree.nodes[node].passing
                 for e in tree.steps[t.number][i]]  # fmt: skip
        stated = [(e.given["propensity"], e.given["target_propensity"]) for *_, e in draws]
        if len(rivals) < 2 or any(None in pair for pair in stated):
            continue
        target = {node: e.given["target_propensity"] for node, _, e in draws}
        weight = [pi / b for b, pi in stated]
        outcome = [t.total for _, t, _ in draws]
        effective = sum(weight) ** 2 / sum(w * w for w in weight)
        if sum(target.values()) < 0.99 or effective < 0.1 * len(draws):
            continue
        mean = {r: _mean([y for (node, *_), y in zip(draws, outcome, strict=True) if node == r]) for r in rivals}
        for i, (node, _, e) in enumerate(draws):
            rest = [j for j in range(len(draws)) if j != i]
            fallback = sum(weight[j] * outcome[j] for j in rest) / sum(weight[j] for j in rest)
            mine = [outcome[j] for j in rest if draws[j][0] == node]
            model = {**mean, node: _mean(mine) if mine else fallback}
            unseen = 1 - sum(target.values())
            expected = sum(target[r] * model[r] for r in rivals) + unseen * fallback
            out[e.place] = mean[node] - (fallback if snips else expected)
    return out


def stop_credit(traces: list[Trace], chance: str = "stop_propensity", sign: int = 1) -> dict[int, float]:
    """s (1 − π(a)) Δ, with Δ the mean over pairs of other traces of s / π(a) (R − R'), by agent name and number.

    No event of these batches stops or spawns, so that the choice is always the other one. A trace with several
    instances of a name counts with the means of both factors and of their product.
    """
    found: dict[tuple[int, int, int], dict[int, list[tuple[int, float, float]]]] = {}
    for t in traces:
        met: dict[int, int] = {}
        for e in t.rows:
            if e.given[chance] is not None:
                earned = t.outcome + sum(x.reward for x in t.events if x.place >= e.place)
                at = found.setdefault((t.group, e.name, met.get(e.agent, 0)), {})
                at.setdefault(t.number, []).append((e.place, 1 - e.given[chance], earned))
                met[e.agent] = met.get(e.agent, 0) + 1
    out = {}
    for by_trace in found.values():
        means = {
            t: [_mean(list(x)) for x in zip(*((sign * y / p, sign / p, y) for _, p, y in rows), strict=True)]
            for t, rows in by_trace.items()
        }
        for t, rows in by_trace.items():
            others = [m for other, m in means.items() if other != t]
            if len(others) > 1:
                pairs = [a[0] - a[1] * b[2] for a in others for b in others if a is not b]
                out |= {place: sign * (1 - p) * _mean(pairs) for place, p, _ in rows}
    return out


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
