"""`PageServer`: the page of findings on the loopback address, for logs of any size."""

from __future__ import annotations

import hmac
import secrets
import socketserver
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import msgspec

from credit.page.findings import Findings
from credit.page.html import served_page
from credit.page.labels import Label, LabelFileError, Labels, Outcome
from credit.page.trace_view import TraceViews
from graphs.errors import CreditError, expect
from graphs.json_errors import JSON_ERRORS
from graphs.text import printable

__all__ = ["PageServer"]

ADDRESS = "127.0.0.1"
EXCERPT = 2000  # characters of text of an event
LARGEST_BODY = 1 << 16  # bytes of a label
IDLE = 60  # seconds after which a connection is closed on which nothing is asked

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page states the rest of its policy itself
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _Answer(NamedTuple):
    status: HTTPStatus
    kind: str
    body: bytes


class _Change(msgspec.Struct, forbid_unknown_fields=True):
    """A label as the page sends it, and the one that it shows; without a reward the label of the trace is removed."""

    row: int
    reward: Outcome | None
    note: str = ""
    seen: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class PageServer:
    """Serve a page to browsers on this machine.

    The server listens on 127.0.0.1 only. Its address holds a random token. It answers three addresses: the page, a
    trace by its row, and the labels. It reads no file by the name that a request gives. It refuses a request under
    another host name, so that no other web site reaches it through a name of its own.

    Args:
      findings: what the page shows.
      title: of the page.
      port: to listen on; 0 takes a free one.
      labels: where the labels of a person go; None for a page without labels.

    Attributes:
      url: address of the page.

    Raises:
      CreditError: an argument of a wrong type, or the port is taken or not allowed.

    Examples:
      >>> import credit, threading, urllib.request
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> findings = Findings.of(rows.traces, {"rloo": credit.rloo(graph, reward)})
      >>> with PageServer(findings) as server:
      ...     threading.Thread(target=server.serve).start()
      ...     with urllib.request.urlopen(server.url + "trace/0") as answer:
      ...         print(answer.status)
      ...     server.stop()
      200
    """

    def __init__(
        self,
        findings: Findings,
        *,
        title: str = "Credit report",
        port: int = 0,
        labels: Labels | None = None,
    ) -> None:
        expect("findings", findings, Findings, "what Findings.of returns")
        self._labels = labels
        self._names: list[str] = findings.traces.traces["trace"].to_pylist()
        self._views = TraceViews(findings)
        self._page = served_page(findings, title=title, labelled=labels is not None).encode()
        self._lock = threading.Lock()  # views and labels are made one at a time
        try:
            self._server = _Listener((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise CreditError(f"cannot listen on port {port} of {ADDRESS}: {error}; expected a free port") from error
        self.port: int = self._server.server_address[1]
        self._token = secrets.token_urlsafe(16)
        self.url = f"http://{ADDRESS}:{self.port}/{self._token}/"
        names = {ADDRESS, "localhost"}
        self.hosts = {f"{name}:{self.port}" for name in names} | (names if self.port == 80 else set())
        self._server.page_server = self

    def __enter__(self) -> PageServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def serve(self) -> None:
        """Answer requests until `stop` is called."""
        self._server.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """End `serve`, from another thread."""
        self._server.shutdown()

    def close(self) -> None:
        """Stop listening, after a label that is being written is on disk."""
        with self._lock:
            self._server.server_close()

    def get(self, path: str) -> _Answer:
        """The answer to a request for an address."""
        rest = self._below(path)
        if rest == "":
            return _Answer(HTTPStatus.OK, "text/html; charset=utf-8", self._page)
        if rest == "labels" and self._labels is not None:
            with self._lock:
                try:
                    self._labels.refresh()
                except (LabelFileError, OSError) as error:
                    return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
                return self._json(self._label_rows(self._labels))
        word, _, digits = (rest or "").partition("/")
        if word == "trace" and digits.isascii() and digits.isdecimal() and len(digits) < 12:
            row = int(digits)
            if row < len(self._names):
                with self._lock:
                    return self._json(self._views.of(row, excerpt=EXCERPT))
        return _refusal(HTTPStatus.NOT_FOUND, "nothing is served at this address")

    def post(self, path: str, body: bytes) -> _Answer:
        """The answer to a change of a label."""
        if self._below(path) != "labels" or self._labels is None:
            return _refusal(HTTPStatus.NOT_FOUND, "nothing can be changed at this address")
        try:
            change = msgspec.json.decode(body, type=_Change)
        except JSON_ERRORS as error:
            return _refusal(HTTPStatus.BAD_REQUEST, f"no label: {error}")
        if not 0 <= change.row < len(self._names):
            return _refusal(HTTPStatus.BAD_REQUEST, f"row {change.row}; expected 0 to {len(self._names) - 1}")
        is_seen = None if change.seen is msgspec.UNSET else lambda label: _shown(label) == change.seen
        with self._lock:
            try:
                self._labels.put(self._names[change.row], change.reward, note=change.note, is_seen=is_seen)
            except LabelFileError as error:
                return _refusal(HTTPStatus.CONFLICT, str(error))
            except CreditError as error:
                return _refusal(HTTPStatus.BAD_REQUEST, str(error))
            except OSError as error:
                return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, f"not written: {error}")
            return self._json(self._label_rows(self._labels))

    def _below(self, path: str) -> str | None:
        """What follows the token in an address; None for a wrong token."""
        token, slash, rest = path.removeprefix("/").partition("/")
        right = hmac.compare_digest(token.encode(), self._token.encode())
        return rest if right and slash and path.startswith("/") else None

    def _label_rows(self, labels: Labels) -> dict[str, Any]:
        rows = {str(row): _shown(labels.by_trace.get(name)) for row, name in enumerate(self._names)}
        rows = {row: label for row, label in rows.items() if label is not None}
        return {"file": printable(str(labels.path), 200), "rater": printable(labels.rater, 80), "rows": rows}

    def _json(self, value: Any) -> _Answer:
        return _Answer(HTTPStatus.OK, "application/json", msgspec.json.encode(value))


def _shown(label: Label | None) -> dict[str, Any] | None:
    """A label as the page shows it."""
    if label is None:
        return None
    return {"reward": label.reward, "rater": printable(label.rater, 80), "note": printable(label.note, 2000)}


def _refusal(status: HTTPStatus, why: str) -> _Answer:
    return _Answer(status, "text/plain; charset=utf-8", printable(why, 400).encode())


class _Listener(ThreadingHTTPServer):
    """A server that asks no name server for its own name."""

    page_server: PageServer

    def server_bind(self) -> None:
        """Bind without the look-up of `HTTPServer`, which may wait for a network."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def handle_error(self, *about: Any) -> None:
        """A browser that closes a connection is no error; anything else is printed."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(*about)


class _Handler(BaseHTTPRequestHandler):
    """Requests of one connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE
    server: _Listener

    def version_string(self) -> str:
        """Name no versions."""
        return "credit"

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer with the page, a trace or the labels."""
        self._send(lambda server: server.get(self.path))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Change a label."""
        self._send(self._posted)

    def _posted(self, server: PageServer) -> _Answer:
        if self.headers.get("Origin", f"http://{self.headers['Host']}") != f"http://{self.headers['Host']}":
            return _refusal(HTTPStatus.FORBIDDEN, "a request of another site")
        if self.headers.get_content_type() != "application/json":
            return _refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or len(length) > 9 or int(length) > LARGEST_BODY:
            return _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {LARGEST_BODY} bytes")
        return server.post(self.path, self.rfile.read(int(length)))

    def _send(self, answer: Callable[[PageServer], _Answer]) -> None:
        server = self.server.page_server
        hosts = self.headers.get_all("Host", [])
        if len(hosts) == 1 and hosts[0] in server.hosts:
            status, kind, body = answer(server)
        else:
            status, kind, body = _refusal(HTTPStatus.FORBIDDEN, "another host name")
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if status != HTTPStatus.OK:
            self.send_header("Connection", "close")  # a body that was not read would be taken for the next request
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
