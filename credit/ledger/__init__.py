"""The ledger: the team reward of each trace as a sum of entries, exactly, with nothing paid twice.

    R = expected + Σ increments of events + outcome + unexplained + remainder

    expected       the worth of the trace before anybody acted
    increment      the change by one action
    outcome        the luck after the last action, where `outcome=` states it
    unexplained    the rest, for which no claim accounts
    remainder      the rounding that the grid of exact arithmetic leaves; mostly 0

Entries add up to the reward bit for bit, in any order (`estimators.composition.exact`).

    compose        claims → ledger: the results of several methods as one exact partition of the reward
    weighted_sum   ledgers → ledger: those of several reward channels as one, with the same exactness
    Ledger.advantage   ledger → signal: advantages to train on, with the conditions under which they are unbiased
    stack          two claims → ledger and signal: `compose`, then `advantage("control", scale="agent_name")`
    combine        the averaging inside rule `Increments`, in `estimators.composition.increments`
"""

from credit.ledger.account import Ledger
from credit.ledger.channels import Channel, annealed, by_indicator, channel, depart, indicator, kimi_parl, sharp
from credit.ledger.composition import RefusedClaimWarning, compose
from credit.ledger.entries import Entries, Totals
from credit.ledger.other_rewards import OtherRewardsWarning
from credit.ledger.reconciling import ContradictionError
from credit.ledger.rules import Increments, Reconcile, Rule, Shares
from credit.ledger.signal import Condition, Signal
from credit.ledger.stacking import Controls, Stack, stack
from credit.ledger.sums import weighted_sum
from estimators.composition.votes import Errors

__all__ = [
    "Channel",
    "Condition",
    "ContradictionError",
    "Controls",
    "Entries",
    "Errors",
    "Increments",
    "Ledger",
    "OtherRewardsWarning",
    "Reconcile",
    "RefusedClaimWarning",
    "Rule",
    "Shares",
    "Signal",
    "Stack",
    "Totals",
    "annealed",
    "by_indicator",
    "channel",
    "compose",
    "depart",
    "indicator",
    "kimi_parl",
    "sharp",
    "stack",
    "weighted_sum",
]
