"""Each library that simplifies models, given its options."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.backends.conversion import simplifiers
from dld_tui.core.codec import encode
from tests.support import models
from tests.support.recorded import Recorded

OPTIONS = simplifiers.Options(
    by="", fold=True, threshold=1 << 20, passes=None, shapes=True, inference=True,
    partitioning="none", cleanup=True, toposort=True,
)  # fmt: skip
TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[2] x) => (float[2] y) <float[2] one = {1, 1}, float[2] two = {2, 2}> {
  three = Add(one, two)
  a = Identity(x)
  y = Mul(a, three)
}"""


@pytest.mark.parametrize("by", simplifiers.NEEDED)
@pytest.mark.parametrize("fold", [True, False])
def test_constants_are_folded_where_that_is_asked_for(
    by: str, fold: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if simplifiers.missing(by):
        pytest.skip(f"{by} is not installed")
    source, target = models.write(tmp_path, TEXT), tmp_path / "out.onnx"
    text = json.dumps(encode(replace(OPTIONS, by=by, fold=fold)))
    monkeypatch.setattr(sys, "argv", ["simplify", str(source), str(target), text])
    monkeypatch.chdir(tmp_path)
    simplifiers.main()
    made = [node.op_type for node in onnx.load(target).graph.node]
    assert {*made} - {"Identity"} == ({"Mul"} if fold else {"Add", "Mul"})


WAYS: dict[str, dict[str, Any]] = {
    "all": {},
    "no folding": {"fold": False},
    "other settings": {
        "passes": 3, "threshold": 5, "shapes": False, "inference": False,
        "partitioning": "recursive",
    },
    "no order": {"toposort": False},
    "nothing unused is removed": {"cleanup": False},
    "the graph as it is": {"toposort": False, "cleanup": False},
    "larger than a file holds": {},
}  # fmt: skip


def test_what_each_library_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: Recorded
) -> None:
    source, target = tmp_path / "source" / "m.onnx", tmp_path / "out" / "made.onnx"
    source.parent.mkdir()
    model, said = models.parse(TEXT), list[str]()
    for tensor in model.graph.initializer:  # only raw data of more than 1 kB go to a file
        tensor.CopyFrom(numpy_helper.from_array(np.ones(300, np.float32), tensor.name))
    onnx.save(model, source, save_as_external_data=True, location="w.bin", size_threshold=0)
    model = onnx.load(source)

    def shown(value: object) -> str:
        if not isinstance(value, onnx.ModelProto):
            return "graph" if isinstance(value, SimpleNamespace) else repr(value)
        places = {tensor.data_location for tensor in value.graph.initializer}
        return f"model[{places}]"

    def library(module: str, **functions: object) -> None:
        def noting(name: str, result: object) -> Callable[..., object]:
            def call(*given: object, **more: object) -> object:
                args = [*map(shown, given), *(f"{key}={shown(one)}" for key, one in more.items())]
                said.append(f"{module}.{name}({', '.join(args)}) in {Path.cwd().name}")
                return deepcopy(result)

            return call

        made = ModuleType(module)
        vars(made).update({name: noting(name, result) for name, result in functions.items()})
        monkeypatch.setitem(sys.modules, module, made)

    graph = SimpleNamespace(
        cleanup=lambda: said.append("cleanup"), toposort=lambda: said.append("toposort")
    )
    for name in ("polygraphy", "polygraphy.backend"):
        library(name)
    library("polygraphy.backend.onnx", fold_constants=model)
    library("onnx_graphsurgeon", import_onnx=graph, export_onnx=model)
    library("onnxslim", slim=model)
    library("onnxsim", simplify=(model, True))
    found = {}
    for by in ("Polygraphy", "onnxslim", "onnxsim"):
        for way, changes in WAYS.items():
            if way == "larger than a file holds":
                monkeypatch.setattr(simplifiers, "_LARGEST_FILE", 10)
            monkeypatch.chdir(tmp_path)
            target.parent.mkdir()
            text = json.dumps(encode(replace(OPTIONS, by=by, **changes)))
            monkeypatch.setattr(sys, "argv", ["simplify", str(source), str(target), text])
            said.clear()
            simplifiers.main()
            files = sorted(one.name for one in target.parent.iterdir())
            found[f"{by}, {way}"] = "\n".join([*said, f"files: {' '.join(files)}"])
            shutil.rmtree(target.parent)
        monkeypatch.setattr(simplifiers, "_LARGEST_FILE", 2**30)
    recorded("simplifier_calls", found)
