"""Hostile logs made from real ones: reading them ends in traces and named problems, soon, in bounded memory.

    python benchmarks/hostile.py [--inputs 200] [--seed 0] [--logs FOLDER ...] [--tables]

Seeds are the recordings and samples of the tests, which have a log of every format, the files under `--logs` (by
default the real logs beside the checkout, where they are), and tables as CSV, JSON lines, Parquet and Arrow
(`hostile_tables.py`; `--tables`: these alone). Each is changed by its structure: keys and columns are dropped,
renamed, doubled or moved; values change type; ids and references are exchanged; lists, texts and depths grow; lines
are cut. Each input is read in a process of its own.

The run fails (exit code 1) where reading raises something else than the library's own errors, takes more than 5 seconds
of processor time, takes more memory than 20 times the input and 300 MB, or gives a trace a reward that is no number or
verdict in the file, nor the sum of channels that are, nor of the listed scores of a row (SkyRL's are of tokens). In a
table the reward must stand in a row of that trace, by a slow reading that shares no code with the library.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import os
import pickle
import random
import re
import select
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile_rewards import invented_reward, stated_rewards
from hostile_tables import mutate_csv, mutate_table
from hostile_tables import seeds as table_seeds

ROOT = Path(__file__).resolve().parent.parent
MOST_PLACES = 20_000
SUFFIXES, LARGEST = (".json", ".jsonl", ".eval", ".csv", ".traj", ".parquet"), 1 << 22
HANGS = 120  # seconds of the wall clock
SECONDS, TIMES, ROOM = 5.0, 20, 300 << 20
AWKWARD = (
    None, True, 0, -1, 2**70, -(2**63), 1e308, 1e-320, "", "0", "NaN", "-1e999", "f" * 32, "9" * 400, [], {}, [[]],
    [None], {"": {}}, {"role": 7}, "\u202e\x1b[31m<script>", "1969-12-31T23:59:60Z", '",1.0\nforged,q,1.0\n',
)  # fmt: skip


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    found, waiting = [], [node]
    while waiting:
        here = waiting.pop()
        for key in list(here) if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ():
            found.append((here, key))
            waiting.append(here[key])
    return found


def holds(value: Any, container: Any) -> bool:
    """Whether a value is a container or has it inside; put there, it would have no end."""
    return value is container or any(holder[key] is container for holder, key in places(value))


def change(document: Any, rng: random.Random) -> str:
    """One structural change, in place; says which."""
    found = places(document)
    if not found or len(found) > MOST_PLACES:  # growth upon growth would be exponential
        return "none"
    (node, key), (other, name) = rng.choice(found), rng.choice(found)
    kind = rng.choice(("drop", "rename", "type", "move", "exchange", "grow", "text", "deep", "copy", "number"))
    value = node[key]
    if kind == "drop":
        del node[key]
    elif kind == "rename" and isinstance(node, dict):
        node[f"{key}x"] = node.pop(key)
    elif kind == "type":
        node[key] = rng.choice(AWKWARD)
    elif kind == "move":
        node[key] = None if holds(other[name], node) else other[name]
    elif kind == "exchange" and not (holds(other[name], node) or holds(value, other)):
        node[key], other[name] = other[name], value
    elif kind == "grow" and isinstance(value, list) and value:
        node[key] = value * min(rng.choice((2, 50, 2000 // len(value) + 1)), MOST_PLACES // (1 + len(places(value))))
    elif kind == "text":
        node[key] = (value[:50] if isinstance(value, str) and value else "x") * rng.choice((100, 20_000))
    elif kind == "deep":
        for _ in range(rng.choice((50, 300))):
            value = [value]
        node[key] = value
    elif kind == "copy" and isinstance(node, list):
        node.insert(key, value)
    elif kind == "number" and isinstance(value, int | float):
        node[key] = rng.choice((-value, value * 10**30, str(value), value + 0.25))
    return kind


def mutate_text(data: bytes, rng: random.Random) -> bytes:
    """A JSON document, or one of JSON lines, with a few changes; text that is no JSON is cut or doubled."""
    lines = data.split(b"\n")
    whole = _parsed(data)
    at = rng.randrange(len(lines))
    document = whole if whole is not None else _parsed(lines[at])
    if document is None or rng.random() < 0.05:
        cut = rng.randrange(len(data) + 1)  # a recording may be an empty file
        return rng.choice((data[:cut], data + data[:cut], data[cut:]))
    for _ in range(rng.choice((1, 1, 2, 5))):
        change(document, rng)
    try:
        text = json.dumps(document).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):  # a value was put inside itself
        return data[: len(data) // 2]
    if whole is not None:
        return text
    lines[at] = text
    if rng.random() < 0.2:
        lines = lines[:at] + lines[at : at + 1] * rng.choice((2, 300)) + lines[at + 1 :]
    return b"\n".join(lines)


def _parsed(text: bytes) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def mutate(data: bytes, rng: random.Random) -> bytes:
    """A changed file; of an archive, one member is changed, or bytes where it is packed in a way of its own."""
    if data.startswith(b"PAR1"):
        return mutate_table(data, rng)
    if data.startswith(b"trace,"):
        return mutate_csv(data, rng)
    if data.startswith(b"ARROW1"):
        return data[: rng.randrange(1, len(data) + 1)]
    if not data.startswith(b"PK"):
        return mutate_text(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in archive.infolist()):
            damaged = bytearray(data)
            for _ in range(rng.choice((1, 5, 50))):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            return bytes(damaged[: rng.choice((len(damaged), rng.randrange(1, len(damaged))))])
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as changed:
        names = archive.namelist()
        chosen = rng.choice(names)
        for name in names:
            member = archive.read(name)
            changed.writestr(name, mutate_text(member, rng) if name == chosen else member)
    packed = out.getvalue()
    return packed if rng.random() < 0.8 else packed[: rng.randrange(1, len(packed))]


def seeds(folders: list[Path]) -> list[list[Path]]:
    """The files to start from, by folder, so that a format with many files gets no more than its share.

    Recordings of the tests are of many formats: each is a folder of its own.
    """
    found: dict[Path, list[Path]] = {}
    for file in (file for folder in folders if folder.is_dir() for file in sorted(folder.rglob("*"))):
        if file.suffix in SUFFIXES and file.is_file() and file.stat().st_size < LARGEST:
            alone = file.parent.name == "recordings"
            found.setdefault(file if alone else file.parent, []).append(file)
    return list(found.values())


def sample_seeds(folder: Path) -> list[list[Path]]:
    """The small log of each format that the readers' tests hold, written to a folder."""
    spec = importlib.util.spec_from_file_location("samples", ROOT / "tests" / "graphs" / "reading" / "samples.py")
    assert spec is not None and spec.loader is not None
    samples = importlib.util.module_from_spec(spec)
    sys.modules["samples"] = samples
    spec.loader.exec_module(samples)
    return [[sample.write(folder / str(number))] for number, sample in enumerate(samples.SAMPLES.values())]


def peak() -> int:
    """The most memory that this process has held since `clear_refs`."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert found is not None, "/proc/self/status has no VmHWM"
    return int(found[1]) * 1024


def attempt(path: Path) -> dict[str, Any]:
    """Read a file in a process of its own: what went wrong, if anything, and what it took."""
    parent, child = os.pipe()
    pid = os.fork()
    if pid == 0:
        outcome: dict[str, Any] = {"fault": "killed"}
        try:
            outcome = _read(path)
        except BaseException:  # noqa: BLE001 (whatever it is, it is the finding)
            outcome = {"fault": traceback.format_exc()[-1500:]}
        with os.fdopen(child, "wb") as stream:
            pickle.dump(outcome, stream)
        os._exit(0)
    os.close(child)
    with os.fdopen(parent, "rb") as stream:
        answered = select.select([stream], [], [], HANGS)[0]
        if not answered:
            os.kill(pid, signal.SIGKILL)
        content = stream.read()
    os.waitpid(pid, 0)
    return pickle.loads(content) if content else {"fault": "killed, or no answer in time"}


def _read(path: Path) -> dict[str, Any]:
    from graphs.errors import CreditError
    from graphs.logs import read

    data = path.read_bytes()
    Path("/proc/self/clear_refs").write_text("5")
    before, start = peak(), time.process_time()
    try:
        traces = read(path)
        kind = "read"
    except CreditError:
        traces, kind = None, "refused"
    seconds, memory = time.process_time() - start, peak() - before
    fault = ""
    if seconds > SECONDS:
        fault = f"took {seconds:.1f} s"
    elif memory > TIMES * len(data) + ROOM:
        fault = f"took {memory / 1e6:.0f} MB for {len(data)} bytes"
    elif traces is not None:
        stated = stated_rewards(data)
        if stated is None:
            kind = f"{kind}, rewards not checked"
        elif (invented := invented_reward(traces, data, stated)) is not None:
            fault = f"gave the reward {invented}, which the file does not state"
    return {"kind": kind, "seconds": seconds, "memory": memory, "bytes": len(data), "fault": fault}


def run(
    inputs: int, seed: int, folders: list[Path], tables: bool = False
) -> Iterator[tuple[Path, bytes, dict[str, Any]]]:
    """Each input with its outcome."""
    from graphs.logs import FORMATS, read, reader_of

    for name in FORMATS:
        reader_of(name)
    assert callable(read)
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        found = [] if tables else seeds(folders) + sample_seeds(Path(temporary) / "samples")
        found += [[file] for file in table_seeds(Path(temporary) / "tables")]
        import graphs.padding
        import graphs.traces.assembling  # noqa: F401 (loaded once, not by every child)

        for number in range(inputs):
            source = rng.choice(found[number % len(found)])
            data = mutate(source.read_bytes(), rng)
            path = Path(temporary) / f"x{source.suffix}"
            path.write_bytes(data)
            yield source, data, attempt(path)


def options(about: str) -> argparse.ArgumentParser:
    """The options of every program that tries hostile inputs."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--logs", type=Path, nargs="*", default=[ROOT.parent / "shared" / "data"])
    parser.add_argument("--keep", type=Path, help="Folder for the inputs that fail.")
    return parser


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--tables", action="store_true", help="Change tables alone.")
    given = parser.parse_args()
    kinds: dict[str, int] = {}
    faults, slowest, largest, slowest_of = 0, 0.0, 0.0, ""
    for number, (source, data, outcome) in enumerate(
        run(given.inputs, given.seed, [ROOT / "tests", *given.logs], given.tables)
    ):
        kinds[outcome.get("kind", "fault")] = kinds.get(outcome.get("kind", "fault"), 0) + 1
        largest = max(largest, outcome.get("memory", 0))
        if outcome.get("seconds", 0) > slowest:
            slowest, slowest_of = outcome["seconds"], f"input {number}, from {source.name} ({len(data)} bytes)"
        if outcome["fault"]:
            faults += 1
            print(f"input {number}, from {source.name} ({len(data)} bytes): {outcome['fault']}", file=sys.stderr)
            if given.keep:
                given.keep.mkdir(exist_ok=True)
                (given.keep / f"{number}{source.suffix}").write_bytes(data)
    found = {"faults": faults, "slowest, s": round(slowest, 2), "slowest": slowest_of}
    print(json.dumps({"inputs": given.inputs, "seed": given.seed, **kinds, **found,
                      "most memory, MB": round(largest / 1e6)}))  # fmt: skip
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
