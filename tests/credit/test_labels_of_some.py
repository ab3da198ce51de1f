"""Labels of some traces beside a judge's outcomes: who gave an outcome is a fact of each trace."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.doctor.selected_outcomes import corrected_failures
from credit.doctor.verdict_errors import verdict_errors
from credit.reports.judged_traces import judged_traces
from credit.reports.outcome_differences import outcome_differences
from credit.reports.task_kinds import failed_by_kind
from credit.reports.verdict_channels import left_out, of_one_source
from credit.sides.compare_sides import compare_systems
from graphs.event_types import EventType
from graphs.text import counted
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord


def log(folder: Path, rng: np.random.Generator, *, review: float, labels: int, rater: str = "ann") -> float:
    """Write 200 traces, of which a judge that passes half of the failures has seen two thirds and people some, and
    labels of others, drawn at random; return the part that failed."""
    lines, rows, good = [], ["trace,reward,rater"], rng.random(200) < 0.6
    for i, is_good in enumerate(good):
        rewards = {"judge": float(rng.random() < (0.95 if is_good else 0.5))} if rng.random() < 2 / 3 else {}
        reviewed = bool(rewards) and rng.random() < review
        rewards |= {"review": float(is_good)} if reviewed else {}
        event = {"id": "e", "type": "message", "agent": "a"}
        line = {"trace_id": f"t{i}", "task_id": f"q{i}", "events": [event], "edges": [], "rewards": rewards}
        lines.append(json.dumps(line | {"metrics": {"review by people": 1.0}} if reviewed else line))
    rows += [f"t{i},{float(good[i])},{rater}" for i in rng.permutation(200)[:labels]]
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return float(1 - good.mean())


@pytest.mark.parametrize("labels", [1, 20])
@pytest.mark.parametrize("rater", ["ann", ""])
def test_labels_of_some_do_not_make_the_judge_people(tmp_path: Path, labels: int, rater: str) -> None:
    """One row with a rater, and 143 verdicts of a judge were "by people"; what people had said corrected nothing.
    Rows without one became the judge's verdicts, and nothing said so."""
    log(tmp_path, np.random.default_rng(0), review=0.3, labels=labels, rater=rater)
    call = ["summary", str(tmp_path / "log.jsonl"), "--reward-channel", "judge"]

    def said(*more: str) -> str:
        return CliRunner().invoke(cli, [*call, *more], catch_exceptions=False).stdout

    def validate(*more: str) -> str:
        return CliRunner().invoke(cli, ["validate", *call[1:], *more], catch_exceptions=False).output

    seen, judged = ({json.loads(line)["trace_id"] for line in (tmp_path / "log.jsonl").read_text().splitlines()
                     if name in json.loads(line)["rewards"]} for name in ("review", "judge"))  # fmt: skip
    rows = {row.split(",")[0] for row in (tmp_path / "labels.csv").read_text().splitlines()[1:]}
    told, alone = said("--rewards", str(tmp_path / "labels.csv")), said()
    assert "By review " in alone and "How judge agrees with review (by people):" in alone
    assert "judge (by people)" not in told and f"to all {len(judged)} that it judged" in alone
    notes = validate("--rewards", str(tmp_path / "labels.csv"))
    replaced, kept = len(rows & judged), len(judged - rows)
    mixed = f"replaced in {counted(replaced, 'trace')}, added to {labels - replaced}, the log's own in {kept}"
    assert (mixed in notes and "`rater`" in notes) == (not rater), notes
    if not rater:
        assert "By review " in told and "How judge agrees with review (by people):" in told
        return
    by = re.search(r"By people's labels \d+ of (\d+) ", told)
    assert by is not None and int(by[1]) == len(seen | rows) and "How judge agrees with people:" in told
    assert (
        f"What failed, by judge (without {counted(labels, 'outcome')} by people):" in told
        and f"to all {len(judged)} that it judged" in told
    )


def test_a_judge_is_held_against_labels_that_replace_its_outcomes(tmp_path: Path) -> None:
    """What it had said of them was lost. Where a judge is the only reward of a log, labels are another one's."""
    log(tmp_path, np.random.default_rng(1), review=0, labels=40)
    alone = credit.read(tmp_path / "log.jsonl", reward="judge")
    truth = dict(row.split(",")[:2] for row in (tmp_path / "labels.csv").read_text().splitlines()[1:])
    names = alone.traces["trace"].to_pylist()
    passes = {name: float(said) for name, said in zip(names, np.asarray(alone.reward), strict=False)}
    bad = [name for name, label in truth.items() if label == "0.0" and np.isfinite(passes[name])]
    records = [TraceRecord(name, name, "x", instances={"a": Agent()}) for name in names]
    for record in records:
        record.event("e", EventType.MESSAGE, "a", action=True)
        said, label = passes[record.trace_id], truth.get(record.trace_id)
        record.rewards |= {"judge": said} if np.isfinite(said) else {}
        record.rewards |= {"team": record.rewards["judge"]} if np.isfinite(said) else {}
        record.rewards |= {"team": float(label)} if label else {}
        record.metrics |= {"team by people": 1.0} if label else {}
    labelled = credit.read(tmp_path / "log.jsonl", reward="judge", rewards=tmp_path / "labels.csv")
    for traces in (labelled, assemble(records)):
        (found,) = verdict_errors(traces)
        assert (found.name, found.against) == ("judge", "people")
        assert found.counts()[:2] == (sum(passes[name] == 1 for name in bad), len(bad))
        assert len(found.judged) == sum(np.isfinite(said) for said in passes.values())


@pytest.mark.parametrize("draws", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_the_corrected_rate_holds_the_truth_with_and_without_labels(tmp_path: Path, draws: int) -> None:
    """ "25 % (19 to 33 %) of all failed", of 42 %: the judge's verdicts had become the sample of people."""
    rng, held = np.random.default_rng(2), list[bool]()
    for _ in range(draws):
        truth = log(tmp_path, rng, review=0.3, labels=30)
        for table in (None, tmp_path / "labels.csv"):
            traces = credit.read(tmp_path / "log.jsonl", reward="judge", rewards=table)
            found = re.search(r"Corrected by these, .*interval (\d+) to (\d+) %", " ".join(corrected_failures(traces)))
            assert found is not None
            held.append(int(found[1]) - 0.5 <= 100 * truth <= int(found[2]) + 0.5)
    assert sum(held) >= 0.95 * len(held) - 2 * (0.95 * 0.05 * len(held)) ** 0.5


def test_labels_of_a_few_leave_no_reward_of_the_log_unnamed(tmp_path: Path) -> None:
    """Six labels, and the people's own rewards of 41 traces were in no line."""
    log(tmp_path, np.random.default_rng(0), review=0.3, labels=6)
    call = ["summary", str(tmp_path / "log.jsonl"), "--rewards", str(tmp_path / "labels.csv")]

    def failed(*more: str) -> str:
        told = CliRunner().invoke(cli, [*call, *more], catch_exceptions=False).stdout
        return told[told.index("What failed, by ") : told.index("What went wrong most:")]

    rewards = [json.loads(line)["rewards"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    review, judge = (sum(name in one for one in rewards) for name in ("review", "judge"))
    channels = f"review ({review} of 200 traces, by people), judge ({judge})"
    assert f"Rewards that could be it: {channels}; `--reward-channel review` takes one." in failed()
    assert "What failed, by labels.csv:" in failed() and "could be it" not in failed("--reward-channel", "judge")


def releases(seed: int, *, of: str, fallen: float = 0.0, kept: bool = True) -> Traces:
    """240 traces of two systems and two kinds of task, of which 55 % succeed and a kind judge passes half of the rest;
    people labelled all of system r2, of kind refund, of two events, or most; the judge may fail more of r2."""
    rng, records = np.random.default_rng(seed), list[TraceRecord]()
    for i in range(240):
        system, kind, good = f"r{1 + i // 120}", str(rng.choice(["refund", "login"], p=[0.4, 0.6])), rng.random() < 0.55
        record = TraceRecord(f"t{i}", f"q{i}", "x", instances={"a": Agent()}, system=system, task_kind=kind)
        record.event("e", EventType.MESSAGE, "a", action=True)
        length = "long" if rng.random() < 0.4 else "short"
        if length == "long":
            record.event("f", EventType.MESSAGE, "a", action=True)
        judge = float(rng.random() < (0.95 if good else 0.55) and not (system == "r2" and rng.random() < fallen))
        record.rewards |= {"judge": judge, "team": judge}
        if of in (system, kind, length) or (of == "most" and (system == "r2" or rng.random() < 0.8)):
            record.rewards["team"] = float(good)
            record.metrics |= {"team by people": 1.0} | ({"team before people": judge} if kept else {})
        if not kept:
            del record.rewards["judge"]
        records.append(record)
    return assemble(records)


@pytest.mark.parametrize("seed", range(8))
def test_labels_of_one_release_do_not_make_it_worse(seed: int) -> None:
    """ "r43 is worse than r42 (success 0.703 to 0.502)", of 42 and 40 of 80: one was judged by people, one by a judge
    that passes half of the failures."""
    compared, alone = (compare_systems(releases(seed, of=of)) for of in ("r2", "nobody"))
    assert compared is not None and compared.left_out == "without 120 outcomes by people"
    assert alone is not None and alone.left_out == ""
    row, own = (next(row for row in one.rows if row.metric == "success") for one in (compared, alone))
    assert (row.first, row.second, row.p) == pytest.approx((own.first, own.second, own.p))
    assert not row.is_told and "(without 120 outcomes by people)" in " ".join(compared.story())


@pytest.mark.parametrize("seed", range(8))
def test_labels_of_one_kind_or_cause_do_not_make_it_fail_more(seed: int) -> None:
    """ "Beyond chance, refund fails more often: 36 of 78 against 39 of 142": all 78 were verdicts of people."""
    of_kind = of_one_source(releases(seed, of="refund"))
    assert "Beyond chance" not in " ".join(failed_by_kind(of_kind, judged_traces(of_kind)))
    for of in ("r2", "long"):
        found = outcome_differences(traces := releases(seed, of=of))
        assert found.failed == int((traces.evidence["rewards.judge"].array == 0).sum())
        assert not any(row.stands_out for row in found.rows)


@pytest.mark.parametrize("seed", range(4))
def test_a_change_of_the_verdicts_themselves_is_told(seed: int) -> None:
    compared = compare_systems(releases(seed, of="r2", fallen=0.4))
    assert compared is not None and "r2 is worse than r1" in " ".join(compared.in_short())


def test_sides_of_which_no_one_source_knows_are_not_compared() -> None:
    """Where the log keeps nothing of what the judge had said, r2 has no outcome of r1's source."""
    compared = compare_systems(releases(0, of="r2", kept=False))
    assert compared is not None and "success is not known on r2" in " ".join(compared.story())


def test_people_who_gave_most_outcomes_are_the_source() -> None:
    """Where there is one source, nothing is left out."""
    traces = releases(0, of="most")
    given, one = traces.by_people["team"], of_one_source(traces)
    assert left_out(traces) == f"only {given} outcomes by people" and given > 200
    assert np.isfinite(one.reward[:240]).sum() == given and of_one_source(one) is one
    for of in ("nobody", "r2"):  # of r2 the judge alone is left
        whole = of_one_source(releases(0, of=of))
        assert left_out(whole) == "" and of_one_source(whole) is whole
