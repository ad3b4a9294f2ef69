"""Computes the outputs of a model without inputs, in the process of this module.

:mod:`dld_tui.core.model.edits.folding` starts it.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from dld_tui.backends.onnxruntime.limits import limit_trials, naming, with_node
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner
from dld_tui.core.errors import DldError
from dld_tui.core.model.document.document import Document
from dld_tui.core.types import JSON


def main() -> None:
    """Compute the outputs of the model of the first argument, in the folder of the second.

    The files ``0.bin``, ``1.bin``, … get the values as ``raw_data`` has them. The standard output
    gets ``{"values": [{"dtype", "dims"}]}``, with strings in hexadecimal as ``texts``, or
    ``{"error", "hint"}``.
    """
    try:
        answer: dict[str, JSON] = {"values": [*_values(Path(sys.argv[1]), Path(sys.argv[2]))]}
    except DldError as error:
        answer = {"error": with_node(error), "hint": error.hint}
    except MemoryError:
        answer = {"error": "it takes too much memory", "hint": None}
    sys.stdout.write(json.dumps(answer))


def _values(path: Path, folder: Path) -> Iterator[JSON]:
    settings = SessionSettings(quiet=True)
    with contextlib.closing(Document.open(path)) as document:
        limit_trials(document)
        with naming(document), TensorRunner(document, settings) as runner:
            constants = runner.session(document.main.outputs).constants()
            for number, (_, dtype, dims, values) in enumerate(constants):
                described: dict[str, JSON] = {"dtype": dtype, "dims": [*dims]}
                if isinstance(values, bytes):
                    (folder / f"{number}.bin").write_bytes(values)
                else:
                    described["texts"] = [text.hex() for text in values]
                yield described
