"""Carry out a plan: bounded concurrency, retries, and a result file that survives being killed and is resumed.

Each run is written as one line when it ends, before anything depends on it:

    {"job": 0, "run": 3, "reward": 1.0, "alternative": "b", "tokens": 512}
    {"job": 0, "run": 4, "error": "TimeoutError: ...", "prefix": false}

A run is known by its job and number. A number that has an outcome is never made again, and one that occurs twice is
refused when the file is read. A run that failed has no reward; it is not scored 0.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
import json
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from credit.replay.json_lines import append_line, field, read_lines
from credit.replay.replay_plan import ReplayPlan
from credit.replay.replayer import Continuation, PrefixError, Replayer
from credit.replay.run_results import Results
from graphs.errors import CreditError

__all__ = ["Limits", "execute", "read_results"]


@dataclasses.dataclass(frozen=True)
class Limits:
    """How runs are made.

    Attributes:
      concurrency: runs at a time.
      attempts: tries of a run before it counts as failed.
      pause: seconds before the second try; doubled for each further one.
    """

    concurrency: int = 4
    attempts: int = 3
    pause: float = 0.5

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.attempts < 1 or not (self.pause >= 0 and math.isfinite(self.pause)):
            raise CreditError(f"{self}; expected concurrency and attempts of 1 or more, and a pause of 0 or more")


def read_results(plan: ReplayPlan, path: Path) -> Results:
    """Read results; a torn last line, from a process that was killed, is left out.

    Raises:
      CreditError: a line that is no result, a run that the plan does not have, or one with two outcomes.
    """
    rewards: list[dict[int, float]] = [{} for _ in plan.jobs]
    failed: list[set[int]] = [set() for _ in plan.jobs]
    strayed, tokens = set(), 0
    if not path.exists():
        return Results(tuple(rewards), tuple(map(frozenset, failed)), frozenset(), 0)
    for number, line in read_lines(path, torn=True):
        job, run = field(path, number, line, "job", int), field(path, number, line, "run", int)
        if not (0 <= job < len(plan.jobs) and 0 <= run < plan.jobs[job].runs):
            raise CreditError(f"{path}, line {number}: run {run} of job {job} is not in the plan")
        if "error" in line:
            failed[job].add(run)
            if field(path, number, line, "prefix", bool):
                strayed.add(job)
            continue
        if run in rewards[job]:
            raise CreditError(f"{path}, line {number}: run {run} of job {job} occurs twice; expected each run once")
        rewards[job][run] = float(field(path, number, line, "reward", (int, float)))
        tokens += field(path, number, line, "tokens", int)
    open_ = tuple(frozenset(numbers - by_run.keys()) for numbers, by_run in zip(failed, rewards, strict=True))
    return Results(tuple(rewards), open_, frozenset(strayed), tokens)


def seed_of(plan: ReplayPlan, job: int, run: int) -> int:
    """The seed of a run: a hash of the plan's seed, the job and the run, from 0 to 2⁶³ − 1."""
    text = json.dumps([plan.seed, plan.purpose, job, run]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def execute(
    plan: ReplayPlan,
    replayer: Replayer,
    path: Path,
    *,
    limits: Limits = Limits(),
    advance: Callable[[int], None] | None = None,
) -> Results:
    """Make the runs of a plan that have no outcome yet, and append them to the result file.

    Runs that failed before are tried again. A job whose prefix did not reproduce is given up. Interrupting is safe at
    any
    moment: a run that was not written is made again, one that was written is not.

    Args:
      plan: what to run.
      replayer: how.
      path: the result file; created, or resumed where it exists.
      limits: concurrency and retries.
      advance: called after each run with the number of runs that ended.

    Returns:
      What the file holds in the end.

    Raises:
      CreditError: the file holds something else, see `read_results`.
    """
    before = read_results(plan, path)
    strayed = set(before.strayed)
    lock, stop = threading.Lock(), threading.Event()

    def one(job: int, run: int) -> None:
        if stop.is_set() or job in strayed:
            return
        line = _attempt(plan, replayer, job, run, limits, stop)
        if line is None:
            return
        with lock:
            if line.get("prefix"):
                strayed.add(job)
            append_line(path, line)
            if advance is not None:
                advance(1)

    open_runs = [
        (job, run)
        for job, planned in enumerate(plan.jobs)
        if job not in strayed
        for run in range(planned.runs)
        if run not in before.rewards[job]
    ]
    with concurrent.futures.ThreadPoolExecutor(limits.concurrency) as pool:
        futures = [pool.submit(one, job, run) for job, run in open_runs]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return read_results(plan, path)


def _attempt(
    plan: ReplayPlan, replayer: Replayer, job: int, run: int, limits: Limits, stop: threading.Event
) -> dict[str, Any] | None:
    """The line of a run after as many tries as allowed; None where the whole execution ends."""
    planned, error = plan.jobs[job], ""
    for attempt in range(limits.attempts):
        if attempt:
            time.sleep(limits.pause * 2 ** (attempt - 1))
        if stop.is_set():
            return None
        try:
            (outcome,) = replayer.run(
                planned.prefix, replace=planned.replace, forbid=planned.forbid, n=1, seed=seed_of(plan, job, run)
            )
        except PrefixError as strayed:
            return {"job": job, "run": run, "error": str(strayed)[:1000], "prefix": True}
        except Exception as failure:  # noqa: BLE001 - a driver may raise anything; it is tried again, then logged
            error = f"{type(failure).__name__}: {failure}"[:1000]
            continue
        if isinstance(outcome, Continuation) and math.isfinite(outcome.reward):
            return {
                "job": job,
                "run": run,
                "reward": float(outcome.reward),
                "alternative": str(outcome.alternative),
                "tokens": int(outcome.tokens),
            }
        error = f"the driver returned {outcome!r}; expected a Continuation with a finite reward"[:1000]
    return {"job": job, "run": run, "error": error, "prefix": False}
