"""Settings from a pasted command: trtexec of 8 to 11, or Polygraphy's ``convert`` and ``run``."""

from __future__ import annotations

import re
import shlex
import typing
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple

from dld_tui.core.errors import UsageError
from dld_tui.core.params import Setting, problem_with, settings_of
from dld_tui.core.tensorrt.arguments import plain_arguments
from dld_tui.core.tensorrt.settings_run import RunSettings
from dld_tui.core.tensorrt.trtexec_options import SINCE, version_of
from dld_tui.core.tensorrt.trtexec_print import DEFAULT_ON_IN_11, LEFT_OUT
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_MOST = 200_000
"""Characters of a command."""
_TOOLS = ("trtexec", "tensorrt_rtx", "polygraphy")
_OURS = "ours"
_RUNNING = re.compile(r"&&&& \w+ TensorRT\.trtexec \[TensorRT v(\d+)\](?: \[b\d+\])? # ")
_END = re.compile(r"\||&&|\|\||;|&|\d?>.*|<")
"""Words with which the shell goes on to something else."""
_MEANT = frozenset(
    (
        "--dumpProfile", "--separateProfileRun", "--skipInference", "--buildOnly",
        "--explicitBatch", "--trt", "--onnx",
    )
)  # fmt: skip
"""Options that say what is done here anyway."""
_REPORTS = frozenset(
    (
        "--avgRuns", "--dumpLayerInfo", "--dumpOptimizationProfile", "--dumpRefit",
        "--exportProfile", "--exportTimes",
    )
)  # fmt: skip
"""Options about printing or writing what a report holds."""
_POLYGRAPHY_VALUES = frozenset(
    ("--convert-to", "--model-type", "--data-loader-script", "--save-inputs", "--save-outputs")
)


class Parsed(NamedTuple):
    """What a command says."""

    values: dict[str, JSON]
    """Settings by name, as in :class:`RunSettings`; those that the command leaves alone are not
    there."""
    notes: tuple[str, ...]
    """What was left out, one sentence each. Foreign text."""


class Words(NamedTuple):
    """A command, taken apart."""

    tool: str
    version: str
    """From the head of a log; else empty."""
    words: list[str]
    left_out: list[str]
    """What our own command says beyond the tool's options."""
    notes: list[str]


def parse_command(text: str, version: str = "") -> Parsed:
    """Return the settings of a command of trtexec or Polygraphy.

    Args:
        text: The command as it was typed, or the line of a log that repeats it.
        version: The version of TensorRT whose defaults hold; by default what the command shows.

    Raises:
        UsageError: It is no such command, or a value cannot be read.
    """
    found = command_words(text)
    reader = _Reader(found.tool)
    for word in found.notes:
        reader.notes.append(word)
    if _is_of_11(found, version):
        reader.values |= dict.fromkeys(DEFAULT_ON_IN_11, True)
    reader.read(plain_arguments(found.words))
    reader.tool = _OURS
    reader.read(plain_arguments(found.left_out))
    return reader.finished("--skipInference" in found.words or "--buildOnly" in found.words)


def for_build(parsed: Parsed) -> Parsed:
    """Return what a command says of a build: shapes to measure with become the usual ones."""
    from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings

    known = {setting.name for setting in settings_of(BuildSettings)}
    values = {name: value for name, value in parsed.values.items() if name in known}
    if "shape" in parsed.values and not any(name in values for name in SHAPES):
        values["opt_shapes"] = parsed.values["shape"]
    dropped = [name for name in parsed.values if name not in known and name != "shape"]
    flags = [setting_flag(name) for name in dropped if name not in DEFAULT_ON_IN_11]
    notes = parsed.notes
    if flags:
        notes = (*notes, f"{', '.join(flags)}: for dld profile tensorrt, not for a build")
    return Parsed(values, notes)


def setting_flag(name: str) -> str:
    """Return our flag of a setting."""
    return next(s.param.spellings[0] for s in settings_of(RunSettings) if s.name == name)


def command_words(text: str) -> Words:
    """Take a command apart.

    Raises:
        UsageError: It is no command of trtexec or Polygraphy.
    """
    if len(text) > _MOST:
        raise UsageError(f"the command is longer than {_MOST:,} characters")
    head = _RUNNING.search(text)
    version = _header_version(head[1]) if head else ""
    text = text[head.end() :] if head else text
    try:
        tokens = shlex.split(text.replace("\\\n", " ").replace("\\\r\n", " "))
    except ValueError as error:
        raise UsageError(f"the command cannot be read: {error}") from None
    if "#" in tokens:
        comment = tokens[tokens.index("#") + 1 :]
        tokens = tokens[: tokens.index("#")]
        marks = LEFT_OUT.split()
        is_ours = comment[2:4] == marks
        left_out = comment[4:] if is_ours else []
    else:
        left_out = []
    tool, words = _tool(tokens)
    notes = []
    for at, word in enumerate(words):
        if _END.fullmatch(word):
            notes.append(f"what follows {word!r} is left out")
            words = words[:at]
            break
    return Words(tool, version, words, left_out, notes)


def _header_version(digits: str) -> str:
    """Return the version of ``101601`` or ``8601``: two digits each but for the first number."""
    number = int(digits[:9])
    if number >= 100_000:
        return f"{number // 10_000}.{number // 100 % 100}"
    return f"{number // 1000}.{number // 100 % 10}"


def _tool(tokens: list[str]) -> tuple[str, list[str]]:
    for at, token in enumerate(tokens):
        name = PurePath(token).name.removesuffix(".exe")
        if name == "polygraphy":
            if tokens[at + 1 : at + 2] not in (["convert"], ["run"]):
                raise UsageError("only polygraphy convert and polygraphy run build engines")
            return name, tokens[at + 2 :]
        if name in _TOOLS:
            return "trtexec", tokens[at + 1 :]
        if token.startswith("--"):
            return "trtexec", tokens[at:]
    raise UsageError("not a command of trtexec or polygraphy", hint='Write "trtexec --onnx=…"')


def _is_of_11(found: Words, version: str) -> bool:
    version = version or found.version
    if version:
        return version_of(version) >= (11, 0)
    options = {word.partition("=")[0] for word in found.words}
    return any(off in options for _, off in DEFAULT_ON_IN_11.values())


@lru_cache(maxsize=1)
def _settings() -> Mapping[str, Setting]:
    found = {}
    for setting in settings_of(RunSettings):
        found.update({spelling: setting for spelling in setting.param.spellings})
    return MappingProxyType(found)


class _Reader:
    """Reads plain arguments into values."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.values: dict[str, JSON] = {}
        self.notes: list[str] = []
        self._set: set[str] = set()
        self._flags: set[str] = set()
        self._others: list[str] = []

    def read(self, arguments: list[str]) -> None:
        """Read arguments."""
        waiting = list(arguments)
        while waiting:
            word = waiting.pop(0)
            option, equals, value = word.partition("=")
            if not word.startswith("-") or word == "-":
                self._others.append(word)
            elif (setting := self._setting(option)) is not None:
                if setting.type is bool:
                    self._switch(setting, option, value if equals else "true")
                    continue
                if not equals:
                    if not waiting or waiting[0].startswith("--"):
                        raise UsageError(f"{option} has no value")
                    value = waiting.pop(0)
                self._put(setting, option, value)
            elif self._is_flag(option):
                self._flags.add(option)
            else:
                self._unknown(option)
                if option in _POLYGRAPHY_VALUES and not equals and waiting:
                    waiting.pop(0)

    def _setting(self, option: str) -> Setting | None:
        if self.tool == "polygraphy" and option in ("-o", "--output"):
            option = "--saveEngine"
        if self.tool == "trtexec" and option in ("-o", "--output"):
            return None
        if option in ("-v", "-vv"):
            option = "--verbose"
        found = _settings().get(option)
        if found is None and option.startswith("--no-"):
            found = _settings().get(f"--{option.removeprefix('--no-')}")
            found = found if found is not None and found.type is bool else None
        return found

    def _is_flag(self, option: str) -> bool:
        return any(option == flag for s in settings_of(RunSettings) for flag, _ in s.param.flags)

    def _switch(self, setting: Setting, option: str, value: str) -> None:
        is_on = value.lower() not in ("false", "0", "off")
        negative = option not in setting.param.spellings and option.startswith("--no-")
        self._set.add(setting.name)
        self.values[setting.name] = is_on != negative

    def _put(self, setting: Setting, option: str, text: str) -> None:
        if setting.name == "batch" and self.tool == "trtexec":
            self.notes.append(
                "--batch: an implicit batch is gone since 10; here it is the size of"
                " a first dimension that is open"
            )
        if typing.get_origin(setting.type) is tuple:
            items = self.values.setdefault(setting.name, [])
            assert isinstance(items, list)
            items.append(text)
            return
        value: JSON = text
        if setting.param.choices:
            value = word_of(setting, text)
        elif setting.type in (int, float):
            try:
                value = setting.type(text)
            except ValueError:
                raise UsageError(f"{option} is {text!r}, which is not a number") from None
        if problem := problem_with(setting, value):
            raise UsageError(f"{option} is {problem}")
        self._set.add(setting.name)
        self.values[setting.name] = value

    def _unknown(self, option: str) -> None:
        shown = clip(visible(option), 60)
        if option in _MEANT:
            return
        if option in _REPORTS:
            self.notes.append(f"{shown}: the report and the layer information hold this")
        elif self.tool == "trtexec" and option not in SINCE:
            self.notes.append(f"{shown}: trtexec has no such option")
        else:
            self.notes.append(f"{shown}: not a setting here, left out")

    def finished(self, only_build: bool) -> Parsed:
        """Return all that was read."""
        for setting in settings_of(RunSettings):
            for flag, meaning in setting.param.flags:
                if flag in self._flags and setting.name not in self._set:
                    self.values[setting.name] = meaning
        self._take_model()
        model, output = self.values.get("model"), self.values.get("output")
        if only_build and model and output == f"{PurePath(str(model)).stem}.engine":
            del self.values["output"]
        return Parsed(self.values, tuple(dict.fromkeys(self.notes)))

    def _take_model(self) -> None:
        models = [word for word in self._others if word.lower().endswith(".onnx")]
        models += [word for word in self._others if word not in models]
        if models:
            self.values["model"] = models[0]
        elif "engine" in self.values:
            self.values["model"] = self.values["engine"]
        for word in models[1:]:
            self.notes.append(f"{clip(visible(word), 60)!r} is not an option, left out")


def word_of(setting: Setting, text: str) -> str:
    """Return the choice that a word means, or the word itself."""
    words = {word.lower(): choice for word, choice in setting.param.words}
    words |= {choice.lower(): choice for choice in setting.param.choices}
    return words.get(text.lower(), text)
