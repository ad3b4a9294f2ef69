from __future__ import annotations

import subprocess
import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import onnx
import pytest

from dld_tui.core.files import protos


def test_messages_are_those_of_onnx() -> None:
    assert protos.ModelProto is onnx.ModelProto
    assert protos.TensorProto is onnx.TensorProto


@pytest.mark.parametrize("first", ["dld_tui.core.files.protos", "onnx"])
def test_the_order_of_imports_does_not_matter(first: str) -> None:
    code = (
        f"import sys, {first}\n"
        "loaded = 'numpy' in sys.modules\n"
        "import onnx.helper\nfrom dld_tui.core.files import protos\n"
        "assert onnx.helper.make_node('Relu', ['x'], ['y']).__class__ is protos.NodeProto\n"
        "print(loaded)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(first == "onnx")


class SlowLoader:
    """Fills a module after another thread had time to ask for it."""

    def __init__(self) -> None:
        self.begun = threading.Event()

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the usual module be made."""

    def exec_module(self, module: ModuleType) -> None:
        self.begun.set()
        second.join(0.05)
        vars(module)["whole"] = True


second = threading.Thread()


def test_a_module_is_not_given_away_before_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    global second  # noqa: PLW0603  # the loader waits for it
    loader = SlowLoader()
    name = "onnx.slow_part"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.delitem(sys.modules, name)
    spec = ModuleSpec(name, cast("Any", loader))
    modules: dict[str, Any] = {}
    monkeypatch.setattr(protos, "sys", SimpleNamespace(modules=modules))
    package = SimpleNamespace(submodule_search_locations=["anywhere"])
    monkeypatch.setattr(protos, "find_spec", lambda name: package)
    monkeypatch.setattr(protos, "PathFinder", SimpleNamespace(find_spec=lambda full, folders: spec))
    monkeypatch.setattr(protos, "import_module", modules.__getitem__)
    found: list[bool] = []

    def ask() -> None:
        loader.begun.wait(5)
        found.append(hasattr(protos._part("slow_part"), "whole"))

    second = threading.Thread(target=ask)
    second.start()
    assert protos._part("slow_part").whole
    second.join()
    assert found == [True]
