"""The ledger against its parts, fixed budgets and naive stacking, where the truth is known; the stack; and speed.

    python benchmarks/ledger.py [table|stack|variance|heterogeneous|speed] ...     (default: all)

Results go to benchmarks/results/ledger.json, section by section; the module of each section says what it measures.
With `MALLOC_MMAP_THRESHOLD_` set, speed is written as "speed, freed memory kept".
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

from ledger_mixture import heterogeneous  # noqa: E402
from ledger_rules import table  # noqa: E402
from ledger_speed import speed  # noqa: E402
from ledger_stack import stack  # noqa: E402
from ledger_variance import variance  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "ledger.json"
SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "table": table,
    "stack": stack,
    "variance": variance,
    "heterogeneous": heterogeneous,
    "speed": speed,  # last: it turns 64 bits off
}


def main(names: list[str]) -> None:
    """Run the sections named and store each beside the others."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or list(SECTIONS):
        kept = name == "speed" and "MALLOC_MMAP_THRESHOLD_" in os.environ
        results["speed, freed memory kept" if kept else name] = {
            "machine": f"{platform.machine()}, {jax.default_backend()}, Python {platform.python_version()}",
            "load average at the start": os.getloadavg()[0],
            "versions": {library: version(library) for library in ("jax", "numpy")},
            "results": SECTIONS[name](),
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
