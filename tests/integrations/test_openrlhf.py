"""OpenRLHF's interface as its source at 3c3be62 has it, by a stand-in: the package does not build without a GPU."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here; `make integrations` runs this")

from graphs.errors import CreditError  # noqa: E402


class RemoteExperienceMaker:
    """What the subclass relies on: rewards by `index`, the group's standard deviation in `info`."""

    def __init__(self, samples: int, kl: float = 0.0) -> None:
        self.args = types.SimpleNamespace(rollout=types.SimpleNamespace(n_samples_per_prompt=samples))
        self.kl_ctl = types.SimpleNamespace(value=kl)

    def compute_advantages_and_returns(self, experiences: list[Any]) -> list[Any]:
        for experience in experiences:
            experience.kl = None
            experience.info["return"] = experience.rewards
        return experiences

    def make_experience_batch(self, rollout_samples: list[Any]) -> list[Any]:
        return self.compute_advantages_and_returns(rollout_samples)


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    name = "openrlhf.trainer.ppo_utils.experience_maker"
    parts = name.split(".")
    for i in range(1, len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    stand_in = types.ModuleType(name)
    stand_in.RemoteExperienceMaker = RemoteExperienceMaker  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, stand_in)
    monkeypatch.delitem(sys.modules, "credit.integrations.openrlhf", raising=False)
    return importlib.import_module("credit.integrations.openrlhf").CreditExperienceMaker


def experiences(kl: float = 0.0) -> list[Any]:
    """Two batches whose rows were sorted by length: responses 3, 0 and 2, 1 of two prompts."""
    rewards = {0: 1.0, 1: 0.0, 2: 5.0, 3: 2.0}
    masks = [torch.tensor([[1, 1, 0], [1, 1, 1]]), torch.tensor([[1, 0, 0], [1, 1, 0]])]
    return [
        types.SimpleNamespace(
            index=index,
            rewards=torch.tensor([rewards[i] for i in index]),
            action_mask=mask.bool(),
            kl=torch.full((2, 3), kl),
            info={},
            advantages=None,
        )
        for index, mask in zip([[3, 0], [2, 1]], masks, strict=True)
    ]


def test_rows_are_compared_with_those_of_their_prompt(maker: Any) -> None:
    maker.credit = "rloo"
    first, second = maker(samples=2).compute_advantages_and_returns(experiences())
    assert first.advantages.tolist() == [[-3, -3, 0], [1, 1, 1]]
    assert second.advantages.tolist() == [[3, 0, 0], [-1, -1, 0]]
    assert first.info["return"].tolist() == [2, 1]


@pytest.mark.parametrize(("samples", "batches"), [(2, 1), (3, 2)])
def test_groups_that_are_not_whole_are_refused(maker: Any, samples: int, batches: int) -> None:
    """A part of the responses, or groups of another size, were compared across prompts."""
    with pytest.raises(CreditError, match=f"in whole groups of n_samples_per_prompt={samples}"):
        maker(samples=samples).compute_advantages_and_returns(experiences()[:batches])


def test_openrlhfs_own_formula(maker: Any) -> None:
    """(R − mean) / (sd + 1e-9), ddof 1, in its line for `group_norm`."""
    (batch, _) = maker(samples=2).compute_advantages_and_returns(experiences())
    assert batch.advantages[0, 0].item() == pytest.approx((2 - 3.5) / (4.5**0.5 + 1e-9), abs=2e-6)


def test_a_penalty_in_the_reward_is_refused(maker: Any) -> None:
    with pytest.raises(CreditError, match="KL penalty in the reward"):
        maker(samples=2, kl=0.1).compute_advantages_and_returns(experiences(kl=0.2))


def test_a_renamed_hook_is_refused(maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It trained on OpenRLHF's own advantages, without a word."""
    (base,) = maker.__bases__
    assert maker(samples=2).make_experience_batch(experiences())[0].advantages.any()
    monkeypatch.setattr(base, "make_experience_batch", lambda self, samples: samples)
    with pytest.raises(CreditError, match=r"never asked 'openrlhf_group_norm' for advantages"):
        maker(samples=2).make_experience_batch(experiences())
    monkeypatch.delattr(base, "compute_advantages_and_returns")
    with pytest.raises(CreditError, match="RemoteExperienceMaker has no compute_advantages_and_returns"):
        maker(samples=2)
