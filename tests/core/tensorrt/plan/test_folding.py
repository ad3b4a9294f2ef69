"""Constants, NoOps and optimization profiles."""

from __future__ import annotations

from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer
from dld_tui.core.tensorrt.plan.layer_work import Gemm, gemm
from dld_tui.core.tensorrt.plan.layers import fold, profile_indices, read_layers
from dld_tui.core.types import JSON


def layers(*rows: tuple[str, str, list[str], list[str]]) -> list[EngineLayer]:
    """Return layers of (name, type, inputs, outputs)."""
    raw: list[JSON] = [
        {"Name": name, "LayerType": kind, "Inputs": _tensors(read), "Outputs": _tensors(written)}
        for name, kind, read, written in rows
    ]
    return read_layers(raw).layers


def _tensors(names: list[str]) -> JSON:
    return [{"Name": name, "Dimensions": [4], "Format/Datatype": "Half"} for name in names]


def ends(layer: EngineLayer) -> tuple[list[str], list[str]]:
    return [t.name for t in layer.inputs], [t.name for t in layer.outputs]


def test_readers_of_a_no_op_read_what_it_reads() -> None:
    chain = layers(
        ("a", "kgen", ["x"], ["t"]),
        ("n", "NoOp", ["t"], ["u"]),
        ("m", "NoOp", ["u"], ["v"]),
        ("b", "kgen", ["v", "t"], ["y"]),
    )
    folded = fold(chain, frozenset({"x", "y"}))
    assert [layer.index for layer in folded] == [0, 3]
    assert ends(folded[1]) == (["t", "t"], ["y"])


def test_no_ops_at_ends_of_several_inputs_and_in_circles() -> None:
    chain = layers(("a", "kgen", ["x"], ["t"]), ("n", "NoOp", ["t"], ["y"]))
    assert ends(fold(chain, frozenset({"x", "y"}))[0]) == (["x"], ["y"])
    chain = layers(("n", "NoOp", ["s", "t"], ["u"]), ("b", "kgen", ["u"], ["y"]))
    [reader] = fold(chain, frozenset())
    # It reads one tensor of its own dimensions, which is written in two parts.
    assert ends(reader) == (["u"], ["y"])
    assert reader.inputs[0].source_names == ("s", "t")
    chain = layers(
        ("n", "NoOp", ["u"], ["t"]), ("m", "NoOp", ["t"], ["u"]), ("b", "kgen", ["t"], ["y"])
    )
    assert len(fold(chain, frozenset())) == 1


def test_a_view_keeps_the_dimensions_format_and_bytes_of_its_reader() -> None:
    """As of a classifier whose NoOps drop two dimensions: it lost M, N, K and its bytes."""
    four, two = [32, 1000, 1, 1], [32, 1000]
    raw: list[JSON] = [
        {"Name": "n", "LayerType": "NoOp", "Inputs": [_of("s", [32, 512], "Int8")],
         "Outputs": [_of("view", [32, 512, 1, 1], "Thirty-two wide channel Int8")]},
        {"Name": "fc", "LayerType": "CaskConvolution", "ParameterType": "Convolution",
         "Kernel": [1, 1], "OutMaps": 1000, "Groups": 1,
         "Inputs": [_of("view", [32, 512, 1, 1], "Thirty-two wide channel Int8")],
         "Outputs": [_of("made", four, "Float")]},
        {"Name": "squeeze", "LayerType": "NoOp", "Inputs": [_of("made", four, "Float")],
         "Outputs": [_of("y", two, "Float")]},
    ]  # fmt: skip
    [fc] = fold(read_layers(raw).layers, frozenset({"s", "y"}))
    assert ends(fc) == (["s"], ["y"])
    assert (fc.inputs[0].dims, fc.outputs[0].dims) == ((32, 512, 1, 1), (32, 1000, 1, 1))
    assert fc.inputs[0].format == "Thirty-two wide channel Int8"
    assert gemm(fc) == Gemm(1, 32, 1000, 512)
    assert fc.io_bytes == 32 * 512 + 4 * 32 * 1000


def _of(name: str, dims: list[int], form: str) -> JSON:
    return {"Name": name, "Dimensions": list(dims), "Format/Datatype": form}


def test_optimization_profiles() -> None:
    found = layers(
        ("conv", "kgen", ["x"], ["t"]),
        ("__myl_a_myl5_0", "kgen", ["t"], ["y"]),
        ("conv [profile 1]", "kgen", ["x [profile 1]"], ["t [profile 1]"]),
        ("__myl_a_myl11_0", "kgen", [], []),
        ("__myl_b_myl11_1", "kgen", ["t [profile 1]"], []),
    )
    assert profile_indices(found) == [0, 0, 1, 1, 1]
