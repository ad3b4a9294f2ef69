"""The command that is made from an activity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from dld_tui.activities.registry import Activity, Command
from dld_tui.cli.jobs import activity
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event
from dld_tui.core.params import param


@dataclass(frozen=True)
class Request:
    model: Path = param(label="Model", help="The model.", positional=True)
    output: Path | None = param(
        None, label="Out", help="The result.", kind="output", beside=("{stem}.extra", "{stem}.log")
    )
    count: int = param(1, label="Count", help="How many.", minimum=1)


def run(request: Request) -> Iterator[Event]:
    raise AssertionError("the command must not run it in its own process")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return what was run and shown."""
    made: list[tuple[Any, ...]] = []

    def run_activity(*arguments: Any) -> dict[str, Any]:
        made.append(arguments)
        return {"answer": 42}

    monkeypatch.setattr(activity, "run_activity", run_activity)
    return made


def command(calls: list[tuple[Any, ...]]) -> click.Command:
    def show(result: dict[str, Any], as_json: bool) -> int:
        calls.append((result, as_json))
        return 7

    about = Command(("run", "example"), show=show)
    return activity.activity_command(
        Activity("example", "Example", "Do an example.", Request, run, about)
    )


def test_request_runs_and_its_result_is_shown(calls: list[tuple[Any, ...]]) -> None:
    arguments = ["m.onnx", "--count", "3", "--target", "there", "--json"]
    assert command(calls).main(arguments, standalone_mode=False) == 7
    assert calls == [("example", Request(Path("m.onnx"), count=3), "there"), ({"answer": 42}, True)]


@pytest.mark.parametrize(("name", "is_kept"), [("out.extra", True), ("out.log", False)])
def test_files_beside_an_output_are_not_overwritten_either(
    name: str, is_kept: bool, calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    (tmp_path / name).write_text("")
    arguments = ["m.onnx", "--output", str(tmp_path / "out.x")]
    if is_kept:
        with pytest.raises(UsageError, match="--force"):
            command(calls).main(arguments, standalone_mode=False)
        assert calls == []
        arguments.append("--force")
    assert command(calls).main(arguments, standalone_mode=False) == 7


def test_limits_are_checked_before_a_worker_starts() -> None:
    with pytest.raises(UsageError, match="the least is 1"):
        activity.run_activity("example", Request(Path("m"), count=0))
