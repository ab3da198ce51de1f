"""Log formats, a module or a folder each; `common` has what several of them share: teams, chats and span trees.

A format is a module with three names, and a row in `FORMATS`:

    sniff(head: bytes) -> bool                        whether a file that begins so is of this format
    read(sources) -> Iterator[TraceRecord | Problem]  its traces, and why others cannot be read
    RECORDS                                           structs of its records; their keys give hints for unknown files

`graphs.logs` applies the rules for damaged records and for copies of runs to whatever `read` yields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from graphs.reading.find import Owned
from graphs.reading.stated_ids import TraceKeys

if TYPE_CHECKING:
    from graphs.reading.damage import Holds

__all__ = ["FORMATS", "GROWING", "STATES_ERRORS", "Format"]


class Format(NamedTuple):
    """A row of `FORMATS`.

    Attributes:
      module: the module that reads the format.
      about: what it is, for help texts.
      holds: "traces", a record (a line, an element of a list, a whole file) is a whole trace; "session", a file is one
        trace; "parts", a trace may be spread over records. It decides which traces a record that cannot be read
        refuses (`graphs.reading.damage`). "parts" refuses most, and is right for every format.
      states: the keys at which a record of "parts" states its trace; without them every id in it may be its own.
      owns: folders in which its harness lets an agent write, and the files below them that are logs.
    """

    module: str
    about: str
    holds: Holds = "parts"
    owns: tuple[Owned, ...] = ()
    states: TraceKeys = TraceKeys()


def _row(
    module: str,
    about: str,
    holds: Holds = "parts",
    owns: tuple[Owned, ...] = (),
    states: TraceKeys = TraceKeys(),  # noqa: B008  # it is immutable
) -> Format:
    return Format(f"graphs.formats.{module}", about, holds, owns, states)


_REQUESTS = tuple(
    f"{of}{signal}" for of in ("resource", "scope", "instrumentationLibrary") for signal in ("Spans", "Logs")
)


# Harbor 0.26 (models/trial/paths.py): the agent's container mounts agent/, verifier/ and artifacts/ of a trial. Its
# agents write agent/trajectory.json, Terminus 2 continues it in files of the two other names; a trial of several steps
# moves agent/ into steps/NAME/.
_TRAJECTORIES = ("trajectory.json", "trajectory.cont-*.json", "trajectory.summarization-*.json")
_TRIAL = (
    *("result*.json", "config.json", *_TRAJECTORIES),
    *(f"{folder}/{name}" for folder in ("agent", "steps/*/agent") for name in _TRAJECTORIES),
)

FORMATS: dict[str, Format] = {
    "native": _row("native", "the survey's orchestration-trace JSON, extended: one trace a line or a file", "traces"),
    "tau-bench": _row("tau_bench", "tau-bench result files: a JSON list of runs", "traces"),
    "claude-code": _row(
        "claude_code",
        "Claude Code session files, sub-agents inline or in files of their own",
        "session",
        # Claude Code keeps long results of tools there, too.
        owns=(Owned("*.jsonl", ("subagents/agent-*.jsonl", "subagents/agent-*.meta.json"), "{stem}"),),
    ),
    "openai-agents": _row(
        "openai_agents",
        "exports of the OpenAI Agents SDK: traces and spans",
        states=TraceKeys(("trace_id",), ("traces", "spans", "data")),
    ),
    "inspect-ai": _row("inspect_ai", "logs of Inspect AI: .json and .eval", "traces"),
    "agent-lightning": _row(
        "agent_lightning",
        "rollouts of Agent Lightning: events of v1, spans of v0.1 to v0.3",
        states=TraceKeys(("rollout_id",), ()),
    ),
    "langsmith": _row("langsmith", "run trees of LangSmith", states=TraceKeys(("trace_id",), ("runs", "child_runs"))),
    "weave": _row(
        "weave", "calls of W&B Weave, with the examples of its evaluations", states=TraceKeys(("trace_id",), ())
    ),
    "braintrust": _row(
        "braintrust",
        "spans of Braintrust: logs and experiments",
        states=TraceKeys(("root_span_id",), ("events", "data")),
    ),
    "atif": _row("atif", "ATIF trajectories, sub-agents nested or in files of their own", "traces"),
    "who-and-when": _row(
        "who_and_when", "runs of Who&When with the blamed agent and step, for evaluation only", "traces"
    ),
    "verifiers": _row("verifiers", "rollouts of verifiers and prime-rl: episodes of v1, older results.jsonl", "traces"),
    "rollouts": _row("rollouts", "rollout dumps: verl, TRL, SkyRL, NeMo-RL, NeMo Gym, tinker-cookbook", "traces"),
    "art": _row("art", "trajectories of ART: groups with a reward for each trajectory", "traces"),
    "rllm": _row("rllm", "episodes of rLLM: trajectories of agents, with a reward each", "traces"),
    "tau2-bench": _row(
        "tau2_bench", "results of tau2-bench: simulations of an agent and a user, both with tools", "traces"
    ),
    "langfuse": _row(
        "langfuse",
        "exports of Langfuse: traces with observations, pages of its API",
        states=TraceKeys(("traceId",), ("trace", "observations", "scores", "data")),
    ),
    "openhands": _row(
        "openhands",
        "OpenHands: output.jsonl and event streams",
        "session",
        # The resolver of 0.62 mounts workspace/ISSUE into the agent's container, a copy of repo/.
        owns=(Owned("output.jsonl", (), "workspace"), Owned("output.jsonl", (), "repo")),
    ),
    "openhands-sdk": _row("openhands_sdk", "conversations of OpenHands' SDK: an event a file, or a line", "session"),
    "swe-agent": _row(
        "swe_agent",
        "trajectories of SWE-agent and mini-swe-agent, with results and predictions beside them",
        # SWE-agent 1.1 writes INSTANCE/INSTANCE.traj; results and predictions lie one folder above.
        owns=(Owned("{folder}.traj", ("{folder}.traj",)),),
    ),
    "codex": _row("codex", "rollouts of Codex CLI", "session"),
    "gemini-cli": _row("gemini_cli", "sessions of Gemini CLI, sub-agents in files of their own", "session"),
    "cline": _row("cline", "sessions of Cline, sub-agents in files of their own", "session"),
    "copilot-cli": _row("copilot_cli", "sessions of GitHub Copilot CLI", "session"),
    "opencode": _row("opencode", "exported sessions of opencode, sub-agents in exports of their own", "session"),
    "harbor": _row(
        "harbor",
        "job folders of Harbor and Terminal-Bench: trajectories with tasks and rewards",
        "traces",
        owns=(
            Owned("result.json", _TRIAL, keys=frozenset({"task_name", "trial_name"})),
            Owned("config.json", _TRIAL, keys=frozenset({"trial_name", "task", "agent"})),
        ),
    ),
    "autogen": _row("autogen", "runs of AutoGen's AgentChat, Magentic-One among them", "session"),
    "langgraph": _row("langgraph", "runs of LangGraph: debug streams, with sub-graphs or without, and checkpoints"),
    "adk": _row("adk", "Google ADK: sessions, and results of evaluations", "traces"),
    "otlp": _row(
        "otlp",
        "OTLP JSON with OTel-GenAI or OpenInference attributes, spans and logs",
        states=TraceKeys(("traceId",), (*_REQUESTS, "spans", "logRecords")),
    ),
    "spans": _row(
        "span_dumps",
        "OpenTelemetry spans outside OTLP: SDK dumps, Phoenix, any-agent, Strands, MLflow",
        states=TraceKeys(("trace_id", "context.trace_id"), ("traces", "trace", "spans", "data", "context", "info")),
    ),
    "table": _row("table", "rows of a trainer: CSV, JSONL or Parquet with a column map (--columns)"),
}
"""Formats by name, in the order in which they are tried."""

GROWING = frozenset(("claude-code", "codex", "gemini-cli", "copilot-cli"))
"""Formats whose files grow by lines and state their session: what another file begins with is its older backup."""

STATES_ERRORS = frozenset(
    ("claude-code", "codex", "cline", "copilot-cli", "gemini-cli", "opencode", "openhands", "openhands-sdk", "adk",
     "tau2-bench", "autogen", "langgraph", "otlp", "spans", "langfuse", "langsmith", "openai-agents", "weave",
     "braintrust", "inspect-ai")
)  # fmt: skip
"""Formats in which a tool that failed has a status, so that a trace without any had no error."""
