"""A plain PyTorch loop: a planner and a worker learn a task together, with credit from this library.

pip install ".[torch]" && python examples/torch_loop.py
"""

import torch

from credit.integrations import RowAdvantages

TASKS, TOOLS, RUNS = 4, 5, 8  # each task is run eight times a step; these runs are a group


class Team(torch.nn.Module):
    """Two policies: the planner picks a tool for a task, the worker an answer for the task and the tool."""

    def __init__(self):
        super().__init__()
        self.planner = torch.nn.Parameter(torch.zeros(TASKS, TOOLS))
        self.worker = torch.nn.Parameter(torch.zeros(TASKS, TOOLS, TOOLS))

    def act(self, task):
        plan = torch.distributions.Categorical(logits=self.planner[task])
        tool = plan.sample()
        work = torch.distributions.Categorical(logits=self.worker[task, tool])
        answer = work.sample()
        return tool, answer, torch.stack([plan.log_prob(tool), work.log_prob(answer)], dim=1)


def train(steps=150, credit="rloo", seed=0, log=lambda step, reward, metrics: None):
    """Train a team; returns the mean reward of the last step."""
    torch.manual_seed(seed)
    team, task = Team(), torch.arange(TASKS).repeat_interleave(RUNS)
    optimiser = torch.optim.Adam(team.parameters(), lr=0.2)
    advantages = RowAdvantages(credit, rows=2 * len(task))
    advantages.warmup()
    run = torch.arange(len(task))
    for step in range(steps):
        tool, answer, log_prob = team.act(task)
        reward = ((tool == task) & (answer == task)).float()  # the team's outcome, for both
        result = advantages(  # two rows a run: the planner's and the worker's
            group=task.repeat_interleave(2),
            trace=run.repeat_interleave(2),
            agent=["planner", "worker"] * len(task),
            reward=reward.repeat_interleave(2),
        )
        loss = -(result.advantages * log_prob.flatten()).sum() / len(task)  # runs: a mean over rows may add a bias
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        log(step, reward.mean().item(), result.metrics)
    return reward.mean().item()


if __name__ == "__main__":
    train(log=lambda step, reward, metrics: print(step, reward, metrics["credit/groups_that_teach"]))
