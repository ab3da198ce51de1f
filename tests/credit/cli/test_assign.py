"""`credit assign`: tables with the right numbers, options, evidence, and refusals in one line."""

from __future__ import annotations

import csv
import io
import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import credit
from credit.method_summary import Summary
from graphs.errors import UnusedRewardsWarning

from .logs import run, trace, write

EPISODES = Path(__file__).parents[2] / "recordings" / "verifiers_episodes.jsonl"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "arrow"])
def test_assign_writes_a_table(good: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out.{suffix}"
    result = run("assign", good, "-o", out, "--method", "rloo")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "rloo: 5 traces in 3 groups, 15 events, 10 actions, 8 with an advantage" in result.stderr
    assert "2 actions without: nothing to compare with: the group has one member" in result.stderr
    assert "2 groups without a training signal: r, s" in result.stderr
    assert f"wrote 15 rows to {out}" in result.stderr
    assert out.stat().st_size > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.jsonl", out.name]


def test_one_of_a_thing_is_in_the_singular(tmp_path: Path) -> None:
    log = write(tmp_path / "one.jsonl", [trace("a", "q", 1.0)])
    result = run("assign", log, "-o", tmp_path / "a.csv", "--method", "rloo")
    assert "rloo: 1 trace in 1 group, 3 events, 2 actions, 0 with an advantage" in result.stderr
    assert "  1 group without a training signal: q\n" in result.stderr
    result = run("convert", log, "-o", tmp_path / "b.jsonl")
    assert f"wrote 1 trace to {tmp_path / 'b.jsonl'}" in result.stderr


def test_assign_has_the_right_numbers(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert run("assign", good, "-o", out, "--method", "rloo", "--actions-only").exit_code == 0
    rows = pyarrow.parquet.read_table(out).to_pylist()
    assert len(rows) == 10
    assert [(r["trace"], r["event"], r["advantage"], r["valid"]) for r in rows] == [
        (t, e, a, t != "e")
        for t, a in (("a", 1.0), ("b", -1.0), ("c", 0.0), ("d", 0.0), ("e", 0.0))
        for e in ("e0", "e1")
    ]
    assert {r["file"] for r in rows} == {str(good)}
    assert [r["line"] for r in rows] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_assign_writes_csv_to_standard_output(good: Path) -> None:
    result = run("assign", good, "-o", "-")
    assert result.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 15 and rows[0]["trace"] == "a"
    assert "wrote 15 rows to standard output" in result.stderr


@pytest.mark.slow
def test_assign_takes_options_of_the_method(good: Path, tmp_path: Path) -> None:
    def advantage(*options: str) -> float:
        out = tmp_path / "out.jsonl"
        given = [word for option in options for word in ("--option", option)]
        result = run("assign", good, "-o", out, "-m", "grpo", *given)
        assert result.exit_code == 0, result.output
        return float(json.loads(out.read_text().splitlines()[0])["advantage"])

    assert advantage("eps=0", "ddof=1") == pytest.approx(0.5**0.5)
    assert advantage("eps=0.5", "ddof=0") == pytest.approx(0.5)
    assert advantage("eps=0", "ddof=0", "singleton=raw") == pytest.approx(1)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--method", "gpro"], "no method is called 'gpro'; did you mean igpo or hgpo or grpo?"),
        (["--method", "zzzzzz"], "`credit methods` lists them"),
        (
            ["-m", "grpo", "--option", "epz=1"],
            "method 'grpo' has no option 'epz'; its options are: by, population, eps, ddof, singleton, filters",
        ),
        (["-m", "grpo", "--option", "eps"], "--option 'eps'; expected KEY=VALUE"),
        (["-m", "grpo", "--option", "eps=much"], "grpo: eps is 'much'; expected a number"),
        (["-m", "grpo", "--option", "ddof=0.5"], "grpo: ddof is '0.5'; expected an integer"),
        (["-m", "grpo", "--option", "singleton=drop"], "is 'drop'; expected"),
        (["-m", "grpo", "--option", "eps=1", "--option", "eps=2"], "eps is given twice"),
        (["--option", "event_reward=1"], "has no option 'event_reward'"),
        (["--method", "remax"], "needs evidence that the log does not have. 'greedy_reward': add"),
        (["--format", "cvs"], "format is 'cvs'; expected one of"),
    ],
)
def test_assign_refuses_with_one_line(good: Path, tmp_path: Path, args: list[str], message: str) -> None:
    result = run("assign", good, "-o", tmp_path / "o.csv", *args)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("option", ["lambda_=inf", "lambda_=nan", "lambda_=1e400", "discount=1e300"])
def test_options_are_numbers_that_the_arithmetic_can_hold(option: str, good: Path, tmp_path: Path) -> None:
    result = run("assign", good, "-o", tmp_path / "x.csv", "--method", "gae", "--option", option)
    assert result.exit_code == 1 and "expected a finite number" in result.output


@pytest.mark.parametrize(
    ("method", "option", "words"),
    [
        ("gae", "lambda_=7", "expected a number from 0 to 1"),
        ("gae", "discount=1e30", "expected a number from 0 to 1"),
        ("moving_average", "decay=3", "expected a number from 0 to 1"),
        ("grpo", "eps=-1", "expected a finite number that is not negative"),
        ("grpo", "ddof=2", "expected 0 or 1"),
    ],
)
def test_options_lie_where_they_mean_something(
    method: str, option: str, words: str, good: Path, tmp_path: Path
) -> None:
    result = run("assign", good, "-o", tmp_path / "x.csv", "--method", method, "--option", option)
    assert result.exit_code == 1 and words in result.output


def test_a_reward_that_no_trace_has_is_refused(good: Path, tmp_path: Path) -> None:
    result = run("assign", good, "-o", tmp_path / "x.csv", "--reward-channel", "foo")
    assert result.exit_code == 1 and "no trace has a reward 'foo'; the logs have: team" in result.stderr
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("is_column", [False, True], ids=["table", "column"])
def test_a_channel_whose_words_are_not_known_names_them(is_column: bool, good: Path, tmp_path: Path) -> None:
    """It said that the logs have no such reward, and gave no reason."""
    rows = ["trace,reward,rewards.judge,agent,content", "a,1,approved,x,hi", "b,0,rejected,x,hi"]
    words = "trace,reward\na,approved\nb,rejected\n"
    (tmp_path / "words.csv").write_text("\n".join(rows) + "\n" if is_column else words)
    log = [tmp_path / "words.csv"] if is_column else [good, "--rewards", tmp_path / "words.csv"]
    result = run("convert", *log, "-o", tmp_path / "x.jsonl", "--reward-channel", "judge")
    said = "no trace has a reward 'judge'; its words are not known (approved, rejected): say what they mean by "
    assert result.exit_code == 1 and f"{said}--outcomes approved=NUMBER,rejected=NUMBER" in result.stderr, result.output


def test_evidence_reaches_the_method(tmp_path: Path) -> None:
    greedy = [trace("a", "q", 1.0, evidence={"greedy_reward": 0.25}), trace("b", "q", 0.0)]
    out = tmp_path / "out.jsonl"
    result = run("assign", write(tmp_path / "x.jsonl", greedy), "-o", out, "--method", "remax", "--actions-only")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(r["advantage"], r["valid"]) for r in rows] == [(0.75, True)] * 2 + [(0.0, False)] * 2
    assert "2 actions without: the log lacks the evidence" in result.stderr


@pytest.mark.slow
def test_optional_evidence_is_passed_on_demand(good: Path, tmp_path: Path) -> None:
    longer = [trace("a", "q", 1.0), trace("b", "q", 0.0), trace("c", "q", 0.0)]
    longer[0]["events"][0]["tokens"], longer[1]["events"][0]["tokens"], longer[2]["events"][0]["tokens"] = 30, 1, 1
    logs = write(tmp_path / "x.jsonl", longer)

    def baseline(*args: str) -> float:
        out = tmp_path / "out.jsonl"
        result = run("assign", logs, "-o", out, "-m", "reinforce_pp", *args)
        assert result.exit_code == 0, result.output
        return float(json.loads(out.read_text().splitlines()[0])["baseline"])

    assert baseline() == pytest.approx(1 / 3)
    assert baseline("--evidence", "tokens") == pytest.approx(37 / 53)  # two rows with 30 + 7 of 53 tokens earned 1
    for asked, message in (
        ("value", "takes no evidence 'value'; it takes: event_reward, tokens"),
        ("toks", "takes no"),
    ):
        result = run("assign", logs, "-o", tmp_path / "o.csv", "-m", "reinforce_pp", "--evidence", asked)
        assert result.exit_code == 1 and message in result.stderr


@pytest.mark.slow
def test_event_rewards_are_passed_where_the_log_has_them(tmp_path: Path) -> None:
    penal = trace("a", "q", 1.0)
    penal["events"][1]["event_reward"] = -0.5
    out = tmp_path / "out.jsonl"
    assert (
        run("assign", write(tmp_path / "x.jsonl", [penal, trace("b", "q", 0.0)]), "-o", out, "-m", "rloo").exit_code
        == 0
    )
    assert json.loads(out.read_text().splitlines()[0])["advantage"] == 0.5


def test_refused_traces_leave_the_rest_and_exit_3(bad: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    result = run("assign", bad, "-o", out)
    assert result.exit_code == 3
    assert "problems (1): 1 cycle" in result.stderr and "trace 'loop'" in result.stderr
    assert len(out.read_text().splitlines()) == 16
    assert run("assign", bad, "-o", out, "--allow-bad").exit_code == 0


@pytest.mark.slow
def test_real_logs(shared_data: Path, tmp_path: Path) -> None:
    logs = shared_data / "tau_bench_airline"
    found = json.loads(run("validate", "--json", logs).stdout)
    assert (found["traces"], found["groups"], found["teaching"], len(found["equal"])) == (80, 20, 11, 9)
    out = tmp_path / "out.parquet"
    result = run("assign", logs, "-o", out, "--method", "rloo", "--actions-only")
    assert result.exit_code == 0 and "9 groups without a training signal" in result.stderr
    rows = pyarrow.parquet.read_table(out)
    assert rows.num_rows == found["actions"]
    first = rows.slice(0, 1).to_pylist()[0]
    mates = {r["trace"]: r["reward"] for r in rows.to_pylist() if r["group"] == first["group"]}
    others = [reward for name, reward in mates.items() if name != first["trace"]]
    assert first["advantage"] == pytest.approx(first["reward"] - sum(others) / len(others))


@pytest.mark.parametrize("chunks", [(), ("--chunk-events", "2")])
def test_logs_without_outcomes_are_refused_and_write_nothing(tmp_path: Path, chunks: tuple[str, ...]) -> None:
    log = write(tmp_path / "x.jsonl", [trace("a", "q", None), trace("b", "q", None)])
    out = tmp_path / "a.csv"
    result = run("assign", log, "-m", "rloo", "-o", out, *chunks)
    assert result.exit_code == 1 and not out.exists()
    assert "no trace has an outcome" in result.output and "--rewards" in result.output
    one = write(tmp_path / "x.jsonl", [trace("a", "q", 1.0), trace("b", "q", 0.0), trace("c", "r", None)])
    assert run("assign", one, "-m", "rloo", "-o", out, *chunks).exit_code == 0


@pytest.mark.slow
def test_an_own_function_of_the_working_directory_is_a_method(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_methods_of_a_test.py").write_text(
        "from estimators import rloo\n"
        "def halved(graph, reward, *, event_reward=None, ddof: int = 1):\n"
        "    return rloo(graph, reward * 0.5, event_reward=event_reward)\n"
        "def needy(graph, reward, *, value):\n"
        "    return rloo(graph, reward)\n"
    )
    monkeypatch.chdir(tmp_path)
    for name, out in (("own_methods_of_a_test:halved", "own.csv"), ("rloo", "rloo.csv")):
        assert run("assign", good, "-m", name, "-o", tmp_path / out).exit_code == 0
    own, plain = (list(csv.DictReader((tmp_path / name).read_text().splitlines())) for name in ("own.csv", "rloo.csv"))
    assert [float(row["advantage"]) * 2 for row in own] == [float(row["advantage"]) for row in plain]
    for option, name, words in (
        ("ddof=3", "halved", "ddof is '3'; expected 0 or 1"),
        (None, "needy", "needs evidence that the log does not have. 'value'"),
        (None, "absent", "cannot be imported"),
    ):
        extra = [] if option is None else ["--option", option]
        result = run("assign", good, "-m", f"own_methods_of_a_test:{name}", "-o", tmp_path / "x.csv", *extra)
        assert result.exit_code == 1 and words in result.output
    assert run("compare", good, "--methods", "rloo,own_methods_of_a_test:halved").exit_code == 0


@pytest.mark.slow
def test_assign_fills_episodes_of_verifiers(tmp_path: Path) -> None:
    """Two episodes of one group with the rewards 1.5 and 0.5: RLOO gives 1 and -1; the judge is not trained."""
    logs, out = tmp_path / "traces.jsonl", tmp_path / "trained.jsonl"
    logs.write_bytes(EPISODES.read_bytes())
    result = run("assign", logs, "--method", "rloo", "--to", "verifiers", "-o", out, "--json")
    assert result.exit_code == 0, result.output
    assert f"wrote advantages of 5 message nodes to {out}" in result.stderr
    assert json.loads(result.stdout)["nodes"] == 5
    episodes = [json.loads(line) for line in out.read_text().splitlines()]
    slots = [
        [node.pop("advantages", None) for node in trace["nodes"]] for episode in episodes for trace in episode["traces"]
    ]
    none = None
    assert slots == [
        [none, none, [1.0] * 3, none, [1.0] * 2],
        [none, none],
        [none, [-1.0] * 2, none, [-1.0], none, [-1.0]],
    ]
    assert episodes == [json.loads(line) for line in logs.read_text().splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-o", "out.csv"), "expected a name ending in .jsonl"),
        (("-o", "-"), "expected a name ending in .jsonl"),
        (("-o", "out.jsonl", "--actions-only"), "--actions-only concerns tables"),
        (("-o", "out.jsonl", "--chunk-events", "9"), "--chunk-events concerns tables"),
        (("-o", "runs/out.jsonl"), "its traces would be there twice"),
        (("-o", "out.jsonl"), "expected verifiers alone"),
    ],
)
def test_what_cannot_go_into_episodes(
    options: tuple[str, ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    write(Path("runs/x.jsonl"), [trace("a", "q", 1.0), trace("b", "q", 0.0)])
    result = run("assign", "runs", "--to", "verifiers", *options)
    assert result.exit_code == 1 and expected in " ".join(result.output.split())
    assert not list(tmp_path.glob("out*"))


def test_assign_fills_copies_of_inspect_logs(tmp_path: Path) -> None:
    log = Path(__file__).parents[2] / "recordings" / "inspect_team.eval"
    out = tmp_path / "credited"
    call = ("assign", log, "--reward-channel", "match", "--method", "rloo", "--to", "inspect")
    result = run(*call, "-o", out, "--json")
    assert result.exit_code == 0, result.output
    assert f"wrote advantages of 10 model calls to {out}" in result.stderr
    assert json.loads(result.stdout)["calls"] == 10
    assert (out / "inspect_team.json").read_text().count("orchestration_credit.advantage") == 10
    for where, more, expected in (
        (out, (), "expected the name of a new folder"),
        ("-", (), "expected the name of a new folder"),
        (tmp_path / "new", ("--actions-only",), "--actions-only concerns tables"),
        (tmp_path / "new", ("--engine", "ray"), "--engine writes tables"),
    ):
        refused = run(*call, "-o", where, *more)
        assert refused.exit_code != 0 and expected in " ".join(refused.output.split())
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_large_advantages_are_pointed_out(tmp_path: Path) -> None:
    """Values far from rewards of 0 and 1; and a whole batch whose only failure stands alone among 200."""
    lines = [trace("a", "q", 0.0), trace("b", "q", 1.0)]
    for event in (event for line in lines for event in line["events"]):
        event["value"] = -100.0
    log = write(tmp_path / "log.jsonl", lines)
    result = run("assign", log, "-o", tmp_path / "a.csv", "--method", "gae", "--option", "lambda_=1", "--json")
    assert "look: 4 actions have an advantage larger than 10 times" in result.stderr
    assert "up to 101 times in trace 'b'" in result.stderr
    assert json.loads(result.stdout)["large_advantages"] == 4
    log = write(tmp_path / "log.jsonl", [trace(str(i), "q", float(i > 0)) for i in range(200)])
    result = run("assign", log, "-o", tmp_path / "a.csv", "--method", "grpo")
    assert "look: 2 actions have an advantage larger than 10 times" in result.stderr
    result = run("assign", log, "-o", tmp_path / "a.csv", "--method", "rloo")
    assert "look" not in result.stderr


@pytest.mark.slow
def test_returns_of_the_size_of_the_rewards_are_not_pointed_out(tmp_path: Path) -> None:
    """They were: rewards near 100 without a baseline, and an outcome alone in its group beside rewards at events."""
    log = write(tmp_path / "log.jsonl", [trace("a", "q", 100.0), trace("b", "q", 101.0)])
    assert "look" not in run("assign", log, "-o", tmp_path / "a.csv", "--method", "discounted_return").stderr
    alone = trace("c", "p", 1.0)
    for line in (lines := [trace("a", "q", 0.0), trace("b", "q", 1.0), alone]):
        line["events"][0]["event_reward"] = -0.01
    log = write(tmp_path / "log.jsonl", lines)
    for method in ("dr_mas_rloo", "discounted_return"):
        result = run("assign", log, "-o", tmp_path / "a.csv", "--method", method)
        assert result.exit_code == 0 and "larger than 10 times" not in result.stderr


@pytest.mark.parametrize(("absent", "said"), [(None, True), ("o", False)])
def test_a_key_that_some_actions_lack_biases(absent: str | None, said: bool) -> None:
    """Whether a trace comes to an action without the key, its earlier choices decide."""
    _, _, rows = credit.from_columns(
        group=[0] * 4, trace=list("aabb"), reward=[1.0, 1.0, 0.0, 0.0], evidence={"anchor": ["o", "o", "o", absent]}
    )
    options: dict[str, Any] = {"by": "task,anchor", "singleton": "raw"}
    summary = Summary()
    summary.add(rows.traces, credit.run(rows.traces, "rloo", **options), "rloo", options)
    assert any("may be biased: an action without the key" in line for line in summary.lines("rloo", options)) is said


TEAM = """group,trace,agent,turn,reward,time
q,a,lead,0,1,0
q,a,w,0,1,1
q,b,lead,0,0,0
q,b,w,0,0,1
q,b,w,1,0,2
r,c,lead,0,1,0
r,c,w,0,1,1
r,d,lead,0,0,0
r,d,w,0,0,1
"""
ALONE, SEVERAL = "an action whose key no other trace has", "a trace has several samples of one key"


BIASES = {
    "Turn-LOO": (["-m", "Turn-LOO"], ""),
    "raw": (["--by", "task,step", "--option", "singleton=raw"], ""),
    "answered": (["--by", "task,agent"], f"may be biased: {ALONE} (here none) gets nothing"),
    "refused": (["--by", "agent_name,turn"], f"is biased: {ALONE} gets nothing"),
    "zero": (["--by", "task,step", "--option", "singleton=zero"], f"is biased: {ALONE} gets 0"),
    "no zero": (["--option", "singleton=zero"], ""),  # no action moves the size of a group
    "rows": (["--option", "population=row"], f"is biased: {SEVERAL}, which enter"),
    "instances": (["--by", "task,agent", "--option", "population=agent"], "may be biased: a trace may have"),
    "agents": (["--option", "population=agent"], f"is biased: {SEVERAL}, which enter"),
    "turns": (["--by", "agent_name,turn", "--option", "population=row", "--option", "singleton=raw"],
              f"may be biased: {SEVERAL} (here none), which enter"),
    "batch": (["-m", "reinforce_batch", "--option", "singleton=zero"], ""),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("call", "said"), BIASES.values())
def test_what_is_said_of_bias_is_true_of_the_options_and_of_the_log(tmp_path: Path, call: list[str], said: str) -> None:
    """A row at each step was said to meet other samples of its trace, and shared keys to refuse actions."""
    (tmp_path / "team.csv").write_text(TEAM)
    told = run("assign", tmp_path / "team.csv", "-o", tmp_path / "out.csv", *call).stderr
    assert (f"the policy gradient {said}" in told) if said else ("biased" not in told), told


@pytest.mark.slow
def test_rows_whose_key_one_trace_has_are_counted(tmp_path: Path) -> None:
    """A third of the rows kept a raw outcome within versions of the policy, and nothing said that it is one.

    Then the sentence said that they had no advantage, and the table that it is valid.
    """
    steps = "".join(f"{line},{version}\n" for line, version in zip(TEAM.splitlines()[1:], "112223344", strict=True))
    (tmp_path / "team.csv").write_text(f"{TEAM.splitlines()[0]},policy_version\n{steps}")
    call = ("assign", tmp_path / "team.csv", "-o", tmp_path / "out.csv", "--by", "task,policy_version")
    assert "0 with an advantage" in run(*call).stderr
    told = run(*call, "--option", "singleton=raw").stderr
    assert "9 with an advantage" in told and "9 actions of these: no other trace has the key, so that" in told
    valid = [row["valid"] for row in csv.DictReader((tmp_path / "out.csv").read_text().splitlines())]
    assert "without" not in told and valid == ["true"] * 9
    plain = run(*call[:-2], "--option", "singleton=raw").stderr
    assert "9 with an advantage" in plain and "without" not in plain


@pytest.mark.slow
def test_rewards_of_later_events_bias_a_row_that_is_not_paid_them(tmp_path: Path) -> None:
    steps = "".join(f"{line},{'0.5' if ',w,1,' in line else ''}\n" for line in TEAM.splitlines()[1:])
    (tmp_path / "team.csv").write_text(f"{TEAM.splitlines()[0]},event_reward\n{steps}")
    told = run("assign", tmp_path / "team.csv", "-o", tmp_path / "out.csv", "-m", "Turn-LOO").stderr
    assert "is biased: an action gets the outcome and its own reward, not the rewards at later events" in told
    plain = run("assign", tmp_path / "team.csv", "-o", tmp_path / "out.csv", "--by", "task").stderr
    assert "biased" not in plain


@pytest.mark.slow
def test_a_key_that_pools_tasks_says_so(tmp_path: Path) -> None:
    """`--by agent` compared over all tasks, and `--by agent_name` within one, both without a word."""
    (tmp_path / "team.csv").write_text(TEAM)
    call = ["assign", tmp_path / "team.csv", "-o", tmp_path / "out.csv", "--by"]
    assert "look: agent pools all tasks; --by task,agent compares within each" in run(*call, "agent").stderr
    assert all("pools all" not in run(*call, by).stderr for by in ("agent_name", "task,agent"))


@pytest.mark.slow
def test_an_action_is_compared_by_names_or_by_a_column_of_a_table(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    table = tmp_path / "rows.csv"
    table.write_text("trace,group,agent,reward,shift\na,q,x,1,n\nb,q,x,0,n\nc,q,x,0.5,d\nd,q,x,1,d\n")
    result = run("assign", table, "--method", "rloo", "--by", "task,shift", "-o", out)
    assert result.exit_code == 0, result.output
    with out.open() as file:
        assert [row["advantage"] for row in csv.DictReader(file)] == ["1", "-1", "-0.5", "0.5"]
    assert "the policy gradient may be biased: key: What decides it," in result.stderr
    assert run("assign", good, "--method", "rloo", "--by", "task,length", "-o", out).exit_code == 0
    refused = run("assign", good, "--method", "rloo", "--by", "task,trun", "-o", out)
    assert refused.exit_code == 1 and "by names 'trun'; did you mean 'turn'?" in refused.stderr
    for column in ("turns", "steps", "mykey", "task_hash"):  # a column that is there is no misspelt key
        table.write_text(f"trace,group,agent,reward,{column}\na,q,x,1,n\nb,q,x,0,n\n")
        assert run("assign", table, "--by", f"task,{column}", "-o", out).exit_code == 0, column
    for misspelt, near in (("trun", "; did you mean 'turn'?"), ("mykye", ""), ("shift", "")):
        refused = run("assign", table, "--by", f"task,{misspelt}", "-o", out)
        assert refused.exit_code != 0 and f"key is column '{misspelt}'; expected a column" in refused.stderr
        assert near in refused.stderr and ("did you mean" in refused.stderr) == bool(near)
    table.write_text("trace,group,agent,reward,turns\na,q,x,oops,n\n")
    assert "did you mean" not in run("assign", table, "--by", "turns", "-o", out).stderr
    archive = Path(__file__).parents[2] / "recordings" / "inspect_team.eval"
    assert "did you mean 'turn'?" in run("assign", archive, "--by", "trun", "-o", out).stderr
    refused = run("assign", good, "--method", "gae", "--by", "task", "-o", out)
    assert refused.exit_code == 1 and "method 'gae' has no option 'by'" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize(
    ("call", "reads"),
    [
        ("turn_baseline", True),
        ("discounted_return", None),
        ("rloo", False),
        ("rloo --by task,turn", True),
        ("hgpo", True),
        ("gigpo", None),
    ],
)
def test_a_method_that_reads_the_order_says_where_rows_are_out_of_it(
    call: str, reads: bool | None, paid: bool, tmp_path: Path
) -> None:
    """The reader's note did not say that the method's numbers rest on it; `gigpo` and others said nothing."""
    path, out = tmp_path / "log.csv", tmp_path / "out.csv"
    rows = ["a,q,s,t1,1,0", "a,q,s,t0,1,0", "a,q,s,u0,1,0", "b,q,s,t0,0,0", "b,q,s,t1,0,1"]  # not put in order
    names = "trace,group,anchor,turn,reward,event_reward"
    path.write_text("\n".join(row if paid else row.rpartition(",")[0] for row in (names, *rows)) + "\n")
    method, *options = call.split()
    said = run("assign", path, "-m", method, *options, "-o", out).stderr
    look = f": {method} reads rows in the order of the file, and in 1 trace one stands behind a later one"
    assert (look in said) is (paid if reads is None else reads)


@pytest.mark.slow
def test_rewards_at_events_that_a_method_takes_none_of_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome alone counted, without a word, where a function had no `event_reward` and for `puppeteer`."""
    traces = [trace(f"t{i}", "q", float(i)) for i in range(3)]
    for step in (0.0, -0.5):
        for one in traces:
            one["events"][1]["event_reward"] = step
        write(tmp_path / f"paid{step}.jsonl", traces)
    (tmp_path / "alone.py").write_text(
        "import credit\n\ndef own(graph, reward):\n    return credit.rloo(graph, reward)\n"
    )
    monkeypatch.chdir(tmp_path)
    own = "look: event_reward of 3 events is not used: alone:own counts outcomes alone, without a keyword-only event"
    assert run("assign", "paid-0.5.jsonl", "-m", "alone:own", "-o", "a.csv").stderr.count(own) == 1
    assert run("metrics", "paid-0.5.jsonl", "-m", "alone:own").stderr.count(own) == 1
    for more in ((), ("--chunk-events", "3")):
        said = run("assign", "paid-0.5.jsonl", "-m", "puppeteer", "-o", "a.csv", *more).stderr
        assert said.count("look: event_reward of 3 events is not used: puppeteer counts outcomes alone\n") == 1
    for log, method in (("paid0.0.jsonl", "alone:own"), ("paid-0.5.jsonl", "rloo"), ("paid-0.5.jsonl", "dr_mas")):
        assert "not used" not in run("assign", log, "-m", method, "-o", "a.csv").stderr
    read = credit.read("paid-0.5.jsonl")
    with pytest.warns(UnusedRewardsWarning, match="lambda"):
        credit.run(read, lambda graph, reward: credit.rloo(graph, reward))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        credit.run(read, "puppeteer", event_reward=None)


@pytest.mark.slow
def test_what_a_method_left_out_or_cannot_tell_apart_is_said(tmp_path: Path) -> None:
    """`reinforce_pp` weighed rows alike and `mgrpo` pooled everybody, without a word; trainers' rows got a warning."""
    path, out = tmp_path / "log.jsonl", tmp_path / "advantages.csv"
    path.write_text("".join(json.dumps(trace(f"t{i}", "q", float(i))) + "\n" for i in range(3)))
    tokens = "not used: tokens (3 in the log); --evidence tokens takes it"
    plain = run("assign", path, "-m", "reinforce_pp", "-o", out, "--json")
    assert tokens in plain.stderr and json.loads(plain.stdout)["unused_evidence"] == ["tokens"]
    taken = run("assign", path, "-m", "verl_grpo", "-o", out).output
    assert "not used" not in taken
    pooled = "compares by the parent, and no agent is spawned by another"
    assert f"look: mgrpo {pooled}" in run("assign", path, "-m", "mgrpo", "-o", out).output
    assert f"look: mgrpo {pooled}" in run("assign", path, "-m", "mgrpo", "-o", out, "--chunk-events", "3").output
    assert "look: dr_mas" not in run("assign", path, "-m", "dr_mas", "-o", out).output
    assert json.loads(run("methods", "--json", path).stdout)["mgrpo"]["why"] == pooled
    branches = json.loads(run("choose", path, "--json").stdout)["branches"]
    (role,) = (branch for branch in branches if branch["unit"] == "role")
    assert role["method"] == "" and role["needs"] == {"mgrpo": pooled}
