"""How long the page of `credit report` takes to open in Chromium, beside the same page about a small log.

    python benchmarks/page_opening.py [--times 10] [--output benchmarks/results/page_opening.json]

It needs an installed Chromium and the extra `browser`. A page is open when its first chart is drawn and the explorer
shows a trace; the clock starts before the window is made. Pages are opened in turn, so that each meets the same load,
and the least time is the one that the load disturbed least. The load of the machine is stored beside the times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import credit
from credit.page import Findings, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parent.parent
METHODS = ("rloo", "turn_baseline", "gae")
SHAPES = {"100 traces of 500 events": (100, 500), "5 traces of 10 events": (5, 10)}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
LONGEST = 60.0  # seconds until a page that does not open is an error


def records(traces: int, events: int) -> list[dict[str, Any]]:
    """Logs of a lead and six workers, with texts, tools and values; groups of five traces."""
    draw = np.random.default_rng(0)
    tools = ("search", "read", "write", "run")
    agents = [{"id": "lead", "role": "lead"}]
    agents += [{"id": f"w{i}", "role": "worker", "parent": "lead"} for i in range(6)]
    made = []
    for number in range(traces):
        steps = [
            {"id": f"e{i}", "agent": f"w{draw.integers(6)}" if i % 7 else "lead", "text": "some words " * 8,
             "value": round(float(draw.random()), 3),
             **({"type": "tool_call", "tool": tools[i % 4]} if i % 2 else {"type": "message"})}
            for i in range(events)
        ]  # fmt: skip
        made.append({"trace_id": f"t{number}", "task_id": f"q{number // 5}", "agents": agents, "events": steps,
                     "rewards": {"team": float(draw.random() < 0.4)}})  # fmt: skip
    return made


def write(folder: Path, name: str, traces: int, events: int) -> Path:
    """The page about such logs."""
    log, out = folder / f"{name}.jsonl", folder / f"{name}.html"
    log.write_text("\n".join(json.dumps(one) for one in records(traces, events)))
    read = credit.read(log)
    write_page(Findings.of(read, {method: credit.run(read, method) for method in METHODS}), out)
    return out


def seconds_to_open(browser: Browser, url: str) -> float:
    """From a new window to a drawn chart and a shown trace.

    Raises:
      TimeoutError: it does not open.
    """
    start = time.perf_counter()
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(1000 * LONGEST)
    try:
        page = context.new_page()
        page.goto(url)
        while not page.evaluate("document.querySelector('#explorer .about')?.textContent"):
            if time.perf_counter() - start > LONGEST:
                raise TimeoutError(f"{url} did not open in {LONGEST:.0f} s")
            page.wait_for_timeout(10)
        page.locator("section canvas").first.wait_for()
        return time.perf_counter() - start
    finally:
        context.close()


def measure(browser: Browser, pages: dict[str, Path], times: int) -> dict[str, list[float]]:
    """Seconds of each opening of each page, in turn."""
    taken: dict[str, list[float]] = {name: [] for name in pages}
    for _ in range(times):
        for name, path in pages.items():
            taken[name].append(seconds_to_open(browser, path.as_uri()))
    return taken


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "page_opening.json")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        raise SystemExit(f"no Chromium is on the path; expected one of {', '.join(names)}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        pages = {name: write(Path(folder), str(i), *shape) for i, (name, shape) in enumerate(SHAPES.items())}
        before = os.getloadavg()[0]
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        taken = measure(browser, pages, given.times)
        found = {
            "bytes": {name: path.stat().st_size for name, path in pages.items()},
            "seconds": {name: [round(one, 3) for one in many] for name, many in taken.items()},
            "load of the machine before and after": [before, os.getloadavg()[0]],
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "chromium": browser.version,
        }
        browser.close()
    given.output.write_text(json.dumps(found, indent=1) + "\n")
    for name, many in taken.items():
        print(f"{name}: {min(many):.2f} s at least, {np.median(many):.2f} s in the middle of {len(many)}")


if __name__ == "__main__":
    main()
