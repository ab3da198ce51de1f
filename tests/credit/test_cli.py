"""The command line: every command on small corpora, every exit code, and nothing heavy before it is needed."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from credit.cli import cli

ROOT = Path(__file__).resolve().parents[2]


def trace(name: str, task: str, reward: float | None, **changes: Any) -> dict[str, Any]:
    """A boss who briefs a solver; the tool's result is no action."""
    made: dict[str, Any] = {
        "trace_id": name,
        "task_id": task,
        "events": [
            {"id": "e0", "t": 0, "type": "orchestrator_decision", "agent": "boss"},
            {"id": "e1", "t": 1, "type": "message", "agent": "solver", "tokens": 7},
            {"id": "e2", "t": 2, "type": "tool_result", "agent": "solver"},
        ],
        "edges": [{"src": "e0", "dst": "e1", "type": "message"}],
        "rewards": {} if reward is None else {"team": reward},
        "costs": {"tokens": 7, "wall_clock_s": 1.0},
    }
    return made | changes


GOOD = [trace("a", "q", 1.0), trace("b", "q", 0.0), trace("c", "r", 1.0), trace("d", "r", 1.0), trace("e", "s", 0.5)]
CYCLE = trace("loop", "q", 1.0, edges=[{"src": s, "dst": d, "type": "causal"} for s, d in ("01", "10")])
for edge in CYCLE["edges"]:
    edge["src"], edge["dst"] = "e" + edge["src"], "e" + edge["dst"]


def write(path: Path, traces: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(t) + "\n" for t in traces))
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "good.jsonl", GOOD)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return write(tmp_path / "bad.jsonl", [*GOOD, CYCLE])


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in args])


# validate


def test_validate_names_what_teaches_nothing(good: Path) -> None:
    result = run("validate", good)
    assert result.exit_code == 0, result.output
    lines = " ".join(result.stdout.split())
    assert "traces 5" in lines
    assert "that teach 1 of 3" in lines
    assert "Groups with equal outcomes: r (all 1)" in lines
    assert "Groups of one: s" in lines
    assert "actions 10; a trace has 2" in lines
    assert "tokens generated 35; a trace has 7" in lines
    assert result.stderr == ""


def test_validate_lists_what_was_refused_and_exits_3(bad: Path) -> None:
    result = run("validate", bad)
    assert result.exit_code == 3
    assert "traces" in result.stdout and "problems (1): 1 cycle" in result.stdout
    assert f"{bad}:6: trace 'loop'" in result.stdout
    assert run("validate", "--allow-bad", bad).exit_code == 0


def test_validate_lists_twenty_problems_and_counts_the_rest(tmp_path: Path) -> None:
    loops = [CYCLE | {"trace_id": f"loop{i}"} for i in range(23)]
    path = write(tmp_path / "many.jsonl", [*GOOD, *loops])
    few, every = run("validate", path), run("validate", "--all", path)
    assert few.stdout.count("[cycle]") == 20 and "… and 3 more" in few.stdout
    assert every.stdout.count("[cycle]") == 23 and "more;" not in every.stdout


def test_validate_for_programs(bad: Path) -> None:
    result = run("validate", "--json", bad)
    found = json.loads(result.stdout)
    assert result.exit_code == 3
    assert found["equal"] == {"r": 1.0} and found["singletons"] == ["s"] and found["teaching"] == 1
    assert [p["kind"] for p in found["problems"]] == ["cycle"]


def test_validate_says_how_to_bring_missing_outcomes_and_tasks(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [trace("a", "q", None, rewards={"tests": 1.0}), trace("b", "r", None)])
    told = run("validate", path).stdout
    assert "No trace has an outcome 'team': pass --reward-channel with one of tests" in told
    assert "Every group has one trace" in told and "--groups FILE" in told
    plain = write(tmp_path / "y.jsonl", [trace("a", "q", None)])
    assert "pass --rewards FILE" in run("validate", plain).stdout
    table = tmp_path / "rewards.csv"
    table.write_text("trace,reward\na,1\nb,0\n")
    tasks = tmp_path / "groups.csv"
    tasks.write_text("trace,group\na,g\nb,g\n")
    found = json.loads(run("validate", "--json", path, "--rewards", table, "--groups", tasks).stdout)
    assert found["teaching"] == found["groups"] == 1


def test_text_from_logs_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07[bold red]x[/]\r\n"
    path = write(tmp_path / "x.jsonl", [trace("a", evil, 1.0), trace("b", evil, 1.0), CYCLE | {"trace_id": evil}])
    for args in (["validate", path], ["assign", path, "-o", tmp_path / "o.csv"], ["methods", path], ["show", path]):
        result = run(*args)
        assert result.exit_code == 3, result.output
        for character in "\x1b\x07\r":
            assert character not in result.output
    assert "[bold red]x[/]" in run("validate", path).output


# assign


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "arrow"])
def test_assign_writes_a_table(good: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out.{suffix}"
    result = run("assign", good, "-o", out, "--method", "rloo")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "rloo: 5 traces in 3 groups, 15 events, 10 actions, 8 with an advantage" in result.stderr
    assert "2 actions without: nothing to compare with: the group has one member" in result.stderr
    assert "2 groups taught nothing: r, s" in result.stderr
    assert f"wrote 15 rows to {out}" in result.stderr
    assert out.stat().st_size > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.jsonl", out.name]


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


def test_assign_takes_options_of_the_method(good: Path, tmp_path: Path) -> None:
    def advantage(*options: str) -> float:
        out = tmp_path / "out.jsonl"
        given = [word for option in options for word in ("--option", option)]
        result = run("assign", good, "-o", out, *given)
        assert result.exit_code == 0, result.output
        return float(json.loads(out.read_text().splitlines()[0])["advantage"])

    assert advantage("eps=0", "ddof=1") == pytest.approx(0.5**0.5)
    assert advantage("eps=0.5", "ddof=0") == pytest.approx(0.5)
    assert advantage("eps=0", "ddof=0", "singleton=raw") == pytest.approx(1)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--method", "gpro"], "no method is called 'gpro'; did you mean grpo"),
        (["--method", "zzzzzz"], "`credit methods` lists them"),
        (["--option", "epz=1"], "method 'grpo' has no option 'epz'; its options are: eps, ddof, singleton"),
        (["--option", "eps"], "--option 'eps'; expected KEY=VALUE"),
        (["--option", "eps=much"], "option 'eps' of 'grpo' is 'much'; expected a number"),
        (["--option", "ddof=0.5"], "option 'ddof' of 'grpo' is '0.5'; expected an integer"),
        (["--option", "singleton=drop"], "is 'drop'; expected 'refuse' or 'raw' or 'zero'"),
        (["--option", "eps=1", "--option", "eps=2"], "eps is given twice"),
        (["--option", "event_reward=1"], "has no option 'event_reward'"),
        (["--method", "remax"], "needs evidence that the log does not have. 'greedy_reward': add"),
        (["--format", "cvs"], "format is 'cvs'; expected one of"),
    ],
)
def test_assign_refuses_with_one_line(good: Path, tmp_path: Path, args: list[str], message: str) -> None:
    result = run("assign", good, "-o", tmp_path / "o.csv", *args)
    assert result.exit_code == 1
    if "singleton" in str(args):
        assert "is 'drop'; expected" in result.stderr
    else:
        assert message in result.stderr
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    "args",
    [
        ["assign"],
        ["assign", "{good}"],
        ["assign", "{good}", "-o", "x.csv", "--columns", "trace"],
        ["assign", "{good}", "-o", "x.csv", "--rewards", "missing.csv"],
        ["assign", "{good}", "-o", "x.txt"],
        ["assign", "{good}", "-o", "missing/x.csv"],
        ["validate", "{good}", "--nonsense"],
        ["convert", "{good}", "-o", "x.json"],
        ["show", "{good}", "--trace", "zz"],
        ["show", "{good}", "--plot", "x.docx"],
        ["completion", "tcsh"],
        ["nonsense"],
        [],
    ],
)
def test_usage_errors_exit_1(good: Path, args: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(a.format(good=good) for a in args))
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert [p.name for p in tmp_path.iterdir()] == ["good.jsonl"]


def test_evidence_reaches_the_method(tmp_path: Path) -> None:
    greedy = [trace("a", "q", 1.0, evidence={"greedy_reward": 0.25}), trace("b", "q", 0.0)]
    out = tmp_path / "out.jsonl"
    result = run("assign", write(tmp_path / "x.jsonl", greedy), "-o", out, "--method", "remax", "--actions-only")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(r["advantage"], r["valid"]) for r in rows] == [(0.75, True)] * 2 + [(0.0, False)] * 2
    assert "2 actions without: the log lacks the evidence" in result.stderr


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


@pytest.mark.parametrize("command", ["validate", "assign", "show", "methods", "convert"])
def test_nothing_read_exits_2(tmp_path: Path, command: str) -> None:
    out = ["-o", str(tmp_path / "out.jsonl")] if command in ("assign", "convert") else []
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"trace_id": "a", "task_id": "q", "events": [')
    result = run(command, broken, tmp_path / "missing.json", *out)
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[0] == "error: no trace could be read"
    assert "[no-such-file]" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["broken.jsonl"]


# methods, convert, schema, completion, show


def test_methods_lists_every_promise() -> None:
    from credit.methods import METHODS

    result = run("methods")
    assert result.exit_code == 0
    for name in METHODS:
        assert name in result.stdout
    plain = json.loads(run("methods", "--json").stdout)
    assert plain["remax"]["needs"] == ["greedy_reward"] and plain["rloo"]["unbiased"] is True


def states(*traces: dict[str, Any], path: Path) -> dict[str, tuple[str, str]]:
    result = run("methods", "--json", write(path, traces))
    assert result.exit_code == 0, result.output
    return {name: (m["state"], m["why"]) for name, m in json.loads(result.stdout).items()}


def test_methods_says_what_logs_allow(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    found = states(*GOOD, path=path)
    assert found["grpo"] == ("computable", "")
    assert found["remax"][0] == "missing" and "greedy_reward" in found["remax"][1]

    lone = states(trace("a", "q", 1.0), trace("b", "r", 0.0), path=path)
    assert lone["grpo"][0] == lone["dr_mas"][0] == "degenerate" and "nothing to compare" in lone["grpo"][1]
    assert lone["reinforce_batch"][0] == lone["moving_average"][0] == "computable"

    even = states(trace("a", "q", 1.0), trace("b", "q", 1.0), path=path)
    assert even["grpo"][0] == even["reinforce_batch"][0] == even["dr_mas"][0] == "degenerate"
    assert "equal outcomes" in even["grpo"][1]

    penal = trace("a", "q", 1.0)
    penal["events"][0]["event_reward"], penal["events"][1]["event_reward"] = -0.5, 0.5
    rows = states(penal, trace("b", "q", 1.0), path=path)
    assert rows["grpo"][0] == "degenerate"  # equal returns of traces ...
    assert rows["verl_grpo"][0] == "computable"  # ... but rows that differ

    none = states(trace("a", "q", None), trace("b", "q", None), path=path)
    assert none["grpo"][0] == "missing" and "--rewards" in none["grpo"][1]
    assert "degenerate" in run("methods", write(path, GOOD[2:4])).stdout


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_convert_writes_what_reads_back(bad: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"again.{suffix}"
    result = run("convert", bad, "-o", out)
    assert result.exit_code == 3 and "wrote 5 traces" in result.stderr
    before, after = (json.loads(run("validate", "--json", p).stdout) for p in (bad, out))
    differ = {key for key in before if before[key] != after[key]}
    assert differ == {"problems", "problem_kinds"}


def test_convert_writes_otlp(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "otlp"
    assert run("convert", good, "--to", "otlp", "-o", out).exit_code == 0
    found = json.loads(run("validate", "--json", out).stdout)
    assert found["traces"] == 5 and found["formats"] == {"otlp": 5}


def test_schema_is_a_json_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(run("schema").stdout)
    jsonschema.validators.validator_for(schema).check_schema(schema)
    jsonschema.validate(GOOD[0], schema)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_CREDIT_COMPLETE" in result.stdout


def test_completion_knows_methods_and_formats() -> None:
    def complete(words: str) -> str:
        env = {"_CREDIT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return CliRunner().invoke(cli, [], env=env, prog_name="credit").output

    assert "plain,rloo" in complete("credit assign --method rl")
    assert "plain,native" in complete("credit validate --format nat")


def test_show_prints_and_draws_one_trace(good: Path, tmp_path: Path) -> None:
    result = run("show", good, "--trace", "b")
    assert result.exit_code == 0, result.output
    assert "boss" in result.stdout and "solver" in result.stdout
    pytest.importorskip("matplotlib")
    plot = tmp_path / "b.svg"
    assert run("show", good, "--trace", "b", "--plot", plot, "--method", "rloo").exit_code == 0
    assert b"<svg" in plot.read_bytes()


@pytest.mark.slow
def test_demo_writes_and_compares(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("demo", "-o", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    assert json.loads(run("validate", "--json", tmp_path / "demo" / "traces.jsonl").stdout)["traces"] > 0
    assert (tmp_path / "demo" / "advantages.parquet").stat().st_size > 0


# processes


LISTENING = (
    "-c",  # a shell starts what it runs in the background with interrupts ignored, and that is inherited
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import credit.__main__ as c; c.main()",
)


def start(*args: object, program: Sequence[str] = ("-m", "credit"), **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, *program, *map(str, args)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("args", [["--help"], ["assign", "--help"], ["--version"], ["completion", "zsh"]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    script = (
        "import sys\nfrom credit.cli import cli\n"
        f"try: cli({args!r})\nexcept SystemExit as e: assert e.code == 0, e.code\n"
        "heavy = {'jax', 'numpy', 'pyarrow', 'matplotlib', 'networkx', 'pandas', 'torch', 'msgspec', 'rich'}\n"
        "found = heavy & {m.split('.')[0] for m in sys.modules}\nassert not found, found\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    many = [trace(f"t{i}", f"q{i // 8}", float(i % 3)) for i in range(1000)]
    with start("assign", write(tmp_path / "x.jsonl", many), "-o", "-") as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_an_interrupt_leaves_no_file(tmp_path: Path) -> None:
    with start("assign", "-", "-o", tmp_path / "out.csv", stdin=subprocess.PIPE, program=LISTENING) as process:
        assert process.stdin and process.stderr
        process.stdin.write(b" " * (1 << 20))  # more than a pipe holds: once it is gone, the command is reading
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        process.stdin.close()  # so that a signal between two system calls is noticed too
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 130
    assert not list(tmp_path.iterdir())


def test_an_interrupt_while_computing_is_no_crash(good: Path, tmp_path: Path) -> None:
    """Interpreters that are torn down while XLA compiles crash; the command leaves without tearing down."""
    for delay in (1.5, 3.0):
        command = ("compose", good, "--methods", "rloo,dr_mas", "-o", tmp_path / "out.csv")
        with start(*command, program=LISTENING) as process:
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            process.communicate()
        assert process.returncode in (130, 0)  # done before, or Python met the signal in a callback, which ignores it
        left = {path.name for path in tmp_path.iterdir()}
        assert left <= {good.name, "out.csv"} and (process.returncode == 0 or "out.csv" not in left)


@pytest.mark.parametrize("command", ["assign", "compose", "audit"])
def test_no_output_replaces_an_input(command: str, good: Path) -> None:
    before = good.read_bytes()
    chosen = ["--method", "rloo"] if command == "assign" else ["--methods", "rloo"]
    result = run(command, good, *chosen, "-o", good)
    assert result.exit_code == 1 and "is an input; expected another file" in result.output
    assert good.read_bytes() == before


def test_two_outputs_are_two_files(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "l.csv"
    result = run("compose", good, "--methods", "rloo", "-o", out, "--advantage", "entry", "--advantages-to", out)
    assert result.exit_code == 1 and "expected another file" in result.output
    assert not out.exists()


@pytest.mark.parametrize("option", ["lambda_=inf", "lambda_=nan", "lambda_=1e400", "discount=1e300"])
def test_options_are_numbers_that_the_arithmetic_can_hold(option: str, good: Path, tmp_path: Path) -> None:
    result = run("assign", good, "-o", tmp_path / "x.csv", "--method", "gae", "--option", option)
    assert result.exit_code == 1 and "expected a finite number" in result.output


def test_standard_input_and_standard_output(good: Path) -> None:
    process = start("assign", "-", "-o", "-", "--method", "rloo", stdin=subprocess.PIPE)
    out, err = process.communicate(good.read_bytes())
    assert process.returncode == 0, err
    assert len(out.splitlines()) == 16
    assert b"\x1b" not in err and b"wrote 15 rows" in err


def test_real_logs(shared_data: Path, tmp_path: Path) -> None:
    logs = shared_data / "tau_bench_airline"
    found = json.loads(run("validate", "--json", logs).stdout)
    assert (found["traces"], found["groups"], found["teaching"], len(found["equal"])) == (80, 20, 11, 9)
    out = tmp_path / "out.parquet"
    result = run("assign", logs, "-o", out, "--method", "rloo", "--actions-only")
    assert result.exit_code == 0 and "9 groups taught nothing" in result.stderr
    rows = pyarrow.parquet.read_table(out)
    assert rows.num_rows == found["actions"]
    first = rows.slice(0, 1).to_pylist()[0]
    mates = {r["trace"]: r["reward"] for r in rows.to_pylist() if r["group"] == first["group"]}
    others = [reward for name, reward in mates.items() if name != first["trace"]]
    assert first["advantage"] == pytest.approx(first["reward"] - sum(others) / len(others))
