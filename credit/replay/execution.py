"""Carry out a plan: bounded concurrency, limits, retries, and a result file that survives being killed and is resumed.

Each run is written as one line when it ends, before anything depends on it:

    {"job": 0, "run": 3, "reward": 1.0, "alternative": "b", "tokens": 512}
    {"job": 0, "run": 4, "error": "TimeoutError: ...", "prefix": false}

A run is known by its job and number. A number that has an outcome is never made again, and one that occurs twice is
refused when the file is read. A run that failed has no reward; it is not scored 0.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import math
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from credit.replay.json_lines import append_lines, field, read_lines
from credit.replay.replay_plan import Job, ReplayPlan
from credit.replay.replayer import Continuation, PrefixError, Replayer, SeededReplayer
from credit.replay.run_results import Results
from graphs.atomic import locked
from graphs.errors import CreditError
from graphs.text import counted

__all__ = ["AT_ONCE", "HangingError", "Limits", "execute", "read_results"]

AT_ONCE = 512
"""Runs of one job that a `SeededReplayer` makes in one call, unless it has a number `at_once` of its own."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits and retries of runs.

    Attributes:
      concurrency: runs at a time.
      attempts: tries of a run before it counts as failed.
      pause: seconds before the second try; doubled for each further one.
      seconds: wall-clock time of a try. A run that takes longer has failed and is not tried again by this execution. It
        cannot be ended from outside: its thread goes on in the background until the process ends.
      tokens: no run starts once this many tokens have been spent, those of earlier executions included.
      failures: runs in a row that may fail before the execution stops.
      hanging: runs over `seconds` that may still go on in the background before the execution stops.
    """

    concurrency: int = 4
    attempts: int = 3
    pause: float = 0.5
    seconds: float = 3600.0
    tokens: float = math.inf
    failures: int = 20
    hanging: int = 16

    def __post_init__(self) -> None:
        counts = min(self.concurrency, self.attempts, self.failures, self.hanging)
        if counts < 1 or not (self.pause >= 0 and math.isfinite(self.pause)):
            raise CreditError(f"{self}; expected counts of 1 or more, and a pause of 0 or more")
        if not (self.seconds > 0 and self.tokens > 0):
            raise CreditError(f"{self}; expected seconds and tokens above 0")


def read_results(plan: ReplayPlan, path: Path) -> Results:
    """Read results; a torn last line, from a process that was killed, is left out.

    Raises:
      CreditError: a line that is no result, a run that the plan does not have, or one with two outcomes.
    """
    rewards: list[dict[int, float]] = [{} for _ in plan.jobs]
    alternatives: list[dict[int, str]] = [{} for _ in plan.jobs]
    failed: list[set[int]] = [set() for _ in plan.jobs]
    strayed: dict[int, str] = {}
    tokens = [0 for _ in plan.jobs]
    for number, line in read_lines(path, torn=True) if path.exists() else ():
        job, run = field(path, number, line, "job", int), field(path, number, line, "run", int)
        if not (0 <= job < len(plan.jobs) and 0 <= run < plan.jobs[job].runs):
            raise CreditError(f"{path}, line {number}: run {run} of job {job} is not in the plan")
        if "error" in line:
            failed[job].add(run)
            if field(path, number, line, "prefix", bool):
                strayed.setdefault(job, field(path, number, line, "error", str))
            continue
        if run in rewards[job]:
            raise CreditError(f"{path}, line {number}: run {run} of job {job} occurs twice; expected each run once")
        rewards[job][run] = float(field(path, number, line, "reward", (int, float)))
        alternatives[job][run] = field(path, number, line, "alternative", str)
        tokens[job] += field(path, number, line, "tokens", int)
    open_ = tuple(frozenset(numbers - by_run.keys()) for numbers, by_run in zip(failed, rewards, strict=True))
    return Results(tuple(rewards), open_, strayed, tuple(tokens), tuple(alternatives))


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
    any moment: a run that was not written is made again, one that was written is not.

    Args:
      plan: what to run.
      replayer: how.
      path: the result file; created, or resumed where it exists.
      limits: concurrency, retries, time and cost.
      advance: called after runs with the number of runs that ended.

    Returns:
      What the file holds in the end.

    Raises:
      CreditError: the file holds something else, see `read_results`; too many runs fail or hang, see `Limits`; or
        another process makes runs into the file.
    """
    with locked(path):
        return _executed(plan, replayer, path, limits, advance)


def _executed(
    plan: ReplayPlan, replayer: Replayer, path: Path, limits: Limits, advance: Callable[[int], None] | None
) -> Results:
    """`execute`, while no other execution writes the file."""
    earlier = read_results(plan, path)
    execution = _Execution(plan, replayer, path, limits, advance, set(earlier.strayed), earlier.tokens)
    size = getattr(replayer, "at_once", AT_ONCE) if isinstance(replayer, SeededReplayer) else 1
    tasks: list[tuple[int, list[int]]] = []
    for job, planned in enumerate(plan.jobs):
        left = [] if job in earlier.strayed else [run for run in range(planned.runs) if run not in earlier.rewards[job]]
        tasks += [(job, left[start : start + size]) for start in range(0, len(left), size)]
    with concurrent.futures.ThreadPoolExecutor(limits.concurrency) as pool:
        futures = [pool.submit(execution.make, job, runs) for job, runs in tasks]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except BaseException:
            execution.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return read_results(plan, path)


class HangingError(CreditError):
    """A run took longer than it may; this execution does not try it again."""


class _Execution:
    """One execution: what its threads share."""

    def __init__(
        self,
        plan: ReplayPlan,
        replayer: Replayer,
        path: Path,
        limits: Limits,
        advance: Callable[[int], None] | None,
        strayed: set[int],
        tokens: int,
    ) -> None:
        self.plan, self.replayer, self.path, self.limits, self.advance = plan, replayer, path, limits, advance
        self.strayed, self.tokens = strayed, tokens
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.failures = 0  # tasks in a row
        self.background: list[threading.Thread] = []

    def make(self, job: int, runs: list[int]) -> None:
        """Make these runs of a job, and write them."""
        if self.stop.is_set() or job in self.strayed or self.tokens >= self.limits.tokens:
            return
        lines = self._attempts(job, runs)
        if lines is None:
            return
        with self.lock:
            if any(line.get("prefix") for line in lines):
                self.strayed.add(job)
            append_lines(self.path, lines)
            self.tokens += sum(line.get("tokens", 0) for line in lines)
            if self.advance is not None:
                self.advance(len(lines))
            broken = [line["error"] for line in lines if "error" in line and not line["prefix"]]
            self.failures = self.failures + 1 if len(broken) == len(lines) else 0
            if self.failures >= self.limits.failures:
                raise CreditError(f"{self.failures} runs in a row failed, the last with: {broken[-1]}")
            self.background = [thread for thread in self.background if thread.is_alive()]
            if len(self.background) >= self.limits.hanging:
                over = f"{len(self.background)} runs take longer than {self.limits.seconds:g} s and still go on"
                raise CreditError(f"{over}; expected a driver whose runs end")

    def _attempts(self, job: int, runs: list[int]) -> list[dict[str, Any]] | None:
        """The lines of runs after as many tries as allowed; None where the whole execution ends."""
        planned, errors = self.plan.jobs[job], dict.fromkeys(runs, "")
        done: list[dict[str, Any]] = []
        for attempt in range(self.limits.attempts):
            if attempt:
                self.stop.wait(self.limits.pause * 2 ** (attempt - 1))
            if self.stop.is_set():
                return done or None
            left = list(errors)
            try:
                seeds = [seed_of(self.plan, job, run) for run in left]
                outcomes = self._within_time(functools.partial(self._run, planned, seeds))
            except PrefixError as strayed:
                return [*done, {"job": job, "run": left[0], "error": str(strayed)[:1000], "prefix": True}]
            except HangingError as late:
                errors = dict.fromkeys(left, str(late))
                break
            except Exception as failure:  # noqa: BLE001 - a driver may raise anything; it is tried again, then logged
                errors = dict.fromkeys(left, _words(failure))
                continue
            wrong = _wrong(outcomes, len(left))
            if wrong:
                errors = dict.fromkeys(left, wrong)
                continue
            for run, outcome in zip(left, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    errors[run] = _words(outcome)
                else:
                    del errors[run]
                    done.append(_line(job, run, outcome))
            if not errors:
                break
        return done + [{"job": job, "run": run, "error": error, "prefix": False} for run, error in errors.items()]

    def _run(self, job: Job, seeds: list[int]) -> Sequence[Continuation | Exception]:
        if isinstance(self.replayer, SeededReplayer):
            return self.replayer.run_seeds(job.prefix, replace=job.replace, forbid=job.forbid, seeds=seeds)
        return self.replayer.run(job.prefix, replace=job.replace, forbid=job.forbid, n=1, seed=seeds[0])

    def _within_time(
        self, call: Callable[[], Sequence[Continuation | Exception]]
    ) -> Sequence[Continuation | Exception]:
        """What the call returns or raises, in a thread of its own that is left to itself after the limit.

        Raises:
          HangingError: it took too long.
        """
        if math.isinf(self.limits.seconds):
            return call()
        answer: queue.SimpleQueue[tuple[Sequence[Continuation | Exception], BaseException | None]] = queue.SimpleQueue()

        def work() -> None:
            try:
                answer.put((call(), None))
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
                answer.put(((), error))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            outcomes, error = answer.get(timeout=min(self.limits.seconds, threading.TIMEOUT_MAX))
        except queue.Empty:
            with self.lock:
                self.background.append(thread)
            raise HangingError(f"the run did not end within {self.limits.seconds:g} s") from None
        if error is not None:
            raise error
        return outcomes


def _line(job: int, run: int, outcome: Continuation) -> dict[str, Any]:
    return {
        "job": job,
        "run": run,
        "reward": float(outcome.reward),
        "alternative": str(outcome.alternative),
        "tokens": int(outcome.tokens),
    }


def _words(failure: Exception) -> str:
    return f"{type(failure).__name__}: {failure}"[:1000]


def _wrong(outcomes: Any, runs: int) -> str:
    """What is wrong with the outcomes of a driver; "" where nothing is."""
    try:
        count = len(outcomes)
    except TypeError:
        return f"the driver returned {outcomes!r}; expected {counted(runs, 'Continuation')}"[:1000]
    if count != runs:
        return f"the driver returned {counted(count, 'outcome')}; expected {runs}"
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            continue
        if not (isinstance(outcome, Continuation) and math.isfinite(outcome.reward)):
            return f"the driver returned {outcome!r}; expected a Continuation with a finite reward"[:1000]
    return ""
