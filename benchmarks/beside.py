"""What people wait for, in this checkout and in an earlier one, turn about: the figures before and after a change.

    python benchmarks/beside.py FOLDER [commands|memory|logs|step|methods|shapley] ... [--rounds 5] [--megabytes 5]

FOLDER is a checkout of an earlier commit (`git worktree add FOLDER COMMIT`). Each part runs in processes of their own,
one of each checkout, which take turns in every round, so that other work on the machine slows both; figures are medians
and the least. The logs are the same files for both. `memory` and `logs` of `--megabytes 50` need some minutes.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphs.atomic import atomic_write

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"before": "", "after": str(ROOT)}
COMMANDS = ("validate", "assign", "summary", "report")
FORMATS = ("verifiers", "verl", "spans", "otlp, three lines a trace", "langfuse, three lines a trace")
PEERS = ("typed", "plain")
METHODS = (
    "rloo",
    "grpo",
    "dr_mas",
    "gae",
    "turn_baseline",
    "c3",
    "grpo_pp",
    "magrpo",
    "gigpo",
    "stop_credit",
    "shared",
)


def logs_of(files: list[str]) -> Iterator[Callable[[], dict[str, float]]]:
    """Seconds of reading each file, and of decoding it by msgspec: native logs into structs, others plainly."""
    import msgspec

    from graphs.formats.native.wire import DECODER
    from graphs.logs import read

    def timed(call: Callable[[], object]) -> float:
        gc.collect()
        begin = time.process_time()
        kept = call()
        spent = time.process_time() - begin
        del kept
        return spent

    def decode(path: Path, decoder: msgspec.json.Decoder[Any]) -> object:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        whole = [file.read_bytes() for file in files]
        records = ([content] if content[:2] in (b"{\n", b"[\n") else content.splitlines() for content in whole)
        return [decoder.decode(record) for of_file in records for record in of_file]

    def once() -> dict[str, float]:
        spent = {}
        for file in files:
            path = Path(file)
            decoder = DECODER if path.is_dir() else msgspec.json.Decoder()
            read_in = timed(lambda: read(path))  # noqa: B023
            spent[f"{path.stem}: seconds"] = read_in
            decoded = timed(lambda: decode(path, decoder))  # noqa: B023
            spent[f"{path.stem}: over {PEERS[not path.is_dir()]} decoding"] = read_in / decoded
        return spent

    yield once


def step_of(_: list[str]) -> Iterator[Callable[[], dict[str, float]]]:
    """Milliseconds of a step of 8,192 rows, and over NumPy's, by the form of its columns."""
    import waits

    waits.SIZES = (8192,)

    def once() -> dict[str, float]:
        of_forms = waits.steps(20)["8192"]
        return {
            f"{form}: {name}": value
            for form, found in of_forms.items()
            for name, value in (
                ("ms", found["step"]["median"]),
                ("over NumPy", found["step"]["median"] / found["NumPy"]["median"]),
            )
        }

    yield once


def methods_of(names: list[str]) -> Iterator[Callable[[], dict[str, float]]]:
    """Processor nanoseconds an event of methods that both checkouts have, at two sizes, and the exponent between."""
    import jax
    import methods

    import credit

    calls: dict[str, Callable[[], object]] = {}
    sizes = {}
    for events, shape in ((65_536, (64, 1024, 64)), (1_048_576, (512, 2048, 300))):
        graph = methods.graph_of(*shape)
        rng = np.random.default_rng(0)
        evidence = methods.evidence_of(graph, rng)
        reward = rng.uniform(size=shape[0]).astype(np.float32)
        earned = np.where(rng.random(events) < 0.05, 0.1, 0).astype(np.float32)
        given = jax.device_put((graph, reward, earned))
        for name in names:
            method = credit.METHODS.get(name)
            if method is None or not set(method.needs) <= set(evidence):
                continue
            extra = jax.device_put({key: evidence[key] for key in method.needs})
            fn = jax.jit(lambda g, r, e, extra, method=method: method.fn(g, r, event_reward=e, **extra).advantage)
            calls[f"{name} at {events}"] = lambda fn=fn, given=given, extra=extra: jax.block_until_ready(
                fn(*given, extra)
            )
            sizes[f"{name} at {events}"] = events
    for call in calls.values():
        call()  # compiles

    def once() -> dict[str, float]:
        spent = {}
        for name, call in calls.items():
            call()  # caches are as this method leaves them
            repeats = 1_048_576 // sizes[name]
            begin = time.process_time()
            for _ in range(repeats):
                call()
            spent[f"{name}: ns an event"] = 1e9 * (time.process_time() - begin) / repeats / sizes[name]
        return spent

    yield once


def shapley_of(_: list[str]) -> Iterator[Callable[[], dict[str, float]]]:
    """Milliseconds of solving 800 evaluations of 20 units, and the relative squared error, by family of games."""
    import jax

    from estimators.shapley import make_plan, solve
    from graphs.worlds.games import FAMILIES

    def once() -> dict[str, float]:
        found = {}
        for family in FAMILIES:
            game = FAMILIES[family](20, np.random.default_rng(0))
            plan, choice = make_plan(jax.random.key(0), 20, 800)
            values = game.value(np.asarray(plan.coalitions)[:, :20]) - game.value(np.zeros((1, 20), bool))
            more = {"interactions": choice.interactions} if hasattr(choice, "interactions") else {}
            run = lambda plan=plan, values=values, choice=choice, more=more: jax.block_until_ready(  # noqa: E731
                solve(plan, values, degrees=choice.degrees, **more)
            )
            run()
            begin = time.process_time()
            for _ in range(5):
                shares = run()
            found[f"{family}: ms"] = 1e3 * (time.process_time() - begin) / 5
            off = np.asarray(shares.share)[:20] - game.shapley
            found[f"{family}: squared error, part of the values'"] = float((off**2).sum() / (game.shapley**2).sum())
        return found

    yield once


WORKERS: dict[str, Callable[[list[str]], Iterator[Callable[[], dict[str, float]]]]] = {
    "logs": logs_of, "step": step_of, "methods": methods_of, "shapley": shapley_of,
}  # fmt: skip


def worker(part: str, arguments: list[str]) -> None:
    """A line of JSON for each line of the input."""
    once = next(WORKERS[part](arguments))
    once()  # imports and compilations
    for _ in sys.stdin:
        print(json.dumps(once()), flush=True)


def in_turns(part: str, arguments: list[str], rounds: int) -> dict[str, list[dict[str, float]]]:
    """The figures of a part in each round, of each checkout."""
    running = {
        when: subprocess.Popen(
            [sys.executable, __file__, folder, f"worker={part}", *arguments],
            env=os.environ | {"PYTHONPATH": folder}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=folder,
        )
        for when, folder in FOLDERS.items()
    }  # fmt: skip
    found: dict[str, list[dict[str, float]]] = {when: [] for when in running}
    for turn in range(rounds):
        for when in sorted(running, reverse=bool(turn % 2)):
            process = running[when]
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            found[when].append(json.loads(process.stdout.readline()))
    for process in running.values():
        process.communicate()
    return found


def processes(folder: Path, verbs: dict[str, Path], rounds: int) -> dict[str, list[dict[str, float]]]:
    """Seconds of the clock and peak megabytes of commands; their caches are empty in the first round."""
    import waits

    found: dict[str, list[dict[str, float]]] = {when: [] for when in FOLDERS}
    for turn in range(rounds + 1):
        for when in sorted(FOLDERS, reverse=bool(turn % 2)):
            spent = {}
            for verb, logs in verbs.items():
                _, *options = waits.COMMANDS[verb]
                options = [option.replace("OUT", str(folder)) for option in options]
                command = [sys.executable, "-m", "credit", verb, str(logs), *options]
                cache = folder / f"cache {when} {verb}"
                sample = waits.run(command, os.sched_getaffinity(0), cache, Path(FOLDERS[when]))
                spent |= {f"{verb}: seconds": sample["wall"], f"{verb}: MB": sample["megabytes"]}
            found[when].append(spent)
    return found


def write_format(folder: Path, name: str, form: str, size: int) -> Path:
    """Logs of another project, of about so many bytes."""
    import formats

    suffix, text = formats.FORMS[form]
    make, _ = formats.CASES[name]
    of_few = len(text(make(formats.FEW, np.random.default_rng(0))))
    path = folder / f"{name.partition(',')[0]} {form}.{suffix}"
    path.write_text(text(make(max(formats.FEW, size * formats.FEW // of_few), np.random.default_rng(0))))
    return path


def report(part: str, found: dict[str, list[dict[str, float]]], output: Path) -> None:
    """Print medians before and after, with the least in brackets, and keep every sample."""
    load = round(os.getloadavg()[0], 1)
    print(f"\n{part}, {len(found['after'])} rounds, load {load}: median (least) before and after")
    figures: dict[str, dict[str, list[float]]] = {}
    for name in found["after"][0]:
        figures[name] = {when: [turn[name] for turn in found[when] if name in turn] for when in FOLDERS}
        cells = [f"{statistics.median(v):9.3g} ({min(v):.3g})" if v else "-" for v in figures[name].values()]
        print(f"  {name:60} {cells[0]:>20} {cells[1]:>20}", flush=True)
    stored = json.loads(output.read_text()) if output.exists() else {}
    commits = {
        when: subprocess.run(
            ["git", "describe", "--always"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()
        for when, folder in FOLDERS.items()
    }
    stored[part] = {"commits": commits, "load": load, "figures": figures}
    with atomic_write(output) as file:
        rows = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in stored.items()]
        file.write(("{\n" + ",\n".join(rows) + "\n}\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: str(Path(text).resolve()))
    parser.add_argument("parts", nargs="*", default=["commands", "memory", *WORKERS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=5)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "beside.json")
    given = parser.parse_args()
    if given.parts[0].startswith("worker="):
        worker(given.parts[0].removeprefix("worker="), given.parts[1:])
        return
    FOLDERS["before"] = given.folder
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import reading
    import waits

    with tempfile.TemporaryDirectory() as name:
        folder, size = Path(name), int(given.megabytes * 1e6)
        for part in given.parts:
            if part == "commands":
                small = waits.write_logs(folder / "small", 80, 30, 0)
                large = waits.write_logs(folder / "large", 100, 500, 0)
                found = processes(folder, {v: large if v == "report" else small for v in COMMANDS}, given.rounds)
                report("commands, cold", {when: turns[:1] for when, turns in found.items()}, given.output)
                report("commands, warm", {when: turns[1:] for when, turns in found.items()}, given.output)
            elif part == "memory":
                logs = reading.write_form(folder / "memory", "our own", size, 4000, 0)
                least = reading.write_form(folder / "least", "our own", 1, 8, 0)
                above, found = (
                    processes(folder, {v: path for v in ("validate", "assign")}, 1) for path in (least, logs)
                )
                for when, turns in found.items():
                    for turn, few in zip(turns, above[when], strict=True):
                        for name in [name for name in turn if name.endswith("MB")]:
                            turn[f"{name}, above those of a few events, over the input's"] = (
                                1e6 * (turn[name] - few[name]) / size
                            )
                report(f"memory at {given.megabytes:g} MB", found, given.output)
            elif part == "logs":
                files = [str(reading.write_form(folder / form, form, size, 4000, 0)) for form in reading.FORMS]
                files += [
                    str(write_format(folder, name, form, size))
                    for name in given.formats
                    for form in ("canonical", "messy")
                ]
                report(f"logs of {given.megabytes:g} MB", in_turns(part, files, given.rounds), given.output)
            else:
                arguments = list(METHODS) if part == "methods" else []
                report(part, in_turns(part, arguments, given.rounds), given.output)


if __name__ == "__main__":
    main()
