"""A browser for tests of pages: an installed Chromium, driven by Playwright."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@functools.cache
def chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("no Chromium is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra `browser` is not installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield running
        running.close()


class Window:
    """A page in a window of its own, and what it did that a page of this library never does."""

    def __init__(
        self, browser: Browser, url: str, *, size: tuple[int, int] = (1280, 900), theme: str = "light"
    ) -> None:
        width, height = size
        self._context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce"
        )  # type: ignore[arg-type]
        self._context.set_default_timeout(60_000)  # of a machine that is busy
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        own = url if url.startswith("file:") else url.rstrip("/") + "/"
        self.page.on("request", lambda asked: self._check(asked.url, own))
        self.page.goto(url)

    def _check(self, asked: str, own: str) -> None:
        if asked != own and not (own.startswith("http") and asked.startswith(own)) and not asked.startswith("data:"):
            self.complaints.append(f"request: {asked}")

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: Any) -> None:
        self._context.close()


@pytest.fixture
def window(browser: Browser) -> Any:
    """Opens an address: `with window(url, size=(420, 860), theme="dark") as opened: opened.page.click("button")`."""
    return functools.partial(Window, browser)
