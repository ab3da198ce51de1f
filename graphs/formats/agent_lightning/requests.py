"""Events of Agent Lightning v1: each model request that went through the gateway is a call.

There is no agent in an event. Requests of one model with one system prompt are of one agent, named after both (the
prompt by a digest), so that the name is the same in every rollout; a prompt that differs from task to task makes a
different name for each.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Annotated, Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.earlier_outcomes import place_earlier
from graphs.formats.common.input_tokens import ChatUsage, call_counts
from graphs.formats.common.order_of_time import Moment, order_of_time, refuse_untimed
from graphs.formats.common.team import Team
from graphs.reading.decode import decode
from graphs.reading.documents import Document
from graphs.reading.files import canonical, name_models
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, TraceRecord

__all__ = ["Event", "place_rewards", "write_requests"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_LogProb = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]
_SYSTEM = ("system", "developer")


class _Function(msgspec.Struct):
    name: str


class _ToolCall(msgspec.Struct):
    id: str
    function: _Function


class _Reply(msgspec.Struct):
    tool_calls: list[_ToolCall] | None = None


class _Token(msgspec.Struct):
    logprob: _LogProb


class _LogProbs(msgspec.Struct):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct):
    message: _Reply | None = None
    finish_reason: Any = None
    logprobs: _LogProbs | None = None


class _Response(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: ChatUsage | None = None


class _Message(msgspec.Struct):
    role: str
    content: msgspec.Raw = msgspec.Raw(b"null")
    tool_call_id: str | None = None


class _Request(msgspec.Struct):
    messages: list[_Message] | None = None


class _ModelRequest(msgspec.Struct):
    model: Annotated[str, msgspec.Meta(min_length=1)]
    request: _Request
    response: _Response
    status: str = "ok"
    usage: ChatUsage | None = None


class _Reward(msgspec.Struct):
    value: float
    source: str | None = None


class Event(msgspec.Struct):
    """An event of the gateway."""

    rollout_id: str
    event_type: str
    attempt_id: str | None = None
    timestamp: float | None = None
    data: msgspec.Raw = msgspec.Raw(b"{}")


_EVENT = msgspec.json.Decoder(Event)
_MODEL_REQUEST = msgspec.json.Decoder(_ModelRequest)
_REWARD = msgspec.json.Decoder(_Reward)


def write_requests(record: TraceRecord, documents: list[Document]) -> None:
    """Fill the record with the events of an attempt, in the order of their times. A sole reward needs none.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`; "unordered-events".
    """
    trace = record.trace_id
    events = [decode(_EVENT, raw, file=place.file, line=place.line, trace=trace) for raw, place in documents]
    moments = [Moment(event.timestamp, place) for event, (_, place) in zip(events, documents, strict=True)]
    stated = {
        number: decode(_REWARD, event.data, file=place.file, line=place.line, field="data", trace=trace)
        for number, (event, (_, place)) in enumerate(zip(events, documents, strict=True))
        if event.event_type == "reward"
    }
    amounts = {number: reward.value for number, reward in stated.items() if reward.source != "fallback"}
    sole = list(amounts) if len(amounts) == 1 else []
    told = [n for n, event in enumerate(events) if event.event_type == "model_request" or (n in amounts and not sole)]
    rewards_of = {position for position, n in enumerate(told) if n in amounts}
    order = [told[position] for position in order_of_time([moments[n] for n in told], trace, "timestamp", rewards_of)]
    team = Team(record)
    asked: dict[str, tuple[int, str, str]] = {}  # tool call id -> position, agent, tool, until its result is seen
    rewards: list[_TimedReward] = []
    call: int | None = None
    for index, number in enumerate([*order, *sole]):
        event, moment = events[number], moments[number]
        place = moment.place
        if number in amounts:
            rewards.append(_TimedReward(amounts[number], call, moment))
            continue
        data = decode(_MODEL_REQUEST, event.data, file=place.file, line=place.line, field="data", trace=trace)
        failed, choices = data.status != "ok", data.response.choices or []
        if not (failed or choices):
            continue
        agent, time = _agent(data), float("nan") if event.timestamp is None else event.timestamp
        team.agent(agent, agent)
        for message in data.request.messages or []:
            if message.role == "tool" and message.tool_call_id in asked:
                position, caller, tool = asked.pop(message.tool_call_id)
                team.result(caller, f"{index}/{message.tool_call_id}.result", place, answers=position, tool=tool)
        counts, unlike = call_counts(data.usage, data.response.usage)
        record.unlike_counts += [(unlike, place)] if unlike else []
        evidence = counts | _log_probs(data)
        chosen = _Choice() if failed or not choices else choices[0]
        call = team.call(
            agent, str(index), place, time=time, model=data.model or None, stopped=chosen.finish_reason,
            status="error" if failed else None, **evidence,
        )  # fmt: skip
        reply = chosen.message
        for tool_call in (reply.tool_calls if reply else None) or []:
            name, event_id = tool_call.function.name, f"{index}/{tool_call.id}"
            asked[tool_call.id] = team.tool_call(agent, event_id, place, call=call, tool=name), agent, name
    ordered = _in_order(rewards, moments, record)
    for before, after in itertools.pairwise(order):
        late, early = moments[after], moments[before]
        is_tie = late.time == early.time and late.place.file != early.place.file
        are_unsettled = "team" in record.unsettled and before in amounts and after in amounts
        if is_tie and events[after] != events[before] and not are_unsettled:
            refuse_untimed(late.time, late.place, early.place, trace, "timestamp")
    team.finish()
    name_models(record)
    place_rewards(record, [("reward", reward.amount, reward.call) for reward in ordered])


class _TimedReward(NamedTuple):
    """The amount of a reward, the latest call before it in the order of the events, and when it came."""

    amount: float
    call: int | None
    moment: Moment


def _in_order(rewards: list[_TimedReward], moments: list[Moment], record: TraceRecord) -> list[_TimedReward]:
    """The rewards in the order of their own times, so that the last one is the outcome.

    Where a reward has no time they keep the order of the events, which then are of one file, and the times of the
    others have to agree with it. An event without a time, which leaves all events in the order of the file, says
    nothing against the times of rewards.

    Args:
      rewards: in the order of the events.
      moments: of all events.
      record: whose outcome is unsettled where two are the last at once.

    Raises:
      TraceError: "unordered-events", a reward has no time, and those of others contradict the order of the events.
    """
    untimed = next((reward.moment for reward in rewards if reward.moment.known is None), None)
    if untimed is None:
        rewards = sorted(rewards, key=lambda reward: reward.moment.known or 0.0)
    else:
        _refuse_unordered(rewards, untimed, record.trace_id)
    _unsettle_tied(rewards, moments, record)
    return rewards


def _refuse_unordered(rewards: list[_TimedReward], untimed: Moment, trace: str) -> None:
    """Refuse rewards of which neither times nor the order of the log tell the last."""
    timed = [reward.moment for reward in rewards if reward.moment.known is not None]
    for before, after in itertools.pairwise(timed):
        if (after.known or 0.0) < (before.known or 0.0):
            file, line = untimed.place.file, untimed.place.line
            expected = f"a time: the reward in {after.place.file}, line {after.place.line}, comes after that of line "
            expected += f"{before.place.line} and has an earlier time, so nothing tells which reward is the last"
            shown = "absent" if untimed.time is None else excerpt(untimed.time)
            raise TraceError(Problem("unordered-events", file, line, "timestamp", shown, expected, trace))


def _unsettle_tied(rewards: list[_TimedReward], moments: list[Moment], record: TraceRecord) -> None:
    """Unsettle the outcome where two of the ordered rewards are the last at once.

    One writer that gives all its events one time orders them by line.
    """
    if not rewards or rewards[-1].moment.known is None:
        return
    last, end = rewards[-1], rewards[-1].moment
    is_one_time = len({moment.known for moment in moments} - {None}) == 1
    for amount, _, moment in rewards[:-1]:
        if moment.time != end.time or amount == last.amount or (is_one_time and moment.place.file == end.place.file):
            continue
        expected = f"{amount!r}, as in {moment.place.file}, line {moment.place.line}, or another timestamp: the last "
        expected += f"reward is the outcome, and both have the timestamp {end.time!r}"
        record.unsettle("team", "data.value", repr(last.amount), expected, end.place)


def place_rewards(record: TraceRecord, rewards: list[tuple[str, float, int | None]]) -> None:
    """Write the last amount as the outcome. An earlier one of its name states it at an earlier moment.

    Earlier ones of other names are rewards at the call before them. Those before any call belong to no event; they are
    the channel "early".

    Args:
      record: with its events.
      rewards: names and amounts in order, each with the position of the latest call before it.
    """
    if not rewards:
        return
    *before, (outcome, last, _) = rewards
    record.state_reward("team", last, "reward")
    if "team" not in record.unsettled:  # else nothing says which is the earlier one
        earlier = [(-1 if i is None else i, amount) for name, amount, i in before if name == outcome]
        place_earlier(record, outcome, earlier)
    for name, amount, position in before:
        if name != outcome and position is None:
            record.rewards["early"] = record.rewards.get("early", 0.0) + amount
        elif name != outcome and position is not None:
            record.add_reward(position, amount)


def _agent(data: _ModelRequest) -> str:
    prompt = next((canonical(m.content) for m in data.request.messages or [] if m.role in _SYSTEM), None)
    if prompt is None:
        return data.model
    return f"{data.model}/{hashlib.blake2b(prompt, digest_size=4).hexdigest()}"


def _log_probs(data: _ModelRequest) -> dict[str, Any]:
    logprobs = data.response.choices[0].logprobs if data.response.choices else None
    tokens = logprobs.content if logprobs else None
    return {
        "log_prob": sum(token.logprob for token in tokens) if tokens else None,
        "token_log_probs": [token.logprob for token in tokens] if tokens else None,
    }
