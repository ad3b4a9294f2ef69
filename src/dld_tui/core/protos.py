"""The messages of ONNX, without the rest of its package.

``import onnx`` takes a fifth of a second and 20 MB, most of it numpy and operator schemas, which
neither the first rows of a model nor ``dld inspect`` need. Use ``from dld_tui.core import protos as
onnx`` where messages are all that is used. They are the very classes of ``onnx``, whichever is
imported first.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_MESSAGES = "onnx.onnx_ml_pb2"


def _messages() -> ModuleType:
    """Return the generated module, without running the package that it is in."""
    package = None if "onnx" in sys.modules else find_spec("onnx")
    file = Path(package.origin or "").with_name("onnx_ml_pb2.py") if package else None
    spec = spec_from_file_location(_MESSAGES, file) if file and file.is_file() else None
    if spec is None or spec.loader is None or _MESSAGES in sys.modules:
        return import_module(_MESSAGES)
    module = module_from_spec(spec)
    # `import onnx` finds it there, and so makes no messages of its own.
    sys.modules[_MESSAGES] = module
    spec.loader.exec_module(module)
    return module


globals().update({name: it for name, it in vars(_messages()).items() if name.endswith("Proto")})
