"""Rewrite rules on a file, run by :mod:`.library_file`: they may take long on a large model."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def main() -> None:
    """Apply the rules of the third argument to the model of the first; write the second."""
    source, target, names = sys.argv[1:4]
    rewrite_file(Path(source), Path(target), json.loads(names))


def rewrite_file(source: Path, target: Path, names: Sequence[str]) -> None:
    """Write a model with rules of ``dld rewrite`` applied, after inferring its types.

    Raises:
        DldError: A rule does not exist, or a file cannot be read or written.
    """
    import onnx

    from dld_tui.core.model.document import Document
    from dld_tui.core.model.document.serialise import save, skeleton_bytes
    from dld_tui.core.model.edits import rewriting
    from dld_tui.core.model.rewrite.rule import rules_of, text_of_rules
    from dld_tui.core.model.shapes.inference import infer_types, store_types

    document = Document.open(source)
    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    store_types(document, infer_types(model, source)[0])
    document.apply(rewriting.rewrite(rules=text_of_rules(rules_of(names))))
    save(document, target)
