"""The commands of ``dld``, and its help text, without any import that takes time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

OPEN = "open"
"""The hidden command that arguments which are no command go to."""

HELP_OPTIONS = ("-h", "--help")


class CommandInfo(NamedTuple):
    """What ``--help`` says of a command without importing it."""

    name: str
    summary: str
    module: str = ""
    """What holds the click command: ``MODULE:NAME``, by default its attribute `command`."""
    hidden: bool = False
    activity: str = ""
    """The activity that the command is made of, in place of a module."""


COMMANDS = (
    CommandInfo("demo", "Profile a built-in model and open its report.", "dld_tui.cli.jobs.demo"),
    CommandInfo("new", "Write an empty model.", "dld_tui.cli.models.new"),
    CommandInfo("inspect", "Say what is in a model.", "dld_tui.cli.models.inspect"),
    CommandInfo("check", "Say what is wrong with a model.", "dld_tui.cli.models.check"),
    CommandInfo("diff", "Say what changed between two models.", "dld_tui.cli.models.diff"),
    CommandInfo("find", "Find nodes by a condition.", "dld_tui.cli.models.rewrite:find"),
    CommandInfo("match", "Find a pattern of operators.", "dld_tui.cli.models.rewrite:match"),
    CommandInfo("rewrite", "Replace patterns of operators.", "dld_tui.cli.models.rewrite"),
    CommandInfo("edit", "Replay an edit script on a model.", "dld_tui.cli.models.edit"),
    CommandInfo("extract", "Write a part of a model as a model.", "dld_tui.cli.models.extract"),
    CommandInfo("triton", "Write a model repository for Triton.", "dld_tui.cli.models.triton"),
    CommandInfo("draw", "Draw a picture of a graph.", "dld_tui.cli.models.draw"),
    CommandInfo(
        "operators", "Say what operators there are and do.", "dld_tui.cli.models.operators"
    ),
    CommandInfo("convert", "Modify a whole model.", "dld_tui.cli.jobs.activity:convert"),
    CommandInfo("build", "Build a TensorRT engine of a model.", activity="build_tensorrt"),
    CommandInfo(
        "profile", "Measure a model and each of its layers.", "dld_tui.cli.jobs.activity:profile"
    ),
    CommandInfo("tune", "Find the fastest way to run a model.", activity="tune"),
    CommandInfo("startup", "Say what making a session takes.", activity="start_up"),
    CommandInfo("memory", "Say what memory a run of a model needs.", activity="memory"),
    CommandInfo("path", "Find the critical path of a profile.", activity="critical_path"),
    CommandInfo("refit", "Put a model's weights into an engine.", activity="refit_engine"),
    CommandInfo("report", "Print a profile report.", "dld_tui.cli.reports.report"),
    CommandInfo("compare", "Compare profile reports.", "dld_tui.cli.reports.compare"),
    CommandInfo("gate", "Fail when a new version is slower.", "dld_tui.cli.jobs.gate"),
    CommandInfo("accuracy", "Say whether two runs give the same results.", activity="accuracy"),
    CommandInfo(
        "tactics", "Find TensorRT tactics that give wrong results.", activity="isolate_tactic"
    ),
    CommandInfo("routes", "Find the fastest TensorRT build route.", activity="tune_routes"),
    CommandInfo("reduce", "Find the smallest part that still fails.", activity="reduce_model"),
    CommandInfo("plan", "Say what is in a TensorRT engine.", "dld_tui.cli.reports.plan"),
    CommandInfo("target", "Manage machines reached over SSH.", "dld_tui.cli.setup.target"),
    CommandInfo("tool", "Run programs of yours on models.", "dld_tui.cli.setup.tool"),
    CommandInfo("run", "Run what other packages add.", "dld_tui.cli.jobs.activity:run"),
    CommandInfo("selftest", "Try it all on this machine.", activity="selftest"),
    CommandInfo("doctor", "Say what works on this machine.", "dld_tui.cli.setup.doctor"),
    CommandInfo("completion", "Print a shell completion script.", "dld_tui.cli.completion"),
    CommandInfo("worker", "Serve one job over pipes.", "dld_tui.cli.worker", hidden=True),
    CommandInfo(
        OPEN, "Open files in the user interface.", "dld_tui.cli.group:open_files", hidden=True
    ),
)


def are_paths(arguments: Sequence[str]) -> bool:
    """Tell whether a command line only names files to open, or nothing: it needs no parser."""
    return not any(argument[:1] == "-" for argument in arguments) and (
        not arguments or is_path(arguments[0])
    )


def is_path(argument: str) -> bool:
    """Tell whether the first word of a command line is a file to open, and no command."""
    return (
        argument[:1] != "-"
        and all(argument != command.name for command in COMMANDS)
        and ("/" in argument or "." in argument or os.path.lexists(argument))
    )


_HEAD = """\
Usage: dld [OPTIONS] [COMMAND] [ARGS]...

  Open, inspect, edit and profile neural networks in a terminal.

    dld                   open the welcome screen
    dld PATH...           open models and reports, one tab each
    dld COMMAND ...       do one thing without the user interface

  Every command has its own --help.

Options:
  --version   Print the version.
  -h, --help  Show this message and exit.

Commands:
"""


def help_text() -> str:
    """Return what ``dld --help`` prints."""
    rows = [f"  {row.name:<10}  {row.summary}\n" for row in COMMANDS if not row.hidden]
    return _HEAD + "".join(rows)
