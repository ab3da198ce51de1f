"""Where to spend runs: more of them where outcomes spread more (Neyman 1934)."""

from __future__ import annotations

import numpy as np

from graphs.errors import CreditError

__all__ = ["allocate", "predicted_stderr"]


def allocate(spread: np.ndarray, budget: int, *, done: np.ndarray | None = None, least: int = 1) -> np.ndarray:
    """How many further runs each mean gets, so that the sum of squared standard errors Σ σᵢ² / nᵢ is least: int64 [J].

    Every mean first gets `least` runs. Then each run goes to the mean whose variance it lowers most, σ² / (n (n + 1)),
    which is optimal run by run, since σ² / n is convex in n.

    Args:
      spread: float [J], standard deviation σ of the outcomes of each mean; 0 where they never differ.
      budget: how many runs can be made.
      done: int [J], runs made already. Default: none.
      least: smallest number of runs of a mean, those made already included.

    Returns:
      int64 [J], which sums to `budget` unless every spread is 0; then only the `least` runs are given.

    Raises:
      CreditError: a spread that is negative or not finite, or a budget below what `least` asks for.

    Examples:
      >>> import numpy as np
      >>> allocate(np.array([0.5, 0.25, 0.0]), 10).tolist()
      [6, 3, 1]
    """
    sigma = np.asarray(spread, np.float64)
    if not (np.isfinite(sigma).all() and (sigma >= 0).all()):
        raise CreditError("spread has entries that are negative or not finite; expected standard deviations")
    n = np.zeros(len(sigma), np.int64) if done is None else np.asarray(done, np.int64).copy()
    start = n.copy()
    n = np.maximum(n, least)
    left = budget - int((n - start).sum())
    if left < 0:
        raise CreditError(f"budget is {budget}; expected at least {budget - left}: {least} for each of {len(n)} means")
    if left and (sigma > 0).any():
        n = _fill(sigma, n, left)
    further: np.ndarray = n - start
    return further


def _fill(sigma: np.ndarray, n: np.ndarray, left: int) -> np.ndarray:
    """Give `left` runs, by the gains of the next run of each mean, in bulk and then one by one."""
    low, high = 0.0, float(sigma.max()) ** 2
    for _ in range(200):  # runs with a gain above `level` are all given
        level = (low + high) / 2
        total = int((_until(sigma, n, level) - n).sum())
        low, high = (level, high) if total > left else (low, level)
    n, given = _until(sigma, n, high), n
    for _ in range(left - int((n - given).sum())):
        gain = sigma**2 / (n * (n + 1.0))
        n[int(np.argmax(gain))] += 1
    return n


def _until(sigma: np.ndarray, n: np.ndarray, level: float) -> np.ndarray:
    """The least count from `n` on whose next gain σ² / (m (m + 1)) does not exceed the level."""
    count = np.ceil((np.sqrt(1 + 4 * sigma**2 / max(level, 1e-300)) - 1) / 2)
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
