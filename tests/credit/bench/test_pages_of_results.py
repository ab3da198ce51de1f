"""Figures on the pages about bias, the critic, the ledger, off-policy values, shares, the report are those measured."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from site_pages import page

from estimators.shapley.rule import MOST_PAIRS

ROOT = Path(__file__).resolve().parents[3]
NUMBER = re.compile(r"[-−+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-−+]?\d+)?")


def results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def table(text: str, head: str) -> dict[str, list[str]]:
    """The rows below the only head that begins so, by first cell."""
    lines = text.splitlines()
    places = [i for i, line in enumerate(lines) if line.startswith(f"| {head}")]
    assert len(places) == 1, f"{len(places)} tables begin with {head!r}"
    rows = {}
    for line in lines[places[0] + 2 :]:
        if not line.startswith("|"):
            break
        first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        assert first not in rows, first
        rows[first] = cells
    return rows


def check(cell: str, values: Iterable[float], where: object) -> None:
    """Each number of a cell is the value of its place, rounded as it is printed; "%" is a hundredth."""
    printed = NUMBER.findall(cell)
    wanted = list(values)
    assert len(printed) == len(wanted), (where, cell, wanted)
    for text, value in zip(printed, wanted, strict=True):
        plain = text.replace("−", "-").replace(",", "")
        mantissa, _, power = plain.partition("e")
        digits = len(mantissa.partition(".")[2]) - int(power or 0)
        hundredth = 100.0 if "%" in cell else 1.0
        off = abs(float(plain) - value * hundredth)
        assert off <= 0.5 * 10.0**-digits * (1 + 1e-9), (where, cell, value)


def spread(values: list[float | None], digits: int) -> list[float]:
    """What a cell of docs/critic.md states of several seeds: the mean, and least and greatest where they differ."""
    known = [value for value in values if value is not None]
    if not known:
        return []
    ends = [min(known), max(known)]
    mean = math.fsum(known) / len(known)
    return [mean, *ends] if len({round(x, digits) for x in ends}) > 1 else [mean]


@pytest.mark.slow
def test_critics_of_few_traces() -> None:
    rows = table(page("critic"), "world | fits")
    stored: dict[str, list[dict[str, Any]]] = {}
    for row in results("critic_few")["additive"]["rows"]:
        stored.setdefault(row["world"], []).append(row)
    assert rows.keys() == stored.keys()
    fields = ("inside_95", "inside_95_where_not_zero", "correlation", "signs_reported", "signs_right",
              "signs_reported_of_zeros", "signs_false", "decisive_first")  # fmt: skip
    for world, (fits, *cells) in rows.items():
        assert int(fits) == len(stored[world])
        for field, cell in zip(fields, cells, strict=True):
            values = [row.get(field) for row in stored[world]]
            if not cell:  # nothing to state: no action matters, or no sign is reported
                assert not any(value is not None for value in values) or world == "no decision matters", (world, field)
                continue
            check(cell, spread(values, 3 if field == "signs_reported_of_zeros" else 2), (world, field))


def test_what_the_page_says_of_few_traces_in_sentences() -> None:
    stored: dict[str, list[dict[str, Any]]] = {}
    for row in results("critic_few")["additive"]["rows"]:
        stored.setdefault(row["world"], []).append(row)
    pooled = {world: math.fsum(row["inside_95"] for row in rows) / len(rows) for world, rows in stored.items()}
    text = " ".join(page("critic").split())
    others = [share for share in pooled.values() if share < 0.93]
    assert f"{min(others):.0%}"[:-1] + " to " + f"{max(others):.0%}"[:-1] + " % in the other worlds" in text
    fits = [row["signs_reported_of_zeros"] or 0 for rows in stored.values() for row in rows]
    assert f"In none of the {len(fits)} fits did more than {max(fits):.1%}".replace("%", " %") in text


def test_critics_of_the_named_world() -> None:
    stored = results("critic")["named"]["rows"]
    rows = table(page("critic"), "seed | R²")
    fields = ("r_squared", "rank_increments", "rank_broadcast", "calibration_error_outcome", "within_two_stderr",
              "sign_right_where_told")  # fmt: skip
    assert list(rows) == [str(row["seed"]) for row in stored]
    for row in stored:
        for cell, field in zip(rows[str(row["seed"])], fields, strict=True):
            check(cell, [row[field]], (row["seed"], field))


def test_real_logs() -> None:
    gain = results("critic")["real"]["gain_over_constant"]["critic"]
    low, high = (gain["mean"] + side * gain["half_width_95"] for side in (-1, 1))
    text = f"{gain['mean']:+.3f} (95 %: {low:+.3f} to {high:+.3f})".replace("-", "−")
    assert f"its gain in log-loss is {text}" in " ".join(page("critic").split())


def test_errors_of_the_ledger() -> None:
    stored = results("ledger")["table"]["results"]
    rows = table(page("ledger"), "world | averaged")
    assert rows.keys() == stored.keys()
    fields = ("increments", "reconcile, tau inf", "reconcile, tau fitted", "reconcile, tau 0", "critic alone",
              "siblings alone", "agents, even", "budgets 1/3", "naive sum")  # fmt: skip
    for world, (*cells, siblings, agents) in rows.items():
        for cell, field in zip(cells, fields, strict=True):
            check(cell, [stored[world][field]], (world, field))
        check(siblings, [stored[world]["chi squared"]["critic x siblings"]], world)
        check(agents, [stored[world]["chi squared"]["agents x critic"]], world)
        best = min(fields, key=lambda field: stored[world][field])
        assert "**" in cells[fields.index(best)] and sum("**" in cell for cell in cells) == 1, world


def test_the_stack_and_the_coefficients() -> None:
    found = results("ledger")
    rows = table(page("ledger"), "| median")
    stored = found["stack"]["results"]
    for name, cells in rows.items():
        check(" ".join(cells), [stored[name][part] for part in ("median", "least", "worst")], name)
    assert rows.keys() == {name for name in stored if not name.startswith("bias that the agent-wise scale adds")}
    rows, stored = table(page("ledger"), "| over RLOO"), found["variance"]["results"]
    assert rows.keys() == stored.keys()
    for name, cells in rows.items():
        check(" ".join(cells), [stored[name][part] for part in ("over RLOO", "standard error", "bound")], name)
    rows, stored = table(page("ledger"), "size of the 8 tasks"), found["heterogeneous"]["results"]
    assert {f"size {size}" for size in rows} == stored.keys()
    for size, cells in rows.items():
        check(" ".join(cells), [stored[f"size {size}"][part] for part in ("exact", "noise", "all")], size)


def test_the_speed_of_the_ledger() -> None:
    stored = results("ledger")["speed"]["results"]
    parts = ("reconcile", "reconcile, by channel", "quantisation", "quantisation, finer grids tried")
    for size, cells in table(page("ledger"), "events | reconcile").items():
        multiples = stored[size.replace(",", "")]["multiples"]
        for part, cell in zip(parts, cells, strict=True):
            check(cell, [multiples[part]] if part in multiples else [], (size, part))
    names = {"one segment sum": "segment_sum", "reconcile": parts[0], "by channel": parts[1], "quantisation": parts[2]}
    rows = table(page("ledger"), "| 10⁴ to 10⁷ events")
    assert rows.keys() == names.keys()
    for name, cells in rows.items():
        key = f"exponent of {names[name]}"
        over = f"{key} over that of segment_sum"
        far = ", beyond the caches"
        check(" ".join(cells), [stored[k] for k in (key, key + far, over, over + far)], name)


@pytest.mark.parametrize("section", ["shifts", "free", "hidden", "overlap"])
def test_every_figure_of_off_policy_evaluation(section: str) -> None:
    marked = page("off-policy").split(f"<!-- table: {section} -->")[1].split("<!-- end -->")[0]
    stored = {name: row for name, row in results("off_policy")[section].items()
              if isinstance(row, dict) and "answers" in row}  # fmt: skip
    rows = table(marked, "world or estimator")
    assert rows.keys() == stored.keys()
    for name, (answered, answers, covered, ends, *more) in rows.items():
        found = stored[name]
        check(answered, [found["answered"]], name)
        assert int(answers) == found["answers"]
        check(covered, [] if found["covered"] is None else [found["covered"]], name)
        check(ends, found["least and most"] or [], name)
        if more:
            check(more[0], found["width over the oracle's, mean and most"], name)
            assert int(more[1]) == found["worlds without an answer that got one"]


def test_worlds_of_off_policy_intervals() -> None:
    stored = {str(row["seed"]): row for row in results("off_policy_coverage")["rows"]}
    rows = table(page("off-policy"), "seed | outcomes")
    assert rows.keys() == stored.keys()
    for seed, (outcomes, alternatives, draws, answers, answered, *figures) in rows.items():
        row = stored[seed]
        assert [outcomes, alternatives] == [row["outcomes"], str(row["alternatives"])]
        check(f"{draws} {answers} {answered}", [row["draws"], row["answers"], row["answered"]], seed)
        for cell, name in zip(figures, ("covered", "above", "below", "width", "bias"), strict=True):
            check(cell, [row[name]] if name in row else [], (seed, name))


def test_which_effects_the_sign_test_finds() -> None:
    stored = results("critic_signs")["rows"]
    lines = page("critic").split("<!-- table: critic signs -->")[1].split("<!-- end -->")[0].strip().splitlines()
    assert len(lines) == 2 + len(stored)
    for line, row in zip(lines[2:], stored, strict=True):
        wanted = [row["tasks"], row["traces"] / row["tasks"], row["effect"], row["fits"]]
        check(line, [*wanted, row["found"], row["held-out alone"], row["false"]], row)
    assert all(row["false"] == 0 for row in stored)


def test_what_precision_is_attainable() -> None:
    """The table of docs/shapley.md from its formula: C_n σ² / m at σ² = 1/4 against a mean share of 1/n."""
    for size, (constant, mean, tenth) in table(page("shapley"), "n | C_n").items():
        n = int(size)
        c = sum(1 / math.sqrt(s * (n - s)) for s in range(1, n)) ** 2
        check(constant, [c], n)
        for cell, share in ((mean, 1 / n), (tenth, 0.1 / n)):
            mantissa, _, power = cell.partition(" · 10")
            exponent = int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))) if power else 0
            needed = c / 4 / share**2
            assert (
                abs(float(mantissa) * 10**exponent - needed) <= 0.06 * 10**exponent
                if power
                else (abs(float(mantissa) - needed) < 1)
            ), (n, cell, needed)


def test_errors_and_coverage_of_shapley_values() -> None:
    text, stored = " ".join(page("shapley").split()), results("shapley")
    cells = stored["table"]["cells"].values()
    best = sum(cell["best"] == "rule" for cell in cells)
    assert f"least error in {best} of the {len(cells)} cells" in text
    assert f"up to {2 * MOST_PAIRS + 2} evaluations, interactions of three and of five units are fitted" in text
    covered = {name: cell["coverage"] for name, cell in stored["intervals"].items() if isinstance(cell, dict)
               and "coverage" in cell}  # fmt: skip
    wide = {name: share for name, share in covered.items() if share > 0.96}
    usual = [share for name, share in covered.items() if name not in wide]
    assert f"Over its {len(covered)} cells, coverage of 95 % intervals is {100 * min(usual):.1f} to" in text
    assert f"to {100 * max(usual):.1f} %, but" in text
    for name, share in wide.items():
        game, units, _ = name.split(", ")
        where = f"{100 * share:.1f} % of the game" if units == "n = 100" else f"`{game}` {100 * share:.1f} %"
        assert where in text, name


def test_bias_with_replays() -> None:
    """The table of docs/bias.md; NaN, stored as null, is "refused", and what is below 1e-9 is 0."""
    stored = results("replay_bias")["rows"]
    rows = table(page("bias").split("<!-- table: replays -->")[1].split("<!-- end -->")[0], "method")
    assert rows.keys() == {row["method"] for row in stored}
    places = [(world, how) for world in ("relay-and", "stop-rewards") for how in ("clustered", "unclustered")]
    for method, cells in rows.items():
        for (world, how), cell in zip(places, cells, strict=True):
            mine = {row["fans"]: row[how] for row in stored if (row["method"], row["world"]) == (method, world)}
            assert sorted(mine) == [1, 2, 3]
            if mine[3] is None:
                assert cell == "refused", (method, world, how)
            else:
                check(cell, [0.0 if mine[3] < 1e-9 else mine[3]], (method, world, how))


def test_the_page_of_the_report_has_the_seconds_of_the_benchmark() -> None:
    seconds = results("page_opening")["seconds"]["100 traces of 500 events"]
    text = " ".join(page("report").split())
    assert f"A page about 100 traces of 500 events opened in {min(seconds):.1f} s" in text
    assert f"the middle of the ten was {statistics.median(seconds):.1f} s" in text and len(seconds) == 10
