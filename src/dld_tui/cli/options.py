"""Command line options from the fields of an activity's request."""

from __future__ import annotations

import copy
import dataclasses
import math
import typing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dld_tui.core.llm.folder import model_in
from dld_tui.core.params import Setting, settings_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_FLAG = "flag_"
"""Prefix of the names of flags that set a value."""


def parameters_of(request: type[Any]) -> list[click.Parameter]:
    """Return the click parameters of a request class: its arguments first, then its options.

    Every spelling of a setting is accepted, ours is the one that errors name. A tuple is an option
    that may be given again. A value that is not given is left to the request's own default. Flags
    that set a value come last and are not listed by ``--help`` on their own, nor is the side of a
    switch that changes nothing.
    """
    settings = [setting for setting in settings_of(request) if not setting.param.internal]
    arguments = [_argument(setting) for setting in settings if setting.param.positional]
    options = [_option(setting) for setting in settings if not setting.param.positional]
    flags = dict.fromkeys(flag for setting in settings for flag, _ in setting.param.flags)
    return [*arguments, *options, *map(_flag, flags)]


def request_from(request: type[Any], values: dict[str, Any]) -> Any:
    """Build a request from the values that click parsed; takes its own out of `values`."""
    fields: dict[str, Any] = {}
    asked: dict[str, Any] = {}
    for setting in settings_of(request):
        value = values.pop(setting.name, None)
        if value is not None and value != ():
            is_model = setting.name == "model" and setting.param.kind == "file"
            fields[setting.name] = model_in(value) if is_model else value
        for flag, meaning in setting.param.flags:
            if values.get(_flag_name(flag)):
                asked[setting.name] = meaning  # of several the one that is declared last
    for name in [name for name in values if name.startswith(_FLAG)]:
        del values[name]
    return request(**asked | fields)


def _argument(setting: Setting) -> click.Parameter:
    return _Argument(
        [setting.name],
        setting=setting,
        type=click_type(setting),
        nargs=-1 if typing.get_origin(setting.type) is tuple else 1,
        required=setting.required,
        metavar=setting.param.metavar or setting.name.upper(),
    )


def _option(setting: Setting) -> click.Parameter:
    about = setting.param
    spellings = list(about.spellings) or [setting.flag]
    if setting.type is bool and not spellings[0].startswith("--no-"):
        spellings[0] = f"{spellings[0]}/--no-{spellings[0].removeprefix('--')}"
    # Even None would be a value to click, and a required option be there.
    about_click: dict[str, Any] = {} if setting.required else {"default": None}
    if setting.type is bool:
        about_click["is_flag"] = True
    elif about.bare is not None:
        about_click |= {"is_flag": False, "flag_value": about.bare}
    return _Option(
        [setting.name, *spellings],
        setting=setting,
        type=click_type(setting),
        required=setting.required,
        **about_click,
        multiple=typing.get_origin(setting.type) is tuple,
        metavar=about.metavar or None,
        help=_help(setting),
    )


def _flag(flag: str) -> click.Parameter:
    return click.Option([_flag_name(flag), flag], is_flag=True, default=None, hidden=True)


def _flag_name(flag: str) -> str:
    return _FLAG + flag.strip("-").replace("-", "_")


class _Argument(click.Argument):
    """An argument that knows its setting."""

    def __init__(self, names: list[str], *, setting: Setting, **about: Any) -> None:
        super().__init__(names, **about)
        self.setting = setting


class _Option(click.Option):
    """An option whose help shows only the main spelling; its text lists the others."""

    def __init__(self, names: list[str], *, setting: Setting, **about: Any) -> None:
        super().__init__(names, **about)
        self.setting = setting

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the two columns of the help."""
        shown = copy.copy(self)
        shown.opts = [opt for opt in self.opts if opt not in _others(self.opts)]
        if self.setting.default is False:
            shown.secondary_opts = []
        return super(_Option, shown).get_help_record(ctx)


def _others(spellings: Sequence[str]) -> list[str]:
    """Return the long spellings after the first."""
    return [spelling for spelling in spellings if spelling.startswith("--")][1:]


class _Choice(click.Choice[str]):
    """A choice whose values have alternative spellings."""

    def __init__(self, choices: tuple[str, ...], words: tuple[tuple[str, str], ...]) -> None:
        super().__init__(choices, case_sensitive=False)
        self.words = {word.lower(): choice for word, choice in words}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice for a word."""
        return super().convert(self.words.get(str(value).lower(), value), param, ctx)


class _Path(click.Path):
    """A path; an empty one would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


class _Output(_Path):
    """The path of a file that a command writes."""


OUTPUT = _Output(path_type=Path)


def setting_of(parameter: click.Parameter) -> Setting | None:
    """Return the setting that a parameter was made from; None for one that stands alone."""
    return parameter.setting if isinstance(parameter, (_Argument, _Option)) else None


class Measure(click.FloatRange):
    """A number with an optional unit, such as 90s or 3%.

    Args:
        unit: The unit.
        least: The smallest that is taken.
        open: Whether `least` itself is not.
    """

    name = "number"

    def __init__(self, unit: str, least: float | None = None, *, open: bool = False) -> None:
        super().__init__(min=least, min_open=open)
        self._unit = unit

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        if isinstance(value, str) and self._unit:
            value = value.strip().removesuffix(self._unit)
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):  # nothing is above or below what is no number
            self.fail(f"{number} is not a valid number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        return super()._describe_range() if self.min is not None else ""


def click_type(setting: Setting) -> click.ParamType[Any]:
    """Return the type of a setting's values; for a tuple, of its items."""
    kind = setting.type
    if typing.get_origin(kind) is tuple:
        kind = typing.get_args(kind)[0]
    if setting.param.kind in _SAVED:
        return _SAVED[setting.param.kind]
    if setting.param.choices:
        return _Choice(setting.param.choices, setting.param.words)
    if kind is Path:
        return OUTPUT if setting.param.kind == "output" else _Path(path_type=Path)
    types: dict[Any, click.ParamType[Any]] = {
        int: click.INT,
        float: Measure(setting.param.unit),
        bool: click.BOOL,
    }
    return types.get(kind, click.STRING)


def _help(setting: Setting) -> str:
    notes = [setting.param.unit] if setting.param.unit else []
    default = setting.default
    if setting.type is bool:
        default = "on" if default else ""
    if default is not dataclasses.MISSING and default not in (None, (), ""):
        notes.append(f"default: {default}")
    others = [*_others(setting.param.spellings), *(flag for flag, _ in setting.param.flags)]
    if others:
        notes.append(f"also {', '.join(others)}")
    return setting.param.help + (f"  [{'; '.join(notes)}]" if notes else "")


class SavedName(click.types.StringParamType):
    """A name that a shell completes; whether it is known, the command says.

    Args:
        known: Returns the names that there are. What it raises means that there are none.
    """

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        self._known = known

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin like this; never fails, as nobody would see why."""
        from click.shell_completion import CompletionItem

        try:
            names = sorted(set(self._known()))
        except Exception:  # noqa: BLE001 - a seam: a traceback amid a command line helps nobody
            return []
        # One with a control character, which only a hand-written file has, would reach the shell.
        return [CompletionItem(n) for n in names if n.startswith(incomplete) and n.isprintable()]


def _places() -> Iterable[str]:
    from dld_tui.targets import registry

    return registry.names()


def _targets() -> Iterable[str]:
    from dld_tui.core.settings import saved_targets

    return saved_targets.load()


def _tools() -> Iterable[str]:
    from dld_tui.core.settings import custom_tools

    return custom_tools.load()


def _jobs() -> Iterable[str]:
    from dld_tui.targets.ssh.results import JobsStore

    return [job.id for job in JobsStore().all()]


PLACE = SavedName(_places)
"""Name of a saved target, or of this machine."""
TARGET = SavedName(_targets)
TOOL = SavedName(_tools)
JOB = SavedName(_jobs)
_SAVED: dict[str, SavedName] = {"place": PLACE, "target": TARGET, "tool": TOOL, "job": JOB}
"""Names that are completed, by the kind of a setting."""
