"""Precisions set on layers change the network that is built, in both worlds."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from dld_tui.backends.tensorrt.builder import configure
from dld_tui.backends.tensorrt.network import model_file, node_names, wanted_precisions
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import save
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support import models
from tests.support.fake_builds import fake_build
from tests.support.fake_tensorrt import fake_tensorrt
from tests.support.rtx import build, needs_rtx

BRANCHES = models.BRANCHES.replace("N, 4", "4, 4")
FUNCTIONS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (float[4, 4] x) => (float[4, 4] y) {
    [one] a = local.Outer(x)
    [act] y = Abs(a)
}
<opset_import: ["" : 18, "local" : 1], domain: "local">
Outer (i) => (o) { [mid] t = local.Inner(i) [act] o = Exp(t) }
<opset_import: ["" : 18], domain: "local">
Inner (i) => (o) { [act] o = Tanh(i) }
"""


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


def edited(folder: Path, text: str, *nodes: tuple[list[str], str], precision: str) -> Path:
    """Write a model in which nodes were given a precision, as the user interface does it."""
    path = models.write(folder, text)
    with contextlib.closing(Document.open(path)) as document:
        document.apply(
            "set_precision", nodes=[[[*scope], ref] for scope, ref in nodes], precision=precision
        )
        save(document, folder / "edited.onnx")
    return folder / "edited.onnx"


def halves(monkeypatch: pytest.MonkeyPatch, model: Path, **settings: Any) -> dict[str, int]:
    """Build with TensorRT-RTX; return the layers of its network with a Half output, by type."""
    found: dict[str, int] = {}

    def seen(builder: Any, made: Any, *others: Any) -> Any:
        for index in range(made.network.num_layers):
            layer = made.network.get_layer(index)
            kinds = [layer.get_output(at).dtype.name for at in range(layer.num_outputs)]
            if "HALF" in kinds and layer.type.name != "SHUFFLE":  # it fits a weight to a shape
                found[layer.type.name] = found.get(layer.type.name, 0) + 1
        return configure(builder, made, *others)

    monkeypatch.setattr("dld_tui.backends.tensorrt.builder.configure", seen)
    result, _ = build(model, model.with_suffix(".engine"), **settings)
    assert result["bytes"]
    return found


class TestWeak:
    def test_nodes_of_the_graph_and_of_a_branch(self, tmp_path: Path) -> None:
        trt = fake_tensorrt()
        nodes: list[tuple[list[str], str]] = [([], "pre"), (["choose:then_branch"], "inner")]
        path = edited(tmp_path, BRANCHES, *nodes, precision="fp16")
        _, network, _ = fake_build(trt, path, typing="obey", fp16=True)
        set_ones = {one.name: one.precision for one in network._layers if one.precision_is_set}
        assert set_ones == {"pre": trt.DataType.HALF, "inner": trt.DataType.HALF}

    def test_bodies_in_the_metadata_of_layers(self, tmp_path: Path) -> None:
        def names(text: str) -> set[str]:
            layer: Any = SimpleNamespace(name="ONNXTRT", metadata=f"[ONNX Layer: {text}]")
            return node_names(layer, {"Inner", "Outer"})

        scope = ["function local:Inner"]
        path = edited(tmp_path, FUNCTIONS, (scope, "act"), precision="bf16")
        with contextlib.closing(Document.open(path)) as document:
            wanted = wanted_precisions(document, BuildSettings(path))
            asked = wanted_precisions(document, BuildSettings(path, layer_precision=("act:fp16",)))
        assert wanted == {"act (Inner)": "bf16"}
        assert asked == dict.fromkeys(("act", "act (Inner)", "act (Outer)"), "fp16")
        assert set(wanted) & names("act | mid (Inner) | one (Outer)")
        assert not set(wanted) & (names("act") | names("act | one (Outer)"))
        assert "inner" in names("inner | yes (then_branch) | choose (If)")


def free(folder: Path) -> Path:
    """Write a model whose free dimensions are all called ``?``, as some exporters do."""
    model = models.parse(models.CHAIN.replace("[N, 4]", "[N, M]"))
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_param = "?"
    path = folder / "free.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_dimensions_without_a_name_are_not_tied(tmp_path: Path) -> None:
    path = free(tmp_path)
    before = path.read_bytes()
    _, _, config = fake_build(fake_tensorrt(), path, opt_shapes=("x:2x4",))
    (profile,) = config._profiles
    assert tuple(profile.get_shape("x")[1]) == (2, 4)
    assert path.read_bytes() == before
    with contextlib.closing(Document.open(path)) as document, model_file(document) as view:
        told = onnx.load(view)
    assert not [
        dim.dim_param
        for value in (*told.graph.input, *told.graph.output)
        for dim in value.type.tensor_type.shape.dim
        if dim.dim_param
    ]


class TestFreeDimensions:
    pytestmark = needs_rtx

    def test_two_sizes_of_a_placeholder(self, tmp_path: Path) -> None:
        result, _ = build(free(tmp_path), tmp_path / "m.engine", opt_shapes=("x:2x4",))
        assert result["bytes"]
        assert not list(tmp_path.glob(".dld-view-*"))


class TestStrong:
    pytestmark = needs_rtx

    @pytest.mark.parametrize(
        ("text", "scope", "node"),
        [
            (models.CHAIN.replace("[N, 4]", "[2, 4]"), [], "second"),
            (BRANCHES, ["choose:then_branch"], "inner"),
            (FUNCTIONS, ["function local:Inner"], "act"),  # Tanh alone, not the others called act
        ],
        ids=["main graph", "branch", "local function"],
    )
    def test_one_node_is_in_float16(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, scope: list[str],
        node: str,
    ) -> None:  # fmt: skip
        assert halves(monkeypatch, models.write(tmp_path, text, "plain.onnx")) == {}
        path = edited(tmp_path, text, (scope, node), precision="fp16")
        before = path.read_bytes()
        found = halves(monkeypatch, path)
        assert found.pop("CAST") >= 1  # into it; the cast back gives a Float
        assert sum(found.values()) == 1
        assert path.read_bytes() == before

    def test_a_pattern_of_the_command(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        path = models.write(tmp_path, models.CHAIN.replace("[N, 4]", "[2, 4]"))
        found = halves(monkeypatch, path, layer_precision=("*:fp16",))
        assert sum(count for kind, count in found.items() if kind != "CAST") == 4
