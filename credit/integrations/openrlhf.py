"""OpenRLHF: an experience maker with advantages of this library.

    openrlhf.trainer.ppo_trainer.RemoteExperienceMaker = CreditExperienceMaker      # before the trainer is made

Written against OpenRLHF 0.11.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.rows.row_columns import as_mask, spread
from credit.integrations.trainer_credit import TrainerCredit
from graphs.errors import CreditError

__all__ = ["CreditExperienceMaker"]


class CreditExperienceMaker(RemoteExperienceMaker):
    """OpenRLHF's experience maker; a response is a trace, the responses to a prompt are a group.

    Everything but the advantages is OpenRLHF's, length penalties and the logged returns among it. Clipping of rewards
    (`reward.clip_range`) acts on OpenRLHF's own numbers, not on these. A KL penalty in the reward is refused: choose
    the KL loss.

    Attributes:
      credit: a method by name, or a function; set on the class or in a subclass.
      options: keyword arguments of `RowAdvantages`, the method's and `watch`.
    """

    credit: ClassVar[Any] = "openrlhf_group_norm"
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        hooks = {RemoteExperienceMaker: ("make_experience_batch", "compute_advantages_and_returns")}
        rows = RowAdvantages(self.credit, **self.options)
        self._credit = TrainerCredit(rows, trainer="OpenRLHF 0.11.2", hooks=hooks)

    @property
    def credit_metrics(self) -> Mapping[str, float]:
        """The metrics of the last batch."""
        return self._credit.metrics

    def make_experience_batch(self, rollout_samples: Any) -> Any:
        experiences = super().make_experience_batch(rollout_samples)
        self._credit.check_ran()
        return experiences

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def compute_advantages_and_returns(self, experiences: list[Any]) -> list[Any]:
        for experience in experiences:
            if self.kl_ctl.value and experience.kl is not None and bool((experience.kl != 0).any()):
                raise CreditError(
                    "OpenRLHF has a KL penalty in the reward, which these advantages would omit; use the KL loss"
                )
        index = torch.tensor([i for experience in experiences for i in experience.index])
        samples = self.args.rollout.n_samples_per_prompt
        if len(index) % samples or not index.sort().values.equal(torch.arange(len(index))):
            raise CreditError(
                f"the experiences hold {len(index)} responses with index {index.tolist()[:8]}...; expected 0 to "
                f"{len(index) - 1} once each, in whole groups of n_samples_per_prompt={samples}"
            )
        experiences = super().compute_advantages_and_returns(experiences)
        result = self._credit(
            group=index // samples,
            trace=index,
            reward=torch.cat([experience.rewards for experience in experiences]),
        )
        sizes = [len(experience.index) for experience in experiences]
        for experience, values in zip(experiences, result.advantages.split(sizes), strict=True):
            experience.advantages = spread(values, as_mask(experience.action_mask, len(values)))
            experience.returns = experience.advantages.clone()
        return experiences
