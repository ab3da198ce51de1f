"""Runs from a decision as traces of their own: siblings of the logged action, as C3 takes them.

Each run becomes a trace that repeats the log up to the decision and ends with it. The decision and the runs' decisions
get one `context`, each a `node` of its own, since each was drawn by itself. The runs' later events are not known here.
The outcome of a run is the return of its whole trace, so its events have no rewards. Its metric `replayed` is 1.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from credit.replay.replay_plan import ReplayPlan
from credit.replay.run_results import Results
from graphs.errors import CreditError
from graphs.traces.batch import Traces
from graphs.traces.schema import EVENT_EVIDENCE, SCHEMA_VERSION
from graphs.writers import native

__all__ = ["lines_with_siblings"]

_KEPT = frozenset(EVENT_EVIDENCE) & {"context", "node", "value", "stage", "trainable", "env_step", "anchor"}
"""Evidence that describes the situation before a decision, not what was chosen there."""


def lines_with_siblings(traces: Traces, plan: ReplayPlan, results: Results) -> Iterator[str]:
    """The log as native lines, each trace followed by the runs that started from its decisions.

    Args:
      traces: the log that the plan was made for.
      plan: what was run; its purpose is "c3" or "luck".
      results: what came of it. Jobs whose prefix did not reproduce give no siblings.

    Raises:
      CreditError: another purpose; the plan names a trace or an event that the log does not have.
    """
    if plan.purpose not in ("c3", "luck"):
        raise CreditError(f"the plan is for {plan.purpose!r}; expected one for 'c3' or 'luck'")
    by_trace: dict[str, list[int]] = {}
    for number, job in enumerate(plan.jobs):
        by_trace.setdefault(job.prefix.trace, []).append(number)
    taken = set(traces.traces["trace"].to_pylist())
    unknown = by_trace.keys() - taken
    if unknown:
        raise CreditError(f"the plan names trace {sorted(unknown)[0]!r}, which the log does not have")
    for line in native.lines(traces):
        document = json.loads(line)
        siblings = []
        for number in by_trace.get(document["trace_id"], ()):
            siblings += list(_fan(document, number, plan, results, taken))
        yield json.dumps(document, ensure_ascii=False)
        for cut, place, node, reward, alternative in siblings:
            yield json.dumps(_sibling(document, cut, place, node, reward, alternative), ensure_ascii=False)


def _fan(
    document: dict[str, Any], number: int, plan: ReplayPlan, results: Results, taken: set[str]
) -> Iterator[tuple[str, int, str, float, str]]:
    """Mark the decision of a job in its trace, and name its runs: id, position, node, reward and alternative."""
    prefix = plan.jobs[number].prefix
    places = [i for i, event in enumerate(document["events"]) if event["id"] == prefix.decision]
    if not places:
        raise CreditError(
            f"the plan names event {prefix.decision!r} of trace {prefix.trace!r}, which the log does not have"
        )
    rewards = {} if number in results.strayed else results.rewards[number]
    if not rewards:
        return
    for event in document["events"][: places[0]]:
        if "alternative" in event:  # without a node it would be a draw of each run's own
            event.setdefault("node", f"{prefix.trace}/{event['id']}/logged")
    decision, here = document["events"][places[0]], f"{prefix.trace}/{prefix.decision}"
    decision.setdefault("context", here)
    decision.setdefault("node", f"{here}/logged")
    document["schema_version"] = SCHEMA_VERSION
    names = (name for i in itertools.count() if (name := f"{here}/{i}") not in taken)  # the log may have earlier runs
    for name, (run, reward) in zip(names, sorted(rewards.items()), strict=False):
        taken.add(name)
        yield name, places[0], name, reward, results.alternatives[number].get(run, "")


def _sibling(
    document: dict[str, Any], name: str, place: int, node: str, reward: float, alternative: str
) -> dict[str, Any]:
    events = [
        {key: value for key, value in event.items() if key != "event_reward"}
        for event in document["events"][: place + 1]
    ]
    decision = events[-1]
    for key in [key for key in decision if key in EVENT_EVIDENCE and key not in _KEPT]:
        del decision[key]
    for key in ("from", "to", "tool", "content_ref", "status"):
        decision.pop(key, None)
    decision["node"] = node
    if alternative:
        decision["content_ref"] = alternative
    ids = {event["id"] for event in events}
    out = {key: value for key, value in document.items() if key not in ("costs", "metrics", "rewards")}
    out |= {"schema_version": SCHEMA_VERSION, "trace_id": name, "events": events}
    out["edges"] = [edge for edge in document["edges"] if edge["src"] in ids and edge["dst"] in ids]
    if "agents" in document:
        out["agents"] = _present(document["agents"], events)
    out |= {"rewards": {"team": reward}, "costs": {}, "metrics": {"replayed": 1.0}}
    return out


def _present(agents: list[dict[str, str]], events: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The agents that act or are spawned in these events, and their parents, up to the roots."""
    by_id = {agent["id"]: agent for agent in agents}
    present: set[str] = set()
    for name in [event["agent"] for event in events] + [event["to"] for event in events if "to" in event]:
        while name in by_id and name not in present:
            present.add(name)
            name = by_id[name]["parent"]
    return [agent for agent in agents if agent["id"] in present]
