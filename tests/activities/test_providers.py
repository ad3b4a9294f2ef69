"""What providers take: ONNX Runtime is asked where it has them, and tables are read elsewhere."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import onnx
import pytest

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.profile.onnxruntime import run as profile
from dld_tui.activities.providers import Request, run
from dld_tui.core.model.document.locations import nested_nodes
from dld_tui.core.model.operators.provider_tables import Cause, Support, tables
from dld_tui.core.report.provider_support import (
    Basis,
    ProvidersResult,
    ProviderSupport,
    support_lines,
    support_table,
)
from tests.support.activities import finished
from tests.support.models import PLAIN_BRANCHES, write
from tests.support.recorded import Recorded, fields_of, settled

pytest.importorskip("onnxruntime")
MODEL = """
<ir_version: 10, opset_import: ["" : 18, "f" : 1]>
m (float[N, 2] x) => (float[N, 2] y, float d)
<float[2, 2] w = {1, 2, 3, 4}, float[2] v = {1, 2}>
{
    a = f.Twice(x)
    b = MatMul(a, w)
    c = Add(b, v)
    d = ReduceSum <keepdims = 0> (b)
    y = Relu(c)
}
<domain: "f", opset_import: ["" : 18]>
Twice (p) => (q) { h = Add(p, p)  q = Neg(h) }
"""
DET = """
<ir_version: 10, opset_import: ["" : 18]>
m (float[2, 2] x) => (float y) { a = Relu(x)  y = Det(a) }
"""


def found(request: Request) -> ProvidersResult:
    result = finished(run(request))
    assert isinstance(result, ProvidersResult)
    return result


def of(result: ProvidersResult, name: str) -> ProviderSupport:
    return next(provider for provider in result.providers if provider.name == name)


Owners = dict[str, tuple[str, str]]
ASKED: dict[str, tuple[str, Owners, Owners]] = {
    "all": (MODEL, {}, {}),
    "some": (MODEL, {"MatMul": ("CUDA\x1b", ""), "Relu": ("CUDA", "it is small")}, {}),
    "parts of the provider": (MODEL, {"Neg": ("", ""), "Add": ("", "")}, {"new": ("CPU", "")}),
    "parts of others": (MODEL, {"Neg": ("", "")}, {"n": ("CUDA", ""), "m": ("Odd\x1b", "")}),
    "parts of both": (MODEL, {"Neg": ("", "")}, {"n": ("CUDA", ""), "m": ("CPU", ""),
                                                  "o": ("CPU", "")}),
    "nodes that are left out": (MODEL, {"Neg": ("", ""), "Relu": ("CUDA", "")}, {}),
    "branches": (PLAIN_BRANCHES, {"Neg": ("CUDA", "slow"), "If": ("", "")}, {"t": ("CUDA", "")}),
}  # fmt: skip


def test_what_is_told_of_an_installed_provider(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {}
    for name, (text, owners, added) in ASKED.items():

        def assignment(
            view: Path, *_: object, owners: Owners = owners, added: Owners = added
        ) -> Owners:
            model = onnx.load(view, load_external_data=False)
            nodes = list(nested_nodes(model.graph.node))
            found = {node.name: owners.get(node.op_type, ("CPU", "")) for node in nodes}
            return {node: owner for node, owner in found.items() if owner[0]} | added

        monkeypatch.setattr("dld_tui.backends.onnxruntime.assignment.assignment", assignment)
        monkeypatch.setattr("dld_tui.backends.onnxruntime.runtime.version", lambda: "1.2")
        result = found(Request(write(tmp_path, text), provider="CPU"))
        (cpu,) = result.providers
        about = fields_of(cpu).partition(", nodes=")[0]
        rows = [f"{len(support_table(result))} rows, weighed by {result.weighed}", about]
        texts[name] = "\n".join([*rows, *map(str, cpu.nodes), *support_lines(result)])
    recorded("providers_asked", {name: settled(text) for name, text in texts.items()})


def test_the_installed_provider_is_asked_and_others_go_by_their_tables(tmp_path: Path) -> None:
    result = found(Request(write(tmp_path, MODEL)))
    assert {provider.name for provider in result.providers} >= {one.name for one in tables()}
    cpu, qnn = of(result, "CPU"), of(result, "QNN")
    assert (cpu.basis, cpu.taken, cpu.total, cpu.partitions) == (Basis.ASKED, 6, 6, 1)
    assert (qnn.basis, qnn.taken) == (Basis.TABLE, 0)


def test_tables_agree_with_what_is_asked(tmp_path: Path) -> None:
    asked = of(found(Request(write(tmp_path, PLAIN_BRANCHES), provider="cpu")), "CPU")
    read = of(found(Request(write(tmp_path, PLAIN_BRANCHES), provider="CPU", tables=True)), "CPU")
    assert (asked.basis, read.basis) == (Basis.ASKED, Basis.TABLE)
    assert (asked.taken, asked.total) == (read.taken, read.total) == (6, 6)


def test_a_model_that_is_refused_goes_by_the_table_and_says_why(tmp_path: Path) -> None:
    text = PLAIN_BRANCHES.replace("Relu(x)", "acme.Thing(x)").replace("18]", '18, "acme" : 1]')
    cpu = of(found(Request(write(tmp_path, text))), "CPU")
    assert cpu.basis is Basis.TABLE
    assert "acme" in cpu.why
    assert [node.support for node in cpu.nodes if node.op_type == "Thing"] == [Support.NOT]


@pytest.mark.broad
def test_a_report_beside_the_model_gives_shares_of_the_time(tmp_path: Path) -> None:
    path = write(tmp_path, MODEL.replace("f.Twice", "Abs"))
    list(profile(Profile(path, output=path.with_suffix(".dldprof"), iterations=3)))
    result = found(Request(path, provider="QNN"))
    assert result.weighed == "time"
    assert sum(node.share or 0.0 for node in of(result, "QNN").nodes) == pytest.approx(1.0)


@pytest.mark.skipif(importlib.util.find_spec("tensorrt_rtx") is None, reason="no TensorRT-RTX")
def test_the_parser_of_an_installed_library_is_asked(tmp_path: Path) -> None:
    rtx = of(found(Request(write(tmp_path, DET), provider="TensorRT-RTX")), "NvTensorRTRTX")
    assert rtx.basis is Basis.PARSER
    assert rtx.version.startswith("TensorRT-RTX ")
    assert [(node.op_type, node.cause) for node in rtx.nodes] == [("Det", Cause.RUNTIME)]
    assert rtx.taken == 1
