"""Tables that the site writes where a page has their marks: from METHODS and PUBLISHED, and from what was measured."""

from __future__ import annotations

import csv
import functools
import importlib.util
import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
CLUSTERS = BENCHMARKS / "results" / "clusters.json"
MARK = re.compile(r"^\[([a-z: -]+)\]\((\S+)\)$", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each method."""
    from mkdocs.structure.files import File

    from credit.methods.registry import METHODS

    writer = _program(ROOT / "docs" / "write_methods.py")
    for name in METHODS:
        files.append(File.generated(config, f"methods/{name}.md", content=writer.method_page(name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put in the place of each mark of a page its table; a comment with its name begins it, `<!-- end -->` ends it.

    A mark is a line that only links to what its table is made of: in a checkout, readers get that instead.
    """

    def table(mark: re.Match[str]) -> str:
        make = TABLES.get(mark[1])
        return mark[0] if make is None else f"<!-- {mark[1]} -->\n\n{make()}\n\n<!-- end -->"

    return MARK.sub(table, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Make empty heads of columns plain cells, which readers of screens do not announce as heads without a name.

    Names in code that fit on a phone are marked, so that no line breaks within `--rewards`.
    """
    html = re.sub(r"<code>(?=[^<\s]{1,32}</code>)", '<code class="name">', html)
    return re.sub(r"<th(?: [^>]*)?></th>", "<td></td>", html)


def on_post_page(output: str, **_: Any) -> str:
    """Name the dialog of the search, which the theme leaves without a name for readers of screens."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def on_post_template(output_content: str, **_: Any) -> str:
    """The same on the page that stands for missing ones, which the theme makes as a template."""
    return on_post_page(output_content)


def results(name: str) -> dict[str, Any]:
    """What a benchmark measured."""
    found: dict[str, Any] = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells as Markdown."""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join("|" + "".join(f" {cell} |" if cell else " |" for cell in cells) for cells in lines)


def published_table() -> str:
    """Every published name, what computes it, and why a log does not allow it."""
    from credit.methods.published import PUBLISHED

    lines = [
        "| published as | name | status | computed by | evidence for that, or the reason | usable part |",
        "|---|---|---|---|---|---|",
    ]
    for name, paper in PUBLISHED.items():
        by = f"[`{paper.method}`](methods/{paper.method}.md)" if paper.method else "-"
        options = ", ".join(f"`{key}={value}`" for key, value in paper.options.items())
        by += f" with {options}" if options else ""
        lines.append(f"| {paper.title} | `{name}` | {paper.status} | {by} | {paper.note} | {paper.portable or '-'} |")
    return "\n".join(lines)


def data_file(name: str) -> list[list[str]]:
    """The rows of a file of docs/data, its head first."""
    return list(csv.reader((ROOT / "docs" / "data" / name).read_text(encoding="utf-8").splitlines()))


def file_table(name: str) -> str:
    """A file of docs/data as it is."""
    head, *rows = data_file(name)
    return markdown_table(head, rows)


def evidence_table() -> str:
    """The keys of evidence of an event, with what each means."""
    from graphs.traces.schema import EVENT_EVIDENCE

    rows = ([f"`{name}`", key.kind, key.meaning.replace("|", "\\|")] for name, key in EVENT_EVIDENCE.items())
    return markdown_table(["key of evidence", "kind", "is"], rows)


def methods_table() -> str:
    """Every method with what it compares; a name leads to its page."""
    head, *rows = data_file("methods.csv")
    return markdown_table(head, ([f"[`{name}`](methods/{name}.md)", *cells] for name, *cells in rows))


def clusters_tables(measured: Path) -> str:
    """What `benchmarks/clusters.py` measured; a sentence where it was not run."""
    if not measured.exists():
        return f"*Not measured yet: `benchmarks/results/{measured.name}` is not there.*"
    found = json.loads(measured.read_text())
    runs, model = found["runs"], found["model beside measured"]
    lines = [
        f"{found['bytes'] / 1e9:.2g} GB, {found['traces']:,} traces, parts of about {found['chunk events']:,} events; "
        f"{found['device']}; Ray {found['versions']['ray']}. Two workers: "
        f"**{found['two workers over one process']:.2f}×** one process. The load of the machine before each run is the "
        "last column.",
        "",
        "| | seconds | by the model | start-up | memory that a worker grew by | load |",
        "|---|---|---|---|---|---|",
    ]
    for name, run in runs.items():
        modelled = f"{model[name.split()[0]]['model']:.1f}" if name.split()[0] in model else ""
        start = f"{run['start-up']:.0f} s" if "start-up" in run else ""
        load = run["load of the machine before and after"][0][0]
        grown = f"{max(run['grown']) / 1e6:.0f} MB" if run["grown"] else ""
        lines.append(f"| {name} | {run['seconds']:.1f} | {modelled} | {start} | {grown} | {load:.1f} |")
    lines += ["", "| constant of the model | |", "|---|---|"]
    lines += [f"| {name} | {value:.3g} |" for name, value in found["constants"].items()]
    lines += ["", "| logs | workers that each do half of what one does alone | seconds that no more workers shorten |"]
    lines += ["|---|---|---|"]
    for name, row in found["where it stops scaling"].items():
        lines.append(f"| {name} | {row['workers at half efficiency']:,} | {row['least seconds']:.0f} |")
    return "\n".join(lines)


def laws_table() -> str:
    """Each law with what it states."""
    from credit.laws import LAWS

    return markdown_table(
        ["law", "statement"], [[f"`{n}`", (law.__doc__ or "").split("\n\n")[0]] for n, law in LAWS.items()]
    )


def bias_table() -> str:
    """The scores of each method over the worlds, with its variants."""
    from credit.bench.bias_table import from_lists, markdown

    return markdown(from_lists(results("bias")["rows"]))


def worlds_table() -> str:
    """The worlds that are enumerated: what happens, the roles, how many traces they have, and the expected return J."""
    from graphs.worlds.micro.examples import MICRO

    rows = [
        [
            f"`{world.name}`",
            world.about,
            ", ".join(dict.fromkeys(world.roles)),
            str(len(world.ends)),
            f"{world.probabilities() @ world.total:.3f}",
        ]
        for world in MICRO.values()
    ]
    return markdown_table(["world", "what happens", "roles", "traces", "J"], rows)


def enumerated_table() -> str:
    """What is called unbiased, and in which worlds a test or a row of the tables found no bias."""
    found = results("enumerated")
    return markdown_table(found["columns"], [[cell.replace("|", "\\|") for cell in row] for row in found["rows"]])


def replay_bias_table() -> str:
    """The bias of each method in groups of three fan-outs, where the tree is known and where it is not."""
    rows = [row for row in results("replay_bias")["rows"] if row["fans"] == 3]
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    ways = {"clustered": "tree known", "unclustered": "tree not logged"}
    cells: dict[str, list[str]] = {}
    for row in rows:
        cells.setdefault(row["method"], []).extend(_bias(row[way]) for way in ways)
    head = ["method", *(f"{world}, {name}" for world in worlds for name in ways.values())]
    return markdown_table(head, [[method, *numbers] for method, numbers in cells.items()])


def _bias(value: float | None) -> str:
    return "refused" if value is None else f"{0.0 if value < 1e-9 else value:.4g}"


def replay_tasks_table() -> str:
    """Bias where replays are logged under other tasks than their trace, by the weights of siblings."""
    cells: dict[tuple[str, str], list[str]] = {}
    worlds: list[str] = []
    for row in results("replay_bias")["tasks"]:
        worlds += [row["world"]] * (row["world"] not in worlds)
        numbers = (row["all_siblings"], row["answered_siblings"])
        cells.setdefault((row["method"], row["layout"]), []).extend(map(_bias, numbers))
    head = [
        "method",
        "replays stand under",
        *(f"{w}, {which} siblings" for w in worlds for which in ("all", "answered")),
    ]
    return markdown_table(head, [[*names, *numbers] for names, numbers in cells.items()])


def language_team_table() -> str:
    """What each signal teaches the team of language models, by area."""
    found = results("language_team")
    seeds, rows = {row["seed"] for row in found["rows"]} & set(range(found["settings"]["seeds"])), []
    for c in sorted(found["cells"], key=lambda cell: -cell["area"]):
        mine = [row["updates"] for row in found["rows"] if row["seed"] in seeds
                and (row["signal"], row["learning_rate"]) == (c["signal"], c["learning_rate"])]  # fmt: skip
        base = c["signal"] == found["against"]
        p = "" if base else f"{c['difference_p']:.3f}" if c["difference_p"] >= 0.001 else "< 0.001"
        rows.append([f"`{c['signal']}`", f"{c['learning_rate']:g}", f"{sum(mine) / len(mine):.0f}",
                     f"{c['area']:.3f} ± {c['stderr']:.3f}", f"{c['final']:.3f}",
                     *(("", "") if base else (f"{c['difference']:+.3f}", f"{c['ahead']} of {c['seeds']}")),
                     p])  # fmt: skip
    head = ["signal", "rate", "updates", "area", "final", "area against `rloo`", "seeds ahead", "corrected p"]
    return markdown_table(head, rows)


def language_long_table() -> str:
    """Calls that each signal needs on longer tasks of language teams, by those of `rloo`, and what it ends with."""
    tasks = ("facts", "search", "calculation")
    found = {(row["task"], row["signal"]): row for row in results("language_long")["rows"]}
    rows: dict[str, list[str]] = {}
    for task, signal in found:
        if ":" not in signal:
            rows.setdefault(signal, [f"`{signal}`", *["–"] * (3 * len(tasks))])
            row, first = found[task, signal], 1 + 3 * tasks.index(task)
            ratios = (
                [_with_bounds(row["ratio_90"]), _with_bounds(row["ratio_final"])] if signal != "rloo" else ["1", "1"]
            )
            rows[signal][first : first + 3] = [*ratios, f"{sum(row['final']) / len(row['final']):.3f}"]
    head = [f"{task}: {what}" for task in tasks for what in ("90 %", "as `rloo`", "end")]
    return markdown_table(["signal", *head], list(rows.values()))


def _with_bounds(numbers: list[float | None]) -> str:
    """A median and its interval; – for what is infinite."""
    middle, low, high = ("–" if x is None else f"{x:.2f}" for x in numbers)
    return middle if low == "–" else f"{middle} ({low} to {high})"


def language_rounds_table() -> str:
    """Outcomes of language teams that stop by choice, and of those with a fixed number of rounds."""
    document, rows = results("language_long"), []
    lengths = range(document["chain"][0], document["chain"][1] + 1)
    found = {row["signal"]: row for row in document["rows"] if row["task"] == "search"}
    stops = found["rloo"]["final"]
    for signal, row in found.items():
        if signal.partition(":")[0] != "rloo":
            continue
        rounds = int(signal.partition(":")[2] or 0)
        best = [min(rounds or n, n) / n - document["price"] * (rounds or n) for n in lengths]
        ahead = sum(a > b for a, b in zip(stops, row["final"], strict=True))
        means = [sum(x) / len(x) for x in (best, row["area"], row["final"])]
        name, behind = (f"{rounds} of every question", f"{ahead} of {len(stops)}") if rounds else ("by choice", "")
        rows.append([name, f"{row['rate']:g}", *(f"{x:.3f}" for x in means), behind])
    return markdown_table(["rounds", "rate", "best possible", "mean of training", "end", "seeds behind"], rows)


def trainers_table() -> str:
    """Each integration beside the trainer's own numbers, as `make integrations` prints it."""
    return str(_program(ROOT / "tests" / "integrations" / "table.py").table_of(results("trainers")))


def commands_table() -> str:
    """Every command with what its help says first."""
    import click

    from credit.cli import cli

    rows = []
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        inner = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else [""]
        for word in inner:
            one = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else command
            assert one is not None
            rows.append([f"`credit {name} {word}".rstrip() + "`", one.get_short_help_str(200)])
    return markdown_table(["command", "does"], rows)


def speed_table() -> str:
    """The time of each method."""
    rows = results("methods")["speed"]["methods"]
    head = ["method", "multiples of a segment sum", "seconds"]
    return markdown_table(
        head, [[f"`{name}`", str(row["multiple"]), str(row["seconds"])] for name, row in rows.items()]
    )


def growth_table() -> str:
    """The time and memory of each command on large logs."""
    program = _program(BENCHMARKS / "growth_table.py")
    return str(program.table(program.measured()))


def speed_of(name: str) -> str:
    """What the writer of the page of speed makes of a benchmark."""
    return str(getattr(_program(ROOT / "docs" / "write_speed.py"), f"{name}_table")())


def _program(file: Path) -> ModuleType:
    """A program of this repository that is no part of a package, as a module."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def training_table() -> str:
    """The area of each signal on each task, by mean rank, with a mark where it differs from RLOO's."""
    from credit.bench.training.training_comparison import Cell, mean_ranks

    cells = [Cell(**{name: math.inf if v is None else v for name, v in row.items()})
             for row in results("training")["cells"]]  # fmt: skip
    ranks, tasks = mean_ranks(cells), list(dict.fromkeys(cell.task for cell in cells))
    found = {(cell.signal, cell.task): cell for cell in cells}
    rows = []
    for signal in sorted(ranks, key=lambda name: ranks[name]):
        mine = [found[signal, task] for task in tasks]
        marks = ["" if c.ahead_p >= 0.05 else " **+**" if c.difference > 0 else " **−**" for c in mine]
        areas = [f"{c.area:.2f} ± {c.stderr:.2f}{mark}" for c, mark in zip(mine, marks, strict=True)]
        rows.append([f"`{signal}`", f"{ranks[signal]:.1f}", *areas])
    return markdown_table(["signal", "rank", *tasks], rows)


def off_policy_table(section: str) -> str:
    """Coverage of the intervals of each world or estimator of a section."""
    rows = {name: row for name, row in results("off_policy")[section].items()
            if isinstance(row, dict) and "answered" in row}  # fmt: skip
    cells = [[name, *(" to ".join(map(str, v)) if isinstance(v, list) else str(v) for v in row.values())]
             for name, row in rows.items()]  # fmt: skip
    return markdown_table(["world or estimator", *next(iter(rows.values()))], cells)


def stopping_table(section: str) -> str:
    """Coverage by world, or the seeds that stop near the optimum by signal and task."""
    stored = results("stopping")
    if section == "training":
        tasks = list(next(iter(stored["training"].values())))
        rows = [
            [f"`{signal}`", *(f"{c['stopped']} ({c['events'] or '–'})" for c in row.values())]
            for signal, row in stored["training"].items()
        ]
        return markdown_table(["signal", *(task.removeprefix("stopping_") for task in tasks)], rows)
    worlds = stored["coverage"]["worlds"]
    cells = [[row["outcome"], str(row["kinds"]), str(row["decisions"]), "yes" if row["critic"] else "no",
              "–" if row["coverage"] is None else f"{100 * row['coverage']:.1f} %",
              "–" if row["bias"] is None else f"{row['bias']:+.4f} ± {row['bias_stderr']:.4f}"]
             for row in worlds]  # fmt: skip
    return markdown_table(["outcomes", "kinds of prefixes", "decisions", "critic", "coverage", "bias"], cells)


def checks_table() -> str:
    """What each check of the doctor measures, its limit, and what to do."""
    from credit.doctor.team_checks import CHECKS

    rows = []
    for name, check in CHECKS.items():
        limit = "" if check.limit is None else f"{check.limit:g}"
        rows.append([f"`{name}`", check.measures.replace("|", "\\|"), limit, check.advice])
    return markdown_table(["check", "statistic", "limit", "what to do"], rows)


def metrics_table() -> str:
    """What each metric of a trace is."""
    from credit.metrics.trace_costs import COSTS
    from credit.metrics.trace_metrics import METRICS

    rows = {**METRICS, **COSTS}
    return markdown_table(["name", "of a trace"], [[f"`{name}`", text] for name, text in rows.items()])


def doctor_table() -> str:
    """Planted faults that each check found, and its false alarms, on worlds of several seeds."""
    checks = results("doctor")["checks"]
    rows = [[f"`{name}`", *(f"{found} of {planted}" for found, planted in row.values())]
            for name, row in checks.items()]  # fmt: skip
    return markdown_table(["check", *next(iter(checks.values()))], rows)


def questions_table() -> str:
    """Processor time of functions beside credit over that of `rloo`: least and greatest over the team forms."""
    rows = results("questions")["rows"]
    sizes = sorted({row["events"] for row in rows})
    lines = []
    for name in sorted({*rows[-1]} - {"topology", "events", "load", "rloo, ms"}):
        of_size = {size: [row.get(name, "") for row in rows if row["events"] == size] for size in sizes}
        cells = [[times for times in found if not isinstance(times, str)] for found in of_size.values()]
        lines.append([f"`{name}`", *(f"{min(cell):.1f} to {max(cell):.1f}" if cell else "" for cell in cells)])
    return markdown_table(["function", *(f"{size:,} events" for size in sizes)], lines)


def robustness_table() -> str:
    """What each method pays for inserted events: at them, at all others, and in all."""
    measured = results("doctor")["robustness"]
    rows = [[f"`{name}`", *(" / ".join(f"{part:.2f}" for part in parts) for parts in row.values())]
            for name, row in measured.items()]  # fmt: skip
    return markdown_table(["method", *next(iter(measured.values()))], rows)


def coverage_of_worlds_table() -> str:
    """Coverage of off-policy intervals in each world that was drawn by seed."""
    rows = []
    for row in results("off_policy_coverage")["rows"]:
        figures = [row.get(name) for name in ("covered", "above", "below", "width", "bias")]
        names = [str(row[name]) for name in ("seed", "outcomes", "alternatives", "draws", "answers")]
        rows.append([*names, f"{row['answered']:.3f}", *("" if x is None else f"{x:.4f}" for x in figures)])
    head = ["seed", "outcomes", "alternatives", "draws", "answers", "answered", "covered", "above", "below", "width"]
    return markdown_table([*head, "bias"], rows)


def shapley_peers_table() -> str:
    """Error of the best shapiq estimator over ours, and coverage, on games with interactions: families by cells."""
    found = results("shapley")["interactions"]["cells"]
    cells = {tuple(name.split(", ", 1)): cell for name, cell in found.items()}
    sizes = list(dict.fromkeys(size for _, size in cells))
    rows = []
    for family in dict.fromkeys(family for family, _ in cells):
        row = [family]
        for size in sizes:
            if (family, size) not in cells:  # not run
                row.append("")
                continue
            cell = cells[family, size]
            ratio, best = cell["error of the best peer / ours"], min(cell["peers"], key=cell["peers"].get)
            figure = f"{ratio:.3g}" if ratio >= 0.01 else "0.00"
            row.append(f"{figure} ({best}); {100 * cell['coverage']:.0f} %")
        rows.append(row)
    return markdown_table(["game", *(size.replace("n = ", "").replace(", budget", " units,") for size in sizes)], rows)


def critic_signs_table() -> str:
    """Which effects the sign test of the critic finds, by size of the log."""
    rows = [[f"{row['tasks']} × {row['traces'] // row['tasks']}", str(row["effect"]), str(row["fits"]),
             *(f"{row[name]:.2f}" for name in ("found", "held-out alone", "false"))]
            for row in results("critic_signs")["rows"]]  # fmt: skip
    return markdown_table(["tasks × traces", "effect", "fits", "found", "by held-out tasks alone", "false"], rows)


FEW = {"truth within ± 1.96 spreads": "inside_95", "of those not 0": "inside_95_where_not_zero",
       "correlation": "correlation", "signs": "signs_reported", "right": "signs_right",
       "signs of zeros": "signs_reported_of_zeros", "false": "signs_false",
       "decisive first": "decisive_first"}  # fmt: skip
"""The columns of the table of critics of few traces, and the fields that they show."""


def few_traces_table() -> str:
    """Critics of 480 traces: the mean over fits of each world, and least to greatest where they differ."""
    fits: dict[str, list[dict[str, Any]]] = {}
    for row in results("critic_few")["additive"]["rows"]:
        fits.setdefault(row["world"], []).append(row)
    rows = [[world, str(len(mine)), *(_spread([row.get(field) for row in mine], field) for field in FEW.values())]
            for world, mine in fits.items()]  # fmt: skip
    return markdown_table(["world", "fits", *FEW], rows)


def _spread(values: list[float | None], field: str) -> str:
    known = [value for value in values if value is not None]
    if not known or (not any(known) and field == "decisive_first"):  # no decision of that world is decisive
        return ""
    share = field != "correlation"
    digits = 2 if not share else 1 if field == "signs_reported_of_zeros" else 0
    mean, least, most = (
        f"{(100 if share else 1) * x:.{digits}f}" for x in (sum(known) / len(known), min(known), max(known))
    )
    return mean + " %" * share + (f" ({least} to {most})" if least != most else "")


def critic_runs_table() -> str:
    """Errors of increments of a critic of 100 traces, with runs from prefixes and with further traces instead."""
    ways, rows = ("traces", "traces_and_runs", "more_traces"), []
    for kind, mine in results("critic_runs")["rows"].items():
        cells = [f"{_mean(mine, 'rms')[0]:.3f}", *("{:.3f} ± {:.3f}".format(*_mean(mine, way)) for way in ways)]
        rows.append([kind, *cells])
    return markdown_table(["outcome", "rms of the truth", "100 traces", "with runs", "further traces instead"], rows)


def _mean(rows: list[dict[str, Any]], field: str) -> tuple[float, float]:
    """The mean of a field over seeds, and its standard error."""
    values = [row[field] for row in rows]
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def named_critics_table() -> str:
    """Networks of 2,000 traces, a row a seed."""
    fields = {
        "R² of V̂": ("r_squared", 3),
        "rank correlation of increments": ("rank_increments", 3),
        "the broadcast reward's": ("rank_broadcast", 3),
        "calibration error": ("calibration_error_outcome", 3),
        "truth within 2 deviations": ("within_two_stderr", 2),
        "sign right": ("sign_right_where_told", 3),
    }
    rows = [[str(row["seed"]), *(f"{row[field]:.{digits}f}" for field, digits in fields.values())]
            for row in results("critic")["named"]["rows"]]  # fmt: skip
    return markdown_table(["seed", *fields], rows)


def ledger_mixture_table() -> str:
    """The second moment of gradient terms over RLOO's where the claims of 8 of 80 tasks are noise."""
    rows = [[name.removeprefix("size "), *(f"{row[part]:.2f}" for part in ("exact", "noise", "all"))]
            for name, row in results("ledger")["heterogeneous"]["results"].items()]  # fmt: skip
    return markdown_table(["size of the 8 tasks", "exact tasks", "noise tasks", "all"], rows)


COMPOSED = {"adam": "Adam", "sgd": "Steps along the gradient"}


def compositions_table(name: str) -> str:
    """Median events to 90 % over those of RLOO, with each optimizer."""
    texts = []
    for optimizer, title in COMPOSED.items():
        cells = {(c["task"], c["signal"]): c for c in results(f"training_{name}_{optimizer}")["cells"]}
        tasks, signals = dict.fromkeys(task for task, _ in cells), dict.fromkeys(signal for _, signal in cells)
        base = {task: cells[task, "rloo"]["events_to_90"] for task in tasks}
        rows = [["`rloo`, events", *("–" if base[task] is None else f"{base[task]:,.0f}" for task in tasks)]]
        for signal in (signal for signal in signals if signal != "rloo"):
            mine = {task: cells[task, signal] for task in tasks}
            ratios = ["–" if None in (c["events_to_90"], base[task]) else f"{c['events_to_90'] / base[task]:.2f}"
                      for task, c in mine.items()]  # fmt: skip
            marks = [" *" if c["events_p"] < 0.05 else "" for c in mine.values()]
            rows.append([f"`{signal}`", *(ratio + mark for ratio, mark in zip(ratios, marks, strict=True))])
        texts.append(f"{title}:\n\n{markdown_table(['signal', *tasks], rows)}")
    return "\n\n".join(texts)


def lengths_table() -> str:
    """Median events to 90 % of each signal over those of RLOO, by outcome, length, luck and optimizer.

    Behind it in brackets is how many of the seeds did not arrive, where some did not.
    """
    cells = {(c["outcome"], c["decisions"], c["luck"], c["optimizer"], c["signal"]): c
             for c in results("training_lengths") if c["traces"] == 16}  # fmt: skip
    found = {key: c["median"] for key, c in cells.items()}
    absent = {key: f" ({n})" if (n := c["events"].count(None)) else "" for key, c in cells.items()}
    signals = [name for name in dict.fromkeys(key[4] for key in found) if name != "rloo"]
    rows = []
    for outcome, decisions, luck, optimizer in sorted({key[:4] for key in found}, key=lambda k: (k[0], k[3], *k[1:3])):
        world = (outcome, decisions, luck, optimizer)
        base = found.get((*world, "rloo"))
        ratios = ["" if (*world, s) not in found else "–" if None in (base, found[*world, s]) else
                  f"{found[*world, s] / base:.2f}{absent[*world, s]}" for s in signals]  # fmt: skip
        events = "–" if base is None else f"{base:,.0f}{absent[*world, 'rloo']}"
        rows.append([f"`{outcome}`", optimizer, str(decisions), f"{luck:.1f}", events, *ratios])
    return markdown_table(["outcome", "steps", "D", "luck", "`rloo`, events", *(f"`{s}`" for s in signals)], rows)


def snr_table() -> str:
    """Signal to noise of each scheme at four lengths, its slope, and the cost of its evidence."""
    found = results("snr")
    slopes = {row["scheme"]: row for row in found["slopes"]}
    schemes: dict[str, dict[int, dict[str, Any]]] = {}
    for point in found["points"]:
        if point["group"] == 8 and point["theory"] is not None:
            schemes.setdefault(point["scheme"], {})[point["length"]] = point
    lengths, rows = (10, 100, 1_000, 10_000), []
    for scheme, points in schemes.items():
        slope, last = slopes[scheme], points[max(points)]
        cells = [f"{points[n]['snr']:.3g} ({points[n]['theory']:.3g})" if n in points else "" for n in lengths]
        exponent = "{:+.3f} to {:+.3f} ({:+.3f})".format(
            slope["slope"] - slope["half_width"], slope["slope"] + slope["half_width"], slope["theory"]
        )
        rows.append([scheme, f"`{last['method']}`", *cells, exponent, f"{last['cost']:,.0f}"])
    head = ["scheme", "runs", *(f"T = {n:,}" for n in lengths), "slope (closed form's)", "cost"]
    return markdown_table(head, rows)


def coverage_table() -> str:
    """How often 1.96 standard errors of numbers from runs hold the truth."""
    cells = {(row["world"], row["for"]): row for row in results("replay")["coverage"]}
    kinds = ("value", "difference", "spawn", "c3", "shapley")
    rows = [[world, *(_coverage(cells.get((world, kind))) for kind in kinds)]
            for world in dict.fromkeys(world for world, _ in cells)]  # fmt: skip
    means = []
    for kind in kinds:
        mine = [row for (_, of), row in cells.items() if of == kind and "coverage" in row]
        error = math.sqrt(sum(row["stderr"] ** 2 for row in mine)) / len(mine)
        means.append(_coverage({"coverage": sum(row["coverage"] for row in mine) / len(mine), "stderr": error}))
    return markdown_table(["world", *(f"`{kind}`" for kind in kinds)], [*rows, ["mean of the worlds", *means]])


def _coverage(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    return f"{cell['coverage']:.1f} ± {cell['stderr']:.1f}" if "coverage" in cell else "certain"


def allocation_table() -> str:
    """The error of two plans over that of an even one, by how much spreads differ."""
    measured: Any = results("replay_allocation")
    rows = [[row["world"], f"{row['cv']:.2f}", f"{row['bound']:.2f}", f"{row['ratio']:.2f} ± {row['stderr']:.2f}"]
            for row in sorted(measured, key=lambda row: row["cv"])]  # fmt: skip
    return markdown_table(["world", "CV of the spreads", "bound", "ratio"], rows)


RULES = {"averaged": "increments", "reconciled, tau ∞": "reconcile, tau inf", "fitted": "reconcile, tau fitted",
         "tau 0": "reconcile, tau 0", "critic": "critic alone", "siblings": "siblings alone",
         "agents, even": "agents, even", "budgets 1/3": "budgets 1/3", "naive sum": "naive sum"}  # fmt: skip
"""The columns of the table of the ledger's errors, and the results that they show."""


def ledger_errors_table() -> str:
    """Squared errors of the ledger's rules and of their parts; the least of a world is bold."""
    rows = []
    for world, found in results("ledger")["table"]["results"].items():
        errors = {name: found[field] for name, field in RULES.items()}
        least = min(errors, key=lambda name: errors[name])
        pairs = (found["chi squared"][pair] for pair in ("critic x siblings", "agents x critic"))
        cells = [f"**{x:.3f}**" if name == least else f"{x:.3f}" for name, x in errors.items()]
        rows.append([world, *cells, *(f"{x:.2f}" for x in pairs)])
    return markdown_table(["world", *RULES, "χ² critic × siblings", "critic × agents"], rows)


def ledger_stack_table() -> str:
    """Bias and variance of the stack over random teams."""
    found = results("ledger")["stack"]["results"]
    rows = [[name, *(f"{row[part]:.1e}" if name.startswith("bias") else f"{row[part]:.3f}"
                     for part in ("median", "least", "worst"))]
            for name, row in found.items() if not name.startswith("bias that")]  # fmt: skip
    return markdown_table(["", "median", "least", "most"], rows)


def ledger_coefficients_table() -> str:
    """The variance of `control` over RLOO's with fitted coefficients."""
    found = results("ledger")["variance"]["results"]
    rows = [[name, f"{row['over RLOO']:.3f} ± {row['standard error']:.3f}", f"{row['bound']:.3f}"]
            for name, row in found.items()]  # fmt: skip
    return markdown_table(["", "over RLOO", "bound"], rows)


PARTS = ("reconcile", "reconcile, by channel", "quantisation", "quantisation, finer grids tried")


def ledger_speed_table() -> str:
    """The time of each part of the ledger over that of a segment sum, and how it grows."""
    found = results("ledger")["speed"]["results"]
    sizes = [name for name in found if name.isdigit()]
    rows = [[f"{int(size):,}", *(f"{found[size]['multiples'][part]:.1f}" if part in found[size]["multiples"] else "–"
                                 for part in PARTS)]
            for size in sizes]  # fmt: skip
    text = markdown_table(["events", "reconcile", "by channel", "quantisation", "finer grids tried"], rows)
    rows = []
    names = {"one segment sum": "segment_sum", "reconcile": PARTS[0], "by channel": PARTS[1], "quantisation": PARTS[2]}
    for title, name in names.items():
        key, far = f"exponent of {name}", ", beyond the caches"
        over = f"{key} over that of segment_sum"
        rows.append([title, *(f"{found[k]:.2f}" for k in (key, key + far)),
                     *(f"{found[k]:+.2f}" for k in (over, over + far))])  # fmt: skip
    head = ["", "10⁴ to 10⁷ events", "10⁶ to 10⁷", "multiple, 10⁴ to 10⁷", "multiple, 10⁶ to 10⁷"]
    return f"{text}\n\nExponents of cost, and of the multiples above:\n\n{markdown_table(head, rows)}"


def options_table(path: str) -> str:
    """The options of a command of its own, as its help states them; of "reading", "picture" and "ledger" the shared."""
    import click

    from credit.cli import cli
    from credit.cli.shared.commands import LEDGER, PICTURE, READING, shared_sections

    shared = {"reading": READING, "picture": PICTURE, "ledger": LEDGER}
    command: click.Command | None = cli
    for word in ("compose" if path in shared else path).split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    context = click.Context(command)
    section_of = shared_sections(command.get_params(context))
    rows = []
    for parameter in command.get_params(context):
        record = None if isinstance(parameter, click.Argument) else parameter.get_help_record(context)
        section = section_of.get(parameter.name or "", "")
        if record is not None and "--help" not in parameter.opts and section == shared.get(path, ""):
            names, meaning = (text.replace("|", "\\|") for text in record)
            rows.append([f"`{names.replace(', --', '`, `--')}`", meaning])
    return markdown_table(["option", "meaning"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "table: published": published_table,
    "table: readers": lambda: file_table("readers.csv"),
    "table: clusters": lambda: clusters_tables(CLUSTERS),
    "table: laws": laws_table,
    "table: bias": bias_table,
    "table: worlds": worlds_table,
    "table: enumerated": enumerated_table,
    "table: replays": replay_bias_table,
    "table: replay tasks": replay_tasks_table,
    "table: language team": language_team_table,
    "table: language long": language_long_table,
    "table: language rounds": language_rounds_table,
    "table: trainers": trainers_table,
    "table: commands": commands_table,
    "table: bounds": lambda: file_table("bounds.csv"),
    "table: failed runs": lambda: file_table("failed-runs.csv"),
    "table: passed over": lambda: file_table("passed-over.csv"),
    "table: evidence": evidence_table,
    "table: methods": methods_table,
    "table: speed": speed_table,
    "table: growth": growth_table,
    **{
        f"table: speed of {name}": functools.partial(speed_of, name)
        for name in ("commands", "steps", "reading", "formats", "beside")
    },
    "table: training": training_table,
    "table: lengths": lengths_table,
    "table: composed": lambda: compositions_table("composed"),
    "table: drawn": lambda: compositions_table("drawn"),
    "table: snr": snr_table,
    "table: coverage of runs": coverage_table,
    "table: allocation": allocation_table,
    "table: ledger errors": ledger_errors_table,
    "table: stack": ledger_stack_table,
    "table: coefficients": ledger_coefficients_table,
    "table: ledger speed": ledger_speed_table,
    "table: few traces": few_traces_table,
    "table: critic runs": critic_runs_table,
    "table: named critics": named_critics_table,
    "table: mixture": ledger_mixture_table,
    "table: coverage of worlds": coverage_of_worlds_table,
    "table: shapley peers": shapley_peers_table,
    "table: critic signs": critic_signs_table,
    "table: shifts": lambda: off_policy_table("shifts"),
    "table: free": lambda: off_policy_table("free"),
    "table: hidden": lambda: off_policy_table("hidden"),
    "table: stopping coverage": lambda: stopping_table("coverage"),
    "table: stopping training": lambda: stopping_table("training"),
    "table: checks": checks_table,
    "table: metrics": metrics_table,
    "table: doctor": doctor_table,
    "table: robustness": robustness_table,
    "table: questions": questions_table,
    "table: overlap": lambda: off_policy_table("overlap"),
    **{
        f"options {path}": functools.partial(options_table, path)
        for path in (
            "reading",
            "picture",
            "ledger",
            "validate",
            "assign",
            "fit critic",
            "compose",
            "audit",
            "compare",
            "traces",
            "show",
            "summary",
            "doctor",
            "card",
            "metrics",
            "costs",
            "decisions",
            "why",
            "if-edited",
            "untrusted",
            "watch",
            "score blame",
            "score reliability",
            "check",
            "convert",
            "siblings",
            "plan",
            "replay",
            "report",
            "view",
            "label",
            "demo",
            "bench bias",
            "bench truth",
            "bench snr",
            "bench train",
            "bench doctor",
            "bench robustness",
            "bench table",
            "bench plot",
            "bench worlds",
            "shapley plan",
            "shapley solve",
        )
    },
}
"""What makes the table of each mark, by the text of its link."""
