import importlib
import sys
from pathlib import Path

import pytest

from graphs.when_imported import when_imported


def test_it_acts_once_the_package_is_there_and_at_once_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_late.py").write_text("value = 1")
    monkeypatch.syspath_prepend(tmp_path)
    finders, seen = list(sys.meta_path), list[str]()
    when_imported("imported_late", lambda: seen.append(f"a{sys.modules['imported_late'].value}"))
    when_imported("imported_late", lambda: seen.append(f"b{sys.modules['imported_late'].value}"))
    importlib.import_module("json.tool")  # another module is none of its business
    assert not seen
    importlib.import_module("imported_late")
    assert sorted(seen) == ["a1", "b1"] and sys.meta_path == finders
    when_imported("imported_late", lambda: seen.append("c"))
    assert seen[2:] == ["c"]
    del sys.modules["imported_late"]


def test_a_package_that_is_not_installed_is_missing_as_ever() -> None:
    when_imported("no_such_package_at_all", lambda: None)
    with pytest.raises(ModuleNotFoundError, match="no_such_package_at_all"):
        importlib.import_module("no_such_package_at_all")
