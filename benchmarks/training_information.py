"""How many uniformly drawn traces a regression needs to choose well, beside the events that training takes.

    python benchmarks/training_information.py    (4 minutes; writes training_information.json)

From n traces of uniform choices, rewards are regressed on the choices (additive, a prior of 3 traces); the policy takes
the choice of the larger weight everywhere. The number is the least n of `SIZES` at which the median policy, of `SEEDS`,
has 90 % of the way from uniform choices to the optimum. Nothing is explored on the way, and the policy is used for
nothing until it is made: this says what the traces hold, not how a policy should learn.
"""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from credit.bench.training.learning_tasks import learning_task
from credit.bench.training.rollouts import draw_rollout, exact_return

RESULTS = Path(__file__).parent / "results"
TASKS = ("additive", "bernoulli", "bottleneck", "pivotal", "free_rider", "padding", "checklist", "router", "planner")
SIZES = tuple(16 * 2**k for k in range(8))
SEEDS = 100
PRIOR = 3.0


def chosen(name: str, traces: int, seed: int) -> float:
    """The share of the way that the policy of this many traces has."""
    task = learning_task(name)
    uniform = jnp.zeros((task.kinds, task.decisions, task.choices))
    rollout = draw_rollout(task, uniform, traces // 4, 4, jax.random.key(seed))
    kinds, choice, reward = (np.asarray(x) for x in (rollout.kind, rollout.choice, rollout.reward))
    features = np.eye(task.choices)[choice].reshape(traces, -1)
    table = np.zeros((task.kinds, task.decisions, task.choices))
    for kind in range(task.kinds):
        x, y = features[kinds == kind], reward[kinds == kind]
        if len(y):
            x, y = x - 1 / task.choices, y - y.mean()
            fitted = np.linalg.solve(x.T @ x + PRIOR / task.choices * np.eye(x.shape[1]), x.T @ y)
            table[kind] = fitted.reshape(task.decisions, task.choices)
    best = 1e3 * (table == table.max(axis=2, keepdims=True))
    start, reached = (float(exact_return(task, jnp.asarray(logits, jnp.float32))) for logits in (uniform, best))
    return (reached - start) / (task.optimum - start)


def main() -> None:
    """Print and write a row for each task."""
    rows = {}
    for name in TASKS:
        shares = {n: float(np.median([chosen(name, n, seed) for seed in range(SEEDS)])) for n in SIZES}
        enough = [n for n in SIZES if shares[n] >= 0.9]
        events = enough[0] * learning_task(name).decisions if enough else None
        rows[name] = {"traces": enough[0] if enough else None, "events": events, "shares": shares}
        print(f"{name:12} {rows[name]['traces']} traces, {events} events", flush=True)
    about = {"seeds": SEEDS, "prior": PRIOR, "sizes": SIZES, "tasks": rows}
    (RESULTS / "training_information.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
