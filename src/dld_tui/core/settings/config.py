"""The user's settings: ``config.toml``, each overridable by an environment variable.

The fields are declared like an activity's settings (:mod:`dld_tui.core.params`), so the settings
screen is generated from them. ``DLD_THEME=light`` overrides ``theme``, and so on for every field.
"""

from __future__ import annotations

import dataclasses
import math
import os
import typing
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.params import (
    Setting,
    param,
    plain_default,
    problem_with,
    settings_of,
    to_json,
)
from dld_tui.core.process.paths import config_path
from dld_tui.core.process.plugins import entry_points, plugins, skip
from dld_tui.core.settings.toml_files import parse_document, read_document, write_document
from dld_tui.core.types import JSON

if typing.TYPE_CHECKING:
    from dld_tui.core.settings.custom_tools import Tool
else:
    Tool = Any  # is imported where there are tools

THEMES = ("dark", "light", "high-contrast", "colour-blind", "no-colour")


@dataclass(frozen=True)
class Config:
    """What the user can set; defaults are the field defaults."""

    theme: str = param(
        "dark",
        label="Theme",
        help="Colours. NO_COLOR in the environment selects no-colour.",
        choices=THEMES,
        page="Look",
    )
    glyphs: str = param(
        "unicode",
        label="Glyphs",
        help="Use ascii if line and block characters look wrong: vt100, LANG=C.",
        choices=("unicode", "ascii"),
        page="Look",
    )
    animations: str = param(
        "off",
        label="Animations",
        help="Always off over SSH.",
        choices=("off", "on"),
        page="Look",
    )
    mouse: bool = param(
        True,
        label="Mouse",
        help="Off lets the terminal select text. Takes effect at the next start.",
        page="Look",
    )
    scroll: str = param(
        "jump",
        label="Scrolling",
        help="Scroll by a third of the view or by a line when the cursor leaves the view.",
        choices=("jump", "line"),
        page="Look",
    )
    footer: bool = param(True, label="Footer", help="Show the key bar.", page="Look")
    constants: bool = param(
        False,
        label="Constants",
        help="Show Constant nodes and what is computed from them when a model opens.",
        page="Look",
    )
    recent: int = param(
        20,
        label="Recent files",
        help="Number of recent files on the start page.",
        minimum=0,
        maximum=200,
        page="Files",
    )
    preview_bytes: int = param(
        16_000_000,
        label="Preview size",
        help="Read tensors up to this size for statistics without asking.",
        unit="bytes",
        minimum=0,
        page="Files",
    )
    target: str = param("local", label="Target", help="Default target of activities.", page="Jobs")
    inference_limit: float = param(
        1.0,
        label="Limits of inference",
        help="Multiply the time and memory for trying out a model. By default, onnx gets 3 s of"
        " processor time and 2 s per MB for its types, 1 GB and 0.1 GB per MB, half of what is free"
        " at most. Loading it on a CPU, and one run, get 6 s, 60 s per MB and 0.2 s per MB of"
        " weights; 2 GB, 0.1 GB per MB, 64 times its inputs and 4 times its weights.",
        minimum=0.1,
        page="Jobs",
    )
    keys: Mapping[str, str] = field(default_factory=dict)
    """Command id to keys, e.g. ``{"edit.undo": "u,ctrl+z"}``: the ``[keys]`` table."""
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The user's tools by name: the tables ``[tools.NAME]``."""
    added: Mapping[str, JSON] = field(default_factory=dict)
    """Values of the settings that other packages add; see :func:`added_value`."""
    problems: tuple[str, ...] = ()
    """Problems in the file or the environment, one line each; defaults are used instead."""


def added_settings() -> dict[str, Setting]:
    """Return the settings that other packages add by name, entry points of ``dld_tui.settings``."""
    own = {field.name for field in dataclasses.fields(Config)}
    added = {}
    for plugin in plugins("settings", Setting):
        setting = plugin.value
        if setting.name in own or setting.required:
            skip("settings", plugin, "it has the name of a setting of dld, or no default")
        else:
            added[setting.name] = setting
    return added


def added_value(config: Config, name: str) -> JSON:
    """Return the value of a setting that another package adds.

    Raises:
        KeyError: No installed package adds it.
    """
    setting = added_settings()[name]
    return config.added.get(name, plain_default(setting))


def values_of(config: Config) -> Mapping[str, JSON]:
    """Return the values of all settings by name, those that other packages add included."""
    return {**to_json(config), **{name: added_value(config, name) for name in added_settings()}}


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Return the settings with the values of a form, those that other packages add included."""
    own = {setting.name for setting in settings_of(Config)}
    added = {name: value for name, value in values.items() if name in added_settings()}
    return dataclasses.replace(
        config,
        added={**config.added, **added},
        **{name: value for name, value in values.items() if name in own},
    )


def load(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Read the settings. A wrong value never stops the program: it is in ``problems``."""
    source = config_path() if path is None else path
    problems: list[str] = []
    values: dict[str, Any] = {}
    data = _read(source, problems)
    added: dict[str, Any] = {}
    known = {setting.name: setting for setting in settings_of(Config)}
    for name, value in data.items():
        where = f"{source.name}: {name}"
        if name == "keys":
            values["keys"] = _keys(value, problems)
        elif name == "tools":
            from dld_tui.core.settings.custom_tools import tools_of

            values["tools"] = tools_of(value, problems)
        elif name in known:
            _put(values, known[name], value, where, problems)
        elif (setting := added_settings().get(name)) is not None:
            _put(added, setting, value, where, problems)
        else:
            problems.append(f"{source.name}: unknown setting {name!r}")
    variables = os.environ if environ is None else environ
    for variable, text in variables.items():
        if not variable.startswith("DLD_"):
            continue
        name = variable[4:].lower()
        if name in known:
            _put(values, known[name], _from_text(known[name], text), variable, problems)
        elif (setting := added_settings().get(name)) is not None:
            _put(added, setting, _from_text(setting, text), variable, problems)
    if "glyphs" not in values and not _draws_unicode(variables):
        values["glyphs"] = "ascii"
    values["added"] = added
    if entry_points("tools"):
        from dld_tui.core.settings.custom_tools import added_tools

        values["tools"] = added_tools() | values.get("tools", {})
    return Config(**values, problems=tuple(problems))


_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python sets LC_CTYPE to where the locale is C."""


def _draws_unicode(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal may draw more than ASCII: it does not say otherwise.

    Over SSH, and in containers, the locale is often unset.
    """
    names = ["LC_ALL", "LC_CTYPE", "LANG"]
    if environ.get("LANG") in ("C", "POSIX") and environ.get("LC_CTYPE") in _COERCED:
        names.remove("LC_CTYPE")  # most likely Python has set it
    locale = next(filter(None, map(environ.get, names)), "UTF-8")
    is_utf8 = "utf8" in locale.replace("-", "").lower()
    return is_utf8 and not environ.get("TERM", "").startswith("vt")


def save(changes: Mapping[str, Any], path: Path | None = None) -> None:
    """Write some settings into the file; comments and other settings stay.

    Raises:
        InputError: The existing file is not valid TOML.
        SaveError: The file cannot be written; the old one is intact.
    """
    target = config_path() if path is None else path
    document = read_document(target)
    for name, value in changes.items():
        document[name] = dict(value) if isinstance(value, Mapping) else value
    write_document(target, document)


def changed(config: Config, **values: Any) -> Config:
    """Return the settings with some values replaced."""
    return dataclasses.replace(config, **values)


def _read(path: Path, problems: list[str]) -> Mapping[str, Any]:
    try:
        document = parse_document(path)
    except InputError as error:
        problems.append(f"{path.name}: {error.message}")
        return {}
    return document.unwrap() if document is not None else {}


def _keys(value: Any, problems: list[str]) -> dict[str, str]:
    if not isinstance(value, Mapping):
        problems.append("keys: expected a table of command = keys")
        return {}
    bindings = {}
    for command, keys in value.items():
        if isinstance(keys, list) and all(isinstance(key, str) for key in keys):
            bindings[str(command)] = ",".join(keys)
        elif isinstance(keys, str):
            bindings[str(command)] = keys
        else:
            problems.append(f"keys.{command}: expected a string such as 'ctrl+s'")
    return bindings


def _from_text(setting: Setting, text: str) -> Any:
    if setting.type is bool:
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}.get(
            text.lower(), text
        )
    if setting.type in (int, float):
        try:
            number = setting.type(text)
        except ValueError:
            return text
        return number if math.isfinite(number) else text
    return text


def _put(
    values: dict[str, Any], setting: Setting, value: Any, where: str, problems: list[str]
) -> None:
    if setting.type is float and type(value) is int:
        value = float(value)
    if type(value) is not setting.type:
        problems.append(f"{where}: expected {setting.type.__name__}, got {value!r}")
    elif problem := problem_with(setting, value):
        problems.append(f"{where} is {problem}")
    else:
        values[setting.name] = value
