"""The files that a reader of the documentation has, by the names that pages give them."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

from dld_tui.core.model.document import samples
from tests.support import decoders, engine_files
from tests.support.report_files import make_report


def _classifier(path: Path) -> None:
    onnx.save(samples.demo_classifier(), path)


def _transformer(path: Path) -> None:
    onnx.save(samples.demo_transformer(), path)


def _changed(path: Path) -> None:
    """Write the classifier with another stride, a renamed node and one weight changed."""
    model = samples.demo_classifier()
    convolution = next(node for node in model.graph.node if node.op_type == "Conv")
    for attribute in convolution.attribute:
        if attribute.name == "strides":
            attribute.ints[:] = [1, 1]
    next(node for node in model.graph.node if node.op_type == "Relu").name = "act"
    onnx.save(model, path)


def _samples(path: Path) -> None:
    """Write eight inputs of the classifier."""
    path.mkdir()
    (given,) = samples.demo_classifier().graph.input
    dims = [one.dim_value or 1 for one in given.type.tensor_type.shape.dim]
    numbers = np.random.RandomState(0)
    for index in range(8):
        array = numbers.standard_normal(dims).astype(np.float32)
        np.save(path / f"{index}.npy", array)


def _decoder(path: Path) -> None:
    decoders.folder(path)


def _engine(path: Path) -> None:
    engine_files.write_engine(path.parent)


def _real_engine(path: Path) -> None:
    """Write the files of an engine of TREx's examples (tests/data/README.md) beside each other."""
    with tarfile.open(Path(__file__).parents[1] / "data" / "engines.tar.xz") as packed:
        members = packed.getmembers()
        (here,) = (
            m.name for m in members if m.name.endswith(f"A100/{_FOLDERS[path.name]}/{path.name}")
        )
        for member in members:
            if member.isfile() and Path(member.name).parent == Path(here).parent:
                content = packed.extractfile(member)
                assert content is not None
                (path.parent / Path(member.name).name).write_bytes(content.read())


def _report(path: Path) -> None:
    make_report(path)


_FOLDERS = {"resnet.onnx.engine.graph.json": "fp16", "resnet-qat.onnx.engine.graph.json": "qat"}
FILES: dict[str, Callable[[Path], None]] = {
    "model.onnx": _classifier,
    "changed.onnx": _changed,
    "transformer.onnx": _transformer,
    "samples": _samples,
    "decoder": _decoder,
    "tiny.engine.graph.json": _engine,
    **dict.fromkeys(_FOLDERS, _real_engine),
    "before.dldprof": _report,
    "after.dldprof": _report,
}
"""What writes each file or folder. Both models are those of `dld demo`."""
