from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import UnavailableError
from dld_tui.core.settings.plugins import plugins, resolve


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    info = tmp_path / "other_package-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text(
        "[dld_tui.numbers]\none = other_package:ONE\nabsent = no_such_module:X\n"
        "text = other_package:TEXT\nraises = other_package.bad:X\n"
    )
    folder = tmp_path / "other_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("ONE = 1\nTEXT = 'one'\n")
    (folder / "bad.py").write_text("raise ValueError('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("package")
def test_each_entry_point_is_there_with_its_value_or_its_problem() -> None:
    found = {plugin.name: plugin for plugin in plugins("numbers", int)}
    assert list(found) == ["absent", "one", "raises", "text"]
    assert (found["one"].value, found["one"].problem) == (1, "")
    assert "no_such_module" in found["absent"].problem
    assert found["raises"].problem == "ValueError: not today"
    assert "is not of type int" in found["text"].problem
    assert {plugin.package for plugin in found.values()} == {"other-package"}
    assert plugins("letters", int) == ()


def test_a_reference_names_what_is_in_a_module() -> None:
    assert resolve("pathlib:Path.cwd") == Path.cwd
    assert resolve(len) is len
    for wrong in ("no_such_module:X", "pathlib:no_such_name"):
        with pytest.raises(UnavailableError, match="no_such"):
            resolve(wrong)
