"""A machine with TensorRT and a GPU: the fakes stand where the program looks for them."""

from __future__ import annotations

from typing import Any

import pytest

from dld_tui.backends.tensorrt import cuda, library, outputs, profiling
from dld_tui.backends.tensorrt.library import use
from tests.support.fake_tensorrt import WEAKLY_TYPED, fake_tensorrt


def install(monkeypatch: pytest.MonkeyPatch, version: str = WEAKLY_TYPED) -> Any:
    """Install the fakes; return that of TensorRT, whose engines compute what the model does."""
    trt = fake_tensorrt(version)
    trt.fake.values = lambda name, value: value

    def opened(device: int | str = 0, spin: bool = False) -> Any:
        trt.fake.cuda.calls.append(f"open {device} spin={spin}")
        return trt.fake.cuda

    monkeypatch.setattr(library, "find_library", lambda choice: use(trt))
    for module in (cuda, outputs, profiling):
        monkeypatch.setattr(module, "Cuda", opened)
    return trt
