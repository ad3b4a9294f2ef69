"""Nodes replaced by one node of a plugin, or cut off with all behind them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import bytes_of


def test_plain_attributes_have_the_kind_of_the_operator_or_their_own(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, models.CHAIN))) as document:
        document.apply(
            "replace_nodes", nodes=["first"], op_type="Plugin", domain="trt", name="first",
            attributes={"f": 0.25, "i": 2, "s": "1", "fs": [1, 0.5], "is": [1, 2], "ss": ["a"]},
        )  # fmt: skip
        document.apply(
            "insert_node", value="a", op_type="LeakyRelu", name="leak", attributes={"alpha": 1}
        )
        document.apply("set_attributes", changes=[{"nodes": ["leak"], "attributes": {"alpha": 2}}])
        proto = document.main.find("first")
        leak = document.main.find("leak")
        assert proto is not None
        assert leak is not None
        found = {one.name: (one.kind, one.value) for one in proto.attributes()}
        assert found == {
            "f": ("float", 0.25), "i": ("int", 2), "s": ("string", b"1"),
            "fs": ("floats", [1, 0.5]), "is": ("ints", [1, 2]), "ss": ("strings", [b"a"]),
        }  # fmt: skip
        assert [(one.kind, one.value) for one in leak.attributes()] == [("float", 2.0)]
        before = bytes_of(document)
        wrong: tuple[JSON, ...] = (True, [], [1, "a"], {"value": 1}, None)
        for value in wrong:
            with pytest.raises(EditError, match="must have a kind and a value"):
                document.apply(
                    "replace_nodes", nodes=["second"], op_type="P", attributes={"k": value}
                )
        with pytest.raises(EditError, match="Kinds: int, float, string"):
            document.apply("set_attribute", node="first", attribute="k", kind="integer", value=1)
        assert bytes_of(document) == before


def test_nodes_of_the_main_graph_by_name_alone(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, models.CHAIN))) as document:
        document.apply("set_precision", nodes=["first", [[], "b"]], precision="fp16")
        marked = [node.name for node in document.main.nodes if node.proto.metadata_props]
        assert marked == ["first", "second"]
        with pytest.raises(EditError, match="names or \\[scope, node\\]"):
            document.apply("set_precision", nodes=[["first"]], precision="fp16")
        with pytest.raises(EditError, match=r"Known: .*prepend_processing"):
            document.apply("prepend", nodes=[])
