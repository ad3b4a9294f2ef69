from __future__ import annotations

from pathlib import Path

import onnx

from dld_tui.core.checks import check
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import snapshot
from dld_tui.core.model.edits.late_types import late_types, untyped_terminals
from dld_tui.core.model.shapes.inference import forget_generated, infer_types, store_types
from dld_tui.core.model.shapes.staleness import Staleness
from tests.support import models
from tests.support.sessions import bytes_of


def infer(document: Document) -> None:
    parts = onnx.ModelProto.FromString(b"".join(snapshot(document)))
    store_types(document, infer_types(parts, None)[0])


def test_an_output_gets_its_type_when_that_becomes_known(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    document.apply("add_output", scope=[], name="b")
    document.apply("expose_input", scope=[], node="third", index=0, name="fed",
                   dtype="float32", dims=["N", 4])  # fmt: skip
    document.apply("move_terminal", scope=[], side="output", name="b", to=0)
    assert [name for _, name in untyped_terminals(document)] == ["b"], "once, though it was moved"
    assert late_types(document) == []
    infer(document)
    (found,) = late_types(document)
    assert found.arguments == {"scope": [], "value": "b", "dtype": "float32", "dims": ["N", 4]}
    document.apply(found)
    assert not untyped_terminals(document)


def test_a_wrong_type_of_an_output_is_repaired_by_the_inferred_one(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    staleness = Staleness(document)
    document.on_change.append(staleness.changed)
    document.apply("insert_node", scope=[], value="y", op_type="Shape")
    staleness.everything()
    infer(document)
    staleness.clear()
    (finding,) = [f for f in check(document) if f.rule == "type-conflict"]
    assert finding.fix is not None
    document.apply(finding.fix)
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)


def test_dimensions_that_onnx_has_named_are_forgotten_others_are_not() -> None:
    value = onnx.helper.make_tensor_value_info
    named = [value("a", 1, ["unk__0", 4]), value("b", 1, ["QQ"]), value("c", 1, [None])]
    graph = onnx.helper.make_graph([], "g", [], [], value_info=named)
    data = graph.SerializeToString().replace(b"QQ", b"\xff\xfe")  # no text
    graph = onnx.GraphProto.FromString(data)
    forget_generated(graph)
    assert [one.name for one in graph.value_info] == ["b", "c"]
