from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from dld_tui.core.errors import InputError, SaveError
from dld_tui.core.params import param, settings_of
from dld_tui.core.settings import config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dld-tui" / "config.toml"


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_values_are_read_and_the_defaults_hold_without_a_file(file: Path) -> None:
    found = config.load(file, {})
    assert found == config.Config()
    assert found.problems == ()
    text = 'theme = "light"\nmouse = false\n[keys]\n"edit.undo" = ["u", "ctrl+z"]\nx = "y"\n'
    found = config.load(written(file, text), {})
    assert (found.theme, found.mouse) == ("light", False)
    assert dict(found.keys) == {"edit.undo": "u,ctrl+z", "x": "y"}
    assert found.problems == ()


def test_bytes_that_are_not_text_are_told(file: Path) -> None:
    written(file, "")
    file.write_bytes(b"\xff\xfe")
    assert "cannot be read" in config.load(file, {}).problems[0]


def test_the_environment_wins(file: Path) -> None:
    written(file, 'theme = "light"\n')
    environ = {"DLD_THEME": "high-contrast", "DLD_MOUSE": "no", "DLD_RECENT": "5", "DLD_X": "1"}
    found = config.load(file, environ)
    assert (found.theme, found.mouse, found.recent) == ("high-contrast", False, 5)
    wrong = config.load(file, {"DLD_RECENT": "many", "DLD_MOUSE": "maybe"})
    assert (wrong.recent, wrong.mouse) == (20, True)
    assert len(wrong.problems) == 2


def test_saving_keeps_comments_and_other_settings(file: Path) -> None:
    config.save({"glyphs": "ascii"}, file)
    assert config.load(file, {}).glyphs == "ascii"
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]
    written(file, '# mine\ntheme = "light"  # bright\nrecent = 7\n[keys]\n"app.help" = "f1"\n')
    config.save({"theme": "dark", "mouse": False}, file)
    text = file.read_text(encoding="utf-8")
    assert "# mine" in text
    assert "# bright" in text
    found = config.load(file, {})
    assert (found.theme, found.mouse, found.recent) == ("dark", False, 7)
    assert dict(found.keys) == {"app.help": "f1"}


def test_what_cannot_be_saved_is_told(file: Path, tmp_path: Path) -> None:
    written(file, "theme = ")
    with pytest.raises(InputError, match="not valid TOML"):
        config.save({"theme": "dark"}, file)
    assert file.read_text(encoding="utf-8") == "theme = "
    (tmp_path / "file").write_text("")
    with pytest.raises(SaveError, match="not saved"):
        config.save({"theme": "dark"}, tmp_path / "file" / "config.toml")


@pytest.mark.parametrize(
    ("environ", "glyphs"),
    [
        ({}, "unicode"),
        ({"TERM": "xterm-256color"}, "unicode"),
        ({"TERM": "linux", "LANG": "de_DE.utf8"}, "unicode"),
        ({"TERM": "screen", "LC_ALL": "", "LANG": "C.UTF-8"}, "unicode"),
        ({"TERM": "vt100", "LANG": "C.UTF-8"}, "ascii"),
        ({"TERM": "xterm", "LC_ALL": "C", "LANG": "C.UTF-8"}, "ascii"),
        ({"TERM": "xterm", "LC_CTYPE": "en_US.ISO-8859-1"}, "ascii"),
        ({"TERM": "xterm", "LANG": "POSIX", "LC_CTYPE": "C.UTF-8"}, "ascii"),
        ({"TERM": "xterm", "LC_CTYPE": "C.UTF-8"}, "unicode"),
        ({"TERM": "vt100", "LANG": "C", "DLD_GLYPHS": "unicode"}, "unicode"),
    ],
)
def test_glyphs_are_ascii_where_the_terminal_says_that_it_draws_no_others(
    file: Path, environ: dict[str, str], glyphs: str
) -> None:
    assert config.load(file, environ).glyphs == glyphs
    written(file, 'glyphs = "unicode"\n')
    assert config.load(file, environ).glyphs == "unicode"


def test_numbers_of_the_environment(tmp_path: Path) -> None:
    def limit(text: str) -> tuple[float, tuple[str, ...]]:
        settings = config.load(tmp_path / "none.toml", {"DLD_INFERENCE_LIMIT": text})
        return settings.inference_limit, settings.problems

    assert limit("2.5") == (2.5, ())
    assert limit("10") == (10.0, ())
    for wrong in ("much", "inf", "nan", "0.01"):
        value, problems = limit(wrong)
        assert value == 1.0
        assert len(problems) == 1


def test_settings_that_are_added_need_a_name_of_their_own_and_a_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @dataclass(frozen=True)
    class Added:
        needed: str = param(label="Needed", help="It has no default.")
        theme: str = param("a", label="Theme", help="A setting of dld.")
        unit: int = param(1, label="Unit", help="Good.")

    found = [SimpleNamespace(value=setting) for setting in settings_of(Added)]
    told: list[str] = []
    monkeypatch.setattr(config, "plugins", lambda *_: found)
    monkeypatch.setattr(config, "skip", lambda _, one, why: told.append(one.value.name))
    assert [*config.added_settings()] == ["unit"]
    assert told == ["needed", "theme"]
