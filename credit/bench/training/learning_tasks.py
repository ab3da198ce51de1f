"""Tasks for teams that learn, small enough that the expected return of any policy is an exact number.

A task has D decisions of C choices each, taken in order by agents of a team. Each trace has a kind, drawn before the
first decision, which every decision sees. The expected reward depends on the kind and on the choices at R decisive
decisions; a table holds it for all of them, so values and gradients follow by summing over the table. Decisions that
were not reached (after a stop) are not taken.

Legend: n traces, K kinds, D decisions, C choices, R decisive decisions.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence

import jax
import numpy as np

from credit.bench.own_worlds import HEAVY, own_world
from graphs.errors import CreditError

__all__ = ["TASKS", "LearningTask", "learning_task"]


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["reward", "taken", "noise", "price"],
    meta_fields=["name", "agents", "choices", "decisive", "heavy"],
)
@dataclasses.dataclass(frozen=True, eq=False)
class LearningTask:
    """A task: a JAX tree whose tables are leaves, so that tasks of one shape share a compiled function.

    Attributes:
      name: of the task.
      agents: D numbers, the agent that takes each decision.
      choices: C.
      decisive: the decisions that the expected reward depends on, in order.
      reward: float64 [K, C, ..., C] with R axes of choices, the expected reward.
      taken: bool [C, ..., C, D], decisions that are reached; None if all of them always are.
      noise: standard deviation of the reward around its expectation; None for rewards of 0 or 1.
      heavy: whether noise has heavy tails, of Student's t with three degrees of freedom; else it is normal.
      price: float64 [D], what choice 1 costs at each decision that is reached; the reward has it taken off. None where
        no choice has a price.

    Example: two agents earn 1 where both choose 1, in a task of one kind. In `mine.py`, `credit bench train --tasks
    mine:both` takes it.
      Examples:
        >>> both = LearningTask("both", (0, 1), 2, (0, 1), np.array([[[0.0, 0.0], [0.0, 1.0]]]))
        >>> both.decisions
        2
    """

    name: str
    agents: tuple[int, ...]
    choices: int
    decisive: tuple[int, ...]
    reward: np.ndarray
    taken: np.ndarray | None = None
    noise: float | None = None
    price: np.ndarray | None = None
    heavy: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.reward, np.ndarray):  # JAX rebuilds the task around tracers
            return
        shape = (self.choices,) * len(self.decisive)
        if self.reward.shape[1:] != shape or (self.taken is not None and self.taken.shape != (*shape, self.decisions)):
            taken = None if self.taken is None else self.taken.shape
            raise CreditError(
                f"LearningTask {self.name!r}: reward has shape {self.reward.shape} and taken {taken}; "
                f"expected (K, {', '.join(map(str, shape))}) and {(*shape, self.decisions)} or None"
            )
        if self.noise is None and self.heavy:
            raise CreditError(f"LearningTask {self.name!r} is heavy; expected noise: a success or a failure has none")
        if self.noise is None and (self.reward.min() < 0 or self.reward.max() > 1):
            raise CreditError(f"LearningTask {self.name!r}: expected rewards leave [0, 1], and noise is None")

    @property
    def kinds(self) -> int:
        """K."""
        return len(self.reward)

    @property
    def decisions(self) -> int:
        """D."""
        return len(self.agents)

    @property
    def optimum(self) -> float:
        """The expected return of the best policy, which sees the kind: mean over kinds of the largest reward.

        Examples:
          >>> learning_task("pivotal").optimum
          0.9
        """
        return float(self.reward.reshape(self.kinds, -1).max(axis=1).mean())


def learning_task(name: str) -> LearningTask:
    """The task of this name: of `TASKS`, "heavy", or your own `LearningTask` by "module:name".

    "heavy" is `additive` with heavy tails of as much variance, as in the other benchmarks; no default has it.

    Examples:
      >>> learning_task("router").agents
      (0, 1, 2, 3)

    Args:
      name: as above.

    Raises:
      CreditError: there is no such task, or it is something else.
    """
    if name in TASKS:
        return TASKS[name]()
    if name == HEAVY:
        return dataclasses.replace(_additive(), name=HEAVY, heavy=True)
    task = own_world(name, LearningTask, f"a LearningTask of {__name__}", (*TASKS, HEAVY), "task")
    return dataclasses.replace(task, name=name)


def _scored(name: str, score: Callable[[tuple[int, ...]], float], noise: float | None = None) -> LearningTask:
    """Twelve decisions of two choices, all of them decisive, of four agents in turn."""
    decisions = 12
    shape = (2,) * decisions
    reward = np.empty((1, *shape))
    for choice in itertools.product((0, 1), repeat=decisions):
        reward[(0, *choice)] = score(choice)
    taken = np.ones((*shape, decisions), bool)  # a table, as tasks with stops have, so that they share a compilation
    team = tuple(d % 4 for d in range(decisions))
    return LearningTask(name, team, 2, tuple(range(decisions)), reward, taken, noise)


def _additive() -> LearningTask:
    """Every good choice adds to the reward, some more than others; much luck."""
    return _scored("additive", lambda c: sum((d + 1) * x for d, x in enumerate(c)) / 78, noise=0.3)


def _bernoulli() -> LearningTask:
    """Success with a logistic probability of the number of good choices."""
    return _scored("bernoulli", lambda c: 1 / (1 + math.exp(8 - sum(c))))


def _bottleneck() -> LearningTask:
    """Three of twelve choices, of three agents, must all be good."""
    return _scored("bottleneck", lambda c: 0.95 if c[0] and c[5] and c[10] else 0.05)


def _pivotal() -> LearningTask:
    """One of twelve choices decides."""
    return _scored("pivotal", lambda c: 0.9 if c[5] else 0.1)


def _free_rider() -> LearningTask:
    """One of four agents, with a quarter of the decisions, changes nothing."""
    return _scored("free_rider", lambda c: 0.1 + 0.8 * sum(x for d, x in enumerate(c) if d % 4 != 3) / 9)


def _padding() -> LearningTask:
    """Two useful choices, and ten that only cost: work that is not needed."""
    return _scored("padding", lambda c: 0.25 + 0.35 * (c[0] + c[1]) - 0.025 * sum(c[2:]))


def _checklist() -> LearningTask:
    """Twelve choices, each checked by a verifier without noise; the reward is the share of good ones."""
    return _scored("checklist", lambda c: sum(c) / 12, noise=0.0)


def _router() -> LearningTask:
    """The first agent chooses whom of four workers to ask; each kind of task needs another; then the worker acts."""
    reward = np.full((4, 4, 4), 0.1)
    for kind in range(4):
        reward[kind, kind, :] = 0.6
        reward[kind, kind, 1] = 0.95
    return LearningTask("router", (0, 1, 2, 3), 4, (0, 1), reward)


def _planner() -> LearningTask:
    """The first choice, the plan, matters only together with the last one, 50 decisions later."""
    reward = np.array([[[0.1, 0.3], [0.2, 0.9]]])
    return LearningTask("planner", tuple(d % 5 for d in range(52)), 2, (0, 51), reward)


def _stopping() -> LearningTask:
    """Go on (1) or stop (0), asked of four agents in turn: each further step helps less and costs the same."""
    return _stops("stopping", [[0.1 + 0.9 * (1 - 0.55**k) for k in range(13)]], [0.04] * 12)


def _stops(name: str, worth: Sequence[Sequence[float]], price: Sequence[float]) -> LearningTask:
    """Success by the number of steps before the first stop, less the prices of these steps, for each kind."""
    steps = len(price)
    shape = (2,) * steps
    reward = np.empty((len(worth), *shape))
    taken = np.zeros((*shape, steps), bool)
    for choice in itertools.product((0, 1), repeat=steps):
        went = next((i for i, x in enumerate(choice) if x == 0), steps)
        for table, of_kind in zip(reward, worth, strict=True):
            table[choice] = of_kind[went] - sum(price[:went])
        taken[choice] = np.arange(steps) <= went
    agents = tuple(d % 4 for d in range(steps))
    return LearningTask(name, agents, 2, tuple(range(steps)), reward, taken, price=np.array(price))


def _shrinks() -> LearningTask:
    """The value of one more step shrinks; the best team stops after four of eight."""
    return _stops("stopping_shrinks", [[0.1 + 0.85 * (1 - 0.6**k) for k in range(9)]], [0.05] * 8)


def _burst() -> LearningTask:
    """Three steps are worth nothing, the fourth nearly everything."""
    return _stops("stopping_burst", [[0.25] * 4 + [0.95] * 5], [0.03] * 8)


def _noisy() -> LearningTask:
    """The value of one more step shrinks; the verifier is wrong in three of ten cases."""
    quality = [0.1 + 0.85 * (1 - 0.6**k) for k in range(9)]
    return _stops("stopping_noisy", [[0.3 + 0.4 * q for q in quality]], [0.02] * 8)


def _two() -> LearningTask:
    """A lead goes on to another round or ends the run; in each round a second orchestrator adds a step or returns."""
    rounds, steps = (0.3, 0.2, 0.1, 0.03), (0.15, 0.1, 0.02, 0.0)
    shape = (2,) * 8
    reward, taken = np.empty((1, *shape)), np.zeros((*shape, 8), bool)
    for choice in itertools.product((0, 1), repeat=8):
        went = next((i for i, x in enumerate(choice[::2]) if x == 0), 4)
        inner = zip(steps, choice[1::2], strict=True)
        added = [(gain - 0.04) * x for gain, x in itertools.islice(inner, went)]
        reward[(0, *choice)] = 0.1 + sum(rounds[:went]) - 0.05 * went + sum(added)
        taken[choice] = [d // 2 < went or d == 2 * went for d in range(8)]
    agents, price = tuple(d % 2 for d in range(8)), np.array([0.05, 0.04] * 4)
    return LearningTask("stopping_two", agents, 2, tuple(range(8)), reward, taken, price=price)


def _prices() -> LearningTask:
    """The four agents have different prices; the fourth costs more than it gives, but cheap ones come after it."""
    gains = (0.12,) * 4 + (0.06,) * 4
    worth = [0.1 + sum(gains[:k]) for k in range(9)]
    return _stops("stopping_prices", [worth], [0.01, 0.02, 0.05, 0.14] * 2)


def _kinds() -> LearningTask:
    """Easy tasks need one step, hard ones five; the team sees which it is."""
    easy, hard = [0.2] + [0.9] * 8, [0.1 + 0.16 * min(k, 5) for k in range(9)]
    return _stops("stopping_kinds", [easy, hard], [0.03] * 8)


def _spoils() -> LearningTask:
    """The third step makes the answer best; each further one spoils it."""
    return _stops("stopping_spoils", [[0.25, 0.55, 0.8, 0.95, 0.85, 0.7, 0.55, 0.4, 0.3]], [0.02] * 8)


TASKS: dict[str, Callable[[], LearningTask]] = {
    "additive": _additive,
    "bernoulli": _bernoulli,
    "bottleneck": _bottleneck,
    "pivotal": _pivotal,
    "free_rider": _free_rider,
    "padding": _padding,
    "checklist": _checklist,
    "router": _router,
    "planner": _planner,
    "stopping": _stopping,
    "stopping_shrinks": _shrinks,
    "stopping_burst": _burst,
    "stopping_noisy": _noisy,
    "stopping_two": _two,
    "stopping_prices": _prices,
    "stopping_kinds": _kinds,
    "stopping_spoils": _spoils,
}
"""Seven kinds of outcome, three tasks that need teamwork, and seven more stops; each is made anew at each call."""
