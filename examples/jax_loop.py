"""A plain JAX and optax loop: a planner and a worker learn a task together, with credit from this library.

pip install ".[critic]" && python examples/jax_loop.py
"""

import jax
import jax.numpy as jnp
import optax

from credit.integrations import RowAdvantages

TASKS, TOOLS, RUNS = 4, 5, 8  # each task is run eight times a step; these runs are a group
TASK = jnp.repeat(jnp.arange(TASKS), RUNS)


@jax.jit
def act(team, key):
    """The planner picks a tool for a task, the worker an answer for the task and the tool."""
    plan, work = jax.random.split(key)
    tool = jax.random.categorical(plan, team["planner"][TASK])
    return tool, jax.random.categorical(work, team["worker"][TASK, tool])


def log_prob(team, tool, answer):
    planner = jax.nn.log_softmax(team["planner"])[TASK, tool]
    return jnp.stack([planner, jax.nn.log_softmax(team["worker"])[TASK, tool, answer]], axis=1)


def train(steps=150, credit="rloo", seed=0, log=lambda step, reward, metrics: None):
    """Train a team; returns the mean reward of the last step."""
    team = {"planner": jnp.zeros((TASKS, TOOLS)), "worker": jnp.zeros((TASKS, TOOLS, TOOLS))}
    optimiser = optax.adam(0.2)
    state = optimiser.init(team)
    advantages = RowAdvantages(credit, rows=2 * len(TASK))
    advantages.warmup()

    @jax.jit
    def update(team, state, tool, answer, advantage):
        loss = lambda team: -(advantage * log_prob(team, tool, answer).ravel()).sum() / len(TASK)  # noqa: E731
        changes, state = optimiser.update(jax.grad(loss)(team), state)
        return optax.apply_updates(team, changes), state

    for step in range(steps):
        tool, answer = act(team, jax.random.fold_in(jax.random.key(seed), step))
        reward = ((tool == TASK) & (answer == TASK)).astype(jnp.float32)  # the team's outcome, for both
        result = advantages(  # two rows a run: the planner's and the worker's
            group=jnp.repeat(TASK, 2),
            trace=jnp.repeat(jnp.arange(len(TASK)), 2),
            agent=["planner", "worker"] * len(TASK),
            reward=jnp.repeat(reward, 2),
        )
        team, state = update(team, state, tool, answer, result.advantages)
        log(step, float(reward.mean()), result.metrics)
    return float(reward.mean())


if __name__ == "__main__":
    train(log=lambda step, reward, metrics: print(step, reward, metrics["credit/groups_that_teach"]))
