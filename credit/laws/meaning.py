"""Laws of meaning: on what a method's numbers may depend, their unit, and which actions get one.

Each law takes a method under test and returns what breaks the law, in words; "" where the method keeps it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax
import numpy as np

from credit.laws.subject import ATOL, RTOL, NotApplicable, Subject, changes, differ, numbers, reason_name
from credit.laws.trial_batches import BETWEEN, Batch, draw_rewards, follows, rearranged
from estimators.composition.scaling import LARGEST
from graphs.event_graph import KINDS
from graphs.levels import LEVELS, Level, ids_on_host
from graphs.padding import pad_array

_AWKWARD = np.array([0.1, 1 / 3, 10000.1, -7.3, 0.3, 0.7, 1e-3, 3e6], np.float32)
"""Rewards whose multiples and sums round in float32."""

_VALUES = ("value", "q_value", "target_value")
"""Evidence that estimates rewards: a method may compare it within the scope, as it does rewards."""


def order(s: Subject) -> str:
    """Names, roles, groups and agents may be renumbered, and traces reordered unless the scope is "sequence"."""
    for seed in range(2):
        batch, rng = s.ragged(seed), np.random.default_rng(s.seed + seed)
        traces = np.arange(batch.graph.num_traces)
        moved, was = rearranged(batch, traces if s.scope == "sequence" else rng.permutation(traces), rng)
        if detail := _moved_differ(s, batch, moved, was):
            return f"{detail} (after renumbering)"
    return ""


def missing_reward(s: Subject) -> str:
    """A trace without an outcome gets no credit, and the others get the same numbers as without it."""
    batch, rng = s.ragged(), np.random.default_rng(s.seed)
    without = np.isnan(batch.reward)[batch.graph.trace_ids]
    out = s.run(s.padded(batch))
    if out["valid"][: len(without)][without].any():
        return "an event of a trace without an outcome is valid"
    rest, was = rearranged(batch, np.flatnonzero(~np.isnan(batch.reward)), rng)
    detail = _moved_differ(s, batch, rest, was)
    return f"{detail} (without the traces that have no outcome)" if detail else ""


def _moved_differ(s: Subject, batch: Batch, moved: Batch, was: np.ndarray) -> str:
    expected = {name: values[was] for name, values in s.run(s.padded(batch)).items()}
    result = {name: values[: len(was)] for name, values in s.run(s.padded(moved)).items()}
    return differ(result, expected, np.ones(len(was), bool))


def independence(s: Subject) -> str:
    """What lies outside the scope changes no bit of the result: other traces, other groups, or later traces.

    The law changes their outcomes, which of them have one, their rewards at events, and numbers of their evidence.
    """
    if s.scope == "batch":
        raise NotApplicable("the scope is the batch")
    batch = s.ragged()
    first = s.run(s.padded(batch), np.zeros(batch.graph.num_events, bool))
    answered = np.unique(batch.graph.trace_ids[first["valid"][: batch.graph.num_events]])
    if s.scope == "trace":
        kept, other = np.arange(batch.graph.num_traces) == _answered(answered, 6), "another trace"
    elif s.scope == "group":
        group = _answered(batch.graph.group_ids[answered], BETWEEN)
        kept, other = batch.graph.group_ids == group, "another group"
    else:  # which cuts that group in two
        kept, other = np.arange(batch.graph.num_traces) < s.group_size + 7, "a later trace"
    for seed in range(2):
        detail, what = changes(s, batch, kept, np.random.default_rng(s.seed + seed))
        if detail:
            return f"{detail} (before the {what} of {other} changed; the scope is {s.scope!r})"
    return ""


def _answered(among: np.ndarray, preferred: int) -> int:
    """The preferred one if it is among those that were answered, or none was; else one in their middle."""
    return preferred if preferred in among or not len(among) else int(among[len(among) // 2])


def tight_scope(s: Subject) -> str:
    """The declared scope is no wider than it must be: something outside the next narrower scope changes the result."""
    batch = s.regular()
    if s.scope == "trace":
        raise NotApplicable("no scope is narrower than the trace")
    if s.scope == "group":
        kept, other = np.arange(batch.graph.num_traces) % s.group_size == 0, "of the same group"
    elif s.scope == "batch":
        kept, other = batch.graph.group_ids == 0, "of other groups"
    else:
        kept, other = np.arange(batch.graph.num_traces) >= 2 * s.group_size, "of earlier traces"
    for seed in range(8):
        if changes(s, batch, kept, np.random.default_rng(s.seed + seed))[0]:
            return ""
    return f"no reward {other} changed anything; the scope {s.scope!r} is too wide"


def response(s: Subject) -> str:
    """The numbers of a group change when its rewards change; if the method declares that it uses no outcome, never."""
    batch = s.regular()
    in_group = (batch.graph.group_ids == 0)[batch.graph.trace_ids]
    first = s.padded(batch)
    before = s.run(first)["advantage"][: len(in_group)][in_group]
    silent = s.scope == "trace" and not jax.eval_shape(s.direct, first).own_outcome
    for seed in range(4):
        rng = np.random.default_rng(s.seed + seed)
        other = dataclasses.replace(batch, reward=draw_rewards(batch.graph, rng))
        if (s.run(s.padded(other))["advantage"][: len(in_group)][in_group] != before).any():
            return "rewards change its advantages, though it declares that no outcome enters them" if silent else ""
    if silent:
        raise NotApplicable("it uses evidence only, no outcome")
    return "no reward of group 0 changed the advantages of its events"


def declared(s: Subject) -> str:
    """What a result declares is so, wherever data can contradict it.

    No amount moves with its own trace's outcome but where `holds_outcome`. With estimand "total" it moves by as much.
    With `centred` True `credit - baseline` stays as it is when all rewards and values rise by 1, and of outcomes alone
    it is 0 on average. Of a method that is declared unbiased, no reward or evidence that follows an action
    moves the action's baseline, its scale or whether it has a number; and without evidence the amounts "return" and
    "total" rise by as much as each reward that follows. Later actions stay as they are.
    """
    batch = s.regular()
    result = jax.eval_shape(s.direct, s.padded(batch))
    declines = "outcome_mask is False" if result.own_outcome else "own_outcome is False"
    fixed = {} if result.own_outcome and result.outcome_mask is None else {"credit": declines}
    for_all = dict.fromkeys(("baseline", "scale", "valid"), "unbiased is True") if s.unbiased else {}
    is_total = result.own_outcome and result.estimand == "total"
    earns_all = s.unbiased and result.own_outcome and not s.needs and result.estimand in ("return", "total")
    if not fixed and not for_all and not is_total and not result.centred:
        raise NotApplicable("it declares nothing that data can contradict")
    before = s.run(s.padded(batch))

    def moved(name: str, after: Mapping[str, np.ndarray], where: np.ndarray, rise: float = 0.0) -> str:
        if name == "valid":
            return differ({name: after[name]}, {name: before[name]}, where)
        both = where & before["valid"] & after["valid"]
        now, then = ({**out, "credit - baseline": out["credit"] - out["baseline"]}[name] for out in (after, before))
        return differ({"credit": now}, {"credit": then + np.float32(rise)}, both).replace("credit", name, 1)

    for change in follows(batch, s.needs, s.takes_event_reward):
        if not (for_all or (change.of_outcome and (fixed or is_total))):
            continue
        after, where = s.run(s.padded(change.batch)), pad_array(change.upstream, s.room.events)
        why = "its estimand is 'total'" if is_total and change.of_outcome else "unbiased is True" if earns_all else ""
        if why and change.rise and (detail := moved("credit", after, where, change.rise)):
            return f"{detail}, {change.rise:g} more than before {change.what} rose by as much, since {why}"
        for name, why in ((fixed if change.of_outcome else {}) | for_all).items():
            if detail := moved(name, after, where & ~before["holds"] if name == "credit" else where):
                return f"{detail}, as before {change.what} changed, since {why}"
    if result.centred:
        risen = {name: v + np.float32(1) if name in _VALUES else v for name, v in batch.evidence.items()}
        raised = dataclasses.replace(batch, reward=batch.reward + np.float32(1), evidence=risen)
        if detail := moved("credit - baseline", s.run(s.padded(raised)), np.ones(s.room.events, bool)):
            return f"{detail}, as before every reward and value rose by 1, since centred is True"
    return _off_centre(s) if s.centre == "tried" else ""


def _off_centre(s: Subject) -> str:
    """The event whose amount has another mean than 0 over all outcomes of a group, each 1 with probability 1/4."""
    batch = s.regular()
    first = np.unique(batch.graph.group_ids, return_index=True)[1]
    place, mean = np.arange(len(batch.reward)) - first[batch.graph.group_ids], np.zeros(s.room.events)
    for case in range(2**s.group_size):
        ones = case >> place & 1
        chance = 0.25 ** case.bit_count() * 0.75 ** (s.group_size - case.bit_count())
        out = s.run(s.padded(dataclasses.replace(
            batch, reward=ones.astype(np.float32), event_reward=np.zeros_like(batch.event_reward))))  # fmt: skip
        mean += np.where(out["valid"], chance * (out["credit"] - out["baseline"]), 0)
    row = int(np.argmax(np.abs(mean)))
    if abs(mean[row]) < 1e-4:
        return ""
    return (
        f"credit - baseline of event {row} is {mean[row]:.3g} on average over independent outcomes, 1 with probability "
        "1/4 and else 0; expected 0, since centred is True"
    )


_REDRAWS, _OFF = 64, 8.0
"""Redraws of rewards, and how many times too small or too large a stated error may be.

Below it are methods whose papers count each token or row of a trace as a sample, where all share one outcome: with 42
tokens a trace, as in these batches, that is √42 = 6.5 times too small. Redraws say 1 where it is right, up to 0.15."""


def stated_error(s: Subject) -> str:
    """Where the method states a finite `stderr`, it has the scale of the true error of its baseline.

    That is how far the baseline moves while rewards of one known distribution are drawn again; a `stderr` more than
    8 times too small or too large breaks the law.
    """
    batch, rng = s.regular(), np.random.default_rng(s.seed)
    draws = []
    for _ in range(_REDRAWS):
        reward = rng.uniform(2, 4, len(batch.reward)).astype(np.float32)  # returns above 0: some methods refuse others
        steps = rng.choice([0, -0.25, 0.25], len(batch.event_reward)).astype(np.float32)
        draws.append(s.run(s.padded(dataclasses.replace(batch, reward=reward, event_reward=steps))))
    valid, stderr, baseline = (
        np.stack([draw[name] for draw in draws]).astype(np.float64) for name in ("valid", "stderr", "baseline")
    )
    kept = valid.all(axis=0) & np.isfinite(stderr).all(axis=0)
    if not kept.any():
        if valid.any():
            raise NotApplicable("it states no finite stderr")
        return ""
    stated = float(np.sqrt(np.mean(stderr[:, kept] ** 2)))
    true = float(np.sqrt(np.mean(np.var(baseline[:, kept], axis=0, ddof=1))))
    if true < ATOL:
        raise NotApplicable("its baseline does not move with rewards")
    if true / _OFF <= stated <= true * _OFF:
        return ""
    return (
        f"stderr is {stated:.3g}, where the true error of its baseline is {true:.3g}, over {_REDRAWS} redraws of "
        f"rewards; expected no less than 1/{_OFF:g} and no more than {_OFF:g} times that, or inf where it is unknown"
    )


def regular_is_valid(s: Subject) -> str:
    """Where nothing is missing, every action is valid; returns are above 0 for methods that refuse others."""
    batch = s.regular()
    if s.nonnegative:
        batch = dataclasses.replace(batch, reward=batch.reward + np.float32(2))
    batch = s.padded(batch)
    out = s.run(batch)
    wrong = batch.graph.event_mask & batch.graph.action_mask & ~out["valid"]
    if not wrong.any():
        return ""
    row = int(np.argmax(wrong))
    return f"event {row} is not valid, with reason {reason_name(out['reason'][row])}"


def equal_rewards(s: Subject) -> str:
    """If all rewards of the scope are equal, and all values in the evidence too, advantages are exactly 0.

    It holds for any reward, in groups of any size, and however often each alternative of a replay tree was replayed.
    A residue of rounding is no 0: a spread that it is divided by makes it as large as any advantage. Differences from
    the trace's own score have none. Numbers in the evidence may make it something else than 0, of any other size.
    """
    if s.scope not in ("group", "batch"):
        raise NotApplicable("nothing is compared within a group")
    if s.shaped:
        raise NotApplicable("it pays for progress or marks by itself")
    sizes = (s.group_size,) * 4, (3, 5, 6, 7, 9), (8, 8, 8)
    evens = (True, False) if "node" in s.needs else (True,)
    batches = [s.regular(groups=groups, even=even) for groups in sizes for even in evens]
    for batch in batches:
        groups = batch.graph.group_ids
        evidence = {
            name: np.full_like(values, 0.3) if name in _VALUES else values for name, values in batch.evidence.items()
        }
        for turn in range(len(_AWKWARD)):
            reward = np.roll(_AWKWARD, turn)[groups if s.scope == "group" else np.zeros_like(groups)]
            flat = Batch(batch.graph, reward, np.zeros_like(batch.event_reward), evidence)
            out = s.run(s.padded(flat))
            advantage = out["advantage"][: len(batch.graph.trace_ids)]  # padding is of `padding_is_zero`
            if advantage.any():
                row = int(np.argmax(advantage != 0))
                stated = reward[batch.graph.trace_ids[row]]
                rounds = abs(out["credit"][row] - out["baseline"][row]) <= RTOL * abs(stated)
                if not rounds and any(values.dtype.kind == "f" for values in evidence.values()):
                    raise NotApplicable("it has numbers in its evidence besides rewards")
                size = int((groups == groups[batch.graph.trace_ids[row]]).sum())
                found = f"advantage of event {row} is {advantage[row]} where every reward is {stated} in a group of"
                return f"{found} {size}; expected 0{_SUMS if rounds else ''}"
    return ""


_SUMS = (
    ". Sums of scores round. Sum differences from the trace's own score x, as x + ((mean - x) * n - (least - x)) / "
    "(n - 1), not (mean * n - least) / (n - 1)"
)


def bounded(s: Subject) -> str:
    """Rewards that differ by 1e-3 or less make no advantage above 10, where event rewards and evidence are below 1.

    Nor do those of which one of each group is further off, by 0.5: a spread of the others says nothing of it.
    """
    batch, rng = s.padded(s.ragged()), np.random.default_rng(s.seed)
    last = np.append(batch.graph.trace_ids[1:] != batch.graph.trace_ids[:-1], True)
    first = np.unique(batch.graph.group_ids, return_index=True)[1]
    for apart in (1e-3, 1e-5, 1e-7, 0.0):
        near = np.float32(0.5) + apart * rng.integers(0, 2, len(batch.reward))
        far = near.copy()
        far[first] += 0.5
        for reward, but in ((near, ""), (far, ", but for one that is 0.5 further")):
            reward = np.where(np.isnan(batch.reward), np.nan, reward).astype(np.float32)
            for steps, words in (
                (batch.event_reward, "with"),
                (np.where(last, batch.event_reward, 0), "with last"),
                (np.zeros_like(batch.event_reward), "without"),
            ):
                advantage = s.run(dataclasses.replace(batch, reward=reward, event_reward=steps))["advantage"]
                row = int(np.argmax(np.abs(advantage)))
                if abs(advantage[row]) > LARGEST:
                    return (
                        f"advantage of event {row} is {advantage[row]} where rewards of a group differ by {apart:g} at "
                        f"most{but}, {words} event rewards; expected at most {LARGEST:g} in size"
                    )
    return ""


def no_event_reward(s: Subject) -> str:
    """A log without event rewards gives the same numbers as one whose event rewards are all 0.

    A function of your own that takes an `event_reward` must read it: without the parameter, a reader of its signature
    knows that it counts outcomes alone. Methods of the library all take it, and some published ones ignore it.
    """
    if not s.takes_event_reward:
        raise NotApplicable("the method takes no event_reward")
    batch = s.padded(s.ragged())
    zeros = s.run(dataclasses.replace(batch, event_reward=np.zeros_like(batch.event_reward)))
    with jax.disable_jit():
        none = numbers(s.fn(batch.graph, batch.reward, event_reward=None, **batch.evidence))
    if detail := differ({name: np.asarray(v) for name, v in none.items()}, zeros, batch.graph.event_mask):
        return detail
    for trial in (s.regular(), s.ragged()):
        paid = s.padded(trial)
        unpaid = dataclasses.replace(paid, event_reward=np.zeros_like(paid.event_reward))
        if differ(s.run(paid), s.run(unpaid), paid.graph.event_mask, exactly=True):
            return ""
    unread = "it takes an event_reward, but no reward at an event changes a number"
    if s.is_own:
        return f"{unread}: read it, or leave the parameter out"
    raise NotApplicable(unread)


ONE_SAMPLE = (
    "the traces of a cluster (`graph.cluster_ids`) share choices and are one sample. Where m, of `estimators.members`, "
    "has m.clusters, weigh members by m.clusters.weight, count them by m.clusters.independent, and compare none with "
    "those of its own m.clusters.pair; `group_relative` and `estimators.medians` do so"
)


def replays(s: Subject) -> str:
    """A replay that repeats the outcome of its trace is no further sample: other traces have the numbers they had.

    And where a trace's own outcome is not in its baseline, the outcome of its replay is not in it either. Tried on
    functions of your own without evidence. The library's methods are tried on every batch that small teams with replays
    can draw.
    """
    if not s.is_own or s.needs or s.scope not in ("group", "batch"):
        raise NotApplicable("tried on functions of your own that compare traces and need no evidence")
    batch = s.padded(s.regular())
    group, real = np.asarray(batch.graph.group_ids), np.asarray(batch.graph.trace_mask)
    by_group = [np.flatnonzero(real & (group == g)) for g in np.unique(group[real])]
    cluster, repeated, absent = np.where(real, np.arange(len(group)), 0), batch.reward.copy(), batch.reward.copy()
    for first, replay, *_ in by_group:
        cluster[replay], repeated[replay], absent[replay] = first, batch.reward[first], np.nan
    graph = dataclasses.replace(batch.graph, cluster_ids=cluster.astype(np.int32))
    batch = dataclasses.replace(batch, graph=graph, event_reward=np.zeros_like(batch.event_reward))
    others = np.isin(graph.trace_ids, np.concatenate([members[2:] for members in by_group])) & graph.event_mask
    with_replays, without = (
        s.once(dataclasses.replace(batch, reward=reward), others)["advantage"] for reward in (repeated, absent)
    )
    if detail := differ({"advantage": with_replays}, {"advantage": without}, others):
        return f"{detail}, as without the replays: {ONE_SAMPLE}"
    logged, again = ([int(members[place]) for members in by_group] for place in (0, 1))
    own, bound = np.isin(graph.trace_ids, logged) & graph.event_mask, 1 + np.abs(repeated[real]).max()

    def moved(by: list[int], cluster: np.ndarray) -> str:
        """How baselines of the first traces differ where the outcomes of the traces `by` are the greatest and least."""
        of_clusters = dataclasses.replace(graph, cluster_ids=cluster.astype(np.int32))
        found = []
        for extreme in (bound, -bound):
            reward = repeated.copy()
            reward[by] = extreme
            found.append(s.once(dataclasses.replace(batch, graph=of_clusters, reward=reward))["baseline"])
        return differ({"baseline": found[0]}, {"baseline": found[1]}, own)

    if not moved(logged, np.arange(len(group))) and (detail := moved(again, cluster)):
        return f"{detail}, as with another outcome of its replay: {ONE_SAMPLE}"
    return ""


def absent_evidence(s: Subject) -> str:
    """Absent evidence differs from evidence of 0: with 0 in its place, a number or a validity changes."""
    if not s.needs:
        raise NotApplicable("the method needs no evidence")
    for name, level in s.needs.items():
        if not any(_absence_counts(s, name, level, seed) for seed in range(4)):
            return f"{name!r} counts as 0 where it is absent: no number and no `valid` changed when it was stated as 0"
    return ""


def _absence_counts(s: Subject, name: str, level: str, seed: int) -> bool:
    """Whether leaving out a third of the evidence `name` gives other results than writing 0 there.

    True also where the method refuses events whose evidence is 0.
    """
    batch = s.regular(seed)
    values = batch.evidence[name]
    removed = np.random.default_rng(s.seed + seed).random(len(values)) < 1 / 3
    absent, zeros = (
        s.padded(
            dataclasses.replace(
                batch, evidence={**batch.evidence, name: np.where(removed, fill, values).astype(values.dtype)}
            )
        )
        for fill in (np.nan if values.dtype.kind == "f" else -1, 0)
    )
    of_zeros = s.run(zeros)
    where = removed if level == "event" else removed[batch.graph.trace_ids]
    refused = not of_zeros["valid"][: len(where)][where].any()
    return refused or bool(differ(s.run(absent), of_zeros, np.ones(s.room.events, bool)))


def unit(s: Subject) -> str:
    """The result names a known unit, and within a unit valid events have the same numbers."""
    for batch in map(s.padded, (s.ragged(), s.uneven())):
        out, declared = s.run(batch), s.unit
        if declared not in (*LEVELS, *KINDS):
            return f"unit is {declared!r}; expected one of {', '.join((*LEVELS, *KINDS))}"
        level: Level = next((level for level in LEVELS if level == declared), "event")  # a unit of a kind is the event
        ids = ids_on_host(batch.graph, level)
        for name in ("credit", "baseline", "scale"):
            first: dict[int, float] = {}
            for row in np.flatnonzero(out["valid"]):
                value = float(out[name][row])
                if first.setdefault(int(ids[row]), value) != value:
                    other = f"another event of its {declared} has {first[int(ids[row])]}"
                    return f"{name} of event {row} is {value}; {other}"
    return ""
