"""What a run of `credit assign --engine ray` costs against the number of workers, from constants that are measured."""

from __future__ import annotations

from typing import Any

WORKERS = (1, 2, 4)
FURTHER = (8, 16, 32, 64, 128, 256, 512, 1024)  # workers of the model alone


def constants(stages: dict[str, Any], two: dict[str, Any], size: int, traces: int) -> dict[str, float]:
    """Processor seconds and bytes of each stage, for the unit that it grows with.

    Args:
      stages: what `STAGES` printed, of a sample of the logs.
      two: what `RAY` printed with two workers, of all of them.
      size: bytes of all logs.
      traces: of all logs.
    """
    seconds, lengths = stages["seconds"], stages["bytes"]
    return {
        "look, seconds a GB": seconds["look"] / lengths["logs"] * 1e9,
        "read, seconds a GB": seconds["read"] / lengths["logs"] * 1e9,
        "assign, seconds a million events": seconds["assign"] / stages["events"] * 1e6,
        "write, seconds a million events": seconds["write"] / stages["events"] * 1e6,
        "compile, seconds a worker": seconds["compile"],
        "take over the index, seconds a part": seconds["take over"] / stages["parts"],
        "driver in the first pass, seconds a thousand traces": two["driver"]["first pass"] / traces * 1e3,
        "driver in the second pass, seconds a part": two["driver"]["parts"] / two["parts"],
        "events a byte of log": stages["events"] / lengths["logs"],
        "index, bytes an event": lengths["index"] / stages["events"],
        "chunks sent to each node, bytes an event": lengths["chunks"] / stages["events"],
        "output, bytes an event": lengths["output"] / stages["events"],
    }


def predict(found: dict[str, float], size: int, traces: int, parts: int, workers: int, cores: int) -> dict[str, float]:
    """Seconds of a run by the model.

        first pass   driver(traces) + look(bytes) / k,  k = min(workers, cores)
        second pass  max(the parts of one worker + compile, (all parts + workers compile + driver) / k, driver(parts))

    The driver is serial: it lists files, merges the index, and submits parts. It takes a core from the workers where
    there is none beside theirs.
    """
    gigabytes, events = size / 1e9, found["events a byte of log"] * size
    at_once, compiling = min(workers, cores), found["compile, seconds a worker"]
    of_part = (
        found["read, seconds a GB"] * gigabytes
        + (found["assign, seconds a million events"] + found["write, seconds a million events"]) * events / 1e6
    ) / parts + found["take over the index, seconds a part"]
    before = found["driver in the first pass, seconds a thousand traces"] * traces / 1e3
    beside = found["driver in the second pass, seconds a part"] * parts
    first = before + found["look, seconds a GB"] * gigabytes / at_once
    all_work = parts * of_part + workers * compiling + (beside if workers >= cores else 0.0)
    second = max(-(-parts // workers) * of_part + compiling, all_work / at_once, beside)
    return {"first pass": first, "seconds": first + second, "driver": before + beside}


def modelled(found: dict[str, float], size: int, traces: int, parts: int) -> list[dict[str, float]]:
    """The model on a cluster with a core for each worker and one for the driver: seconds, speed-up, rate of reading."""
    one = predict(found, size, traces, parts, 1, 2)["seconds"]
    rows = []
    for workers in (*WORKERS, *FURTHER):
        seconds = predict(found, size, traces, parts, workers, workers + 1)["seconds"]
        rate = 2 * size / seconds / 1e9
        rows.append({"workers": workers, "seconds": seconds, "speed-up": one / seconds, "GB read a second": rate})
    return rows


def where_it_stops(found: dict[str, float], size: int, traces: int, parts: int) -> dict[str, float]:
    """The most workers of which each still does half of what one does alone, and the seconds that none shorten."""
    one = predict(found, size, traces, parts, 1, 2)["seconds"]
    most = 1
    while one / predict(found, size, traces, parts, most + 1, most + 2)["seconds"] >= (most + 1) / 2:
        most += 1
    last = predict(found, size, traces, parts, parts, parts + 1)
    return {"workers at half efficiency": most, "least seconds": last["seconds"], "of these the driver": last["driver"]}
