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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE, BENCHMARKS = HERE / "speed.md", HERE.parent / "benchmarks"
MEASURED = (("reading.py",), ("formats.py", "--traces", "300"), ("columns.py",), ("waits.py",))

TEXT = """# Speed

`python docs/write_speed.py` writes this page from `benchmarks/results/`, which has every sample. Times are of the
processor, in medians of rounds in which the contenders take turns, on a shared machine of two cores that other work
loaded at 3 to 35. It makes everything take two to three times as long as alone, and rounds differ by up to a third.

## Methods

`python benchmarks/methods.py`: 512 traces of 4,000 events and 300 agents, groups of 8. The unit is one `segment_sum` of
a float per event into traces, timed right before and after each call: {unit:.0f} ns an event.

<!-- table speed -->

Each of {count} methods takes at most {most} segment sums in its round of the lowest load. Those that number turns or
points of decisions order the events by agent instance, in two sorts of single numbers of 32 bits: a digit of the key,
and below it the place. That takes 14 segment sums, XLA's sort of keys with places 32 beside it. Beside 30 other
processes it takes up to twice as many: `at_grpo` 58, `stop_credit` 72.
{c3}

`gae` along the causal graph takes a step for each edge of the trace with the most: 236 segment sums for 6,000 edges a
trace, 15 along the trace. On one block of 512 rows of 4,000, `estimators.tokens.rows.gae` takes 1.3 times as long as
rlax under `vmap`; `credit.gae`, which needs no padding, takes 18.6 times as long.

## Commands

`python benchmarks/waits.py`: seconds of a process. `report` is of 100 traces of 500 events, the others of 80 traces of
30. "Cold" is with an empty cache of compiled functions.

{commands}

`validate`, `traces`, `convert`, and `show` without `--plot` do without JAX. 70 % of a warm `summary` are imports, most
of JAX. On a less busy machine it takes 1.3 s. Commands keep their compiled functions in the user's cache folder, if no
other user owns it or can write to it, so that the next one traces none of them;
`JAX_ENABLE_COMPILATION_CACHE=false` switches that off.

Two aims of `report` are missed. Cold it should take 8 s: XLA compiles eleven functions in 9, of which `gae`,
`turn_baseline` and the increments of both take 5.2, and its options for less optimisation save half a second. It should
take 300 MB: imports hold 205, the logs 45, methods and their compiled functions 45, the ledger 50, findings and the
page 55.

## A trainer's step

`python benchmarks/waits.py`: columns of rows to `dr_mas` advantages, beside the same formula in NumPy without checks or
metrics. Medians in milliseconds, the least in brackets, and the quotient.

{steps}

1.5 times NumPy is missed. At 8,192 rows of NumPy, where NumPy takes .3 ms, 1.1 of 2.1 ms number the ids, check the
columns and fill arrays, .6 are the compiled method with its transfers, and .4 the metrics, in a flat profile. Of Arrow
strings and lists, encoding three columns in dictionaries adds 1 to 3 ms. Nothing compiles after `warmup`. On 65,536
rows (`python benchmarks/columns.py`) a step is {categorical:.0f} times as fast as a loop with dictionaries where ids
are categorical, {arrow:.0f} times where they are Arrow strings, {objects:.0f} times where they are NumPy objects.

## Native logs

`python benchmarks/reading.py`: 5 MB on one core. "Typed" is decoding by msgspec into structs, "plain" into Python's
objects. "Others'" logs have shuffled and unknown keys, escaped texts and nested objects.

{reading}

The Parquet cache reads in a sixth of the time. Logs take 2.5 to 3.8 times their size in memory; one trace of 28 MB 5.7
times.
Keys that stand twice are not searched for: that takes three quarters of the time of reading.

## Logs of other projects

`python benchmarks/formats.py --traces 300`: reading over plain decoding of the same bytes.

{formats}

A trace costs 75 to 300 microseconds of Python, each of its lines 20 to 60. Decoding takes 2. The profile is flat: in
four of these formats a trace makes 440 calls of functions, none of which takes more than 3 %.
A path that kept the spans of all traces as columns was six times as fast, and took 1,500 lines for one format. Memory
is 4 to 5 times the log, 12 times where traces are short.

`python benchmarks/growth_formats.py`: 1,000,000 lines take 13 to 128 s and 0.7 to 1.6 GB, whole or damaged, with
exponents of 0.86 to 1.13.

## Growth

`python benchmarks/growth.py --warm 1`: each command on one trace that is a chain, on one whose agents spawned one
another, and on many traces of three events. A cell has seconds, gigabytes, and the exponents of both over the last
factor of ten; in brackets without the kernel's time.

<!-- table growth -->

- No command has an exponent above 1.1 over all sizes.
- `convert --to otlp` of one trace of 1,000,000 events takes 11 GB: events, spans and JSON at once.

## Folders larger than memory

`read_chunks` reads every file twice and raises `ChangedError` where a trace changed in between.
`python benchmarks/chunks.py`: Dr. MAS advantages in chunks of whole groups of about 200,000 events, identical to those
at once.

{chunks}
"""

C3 = """`c3` makes 22 scatters and 44 gathers over nodes in no order, of 3 ns an event each in the processor's
cache and 9 to 15 beyond it: 208 ns at 65,536 events, 303 at 1,048,576. To sort the nodes once would add 900."""

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
    """A step beside NumPy, by rows and by the form of the columns."""
    rows = []
    for size, forms in results("waits")["steps, milliseconds"].items():
        for form, spent in forms.items():
            step, peer = spent["step"], spent["NumPy"]
            cells = [f"{part['median']:.1f} ({part['least']:.1f})" for part in (step, peer)]
            rows.append([f"{int(size):,}", form, *cells, f"{step['median'] / peer['median']:.1f}"])
    return table(["rows", "columns", "step", "NumPy", "quotient"], rows)


def reading_table() -> str:
    """Decoding over reading, by the form of native logs."""
    ratios = results("reading")["ratios"]
    names = ("reading over decoding", "reading over plain decoding")
    rows = [[FORMS[form], *(f"{of_form['process'][name]:.2f}" for name in names)] for form, of_form in ratios.items()]
    return table(["decoding over reading", "typed", "plain"], rows)


def formats_table() -> str:
    """Reading over plain decoding, by format."""
    rows = []
    for name, found in results("formats")["formats"].items():
        quotient = found["ratios"]["process, over plain decoding"]
        rows.append([name, f"{found['bytes'] / found['events']:,.0f}", f"{quotient:.2g}"])
    return table(["", "bytes an event", "over plain decoding"], rows)


def chunks_table() -> str:
    """Memory of reading in chunks and at once."""
    rows = [
        [name, f"{found['bytes'] / 1e9:.1f} GB", f"{found['grown'] / 1e6:,.0f} MB"]
        for name, found in results("chunks")["runs"].items()
    ]
    return table(["", "logs", "growth of the peak memory"], rows)


def page() -> str:
    """The whole page."""
    columns, speed = results("columns")["ratios"]["process"], results("methods")["speed"]
    return TEXT.format(
        c3=C3,
        count=len(speed["methods"]),
        most=math.ceil(max(row["multiple"] for row in speed["methods"].values())),
        unit=1e9 * speed["segment_sum seconds"] / speed["events"],
        commands=commands_table(),
        steps=steps_table(),
        categorical=columns["loop over categorical"],
        arrow=columns["loop over Arrow"],
        objects=columns["loop over objects"],
        reading=reading_table(),
        formats=formats_table(),
        chunks=chunks_table(),
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
