"""Record two episodes of rLLM: `python record_rllm.py`, with rLLM installed.

Recorded with rLLM 0.3.0.pre at commit 9beb6e0. Its episode logger writes an episode of two solvers and a judge, as the
trainer does after each batch, with the summary beside it; its evaluation store writes an episode of one agent with a
tool. The episodes are made by hand, since a rollout needs a model; the files are what the writers make of them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from rllm.eval.episode_store import EvalEpisodeStore
from rllm.types import Episode, Step, Trajectory
from rllm.utils.episode_logger import EpisodeLogger
from rllm.workflows.workflow import TerminationReason

HERE = Path(__file__).parent
ASKED = [{"role": "user", "content": "Make 4 of 2 and 2."}]
CALLS = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}],
}
FOUND = {"role": "tool", "tool_call_id": "c1", "content": "4"}


def step(answer: str, reward: float) -> Step:
    reply = {"role": "assistant", "content": answer}
    return Step(id=answer, chat_completions=[*ASKED, reply], model_response=answer, action=answer, reward=reward)


def main() -> None:
    solvers = [
        Trajectory(name="solver", uid=f"solver-{number}", steps=[step(answer, reward)], reward=reward)
        for number, (answer, reward) in enumerate([("2+2", 1.0), ("2-2", 0.0)])
    ]
    judge = Trajectory(name="judge", uid="judge-0", steps=[step("first", 1.0)], reward=1.0)
    team = Episode(
        id="countdown-7:0",
        task={"target": 4, "nums": [2, 2]},
        is_correct=True,
        termination_reason=TerminationReason.ENV_DONE,
        trajectories=[*solvers, judge],
        metrics={"solver_acc": 0.5},
    )
    EpisodeLogger(str(HERE), "rllm_logged").log_episodes_batch([team], step=3)
    (logged,) = HERE.glob("rllm_logged/*/episode_*.json")
    (HERE / "rllm_episode.json").write_text(json.dumps(json.loads(logged.read_text())) + "\n")
    shutil.rmtree(HERE / "rllm_logged")
    steps = [
        Step(id="s0", chat_completions=[*ASKED, CALLS], response_ids=[5, 6], logprobs=[-0.5, -0.25], weight_version=3),
        Step(id="s1", chat_completions=[*ASKED, CALLS, FOUND, {"role": "assistant", "content": "4"}], done=True),
    ]
    lone = Episode(id="gsm8k_1:2", trajectories=[Trajectory(name="agent", uid="a-0", steps=steps, reward=0.5)])
    stored = EvalEpisodeStore(HERE / "rllm_stored").write(0, lone)
    (HERE / "rllm_stored.json").write_text(json.dumps(json.loads(stored.read_text())) + "\n")
    shutil.rmtree(HERE / "rllm_stored")


if __name__ == "__main__":
    main()
