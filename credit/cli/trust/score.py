"""`credit score`: evaluate credit. `blame` ranks the step and the agent that people blame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import method_option, method_options
from credit.cli.shared.answers import json_option, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from credit.cli.trust.score_reliability import reliability

if TYPE_CHECKING:
    from rich.table import Table

    from credit.reports.blame import Score
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["score"]

LEGEND = (
    "named first: part of the runs whose lowest credit is at the blamed agent or step, as a mean over tasks with a "
    "95 % interval. No interval: fewer than 40 tasks, or 3 above or below the mean, or k was chosen on these runs. "
    "mean rank: from 0, named first, to 1, named last."
)


@click.group(short_help="Evaluate credit against human labels and for reliability.")
def score() -> None:
    """Evaluate credit against human labels and for reliability."""


score.add_command(reliability)


@score.command(
    cls=Command,
    short_help="Rank the blamed agent and step.",
    examples="credit score blame labelled/ --method grpo",
)
@reads_logs()
@method_option
@method_options
@click.option("--learned", is_flag=True, help="Also rank by blame learned from the labels of other tasks.")
@allow_bad
@json_option
@click.pass_context
def blame(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    method: str,
    option_texts: tuple[str, ...],
    learned: bool,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Rank the blamed agent and step of labelled runs by a method's credit, beside uninformed baselines."""
    from credit.methods.option_texts import parse_options
    from credit.methods.running import run
    from credit.reports.blame import blame_cases, method_scores, number_scores, prior_scores

    options = parse_options(method, option_texts)
    traces = read_traces(paths, **reading)
    cases = blame_cases(traces)
    credit = run(traces, method, **options)
    scores = [*method_scores(cases, credit, method), *prior_scores(cases)]
    if learned:
        from credit.reports.learned_blame import learned_blame

        with working(stderr(), "learning from other tasks"):
            for name, text in (("learned, structure", False), ("learned, structure and text", True)):
                scores += number_scores(cases, learned_blame(traces, cases, text=text), name)
    silence = _silence(traces, method, credit)
    if as_json:
        import dataclasses

        rows = [dataclasses.asdict(row) for row in scores]
        print_json({"scores": rows, "says": silence})
    else:
        stdout().print(_table(scores))
        stdout().print(LEGEND, soft_wrap=True)
        for line in silence:
            stdout().print(words(line), soft_wrap=True)
    leave(ctx, traces, allow_bad)


def _table(scores: list[Score]) -> Table:
    from rich.table import Table

    table = Table("target", "by", "runs", "named first", "mean rank", box=None, pad_edge=False)
    for row in sorted(scores, key=lambda row: row.target, reverse=True):
        hits = _with_interval(row.hits, row.hits_low, row.hits_high)
        rank = _with_interval(row.rank, row.rank_low, row.rank_high)
        table.add_row(*map(words, (row.target, row.name, str(row.cases), hits, rank)))
    return table


def _with_interval(mean: float, low: float, high: float) -> str:
    return f"{mean:.3f}" if math.isnan(low) else f"{mean:.3f} ({low:.3f} to {high:.3f})"


def _silence(traces: Traces, method: str, credit: Credit) -> list[str]:
    """Why a method that gives every action the same number is no better than chance, and which could be."""
    import numpy as np

    from credit.methods.availability import availability
    from credit.methods.registry import METHODS

    n = traces.sizes
    action = np.flatnonzero(traces.graph.action_mask[: n.events])
    advantage = np.where(np.asarray(credit.valid), np.asarray(credit.advantage), 0.0)[action]
    trace = np.asarray(traces.graph.trace_ids)[action]
    low, high = np.full(n.traces, np.inf), np.full(n.traces, -np.inf)
    np.minimum.at(low, trace, advantage)
    np.maximum.at(high, trace, advantage)
    flat = int(np.sum(low == high))
    lines = []
    if flat:
        lines.append(f"{method} gives all actions of a run one number in {flat} of {n.traces} runs: chance there")
    outcomes = np.asarray(traces.reward)[: n.traces]
    groups = np.bincount(np.asarray(traces.graph.group_ids)[: n.traces])
    alone = int(np.sum(groups == 1))
    if len(np.unique(outcomes[np.isfinite(outcomes)])) == 1:
        lines.append(
            f"every run has outcome {outcomes[np.isfinite(outcomes)][0]:g}, and {alone} of {len(groups)} groups have "
            "a single run: methods that compare outcomes within groups say nothing here"
        )
        needy = {
            name: " and ".join(METHODS[name].needs)
            for name, state in availability(traces).items()
            if name in METHODS and state.state == "missing"
        }
        if needy:
            lines.append("methods that could, given evidence: " + ", ".join(f"{k} ({v})" for k, v in needy.items()))
    return lines
