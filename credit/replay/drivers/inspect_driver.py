"""Tasks of Inspect AI: a sample runs again, and the model calls before a decision are answered from its log.

    @task
    def quiz():
        tools = [declared(search(), "none"), declared(send(), "once")]
        return Task(dataset, solver=react(tools=tools), scorer=match())

    driver = InspectReplayer(quiz, ["logs/quiz.eval"])

No run is recorded beforehand: the log is the tape. Plans are made from it by `credit plan logs/quiz.eval`.
"""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import hashlib
import importlib
import json
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from credit.replay.drivers.call_tape import Answer, Effects, Session
from credit.replay.drivers.inspect_tape import MAIN, AgentSpans, SampleTape, asked, read_sample_tape
from credit.replay.replayer import Continuation, Prefix, PrefixError
from graphs.errors import CreditError, MissingExtraError
from graphs.readers import read
from graphs.text import excerpt

__all__ = ["InspectReplayer", "declared"]

_LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit")
_DECLARED = "credit.effects"
_READING = threading.Lock()
_ONE_AT_A_TIME = threading.Lock()  # Inspect refuses a second evaluation in a process while one runs


@dataclasses.dataclass
class _Run:
    """A run of a sample: its session with the tape, its seed, and what it has cost."""

    sample: SampleTape
    session: Session
    seed: int
    spans: AgentSpans = dataclasses.field(default_factory=AgentSpans)
    repeats: dict[str, bool] = dataclasses.field(
        default_factory=dict
    )  # by agent: its latest call was answered by the log
    tools: dict[str, int] = dataclasses.field(default_factory=dict)
    tokens: int = 0

    def agent(self) -> Any:
        """Who acts now."""
        log, util = _inspect("log"), _inspect("util")
        self.spans.follow(log.transcript().events)
        return self.spans.agent(util.current_span_id())


_RUN: contextvars.ContextVar[_Run | None] = contextvars.ContextVar("credit_inspect_run", default=None)


def declared(tool: Any, effects: Effects) -> Any:
    """A tool of Inspect that a replay may meet; outside of replays it is the tool itself.

    Args:
      tool: of Inspect.
      effects: "none" and "replayable": it runs again before the decision, and its answer must be the logged one.
        "once": the log answers before the decision, and the tool is refused afterwards.

    Returns:
      A tool of the same name, description and parameters.

    Raises:
      CreditError: another effect.
      MissingExtraError: Inspect is not installed.
    """
    if effects not in get_args(Effects):
        raise CreditError(f"effects is {effects!r}; expected {' or '.join(map(repr, get_args(Effects)))}")
    kinds = _inspect("tool")
    definition = kinds.ToolDef(tool)

    @functools.wraps(tool)
    async def call(*args: Any, **kwargs: Any) -> Any:
        run = _RUN.get()
        if run is None or effects != "once":
            return await tool(*args, **kwargs)
        path = run.agent().path or MAIN
        key = f"tool:{path}/{definition.name}"
        number = run.tools[key] = run.tools.get(key, -1) + 1
        logged = run.sample.tools.get(f"{key}/{number}") if run.repeats.get(path) else None
        if logged is None:
            run.session.refused = f"{key}/{number} must not be repeated, and the log has no answer to it"
            raise CreditError(run.session.refused)
        if logged.error:
            raise kinds.ToolError(logged.error)
        return logged.result

    wrapped = kinds.ToolDef(
        call,
        name=definition.name,
        description=definition.description,
        parameters=definition.parameters,
        parallel=definition.parallel,
        viewer=definition.viewer,
        model_input=definition.model_input,
        max_output=definition.max_output,
        options={**(definition.options or {}), _DECLARED: effects},
    )
    return wrapped.as_tool()


@dataclasses.dataclass(frozen=True)
class InspectReplayer:
    """A driver for tasks of Inspect AI. A forbidden agent is muted: each of its calls is answered by `mute`.

    `replace` and `mute` are what the model says: a text, or a JSON object with `content` and `tool_calls`, a list of
    objects with `function` and `arguments`. The configuration of the model and the limits of samples are the log's.

    Attributes:
      task: makes the task, such as a function decorated with `@task`.
      logs: the `.eval` or `.json` logs that plans are made from.
      model: answers calls after the prefix: a name, or a function that makes an `inspect_ai.model.Model`. Default: the
        model of the log, by its name.
      roles: the same for each model role of the log.
      score: the reward channel, as in `credit plan --reward`.
      effects: of tools that are not wrapped by `declared`, by name: "none" or "replayable", such as `submit` and
        hand-offs.
      mute: what a forbidden agent answers.
      options: further arguments of `inspect_ai.eval`, such as `max_samples` or `sandbox`.
      seconds: a run that takes longer has failed; None for no limit.
      at_once: runs of one decision in one evaluation; Inspect runs them side by side.
    """

    task: Callable[[], Any]
    logs: Sequence[str | Path]
    model: str | Callable[[], Any] = ""
    roles: Mapping[str, str | Callable[[], Any]] = dataclasses.field(default_factory=dict)
    score: str = "team"
    effects: Mapping[str, Effects] = dataclasses.field(default_factory=dict)
    mute: str = ""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seconds: int | None = None
    at_once: int = 16

    def __post_init__(self) -> None:
        for name, effects in self.effects.items():
            if effects not in ("none", "replayable"):
                raise CreditError(f"effects of {name!r} is {effects!r}; expected 'none' or 'replayable', or `declared`")

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> list[Continuation]:
        """Run the sample `n` times, with the seeds `seed`, `seed + 1`, …

        Raises:
          PrefixError: the prefix did not reproduce.
          Exception: a run failed.
        """
        outcomes = self.run_seeds(prefix, replace=replace, forbid=forbid, seeds=range(seed, seed + n))
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return outcomes  # type: ignore[return-value]

    def run_seeds(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), seeds: Sequence[int]
    ) -> list[Continuation | Exception]:
        """Run the sample once for each seed; a run that failed is an exception in its place.

        Raises:
          PrefixError: the prefix did not reproduce in one of the runs.
          CreditError: no such sample in the logs, or Inspect could not run it.
        """
        sample = self._sample(prefix.trace)
        calls = sample.prefix(prefix)
        runs: dict[int, _Run] = {}

        def start(epoch: int) -> _Run:
            session = Session(sample.tape, calls, replace=replace, forbid=forbid, mute=self.mute)
            session.effects.update(self.effects)
            runs[epoch] = _Run(sample, session, seeds[epoch - 1])
            return runs[epoch]

        with tempfile.TemporaryDirectory() as folder:
            log = self._evaluate(sample, len(seeds), folder, start)
            return [self._outcome(log, runs, epoch) for epoch in range(1, len(seeds) + 1)]

    def _evaluate(self, sample: SampleTape, epochs: int, folder: str, start: Callable[[int], _Run]) -> dict[int, Any]:
        """Samples of one evaluation by epoch, each with its return."""
        package, solvers, logs = _inspect(), _inspect("solver"), _inspect("log")

        def begin() -> Any:
            async def solve(state: Any, generate: Any) -> Any:
                _RUN.set(start(state.epoch))
                return state

            return solve

        made = self.task()
        setup = made.setup if isinstance(made.setup, list | tuple) else [made.setup] if made.setup else []
        header = sample.header
        limits = {name: getattr(header.eval.config, name) for name in _LIMITS}
        limits |= {"time_limit": self.seconds} if self.seconds is not None else {}
        settings = header.plan.config.model_dump(exclude_none=True, exclude={"seed"})
        given = {name: value for name, value in limits.items() if value is not None} | settings | dict(self.options)
        with _ONE_AT_A_TIME:
            [log] = package.eval(
                package.task_with(made, setup=[solvers.solver(begin)(), *setup]),
                model=_taped(self.model or header.eval.model),
                model_roles=self._roles(header),
                sample_id=sample.sample,
                epochs=epochs,
                log_dir=folder,
                log_format="json",
                display="none",
                fail_on_error=False,
                **given,
            )
        if log.status != "success":
            raise CreditError(f"Inspect ended with {log.status!r}: {log.error.message if log.error else ''}")
        whole = logs.read_eval_log(log.location)
        traces = read(log.location, reward=self.score)
        count = traces.sizes.traces
        earned = np.asarray(traces.reward)[:count].astype(np.float64)
        if "event_reward" in traces.evidence:
            steps = np.nan_to_num(np.asarray(traces.evidence["event_reward"].array)[: traces.sizes.events])
            np.add.at(earned, np.asarray(traces.graph.trace_ids)[: len(steps)], steps)
        rewards = dict(zip(traces.traces["trace"].to_pylist(), earned.tolist(), strict=True))
        ends = {name.rpartition("/")[2]: reward for name, reward in rewards.items()}
        return {one.epoch: (one, ends.get(str(one.epoch), float("nan"))) for one in whole.samples or ()}

    def _outcome(self, log: Mapping[int, Any], runs: Mapping[int, _Run], epoch: int) -> Continuation | Exception:
        """One run; an exception where it failed.

        Raises:
          PrefixError: it did not reproduce.
        """
        if epoch not in log or epoch not in runs:
            return CreditError(f"Inspect ran no sample {epoch}; expected one for each seed")
        sample, reward = log[epoch]
        run = runs[epoch]
        if sample.limit is not None and sample.limit.type == "time" and self.seconds is not None:
            return CreditError(f"no end after {self.seconds} s")
        if run.session.strayed or run.session.refused or not sample.error:
            try:
                run.session.finished()
            except PrefixError:
                raise
            except CreditError as error:
                return error
        if sample.error:
            return CreditError(f"Inspect: {sample.error.message}")
        if any(event.event == "model" and event.cache == "read" for event in sample.events):
            return CreditError("Inspect answered a call from its cache; expected a task without `cache`")
        if not np.isfinite(reward):
            return CreditError(f"the run has no score {self.score!r}; its scores are {excerpt(sample.scores)}")
        return Continuation(reward, run.session.chosen[:200], run.tokens)

    def _roles(self, header: Any) -> dict[str, Any]:
        logged = header.eval.model_roles or {}
        absent = sorted(logged.keys() - self.roles.keys())
        if absent:
            raise CreditError(f"the log has the model role {absent[0]!r}; expected a model for it in `roles`")
        return {role: _taped(model) for role, model in self.roles.items()}

    def _sample(self, trace: str) -> SampleTape:
        with _READING:
            if trace not in self._samples:
                self._samples[trace] = read_sample_tape(trace, self.logs)
            return self._samples[trace]

    @functools.cached_property
    def _samples(self) -> dict[str, SampleTape]:
        return {}


def _taped(model: str | Callable[[], Any]) -> Any:
    """A model of one's own whose calls in a run go through the run's session."""
    models = _inspect("model")
    made = models.get_model(model, memoize=False) if isinstance(model, str) else model()
    api, answer = made.api, made.api.generate

    async def generate(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        run = _RUN.get()
        agent = None if run is None else run.agent()
        if run is None or agent is None or agent.judge:
            return await _live(answer, run, input, tools, tool_choice, config)
        run.session.effects.update(
            (tool.name, tool.options[_DECLARED]) for tool in tools if _DECLARED in (tool.options or {})
        )
        run.session.check_tools(tool.name for tool in tools)
        path, request = agent.path or MAIN, asked(input)
        name, how = run.session.ask(
            path, request, name=agent.name, differs=lambda call: run.sample.difference(call, request)
        )
        run.repeats[path] = how.kind == "logged"
        if how.kind == "logged":
            result: Any = models.ModelOutput.model_validate(how.value)
        elif how.kind == "text":
            result = _message(how, str(made))
        else:
            seeded = config.model_copy(update={"seed": _seed(run.seed, name)})
            try:
                result = await _live(answer, run, input, tools, tool_choice, seeded)
            except BaseException:
                run.session.withdraw(path)
                raise
        output = result[0] if isinstance(result, tuple) else result
        if isinstance(output, Exception):
            run.session.withdraw(path)
        else:
            run.session.answered(name, path, request, None, _text(output), 0)
        return result

    api.generate = generate
    return made


async def _live(answer: Any, run: _Run | None, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
    result = await answer(input=input, tools=tools, tool_choice=tool_choice, config=config)
    output = result[0] if isinstance(result, tuple) else result
    if run is not None and getattr(output, "usage", None) is not None:
        run.tokens += output.usage.total_tokens
    return result


def _message(answer: Answer, model: str) -> Any:
    """What a model says in place of its own answer: a text, or content and tool calls as JSON."""
    models, tools = _inspect("model"), _inspect("tool")
    try:
        given = json.loads(answer.value)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given or given.keys() - {"content", "tool_calls"}:
        return models.ModelOutput.from_content(model, answer.value)
    calls = given.get("tool_calls") or []
    if not isinstance(calls, list) or not all(
        isinstance(c, dict) and isinstance(c.get("function"), str) for c in calls
    ):
        expected = "a list of objects with function and arguments"
        raise CreditError(f"tool_calls of a replacement is {excerpt(calls)}; expected {expected}")
    made = [
        tools.ToolCall(id=f"replaced-{number}", function=call["function"], arguments=call.get("arguments") or {})
        for number, call in enumerate(calls)
    ]
    said = models.ChatMessageAssistant(content=given.get("content") or "", tool_calls=made or None, model=model)
    choice = models.ChatCompletionChoice(message=said, stop_reason="tool_calls" if made else "stop")
    return models.ModelOutput(model=model, choices=[choice])


def _text(output: Any) -> str:
    """What was said or called."""
    if not output.choices:
        return ""
    message = output.choices[0].message
    calls = [f"{call.function}({json.dumps(call.arguments)})" for call in message.tool_calls or ()]
    return " ".join(filter(None, [message.text, *calls]))


def _seed(seed: int, call: str) -> int:
    """A seed for one call of a run, from 0 to 2³¹ − 1, as every provider takes it."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{call}".encode(), digest_size=4).digest(), "big") >> 1


def _inspect(part: str = "") -> Any:
    """Inspect, or a part of it.

    Raises:
      MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module(f"inspect_ai.{part}" if part else "inspect_ai")
    except ModuleNotFoundError as error:
        raise MissingExtraError("inspect-ai", "inspect-ai") from error
