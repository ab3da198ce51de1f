"""What the questions beside credit cost beside `rloo`: six forms of teams, traces of 10 to 10,000 events.

    python benchmarks/questions.py [--to 10000] [--rounds 7] [--only trace_metrics,...]

Each batch has 32 traces in groups of four, and at every action what the questions need: probabilities of stopping,
spawning and of the choice, tokens, times, contents, rewards of agents. So each action is a decision, which no log has:
the costs are the greatest. Functions take turns with `credit.run(traces, "rloo")` in one process, after one call of
each. A cell is the median over rounds of a function's processor time over the mean of the two `rloo` beside it.

The table goes to benchmarks/results/questions.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import credit
from credit.bench.planted_faults import copied, healthy_team
from credit.doctor.team_checks import examine
from credit.metrics.aggregate_values import aggregate_values
from credit.metrics.candidate_values import candidate_values
from credit.metrics.cost_summary import cost_rows, group_costs
from credit.metrics.decision_values import step_values
from credit.metrics.event_influence import dependents, if_edited, why
from credit.metrics.event_metrics import steps_of_decisions, team_events
from credit.metrics.metric_summary import metric_means
from credit.metrics.run_card import run_card
from credit.metrics.trace_metrics import MetricOptions, trace_metrics
from credit.metrics.untrusted_reach import untrusted_reach
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.worlds import FEWEST_AGENTS, TeamWorld

RESULTS = Path(__file__).parent / "results" / "questions.json"
SIZES = {10: 0, 100: 6, 1_000: 24, 10_000: 120}
"""Events of a trace, and its agents; the fewest of the form where they are more."""
TASKS = 8


def batches(topology: str, events: int) -> tuple[Traces, Traces]:
    """Traces of a team with evidence for every question at every action, and the same with rewards of agents."""
    rng = np.random.default_rng(events)
    agents = max(FEWEST_AGENTS[topology], SIZES[events])
    records = healthy_team(rng, TeamWorld(topology, agents=agents, events=events, kind="bernoulli"), TASKS)
    for record in records:
        acts = np.array(record.actions)
        for name in ("stop_propensity", "spawn_propensity", "propensity"):
            record.columns[name] = [
                float(p) if act else None for p, act in zip(rng.uniform(0.2, 0.8, len(acts)), acts, strict=True)
            ]
        record.columns["trusted"] = (rng.random(len(acts)) > 0.05).tolist()
    traces = assemble([copied(record) for record in records])
    for record in records:
        earned = dict(zip(record.instances, rng.random(len(record.instances)).tolist(), strict=True))
        record.columns["agent_reward"] = [earned[name] for name in record.agents]
    return traces, assemble(records)


def questions(traces: Traces, judged: Traces) -> dict[str, Callable[[], Any]]:
    """Each function of a batch that answers a question, by name."""
    ledger = credit.run(traces, "rloo")
    seeds = np.zeros(traces.sizes.events, bool)
    seeds[:: max(1, traces.sizes.events // 100)] = True
    last = traces.sizes.events - 1
    metrics = trace_metrics(traces, MetricOptions(credit=ledger))
    return {
        "stop_credit": lambda: credit.run(traces, "stop_credit"),
        "spawn_credit": lambda: credit.run(traces, "spawn_credit"),
        "step_values": lambda: step_values(traces),
        "candidate_values": lambda: candidate_values(traces),
        "aggregate_values": lambda: aggregate_values(judged),
        "cost_rows": lambda: cost_rows(traces),
        "group_costs": lambda: group_costs(traces),
        "trace_metrics": lambda: trace_metrics(traces, MetricOptions(credit=ledger)),
        "metric_means": lambda: metric_means(traces, metrics),
        "team_events": lambda: team_events(traces),
        "steps_of_decisions": lambda: steps_of_decisions(traces),
        "run_card": lambda: run_card(traces),
        "dependents": lambda: dependents(traces, seeds),
        "why": lambda: why(traces, last, ledger),
        "if_edited": lambda: if_edited(traces, 0),
        "untrusted_reach": lambda: untrusted_reach(traces, ledger),
        "examine": lambda: examine(traces, ledger),
    }


def spent(call: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    jax.block_until_ready(call())
    return time.process_time() - start


def multiples(traces: Traces, judged: Traces, rounds: int, only: tuple[str, ...]) -> dict[str, Any]:
    """Processor time of each question over that of `rloo`; the words of a refusal."""

    def plain() -> Any:
        return credit.run(traces, "rloo")

    found: dict[str, Any] = {}
    calls = {}
    for name, call in questions(traces, judged).items():
        if only and name not in only:
            continue
        try:
            jax.block_until_ready(call())
            calls[name] = call
        except credit.CreditError as refused:
            found[name] = str(refused)
    of: dict[str, list[float]] = {name: [] for name in calls}
    unit: list[float] = []
    for _ in range(rounds):
        before = spent(plain)
        for name, call in calls.items():
            own, after = spent(call), spent(plain)
            of[name].append(2 * own / (before + after))
            unit.append(before)
            before = after
    found |= {name: round(statistics.median(each), 2) for name, each in of.items()}
    return {"rloo, ms": round(1e3 * statistics.median(unit), 3), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=int, default=max(SIZES), help="Greatest number of events. Default: 10,000.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="Names by commas. Default: all, which are stored.")
    given = parser.parse_args()
    only = tuple(filter(None, given.only.split(",")))
    rows = []
    for size in SIZES:
        for topology in FEWEST_AGENTS:
            if size <= given.to:
                found = multiples(*batches(topology, size), given.rounds, only)
                rows.append({"topology": topology, "events": size, "load": round(os.getloadavg()[0], 1), **found})
                print(json.dumps(rows[-1]), flush=True)
                if not only:
                    RESULTS.write_text(json.dumps({"rounds": given.rounds, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
