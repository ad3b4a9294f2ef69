"""The messages of ONNX and the registry of its operators, without the rest of its package.

``import onnx`` takes a fifth of a second and 20 MB, most of it numpy, which neither the rows of a
model nor its check need. Use ``from dld_tui.core.files import protos as onnx`` where messages are
all that is used. They are the very classes of ``onnx``, whichever is imported first.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import LazyLoader, find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import IR_VERSION as IR_VERSION
    from onnx import AttributeProto as AttributeProto
    from onnx import FunctionProto as FunctionProto
    from onnx import GraphProto as GraphProto
    from onnx import ModelProto as ModelProto
    from onnx import NodeProto as NodeProto
    from onnx import OperatorSetIdProto as OperatorSetIdProto
    from onnx import SparseTensorProto as SparseTensorProto
    from onnx import StringStringEntryProto as StringStringEntryProto
    from onnx import TensorProto as TensorProto
    from onnx import TensorShapeProto as TensorShapeProto
    from onnx import TrainingInfoProto as TrainingInfoProto
    from onnx import TypeProto as TypeProto
    from onnx import ValueInfoProto as ValueInfoProto


_one_at_a_time = RLock()
"""Else a thread would find what another one is still loading."""


def defs() -> ModuleType:
    """Return the registry of operators; its schemas take 8 MB when the first one is asked for."""
    registry: ModuleType = _part("onnx_cpp2py_export").defs
    return registry


def _part(name: str) -> ModuleType:
    """Return a module of the package ``onnx``, such as ``onnx_cpp2py_export``.

    The package itself is not run; `import onnx` finds the module there and takes it, too.
    """
    with _one_at_a_time:
        return _loaded(f"onnx.{name}")


def _lazily(package: str, name: str) -> None:
    """Let a module be run when the first of its names is asked for."""
    full = f"{package}.{name}"
    spec = None if full in sys.modules else find_spec(full)
    if spec is not None and spec.loader is not None:
        spec.loader = LazyLoader(spec.loader)
        sys.modules[full] = module = module_from_spec(spec)
        setattr(sys.modules[package], name, module)  # else `from … import` would ask for names
        spec.loader.exec_module(module)


# Protobuf in Python, for messages that have no C: with the reader of its text format, 10 ms.
_lazily("google.protobuf.internal", "python_message")


def _loaded(full: str) -> ModuleType:
    package = None if "onnx" in sys.modules else find_spec("onnx")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec(full, folders) if folders else None
    if spec is None or spec.loader is None or full in sys.modules:
        return import_module(full)
    module = module_from_spec(spec)
    sys.modules[full] = module
    spec.loader.exec_module(module)
    return module


globals().update(
    {
        name: it
        for name, it in vars(_part("onnx_ml_pb2")).items()
        if name.endswith("Proto") or name == "IR_VERSION"
    }
)
