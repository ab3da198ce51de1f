"""What methods pay for events that were inserted into logs and changed nothing: a message, a longer log, more agents.

In one trace of each group events are inserted; outcomes stay as they are. The true credit of what was inserted is 0.
All other events keep theirs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import jax
import numpy as np

from credit.bench.against_truth import team_of
from credit.bench.planted_faults import Insertion, copied, insert
from credit.bench.refusals import LeftOut, why_refused
from credit.methods.own_results import UnmeasuredError
from credit.methods.published import find_method
from credit.methods.running import missing_evidence, run
from estimators.base import Reason
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

__all__ = ["INSERTIONS", "Robustness", "robustness"]

TASKS = 16  # groups
TOKENS = 100  # of an inserted action


@dataclasses.dataclass(frozen=True)
class Robustness:
    """What one kind of insertion does to the advantages A of one method; A' is after it.

    Attributes:
      method, insertion: names.
      taken: Σ |A'| of inserted actions / Σ |A'| of the traces with them.
      moved: Σ |A' − A| / Σ |A| over the other actions of these traces.
      others: the same over the other traces of their groups.
      gained: (Σ A' − Σ A) / Σ |A| over these traces: what they are paid for it in all.
      answered, refused: the share of actions with an advantage after it, and the main reason of the others, whose A is
        0; "" where there are none.
      group_size: traces of a group.
    """

    method: str
    insertion: str
    taken: float
    moved: float
    others: float
    gained: float
    answered: float
    refused: str
    group_size: int


def robustness(methods: tuple[str, ...], seed: int, left_out: LeftOut, world: str = "additive") -> Iterator[Robustness]:
    """Insert events into drawn logs, of a swarm of seven agents, and compare advantages; values are the true ones.

    Args:
      methods: names.
      seed: of the draws.
      left_out: takes those that need evidence which these logs lack, or have numbers that are not finite.
      world: of the outcomes, as in `bench truth`; your own states its team and the size of groups, else 8.
    """
    team = team_of(world, topology="swarm", agents=7, events=120, spawn=1.0)
    runs = team.sample(jax.random.key(seed), TASKS * team.group_size)
    records = team.records(runs, team.increments(runs))
    plain = assemble([copied(record) for record in records])
    tried = ((name, left_out.try_one(name, "the drawn logs", partial(_advantages, plain, name))) for name in methods)
    before = {name: found for name, found in tried if found is not None}
    for insertion, change in INSERTIONS.items():
        changed = [copied(record) for record in records]
        for record in changed[:: team.group_size]:
            change(record)
        after = assemble(changed)
        for name, old in before.items():
            new = left_out.try_one(name, insertion, partial(_advantages, after, name))
            if new is not None:
                yield _compared(name, insertion, old[0], *new, team.group_size)


def _advantages(traces: Traces, method: str) -> tuple[list[dict[str, float]], np.ndarray]:
    """The advantage of each action of each trace, by the id of its event, 0 where it is refused; the reasons [N]."""
    if lack := missing_evidence(traces, find_method(method).needs):
        raise UnmeasuredError(f"method {method!r} needs {', '.join(lack)}, which the drawn logs do not have")
    result = run(traces, method)
    n = traces.sizes.events
    amount = np.where(np.asarray(result.valid), np.asarray(result.advantage, np.float64), 0)[:n]
    found: list[dict[str, float]] = [{} for _ in range(traces.sizes.traces)]
    rows = np.flatnonzero(np.asarray(traces.graph.action_mask)[:n])
    ids = traces.events["event"].take(rows).to_pylist()
    owners = np.asarray(traces.graph.trace_ids)[rows].tolist()
    for event, trace, number in zip(ids, owners, amount[rows].tolist(), strict=True):
        found[trace][event] = number
    return found, np.asarray(result.reason)[rows]


def _compared(
    method: str,
    insertion: str,
    before: list[dict[str, float]],
    after: list[dict[str, float]],
    reason: np.ndarray,
    group_size: int,
) -> Robustness:
    sums = dict.fromkeys(("taken", "paid", "moved", "was", "others", "of_others", "gained"), 0.0)
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        moved = sum(abs(new[event] - amount) for event, amount in old.items())
        was = sum(map(abs, old.values()))
        if i % group_size:
            sums["others"] += moved
            sums["of_others"] += was
            continue
        sums["moved"] += moved
        sums["was"] += was
        sums["paid"] += sum(map(abs, new.values()))
        sums["taken"] += sum(abs(amount) for event, amount in new.items() if event not in old)
        sums["gained"] += sum(new.values()) - sum(old.values())
    was, paid, others = (sums[name] or float("nan") for name in ("was", "paid", "of_others"))
    scores = (sums["taken"] / paid, sums["moved"] / was, sums["others"] / others, sums["gained"] / was)
    answered = float(np.mean(reason == Reason.VALID))
    return Robustness(method, insertion, *scores, answered, why_refused(reason), group_size)


def _columns(record: TraceRecord, after: int) -> dict[str, float | bool]:
    """Evidence of an inserted action. It changes nothing, so its value is the value of the next event."""
    values = record.columns["value"]
    following = values[after + 1] if after + 1 < len(values) else record.rewards["team"]
    return {"tokens": TOKENS, "value": following}


def _poisoned_message(record: TraceRecord) -> None:
    """A message of a stranger, which the log does not trust, after the first event."""
    record.instances["stranger"] = Agent("stranger", "stranger", "")
    columns = _columns(record, 0) | {"trusted": False}
    insert(record, [Insertion(0, EventType.MESSAGE, "stranger", True, columns)])


def _inflated_log(record: TraceRecord) -> None:
    """Each action is followed by an empty message of its agent."""
    actions = [j for j, acts in enumerate(record.actions) if acts][:-1]
    insert(
        record,
        [Insertion(j, EventType.MESSAGE, record.agents[j], True, _columns(record, j)) for j in actions],
    )


def _padded_spawns(record: TraceRecord) -> None:
    """The lead starts three more workers, each of which says something that nobody reads."""
    lead = record.agents[0]
    insertions = []
    for name in ("extra-0", "extra-1", "extra-2"):
        record.instances[name] = Agent(name, "worker", lead)
        insertions.append(Insertion(0, EventType.SPAWN, lead, False, {"to": name}))
        insertions.append(Insertion(0, EventType.MESSAGE, name, True, _columns(record, 0)))
    insert(record, insertions)


INSERTIONS: Mapping[str, Callable[[TraceRecord], None]] = {
    "poisoned_message": _poisoned_message,
    "inflated_log": _inflated_log,
    "padded_spawns": _padded_spawns,
}
"""The kinds of insertions."""
