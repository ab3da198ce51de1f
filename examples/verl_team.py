"""verl with a team: an agent loop whose planner and worker are rows of their own, compared by Dr. MAS.

pip install ".[verl]", a file loops.yaml with the two lines

    - name: team
      _target_: verl_team.TeamLoop

and verl's usual command from this folder, with the rows of your data naming `agent_name: team`:

    python -m verl.trainer.main_ppo trainer.v1.trainer_mode=credit_sync algorithm.adv_estimator=credit_dr_mas \\
        actor_rollout_ref.rollout.agent.agent_loop_config_path=loops.yaml ...
"""

from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

PLAN = "Write a plan for this task, and no answer."
WORK = "Follow this plan:"


class TeamLoop(AgentLoopBase):
    """A planner sees the task; a worker sees the task and the plan. The last output's score is the team's outcome."""

    async def run(self, sampling_params, **kwargs):
        task = list(kwargs["raw_prompt"])
        plan = await self.turn([*task, {"role": "user", "content": PLAN}], sampling_params, "planner", 0)
        text = self.tokenizer.decode(plan.response_ids, skip_special_tokens=True)
        work = await self.turn([*task, {"role": "user", "content": f"{WORK} {text}"}], sampling_params, "worker", 0)
        return [plan, work]

    async def turn(self, messages, sampling_params, agent, turn):
        """What an agent writes, as one row: `extra_fields` are the columns that methods compare by."""
        ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        made = await self.server_manager.generate(
            request_id=uuid4().hex, prompt_ids=ids, sampling_params=sampling_params
        )
        written = made.token_ids[: self.rollout_config.response_length]
        return AgentLoopOutput(
            prompt_ids=ids,
            response_ids=written,
            response_mask=[1] * len(written),
            response_logprobs=made.log_probs[: len(written)] if made.log_probs else None,
            num_turns=2,
            metrics=AgentLoopMetrics(),
            extra_fields={"agent": agent, "turn": turn},
        )
