"""The library: its examples run, and it is no larger than its page says."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from dld_tui import api
from dld_tui.core.errors import UsageError
from tests.support.models import write

MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[1,4] x) => (float[1,4] y) {
  [conv] t = Relu(x)
  [act] y = Relu(t)
}"""
PAGE = Path(__file__).parents[2] / "docs" / "library.md"


@pytest.mark.parametrize("name", ["models", "runs"])
def test_the_examples_are_true(name: str, tmp_path: Path) -> None:
    module = importlib.import_module(f"dld_tui.api.{name}")
    names = {"path": write(tmp_path, MODEL)}
    done = doctest.testmod(module, extraglobs=names, raise_on_error=False)
    assert (done.failed, done.attempted > 5) == (0, True)


def test_the_page_and_the_examples_of_the_page_are_true(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert {name for name in api.__all__ if f"`{name}`" not in text} == set()
    names = {name: getattr(api, name) for name in api.__all__}
    write(tmp_path, MODEL, "net.onnx")
    test = doctest.DocTestParser().get_doctest(
        text, names | {"folder": tmp_path}, "library.md", str(PAGE), 0
    )
    assert len(test.examples) > 5
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_plan_needs_no_model_library() -> None:
    code = "import sys; from dld_tui.api import Plan; print('onnx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert dir(api) != []
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = api.absent


def test_wrong_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the least is 1"):
        api.profile(write(tmp_path, MODEL), iterations=0)
