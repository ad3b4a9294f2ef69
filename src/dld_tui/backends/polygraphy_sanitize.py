"""What Polygraphy's ``surgeon sanitize`` does, on a file, run by :mod:`.library_file`.

External data is not loaded up front: the process works in the model's folder, where the values of
a tensor are found when one is really folded.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

INSTALL = "pip install 'dld-tui[polygraphy]'"
_NEEDED = ("polygraphy", "onnx_graphsurgeon", "onnxruntime")


def missing() -> list[str]:
    """Return the modules that are needed and not installed."""
    return [name for name in _NEEDED if importlib.util.find_spec(name) is None]


def main() -> None:
    """Sanitize the model of the first argument; write the second; options are the third."""
    import onnx
    import onnx_graphsurgeon
    from polygraphy.backend.onnx import fold_constants

    source, target, text = sys.argv[1:4]
    options = json.loads(text)
    # Polygraphy's command loads all weights, with --ignore-external-data too; its functions do not.
    model = onnx.load(source, load_external_data=False)
    os.chdir(Path(source).parent)
    if options["fold"]:
        partitioning = options["partitioning"]
        model = fold_constants(
            model,
            num_passes=options["passes"],
            do_shape_inference=options["inference"],
            partitioning=None if partitioning == "none" else partitioning,
            fold_shapes=options["shapes"],
            size_threshold=options["threshold"],
        )
    if options["cleanup"] or options["toposort"]:
        graph = onnx_graphsurgeon.import_onnx(model)
        if options["cleanup"]:
            graph.cleanup()
        if options["toposort"]:
            graph.toposort()
        model = onnx_graphsurgeon.export_onnx(graph, do_type_check=False)
    onnx.save(model, target)
