"""Optional third-party simplifiers, and our rules: on files, run by :mod:`.library_file`.

The process works in the folder of its input model, where external data is found.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

from dld_tui.core.codec import decode
from dld_tui.core.dataclass import dataclass

NEEDED = {
    "onnxsim": ("onnxsim",),
    "onnxslim": ("onnxslim",),
    "Polygraphy": ("polygraphy", "onnx_graphsurgeon", "onnxruntime"),
    "rules": (),
}
"""The modules that each needs."""
RULES = (
    "identity", "dropout", "no-ops", "casts", "cast-chains", "transposes", "reshapes", "unsqueezes",
    "concat", "expands", "clips", "conv-pads", "bias-of-zeros", "reshapes-of-matmul",
)  # fmt: skip
"""Rules that reduce the number of nodes without changing any result."""


def missing(name: str) -> list[str]:
    """Return the modules that a simplifier needs and that are not installed."""
    return [module for module in NEEDED[name] if importlib.util.find_spec(module) is None]


@dataclass(frozen=True)
class Options:
    """The options of a simplifier; see the request of ``convert_sanitize``."""

    by: str
    fold: bool
    threshold: int
    """Bytes."""
    passes: int | None
    shapes: bool
    inference: bool
    partitioning: str
    cleanup: bool
    toposort: bool


def main() -> None:
    """Simplify the model of the first argument; write the second; options are the third."""
    source, target, text = sys.argv[1:4]
    options = decode(Options, json.loads(text))
    os.chdir(Path(source).parent)
    simplify = {
        "Polygraphy": _polygraphy, "onnxslim": _onnxslim, "onnxsim": _onnxsim, "rules": _rules,
    }[options.by]  # fmt: skip
    simplify(source, target, options)


def _rules(source: str, target: str, options: Options) -> None:
    """Apply the rules of ``dld rewrite`` that reduce the number of nodes."""
    import onnx

    from dld_tui.core.model.document import Document
    from dld_tui.core.model.document.serialise import save, skeleton_bytes
    from dld_tui.core.model.edits import rewriting
    from dld_tui.core.model.rewrite.rule import rules_of, text_of_rules
    from dld_tui.core.model.shapes.inference import infer_types, store_types

    document = Document.open(Path(source))
    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    store_types(document, infer_types(model, Path(source))[0])
    names = [*RULES, "shapes"] if options.fold and options.shapes else RULES
    document.apply(rewriting.rewrite(rules=text_of_rules(rules_of(names))))
    save(document, Path(target))


def _polygraphy(source: str, target: str, options: Options) -> None:
    """Do what ``polygraphy surgeon sanitize`` does, without loading weights up front."""
    import onnx
    import onnx_graphsurgeon
    from polygraphy.backend.onnx import fold_constants

    # Polygraphy's command loads all weights, even with --ignore-external-data; its functions do
    # not.
    model = onnx.load(source, load_external_data=False)
    if options.fold:
        partitioning = options.partitioning
        model = fold_constants(
            model,
            num_passes=options.passes,
            do_shape_inference=options.inference,
            partitioning=None if partitioning == "none" else partitioning,
            fold_shapes=options.shapes,
            size_threshold=options.threshold,
            # ONNX Runtime's takes minutes for a detector (sympy), and folds no more.
            allow_onnxruntime_shape_inference=False,
        )
    if options.cleanup or options.toposort:
        graph = onnx_graphsurgeon.import_onnx(model)
        if options.cleanup:
            graph.cleanup()
        if options.toposort:
            graph.toposort()
        model = onnx_graphsurgeon.export_onnx(graph, do_type_check=False)
    onnx.save(model, target)


def _onnxslim(source: str, target: str, options: Options) -> None:
    import onnx
    import onnxslim

    skipped = [] if options.fold else ["constant_folding"]
    model = onnxslim.slim(
        onnx.load(source), skip_optimizations=skipped, size_threshold=options.threshold
    )
    _save(model, target)


def _onnxsim(source: str, target: str, options: Options) -> None:
    import onnx
    import onnxsim

    model, _ = onnxsim.simplify(
        onnx.load(source),
        check_n=0,
        skip_constant_folding=not options.fold,
        include_subgraph=True,
        tensor_size_threshold=f"{options.threshold}B",
    )
    _save(model, target)


_LARGEST_FILE = 2**31 - 2**20
"""Bytes that protobuf writes into one file, with some room."""


def _save(model: Any, target: str) -> None:
    import onnx

    if model.ByteSize() < _LARGEST_FILE:
        onnx.save(model, target)
    else:
        onnx.save(model, target, save_as_external_data=True, location=f"{Path(target).name}.data")
