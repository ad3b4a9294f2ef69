"""What tests ask of the ONNX Runtime that is installed."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
import pytest


def needs_onnxruntime(minor: int) -> pytest.MarkDecorator:
    """Return a mark that skips tests with an ONNX Runtime older than 1.`minor`."""
    version = onnxruntime.__version__
    return pytest.mark.skipif(
        tuple(map(int, version.split(".")[:2])) < (1, minor),
        reason=f"it tells what ONNX Runtime 1.{minor} does, and {version} is installed",
    )


def session_of(model: onnx.ModelProto | Path) -> onnxruntime.InferenceSession:
    """Load a model with the default options, but for the log."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options)
