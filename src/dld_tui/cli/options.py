"""Command line options from the one declaration of an activity's settings."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any

import click

from dld_tui.core.params import Setting, settings_of


def parameters_of(request: type[Any]) -> list[click.Parameter]:
    """Return the click parameters of a request class: its arguments first, then its options.

    Every spelling of a setting is accepted, ours is the one that errors name. A tuple is an option
    that may be given again. A value that is not given is left to the request's own default.
    """
    settings = settings_of(request)
    arguments = [_argument(setting) for setting in settings if setting.param.positional]
    return arguments + [_option(setting) for setting in settings if not setting.param.positional]


def request_from(request: type[Any], values: dict[str, Any]) -> Any:
    """Build a request from the values that click parsed; takes its own out of `values`."""
    given = {}
    for setting in settings_of(request):
        value = values.pop(setting.name)
        if value is not None and value != ():
            given[setting.name] = value
    return request(**given)


def _argument(setting: Setting) -> click.Parameter:
    return click.Argument(
        [setting.name],
        type=_click_type(setting),
        required=setting.required,
        metavar=setting.param.metavar or setting.name.upper(),
    )


def _option(setting: Setting) -> click.Parameter:
    about = setting.param
    spellings = list(about.spellings) or [f"--{setting.name.replace('_', '-')}"]
    if setting.type is bool:
        spellings[0] = f"{spellings[0]}/--no-{spellings[0].removeprefix('--')}"
    return click.Option(
        [setting.name, *spellings],
        type=_click_type(setting),
        required=setting.required,
        default=None,
        multiple=typing.get_origin(setting.type) is tuple,
        metavar=about.metavar or None,
        help=_help(setting),
    )


def _click_type(setting: Setting) -> click.ParamType[Any]:
    kind = setting.type
    if typing.get_origin(kind) is tuple:
        kind = typing.get_args(kind)[0]
    if setting.param.choices:
        return click.Choice(setting.param.choices, case_sensitive=False)
    if kind is Path:
        return click.Path(path_type=Path)
    types: dict[Any, click.ParamType[Any]] = {
        int: click.INT,
        float: click.FLOAT,
        bool: click.BOOL,
    }
    return types.get(kind, click.STRING)


def _help(setting: Setting) -> str:
    notes = [setting.param.unit] if setting.param.unit else []
    default = setting.default
    if setting.type is bool:
        default = "on" if default else "off"
    if default is not dataclasses.MISSING and default not in (None, (), ""):
        notes.append(f"default: {default}")
    return setting.param.help + (f"  [{'; '.join(notes)}]" if notes else "")
