"""The trtexec command that is equal to settings."""

from __future__ import annotations

import shlex
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from dld_tui.core.params import Setting, settings_of
from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings, MeasureSettings
from dld_tui.core.tensorrt.shape_texts import with_profile
from dld_tui.core.tensorrt.trtexec_options import SINCE, Version, has_option, version_of

LEFT_OUT = "has no:"
"""Ends the words before the options that trtexec lacks."""
_NEVER = ("--batch", "--workspace", "--plugins", "--streams", "--output", "--best")
"""Spellings that mean something else in trtexec, or are old."""
DEFAULT_ON_IN_11 = {
    "use_cuda_graph": ("--useCudaGraph", "--noCudaGraph"),
    "spin_wait": ("--useSpinWait", "--noSpinWait"),
    "no_data_transfers": ("--noDataTransfers", "--includeDataTransfers"),
}
"""Settings that trtexec has on by default since 11, and the flags that turn them on and off."""

_DONE = ("model", "output", "memory_pools", "workspace", *SHAPES, *DEFAULT_ON_IN_11, "layer_passes")


def print_command(settings: BuildSettings, version: str = "10.16") -> str:
    """Return the command line of trtexec that does the same.

    Options that the trtexec of this version lacks stand in a comment at its end.

    Args:
        settings: What to build, and to measure when it has the settings of a measurement.
        version: The version of TensorRT, such as ``10.13`` or ``11.1``.
    """
    release = version_of(version)
    parts: list[str] = []
    lacking: list[str] = []
    for option, value in _options(settings, release):
        text = option if value is None else f"{option}={value}"
        (parts if has_option(option, release) else lacking).append(_quoted(text))
    lacking += [_quoted(text) for text in _own(settings, release)]
    command = " ".join(["trtexec", *parts])
    if lacking:
        command += f" # trtexec {release[0]} {LEFT_OUT} {' '.join(lacking)}"
    return command


def _options(settings: BuildSettings, release: Version) -> Iterator[tuple[str, str | None]]:
    """Return the options of trtexec with their values, whatever the version."""
    yield "--onnx", str(settings.model)
    if isinstance(settings, MeasureSettings):
        if settings.output is not None:
            yield "--saveEngine", str(settings.output)
    else:
        yield "--saveEngine", str(settings.engine_path)
    yield from _profiles(settings, release)
    pools = [f"workspace:{_text(settings.workspace)}M"] if settings.workspace is not None else []
    if pools or settings.memory_pools:
        yield "--memPoolSize", ",".join([*pools, *settings.memory_pools])
    for setting in settings_of(type(settings)):
        if setting.name not in _DONE:
            yield from _option(setting, getattr(settings, setting.name))
    if isinstance(settings, MeasureSettings):
        yield from _measuring(settings, release)
    else:
        yield "--skipInference", None


def _profiles(settings: BuildSettings, release: Version) -> Iterator[tuple[str, str | None]]:
    profiles = settings.shape_profiles
    several = len(profiles) > 1 and has_option("--profile", release)
    for number, profile in enumerate(profiles if several else profiles[:1]):
        if several:
            yield "--profile", str(number)
        for name in SHAPES:
            if name in profile:
                yield f"--{name.split('_')[0]}Shapes", ",".join(profile[name])
    for number, profile in enumerate(() if several else profiles[1:], start=1):
        for name in SHAPES:
            if name in profile:
                text = with_profile(number, ",".join(profile[name]))
                yield f"--{name.replace('_', '-')}", text


def _measuring(settings: MeasureSettings, release: Version) -> Iterator[tuple[str, str | None]]:
    for name, (positive, negative) in DEFAULT_ON_IN_11.items():
        is_on = getattr(settings, name)
        if release >= (11, 0) and not is_on:
            yield negative, None
        elif release < (11, 0) and is_on:
            yield positive, None
    if settings.layer_passes != 0:
        yield "--dumpProfile", None
        if release < (11, 0):
            yield "--separateProfileRun", None


def _option(setting: Setting, value: Any) -> Iterator[tuple[str, str | None]]:
    """Return the option of one setting in trtexec; nothing when it has none."""
    always = setting.name == "verbosity"
    if value is None or (value == setting.default and not always):
        return
    for flag, meaning in setting.param.flags:
        if value == meaning and type(value) is type(meaning) and _is_known(flag):
            yield flag, None
            return
    option = trtexec_spelling(setting)
    if option is None or not _expressible(setting, value):
        return
    if setting.type is bool:
        if value:
            yield option, None
    elif typing.get_origin(setting.type) is tuple and setting.name.endswith("plugins"):
        yield from ((option, item) for item in value)
    elif typing.get_origin(setting.type) is tuple:
        yield option, ",".join(value)
    else:
        words = {ours: theirs for theirs, ours in setting.param.words}
        yield option, words.get(value, _text(value))


def _expressible(setting: Setting, value: Any) -> bool:
    if setting.name == "tactic_sources":
        return all(source[:1] in "+-" for source in value)
    return not (setting.type is bool and not value)


def trtexec_spelling(setting: Setting) -> str | None:
    """Return the option of trtexec for a setting, or None."""
    known = [option for option in setting.param.spellings if _is_known(option)]
    return known[-1] if known else None


def _is_known(option: str) -> bool:
    return option not in _NEVER and option in SINCE


def _own(settings: BuildSettings, release: Version) -> Iterator[str]:
    """Return the options that no trtexec has, in our spelling."""
    for setting in settings_of(type(settings)):
        value = getattr(settings, setting.name)
        if setting.name in _DONE and setting.name != "layer_passes":
            continue
        if value is None or value == setting.default or any(True for _ in _option(setting, value)):
            continue
        yield from _our_option(setting, value)


def _our_option(setting: Setting, value: Any) -> Iterator[str]:
    flag = setting.param.spellings[0]
    if setting.type is bool:
        yield flag if value else f"--no-{flag.removeprefix('--')}"
        return
    items: Iterable[Any] = value if isinstance(value, tuple) else (value,)
    yield from (f"{flag}={_text(item)}" for item in items)


def _quoted(text: str) -> str:
    """Return a word for a shell; names in single quotes stay readable."""
    if "'" in text and not any(char in text for char in '"$`!\\'):
        return f'"{text}"'
    return shlex.quote(text)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else repr(value)
    return str(value)
