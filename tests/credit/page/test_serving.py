"""`credit view` and `credit label`: what a server answers and refuses, and the file that a person's labels become."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.cli.shared.pages import page_title
from credit.page import Findings, Labels, PageServer, html
from credit.page.html import page
from credit.page.label_order import label_order
from credit.page.labels import LabelFileError
from graphs.errors import CreditError

ROOT = Path(__file__).resolve().parents[3]


def record(number: int) -> dict[str, Any]:
    events = [{"id": f"e{i}", "type": "message", "agent": "solver", "text": f"word {i} " * 60} for i in range(3)]
    return {"trace_id": f"t{number}", "task_id": "q", "events": events, "rewards": {"team": float(number % 2)}}


def written(folder: Path, records: list[dict[str, Any]]) -> Path:
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(one) + "\n" for one in records))
    return log


class Client:
    """Requests to a server that serves in a thread."""

    def __init__(self, server: PageServer) -> None:
        self.server, self.base = server, server.url[server.url.index("/", 8) :]

    def __call__(
        self, path: str, method: str = "GET", body: bytes | None = None, *, raw: bool = False, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        link = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        try:
            host = headers.pop("Host", f"127.0.0.1:{self.server.port}")
            link.putrequest(method, path if raw else self.base + path, skip_host=True)
            link.putheader("Host", host)
            length = {} if body is None else {"Content-Length": str(len(body))}
            for name, value in (length | headers).items():
                link.putheader(name.replace("_", "-"), value)
            link.endheaders(body)
            answer = link.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            link.close()

    def label(self, value: Any, **headers: str) -> tuple[int, bytes]:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        status, _, text = self("labels", "POST", body, **({"Content_Type": "application/json"} | headers))
        return status, text


def served(server: PageServer) -> Iterator[Client]:
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield Client(server)
    finally:
        server.stop()
        thread.join(20)
        server.close()
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    traces = credit.read(written(tmp_path_factory.mktemp("logs"), [record(i) for i in range(4)]))
    return Findings.of(traces, {"rloo": credit.run(traces, "rloo")})


@pytest.fixture(scope="module")
def client(findings: Findings) -> Iterator[Client]:
    yield from served(PageServer(findings))


@pytest.fixture
def labelling(findings: Findings, tmp_path: Path) -> Iterator[tuple[Client, Path]]:
    path = tmp_path / "labels.csv"
    for one in served(PageServer(findings, labels=Labels(path, rater="ann"))):
        yield one, path


@pytest.fixture(scope="module")
def refusing(findings: Findings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Path]]:
    """One server for all labels that it refuses: none of them leaves anything."""
    path = tmp_path_factory.mktemp("refused") / "labels.csv"
    for one in served(PageServer(findings, labels=Labels(path, rater="ann"))):
        yield one, path


@pytest.mark.slow
def test_the_page_and_its_traces_are_those_of_the_report(client: Client, findings: Findings) -> None:
    status, headers, body = client("")
    head, _ = embedded(body.decode())
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    expected, _ = embedded(page(findings)[0])
    assert head["overview"] == expected["overview"]
    assert head["explorer"] == {"held": [0, 1, 2, 3], "served": True, "labelled": False}
    for row in range(4):
        status, headers, body = client(f"trace/{row}")
        assert status == 200 and headers["Content-Type"] == "application/json"
        view = json.loads(body)
        assert view["id"] == f"t{row}" and len(view["text"][0]) > 300
        advantage = credit.run(findings.traces, "rloo").advantage[3 * row]
        assert view["methods"]["rloo"]["advantage"][0] == pytest.approx(float(advantage))


def embedded(html: str) -> tuple[dict[str, Any], list[str]]:
    return tuple(  # type: ignore[return-value]
        json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.S)[1])  # type: ignore[index]
        for name in ("data", "views")
    )


@pytest.mark.slow
def test_the_policy_lets_the_page_ask_its_own_server_and_nobody_else(client: Client, findings: Findings) -> None:
    _, headers, body = client("")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', body.decode())
    assert policy is not None
    assert "default-src 'none'" in policy[1] and "connect-src 'self'" in policy[1]
    assert "unsafe-eval" not in policy[1] and "http" not in policy[1]
    assert "connect-src" not in page(findings)[0]
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin" and headers["Referrer-Policy"] == "no-referrer"
    assert "Python" not in headers["Server"]


@pytest.mark.parametrize(
    "path",
    [
        "../../../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "trace/../../../etc/passwd",
        "trace//etc/passwd",
        "trace/-1",
        "trace/4",
        "trace/1e0",
        "trace/%D9%A3",
        "trace/99999999999999999999",
        "trace/0?x=1",
        "trace/",
        "trace",
        "labels",
        "log.jsonl",
        "index.html",
    ],
)
def test_no_other_address_is_served(client: Client, path: str) -> None:
    status, _, body = client(path)
    assert status == 404 and body == b"nothing is served at this address"


@pytest.mark.parametrize("path", ["/", "/etc/passwd", "//", "/trace/0", "http://127.0.0.1/", "/wrong/", "/{token}"])
def test_an_address_without_the_token_is_refused(client: Client, path: str) -> None:
    status, _, body = client(path.format(token=client.base.strip("/")), raw=True)
    assert status == 404 and b"<" not in body


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]:{port}"]
)
def test_another_host_name_is_refused(client: Client, host: str) -> None:
    status, _, body = client("", Host=host.format(port=client.server.port))
    assert status == 403 and body == b"another host name"
    assert client("", Host=f"localhost:{client.server.port}")[0] == 200


def test_only_this_machine_is_listened_to_and_tokens_differ(client: Client, findings: Findings) -> None:
    assert client.server.url.startswith(f"http://127.0.0.1:{client.server.port}/")
    with PageServer(findings) as other:
        assert len(other.url.split("/")[3]) >= 20
        assert other.url.split("/")[3] != client.server.url.split("/")[3]
    with pytest.raises(CreditError, match=f"cannot listen on port {client.server.port} of 127.0.0.1"):
        PageServer(findings, port=client.server.port)


def test_a_page_without_labels_takes_none(client: Client) -> None:
    assert client.label({"row": 0, "reward": 1.0})[0] == 404
    assert client("", "PUT", b"x")[0] == 501
    status, headers, body = client("", "HEAD")
    assert status == 200 and body == b"" and int(headers["Content-Length"]) > 1000


def test_labels_are_written_at_once_and_read_by_rewards(labelling: tuple[Client, Path], findings: Findings) -> None:
    client, path = labelling
    status, text = client.label({"row": 1, "reward": 0.0, "note": 'wrong,\n  "flight"'})
    assert status == 200 and path.read_text() == 'trace,reward,rater,note\nt1,0.0,ann,"wrong, ""flight"""\n'
    assert json.loads(text)["rows"] == {"1": {"reward": 0.0, "rater": "ann", "note": 'wrong, "flight"'}}
    client.label({"row": 0, "reward": 1})
    client.label({"row": 2, "reward": 0.5})
    client.label({"row": 2, "reward": None})
    assert json.loads(client("labels")[2])["rows"].keys() == {"0", "1"}
    again = Labels(path)
    assert {name: label.reward for name, label in again.by_trace.items()} == {"t0": 1.0, "t1": 0.0}
    log = written(path.parent, [record(i) | {"rewards": {}} for i in range(4)])
    read = credit.read(log, rewards=path)
    assert read.reward[:2].tolist() == [1.0, 0.0] and not read.problems
    in_folder = credit.read(path.parent)  # a file of labels among logs is no log
    assert in_folder.sizes.traces == 4 and not in_folder.problems


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"row": 0, "reward": "tell"}, 400),
        (b"{", 400),
        (b"\xff", 400),
        ({"row": 0}, 400),
        ({"row": "0", "reward": 1.0}, 400),
        ({"row": 4, "reward": 1.0}, 400),
        ({"row": -1, "reward": 1.0}, 400),
        ({"row": 0, "reward": "1"}, 400),
        (b'{"row": 0, "reward": 1e39}', 400),
        (b'{"row": 0, "reward": NaN}', 400),
        ({"row": 0, "reward": 1.0, "path": "/tmp/x"}, 400),
        ({"row": 0, "reward": 1.0, "note": "n" * 70_000}, 413),
    ],
)
def test_a_wrong_label_changes_nothing(refusing: tuple[Client, Path], change: Any, status: int) -> None:
    client, path = refusing
    assert client.label(change)[0] == status
    assert not path.exists() and json.loads(client("labels")[2])["rows"] == {}


def test_labels_of_other_sites_and_of_forms_are_refused(labelling: tuple[Client, Path]) -> None:
    client, path = labelling
    change = {"row": 0, "reward": 1.0}
    assert client.label(change, Origin="http://evil.example")[0] == 403
    assert client.label(change, Origin="null")[0] == 403
    assert client.label(change, Content_Type="text/plain")[0] == 415
    assert client.label(change, Host="evil.example")[0] == 403
    assert not path.exists()
    assert client.label(change, Origin=f"http://127.0.0.1:{client.server.port}")[0] == 200


def test_a_label_that_cannot_be_written_is_not_kept(labelling: tuple[Client, Path]) -> None:
    client, path = labelling
    path.mkdir()
    status, text = client.label({"row": 0, "reward": 1.0})
    assert status == 500 and b"not written" in text
    path.rmdir()
    assert json.loads(client("labels")[2])["rows"] == {}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_that_a_person_cannot_tell_is_recorded_and_no_outcome(suffix: str, findings: Findings, tmp_path: Path) -> None:
    """A trace that was skipped came again, and nobody knew that somebody had looked."""
    path = tmp_path / f"labels{suffix}"
    for client in served(PageServer(findings, labels=Labels(path, rater="ann"))):
        assert client.label({"row": 1, "reward": "cannot tell", "note": "two screens are missing"})[0] == 200
        client.label({"row": 2, "reward": 1.0})
        shown = json.loads(client("labels")[2])["rows"]
        assert shown["1"] == {"reward": "cannot tell", "rater": "ann", "note": "two screens are missing"}
    again = Labels(path)
    assert {name: label.reward for name, label in again.by_trace.items()} == {"t1": "cannot tell", "t2": 1.0}
    with pytest.raises(CreditError, match="expected a finite number, or 'cannot tell'"):
        again.put("t0", "1")  # type: ignore[arg-type]
    log = tmp_path / "logs" / "log.jsonl"
    log.parent.mkdir()
    written(log.parent, [record(i) for i in range(4)])
    known = credit.read(log).reward[:4].tolist()
    read = credit.read(log, rewards=path)
    assert read.reward[:4].tolist() == [*known[:2], 1.0, known[3]]  # what a person cannot tell takes no outcome away
    (told,) = read.problems
    assert told.kind == "untold-outcomes" and not told.is_failure and "1 row without" in told.expected


@pytest.mark.parametrize(
    "words", [("pass", "Fail"), ("TRUE", "false"), (1, 0), (True, False), ("resolved", "unresolved")]
)
def test_a_table_of_outcomes_is_labels(words: tuple[Any, Any], tmp_path: Path) -> None:
    """`pass` was refused, which `--rewards` reads, in a copy that the command itself had named."""
    log, table = written(tmp_path, [record(i) for i in range(4)]), tmp_path / "mine.jsonl"
    rows = [("t0", words[0]), ("t1", words[1]), ("t2", "Cannot tell")]
    table.write_text("".join(json.dumps({"trace": trace, "reward": reward}) + "\n" for trace, reward in rows))
    labels = Labels(table, rater="ann")
    assert {name: label.reward for name, label in labels.by_trace.items()} == {"t0": 1, "t1": 0, "t2": "cannot tell"}
    before = credit.read(log, rewards=table).reward[:4].tolist()
    labels.put("t3", 1.0)
    assert before == credit.read(log, rewards=table).reward[:4].tolist() == [1, 0, 0, 1]
    table.write_text(table.read_text() + '{"trace": "t4", "reward": "fail"}\n')
    with pytest.raises(LabelFileError, match=r"mine\.jsonl, line 5: reward 'fail'; expected one kind of outcome"):
        Labels(table)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_labels_are_kept_over_sessions(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"labels{suffix}"
    labels = Labels(path, rater=" ann \n b ")
    for i in range(3):
        labels.put(f"00{i}", i / 2, note=f'née, "{i}"\u2028')
    labels.put("001", None)
    second = Labels(path, rater="bob")
    assert second.by_trace == labels.by_trace
    second.put("000", -1e-3)
    assert [(one.trace, one.reward, one.rater) for one in Labels(path).by_trace.values()] == [
        ("000", -1e-3, "bob"),
        ("002", 1.0, "ann b"),
    ]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_spreadsheet_runs_no_text_of_a_file_of_labels(tmp_path: Path) -> None:
    """A note of `=HYPERLINK(...)` was a formula. An id must stay as the log has it."""
    labels = Labels(tmp_path / "labels.csv", rater="@ann")
    for trace, note in (("a", '=HYPERLINK("x")'), ("b", "'quoted'"), ("c", "fine")):
        labels.put(trace, 1.0, note=note)
    content = (tmp_path / "labels.csv").read_text()
    assert "\"'=HYPERLINK" in content and ",'@ann," in content
    assert Labels(tmp_path / "labels.csv").by_trace == labels.by_trace
    with pytest.raises(credit.CreditError, match=r"a spreadsheet would run the id of trace '=1\+1'.*\.jsonl"):
        labels.put("=1+1", 1.0)
    Labels(tmp_path / "labels.jsonl").put("=1+1", 1.0, note="=1")


@pytest.mark.slow
def test_two_windows_on_one_file_lose_no_label(findings: Findings, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    servers = [PageServer(findings, labels=Labels(path, rater=rater)) for rater in ("ann", "bob")]
    running = [served(server) for server in servers]
    clients = [next(one) for one in running]
    answers: list[int] = []

    def label(client: Client, rows: tuple[int, ...]) -> None:
        for i in range(5):
            answers.extend(client.label({"row": row, "reward": float(i)})[0] for row in rows)

    threads = [threading.Thread(target=label, args=each) for each in zip(clients, ((0, 2), (1, 3)), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = {name: (one.reward, one.rater) for name, one in Labels(path).by_trace.items()}
    assert answers == [200] * 20
    assert kept == {"t0": (4.0, "ann"), "t1": (4.0, "bob"), "t2": (4.0, "ann"), "t3": (4.0, "bob")}
    for client in clients:
        assert json.loads(client("labels")[2])["rows"].keys() == {"0", "1", "2", "3"}
    for one in running:
        assert next(one, None) is None
    assert [p.name for p in tmp_path.iterdir()] == ["labels.csv"]


def test_a_label_that_somebody_else_gave_meanwhile_is_named_and_kept(labelling: tuple[Client, Path]) -> None:
    client, path = labelling
    Labels(path, rater="bob").put("t0", 0.0)
    with path.open("a") as file:
        file.write("t2,0.5,,by hand\n")
    status, text = client.label({"row": 0, "reward": 1.0, "seen": None})
    assert status == 409 and b"the label of trace 't0' was set to 0 by bob in " in text
    shown = json.loads(client("labels")[2])["rows"]
    assert shown["0"] == {"reward": 0.0, "rater": "bob", "note": ""}
    assert client.label({"row": 0, "reward": 1.0, "seen": shown["0"]})[0] == 200
    assert client.label({"row": 1, "reward": 1.0, "seen": None})[0] == 200
    assert path.read_text().splitlines()[1:] == ["t0,1.0,ann,", "t2,0.5,,by hand", "t1,1.0,ann,"]
    path.write_text("trace,reward\nt0,good\n")
    assert client.label({"row": 1, "reward": 0.0})[0] == 409 and path.read_text() == "trace,reward\nt0,good\n"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_ids_with_line_breaks_read_back_and_others_are_refused(tmp_path: Path, suffix: str) -> None:
    labels = Labels(tmp_path / f"labels{suffix}")
    ids = ["a\rb", "a\nb", "a\r\nb", "\r", '"', ",", "'=1", " a "]
    for i, trace in enumerate(ids):
        labels.put(trace, float(i))
    assert {name: one.reward for name, one in Labels(labels.path).by_trace.items()} == {
        trace: float(i) for i, trace in enumerate(ids)
    }
    if suffix == ".csv":
        before = labels.path.read_bytes()
        with pytest.raises(LabelFileError, match="zero bytes"):
            labels.put("a\0b", 1.0)
        assert labels.path.read_bytes() == before and "a\0b" not in labels.by_trace


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trace,reward\na,1\na,0\n", "line 3: a second label of trace 'a'"),
        ("trace,reward\na,fine\n", "line 2: reward 'fine'; expected a finite number"),
        ("trace,reward\na,inf\n", "line 2: reward 'inf'"),
        ("trace,reward\n,1\n", "line 2: no trace"),
        ("trace,reward,split\na,1,x\n", "line 2: column 'split'"),
        ('{"trace": "a", "reward": \n', "expected a file of labels"),
    ],
)
def test_a_file_that_is_no_file_of_labels_is_refused_and_kept(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(CreditError, match=re.escape(expected)):
        Labels(path)
    assert path.read_text() == text
    with pytest.raises(CreditError, match=r"expected a name ending in \.csv or \.jsonl"):
        Labels(tmp_path / "labels.txt")


def test_commands_serve_and_say_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, out = written(tmp_path, [record(i) | {"rewards": {}} for i in range(4)]), tmp_path / "labels.csv"

    def interrupted(self: PageServer) -> None:
        if self._labels is not None:
            self._labels.put("t0", 1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(PageServer, "serve", interrupted)
    result = CliRunner().invoke(cli, ["label", str(log), "-o", str(out), "--no-browser", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"output": str(out), "labels": 1, "cannot_tell": 0, "traces": 4, "unknown": 3}
    assert re.search(r"^http://127\.0\.0\.1:\d+/[\w-]{20,}/$", result.stderr, re.M)
    told = CliRunner().invoke(cli, ["label", str(log), "-o", str(out), "--no-browser"]).stderr
    assert "1 label; 4 traces were read, 3 of them with neither a label nor an outcome" in " ".join(told.split())
    result = CliRunner().invoke(cli, ["view", str(log), "--rewards", str(out), "--no-browser"])
    assert result.exit_code == 0 and re.match(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/\n", result.stdout), result.output
    titles = [page_title("Credit report", paths) for paths in (("logs/runs/",), ("-",), ("a", "b", "c", "d", "e"))]
    assert [re.sub(r"\d{4}-\d\d-\d\d$", "DAY", title) for title in titles] == [
        "Credit report: runs, DAY", "Credit report: standard input, DAY", "Credit report: a, b, c and 2 more, DAY",
    ]  # fmt: skip
    result = CliRunner().invoke(cli, ["label", str(log), "-o", str(tmp_path / "labels.txt")])
    assert result.exit_code == 1 and "expected a name ending in .csv or .jsonl" in result.output


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_the_command_cleanly(tmp_path: Path) -> None:
    log = written(tmp_path, [record(i) for i in range(4)])
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import credit.__main__ as c; c.main()"
    )
    command = [sys.executable, "-c", script, "view", str(log), "--no-browser", "--methods", "rloo"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        stop = threading.Timer(120, process.kill)  # so that nothing here can wait for ever
        stop.start()
        try:
            assert process.stdout is not None and process.stderr is not None
            url = process.stdout.readline()
            assert url.startswith("http://127.0.0.1:")
            process.send_signal(signal.SIGINT)
            assert "Traceback" not in process.stderr.read()
            assert process.wait(60) == 0
        finally:
            stop.cancel()


def asked(findings: Findings) -> list[str]:
    """The traces in the order in which a person is asked for their outcomes."""
    names = findings.traces.traces["trace"].to_pylist()
    return [names[row] for row in label_order(findings.traces)]


@pytest.mark.slow
def test_a_person_labels_traces_by_the_keyboard(findings: Findings, tmp_path: Path, window: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the extra `browser` is not installed")
    path, names = tmp_path / "labels.jsonl", asked(findings)
    server = PageServer(findings, labels=Labels(path))
    for _ in served(server):
        with window(server.url) as opened:
            page, label = opened.page, opened.page.locator(".label")
            about = page.locator("#explorer .about").first
            about.filter(has_text=names[0]).wait_for()
            quotes = [page.get_by_label(f"{which} words of the trace") for which in ("First", "Last")]  # what is judged
            assert [quote.inner_text()[:6] for quote in quotes] == ["word 0", "word 2"]
            page.get_by_role("button", name="Show the event").last.click()
            page.locator("#explorer h3", has_text="Event e2").wait_for()
            page.keyboard.press("g")  # the next trace comes without another key
            about.filter(has_text=names[1]).wait_for()
            label.filter(has_text="1 of 4").wait_for()
            page.keyboard.press("b")
            about.filter(has_text=names[2]).wait_for()
            page.keyboard.press("z")
            about.filter(has_text=names[1]).wait_for()
            label.filter(has_text="1 of 4").wait_for()
            page.get_by_label("Note (write it before the answer)").fill("<img src=x onerror=alert(1)>")
            page.keyboard.press("Escape")
            page.keyboard.press("b")
            label.filter(has_text="2 of 4").wait_for()
            page.keyboard.press("t")  # of the third trace nobody can tell: it does not come again
            label.filter(has_text="3 of 4 traces have a label, 1 of them “cannot tell”.").wait_for()
            about.filter(has_text=names[3]).wait_for()
            page.keyboard.press("p")
            label.filter(has_text="This trace: cannot tell.").wait_for()
            page.keyboard.press("p")
            label.filter(has_text="This trace: outcome 0.").wait_for()
            page.get_by_label("Another outcome").fill("0.25")
            page.get_by_role("button", name="Save").click()
            label.filter(has_text="outcome 0.25").wait_for()
            assert page.locator("#explorer td.t").count() == 3 and page.locator("img").count() == 0
            assert axe.Axe().run(page).response["violations"] == []
            assert opened.complaints == []
    labels = Labels(path).by_trace
    assert {name: label.reward for name, label in labels.items()} == dict(
        zip(names[:3], (1.0, 0.25, "cannot tell"), strict=True)
    )
    assert labels[names[1]].note == "<img src=x onerror=alert(1)>"


@pytest.mark.slow
def test_traces_without_an_outcome_are_asked_first(tmp_path: Path, window: Any) -> None:
    """A lead with 29 unknown outcomes of 182 went through all traces in the order of the file."""
    log = written(tmp_path, [record(i) | ({"rewards": {}} if i in (1, 3) else {}) for i in range(4)])
    findings, path = Findings.of(credit.read(log), {}), tmp_path / "labels.csv"
    sessions = [("2 have neither a label nor an outcome.", ["t1"], "1 of 4 traces have a label. 1 have neither")]
    sessions += [("1 have neither", ["t3", "t0", "t2"], "4 of 4 traces have a label. None is left. 0 have neither")]
    for begins, names, ends in sessions:  # the second goes on where the first was left
        for client in served(PageServer(findings, labels=Labels(path))):
            with window(client.server.url) as opened:
                page, label = opened.page, opened.page.locator(".label")
                label.filter(has_text=begins).wait_for()
                for name in names:
                    page.locator("#explorer .about").first.filter(has_text=name).wait_for()
                    page.keyboard.press("g")
                label.filter(has_text=ends).wait_for()
                assert opened.complaints == []


def test_a_trace_that_people_judged_in_another_reward_has_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """105 of 240 traces had "neither a label nor an outcome"; people had labelled 24 of these."""
    records = [record(i) | {"rewards": {"tests": 1.0} if i == 0 else {}} for i in range(4)]
    records[2] |= {"rewards": {"review": 0.0}, "metrics": {"review by people": 1.0}}
    call = ["label", str(written(tmp_path, records)), "-o", str(tmp_path / "labels.csv"), "--no-browser", "--json"]
    pages: list[str] = []

    def interrupted(self: PageServer) -> None:
        pages.append(self._page.decode())
        raise KeyboardInterrupt

    monkeypatch.setattr(PageServer, "serve", interrupted)
    result = CliRunner().invoke(cli, [*call, "--reward-channel", "tests"], catch_exceptions=False)
    assert json.loads(result.stdout)["unknown"] == 2
    assert '"judged":[2]' in pages[0].replace(" ", "")


@pytest.mark.slow
def test_traces_of_a_group_are_asked_one_after_another(tmp_path: Path, window: Any) -> None:
    """Of a log that runs all tasks again and again, as many labels as tasks gave no group two outcomes to compare."""
    runs = [record(i) | {"rewards": {}, "task_id": f"q{i % 3}"} for i in range(6)]
    runs[5]["rewards"] = {"team": 1.0}
    findings, path = Findings.of(credit.read(written(tmp_path, runs)), {}), tmp_path / "labels.csv"
    sessions = [(["t2", "t4"], 2), (["t1", "t3", "t0", "t5"], 6)]
    for names, ends in sessions:  # the second goes on where the first was left
        for client in served(PageServer(findings, labels=Labels(path))):
            with window(client.server.url) as opened:
                for name in names:
                    opened.page.locator("#explorer .about").first.filter(has_text=name).wait_for()
                    opened.page.keyboard.press("g")
                opened.page.locator(".label").filter(has_text=f"{ends} of 6 traces have a label").wait_for()
                assert opened.complaints == []


@pytest.mark.slow
def test_a_page_of_labels_says_which_outcomes_are_the_log_s(findings: Findings, tmp_path: Path, window: Any) -> None:
    """It said that two of four traces failed, and that no trace has a label."""
    bare = Findings.of(credit.read(written(tmp_path, [record(i) | {"rewards": {}} for i in range(2)])), {})
    for of, has in ((findings, True), (bare, False)):
        for client in served(PageServer(of, labels=Labels(tmp_path / "labels.csv"))):
            with window(client.server.url) as opened:
                page = opened.page
                page.locator("#explorer .about").first.filter(has_text=asked(of)[0]).wait_for()
                assert ("The log has outcomes of 4 traces" in page.locator("#explorer").inner_text()) == has
                assert "They are no labels" in page.locator("#explorer").inner_text() or not has
                assert "outcome" not in page.locator("#explorer .about").first.inner_text()  # no hint to the person
                assert not page.locator("#lead").is_visible() and not page.locator("#tiles").is_visible()  # nor errors
                assert page.locator("main section:visible").count() == 1  # those below counted them, too
                page.get_by_text("What the logs count").click()
                assert page.locator("#lead > *").first.inner_text().startswith("What failed in the log:")
                tiles = page.locator("#tiles .tile span").all_text_contents()
                heads = page.locator("thead th").all_text_contents()
                said = [words for words in (*tiles, *heads) if "outcome" in words]
                assert len(said) >= 2 * has and all("in the log" in words for words in said)
                assert opened.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("events", [62, 400])
def test_a_trace_to_judge_opens_with_its_end(events: int, tmp_path: Path, window: Any) -> None:
    """Events 0 to 55 of 62 were drawn: the reviewer and the end were not."""
    log = {"trace_id": "t", "task_id": "q", "rewards": {}}
    log["events"] = [{"id": f"e{i}", "type": "message", "agent": "a", "text": "x"} for i in range(events)]
    bare = Findings.of(credit.read(written(tmp_path, [log])), {})
    for client in served(PageServer(bare, labels=Labels(tmp_path / "labels.csv"))):
        with window(client.server.url) as opened:
            opened.page.locator("#explorer canvas").first.wait_for()
            begin, end = opened.page.evaluate(
                """() => {
                  const drawn = echarts.getInstanceByDom(document.querySelector("#explorer .pane .chart"));
                  const { startValue, endValue } = drawn.getOption().dataZoom[0];
                  return [startValue, endValue];
                }"""
            )
            assert end > events - 1 and (begin < 0) == (events == 62) and opened.complaints == []


@pytest.mark.slow
def test_a_person_who_judges_a_run_reads_that_it_ends_in_a_call(tmp_path: Path, window: Any) -> None:
    """`It ends: pytest -x` was all that stood there of a run that was killed in this call."""
    runs = []
    for name, cut in (("whole", False), ("killed", True)):
        call = {"id": "c", "type": "tool_call", "agent": "a", "tool": "x", "text": "pytest -x", "action": True}
        answer = {"id": "r", "type": "tool_result", "agent": "a", "tool": "x", "text": "passed"}
        said = {"id": "m", "type": "message", "agent": "a", "text": "done"}
        begin = {"id": "b", "type": "message", "agent": "a", "text": "go"}
        events = [begin, call] if cut else [begin, call, answer, said]
        edges = [] if cut else [{"src": "c", "dst": "r", "type": "return"}]
        runs.append({"trace_id": name, "task_id": "q", "events": events, "edges": edges, "rewards": {}})
    bare = Findings.of(credit.read(written(tmp_path, runs)), {})
    for client in served(PageServer(bare, labels=Labels(tmp_path / "labels.csv"))):
        with window(client.server.url) as opened:
            ends = opened.page.locator("#explorer p").filter(has_text="It ends").first
            opened.page.locator("#explorer .about").first.filter(has_text="whole").wait_for()
            assert ends.inner_text() == "It ends: Show the event"
            opened.page.get_by_role("button", name="Good: 1").click()
            opened.page.locator("#explorer .about").first.filter(has_text="killed").wait_for()
            assert ends.inner_text() == "It ends early: the run ends in this call without a result: Show the event"
            assert opened.complaints == []


@pytest.mark.slow
def test_a_person_reads_what_was_asked_and_what_came_of_it(tmp_path: Path, window: Any) -> None:
    """A run whose root span alone has both was shown without: its events are calls inside it."""
    about = {"trace_id": "t", "session_name": "x"}
    root = about | {
        "id": "t",
        "name": "g",
        "run_type": "chain",
        "inputs": {"question": "3 or 5?"},
        "outputs": {"a": "5"},
    }
    call = about | {"id": "a", "name": "m", "run_type": "llm", "parent_run_id": "t", "outputs": {"text": "it is 5"}}
    findings = Findings.of(credit.read(written(tmp_path, [root, call])), {})
    for labels in (None, Labels(tmp_path / "labels.csv")):
        for client in served(PageServer(findings, labels=labels)):
            with window(client.server.url) as opened:
                said = opened.page.locator("#explorer blockquote" if labels else "#explorer .asked p")
                said.first.filter(has_text="3 or 5?").wait_for()
                shown = ["3 or 5?", "5", "it is 5"] if labels else ["Asked: 3 or 5?", "Result: 5"]
                assert said.all_inner_texts() == shown and opened.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_the_answers_are_on_the_first_screen(
    theme: str, findings: Findings, tmp_path: Path, window: Any
) -> None:
    """They began 937 pixels from the top of a screen of 844."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the extra `browser` is not installed")
    for client in served(PageServer(findings, labels=Labels(tmp_path / "labels.csv"))):
        with window(client.server.url, size=(390, 844), theme=theme) as opened:
            opened.page.locator("#explorer .about").first.filter(has_text=asked(findings)[0]).wait_for()
            for name in ("Good: 1", "Bad: 0", "Cannot tell", "Undo"):
                box = opened.page.get_by_role("button", name=name).bounding_box()
                assert box is not None and box["y"] + box["height"] <= 844 and box["x"] + box["width"] <= 390, name
            tops = [opened.page.locator(one).bounding_box() for one in ("#explorer", "#lead")]
            assert tops[0] and tops[1] and tops[0]["y"] < 260 < 844 < tops[1]["y"]  # it began below words on all traces
            opened.page.get_by_role("button", name="Cannot tell").click()
            opened.page.locator(".label").filter(has_text="1 of 4").wait_for()
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
            assert axe.Axe().run(opened.page).response["violations"] == []
            assert opened.complaints == []


@pytest.mark.slow
def test_many_traces_are_searched_by_their_ids(
    findings: Findings, window: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(name: str) -> str:
        return asset(name).replace("MOST_LISTED = 1000;", "MOST_LISTED = 3;")

    asset = html._asset
    monkeypatch.setattr(html, "_asset", few)
    server = PageServer(findings)
    for _ in served(server):
        with window(server.url) as opened:
            about = opened.page.locator("#explorer .about").first
            about.filter(has_text="t0").wait_for()
            for text, found in (("3", "t3 · gro"), ("T1", "t1 · gro"), ("nothing", "No trace")):
                opened.page.locator("#explorer input[type=search]").first.fill(text)
                opened.page.keyboard.press("Enter")
                about.filter(has_text=found).wait_for()
            assert opened.complaints == []
