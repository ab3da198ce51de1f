"""The page of `credit report`: its numbers are those of the functions that compute them, and log text is harmless."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.cli.logs.summary_by import summary
from credit.ledger.receipts.explaining import explain
from credit.metrics.cost_summary import cost_rows
from credit.metrics.event_costs import Price, Prices, price_gaps, read_prices
from credit.page import Findings, write_page
from credit.page.findings import NOISE, UNKNOWN, doubts
from credit.page.html import EXCERPTS, LARGEST, page, served_page
from credit.page.overview import group_rows, overview
from credit.page.questions import questions
from credit.reports.comparison import compare
from credit.reports.corpus import survey
from credit.reports.leading_cause import LeadingCause
from credit.reports.trace_list import trace_rows
from credit.reports.who_matters import who_matters
from estimators.composition.votes import Errors
from graphs.traces.batch import Traces

HOSTILE = "</script><img src=x onerror=alert(1)><!-- & \u2028 \u202e back \x1b[31m"
METHODS = ("rloo", "turn_baseline", "gae")


def trace(number: int, *, group: str = "q", agent: str = "solver", text: str = "hello") -> dict[str, Any]:
    """A trace of a lead that spawns an agent, which calls a tool and returns."""
    events = [
        {"id": "a", "type": "message", "agent": "lead", "text": text, "value": 0.5},
        {"id": "b", "type": "spawn", "agent": "lead", "value": 0.4},
        {
            "id": "c",
            "type": "tool_call",
            "agent": agent,
            "tool": f"search {text}",
            "text": text,
            "value": 0.3 + number / 8,
        },
        {"id": "d", "type": "tool_result", "agent": agent, "tool": "search", "status": "error", "text": text},
        {"id": "e", "type": "return", "agent": agent, "value": 0.6 * (number % 2)},
    ]
    agents = [{"id": "lead", "role": "lead"}, {"id": agent, "role": "worker", "parent": "lead"}]
    return {
        "trace_id": f"{group}{number}", "task_id": group, "agents": agents, "events": events,
        "edges": [{"src": "b", "dst": "c", "type": "spawn"}], "rewards": {"team": float(number % 2)},
    }  # fmt: skip


def written(folder: Path, traces: list[dict[str, Any]]) -> Path:
    log = folder / "log.jsonl"
    log.write_text("\n".join(json.dumps(one) for one in traces))
    return log


def embedded(html: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The data of a page and its traces, unpacked as a browser does."""
    head, views = (
        json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.S)[1])  # type: ignore[index]
        for name in ("data", "views")
    )
    return head, [json.loads(zlib.decompress(base64.b64decode(view), -zlib.MAX_WBITS)) for view in views]


def findings_of(traces: Traces) -> Findings:
    return Findings.of(traces, {name: credit.run(traces, name) for name in METHODS})


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    records = [trace(i) for i in range(3)] + [trace(i, group="p") for i in range(2)]
    return findings_of(credit.read(written(tmp_path_factory.mktemp("logs"), records)))


@pytest.fixture(scope="module")
def parts(findings: Findings) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return embedded(page(findings)[0])


def plain(value: Any) -> Any:
    """As JSON has it: NaN is None, a tuple is a list."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


@pytest.mark.slow
def test_advantages_are_those_of_assign(findings: Findings, parts: Any) -> None:
    for name, claim in findings.claims.items():
        rows = credit.table(findings.traces, claim).to_pylist()
        expected = [(r["trace"], r["event"], r["advantage"] if r["valid"] else None) for r in rows]
        shown = [
            (view["id"], event, None if value is None else float(np.float32(value)))
            for view in parts[1]
            for event, value in zip(view["event"], view["methods"][name]["advantage"], strict=True)
        ]
        assert shown == expected, name
        assert sum(value is not None and value != 0 for _, _, value in shown) > 4


@pytest.mark.slow
def test_receipts_and_entries_are_those_of_explain_and_compose(findings: Findings, parts: Any) -> None:
    table = findings.ledger.table(findings.traces, "event").to_pylist()  # type: ignore[union-attr]
    entries = {(row["trace"], row["event"]): row["amount"] for row in table if row["entry"] == "increment"}
    for view in parts[1]:
        of = view["receipt"]
        for i, event in enumerate(view["event"]):
            receipt = explain(findings.traces, view["id"], event, findings.claims, ledger=findings.ledger).as_json()
            assert of["entry"][i] == receipt["entry"] == entries[view["id"], event]
            for key in ("stderr", "noise", "naive", "rest", "others"):
                assert of[key][i] == plain(receipt[key]), key
            for key in ("reward", "expected", "outcome", "unexplained", "remainder"):
                assert of[key] == receipt[key], key
            for line, shown in zip(receipt["lines"], of["lines"], strict=True):
                for key in ("wanted", "stderr", "increment", "weight", "got"):
                    assert shown[key][i] == line[key], key
                assert shown["why"]["names"][shown["why"]["codes"][i]] == line["why"]


def test_the_page_says_which_entries_hold_the_luck_after_the_last_action(findings: Findings, parts: Any) -> None:
    """The terminal's receipt said so, the page's did not, and its ledger showed an outcome of 0 without a word."""
    words = "luck after the last action in entries of gae"
    assert words in findings.ledger.holding_luck  # type: ignore[union-attr]
    assert [view["receipt"]["holding_luck"] for view in parts[1]] == [findings.ledger.holding_luck] * len(parts[1])  # type: ignore[union-attr]
    assert any(words in line for line in parts[0]["overview"]["ledger"]["lines"])
    silent = embedded(page(Findings.of(findings.traces, {"rloo": findings.claims["rloo"]}))[0])
    assert "luck after" not in json.dumps(silent)


@pytest.mark.slow
def test_the_overview_is_that_of_validate_traces_summary_and_compare(findings: Findings, parts: Any) -> None:
    overview = parts[0]["overview"]
    corpus = plain(survey(findings.traces).as_json())
    assert {name: overview["corpus"][name] for name in corpus} == corpus
    assert overview["traces"] == plain(trace_rows(findings.traces))
    assert overview["comparison"] == plain(compare(findings.traces, findings.claims).as_json())
    credit_shown = findings.claims[overview["summary"]["method"]]
    assert overview["questions"] == plain(json.loads(json.dumps(questions(findings.traces, credit_shown))))
    for name, claim in findings.claims.items():
        units = [vars(unit) | {"stands_out": unit.stands_out} for unit in who_matters(findings.traces, claim, "role")]
        assert overview["who"][name]["role"] == plain(units)


def test_prices_add_money_to_the_pages_costs_and_their_gaps_are_named(tmp_path: Path) -> None:
    """The page had costs by role only, without money, and no word on which tool took the time."""
    log = written(tmp_path, [trace(i) | {"model": ("big", "small")[i % 2]} for i in range(3)])
    table, out = tmp_path / "prices.csv", tmp_path / "report.html"
    table.write_text("model,input,output,tool,call\nbig,0,8,,\n,,,serch,1\n,,,search hello,0.5\n")
    done = CliRunner().invoke(cli, ["report", str(log), "--prices", str(table), "-o", str(out)])
    assert done.exit_code == 0, done.output
    asked = embedded(out.read_text())[0]["overview"]["questions"]
    prices, traces = read_prices(table), credit.read(log)
    units = (("costs", "agent"), ("models", "model"), ("tools", "tool"))
    for name, by in units:
        rows = [dataclasses.asdict(row) for row in cost_rows(traces, by, prices)]
        assert asked[name]["rows"] == plain(json.loads(json.dumps(rows)))
    assert asked["priced"] and any(row["money"]["total"] for row in asked["costs"]["rows"])
    assert asked["gaps"] == price_gaps(traces, prices).lines()
    assert asked["unpriced"] == "small"  # which the lead names beside a sum that lacks it
    assert asked["gaps"][0].endswith(": small") and "nothing in these logs: tool serch" in asked["gaps"][-1]
    assert asked["total"]["money"]["total"] == sum(row["money"]["total"] or 0 for row in asked["models"]["rows"])
    without = questions(traces, None)
    assert not without["priced"] and not without["gaps"] and not without["unpriced"]
    assert "--prices" in CliRunner().invoke(cli, ["view", "--help"]).output


@pytest.mark.parametrize(("agents", "by"), [(3, "agent"), (40, "role")])
def test_costs_are_those_of_agents_unless_they_are_many(tmp_path: Path, agents: int, by: str) -> None:
    """Two agents of one role were one row, and no table of the page had what an agent cost."""
    events = [
        {"id": f"e{i}", "type": "message", "agent": f"a{i}", "tokens": 9 + i, "input_tokens": 0} for i in range(agents)
    ]
    of = [{"id": f"a{i}", "role": "coder" if i else "lead"} for i in range(agents)]
    log = written(tmp_path, [{"trace_id": "t", "task_id": "q", "agents": of, "events": events, "model": "big"}])
    traces, prices = credit.read(log), Prices({"big": Price(0.0, 1e6)})
    asked = questions(traces, None, prices)
    assert asked["costs_by"] == by
    assert asked["costs"]["rows"] == [dataclasses.asdict(row) for row in cost_rows(traces, by, prices)]
    assert {row["unit"] for row in asked["costs"]["rows"]} == (
        {"lead", "coder"} if by == "role" else {"a0", "a1", "a2"}
    )
    assert asked["total"]["money"]["total"] == pytest.approx(sum(9 + i for i in range(agents)))


def test_the_report_compares_the_sides_that_metrics_compares(tmp_path: Path) -> None:
    log, table, out = written(tmp_path, [trace(i) for i in range(4)]), tmp_path / "sides.csv", tmp_path / "report.html"
    ids = credit.read(log).traces["trace"].to_pylist()
    table.write_text(
        "trace,side\n" + "".join(f"{name},{('old', 'new')[i % 2]}\n" for i, name in enumerate(ids)) + "x,old\n"
    )
    done = CliRunner().invoke(cli, ["report", str(log), "--sides", str(table), "-o", str(out)])
    assert done.exit_code == 3 and "unmatched-row" in done.output, done.output
    told = CliRunner().invoke(cli, ["metrics", str(log), "--sides", str(table), "--json"])
    expected, found = json.loads(told.stdout), embedded(out.read_text())[0]["overview"]["sides"]
    for name in ("sides", "differences", "uncompared", "bounds"):
        assert [*found[name]] == plain(expected[name]), name
    assert "--sides" in CliRunner().invoke(cli, ["view", "--help"]).output


def test_what_changed_is_whole_on_the_page_too(tmp_path: Path) -> None:
    """It ended at 400 characters, in the middle of a part, before money and tokens."""
    records = [trace(i) | {"model": f"{i % 6}-{'m' * 57}"} for i in range(24)]
    log, table, out = written(tmp_path, records), tmp_path / "sides.csv", tmp_path / "report.html"
    table.write_text("trace,side\n" + "".join(f"{one['trace_id']},{i % 2}\n" for i, one in enumerate(records)))
    sides = ["--sides", str(table)]
    done = CliRunner().invoke(cli, ["report", str(log), *sides, "-o", str(out)])
    assert done.exit_code == 0, done.output
    expected = json.loads(CliRunner().invoke(cli, ["metrics", str(log), *sides, "--json"]).stdout)
    found = embedded(out.read_text())[0]["overview"]["sides"]
    assert len(expected["but"]) > 400
    for name in ("changed", "numbers"):
        assert found[name] == expected[name] and found[name] in "".join(found["lines"])
    buts = [line for line in found["lines"] if line.startswith("But ")]
    assert found["but"] == expected["but"] == "; ".join(line[len("But ") : -1] for line in buts)


def test_groups_are_sorted_as_validate_sorts_them(tmp_path: Path) -> None:
    records = [trace(0), trace(1), trace(0, group="equal"), trace(2, group="equal"), trace(0, group="one")]
    records += [trace(i, group="open") | {"rewards": {}} for i in range(2)]
    records += [trace(i, group="fine") | {"rewards": {"team": 16777216 + i}} for i in range(2)]
    traces = credit.read(written(tmp_path, records))
    head, _ = embedded(page(Findings.of(traces, {}))[0])
    shown = {row["group"]: row["signal"] for row in head["overview"]["groups"]}
    assert shown == {"q": "signal", "equal": "equal", "one": "single", "open": "unscored", "fine": "unresolved"}
    counts = survey(traces)
    assert (counts.teaching, set(counts.equal), counts.singletons) == (1, {"equal", "fine"}, ("one",))


def test_the_page_opens_on_the_method_of_summary_unless_only_others_tell_units_apart(findings: Findings) -> None:
    (of_summary,) = [option.default for option in summary.params if option.name == "method"]
    swapped = {name: findings.claims[name] for name in reversed(METHODS)}
    assert overview(dataclasses.replace(findings, claims=swapped))["summary"]["method"] == "gae"
    broadcast = {"dr_grpo": credit.run(findings.traces, "dr_grpo"), "rloo": findings.claims["rloo"]}
    alike = overview(dataclasses.replace(findings, claims=broadcast, ledger=None))
    assert alike["summary"]["method"] == of_summary == "rloo"
    assert "tells what one role did from what another did. By rloo" in alike["alike"]["rloo"]["role"]


def test_a_baseline_that_counts_ended_traces_as_0_is_pointed_out(parts: Any, tmp_path: Path) -> None:
    methods = parts[0]["overview"]["methods"]
    assert [methods[name]["note"] for name in METHODS] == ["", "", ""]  # all traces have as many turns
    note = "Ended traces count as 0 at later turns, so late turns of long traces get more or less, whatever they did."
    longer = trace(1)
    longer["events"] += [{"id": "f", "type": "message", "agent": "third", "value": 0.5}]
    longer["agents"] += [{"id": "third"}]
    longer["edges"] += [{"src": "e", "dst": "f", "type": "causal"}]
    log = written(tmp_path, [trace(0), longer])
    methods = overview(findings_of(credit.read(log)))["methods"]
    assert [methods[name]["note"] for name in METHODS] == ["", note, ""]
    printed = {m: CliRunner().invoke(cli, ["summary", str(log), "--method", m]).output for m in METHODS[:2]}
    assert note in printed["turn_baseline"] and note not in printed["rloo"]


def test_an_error_of_traces_that_agree_is_not_known(tmp_path: Path) -> None:
    """One success among three: its baseline is the mean of two failures, whose error is stated as 0."""
    log = written(tmp_path, [trace(i) | {"rewards": {"team": float(i == 0)}} for i in range(3)])
    traces = credit.read(log)
    claims = {name: credit.run(traces, name) for name in METHODS}
    views = embedded(page(Findings.of(traces, claims))[0])[1]
    assert float(np.asarray(claims["rloo"].stderr)[0]) == 0  # as the method states it
    assert [view["methods"]["rloo"]["doubt"][0] for view in views] == [UNKNOWN, NOISE, NOISE]
    assert views[0]["methods"]["gae"]["doubt"][0] == UNKNOWN  # states none
    assert views[0]["methods"]["rloo"]["doubt"][3] == 0  # no action
    line, other = (next(line for line in view["receipt"]["lines"] if line["claim"] == "rloo") for view in views[:2])
    assert line["stderr"][0] is None and line["wanted"][0] == pytest.approx(1) and other["stderr"][0] == 0.5
    shown = CliRunner().invoke(cli, ["explain", str(log), "q0", "a", "--methods", "rloo"]).output
    (row,) = [line.split() for line in shown.splitlines() if line.startswith("rloo")]
    assert row[3:5] == ["1", "–"] and "the traces compared with all agree" in shown
    exact = Errors(exact=("rloo",))
    assert doubts(claims["rloo"], exact)[0] == 0


def test_the_page_says_whether_something_distinguishes_actions(findings: Findings, parts: Any) -> None:
    assert parts[0]["overview"]["summary"]["doubt"] is None  # gae reads values
    blind = {name: findings.claims[name] for name in ("rloo", "turn_baseline")}
    told = overview(dataclasses.replace(findings, claims=blind))["summary"]["doubt"]
    assert "every method here actions differ at most by who took part" in told
    judged = overview(dataclasses.replace(findings, claims=blind | {"judge 7": findings.claims["gae"]}))
    assert judged["summary"]["doubt"] is None


def test_groups_of_one_have_words_in_the_place_of_a_table(tmp_path: Path) -> None:
    traces = credit.read(written(tmp_path, [trace(0), trace(0, group="p")]))
    shown = overview(Findings.of(traces, {"rloo": credit.run(traces, "rloo")}))
    assert shown["who"]["rloo"]["agent"] == []
    assert any("No two traces share a task" in line for line in shown["methods"]["rloo"]["empty"])


@pytest.mark.parametrize("level", ["role", "agent", "turn"])
def test_the_ledger_by_level_sums_to_the_rewards(findings: Findings, parts: Any, level: str) -> None:
    rows = parts[0]["overview"]["ledger"]["levels"][level]
    reward = np.asarray(findings.traces.reward, np.float64)[: findings.traces.sizes.traces]
    np.testing.assert_allclose(sum(row["sum"] for row in rows), reward.sum(), atol=1e-6)
    table = findings.ledger.table(findings.traces, level).to_pylist()  # type: ignore[union-attr,arg-type]
    for row in rows:
        amounts = [
            r["amount"]
            for r in table
            if r["entry"] == row["entry"]
            and (row["name"] is None or str(r[{"turn": "turn_in_trace"}.get(level, level)]) == row["name"])
        ]
        np.testing.assert_allclose(row["sum"], sum(amounts), atol=1e-12)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    long = "W" * 10_000
    records = [trace(i, agent=HOSTILE, text=HOSTILE + long) for i in range(2)]
    html, _ = page(findings_of(credit.read(written(tmp_path, records))), title=HOSTILE)
    head, views = embedded(html)
    assert html.count("</script>") == html.count("<script")
    assert "<img" not in html and "&lt;/script&gt;&lt;img" in without_script(html)
    data = html[html.index('id="data">') : html.index("</script>", html.index('id="views">'))]
    assert not set("\u202e\x1b\u2028") & set(data)
    assert "</script>" in head["title"]
    assert "<h1>&lt;/script&gt;&lt;img src=x" in html  # there without JavaScript too
    assert max(len(text) for view in views for text in view["text"]) == EXCERPTS[0] < 1000
    assert any("</script>" in lane["label"] or "</sc" in lane["label"] for lane in views[0]["lanes"])


def without_script(html: str) -> str:
    return html.partition("<noscript>")[2].partition("</noscript>")[0]


def test_what_went_wrong_most_and_nothing_that_differs_are_no_contradiction(
    findings: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cause more common in failed traces stood over "None of the 23 numbers that were looked at differs"."""
    one = findings.traces.traces["trace"][0].as_py(), findings.traces.events["event"][0].as_py()
    cause = LeadingCause("loops of sh", "a", "sh", *one, "", 9, 3, 11, 25, 12, 36, False)
    for sure, name in ((True, "What else differs"), (False, "What differs"), (None, "What differs")):
        causes = (dataclasses.replace(cause, beyond_chance=sure),)
        monkeypatch.setattr("credit.page.overview.leading_causes", lambda *_, causes=causes, **__: causes)
        html, _ = page(findings, title="x")
        differences = embedded(html)[0]["overview"]["differences"]
        assert not any(row["stands_out"] for row in differences["rows"])
        assert differences["name"] == name and f"<b>{name}:</b>" in without_script(html)


def test_a_reader_without_javascript_has_the_headline_and_the_first_table(findings: Findings, tmp_path: Path) -> None:
    """The page had a title and one sentence, as in the preview of a mail."""
    html, _ = page(findings, title="x")
    shown, overview = without_script(html), embedded(html)[0]["overview"]
    assert f"<b>What failed:</b> {escape(overview['differences']['opening'][0])}</p>" in shown
    assert f"<b>What differs:</b> {escape(overview['differences']['opening'][1])}</p>" in shown
    worst = overview["triage"]["suspects"][0]
    cells = (worst["trace"], f"{worst['outcome']:g}", worst["event"], worst["agent"], escape(worst["why"]))
    assert f"<tbody><tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" in shown
    assert shown.count("<tr>") == 1 + len(overview["triage"]["suspects"]) and "credit summary" in shown
    assert "<b>What went wrong most:</b> Too few traces to tell: a test takes 8 failed and 8 succeeded ones." in shown
    priced = dataclasses.replace(findings, prices=Prices({}, {"search hello": 3.0}))
    assert "<b>Money for a success:</b> ≥ " in without_script(page(priced, title="x")[0]), "what a lead asks first"
    lost = written(tmp_path, [trace(number) | {"rewards": {}} for number in range(2)])
    cause = "Unrecovered errors of search by solver (such as: hello) in 2 of 2 traces (q0)."
    assert f"<b>What went wrong most:</b> {cause}</p>" in without_script(page(Findings.of(credit.read(lost), {}))[0])
    label = without_script(served_page(findings, labelled=True))
    assert "JavaScript" in label and "failed" not in label and "<table" not in label  # a judge is not swayed


def test_a_reader_without_javascript_has_the_caveats_of_the_lead_one_by_one(tmp_path: Path) -> None:
    """What may be behind a change was one sentence of 120 words there, and where it comes from was missing."""
    records = [trace(i) | {"trace_id": f"t{i}", "task_id": f"q{i // 2}", "model": "ab"[i % 2]} for i in range(24)]
    for record in records[1::2]:
        for event in record["events"]:
            event["status"] = "error" if event.get("tool") else "ok"
    log, table = written(tmp_path, records), tmp_path / "sides.csv"
    table.write_text("trace,side\n" + "".join(f"t{i},{('old', 'new')[i % 2]}\n" for i in range(24)))
    done = CliRunner().invoke(cli, ["report", str(log), "--sides", str(table), "-o", str(out := tmp_path / "x.html")])
    assert done.exit_code == 0, done.output
    shown, sides = without_script(out.read_text()), embedded(out.read_text())[0]["overview"]["sides"]
    assert "differ in model" in " ".join(sides["caveats"]) and sides["origin"]
    assert "What changed from old to new:" in shown and "<b>From old" not in shown, (
        "success and costs stood there twice"
    )
    assert f"<b>But:</b></p><ul>{''.join(f'<li>{escape(line)}</li>' for line in sides['caveats'])}</ul>" in shown
    assert "; ".join(sides["origins"]) == sides["origin"]  # it was one paragraph of six lines
    for one in sides["origins"]:
        assert f"<li>{escape(f'{one[0].upper()}{one[1:]}')}.</li>" in shown


def test_logs_without_outcomes_and_without_text(tmp_path: Path) -> None:
    log = written(tmp_path, [trace(i) | {"rewards": {}} for i in range(2)])
    out = tmp_path / "out.html"
    result = CliRunner().invoke(cli, ["report", str(log), "-o", str(out), "--no-text"])
    assert result.exit_code == 0, result.output
    head, views = embedded(out.read_text())
    assert head["overview"]["ledger"] is None and len(head["overview"]["triage"]["suspects"]) > 0
    assert all(view["text"] is None and view["receipt"] is None for view in views)


@pytest.mark.slow
def test_traces_that_do_not_fit_are_left_out_and_counted(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    small = len(page(findings)[0].encode()) - 600
    monkeypatch.setattr("credit.page.html.LARGEST", small)
    monkeypatch.setattr("credit.page.html.ROOM", 0)
    html, held = page(findings)
    head, views = embedded(html)
    assert 0 < len(held) == len(views) == len(head["explorer"]["held"]) < 5
    assert len(html.encode()) <= small < LARGEST


def many(folder: Path, *, broken: int, number: int = 60) -> Traces:
    """Traces of which one has an error, of a group with its neighbour."""
    records = [trace(i, group=f"g{i // 2}-") for i in range(number)]
    for i, one in enumerate(records):
        one["events"][3]["status"] = "error" if i == broken else "ok"
    return credit.read(written(folder, records))


def test_the_traces_to_look_at_are_kept_however_much_the_tables_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of 3,000 traces took all 2 MB: the explorer held none, and of what fitted it held the first."""
    traces = many(tmp_path, broken=41)
    suspect, *others = (one["trace"] for one in overview(Findings.of(traces, {}))["triage"]["suspects"])
    assert suspect == "g20-41" and not others
    monkeypatch.setattr("credit.page.html.LARGEST", 1)
    whole = [[*range(60)], [0, 1, 2, 40, 41], [40, 41], [41], []]
    for room, expected in zip((500_000, 2700, 1100, 800, 10), whole, strict=True):
        monkeypatch.setattr("credit.page.html.ROOM", room)
        html, held = page(Findings.of(traces, {}), inputs=["my runs"])
        head, views = embedded(html)
        assert head["explorer"]["held"] == expected, room
        assert held == [view["id"] for view in views] == [head["overview"]["traces"][row]["trace"] for row in expected]
        assert head["explorer"]["show"] == "credit show 'my runs'"
        if held:
            assert views[expected.index(41)]["text"][0] == "hello"  # texts of others were left out before


def test_a_long_trace_to_look_at_leaves_room_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [trace(i, group=f"g{i}-") for i in range(3)]
    draw = np.random.default_rng(0)
    for one in records:
        one["events"][3]["status"] = "error" if one is records[2] else "ok"
    records[0]["events"] = [
        {"id": f"{draw.random()}", "type": "tool_call", "agent": "solver", "tool": "t", "status": "error"}
        for _ in range(500)
    ]
    records[0]["edges"] = []
    monkeypatch.setattr("credit.page.html.LARGEST", 1)
    monkeypatch.setattr("credit.page.html.ROOM", 2500)
    head, _ = embedded(page(Findings.of(credit.read(written(tmp_path, records)), {}))[0])
    assert [one["trace"] for one in head["overview"]["triage"]["suspects"]] == ["g0-0", "g2-2"]
    assert head["explorer"]["held"] == [1, 2]


def test_only_html_files_are_written(tmp_path: Path) -> None:
    log = written(tmp_path, [trace(0), trace(1)])
    result = CliRunner().invoke(cli, ["report", str(log), "-o", str(tmp_path / "out.txt")])
    assert result.exit_code == 1 and "expected a name ending in .html" in result.output


def test_a_bar_sees_each_trace_that_is_packed(findings: Findings, tmp_path: Path) -> None:
    seen: list[int] = []

    def watch(rows: Sequence[int]) -> Iterator[int]:
        for row in rows:
            seen.append(row)
            yield row

    held = write_page(findings, tmp_path / "page.html", watch=watch)
    assert sorted(seen) == list(range(5)) and len(held) == 5


@pytest.mark.study
def test_many_long_traces_fit_into_two_megabytes(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    records = []
    for number in range(40):
        events = [
            {"id": f"e{i}", "type": "tool_call" if i % 2 else "message", "agent": f"a{i % 5}", "tool": "search",
             "text": "some words " * 8, "value": round(float(draw.random()), 3)}
            for i in range(500)
        ]  # fmt: skip
        rewards = {"team": float(number % 3 == 0)}
        records.append({"trace_id": str(number), "task_id": str(number // 5), "events": events, "rewards": rewards})
    out = tmp_path / "page.html"
    held = write_page(findings_of(credit.read(written(tmp_path, records))), out)
    assert out.stat().st_size <= LARGEST
    assert len(held) > 10


@pytest.mark.slow
def test_the_file_holds_the_numbers_that_the_commands_write(tmp_path: Path) -> None:
    """Number by number: `report` beside `validate --json`, `assign -o` of each method, and `compose -o`."""
    log = str(written(tmp_path, [trace(i) for i in range(3)] + [trace(i, group="p") for i in range(2)]))

    def called(*args: str) -> str:
        result = CliRunner().invoke(cli, [*args[:1], log, *args[1:]])
        assert result.exit_code == 0, result.output
        return result.stdout

    def table(name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(tmp_path / name).to_pylist()
        return rows

    called("report", "--methods", ",".join(METHODS), "-o", str(tmp_path / "page.html"))
    head, views = embedded((tmp_path / "page.html").read_text())
    validated = json.loads(called("validate", "--json"))
    assert len(validated) > 10 and {key: head["overview"]["corpus"][key] for key in validated} == validated
    for name in METHODS:
        called("assign", "--method", name, "-o", str(tmp_path / f"{name}.parquet"))
        rows = table(f"{name}.parquet")
        assert [(row["trace"], row["event"]) for row in rows] == [
            (v["id"], event) for v in views for event in v["event"]
        ]
        shown = [number for view in views for number in view["methods"][name]["advantage"]]
        for row, number in zip(rows, shown, strict=True):
            assert (None if number is None else np.float32(number)) == (
                np.float32(row["advantage"]) if row["valid"] else None
            )
    called("compose", "--methods", ",".join(METHODS), "-o", str(tmp_path / "ledger.parquet"))
    amounts = {(row["trace"], row["entry"], row["event"]): row["amount"] for row in table("ledger.parquet")}
    own = {(view["id"], "increment", event): amount for view in views
           for event, amount in zip(view["event"], view["receipt"]["entry"], strict=True)}  # fmt: skip
    of_trace = {(view["id"], entry, None): view["receipt"][entry] for view in views
                for entry in ("expected", "outcome", "unexplained", "remainder")}  # fmt: skip
    assert amounts == own | of_trace


def test_rows_of_groups_whose_traces_stand_apart() -> None:
    group = np.random.default_rng(0).permutation(np.arange(300) % 100)
    reward = np.arange(300) % 7
    _, _, rows = credit.from_columns(group=group, trace=np.arange(300), reward=reward)
    found = {row["group"]: (row["traces"], row["mean"]) for row in group_rows(rows.traces)}
    assert found == {str(g): (3, pytest.approx(reward[group == g].mean())) for g in range(100)}
