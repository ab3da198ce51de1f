"""One of several processes that compute tables together.

    python processes_trial.py PORT PROCESSES NUMBER LOGS OUTPUT METHOD...

Each has some devices of its own, as a host has, and the processes reach each other over the loopback.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import jax
import numpy as np

port, processes, number, logs, output, *methods = sys.argv[1:]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"localhost:{port}", int(processes), int(number))

import credit  # noqa: E402
import credit.devices  # noqa: E402
from graphs.errors import CreditError  # noqa: E402

assert len(jax.devices()) == int(processes) * len(jax.local_devices()) > len(jax.local_devices())
traces = credit.read(logs)
for method in methods:
    result = credit.devices.run(traces, method, devices=jax.devices())
    credit.write_table(credit.table(traces, result), Path(output) / f"{method}-{number}.parquet")

other = dataclasses.replace(traces, reward=traces.reward + np.float32(number))
try:
    credit.devices.run(other, methods[0], devices=jax.devices())
except CreditError as error:
    assert "read different batches" in str(error), error
else:
    raise AssertionError("different batches were taken together")
