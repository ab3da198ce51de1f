"""Commands on logs that are odd in any way: none ends in an error of its own, and none warns of its own arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.credit.cli.logs import run, write


def odd(seed: int, folder: Path) -> list[list[object]]:
    """A log of few or many tasks with uneven runs, which lack what logs lack, and commands on it."""
    rng = np.random.default_rng(seed)

    def pick(*of: Any) -> Any:
        return of[rng.integers(len(of))]

    tools, agents = ["web", "shell"][: pick(0, 1, 2)], ["lead", "coder", "checker"][: pick(1, 2, 3)]
    timed, counted, stating, whole = rng.random(4) < 0.7
    models, systems, runs = pick([None], ["m"], ["m", "n"]), pick([None], ["v1"], ["v1", "v2"]), pick(1, 2, 4)
    won = pick(lambda: None, lambda: float(rng.random() < 0.5), lambda: 0.0, lambda: 1.0, lambda: float(rng.normal()))
    lines: list[dict[str, Any]] = []
    for task in range(pick(1, 12, 40)):
        quiet = rng.random() < 0.3  # a task in which nothing is counted in any run
        for _ in range(rng.integers(1, runs + 1)):
            events: list[dict[str, Any]] = []
            now = pick(0.0, 1.7e9)
            for i in range(rng.integers(int(whole), 9)):
                event = {"id": f"e{i}", "type": "message", "agent": pick(*agents)}
                if (tool := pick(None, *tools)) is not None:
                    event |= {
                        "type": "tool_call",
                        "tool": tool,
                        "arguments": pick("a", "b"),
                        "action": pick(True, False),
                    }
                event |= {"status": "ok" if quiet else pick("ok", "error")} if stating else {}
                event |= {"t": (now := now + pick(0, 0, 1, 30))} if timed else {}
                for name in ("tokens", "input_tokens"):
                    event |= {name: 0 if quiet else pick(0, 7, 50)} if counted and (whole or rng.random() < 0.9) else {}
                event |= {"model": pick("m", "n")} if rng.random() < 0.2 and models[0] else {}
                events.append(event)
            edges = [{"src": f"e{i}", "dst": f"e{i + 1}", "type": "causal"}
                     for i in range(len(events) - 1) if rng.random() < 0.5]  # fmt: skip
            stated = {"model": pick(*models), "system": pick(*systems)}
            reward = None if rng.random() < 0.2 else won()
            line = {"trace_id": f"t{len(lines)}", "task_id": f"q{task}", "events": events, "edges": edges}
            line |= {"rewards": {} if reward is None else {"team": reward}}
            line |= {"costs": {"money": pick(0.0, 1.5), "odd": float(rng.normal())}} if rng.random() < 0.3 else {}
            lines.append(line | {word: name for word, name in stated.items() if name is not None})
    log, sides, prices = write(folder / "x.jsonl", lines), folder / "sides.csv", folder / "prices.csv"
    sides.write_text("trace,side\nt0,a\n" + "".join(f"t{i},{pick('a', 'b')}\n" for i in range(1, len(lines))))
    prices.write_text("model,input,output\nm,1,5\nn,0,0\n")
    both: list[object] = [log, "--sides", sides]
    return [["metrics", *both, "--prices", prices], ["report", *both, "-o", folder / "x.html"], ["summary", log],
            ["metrics", log, "--by", "model"], ["costs", log, "--prices", prices], ["doctor", log]]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 32, 46])
def test_odd_logs_make_no_warning_and_no_error_that_names_nothing(seed: int, tmp_path: Path) -> None:
    """`RuntimeWarning: invalid value encountered in divide` stood on the terminal, of tasks without an error at all."""
    for command in odd(seed, tmp_path):
        done = run(*command)
        assert done.exception is None or isinstance(done.exception, SystemExit), (command[0], done.exception)
        assert done.exit_code in (0, 1, 3) and "Traceback" not in done.output, done.output
