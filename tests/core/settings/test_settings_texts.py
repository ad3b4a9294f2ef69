"""What is read from settings, told of wrong ones and written, as a whole: settings_texts.txt."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.settings import config, saved_targets
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.saved_targets import (
    Connection,
    ConnectionForm,
    changed,
    connection_of,
    form_values,
    problems,
    settings_shown,
    split_hop,
    target_table,
)
from tests.support.recorded import Recorded, table_text

FILES = (
    "",
    'theme = "light"\nmouse = false\nrecent = 0\n[keys]\n"edit.undo" = ["u", "ctrl+z"]\nx = "y"\n',
    "theme = 'pink'\nglyphs = 'ascii'", "mouse = 1\nfooter = false", "recent = -1", "recent = 201",
    "recent = 200\ninference_limit = 2", "recent = 1.5", "inference_limit = inf",
    "inference_limit = true", "colour = 'x'\ntarget = 'box'", "keys = 3",
    "[keys]\na = 3\nb = ['x', 1]\nc = ['f1']\nd = []", "tools = 3", "[tools.a]\nprogram = 3",
)  # fmt: skip
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {"DLD_THEME": "high-contrast", "DLD_MOUSE": "no", "DLD_RECENT": "5", "DLD_X": "1"},
    {"DLD_RECENT": "many", "DLD_MOUSE": "maybe", "DLD_THEME": "", "DLD_TARGET": "far"},
    {"DLD_RECENT": "1.5", "DLD_MOUSE": "TRUE", "DLD_INFERENCE_LIMIT": "2"},
    {"DLD_INFERENCE_LIMIT": "nan", "DLD_MOUSE": "0", "DLD_FOOTER": "1", "DLD_CONSTANTS": "Yes"},
    {"NO_COLOR": "1", "DLD_MOUSE": "False"}, {"NO_COLOR": "1", "DLD_THEME": "light"},
    {"NO_COLOR": ""},
)  # fmt: skip
FULL = Connection(
    "orin", "orin.lan", 2222, "me", "key", Path("/k y"), Path("~/known"), "gate", "", False,
    "/data/dld", "python3.12", {"A": "b 'c'"}, ("srun", "--gres=gpu:1", "a b"), "keyring",
)  # fmt: skip
PLAIN = Connection("box", "10.0.0.7")
WRONG: tuple[tuple[str, object], ...] = (
    *(("name", name) for name in ("", "local", "a b", "x" * 64)), ("host", "a b"),
    ("user", "a;b"), ("port", 0), ("port", 1), ("port", 65535), ("port", 65536), ("auth", "magic"),
    ("remember", "disk"), ("directory", ""), ("python", "a\x9b"), ("launcher", ("srun", "")),
    ("proxy_command", "nc\n"), ("jump", "a,b:x"), ("environment", {"A B": "", "C": "\0"}),
)  # fmt: skip
HOPS = (
    "me@corp@gate:22", "[fe80::1]:2200", "ssh://gate:65535/", "gate:65536", "gate:", "@gate",
    "a:b:c",
)  # fmt: skip


def differs(found: Config) -> str:
    plain = Config()
    return ", ".join(
        f"{one.name}={value!r}"
        for one in fields(Config)
        if (value := getattr(found, one.name)) != getattr(plain, one.name)
    )


def hop(text: str) -> str:
    try:
        return repr(split_hop(text))
    except UsageError as error:
        return str(error)


def refused(**values: object) -> str:
    try:
        return repr(connection_of(ConnectionForm(**{"name": "a", "host": "b", **values})))  # type: ignore[arg-type]
    except UsageError as error:
        return str(error)


def test_all_that_is_said(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    said = {}
    for number, text in enumerate(FILES):
        file.write_text(text)
        said[f"file {number}"] = f"{text}\n-> {differs(config.load(file, {}))}"
    file.write_text('theme = "light"\n')
    for environment in ENVIRONMENTS:
        said[f"{environment}"] = differs(config.load(file, environment))
    config.save({"theme": "dark", "mouse": False, "recent": 3}, file)
    said["saved"] = file.read_text()
    store = tmp_path / "targets.toml"
    for connection in (FULL, PLAIN, changed(FULL, name="third", jump="", proxy_command="nc %h")):
        saved_targets.save(connection, store)
    saved_targets.save(changed(PLAIN, port=22, launcher=("a",)), store)
    saved_targets.remove("third", store)
    assert [*saved_targets.load(store)] == ["orin", "box"]
    said["targets"] = store.read_text()
    said["shown"] = "\n".join(
        f"{settings_shown(one)}\n{form_values(one)}\n{one.address}" for one in (FULL, PLAIN)
    )
    table = target_table([FULL, PLAIN, changed(PLAIN, proxy_command="nc %h %p")])
    assert table.row_key is not None
    said["table"] = f"{table_text(table)}\n{table.row_key(FULL)}"
    said["problems"] = "\n".join(
        f"{name} {value!r}: {problems(changed(PLAIN, **{name: value}))}" for name, value in WRONG
    )
    both = changed(PLAIN, jump="a", proxy_command="b", port=0, auth="x")
    said["several problems"] = repr(problems(both))
    said["hops"] = "\n".join(f"{text}: {hop(text)}" for text in HOPS)
    said["forms"] = "\n".join([
        refused(environment=("A",)), refused(environment=("A=1", "A=2")), refused(launcher="a 'b"),
        refused(environment=("A=b=c", "B="), launcher="a 'b c'", key=Path("/k")),
    ])  # fmt: skip
    here = str(tmp_path)
    recorded("settings_texts", {
        name.replace(here, "FOLDER"): text.replace(here, "FOLDER").replace("\x9b", "ESC")
        for name, text in said.items()
    })  # fmt: skip
    assert os.stat(store).st_mode & 0o777 == 0o600
