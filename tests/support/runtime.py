"""What tests ask of the ONNX Runtime that is installed."""

from __future__ import annotations

import onnxruntime
import pytest


def needs_onnxruntime(minor: int) -> pytest.MarkDecorator:
    """Return a mark that skips tests with an ONNX Runtime older than 1.`minor`."""
    version = onnxruntime.__version__
    return pytest.mark.skipif(
        tuple(map(int, version.split(".")[:2])) < (1, minor),
        reason=f"it tells what ONNX Runtime 1.{minor} does, and {version} is installed",
    )
