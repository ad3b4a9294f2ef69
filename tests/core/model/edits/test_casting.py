"""Casts are planned from types alone, and made as an edit that can be undone."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.edits.casting import (
    Unchangeable,
    changes_of,
)
from dld_tui.core.model.shapes.inference import infer_types, store_types
from tests.support import models


def typed(folder: Path, text: str) -> Document:
    document = Document.open(models.write(folder, text))
    inferred, remarks = infer_types(onnx.ModelProto.FromString(skeleton_bytes(document)), None)
    assert remarks == []
    store_types(document, inferred)
    return document


def test_types_are_inferred_in_bodies_too(tmp_path: Path) -> None:
    document = typed(tmp_path, models.PLAIN_BRANCHES)
    body = document.scope_at(["choose:then_branch"])
    known = body.value_type("h")
    assert known is not None
    assert known.text == "float32[N, 4]"


@pytest.mark.parametrize(
    ("node", "precision", "text"),
    [
        ("y = TfIdfVectorizer<max_gram_length = 1, max_skip_count = 0, min_gram_length = 1,"
         ' mode = "TF", ngram_counts = [0], ngram_indexes = [0]>(x)', "fp16",
         "TfIdfVectorizer does not take float16"),
        ("y = Neg(x)", "int32", "it has no integer inputs"),
        ("y = Det(x)", "bf16", "Det takes bfloat16 from opset 22 on only"),
        ("y = Det(x)", "fp16", ""),
    ],
)  # fmt: skip
def test_what_an_operator_takes_decides(node: str, precision: str, text: str) -> None:
    model = models.parse(
        '<ir_version: 8, opset_import: ["" : 13]> g (float[2, 2] x) => (float[a, b] y)'
        f" {{ {node} }}"
    )
    found = changes_of(Document(model).main.nodes[0], precision)
    told = found.text if isinstance(found, Unchangeable) else found.note
    assert told.startswith(text) if text else not told
