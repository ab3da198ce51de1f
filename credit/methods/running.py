"""`run`: a method on what was read, with its evidence taken from the log and its options checked."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.methods.absent_outcomes import found_instead, no_outcome, spoilt_rows
from credit.methods.own_results import check_type
from credit.methods.published import find_method
from credit.reports.own_outcomes import adds_outcomes, has_agent_outcomes, of_agents
from credit.reports.trace_returns import outweighed, precision_note, precision_notes
from credit.tables.batch_rows import Rows, as_traces
from estimators.options import checked_options, takes_key
from graphs.argument_kinds import checked_kinds, hints_of
from graphs.errors import CreditError, MissingColumnWarning, PrecisionWarning, UnusedRewardsWarning
from graphs.invariants import validate_ids
from graphs.keys import evidence_of_key, key_of
from graphs.padding import pad_array
from graphs.text import counted, excerpt
from graphs.traces.batch import Traces
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

if TYPE_CHECKING:
    from credit.methods.method_row import Method
    from estimators.base import Credit

__all__ = [
    "EVIDENCE",
    "Request",
    "did_you_mean",
    "expect_outcomes",
    "has_outcomes",
    "implied",
    "keywords_of",
    "missing_evidence",
    "optional_evidence",
    "rewarded",
    "run",
    "run_part",
    "unused_rewards",
    "with_key",
]


_ALWAYS = ("event_reward", "node")
"""Evidence that a method is given wherever the log has it: without it the numbers would be of another log."""

EVIDENCE = {**EVENT_EVIDENCE, **TRACE_EVIDENCE}
"""Every key of evidence that a log can hold, per event and per trace."""


@checked_kinds("method")
def run(
    traces: Traces | Rows,
    method: str | Method | Callable[..., Credit],
    *,
    evidence: Iterable[str] = (),
    **arguments: Any,
) -> Credit:
    """Compute a method's credit for traces that were read.

    The evidence that the method needs comes from the log, converted to the arrays that methods take: NaN or -1 where
    the log has none. Rewards at events are passed where the log has them, and so are outcomes of agents: methods that
    compare by a key then compare agents of one name on the task, unless `by` or `population` says otherwise. Where more
    traces have an outcome of the trace, methods that compare traces leave those of agents alone out. Missing
    evidence and options outside their bounds are refused by name.

    Args:
      traces: what `credit.read` returns, or the `Rows` of `credit.from_columns`.
      method: a name (`credit methods` lists them), an entry of `credit.METHODS`, or your own function
        `fn(graph, reward, *, event_reward=None, ...) -> Credit`. Of your own function, keyword-only parameters without
        a default are evidence that it needs: keys of `graphs.traces.schema.EVENT_EVIDENCE`, among them `own_number`,
        a number of your own; or others, which you pass as arrays.
      evidence: names of further evidence to take from the log, which the method can do without.
      **arguments: options of the method, such as `lambda_=0.0`, and arrays that replace evidence of the log, such as
        `value=values`: in the order of events, as those of `Rows.evidence`, which is not that of a trainer's rows.

    Returns:
      The method's `Credit`, arrays over the events of `traces.graph`, [E].

    Warns:
      PrecisionWarning: single precision, in which methods compute, changes differences of outcomes of a group by over
        1 %, or those between outcomes and values.
      MissingColumnWarning: nothing tells apart the agents, spawns or turns by which the method compares, or in which
        order agents or rows acted, where it reads it.
      UnusedRewardsWarning: the log has rewards at events, and the method counts outcomes alone.

    Raises:
      CreditError: no trace has an outcome; the method is unknown; the log lacks evidence that it needs; it has no such
        option, or refuses the option's value; an array has a number for each row, whose events stand in another order.

    Examples:
      >>> import credit, json, pathlib, tempfile
      >>> event = {"id": "e", "type": "message", "agent": "solver", "value": 0.25}
      >>> logs = [{"trace_id": str(i), "task_id": "q", "events": [event], "rewards": {"team": i}} for i in range(2)]
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     log = pathlib.Path(folder, "log.jsonl")
      ...     _ = log.write_text("\\n".join(map(json.dumps, logs)))
      ...     traces = credit.read(log)
      >>> credit.run(traces, "gae", lambda_=0.0).advantage[:2].tolist()
      [-0.25, 0.75]
      >>> credit.run(traces, "gae", lambda_=7)
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: gae: lambda_ is 7; expected a number from 0 to 1
    """
    rows, traces = traces if isinstance(traces, Rows) else None, as_traces(traces)
    expect_outcomes(traces)
    if rows is not None:
        _refuse_row_order(rows, arguments, {*EVENT_EVIDENCE, *Request.of(method).needs} - TRACE_EVIDENCE.keys())
    credit, taken = _computed(traces, method, evidence, arguments)
    taken = taken if rows is None else rows.known(taken)
    results = credit.credit - credit.baseline, credit.valid
    small = outweighed(traces.graph, traces.reward, taken, *results, own_outcome=credit.own_outcome)
    if rows is None:
        notes = precision_notes(traces, small)
    else:  # `credit.from_columns` has warned of the others
        new = np.flatnonzero(small & ~rows.names.rounded)
        notes = [precision_note([str(name) for name in rows.names.groups.take(new).to_pylist()])] if len(new) else []
    for note in notes:
        warnings.warn(note, PrecisionWarning, stacklevel=3)
    for words in _what_is_missing(traces, method, arguments, rows):
        warnings.warn(words, MissingColumnWarning, stacklevel=3)
        if rows is not None:
            rows.names.told.add(words)
    unused = unused_rewards(method, rewarded(traces), own_outcome=credit.own_outcome)
    if unused and "event_reward" not in arguments:
        warnings.warn(unused, UnusedRewardsWarning, stacklevel=3)
        credit = dataclasses.replace(credit, unpaid=False)  # it was said
    return credit


def _what_is_missing(
    traces: Traces, method: str | Method | Callable[..., Credit], options: Mapping[str, Any], rows: Rows | None
) -> list[str]:
    """What is said of columns by which a method compares and which tell nothing apart, and of an order untold."""
    from credit.methods.method_row import Method
    from credit.missing_columns import missing_in_log, missing_in_rows

    known, name = find_method(method) if isinstance(method, str) else method, Request.of(method).name
    if not isinstance(known, Method):
        return []
    if rows is None:
        return missing_in_log(traces, name, known, options)
    return missing_in_rows(rows.names, rows.evidence, name, known, options)


def rewarded(traces: Traces) -> int:
    """How many events have a reward other than 0.

    Args:
      traces: a batch.
    """
    steps = traces.evidence.get("event_reward")
    return 0 if steps is None else int(np.sum(steps.mask & (np.abs(np.where(steps.mask, steps.array, 0)) > 0)))


def unused_rewards(method: str | Method | Callable[..., Credit], events: int, *, own_outcome: bool) -> str:
    """What is said where so many events have a reward, and a method that counts outcomes takes none; else "".

    Examples:
      >>> def mine(graph, reward): ...
      >>> unused_rewards(mine, 2, own_outcome=True)
      'event_reward of 2 events is not used: mine counts outcomes alone, without a keyword-only event_reward'
      >>> unused_rewards("rloo", 2, own_outcome=True)
      ''
    """
    request = Request.of(method)
    if not (events and own_outcome and request.outcome_alone):
        return ""
    why = "" if "event_reward" in request.takes else ", without a keyword-only event_reward"
    return f"event_reward of {counted(events, 'event')} is not used: {request.name} counts outcomes alone{why}"


def run_part(
    traces: Traces,
    method: str | Method | Callable[..., Credit],
    *,
    evidence: Iterable[str] = (),
    **arguments: Any,
) -> Credit:
    """Compute a method's credit for a part of what was read, whose traces may all be without an outcome.

    Args:
      traces: some whole groups of what was read.
      method: a name in `credit.METHODS`, an entry of it, or a function
        `fn(graph, reward, *, event_reward=None, ...) -> Credit`.
      evidence: names of further evidence to take from the log, which the method can do without.
      **arguments: options of the method, and arrays that replace evidence of the log.

    Returns:
      The method's `Credit`, arrays over the events of `traces.graph`, [E].

    Raises:
      CreditError: the method is unknown; the log lacks evidence that it needs; it has no such option, or refuses the
        option's value.
    """
    return _computed(traces, method, evidence, arguments)[0]


def _refuse_row_order(rows: Rows, arguments: Mapping[str, Any], of_events: Collection[str]) -> None:
    """Refuse arrays of these names that may be in the order of rows, where that is not the order of events."""
    count = len(rows.event)
    moved = rows.events != count or not np.array_equal(rows.event, np.arange(count))
    for name in arguments.keys() & {*of_events} if moved else ():
        array = arguments[name]
        if getattr(array, "shape", ()) == (count,) and not any(array is known for known in rows.evidence.values()):
            own = name if name in EVENT_EVIDENCE else "own_number"
            raise CreditError(
                f"{name} has {count} numbers, one for each row, and a method takes one for each of {rows.events}"
                f" events, in their order; pass it to credit.from_columns, as evidence={{{own!r}: ...}}"
            )


def _computed(
    traces: Traces,
    method: str | Method | Callable[..., Credit],
    evidence: Iterable[str],
    arguments: Mapping[str, Any],
) -> tuple[Credit, dict[str, Any]]:
    """The credit, and the evidence that the method was given."""
    validate_ids(traces.graph)
    request = Request.of(method)
    request.check_names(arguments)
    given = {name: array for name, array in arguments.items() if name in {*EVIDENCE, *request.needs}}
    arrays = request.arrays(traces, evidence, given)
    options = {name: value for name, value in arguments.items() if name not in arrays}
    try:
        keyed = with_key(request.fn, traces, options, arrays)
        result = request.fn(traces.graph, traces.reward, **arrays, **keyed)
        check_type(f"method {request.name!r}", result)
        return result, arrays
    except ValueError as error:
        names_method = str(error).startswith((f"{request.name}: ", f"method {request.name!r}"))
        if isinstance(error, CreditError) and (names_method or type(error) is not CreditError):
            raise
        raise CreditError(f"method {request.name!r}: {error}") from error


def did_you_mean(name: str, options: Iterable[str]) -> str:
    """The end of a message about an unknown option; an abbreviation is nearer than similar letters.

    Args:
      name: that is unknown.
      options: that are known.

    Examples:
      >>> did_you_mean("epsilon", ["eps", "singleton"]), did_you_mean("x", ["eps"])
      ('; did you mean eps?', '')
    """
    known = list(options)
    near = [option for option in known if option.startswith(name) or name.startswith(option)]
    near = near or difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


@dataclasses.dataclass(frozen=True)
class Request:
    """A method to run: its name for messages, its function, the evidence that it needs, and its arguments.

    Attributes:
      name: as the caller wrote it.
      fn: the function, which checks its options.
      needs: evidence that it cannot do without.
      takes: all its keyword-only parameters.
      outcome_alone: whether it leaves out rewards at events, or cannot be given any.
    """

    name: str
    fn: Callable[..., Credit]
    needs: tuple[str, ...]
    takes: tuple[str, ...]
    outcome_alone: bool

    @classmethod
    def of(cls, method: str | Method | Callable[..., Credit]) -> Request:
        """From a name, a `Method`, or a function.

        Raises:
          CreditError: no such name, or something else.
        """
        from credit.methods.method_row import Method

        if isinstance(method, str | Method):
            known = find_method(method) if isinstance(method, str) else method
            name, takes = method if isinstance(method, str) else _name(known.fn), keywords_of(known.fn)
            return cls(name, known.fn, known.needs, takes, known.outcome_alone or "event_reward" not in takes)
        if not callable(method):
            raise CreditError(f"method is {method!r}; expected a name, a Method, or a function that returns Credit")
        try:
            parameters = inspect.signature(method).parameters
        except ValueError as error:  # such as `int`, which states no parameters
            raise CreditError(f"method is {excerpt(method)}; expected a function that returns Credit") from error
        takes = keywords_of(method)
        needs = tuple(name for name in takes if parameters[name].default is inspect.Parameter.empty)
        return cls(_name(method), checked_options(method), needs, takes, "event_reward" not in takes)

    def check_names(self, arguments: Iterable[str]) -> None:
        """Refuse arguments that the method does not take.

        Raises:
          CreditError: with the options that it has.
        """
        for name in arguments:
            if name not in self.takes:
                options = [option for option in self.takes if option not in EVIDENCE and option not in self.needs]
                takes = ", ".join(options) or "none"
                hint = did_you_mean(name, options)
                raise CreditError(f"method {self.name!r} has no option {name!r}; its options are: {takes}{hint}")

    def check_evidence(self, names: Iterable[str]) -> None:
        """Refuse evidence that the method does not take.

        Raises:
          CreditError: with the evidence that it takes.
        """
        takes = [name for name in self.takes if name in EVIDENCE]
        for name in names:
            if name not in takes:
                raise CreditError(
                    f"method {self.name!r} takes no evidence {name!r}; it takes: {', '.join(takes) or 'none'}"
                )

    def arrays(self, traces: Traces, also: Iterable[str], replaced: Mapping[str, Any]) -> dict[str, Any]:
        """The evidence of a call: what the method needs, `also`, event rewards and nodes.

        `replaced` takes the place of what the log has under its names.

        Raises:
          CreditError: the method does not take it, or the log lacks it. The message states how to log it.
        """
        self.check_evidence(also)
        wanted = dict.fromkeys(name for name in (*self.needs, *also) if name not in replaced)
        lacking = missing_evidence(traces, wanted)
        if lacking:
            how = "; ".join(f"{name!r}: {text}" for name, text in lacking.items())
            raise CreditError(f"method {self.name!r} needs evidence that the log does not have. {how}")
        wanted |= dict.fromkeys(name for name in _ALWAYS if name in traces.evidence and name in self.takes)
        own = "agent_reward" in self.takes and not _compares_traces(self.fn)  # nothing is switched by the odd traces
        paid = bool(of_agents(traces).any()) if own else has_agent_outcomes(traces)
        if "agent_reward" not in {*wanted, *replaced} and paid:
            if "agent_reward" not in self.takes:
                raise CreditError(
                    f"method {self.name!r} does not pay agents outcomes of their own, and the log has agent_reward; "
                    "expected a method that takes agent_reward, such as hierarchical_grpo, or the reward of one agent "
                    "as the outcome of all (--reward-channel NAME)"
                )
            if adds_outcomes(traces):
                raise CreditError(
                    f"method {self.name!r}: the log has outcomes of traces and of agents; expected "
                    "evidence=['agent_reward'] (--evidence agent_reward), which adds them, or agent_reward=None"
                )
            wanted["agent_reward"] = None
        return {name: _array_of(traces, name) for name in wanted} | dict(replaced)


def optional_evidence(method: str) -> tuple[str, ...]:
    """The evidence that a method takes only where a call names it, since its numbers are others then.

    Examples:
      >>> optional_evidence("reinforce_pp"), optional_evidence("rloo")
      (('tokens',), ())
    """
    request = Request.of(method)
    left = {*request.needs, *_ALWAYS, "agent_reward"}
    return tuple(name for name in request.takes if name in EVIDENCE and name not in left)


def _array_of(traces: Traces, name: str) -> np.ndarray:
    """Evidence as methods take it: a batch has ids and counts of traces as floats, with NaN where there is none."""
    found, known = traces.evidence[name], TRACE_EVIDENCE.get(name)
    if known is None or known.kind == "float":
        return found.array
    return np.where(found.mask, found.array, -1).astype(np.int32)


def with_key(
    fn: Callable[..., Any], traces: Traces, options: Mapping[str, Any], arrays: Mapping[str, Any]
) -> dict[str, Any]:
    """Options of a method in which `by` has the ids that the log states, and names of agents are instances: bool [A].

    Outcomes of agents are no samples of traces: unless `by` or `population` is stated, agents of one name are compared.

    Args:
      fn: the method.
      traces: what was read.
      options: as the caller states them.
      arrays: evidence that the method is given.

    Raises:
      CreditError: `by` or an option names what the log does not have.
    """
    options = dict(options) | {
        name: _instances(traces, name, options[name], by_role=options.get("by") == "role_name")
        for name, hint in hints_of(fn).items()
        if "AgentNames" in hint.kinds and isinstance(options.get(name), str | list | tuple)
    }
    if not takes_key(fn):
        return options
    options = implied(fn, options, of_agents=arrays.get("agent_reward") is not None)
    if "by" not in options:
        return options
    ids: dict[str, np.ndarray] = {}
    for name, found in traces.evidence.items():
        known = EVIDENCE.get(name)
        if known is not None and known.kind != "float":
            fraction = found.mask & (
                np.floor(np.where(found.mask, found.array, 0)) < np.where(found.mask, found.array, 0)
            )
            if fraction.any() and name in evidence_of_key(options["by"]):
                raise CreditError(
                    f"{name} is {found.array[np.argmax(fraction)]}; expected integers, which by= compares"
                )
            # Evidence of traces is float64, with NaN where there is none.
            ids[name] = np.where(found.mask, found.array, -1).astype(np.int64)
    models = traces.traces["model"].combine_chunks()
    if models.null_count < len(models):
        codes = models.dictionary_encode().indices.fill_null(-1).to_numpy()
        ids["model"] = pad_array(codes, traces.graph.num_traces, -1)
    stated = {name: array for name, array in ids.items() if (array >= 0).any()}
    return dict(options) | {"by": key_of(options["by"], stated)}


def implied(fn: Callable[..., Any], options: Mapping[str, Any], *, of_agents: bool) -> dict[str, Any]:
    """Options of a method that compares by a key, with those that outcomes of agents bring where neither is stated.

    Args:
      fn: of the method.
      options: that are stated.
      of_agents: whether outcomes are of agents.

    Examples:
      >>> import credit
      >>> implied(credit.rloo, {}, of_agents=True)
      {'by': 'task,agent', 'population': 'agent'}
    """
    unstated = of_agents and _compares_traces(fn) and not {"by", "population"} & options.keys()
    return {**options, **({"by": "task,agent", "population": "agent"} if unstated else {})}


def _compares_traces(fn: Callable[..., Any]) -> bool:
    """Whether a method compares traces unless an option says otherwise."""
    population = inspect.signature(fn).parameters.get("population")
    return population is not None and population.default == "trace"


def _instances(traces: Traces, option: str, names: str | Sequence[Any], *, by_role: bool) -> np.ndarray:
    """The agent instances of these names, or of these roles: bool [A]."""
    column = "role" if by_role else "name"
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    known = traces.agents[column].to_pylist()
    for name in wanted:
        if name not in known:
            shown = ", ".join(sorted(set(known))[:8])
            hint = did_you_mean(str(name), set(known))
            raise CreditError(
                f"{option} names {excerpt(name)}; expected a {column} of agents of the log: {shown}{hint}"
            )
    return pad_array(np.isin(known, wanted), traces.graph.num_agents)


def has_outcomes(traces: Traces) -> bool:
    """Whether any trace or agent has an outcome, without which no action has credit.

    Args:
      traces: a batch.
    """
    scored = np.isfinite(np.asarray(traces.reward)[: traces.sizes.traces])
    return bool(np.any(scored | of_agents(traces)))


def expect_outcomes(traces: Traces) -> None:
    """Refuse traces without a single outcome.

    Raises:
      CreditError: no trace has an outcome. The message states what was found instead, and how to pass outcomes.
    """
    if not has_outcomes(traces):
        raise without_outcomes(traces)


def without_outcomes(traces: Traces) -> CreditError:
    """The refusal of traces without a single outcome."""
    return no_outcome([spoilt_rows(traces.problems), found_instead(traces)])


def missing_evidence(traces: Traces, needs: Iterable[str]) -> dict[str, str]:
    """The evidence among `needs` that the log has nowhere, each with how to log it.

    Args:
      traces: what was read.
      needs: names of evidence, such as "value".

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> missing_evidence(rows.traces, ["value"])
      {'value': 'add "value": NUMBER to the event when a critic scored the prefix'}
    """
    lacking = [name for name in needs if name not in traces.evidence or not traces.evidence[name].mask.any()]
    return {name: EVIDENCE[name].how_to_log if name in EVIDENCE else _HOW_TO_PASS.format(name) for name in lacking}


_HOW_TO_PASS = "logs have no such key: call it own_number, which any column may be, or pass {}=ARRAY, a number an event"


def keywords_of(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a method's keyword-only parameters: its evidence and its options.

    Args:
      fn: of a method.

    Examples:
      >>> import credit
      >>> keywords_of(credit.rloo)
      ('event_reward', 'agent_reward', 'by', 'population', 'singleton', 'filters')
    """
    parameters = inspect.signature(fn).parameters
    return tuple(name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY)


def _name(fn: Callable[..., Any]) -> str:
    while hasattr(fn, "func"):
        fn = fn.func
    return getattr(fn, "__name__", type(fn).__name__)
