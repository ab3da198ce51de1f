"""Hostile native logs in chunks: what `credit assign --chunk-events` gives is what it gives at once.

    python benchmarks/hostile_chunks.py [--inputs 200] [--seed 0] [--logs FOLDER ...]

Seeds are the native forms of every log under `--logs` and of the seeds of `hostile.py`, with outcomes where they have
none. An input is a folder of up to six of them, each left alone or changed by bytes or by structure, as
`hostile_commands.py` does, some of them twice under two names. It is assigned at once, and in chunks of a size drawn
from 1 to 2,000 events.

The run fails (exit code 1) where one of the two raises an error, leaves a part of a file behind or takes more than a
minute, where their exit codes differ, or where a row of the tables differs.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
from hostile import mutate, options
from hostile_commands import files, outcomes, ring, run, splice

from graphs.errors import CreditError
from graphs.logs import read
from graphs.writers import native


def native_seeds(logs: list[Path], folder: Path) -> list[bytes]:
    """Native forms of all logs that read."""
    found = []
    for log in logs:
        try:
            traces = read(log)
            if not (traces.reward == traces.reward).any():
                traces = read(log, rewards=outcomes(traces, folder))
            native.write(traces, folder / "native.jsonl")
        except CreditError:
            continue
        found.append((folder / "native.jsonl").read_bytes())
    return found


def changed(data: bytes, rng: random.Random) -> bytes:
    """A log as it is, or with bytes or structure changed."""
    return rng.choice((lambda text, _: text, splice, mutate))(data, rng)


def rows(path: Path) -> list[str]:
    """The rows of a table in an order of their own; every digit of a number shows."""
    return sorted(map(str, pq.read_table(path).to_pylist())) if path.exists() else []


def main() -> int:
    given = options(__doc__).parse_args()
    signal.signal(signal.SIGPROF, ring)
    rng = random.Random(given.seed)
    codes: Counter[int] = Counter()
    faults = compared = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        found = native_seeds(files(given.logs, folder), folder)
        for number in range(given.inputs):
            with tempfile.TemporaryDirectory(dir=folder) as own:
                logs, out = Path(own) / "logs", Path(own) / "out"
                logs.mkdir()
                out.mkdir()
                for place in range(rng.randint(1, 6)):
                    data = changed(rng.choice(found), rng)
                    for copy in range(rng.choice((1, 1, 1, 2))):
                        (logs / f"{place}{copy}.jsonl").write_bytes(data)
                size = str(int(2000 ** rng.random()))
                command = ["assign", "--method", "rloo", "-o"]
                whole, fault, _ = run([*command, "{out}/whole.parquet"], logs, [], out)
                parts, wrong, _ = run([*command, "{out}/parts.parquet", "--chunk-events", size], logs, [], out)
                codes[parts] += 1
                one, two = (rows(out / name) for name in ("whole.parquet", "parts.parquet"))
                compared += len(one)
                fault = fault or wrong
                if not fault and (whole, one) != (parts, two):
                    odd = next(iter(set(one) ^ set(two)), "")
                    fault = f"left with {whole} and {parts}, {len(one)} and {len(two)} rows, such as {odd}"
                if fault:
                    faults += 1
                    print(f"input {number}, chunks of {size}: {fault}", file=sys.stderr, flush=True)
                    if given.keep:
                        shutil.copytree(logs, given.keep / str(number), dirs_exist_ok=True)
    report = {"inputs": given.inputs, "seed": given.seed, "logs": len(found), "faults": faults}
    print(json.dumps(report | {"rows compared": compared, "exit codes": dict(sorted(codes.items()))}))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
