"""The optional keys of the trace schema that methods use as evidence.

A key has the same name in the log, in `Traces.evidence` and as an argument of a method. The survey's schema allows
extra keys on events; this module lists the keys that the library reads. Each becomes an array with a mask
(`graphs.traces.evidence.Evidence`), per event [E] or per trace [T]. `docs/data-model.md` explains the keys; `credit
schema` prints the JSON Schema.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

__all__ = [
    "EVENT_EVIDENCE",
    "FLAGS",
    "FLOAT_RANGE",
    "LARGEST_COUNT",
    "LARGEST_FLOAT",
    "LIKE_OUTCOMES",
    "ROUNDING",
    "SCHEMA_VERSION",
    "TEXT_COLUMNS",
    "TRACE_EVIDENCE",
    "EvidenceKey",
    "Range",
    "json_schema",
]

SCHEMA_VERSION = "1.0"
"""Version of the extension. A file without `schema_version` has the survey's own form, which is readable too."""


LARGEST_FLOAT = 3.4028234663852886e38
"""Greatest finite float32."""

LARGEST_COUNT = 2**31 - 1
"""Greatest int32."""

FLOAT_RANGE = f"a number between -{LARGEST_FLOAT:.1e} and {LARGEST_FLOAT:.1e}"

ROUNDING = 0.01
"""By which a probability may be above 1, and its logarithm above 0: trainers compute in half precision."""


class Range(NamedTuple):
    """The least and the greatest number that evidence may be, and the same for people, after "expected"."""

    least: float
    most: float
    words: str


_ANY = Range(-LARGEST_FLOAT, LARGEST_FLOAT, FLOAT_RANGE)
_COUNT = Range(0, LARGEST_COUNT, f"a count, at most {LARGEST_COUNT}")
_FRACTION = Range(0, 1 + ROUNDING, "a number from 0 to 1")
_LOG_PROB = Range(-LARGEST_FLOAT, ROUNDING, "the logarithm of a probability, 0 or less")
_NOT_NEGATIVE = Range(0, LARGEST_FLOAT, "a number, 0 or more")


@dataclasses.dataclass(frozen=True, slots=True)
class EvidenceKey:
    """The kind and meaning of an evidence key, and how to log it.

    `kind` is "float", "count" (an integer, 0 or more) or "id" (a string that is compared for equality only, and stored
    as a dense integer). A number beyond `within` is refused where it is read.

    Ids of one key are numbered for themselves. `ids_of` names the key whose ids these are, so that both are numbered
    together and a method can ask whether one equals the other.
    """

    kind: Literal["float", "count", "id"]
    meaning: str
    how_to_log: str
    bounds: Range = _ANY
    ids_of: str = ""

    @property
    def within(self) -> Range:
        """The range of the numbers; of an id, it means nothing."""
        return _COUNT if self.kind == "count" else self.bounds


EVENT_EVIDENCE: dict[str, EvidenceKey] = {
    "event_reward": EvidenceKey(
        "float",
        "reward that arrives at this event: a step penalty, a process reward",
        'add "event_reward": NUMBER to the event; never repeat the outcome there',
    ),
    "agent_reward": EvidenceKey(
        "float",
        "outcome of the agent instance's own trace, one number for each instance; the trace's outcome is another",
        'add "agent_reward": NUMBER to an event of the instance, say its last; never repeat the outcome there',
    ),
    "value": EvidenceKey(
        "float",
        "value of the state before the event: the outcome and the rewards at this event and later ones, as expected",
        'add "value": NUMBER to the event when a critic scored the prefix',
    ),
    "log_prob": EvidenceKey(
        "float",
        "log-probability of the action under the policy that acted",
        'add "log_prob": NUMBER: the sum of the sampled tokens\' log-probabilities',
        _LOG_PROB,
    ),
    "propensity": EvidenceKey(
        "float",
        "probability with which the policy chose this action among its alternatives",
        'add "propensity": NUMBER in (0, 1) to the event that decides',
        _FRACTION,
    ),
    "stop_propensity": EvidenceKey(
        "float",
        "probability with which the policy would have stopped at this action, whatever it chose; the type of the event "
        "states what it chose",
        'add "stop_propensity": NUMBER in (0, 1) to every action that stopped or could have',
        _FRACTION,
    ),
    "spawn_propensity": EvidenceKey(
        "float",
        "probability with which the policy would have spawned at this action, whatever it chose; the type of the event "
        "states what it chose",
        'add "spawn_propensity": NUMBER in (0, 1) to every action that spawned or could have',
        _FRACTION,
    ),
    "context": EvidenceKey(
        "id",
        "the frozen context the action was sampled in; its traces are siblings that continued from one prefix, unless "
        "their earlier actions have nodes or alternatives, which then decide",
        'add "context": STRING, an id of the frozen prefix, equal only in traces that were continued from it, and at '
        "the actions of a joint turn",
    ),
    "sibling_parent": EvidenceKey(
        "id",
        "the node of a replay tree that alternatives branch from",
        'add "sibling_parent": STRING, the id of the event that was replayed',
    ),
    "node": EvidenceKey(
        "id",
        "one draw of a choice; events with one node are this very draw, met in several traces that continued from it",
        'add "node": STRING, an id of this very draw, equal only in traces that were continued from it',
    ),
    "alternative": EvidenceKey(
        "id",
        "what was chosen in a context; draws that chose alike share it, and without a node each is a draw of its own",
        'add "alternative": STRING, a name of what was chosen, equal in all traces of the context that chose it',
    ),
    "q_value": EvidenceKey(
        "float",
        "a critic's value of the action in its context",
        'add "q_value": NUMBER when a critic scored the prefix together with the action',
    ),
    "target_propensity": EvidenceKey(
        "float",
        "probability with which the target policy would have chosen this action",
        'add "target_propensity": NUMBER beside "propensity", from the policy that is to be judged',
        _FRACTION,
    ),
    "target_support": EvidenceKey(
        "float",
        "the target policy's mass on the alternatives that the policy that acted could choose",
        'add "target_support": 1 where the policy that acted sampled without truncation, else the mass it left',
        _FRACTION,
    ),
    "target_value": EvidenceKey(
        "float",
        "mean of the critic's q_value over all alternatives under the target policy",
        'add "target_value": NUMBER beside "q_value", from the same critic',
    ),
    "completion": EvidenceKey(
        "id",
        "what the agent contributed to a joint turn that was made of all combinations",
        'add "completion": STRING, the same in every joint turn that contains this completion',
    ),
    "anchor": EvidenceKey(
        "id",
        "the observation that the action answered; equal anchors of a task are compared",
        'add "anchor": STRING, a hash of the observation the agent acted on',
    ),
    "next_anchor": EvidenceKey(
        "id",
        "the observation that the action led to; where it is left out, the anchor of the trace's next action",
        'add "next_anchor": STRING to an action whose observation no action answers, such as the last of a trace',
        ids_of="anchor",
    ),
    "key": EvidenceKey(
        "id",
        "a key of the log's own, such as a shift or a curriculum; actions of one key are compared by `by=key`",
        'add "key": STRING to the event; of a table, any column is the key: --columns key=COLUMN',
    ),
    "own_number": EvidenceKey(
        "float",
        "a number of the log's own, which methods of your own take as `own_number`; no other method reads it",
        'add "own_number": NUMBER to the event; of a table, any column is it: --columns own_number=COLUMN',
    ),
    "proposal": EvidenceKey(
        "id",
        "the proposal that the action works on, such as a design or a question; equal proposals are compared",
        'add "proposal": STRING to the events that work on a proposal, not to the one that makes it',
    ),
    "segment": EvidenceKey(
        "id",
        "the part of the trace that one decision of a higher level covers, such as a delegation or a sub-goal",
        'add "segment": STRING to every action, equal from one switch up to the next',
    ),
    "value_high": EvidenceKey(
        "float",
        "value of the state before the event for the higher level, which decides at the first action of a segment",
        'add "value_high": NUMBER to the first action of each segment, beside "value"',
    ),
    "hindsight_log_prob": EvidenceKey(
        "float",
        "mean log-probability of the action's tokens under the policy that is shown how the trace ended",
        'add "hindsight_log_prob": NUMBER: score the sampled tokens again with the final state in the prompt',
        _LOG_PROB,
    ),
    "self_rating": EvidenceKey(
        "float",
        "share of the team's credit or blame that the agent claims for itself, in [0, 1]",
        'add "self_rating": NUMBER in [0, 1] to an action of each agent: ask each how the outcome is to be split',
        _FRACTION,
    ),
    "is_valid": EvidenceKey(
        "float",
        "1 where the environment could carry out the action, 0 where it was malformed or not allowed",
        'add "is_valid": true or false to the action',
    ),
    "env_step": EvidenceKey(
        "count",
        "step of the environment; actions of several agents may share one",
        'add "env_step": COUNT, the index of the environment step, to every action',
    ),
    "env_reward": EvidenceKey(
        "float",
        "reward of the whole environment step, repeated at its actions; enters no return of a trace",
        'add "env_reward": NUMBER to every action of the environment step',
    ),
    "format_score": EvidenceKey(
        "float",
        "format score of what an agent instance wrote, one number for each instance",
        'add "format_score": NUMBER to an event of the instance, say its last',
    ),
    "counterfactual_reward": EvidenceKey(
        "float",
        "return of the trace with this one decision replaced by a fixed action and everything after it run again",
        'add "counterfactual_reward": NUMBER to the event that decides, event rewards included, from such a run',
    ),
    "solo_reward": EvidenceKey(
        "float",
        "return of a run of the task without this agent, one number for each trace",
        'run the task again without one agent and add "solo_reward": NUMBER to an action of that agent',
    ),
    "share": EvidenceKey(
        "float",
        "Shapley share of the agent instance, in units of reward, solved from evaluated coalitions",
        'evaluate coalitions (`credit shapley plan`, your runs, `credit shapley solve`) and add "share": NUMBER to the '
        "actions of the instance",
    ),
    "share_stderr": EvidenceKey(
        "float",
        "standard error of share",
        'add "share_stderr": NUMBER beside "share"',
        _NOT_NEGATIVE,
    ),
    "replays": EvidenceKey(
        "count",
        "number of runs that value or counterfactual_reward is the mean of",
        'add "replays": COUNT beside it, as `credit replay` does',
    ),
    "replay_stderr": EvidenceKey(
        "float",
        "standard error of the mean of these runs",
        'add "replay_stderr": NUMBER beside "replays"',
        _NOT_NEGATIVE,
    ),
    "block": EvidenceKey(
        "id",
        "the trainer's block that a sub-agent's trajectory fell into",
        'add "block": STRING to the events of the sub-agent, equal for what was normalised together',
    ),
    "tokens": EvidenceKey(
        "count",
        "tokens that the action generated, counted once",
        'add "tokens": COUNT of output tokens to the model call, or "token_ids" with "token_mask"',
    ),
    "input_tokens": EvidenceKey(
        "count",
        "tokens that the model call read",
        'add "input_tokens": COUNT to the model call',
    ),
    "cached_tokens": EvidenceKey(
        "count",
        "tokens of input_tokens that the model call read from a cache",
        'add "cached_tokens": COUNT beside "input_tokens"',
    ),
    "cache_write_tokens": EvidenceKey(
        "count",
        "tokens of input_tokens that the model call wrote to a cache",
        'add "cache_write_tokens": COUNT beside "input_tokens"',
    ),
    "seconds": EvidenceKey(
        "float",
        "seconds that the event took as the log states it, from its time on",
        'add "seconds": NUMBER to the model call where its time is that of its begin',
        _NOT_NEGATIVE,
    ),
    "money": EvidenceKey(
        "float",
        "what the model call cost as the log states it, in the log's currency",
        'add "money": NUMBER to the model call',
        _NOT_NEGATIVE,
    ),
    "trainable": EvidenceKey(
        "float",
        "1 where the policy that acted is being trained, 0 for a frozen agent, such as a judge or a fixed sub-agent",
        'add "trainable": true or false to every action',
    ),
    "stage": EvidenceKey(
        "count",
        "stage of a staged execution (one main step and the sub-agents it runs in parallel)",
        'add "stage": COUNT, the index of the stage, to every event',
    ),
    "attack_vector": EvidenceKey(
        "count",
        "number of the way by which an attack could enter here, as a survey numbers AV1 to AV8; for reports only",
        'add "attack_vector": COUNT to the untrusted events',
    ),
    "blamed": EvidenceKey(
        "float",
        "1 at the step that people blame for the failure, else 0; for evaluation only",
        'add "blamed": 1 to that event and "blamed": 0 to the others',
    ),
    "blamed_agent": EvidenceKey(
        "float",
        "1 at the events of the agent that people blame for the failure, else 0; for evaluation only",
        'add "blamed_agent": 1 to the events of that agent and "blamed_agent": 0 to the others',
    ),
}

TRACE_EVIDENCE: dict[str, EvidenceKey] = {
    "tree": EvidenceKey(
        "count",
        "number of the sampling tree that the trace is a leaf of",
        'add "tree": COUNT to the trace\'s "evidence" object, equal for the leaves of one tree',
    ),
    "greedy_reward": EvidenceKey(
        "float",
        "reward of a separate greedy run on the same task (ReMax)",
        'add "greedy_reward": NUMBER to the trace\'s "evidence" object',
    ),
    "policy_version": EvidenceKey(
        "count",
        "version of the policy that generated the trace, or began to; asynchronous trainers mix versions in a batch",
        'add "policy_version": COUNT to the trace\'s "evidence" object',
    ),
}

FLAGS = frozenset({"trainable", "is_valid", "blamed", "blamed_agent"})
"""Evidence of events that is 1 or 0, which logs may also state as true or false."""

LIKE_OUTCOMES = frozenset(
    {
        "value",
        "q_value",
        "target_value",
        "value_high",
        "counterfactual_reward",
        "solo_reward",
        "greedy_reward",
        "agent_reward",
    }
)
"""Evidence in the unit of outcomes, which methods subtract from these, or from each other."""

TEXT_COLUMNS = ("from", "to", "tool", "content_ref", "status", "model", "requested_model")
"""Strings of an event that are kept for display; methods do not use them."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a trace in the native format, extension included."""
    path = Path(__file__).parent / "schemas" / "orchestration-trace.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema
