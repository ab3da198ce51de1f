"""Records a team with the official Inspect AI around its mock model: an agent as a tool, a hand-off, two epochs.

    python tests/recordings/record_inspect_ai.py FILE.eval

The model is a table of answers, so counts never change. Made with
inspect_ai 0.3.285.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.agent import as_tool, handoff, react
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, match, mean, scorer
from inspect_ai.tool import tool

MODEL = "mockllm/model"


@tool
def look() -> Any:
    async def execute(q: str) -> str:
        """Look something up.

        Args:
          q: what.
        """
        return "found"

    return execute


@scorer(metrics={"*": [mean()]})
def style() -> Any:
    async def score(state: Any, target: Any) -> Score:
        return Score(value={"form": 0.5, "polite": True})

    return score


def answer(tokens: tuple[int, int], *asked: tuple[str, dict[str, str]], text: str = "") -> ModelOutput:
    """An answer of the model: tokens in and out, and the tools it asks for, or a text."""
    output = ModelOutput.from_content(MODEL, text)
    if asked:
        parts = [ModelOutput.for_tool_call(MODEL, *one) for one in asked]
        output = parts[0]
        for part in parts[1:]:
            output.choices[0].message.tool_calls += part.choices[0].message.tool_calls
    output.usage = ModelUsage(input_tokens=tokens[0], output_tokens=tokens[1], total_tokens=sum(tokens))
    return output


def answers() -> list[ModelOutput]:
    """What the model says in one epoch."""
    return [
        answer((10, 5), ("look", {"q": "a"}), ("helper", {"input": "x"})),  # the lead
        answer((4, 2), ("submit", {"answer": "h"})),  # the helper, as a tool
        answer((20, 6), ("transfer_to_writer", {})),  # the lead hands over
        answer((7, 3), text="written"),  # the writer
        answer((30, 7), ("submit", {"answer": "yes"})),  # the lead
    ]


def main(file: Path) -> None:
    """Run the team once and keep its log."""
    helper = react(name="helper", description="helps", prompt="h")
    writer = react(name="writer", description="writes", prompt="w", submit=False)
    lead = react(name="lead", prompt="l", tools=[look(), as_tool(helper), handoff(writer)])
    dataset = [Sample(id="q 1", input="hi", target="yes")]
    task = Task(name="team", dataset=dataset, solver=lead, scorer=[match(), style()], epochs=2)
    model = get_model(MODEL, custom_outputs=answers() + answers())
    with tempfile.TemporaryDirectory() as logs:
        (log,) = eval(task, model=model, log_dir=logs, log_format="eval", display="none", max_samples=1)
        shutil.copy(Path(log.location), file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
