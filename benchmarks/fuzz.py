"""Coverage-guided fuzzing of all readers: whatever a file holds, reading gives traces and problems, no other error.

    python benchmarks/fuzz.py [--seconds 600] [--logs FOLDER ...]

Needs `atheris`. Seeds are the recordings of the tests and the files under `--logs` (by default the real logs beside the
checkout, where they are), each cut down until it is small. Half of the mutations are of bytes, half of one JSON value,
which is dropped, doubled, put elsewhere or replaced by something awkward. An error that is not the library's own, a
call of more than 20 seconds or more than 4 GiB stops the run with the input that caused it. Executions and coverage
(edges of the readers' bytecode, and features: edges with counts) go to benchmarks/results/fuzz.json.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from reading import make_trace

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).parent / "results" / "fuzz.json"
LARGEST = 40_000  # bytes of a seed
AWKWARD = (
    *(None, True, 0, -1, 2**70, -(2**63), 1e308, 1e-320, "", "0", "NaN", "-1e999", "f" * 32, "9" * 400),
    *(
        "\u202e\x1b[31m<script>",
        "1969-12-31T23:59:60Z",
        [],
        {},
        [[]],
        [None],
        {"": {}},
        {"role": 7},
        {"type": "message"},
    ),
)
"""What a value is replaced by."""


def thin(node: Any, keep: int) -> Any:
    """A document with at most `keep` entries of each list and shorter texts."""
    if isinstance(node, dict):
        return {key: thin(value, keep) for key, value in node.items()}
    if isinstance(node, list):
        return [thin(value, keep) for value in node[:keep]]
    return node[:200] if isinstance(node, str) else node


def seed(content: bytes) -> bytes | None:
    """A file cut down to a size that fuzzing is fast on; None if it is no text and too large."""
    if len(content) <= LARGEST:
        return content
    try:
        text = content.decode()
        lines = text.splitlines()
        documents = [json.loads(text)] if text.lstrip()[:1] in "{[" and not _is_json(lines[0]) else None
        documents = documents or [json.loads(line) for line in lines[:60] if line.strip()]
    except ValueError:
        return None
    for keep in (12, 8, 5, 3, 2, 1):
        out = b"\n".join(json.dumps(thin(d, keep)).encode() for d in documents[: 4 * keep])
        if len(out) <= LARGEST:
            return out
    return None


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def places(node: Any, out: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        out.append((node, key))
        places(node[key], out)
    return out


def mutate_json(data: bytes, rng: random.Random) -> bytes | None:
    """One JSON document, or one line, with one value changed; None where there is no JSON."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    for line in (at, 0):
        try:
            document = json.loads(lines[line])
        except (ValueError, RecursionError):
            continue
        found = places(document, [])
        if not found:
            return None
        for _ in range(rng.choice((1, 1, 2, 4))):
            (node, key), (other, name) = rng.choice(found), rng.choice(found)
            with_what = rng.random()
            try:
                if with_what < 0.5:
                    node[key] = rng.choice(AWKWARD)
                elif with_what < 0.7:
                    node[key] = other[name]
                elif with_what < 0.85 and isinstance(node, list):
                    node.insert(key, other[name])
                else:
                    del node[key]
            except (KeyError, IndexError):
                continue  # an earlier change took the place away
        try:
            lines[line] = json.dumps(document).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):  # a value was put inside itself
            return None
        return b"\n".join(lines)
    return None


def extension(data: bytes) -> str:
    """A name that content of this kind would have."""
    for magic, name in (
        (b"PK", ".eval"),
        (b"PAR1", ".parquet"),
        (b"\x1f\x8b", ".jsonl.gz"),
        (b"\x28\xb5\x2f\xfd", ".jsonl.zst"),
    ):
        if data.startswith(magic):
            return name
    return ".jsonl" if data.lstrip()[:1] in (b"{", b"[") else ".csv"


def child(seconds: int, corpus: Path, artifacts: Path) -> None:
    """Fuzz until the time is over; libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["graphs"]):
        from graphs import logs as reading
        from graphs.errors import CreditError
        from graphs.logs import FORMATS, reader_of

        for name in FORMATS:
            reader_of(name)

    folder = Path(tempfile.mkdtemp(dir=artifacts))

    def one(data: bytes) -> None:
        path = folder / f"x{extension(data)}"
        path.write_bytes(data)
        try:
            with contextlib.suppress(CreditError):
                reading.read(path)
        finally:
            path.unlink()

    def mutate(data: bytes, largest: int, number: int) -> bytes:
        rng = random.Random(number)
        changed = mutate_json(data, rng) if rng.random() < 0.5 else None
        return changed[:largest] if changed is not None else atheris.Mutate(data, largest)

    options = [
        f"-max_total_time={seconds}", f"-max_len={2 * LARGEST}", "-timeout=20", "-rss_limit_mb=4096",
        "-print_final_stats=1", f"-artifact_prefix={artifacts}/", str(corpus),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], one, custom_mutator=mutate)
    atheris.Fuzz()


def main() -> None:
    """Collect the seeds, fuzz in a process of its own, and save what it printed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--logs", type=Path, nargs="*", default=[ROOT.parent / "shared" / "data"])
    parser.add_argument("--child", type=Path, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.seconds, *given.child)
        return

    with tempfile.TemporaryDirectory() as name:
        corpus, artifacts = Path(name) / "corpus", Path(name) / "found"
        corpus.mkdir()
        artifacts.mkdir()
        count = 0
        for folder in (ROOT / "tests" / "recordings", *given.logs):
            for file in sorted(folder.rglob("*")):
                small = (
                    seed(file.read_bytes()) if file.is_file() and file.suffix not in (".py", ".md", ".pyc") else None
                )
                if small:
                    count += 1
                    (corpus / f"seed-{count:04}").write_bytes(small)
        rng = np.random.default_rng(0)
        for events in (1, 10, 40):
            lines = [json.dumps(make_trace(i, events, rng)) for i in range(3)]
            (corpus / f"seed-native-{events}").write_text("\n".join(lines))
            count += 1
        print(f"{count} seeds", flush=True)
        command = [sys.executable, __file__, "--seconds", str(given.seconds), "--child", str(corpus), str(artifacts)]
        covered, stats = (0, 0), {}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace", env=environment) as process:
            assert process.stderr is not None
            for line in process.stderr:
                print(line, end="", flush=True)
                if seen := re.search(r"cov: (\d+) ft: (\d+)", line):
                    covered = int(seen[1]), int(seen[2])
                if stat := re.match(r"stat::(\w+):\s+(\d+)", line):
                    stats[stat[1]] = int(stat[2])
        left = sorted(file for file in artifacts.iterdir() if file.is_file())
        for file in left:
            print(f"{file.name}: {file.read_bytes()[:2000]!r}")
        result = {
            "seconds": given.seconds,
            "seeds": count,
            "executions": stats.get("number_of_executed_units", 0),
            "edges covered": covered[0],
            "features covered": covered[1],
            "inputs with an error not the library's own, too slow or too large": len(left),
            "peak rss, MB": stats.get("peak_rss_mb", 0),
            "python": platform.python_version(),
            "atheris": importlib.metadata.version("atheris"),
        }
        print(json.dumps(result, indent=1))
        if left or process.returncode:
            sys.exit(1)
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
