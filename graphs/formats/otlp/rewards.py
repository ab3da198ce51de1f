"""Where evaluations go: to reward channels of the trace, or to the action that a span's evaluation is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from graphs.errors import Problem, TraceError
from graphs.formats.otlp.dialects import Kind
from graphs.formats.otlp.drafts import Draft
from graphs.formats.otlp.evaluations import Evaluation
from graphs.formats.otlp.tree import Tree
from graphs.text import excerpt

__all__ = ["place_evaluations"]

STEP = "event_reward"
"""Name of the evaluation that is a step's reward where spans are evaluated under several names."""


def place_evaluations(
    tree: Tree, drafts: list[Draft], emitted_by: dict[int, int], evaluations: Sequence[Evaluation]
) -> tuple[dict[str, float], dict[int, float]]:
    """Reward channels of the trace, and step rewards by position.

    An evaluation of a root span, or of no span, is the trace's; its channel is its name, "team" for "reward". Any other
    is a step reward of the evaluated span's action: its model call; for a tool call the call that emitted it; for
    an agent, and for whatever has no action of its own, the last action inside. Rewards of one action from several
    spans add up. One evaluation found several times counts once.

    Raises:
      TraceError: kinds "disagreeing-rewards", "ambiguous-event-reward", "unknown-span", "unplaced-evaluation".
    """
    if not evaluations:
        return {}, {}
    channels: dict[str, Evaluation] = {}
    steps: dict[tuple[str, str, str], Evaluation] = {}  # (span, event id, name)
    for evaluation in evaluations:
        span = evaluation.span or _responding(tree, evaluation)
        if span and span not in tree.spans:
            _refuse(tree, evaluation, "unknown-span", "spanId", span, "the id of a span of this trace")
        if evaluation.event or (span and tree.parent[span]):
            _once(tree, steps, (span, evaluation.event, evaluation.name), evaluation)
        else:
            channel = "team" if evaluation.name == "reward" else evaluation.name
            _once(tree, channels, evaluation.channel or channel, evaluation)
    rewards = {channel: evaluation.score for channel, evaluation in channels.items()}
    return rewards, _step_rewards(tree, drafts, emitted_by, steps)


def _once(tree: Tree, first_of: dict[Any, Evaluation], key: Any, evaluation: Evaluation) -> None:
    first = first_of.setdefault(key, evaluation)
    if first.score != evaluation.score:
        expected = f"{first.score!r}, as in {first.place.file}:{first.place.line}, or another name"
        _refuse(tree, evaluation, "disagreeing-rewards", evaluation.name, evaluation.score, expected)


def _responding(tree: Tree, evaluation: Evaluation) -> str:
    """The span of the model call whose response an evaluation names in place of a span."""
    if not evaluation.response_id:
        return ""
    span_ids = [s.id for s in tree.spans.values() if s.meaning.response_id == evaluation.response_id]
    if len(span_ids) != 1:
        expected = f"the response of one model call of this trace, not of {len(span_ids)}"
        _refuse(tree, evaluation, "unknown-span", "gen_ai.response.id", evaluation.response_id, expected)
    return span_ids[0]


def _step_rewards(
    tree: Tree, drafts: list[Draft], emitted_by: dict[int, int], steps: dict[tuple[str, str, str], Evaluation]
) -> dict[int, float]:
    names = {name for _, _, name in steps}
    name = STEP if STEP in names else next(iter(names), "")
    if len(names) > 1 and STEP not in names:
        last = list(steps.values())[-1]
        listed = ", ".join(sorted(names))
        expected = f"one name, or {STEP!r} for the one that is the step's reward; there are {listed}"
        _refuse(tree, last, "ambiguous-event-reward", "gen_ai.evaluation.name", last.name, expected)
    by_id = {draft.id: i for i, draft in enumerate(drafts)}
    by_span: dict[str, list[int]] = {}
    for i, draft in enumerate(drafts):
        by_span.setdefault(draft.span.id, []).append(i)
    rewards: dict[int, float] = {}
    for (span, event, given), evaluation in steps.items():
        if given != name:
            continue
        position = by_id.get(event) if event else _action_of(tree, drafts, emitted_by, by_span, span)
        if position is None:
            expected = "an event of this trace" if event else "a span that holds an action"
            _refuse(tree, evaluation, "unplaced-evaluation", "spanId", event or span, expected)
        rewards[position] = rewards.get(position, 0.0) + evaluation.score
    return rewards


def _action_of(
    tree: Tree, drafts: list[Draft], emitted_by: dict[int, int], by_span: dict[str, list[int]], span: str
) -> int | None:
    own = [
        i if drafts[i].action else emitted_by[i] for i in by_span.get(span, ()) if drafts[i].action or i in emitted_by
    ]
    if own and tree.kind[span] is not Kind.AGENT:
        return own[0]
    inside = [i for below in _below(tree, span) for i in by_span.get(below, ()) if drafts[i].action]
    return max(inside, default=own[0] if own else None)


def _below(tree: Tree, span: str) -> Iterable[str]:
    waiting = list(tree.children[span])
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(tree.children[current])


def _refuse(tree: Tree, evaluation: Evaluation, kind: str, field: str, value: object, expected: str) -> NoReturn:
    file, line, _ = evaluation.place
    raise TraceError(Problem(kind, file, line, field, excerpt(value), expected, tree.trace))
