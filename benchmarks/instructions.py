"""How the instructions that a command executes grow with a log: `growth.py` without the caches of the processor.

    python benchmarks/instructions.py [--shape traces] [--commands summary ...] [--from 30000] [--to 300000] [--add]

Lists and tables of a small log fit into the processor's caches and those of a larger one do not, so that the same work
for an event takes longer. Instructions count the work, at any load, and repeat to a few in a thousand. valgrind counts
them, which takes about a hundred times as long as the command. The instructions on a log of a hundred events, which
imports and compiles as much, are subtracted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from growth import COMMANDS, ROOT, SHAPES, SMALL, exponent, filled, written

COUNTER = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
ALIKE = {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2", "PYTHONHASHSEED": "0"}
"""No instructions that valgrind does not know, and the same order of every set in each process."""


def counted(command: list[str]) -> int:
    """Instructions of `credit` with these arguments, in one process."""
    done = subprocess.run(
        [*COUNTER, sys.executable, "-m", "credit", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        cwd=ROOT, env={**os.environ, **ALIKE, "PYTHONPATH": str(ROOT)}, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"I +refs: +([\d,]+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-300:]}")
    return int(found[1].replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="least", type=int, default=30_000)
    parser.add_argument("--to", dest="most", type=int, default=300_000)
    parser.add_argument("--shape", default="traces", choices=list(SHAPES))
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--output", type=Path, help="Default: results/instructions_SHAPE.json.")
    parser.add_argument("--add", action="store_true", help="Keep the output's rows of other commands.")
    parser.add_argument("--logs", type=Path, help="Folder that keeps the logs. Default: a temporary one.")
    given = parser.parse_args()
    output = given.output or Path(__file__).parent / "results" / f"instructions_{given.shape}.json"
    sizes = [given.least]
    while sizes[-1] * 10 <= given.most:
        sizes.append(sizes[-1] * 10)
    rows: list[dict[str, Any]] = json.loads(output.read_text())["rows"] if given.add and output.exists() else []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.logs or Path(temporary)).resolve() / given.shape
        for name in given.commands:
            found = {}
            for size in (SMALL, *sizes):
                log = written(given.shape, size, folder / str(size) / "log.jsonl")
                found[size] = counted(filled(COMMANDS[name], given.shape, log, Path(temporary)))
            own = {size: found[size] - found[SMALL] for size in sizes}
            exponents = [exponent(own[a], own[b], b / a, 0) for a, b in itertools.pairwise(sizes)]
            rows = [row for row in rows if row["command"] != name]
            rows.append({"shape": given.shape, "command": name, "instructions": own, "exponents": exponents})
            print(json.dumps(rows[-1]), flush=True)
            output.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
