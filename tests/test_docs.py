"""Every public module, class and function has a docstring, and the software is cited by its version and title."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest
from site_pages import hooks, page

import credit
from credit import __version__

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("credit", "estimators", "graphs")


def public_modules() -> list[str]:
    names = list(PACKAGES)
    for package in PACKAGES:
        module = importlib.import_module(package)
        names += [
            m.name for m in pkgutil.walk_packages(module.__path__, package + ".") if not m.name.endswith("__main__")
        ]
    return names


def import_or_skip(name: str) -> ModuleType:
    """A module; one that connects a trainer is skipped where that trainer is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not name.startswith("credit.integrations.") or str(error.name).split(".")[0] in PACKAGES:
            raise
        pytest.skip(f"{error.name} is not installed; `make integrations` imports {name}")


MODULES = public_modules()


@pytest.mark.parametrize("folder", dict.fromkeys(name.rpartition(".")[0] for name in MODULES))
def test_every_public_name_has_a_docstring(folder: str) -> None:
    absent = []
    for name in (name for name in MODULES if name.rpartition(".")[0] == folder):
        try:
            module = import_or_skip(name)
        except pytest.skip.Exception as why:  # and the others are looked at
            absent.append(str(why))
            continue
        assert inspect.getdoc(module), f"{name} has no docstring"
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)):
                assert inspect.getdoc(value), f"{name}.{public} has no docstring"
    if absent:
        pytest.skip("; ".join(absent))


def reference() -> list[str]:
    """What the pages of reference list."""
    pages = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    return re.findall(r"^::: (\S+)$", pages, flags=re.MULTILINE)


@pytest.mark.parametrize("name", sorted(reference()))
def test_the_reference_says_what_each_parameter_is(name: str) -> None:
    """`help(bias.measure)` had no word on `k`."""
    module = import_or_skip(name)
    lacking = {}
    for public in getattr(module, "__all__", ()):
        function = inspect.unwrap(value) if callable(value := getattr(module, public)) else None
        if inspect.isfunction(function):
            text = inspect.getdoc(value) or ""
            lacking[public] = [p for p in inspect.signature(function).parameters if not re.search(rf"\b{p}\b", text)]
    assert not any(lacking.values()), {public: names for public, names in lacking.items() if names}


def test_the_citations_are_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    entry = re.search(r"```bibtex\n(.*?)```", (ROOT / "docs" / "index.md").read_text(), re.DOTALL)
    assert entry is not None
    fields = dict(re.findall(r"^  (\w+) += \{(.*)\},$", entry[1], re.MULTILINE))
    plain = {name: re.sub(r"[{}]", "", text) for name, text in fields.items()}
    title, author = (re.search(rf'{key}: "(.*)"', citation) for key in ("title", "name"))
    assert title is not None and author is not None
    assert f"\nversion: {__version__}\n" in citation
    assert {name: plain[name] for name in ("version", "title", "author")} == {
        "version": __version__,
        "title": title[1],
        "author": author[1],
    }


def test_the_site_fills_each_mark_once() -> None:
    """A mark that no page has, or that a page spells otherwise, would leave a page without its table.

    Comments were the marks, of which the readers of a checkout saw nothing: a mark links to what its table is made of,
    and says that it stands for one. As "data: bias" or "laws" it read as a placeholder.
    """
    docs, found = ROOT / "docs", list[str]()
    for path in docs.rglob("*.md"):
        for mark, target in hooks().MARK.findall(path.read_text()):
            found.append(mark)
            assert mark.startswith(("table: ", "options ")), (path, mark)
            assert (path.parent / target).is_file(), (path, mark, target)
            text = page(path.relative_to(docs).with_suffix("").as_posix())
            assert text.split(f"<!-- {mark} -->")[1].split("<!-- end -->")[0].count("\n|") > 2, mark
    assert sorted(found) == sorted(hooks().TABLES)


def test_the_dialog_of_the_search_has_a_name() -> None:
    """Readers of screens announce it; the theme's own template has none."""
    theme = pytest.importorskip("material", reason="the extra `docs` is not installed")
    dialog = (Path(theme.__path__[0]) / "templates" / "partials" / "search.html").read_text()
    assert 'role="dialog" aria-label="Search"' in hooks().on_post_page(dialog)
    assert 'role="dialog" aria-label="Search"' in hooks().on_post_template(dialog, template_name="404.html")


def test_names_in_code_that_fit_on_a_phone_are_marked_to_stay_whole() -> None:
    """A line broke within `--groups`, behind its first letter."""
    made = hooks().on_page_content(f"<code>--groups</code> <code>credit show</code> <code>{'a' * 40}</code>")
    assert made == f'<code class="name">--groups</code> <code>credit show</code> <code>{"a" * 40}</code>'


def writer_of(name: str) -> ModuleType:
    """A script of docs that writes a page."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    return writer


def test_the_page_of_speed_is_current() -> None:
    """`python docs/write_speed.py` writes it, from what was measured."""
    writer = writer_of("write_speed")
    assert writer.PAGE.read_text(encoding="utf-8") == writer.page()


def test_the_page_of_trainers_names_the_methods_that_go_over_traces_in_their_order() -> None:
    lines = (ROOT / "docs" / "trainers.md").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if "need traces in sampling order" in line)
    in_turn = {name for name, method in credit.METHODS.items() if method.state is not None}
    assert in_turn == set(re.findall(r"`(\w+)`", line.split(" need ")[0]))


def test_the_table_of_methods_is_current_and_has_every_formula() -> None:
    """`python docs/write_methods.py` writes it."""
    writer = writer_of("write_methods")
    assert writer.TABLE.read_text(encoding="utf-8") == writer.table()
    assert writer.PICTURE.read_text(encoding="utf-8") == writer.picture()
    for name, method in credit.METHODS.items():
        assert writer.formula(method) and method.compared.population, name
        assert writer.formula(method) in writer.method_page(name) and ">>> " in writer.method_page(name), name


def test_no_object_is_documented_on_two_pages():
    """A page of reference lists a package with all that it holds, so that what is within it has no entry of its own."""
    pages = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    entries = reference()
    alone = re.findall(r"^::: (\S+)\n +options:\n +members: false$", pages, flags=re.MULTILINE)
    assert len(entries) == len(set(entries)) > 20
    whole = [entry for entry in entries if entry not in alone]
    assert [inner for inner in entries if any(inner.startswith(f"{outer}.") for outer in whole)] == []
