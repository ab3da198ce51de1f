"""The documentation says what the code says: every public name is described, generated pages are current."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("credit", "estimators", "graphs")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def public_modules() -> list[str]:
    names = list(PACKAGES)
    for package in PACKAGES:
        module = importlib.import_module(package)
        names += [
            m.name for m in pkgutil.walk_packages(module.__path__, package + ".") if not m.name.endswith("__main__")
        ]
    return names


@pytest.mark.parametrize("name", public_modules())
def test_every_public_name_has_a_docstring(name: str) -> None:
    module = importlib.import_module(name)
    assert inspect.getdoc(module), f"{name} has no docstring"
    for public in getattr(module, "__all__", ()):
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)):
            assert inspect.getdoc(value), f"{name}.{public} has no docstring"


def test_generated_pages_are_current() -> None:
    for path, text in generator().pages().items():
        assert path.exists() and path.read_text() == text, f"{path.name} is stale: run `python docs/generate.py`"


def test_every_name_of_the_door_is_on_an_api_page() -> None:
    import credit

    pages = "".join(p.read_text() for p in (ROOT / "docs" / "api").glob("*.md"))
    missing = [name for name in credit.__all__ if f"### `{name}`" not in pages]
    assert not missing
