"""Teams of language models: the tokenizer, exact re-runs, and methods on arrays, on logs and through rows alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
from benchmarks.language.log import as_traces
from benchmarks.language.questions import ANSWER, END, PAD, PARTS, PRICE, STOP, draw_questions, facts
from benchmarks.language.signals import as_graph, rerun, weigh
from benchmarks.language.team import DECISIONS, Said, fresh_team, log_probs, play
from benchmarks.language.training import (
    LanguageSettings,
    demonstrations,
    train_language,
    warm_team,
)
from benchmarks.language.word_pieces import train_pieces
from credit.bench.training.online_coefficients import CoefficientSums, solved_coefficients
from credit.integrations import RowAdvantages
from estimators.composition.control import control_advantage
from graphs.errors import CreditError
from graphs.traces.batch import Traces
from graphs.writers import native

GROUPS, SIZE = 4, 4


@pytest.fixture(scope="module")
def team() -> Any:
    return fresh_team(0)


@pytest.fixture(scope="module")
def said(team: Any) -> Said:
    return jax.jit(play)(team, draw_questions(GROUPS, SIZE, jax.random.key(1)), jax.random.key(2))


@pytest.fixture(scope="module")
def runs(team: Any, said: Said) -> Any:
    return jax.jit(rerun)(team, said, jax.random.key(3))


def logged(path: Path, traces: Traces) -> Traces:
    native.write(traces, path)
    return credit.read(path)


def test_the_tokenizer_merges_what_is_frequent_and_gives_every_text_back() -> None:
    pieces = train_pieces(["aab aab ab"], 7, ["<pad>"])  # <pad>, space, a, b, and three merges
    assert pieces.merges == ((" ", "a"), (" a", "a"), (" aa", "b"))
    assert [pieces.pieces[i] for i in pieces.encode("aab ab b")] == [" aab", " a", "b", " ", "b"]
    known = facts()
    for text, book, answer in zip(known.texts, known.book, known.answer, strict=True):
        assert known.pieces.decode(known.pieces.encode(text)) == text and 0 <= book < 3
        assert END in answer or PAD not in answer  # an answer that fills its room needs no end
    assert max(np.sum(known.answer > END, axis=1)) > 1  # some answers are several tokens
    with pytest.raises(CreditError, match="has the character 'z'"):
        pieces.encode("z")
    with pytest.raises(CreditError, match=r"size is 3; expected 4 or more"):
        train_pieces(["abc"], 3)


@pytest.mark.study
def test_probabilities_of_all_calls_add_up_and_do_not_see_what_comes_later(team: Any, said: Said) -> None:
    score = jax.jit(log_probs)
    lead, worker = score(team, said)
    every = [score(team, said._replace(call=said.call.at[:, 1].set(call)))[0] for call in range(1, STOP + 1)]
    np.testing.assert_allclose(np.exp([np.asarray(x)[:, 1] for x in every]).sum(axis=0), 1, rtol=1e-5)
    for other in every:
        np.testing.assert_array_equal(other[:, 0], lead[:, 0])  # the first call is not told by the second
    changed = score(team, said._replace(answer=said.answer.at[:, :, -1].set(END)))[1]
    np.testing.assert_array_equal(np.asarray(changed)[:, :, 0], np.asarray(worker)[:, :, 0])
    assert (np.asarray(worker)[np.asarray(said.answer) == PAD] == 0).all()


@pytest.mark.study
def test_forced_decisions_are_repeated_and_the_reward_is_that_of_the_rules(team: Any) -> None:
    question = draw_questions(8, 2, jax.random.key(5))
    shown = demonstrations(question)
    best = jax.jit(play)(team, question, jax.random.key(0), shown, jnp.full(16, DECISIONS))
    parts = np.sum(np.asarray(question) >= 0, axis=1)
    np.testing.assert_array_equal(best.taken, shown.taken)
    np.testing.assert_allclose(best.reward, 1 - PRICE * parts, rtol=1e-6)
    wrong = shown._replace(call=jnp.where(shown.call < STOP, shown.call % 3 + 1, STOP), answer=shown.answer + 1)
    lost = jax.jit(play)(team, question, jax.random.key(0), wrong, jnp.full(16, DECISIONS))
    np.testing.assert_allclose(lost.reward, -PRICE * parts, rtol=1e-6)


@pytest.mark.slow
def test_a_rerun_repeats_the_tokens_before_its_decision_and_pays_for_the_rest(said: Said, runs: Any) -> None:
    again, decision = runs.said, np.asarray(runs.decision)
    row = np.repeat(np.arange(GROUPS * SIZE), len(decision) // (GROUPS * SIZE))
    cost = 0
    for j, d in enumerate(decision):
        i, r = row[j], d // 2
        np.testing.assert_array_equal(again.call[j, : (d + 1) // 2], said.call[i, : (d + 1) // 2])
        np.testing.assert_array_equal(again.answer[j, :r], said.answer[i, :r])
        assert bool(runs.where[j]) == bool(said.taken[i, d])
        cost += int(np.sum(np.asarray(again.taken)[j, d:])) if runs.where[j] else 0
    assert int(runs.cost) == cost > 0
    fresh = np.asarray(again.call)[decision == 0, 0] != np.asarray(said.call)[row[decision == 0], 0]
    assert fresh.any() and not fresh.all()


@pytest.mark.study
def test_the_log_holds_tokens_masks_and_log_probabilities(team: Any, said: Said, tmp_path: Path) -> None:
    traces = logged(tmp_path / "team.jsonl", as_traces(team, said, SIZE))
    assert not traces.problems and traces.tokens is not None
    lead, worker = (np.asarray(x) for x in log_probs(team, said))
    taken, tokens = np.asarray(said.taken), traces.tokens
    assert traces.sizes.events == taken.sum()
    expected, ids = [], []
    for i, d in np.argwhere(taken):
        answer = [t for t in np.asarray(said.answer)[i, d // 2] if t != PAD]
        ids += answer if d % 2 else [said.call[i, d // 2]]
        expected += worker[i, d // 2, : len(answer)].tolist() if d % 2 else [lead[i, d // 2]]
    np.testing.assert_array_equal(tokens.ids[tokens.mask], ids)
    np.testing.assert_allclose(tokens.log_probs[tokens.mask], expected, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(traces.reward)[: len(taken)], said.reward, rtol=1e-6)
    assert len(ids) <= taken.sum() * ANSWER and not tokens.mask.all()  # what was read is logged, too


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("name", ["dr_mas", "turn_baseline"])
def test_arrays_logs_and_rows_give_the_same_advantages(name: str, team: Any, said: Said, tmp_path: Path) -> None:
    rollout = as_graph(said, SIZE)
    here = np.asarray(weigh(name, rollout, None, lambda: None).own)  # type: ignore[arg-type,return-value]
    taken = np.asarray(said.taken)
    traces = logged(tmp_path / "team.jsonl", as_traces(team, said, SIZE))
    there = credit.METHODS[name](traces.graph, traces.reward)
    np.testing.assert_allclose(np.asarray(there.advantage)[: taken.sum()], here[taken], atol=1e-5)
    trace, decision = np.argwhere(taken).T
    called = np.asarray(said.call)[trace, decision // 2]
    rows = RowAdvantages(name)(
        group=trace // SIZE,
        trace=trace,
        agent=np.where(decision % 2, called, 0),
        turn=decision,
        reward=np.asarray(said.reward)[trace],
    )
    np.testing.assert_allclose(rows.advantages, here[taken], atol=1e-5)
    assert np.abs(here).max() > 0.1


@pytest.mark.study
def test_c3_and_control_of_the_logged_reruns_are_those_of_the_arrays(
    team: Any, said: Said, runs: Any, tmp_path: Path
) -> None:
    rollout = as_graph(said, SIZE)
    weighed = weigh("c3", rollout, None, lambda: runs)
    traces = logged(tmp_path / "siblings.jsonl", as_traces(team, said, SIZE, reruns=runs))
    evidence = {name: traces.evidence[name].array for name in ("context", "node")}
    there = credit.METHODS["c3"](traces.graph, traces.reward, **evidence)
    names, trace_names = traces.events["event"].to_pylist(), traces.traces["trace"].to_pylist()
    event = {(trace_names[t], name): e for e, (t, name) in enumerate(zip(traces.graph.trace_ids, names, strict=False))}
    advantage, valid = np.asarray(there.advantage), np.asarray(there.valid)
    where, claims, compared = np.zeros(said.taken.shape, bool), np.zeros(said.taken.shape, np.float32), 0
    for j in np.flatnonzero(runs.where):
        i, d = j // 3, int(runs.decision[j])
        name = f"{('call', 'answer')[d % 2]}{d // 2}"
        own, other = event[f"t{i}", name], event[f"t{i}/{name}/0", name]
        assert valid[own] and valid[other]
        assert advantage[own] == pytest.approx(float(weighed.own[i, d]), abs=1e-6)
        assert advantage[other] == pytest.approx(float(weighed.other[j]), abs=1e-6)
        where[i, d], claims[i, d], compared = True, advantage[own], compared + 1
    assert compared > 20 and np.abs(claims).max() > 0.1
    assert not np.asarray(weighed.own)[~where].any()

    sums = CoefficientSums(jnp.ones((1, 1)), jnp.full(1, 0.6))  # they give a coefficient of 0.6
    here = weigh("control_c3", rollout, sums, lambda: runs)
    alone = logged(tmp_path / "alone.jsonl", as_traces(team, said, SIZE))
    taken = np.asarray(said.taken)
    amount = np.zeros(alone.graph.num_events, np.float32)
    amount[: taken.sum()] = claims[taken]
    claim = credit.claim(alone.graph, amount, estimand="increment", source="c3", centred=True, own_outcome=True)
    result = control_advantage(alone.graph, alone.reward, [claim], beta=solved_coefficients(sums)).credit
    np.testing.assert_allclose(np.asarray(result.advantage)[: taken.sum()], np.asarray(here.own)[taken], atol=1e-5)
    assert float(here.cost) == float(runs.cost)


@pytest.mark.study
def test_a_team_learns_by_its_reward_and_nothing_by_none_and_repeats_bit_for_bit() -> None:
    settings = LanguageSettings(events=4000, warm_steps=25)
    still = train_language("zero", settings, 0, 0.003)
    first = warm_team(0, settings.warm_steps)
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(still.team), jax.tree.leaves(first), strict=True))
    assert still.start == still.final
    one, two = (train_language("rloo", settings, 0, 0.003) for _ in range(2))
    assert one.reward.tobytes() == two.reward.tobytes() and one.final == two.final
    assert one.final > one.start + 0.1
    paid = train_language("c3", settings, 0, 0.003)
    assert len(paid.reward) < len(one.reward) and paid.spent[-1] <= settings.events


@pytest.mark.study
def test_wrong_names_and_numbers_of_language_teams_are_refused() -> None:
    said = demonstrations(draw_questions(1, SIZE, jax.random.key(0)))
    with pytest.raises(CreditError, match="no signal 'magic'"):
        weigh("magic", as_graph(said, SIZE), None, lambda: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(CreditError, match=r"LanguageSettings\.group_size is 1"):
        LanguageSettings(group_size=1)
    with pytest.raises(CreditError, match="learning_rate is 0"):
        train_language("rloo", LanguageSettings(), 0, 0)
    assert PARTS * 2 == DECISIONS
