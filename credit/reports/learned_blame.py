"""Blame learned from labelled runs: which step of a failed run people would blame, from structure and text alone.

A conditional logit over the actions of each run. With x the features of an action and w the weights,

    P(action e is blamed) = exp(w · x_e) / Σ over actions f of the run exp(w · x_f)
    w = argmax Σ over runs log P(blamed action) − λ / 2 |w|²

Runs of a task are never in both halves: for each of `FOLDS` folds of tasks, w is fitted on the other folds, and λ is
the one of `PENALTIES` with the best likelihood in folds among these. No outcome and no other label is read.

Reference: McFadden 1974 (the conditional logit); Weinberger et al. 2009 (hashed features).
"""

from __future__ import annotations

import zlib

import numpy as np

from credit.reports.blame import Case
from credit.reports.event_texts import event_texts
from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.structure.forest import real_edges
from graphs.traces.batch import Traces

__all__ = ["FOLDS", "learned_blame"]

FOLDS = 5
PENALTIES = (10.0, 100.0)
WORDS = 256  # hashed features of text
LONGEST = 2_000  # characters of a text that are read
WRONG = ("error", "fail", "exception", "traceback", "not found", "unable", "cannot", "sorry", "incorrect", "timeout")


def learned_blame(traces: Traces, cases: list[Case], *, text: bool = True) -> np.ndarray:
    """−P(blamed) of each action by weights that were fitted on other tasks: float64 [events], 0 elsewhere.

    Args:
      traces: what was read.
      cases: of `credit.reports.blame.blame_cases` on these traces.
      text: whether to read texts of the log; otherwise structure alone.

    Raises:
      CreditError: fewer than `FOLDS` tasks have a blamed action.
    """
    labelled = [case for case in cases if case.step is not None]
    groups = np.unique([case.group for case in labelled])
    if len(groups) < FOLDS:
        raise CreditError(f"{len(groups)} tasks have a blamed action; expected {FOLDS} or more to learn from others")
    features = {id(case): _features(traces, case.actions, text) for case in cases}
    fold = {int(group): number % FOLDS for number, group in enumerate(groups)}
    blame = np.zeros(traces.graph.num_events)
    for held_out in range(FOLDS):
        others = [case for case in labelled if fold[case.group] != held_out]
        runs = [(features[id(case)], case.step or 0, fold[case.group]) for case in others]
        mean, spread = _moments(runs)
        scaled = [((x - mean) / spread, step, number) for x, step, number in runs]
        weights = _fitted(scaled, _penalty(scaled))
        for case in cases:
            # A task without a labelled run is in no fold; the first fit, on tasks other than its own, judges it.
            if fold.get(case.group, 0) == held_out and len(case.actions):
                blame[case.actions] = -_chances((features[id(case)] - mean) / spread, weights)
    return blame


Run = tuple[np.ndarray, int, int]
"""The features of a run's actions [N, D], the blamed one, and the fold of its task."""


def _penalty(runs: list[Run]) -> float:
    """The penalty under which weights from the other folds give the blamed actions the highest likelihood."""
    found = []
    for penalty in PENALTIES:
        total = 0.0
        for number in {run[2] for run in runs}:
            weights = _fitted([run for run in runs if run[2] != number], penalty)
            total += sum(np.log(_chances(x, weights)[step] + 1e-300) for x, step, f in runs if f == number)
        found.append(total)
    return PENALTIES[int(np.argmax(found))]


def _moments(runs: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each feature over all actions; 1 where it does not vary."""
    stacked = np.concatenate([x for x, _, _ in runs])
    spread = stacked.std(axis=0)
    return stacked.mean(axis=0), np.where(spread > 0, spread, 1)


def _chances(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """P of each action of a run."""
    logit = x @ weights
    odds = np.exp(logit - logit.max())
    chances: np.ndarray = odds / odds.sum()
    return chances


def _fitted(runs: list[Run], penalty: float) -> np.ndarray:
    """The weights of the conditional logit."""
    from scipy.optimize import minimize  # comes with JAX; slow to import

    stacked = np.concatenate([x for x, _, _ in runs])
    sizes = np.array([len(x) for x, _, _ in runs])
    starts = np.cumsum(sizes) - sizes
    blamed = starts + np.array([step for _, step, _ in runs])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        logit = stacked @ weights
        logit -= np.repeat(np.maximum.reduceat(logit, starts), sizes)
        odds = np.exp(logit)
        total = np.add.reduceat(odds, starts)
        value = np.sum(np.log(total)) - np.sum(logit[blamed]) + penalty / 2 * float(weights @ weights)
        chances = odds / np.repeat(total, sizes)
        chances[blamed] -= 1
        return value, stacked.T @ chances + penalty * weights

    found = minimize(loss, np.zeros(stacked.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 100})
    weights: np.ndarray = found.x
    return weights


def _features(traces: Traces, rows: np.ndarray, text: bool) -> np.ndarray:
    """Of each action of a run: its place, its agent's part, its type, its edges, and hashed words: float64 [N, D]."""
    graph, count = traces.graph, len(rows)
    agent = np.asarray(graph.agent_ids)[rows]
    place = np.arange(count)
    first = np.array([place[agent == a][0] for a in agent]) if count else place
    last = np.array([place[agent == a][-1] for a in agent]) if count else place
    turns = np.array([np.sum(agent[:i] == a) for i, a in enumerate(agent)])
    share = np.array([np.mean(agent == a) for a in agent])
    again = np.concatenate([[False], agent[1:] == agent[:-1]])[:count]
    senders, receivers = real_edges(graph)
    out, into = (np.array([np.sum(end == row) for row in rows]) for end in (senders, receivers))
    kinds = np.asarray(graph.event_type)[rows][:, None] == np.arange(len(EventType))
    structure = [
        place / max(count - 1, 1), np.log1p(place), place == 0, place == count - 1, place == first, place == last,
        np.log1p(turns), share, again, np.log1p(out), np.log1p(into),
    ]  # fmt: skip
    plain = np.column_stack([*structure, kinds]).astype(np.float64)
    if not text:
        return plain
    texts = event_texts(traces, rows, LONGEST)
    low = [said.lower() for said in texts]
    length = np.log1p([len(said) for said in texts])
    wrong = np.array([[word in said for word in WRONG] for said in low], np.float64).reshape(count, -1)
    before = np.vstack([np.zeros((1, wrong.shape[1])), wrong[:-1]])[:count]
    after = np.vstack([wrong[1:], np.zeros((1, wrong.shape[1]))])[:count]
    names = [traces.agents["name"][int(a)].as_py() for a in agent]
    words = np.array([_hashed([*said.split(), f"agent:{name}"]) for said, name in zip(low, names, strict=True)])
    return np.column_stack([plain, length, wrong, before, after, words.reshape(count, -1)])


def _hashed(words: list[str]) -> np.ndarray:
    """Counts of words by hash, with a sign of their own so that collisions cancel on average, of length 1."""
    counts = np.zeros(WORDS)
    for word in words:
        number = zlib.crc32(word.encode())
        counts[number % WORDS] += 1 if number & 1 << 31 else -1
    norm = float(np.sqrt(counts @ counts))
    return counts / norm if norm > 0 else counts
