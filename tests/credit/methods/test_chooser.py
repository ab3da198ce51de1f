"""The chooser: each branch is decided by evidence that is, or is not, in the log."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import unittest.mock
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from linear_time import assert_linear

import credit
from credit.advice import BRANCHES, TRAINED_WITH, UNITS, Advice, choose
from credit.advice_trial import try_advice
from credit.bias_in_log import OnLog, on_log
from credit.cli import cli
from credit.methods import survey_questions
from credit.methods.running import run_part
from credit.methods.survey_questions import LONG, QUESTIONS, _per_trace, answer_questions
from graphs.logs import read
from graphs.traces.batch import Traces

ROOT = Path(__file__).resolve().parents[3]


def write(path: Path, *, rewards: tuple[float, ...] = (0.0, 1.0, 1.0), agents: int = 1, **evidence: Any) -> Path:
    """Traces of one task: a decision and two messages; evidence by name, one for all events or by (trace, event)."""
    lines = []
    for i, reward in enumerate(rewards):
        events: list[dict[str, Any]] = []
        for k, kind in enumerate(("orchestrator_decision", "message", "message")):
            event = {"id": f"e{k}", "t": k, "type": kind, "agent": f"a{k % agents}", "action": True}
            event |= {name: value(i, k) if callable(value) else value for name, value in evidence.items()}
            events.append(event)
        content = {"trace_id": f"t{i}", "task_id": "q", "events": events, "edges": [], "rewards": {"team": reward}}
        lines.append(json.dumps(content | {"costs": {"tokens": 1, "wall_clock_s": 1.0}}))
    path.write_text("\n".join(lines))
    return path


def advice(path: Path) -> Advice:
    return choose(read(path))


def methods(found: Advice) -> dict[str, str]:
    return {branch.unit: branch.method for branch in found.branches}


def test_every_method_and_unit_of_the_tree_exists() -> None:
    assert [unit for unit, _ in BRANCHES] == list(UNITS)
    assert {name for _, names in BRANCHES for name in names} <= set(credit.METHODS)


def test_an_outcome_alone_is_broadcast_and_says_so(tmp_path: Path) -> None:
    found = advice(write(tmp_path / "x.jsonl"))
    expected = {"team": "rloo", "orchestrator": "", "message": "", "tool": "", "agent": "", "role": "", "token": ""}
    assert methods(found) | {"turn": ""} == expected | {"turn": ""}
    assert found.command == "credit assign PATH... --method rloo -o advantages.parquet"
    assert found.report == "" and "actions differ at most by who took part" in found.warnings[-1]
    by_unit = {branch.unit: branch for branch in found.branches}
    assert '"context": STRING' in by_unit["message"].needs["c3"] and by_unit["tool"].why.startswith(
        "the logs have no such"
    )


@pytest.mark.slow
def test_what_training_found_is_cited_as_the_stored_comparison_has_it(tmp_path: Path) -> None:
    stored = json.loads((ROOT / "benchmarks" / "results" / "training.json").read_text())
    better, worse = set(), set()
    for cell in stored["cells"]:
        if cell["difference_p"] < 0.05:
            (better if cell["difference"] > 0 else worse).add((cell["signal"], cell["task"]))
    assert stored["against"] == "rloo"
    assert {signal for signal, _ in better} == {"exact_increments", "activity_bonus"}  # an oracle and a shaped reward
    tasks = {cell["task"] for cell in stored["cells"]}
    assert {task for signal, task in worse if signal == "control_c3"} == tasks and len(tasks) == 8
    assert not any(signal.startswith("control_critic") for signal, _ in better | worse)
    assert all(
        name in TRAINED_WITH[""] for name in {"gae", "turn_baseline"} & {cell["signal"] for cell in stored["cells"]}
    )
    assert "no composition beat rloo on any of 8 tasks" in TRAINED_WITH[""] and "8 of 8" in TRAINED_WITH["c3"]
    assert "did not differ from rloo on any of 8 tasks" in TRAINED_WITH["coma"]

    path = write(tmp_path / "x.jsonl")
    found = advice(path)
    assert found.trained_with.startswith(TRAINED_WITH[""]) and "docs/training.md" in found.trained_with
    shown = CliRunner().invoke(cli, ["choose", str(path)])
    assert f"trained with it: {found.trained_with}" in shown.output
    siblings = advice(many_tasks(tmp_path / "s.jsonl"))
    assert siblings.trained_with.startswith(TRAINED_WITH["c3"])
    alone = advice(write(tmp_path / "one.jsonl", rewards=(1.0,)))
    assert alone.baseline != "rloo" and alone.trained_with == ""  # not compared, so not cited


@pytest.mark.slow
def test_values_make_a_ledger_to_read_and_nothing_biased_is_recommended_for_training(tmp_path: Path) -> None:
    found = advice(write(tmp_path / "x.jsonl", agents=2, value=0.5))
    assert methods(found)["message"] == methods(found)["orchestrator"] == "gae"
    assert found.compose == ("gae",) and not any("differ at most by who took part" in line for line in found.warnings)
    assert found.command == "credit assign PATH... --method rloo -o advantages.parquet"
    assert found.report == "credit compose PATH... --methods rloo,gae -o ledger.parquet"
    agent = {branch.unit: branch for branch in found.branches}["agent"]
    assert agent.method == "dr_mas" and not agent.unbiased and "biased" in agent.why


def test_what_has_less_variance_and_no_bias_either_stands_beside_rloo_with_its_condition(tmp_path: Path) -> None:
    """`gae` was called right only where the values are; at lambda_=1 no value made before its action biases it."""

    def paid(i: int, k: int) -> float:
        return float(k == i)

    def beside(found: Advice) -> dict[str, str]:
        return {use: command for use, command, _ in found.commands if use.startswith("or")}

    path = write(tmp_path / "x.jsonl", value=0.5, turn=lambda i, k: k, event_reward=paid)
    found = advice(path)
    before = "or, if each value was computed before its action"
    by_values = "credit assign PATH... --method gae --option lambda_=1 -o advantages.parquet"
    by_turns = "credit assign PATH... --method turn_baseline -o advantages.parquet"
    assert "--method rloo" in found.command and beside(found) == {before: by_values, "or": by_turns}
    shown = CliRunner().invoke(cli, ["choose", str(path)]).output
    assert f"{before}: {by_values.replace('PATH...', str(path))}\n  standard deviation over 9 actions" in shown
    assert "claims are right only where the logged values are right; the ledger is for reading" in shown
    # Alternatives stood before the reasons, and a table of a survey's questions behind all was half of the answer.
    starts = ["to train: ", "why: return against", "trained with it: ", "luck: ", f"{before}: ", "or: ", "to read: "]
    places = [shown.index(f"\n{start}") for start in (*starts[1:], "unit ", "nothing to compare in these logs: ")]
    assert shown.startswith(starts[0]) and places == sorted(places) and "survey" not in shown
    assert re.search(r"^team .* rloo +as said above *$", shown, re.MULTILINE)
    some = advice(write(tmp_path / "y.jsonl", value=lambda i, k: 0.5 if k or i else float("nan")))
    assert beside(some) == {} == beside(advice(write(tmp_path / "z.jsonl")))
    assert some.trial.refused["gae --option lambda_=1"] == "1 action without a value would get no advantage"


@pytest.mark.slow
def test_a_ledger_to_read_has_only_claims_that_a_ledger_takes(tmp_path: Path) -> None:
    """`puppeteer`, a return without values, was recommended for a ledger, which refused it."""
    counted = advice(write(tmp_path / "x.jsonl", tokens=lambda i, k: 3 + i))
    assert methods(counted)["orchestrator"] == "puppeteer" and counted.compose == () and counted.report == ""
    steps = advice(write(tmp_path / "y.jsonl", turn=lambda i, k: k, event_reward=lambda i, k: float(k == i)))
    assert steps.report == "credit compose PATH... --methods rloo,turn_baseline -o ledger.parquet"
    assert any("only rewards at events tell the actions" in line for line in steps.warnings)
    assert not any("logged values" in line for line in steps.warnings)


def test_evidence_that_whole_groups_lack_counts_against_a_method(tmp_path: Path) -> None:
    """`gae` came first where 5 of 13 groups had no value."""
    log = write(tmp_path / "x.jsonl", rewards=(0.0, 1.0) * 2, value=lambda i, k: 0.5 if i < 2 else None)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for i, line in enumerate(lines):
        line["task_id"] = "with" if i < 2 else "without"
        line["events"] = [{k: v for k, v in e.items() if v is not None} for e in line["events"]]
        for turn, event in enumerate(line["events"]):
            event["turn"] = turn
    log.write_text("\n".join(map(json.dumps, lines)))
    turn = {branch.unit: branch for branch in advice(log).branches}["turn"]
    assert turn.method == "turn_baseline" and turn.needs["gae"] == "1 of 2 groups have no value"
    message = {branch.unit: branch for branch in advice(log).branches}["message"]  # nothing else is there
    assert message.method == "gae" and message.why.endswith("; 1 of 2 groups have no value")
    for line in lines:
        line["events"] = [event | {"value": 0.5} for event in line["events"]]
    log.write_text("\n".join(map(json.dumps, lines)))
    assert methods(advice(log))["turn"] == "gae"


def test_agents_at_once_have_one_turn_as_to_the_methods(tmp_path: Path) -> None:
    """656 turns were counted where methods compare 492."""
    rows = [
        f"q,{trace},{agent},{turn},{trace + str(turn) if agent in 'ab' else ''},{int(trace == 's')}"
        for trace in "rs"
        for turn in range(3)
        for agent in ("planner", "a", "b")
    ]
    log = tmp_path / "x.csv"
    log.write_text("\n".join(["group,trace,agent,turn,context,reward", *rows]))
    turn = {branch.unit: branch for branch in advice(log).branches}["turn"]
    assert turn.stated == "12 turns with an action in 2 traces"


@pytest.mark.slow
@pytest.mark.parametrize("alternatives", [1, 2])
def test_siblings_count_only_where_a_context_has_two(tmp_path: Path, alternatives: int) -> None:
    def context(i: int, k: int) -> str:
        return f"c{k}"

    def node(i: int, k: int) -> str:
        return f"n{k}-{i % alternatives}"

    alike = {"alternative": lambda i, k: f"a{k}"}  # the context after it is one
    found = advice(write(tmp_path / "x.jsonl", context=context, node=node, **alike))
    assert methods(found)["message"] == ("c3" if alternatives == 2 else "")
    assert ("--methods rloo,c3 -o ledger.parquet" in found.report) == (alternatives == 2)
    needs = {branch.unit: branch.needs for branch in found.branches}["message"]
    assert ("no context has two alternatives" in needs.get("c3", "")) == (alternatives == 1)


@pytest.mark.parametrize("acts", [True, False])
def test_a_context_without_a_node_is_not_called_a_want_of_siblings(acts: bool, tmp_path: Path) -> None:
    """Nodes stood at other events; "sample siblings" would have cost rollouts that the log already had.

    And `credit methods` called `c3` computable.
    """
    alike = {"context": lambda i, k: f"c{k}" if k else None, "node": lambda i, k: None if k else f"n{i}"}
    alike |= {"alternative": lambda i, k: f"a{k}"}
    if not acts:
        alike |= {"node": lambda i, k: f"n{i}", "action": lambda i, k: k == 0}
    found = advice(write(tmp_path / "x.jsonl", **alike))
    needs = {branch.unit: branch.needs for branch in found.branches}["orchestrator"]
    assert needs["c3"].startswith("no action has both a context and a node")
    states = json.loads(CliRunner().invoke(cli, ["methods", str(tmp_path / "x.jsonl"), "--json"]).stdout)
    for name in ("c3", "magrpo"):
        assert states[name]["state"] == "missing" and states[name]["why"] == needs["c3"]


@pytest.mark.slow
@pytest.mark.parametrize("longer", [False, True])
def test_why_turns_without_rewards_do_not_call_for_mt_grpo(tmp_path: Path, longer: bool) -> None:
    """They had the last turn's outcome, compared with other traces' last turns, and differed where another ended."""
    path = write(tmp_path / "x.jsonl", rewards=(1.0, 0.0, 0.5))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for k, event in enumerate(line["events"]):
            event |= {"turn": str(k), "type": "tool_call"}
    lines[0]["events"] = lines[0]["events"][: 2 if longer else 3]
    path.write_text("\n".join(map(json.dumps, lines)))
    traces = read(path)
    advantages = np.asarray(credit.run(traces, "mt_grpo").advantage)[: traces.sizes.events].tolist()
    assert len(set(advantages[-3:])) == 1  # within one trace
    needs = {branch.unit: branch.needs for branch in choose(traces).branches}["tool"]
    assert needs["mt_grpo"] == "no rewards at events: all turns of a trace have its outcome's number alone"
    printed = CliRunner(env={"COLUMNS": None}).invoke(cli, ["choose", str(path)]).stdout
    assert "would need, or why not" in printed
    _, *table = printed[printed.index("would need, or why not") :].split("\n\n")[0].splitlines()
    assert table and max(map(len, table)) <= 120  # sentences stood in rows of 400 characters


@pytest.mark.slow
def test_one_context_of_two_tasks_has_no_siblings(tmp_path: Path) -> None:
    """`c3` was recommended, and refused every action."""

    def node(i: int, k: int) -> str | None:
        return f"n{i // 2}" if k == 1 else None

    path = write(tmp_path / "x.jsonl", rewards=(0.0, 1.0, 1.0, 0.0), context="root", node=node)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line.replace('"q"', f'"q{i // 2}"') for i, line in enumerate(lines)))
    found = advice(path)
    assert methods(found)["message"] == "" and not np.asarray(credit.run(read(path), "c3").valid).any()
    needs = {branch.unit: branch.needs for branch in found.branches}["message"]
    assert "no context has two alternatives" in needs["c3"]


def test_groups_that_cannot_teach_fall_back_by_name(tmp_path: Path) -> None:
    lone = write(tmp_path / "x.jsonl")
    lone.write_text("\n".join(line.replace('"q"', f'"q{i}"') for i, line in enumerate(lone.read_text().splitlines())))
    found = advice(lone)
    assert found.baseline == "reinforce_batch" and "no group has traces of different outcomes" in found.warnings[0]
    assert "nothing to compare" in found.branches[0].needs["rloo"]
    equal = advice(write(tmp_path / "y.jsonl", rewards=(1.0, 1.0)))
    assert equal.baseline == equal.command == equal.report == ""


def test_no_baseline_is_recommended_where_all_traces_are_replays_or_frozen(tmp_path: Path) -> None:
    """`rloo` refuses every trace of a single fan-out, and was recommended."""

    def at_second(name: str) -> Any:
        return lambda i, k: name.format(i) if k == 1 else None

    path = write(tmp_path / "x.jsonl", context=at_second("c"), node=at_second("n{}"))
    found = advice(path)
    assert found.baseline == found.report == "" and "share a choice" in found.branches[0].needs["rloo"]
    assert found.command == "credit assign PATH... --method c3 -o advantages.parquet"
    given = credit.run(read(path), "c3").advantage
    assert any(abs(number) > 0 for number in given.tolist())
    frozen = advice(write(tmp_path / "y.jsonl", trainable=0))
    assert frozen.command == "" and "frozen" in frozen.branches[0].needs["rloo"]


def second_only(name: str) -> Callable[[int, int], str | None]:
    return lambda i, k: name.format(i=i, pair=i // 2) if k == 1 else None


def many_tasks(path: Path, told: float = 1.0, **evidence: Any) -> Path:
    """24 tasks of four traces, in each two contexts of two siblings; these decide the outcome but for noise."""
    rng = np.random.default_rng(0)
    lines = []
    for task in range(24):
        rewards = tuple(told * (i % 2) + rng.normal(0, 0.2) for i in range(4))
        siblings = {"context": second_only(f"c{task}-{{pair}}"), "node": second_only(f"n{task}-{{i}}")}
        write(path, rewards=rewards, **(siblings if told else {}), **evidence)
        for i, line in enumerate(path.read_text().splitlines()):
            lines.append(json.dumps(json.loads(line) | {"trace_id": f"{task}-{i}", "task_id": f"q{task}"}))
    path.write_text("\n".join(lines))
    return path


def critic_of_noise(path: Path) -> Path:
    """A critic's values of choices that have nothing to do with the outcomes of many tasks."""
    rng = np.random.default_rng(1)
    return many_tasks(path, told=0.0, q_value=lambda i, k: float(rng.normal()), target_value=lambda i, k: 0.0)


def of_agents(path: Path) -> Path:
    """Outcomes of two agents, and none of a trace."""
    write(path, agents=2, agent_reward=lambda i, k: float(i == k % 2) if k else None)
    path.write_text("\n".join(json.dumps(json.loads(x) | {"rewards": {}}) for x in path.read_text().splitlines()))
    return path


LOGS: dict[str, Callable[[Path], Path]] = {
    "siblings on one type": lambda p: write(
        p, rewards=(0.0, 1.0, 0.5, 0.0), context=second_only("c{pair}"), node=second_only("n{i}"), type=mixed_types
    ),
    "siblings everywhere": lambda p: write(
        p, context=lambda i, k: f"c{k}", node=lambda i, k: f"n{k}-{i % 2}", alternative=lambda i, k: "a"
    ),
    "many tasks": many_tasks,
    "many tasks, siblings on one type": lambda p: many_tasks(p, type=mixed_types),
    "many tasks, a critic of noise": critic_of_noise,
    "values": lambda p: write(p, agents=2, value=0.5),
    "outcomes": write,
    "outcomes of agents": of_agents,
    "outcomes of agents and traces": lambda p: write(p, agents=2, agent_reward=lambda i, k: float(i == k % 2)),
    "one fan-out": lambda p: write(p, context=second_only("c"), node=second_only("n{i}")),
}


def mixed_types(i: int, k: int) -> str:
    return "message" if k == 1 else "orchestrator_decision"


def written_effect(folder: Path, command: str) -> str:
    """The standard deviations of what a command wrote, in the words of `choose`."""
    if "advantages.parquet" in command:
        table = pq.read_table(folder / "advantages.parquet")
        advantage = np.asarray(table.filter(table["valid"])["advantage"], np.float64)
        assert advantage.any()
        return f" {advantage.std():.3g}"
    rows = pq.read_table(folder / "ledger.parquet").to_pandas()
    parts = rows.pivot_table(index="trace", columns="entry", values="amount", aggfunc="sum", observed=True)
    told, rest = parts.sum(axis=1) - parts["expected"], parts["unexplained"]
    return f"returns minus expected {told.std(ddof=0):.3g}, unexplained {rest.std(ddof=0):.3g}"


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("log", LOGS)
def test_every_printed_command_runs_on_its_log_with_the_stated_effect(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = LOGS[log](tmp_path / "x.jsonl")
    shown = CliRunner().invoke(cli, ["choose", str(path)]).stdout
    found = choose(read(path), inputs=[str(path)])
    # The answer stood below some 30 lines of reasons.
    otherwise = f"first mend, or rule out: {found.trial.unless}\nthen to train: {found.command_if_not}\n"
    assert shown.startswith(f"to train: {found.command}\n" if found.command else otherwise)
    assert shown.index("\nluck:") < shown.index("\nunit  ")
    monkeypatch.chdir(tmp_path)
    printed = re.findall(r"^[\w ,]+: (credit .*)$", shown, re.MULTILINE)
    assert printed == [command for _, command, _ in found.commands] and printed
    for _, command, effect in found.commands:
        assert str(path) in command and f"{command}\n  {effect}\n" in shown
        followed = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert followed.exit_code == 0, followed.output
        assert effect.startswith("standard deviation over ") and written_effect(tmp_path, command) in effect
        if f"--method {found.baseline} -o" in command:  # one said "no bias", the other that there may be one
            but = re.search(r"the policy gradient (.*)", followed.output)
            assert (but.group(1) if but else "no bias") in found.branches[0].why
        if "control" in command:
            before, after = map(float, re.findall(r"(?:rloo|control) ([\d.]+)", effect))
            assert effect in followed.output and after < before  # else the baseline is recommended
    for kind, why in found.trial.refused.items():
        assert f"no {kind}: {why}" in shown


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (
            "siblings everywhere",
            "β = 0, as it needs 64 traces of other groups with claims, there are 0",
        ),  # of one task, there are no others to fit on
        ("siblings on one type", "β = 0, as"),  # with --decided-before
        pytest.param("many tasks, a critic of noise", "nothing gained: not below rloo", marks=pytest.mark.slow),
    ],
)
def test_control_that_gains_nothing_on_its_log_is_not_recommended(log: str, why: str, tmp_path: Path) -> None:
    found = advice(LOGS[log](tmp_path / "x.jsonl"))
    assert found.command == "credit assign PATH... --method rloo -o advantages.parquet"
    assert found.command_if_so == "" and why in found.trial.refused["control"]
    assert found.trained_with.startswith(TRAINED_WITH[""])


@pytest.mark.parametrize("valued", [False, True])
def test_every_claim_that_control_may_take_is_tried(valued: bool) -> None:
    """A logged `value` put `gae` before `coma` in all branches: `rloo` was told, of nearly twice the spread."""
    draw, n = np.random.default_rng(0), 96
    part = draw.normal(size=(n, 3))
    before = np.cumsum(part, axis=1) - part
    evidence = {"q_value": (before + part).ravel(), "target_value": before.ravel()}
    _, _, rows = credit.from_columns(
        group=np.arange(3 * n) // 12, trace=np.arange(3 * n) // 3, agent=["a", "b", "c"] * n,
        reward=np.repeat(part.sum(axis=1), 3), evidence=evidence | ({"value": before.ravel()} if valued else {}),
    )  # fmt: skip
    found = choose(rows.traces)
    assert "--methods rloo,coma -o" in found.command and found.trial.claims == ("coma",)
    assert not [line for line in found.warnings if "come from the baseline" in line]


@pytest.mark.slow
def test_siblings_on_one_event_type_call_for_rloo_and_a_question(tmp_path: Path) -> None:
    """`control` leaves such claims out, so that the recommended command gave the numbers of `rloo`."""
    path = LOGS["many tasks, siblings on one type"](tmp_path / "x.jsonl")
    found = advice(path)
    assert found.command == "credit assign PATH... --method rloo -o advantages.parquet"
    assert found.command_if_so.endswith("--advantages-to advantages.parquet --decided-before c3")
    assert "every message carries a claim and no orchestrator_decision does" in found.trial.question
    traces = read(path)
    rloo, c3 = credit.run(traces, "rloo"), credit.run(traces, "c3")
    control = credit.compose(traces.graph, traces.reward, [rloo, c3]).advantage("control")
    assert control.used == () and control.credit.advantage.tolist() == rloo.advantage.tolist()


@pytest.mark.slow
def test_a_log_of_outcomes_of_agents_is_not_called_empty(tmp_path: Path) -> None:
    path = of_agents(tmp_path / "x.jsonl")
    for command in ("validate", "choose"):
        shown = CliRunner().invoke(cli, [command, str(path)]).output
        assert "No trace has an outcome" not in shown and "to train: nothing" not in shown
    found = advice(path)
    assert methods(found)["agent"] == "hierarchical_grpo" and found.warnings == ()
    # Its command had no condition, though the table has one.
    assert found.baseline == "rloo" and "--method rloo -o" in found.command_if_not and not found.command
    traces = read(path)
    explicit = credit.run(traces, "rloo", by="task,agent", population="agent")
    assert credit.run(traces, "rloo").advantage.tolist() == explicit.advantage.tolist()


@pytest.mark.slow
def test_claims_of_many_tasks_narrow_the_advantages(tmp_path: Path) -> None:
    effect = choose(read(LOGS["many tasks"](tmp_path / "x.jsonl"))).trial.effect
    before, after = map(float, re.findall(r"(?:rloo|control) ([\d.]+)", effect))
    assert "β = 0" not in effect and after < 0.95 * before


def test_numbers_that_are_all_zero_are_not_recommended(tmp_path: Path) -> None:
    """Siblings of equal value: `c3` answers, and every advantage is 0."""
    context, node = second_only("c"), lambda i, k: f"n{(i + 1) // 2 % 2}" if k == 1 else None
    found = advice(write(tmp_path / "x.jsonl", rewards=(0.0, 0.0, 1.0, 1.0), context=context, node=node))
    assert methods(found)["message"] == "c3" and found.command == ""


@pytest.mark.slow
def test_real_logs_get_honest_advice(shared_data: Path) -> None:
    tau = choose(read(shared_data / "tau_bench_airline"))
    assert tau.baseline == "rloo" and tau.compose == ()
    assert any("groups without a training signal: 9 of 20" in line for line in tau.warnings)
    blamed = choose(read(shared_data / "who_and_when"))
    assert any("no group has traces of different outcomes" in line for line in blamed.warnings)
    assert blamed.command == ""  # every outcome is 0, and so would be every advantage


def test_commands_repeat_the_paths_and_options_of_the_call(tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    log = write(folder / "x.jsonl")
    result = CliRunner().invoke(cli, ["choose", str(log), "--format", "native", "--limit", "events=100", "--json"])
    assert result.exit_code == 0, result.output
    expected = f"credit assign '{log}' --format native --limit events=100 --method rloo -o advantages.parquet"
    assert json.loads(result.stdout)["command"] == expected


def test_the_questions_of_the_survey_are_answered_by_counts(tmp_path: Path) -> None:
    def answers(path: Path) -> dict[str, bool | None]:
        return {question.name: question.answer for question in advice(path).questions}

    plain = answers(write(tmp_path / "x.jsonl"))
    assert set(plain) == set(QUESTIONS) and not any(plain.values())
    staged = answers(write(tmp_path / "y.jsonl", agents=3, value=0.5, role=lambda i, k: f"role{k}"))
    assert [name for name, answer in staged.items() if answer] == [
        "fine attribution",
        "heterogeneous roles",
        "pipeline",
        "critic",
        "reward shared by agents",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_method_is_said_to_tell_actions_apart_where_its_numbers_do(tmp_path: Path, seed: int) -> None:
    """discounted_return and turn_baseline were named where all rewards at events came after all actions of a trace."""
    draw = np.random.default_rng(seed)
    rows, last, turns = range(int(draw.integers(1, 4))), seed % 2, int(draw.integers(1, 4))
    lines = [
        f"q,t{i},{i % 2},{min(j, turns - 1)},{draw.integers(1, 9) if j == rows[-1] or not last else ''}"
        for i in range(4)
        for j in rows
    ]
    path = tmp_path / "log.csv"
    path.write_text("task_id,trace,reward,turn,event_reward\n" + "\n".join(lines) + "\n")
    traces = read(path)
    said = " ".join(choose(traces).warnings)
    for name in ("discounted_return", "turn_baseline"):
        number = np.asarray(run_part(traces, name).advantage)[: len(lines)].reshape(4, -1)
        differs = bool(np.any(np.ptp(number, axis=1) > 1e-5))
        assert differs == (name in said and "tell no actions" not in said), (said, number)


def test_long_traces_are_found(tmp_path: Path) -> None:
    events = [{"id": f"e{k}", "type": "message", "agent": "a"} for k in range(LONG)]
    for length, expected in ((LONG - 1, False), (LONG, True)):
        log = tmp_path / f"{length}.jsonl"
        log.write_text(
            json.dumps({"trace_id": "t", "task_id": "q", "events": events[:length], "rewards": {"team": 1.0}})
        )
        assert {q.name: q.answer for q in advice(log).questions}["long traces"] is expected


def test_every_question_cites_a_page_that_exists() -> None:
    docs = Path(__file__).resolve().parents[3]
    for _, _, evidence in QUESTIONS.values():
        pages = re.findall(r"docs/[\w-]+\.md", evidence)
        assert pages and all((docs / page).is_file() for page in pages)


@pytest.mark.study
def test_orders_of_agents_are_counted_in_linear_time(tmp_path: Path) -> None:
    """20,000 traces, each of two agents of its own, have 20,000 orders."""

    def prepare(traces: int) -> Callable[[], object]:
        path = tmp_path / f"{traces}.csv"
        rows = [f"t{i},q,{name}{i},{i % 2}" for i in range(traces) for name in "ab"]
        path.write_text("trace,group,agent,reward\n" + "\n".join(rows))
        found = read(path)
        return lambda: counted(found, traces)

    def counted(found: Traces, traces: int) -> None:
        (stated,) = [question.stated for question in answer_questions(found) if "in one order" in question.stated]
        assert stated == f"agents act once each, in one order, in 1 of {traces} traces with several agents"

    assert_linear(prepare, 20_000, runs=1)


def test_orders_of_agents_are_those_of_a_slow_reading(tmp_path: Path) -> None:
    """Traces in which agents act in blocks, come back, act alone, or in the order of other traces."""
    rng = np.random.default_rng(0)
    teams = [rng.choice(["a", "b", "c"], rng.integers(1, 5)).tolist() for _ in range(60)]
    path = tmp_path / "x.csv"
    rows = [f"t{i},q,{name},{i % 2}" for i, names in enumerate(teams) for name in names]
    path.write_text("trace,group,agent,reward\n" + "\n".join(rows))
    orders = [[name for k, name in enumerate(names) if names[k - 1 : k] != [name]] for names in teams]
    several = [tuple(order) for order in orders if len(set(order)) > 1]
    same = max(Counter(order for order in several if len(set(order)) == len(order)).values())
    with unittest.mock.patch.object(survey_questions, "topology", wraps=survey_questions.topology) as found:
        stated = [question.stated for question in answer_questions(read(path))]
    assert found.call_count == 1  # two questions asked it anew, each a pass over all edges
    assert f"agents act once each, in one order, in {same} of {len(several)} traces with several agents" in stated
    assert 1 < same < len(several) < len(teams)


def test_agents_are_counted_where_traces_times_agents_exceed_32_bits() -> None:
    """Pairs of trace and agent are one integer each: here the greatest is 3 billion."""
    trace, agent = np.array([0, 0, 99_999, 99_999], np.int32), np.array([0, 1, 30_000, 30_000], np.int32)
    every = np.ones(4, bool)
    traces: Any = SimpleNamespace(graph=SimpleNamespace(trace_ids=trace, action_mask=every, event_mask=every))
    assert _per_trace(traces, agent).tolist() == [2, 1]


def test_advantages_of_returns_are_set_beside_returns() -> None:
    """They were set beside outcomes of another scale: 0.5 became 2.12."""
    _, _, rows = credit.from_columns(
        group=[0] * 4, trace=[0, 0, 1, 1], turn=[0, 1] * 2, reward=[1.0, 1, 0, 0], event_reward=[5.0, 0, 0, 1]
    )
    effect = try_advice(rows.traces, "rloo", [], {}, {"rloo": OnLog(unbiased=True)}).effect
    assert effect == "standard deviation over 4 actions: returns 2.5, advantages 5"


@pytest.mark.slow
def test_no_bias_is_said_only_where_the_log_keeps_the_conditions(tmp_path: Path) -> None:
    """Rewards at one time had "no bias" in the table, and a note elsewhere."""

    def biases(versions: str, event_reward: float, times: str = "0123", round_: bool = False) -> list[str]:
        rows = [
            {"trace": t, "group": "q", "turn": k, "agent": "xy"[k], "reward": r, "policy_version": int(v)}
            | {"event_reward": event_reward * (k == 0) * (1 + r), "time": int(times[2 * (t == "b") + k])}
            | ({"context": f"round of {t}"} if round_ else {})
            for t, r, v in zip("ab", (1, 0), versions, strict=True)
            for k in (0, 1)
        ]
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        why = {branch.method: branch.why for branch in advice(path).branches}
        return [why[name].partition("; ")[2].split("; takes")[0] for name in ("rloo", "turn_baseline") if name in why]

    assert biases("11", 0.25) == ["no bias)"] * 2
    # A leave-one-out baseline of independent traces has no bias, whoever sampled them; versions were a cause here.
    assert biases("12", 0.25) == ["no bias)"] * 2
    tied = "event_reward is above 0 or below in 2 events at one time with a later one"
    assert biases("11", 0.25, "0022") == ["no bias)", f"may be biased: {tied})"]
    # An agent that is slow where it does well would choose the number of its turn, but for rounds, which are one turn.
    assert biases("11", 0.25, round_=True) == ["no bias)"]  # with one joint turn a trace turn_baseline is rloo


@pytest.mark.parametrize("agents", ["xyz", "yxz"])
def test_rows_of_rounds_leave_no_doubt_in_any_order(tmp_path: Path, agents: str) -> None:
    """The doubt stayed whatever was done, and named nothing to do."""
    rows = [
        {
            "trace": f"t{t}",
            "group": f"q{t // 4}",
            "agent": agent,
            "turn": 3 * k + at,
            "reward": t % 2,
            "context": f"{t}/{k}",
        }
        for t in range(8)
        for k in range(2)
        for at, agent in enumerate(agents)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert on_log(credit.read(path), "turn_baseline") == OnLog(unbiased=True)


@pytest.mark.filterwarnings("ignore:problems of reading")
def test_rows_that_stand_twice_leave_the_bias_open(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"trace": f"t{k // 3}", "group": "q", "agent": "xyz"[k % 3], "reward": k // 3 % 2, "value": k / 9}
        for k in range(24)
    ]
    copies = OnLog(but="line 2 is equal to line 1 in every column (24 such rows)")
    for times, known in ((1, OnLog(unbiased=True)), (2, copies)):
        path.write_text("".join(times * (json.dumps(row) + "\n") for row in rows))
        assert on_log(credit.read(path), "rloo") == known


def logged(path: Path, versions: str, *, again: bool = False, agents: bool = False, value: bool = False) -> Path:
    """Traces of one task with an outcome each, two rows a trace."""
    rows: list[dict[str, Any]] = []
    for i, version in enumerate(versions):
        for k in (0, 1):
            row = {"trace": f"t{i}", "group": "q", "turn": k, "agent": "xy"[k], "reward": (i * i) % 5 / 4}
            row |= {"policy_version": int(version)} if version != "-" else {}
            row |= {"event_reward": row["reward"]} if again else {}
            row |= {"agent_reward": (i + k) % 3 / 2} if agents else {}
            rows.append(row | ({"value": 0.25 * k} if value else {}))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("versions", ["111222", "11122-", "112"])
@pytest.mark.parametrize("value", [False, True])
def test_groups_of_several_versions_train_together(
    versions: str, value: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`to train:` compared within versions: no less bias, more variance, and rows without an answer.

    `test_a_baseline_of_other_versions_has_no_bias` enumerates it.
    """
    logged(tmp_path / "x.jsonl", versions, value=value)
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(cli, ["choose", "x.jsonl", "--json"])
    found = json.loads(shown.stdout)
    assert found["command"] == "credit assign x.jsonl --method rloo -o advantages.parquet"
    assert found["branches"][0]["unbiased"] is True and found["command_if_not"] == ""
    assert any("train a newer policy only where the loss weighs" in line for line in found["warnings"])
    done = CliRunner().invoke(cli, shlex.split(found["command"])[1:])
    assert done.exit_code == 0 and "may be biased" not in done.output, done.output
    table = pq.read_table("advantages.parquet").to_pydict()
    outcome = np.array([(i * i) % 5 / 4 for i in range(len(versions))])
    for trace, given, valid in zip(table["trace"], table["advantage"], table["valid"], strict=True):
        i = int(trace[1:])
        assert valid and given == pytest.approx(outcome[i] - np.mean(np.delete(outcome, i)), abs=1e-6)
    assert bool(found["report"]) == value and "policy_version" not in found["report"]
    if value:
        report = CliRunner().invoke(cli, shlex.split(found["report"])[1:])
        assert report.exit_code == 0, report.output
        assert written_effect(tmp_path, found["report"]) in found["trial"]["effect_of_report"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agents", "open_"),
    [(True, "several instances of one name (here none)"), (False, "event_reward is the outcome again")],
)
def test_what_leaves_a_bias_open_is_the_condition_of_the_command(agents: bool, open_: str, tmp_path: Path) -> None:
    """`to train:` had the command without a condition, and JSON said that the method has no bias."""
    path = logged(tmp_path / "x.jsonl", "111111", again=not agents, agents=agents)
    found = advice(path)
    first = found.branches[0]
    assert found.command == "" and open_ in found.trial.unless
    assert found.command_if_not == "credit assign PATH... --method rloo" + " --evidence agent_reward" * agents + (
        " -o advantages.parquet"
    )
    assert agents or (first.unbiased is None and first.but == found.trial.unless and first.but in first.why)
    shown = CliRunner().invoke(cli, ["choose", str(path)]).stdout
    lines = shown.splitlines()
    assert lines[0] == f"first mend, or rule out: {found.trial.unless}"
    assert lines[1].startswith("then to train: credit assign ")
    assert " ".join(shown.split()).count(open_) == 1  # it stood in `why:` and in the table, too
    assert agents or "; may be biased, as said first)" in shown


@pytest.mark.slow
def test_claims_of_several_versions_enter_no_training(tmp_path: Path) -> None:
    """Siblings of two versions have no mean of 0 under either; `control` took them."""

    def versioned(path: Path, step: int) -> Path:
        many_tasks(path)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for i, line in enumerate(lines):
            line["evidence"] = {"policy_version": 1 + (i // step) % 2}
        path.write_text("\n".join(map(json.dumps, lines)))
        return path

    alike = advice(versioned(tmp_path / "x.jsonl", 4))
    assert "--advantage control" in alike.command and "by=" not in alike.command
    mixed = advice(versioned(tmp_path / "y.jsonl", 1))
    assert mixed.command == "credit assign PATH... --method rloo -o advantages.parquet"
    assert mixed.trial.refused["control"].startswith("c3: policy_version is several in 24 groups")


@pytest.mark.parametrize("weighed", [True, False])
def test_a_baseline_of_other_versions_has_no_bias(weighed: bool) -> None:
    """Every group of two traces of one policy and one of another, for a third that is trained; outcomes 0.25 and 1."""
    trained, sampled = 0.3, (0.95, 0.95, 0.1)  # chances of the second choice
    groups = np.array(list(itertools.product((0, 1), repeat=3)))
    _, _, rows = credit.from_columns(
        group=np.repeat(np.arange(8), 3), trace=np.arange(24), reward=np.where(groups == 1, 1.0, 0.25).ravel()
    )
    advantage = np.asarray(credit.run(rows.traces, "rloo").advantage, np.float64)[:24].reshape(8, 3)
    chance = np.where(groups == 1, sampled, 1 - np.array(sampled))
    ratio = np.where(groups == 1, trained, 1 - trained) / chance if weighed else np.ones((8, 3))
    found = (chance.prod(1)[:, None] * ratio * advantage * (groups - trained)).sum() / 3
    bias = abs(found / (trained * (1 - trained) * 0.75) - 1)
    assert bias < 1e-6 if weighed else bias > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("turns", [True, False])
def test_a_table_without_turns_is_told_where_a_method_compares_them(turns: bool, tmp_path: Path) -> None:
    """A planner's first and last rows were one turn, and other numbers than with a column, without a word."""
    path, named = tmp_path / "rows.csv", ["planner", "solver", "planner"]
    rows = [f"{t},q,{agent},{r},{0.25 * k}" + f",{k}" * turns for t, r in ("a1", "b0") for k, agent in enumerate(named)]
    path.write_text("trace,group,agent,reward,event_reward" + ",turn" * turns + "\n" + "\n".join(rows))
    text = "compares by the turn, and every agent has one turn, though some act several times: state a column 'turn'"
    done = CliRunner().invoke(cli, ["assign", str(path), "--method", "turn_baseline", "-o", str(tmp_path / "a.csv")])
    assert done.exit_code == 0 and (f"look: turn_baseline {text}" in done.output) == (not turns)
    (branch,) = (branch for branch in advice(path).branches if branch.unit == "turn")
    assert (branch.needs.get("turn_baseline") == text) == (not turns) and bool(branch.method) == turns


def test_no_method_is_advised_that_the_table_below_does_not_allow(tmp_path: Path) -> None:
    """Rounds without turns: `or:` had turn_baseline, and the table said that it lacks a column 'turn'."""
    rows = [
        {"trace": f"t{t}", "group": "q", "agent": agent, "reward": t, "event_reward": 0.25 * int(time) + t}
        | {"time": int(time), "context": f"{t}-{time}"}
        for t in range(2)
        for agent, time in ("p0", "a1", "b1", "r2", "a3", "b3")
    ]
    path = tmp_path / "rows.jsonl"
    for turn, advised in ((False, False), (True, True)):
        path.write_text("".join(json.dumps(row | ({"turn": row["time"]} if turn else {})) + "\n" for row in rows))
        advice = credit.choose(credit.read(path))
        assert ("turn_baseline" in {beside.method for beside in advice.trial.beside}) == advised
        (branch,) = (branch for branch in advice.branches if branch.unit == "turn")
        assert (branch.method == "turn_baseline") == advised
