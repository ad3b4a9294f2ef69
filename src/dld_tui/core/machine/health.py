"""What `dld doctor` looks at that needs no library but this one: Python, folders, the terminal."""

from __future__ import annotations

import importlib.metadata
import locale
import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dld_tui import __version__
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.process.child import ask
from dld_tui.core.process.installation import in_environment, install_command
from dld_tui.core.process.paths import cache_dir, config_dir, state_dir
from dld_tui.core.process.plugins import GROUPS, entry_points, plugins, skipped
from dld_tui.core.tables.table import Column, Table, Unit
from dld_tui.core.text import visible

GOOD, MISSING, WEAK, BROKEN = "good", "missing", "weak", "broken"
"""States: works; optional and absent; works, but not well; should work and does not."""


@dataclass(frozen=True)
class Check:
    """A component that works or does not."""

    group: str
    name: str
    state: str
    found: str
    """Its version or state, or why it does not work. Untrusted text."""
    fix: str = ""
    """The command that mends it, or what to do."""


def python_checks() -> Iterator[Check]:
    """Look at Python and the libraries that are always installed."""
    yield Check("Python", "dld-tui", GOOD, __version__)
    yield Check("Python", "Python", GOOD, f"{platform.python_version()} ({sys.executable})")
    yield Check("Python", "machine", GOOD, f"{platform.machine()}, {platform.platform()}")
    for name in ("onnx", "numpy", "textual"):
        yield _package_check(name)
    yield _protobuf_check()


def _package_check(name: str, group: str = "Python", fix: str = "") -> Check:
    try:
        return Check(group, name, GOOD, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:  # on a target, which needs less
        return Check(group, name, MISSING, "not installed", fix or f"pip install {name}")


def _protobuf_check() -> Check:
    try:
        from google.protobuf.internal import api_implementation
    except ImportError:
        return _package_check("protobuf")

    kind = api_implementation.Type()
    text = f"{importlib.metadata.version('protobuf')}, implementation {kind}"
    if kind == "python":
        fix = "unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION; pip install --force-reinstall protobuf"
        return Check("Python", "protobuf", WEAK, f"{text}: slow on large models", fix)
    return Check("Python", "protobuf", GOOD, text)


def folder_checks() -> Iterator[Check]:
    """Look whether settings, journals and caches can be written."""
    for name, folder in (
        ("settings", config_dir()),
        ("journals", state_dir()),
        ("caches", cache_dir()),
    ):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
            yield Check("Folders", name, GOOD, str(folder))
        else:
            fix = f"chown -R $USER {existing}"
            yield Check("Folders", name, BROKEN, f"{folder}: {existing} is not writable", fix)


def terminal_checks(
    environment: Mapping[str, str] = os.environ, encoding: str | None = None
) -> Iterator[Check]:
    """Look at what the terminal can do.

    Args:
        environment: The environment variables that describe it.
        encoding: Of its text; by default what the locale says.
    """
    term = environment.get("TERM", "")
    if term in ("", "dumb"):
        fix = "export TERM=xterm-256color"
        yield Check("Terminal", "TERM", WEAK, term or "not set: plain text only", fix)
    else:
        yield Check("Terminal", "TERM", GOOD, term)
    yield _colour_check(environment, term)
    encoding = encoding or locale.getpreferredencoding(do_setlocale=False)
    if encoding.lower().replace("-", "") == "utf8":
        yield Check("Terminal", "text", GOOD, "UTF-8")
    else:
        yield Check("Terminal", "text", WEAK, f"{encoding}, not UTF-8", "export LC_ALL=C.UTF-8")
    size = shutil.get_terminal_size()
    if size.columns < 80 or size.lines < 24:
        text = f"{size.columns} columns, {size.lines} lines: 80 by 24 are needed"
        yield Check("Terminal", "size", WEAK, text, "make the window larger")
    else:
        yield Check("Terminal", "size", GOOD, f"{size.columns} columns, {size.lines} lines")
    yield from _clipboard_checks(environment)


def checks_here(checks: Iterable[Check]) -> list[Check]:
    """Return the checks of a worker on this machine with those of this process."""
    known = [replace(check, fix=in_environment(check.fix)) for check in checks]
    agents = _package_check("mcp", "Agents", install_command("agents"))
    return [*known, *terminal_checks(), agents, *plugin_checks()]


def check_table(checks: Sequence[Check]) -> Table[Check]:
    """Return checks as a table; what does not work first."""
    order = (BROKEN, WEAK, GOOD, MISSING)
    styles = {BROKEN: "bad", WEAK: "warn", GOOD: "good", MISSING: "dim"}
    return Table(
        (
            Column("name", "component", lambda check: check.name, width=16),
            Column("state", "state", lambda check: check.state, width=8,
                   style=lambda check: styles.get(check.state, "")),
            Column("found", "found", lambda check: check.found, least=20),
            Column("fix", "what mends it", lambda check: check.fix, least=20, priority=1),
            Column("group", "of", lambda check: check.group, width=12, priority=2, style="dim"),
        ),
        sorted(checks, key=lambda check: order.index(check.state)),
        name="doctor",
        title="Doctor",
    )  # fmt: skip


def check_lines(checks: Sequence[Check]) -> list[str]:
    """Return how many components work, and what to do, in lines for people."""
    states = Counter(check.state for check in checks)
    counts = ", ".join(f"{states[state]} {state}" for state in states)
    lines = [f"{fmt.plural(len(checks), 'component')}: {counts}."]
    return lines + [
        f"{visible(check.name)}: {visible(check.fix)}."
        for check in checks
        if check.fix and check.state in (BROKEN, WEAK)
    ]


def plugin_checks() -> Iterator[Check]:
    """Check the plugins of other packages, and ours that cannot be used."""
    for group in GROUPS:
        ours = {point.name for point in entry_points(group) if point.is_ours}
        for plugin in plugins(group, object):
            if plugin.name not in ours:
                yield Check("Plugins", plugin.name, GOOD, f"{plugin.package}, {group}")
    for one in skipped():
        fix = f"update or uninstall {one.package}"
        yield Check("Plugins", one.name, BROKEN, f"{one.package}, {one.group}: {one.problem}", fix)


def _colour_check(environment: Mapping[str, str], term: str) -> Check:
    if environment.get("NO_COLOR"):
        return Check("Terminal", "colours", GOOD, "none, as NO_COLOR asks")
    if environment.get("COLORTERM") in ("truecolor", "24bit") or term.endswith("-direct"):
        return Check("Terminal", "colours", GOOD, "16 million")
    if "256color" in term:
        fix = "export COLORTERM=truecolor if the terminal has more"
        return Check("Terminal", "colours", GOOD, "256", fix)
    return Check("Terminal", "colours", WEAK, "16 or fewer", "export TERM=xterm-256color")


def _clipboard_checks(environment: Mapping[str, str]) -> Iterator[Check]:
    if not environment.get("TMUX"):
        return
    try:
        command = ["tmux", "show-options", "-gqv", "set-clipboard"]
        done = ask(command, 5)
    except (OSError, subprocess.SubprocessError):
        return
    value = done.output.strip()
    if value == "on":
        yield Check("Terminal", "clipboard", GOOD, "tmux passes copies on")
    else:
        fix = "tmux set-option -g set-clipboard on"
        text = f"tmux set-clipboard is {value or 'unknown'}: copies stay in tmux"
        yield Check("Terminal", "clipboard", WEAK, text, fix)


PASSED, FAILED, UNAVAILABLE, SKIPPED = "passed", "failed", "unavailable", "skipped"
"""Statuses: passed; failed; needs hardware that this machine lacks; needs an earlier step that
did not pass."""


@dataclass(frozen=True)
class HealthStep:
    """A step of the self-test."""

    backend: str
    step: str
    status: str
    seconds: float
    detail: str
    """A figure of the result, or why there is none. Untrusted text."""
    fix: str = ""
    """What to do. Untrusted text."""
    log: str = ""
    """The traceback or the library's last lines. Untrusted text."""


@dataclass(frozen=True)
class SelfTest:
    """The result of the activity ``selftest``. Fields may be added, never renamed."""

    rows: tuple[HealthStep, ...]
    machine: dict[str, Any]
    checks: list[Check]
    """Those of `dld doctor`."""

    def count(self, status: str) -> int:
        """Return how many steps ended so."""
        return sum(step.status == status for step in self.rows)


_SECONDS = Unit("s", lambda value: f"{value:.1f}")
COLUMNS: tuple[Column[HealthStep], ...] = (
    Column("backend", "backend", lambda step: step.backend, width=12),
    Column("step", "step", lambda step: step.step, least=20),
    Column("status", "status", lambda step: step.status, width=11),
    Column("seconds", "s", lambda step: step.seconds, _SECONDS, 7),
    Column("detail", "result", lambda step: step.detail, least=30),
)


def step_table(result: SelfTest) -> Table[HealthStep]:
    """Return the steps as they were made."""
    return Table(COLUMNS, result.rows, name="selftest", title="Self-test")


def selftest_lines(result: SelfTest) -> list[str]:
    """Return the verdict and what to do, in lines for people."""
    counts = ", ".join(
        f"{number} {status}"
        for status in (PASSED, FAILED, UNAVAILABLE, SKIPPED)
        if (number := result.count(status))
    )
    machine = visible(str(result.machine.get("cpu", "")))
    lines = [f"{fmt.plural(len(result.rows), 'step')} on {machine or 'this machine'}: {counts}."]
    for step in result.rows:
        if step.fix and step.status != PASSED:
            lines.append(f"{step.backend}, {step.step}: {visible(step.fix)}.")
    return lines
