"""Sessions of verl's v1 trainers as traces, and what an agent loop wrote beside its outputs as columns."""

from __future__ import annotations

import collections
import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.integrations.rows.scale_switch import with_switch
from credit.integrations.trainer_credit import COLUMNS, EVIDENCE, TrainerCredit
from graphs.errors import CreditError
from graphs.text import excerpt

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PREFIX", "method_options", "row_penalty", "session_advantage"]

PREFIX = "credit_"


def method_options(name: str, config: Any, by_std: bool | None = None) -> tuple[tuple[str, Any], ...]:
    """Options of `RowAdvantages` for a method: `algorithm.credit` of the configuration, and verl's switch of the scale.

    Args:
      name: the method.
      config: `algorithm` of the configuration, or None.
      by_std: `norm_adv_by_std_in_grpo`. Default: that of `config`. An option `scale` or `scaled` goes before it.
    """
    known = config is not None and hasattr(config, "get")
    chosen = dict((config.get("credit", None) if known else None) or {})
    if by_std is None:
        by_std = bool(config.get("norm_adv_by_std_in_grpo", True)) if known else True
    return tuple(sorted(with_switch(name, chosen, by_std).items()))


def row_penalty(batch: Any, counts: Any) -> np.ndarray | None:
    """The KL penalty of each row, float64 [N]; None where every penalty is 0. It is no part of the team's outcome.

    Args:
      batch: with `token_level_rewards` and `token_level_scores`, [N, L].
      counts: bool tensor [N], rows whose penalty is asked for; the others may have scores of NaN.

    Raises:
      CreditError: a score of NaN hides the penalty of a row that counts.
    """
    rewards, scores = batch["token_level_rewards"], batch["token_level_scores"]
    if rewards.equal(scores):
        return None
    hidden = scores.isnan()
    penalty = (rewards - scores).masked_fill(hidden, 0)
    if not bool((penalty != 0).any()):
        return None
    if bool((lost := hidden.any(dim=-1) & counts).any()):
        raise CreditError(
            f"token_level_scores is NaN in row {int(lost.nonzero()[0])}, so that its KL penalty is unknown; expected a "
            "number for each output of a scored session where use_kl_in_reward is on"
        )
    total: np.ndarray = penalty.sum(dim=-1).double().cpu().numpy()
    return total


def session_advantage(
    credit_of: TrainerCredit,
    data: Any,
    batch_keys: Sequence[str],
    extra_fields: Sequence[Mapping[str, Any] | None] | None,
    padding: Sequence[bool],
    policy_version: Sequence[int | None] | None = None,
    trained_version: int | None = None,
) -> dict[str, float]:
    """Write advantages and returns into a v1 batch whose rows are outputs of sessions; returns the metrics.

    The outcome of a session is the score of its last output, as in verl: a colocated reward model scores each.

    Args:
      credit_of: what reads the labels and gives the advantages.
      data: a `DataProto` with `token_level_scores`, `token_level_rewards` and `response_mask`, [N, L].
      batch_keys: `{uid}_{session}_{index}` of each row, in any order.
      extra_fields: what the agent loop wrote beside each row; None where it wrote nothing.
      padding: rows that verl made up to fill the batch; they get 0 and enter no statistics.
      policy_version, trained_version: of each row, and of the policy that is trained, for the metrics.

    Raises:
      CreditError: a key has another form, or two outputs have it: verl names each once, and a copy would count twice.
    """
    group, session, order = _sessions(batch_keys)
    batch, real = data.batch, ~np.asarray(padding, bool)
    outputs = list(itertools.compress(batch_keys, real))
    if len(set(outputs)) < len(outputs):
        key, count = collections.Counter(outputs).most_common(1)[0]
        raise CreditError(
            f"key {key!r} of the batch names {count} outputs; expected one: rows that fill it are padding"
        )
    score = _of_last_output(batch["token_level_scores"].sum(dim=-1), session.indices.to_numpy(), order, real)
    partly = {*COLUMNS, *EVIDENCE} - {"agent", "role", "turn"}
    columns = credit_of.columns_of(extra_fields or (None,) * len(real), partly=partly, real=real)
    if "event_reward" in columns:
        columns["event_reward"] = _own_rewards(columns["event_reward"])
    penalty = row_penalty(batch, score.new_tensor(real).bool() & ~score.isnan())
    if penalty is not None:
        columns["event_reward"] = penalty + columns.get("event_reward", 0)
    result = credit_of(
        group=group,
        trace=session,
        order=order,
        reward=score,
        where=real,
        mask=batch["response_mask"],
        policy_version=policy_version,
        trained_version=trained_version,
        **columns,
    )
    batch["advantages"] = batch["returns"] = result.advantages
    return result.metrics


def _of_last_output(score: Any, session: np.ndarray, number: np.ndarray, real: np.ndarray) -> Any:
    """The score of the last output of each row's session, [N]; rows that fill the batch are no outputs.

    Args:
      score: [N].
      session: of each row, from 0.
      number: of the output within its session, [N].
      real: bool [N], False for rows that fill the batch.
    """
    highest = np.full(len(score), -1)
    np.maximum.at(highest, session[real], number[real])
    ends = np.flatnonzero(real & (number == highest[session]))
    last = np.zeros(len(score), np.int64)
    last[session[ends]] = ends
    return score[last[session]]


def _sessions(keys: Sequence[str]) -> tuple[pa.DictionaryArray, pa.DictionaryArray, np.ndarray]:
    """The group and the session of each v1 key, each text once, and the number of the output: [N] each.

    Raises:
      CreditError: a key has another form.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    outputs = _at_last_underscore(pa.array(keys, pa.string()))
    if outputs is not None and pc.all(pc.ascii_is_decimal(outputs[1]), min_count=0).as_py():
        session = outputs[0].dictionary_encode()
        prompts = _at_last_underscore(session.dictionary)
        with contextlib.suppress(pa.ArrowInvalid):  # a number that no 64 bits hold
            order = outputs[1].cast(pa.int64()).to_numpy()
            if prompts is not None:
                return pa.DictionaryArray.from_arrays(session.indices, prompts[0]), session, order
    key = next(key for key in keys if not _KEY.fullmatch(key))
    raise CreditError(f"key {key!r} of the batch is not of the form uid_session_index, which names sessions")


def _at_last_underscore(words: pa.Array) -> tuple[pa.Array, pa.Array] | None:
    """Each text split at its last underscore; None where one has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = pc.split_pattern(words, "_", max_splits=1, reverse=True).flatten()
    if len(parts) != 2 * len(words):
        return None
    first = np.arange(0, len(parts), 2)
    return parts.take(pa.array(first)), parts.take(pa.array(first + 1))


# `{uid}_{session}_{index}`: a uid may hold underscores and line breaks, the other two may not; 18 digits fit int64.
_KEY = re.compile(r".*_[^_]*_[0-9]{1,18}", re.DOTALL)


def _own_rewards(values: Sequence[Any]) -> np.ndarray:
    """The reward of each output itself, float64 [N]; 0 where none is stated.

    Raises:
      CreditError: a number that is not finite.
    """
    from credit.integrations.rows.row_columns import as_numbers

    earned = as_numbers("event_reward", [0.0 if value is None else value for value in values], len(values))
    if not np.isfinite(earned).all():
        row = int(np.argmin(np.isfinite(earned)))
        raise CreditError(
            f"extra_fields has 'event_reward' {excerpt(values[row])} in row {row}; expected a finite number, or none "
            "where an output earned nothing by itself"
        )
    return earned
