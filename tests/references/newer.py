"""Methods of 2025 and 2026: other weights, other divisors, information gain."""

from __future__ import annotations

import math

from .plain import Event, Trace, grouped, mean_sd

__all__ = [
    "adca_grpo", "at_grpo", "ccpo", "g2po", "gpg", "graph_gpo", "hae", "hcapo", "hgpo", "igpo",
    "igrpo", "marti", "max_rl", "opo", "prime_rl_grpo", "rllm_reinforce_pp", "sepo", "tree_grpo",
    "unitymas_o",
]  # fmt: skip


def _tasks(traces: list[Trace]) -> list[list[Trace]]:
    return list(grouped([t for t in traces if t.rows], lambda t: t.group).values())


def _spread(numbers: dict[int, float], traces: list[Trace]) -> dict[int, float]:
    return {e.place: numbers[t.number] for t in traces for e in t.rows if t.number in numbers}


def max_rl(traces: list[Trace], eps: float = 0.0, alone: str = "zero") -> dict[int, float]:
    out = {}
    for task in _tasks(traces):
        mean = sum(t.total for t in task) / len(task)
        for t in task:
            if len(task) == 1:
                out[t.number] = 0.0 if alone == "zero" else t.total
            elif abs(t.total - mean) <= (len(task) - 1) * max(mean + eps, 0):
                out[t.number] = (t.total - mean) / (mean + eps) if mean + eps > 0 else 0.0
    return _spread(out, traces)


def _length(trace: Trace, name: str = "tokens") -> float | None:
    counts = [e.given[name] for e in trace.rows]
    return None if None in counts else sum(counts)


def opo(traces: list[Trace]) -> dict[int, float]:
    out = {}
    for task in _tasks([t for t in traces if _length(t) is not None]):
        length = [_length(t) for t in task]
        mean = sum(n * t.total for n, t in zip(length, task, strict=True)) / sum(length)
        out |= {t.number: t.total - (mean if len(task) > 1 else 0.0) for t in task}
    return _spread(out, traces)


def gpg(traces: list[Trace]) -> dict[int, float]:
    out, acting = {}, [t for t in traces if t.rows]
    alpha = len(acting) / max(1, sum(t.total != 0 for t in acting))
    for task in _tasks(traces):
        mean = sum(t.total for t in task) / len(task) if len(task) > 1 else 0.0
        out |= {t.number: alpha * (t.total - mean) for t in task}
    return _spread(out, traces)


def prime_rl_grpo(traces: list[Trace], output: float = 0.0, turns: float = 0.0) -> dict[int, float]:
    out = {}
    for task in _tasks([t for t in traces if not output or _length(t) is not None]):
        mean = sum(t.total for t in task) / len(task)
        lengths = [_length(t) if output else 0 for t in task]
        shaped = [
            t.total - mean * (output * n / max(1, *lengths, 1) + turns * len(t.rows) / max(len(u.rows) for u in task))
            for t, n in zip(task, lengths, strict=True)
        ]
        out |= {t.number: x - sum(shaped) / len(task) for t, x in zip(task, shaped, strict=True)}
    return _spread(out, traces)


def rllm_reinforce_pp(traces: list[Trace], batch: bool = False) -> dict[int, float]:
    out: dict[int, float] = {}
    rows = [(t, e) for t in traces for e in t.rows]
    for of_role in grouped(rows, lambda pair: pair[1].role).values():
        scores = {
            t: sum(u.outcome + e.reward for u, e in pairs) / len(pairs)
            for t, pairs in grouped(of_role, lambda pair: pair[0].number).items()
        }
        task = {t.number: t.group for t, _ in of_role}
        centre = {}
        for t in scores:
            pool = [x for u, x in scores.items() if batch or task[u] == task[t]]
            centre[t] = sum(pool) / len(pool)
        apart = {t: x - centre[t] for t, x in scores.items()}
        sd = mean_sd(list(apart.values()), ddof=0)[1]
        out |= {e.place: apart[t.number] / (sd + 1e-6) for t, e in of_role}
    return out


def _earned(trace: Trace, gamma: float) -> list[float]:
    """Discounted returns from each action; what stands between actions belongs to the one before."""
    places = [e.place for e in trace.rows]
    rewards = [0.0] * len(places)
    for e in trace.events:
        before = [k for k, place in enumerate(places) if place <= e.place]
        if before:
            rewards[before[-1]] += e.reward
    rewards[-1] += trace.outcome
    for k in range(len(rewards) - 2, -1, -1):
        rewards[k] += gamma * rewards[k + 1]
    return rewards


def igpo(traces: list[Trace], gamma: float = 1.0) -> dict[int, float]:
    out = {}
    for task in _tasks(traces):
        returns = [_earned(t, gamma) for t in task]
        if len(task) == 1:
            continue
        mean, sd = mean_sd([g[0] for g in returns])
        for t, g in zip(task, returns, strict=True):
            for e, x in zip(t.rows, g, strict=True):
                if abs(x - mean) <= 10 * math.sqrt(len(task)) * (sd + 1e-6):
                    out[e.place] = (x - mean) / (sd + 1e-6)
    return out


def igrpo(traces: list[Trace], gamma: float = 0.95) -> dict[int, float]:
    out: dict[int, float] = {}

    def z(x: float, pool: list[float]) -> float:
        if len(pool) == 1:
            return x
        mean, sd = mean_sd(pool)
        return (x - mean) / (sd + 1e-6)

    for task in _tasks(traces):
        gains = [e.reward for t in task for e in t.rows[:-1]]
        outcomes = [t.outcome for t in task]
        for t in task:
            total = 0.0
            for k in range(len(t.rows) - 1, -1, -1):
                e = t.rows[k]
                last = k == len(t.rows) - 1
                total = (z(t.outcome, outcomes) if last else z(e.reward, gains)) + gamma * total
                out[e.place] = total
    return out


def _z(pairs: list[tuple[int, float]], divided: bool, ddof: int = 1, alone: str = "zero") -> dict[int, float]:
    """Values of places against their mean."""
    values = [x for _, x in pairs]
    if len(values) == 1:
        return {pairs[0][0]: values[0] if alone == "raw" else 0.0}
    mean, sd = mean_sd(values, ddof)
    return {place: (x - mean) / ((sd + 1e-6) if divided else 1) for place, x in pairs}


def hgpo(traces: list[Trace], gamma: float = 1.0, k_most: int = 2, std: bool = True) -> dict[int, float]:
    out = {}
    for task in _tasks(traces):
        terms: dict[int, list[tuple[float, float]]] = {}
        for k in range(1, k_most + 2):
            clusters: dict[tuple, list[tuple[int, float]]] = {}
            for t in task:
                for i, (e, x) in enumerate(zip(t.rows, _earned(t, gamma), strict=True)):
                    history = tuple(r.given["anchor"] for r in t.rows[max(i - k + 1, 0) : i + 1])
                    if e.given["anchor"] is None:
                        continue
                    terms.setdefault(e.place, [])
                    if len(history) == k and None not in history:
                        clusters.setdefault(history, []).append((e.place, x))
            for pairs in clusters.values():
                for place, z in _z(pairs, std, ddof=0).items():
                    if z != 0:
                        terms[place].append((k + 1, z))
        for place, found in terms.items():
            out[place] = sum(w * z for w, z in found) / (sum(w for w, _ in found) + 1e-6)
    return out


def _next(task: list[Trace]) -> list[tuple[Trace, int, int | None, int | None]]:
    """Of each action: the trace, its number, its anchor and the next one's; -1 behind the last."""
    return [
        (t, i, e.given["anchor"], t.rows[i + 1].given["anchor"] if i + 1 < len(t.rows) else -1)
        for t in task
        for i, e in enumerate(t.rows)
    ]


def _whole(task: list[Trace], divided: bool) -> dict[int, float]:
    return _z([(e.place, t.outcome) for t in task for e in t.rows], divided, alone="raw")


def _at_state(steps: list[tuple], scores: dict[int, float], divided: bool) -> dict[int, float]:
    out: dict[int, float] = {}
    there = [step for step in steps if step[0].rows[step[1]].place in scores]
    for same in grouped(there, lambda step: step[2]).values():
        places = [t.rows[i].place for t, i, *_ in same]
        out |= _z([(p, scores[p]) for p in places], divided)
    return out


def g2po(traces: list[Trace], gamma: float = 0.95, std: bool = False) -> dict[int, float]:
    out = {}
    for task in _tasks(traces):
        steps, values = _next(task), {}
        for anchor, visits in grouped([s for s in steps if s[2] is not None], lambda s: s[2]).items():
            seen = [gamma ** (len(t.rows) - i) * t.outcome for t, i, *_ in visits]
            values[anchor] = sum(seen) / len(seen)
        known = [s for s in steps if s[2] is not None and s[3] is not None]
        ahead = {
            t.rows[i].place: (float(t.outcome >= 1) if following == -1 else values[following])
            for t, i, _, following in known
        }
        progress = [(t.rows[i].place, ahead[t.rows[i].place] - values[here]) for t, i, here, _ in known]
        whole, state = _whole(task, std), _at_state(known, ahead, std)
        gained = _z(progress, std) if progress else {}
        out |= {place: whole[place] + state[place] + gained[place] for place in ahead}
    return out


def graph_gpo(traces: list[Trace], gamma: float = 0.1) -> dict[int, float]:
    out = {}
    for task in _tasks(traces):
        known = [s for s in _next(task) if s[2] is not None and s[3] is not None]
        edges = {(here, "won" if t.outcome >= 1 else "lost") if n == -1 else (here, n) for t, _, here, n in known}
        distance: dict[object, int] = {"won": 0}
        for _ in edges:
            for here, there in edges:
                if there in distance:
                    distance[here] = min(distance.get(here, distance[there] + 1), distance[there] + 1)
        longest = max(distance.values())
        scores = {}
        for t, i, _, n in known:
            there = ("won" if t.outcome >= 1 else "lost") if n == -1 else n
            scores[t.rows[i].place] = 10 * gamma ** distance.get(there, longest + 1)
        whole, state = _whole(task, True), _at_state(known, scores, True)
        out |= {place: whole[place] + state[place] for place in scores}
    return out


def marti(traces: list[Trace], own: bool = False, margin: bool = False, beta: float = 0.0) -> dict[int, float]:
    out = {}
    for t in traces:
        answers = [e for e in t.rows if e.given["stage"] is not None]
        for e in answers:
            before = [
                t.outcome + r.reward
                for r in answers
                if (r.agent == e.agent and r.place < e.place if own else r.given["stage"] < e.given["stage"])
            ]
            v = t.outcome + e.reward
            q = sum(before) / len(before) if before else 0.0
            moved = v - q if margin else q * v - (1 - q) * (1 - v)
            last = [r for r in answers if r.agent == e.agent][-1]
            out[e.place] = v + (0.5 * moved if before else 0.0) + beta * (t.outcome + last.reward)
    return out


def unitymas_o(traces: list[Trace]) -> dict[int, float]:
    out = {}
    for t in traces:
        stated = [e for e in t.events if e.given["stage"] is not None]
        if t.outcome and not any(e.reward for e in stated):
            continue  # no verdict of a turn
        turns = sorted({e.given["stage"] for e in stated})
        for e in t.rows:
            if e in stated:
                own, before = ([r.reward for r in stated if r.given["stage"] == at] for at in _last_two(turns, e))
                out[e.place] = t.outcome + sum(own) - (t.outcome + sum(before) if e.given["stage"] > turns[0] else 0)
    return out


def _last_two(turns: list[int], event: Event) -> tuple[int, int]:
    """The turn of an event, and the one before it."""
    place = turns.index(event.given["stage"])
    return turns[place], turns[max(place - 1, 0)]


def ccpo(traces: list[Trace], difference: bool = False) -> dict[int, float]:
    out = {}
    for task in _tasks(traces):
        thinkers = {e.name for t in task for e in t.rows if e.given["solo_reward"] is not None}
        solo = {}
        for t in task:
            stated = [e.given["solo_reward"] for e in t.rows if e.given["solo_reward"] is not None]
            if len(set(stated)) == 1:
                solo[t.number] = stated[0]
        b = sum(solo.values()) / len(solo) if solo else 0.0
        scores: dict[bool, dict[int, float]] = {True: {}, False: {}}
        for t in task:
            if t.number in solo:
                bonus = (t.outcome > 0 > b) - (t.outcome < 0 < b)
                scores[True][t.number] = t.outcome + 0.2 * ((t.outcome - b) / 2 if difference else bonus)
            if any(e.name not in thinkers for e in t.rows):
                scores[False][t.number] = t.outcome
        for t in task:
            for e in t.rows:
                pool = scores[e.name in thinkers]
                told = any(r.given["solo_reward"] is not None for r in t.rows if r.agent == e.agent)
                if t.number in pool and (told or e.name not in thinkers):
                    out[e.place] = pool[t.number] - (sum(pool.values()) / len(pool) if len(pool) > 1 else 0.0)
    return out


def sepo(traces: list[Trace], trust: float = 0.3, credit: float = 0.2, blame: float = 0.2) -> dict[int, float]:
    out = {}
    for task in _tasks(traces):
        shares: dict[tuple[int, int], float] = {}  # by trace and agent
        names: dict[int, int] = {}
        for t in task:
            claims: dict[int, float] = {}
            for e in t.events:
                if e.action and e.given["self_rating"] is not None:
                    is_told = claims.setdefault(e.agent, e.given["self_rating"]) == e.given["self_rating"]
                    claims[e.agent] = e.given["self_rating"] if is_told else -1.0
                names[e.agent] = e.name
            if all(0 <= p <= 1 for p in claims.values()):
                s = {}
                for agent, p in claims.items():
                    left = [(1 - q) / (len(claims) - 1) for other, q in claims.items() if other != agent]
                    s[agent] = trust * p + (1 - trust) * (sum(left) / len(left) if left else 0.0)
                shares |= {(t.number, agent): x / max(sum(s.values()), 1e-6) for agent, x in s.items()}
        x = {}
        outcome = {t.number: t.outcome for t in task}
        for (number, agent), share in shares.items():
            usual = [y for (_, other), y in shares.items() if names[other] == names[agent]]
            moved = share - sum(usual) / len(usual)
            y = outcome[number]
            x[number, agent] = y + credit * moved if y > 0 else y - blame * moved
        for t in task:
            for e in t.rows:
                if (t.number, e.agent) in x:
                    same = [y for (_, other), y in x.items() if names[other] == e.name]
                    out[e.place] = x[t.number, e.agent] - (sum(same) / len(same) if len(same) > 1 else 0.0)
    return out


def at_grpo(traces: list[Trace], mode: str = "turn", filters: str = "none", ratio: float = 0.5) -> dict[int, float]:
    number: dict[int, int] = {}  # of the turn of each action
    for t in traces:
        for agent in {e.agent for e in t.events}:
            turns = list(dict.fromkeys(e.turn for e in t.events if e.agent == agent and e.action))
            number |= {e.place: turns.index(e.turn) for e in t.events if e.agent == agent and e.action}
    keys: dict[tuple[int, ...], list[tuple[int, float]]] = {}
    for t in traces:
        for e in t.rows:
            key = {"turn": (t.group, number[e.place], e.name), "question": (t.group, e.name), "last": (t.number,)}[mode]
            if mode != "last" or number[e.place] == max(number[r.place] for r in t.events if r.action):
                keys.setdefault(key, []).append((e.place, t.outcome + e.reward))
    kept = dict(keys)
    if filters == "spread":
        size = {}
        for key, rows in keys.items():
            scores = [x for _, x in rows]
            span = max(scores) - min(scores)
            size[key] = round((mean_sd(scores, 0)[1] / span) ** 2, 5) if span > 1e-6 else 0.0
        kept = {k: v for k, v in keys.items() if sum(s < size[k] for s in size.values()) >= int(ratio * len(keys))}
    if filters != "none":
        kept = {k: v for k, v in kept.items() if len(v) > 1 and max(v, key=lambda r: r[1])[1] != min(x for _, x in v)}
    out = {}
    for rows in kept.values():
        mean, sd = mean_sd([x for _, x in rows]) if len(rows) > 1 else (0.0, 1.0)
        out |= {place: (x - mean) / (sd + 1e-6) for place, x in rows}
    return out


def adca_grpo(
    traces: list[Trace], allocation: bool = False, every: bool = False, root: bool = False, alpha: float = 0.1
) -> dict[int, float]:
    out: dict[int, float] = {}
    for task in _tasks(traces):
        if len(task) == 1:
            continue
        raw = {}
        for t in task:
            marks = [e.reward >= 0 for e in t.rows]
            if allocation:
                shares = [1.0 if mark == (t.outcome > 0.5) else 0.2 for mark in marks]
                raw[t.number] = [(1 if t.outcome > 0.5 else -1) * share / sum(shares) for share in shares]
            else:
                raw[t.number] = [0.2 if mark else -0.2 for mark in marks]
        mean = sum(sum(x) / len(x) for x in raw.values()) / len(task)
        square = sum(sum((y - mean) ** 2 for y in x) / len(x) for x in raw.values()) / len(task)
        centre, sd = mean_sd([t.outcome for t in task], ddof=0)
        for t in task:
            whole, total = (t.outcome - centre) / (sd if sd > 1e-8 else 1), 0.0
            for k in range(len(t.rows) - 1, -1, -1):
                r = alpha * (raw[t.number][k] - mean) / (math.sqrt(square + 1e-8) + 1e-12)
                r += whole if every or k == len(t.rows) - 1 else 0.0
                total += r / (math.sqrt(len(t.rows)) if root else 1)
                if abs(total) <= 10 * math.sqrt(len(task)):
                    out[t.rows[k].place] = total
    return out


def tree_grpo(traces: list[Trace], mode: str = "tree") -> dict[int, float]:
    out: dict[int, float] = {}
    for task in _tasks([t for t in traces if t.given["tree"] is not None]):
        whole = _z([(t.number, t.total) for t in task], True)
        inner: dict[int, float] = {}
        for leaves in grouped(task, lambda t: t.given["tree"]).values():
            scores = [(t.number, whole[t.number] if mode == "tree_2norm" else t.total) for t in leaves]
            inner |= _z(scores, True)
        out |= {n: x + (whole[n] if mode == "tree" else 0) for n, x in inner.items()}
    return _spread(out, traces)


def hcapo(traces: list[Trace], gamma: float = 0.95) -> dict[int, float]:
    out = {}

    def stated(e: Event) -> bool:
        h = e.given["hindsight_log_prob"]
        return h is not None and h <= 0.01  # the logarithm of a probability, but for rounding

    for task in _tasks([t for t in traces if all(map(stated, t.rows))]):
        rows, smooth = [], []
        for t in task:
            likely = [math.exp(e.given["hindsight_log_prob"] / 5) for e in t.rows]
            mean, steps = sum(likely) / len(likely), len(likely)
            q = [min(max(x / mean, 0.8), 1.2) * gamma ** (steps - 1 - k) * t.outcome for k, x in enumerate(likely)]
            for k, e in enumerate(t.rows):
                beside = [q[j] for j in (k - 1, k + 1) if 0 <= j < steps]
                smooth.append(0.5 * q[k] + 0.5 * sum(beside) / len(beside) if beside else q[k])
                rows.append((e.place, t.outcome))

        def z(values: list[float]) -> list[float]:
            mean, sd = mean_sd(values, ddof=0)
            return [(x - mean) / (sd + 1e-3 if sd > 1e-3 else 1) for x in values]

        for (place, _), a, b in zip(rows, z([x for _, x in rows]), z(smooth), strict=True):
            out[place] = min(max(a + b, -5), 5)
    return out


def hae(traces: list[Trace], gamma: float = 0.95, low: float = 0.95, high: float = 0.95) -> dict[int, float]:
    out = {}
    for t in traces:
        rewards = _earned(t, 0.0) if t.rows else []
        a_low, a_high = 0.0, 0.0
        sums, length, ahead = 0.0, 0, 0.0  # of the segment that is being read backwards; V_high behind it
        for k in range(len(t.rows) - 1, -1, -1):
            e = t.rows[k]
            part = e.given["segment"]
            v, top = (math.nan if (x := e.given[name]) is None else x for name in ("value", "value_high"))
            before = t.rows[k - 1].given["segment"] if k else ""
            last, first = k == len(t.rows) - 1, before != part
            behind = None if last else t.rows[k + 1].given
            ends = behind is None or behind["segment"] != part
            if ends:
                sums, length = 0.0, 0
                a_low = 0.0
            following = ahead if behind is None or ends else behind["value"]
            a_low = rewards[k] + gamma * (math.nan if following is None else following) - v + gamma * low * a_low
            sums, length = rewards[k] + gamma * sums, length + 1
            number = a_low
            if first:
                a_high = sums + gamma**length * ahead - top + gamma**length * high * a_high
                ahead = math.nan if part is None else top  # nobody knows where such a segment begins
                number += math.nan if before is None else a_high
            if part is not None and not math.isnan(number):
                out[e.place] = number
    return out
