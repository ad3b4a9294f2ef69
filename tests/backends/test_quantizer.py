"""What the quantizer of ONNX Runtime gets, and what is mended of what it makes.

All of it is in quantizer.txt and quantization.txt.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from contextlib import closing, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

pytest.importorskip("onnxruntime")

from dld_tui.backends.conversion import quantization
from dld_tui.backends.conversion.quantizer import Quantizer
from dld_tui.core.codec import encode
from dld_tui.core.conversion.quantization_plan import QuantizationPlan
from dld_tui.core.conversion.request import QuantizationSettings
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.inputs.shapes import InputSpec
from tests.support import models
from tests.support.model_lines import changes
from tests.support.recorded import Recorded, settled
from tests.support.runtime import needs_onnxruntime

HEAD = '<ir_version: 10, opset_import: ["" : {}, "com.microsoft" : 1, "f" : 1]>\n'
NAMES = """g (float[N, 4] x, bool c, float given) => (float[N, 4] y, float[N, 4] x, float[4] w0)
<float[4, 4] w, float[4] w0, float[4] b, float[4] b1, float[4, 4] x_scale, float unit = {1},
 float given = {1}> {
  [one] a = Gemm(x, w, b) [one] d = Gemm<transB = 1>(a, w, b)
  e = MatMul(d, w) a_scale = MatMul(e, w) h_scale = Neg(a_scale) y_scale = MatMul(h_scale, x_scale)
  k = Constant<value_float = 2.0>() t = Mul(y_scale, k)
  z = If(c) <then_branch = yes () => (float[N, 4] p) { q = Relu(t) [one] p = MatMul(q, w) },
             else_branch = no () => (float[N, 4] r) { r = Add(t, x_scale) }>
  i = f.Twice(z) j = f.Twice(i) v = ai.onnx.Relu(j) y = Mul(v, given) }
<domain: "f", opset_import: ["" : 21]> Twice (u) => (s) { [sum] s = Add(u, u) }"""
CAPTURED = """g (float[N, 4] x, bool c) => (float[N, 4] y) <float[4, 4] w> {
  m = MatMul(x, w) r = ACTIVATION(m) n = MatMul(r, w)
  y = If(c) <then_branch = yes () => (float[N, 4] p) { p = Identity(r) },
             else_branch = no () => (float[N, 4] q) { q = Neg(n) }> }"""
DOMAINS = """g (float[N, 4] x, float[4, 4] given, float[1, 1, 4, 4] i, float[1, 1, 2, 2] k)
  => (float[N, 4] y, u) <float[4, 4] w, float[1, 1, 2, 2] l> {
  [gelu] a = com.microsoft.Gelu(x) [free] b = Gemm(a, given) [fine] d = Gemm(b, w)
  [taken] e = Conv(i, k) [conv] h = Conv(i, l) [standard] q = Attention<q_num_heads = 1,
   kv_num_heads = 1>(i, i, i) [contrib] s = com.microsoft.Attention<num_heads = 1>(i, w)
  [other] t = my.Op(d) [call] y = f.Once(t) u = Identity(h) }
<domain: "f", opset_import: ["" : 23]> Once (v) => (r) { r = MatMul(v, v) }"""
FLOATS = """net (int64[N, 4] ids, float[N, 4, 64] z, float[64, 64] given) => (float[N, 4, 8] logits)
<float[64, 64] w, float[8, 64] emb, float[2, 64, 64] cube, float[1, 64, 64] one, float[64] line,
 double[64, 64] wide, int64[2] rows = {-1, 64}> {
  e = Gather(emb, ids) [first] a = MatMul(e, w) [dense] f = Gemm<transB = 1>(z, w)
  [deep] d = MatMul(e, cube) [flat] l = MatMul(e, one) [line] m = MatMul(e, line)
  [given] n = MatMul(e, given) u = Unsqueeze(w, rows) v = Cast<to = 1>(u) [far] o = MatMul(e, v)
  p = Add(w, w) [sum] q = MatMul(e, p) [other] s = com.microsoft.MatMul(e, cube)
  [wide] r = MatMul(e, wide) [square] t = MatMul(a, a)
  h = Transpose<perm = [1, 0]>(emb) [head] b = MatMul(a, h) i = Mul(b, b) logits = Tanh(i) }"""
HEADS = """net (float[N, 8] x) => (float[N, 8] y, float[N, 8] logits, float[N, 8] z)
<float[8, 8] w, float[8, 8] lm_head, float k> {
  [a] y = MatMul(x, w) [b] p = MatMul(x, w) q = Div(p, k) logits = Cast<to = 1>(q)
  [c] r = MatMul(x, w) s = Relu(r) t = MatMul(s, lm_head) z = Neg(t) }"""
HALVES = """g (float16[4, 8] x) => (float[4, 8] y, bfloat16[8] z) <float16[8, 8] w, float[8, 8] v,
 bfloat16[8] h> { a = MatMul(x, w) b = Cast<to = 1>(a) y = MatMul(b, v) z = Neg(h) }"""
OLD = """g (float[1, 1, 2, 4] x) => (float[1, 1, 4, 6] y) <float[6] b, float[8, 6] w, float[2] no> {
  a = Upsample<mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]>(x) c = MatMul(a, w)
  y = Add(c, b) }"""
STATIC: dict[str, Any] = {"calibration": Path("c")}
DYNAMIC: dict[str, Any] = {"dynamic": True}
BLOCKS: dict[str, Any] = {"weights_only": True, "weights": "int4"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "names": (HEAD.format(21) + NAMES, STATIC),
    "names, dynamic": (HEAD.format(21) + NAMES, {**DYNAMIC, "exclude": ("one", "su*")}),
    "names, blocks": (HEAD.format(21) + NAMES, {**BLOCKS, "exclude": ("sum", "e")}),
    "a captured Relu": (HEAD.format(21) + CAPTURED.replace("ACTIVATION", "Relu"), STATIC),
    "a captured Neg": (HEAD.format(21) + CAPTURED.replace("ACTIVATION", "Neg"), STATIC),
    "domains": (HEAD.format(23) + DOMAINS, {**STATIC, "exclude": ("gelu",)}),
    "what has no blocks": (HEAD.format(21) + FLOATS, BLOCKS),
    "heads": (HEAD.format(21) + HEADS, BLOCKS),
    "heads that are asked for": (HEAD.format(21) + HEADS, {**BLOCKS, "lm_head": True}),
    "halves": (HEAD.format(18) + HALVES, STATIC),
    "halves, dynamic": (HEAD.format(19) + HALVES, DYNAMIC),
    "halves, of new operators": (HEAD.format(19) + HALVES, STATIC),
    "an old file": (HEAD.format(8) + OLD, DYNAMIC),
    "an old file, blocks": (HEAD.format(8) + OLD, BLOCKS),
    "a scale for each tensor": (HEAD.format(12) + CAPTURED.replace("ACTIVATION", "Clip"), STATIC),
    "16 bits": (HEAD.format(20) + HALVES, {**STATIC, "weights": "int16"}),
    "fp8": (HEAD.format(18) + HALVES, {**STATIC, "activations": "fp8", "runtime": "tensorrt"}),
}


def test_what_the_library_gets(recorded: Recorded, tmp_path: Path) -> None:
    found = {}
    for name, (text, settings) in CASES.items():
        path = models.write_weighted(tmp_path, text)
        with closing(Document.open(path)) as document:
            before = onnx.ModelProto.FromString(skeleton_bytes(document))
            with Quantizer(document, QuantizationSettings(**settings)) as quantizer:
                asked = asdict(quantizer._options("minmax", ["MatMul", "Conv"], ["kept"]))
                asked["ranges"] = len(Path(asked["ranges"]).stem)
                asked["inputs"] = [f"{one['name']} {one['dtype']}" for one in asked["inputs"]]
                after = onnx.ModelProto.FromString(skeleton_bytes(quantizer.prepared))
                lines = [*quantizer.notes, json.dumps(asked), *changes(before, after)]
        found[name] = settled("\n".join(lines), Path.cwd())
    recorded("quantizer", found)


FOLDED = """<ir_version: 10, opset_import: ["" : 18]>
g (float[N, 4] x, bool c, float[4, 4] given) => (float[N, 4] y, float[4, 4] wa)
<float scale = {0.5}, int8 zero = {1}, int8[4, 4] a, float[4, 4] w, float[4, 4] given,
 float[2] unused, float[4] bias> {
  wa = DequantizeLinear(a, scale, zero) [stored] xa = MatMul(x, wa)
  wt = Transpose<perm = [1, 0]>(w) ws = Mul(wt, scale) [turned] xb = MatMul(xa, ws)
  [again] xc = Gemm(xb, ws, bias) k = Constant<value_float = 2.0>() kk = Mul(k, scale)
  [plain] xd = MatMul(xc, w) wg = Neg(given) [taken] xe = MatMul(xd, wg)
  noise = RandomNormalLike(w) [random] xf = MatMul(xe, noise) wo = Neg(w) [left] xg = MatMul(xf, wo)
  draws = Bernoulli(w) [drawn] xi = MatMul(xg, draws)
  wi = If(c) <then_branch = yes () => (float[4, 4] p) { p = Neg(wt) },
              else_branch = no () => (float[4, 4] q) { q = Identity(w) }>
  [branch] xh = MatMul(xi, wi) [first] y = MatMul(wo, xh) }"""
ONCE = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N, 4] x, bool c) => (float[N, 4] y) <int8[4, 4] q, float s = {1}, int8[4, 4] own> {
  d = DequantizeLinear(q, s) a = MatMul(x, d) d = DequantizeLinear(q, s) b = MatMul(a, d)
  mine = DequantizeLinear(own, s)
  y = If(c) <
    then_branch = yes () => (float[N, 4] p) <int8[4, 4] inner = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
      12, 13, 14, 15, 16}> { e = DequantizeLinear(own, s) f = DequantizeLinear(inner, s)
      g = DequantizeLinear(b, s) r = MatMul(b, e) p = MatMul(r, f) },
    else_branch = no () => (float[N, 4] u) { d = DequantizeLinear(q, s) u = MatMul(b, d) }> }"""
SCALES = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (int8[N] y)
<float a_scale = {1}, float b_scale = {1}, float[2] c_scale = {1, 1}> {
  y = QuantizeLinear(x, a_scale) z = QuantizeLinear(x, b_scale) u = DequantizeLinear(y, c_scale)
}"""


def scaled(folder: Path, *marks: str) -> tuple[Path, bytes]:
    model = models.parse(SCALES)
    for tensor, value in zip(model.graph.initializer, (1.0, np.inf, np.nan), strict=True):
        array = np.full(tensor.dims, value, np.float32)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for mark in marks:
        model.metadata_props.add(key=mark, value="yes")
    path = folder / "scales.onnx"
    path.write_bytes(model.SerializeToString())
    return path, path.read_bytes()


def test_what_is_done_to_the_files_of_the_library(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = models.write_weighted(tmp_path, FOLDED), dict[str, str]()
    model, target = onnx.load(path), tmp_path / "out.onnx"
    for excluded in ([], ["left", "turned"]):
        made = quantization._with_folded_weights(path, target, excluded)
        assert made == tmp_path / "out.onnx.folded.onnx"
        found[f"weights that are folded but for {excluded}"] = "\n".join(
            changes(model, onnx.load(made))
        )
    every = [node.name for node in model.graph.node if node.name]
    assert quantization._with_folded_weights(path, target, every) == path
    weights = sum(tensor.ByteSize() for tensor in model.graph.initializer)
    for most, is_folded in ((weights - 1, False), (weights, True)):
        monkeypatch.setattr(quantization, "_MOST_FOLDED", most)
        assert (quantization._with_folded_weights(path, target, []) != path) is is_folded

    before, after = (onnx.load(models.write_weighted(tmp_path, ONCE)) for _ in range(2))
    after.graph.initializer.append(after.graph.initializer[0])
    quantization._dequantize_once(after.graph, {"mine"})
    found["weights that are dequantized once"] = "\n".join(changes(before, after))
    recorded("quantization", found)

    scales, content = scaled(tmp_path, "other")
    assert quantization._without_mark(str(scales)) == ["b"]
    assert scales.read_bytes() == content, "it is not written anew"
    scales, _ = scaled(tmp_path, "onnx.infer", "other")
    assert quantization._without_mark(str(scales)) == ["b"]
    assert [entry.key for entry in onnx.load(scales).metadata_props] == ["other"]


@pytest.mark.parametrize(
    ("model", "data", "is_large"),
    [(60, 30, False), (60, 40, False), (60, 41, True), (10, 101, True), (110, 0, True)],
)
def test_a_model_is_large_with_the_data_beside_it(
    model: int, data: int, is_large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantization, "_ONE_FILE", 100)
    for name, size in (("m.onnx", model), ("m.onnx.data", data), ("other.onnx", 200)):
        (tmp_path / name).write_bytes(bytes(size))
    assert quantization.is_large(tmp_path / "m.onnx") is is_large


@pytest.mark.parametrize(
    ("rows", "excluded", "blocks"),
    [(64, "", 0), (33, "", 0), (65, "", 3), (32, "n", 0), (16, "", 1)],
)
def test_blocks_of_k_quant_are_even(rows: int, excluded: str, blocks: int) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 18]> g (float[N, {rows}] x, float[3, 4] z)
    => (y, u) <float[{rows}, 4] w, float[3] v> {{ a = Add(x, v) u = MatMul(z, z)
    [n] y = MatMul(x, w) }}"""
    model = models.parse(text)
    model.graph.initializer.extend(
        [numpy_helper.from_array(np.zeros((rows, 4), np.float32), "w"),
         numpy_helper.from_array(np.zeros(3, np.float32), "v")]
    )  # fmt: skip
    options: Any = SimpleNamespace(block=32, exclude=[excluded])
    with pytest.raises(ValueError, match=f"'n' has {blocks}: ") if blocks else nullcontext():
        quantization._require_even_blocks(model, options)


def test_types_as_the_library_calls_them() -> None:
    names = ("int8", "uint8", "int16", "uint16", "int4", "uint4", "fp8")
    assert [quantization._type(name) for name in names] == [
        "QInt8", "QUInt8", "QInt16", "QUInt16", "QInt4", "QUInt4", "QFLOAT8E4M3FN"
    ]  # fmt: skip


class Library:
    """Stands for ONNX Runtime's quantizers: says how they are called, and copies the model."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        from onnxruntime.quantization import matmul_nbits_quantizer as blocks

        self.told: list[str] = []
        self.reads, self.problem = 0, ""
        self.folder = folder
        library = importlib.import_module("onnxruntime.quantization")
        called = importlib.import_module("onnxruntime.quantization.quantize")
        monkeypatch.setattr(called, "QDQQuantizer", called.QDQQuantizer)  # which is replaced
        monkeypatch.setattr(library, "quantize_dynamic", self.dynamic)
        monkeypatch.setattr(library, "quantize_static", self.static)
        for name in ("MatMulNBitsQuantizer", "KQuantWeightOnlyQuantConfig",
                     "DefaultWeightOnlyQuantConfig"):  # fmt: skip
            monkeypatch.setattr(blocks, name, partial(self.made, name))

    def note(self, name: str, **given: Any) -> None:
        self.told += [name, *(f"  {key}: {given[key]}" for key in sorted(given))]

    def dynamic(self, source: Any, target: str, **given: Any) -> None:
        self.note("dynamic", source=source, target=target, **given)
        shutil.copy(source, target)

    def static(
        self, source: str, target: str, reader: Any, *, calibration_cache_path: Any = None,
        **given: Any,
    ) -> None:  # fmt: skip
        self.note("static", source=source, target=target, ranges=calibration_cache_path, **given)
        for _ in range(self.reads):
            reader.get_next()
        if self.problem:
            raise ValueError(self.problem)
        shutil.copy(source, target)

    def made(self, name: str, model: Any = None, **given: Any) -> Any:
        self.note(name, **{key: getattr(one, "named", one) for key, one in given.items()})

        def save(path: str, outside: bool) -> None:
            self.note("save", outside=outside)
            self.told += changes(before, model)
            onnx.save(model, path)

        def process() -> None:
            self.note("process")
            _, product = model.graph.node.pop(0), model.graph.node.pop()
            product.input[1] = "d"  # and the weight of the other node is left
            twice = [onnx.helper.make_node("DequantizeLinear", ["w", "s"], ["d"])] * 2
            model.graph.node.extend([*twice, product])

        before = onnx.ModelProto()
        before.CopyFrom(model or before)
        saved = SimpleNamespace(model=model, save_model_to_file=save)
        return SimpleNamespace(model=saved, process=process, named=name)

    def run(self, monkeypatch: pytest.MonkeyPatch, source: Path, **changes: Any) -> str:
        """Run the process of the library; return how it was called, and what it said."""
        options = quantization.Options(**{
            "dynamic": False, "weights_only": False, "points_only": False,
            "runtime": "onnxruntime", "weights": "int8", "block": 32, "format": "matmulnbits",
            "rounding": "nearest", "activations": "uint8", "per_channel": True,
            "reduce_range": False, "keep_activations": True,
            "inputs": [InputSpec("x", "float32", ("N", 4))], "is_uniform": True,
            "calibration": str(self.folder / "sets"), "method": "minmax", "ranges": "",
            "ops": [], "exclude": [], **changes,
        })  # fmt: skip
        self.told = []
        target = self.folder / "out.onnx"
        argv = ["quantize", str(source), str(target), json.dumps(encode(options))]
        monkeypatch.setattr(sys, "argv", argv)
        try:
            quantization.main()
        except SystemExit as end:
            self.told.append(f"ended with {end.code}")
        left = sorted(path.name for path in self.folder.iterdir())
        for path in self.folder.glob("out.onnx*"):
            path.unlink()
        return settled("\n".join([*self.told, f"left {left}"]), self.folder)


def test_how_the_library_is_called(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        folder = tmp_path / "sets" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", np.full((2, 4), number, np.float32))
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[N, 4] x) => (float[N, 4] y)
    <float[4, 4] w, float[4, 4] v, float[4] s, int8 left = {1}> {
      t = Neg(v) a = MatMul(x, w) [n] y = MatMul(a, t) }"""
    source, library = models.write_weighted(tmp_path, text), Library(monkeypatch, tmp_path)
    found, ways = {}, dict[str, dict[str, Any]]()
    ways = {
        "dynamic": {"dynamic": True},
        "dynamic, chosen": {"dynamic": True, "ops": ["MatMul"], "exclude": ["n"],
                            "weights": "uint8", "reduce_range": True, "per_channel": False},
        "static": {"ranges": "r.json"},
        "static, chosen": {"ops": ["MatMul"], "exclude": ["n"], "method": "percentile",
                           "weights": "int16", "activations": "int16", "is_uniform": False},
        "static, uniform": {"method": "entropy", "runtime": "tensorrt", "activations": "fp8"},
        "static, few values removed": {"method": "distribution", "keep_activations": False},
        "blocks": {"weights_only": True, "weights": "int4"},
        "blocks, chosen": {"weights_only": True, "weights": "uint8", "format": "dequantize",
                           "ops": ["MatMul"], "exclude": ["n"], "block": 16},
        "blocks of k-quant": {"weights_only": True, "weights": "uint4", "rounding": "k-quant",
                              "block": 2},
        "uneven blocks": {"weights_only": True, "weights": "uint4", "rounding": "k-quant",
                          "block": 4},
    }  # fmt: skip
    for name, other in ways.items():
        found[name] = library.run(monkeypatch, source, **other)
    library.reads, library.problem = 2, "  no\n such  range"
    found["a set that is refused"] = library.run(monkeypatch, source)
    library.reads = 4
    found["sets that are refused together"] = library.run(monkeypatch, source)
    monkeypatch.setattr(quantization, "_ONE_FILE", 100)
    found["a large model"] = library.run(monkeypatch, source, dynamic=True)
    recorded("quantization_calls", found)


@needs_onnxruntime(31)
def test_what_would_be_quantized_and_with_which_ranges(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z)
    <float[4, 4] w, float[4] b, float[4, 4] v> {
      [gemm] a = Gemm(x, w, b) [relu] r = Relu(a) [product] p = MatMul(r, v) [soft] s = Softmax(p)
      [clip] c = Clip(p) [left] l = MatMul(c, w) [shape] t = Reshape(s, k) [sum] y = Add(t, l)
      [move] z = Transpose<perm = [0, 1]>(y) }"""
    source = models.write_weighted(tmp_path, text)
    model = onnx.load(source)
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1, 4]), "k"))
    source.write_bytes(model.SerializeToString())
    folder = tmp_path / "sets" / "test_data_set_0"
    folder.mkdir(parents=True)
    np.save(folder / "x.npy", np.array([[1, -2, 3, -4], [4, 3, -2, 1]], np.float32))
    with monkeypatch.context() as patched:
        library = Library(patched, tmp_path)
    called = importlib.import_module("onnxruntime.quantization.quantize")
    monkeypatch.setattr(called, "QDQQuantizer", called.QDQQuantizer)  # which is replaced
    found, ways = {}, dict[str, dict[str, Any]]()
    plan = quantization.plan_file(tmp_path / "out.onnx")
    real = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda path, **more: path != plan and real(path, **more))
    ways = {
        "without ranges": {"points_only": True, "exclude": ["left"]},
        "without ranges, for TensorRT": {"points_only": True, "runtime": "tensorrt",
                                         "ops": ["MatMul", "Softmax"], "per_channel": False},
        "with ranges": {"exclude": ["left"]},
    }  # fmt: skip
    for name, other in ways.items():
        assert library.run(monkeypatch, source, **other).startswith("left ")
        report = json.loads(plan.read_text())
        points = QuantizationPlan.from_json(report).points()
        lines = [json.dumps(rule) for rule in report["rules"]]
        for key, one in sorted(report["scales"].items()):
            scales = [f"{scale:.4g}" for scale in one["scale"]]
            lines.append(f"{key}: {scales} {one['zero_point']} {one['dtype']} {one['axis']}")
        lines.append(f"narrowed {report['narrowed']}, infinite {report['infinite']}")
        found[name] = "\n".join([*lines, *map(repr, points)])
    recorded("quantization_plan", found)
