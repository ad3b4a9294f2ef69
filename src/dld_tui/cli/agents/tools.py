"""The tools that an agent gets: commands of ``dld``, with the parameters that these declare.

Names, types, limits and descriptions of arguments are those of the command line, hence of the
requests that it is made from. What is not for agents is left out: code to run (``runs_code``),
other machines, TensorRT, which loads code with engines, and, of tools that only read, all outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from dld_tui.cli.group import dld
from dld_tui.cli.options import OUTPUT, PLACE, setting_of
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.files.writer import write_bytes
from dld_tui.core.params import plain_default
from dld_tui.core.types import JSON

_PAGES = ("TensorRT",)
"""Pages of settings that no agent gets."""
_LONGEST = 20_000
"""Characters of a word; a process takes 131,072 bytes."""
_FLAG = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")
_TYPES: tuple[tuple[type[Any], str], ...] = (
    (click.types.IntParamType, "integer"),
    (click.types.FloatParamType, "number"),
    (click.types.BoolParamType, "boolean"),
)
KIND, SETTINGS, OVERWRITE = "kind", "settings", "overwrite"
PICTURE = ".svg"


@dataclass(frozen=True)
class Argument:
    """An argument of a tool, and the parameter of the command that it stands for."""

    name: str
    parameter: click.Parameter
    type: dict[str, Any]
    """The JSON schema of its values."""
    about: str

    def words(self, value: Any) -> Iterator[str]:
        """Yield a value as words of a command line; for a positional one, the values themselves."""
        values = value if isinstance(value, list) else [value]
        if not isinstance(self.parameter, click.Option):
            yield from map(str, values)
        elif not self.parameter.is_flag:
            yield from (f"{_long(self.parameter.opts)}={one}" for one in values)
        elif flags := self.parameter.opts if value else self.parameter.secondary_opts:
            yield _long(flags)


@dataclass(frozen=True)
class Tool:
    """A tool. Whether it only reads follows from its arguments."""

    name: str
    command: tuple[str, ...]
    """The words of the command, with options that are always given."""
    without: frozenset[str] = frozenset()
    """Arguments that are not for agents: for people, or for terminals."""
    writes: bool = False
    """Whether it has the outputs of the command."""
    measures: bool = False
    """Whether it needs the machine for itself."""
    previews: bool = False
    """Whether it previews where no output is given."""
    result: str = ""
    """The suffix of the output in the server's own folder, where no other one is given."""
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Arguments that are the text of a file: its suffix, and what the text is."""

    @cached_property
    def declared(self) -> click.Command:
        """The command."""
        command: click.Command = dld
        for word in (word for word in self.command if word[0] != "-"):
            assert isinstance(command, click.Group)
            subcommand = command.get_command(click.Context(command), word)
            assert subcommand is not None
            command = subcommand
        return command

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        """The arguments; of a group, those that mean the same in each command that has them."""
        groups: dict[str, list[Argument]] = {}
        for _, own in self._every.values():
            for name, argument in own.items():
                groups.setdefault(name, []).append(argument)
        return {
            name: same[0]
            for name, same in groups.items()
            if (len(same) > 1 or not self.kinds) and all(one.type == same[0].type for one in same)
        }

    @cached_property
    def kinds(self) -> dict[str, click.Command]:
        """The commands of a group; none for others."""
        return {name: command for name, (command, _) in self._every.items() if name}

    def own(self, kind: str) -> dict[str, Argument]:
        """Return all arguments of a kind, or of what has no kinds."""
        return self._every[kind][1]

    @cached_property
    def _every(self) -> dict[str, tuple[click.Command, dict[str, Argument]]]:
        command = self.declared
        if not isinstance(command, click.Group):
            return {"": (command, self._arguments_of(command))}
        context = click.Context(command)
        members = {
            name: command.get_command(context, name) for name in command.list_commands(context)
        }
        return {
            name: (one, self._arguments_of(one)) for name, one in members.items() if one is not None
        }

    def _arguments_of(self, command: click.Command) -> dict[str, Argument]:
        arguments = (self._argument(parameter) for parameter in command.params)
        return {
            one.name: one for one in arguments if one is not None and one.name not in self.without
        }

    def _argument(self, parameter: click.Parameter) -> Argument | None:
        setting = setting_of(parameter)
        is_ours = setting is None or not (
            setting.param.runs_code or setting.param.page in _PAGES or setting.name == "in_place"
        )
        flags = {*parameter.opts}
        if not is_ours or parameter.type is PLACE or getattr(parameter, "hidden", False):
            return None
        if "--json" in flags or (
            not self.writes and (parameter.type is OUTPUT or "--force" in flags)
        ):
            return None
        if "--force" in flags:
            return Argument(OVERWRITE, parameter, *_declared(parameter))
        name = setting.name if setting is not None else _name(parameter)
        return Argument(name, parameter, *_declared(parameter))

    @property
    def is_reading(self) -> bool:
        """Whether it has nothing that names a file to write."""
        return not any(
            one.parameter.type is OUTPUT for _, own in self._every.values() for one in own.values()
        )

    @property
    def description(self) -> str:
        """What it does, in the words of the command, with its own names of arguments."""
        more = " Without output it previews: nothing is written." if self.previews else ""
        return self.in_own_words(f"{self.declared.help or ''}{more}")

    def in_own_words(self, text: str, kind: str = "") -> str:
        """Return a text with the names of arguments in place of flags, on one line."""
        known = self.arguments if kind not in self._every else self.own(kind)
        named = {one.parameter: one.name for one in known.values()}
        command = self.kinds.get(kind, self.declared)
        names = {
            flag: named.get(parameter) or _name(parameter)
            for parameter in [*command.params, *named]
            for flag in (*parameter.opts, *parameter.secondary_opts)
        }
        plain = _FLAG.sub(lambda match: names.get(match[1], match[1]), text)
        return re.sub(r"\s+", " ", plain.replace("\b", "")).strip()

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        shared = self._object(self.arguments.values())
        if self.kinds:
            about = " ".join(f"{k}: {one.get_short_help_str(200)}" for k, one in self.kinds.items())
            kind = {"type": "string", "enum": [*self.kinds], "description": about}
            settings = {"type": "object", "anyOf": [self.settings(name) for name in self.kinds]}
            shared["properties"] = {KIND: kind, **shared["properties"], SETTINGS: settings}
            shared["required"] = [KIND, *shared["required"]]
        return shared

    def settings(self, kind: str) -> dict[str, Any]:
        """Return the schema of what only some kinds have."""
        rest = (one for name, one in self.own(kind).items() if name not in self.arguments)
        return {"title": kind, **self._object(rest, kind)}

    def _object(self, arguments: Iterable[Argument], kind: str = "") -> dict[str, Any]:
        known = [*arguments]
        return {
            "type": "object",
            "properties": {
                one.name: {
                    **one.type,
                    "description": self.texts.get(one.name, ("", ""))[1]
                    or self.in_own_words(one.about, kind),
                }
                for one in known
            },
            "required": [
                one.name
                for one in known
                if all(
                    one.name in own and own[one.name].parameter.required
                    for _, own in self._every.values()
                )
                or (kind and one.parameter.required)
            ],
            "additionalProperties": False,
        }

    def flat(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call without their kind, on one level.

        Raises:
            UsageError: An argument is not one of this tool or kind.
        """
        kind, known = str(given.get(KIND, "")), self.own(str(given.get(KIND, "")))
        values = {name: value for name, value in given.items() if name not in (KIND, SETTINGS)}
        values |= given.get(SETTINGS, {})
        for name in values:
            if name not in known:
                what = f"kind {kind} takes" if kind else f"{self.name} takes"
                hint = f"There are {', '.join(known)}" if known else "There are none"
                raise UsageError(f"{what} no argument {name!r:.60}", hint=hint)
        return values

    def words(self, given: Mapping[str, Any], folder: Path, number: int) -> list[str]:
        """Return the command line of a call.

        Args:
            given: Arguments that the schema takes.
            folder: The server's own folder.
            number: That of the call, for the names of files.

        Raises:
            UsageError: An argument is not of this kind, or cannot be part of a command line.
        """
        kind, values = given.get(KIND, ""), self.flat(given)
        known = self.own(kind)
        for name, (suffix, _) in self.texts.items():
            path = folder / f"{number}{suffix}"
            write_bytes(path, str(values[name]).encode("utf-8", "replace"))
            values[name] = str(path)
        options = [*self.command, *([kind] if kind else []), "--json"]
        positional: list[str] = []
        for name, value in values.items():
            is_option = isinstance(known[name].parameter, click.Option)
            (options if is_option else positional).extend(known[name].words(value))
        if "output" not in values and self.result:
            options.append(f"--output={folder / f'{number}{self.result}'}")
        elif "output" not in values and self.previews:
            options.append("--preview")
        words = [*options, "--", *positional]
        if any("\0" in word or len(word) > _LONGEST for word in words):
            raise UsageError(f"an argument is longer than {_LONGEST:,} characters, or has a NUL")
        return words

    def outputs(self, given: Mapping[str, Any]) -> list[str]:
        """Return the files that a call names for results."""
        known = self.own(given.get(KIND, ""))
        values = self.flat(given).items()
        return [str(value) for name, value in values if known[name].parameter.type is OUTPUT]


def _long(flags: Sequence[str]) -> str:
    return next((flag for flag in flags if flag.startswith("--")), flags[0])


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return _long(parameter.opts).lstrip("-").replace("-", "_")
    return str(parameter.name)


def _declared(parameter: click.Parameter) -> tuple[dict[str, Any], str]:
    """Return the JSON schema of the values of a parameter, and what it is for."""
    setting, kind = setting_of(parameter), parameter.type
    named = next((name for known, name in _TYPES if isinstance(kind, known)), "string")
    item: dict[str, Any] = {"type": named}
    if isinstance(kind, click.Choice):
        item["enum"] = [*kind.choices]
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    about = (parameter.help or "") if isinstance(parameter, click.Option) else ""
    default: JSON = None
    if setting is not None:
        least, most = setting.param.minimum, setting.param.maximum
        unit = f" In {setting.param.unit}." if setting.param.unit else ""
        about, default = f"{setting.param.help}{unit}", plain_default(setting)
    if named != "string":
        limits = (("minimum", least), ("maximum", most))
        item |= {key: limit for key, limit in limits if limit is not None}
    if parameter.multiple if isinstance(parameter, click.Option) else parameter.nargs == -1:
        item = {"type": "array", "items": item}
    if default not in (None, "", []):
        item["default"] = default
    return item, about


def _without(*names: str) -> frozenset[str]:
    return frozenset(names)


_SCRIPT = (
    'Edits, one JSON object a line, such as {"edit": "rename_node", "scope": [], "node": "conv1", '
    '"name": "stem"}. The resource dld://edits lists all edits with arguments. scope is [] for '
    "the main graph; node is a name, or >OUTPUT where it has none; value is the name of a tensor."
)
_FIX = _without("fix", "full", "polygraphy")
_PRINTED = _without("top", "all_layers", "notes")
TOOLS = (
    Tool("inspect", ("inspect",), _without("device")),
    Tool("check", ("check",), _without("fix")),
    Tool("fix", ("check", "--fix"), _FIX, writes=True),
    Tool("find", ("find",)),
    Tool("match", ("match",)),
    Tool("diff", ("diff",), _without("tui", "git", "textconv", "color")),
    Tool(
        "draw",
        ("draw",),
        _without("output", "format", "view", "background", "grid", "scale", "ascii"),
        result=PICTURE,
    ),
    Tool("extract", ("extract",), writes=True),
    Tool("convert", ("convert",), writes=True),
    Tool(
        "edit", ("edit",), _without("preview", "base", "data"), writes=True, previews=True,
        texts={"script": (".jsonl", _SCRIPT)},
    ),
    Tool("rewrite", ("rewrite",), _without("preview", "script"), writes=True, previews=True),
    Tool(
        "profile", ("profile", "onnxruntime"),
        _PRINTED | {OVERWRITE, "optimized_model", "lock_clocks"},
        writes=True, measures=True, result=".dldprof",
    ),
    Tool(
        "profile_llm", ("profile", "llm"), _without(OVERWRITE),
        writes=True, measures=True, result=".dldprof",
    ),
    Tool("tune", ("tune",), _without(OVERWRITE), writes=True, measures=True, result=".tune.json"),
    Tool("memory", ("memory",), measures=True),
    Tool("report", ("report",), _PRINTED),
    Tool("compare", ("compare",)),
    Tool(
        "gate",
        ("gate",),
        _without("commands", "base_set", "new_set", "lock_clocks"),
        measures=True,
    ),
    Tool("sweep", ("sweep",), measures=True),
    Tool("accuracy", ("accuracy",), _without("csv", "worst", "rows"), measures=True),
    Tool("plan", ("plan",)),
    Tool("targets", ("target", "list")),
    Tool("doctor", ("doctor",), _without("ep_library")),
)  # fmt: skip
"""What ``dld mcp`` offers, as agents mostly use them."""
