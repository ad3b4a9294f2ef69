from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from dld_tui.core.params import command_line, param, settings_of, text_of, value_of
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Request:
    model: Path = param(label="Model", help="M.", positional=True)
    output: Path | None = param(None, label="Out", help="O.", spellings=("--output", "-o"))
    shape: tuple[str, ...] = param((), label="Shapes", help="S.", spellings=("--shape",))
    iterations: int = param(10, label="N", help="N.", minimum=1, spellings=("--iterations",))
    seconds: float = param(0.5, label="S", help="S.", maximum=60, unit="s")
    fp16: bool = param(False, label="F", help="F.", spellings=("--fp16",))
    mode: str = param("fast", label="Mode", help="M.", choices=("fast", "slow"))


BY_NAME = {setting.name: setting for setting in settings_of(Request)}


@pytest.mark.parametrize(
    ("name", "text", "value", "problem"),
    [
        ("model", "", None, "needed"),
        ("model", " a b.onnx ", "a b.onnx", None),
        ("output", "", None, None),
        ("shape", "", [], None),
        ("shape", "x:1x3 'y z:2'", ["x:1x3", "y z:2"], None),
        ("shape", "'open", None, "No closing quotation"),
        ("iterations", "1,000", 1000, None),
        ("iterations", "", 10, None),
        ("iterations", "many", None, "many is not a whole number"),
        ("iterations", "0", 0, "0; the least is 1"),
        ("seconds", "61", 61.0, "61.0; the most is 60 s"),
        ("seconds", "x", None, "x is not a number"),
        ("mode", "odd", "odd", "'odd'; choose one of fast, slow"),
    ],
)
def test_typed_values(name: str, text: str, value: JSON, problem: str | None) -> None:
    assert value_of(BY_NAME[name], text) == (value, problem)


def test_values_become_text_that_is_read_back() -> None:
    shapes: list[JSON] = ["x:1x3", "a b"]
    assert value_of(BY_NAME["shape"], text_of(BY_NAME["shape"], shapes)) == (shapes, None)
    assert text_of(BY_NAME["output"], None) == ""
    assert [text_of(BY_NAME["output"], one) for one in (300.0, 0.5)] == ["300", "0.5"]


def test_a_home_folder_is_expanded() -> None:
    assert value_of(BY_NAME["model"], "~/m.onnx")[0] == str(Path.home() / "m.onnx")


def test_only_what_differs_is_in_the_command() -> None:
    values: dict[str, JSON] = {
        "model": "my model.onnx",
        "output": None,
        "shape": ["x:1x3", "y:2"],
        "iterations": 10,
        "seconds": 2.0,
        "fp16": True,
        "mode": "fast",
    }
    assert command_line(["dld", "profile"], Request, values) == (
        "dld profile 'my model.onnx' --shape x:1x3 --shape y:2 --seconds 2.0 --fp16"
    )
