"""Advantages of a trainer's rows: ids and rewards in, advantages and metrics out, compiled once.

A trainer holds N rows, one a model call, in any order and in a number that changes from step to step. `RowAdvantages`
builds the event graph, runs a method and brings the numbers back in the trainer's order:

    advantages = RowAdvantages("dr_mas")
    result = advantages(group=uid, trace=session, agent=agent, reward=score, mask=response_mask)
    result.advantages    # [N, L] in the library of `reward`
    result.metrics       # {"credit/groups_that_teach": 0.75, ...}

Sizes are padded to powers of two and never shrink, so a run compiles for its largest batch and not again.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from credit.doubts_of_log import saw_later
from credit.integrations.rows.row_columns import (
    SAME,
    as_labels,
    as_mask,
    as_numbers,
    give_back,
    of_entered,
    of_rows,
    on_host,
    spread,
    taken,
    weighs_traces,
    weighted,
)
from credit.integrations.rows.row_metrics import (
    Batch,
    Facts,
    batch_metrics,
    compared_with_none,
    condition_unbiased,
    no_metrics,
    refusals,
    refused_groups,
    several_agents,
    silent_groups,
)
from credit.integrations.rows.row_selection import check_lengths, length_of, rewards_left_out, rows_named, used_rows
from credit.integrations.rows.row_versions import traces_used_again, trained_versions, version_metrics
from credit.methods.units_apart import alike_units
from credit.reports.trace_returns import UNRESOLVED, outweighed
from credit.tables.column_values import PAID, in_range, lost_to_type, nulls, unlike_indices
from credit.tables.copied_rows import Copied, copied_rows
from credit.tables.merged_rollouts import said_of_merged
from credit.tables.row_order import (
    moments_of_places,
    numbers_of_turns,
    order_of_turns,
    rounds_at_once,
    rounds_of_places,
    rows_in_order,
    said_of_gap,
    ties,
    untold_order,
    untold_rounds,
)
from credit.tables.row_tokens import SAMPLED
from credit.values_at_once import reads_rounds
from graphs.argument_kinds import is_number, is_whole
from graphs.errors import CreditError, MissingColumnWarning, PrecisionWarning
from graphs.padding import pad_array
from graphs.replay_clusters import CHOICES
from graphs.text import counted, excerpt
from graphs.traces.batch_notes import counted_as_nothing
from graphs.traces.outcome_again import SEVERAL, may_be_outcome, outcome_again
from graphs.traces.schema import EVENT_EVIDENCE, LIKE_OUTCOMES, TRACE_EVIDENCE
from graphs.traces.tokens import TOKEN_COLUMNS

if TYPE_CHECKING:
    from credit.integrations.watch import Watch
    from credit.methods.method_row import Method, Seen
    from credit.tables.batch_rows import RowNames, Rows
    from estimators.base import Credit
    from graphs.event_graph import EventGraph

__all__ = ["STRUCTURE", "Advantages", "RowAdvantages", "rows_advantage"]

NO_OTHER = "no other trace to compare with, so the raw reward or 0 is kept"
"""Of rows whose group or key one trace has, and which a method answers."""

STRUCTURE = frozenset((*CHOICES, "trainable"))
"""Evidence that shapes the graph: traces that share a choice (`graphs.replay_clusters`), and agents that are frozen."""


class Advantages(NamedTuple):
    """Advantages and metrics of a trainer's rows.

    Attributes:
      advantages: [N], or [N, L] where a mask was given; in the library and on the device of `reward`, exactly 0 where
        there is no answer and outside the mask.
      valid: bool [N], NumPy: rows that have an answer. Leave the others out of the loss or of its denominator.
      metrics: numbers by name, all beginning with "credit/".
    """

    advantages: Any
    valid: np.ndarray
    metrics: dict[str, float]


class RowAdvantages:
    """A method as a function of a trainer's rows.

    Args:
      method: a name in `credit.METHODS`, or a function `(graph, reward, *, event_reward=None, ...) -> Credit`.
      rows: the largest number of rows to expect. Default: the largest seen; a larger batch then compiles once more, of
        which a warning tells where `rows` was passed.
      scaled: False leaves the method's scale out: credit minus baseline.
      watch: what looks at each batch, or the folder of a `Watch` with its defaults.
      truncate: the largest importance weight, above 0, `np.inf` for whole weights; see `log_ratio`.
      strict: whether a batch without the agents, spawns, turns or traces that the method compares, with rows twice or
        out of the order of their turns, without any answer, with a null `event_reward`, one that `where` leaves out of
        a trace, or one that is the outcome again in more traces than by chance, is an error; "warn" warns in every
        batch. Default: a `MissingColumnWarning` at the first batch with each of these. One of which most trained rows
        are refused, or compared with no other trace, is no error: chance may make it.
      options: keyword arguments of the method, such as `eps=1e-4`.

    Attributes:
      scope: whose rewards change a trace's numbers, as of `credit.METHODS`; None for a function.
      state: what a method of scope "sequence" carries from batch to batch, such as SPIRAL's averages by the name of an
        agent; None before the first. Save it with a checkpoint, and set it when the run goes on.

    Raises:
      CreditError: no such method; an option that the method does not have, or out of its bounds; `rows` is no positive
        integer; `initial` is no number.

    The metric `credit/condition/unbiased` is 1 where the mean of the policy gradient is right under an assumption that
    no batch shows. Rows of `trained_version` are of the policy that is trained. Where it is not passed, rows of the
    newest version of the batch are, or all rows where none states a version. A batch that is wholly older is then
    called unbiased, and is not. `log_ratio` of one number a trace is taken for the sum over its decisions, values
    for those of the state before the action, and rows for one after the other but where they share one `order`, as
    agents at once must. It is absent of many batches: plot how often it is 1, not its mean.

    Examples:
      >>> import numpy as np
      >>> from credit.integrations import RowAdvantages
      >>> advantages = RowAdvantages("rloo")
      >>> result = advantages(group=["q", "q", "q"], trace=[0, 1, 2], reward=np.array([1.0, 0.0, 0.5]))
      >>> result.advantages.tolist()
      [0.75, -0.75, 0.0]
      >>> result.metrics["credit/groups_that_teach"]
      1.0
      >>> advantages.silent_groups
      []
    """

    def __init__(
        self,
        method: str | Callable[..., Credit],
        *,
        rows: int | None = None,
        scaled: bool = True,
        watch: Watch | str | Path | None = None,
        strict: bool | Literal["warn"] = False,
        truncate: float = 2.0,
        **options: Any,
    ) -> None:
        from credit.methods.published import find_method
        from credit.methods.running import Request
        from estimators.options import check_value, takes_key

        if not is_number(truncate) or not truncate > 0:
            raise CreditError(f"truncate is {excerpt(truncate)}; expected a number above 0, the largest weight")
        self.name, self._method, self._facts, self._state_of = _resolve(method, options)
        self.scope = None if callable(method) else find_method(method).scope_of(options)[0]
        parameters = inspect.signature(self._method).parameters
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        if not open_ended:
            Request.of(method).check_names(options)
        if strict not in (True, False, "warn"):
            raise CreditError(f"strict is {excerpt(strict)}; expected True, False or 'warn'")
        if rows is not None and (not is_whole(rows) or rows < 1):
            raise CreditError(f"rows is {rows!r}; expected a positive integer: the largest batch")
        from graphs.keys import evidence_of_key, names_of_key

        if "by" in options:  # it names what is compared, in the place of agents
            across = self._state_of is None and "episode" not in names_of_key(options["by"])
            self._facts = self._facts._replace(columns=(), in_groups=False, key=(), across=across)

        self._by = options.pop("by") if "by" in options and takes_key(self._method) else None
        self._accepts = None if open_ended else frozenset((*parameters, *evidence_of_key(self._by)))
        self._takes = None if open_ended else frozenset(parameters)
        self.state: dict[str, float] | None = None
        self._ended: dict[str, float] | None = None  # after the batch at hand
        self._unmet: list[str] = []
        self._start = options.pop("initial", 0.0) if self._state_of is not None else 0.0
        if not is_number(self._start) or not np.isfinite(self._start):
            raise CreditError(f"initial is {excerpt(self._start)}; expected a number, for names not seen before")
        names = [name for name in options if isinstance(options[name], str | list | tuple)]
        named = [name for name in names if name in parameters and parameters[name].annotation == "AgentNames"]
        self._agents_named = {name: _words(options.pop(name)) for name in named}
        for option, value in () if callable(method) else options.items():
            check_value(self._method, option, value)
        self._options, self._scaled = options, scaled
        if isinstance(watch, str | Path):
            from credit.integrations.watch import Watch

            watch = Watch(watch)
        self._watch, self._strict, self._truncate = watch, strict, float(truncate)
        self._looked = True  # False while `warmup` runs on rows of its own
        self._told: set[str] = set()  # what was warned of, by its kind
        self.how_to_pass = "pass it under this name"
        self._rows, self._room = rows, 0 if rows is None else _room(rows)
        self._program: Callable[..., Any] | None = None
        self._shapes: set[Any] = set()  # of arrays that it was compiled for
        self.last: Batch | None = None
        self._unscored: list[Any] = []  # groups of the last batch without any outcome

    def __getstate__(self) -> dict[str, Any]:
        """Without the compiled method and the last batch: another process compiles its own."""
        return {**self.__dict__, "_program": None, "_shapes": set(), "last": None}

    @property
    def compilations(self) -> int:
        """How often the method was compiled so far: once for each size and set of columns.

        Several `RowAdvantages` of one method with the same options share what was compiled, and each counts it.
        """
        return len(self._shapes)

    @property
    def silent_groups(self) -> list[Any]:
        """The groups of the last batch in which every advantage that the method gave is 0, by their ids.

        A gradient gets nothing from them. A group in which every row is refused has no advantage and is among
        `refused_groups`; `credit/groups_that_teach` counts neither.
        """
        return [] if self.last is None else silent_groups(self.last)

    @property
    def refused_groups(self) -> dict[str, list[Any]]:
        """The ids of the groups of the last batch of which no row has an advantage, by why, as `Credit.why`.

        Examples:
          >>> from credit.integrations import RowAdvantages
          >>> advantages = RowAdvantages("rloo")
          >>> _ = advantages(group=["q", "q", "r", "s"], trace=[0, 1, 2, 3], reward=np.array([1.0, 0.0, 1.0, np.nan]))
          >>> advantages.refused_groups
          {'nothing to compare with: the group has one member': ['r'], 'no outcome is known': ['s']}
        """
        from estimators.base import REASONS, Reason

        found = {} if self.last is None else refused_groups(self.last)
        unscored = [*found.get(REASONS[Reason.NO_REWARD], []), *self._unscored]
        return found | ({REASONS[Reason.NO_REWARD]: unscored} if unscored else {})

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the evidence without which the method cannot run."""
        return tuple(name for name in self._facts.needs if name not in self._options)

    def accepts(self, name: str) -> bool:
        """Whether the method, or the graph in case of `STRUCTURE`, uses evidence of this name."""
        return self._accepts is None or name in self._accepts | STRUCTURE

    @property
    def carries_state(self) -> bool:
        """Whether the method has a `state`."""
        return self._state_of is not None

    @property
    def pays_agents(self) -> bool:
        """Whether the method takes outcomes of agents, evidence `agent_reward`: it compares agents, not traces.

        `spiral_rae` and `hierarchical_grpo` do, and `grpo`, `dr_grpo` and `rloo` with `population="agent"` or "row".
        """
        named = "agent" in self._facts.columns or self._options.get("population", "trace") != "trace"
        return named and self.accepts("agent_reward")

    def _taken(self, evidence: Mapping[str, Any]) -> dict[str, Any]:
        """The evidence that the method itself takes, and its key; a method with open keywords gets all evidence."""
        from graphs.keys import key_of

        taken = {name: array for name, array in evidence.items() if self._takes is None or name in self._takes}
        return taken if self._by is None else taken | {"by": key_of(self._by, evidence)}

    def warmup(self, rows: int | None = None, *, evidence: Collection[str] = (), event_reward: bool = False) -> float:
        """Compile before the first step, for batches of up to `rows` rows; returns the seconds that it took.

        Args:
          rows: the largest batch; default: `rows` of the constructor.
          evidence: the names of evidence that the calls will pass.
          event_reward: whether the calls will pass event rewards.

        Raises:
          CreditError: no size is known.
        """
        if rows is not None:
            self._rows, self._room = max(rows, self._rows or 0), max(self._room, _room(rows))
        if not self._room:
            raise CreditError("warmup needs the size of a batch; pass rows=")
        begin = time.perf_counter()
        kept = self._watch, self.state
        self._watch, self._looked = None, False
        columns: dict[str, Any] = {name: list("abcdef") if _is_label(name) else [0.0] * 6 for name in evidence}
        columns |= {"trainable": [1.0] * 6} if "trainable" in columns else {}
        columns |= {"event_reward": [0.0] * 6} if event_reward else {}
        self(group=["q"] * 6, trace=[0, 0, 1, 1, 2, 2], reward=np.arange(6) // 2 % 2, evidence=columns)
        self.last, self._looked, (self._watch, self.state) = None, True, kept
        return time.perf_counter() - begin

    def __call__(
        self,
        *,
        group: Any,
        reward: Any,
        trace: Any = None,
        agent: Any = None,
        role: Any = None,
        parent: Any = None,
        instance: Any = None,
        turn: Any = None,
        order: Any = None,
        event_reward: Any = None,
        event_type: Any = None,
        evidence: Mapping[str, Any] | None = None,
        policy_version: Any = None,
        trained_version: int | Mapping[Any, int] | None = None,
        log_ratio: Any = None,
        where: Any = None,
        mask: Any = None,
    ) -> Advantages:
        """Advantages of one batch of N rows.

        Columns are lists, NumPy arrays, JAX arrays or tensors on any device; ids are integers, strings or UUIDs.

        Args:
          group: the task of each row.
          reward: the outcome of the row's trace, the same on all its rows: numbers, or True and False, as in logs. NaN
            where the trace has none, or null, as of Arrow. Its rows then get 0, `valid` False, and enter no baseline.
            Their ids still say which traces are replays.
          trace: the execution that the row belongs to. Default: each row is a trace of its own.
          agent: the name of the agent that acted. Default: one for all.
          role: the role of that agent, one for each instance. Default: its name.
          parent: the name of the agent of the same trace that spawned it; null where none did. Default: no spawns.
          instance: a label that tells several agents of one name in one trace apart. Default: they are one.
          turn: a label of the row's turn, distinct within its agent instance: a round in which two agents act is two
            turns. Default: one turn an instance.
          order: the place of each row within its trace, integers, floats or times, where the rows of the batch do not
            stand in that order, or agents act at once: their rows of one place are one turn, whose `event_reward`
            counts for each of them, and stand by the agents' names. An agent's rows of one place keep the order of the
            batch, of which a method that reads it warns: several agents of one name need `instance`.
            A method with a `state` goes over traces by their first rows: pass these as they were sampled.
          event_reward: what each row earned besides; where that is all, `reward` is zeros, which says that the trace
            has an outcome. None (null) counts 0, as `credit/unpaid` says; NaN is refused.
          event_type: refused. A row that no trained policy decided, such as a tool's, has `trainable` 0 in `evidence`.
          evidence: further columns by the names in `credit.from_columns`. `STRUCTURE` says which traces are replays and
            who is trained; pass it with every method that compares traces. An agent's outcome is its trace's
            `reward` plus its `agent_reward`; who lacks one has none. `log_prob`, or `token_ids`, `token_log_probs` and
            `token_mask`, serve the check of copies, whatever the method takes.
          policy_version: the version of the policy that sampled the row, an integer from 0, null where unknown (not
            -1; null in all rows says as much as no column). Metrics say how far rows are behind the policy that is
            trained, and how many groups hold several; `by="task,policy_version"` compares traces of one, the first that
            a trace states.
          trained_version: the version of the policy that is trained, no less than any of `policy_version`; a mapping
            from names of agents, where each agent's policy is versioned apart, such as one that is trained less
            often. Default: the newest of the batch counts as trained, or every row where none states a version; a batch
            that is wholly older then counts as new.
          log_ratio: log π of the policy that is trained, less that of the policy that sampled the row: [N], of the
            whole row, which is the sum over its tokens; or, with `mask`, [N, L], of each token. For an unbiased
            gradient, pass in each row the sum over all decisions of its trace: a row's own ratio, PPO's usual choice,
            is biased where a trace has several. The advantage is multiplied by min(exp(log_ratio), truncate), after
            metrics were taken of it; by 0 at -inf, where the trained policy never acts so. Leave it out where the
            trainer's loss weighs so itself.
          where: True or False [N]. False is padding, a row that never ran: it gets 0, and nothing of it counts. True is
            a row that ran. One that no trained policy decided, as a tool's, has `trainable` 0 in `evidence`: it gets 0,
            and its `event_reward` counts. A trace that ran and should not count has the reward NaN.
          mask: [N, L], 1 or True at the tokens that the policy wrote, else 0; the result is then spread over them.

        Raises:
          ColumnError: a column cannot be used; it names the column and the rows.
          CreditError: the method does not take evidence that was passed, or lacks evidence that it needs.
        """
        words = unlike_indices({**locals(), **(evidence or {})})
        self._warn({"indices": f"{words}: reset or align them"} if words else {}, stacklevel=3)
        begin = time.perf_counter()
        compiled = self.compilations
        evidence = dict(evidence or {})
        lists = {name: _listed(evidence.pop(name)) for name in SAMPLED if name in evidence}  # of the check of copies
        stated = {"event_reward": event_reward, "policy_version": policy_version, "event_type": event_type}
        self._check_evidence(evidence, {name for name, column in stated.items() if column is not None})
        n = length_of("reward", reward)
        score = as_numbers("reward", reward, n)
        wrote = None if mask is None else as_mask(mask, n)
        labels = {
            "group": as_labels(group),
            "trace": np.arange(n) if trace is None else as_labels(trace),
            **{
                name: as_labels(column)
                for name, column in zip(_LABELS, (agent, role, parent, instance, turn), strict=True)
                if column is not None
            },
        }
        labels |= {name: as_labels(column) for name, column in evidence.items() if _is_label(name)}
        amounts = {name: as_numbers(name, column, n) for name, column in evidence.items() if not _is_label(name)}
        if twice := [name for name in stated if stated[name] is not None and name in evidence]:
            raise CreditError(f"{twice[0]} is passed twice, as a column and in evidence=; expected one of them")
        amounts |= {name: as_numbers(name, column, n) for name, column in stated.items() if column is not None}
        paid, known = {**stated, **evidence, "reward": reward}, {**amounts, "reward": score}
        of_types = {name: lost_to_type(paid[name], known[name]) for name in PAID if name in known}
        unpaid = np.zeros(n, bool)
        if "event_reward" in amounts:
            unpaid = nulls(evidence["event_reward"] if event_reward is None else event_reward, n)
            amounts["event_reward"] = np.where(unpaid, 0, amounts["event_reward"])
        check_lengths(labels | lists, n)
        use, ran = used_rows(score, labels["trace"], where, n)
        if "policy_version" in amounts:
            with rows_named(np.flatnonzero(ran)):
                in_range("policy_version", "count", amounts["policy_version"][ran], _VERSION.within)
        names = labels.get("agent", labels.get("role"))
        drawn = ran & (amounts.get("trainable", np.ones(n)) != 0)  # versions of a frozen agent are of another model
        trained = trained_versions(trained_version, names, amounts.get("policy_version"), drawn)
        order = None if order is None else on_host(order)
        named = order, n, labels["trace"], names, labels.get("instance")
        take = None if n == 0 or (order is None and use.all()) else rows_in_order(use, *named)
        advantage, valid = np.zeros(n, np.float32), np.zeros(n, bool)
        rows, self._ended = int(np.count_nonzero(ran)), self.state
        if use.any():
            links = any(name in labels for name in CHOICES) and not (ran == use).all()
            withheld = rows_in_order(ran, *named) if links else None
            self.last = batch = self._run(score, labels, amounts, of_types, lists, take, withheld, order)
            places = slice(None) if take is None else take
            advantage[places] = batch.advantage[batch.rows.event]
            valid[places] = batch.reason[batch.rows.event] == 0
            at = None if take is None or order is None else rounds_of_places(order, take)
            ordered, falls = self._order(batch, stated=order is not None, places=at)
            again = _paid_again(batch)
            once = not again[0] if again else None
            metrics = batch_metrics(batch, rows, valid, advantage, self._facts, ordered=ordered, paid_once=once)
            metrics |= version_metrics(batch, None if trained is None else trained[places])
            copied = copied_rows(batch.rows, take, _beside(batch, n, order, wrote, log_ratio, places))
            metrics["credit/copied"] = copied.rows / len(batch.rows.event)
            if "event_reward" in batch.columns:
                metrics["credit/unpaid"] = np.count_nonzero(unpaid[places]) / len(batch.rows.event)
            beside = labels if order is None else {**labels, "order": order}
            lost = 0 if "event_reward" not in amounts else rewards_left_out(amounts["event_reward"], beside, use, ran)
            paid_again = again[0] if again else ""
            moments = None if take is None or order is None else moments_of_places(order, take)
            untold = "" if falls else self._untold(batch, at, moments, take)
            untold = untold or ("" if trace is None else _one_row_each(batch))
            copies = bool(copied.twice or copied.filling or copied.untold)
            merged = "" if trace is None or copies else said_of_merged(batch.rows, batch.columns.get("turn"), take)
            saw = saw_later(batch.graph, batch.evidence, batch.reward) if "value" in self.needs else ""
            self._check_columns(batch, metrics, trace is not None, falls, paid_again, lost, copied, untold, merged, saw)
        else:
            self.last, metrics = None, no_metrics(rows, self._facts)
            zeros = "" if "event_reward" not in amounts else "; where event_reward is all that was earned, pass zeros"
            text = f"method {self.name!r} answers no row of the batch: none has a reward{zeros}"
            if self._strict is True and rows and self._looked:
                raise CreditError(text)
            self._warn({"unscored": text} if rows else {}, stacklevel=3)
        self._unscored = _only_in(labels["group"], ran & ~use, use)
        result = give_back(advantage, reward)
        if wrote is not None:
            result = spread(result, wrote)
        if log_ratio is not None:
            result, of_weights = weighted(result, log_ratio, self._truncate)
            metrics |= of_weights
        if self.last is not None:
            whole = None
            age = 0 if trained is None or log_ratio is not None else metrics.get("credit/policy_age", 0)
            if age > 1 and not traces_used_again(batch):  # by one, most asynchronous trainers are
                text = (
                    f"got rows {age:.0f} versions older than the trained policy, and no log_ratio=: the mean of the "
                    "gradient is biased, unless the loss weighs them"
                )
                self._warn({"older": text}, stacklevel=3)
            if log_ratio is not None:
                from estimators.base import Reason

                of_trace, event = np.full(n, -1), batch.rows.event
                of_trace[places] = np.where(
                    batch.reason[event] == Reason.FROZEN, -1, np.asarray(batch.graph.trace_ids)[event]
                )
                whole = weighs_traces(log_ratio, wrote, of_trace, advantage != 0)
                if metrics.get("credit/policy_age") and (np.abs(of_entered(log_ratio, wrote, of_trace)) < SAME).all():
                    whole = False
                    text = (
                        "got rows of older versions whose every log_ratio is 0: both log-probabilities may be of the "
                        "trained policy; expected that of the policy that sampled the row"
                    )
                    self._warn({"alike_policies": text}, stacklevel=3)
            apart = trace is None and bool("turn" in batch.columns or several_agents(batch))
            doubted = apart or copies or copied.unproven or self._numbers_rounds(batch, at, falls)
            doubted |= bool(untold or merged or saw or traces_used_again(batch) or metrics.get("credit/unpaid"))
            doubted |= not again and "event_reward" in batch.columns and bool(np.ptp(batch.columns["reward"]) > 0)
            told = trained is not None
            metrics |= condition_unbiased(
                batch, self._facts, metrics, whole, version_told=told, lost=lost, doubted=doubted
            )
            if self._watch is not None:
                of_batch = self._method(
                    batch.graph, batch.reward, **self._taken(batch.evidence), **batch.of_names, **self._options
                )
                metrics |= self._watch(batch, of_batch, metrics)
        metrics["credit/compilations"] = float(self.compilations - compiled)
        metrics["credit/milliseconds"] = 1e3 * (time.perf_counter() - begin)
        self.state = self._ended  # a batch that is refused moves none, so that it can be passed again
        return Advantages(result, valid, {name: float(value) for name, value in metrics.items()})

    def _run(
        self,
        score: np.ndarray,
        labels: Mapping[str, Any],
        amounts: Mapping[str, np.ndarray],
        of_types: Mapping[str, np.ndarray],
        lists: Mapping[str, list[Any]],
        take: np.ndarray | None,
        ran: np.ndarray | None,
        order: Any,
    ) -> Batch:
        """The method on the rows `take`, in that order. `ran`: these and those without a reward, which may link."""
        from credit.tables.columns import built_from_columns
        from credit.tables.withheld_traces import with_withheld_links

        stated = {**labels, **amounts, "reward": score}
        if take is not None:
            stated = {name: taken(name, column, take) for name, column in stated.items()}
        columns = {name: column for name, column in stated.items() if name in _FROM_COLUMNS}
        unread = set() if self.accepts("policy_version") else {"policy_version"}  # what only metrics read
        evidence = {name: column for name, column in stated.items() if name not in _FROM_COLUMNS | unread}
        count = len(columns["reward"])
        if self._rows is not None and count > self._room:
            words = f"got {counted(count, 'row')}, more than rows={self._rows}, and is compiled once more"
            self._warn({"rows": f"method {self.name!r} {words}"}, stacklevel=4)
        self._room = max(self._room, _room(count))
        size = self._room
        with rows_named(take):
            sizes = dict.fromkeys(("events", "traces", "agents"), size)
            kept = lists if take is None else {name: [rows[row] for row in take] for name, rows in lists.items()}
            given = {**columns, **sizes, "evidence": {**evidence, **kept}}
            given["lost"] = {name: lost if take is None else lost[take] for name, lost in of_types.items()}
            if order is not None and take is not None:  # agents of one place are a round
                given["order"] = taken("order", order, take)
            graph, outcome, rows = built_from_columns(given)
        if ran is not None:
            ids = {name: taken(name, labels[name], ran) for name in ("group", "trace", *CHOICES) if name in labels}
            with rows_named(ran):
                graph = with_withheld_links(graph, ids.pop("group"), ids.pop("trace"), ids, ~np.isnan(score[ran]))
        of_names, numbers = self._of_names(graph, rows.names)
        taken_evidence = self._taken(rows.evidence)
        run = self._compiled(graph, taken_evidence, of_names)
        for words in rows.names.typed:
            warnings.warn(words, PrecisionWarning, stacklevel=3)
        if shifted := self._without_offsets(given, graph, rows, run) if rows.names.offset.any() else None:
            outcome, rows = shifted
        for words in rows.names.coarse:
            warnings.warn(words, PrecisionWarning, stacklevel=3)
        advantage, reason, keys, after, (difference, own) = run(outcome)
        answer = difference, np.asarray(reason) == 0
        levels = rows.known(taken_evidence)
        small = outweighed(graph, outcome, levels, *answer, own_outcome=bool(own))
        small = (small | _of_nothing(graph, rows, advantage, *answer)) & ~rows.names.rounded
        if small.any():
            words = f"{counted(int(small.sum()), 'group')} whose {UNRESOLVED['coarse']}"
            warnings.warn(words, PrecisionWarning, stacklevel=3)
            rows = dataclasses.replace(rows, names=dataclasses.replace(rows.names, rounded=rows.names.rounded | small))
        if after is not None:
            self._unmet = [] if self.state is None or set(self.state) & set(numbers) else [*self.state]
            ended = np.asarray(after).reshape(-1).tolist()
            self._ended = {**(self.state or {}), **{name: ended[number] for name, number in numbers.items()}}
        keys = None if keys is None else np.asarray(keys)
        found = np.asarray(advantage), np.asarray(reason), keys
        return Batch(stated, graph, outcome, rows, rows.evidence, *found, of_names)

    def _without_offsets(
        self, given: Mapping[str, Any], graph: EventGraph, rows: Rows, run: Callable[..., Any]
    ) -> tuple[np.ndarray, Rows] | None:
        """Outcomes less the least of their group, exact in single precision, where the method takes differences alone.

        Never where it takes values, or other evidence in the unit of outcomes, which would keep its level: an advantage
        of 57 became one of -1743, since no raise stands out beside a value of 1850.

        The method is tried on outcomes of the same order between 0 and 1. Then each group's are raised by another
        amount, of 4 to 8 spreads. The advantages must stay, and be no larger than differences can be. Else the result
        is None, as where outcomes less the least are not exact.
        """
        from credit.tables.columns import built_from_columns
        from graphs.floats import KEPT, WHOLE

        group = np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)[rows.event]]
        coarse, reward = rows.names.offset[group], given["reward"]
        levels = LIKE_OUTCOMES.intersection(self._taken(rows.evidence))
        if self._state_of is not None or "event_reward" in given or levels:
            return None
        if np.abs(reward[coarse]).max(initial=0) >= WHOLE:
            return None
        groups = len(rows.names.offset)

        def extremes(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
            np.fmin.at(least, group, numbers)
            np.fmax.at(most, group, numbers)
            return least[group], most[group]

        def told(reward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            advantage, reason, *_ = run(built_from_columns({**given, "reward": reward})[1])
            return np.asarray(advantage, np.float64)[rows.event], np.asarray(reason)

        least, most = extremes(reward)
        between = np.where(coarse, (reward - least) / np.where(coarse, most - least, 1), reward)
        # Not one amount for all: a mean over the batch would take that off.
        raised = between + np.where(coarse, (4 + np.arange(groups) * 37 % 64 / 16)[group], 0)
        (plain, why), (moved, other) = told(between), told(raised)
        low, high = extremes(plain)
        far = np.maximum(-low, high)
        most_off = KEPT * np.where(coarse, np.minimum(far, high - low), far)
        # A level of the size of a value, which swallows the raise, is far from 0 beside the differences in the group.
        alike = np.all(np.abs(plain - moved) <= most_off) and not np.any(coarse & (far > 4 * (high - low)))
        _, outcome, again = built_from_columns({**given, "reward": np.where(coarse, reward - least, reward)})
        return (outcome, again) if alike and np.array_equal(why, other) and not again.names.coarse else None

    def _of_names(self, graph: EventGraph, rows: RowNames) -> tuple[dict[str, Any], dict[str, int]]:
        """Arrays for what is stated by names of agents, or of roles with by="role_name"; and this batch's id of each.

        `initial` is `state`, float32 [A] by id: one number under the name "" for a method that carries one, whoever
        acts. Options that name agents are bool [A], the instances so called.
        """
        known = self.state or {}
        if known and (self._state_of is None or not isinstance(known, Mapping)):
            expected = "none: the method carries none" if self._state_of is None else "a mapping from names to numbers"
            raise CreditError(f"method {self.name!r} has the state {excerpt(known)}; expected {expected}")
        if self._state_of is None and not self._agents_named:
            return {}, {}
        roles = self._options.get("by") == "role_name"
        words = rows.team.roles if roles else rows.team.names
        arrays: dict[str, Any] = {
            option: pad_array(np.isin(words.to_pylist(), names), graph.num_agents)
            for option, names in self._agents_named.items()
        }
        if self._state_of is None:
            return arrays, {}
        for name, number in known.items():
            if not is_number(number) or not np.isfinite(number):
                raise CreditError(f"state of {name!r} is {excerpt(number)}; expected a finite number")
        if "by" not in inspect.signature(self._state_of).parameters:
            if known and "" not in known:
                raise CreditError(f"state names {', '.join(map(str, known))}; expected one number, under the name ''")
            return {**arrays, "initial": np.float32(known.get("", self._start))}, {"": 0}
        ids = np.asarray(graph.agent_role_ids if roles else graph.agent_name_ids)[: len(words)]
        numbers, first = np.unique(ids, return_index=True)
        names = words.take(pa.array(first)).to_pylist()
        initial = np.full(graph.num_agents, self._start, np.float32)
        initial[numbers] = [known.get(name, self._start) for name in names]
        return {**arrays, "initial": initial}, dict(zip(names, numbers.tolist(), strict=True))

    def _compiled(self, graph: EventGraph, evidence: Any, of_names: Any) -> Callable[..., Any]:
        """The method on a batch, a function of its outcomes."""
        import jax

        if self._program is None:
            facts = self._method, self._state_of, self._by is not None, self._facts.key, self._scaled
            # 1, 1.0 and True are equal, and other constants of a compiled function
            options = tuple((name, repr(option), option) for name, option in self._options.items())
            try:
                self._program = _program(*facts, options)
            except TypeError:  # what has no hash is shared with no other
                self._program = _program.__wrapped__(*facts, options)
        leaves, tree = jax.tree.flatten((graph, evidence, of_names))
        self._shapes.add((tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)))
        return functools.partial(self._program, graph, evidence=evidence, of_names=of_names)

    def _order(self, batch: Batch, *, stated: bool, places: np.ndarray | None) -> tuple[bool | None, str]:
        """`order_of_turns` where the method reads the order of rows, with what is wrong in words.

        Rows of one place stand in no order. Rewards count for all agents of it, where the method has it so; what else
        is read moves.
        """
        tied = places is not None and ties(batch.rows, places).any()
        reads = self._facts.reads_order["event_reward" in batch.columns]
        if not (bool(batch.evidence) if reads is None else reads):
            return True, ""
        ordered, falls = order_of_turns(batch.rows, batch.columns.get("turn"), stated=stated)
        rounds = rounds_at_once(batch.rows, places).read(*self._facts.reads_rounds["event_reward" in batch.columns])
        if rounds.said:
            return False, rounds.said
        return None if ordered and tied else ordered, falls and f"reads rows in the order of their trace, and {falls}"

    def _untold(
        self, batch: Batch, places: np.ndarray | None, moments: np.ndarray | None, take: np.ndarray | None
    ) -> str:
        """`untold_order` of the rows `take`, where the method reads the order of rows; else `said_of_gap`, where it
        adds up what they earned."""
        paid, turn = "event_reward" in batch.columns, batch.columns.get("turn")
        if not self._facts.reads_order[paid]:
            gap = said_of_gap(batch.rows, turn, moments, take) if paid else ""
            return f"adds up what the rows of a trace earned, and {gap}" if gap else ""
        of_agents = self._facts.reads_agents[paid]
        said = untold_order(batch.rows, turn, places, of_agents=of_agents, moments=moments, passed=take)
        return f"reads {said}" if said else ""

    def _numbers_rounds(self, batch: Batch, places: np.ndarray | None, falls: str) -> bool:
        """Whether the order of rows that act at once numbers them, and may be that in which they ended.

        An action that takes longer then chooses what it is compared with, and which later rewards it gets. Rows of
        several agents at one place of `order=` stand by their names instead, and where their turns fall, one of both is
        wrong.
        """
        facts = self._facts
        if places is not None:
            return bool(ties(batch.rows, places).any()) and (facts.reads_order[False] or bool(falls))
        reads = facts.reads_agents["event_reward" in batch.columns]
        return reads and untold_rounds(batch.rows, batch.columns.get("turn"))

    def _check_columns(
        self,
        batch: Batch,
        metrics: Mapping[str, float],
        traces: bool,
        falls: str,
        again: str,
        lost: int,
        copied: Copied,
        untold: str,
        merged: str,
        saw: str,
    ) -> None:
        """Warn of what the method compares and is absent, and of numbers that it takes for others.

        Every batch is looked at: a trainer may lose a column, or move rows, in a later one.

        Raises:
          CreditError: with `strict`, the first fault.
        """
        if not self._looked:
            return
        from estimators.base import Reason

        absent = alike_units(batch.graph, self._facts.columns, of_log="turn" in batch.columns)
        texts = {
            column: f"compares by the column {column!r}, which tells nothing apart here: {alike}"
            if column in batch.columns
            else f"needs the column {column!r}, and {alike}: {self.how_to_pass}"
            for column, alike in absent.items()
        }
        if self._facts.in_groups and metrics["credit/groups_of_one"] == 1:
            texts["lone"] = "compares the traces of a group, and every group of the batch has one trace"
        if self._facts.across and metrics.get("credit/keys_of_one") == 1:
            texts["keys"] = "compares rows by the key of `by`, and each key of the batch has one trace"
        if not traces and (parts := "turns" if "turn" in batch.columns else several_agents(batch)):
            texts["trace"] = f"got {parts} but no column 'trace', so each row counts as a trace of its own: pass trace="
        for option, names in self._agents_named.items():
            if not batch.of_names[option].any():
                texts[option] = f"has {option}={','.join(names)}, and no agent of the batch is called so"
        if merged:
            texts["merged"] = f"gets {merged}"
        elif falls:
            texts["order"] = falls
        rows = len(batch.rows.event)
        if unpaid := metrics.get("credit/unpaid", 0):
            texts["unpaid"] = f"adds 'event_reward', which is {counted_as_nothing(round(unpaid * rows), rows)}"
        if again:
            texts["again"] = f"gets the outcome again as 'event_reward' {again}, so it counts twice: leave that out"
        if copies := copied.twice or copied.untold:
            texts["copies"] = f"gets {copies}: leave them out, or pass where="
        if copied.filling:
            texts["copied"] = f"gets what seem copies: {copied.filling} pass where="
        if used := traces_used_again(batch):
            texts["used"] = (
                f"gets rows of several 'policy_version' in the first turn of {counted(used, 'trace')}: where ids are "
                "used again at each step, join the step to them"
            )
        if lost:
            texts["lost"] = (
                f"leaves out the 'event_reward' of {counted(lost, 'row')} with where=False, whose trace has other "
                "rows: where= is of padding, and rows that no trained policy decided have evidence={'trainable': 0}"
            )
        reason = batch.reason[:rows]
        said_alone = not texts.keys().isdisjoint(("lone", "keys"))
        if reason.all() and not said_alone:
            texts["refused"] = f"answers no row of the batch: {'; '.join(refusals(reason))}"
        outcome, numbers = batch.columns["reward"], rows if "every row" in again else metrics["credit/traces"]
        by_chance = {"again"} if numbers < SEVERAL or outcome.min() == outcome.max() else set()
        if self._strict is True and (faults := [text for kind, text in texts.items() if kind not in by_chance]):
            raise CreditError(f"method {self.name!r} {faults[0]}")
        without, alone = refusals(reason), int(compared_with_none(batch, self._facts).sum())
        without |= {NO_OTHER: alone} if alone else {}
        trained, idle = int(np.count_nonzero(reason != Reason.FROZEN)), sum(without.values())
        if not reason.all() and not said_alone and 2 * idle > trained:  # fewer are common, as groups of one trace
            most = max(without, key=lambda why: without[why])
            each = "; ".join(f"{why} ({counted(number, 'row')})" for why, number in without.items())
            of = f"only {trained - idle} of {counted(trained, 'trained row')}"
            texts[f"without {most}"] = f"{'compares' if alone else 'answers'} {of}: {each}"
        if untold:
            texts["untold"] = untold
        if saw:
            texts["saw"] = f"reads value, and {saw}"
        of_agents = np.nan_to_num(batch.columns.get("agent_reward", 0.0))
        if twice := np.count_nonzero((of_agents != 0) & (batch.columns["reward"] != 0)):
            often = f"both are other than 0 in {twice} of {counted(rows, 'row')}"
            advice = "pass a reward of 0 where the agents' own outcomes are all"
            texts["both"] = f"adds 'agent_reward' to 'reward', and {often}: {advice}"
        asked = "labels" not in self._told or self._strict == "warn"
        if asked and (alike := batch.rows.names.labels_alike()):
            texts["alike"] = f"compares {alike}, which are spelt almost alike, as several"
        self._told |= {"labels", "unscored"}  # one takes long to look for, the other is news where a run begins
        if self._unmet:
            texts["state"] = f"goes on from a state of {', '.join(self._unmet)}, and none of them acts in the batch"
        self._warn({kind: f"method {self.name!r} {text}" for kind, text in texts.items()}, stacklevel=4)

    def _warn(self, texts: Mapping[str, str], stacklevel: int) -> None:
        """Warn of each kind of fault once, or with `strict="warn"` in every batch."""
        for kind, text in texts.items() if self._looked else ():
            if self._strict == "warn" or kind not in self._told:
                warnings.warn(text, MissingColumnWarning, stacklevel=stacklevel)
            self._told.add(kind)

    def _check_evidence(self, evidence: Mapping[str, Any], columns: set[str]) -> None:
        from credit.methods.running import EVIDENCE
        from graphs.keys import evidence_of_key

        for name in evidence_of_key(self._by):
            if name in EVIDENCE and name not in {*evidence, *columns, "node"}:  # without nodes, all draws differ
                how = "policy_version=" if name == "policy_version" else f"evidence={{{name!r}: ...}}"
                where = f"pass {how}, and to warmup evidence=({name!r},)"
                raise CreditError(f"by names {name!r}, and the rows have no such column; {where}")
        passed = {*evidence, *self._options, *columns - {"policy_version"}}
        if "event_type" in {*evidence, *columns}:
            raise CreditError(
                "rows have no event_type: those that no trained policy decided, such as a tool's, have "
                "evidence={'trainable': 0}"
            )
        if twice := sorted({"reward", "group"} & {*evidence}):
            raise CreditError(f"{twice[0]} in evidence= would stand beside {twice[0]}=; expected one of them")
        if "bootstrap" in passed:
            raise CreditError(
                "rows have no bootstrap: add discount times the value of the state in which a trace was cut off to its "
                "reward, which gives the same advantages"
            )
        lacking = [name for name in self.needs if name not in passed]
        if lacking:
            raise CreditError(
                f"method {self.name!r} needs {', '.join(lacking)}; pass a column each in evidence=, by that name"
            )
        if self._accepts is not None and (foreign := sorted(passed - self._accepts - STRUCTURE - {"log_prob"})):
            known = "; `estimators.tokens` takes arrays of tokens" if set(TOKEN_COLUMNS).intersection(foreign) else ""
            raise CreditError(f"method {self.name!r} takes no {', '.join(foreign)}; leave the column out{known}")


def rows_advantage(
    method: str | Callable[..., Credit],
    group: Any,
    trace: Any,
    agent: Any,
    turn: Any,
    reward: Any,
    mask: Any = None,
    **columns: Any,
) -> tuple[Any, dict[str, float]]:
    """Advantages of a trainer's rows, and metrics: `RowAdvantages` as one call.

    Args:
      method: a name in `credit.METHODS`, or a method of your own.
      group, trace, agent, turn: ids of each row, [N]; `trace`, `agent` and `turn` may be None.
      reward: [N], the outcome of the row's trace, NaN where it has none.
      mask: [N, L], the tokens that the policy wrote.
      columns: the other columns of `RowAdvantages.__call__`.

    Returns:
      The advantages, [N] or [N, L], and the metrics. The compiled method is kept from call to call, and no state is.

    Examples:
      >>> import numpy as np
      >>> from credit.integrations import rows_advantage
      >>> reward = np.array([1.0, 1.0, 0.0])
      >>> rows_advantage("rloo", ["q", "q", "q"], ["a", "a", "b"], None, None, reward)[0].tolist()
      [1.0, 1.0, -1.0]
    """
    rows = _kept(method)
    rows.state = None
    result = rows(group=group, trace=trace, agent=agent, turn=turn, reward=reward, mask=mask, **columns)
    return result.advantages, result.metrics


@functools.lru_cache(maxsize=32)
def _kept(method: str | Callable[..., Credit]) -> RowAdvantages:
    return RowAdvantages(method)


@functools.lru_cache(maxsize=64)
def _program(
    method: Callable[..., Credit],
    state_of: Callable[..., Any] | None,
    by_stated: bool,
    key: tuple[str, ...],
    scaled: bool,
    options: tuple[tuple[str, str, Any], ...],
) -> Callable[..., Any]:
    """What runs on a batch, jitted: shared by all `RowAdvantages` of one method with the same options."""
    import jax
    import jax.numpy as jnp

    from graphs.keys import key_of, keyed

    @jax.jit
    def program(graph: EventGraph, reward: Any, evidence: Any, of_names: Any) -> tuple[Any, ...]:
        named = {**evidence, **{name: option for name, _, option in options}, **of_names}
        result, after = method(graph, reward, **named), None
        if state_of is not None:
            takes = inspect.signature(state_of).parameters
            after = state_of(graph, reward, **{name: named[name] for name in named if name in takes})
        by = evidence.get("by") if by_stated else key or None
        keys = None
        if by is not None:  # on the coarsest units, as the method does: numbering events takes as long as it
            of_units = keyed(graph, key_of(by))
            keys = jnp.where(of_units.mask, of_units.ids, -1)[of_units.of_event]
        advantage = result.advantage if scaled else result.credit - result.baseline
        difference = result.credit - result.baseline, result.own_outcome
        return advantage, result.reason, keys, after, difference

    return program


def _one_row_each(batch: Batch) -> str:
    """What is wrong where each trace has one row, and their turns differ; "" elsewhere. Steps may have ids of their
    own: each outcome is then in its own baseline."""
    at = numbers_of_turns(batch.rows, batch.columns.get("turn"))
    trace = np.asarray(batch.graph.trace_ids)[: len(batch.rows.event)]
    if at is None or len(np.unique(trace)) < len(trace) or len(np.unique(at)) < 2:
        return ""
    turns = f"{int(at.min())} to {int(at.max())}"
    return f"gets one row of each trace, though turns are {turns}: trace= is the rollout's id, not that of a step"


def _only_in(ids: Any, some: np.ndarray, others: np.ndarray) -> list[Any]:
    """The ids of some rows that no other rows have."""
    if not some.any():
        return []
    listed, met = (taken("group", ids, np.flatnonzero(rows)).tolist() for rows in (some, others))
    return [name for name in dict.fromkeys(listed) if name not in {None, *met}]


def _paid_again(batch: Batch) -> tuple[str] | tuple[()]:
    """Where event rewards are the outcomes, of `outcome_again`; nothing where the batch cannot show it."""
    outcome = batch.columns["reward"]
    if "event_reward" not in batch.columns or not outcome.any():
        return ()
    order = np.argsort(batch.rows.event)
    trace = np.asarray(batch.graph.trace_ids)[batch.rows.event[order]]
    columns = batch.columns["event_reward"][order], outcome[order], trace
    if where := outcome_again(*columns):
        return (where,)
    return () if outcome.min() == outcome.max() or may_be_outcome(*columns) else ("",)


def _of_nothing(graph: EventGraph, rows: Rows, advantage: Any, difference: Any, answered: np.ndarray) -> np.ndarray:
    """Groups of equal returns in which a method makes more of rounding, as one that divides by it: bool [groups]."""
    noise = rows.names.noise
    group = np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)[rows.event]]
    of_row, before, after = (np.asarray(numbers)[rows.event] for numbers in (answered, difference, advantage))
    made = of_row & (noise[group] > 0) & (np.abs(before) <= noise[group]) & (np.abs(after) > noise[group])
    found: np.ndarray = np.isin(np.arange(len(noise)), group[made])
    return found


_VERSION = TRACE_EVIDENCE["policy_version"]
_LABELS = ("agent", "role", "parent", "instance", "turn")
_FROM_COLUMNS = frozenset(("group", "trace", *_LABELS, "reward", "event_reward"))


def _beside(batch: Batch, n: int, order: Any, wrote: Any, log_ratio: Any, places: Any) -> dict[str, np.ndarray]:
    """What is known of the rows of a batch beside their labels and evidence, for `copied_rows`."""
    known = {name: batch.columns[name] for name in ("policy_version",) if name in batch.columns}
    if order is not None:
        known["order"] = np.unique(np.asarray(on_host(order)), return_inverse=True)[1][places]
        known["time"] = moments_of_places(order, np.arange(n)[places])
    if wrote is not None:
        known["tokens"] = np.asarray(on_host(wrote.sum(1)))[places]
    if log_ratio is not None:
        ratio = of_rows(log_ratio, (n,) if wrote is None else tuple(wrote.shape))[places]
        known["log_ratio"] = np.where(np.abs(ratio) < SAME, np.nan, ratio)  # of the policy that acted
    return known


def _words(names: Any) -> list[str]:
    """Names by commas, or in a list."""
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else [str(name) for name in names]


def _listed(column: Any) -> list[Any]:
    """A list a row, of lists or of an array [N, L]."""
    return [*(np.asarray(on_host(column)) if getattr(column, "ndim", 1) == 2 else column)]


def _is_label(name: str) -> bool:
    return name in EVENT_EVIDENCE and EVENT_EVIDENCE[name].kind == "id"


def _resolve(
    method: str | Callable[..., Credit], options: Mapping[str, Any]
) -> tuple[str, Callable[..., Credit], Facts, Callable[..., Any] | None]:
    if callable(method):
        name = getattr(method, "__name__", type(method).__name__)
        needs, columns = (tuple(getattr(method, of, ())) for of in ("needs", "columns"))
        given = {*options, *(["initial"] if hasattr(method, "state") else [])}
        required = (
            p.name
            for p in inspect.signature(method).parameters.values()
            if p.default is p.empty and p.kind is p.KEYWORD_ONLY
        )
        needs = needs or tuple(name for name in required if name not in given)
        facts = Facts({}, needs, columns, reads_order=("turn" in columns or None, True))
        return name, method, facts, getattr(method, "state", None)
    from credit.methods.published import find_method
    from graphs.keys import PARTS, names_of_key

    entry = find_method(method)
    if entry.reads_types:
        raise CreditError(
            f"{method!r} reads what each decision was from the types of events, which rows do not state; expected "
            "`credit.from_columns` with event_type, and the method on its graph"
        )
    key = names_of_key(entry.compared.key.replace(" ", "")) if "," in entry.compared.key else []
    of_graph = all(name in PARTS and not PARTS[name].evidence for name in key)
    of_method = entry.needs, entry.columns_with(options), entry.scope == "group", tuple(key) if of_graph else ()
    reads = [entry.reads_order(options, given) for given in ((), ("event_reward",))]
    of_agents = [entry.reads_order(options, given, of_agents=True) for given in ((), ("event_reward",))]
    of_rounds = [reads_rounds(entry, options, given) for given in ((), ("event_reward",))]
    unbiased = {} if ":" in method else _unbiased(entry, options)
    population = entry.given(options).get("population", "trace")
    facts = Facts(
        unbiased,
        *of_method,
        tuple(reads),
        population=population,
        reads_agents=tuple(of_agents),
        reads_rounds=tuple(of_rounds),
    )
    return method, entry.fn, facts, entry.state


def _unbiased(entry: Method, options: Mapping[str, Any]) -> dict[Seen, bool | None]:
    """Whether a method is unbiased by what is seen."""
    from credit.methods.method_row import Seen

    yes_or_no = (False, True)
    every = [Seen(*of) for of in itertools.product(yes_or_no, yes_or_no, yes_or_no, (None, False, True))]
    return {seen: entry.unbiased_with(options, seen)[0] for seen in every}


def _room(rows: int) -> int:
    from graphs.padding import Sizes, bucket

    return bucket(Sizes(rows, 0, rows, rows)).events
