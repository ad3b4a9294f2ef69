from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.codec import decode, encode
from dld_tui.core.conversion.copies import copy_of, lift_constants
from dld_tui.core.conversion.request import ConversionRequest
from dld_tui.core.conversion.result import (
    ConversionResult,
    ModelFigures,
    summary_lines,
    write_result,
)
from dld_tui.core.conversion.storage import (
    HASH_KEY,
    content_digest,
    move_inline,
    move_to_external,
    restore_weights,
    strip_weights,
)
from dld_tui.core.errors import InputError
from dld_tui.core.events import Finished
from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.conversions import model_file


def finish(before: Document, after: Document, output: Path) -> dict[str, JSON]:
    last = [*write_result(before, after, output, ConversionResult)][-1]
    assert isinstance(last, Finished)
    found: dict[str, Any] = encode(last.result)
    return found


def test_to_a_data_file_and_back_gives_the_same_bytes(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    outside, inside = tmp_path / "outside.onnx", tmp_path / "inside.onnx"
    with closing(Document.open(path)) as document:
        made = move_to_external(document)
        with closing(made.document):
            result = finish(document, made.document, outside)
    assert (made.count, made.bytes) == (1, 16_000)
    assert (tmp_path / "outside.onnx.data").stat().st_size == 16_000
    lines = summary_lines(*(decode(ModelFigures, result[side]) for side in ("before", "after")))
    assert any("external" in line and "16 kB" in line for line in lines)
    assert numpy_helper.to_array(onnx.load(outside).graph.initializer[2])[7] == 7

    with closing(Document.open(outside)) as document:
        back = move_inline(document)
        with closing(back.document):
            finish(document, back.document, inside)
    assert inside.read_bytes() == path.read_bytes()


def test_a_data_file_may_have_a_name_and_small_weights_stay(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    with closing(Document.open(path)) as document:
        made = move_to_external(document, "w.bin", threshold=1)
        with closing(made.document):
            finish(document, made.document, tmp_path / "out.onnx")
    assert made.count == 1  # the lists may be shapes
    assert made.notes[0].startswith("2 lists of less than 1024 bytes stay in the model")
    assert (tmp_path / "w.bin").exists()


def test_weights_are_taken_out_with_their_hashes_and_put_back(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    bare, whole = tmp_path / "bare.onnx", tmp_path / "whole.onnx"
    with closing(Document.open(path)) as document:
        made = strip_weights(document)
        with closing(made.document):
            result = finish(document, made.document, bare)
    assert bare.stat().st_size < 2_000
    assert result["after"]["weight_bytes"] == 24  # type: ignore[index, call-overload]
    (entry,) = onnx.load(bare).graph.initializer[2].metadata_props
    assert entry.key == HASH_KEY
    assert len(entry.value) == 64

    with closing(Document.open(bare)) as document, closing(Document.open(path)) as source:
        back = restore_weights(document, source)
        with closing(back.document):
            finish(document, back.document, whole)
    assert whole.read_bytes() == path.read_bytes()


def test_other_values_are_refused_by_name_unless_they_are_wanted(tmp_path: Path) -> None:
    path, other = model_file(tmp_path), model_file(tmp_path, 2)
    bare = tmp_path / "bare.onnx"
    with closing(Document.open(path)) as document:
        made = strip_weights(document)
        with closing(made.document):
            finish(document, made.document, bare)
    with closing(Document.open(bare)) as document, closing(Document.open(other)) as source:
        with pytest.raises(InputError, match="'large' has other values"):
            restore_weights(document, source)
        made = restore_weights(document, source, any_values=True)
        made.document.close()
    assert made.count == 1


def test_a_weight_that_is_missing_or_of_another_shape_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "bare.onnx"
    with closing(Document.open(model_file(tmp_path))) as document:
        made = strip_weights(document)
        with closing(made.document):
            finish(document, made.document, bare)
    plain = models.write(tmp_path, models.CHAIN)
    with (
        closing(Document.open(bare)) as document,
        closing(Document.open(plain)) as source,
        pytest.raises(InputError, match="no weight 'large'"),
    ):
        restore_weights(document, source)


def test_a_request_names_model_and_output() -> None:
    request = ConversionRequest(Path("a"), Path("b"))
    assert (request.model, request.output) == (Path("a"), Path("b"))


def with_constant(folder: Path, scale: float = 1) -> Path:
    model = models.parse(models.CHAIN)
    proto = numpy_helper.from_array(np.arange(1_000, dtype=np.float32) * scale)
    node = onnx.helper.make_node("Constant", [], ["k"], "held", doc_string="why", value=proto)
    model.graph.node.insert(0, node)
    path = folder / f"held{scale:g}.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_weights_in_constant_nodes_are_taken_out_and_put_back(tmp_path: Path) -> None:
    path, bare, whole = with_constant(tmp_path), tmp_path / "bare.onnx", tmp_path / "whole.onnx"
    with closing(Document.open(path)) as document:
        made = strip_weights(document)
        with closing(made.document):
            finish(document, made.document, bare)
        none = strip_weights(document, threshold=5_000)
        none.document.close()
    assert (made.count, made.bytes, made.notes, none.count) == (1, 4_000, [], 0)
    held = onnx.load(bare).graph.node[0]
    assert held.doc_string == "why"
    assert held.attribute[0].t.metadata_props[0].key == HASH_KEY
    assert bare.stat().st_size < 1_000

    with closing(Document.open(bare)) as document, closing(Document.open(path)) as source:
        back = restore_weights(document, source)
        with closing(back.document):
            finish(document, back.document, whole)
    assert whole.read_bytes() == path.read_bytes()
    other = with_constant(tmp_path, 2)
    with (
        closing(Document.open(bare)) as document,
        closing(Document.open(other)) as source,
        pytest.raises(InputError, match="'k' has other values"),
    ):
        restore_weights(document, source)


def test_a_weight_comes_back_from_where_it_has_become_an_initializer(tmp_path: Path) -> None:
    path, bare = with_constant(tmp_path), tmp_path / "bare.onnx"
    with closing(Document.open(path)) as document:
        made = strip_weights(document)
        with closing(made.document):
            finish(document, made.document, bare)
        lifted = copy_of(document)
    with closing(Document.open(bare)) as document, closing(lifted):
        assert lift_constants(lifted) == 1
        back = restore_weights(document, lifted)
        back.document.close()
    assert back.count == 1


def test_external_values_of_a_constant_node_come_in(tmp_path: Path) -> None:
    path = with_constant(tmp_path)
    model = onnx.load(path)
    onnx.save_model(model, tmp_path / "out.onnx", save_as_external_data=True,
                    size_threshold=100, convert_attribute=True)  # fmt: skip
    with closing(Document.open(tmp_path / "out.onnx")) as document:
        made = move_inline(document)
        with closing(made.document):
            finish(document, made.document, tmp_path / "in.onnx")
    assert made.count == 1
    back = onnx.load(tmp_path / "in.onnx", load_external_data=False)
    assert numpy_helper.to_array(back.graph.node[0].attribute[0].t)[7] == 7


def test_values_of_constant_nodes_go_out_and_come_back(tmp_path: Path) -> None:
    path = with_constant(tmp_path)
    out, back = tmp_path / "out.onnx", tmp_path / "back.onnx"
    with (
        closing(Document.open(path)) as document,
        closing(move_to_external(document, threshold=1).document) as outside,
    ):
        finish(document, outside, out)
    node = next(n for n in onnx.load(out, load_external_data=False).graph.node if n.attribute)
    assert node.attribute[0].t.data_location == onnx.TensorProto.EXTERNAL
    with closing(Document.open(out)) as document, closing(move_inline(document).document) as inside:
        finish(document, inside, back)
    assert back.read_bytes() == path.read_bytes()
    with (
        closing(Document.open(out)) as one,
        closing(Document.open(path)) as two,
        closing(Document.open(with_constant(tmp_path, 2))) as other,
    ):
        assert content_digest(one) == content_digest(two) != content_digest(other)
