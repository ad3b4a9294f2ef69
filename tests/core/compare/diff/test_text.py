"""The text of a comparison, and the text of one model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from onnx import numpy_helper

from dld_tui.core.compare.diff import diff_documents
from dld_tui.core.compare.diff.text import model_lines
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.diff_models import copy_of, graphs


def canonical(model: onnx.ModelProto, **options: bool) -> list[str]:
    return list(model_lines(Document(copy_of(model)), **options))


@settings(max_examples=60)
@given(graphs(), graphs())
def test_models_that_differ_have_other_canonical_text(
    first: onnx.ModelProto, second: onnx.ModelProto
) -> None:
    same = diff_documents(Document(copy_of(first)), Document(copy_of(second))).same
    assert same == (canonical(first) == canonical(second))


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 18])
def test_each_element_changes_the_canonical_text(count: int) -> None:
    model = models.parse(models.CHAIN)
    texts = []
    for changed in range(-1, count):
        values = np.arange(count, dtype=np.float32)
        if changed >= 0:
            values[changed] = -1
        del model.graph.initializer[:]
        model.graph.initializer.append(numpy_helper.from_array(values, "w"))
        texts.append("\n".join(canonical(model)))
    assert len(set(texts)) == count + 1
