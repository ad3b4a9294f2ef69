"""Weights move out, in, away and back: the same bytes, or a reason."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.conversion.copies import copy_of, lift_constants
from dld_tui.core.conversion.result import ConversionResult, summary_lines, write_result
from dld_tui.core.conversion.storage import (
    HASH_KEY,
    content_digest,
    move_inline,
    move_to_external,
    restore_weights,
    strip_weights,
)
from dld_tui.core.errors import InputError, SaveError
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.activities import finished
from tests.support.conversions import model_file


def with_constant(folder: Path, scale: float = 1) -> Path:
    model = models.parse(models.CHAIN)
    proto = numpy_helper.from_array(np.arange(1_000, dtype=np.float32) * scale)
    node = onnx.helper.make_node("Constant", [], ["k"], "held", doc_string="why", value=proto)
    model.graph.node.insert(0, node)
    path = folder / f"held{scale:g}.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def moved(
    path: Path, output: str, move: Callable[..., Any], *given: Any, **more: Any
) -> tuple[Any, ConversionResult]:
    """Write the model of a path with its weights moved; return what was made, and the result."""
    with closing(Document.open(path)) as document:
        made = move(document, *given, **more)
        with closing(made.document):
            to = path.with_name(output)
            to.unlink(missing_ok=True)
            return made, finished(write_result(document, made.document, to, ConversionResult))


def restored(bare: Path, source: Path, **more: Any) -> int:
    """Write "whole.onnx" of a model without weights; return how many came back."""
    with closing(Document.open(source)) as document:
        return int(moved(bare, "whole.onnx", restore_weights, document, **more)[0].count)


def test_to_a_data_file_and_back_gives_the_same_bytes(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    made, result = moved(path, "out.onnx", move_to_external)
    assert (made.count, made.bytes) == (1, 16_000)
    assert (tmp_path / "out.onnx.data").stat().st_size == 16_000
    lines = summary_lines(result.before, result.after)
    assert any("external" in line and "16 kB" in line for line in lines)
    assert numpy_helper.to_array(onnx.load(tmp_path / "out.onnx").graph.initializer[2])[7] == 7
    moved(tmp_path / "out.onnx", "in.onnx", move_inline)
    assert (tmp_path / "in.onnx").read_bytes() == path.read_bytes()

    made, _ = moved(path, "named.onnx", move_to_external, "w.bin", threshold=1)
    assert made.count == 1  # the lists may be shapes
    assert made.notes[0].startswith("2 lists of less than 1024 bytes stay in the model")
    assert (tmp_path / "w.bin").exists()


def test_data_of_the_model_that_was_there_is_removed_and_its_own_is_not_written_over(
    tmp_path: Path,
) -> None:
    path, out = model_file(tmp_path), tmp_path / "out.onnx"
    moved(path, "out.onnx", move_to_external)
    data = tmp_path / "out.onnx.data"
    with closing(Document.open(out)) as document:
        with pytest.raises(SaveError, match=r"it holds weights of out\.onnx") as caught:
            finished(write_result(document, document, data, ConversionResult))
        assert (caught.value.where, caught.value.hint) == (str(data), "Give another path")
    for remarks in (["out.onnx.data is removed: only the former model used it"], []):
        with (
            closing(Document.open(out)) as document,
            closing(move_inline(document).document) as made,
        ):
            result = finished(write_result(document, made, out, ConversionResult, ["n"]))
        assert (result.remarks, result.notes, data.exists()) == (remarks, ["n"], False)
        assert out.read_bytes() == path.read_bytes()


def test_weights_are_taken_out_with_their_hashes_and_put_back(tmp_path: Path) -> None:
    path, other, bare = model_file(tmp_path), model_file(tmp_path, 2), tmp_path / "bare.onnx"
    _, result = moved(path, "bare.onnx", strip_weights)
    assert bare.stat().st_size < 2_000
    assert result.after.weight_bytes == 24
    (entry,) = onnx.load(bare).graph.initializer[2].metadata_props
    assert (entry.key, len(entry.value)) == (HASH_KEY, 64)
    restored(bare, path)
    assert (tmp_path / "whole.onnx").read_bytes() == path.read_bytes()

    with pytest.raises(InputError, match="'large' has other values"):
        restored(bare, other)
    assert restored(bare, other, any_values=True) == 1
    with pytest.raises(InputError, match="no weight 'large'"):
        restored(bare, models.write(tmp_path, models.CHAIN))


def test_weights_in_constant_nodes_are_taken_out_and_put_back(tmp_path: Path) -> None:
    path, bare = with_constant(tmp_path), tmp_path / "bare.onnx"
    assert moved(path, "bare.onnx", strip_weights, threshold=5_000)[0].count == 0
    made, _ = moved(path, "bare.onnx", strip_weights)
    assert (made.count, made.bytes, made.notes) == (1, 4_000, [])
    held = onnx.load(bare).graph.node[0]
    assert (held.doc_string, held.attribute[0].t.metadata_props[0].key) == ("why", HASH_KEY)
    assert bare.stat().st_size < 1_000
    restored(bare, path)
    assert (tmp_path / "whole.onnx").read_bytes() == path.read_bytes()
    with pytest.raises(InputError, match="'k' has other values"):
        restored(bare, with_constant(tmp_path, 2))
    with closing(Document.open(path)) as document, closing(copy_of(document)) as lifted:
        assert lift_constants(lifted) == 1  # it has become an initializer
        assert moved(bare, "whole.onnx", restore_weights, lifted)[0].count == 1


def test_values_of_constant_nodes_go_out_and_come_back(tmp_path: Path) -> None:
    path, out = with_constant(tmp_path), tmp_path / "out.onnx"
    moved(path, "out.onnx", move_to_external, threshold=1)
    node = next(n for n in onnx.load(out, load_external_data=False).graph.node if n.attribute)
    assert node.attribute[0].t.data_location == onnx.TensorProto.EXTERNAL
    assert moved(out, "back.onnx", move_inline)[0].count == 1
    assert (tmp_path / "back.onnx").read_bytes() == path.read_bytes()
    with (
        closing(Document.open(out)) as one,
        closing(Document.open(path)) as two,
        closing(Document.open(with_constant(tmp_path, 2))) as other,
    ):
        assert content_digest(one) == content_digest(two) != content_digest(other)
