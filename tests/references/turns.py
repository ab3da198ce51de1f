"""Turns, rounds and steps: what was earned from one on, against others in its place."""

from __future__ import annotations

from .plain import Event, Trace, grouped, mean_sd

__all__ = ["gigpo", "maporl", "marshal", "mt_grpo", "turn_baseline"]


def _turns(events: list[Event], rows: list[Event]) -> list[list[Event]]:
    """The actions among `events`, turn by turn."""
    return list(grouped([e for e in events if e in rows], lambda e: e.turn).values())


def _earned(starts: list[Event], events: list[Event], outcome: float) -> list[float]:
    """What arrives from each start to before the next, the outcome in the last."""
    out = []
    for i, start in enumerate(starts):
        end = starts[i + 1].place if i + 1 < len(starts) else float("inf")
        out.append(sum(e.reward for e in events if start.place <= e.place < end))
    return [*out[:-1], out[-1] + outcome]


def _to_go(earned: list[float], discount: float = 1.0) -> list[float]:
    return [sum(discount ** (j - i) * earned[j] for j in range(i, len(earned))) for i in range(len(earned))]


def _played(traces: list[Trace]) -> list[list[tuple[list[list[Event]], list[float], float]]]:
    """By task, for each trace with an outcome and an action, its turns, what each of them earned, and the outcome."""
    out = []
    for members in grouped([t for t in traces if t.rows], lambda t: t.group).values():
        games = []
        for t in members:
            turns = _turns(t.events, t.rows)
            games.append((turns, _earned([turn[0] for turn in turns], t.events, 0.0), t.outcome))
        out.append(games)
    return out


def turn_baseline(traces: list[Trace]) -> dict[int, float]:
    out = {}
    for games in _played(traces):
        if len(games) < 2:
            continue
        for i, (turns, earned, outcome) in enumerate(games):
            for k, turn in enumerate(turns):
                others = [_to_go(g)[k] + r if k < len(g) else 0.0 for j, (_, g, r) in enumerate(games) if j != i]
                out |= {e.place: _to_go(earned)[k] + outcome - sum(others) / len(others) for e in turn}
    return out


def mt_grpo(traces: list[Trace], std: bool = True, eps: float = 1e-4) -> dict[int, float]:
    out = {}
    for games in _played(traces):
        if len(games) < 2:
            continue
        for turns, earned, outcome in games:
            normalised = []
            for x, same in [(outcome, [r for *_, r in games])] + [
                (earned[k], [g[k] for _, g, _ in games if k < len(g)]) for k in range(len(turns))
            ]:
                mean, sd = mean_sd(same) if len(same) > 1 else (same[0], 0.0)
                normalised.append((x - mean) / (sd + eps) if std else x - mean)
            for k, turn in enumerate(turns):
                out |= {e.place: normalised[0] + sum(normalised[k + 1 :]) for e in turn}
    return out


def marshal(
    traces: list[Trace], by: str = "name", over: str = "batch", std: bool = False, discount: float = 1.0
) -> dict[int, float]:
    """Each instance's turns are a sequence of its own; all of a player's are compared."""
    plays = []
    for t in traces:
        for events in grouped(t.events, lambda e: e.agent).values():
            turns = _turns(events, t.rows)
            if turns:
                earned = _earned([turn[0] for turn in turns], events, t.outcome)
                for turn, g in zip(turns, _to_go(earned, discount), strict=True):
                    plays.append((getattr(turn[0], by), t.group if over == "group" else 0, turn, g))
    out = {}
    for members in grouped(plays, lambda p: p[:2]).values():
        if len(members) < 2:
            continue
        mean, sd = mean_sd([g for *_, g in members])
        for *_, turn, g in members:
            out |= {e.place: (g - mean) / (sd + 1e-6) if std else g - mean for e in turn}
    return out


def maporl(
    traces: list[Trace], horizon: str = "discounted_sum", share: str = "all", discount: float = 0.3
) -> dict[int, float]:
    out = {}
    for t in traces:
        answers = [e for e in t.rows if e.given["stage"] is not None]
        score = {e.place: t.outcome + e.reward for e in answers}
        for e in answers:
            if share == "individual":  # the agent's later answers, and this one
                later = [x for x in answers if x.agent == e.agent and x.place >= e.place]
                means = [score[x.place] for x in later]
            else:
                rounds = grouped([x for x in answers if x.given["stage"] >= e.given["stage"]], _stage)
                means = [sum(score[x.place] for x in rounds[s]) / len(rounds[s]) for s in sorted(rounds)]
            if horizon == "current":
                out[e.place] = means[0]
            elif horizon == "last":
                out[e.place] = means[-1]
            else:
                weight = [discount**i for i in range(len(means))]
                ahead = sum(w * m for w, m in zip(weight[1:], means[1:], strict=True))
                out[e.place] = (score[e.place] + ahead) / sum(weight)
    return out


def _stage(event: Event) -> int:
    return event.given["stage"]


def gigpo(
    traces: list[Trace],
    by: str | None = None,
    discount: float = 1.0,
    weight: float = 1.0,
    std: bool = False,
    eps: float = 1e-6,
) -> dict[int, float]:
    """Without `by` a trace's first row is its sample; with it every row is. Each action is a step of its own."""
    rows, to_go = [], {}
    for t in traces:
        if t.rows:
            rows += [(t, e) for e in t.rows]
            steps = _to_go(_earned(t.rows, t.events, t.outcome), discount)
            to_go |= {e.place: g for e, g in zip(t.rows, steps, strict=True)}
    out = {}
    for members in grouped(rows, lambda r: (r[0].group, None if by is None else getattr(r[1], by))).values():
        score = {e.place: t.total for t, e in members}
        firsts = [first[0][1] for first in grouped(members, lambda r: r[0].number).values()]
        sample = [score[e.place] for e in firsts] if by is None else list(score.values())
        mean, sd = mean_sd(sample) if len(sample) > 1 else (0.0, 1.0)
        met = grouped([e for _, e in members if e.given["anchor"] is not None], lambda e: e.given["anchor"])
        for same in met.values():
            returns = [to_go[e.place] for e in same]
            centre, spread = mean_sd(returns) if len(same) > 1 else (returns[0], 1.0)
            for e in same:
                episode, step = score[e.place] - mean, to_go[e.place] - centre
                out[e.place] = episode / (sd + eps) + weight * step / (spread + eps) if std else episode + weight * step
    return out
