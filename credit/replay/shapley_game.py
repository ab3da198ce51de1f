"""A Shapley game in files: the coalitions to evaluate, the values that came back, and the shares that follow.

A plan is a file of JSON lines. Its first line states how the plan was made, so that it can be rebuilt; each further
line is a coalition to evaluate:

    {"plan": "shapley", "version": 1, "units": ["planner", "coder"], "budget": 40, "noise": 0.5, "seed": 0, ...}
    {"row": 0, "team": ["coder"]}

Evaluations are JSON lines `{"row": 0, "value": 1.0}`, in any order; lines may be added later.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credit.replay.json_lines import field, read_lines, write_lines
from estimators.shapley import Choice, Plan, Shares, make_plan, solve
from estimators.shapley.structured import ancestors_or_self
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = ["Game", "game_header", "game_of_header", "read_evaluations", "read_game", "shapley_plan", "write_game"]

SINGLE = np.finfo(np.float32)  # in which shares are solved
VERSION = 1  # of the file of a plan; other versions are refused


@dataclasses.dataclass(frozen=True)
class Game:
    """Units, and the coalitions of them to evaluate.

    Attributes:
      units: N names, in the order of the plan's columns.
      plan: the coalitions, bool [C, N].
      choice: which estimator was chosen, and why.
      budget, noise, seed: what the plan was made from.
      parents: the name of the unit that spawned each, or None for a root; () without a spawn forest.
    """

    units: tuple[str, ...]
    plan: Plan
    choice: Choice
    budget: int
    noise: float
    seed: int
    parents: tuple[str | None, ...] = ()

    def team(self, row: int) -> list[str]:
        """The units of a row."""
        return [unit for unit, member in zip(self.units, self.plan.coalitions[row], strict=True) if member]

    def same_rows(self, other: Game) -> bool:
        """Whether another game has the same units and coalitions, row by row."""
        return self.units == other.units and np.array_equal(self.plan.coalitions, other.plan.coalitions)

    def weights(self) -> np.ndarray:
        """∂φ_i / ∂v_c, float64 [C, N]: shares are linear in the values of the rows.

        Where interactions are fitted shares are not linear, and these are the weights of the regression without them.
        """
        above = self._above()

        def shares(values: jax.Array) -> jax.Array:
            result: jax.Array = solve(self.plan, values, above=above, degrees=self.choice.degrees or (0,)).share
            return result

        jacobian = jax.jacfwd(shares)(np.zeros(self.plan.evaluations, np.float32))
        return np.asarray(jacobian, np.float64).T

    def _above(self) -> np.ndarray | None:
        if not self.choice.chains:
            return None
        place = {name: i for i, name in enumerate(self.units)}
        roots = [i if name is None else place[name] for i, name in enumerate(self.parents)]
        above: np.ndarray = ancestors_or_self(np.array(roots, np.int32))
        return above

    def solve(self, values: Sequence[float] | np.ndarray, *, noise: float | np.ndarray = 0.0) -> Shares:
        """Shapley shares from the values of all rows.

            φ_i = Σ_{S without i} |S|! (n − |S| − 1)! / n! (v(S + i) − v(S))

        Args:
          values: float [C], v of each row, in units of reward.
          noise: standard error of each value, one number or float [C]. It enters the standard errors of an
            enumeration; other plans see the noise in their values.

        Returns:
          `Shares`, in the order of `units`, with standard errors; `total` is v(N) − v(∅).

        Raises:
          CreditError: not one value for each row, or one that is not a finite number.
        """
        v = np.asarray(values, np.float64)
        if v.shape != (self.plan.evaluations,):
            raise CreditError(f"values have shape {v.shape}; expected ({self.plan.evaluations},), one for each row")
        if not np.isfinite(v).all():
            row = int(np.flatnonzero(~np.isfinite(v))[0])
            raise CreditError(f"{int((~np.isfinite(v)).sum())} of {len(v)} rows have no value, first row {row}")
        spread, least, most = float(np.ptp(v)), *(float(end) for end in (SINGLE.tiny, SINGLE.max))
        if not (spread == 0 or least <= spread <= most):
            raise CreditError(f"values differ by {spread:.3g}; expected {least:.1g} to {most:.1g}, or no difference")
        # In double precision: single precision holds no small share beside a large one, as of 0.3 beside 1e12.
        with jax.enable_x64(True):
            shares: Shares = solve(
                self.plan,
                v,
                noise=np.asarray(noise, np.float64),
                above=self._above(),
                degrees=self.choice.degrees or (0,),
                interactions=self.choice.interactions,
            )
        # An array of JAX in double precision is cut again outside.
        result: Shares = jax.tree.map(np.asarray, shares)
        return result


@checked_kinds()
def shapley_plan(
    units: Sequence[str],
    budget: int,
    *,
    noise: float = 0.0,
    seed: int = 0,
    parents: Sequence[str | None] = (),
) -> Game:
    """Choose the coalitions of units whose evaluation gives Shapley shares within a budget.

    The rule is `estimators.shapley.choose`: enumeration where 2^N coalitions fit, walks for small exact budgets, else
    regression on pairs of complements. Equal arguments give equal plans.

    Args:
      units: N different names.
      budget: how many evaluations can be made.
      noise: standard deviation between evaluations of one coalition; at most 0.5 for success or failure; 0 if a
        coalition always gives the same value.
      seed: of the coalitions that are drawn.
      parents: for each unit the one that spawned it, None for a root, if nothing works without its ancestors. ()
        otherwise.

    Returns:
      `Game`; `game.team(row)` names the units of each row to evaluate.

    Raises:
      CreditError: names that repeat, a budget below 2N, a parent that is no unit, negative noise.

    Examples:
      >>> import credit
      >>> game = credit.shapley_plan(["planner", "coder"], budget=4)
      >>> [game.team(row) for row in range(4)]
      [[], ['planner'], ['coder'], ['planner', 'coder']]
      >>> shares = game.solve([0.0, 0.5, 0.25, 1.0])
      >>> [round(float(x), 3) for x in shares.share]
      [0.625, 0.375]
    """
    names = tuple(units)
    if len(set(names)) != len(names):
        raise CreditError(f"units are {excerpt(list(names))}; expected different names")
    if not (math.isfinite(noise) and noise >= 0):
        raise CreditError(f"noise is {noise}; expected a number that is not negative")
    if seed < 0:
        raise CreditError(f"seed is {seed}; expected a number that is not negative")
    parent = None
    if parents:
        if len(parents) != len(names):
            raise CreditError(f"{len(parents)} parents for {len(names)} units; expected one for each, None for a root")
        place = {name: i for i, name in enumerate(names)}
        for name in parents:
            if name is not None and name not in place:
                raise CreditError(f"parent is {name!r}; expected one of the units, or None")
        parent = np.array([i if name is None else place[name] for i, name in enumerate(parents)], np.int32)
    try:
        plan, choice = make_plan(jax.random.key(seed), len(names), budget, noise=noise, parent=parent)
    except ValueError as error:
        raise CreditError(str(error)) from error
    return Game(names, plan, choice, budget, float(noise), seed, tuple(parents))


def game_header(game: Game) -> dict[str, Any]:
    """The first line of a plan, from which `game_of_header` makes the game again."""
    return {
        "plan": "shapley",
        "version": VERSION,
        "units": list(game.units),
        "budget": game.budget,
        "noise": game.noise,
        "seed": game.seed,
        "parents": list(game.parents),
        "method": game.choice.method,
        "rows": game.plan.evaluations,
    }


def write_game(game: Game, path: Path) -> None:
    """Write a plan as JSON lines; the file appears whole or not at all.

    Args:
      game: of `shapley_plan`.
      path: of the file.
    """
    rows = ({"row": row, "team": game.team(row)} for row in range(game.plan.evaluations))
    write_lines(path, [game_header(game), *rows])


def read_game(path: Path) -> Game:
    """Read a plan, rebuild it from its first line, and compare every row.

    Args:
      path: of a plan.

    Raises:
      CreditError: no plan of this kind or version, or rows that differ from what the first line gives.
    """
    lines = list(read_lines(path))
    if not lines or lines[0][1].get("plan") != "shapley":
        raise CreditError(f'{path}, line 1: expected a plan, {{"plan": "shapley", ...}}')
    game = game_of_header(path, lines[0][1])
    if len(lines) - 1 != game.plan.evaluations:
        raise CreditError(f"{path}: {len(lines) - 1} rows; expected {game.plan.evaluations}, as line 1 gives")
    for row, (number, line) in enumerate(lines[1:]):
        if line.get("row") != row or line.get("team") != game.team(row):
            raise CreditError(f"{path}, line {number}: expected row {row} with the team {excerpt(game.team(row))}")
    return game


def game_of_header(path: Path, header: Mapping[str, Any]) -> Game:
    """The game of the first line of a plan.

    Args:
      path: of the plan, for messages.
      header: its first line.

    Raises:
      CreditError: another version, or a field that is missing or of a wrong type.
    """
    if header.get("version") != VERSION:
        raise CreditError(f"{path}, line 1: version is {excerpt(header.get('version'))}; expected {VERSION}")
    units = field(path, 1, header, "units", list)
    if not all(isinstance(unit, str) for unit in units):
        raise CreditError(f"{path}, line 1: units are {excerpt(units)}; expected a list of texts")
    return shapley_plan(
        units,
        field(path, 1, header, "budget", int),
        noise=field(path, 1, header, "noise", (int, float)),
        seed=field(path, 1, header, "seed", int),
        parents=field(path, 1, header, "parents", list),
    )


def read_evaluations(game: Game, path: Path) -> np.ndarray:
    """Values of the rows, float64 [C], NaN where a row has none yet.

    Args:
      game: of `read_game`.
      path: of a plan with values.

    Raises:
      CreditError: a row is not in the plan or occurs twice, or a value is no number.
    """
    values = np.full(game.plan.evaluations, np.nan)
    seen: dict[int, int] = {}
    for number, line in read_lines(path, torn=True):
        row = field(path, number, line, "row", int)
        if not 0 <= row < len(values):
            raise CreditError(f"{path}, line {number}: row is {row}; expected 0 to {len(values) - 1}")
        if row in seen:
            raise CreditError(f"{path}, line {number}: row {row} is also on line {seen[row]}; expected each row once")
        values[row], seen[row] = field(path, number, line, "value", (int, float)), number
    return values
