"""Running a document with onnxruntime, for tests; they are skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.core.files.wire import splice
from dld_tui.core.model.document import Document, Node, Scope
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import models


def opened(folder: Path, text: str = models.CHAIN) -> Document:
    """Write the model of an ONNX text to a file, and open it."""
    return Document.open(models.write(folder, text))


def document_of(scope: Scope) -> Document:
    assert isinstance(scope.document, Document)
    return scope.document


def tensor_in(document: Document, name: str) -> Tensor:
    """Return an initializer of the main graph, which must be there."""
    tensor = document.main.initializer(name)
    assert tensor is not None
    return tensor


def type_in(document: Document, name: str) -> ValueType:
    """Return the type of a value of the main graph, which must be known."""
    known = document.main.value_type(name)
    assert known is not None
    return known


def node_in(document: Document, ref: str) -> Node:
    """Return a node of the main graph, which must be there."""
    node = document.main.find(ref)
    assert node is not None
    return node


def bytes_of(document: Document) -> bytes:
    """Return what saving a document would write."""
    pieces = splice(skeleton_bytes(document), document.blobs)
    return b"".join(p if isinstance(p, bytes) else p.read() for p in pieces)


def run(model: Document | bytes, **feeds: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    onnxruntime = pytest.importorskip("onnxruntime")
    onnxruntime.set_default_logger_severity(4)
    data = bytes_of(model) if isinstance(model, Document) else model
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))
