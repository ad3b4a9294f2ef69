"""The float16 converters of ONNX Runtime and of Polygraphy, which load the whole model."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from dld_tui.backends.conversion.library_file import by_library
from dld_tui.core.document.document import Document
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.events import Event
from dld_tui.core.types import JSON

_NEEDED = {
    "onnxruntime": ("onnxruntime",),
    "polygraphy": ("polygraphy", "onnx_graphsurgeon", "onnxconverter_common"),
}
_INSTALL = {
    "onnxruntime": "pip install 'dld-tui[cpu]'",
    "polygraphy": "pip install 'dld-tui[polygraphy]' onnxconverter-common",
}
_ONE_FILE = 1 << 30
"""Bytes of a model from which its weights go to a file of their own."""


def convert(
    document: Document,
    library: str,
    stack: contextlib.ExitStack,
    options: Mapping[str, JSON],
) -> Generator[Event, None, Document]:
    """Convert a model; see :func:`~dld_tui.backends.conversion.library_file.by_library`.

    Raises:
        UnavailableError: The library is not installed.
        UsageError: It has no such option.
    """
    missing = [name for name in _NEEDED[library] if importlib.util.find_spec(name) is None]
    if missing:
        raise UnavailableError(
            f"{' and '.join(missing)} not installed", hint=f"Install it with: {_INSTALL[library]}"
        )
    if library == "polygraphy" and (options["op_block"] or options["node_block"]):
        raise UsageError("Polygraphy's converter has no block lists", hint="Use another --library")
    result = yield from by_library(
        document, __name__, {"library": library, **options}, f"Converting with {library}", stack
    )
    return result


def main() -> None:
    """Convert the model of the first argument; write the second; options are the third."""
    source, target = (str(Path(argument).absolute()) for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)  # where ONNX Runtime leaves a file when it cannot infer all shapes
        try:
            _convert(source, target, json.loads(sys.argv[3]))
        finally:
            os.chdir(Path(target).parent)


def _convert(source: str, target: str, options: Mapping[str, Any]) -> None:
    import onnx

    model = onnx.load(source)
    if options["library"] == "onnxruntime":
        from onnxruntime.transformers.float16 import (
            DEFAULT_OP_BLOCK_LIST,
            convert_float_to_float16,
        )

        model = convert_float_to_float16(
            model,
            keep_io_types=options["keep_io_types"],
            op_block_list=[*DEFAULT_OP_BLOCK_LIST, *options["op_block"]],
            node_block_list=options["node_block"],
        )
    else:
        from polygraphy.backend.onnx import ConvertToFp16

        model = ConvertToFp16(model)()
    large = model.ByteSize() > _ONE_FILE
    onnx.save_model(
        model, target, save_as_external_data=large,
        location=f"{Path(target).name}.data" if large else None,
    )  # fmt: skip
