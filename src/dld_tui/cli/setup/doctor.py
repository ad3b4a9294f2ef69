"""``dld doctor``: check the installation, with a command for each problem."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dld_tui.activities.machine.doctor import Request as LibraryRequest
from dld_tui.cli.command import command_for, json_flag
from dld_tui.cli.jobs.activity import run_activity
from dld_tui.cli.output import write, write_json
from dld_tui.cli.setup.prompts import ask_on_terminal
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ExitStatus
from dld_tui.core.machine.health import (
    BROKEN,
    GOOD,
    MISSING,
    WEAK,
    Check,
    checks_here,
)
from dld_tui.core.params import param
from dld_tui.core.text import visible
from dld_tui.targets.registry import LOCAL, get

_NOT_NEEDED = ("onnx", "numpy", "protobuf", "textual")
"""Packages that a target needs only for jobs, which install them, or not at all."""
_WITH_A_JOB = "installed with the first job that uses it"
_ON_A_TARGET = {
    **dict.fromkeys(("onnxruntime", "tensorrt_rtx", "cupti", "polygraphy", "pynvml"), _WITH_A_JOB),
    "tensorrt": "sudo apt install python3-libnvinfer, or pip install tensorrt",
}
"""Remedy on a target, where jobs run in an environment of dld."""
_MADE_ANEW = re.compile(r"(\S*python\S*) -m venv --system-site-packages (?!--without-pip).*")
"""Part of a remedy that creates an environment of another Python."""
_MARKS = {GOOD: "✓", MISSING: "–", WEAK: "!", BROKEN: "✗"}


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld doctor``."""

    target: str | None = param(
        None, label="Target", metavar="NAME", kind="place",
        help="Examine this target.",
    )  # fmt: skip
    ep_library: tuple[str, ...] = param(
        (), label="EP library", metavar="FILE",
        help="List the devices of this plugin execution provider library. Loading it runs its "
        "code.",
    )  # fmt: skip
    as_json: bool = json_flag()


@command_for("doctor", Request)
def command(asked: Request) -> int:
    """Check what works on this machine or a target, and print how to fix what does not.

    Exit status 1 if an installed component fails. Optional components that are not installed do not
    count.
    """
    before = _target_checks(asked.target)
    checks: list[Check] = run_activity(
        "doctor", LibraryRequest(asked.ep_library), asked.target
    ).checks
    if before and asked.target is not None:
        checks = [*before, *_of_a_target(checks, asked.target)]
    else:
        checks = checks_here(checks)
    problems = sum(check.state == BROKEN for check in checks)
    if asked.as_json:
        write_json({"checks": checks, "problems": problems})
    else:
        _print(checks)
    return ExitStatus.FOUND if problems else ExitStatus.DONE


def _target_checks(name: str | None) -> list[Check]:
    """Return the checks of a target for its jobs; none for this machine."""
    if name is None or name == LOCAL:
        return []
    from dld_tui.targets.ssh.target import SshTarget

    ask_on_terminal()
    target = get(name)
    return target.checks("profile_onnxruntime") if isinstance(target, SshTarget) else []


def _of_a_target(checks: Sequence[Check], target: str) -> Iterator[Check]:
    """Yield checks of a target, without components that it does not need.

    A Python of the target whose packages do not count is not made anew there: another is named.
    """
    for check in checks:
        if check.state == MISSING and check.group == "Python" and check.name in _NOT_NEEDED:
            continue
        fix = _ON_A_TARGET.get(check.name) if check.fix.startswith("pip ") else None
        if anew := _MADE_ANEW.search(check.fix):
            named = f"dld target edit {target} --python {anew[1]}"
            fix = check.fix[: anew.start()] + named + check.fix[anew.end() :]
        yield replace(check, fix=fix) if fix else check


def _print(checks: list[Check]) -> None:
    groups = dict.fromkeys(check.group for check in checks)
    width = max(len(check.name) for check in checks)
    for index, group in enumerate(groups):
        if index:
            write()
        write(group)
        for check in (check for check in checks if check.group == group):
            mark = _MARKS.get(check.state, "?")
            write(f"  {mark} {visible(check.name):<{width}}  {visible(check.found)}")
            if check.fix:
                write(f"    {'':<{width}}  → {visible(check.fix)}")
