"""The commands of ``dld`` and its help text, without slow imports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

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


COMMANDS = (
    CommandInfo("demo", "Profile a built-in model and open its report.", "dld_tui.cli.jobs.demo"),
    CommandInfo("new", "Write an empty model.", "dld_tui.cli.models.new"),
    CommandInfo("inspect", "Summarise a model.", "dld_tui.cli.models.inspect"),
    CommandInfo("check", "Find errors and problems in a model.", "dld_tui.cli.models.check"),
    CommandInfo("diff", "Compare two models.", "dld_tui.cli.models.diff"),
    CommandInfo("find", "Find nodes by a condition.", "dld_tui.cli.models.rewrite:find"),
    CommandInfo("match", "Find a pattern of operators.", "dld_tui.cli.models.rewrite:match"),
    CommandInfo("rewrite", "Replace patterns of operators.", "dld_tui.cli.models.rewrite"),
    CommandInfo("rename", "Rename many nodes and tensors.", "dld_tui.cli.models.rename"),
    CommandInfo("edit", "Replay an edit script on a model.", "dld_tui.cli.models.edit"),
    CommandInfo("extract", "Extract part of a model.", "dld_tui.cli.models.extract"),
    CommandInfo("merge", "Merge models into one.", activity="convert_merge"),
    CommandInfo("prepend", "Add pre-processing to an input.", activity="convert_prepend"),
    CommandInfo("append", "Add post-processing to an output.", activity="convert_append"),
    CommandInfo("triton", "Write a Triton model repository.", "dld_tui.cli.models.triton"),
    CommandInfo("draw", "Draw a picture of a graph.", "dld_tui.cli.models.draw"),
    CommandInfo(
        "operators", "Show the documentation of operators.", "dld_tui.cli.models.operators"
    ),
    CommandInfo(
        "convert",
        "Convert a model: precision, opset, weights, ...",
        "dld_tui.cli.group:convert",
    ),
    CommandInfo("build", "Build a TensorRT engine.", activity="build_tensorrt"),
    CommandInfo("profile", "Profile a model and its layers.", "dld_tui.cli.group:profile"),
    CommandInfo("tune", "Search for the fastest configuration.", activity="tune"),
    CommandInfo("startup", "Measure session creation.", activity="start_up"),
    CommandInfo("memory", "Predict the memory of a run.", activity="memory"),
    CommandInfo("path", "Find the critical path of a profile.", activity="critical_path"),
    CommandInfo("refit", "Refit an engine with new weights.", activity="refit_engine"),
    CommandInfo("report", "Print a profile report.", "dld_tui.cli.reports.report"),
    CommandInfo("compare", "Compare profile reports or engines.", "dld_tui.cli.reports.compare"),
    CommandInfo("gate", "Fail if a new version is slower.", "dld_tui.cli.jobs.gate"),
    CommandInfo("accuracy", "Compare the outputs of two runs.", activity="accuracy"),
    CommandInfo(
        "tactics", "Find TensorRT tactics that give wrong results.", activity="isolate_tactic"
    ),
    CommandInfo("routes", "Find the fastest TensorRT build route.", activity="tune_routes"),
    CommandInfo(
        "reduce", "Reduce a model to the smallest that still fails.", activity="reduce_model"
    ),
    CommandInfo("plan", "Show the engine plan of a TensorRT engine.", "dld_tui.cli.reports.plan"),
    CommandInfo("target", "Manage remote machines (SSH).", "dld_tui.cli.setup.target"),
    CommandInfo("tool", "Manage and run custom tools.", "dld_tui.cli.setup.tool"),
    CommandInfo("run", "Run an activity of another package.", "dld_tui.cli.group:run"),
    CommandInfo("selftest", "Test all backends end to end.", activity="selftest"),
    CommandInfo("doctor", "Check this installation.", "dld_tui.cli.setup.doctor"),
    CommandInfo("completion", "Print a shell completion script.", "dld_tui.cli.completion"),
    CommandInfo("worker", "Serve one job over pipes.", "dld_tui.cli.group:worker", hidden=True),
    CommandInfo(
        OPEN, "Open files in the user interface.", "dld_tui.cli.group:open_files", hidden=True
    ),
)


def are_paths(arguments: Sequence[str]) -> bool:
    """Tell whether a command line has only paths, or nothing: it needs no parser."""
    return not any(argument[:1] == "-" for argument in arguments) and (
        not arguments or is_path(arguments[0])
    )


def is_path(argument: str) -> bool:
    """Tell whether the first word of a command line is a path, not a command."""
    return (
        argument[:1] != "-"
        and all(argument != command.name for command in COMMANDS)
        and ("/" in argument or "." in argument or os.path.lexists(argument))
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

Commands:
"""


def help_text() -> str:
    """Return what ``dld --help`` prints."""
    rows = [f"  {row.name:<10}  {row.summary}\n" for row in COMMANDS if not row.hidden]
    return _HEAD + "".join(rows)
