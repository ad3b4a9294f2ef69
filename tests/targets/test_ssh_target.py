"""What targets say of themselves and of their jobs, of odd answers too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.core.errors import UnavailableError
from dld_tui.core.settings.saved_targets import Connection, changed
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


GOOD = Finished(f'@:{{"python": [3, 11, 1], "program": "/p", "free": {FREE}}}'.encode(), b"", 0)
GONE = UnavailableError("it is gone", hint="Wait")
LOOKED: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "good": ({"remember": "keyring"}, [None, GOOD]),
    "launched": ({"launcher": ("srun", "-n")}, [None, GOOD, Finished(b"", b"", 0), GOOD]),
    "no shell": ({}, [GONE]), "no shell, no hint": ({}, [UnavailableError("no")]),
    "no Python": ({}, [None, ENDED[0]]), "gone": ({}, [None, GONE]),
    "gone, no hint": ({}, [None, UnavailableError("no")]), "slow": ({}, [None, "slow"]),
    "no Python to launch": ({"launcher": ("srun",)}, [None, ENDED[1]]),
    "not launched": ({"launcher": ("srun", "-n")}, [None, GOOD, ENDED[0]]),
    "the launcher is gone": ({"launcher": ("srun",)}, [None, GOOD, GONE]),
}  # fmt: skip


def looked(changes: dict[str, Any], answers: list[Any]) -> Iterator[str]:
    """Yield what is asked of a target to see whether it is ready, and the steps of that."""
    left, lines, steps = [*answers], list[str](), list[ConnectionStep]()

    async def next_answer(*arguments: Any, **options: Any) -> Any:
        words = [*arguments[0][:2], *arguments[0][3:]] if arguments else []
        lines.append(f"{' '.join(words)} {options or ''}".strip() or "greet")
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        await asyncio.sleep(5 if answer == "slow" else 0)
        return answer

    link: Any = SimpleNamespace(
        connection=changed(BOX, **changes), greet=next_answer, run=next_answer
    )
    ssh_target._look(link, steps.append)
    yield from lines
    yield from map(step_line, steps)


def test_what_is_looked_at(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_target, "new_mark", lambda: "@:")
    monkeypatch.setattr(ssh_target, "keyring_problem", lambda: "no keyring")
    monkeypatch.setattr(ssh_target, "_PATIENCE_S", 0.4)
    recorded("ssh_looks", {name: "\n".join(looked(*case)) for name, case in LOOKED.items()})


def test_answers(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(
        "ssh_target",
        {"of the agent": "\n".join(asked(monkeypatch)), "of Python": "\n".join(judged())},
    )
