"""Runs of a replay plan on a Ray cluster: an actor for each run at a time, and one result file, which the caller keeps.

The limits, the retries and the file are those of `credit.replay.execution`. Only the runs are elsewhere, so the file is
resumed whether it was written by one process or by a cluster. A run that takes too long is ended: its actor is killed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from credit.ray.cluster import RETRIES, connected
from credit.replay.execution import AT_ONCE, HangingError, Limits, execute
from credit.replay.replay_plan import ReplayPlan
from credit.replay.replayer import Continuation, Prefix, Replayer, SeededReplayer, load_replayer
from credit.replay.run_results import Results
from graphs.errors import CreditError

__all__ = ["replay"]

DEFAULT = Limits()
LITTLE = 0.01  # CPUs of an actor, whose runs mostly wait for models: any node but one that offers no CPU takes it


def replay(
    plan: ReplayPlan,
    driver: str | Replayer,
    results: str | Path,
    *,
    limits: Limits = DEFAULT,
    actor_options: Mapping[str, Any] | None = None,
    advance: Callable[[int], None] | None = None,
) -> Results:
    """Make the runs of a plan on a Ray cluster, as `credit.replay.execution.execute` makes them in one process.

    `limits.concurrency` actors make one run at a time each. This process writes each run to the result file when it
    ends. Killed at any moment, it is resumed by the same call. Ray makes a run again whose actor died.

    Args:
      plan: what to run.
      driver: what runs the team: "module:attribute", which every node can import, or an object, which is sent.
      results: the result file; created, or resumed where it exists.
      limits: concurrency, retries, time and cost. A run that takes longer than `seconds` is ended.
      actor_options: options of Ray for an actor, such as `{"num_gpus": 1}`. By default it has 0.01 CPUs.
      advance: called after runs with the number of runs that ended.

    Returns:
      What the file holds in the end.

    Raises:
      CreditError: as `execute`; or no actor can load the driver.
      MissingExtraError: Ray is not installed.
    """
    actors = _Actors(driver, limits, actor_options or {})
    try:
        replayer = _SeededActors(actors) if actors.at_once else _PlainActors(actors)
        return execute(
            plan, replayer, Path(results), limits=dataclasses.replace(limits, seconds=math.inf), advance=advance
        )
    finally:
        actors.close()


class RunActor:
    """The actor: one driver."""

    def __init__(self, driver: str | Replayer, folder: str) -> None:
        self._driver, self._folder = driver, folder

    @functools.cached_property
    def _replayer(self) -> Replayer:
        if not isinstance(self._driver, str):
            return self._driver
        if self._folder not in sys.path:
            sys.path.insert(0, self._folder)
        return load_replayer(self._driver)

    def at_once(self) -> int:
        """Load the driver; how many runs it makes at once, 0 for one at a time without a method for more."""
        return getattr(self._replayer, "at_once", AT_ONCE) if isinstance(self._replayer, SeededReplayer) else 0

    def make(
        self, prefix: Prefix, replace: str | None, forbid: Sequence[str], seeds: Sequence[int]
    ) -> Sequence[Continuation | Exception]:
        """Runs from a prefix, one for each seed."""
        if isinstance(self._replayer, SeededReplayer):
            return self._replayer.run_seeds(prefix, replace=replace, forbid=forbid, seeds=seeds)
        return self._replayer.run(prefix, replace=replace, forbid=forbid, n=1, seed=seeds[0])


class _Actors:
    """The actors, and which of them are free."""

    def __init__(self, driver: str | Replayer, limits: Limits, options: Mapping[str, Any]) -> None:
        self._ray, self._seconds = connected(), limits.seconds
        settings = {
            "num_cpus": LITTLE,
            "max_restarts": -1,
            "max_task_retries": RETRIES,
            "scheduling_strategy": "SPREAD",
        }
        self._remote = self._ray.remote(RunActor).options(**settings | dict(options))
        self._given = driver, str(Path.cwd())
        self._lock, self._closed = threading.Lock(), False
        self._starting: dict[Any, Any] = {}  # the answer that an actor gives once it has loaded the driver -> actor
        self._all: set[Any] = set()
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(limits.concurrency):
            self._start()
        try:
            first, _ = self._ray.wait(list(self._starting), num_returns=1)
            self.at_once: int = self._answer(first[0], None)
        except BaseException:
            self.close()
            raise

    def make(
        self, prefix: Prefix, replace: str | None, forbid: Sequence[str], seeds: Sequence[int]
    ) -> Sequence[Continuation | Exception]:
        """Runs by a free actor, once there is one.

        Raises:
          HangingError: they took too long.
          Exception: what the driver raised.
        """
        actor = self._take()
        limit = None if math.isinf(self._seconds) else min(self._seconds, threading.TIMEOUT_MAX)
        try:
            outcomes: Sequence[Continuation | Exception] = self._answer(
                actor.make.remote(prefix, replace, forbid, seeds), limit
            )
        except HangingError:
            with self._lock:
                self._all.discard(actor)
            self._ray.kill(actor)
            self._start()
            raise
        except BaseException:
            self._free.put(actor)
            raise
        self._free.put(actor)
        return outcomes

    def close(self) -> None:
        """End all actors, and what they are doing."""
        with self._lock:
            self._closed = True
            actors, self._all = self._all, set()
        for actor in actors:
            self._ray.kill(actor)

    def _start(self) -> None:
        with self._lock:
            if not self._closed:
                actor = self._remote.remote(*self._given)
                self._all.add(actor)
                self._starting[actor.at_once.remote()] = actor

    def _take(self) -> Any:
        while not self._closed:
            with self._lock:
                waiting = list(self._starting)
                loaded = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)[0] if waiting else []
                started = [(answer, self._starting.pop(answer)) for answer in loaded]
            for answer, actor in started:
                self._answer(answer, None)
                self._free.put(actor)
            try:
                return self._free.get(timeout=0.05)
            except queue.Empty:
                continue
        raise CreditError("the actors were ended; expected runs before that")

    def _answer(self, pending: Any, seconds: float | None) -> Any:
        """What a call returned or raised."""
        failures = self._ray.exceptions
        try:
            return self._ray.get(pending, timeout=seconds)
        except failures.GetTimeoutError:
            raise HangingError(f"the run did not end within {self._seconds:g} s") from None
        except failures.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from None


class _PlainActors:
    """A `Replayer` that makes one run at a time by an actor."""

    def __init__(self, actors: _Actors) -> None:
        self._actors = actors

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> Sequence[Continuation]:
        """One run; `execute` asks for no more."""
        outcomes: Sequence[Any] = self._actors.make(prefix, replace, tuple(forbid), [seed])
        return outcomes


class _SeededActors(_PlainActors):
    """A `SeededReplayer` whose runs are made by an actor."""

    @property
    def at_once(self) -> int:
        """Runs of one call at most."""
        return self._actors.at_once

    def run_seeds(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), seeds: Sequence[int]
    ) -> Sequence[Continuation | Exception]:
        """One run for each seed."""
        return self._actors.make(prefix, replace, tuple(forbid), list(seeds))
