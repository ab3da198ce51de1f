"""Write the page of speed from what the benchmarks measured: `make speed`.

    python docs/write_speed.py [--measure]

With `--measure` the benchmarks of reading, columns and waits run first, which takes half an hour. Those of methods,
growth and chunks take hours and run on their own.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE, BENCHMARKS = HERE / "speed.md", HERE.parent / "benchmarks"
MEASURED = (("reading.py",), ("formats.py",), ("columns.py",), ("waits.py",))

TEXT = """# Speed

`python docs/write_speed.py` writes this page from `benchmarks/results/`, which has every sample; the site shows its
tables. Times are of the processor, medians of rounds in which the contenders take turns, on two cores. Methods, their
growth, commands, steps, native logs and formats of 5 MB were measured alone. The rest was beside other work, which
doubles it at least.

## Methods

`python benchmarks/methods.py`: 512 traces of 4,000 events and 300 agents, groups of 8. The unit is one `segment_sum` of
a float per event into traces, timed right before and after each call: {unit:.0f} ns an event.

[table: speed](../benchmarks/results/methods.json)

Each of {count} methods takes at most {most} segment sums; {over} take more than 60 ns an event, which was the aim.
Those that number turns sort the events by agent instance. `c3` passes 66 times over nodes in no order. `gae` along the
causal graph takes a step an edge. `estimators.tokens.rows.gae` takes 1.3 times as long as rlax under `vmap`.

800 evaluations of 20 units take `shapley` 2 ms, and 62 where it fits interactions, 31 in single precision; the aim was
10.

{growth}

{gpu}

## Commands

`python benchmarks/waits.py`: seconds of a process. `report` is of 100 traces of 500 events, the others of 80 traces of
30. "Cold" is with an empty cache of compiled functions.

[table: speed of commands](../benchmarks/results/waits.json)

Commands keep compiled functions in the user's cache folder, if it is the user's alone;
`JAX_ENABLE_COMPILATION_CACHE=false` switches that off.

`report` misses its 300 MB: imports hold 238, methods and ledger 78.

## A trainer's step

`python benchmarks/waits.py`: columns of 8,192 rows to `dr_mas` advantages, beside the same formula in NumPy without
checks or metrics, in milliseconds, the least in brackets.

[table: speed of steps](../benchmarks/results/waits.json)

The aim of 1.5 times NumPy is missed: the compiled step alone takes longer than NumPy's on integers, and to number
texts in lists takes a quarter of theirs. Nothing compiles after `warmup`. A loop with dictionaries
takes {objects:.0f} to {categorical:.0f} times as long, by the type of the ids (`python benchmarks/columns.py`).

## Native logs

`python benchmarks/reading.py`: 5 MB. "Typed" is decoding by msgspec into structs, "plain" into Python's objects.
"Others'" logs have shuffled and unknown keys, escaped texts and nested objects.

[table: speed of reading](../benchmarks/results/reading.json)

The aim of 0.4 of typed decoding is missed: our own form had 0.32 to 0.42. A short
trace costs 35 microseconds. The Parquet cache reads in a sixth of the time.

## Logs of other projects

`python benchmarks/formats.py`: reading 5 MB over plain decoding. Logs from `otlp` on have traces of three lines.
"Messy" logs have shuffled and unknown keys, escaped texts and objects; "indented" ones are messy in one list.

[table: speed of formats](../benchmarks/results/formats.json)

{larger}
The aim of four times decoding is missed where lines are short, which take {lines} microseconds.

Logs of 50 MB take up to 2.7 times their size in memory, one trace of 28 MB 5.7 times, Langfuse's traces of three lines
8 times: any line of an export may belong to any trace.

`python benchmarks/growth_formats.py`: 1,000,000 lines take 13 to 128 s and 0.7 to 1.6 GB, with exponents of 0.86 to
1.13.

## Growth

`python benchmarks/growth.py --warm 1`: each command on one trace that is a chain, on one whose agents spawned one
another, and on many of three events. A cell has seconds, gigabytes, and the exponents of both over the last factor of
ten; in brackets without the kernel's time.

[table: growth](../benchmarks/results/growth_million.json)

No command has an exponent above 1.1 over all sizes. `convert --to otlp` of one trace of 1,000,000 events takes 11 GB.

## Before and after

`python benchmarks/beside.py FOLDER` runs this checkout and an earlier one, here {before}, turn about.

[table: speed of beside](../benchmarks/results/beside.json)

## Folders larger than memory

`python benchmarks/chunks.py`: `read_chunks` in chunks of whole groups of about 200,000 events, with Dr. MAS advantages
identical to those at once. {chunks}
"""

AIM, EXPONENT = 60, 1.05
"""Nanoseconds an event and the exponent of growth that no method should exceed."""
PRIMITIVES = {"sort": "the sort of events by agent"}
WRAPPED: dict[str, Any] = {"width": 120, "break_long_words": False, "break_on_hyphens": False}
FORMATS = {"canonical": "over plain decoding", "messy": "messy", "messy, indented": "indented"}
FORMS = {
    "our own": "traces of 4,000 events, as our own writer has them",
    "one trace": "one trace",
    "short traces": "traces of 8 events",
    "others'": "others' traces, one a line",
    "others', pretty-printed": "others' traces, pretty-printed",
}


def results(name: str) -> dict[str, Any]:
    """What a benchmark measured."""
    found: dict[str, Any] = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells as Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, *rows)).replace(
        "\n", f"\n|{'---|' * len(head)}\n", 1
    )


def commands_table() -> str:
    """Seconds of each command on one core and on two, cold and warm, and its memory."""
    rows = []
    one, two = (results("waits")["commands"][f"{count} of the cores"] for count in (1, 2))
    for name in one:
        cells = []
        for samples in (one[name], two[name]):
            warm = [sample["process"] for sample in samples[1:]]
            cells += [f"{samples[0]['process']:.1f}", f"{statistics.median(warm):.1f}"]
        peak = max(sample["megabytes"] for sample in one[name][1:])
        rows.append([f"`{name}`", *cells, f"{peak:.0f} MB"])
    return table(["", "one core, cold", "warm", "two cores, cold", "warm", "memory, warm"], rows)


def steps_table() -> str:
    """A step of 8,192 rows beside NumPy, by the form of the columns."""
    rows = []
    for form, spent in results("waits")["steps, milliseconds"]["8192"].items():
        step, peer = spent["step"], spent["NumPy"]
        cells = [f"{part['median']:.1f} ({part['least']:.1f})" for part in (step, peer)]
        rows.append([form, *cells, f"{step['median'] / peer['median']:.1f}"])
    return table(["columns", "step", "NumPy", "quotient"], rows)


def reading_table() -> str:
    """Decoding over reading, by the form of native logs."""
    ratios = results("reading")["ratios"]
    names = ("reading over decoding", "reading over plain decoding")
    rows = [[FORMS[form], *(f"{of_form['process'][name]:.2f}" for name in names)] for form, of_form in ratios.items()]
    return table(["decoding over reading", "typed", "plain"], rows)


def formats_table() -> str:
    """Reading over plain decoding, by format and form."""
    rows = []
    for name, found in results("formats")["5 MB"].items():
        forms = found["forms"]
        quotients = [f"{one['ratios']['process, over plain decoding']:.2g}" for one in map(forms.get, FORMATS) if one]
        plain = forms["canonical"]
        rows.append([name.partition(",")[0], f"{plain['bytes'] / plain['events']:,.0f}", *quotients])
    return table(["", "bytes an event", *FORMATS.values()], rows)


def beside_table() -> str:
    """Medians of every figure of this checkout and of an earlier one, in turns."""
    rows = []
    for part, found in results("beside").items():
        for name, samples in found["figures"].items():
            medians = (f"{statistics.median(values):.3g}" if values else "–" for values in samples.values())
            rows.append([part, name, *medians])
    return table(["", "", "before", "after"], rows)


def larger_logs() -> str:
    """The quotients of larger logs, their own and messy ones."""
    told = [
        "{} {} ({})".format(
            name.partition(",")[0],
            *(
                f"{found['forms'][form]['ratios']['process, over plain decoding']:.2g}"
                for form in ("canonical", "messy")
            ),
        )
        for name, found in results("formats")["50 MB"].items()
    ]
    return f"At 50 MB, and messy in brackets: {', '.join(told)}."


def short_lines() -> str:
    """Microseconds of a line, over the formats whose lines are spans."""
    spent = [
        1e6 * form["medians"]["process"]["reading"] / form["events"]
        for form in (found["forms"]["canonical"] for found in results("formats")["5 MB"].values())
        if form["bytes"] < 1000 * form["events"]
    ]
    return f"{min(spent):.0f} to {max(spent):.0f}"


def methods_growth() -> str:
    """The exponents of the methods that were measured at several sizes, and their times at the greatest."""
    every = results("methods")["growth"]["methods"]
    found = {name: row for name, row in every.items() if name not in PRIMITIVES}
    parts = [f"{PRIMITIVES[name]} {row['exponent']:.2f}" for name, row in every.items() if name in PRIMITIVES]
    sizes = [int(size) for size in next(iter(found.values())) if size != "exponent"]
    exponents = {name: row["exponent"] for name, row in found.items()}
    steep = [f"`{name}` {exponent:.2f}" for name, exponent in exponents.items() if exponent > EXPONENT]
    slow = [f"`{name}` {row[str(sizes[-1])]:.0f}" for name, row in found.items() if row[str(sizes[-1])] > AIM]
    return textwrap.fill(
        f"`python benchmarks/methods.py growth={','.join(every)}`: processor time from {sizes[0]:,} to {sizes[-1]:,} "
        f"events grows with exponents of {min(exponents.values()):.2f} to {max(exponents.values()):.2f}"
        + (f", above {EXPONENT} in {', '.join(steep)}" if steep else "")
        + (f", as does {' and '.join(parts)}" if parts else "")
        + f". Then {', '.join(slow)} take more than {AIM} ns an event.",
        **WRAPPED,
    )


def methods_on_a_gpu() -> str:
    """What a GPU makes of the same table, and of 16 times the traces."""
    found, large = results("methods_gpu")["speed"], results("methods_gpu")["large"]
    slowest = max(row["nanoseconds an event"] for row in found["methods"].values())
    grpo, more = found["methods"]["grpo"], large["methods"]["grpo"]
    return textwrap.fill(
        f"On an {found['device'].partition(',')[0]} `grpo` takes {grpo['nanoseconds an event']:.2f} ns an event and no "
        f"method more than {slowest:.1f}. A call takes .1 to .3 ms before anything is computed, so `grpo` has "
        f"{100 * grpo['share of bandwidth']:.0f} % of the bandwidth of a copy, and "
        f"{100 * more['share of bandwidth']:.0f} % with {large['traces']:,} traces (`large=grpo`); 30 % was the aim.",
        **WRAPPED,
    )


def chunks_memory() -> str:
    """By how much the memory grows, in chunks and at once."""
    runs = results("chunks")["runs"]
    whole, part, at_once = (runs[name] for name in ("whole", "quarter", "quarter, at once"))
    return (
        f"{whole['bytes'] / 1e9:.0f} GB of logs add {whole['grown'] / 1e6:,.0f} MB to the memory, a quarter of them "
        f"{part['grown'] / 1e6:,.0f} MB and at once {at_once['grown'] / 1e6:,.0f} MB."
    )


def page() -> str:
    """The whole page."""
    columns, speed = results("columns")["ratios"]["process"], results("methods")["speed"]
    unit = 1e9 * speed["segment_sum seconds"] / speed["events"]
    return TEXT.format(
        count=len(speed["methods"]),
        most=math.ceil(max(row["multiple"] for row in speed["methods"].values())),
        unit=unit,
        over=sum(row["multiple"] * unit > AIM for row in speed["methods"].values()),
        growth=methods_growth(),
        gpu=methods_on_a_gpu(),
        larger=larger_logs(),
        lines=short_lines(),
        categorical=columns["loop over categorical"],
        objects=columns["loop over objects"],
        chunks=chunks_memory(),
        before=next(iter(results("beside").values()))["commits"]["before"],
    )


def main() -> None:
    """Measure where asked to, and write the page."""
    if "--measure" in sys.argv[1:]:
        root = HERE.parent
        for script, *options in MEASURED:
            command = [sys.executable, str(BENCHMARKS / script), *options]
            subprocess.run(command, check=True, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
