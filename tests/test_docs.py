"""Every public module, class and function has a docstring."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

PACKAGES = ("credit", "estimators", "graphs")


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
