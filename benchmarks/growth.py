"""How time and memory grow with a log: one long trace, one large team, many small traces.

    python benchmarks/growth.py [--from 10000] [--to 1000000] [--warm N] [--add] [--output growth.json]

For each shape and each command, a log of `--from` and of larger sizes (times `--factor`) is written and the command run
on it in a process of its own. Reported are processor seconds and the growth of memory over what the command takes on a
log of a hundred events, and between consecutive sizes the exponent: 1 is linear, 2 quadratic. Exponents above 1.1 are
marked: those of memory, and of the program's own time, "user". The kernel hands out pages, which cost more on a busy
machine.

`--warm N` runs the command in its process on the log of a hundred events, which imports what it needs, and then on its
own log: N + 1 times, or once where that takes `--once` seconds (20). The time is the least of these runs, whole. A log
that is run once has what XLA compiles for its sizes in its time. `--logs FOLDER` keeps the logs for later runs.

Batches are padded to powers of two. `--warm 2 --factor 8 --from 46875 --to 3000000` has the same share of padding at
every size.

`--add` keeps the rows of other commands that the output holds from a run of the same sizes and warmth. A command that
takes more than `--limit` processor seconds or `--gigabytes` of address space ends, with an exit code that is not 0.

    events   one trace of n events, edges to the event before, 100 agents
    agents   one trace of n / 10 agents that a chain of spawns started, one action each, and their returns
    traces   n / 3 traces of three events in groups of four
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BOUND = 1.1
SMALL = 100  # events
LOG, FOLDER, TRACE, EVENT = "{log}", "{folder}", "{trace}", "{event}"
COMMANDS: dict[str, list[str]] = {
    "validate": ["validate", LOG],
    "traces": ["traces", LOG],
    "show": ["show", LOG],
    "choose": ["choose", LOG],
    "methods": ["methods", LOG],
    "summary": ["summary", LOG, "--method", "reinforce_batch"],
    "convert": ["convert", LOG, "-o", "{out}/log.jsonl"],
    "convert to a cache": ["convert", LOG, "-o", "{out}/log.parquet"],
    "convert to OTLP": ["convert", LOG, "--to", "otlp", "-o", "{out}/otlp"],
    "assign": ["assign", LOG, "--method", "reinforce_batch", "-o", "{out}/advantages.parquet"],
    "assign in chunks": ["assign", LOG, "--method", "rloo", "--chunk-events", "100000", "-o", "{out}/chunks.parquet"],
    "compose": ["compose", LOG, "--methods", "rloo", "-o", "{out}/ledger.parquet"],
    "explain": ["explain", LOG, TRACE, EVENT, "--methods", "rloo"],
    "audit": ["audit", LOG, "--methods", "rloo,turn_baseline"],
    "compare": ["compare", LOG, "--methods", "reinforce_batch,turn_baseline"],
    "report": ["report", LOG, "--methods", "reinforce_batch", "-o", "{out}/report.html"],
    "watch": ["watch", FOLDER, "--once", "--method", "reinforce_batch"],
    "siblings": ["siblings", LOG, "-o", "{out}/siblings.jsonl"],
    "plan": ["plan", LOG, "--for", "value", "--budget", "{runs}", "-o", "{out}/plan.jsonl"],
    "reliability": ["score", "reliability", LOG, "--method", "reinforce_batch", "--by", "agent", "--splits", "2"],
}
MANY_TRACES_ONLY = ("reliability",)
"""Commands that refuse a log of one trace."""


AGAIN = """
import json, resource, sys
from credit.__main__ import main
repeats, once, small, own = json.loads(sys.argv[1])
def run(arguments):
    sys.argv = ["credit", *arguments]
    start, code = resource.getrusage(resource.RUSAGE_SELF), 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    end = resource.getrusage(resource.RUSAGE_SELF)
    return (end.ru_utime - start.ru_utime, end.ru_stime - start.ru_stime), code
run(small)
spent, code = run(own)
for _ in range(repeats if sum(spent) < once else 0):
    spent = min(spent, run(own)[0])
print(*spent, file=sys.stderr)
sys.exit(code)
"""
"""A program that runs a command on a small log, then several times on its own, and says the least time of these."""


def one_trace(events: int) -> Iterator[dict[str, Any]]:
    """One trace of many events."""
    listed = [
        {"id": f"e{i}", "t": i, "type": "message", "agent": f"a{i % 100}", "tokens": i % 7, "value": 0.5}
        for i in range(events)
    ]
    edges = [{"src": f"e{i}", "dst": f"e{i + 1}", "type": "causal"} for i in range(events - 1)]
    yield {"trace_id": "t", "task_id": "q", "events": listed, "edges": edges, "rewards": {"team": 1.0}}


def one_team(events: int) -> Iterator[dict[str, Any]]:
    """One trace of many agents, each spawned by the one before."""
    agents = max(2, events // 10)
    listed = [{"id": f"s{i}", "type": "spawn", "agent": f"a{i}", "to": f"a{i + 1}"} for i in range(agents - 1)]
    listed += [{"id": f"m{i}", "type": "message", "agent": f"a{i}"} for i in range(agents)]
    listed += [{"id": f"r{i}", "type": "return", "agent": f"a{i}", "to": f"a{i - 1}"} for i in range(agents - 1, 0, -1)]
    edges = [{"src": f"s{i}", "dst": f"m{i + 1}", "type": "spawn"} for i in range(agents - 1)]
    yield {"trace_id": "t", "task_id": "q", "events": listed, "edges": edges, "rewards": {"team": 1.0}}


def many_traces(events: int) -> Iterator[dict[str, Any]]:
    """Traces of three events."""
    for i in range(events // 3):
        listed = [{"id": f"e{j}", "type": "message", "agent": f"a{j}"} for j in range(3)]
        edges = [{"src": "e0", "dst": "e1", "type": "causal"}]
        rewards = {"team": float(i % 3)}
        yield {"trace_id": f"t{i}", "task_id": f"q{i // 4}", "events": listed, "edges": edges, "rewards": rewards}


SHAPES = {"events": one_trace, "agents": one_team, "traces": many_traces}
ENDED = (0, 2, 3)
"""Exit codes of a command that came to its end: all is read, nothing is, a part is."""
FIRST = {"events": ("t", "e1"), "agents": ("t", "m0"), "traces": ("t0", "e0")}
"""A trace and an event of each shape."""


def filled(command: list[str], shape: str, log: Path, out: Path) -> list[str]:
    """A command's arguments for a log."""
    trace, event = FIRST[shape]
    runs = 4 * int(log.parent.name)
    return [part.format(log=log, folder=log.parent, out=out, trace=trace, event=event, runs=runs) for part in command]


def measure(
    command: list[str], shape: str, log: Path, out: Path, warm: int, once: float, limit: int, gigabytes: int
) -> tuple[float, float, float, int]:
    """Processor seconds of the program and of the kernel, peak megabytes and exit code of a command."""
    own = filled(command, shape, log, out)
    small = filled(command, shape, log.parent.parent / str(SMALL) / log.name, out)
    program = ["-c", AGAIN, json.dumps([warm, once, small, own])] if warm else ["-m", "credit", *own]
    done = subprocess.run(
        [sys.executable, *program], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, preexec_fn=lambda: bound(limit, gigabytes),
    )  # fmt: skip
    code, message = done.returncode, done.stderr.decode()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code not in ENDED:
        print(f"{' '.join(own)}: {message[-300:]}", file=sys.stderr)
    user, system = used.ru_utime, used.ru_stime
    if warm and code in ENDED:
        user, system = map(float, message.split()[-2:])
    return user, system, used.ru_maxrss / 1e3, code


def bound(seconds: int, gigabytes: int) -> None:
    """End this process after so many processor seconds, and refuse it more memory."""
    for what, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, gigabytes * 2**30)):
        resource.setrlimit(what, (most, most))


def in_a_process_of_its_own(*arguments: Any) -> tuple[float, float, float, int]:
    """`measure` in a fork, whose children are this command alone."""
    parent, child = os.pipe()
    pid = os.fork()
    if pid == 0:
        with os.fdopen(child, "w") as stream:
            json.dump(measure(*arguments), stream)
        os._exit(0)
    os.close(child)
    with os.fdopen(parent) as stream:
        user, system, memory, code = json.load(stream)
    os.waitpid(pid, 0)
    return user, system, memory, code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="least", type=int, default=10_000)
    parser.add_argument("--to", dest="most", type=int, default=1_000_000)
    parser.add_argument("--factor", type=int, default=10, help="From one size to the next. Default: 10.")
    parser.add_argument("--warm", type=int, default=0, help="Runs after the first, the least of which is the time.")
    parser.add_argument("--once", type=float, default=20.0, help="Seconds from which a command is not run again.")
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "growth.json")
    parser.add_argument("--add", action="store_true", help="Keep the output's rows of other commands.")
    parser.add_argument("--logs", type=Path, help="Folder that keeps the logs. Default: a temporary one.")
    parser.add_argument("--limit", type=int, default=600, help="Processor seconds after which a command is ended.")
    parser.add_argument("--gigabytes", type=int, default=15, help="Address space of a command.")
    given = parser.parse_args()
    sizes = [given.least]
    while sizes[-1] * given.factor <= given.most:
        sizes.append(sizes[-1] * given.factor)
    rows = kept(given.output, sizes, given.warm) if given.add else []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for shape in given.shapes:
            kept_in = (given.logs or folder).resolve() / shape
            logs = {size: written(shape, size, kept_in / str(size) / "log.jsonl") for size in (SMALL, *sizes)}
            for name in given.commands:
                if name in MANY_TRACES_ONLY and shape != "traces":
                    continue
                bounds = (given.once, given.limit, given.gigabytes)
                rows = [row for row in rows if (row["shape"], row["command"]) != (shape, name)]
                rows.append({"shape": shape, **grown(name, shape, logs, folder, given.warm, *bounds)})
                print(json.dumps(rows[-1]), flush=True)
                write_report(given.output, sizes, given.warm, rows)


def grown(
    name: str,
    shape: str,
    logs: dict[int, Path],
    folder: Path,
    warm: int,
    once: float = 20.0,
    limit: int = 600,
    gigabytes: int = 15,
) -> dict[str, Any]:
    """What a command takes on logs of a hundred events and of larger sizes, and the exponents between these."""
    command, sizes = COMMANDS[name], [size for size in logs if size != SMALL]
    found = {
        size: in_a_process_of_its_own(command, shape, log, folder, warm, once, limit, gigabytes)
        for size, log in logs.items()
    }
    start = (0.0, 0.0) if warm else found[SMALL][:2]
    user = {size: max(found[size][0] - start[0], 0.0) for size in sizes}
    seconds = {size: max(sum(found[size][:2]) - sum(start), 0.0) for size in sizes}
    memory = {size: max(found[size][2] - found[SMALL][2], 0.0) for size in sizes}
    exponents = {
        what: [_exponent(values[a], values[b], b / a, least) for a, b in itertools.pairwise(sizes)]
        for what, values, least in (("time", seconds, 0.05), ("user", user, 0.05), ("memory", memory, 5.0))
    }
    over = any(e is not None and e > BOUND for what in ("user", "memory") for e in exponents[what])
    return {"command": name, "seconds": seconds, "user": user, "megabytes": memory, "exponents": exponents,
            "exit codes": [found[size][3] for size in sizes], "within the bound": not over,
            "load": os.getloadavg()}  # fmt: skip


def written(shape: str, size: int, log: Path) -> Path:
    """A log of a shape and a size, unless it is there."""
    if not log.exists():
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.with_suffix(".part").open("w") as file:
            file.writelines(json.dumps(trace) + "\n" for trace in SHAPES[shape](size))
        log.with_suffix(".part").rename(log)
    return log


def kept(output: Path, sizes: list[int], warm: int) -> list[dict[str, Any]]:
    """The rows of an earlier run of the same sizes and warmth, which one file may hold with new ones."""
    if not output.exists():
        return []
    found = json.loads(output.read_text())
    if (found["sizes"], found.get("warm", 0)) != (sizes, warm):
        raise SystemExit(f"{output}: sizes {found['sizes']}, warm {found.get('warm', 0)}; given are {sizes}, {warm}")
    rows: list[dict[str, Any]] = found["rows"]
    return rows


def write_report(output: Path, sizes: list[int], warm: int, rows: list[dict[str, Any]]) -> None:
    """Write what was measured so far, so that a run that is ended keeps it."""
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    report = {"sizes": sizes, "bound": BOUND, "warm": warm, **machine, "rows": rows}
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps(report, indent=1) + "\n")


def _exponent(small: float, large: float, factor: float, least: float) -> float | None:
    """The power of the size by which a number grew; None where the smaller one is too small to tell."""
    return None if small < least or large <= 0 else round(math.log(large / small) / math.log(factor), 2)


if __name__ == "__main__":
    main()
