from __future__ import annotations

import os
from configparser import ConfigParser
from importlib import metadata
from pathlib import Path

import pytest

from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.plugins import (
    GROUPS,
    entry_points,
    listen,
    our_entry_points,
    plugins,
    resolve,
    skip,
    skipped,
)


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
def test_each_entry_point_is_there_or_is_skipped_and_told_once() -> None:
    told: list[str] = []
    end = listen(told.append)
    (one,) = plugins("numbers", int)
    assert (one.name, one.package, one.value) == ("one", "other-package", 1)
    assert plugins("numbers", int) == (one,)
    absent, raises, text = told
    assert "'absent' in dld_tui.numbers is skipped: ModuleNotFoundError" in absent
    assert "'raises' in dld_tui.numbers is skipped: ValueError: not today." in raises
    assert "other_package:TEXT is not of type int" in text
    assert all(line.startswith("other-package: ") for line in told)
    assert all(line.endswith("Update or uninstall other-package") for line in told)
    assert [was.line for was in skipped()] == told
    end()
    skip("numbers", one, "late")
    assert len(told) == 3
    late: list[str] = []
    listen(late.append)()
    assert late[:3] == told
    assert "late" in late[3]
    assert plugins("letters", int) == ()


def test_the_first_of_two_versions_on_the_path_counts(
    tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "first"
    info = first / "Other_Package-3.0.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(
        "[console_scripts]\nx = other_package:X\n\n# ours\n[dld_tui.numbers]\n"
        "  two=other_package:TWO  [extra]\n; three = other_package:THREE\n"
    )
    monkeypatch.syspath_prepend(first)
    assert [tuple(point) for point in entry_points("numbers")] == [
        ("two", "other_package:TWO", "other-package")
    ]


@pytest.mark.usefixtures("package")
def test_what_is_no_package_with_entry_points_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "first"
    for name in ("a.py", "b-1.dist-info", "c-1.dist-info", "C-2.egg-info", "d-1.dist-info"):
        (first / name).mkdir(parents=True)
    for name in ("c-1.dist-info", "C-2.egg-info", "d-1.dist-info"):
        text = f"[dld_tui.numbers]\n{name[:3]} = other:X\n"
        (first / name / "entry_points.txt").write_text(text)
    listed = os.listdir  # in no order of its own
    monkeypatch.setattr("os.listdir", lambda at: sorted(listed(at), key=str.lower))
    monkeypatch.setattr("sys.path", [str(tmp_path / "gone"), str(first), str(tmp_path)])
    found = [point.name for point in entry_points("numbers")]
    assert found == ["absent", "c-1", "d-1", "one", "raises", "text"]


@pytest.mark.usefixtures("package")
def test_ours_are_those_of_importlib_metadata() -> None:
    """The parser reads what the standard library reads, and writes it for a copy."""
    known = {(group, point.name, point.value) for group in GROUPS
             for point in metadata.entry_points(group=f"dld_tui.{group}")}  # fmt: skip
    assert known >= {(group, *point[:2]) for group in GROUPS for point in entry_points(group)}
    copied = ConfigParser()
    copied.read_string(our_entry_points())
    assert known == {
        (group.removeprefix("dld_tui."), name, value)
        for group in copied.sections()
        for name, value in copied[group].items()
    }


def test_a_copy_declares_what_is_ours_whoever_declares_it(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "other_package-2.1.dist-info" / "entry_points.txt").write_text(
        "[dld_tui.letters]\na = other_package:A\n\n"
        "[dld_tui.numbers]\none = other_package:ONE\nten = dld_tui.ten:TEN\n"
    )
    monkeypatch.setattr("sys.path", [str(package)])
    assert our_entry_points() == "[dld_tui.numbers]\nten = dld_tui.ten:TEN\n"


def test_a_reference_names_what_is_in_a_module() -> None:
    assert resolve("pathlib:Path.cwd") == Path.cwd
    assert resolve(len) is len
    for wrong in ("no_such_module:X", "pathlib:no_such_name"):
        with pytest.raises(UnavailableError, match="no_such"):
            resolve(wrong)
