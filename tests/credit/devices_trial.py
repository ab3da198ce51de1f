"""The methods that are named on eight devices against one, in a process of its own: XLA counts its devices once.

Prints a line of JSON for each method: its scope, and where the results differ.
"""

from __future__ import annotations

import json
import sys

import jax
import numpy as np

import credit
import credit.devices
from credit.laws.subject import differ, numbers
from credit.laws.trial_batches import SIZES, padded, ragged
from credit.methods.running import keywords_of
from graphs.traces.schema import EVENT_EVIDENCE

REORDERED = ("gae", "puppeteer", "maporl", "magrpo", "marti")
"""Methods whose order of addition depends on where in the batch a trace is."""


def main() -> None:
    assert len(jax.devices()) == 8, jax.devices()
    for name in sys.argv[1:]:
        method = credit.METHODS[name]
        needs = {key: "event" if key in EVENT_EVIDENCE else "trace" for key in method.needs}
        batch = padded(ragged(0, needs), SIZES)  # type: ignore[arg-type]
        arrays = dict(batch.evidence)
        if "event_reward" in keywords_of(method.fn):
            arrays["event_reward"] = batch.event_reward
        one = jax.jit(method.fn)(batch.graph, batch.reward, **arrays)
        many = credit.devices.compute(batch.graph, batch.reward, method.fn, arrays, scope=method.scope)
        alike = differ(
            {key: np.asarray(values) for key, values in numbers(many).items()},
            {key: np.asarray(values) for key, values in numbers(one).items()},
            np.ones(batch.graph.num_events, bool),
            exactly=method.scope in ("trace", "group") and name not in REORDERED,
        )
        print(json.dumps({"method": name, "scope": method.scope, "differs": alike or ""}), flush=True)


if __name__ == "__main__":
    main()
