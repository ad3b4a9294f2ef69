"""What tests ask of the ONNX Runtime that is installed."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
import pytest


def has_onnxruntime(minor: int) -> bool:
    """Tell whether ONNX Runtime is 1.`minor` or newer."""
    return tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= (1, minor)


def needs_onnxruntime(minor: int) -> pytest.MarkDecorator:
    """Return a mark that skips tests with an ONNX Runtime older than 1.`minor`."""
    version = onnxruntime.__version__
    return pytest.mark.skipif(
        not has_onnxruntime(minor),
        reason=f"it tells what ONNX Runtime 1.{minor} does, and {version} is installed",
    )


def session_of(model: onnx.ModelProto | Path) -> onnxruntime.InferenceSession:
    """Load a model with the default options, but for the log."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options)
