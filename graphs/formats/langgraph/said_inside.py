"""What the tasks of a sub-graph were given and gave, which the task around it repeats in its own result."""

from __future__ import annotations

from graphs.formats.langgraph.messages import RESULT, Message

__all__ = ["SaidInside"]


class SaidInside:
    """Messages of one sub-graph.

    A message may have no id yet in the result of an inner task and have one in that of the outer task, or be copied
    without its id. So it is told by the call that it answers, by the calls that it asks for, or by its content. Two
    messages of the same content with ids of their own are two.
    """

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._marks: dict[bytes | tuple[str | None, ...], bool] = {}  # whether it may be a message of any id

    def add(self, message: Message) -> None:
        """Note a message."""
        mark = _mark(message)
        if message.id:
            self._ids.add(message.id)
        self._marks[mark] = self._marks.get(mark, False) or not message.id or isinstance(mark, tuple)

    def has(self, message: Message) -> bool:
        """Whether it repeats one of them."""
        is_of_any_id = self._marks.get(_mark(message))
        return message.id in self._ids or bool(is_of_any_id) or (is_of_any_id is not None and not message.id)


def _mark(message: Message) -> bytes | tuple[str | None, ...]:
    if message.type in RESULT:
        return ("result", message.tool_call_id)
    if message.tool_calls:
        return ("calls", *(call.id for call in message.tool_calls))
    return bytes(message.content)
