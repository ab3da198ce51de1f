"""The demonstration: a whole run on logs of a world whose true credit is known.

Sample a world, write its traces in two formats, read both back, assign credit, and compare it with the truth.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
from rich.table import Table

from credit.bench.signs import root_mean_square, signs
from credit.plot import draw_trace
from credit.plot.finishing import write_figure
from credit.reports.ranks import correlation, mean_ranks
from credit.tables.advantages import table
from credit.tables.files import write_table
from estimators import Credit, rloo
from graphs.atomic import atomic_folder, atomic_write
from graphs.errors import CreditError, MissingExtraError
from graphs.event_graph import EventType
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.worlds import Episodes, Truth, World
from graphs.writers import native, otlp

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Comparison", "DemoResult", "compare", "run"]

TRACES = 80  # ten groups of eight, two of each of the world's five tasks


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The agreement of an advantage with the true increments; NaN where one of the two does not vary.

    Attributes:
      rank_correlation: Spearman's, over valid actions.
      variance_share: squared correlation over valid actions: the share of the increments' variance that the advantage
        explains under the most favourable scale.
      trace_share: the same with one number a trace: the mean advantage of its actions against R - V0.
      same_sign: among valid actions where neither is 0, the share whose signs agree.
      silent_groups: groups in which every advantage is 0.
    """

    rank_correlation: float
    variance_share: float
    trace_share: float
    same_sign: float
    silent_groups: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class DemoResult:
    """The result of the demonstration.

    Attributes:
      traces: the batch.
      credit: the method's result.
      increments: float [E], the true ones.
      comparison: how the two compare.
      shown: row of the trace that was printed and drawn.
      files: what was written.
      report: what the command prints, tables and lines.
    """

    traces: Traces
    credit: Credit
    increments: np.ndarray
    comparison: Comparison
    shown: int
    files: tuple[Path, ...]
    report: tuple[RenderableType, ...]


def run(out: str | Path, seed: int = 0) -> DemoResult:
    """Run the demonstration.

    Writes `traces.jsonl` (native format), `otlp/` (OpenTelemetry), `advantages.parquet` and `trace.svg` to `out`.
    Without matplotlib there is no picture, and the report says so.

    Args:
      out: a folder; created if it is not there.
      seed: of the world's draws.

    Raises:
      CreditError: a format did not give back the same graph, rewards or advantages.
      OSError: the folder cannot be written to.
    """
    out = Path(out)
    world = World()
    episodes = world.sample(jax.random.key(seed), TRACES)
    truth = world.increments(episodes)
    traces = world.traces(episodes, truth)
    credit = rloo(traces.graph, traces.reward)
    increments = truth.flat(traces.graph.num_events)
    gain = np.pad(np.asarray(episodes.reward - truth.expected, np.float64), (0, traces.graph.num_traces - TRACES))
    comparison = compare(traces, credit, increments, gain)
    shown = _telling_trace(traces, credit)
    names, unpictured = ["traces.jsonl", "otlp", "advantages.parquet"], ""
    try:
        figure = draw_trace(traces, shown, np.asarray(credit.advantage), label="advantage (rloo)")
        names.append("trace.svg")
    except MissingExtraError as error:
        figure, unpictured = None, f"\nno picture of a trace: {error}"
    with atomic_folder(out) as new:
        native.write(traces, new / "traces.jsonl")
        otlp.write(traces, new / "otlp")
        for written in (new / "traces.jsonl", new / "otlp"):
            _require_same(traces, credit, written)
        write_table(table(traces, credit), new / "advantages.parquet")
        if figure is not None:
            with atomic_write(new / "trace.svg") as file:
                write_figure(figure, file, "svg")

    files = tuple(out / name for name in names)
    report = (
        f"{traces!r}\nwritten as native and OTLP, read back: graphs, rewards and advantages are bit-identical\n",
        _trace_table(world, episodes, truth, traces, credit, shown),
        _account(episodes, truth, shown),
        _summary(traces, comparison),
        "\nwrote " + ", ".join(map(str, files)) + unpictured,
    )
    return DemoResult(traces, credit, increments, comparison, shown, files, report)


def compare(traces: Traces, credit: Credit, increments: np.ndarray, gain: np.ndarray) -> Comparison:
    """Compare an advantage with the true increments [E] and the true gains R - V0 [T]."""
    advantage = np.asarray(credit.advantage, np.float64)
    valid = np.asarray(credit.valid)
    a, d = advantage[valid], np.asarray(increments, np.float64)[valid]
    trace = np.asarray(traces.graph.trace_ids)[valid]
    group = np.asarray(traces.graph.group_ids)[trace]
    count = np.bincount(trace, minlength=len(gain))
    mean = np.bincount(trace, a, len(gain))[count > 0] / count[count > 0]
    sign, true_sign = (signs(x, root_mean_square(x), np.float32) for x in (a, d))
    both = (sign != 0) & (true_sign != 0)
    names = traces.traces["group"].to_pylist()
    first = {int(g): name for g, name in zip(np.asarray(traces.graph.group_ids)[: len(names)], names, strict=True)}
    moved = set(group[sign != 0].tolist())
    return Comparison(
        rank_correlation=correlation(mean_ranks(a), mean_ranks(d)),
        variance_share=correlation(a, d) ** 2,
        trace_share=correlation(mean, gain[count > 0]) ** 2,
        same_sign=float(np.mean(sign[both] == true_sign[both])) if both.any() else float("nan"),
        silent_groups=tuple(name for g, name in first.items() if g not in moved),
    )


def _require_same(traces: Traces, credit: Credit, written: Path) -> None:
    """Read what was written; every array must come back bit for bit."""
    again = read(written)
    if again.problems:
        raise CreditError(f"{written}: {again.problems[0]}")
    advantage = rloo(again.graph, again.reward).advantage
    pairs = {field.name: (getattr(traces.graph, field.name), getattr(again.graph, field.name))
             for field in dataclasses.fields(traces.graph)}  # fmt: skip
    pairs |= {"reward": (traces.reward, again.reward), "advantage": (credit.advantage, advantage)}
    for name, (generated, reread) in pairs.items():
        a, b = np.asarray(generated), np.asarray(reread)
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            raise CreditError(f"{written}: {name} differs after reading it back")


def _telling_trace(traces: Traces, credit: Credit) -> int:
    """The first trace that has an advantage and three agents or more; else the first."""
    graph, n = traces.graph, traces.sizes.traces
    moved = np.bincount(np.asarray(graph.trace_ids), np.abs(np.asarray(credit.advantage)), graph.num_traces)[:n] > 0
    team = np.bincount(np.asarray(graph.agent_trace)[np.asarray(graph.agent_mask)], minlength=n)[:n]
    return int(np.argmax(moved & (team >= 3)))


def _trace_table(world: World, episodes: Episodes, truth: Truth, traces: Traces, credit: Credit, trace: int) -> Table:
    names = traces.traces["trace"].to_pylist()
    shown = Table(title=f"{names[trace]}: what a broadcast says of each action, and the truth", title_justify="left")
    for column in ("event", "agent", "type", "chosen"):
        shown.add_column(column)
    for column in ("credit", "advantage", "true increment"):
        shown.add_column(column, justify="right")
    graph = traces.graph
    slots = np.asarray(world.log_order(episodes)[0])[trace]
    events = np.flatnonzero((np.asarray(graph.trace_ids) == trace) & np.asarray(graph.event_mask))
    increments = np.asarray(truth.increments)[trace]
    for place, event in enumerate(events):
        decision = world.layout.slots[slots[place]].decision
        if decision < 0:
            continue
        kind = EventType(int(graph.event_type[event]))
        quality = "good" if episodes.good[trace, decision] else "bad"
        if kind == EventType.ORCHESTRATOR_DECISION:
            quality += f", {int(episodes.size[trace])} workers"
        shown.add_row(
            traces.events["event"][int(event)].as_py(),
            traces.agents["agent"][int(graph.agent_ids[event])].as_py(),
            kind.name.lower(),
            "" if kind == EventType.STOP else quality,
            f"{float(credit.credit[event]):+z.3f}",
            f"{float(credit.advantage[event]):+z.3f}",
            f"{increments[place]:+z.3f}",
        )
    return shown


def _account(episodes: Episodes, truth: Truth, trace: int) -> str:
    reward, expected, outcome = (float(x[trace]) for x in (episodes.reward, truth.expected, truth.outcome))
    earned = float(np.asarray(truth.increments)[trace].sum())
    return f"return {reward:z.3f} = expected {expected:z.3f} + increments {earned:+z.3f} + luck {outcome:+z.3f}\n"


def _summary(traces: Traces, findings: Comparison) -> Table:
    title = "The whole corpus: what a broadcast (rloo) explains"
    summary = Table(title=title, title_justify="left", show_header=False, caption_justify="left")
    summary.add_column()
    summary.add_column(justify="right")
    summary.add_row("variance of return − expected that it explains, trace by trace", f"{findings.trace_share:.1%}")
    summary.add_row("variance of true increments that it explains, action by action", f"{findings.variance_share:.1%}")
    summary.add_row("rank correlation with true increments", f"{findings.rank_correlation:.3f}")
    summary.add_row("same sign as the true increment, where neither is 0", f"{findings.same_sign:.1%}")
    groups = len(set(traces.traces["group"].to_pylist()))
    silent = ", ".join(findings.silent_groups) or "none"
    summary.add_row(
        "groups without a training signal: all their traces have one outcome",
        f"{len(findings.silent_groups)} of {groups}",
    )
    summary.caption = f"they are: {silent}"
    return summary
