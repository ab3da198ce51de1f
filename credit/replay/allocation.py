"""Where to spend a budget: more runs where outcomes spread more and runs cost less (Neyman 1934)."""

from __future__ import annotations

import re

import numpy as np

from graphs.errors import CreditError

__all__ = ["allocate", "parse_budget", "predicted_stderr"]


def allocate(
    spread: np.ndarray, budget: int, *, done: np.ndarray | None = None, least: int = 1, cost: np.ndarray | None = None
) -> np.ndarray:
    """How many further runs each mean gets, so that the sum of squared standard errors Σ σᵢ² / nᵢ is least: int64 [J].

    Every mean first gets `least` runs. Then each run goes to the mean whose variance it lowers most for its cost,
    σ² / (n (n + 1) c). With equal costs that is optimal, since σ² / n is convex in n. With unequal costs the
    rest of the budget buys the runs that it can still pay.

    Args:
      spread: float [J], standard deviation σ of the outcomes of each mean; 0 where they never differ.
      budget: how many runs can be made, or how much can be paid in the unit of `cost`.
      done: int [J], runs made already. Default: none.
      least: smallest number of runs of a mean, those made already included.
      cost: float [J], what a run of each mean costs. Default: 1.

    Returns:
      int64 [J], whose cost is at most `budget`. If every spread is 0, only the `least` runs are given.

    Raises:
      CreditError: a spread that is negative or not finite, a cost that is not positive, or a budget below what `least`
        asks for.

    Examples:
      >>> import numpy as np
      >>> allocate(np.array([0.5, 0.25, 0.0]), 10).tolist()
      [6, 3, 1]
      >>> allocate(np.array([0.5, 0.5]), 100, cost=np.array([1.0, 16.0])).tolist()
      [20, 5]
    """
    sigma = np.asarray(spread, np.float64)
    if not (np.isfinite(sigma).all() and (sigma >= 0).all()):
        raise CreditError("spread has entries that are negative or not finite; expected standard deviations")
    price = np.ones(len(sigma)) if cost is None else np.asarray(cost, np.float64)
    if not (np.isfinite(price).all() and (price > 0).all()):
        raise CreditError("cost has entries that are not positive numbers; expected the cost of a run for each mean")
    start = np.zeros(len(sigma), np.int64) if done is None else np.asarray(done, np.int64).copy()
    n = np.maximum(start, least)
    needed = float(((n - start) * price).sum())
    if needed > budget:
        what = f"{least} for each of {len(n)} means"
        raise CreditError(f"budget is {budget}; expected at least {int(np.ceil(needed))}: {what}")
    if (sigma > 0).any():
        n = _fill(sigma, n, budget - needed, price)
    further: np.ndarray = n - start
    return further


def _fill(sigma: np.ndarray, n: np.ndarray, left: float, price: np.ndarray) -> np.ndarray:
    """Spend `left` on further runs, by the gains of the next run of each mean: in bulk, then one by one."""
    worth = sigma**2 / price
    low, high = 0.0, float(worth.max())
    for _ in range(200):  # runs with a gain above `level` are all given
        level = (low + high) / 2
        total = float(((_until(worth, n, level) - n) * price).sum())
        low, high = (level, high) if total > left else (low, level)
    runs = _until(worth, n, high)
    left -= float(((runs - n) * price).sum())
    while True:
        gain = worth / (runs * (runs + 1.0))
        order = np.argsort(-gain, kind="stable")
        order = order[(gain[order] > 0) & (price[order] <= left)]
        paid = order[np.cumsum(price[order]) <= left]
        if not len(paid):
            return runs
        runs[paid] += 1
        left -= float(price[paid].sum())


def _until(worth: np.ndarray, n: np.ndarray, level: float) -> np.ndarray:
    """The least count from `n` on whose next gain, worth / (m (m + 1)), does not exceed the level."""
    count = np.ceil((np.sqrt(1 + 4 * worth / max(level, 1e-300)) - 1) / 2)
    counts: np.ndarray = np.maximum(n, np.minimum(count, 1e15).astype(np.int64))
    return counts


def predicted_stderr(spread: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """σ / √n of each mean after its runs, float64 [J]; infinite without runs.

    Examples:
      >>> import numpy as np
      >>> predicted_stderr(np.array([0.5, 0.5]), np.array([4, 0])).tolist()
      [0.25, inf]
    """
    runs = np.asarray(runs, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(runs > 0, np.asarray(spread, np.float64) / np.sqrt(runs), np.inf)


def parse_budget(text: str) -> tuple[int, str]:
    """A budget and its unit, "runs" or "tokens", from a text such as "2000", "2000 runs" or "500000tokens".

    Raises:
      CreditError: no positive integer, or another unit.

    Examples:
      >>> parse_budget("2_000"), parse_budget("500000 tokens")
      ((2000, 'runs'), (500000, 'tokens'))
    """
    match = re.fullmatch(r"\s*([0-9][0-9_]*)\s*(runs?|tokens?|)\s*", text)
    number = int(match[1].replace("_", "")) if match else 0
    if match is None or number < 1:
        raise CreditError(f"budget is {text!r}; expected a number of runs, or of tokens as in '500000tokens'")
    return number, "tokens" if match[2].startswith("token") else "runs"
