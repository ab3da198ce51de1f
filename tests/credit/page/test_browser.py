"""The page of `credit report` in a browser: every control, both themes, two sizes, and a checker of accessibility."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import credit
from credit.cli import cli
from credit.metrics.event_costs import Price, Prices
from credit.page import Findings, write_page
from credit.page.html import LARGEST
from credit.page.overview import level_rows
from credit.sides.chosen_sides import Sides
from graphs.text import apart, percent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:turn_baseline compares by the turn")]

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = "</script><img src=x onerror=alert(1)><!-- & \u2028 \u202e back \x1b[31m " + "W" * 10_000
SIZES = ((1280, 900), (420, 860))
VIEWS = [pytest.param(size, theme, id=f"{theme}-{size[0]}") for theme in ("light", "dark") for size in SIZES]
METHODS = ("rloo", "turn_baseline", "gae")
TYPES = (
    "message", "orchestrator_decision", "spawn", "message", "tool_call", "tool_result", "return", "aggregate",
    "human_intervention", "safety_event", "stop",
)  # fmt: skip


def trace(number: int, group: str, text: str) -> dict[str, Any]:
    """A trace with an event of each type, by a lead, a worker and the worker's own worker."""
    names = ("lead", f"worker {text}", "helper")
    agents = [
        {"id": name, "role": role, "parent": parent}
        for name, role, parent in zip(names, ("lead", "worker", text), (None, *names), strict=False)
    ]
    agents[0].pop("parent")
    events = [
        {"id": f"e{i}", "type": kind, "agent": names[i % 3], "text": text, "time": float(i), "tokens": 10 + i,
         "value": (number + i) % 5 / 4, **({"tool": f"search {text}"} if kind.startswith("tool") else {}),
         **({"status": "error"} if kind == "tool_result" else {})}
        for i, kind in enumerate(TYPES * 3)
    ]  # fmt: skip
    edges = [{"src": f"e{i}", "dst": f"e{i + 1}", "type": "causal"} for i in range(len(events) - 1)]
    record = {"trace_id": f"{group} {number} {text}", "task_id": f"{group} {text}", "agents": agents, "events": events}
    return record | {"edges": edges, "rewards": {"team": float(number % 2)}}


def read(folder: Path, records: list[dict[str, Any]]) -> credit.Traces:
    log = folder / "log.jsonl"
    log.write_text("\n".join(json.dumps(one) for one in records))
    return credit.read(log)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Addresses of pages about hostile logs: with credit, and without outcomes."""
    folder = tmp_path_factory.mktemp("pages")
    records = [trace(i, group, HOSTILE) for group in "qpo" for i in range(3)]
    traces = read(folder, records)
    findings = Findings.of(traces, {name: credit.run(traces, name) for name in METHODS})
    write_page(findings, folder / "credit.html", title=HOSTILE)
    write_page(Findings.of(read(folder, [one | {"rewards": {}} for one in records]), {}), folder / "triage.html")
    return {name: (folder / f"{name}.html").as_uri() for name in ("credit", "triage")}


def until(page: Page, expression: str) -> None:
    """Wait for an expression to be true. Playwright's own wait evaluates in the page, whose policy forbids that."""
    end = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


def shown(page: Page) -> None:
    """Wait until the explorer shows a trace and every section was in view once, so that all charts are drawn."""
    until(page, "document.querySelector('#explorer .about').textContent")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    box = "(box) => !box.clientHeight || !box.offsetParent || box.querySelector('canvas')"
    for section in page.locator("section").all():
        section.evaluate("(one) => one.scrollIntoView()")
        until(page, f"[...document.querySelectorAll('#{section.get_attribute('id')} .chart')].every({box})")


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def span(page: Page) -> str:
    """The part of a trace that the first pane shows."""
    text: str = page.evaluate(
        """() => {
          const drawn = echarts.getInstanceByDom(document.querySelector("#explorer .pane .chart"));
          const { startValue, endValue } = drawn.getOption().dataZoom[0];
          return `${startValue} ${endValue}`;
        }"""
    )
    return text


def credited(page: Page) -> float:
    """The credit of the selected event, from its receipt."""
    claim = page.locator(".receipt").first.locator("table >> nth=-1").locator("tbody tr", has_text=re.compile("^gae"))
    return float((claim.locator("td").nth(3).text_content() or "").replace("−", "-"))


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def controls(page: Page) -> list[tuple[str, float, float, float]]:
    """The text, left and right end and height of each control in sight; a wide table scrolls by itself."""
    places: list[tuple[str, float, float, float]] = page.evaluate(
        """[...document.querySelectorAll("select, button, summary, nav a")]
          .filter((one) => one.offsetParent && !one.closest(".scroll"))
          .map((one) => [one, one.getBoundingClientRect()])
          .map(([one, at]) => [one.textContent.slice(0, 40), at.left, at.right, at.height])"""
    )
    return places


def drawn(page: Page) -> list[str]:
    """What the canvases of the explorer hold."""
    texts: list[str] = page.evaluate(
        "[...document.querySelectorAll('#explorer .pane:not([hidden]) canvas')].map((one) => one.toDataURL())"
    )
    return texts


def use_selects(page: Page) -> int:
    selects = page.locator("select").all()
    for select in selects:
        values = select.locator("option").evaluate_all("all => all.slice(0, 5).map((one) => one.value)")
        for value in [*values[1:], values[0]]:
            select.select_option(value)
            assert select.input_value() == value
            assert fits(page)
    return len(selects)


def use_buttons(page: Page) -> int:
    """Click every button, the first two of a table, by the mouse: one that is covered or out of reach fails."""
    every = page.locator("button:not(td button, [aria-pressed]), tr:nth-child(-n + 2) > td button").all()
    for place, button in enumerate(every):
        button.click()
        assert fits(page), (place, button.text_content())
    return len(every)


def pixel(page: Page, event: int) -> tuple[float, float]:
    """Where the first pane shows an event."""
    place: list[float] = page.evaluate(
        """(event) => {
          const box = document.querySelector("#explorer .pane .chart"), drawn = echarts.getInstanceByDom(box);
          const all = drawn.getOption().series.flatMap((one) => one.data);
          const { value } = all.find((one) => one.event === event);
          const [x, y] = drawn.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, value);
          const { left, top } = box.getBoundingClientRect();
          return [left + x, top + y];
        }""",
        event,
    )
    return place[0], place[1]


@pytest.mark.parametrize(("size", "theme"), (VIEWS[0], VIEWS[3]))
def test_every_control_works_without_a_word_on_the_console(
    window: Any, pages: dict[str, str], size: tuple[int, int], theme: str
) -> None:
    with window(pages["credit"], size=size, theme=theme) as opened:
        page: Page = opened.page
        shown(page)
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert fits(page)
        compare = page.get_by_role("button", name="Compare with a trace of its group")
        compare.click()
        page.locator(".lanes").nth(1).scroll_into_view_if_needed()
        page.locator(".pane").nth(1).locator("canvas").first.wait_for()
        assert use_selects(page) == 10  # across, method, by, level, four of the explorer, and the trace of each pane
        assert use_buttons(page) > 25
        compare.click()
        assert not page.locator(".pane").nth(1).is_visible()
        for link in page.locator("nav a").all():
            link.click()
        for summary in page.locator("summary").all():
            if summary.is_visible():
                was = summary.evaluate("one => one.parentElement.open")
                summary.click()
                assert summary.evaluate("one => one.parentElement.open") != was
        assert page.locator("img").count() == 0
        assert opened.complaints == []


@pytest.mark.parametrize(("size", "theme"), (VIEWS[0], VIEWS[3]))
def test_the_explorer_follows_the_keyboard_and_the_mouse(
    window: Any, pages: dict[str, str], size: tuple[int, int], theme: str
) -> None:
    with window(pages["credit"], size=size, theme=theme) as opened:
        page: Page = opened.page
        shown(page)
        lanes, receipt = page.locator(".lanes").first, page.locator(".receipt").first
        lanes.focus()
        page.keyboard.press("Home")
        assert "Luck after the last action in entries of gae, as no" in receipt.inner_text()
        for key, heading in (("Home", "Event e0:"), ("ArrowRight", "Event e1:"), ("ArrowLeft", "Event e0:"),
                             ("End", "Event e32:"), ("Home", "Event e0:"), ("ArrowDown", "Event e1:")):  # fmt: skip
            page.keyboard.press(key)
            assert (receipt.locator("h3").text_content() or "").startswith(heading), key
        page.keyboard.press("Home")
        for key in ("0", "+", "-", "+", "Shift+ArrowRight", "Shift+ArrowLeft", "End", "Home", "c", "c"):
            before = span(page), drawn(page)
            page.keyboard.press(key)
            assert (span(page), drawn(page)) != before or key == "0", key
        page.get_by_label("Colour by credit of").select_option("gae")
        lanes.focus()
        page.keyboard.press("m")
        most = credited(page)
        page.keyboard.press("l")
        assert credited(page) < most
        page.keyboard.press("Home")
        page.keyboard.press("0")
        lanes.evaluate("one => one.scrollIntoView({ block: 'center' })")
        page.wait_for_timeout(300)  # a mark can be hit once the frame that shows it is drawn
        x, y = pixel(page, 4)
        page.mouse.move(x, y)
        hint = page.locator(".pane .chart > div", has_text="e4 · tool_call")
        hint.wait_for()
        assert hint.locator("img").count() == 0
        page.mouse.click(x, y)  # through the hint, which covers the marks of a narrow page
        receipt.get_by_role("heading", name="Event e4: tool_call").wait_for()
        page.mouse.move(x + 1, y)
        page.keyboard.press("+")
        before = span(page)
        x, y = pixel(page, 4)
        page.mouse.move(x, y + 15)
        page.mouse.down()
        page.mouse.move(x - 60, y + 15, steps=4)
        page.mouse.up()
        assert span(page) != before  # a drag pans
        before = span(page)
        x = lanes.evaluate("one => one.getBoundingClientRect().right - 60")
        page.mouse.move(x, y + 15)
        page.keyboard.down("Control")
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(1000)  # the chart takes the wheel at most ten times a second
        page.keyboard.up("Control")
        assert span(page) != before  # Ctrl and the wheel zoom
        assert opened.complaints == []


@pytest.mark.parametrize(("size", "theme"), VIEWS)
def test_no_violation_of_accessibility(window: Any, pages: dict[str, str], size: tuple[int, int], theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the extra `browser` is not installed")
    for name in pages:
        with window(pages[name], size=size, theme=theme) as opened:
            page: Page = opened.page
            shown(page)
            page.locator("#explorer td button").first.click()  # with a receipt
            page.get_by_role("button", name="Compare with a trace of its group").click()
            found = axe.Axe().run(page).response
            assert len(found["passes"]) > 30  # it looked
            assert [(one["impact"], one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


def test_the_checker_of_accessibility_finds_what_is_wrong(window: Any, pages: dict[str, str]) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the extra `browser` is not installed")
    with window(pages["credit"]) as opened:
        shown(opened.page)
        opened.page.evaluate("""() => {
          document.querySelector("#theme").removeAttribute("aria-label");
          document.querySelector("#theme").textContent = "";
          document.documentElement.style.setProperty("--soft", "#bbbbbb");
        }""")
        found = {one["id"] for one in axe.Axe().run(opened.page).response["violations"]}
        assert {"button-name", "color-contrast"} <= found


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
def test_pictures_of_both_themes_show_the_page(window: Any, pages: dict[str, str], size: tuple[int, int]) -> None:
    bright = {}
    for theme in ("light", "dark"):
        with window(pages["credit"], size=size, theme=theme) as opened:
            page: Page = opened.page
            shown(page)
            assert fits(page)
            for text, left, right, tall in controls(page):
                assert left >= 0 and right <= size[0] and right - left > 5 and tall > 5, text
            assert len(controls(page)) > 30
            whole = pixels(page.screenshot(full_page=True))
            assert whole.shape[1] == size[0] and whole.shape[0] > 2000
            bright[theme] = whole.mean()
            charts = [box for box in page.locator(".chart").all() if box.is_visible()]
            assert len(charts) >= 6
            for box in charts:
                colours = np.unique(pixels(box.screenshot()).astype(np.int32) @ (1, 1 << 8, 1 << 16))
                assert len(colours) > 20  # marks and letters, not one surface
    assert bright["light"] > 200 and bright["dark"] < 70


def test_charts_have_letters_of_the_size_and_the_font_that_they_ask_for(window: Any, pages: dict[str, str]) -> None:
    """A canvas knows no `inherit`: all letters were of 10 pixels, and the boxes of labels lower than the letters."""
    with window(pages["credit"]) as opened:
        shown(opened.page)
        taken = opened.page.evaluate("""() => [...document.querySelectorAll(".chart")].filter((box) => box.clientWidth)
          .map((box) => {
            const ink = document.createElement("canvas").getContext("2d");
            ink.font = `600 13px ${echarts.getInstanceByDom(box).getOption().textStyle.fontFamily}`;
            return ink.font;
          })""")
        assert len(taken) >= 6 and all("13px" in font and "system-ui" in font for font in taken)


def test_a_phone_has_room_for_values_and_names(window: Any, tmp_path: Path, pages: dict[str, str]) -> None:
    """Names of facts left a quarter of the width to their values; `worker-1` took two lines, a label one of its own."""
    records = [trace(i, "q", "") | {"rewards": {"team": float(i % 2)}} for i in range(3)]
    for one in records:
        one["events"] = [event | {"status": "ok", "text": ""} for event in one["events"]]
        one["agents"][1]["id"] = one["agents"][1]["name"] = "worker-1"
    traces = read(tmp_path, json.loads(json.dumps(records).replace('"worker "', '"worker-1"')))
    write_page(Findings.of(traces, {name: credit.run(traces, name) for name in METHODS}), tmp_path / "phone.html")
    with window((tmp_path / "phone.html").as_uri(), size=(390, 844)) as opened:
        page: Page = opened.page
        shown(page)
        sizes = page.evaluate("""() => {
          const wide = (one) => one.getBoundingClientRect();
          const fact = (cell) => document.querySelector(`#read table.facts ${cell}`);
          const [name, value] = ["th", "td"].map((cell) => wide(fact(cell)).width);
          const worker = [...document.querySelectorAll("#who td")].find((one) => one.textContent === "worker-1");
          const event = document.querySelector("#explorer table.cards td.i");
          return [name, value, wide(worker).height, wide(event).height];
        }""")
        assert sizes[1] > 1.4 * sizes[0] and max(sizes[2:]) < 36, sizes
        headers = page.evaluate("[...document.querySelectorAll('#triage th')].map((one) => one.textContent)")
        assert "why" in headers and "text" not in headers  # no event has a text
        page.locator("#explorer td button").first.click()
        page.locator(".receipt table.cards").wait_for()  # what it says of a claim was a column of five letters
        lines, empty = page.evaluate("""() => {
          const all = (of) => [...document.querySelectorAll(of)];
          const lines = all(".tile b").map((one) => one.offsetHeight / parseFloat(getComputedStyle(one).lineHeight));
          const empty = all("table.cards td").filter((one) => one.offsetHeight && one.textContent === "–").length;
          return [Math.max(...lines), empty];
        }""")
        assert lines < 1.5 and empty == 0


def test_paper_shows_each_chart_once_in_the_light_theme(window: Any, pages: dict[str, str]) -> None:
    with window(pages["credit"], theme="dark") as opened:
        page: Page = opened.page
        shown(page)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        papers = page.evaluate("""() => {
          const inked = (canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
            .some((byte, i) => i % 4 < 3 && byte < 250);
          return [...document.querySelectorAll(".chart")].filter((box) => box.clientWidth && box.clientHeight)
            .map((box) => [...box.querySelectorAll(".paper")].filter(inked).length);
        }""")
        assert len(papers) >= 6 and set(papers) == {1}
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert page.locator(".paper").count() == 0
        assert len(page.pdf(format="A4")) > 20_000
        assert opened.complaints == []


def test_the_first_sheet_of_paper_has_the_answers_alone(window: Any, pages: dict[str, str]) -> None:
    """The answers ran on into tables, over ten sheets of which none could be handed on alone."""
    with window(pages["credit"]) as opened:
        page: Page = opened.page
        shown(page)
        sheets = []
        for kept in (1, 2):  # what follows the answers is made a line
            page.evaluate(
                """(kept) => document.querySelectorAll("main > section:not(#detail)").forEach((one, i) => {
              one.textContent = "more";
              one.style.display = i < kept - 1 ? "block" : "none";
            })""",
                kept,
            )
            sheets.append(len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))))
        assert sheets[1] == sheets[0] + 1


def test_charts_are_drawn_before_anyone_scrolls(window: Any, pages: dict[str, str]) -> None:
    with window(pages["credit"]) as opened:
        until(opened.page, "document.querySelector('#explorer .about').textContent")
        hidden = "(box) => !box.clientHeight || !box.offsetParent || box.querySelector('canvas')"
        until(opened.page, f"[...document.querySelectorAll('.chart')].every({hidden})")
        assert opened.page.evaluate("scrollY") == 0
        assert opened.page.locator(".chart canvas").count() >= 7


def test_one_agent_is_shown_by_tool_and_without_tables_of_one_row(window: Any, tmp_path: Path) -> None:
    records = []
    for number in range(8):
        events = [{"id": f"step {i}", "type": "tool_call", "agent": "solver", "tool": "ab"[i % 2]} for i in range(3)]
        events[2]["type"] = "message"
        record = {"trace_id": f"t{number}", "task_id": f"q{number // 4}", "events": events[: 2 + number % 2]}
        records.append(record | {"rewards": {"team": float(number % 4 == 1)}})
    traces, out = read(tmp_path, records), tmp_path / "page.html"
    write_page(Findings.of(traces, {name: credit.run(traces, name) for name in ("turn_baseline", "rloo")}), out)
    with window(out.as_uri()) as opened:
        page: Page = opened.page
        shown(page)
        who = page.locator("#who")
        method, by = who.locator("select").all()
        assert method.input_value() == "rloo" and by.input_value() == "tool"
        assert page.get_by_label("Colour by credit of").input_value() == "rloo"  # the page opens on one method
        assert by.locator("option").all_text_contents() == ["tool", "type"]
        assert "nothing in the log tells what one action did" in (who.locator("summary").text_content() or "")
        assert "credit choose" in page.locator("#more code").all_text_contents()
        method.select_option("turn_baseline")
        assert "Ended traces" not in (who.text_content() or "")  # all have one turn
        assert len(who.locator("thead th").all_text_contents()) == 4  # no advantage, which would read as a ranking
        assert page.locator("#ledger select option").all_text_contents() == ["turn"]
        methods = page.locator("#methods")
        assert methods.locator(".chart").count() == 1 and "No two methods tell" in (methods.text_content() or "")
        assert methods.locator("table").count() == 0  # no shares of one role, and no differences
        assert "They differ on no action" in (methods.text_content() or "")
        assert "less" not in (page.locator("#explorer .keys").first.text_content() or "")
        assert "−0.3333" in (page.locator("#explorer .keys").first.text_content() or "")
        page.locator(".lanes").first.focus()
        page.keyboard.press("Home")
        assert (page.locator(".receipt h3").first.text_content() or "").startswith("Event step 0: tool_call")
        assert opened.complaints == []


def test_costs_by_tool_count_loops(window: Any, tmp_path: Path) -> None:
    events = [{"id": f"e{i}", "type": "tool_call", "agent": "a", "tool": tool, "arguments": {"of": tool}}
              for i, tool in enumerate("xxxyx")]  # fmt: skip
    traces = read(tmp_path, [{"trace_id": "t", "task_id": "q", "events": events, "rewards": {"team": 1.0}}])
    write_page(Findings.of(traces, {}), tmp_path / "page.html")
    with window((tmp_path / "page.html").as_uri()) as opened:
        table = opened.page.get_by_label("Costs by tool").locator("table")
        place = table.locator("th").all_text_contents().index("loops")
        rows = [row.locator("td").all_text_contents() for row in table.locator("tbody tr").all()]
        assert {row[0]: row[place] for row in rows} == {"x": "1", "y": "0"}
        assert opened.complaints == []


def test_the_dust_of_rounding_is_shown_as_nothing(window: Any, tmp_path: Path) -> None:
    """Where nothing was earned the ledger showed `solver −9.54e-7` and `unexplained −1.91e-6` of returns up to 10."""
    rng = np.random.default_rng(0)
    names = ("planner", "solver")
    records = [
        {"trace_id": f"t{i}", "task_id": f"q{i // 4}", "agents": [{"id": name, "role": name} for name in names],
         "events": [{"id": f"e{k}", "type": "message", "agent": names[k % 2]} for k in range(4)],
         "edges": [{"src": f"e{k}", "dst": f"e{k + 1}", "type": "causal"} for k in range(3)],
         "rewards": {"team": round(10 * rng.random(), 1)}}
        for i in range(8)
    ]  # fmt: skip
    traces, out = read(tmp_path, records), tmp_path / "page.html"
    findings = Findings.of(traces, {name: credit.run(traces, name) for name in ("rloo", "turn_baseline")})
    earned = [row["sum"] for row in level_rows(findings, "role") if row["entry"] in ("increment", "unexplained")]
    assert any(earned) and max(map(abs, earned)) < 1e-5
    write_page(findings, out)
    with window(out.as_uri()) as opened:
        shown(opened.page)
        rows = [row.locator("td").all_text_contents() for row in opened.page.locator("#ledger tbody tr").all()]
        assert [row[3:] for row in rows if row[0] in ("increment", "unexplained")] == [["0", "0"]] * 3
        for event in range(4):
            opened.page.locator(".lanes").first.focus()
            opened.page.keyboard.press("Home")
            for _ in range(event):
                opened.page.keyboard.press("ArrowRight")
            account = opened.page.locator(".receipt .two tr").all_text_contents()
            assert len(account) > 7 and not [row for row in account if "e-" in row and not row.startswith("remainder")]
            assert "e-" not in (opened.page.locator(".receipt > p").first.text_content() or "")
        assert opened.complaints == []


def test_a_receipt_of_a_trace_without_an_outcome_accounts_for_nothing(window: Any, tmp_path: Path) -> None:
    """It expected 0 and had an outcome of 0, as if the trace had failed, above a return of "–"."""
    records = [trace(i, "q", "hello") for i in range(3)]
    records[2] |= {"trace_id": "unknown", "rewards": {}}
    traces, out = read(tmp_path, records), tmp_path / "page.html"
    write_page(Findings.of(traces, {"rloo": credit.run(traces, "rloo")}), out)
    with window(out.as_uri()) as opened:
        shown(opened.page)
        opened.page.evaluate("page.open('unknown', 'e0')")
        until(opened.page, "document.querySelector('#explorer .about').textContent.startsWith('unknown')")
        account = opened.page.locator(".receipt .two").first.inner_text()
        assert re.search(r"return\s+no outcome", account) and "expected at the start" not in account
        assert opened.complaints == []


def test_groups_of_one_are_told_what_to_do(window: Any, tmp_path: Path) -> None:
    traces, out = read(tmp_path, [trace(i, f"q{i}", "hello") for i in range(2)]), tmp_path / "page.html"
    write_page(Findings.of(traces, {"rloo": credit.run(traces, "rloo")}), out)
    with window(out.as_uri()) as opened:
        shown(opened.page)
        text = "".join(opened.page.locator("#who, #ledger").all_text_contents())
        assert "No two traces share a task" in text and "`" not in text
        assert opened.page.locator("#who table").count() == 0
        assert "--groups FILE" in opened.page.locator("#more code").all_text_contents()
        assert "gae" in opened.page.locator("#ledger code").all_text_contents()


@pytest.mark.parametrize("method", ["rloo", "gae"])
def test_sections_that_tell_nothing_are_folded(window: Any, tmp_path: Path, method: str) -> None:
    """A chart and a table of zeros stood under "Who earned the reward", and a ledger of expected values alone."""
    groups = "q" if method == "rloo" else "pq"  # one number for a trace, and one for each action
    traces = read(tmp_path, [trace(i, group, "x") for group in groups for i in range(4)])
    write_page(Findings.of(traces, {method: credit.run(traces, method)}), tmp_path / "page.html")
    with window((tmp_path / "page.html").as_uri()) as opened:
        page = opened.page
        until(page, "document.querySelector('#explorer .about').textContent")
        for name in ("who", "ledger"):  # sums of 0
            assert page.locator(f"#untold > details#{name}").count() == (method == "rloo")
            assert page.locator(f"nav a[href='#{name}']").count() == (method != "rloo")
            if method == "rloo":
                assert not page.locator(f"#{name} select").first.is_visible()
                page.locator(f"#{name} > summary").click()
            assert page.locator(f"#{name} select").first.is_visible()
        said = page.locator("#who > summary").all_text_contents()
        assert all(one.startswith("Who earned the reward: nothing in the log tells what") for one in said)
        assert opened.complaints == []
    alone = read(tmp_path, [trace(i, f"g{i}", "x") for i in range(3)])  # groups of one have no increments
    write_page(Findings.of(alone, {"rloo": credit.run(alone, "rloo")}), tmp_path / "alone.html")
    with window((tmp_path / "alone.html").as_uri()) as opened:
        until(opened.page, "document.querySelector('#explorer .about').textContent")
        assert not any(opened.page.locator(f"#{name} select").first.is_visible() for name in ("who", "ledger"))
        opened.page.locator("#ledger > summary").click()
        assert opened.page.locator("#ledger select").is_visible() and opened.complaints == []


def test_commands_stand_in_one_place(window: Any, tmp_path: Path) -> None:
    """`--group-by task`, `--success-at` and `credit choose` stood within sentences for readers without a shell."""
    records = [
        trace(i, f"q{i % 4}", "x") | {"system": "ab"[i // 8], "rewards": {"team": (i % 5) / 4}} for i in range(16)
    ]
    graded = read(tmp_path, records)
    of_sides = Sides(
        ("b", "a"),
        np.arange(16) // 8,
        ("b", "a"),
        {},
        "system",
        "b is the baseline",
        "`--sides system=a,b` turns the sides.",
        True,
    )
    claims = {name: credit.run(graded, name) for name in ("rloo", "gae")}
    write_page(Findings.of(graded, claims, sides=of_sides), tmp_path / "graded.html")
    alone = read(tmp_path, [trace(i, f"q{i}", "x") for i in range(2)])
    write_page(Findings.of(alone, {"rloo": credit.run(alone, "rloo")}), tmp_path / "alone.html")
    write_page(Findings.of(read(tmp_path, [trace(0, "q", "x") | {"rewards": {}}]), {}), tmp_path / "triage.html")
    told: dict[str, set[str]] = {}
    for name in ("graded", "alone", "triage"):
        with window((tmp_path / f"{name}.html").as_uri()) as opened:
            shown(opened.page)
            for place in ("#lead", "#tiles", "main > section:not(#more):not(#explorer):not(#read)"):
                for text in opened.page.locator(place).all_inner_texts():
                    assert not re.search(r"(^|\s)--[a-z]|\bcredit [a-z]+ [A-Z-]|\bcredit (choose|label)", text), text
            told[name] = {text.split()[0] for text in opened.page.locator("#more code").all_text_contents()}
    assert told == {
        "graded": {"--success-at", "--sides", "--group-by", "credit", "--prices"},
        "alone": {"--groups", "trace", "group", "--prices"}, "triage": {"credit", "--prices"},
    }  # fmt: skip


def test_a_name_keeps_its_letters_where_a_sentence_begins_with_it(window: Any, tmp_path: Path) -> None:
    """ "V3.1 is the baseline": the name is v3.1."""
    traces = read(tmp_path, [trace(i, f"q{i % 4}", "x") for i in range(16)])
    names = ("v3.1", "v3.2")
    sides = Sides(names, np.arange(16) // 8, names, {}, "system", "v3.1 is the baseline, since it ran before v3.2", "")
    write_page(Findings.of(traces, {"rloo": credit.run(traces, "rloo")}, sides=sides), tmp_path / "page.html")
    with window((tmp_path / "page.html").as_uri()) as opened:
        shown(opened.page)
        told = opened.page.locator("main").text_content() or ""
        assert "v3.1 is the baseline, since" in told and "V3.1" not in told


def test_a_page_without_outcomes_begins_with_what_went_wrong(window: Any, pages: dict[str, str]) -> None:
    with window(pages["triage"]) as opened:
        page: Page = opened.page
        shown(page)
        order = page.locator("main > section").evaluate_all("all => all.map((one) => one.id)")
        links = page.locator("nav a").evaluate_all("all => all.map((one) => one.hash.slice(1))")
        rest = ["costs", "success", "read", "doctor", "decisions", "card", "untold", "more"]  # nothing about training
        assert order == links == ["detail", "triage", "explorer", *rest]
        doctor = page.locator("#doctor")
        assert "no trace has an outcome" not in (doctor.locator(".scroll").first.text_content() or "")
        assert "Serial collapse, duplicated work" in page.locator("#untold td").all_text_contents()
        tiles = page.locator("#tiles .tile").all_text_contents()
        assert any(text.endswith("errors") for text in tiles) and not any("signal" in text for text in tiles)
        assert opened.complaints == []


@pytest.mark.parametrize("name", ["credit", "triage"])
def test_the_explorer_opens_on_the_first_row_of_what_to_look_at(window: Any, pages: dict[str, str], name: str) -> None:
    """With credit it opened on a trace of the first group that carries a signal."""
    with window(pages[name]) as opened:
        shown(opened.page)
        first = opened.page.locator("#triage tbody tr").first.locator("td.i")
        trace, event = (first.nth(i).text_content() or "" for i in range(2))
        assert (opened.page.locator("#explorer .about").first.text_content() or "").startswith(trace[:20])
        assert (opened.page.locator(".receipt h3").first.text_content() or "").startswith(f"Event {event}:")
        assert opened.complaints == []


def called(number: int, *, tokens: int | None = 500, timed: bool = True) -> dict[str, Any]:
    """A call that reads 2,000,000 tokens, of which the third trace lacks what it generated, and a tool that fails."""
    count = {} if tokens is None else {"tokens": tokens}
    events = [{"id": "e", "type": "message", "agent": "a", "input_tokens": 2_000_000} | count,
              {"id": "c", "type": "tool_call", "agent": "a", "tool": "web", "action": False, "arguments": {}},
              {"id": "r", "type": "tool_result", "agent": "a", "tool": "web", "action": False, "status": "error"},
    ]  # fmt: skip
    if timed:
        events = [event | {"t": 2005.0 * i} for i, event in enumerate(events)]
    record = {"trace_id": f"t{number}", "task_id": "q", "agents": [{"id": "a"}], "events": events, "model": "big"}
    return record | {
        "edges": [
            {"src": "e", "dst": "c", "type": "tool_dependency"},
            {"src": "c", "dst": "r", "type": "tool_dependency"},
        ]
    }


def tiles(window: Any, out: Path, traces: credit.Traces, prices: Prices | None = None, **claims: Any) -> dict[str, str]:
    """What the tiles of a page say, the number by what is below it."""
    write_page(Findings.of(traces, claims, prices=prices), out)
    with window(out.as_uri(), size=(390, 844)) as opened:
        assert fits(opened.page) and opened.complaints == []
        found = opened.page.locator("#tiles .tile").all()
        return {
            tile.locator("span").inner_text(): tile.locator("b").inner_text().replace("\xa0", " ") for tile in found
        }


def test_the_first_screen_has_money_time_errors_and_failures(window: Any, tmp_path: Path) -> None:
    """It had counts of events and agents, and somebody who runs a team looked for what it cost and what went wrong."""
    records = [called(0), called(1), called(2, tokens=None, timed=False)]
    for number, record in enumerate(records):
        record["rewards"] = {"team": float(number % 2)}
    out, prices = tmp_path / "page.html", Prices({"big": Price(input=2.0, output=1000.0)}, {"web": 0.25})
    traces = read(tmp_path, records)
    found = tiles(window, out, traces, prices, rloo=credit.run(traces, "rloo"))
    assert found == {
        "traces": "3", "failed: outcome below 1": "2 / 3", "errors": "3",
        "money at the given prices": "≥ 13.75",  # of each call 4 and 0.25 for its tool; two generated 0.5
        "tokens generated, 6M read": "≥ 1,000", "wall clock of traces": "≥ 2 h 13 min",
        "problems of reading": "0",
    }  # fmt: skip
    for record in records:
        record |= {"rewards": {}, "costs": {"money": 0.125}}
    records[0]["metrics"] = {"lost_parts": 1, "unlogged_calls": 1}
    found = tiles(window, out, read(tmp_path, records))
    assert found["logged cost"] == "0.375" and not any("outcome" in words for words in found)
    assert (found["errors"], found["wall clock of traces"]) == ("≥ 3", "≥ 2 h 13 min")
    for record in records:
        del record["costs"]
        record["events"] = [{**event, "status": None} for event in record["events"]]
    found = tiles(window, out, read(tmp_path, records))
    assert not any("money" in words or "errors" in words for words in found) and "–" not in found.values()


def test_no_number_runs_to_the_edge_of_its_tile(window: Any, pages: dict[str, str]) -> None:
    """`≥ 26 h 48 min` touched the edge at 1300 pixels."""
    with window(next(iter(pages.values())), size=(1300, 900)) as opened:
        room = opened.page.evaluate("""() => [...document.querySelectorAll(".tile b")].map((one) => {
          one.textContent = "≥ 1,026 h 48 min".replaceAll(" ", "\\u00a0");
          return one.clientWidth - one.scrollWidth;
        })""")
        assert len(room) > 4 and min(room) >= 0 and fits(opened.page), room


def test_the_page_explains_the_signs_of_its_tables(window: Any, tmp_path: Path) -> None:
    """Notes explained `≥` and `–` below tables without either."""
    explained = """() => [...document.querySelectorAll("section")].map((one) => [one.id,
      [...one.querySelectorAll(".note")].map((note) => note.textContent).join(" "),
      [...one.querySelectorAll("td")].map((cell) => cell.textContent)])"""
    seen = set()
    for lost in (False, True):
        records = [called(i, timed=not lost) | {"rewards": {"team": float(i % 2)}, "task_id": f"q{i // 2}"}
                   for i in range(4)]  # fmt: skip
        if lost:
            records[0]["metrics"] = {"lost_parts": 1, "unlogged_calls": 1}
        traces = read(tmp_path, records)
        write_page(Findings.of(traces, {"rloo": credit.run(traces, "rloo")}), tmp_path / "page.html")
        with window((tmp_path / "page.html").as_uri()) as opened:
            shown(opened.page)
            for section, notes, cells in opened.page.evaluate(explained):
                for sign in ("≥", "–") if section in ("differences", "who", "costs", "triage") else ():
                    stands = any(cell == sign or cell.startswith(f"{sign} ") for cell in cells)
                    if section != "costs" or sign == "≥":
                        assert (f"{sign}:" in notes) == stands, (section, sign, notes, cells)
                        seen.add((sign, stands))
            assert opened.complaints == []
    assert seen == {(sign, stands) for sign in ("≥", "–") for stands in (True, False)}


def words_at_the_top(window: Any, out: Path, findings: Findings) -> list[str]:
    write_page(findings, out)
    with window(out.as_uri(), size=(390, 844)) as opened:
        assert fits(opened.page) and opened.complaints == []
        return [" ".join(text.split()) for text in opened.page.locator("#lead > *, #detail p").all_inner_texts()]


def test_a_number_that_differs_is_the_first_of_the_table_and_opens_its_trace(window: Any, tmp_path: Path) -> None:
    """The head named a trace that the table below lacked."""
    rng, records = np.random.default_rng(0), []
    for number in range(48):
        steps = ["lead", *["coder"] * int(rng.integers(1, 4) + 4 * (number % 2)), "writer"]
        events = [{"id": f"e{i}", "type": "message", "agent": agent, "action": True} for i, agent in enumerate(steps)]
        records.append({"trace_id": f"t{number}", "task_id": f"q{number // 4}", "events": events, "edges": [],
                        "rewards": {"team": float(number % 2 == 0)}})  # fmt: skip
    write_page(Findings.of(read(tmp_path, records), {}), tmp_path / "page.html")
    with window((tmp_path / "page.html").as_uri()) as opened:
        shown(opened.page)
        row = opened.page.locator("#triage tbody tr").first
        (look,) = (text for text in opened.page.locator("#lead > *").all_inner_texts() if text.startswith("Look first"))
        name, why = row.locator("td, th").first.inner_text(), row.locator("td").last.inner_text()
        assert " in this failed trace, on average " in why and why[1:] in look
        button = row.get_by_role("button", name="all of it")
        button.click()
        assert name in opened.page.locator("#explorer").inner_text() and opened.complaints == []


def test_the_page_begins_with_what_failed_what_it_cost_and_where_to_look(window: Any, tmp_path: Path) -> None:
    """The first words on the screen were about training signals, and the most serious event stood below it."""
    records = [called(number) | {"rewards": {"team": float(number == 1)}} for number in range(3)]
    traces = read(tmp_path, records)
    prices = Prices({"big": Price(input=2.0, output=1000.0)}, {"web": 0.25})
    claims = {"rloo": credit.run(traces, "rloo")}
    assert words_at_the_top(window, tmp_path / "page.html", Findings.of(traces, claims, prices=prices)) == [
        "What failed: 2 of 3 traces with an outcome failed.",
        "What went wrong most: Too few traces to tell: a test takes 8 failed and 8 succeeded ones.",
        "What was lost: 67 % of the money at the given prices (9.5 of 14.25) went into failed traces.",
        "Where time goes: 100 % of the wall clock goes into calls of web: 2,005 seconds a call (median).",
        "Look first: a, error of web; no later call of it succeeded ({}). It happened in 3 traces. Show it",
        "Money for a success: 14.25.",
        "What it cost: money 14.25 at the given prices, 1,500 tokens generated and 6M read, 3 h 21 min of wall clock.",
        "What differs: Within tasks, failed and succeeded traces have the same length, agents, errors, tools and ends: "
        "nothing to compare there.",
    ]
    won = [one | {"status": "ok"} if "status" in one else one for one in records[1]["events"]]
    sure = read(tmp_path, [records[0], records[1] | {"events": won}, records[2]])
    (look,) = (one for one in words_at_the_top(window, tmp_path / "page.html", Findings.of(sure, {})) if "Look" in one)
    assert look.endswith("({}). It happened in 2 traces. Show it")
    alike = read(tmp_path, [one | {"rewards": {}, "trace_id": f"{i}"} for i, one in enumerate(records[:1])])
    assert words_at_the_top(window, tmp_path / "page.html", Findings.of(alike, {})) == [
        "What failed: 1 error, 0 retries, 0 loops. No trace has an outcome: which failed is not known.",
        "What went wrong most: Unrecovered errors of web by a in 1 of 1 trace. Show it",
        "Where time goes: 100 % of the wall clock goes into calls of web: 2,005 seconds a call (median).",
        "What it cost: 500 tokens generated and 2M read, 1 h 7 min of wall clock.",
    ]
    partly = read(tmp_path, [one | {"rewards": {"team": 1.0} if i else {}} for i, one in enumerate(records)])
    first = words_at_the_top(window, tmp_path / "page.html", Findings.of(partly, {}))[0]
    assert first.endswith("succeeded traces. 1 of 3 traces have no outcome. 3 errors, 0 retries, 0 loops.")
    quiet = {"id": "m", "type": "message", "agent": "a"}
    calm = read(tmp_path, [{"trace_id": "t", "task_id": "q", "events": [quiet], "edges": [], "rewards": {}}])
    first, look, cost = words_at_the_top(window, tmp_path / "page.html", Findings.of(calm, {}))
    assert first.startswith("What failed: Errors are not logged, 0 loops. No trace has an outcome: which ")
    assert cost == "What it cost: the logs do not say."
    assert look == "Look first: Nothing stands out: these logs do not state errors, and there is no loop."
    call = {"type": "tool_call", "agent": "a", "tool": "web", "content_ref": "x", "action": True, "tokens": 5}
    events = [call | {"id": f"c{i}", "status": "error"} for i in range(2)]
    again = read(tmp_path, [{"trace_id": "t", "task_id": "q", "events": events, "edges": [], "rewards": {}}])
    (lost,) = (
        one for one in words_at_the_top(window, tmp_path / "page.html", Findings.of(again, {})) if " lost" in one
    )
    assert lost.endswith(
        ": 50 % of the tokens generated (5) went into calls that repeat a failed call or a loop with equal arguments."
    )
    silent = [one | {"rewards": {}, "metrics": {"lost_parts": 1, "unlogged_calls": 1}} for one in records[:1]]
    for event in silent[0]["events"]:  # "≥ 0 errors" stood there, which says nothing
        event |= {"status": "ok"} if event["type"] == "tool_result" else {}
    first, *_, cost = words_at_the_top(window, tmp_path / "page.html", Findings.of(read(tmp_path, silent), {}))
    assert first.startswith("What failed: No error in the part that was logged, ")
    assert cost.startswith("What it cost: at least 500 tokens generated and at least 2M read, at least 1 h 6 min of ")
    assert "≥" not in first + cost


@pytest.mark.parametrize(("size", "theme"), VIEWS)
def test_what_to_look_at_opens_where_not_all_traces_fit(
    window: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], theme: str
) -> None:
    """The explorer held the first traces, or none: the button led to an empty one and named no command."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the extra `browser` is not installed")
    records = [called(i) | {"trace_id": f"it's {i}", "task_id": f"q{i // 2}", "rewards": {}} for i in range(40)]
    for one in records[:30] + records[31:]:
        one["events"][2]["status"] = "ok"
    monkeypatch.setattr("credit.page.html.LARGEST", 1)
    monkeypatch.setattr("credit.page.html.ROOM", 2500)
    out = tmp_path / "page.html"
    held = write_page(Findings.of(read(tmp_path, records), {}), out, inputs=["my runs"])
    assert "it's 30" in held and "it's 29" not in held
    with window(out.as_uri(), size=size, theme=theme) as opened:
        page: Page = opened.page
        shown(page)
        page.get_by_role("button", name="Show it").click()
        until(page, "document.querySelector('#explorer .about').textContent.startsWith(\"it's 30 \")")
        heading = page.locator("#explorer .receipt h3").first
        assert (heading.text_content() or "").startswith("Event r: tool_result") and fits(page)
        assert page.locator("#explorer .lanes").first.evaluate("(one) => one.getBoundingClientRect().top") < size[1] / 2
        rows = page.get_by_label("All traces").locator("tbody tr")
        kept = [row.locator("td").first.inner_text() for row in rows.all() if row.locator("button").count()]
        assert kept == held and rows.count() == 40
        assert "credit show 'my runs' --trace TRACE" in (page.locator("#success .note").last.text_content() or "")
        assert f"holds {len(held)} of 40 traces" in (page.locator("#explorer .note").first.text_content() or "")
        assert axe.Axe().run(page).response["violations"] == [] and opened.complaints == []
    monkeypatch.setattr("credit.page.html.ROOM", 0)
    assert write_page(Findings.of(read(tmp_path, records), {}), out, inputs=["my runs"]) == []
    with window(out.as_uri(), size=size, theme=theme) as opened:
        page = opened.page
        command = """credit show 'my runs' --trace 'it'"'"'s 30' --around r"""
        assert (page.locator("#lead > *", has_text="To see it, run").inner_text()).endswith(f"To see it, run {command}")
        assert page.get_by_role("button", name="Show it").count() == 0 and fits(page)
        page.locator("#lead code").last.click()
        assert page.evaluate("String(getSelection())") == command  # to copy, at one click
        assert axe.Axe().run(page).response["violations"] == [] and opened.complaints == []


def test_the_receipt_of_a_run_that_stops_at_a_limit_says_so(window: Any, tmp_path: Path) -> None:
    """ "The run stops at a limit" led to a message like any other, which said nothing of one."""
    records = [called(number) | {"rewards": {}, "metrics": {"ended_at_limit": 1.0}} for number in range(2)]
    write_page(Findings.of(read(tmp_path, records), {}), tmp_path / "page.html")
    with window((tmp_path / "page.html").as_uri(), size=SIZES[0]) as opened:
        shown(opened.page)
        opened.page.locator("#triage p button").first.click()
        receipt = opened.page.locator("#explorer .receipt").first
        until(opened.page, "document.querySelector('#explorer .receipt h3')")
        assert "early end\tthe run stops at a limit" in receipt.inner_text()
        assert "model\tbig" in receipt.inner_text()
        assert opened.complaints == []


def test_links_lead_to_their_sections_though_charts_above_are_drawn_on_the_way(window: Any, tmp_path: Path) -> None:
    """In a log of 3,000 traces they ended 550 to 1,250 pixels above: a smooth way keeps the end that it began with."""
    events = [{"id": f"e{k}", "type": "message", "agent": "ab"[k % 2], "tokens": 5} for k in range(6)]
    records = [{"trace_id": f"t{i}", "task_id": f"q{i // 4}", "events": events[: 2 + i % 4],
                "rewards": {"team": float(i % 4 > 1)}} for i in range(2100)]  # fmt: skip
    traces, out = read(tmp_path, records), tmp_path / "page.html"
    write_page(Findings.of(traces, {"rloo": credit.run(traces, "rloo")}), out)
    for name in ("Traces", "Doctor", "Groups and their signal"):
        with window(out.as_uri()) as opened:
            opened.page.emulate_media(reduced_motion="no-preference")
            opened.page.get_by_role("link", name=name, exact=True).click()
            opened.page.wait_for_timeout(1500)
            assert 0 <= opened.page.evaluate("document.querySelector(location.hash).getBoundingClientRect().top") < 100
            assert opened.complaints == []


def test_the_first_words_are_cut_between_words(window: Any, tmp_path: Path) -> None:
    """An error's text ended in "project... …)", or in the middle of a word."""
    record = called(0) | {"rewards": {}}
    record["events"][2]["content"] = "The test suite failed after the last edit of the module. " + "Read more... " * 8
    look = words_at_the_top(window, tmp_path / "page.html", Findings.of(read(tmp_path, [record]), {}))[1]
    assert look.endswith("of the module. Read more... Read more... Read more …) in 1 of 1 trace. Show it")


def test_sides_have_the_numbers_of_the_terminal(window: Any, tmp_path: Path) -> None:
    """`+0.03333` and `typical ×2.832 (2.626 to 3.117)` stood there, in a terminal `+0.0333` and `×2.83`."""
    rng = np.random.default_rng(0)
    records = [called(i, tokens=int(100 * np.exp(rng.normal()))) | {"task_id": f"q{i // 2}", "system": f"v{i % 2}"}
               | {"rewards": {"team": float(i % 30 == 0)}} for i in range(60)]  # fmt: skip
    traces = read(tmp_path, records)
    sides = Sides(("v0", "v1"), np.arange(60) % 2, ("v0", "v1"))
    write_page(Findings.of(traces, {}, sides=sides), tmp_path / "page.html")
    printed = CliRunner().invoke(cli, ["metrics", str(tmp_path / "log.jsonl"), "--sides", "system"]).output
    with window((tmp_path / "page.html").as_uri()) as opened:
        shown(opened.page)
        for metric in ("success", "tokens"):
            row = opened.page.locator("#sides tbody tr", has_text=metric).first.locator("td").all_text_contents()
            line = next(line for line in printed.splitlines() if line.startswith(f"{metric} "))
            cells = [cell.replace("−", "-") for cell in row if cell]
            assert " ".join(cells).split() == line.split(), metric


def test_sides_of_a_change_are_a_section(window: Any, tmp_path: Path) -> None:
    records = [called(number) | {"rewards": {"team": float(number % 2)}, "task_id": f"q{number // 2}"}
               for number in range(24)]  # fmt: skip
    records[2]["events"][0].pop("tokens")
    for record in records[1::2]:
        record["events"][2]["status"] = "ok"
    traces = read(tmp_path, records)
    sides = Sides(("before", "after"), np.arange(24) % 2, ("before", "after"))
    write_page(Findings.of(traces, {}, sides=sides), tmp_path / "page.html")
    with window((tmp_path / "page.html").as_uri(), size=(390, 844)) as opened:
        page: Page = opened.page
        shown(page)
        assert page.locator("nav a").nth(2).text_content() == "Sides: before against after"
        changed = page.locator("#lead > *").filter(has_text="What changed").inner_text()
        assert "success 0 to 1" in changed
        row = page.locator("#sides tbody tr", has_text="success").locator("td").all_text_contents()
        # the star is of the interval
        assert row == ["success", "0", "1", "+1", "no spread *", "6 tasks one way", "12 shared"]
        lines = page.locator("#sides p").all_text_contents()
        assert "Traces: 12 and 12" in " ".join(lines)
        assert page.locator("#sides .more").count() == 0  # numbers that a team of one agent has have a line
        assert page.locator("#sides tbody tr", has_text="tokens, all traces").count() == 1
        heads = page.locator("#triage th").all_inner_texts()  # causes of both sides stood there together
        places = [next(i for i, head in enumerate(heads) if head.startswith(f"in {name}")) for name in sides.names]
        cells = page.locator("#triage tbody tr").first.locator("td").all_text_contents()
        assert [cells[place].replace("\u00a0", " ") for place in places] == ["100 %", "0 %"]
        alone = page.locator("#lead > *", has_text="Only on one side").inner_text()
        counts = "12 of 12 failed traces and 0 of 12 succeeded ones (in all runs of before, where 0 of 12 runs with it "
        assert f"{counts}succeeded, and in no other: it cannot be told from the side)" in alone
        assert (
            "in before, in after: part of the 12 and 12 traces of each side with the same cause"
            in page.locator("#triage").inner_text()
        )
        assert fits(page) and opened.complaints == []


def test_no_table_hides_a_column_on_a_screen_a_phone_or_paper(window: Any, tmp_path: Path) -> None:
    """Ids of 32 characters pushed the texts of errors behind the edge, of a phone the differences of two sides."""
    random = np.random.default_rng(7)
    records = []
    for number in range(24):
        record = called(number) | {"trace_id": random.bytes(16).hex(), "task_id": f"q{number // 2}"}
        names = {one["id"]: random.bytes(8).hex() for one in record["events"]}
        names["r"] = f"{names['c']}.result"
        agents = [{"id": "customer_support_researcher"}]
        said = {"agent": agents[0]["id"], "text": "HTTP 500: currency not supported. " * 9}
        events = [one | said | {"id": names[one["id"]]} for one in record["events"]]
        edges = [one | {"src": names[one["src"]], "dst": names[one["dst"]]} for one in record["edges"]]
        outcome = {"team": float(number % 3 > 0)} if number < 20 else {}
        records.append(record | {"agents": agents, "events": events, "edges": edges, "rewards": outcome})
    traces = read(tmp_path, records)
    sides = Sides(("before", "after"), np.arange(24) % 2, ("before", "after"))
    write_page(
        Findings.of(traces, {name: credit.run(traces, name) for name in METHODS[:2]}, sides=sides),
        tmp_path / "page.html",
    )
    hidden = """() => {
      const end = (one) => one.getBoundingClientRect().right;
      return [...document.querySelectorAll(".scroll td, .scroll tr:not(.cards tr) > th")]
        .filter((cell) => end(cell) > end(cell.closest("section"))).map((cell) => cell.textContent);
    }"""
    cards = "[...document.querySelectorAll('.cards')].map((one) => one.parentElement.getAttribute('aria-label'))"
    for size in ((1600, 1000), (1280, 900), (800, 900), (390, 844)):
        with window((tmp_path / "page.html").as_uri(), size=size) as opened:
            page: Page = opened.page
            shown(page)
            assert page.evaluate(hidden) == [] and fits(page), size
            assert ("Events to look at" in page.evaluate(cards)) == (size[0] < 1280)
            assert ("Sides" in page.evaluate(cards)) == (size[0] < 500)
            first = page.locator("#triage tbody tr").first.locator("td.i")
            trace, event = (first.nth(i).locator("> *") for i in range(2))
            assert trace.text_content() == trace.get_attribute("title") and len(trace.text_content() or "") == 32
            assert (event.text_content() or "").endswith(".result") and event.bounding_box()["width"] < 100  # type: ignore[index]
            page.emulate_media(media="print")
            page.set_viewport_size({"width": 718, "height": 1000})  # A4
            assert page.evaluate(hidden) == [] and fits(page), size
            assert opened.complaints == []
            for ids, n in (["a", "b"], 10), (["x" * 20, "x" * 20 + "y"], 21), (["0123456789ab", "0123456789ac"], 12):
                assert page.evaluate(f"page.beginning({ids})") == n


def test_the_page_has_costs_of_a_trace_by_system(window: Any, tmp_path: Path) -> None:
    """It had sums by agent alone: what a version cost, and of how many traces, stood nowhere."""
    records = []
    for number in range(10):
        system, task = ("v2", f"q{number % 2}") if number < 2 else ("v1", f"q{number % 5}")
        events = [{"id": name, "type": "message", "agent": name, "tokens": 10 if system == "v1" else 30}
                  for name in ("lead", "reviewer")[: 1 + number % 2]]  # fmt: skip
        records.append({"trace_id": f"t{number}", "task_id": task, "system": system, "events": events})
    write_page(Findings.of(read(tmp_path, records), {}), tmp_path / "page.html")
    with window((tmp_path / "page.html").as_uri(), size=(390, 844)) as opened:
        shown(page := opened.page)
        rows = page.get_by_label("Costs of a trace by system, agent").locator("tbody tr").all()
        told = [row.locator("td").all_text_contents()[:3] for row in rows]
        assert ["v2, reviewer", "1 of 2", "15"] in told and ["v1, lead", "8", "10"] in told
        assert told[-2:] == [["total of v2", "2", "45"], ["total of v1", "8", "15"]]
        notes = page.locator("#costs p.note").all_text_contents()
        said = "Sums divided by all traces of the system. 1 of 2: the row is in 1 of these. The mixes of tasks of v1"
        assert any(note.startswith(said) for note in notes)
        assert fits(page) and opened.complaints == []


@pytest.mark.slow
def test_a_long_command_breaks_on_a_phone(window: Any, tmp_path: Path) -> None:
    """A step between releases of long names made the page wider than a phone."""
    records = []
    for number in range(60):
        event = {"id": "e", "type": "message", "agent": "a", "tokens": number, "t": 1.7e9 + 3600 * number}
        system = f"team-of-agents-2026.11.{number // 20}-candidate"
        records.append({"trace_id": f"t{number}", "task_id": f"q{number}", "system": system, "events": [event],
                        "rewards": {"team": float(number % 3 == 0)}})  # fmt: skip
    write_page(Findings.of(read(tmp_path, records), {}), tmp_path / "page.html")
    with window((tmp_path / "page.html").as_uri(), size=(390, 844)) as opened:
        until(opened.page, "document.body.textContent.includes('--sides system=team-of-agents')")
        assert fits(opened.page) and opened.complaints == []


def test_the_page_says_which_agent_costs_more(window: Any, tmp_path: Path) -> None:
    """Money was there by role, model and tool; counts of a method that tells nobody apart stood before it."""
    records = []
    for number in range(24):
        side = number % 2
        events = [{"id": name, "type": "message", "agent": name, "tokens": count, "input_tokens": 0}
                  for name, count in (("lead", 20 + number // 2), ("reviewer", 50 + 100 * side))]  # fmt: skip
        records.append({"trace_id": f"t{number}", "task_id": f"q{number // 2}", "model": "big", "events": events,
                        "rewards": {"team": float(number % 3 == 0)} if number < 23 else {}})  # fmt: skip
    traces, prices = read(tmp_path, records), Prices({"big": Price(input=0.0, output=1e6)})
    sides = Sides(("old", "new"), np.arange(24) % 2, ("old", "new"))
    found = Findings.of(traces, {"rloo": credit.run(traces, "rloo")}, prices=prices, sides=sides)
    write_page(found, tmp_path / "page.html")
    with window((tmp_path / "page.html").as_uri(), size=(390, 844)) as opened:
        page: Page = opened.page
        shown(page)
        told = page.locator("#lead > *, #detail p").all_inner_texts()
        where = page.locator("#detail div", has_text="Where the changes come from:").locator("li").all_inner_texts()
        why = "calls as before, tokens generated per call ×3"
        assert where == [
            "Money of a trace +100, by agent: reviewer +100*.",
            f"Tokens generated of a trace +100, by agent: reviewer +100* ({why}); * beyond chance.",
        ]
        both = "old 8 of 12, new 7 of 11; on tasks that both ran, 7 of 11 and 7 of 11."
        failed = "15 of 23 traces with an outcome failed, 65 % (95 % interval 42 to 84 %)"
        without = "1 more has none: how it did is not known"
        assert " ".join(told[0].split()) == f"What failed: {failed}. {without}." and f"What failed: {both}" in told
        price = r"Money for a success: old 206\.[23], new 481\.[23], by means over the 11 tasks with outcomes on both"
        assert any(re.match(price, text) for text in told)  # 206.25 and 481.25
        (caveat,) = (text for text in told if text.startswith("But:"))  # the long sentence stands with the sides alone
        assert caveat == (
            "But: With the missing outcomes (1 of new) as failures, success is 0.333 to 0.333; as successes, 0.333 to "
            "0.417."
        )
        assert not any("have no outcome" in text for text in told)
        fold = page.locator("#sides details", has_text="In sentences")  # what the lead says does not stand open below
        assert fold.locator("p", has_text="But success is of 11 of 12").is_visible()
        fold.locator("summary").click()
        assert not fold.locator("p", has_text="But success is of 11 of 12").is_visible()
        assert "would be seen: a change as large as this has a * in 4 of 5 cases" in page.locator("#sides").inner_text()
        assert any(
            text.startswith("What it cost: money 3,012 (2,400 by reviewer) at the given prices") for text in told
        )
        rows = page.get_by_label("Costs by agent").locator("tbody tr").all()
        assert [row.locator("td").all_text_contents()[:2] for row in rows] == [["reviewer", "2,400"], ["lead", "612"]]
        work = page.locator("#triage").get_by_label("Agents")  # its costs stood in another section alone
        assert work.locator("th").all_text_contents()[-1] == "money"
        assert sorted(work.locator("td:last-child").all_text_contents()) == ["2,400", "612"]
        order = page.locator("main > section").evaluate_all("all => all.map((one) => one.id)")
        assert "costs" in order and "who" not in order  # nothing tells who earned it
        first = page.locator("#sides tbody tr td:first-child").all_text_contents()
        assert first[:3] == ["success", "money", "tokens"] and not any("_" in name for name in first)
        assert fits(page) and opened.complaints == []
    found = Findings.of(traces, {"rloo": credit.run(traces, "rloo")}, prices=Prices({}, {"web": 1.0}), sides=sides)
    write_page(found, tmp_path / "unpriced.html")
    with window((tmp_path / "unpriced.html").as_uri(), size=(390, 844)) as opened:  # "at least 0" named no model
        told = " ".join(opened.page.locator("#lead > *, #detail p, #detail li").all_inner_texts())
        assert "Money is not told, as no row of the table prices big. Tokens generated of" in told
        assert "at the given prices, which lack big" in told


def test_no_interval_leaves_its_chart(window: Any, tmp_path: Path) -> None:
    traces = read(tmp_path, [trace(3 * g + i, group, "") for g, group in enumerate("abcdefghi") for i in range(3)])
    write_page(Findings.of(traces, {name: credit.run(traces, name) for name in METHODS}), tmp_path / "who.html")
    with window((tmp_path / "who.html").as_uri()) as opened:
        shown(opened.page)
        opened.page.locator("#who").get_by_label("Method").select_option("gae")  # rloo gives a trace one number
        places, width = opened.page.evaluate("""() => {
          const who = echarts.getInstanceByDom(document.querySelector(".chart[aria-label^='Advantage against']"));
          const ends = who.getOption().series[0].data.flatMap((row) => row.coords);
          return [ends.map(([x]) => who.convertToPixel({ xAxisIndex: 0 }, x)), who.getWidth()];
        }""")
        assert places and min(places) >= 0 and max(places) <= width


def test_names_in_links_of_the_site_keep_their_underscores(browser: Browser) -> None:
    """The line below `dr_grpo` stood in the place of its underscore."""
    page = browser.new_page()
    name = '<div class="md-typeset"><table><td><a href="#"><code>dr_grpo</code></a></td></table></div>'
    page.set_content(f"<style>{(ROOT / 'docs' / 'site.css').read_text()}</style>{name}")
    style = "getComputedStyle(document.links[0])"
    line, letters = page.evaluate(f"[{style}.textUnderlineOffset, {style}.fontSize]")
    page.close()
    assert float(line[:-2]) > 0.3 * float(letters[:-2])


def opening() -> ModuleType:
    spec = importlib.util.spec_from_file_location("page_opening", ROOT / "benchmarks" / "page_opening.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore:.* reads the order of agents")  # the benchmark's logs have no edges
def test_a_hundred_traces_of_five_hundred_events_open_almost_as_fast_as_five_of_ten(
    window: Any, browser: Browser, tmp_path: Path
) -> None:
    """The benchmark has the seconds, which say how busy the machine is: two pages in turn meet the same load."""
    benchmark = opening()
    pages = {
        name: benchmark.write(tmp_path, str(i), *shape) for i, (name, shape) in enumerate(benchmark.SHAPES.items())
    }
    large = next(iter(pages.values()))
    assert large.stat().st_size <= LARGEST
    with window(large.as_uri()) as opened:
        shown(opened.page)
        assert opened.page.locator("#tiles .tile b").first.text_content() == "100"
        assert opened.complaints == []
    taken = [min(times) for times in benchmark.measure(browser, pages, 4).values()]
    assert taken[0] < 3 * taken[1], taken


def test_the_page_tells_numbers_apart_as_the_commands_do(window: Any, pages: dict[str, str]) -> None:
    """The page wrote "50 % to 79 % *" of an interval that begins above 50 %, and 0 s of a tool that took 0.4 s."""
    random = np.random.default_rng(0)
    drawn = [[0.5 + 10.0**-k * float(one) for one in random.uniform(-1, 1, 3)] for k in range(1, 6)]
    with window(pages["credit"]) as opened:
        for numbers in [*drawn, [0.502, 0.79], [0.3, 0.8], [0.0, 0.001, 1.0]]:
            shown = opened.page.evaluate(f"page.apart({numbers}, page.percent, 0, 0.5)")
            assert [text.replace("\xa0", " ") for text in shown] == apart(numbers, percent, 0, beside=0.5)
        assert opened.page.evaluate("page.number(1234567.25)") == "1,234,567" and opened.complaints == []
