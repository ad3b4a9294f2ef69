"""Ask a TensorRT library for its facts in a process of its own, which may crash or hang."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator
from pathlib import Path

from dld_tui.backends.tools.process import ToolEnd, run_tool
from dld_tui.core.codec import decode
from dld_tui.core.errors import ActivityError
from dld_tui.core.health import BROKEN, GOOD, MISSING, Check
from dld_tui.core.tensorrt.facts import MODULES, NOT_INSTALLED, LibraryFacts

_LIMIT_S = 60.0
_MODULE = "dld_tui.backends.tensorrt.library"
_LONGEST = 300


def ask(choice: str, limit_s: float = _LIMIT_S) -> Generator[float, None, LibraryFacts]:
    """Return the facts of a library, or why it cannot be used; yield the seconds that pass."""
    with tempfile.TemporaryDirectory(prefix="dld-tensorrt-") as folder:
        answer = Path(folder) / "facts.json"
        end = yield from run_tool(_MODULE, [choice, str(answer)], limit_s)
        try:
            if not end.timed_out and not end.crashed:
                return decode(LibraryFacts, json.loads(answer.read_text(encoding="utf-8")))
        except (OSError, ValueError, ActivityError):
            pass  # it says why below
        module = choice if choice in MODULES else ""
        return LibraryFacts(choice, module, why=_what_happened(end, limit_s))


def _what_happened(end: ToolEnd, limit_s: float) -> str:
    if end.timed_out:
        return f"loading it took over {limit_s:.0f} s"
    if end.crashed:
        return f"loading it ended with {end.crashed}"
    last = (end.said.strip().splitlines() or ["it gave no reason"])[-1]
    return f"loading it failed: {last[:_LONGEST]}"


def library_check(facts: LibraryFacts) -> Check:
    """Return the line of ``dld doctor``."""
    group, name = "Backends", facts.name
    if not facts.usable:
        state = MISSING if facts.why in NOT_INSTALLED else BROKEN
        return Check(group, name, state, facts.why, facts.hint)
    world = "layers may be constrained" if facts.world == "weak" else "strongly typed only"
    found = [facts.version, world]
    if facts.no_driver:
        found.append(f"builds engines but cannot load them: {facts.no_driver}")
    return Check(group, name, GOOD, ", ".join(found))
