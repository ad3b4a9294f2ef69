"""The commands of ``dld`` and its help text, without slow imports.

Packages add commands as entry points of the group ``dld_tui.commands``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dld_tui.core.process.plugins import entry_points, plugins, skip

OPEN = "open"
"""The hidden command that opens paths."""

HELP_OPTIONS = ("-h", "--help")


class CommandInfo(NamedTuple):
    """A row of ``dld --help``, known without importing the command."""

    name: str
    summary: str
    module: str = ""
    """Reference to the click command, ``MODULE:NAME``; the default name is `command`."""
    hidden: bool = False
    activity: str = ""
    """Id of the activity that the command runs, instead of a module."""
    example: str = ""
    """What may follow it, shown in its help and where it is refused."""
    group: str = "Other packages"
    """Where ``dld --help`` lists a command of a package."""
    package: str = ""
    """Distribution that adds it, filled in by :func:`added`; empty for our own."""

    @property
    def is_foreign(self) -> bool:
        """Whether its code is not ours."""
        return bool(self.package) and not self.module.startswith("dld_tui.")


# fmt: off
_GROUPS: Mapping[str, tuple[CommandInfo, ...]] = {
    "Look": (
        CommandInfo("demo", "Profile a built-in model and open its report.",
                    "dld_tui.cli.jobs.demo"),
        CommandInfo("inspect", "Summarise a model.",
                    "dld_tui.cli.models.inspect", example="model.onnx"),
        CommandInfo("check", "Find errors and problems in a model.",
                    "dld_tui.cli.models.check", example="model.onnx --fix -o fixed.onnx"),
        CommandInfo("providers", "Show which nodes each provider takes.",
                    activity="providers", example="model.onnx"),
        CommandInfo("find", "Find nodes by a condition.",
                    "dld_tui.cli.models.rewrite:find", example="model.onnx 'Conv where group > 1'"),
        CommandInfo("match", "Find a pattern of operators.",
                    "dld_tui.cli.models.rewrite:match", example="model.onnx 'Mul(x, Sigmoid(x))'"),
        CommandInfo("draw", "Draw a picture of a graph.",
                    "dld_tui.cli.models.draw", example="model.onnx -o model.svg"),
        CommandInfo("operators", "Show the documentation of operators.",
                    "dld_tui.cli.models.operators", example="Conv"),
    ),
    "Change": (
        CommandInfo("new", "Write an empty model.",
                    "dld_tui.cli.models.new", example="model.onnx"),
        CommandInfo("edit", "Replay an edit script on a model.",
                    "dld_tui.cli.models.edit", example="model.onnx edits.jsonl -o edited.onnx"),
        CommandInfo("rewrite", "Replace patterns of operators.",
                    "dld_tui.cli.models.rewrite",
                    example="model.onnx 'Identity(x) => x' -o smaller.onnx"),
        CommandInfo("rename", "Rename many nodes and tensors.",
                    "dld_tui.cli.models.rename",
                    example="model.onnx --prefix encoder. -o renamed.onnx"),
        CommandInfo("extract", "Extract part of a model.",
                    "dld_tui.cli.models.extract",
                    example="model.onnx --outputs hidden -o part.onnx"),
        CommandInfo("merge", "Merge models into one.",
                    activity="convert_merge", example="encoder.onnx decoder.onnx -o both.onnx"),
        CommandInfo("prepend", "Add pre-processing to an input.",
                    activity="convert_prepend",
                    example="model.onnx --normalize imagenet -o new.onnx"),
        CommandInfo("append", "Add post-processing to an output.",
                    activity="convert_append", example="model.onnx --step softmax -o new.onnx"),
        CommandInfo("convert", "Convert a model: precision, opset, weights, ...",
                    "dld_tui.cli.group:convert", example="fp16 model.onnx -o half.onnx"),
    ),
    "Measure": (
        CommandInfo("profile", "Profile a model and its layers.",
                    "dld_tui.cli.group:profile", example="model.onnx"),
        CommandInfo("tune", "Search for the fastest configuration.",
                    activity="tune", example="model.onnx"),
        CommandInfo("placement", "Quantize only where it is measured to be faster.",
                    activity="placement", example="model.onnx --calibration inputs"),
        CommandInfo("sweep", "Measure a model at several sizes.",
                    activity="sweep", example="model.onnx --batch 1,2,4,8"),
        CommandInfo("load", "Measure several clients at once.",
                    activity="load", example="model.onnx --clients 1,2,4,8"),
        CommandInfo("startup", "Measure session creation.",
                    activity="startup", example="model.onnx"),
        CommandInfo("memory", "Predict the memory of a run.",
                    activity="memory", example="model.onnx"),
        CommandInfo("report", "Print a profile report.",
                    "dld_tui.cli.reports.report", example="run.dldprof"),
    ),
    "Compare": (
        CommandInfo("diff", "Compare two models.",
                    "dld_tui.cli.models.diff", example="old.onnx new.onnx"),
        CommandInfo("compare", "Compare profile reports or engines.",
                    "dld_tui.cli.reports.compare", example="before.dldprof after.dldprof"),
        CommandInfo("gate", "Fail if a new version is slower.",
                    activity="gate", example="old.onnx new.onnx"),
        CommandInfo("accuracy", "Compare the outputs of two runs.",
                    activity="accuracy", example="model.onnx --against other.onnx"),
        CommandInfo("reduce", "Reduce a model to the smallest that still fails.",
                    activity="reduce",
                    example="model.onnx --check 'trtexec --onnx={model}' -o small.onnx"),
    ),
    "TensorRT": (
        CommandInfo("build", "Build a TensorRT engine.",
                    activity="build", example="model.onnx"),
        CommandInfo("plan", "Show the engine plan of a TensorRT engine.",
                    "dld_tui.cli.reports.plan", example="model.engine"),
        CommandInfo("refit", "Refit an engine with new weights.",
                    activity="refit", example="model.engine model.onnx"),
        CommandInfo("tactics", "Find TensorRT tactics that give wrong results.",
                    activity="tactics", example="model.onnx"),
    ),
    "Machines": (
        CommandInfo("target", "Manage remote machines (SSH).",
                    "dld_tui.cli.setup.target", example="add orin --host orin.local"),
        CommandInfo("tool", "Manage and run custom tools.",
                    "dld_tui.cli.setup.tool", example="list"),
        CommandInfo("mcp", "Serve an agent or editor (MCP).",
                    "dld_tui.cli.agents.command", example="--allow models"),
        CommandInfo("run", "Run an activity of another package.",
                    "dld_tui.cli.group:run"),
        CommandInfo("selftest", "Test all backends end to end.", activity="selftest"),
        CommandInfo("doctor", "Check this installation.",
                    "dld_tui.cli.setup.doctor"),
        CommandInfo("completion", "Print a shell completion script.",
                    "dld_tui.cli.completion", example="bash"),
    ),
}
# fmt: on
"""The commands by what they are for, as ``dld --help`` lists them."""
_HIDDEN = (
    CommandInfo("worker", "Serve one job over pipes.", "dld_tui.cli.group:worker", hidden=True),
    CommandInfo(
        OPEN, "Open files in the user interface.", "dld_tui.cli.group:open_files", hidden=True
    ),
)
COMMANDS = (*(row for rows in _GROUPS.values() for row in rows), *_HIDDEN)
"""The commands of this package; :func:`commands` has those of others, too."""
_NAMES = frozenset(row.name for row in COMMANDS)


def commands() -> tuple[CommandInfo, ...]:
    """Return all commands, those that packages add last."""
    return (*COMMANDS, *added())


def added() -> tuple[CommandInfo, ...]:
    """Return the commands that packages add, in the order of their names."""
    rows = []
    for plugin in plugins("commands", CommandInfo):
        row = plugin.value
        if row.name != plugin.name or not _can_be_added(row.name):
            problem = f"its command {row.name!r} is one of dld's, or has another name"
            skip("commands", plugin, problem)
        else:
            rows.append(row._replace(package=plugin.package))
    return tuple(rows)


def _can_be_added(name: str) -> bool:
    """Tell whether a word may be a command of a package: it can be taken for no path."""
    return name not in _NAMES and name[:1].isalpha() and not {"/", "."} & {*name}


def are_paths(arguments: Sequence[str]) -> bool:
    """Tell whether a command line has only paths, or nothing: it needs no parser."""
    return not any(argument[:1] == "-" for argument in arguments) and (
        not arguments or is_path(arguments[0])
    )


def is_path(argument: str) -> bool:
    """Tell whether the first word of a command line is a path, not a command."""
    if argument[:1] == "-" or argument in _NAMES:
        return False
    return (
        "/" in argument
        or "." in argument
        or (
            os.path.lexists(argument)
            and all(argument != point.name for point in entry_points("commands"))
        )
    )


_HEAD = """\
Usage: dld [OPTIONS] [COMMAND] [ARGS]...

  Open, inspect, edit and profile neural networks in a terminal.

    dld                   open the start page
    dld PATH...           open models and reports, one tab each
    dld COMMAND ...       run one command without the user interface

  Use dld COMMAND --help for the options of a command.

Options:
  --version   Print the version.
  -h, --help  Show this message and exit.
"""


def help_text() -> str:
    """Return what ``dld --help`` prints."""
    parts = [_HEAD]
    groups = {group: [*rows] for group, rows in _GROUPS.items()}
    for row in added():
        groups.setdefault(row.group, []).append(row)
    for group, rows in groups.items():
        parts.append(f"\n{group}:\n")
        parts += [f"  {row.name:<10}  {row.summary}\n" for row in rows if not row.hidden]
    return "".join(parts)
