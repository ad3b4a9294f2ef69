"""Which rules of the library a model has places for."""

from __future__ import annotations

import onnx
import pytest

from dld_tui.core.checks.rewrites import rewrite_steps
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.shapes.inference import infer_types, store_types
from tests.core.model.rewrite.test_library import CASES, HEAD
from tests.support.models import parse


@pytest.mark.parametrize(
    "name",
    ["attention", "attention-onnxruntime", "layer-norm", "rms-norm", "shapes", "qdq-pooling"],
)
def test_a_rule_is_named_where_it_would_change_something(name: str) -> None:
    opset, body, _ = CASES[name]
    document = Document(parse(HEAD % opset + body))
    store_types(document, infer_types(onnx.ModelProto.FromString(
        parse(HEAD % opset + body).SerializeToString()), None)[0])  # fmt: skip
    named = {rule for step in rewrite_steps(document) for found in step for rule in found.rules}
    assert name in named
    document.apply(next(
        finding.fix for step in rewrite_steps(document) for finding in step
        if finding.rules == (name,) and finding.fix is not None
    ))  # fmt: skip
    left = {rule for step in rewrite_steps(document) for found in step for rule in found.rules}
    assert name not in left
