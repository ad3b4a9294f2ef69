"""What targets say of themselves and of their jobs, of odd answers too."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import ConnectionStep
from dld_tui.targets.ssh import target as ssh_target
from dld_tui.targets.ssh.link import Finished
from dld_tui.targets.ssh.target import SshTarget
from tests.support.asker import Answers
from tests.support.recorded import Recorded

ID = "20260101-000000-0000000a"
BOX = Connection("box", "host", directory="~/d")
JOBS: list[Any] = [
    {"id": ID, "activity": "fake\x1b" + "x" * 50, "state": "running", "started": 5},
    {"id": ID, "state": "odd", "started": "now"}, {"id": ID, "state": "lost", "started": 1.5},
    {"id": "x"}, "text",
]  # fmt: skip
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "list": [{"jobs": JOBS}, {"jobs": "no list"}, {}],
    "clean": [{"jobs": 3, "bytes": 10, "unfetched": [ID, "x", 5]}, {"jobs": "3", "bytes": None}],
    "wipe": [{}],
}
FREE = 2 << 30
SAID: list[dict[str, Any]] = [
    {"python": [3, 10, 0], "program": "/p", "folder": "/d", "free": FREE},
    {"python": [3, 12, "x"], "program": "/p", "folder": "", "free": FREE - 1},
    {"python": [3, 9, 19], "program": "/p"}, {"python": "3.12"}, {"python": [4, 0]},
    {"python": [3, 11, 1], "program": "/p", "folder": "/d", "error": "no permission"},
    {"python": [3, 11, 1], "program": "/p", "free": "much"},
]  # fmt: skip
ENDED = [Finished(b"", b"a\nb \n", 1), Finished(b"out\nlast\n", b" \n", 2), Finished(b"", b"", 3)]


def step_line(step: ConnectionStep) -> str:
    return f"{step.state} {step.name}: {step.found}; {step.fix}"


def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what a target asks its agent, and what it makes of the answers."""
    lines: list[str] = []

    async def noted(name: str, /, **arguments: Any) -> Any:
        lines.append(f"{name} {arguments}")
        return ANSWERS[name].pop(0) if name in ANSWERS else None

    def agent(self: SshTarget) -> Any:
        link = SimpleNamespace(close=lambda: noted("close"))
        return SimpleNamespace(
            probe=lambda: noted("probe"),
            make_ready=lambda: noted("make ready"),
            call=noted,
            link=link,
        )

    monkeypatch.setattr(SshTarget, "_agent", agent)
    target = SshTarget(BOX, Answers())
    yield from (repr(job) for _ in range(3) for job in target.jobs())
    yield repr(target.clean(1.5, results=True))
    yield repr(target.clean(0))
    target.wipe(results=True)
    yield from lines


def judged() -> Iterator[str]:
    for answer in SAID:
        steps: list[ConnectionStep] = []
        ssh_target._judge(answer, BOX, steps.append)
        yield str(answer)
        yield from (f"  {step_line(step)}" for step in steps)
    yield from (ssh_target._last(ended) for ended in ENDED)


def test_answers(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(
        "ssh_target",
        {"of the agent": "\n".join(asked(monkeypatch)), "of Python": "\n".join(judged())},
    )
