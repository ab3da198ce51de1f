"""Outcomes of a trace of Langfuse: which of its scores are rewards, and of what."""

from __future__ import annotations

from graphs.formats.common.scores import Score, place_scores
from graphs.formats.common.span_tree import Span
from graphs.traces.record import TraceRecord

__all__ = ["set_rewards"]


def set_rewards(record: TraceRecord, spans: list[Span], scores: list[Score], are_all: bool) -> None:
    """Scores of the trace or its root are channels; those of a generation or a tool are rewards at that event.

    The only channel is the outcome too, if scores `are_all` at hand, and so is one named `reward`; which of several is
    meant, the user says.
    """
    place_scores(record, {span.id: span for span in spans}, scores, ("scores.value", "scores.observationId"))
    chosen = "reward" if "reward" in record.rewards else next(iter(record.rewards), "")
    if chosen and ((are_all and len(record.rewards) == 1) or chosen == "reward"):
        outcome = record.rewards[chosen]
        if record.rewards.setdefault("team", outcome) != outcome:
            expected = f"{outcome!r}, as the score 'reward' has, which is the outcome too"
            record.refuse("disagreeing-rewards", "scores.team", record.rewards["team"], expected)
