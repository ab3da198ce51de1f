"""A small log of each format, as its own project writes it: recorded, or shortened by hand from what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

RECORDINGS = Path(__file__).parents[2] / "recordings"


class Sample(NamedTuple):
    """A log: the format, the name of its file, the JSON values in it, and whether it is one value or one a line."""

    format: str
    file: str
    values: list[Any]
    lines: bool = True

    @property
    def text(self) -> str:
        """The file's content."""
        if self.lines:
            return "".join(json.dumps(value) + "\n" for value in self.values)
        return json.dumps(self.values[0], indent=1)

    def write(self, folder: Path) -> Path:
        path = folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text)
        return path


def recorded(name: str) -> list[Any]:
    return [json.loads(line) for line in (RECORDINGS / name).read_text().splitlines()]


RESULT = {
    "example_id": 3,
    "prompt": [{"role": "user", "content": "1+1?"}],
    "completion": [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "add"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "2"},
        {"role": "assistant", "content": "2"},
    ],
    "answer": "2",
    "info": {},
    "reward": 1.0,
    "error": None,
    "is_completed": True,
    "metrics": {"exact": 1.0},
}

SAMPLES: dict[str, Sample] = {
    "verifiers": Sample("verifiers", "traces.jsonl", recorded("verifiers_episodes.jsonl")),
    "verifiers results": Sample("verifiers", "results.jsonl", [RESULT, RESULT]),
}
