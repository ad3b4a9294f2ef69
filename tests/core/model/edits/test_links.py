"""A graph input gets the type of the value that it stands for, which is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import models
from tests.support.sessions import node_in, opened, type_in


def test_a_graph_input_is_made_for_a_terminal(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    with pytest.raises(EditError, match="type of the input 'b_input' is unknown"):
        document.apply("expose_input", scope=[], node="third", index=1)
    with pytest.raises(EditError, match="number of dimensions of the input 'b_input' is unknown"):
        document.apply("expose_input", scope=[], node="third", index=1, dtype="float32")
    asked: list[None] = []
    document.ask_types = lambda: asked.append(
        document.main.inferred.update({"b": ValueType("float32", (1, 4))})
    )
    document.apply("expose_input", scope=[], node="third", index=1)
    assert len(asked) == 1
    assert document.main.value_type("b_input") == ValueType("float32", (1, 4))
    assert document.main.inputs == ("x", "b_input")
    assert node_in(document, "third").inputs == ("b", "b_input")
    document.apply("set_value_type", scope=[], value="a", dtype="float32", dims=["N", 4])
    document.apply("expose_input", scope=[], node="second", index=0, name="fed")
    assert type_in(document, "fed").text == "float32[N, 4]"
