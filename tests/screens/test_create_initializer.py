from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from dld_tui.core.params import from_json
from dld_tui.core.types import JSON
from dld_tui.screens.tensors.create_initializer import NewTensor, values_of
from dld_tui.screens.tensors.initializers import node_inputs
from tests.support import models
from tests.support.recorded import Recorded, settled
from tests.support.tensors import write_tensors

CASES: list[dict[str, JSON]] = [
    {}, {"dims": "2, 3"}, {"dims": "(1, 3)"}, {"dims": "1X3"}, {"dims": "scalar"},
    {"dims": "0"}, {"dims": "-1"}, {"dims": "n"},
    {"dtype": "string", "dims": "2 2"},
    {"fill": "values", "values": "[[1, 2], [3, 4.5]]"},
    {"fill": "values", "values": "[1, 2, 3, 4]", "dims": "2, 2", "dtype": "int8"},
    {"fill": "values", "values": "[1, 2, 3]", "dims": "2, 2"},
    {"fill": "values", "values": "['a', 'b']", "dtype": "string"},
    {"fill": "normal", "dims": "2", "mean": 1, "deviation": 0.5, "seed": 7},
    {"fill": "uniform", "dims": "2", "low": -1, "high": 0.5, "seed": 7},
    {"fill": "positive", "dims": "2", "seed": 7}, {"fill": "negative", "dims": "2", "seed": 7},
    {"fill": "positive", "dtype": "int8"}, {"fill": "negative", "dtype": "int8"},
    {"fill": "npy"}, {"fill": "npy", "file": "a.npy"},
    {"fill": "npy", "file": "a.npy", "dims": "4"}, {"fill": "npy", "file": "a.npy", "dims": "5"},
    {"fill": "npy", "file": "words.npy"}, {"fill": "npy", "file": "no.npy"},
    {"fill": "external"}, {"fill": "external", "file": "a.npy", "dims": "2, 2", "offset": 128},
    {"fill": "external", "file": "FOLDER/a.npy", "length": 8, "dtype": "int4"},
    {"fill": "external", "file": "../a.npy"},
]  # fmt: skip


def test_values_of_each_kind(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = Document.open(write_tensors(tmp_path))
    np.save("a.npy", np.array([[1.5, -2], [0, 4]], np.float32))
    np.save("words.npy", np.array(["a", "bc"]))

    def told(case: dict[str, JSON]) -> str:
        text = json.dumps({"name": "t", **case}).replace("FOLDER", str(tmp_path))
        try:
            made = values_of(document, from_json(NewTensor, json.loads(text)))
        except DldError as error:
            return f"{type(error).__name__}: {error}"
        return json.dumps(asdict(made), default=str)

    texts = {json.dumps(case): settled(told(case), tmp_path) for case in CASES}
    recorded("values_of_initializers", texts)


def test_inputs_that_may_take_a_value() -> None:
    """Those that there are, and one more of a node that takes it; also of nodes within."""
    main = Document(models.parse("""
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[4] x, bool c) => (float[4] y)
    {
        [none] k = Constant<value_float = 1.0>()
        [relu] a = Relu(x)
        [clip] b = Clip(a, k)
        [full] d = Clip(b, k, k)
        [join] e = Concat<axis = 0>(d, d)
        [own] f = Custom(e)
        [pick] y = If(c) <
            then_branch = then () => (float[4] t) { [inner] t = Neg(f) },
            else_branch = other () => (float[4] s) { [wide] x = Exp(f) [last] s = Clip(x) }>
    }
    """)).main  # fmt: skip

    def counts(value: str) -> dict[str, int]:
        return dict(Counter(node.name for node, _ in node_inputs(main, value)))

    found = counts("k")
    assert found == {
        "relu": 1, "clip": 3, "full": 3, "join": 3, "own": 1, "pick": 1, "inner": 1, "wide": 1,
        "last": 2,
    }  # fmt: skip
    assert found.keys() - counts("x").keys() == {"wide", "last"}, "another x hides it there"
    assert [at for node, at in node_inputs(main, "k") if node.name == "clip"] == [0, 1, 2]
