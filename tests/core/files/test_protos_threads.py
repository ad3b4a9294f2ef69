"""Two threads that ask for the registry of operators at once."""

from __future__ import annotations

import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from dld_tui.core.files import protos


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
