"""What requests refuse before anything is opened, and the edits that they stand for."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import registry
from dld_tui.core.errors import DldError
from tests.support import models
from tests.support.recorded import Recorded

M, E, D = Path("m.onnx"), Path("e.engine"), Path("data")
HERE: dict[str, Any] = {"tolerance": ("atol=1e-3", "y:snr=30")}
CASES: dict[str, list[dict[str, Any]]] = {
    "convert_fp16": [
        {"tolerance": ("near",)}, {"repair": True}, {"repair": True, "values": "never"},
        {"repair": True, "verify": False}, {"repair": True, "limit": 0.0}, {"limit": 0.0},
        {"repair": True, "library": "polygraphy"}, {"library": "onnxruntime"},
    ],
    "convert_tensors": [
        {"to": "float16"}, {"to": "float16", "list_only": True, "output": None},
        {"to": "float16", "output": None}, {"to": "float17"}, {"to": "float16", "types": ("blob",)},
        {"to": "float16", "kinds": ("list", "tag", "blob")}, {"to": "int8", "tolerance": ("x",)},
    ],
    "convert_precisions": [{"output": None}, {"output": None, "preview": True}, {},
                           {"tolerance": ("x",)}],
    "convert_shape": [{"dim": ()}, {"dim": ("N=1",)}, {"dim": ("N=1",), "tolerance": ("x",)}],
    "convert_restore": [{}, {"weights": D}, {"weights": D, "tolerance": ("x",)}],
    "convert_clean": [
        {}, {"sort": True}, {"sort": True, "tolerance": ("x",)},
        {name: True for name in ("constants_to_initializers", "share_weights", "clear_docs")},
        {name: True for name in ("initializers_to_constants", "weights_off_inputs",
                                 "remove_unused", "clear_shapes")},
    ],
    "convert_io": [
        {}, {"integers": "int32"}, {"integers": "int64", "floats": "uint8", "side": "both"},
        {"floats": "float32", "images": "nhwc"}, {"type": ("x=int8", "x=int32")},
        {"floats": "bfloat16", "type": ("x=int8", "a=b=c")},
        {"layout": ("x=0, 2,1", "y=nchw", "z=0,x")}, {"type": ("x",)}, {"type": ("=int8",)},
        {"layout": ("x=",)}, {"images": "nchw", "tolerance": ("x",)},
    ],
    "convert_prepend": [
        {}, {"input": "x", "dtype": "keep", "normalize": "unit", "bgr": True, "layout": "nhwc"},
        {"resize": "8", "crop": "4x6", "antialias": True}, {"resize": " 8 X 16", "crop": " "},
        {"resize": "8,16", "mean": "0.5, 1/4,3", "std": "1,2", "scale": "1/255,7"},
        {"resize": "1.5"}, {"crop": "ax2"}, {"scale": "1/0"}, {"mean": "1x2"}, {"std": "1,,2"},
        {"tolerance": ("x",)},
    ],
    "convert_merge": [
        {"others": ()}, {"others": (D,)}, {"others": (D, E), "map": ("y=x",), "prefix": ("p", "q")},
        {"others": (D,), "map": ("=x",)}, {"others": (D,), "map": ("y=",)},
        {"others": (D,), "map": ("y",)}, {"others": (D,), "map": ("y=x", "z=x")},
        {"others": (D,), "keep": ("y", "z=w")}, {"others": (D,), "keep": ("y", "y=w")},
        {"others": (D,), "tolerance": ("x",)},
        {"others": (Path("b.onnx"),), "map": ("a=b=c",)},
        {"others": (Path("b.onnx"), Path("c.onnx")), "map": ("a=b=c", "q=d")},
        {"others": (Path("c.onnx"),), "map": ("a=b=c",), "keep": ("a=b=new", "e=f=g")},
    ],
    "convert_quantize": [
        {}, {"calibration": D}, {"dynamic": True}, {"dynamic": True, "output": None},
        {"list_only": True, "output": None}, {"weights_only": True},
        {"weights_only": True, "dynamic": True}, {"weights_only": True, "weights": "int16"},
        {"dynamic": True, "lm_head": True}, {"dynamic": True, "rounding": "k-quant"},
        {"calibration": D, "format": "dequantize"}, {"list_only": True, "dynamic": True},
        {"list_only": True, "weights_only": True, "weights": "int4"},
        *({"weights_only": True, "rounding": "k-quant", "weights": weights, "format": stored}
          for weights in ("int4", "uint4") for stored in ("auto", "dequantize", "matmulnbits")),
        *({"runtime": "tensorrt", "weights": weights, "activations": others, **way}
          for weights, others in (("int8", "int8"), ("int8", "uint8"), ("fp8", "fp8"),
                                  ("int4", "int8"), ("uint4", "uint8"))
          for way in ({"calibration": D}, {"weights_only": True}, {"dynamic": True},
                      {"weights_only": True, "format": "matmulnbits"})),
        *({"calibration": D, name: "fp8", "method": "minmax"}
          for name in ("weights", "activations")),
        {"calibration": D, "weights": "fp8"}, {"dynamic": True, "repair": True, "values": "never"},
    ],
    "score": [{"dataset": D}, {"dataset": D, "most_loss": 0.0},
              {"dataset": D, "most_loss": 0.0, "against": E}],
    "search_precision": [
        {}, HERE, {"tolerance": ("cosine=x",)}, {"fp16": True}, {"bf16": True}, {"int8": True},
        {"precision": "int8"}, {"precision": "int8", "calibration": D}, {"calibration": D},
        {"precision": "int8", "calibration": D, "backend": "tensorrt"},
        {"precision": "int8", "calibration": D, "provider": "CUDA"}, {"optimization_level": 3},
        {"optimization_level": 3, "backend": "tensorrt"},
    ],
    "accuracy": [
        HERE, {"against": D, "tolerance": ("near",)}, {"against": D}, {"fp16": True},
        {"against": D, "tf32": False}, {"model": E}, {"model": E, "against": D},
        {"model": E, "against": D, "tensors": True}, {"model": E, "against": D, "fp16": True},
        {"model": E, "against": D, "optimization": "all"}, {"against": E, "tf32": False},
        {"against": E, "round": "fp16"}, {"against": E, "against_backend": "onnxruntime"},
        {"against_backend": "tensorrt", "against_provider": "CUDA"},
        {"against_backend": "tensorrt", "fp16": True}, {"model": E, "against": E, "round": "fp16"},
        {"against_backend": "tensorrt", "provider_option": ("a=1",)},
        {"against_backend": "tensorrt", "against_optimization": "all"},
        {"backend": "tensorrt", "provider": "CUDA"}, {"backend": "tensorrt", "against": E},
        {"backend": "tensorrt", "against": E, "fp16": True}, {"provider": "CUDA", "against": D},
    ],
    "tactics": [{}, {"tolerance": ("snr=x",)}, {"no_timing_cache": True}, *(
        {name: D if name != "error_on_cache_miss" else True} for name in (
            "tactic_replay", "save_tactics", "timing_cache", "error_on_cache_miss"))],
    "tune": [
        {}, {"batch": ("2",)}, {"inputs": D}, {"batch": ("2",), "inputs": D}, {"dataset": D},
        {"dataset": D, "most_loss": 0.0}, {"labels": D}, {"most_loss": 0.0}, {"metric": "f1"},
        {"dataset": D, "most_loss": 0.0, "labels": D, "metric": "f1"},
    ],
    "gate": [
        {}, {"new": D}, {"runs": 8}, {"new": D, "runs": 8}, {"requirements": ("size <= 1 B",)},
        {"requirements": ("size",)}, {"new": D, "requirements": ("size <= 1 B",)},
        {"new": D, "reference": D}, {"inputs": D, "shape": ("x:1",), "new": D},
        {"model": Path("kept.onnx")},
    ],
    "placement": [
        {"calibration": D}, {"calibration": D, "tolerance": ("x",)},
        {"calibration": D, "workspace": 1.0}, {"calibration": D, "runtime": "tensorrt"},
        {"calibration": D, "runtime": "tensorrt", "workspace": 1.0, "activations": "int8"},
        {"calibration": D, "runtime": "tensorrt", "weights": "uint8", "activations": "int8"},
        {"calibration": D, "runtime": "tensorrt", "activations": "uint8"},
    ],
    "load": [
        {}, {"tokens": 1}, {"model": E}, {"model": E, "tokens": 1}, {"tokens": 1, "inputs": D},
        {"tokens": 1, "shape": ("x:1",)}, {"inputs": D, "shape": ("x:1",)},
        *({"clients": clients} for clients in ("1,256", "1,257", "0")),
        {"clients": "2", "rate": "10"}, {"clients": "1,2", "rate": "1"},
        *({"rate": rate} for rate in ("1e-3,1e6", "9e-4", "1.1e6", "5, x\x1b", "inf", "nan")),
    ],
    "profile_onnxruntime": [{}, {"inputs": D}, {"shape": ("x:1",)},
                            {"inputs": D, "shape": ("x:1",)}],
    "profile_tensorrt": [
        {}, {"inputs": D, "shape": ("x:1",)}, {"refit_engine": True},
        {"refit_engine": True, "engine": E}, {"refit_engine": True, "model": E},
        {"model": E, "output": E}, {"engine": E, "output": E}, {"output": E},
    ],
}  # fmt: skip


def told(request: type[Any], changes: dict[str, Any]) -> str:
    given: dict[str, Any] = {"model": M}
    if any(one.name == "in_place" for one in fields(request)):
        given["output"] = Path("o.onnx")
    try:
        asked = request(**given | changes)
        asked.require()
        if hasattr(asked, "loads"):
            return f"loads {asked.loads()}"
        edit = asked.as_edit(str) if hasattr(asked, "as_edit") else None
        return "goes together" if edit is None else f"{edit.name} {json.dumps(edit.arguments)}"
    except DldError as error:
        return f"! {error.message} | {error.hint}"


def test_what_requests_refuse(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dld.toml").write_text('[requirements]\n"kept.onnx" = ["size <= 9 MB"]\n')
    for name, text in (("m", "a"), ("b", "b=c"), ("c", "c")):
        model = models.parse(models.CHAIN)
        model.graph.input[0].name = model.graph.node[0].input[0] = text
        if name == "m":
            model.graph.node[0].output[0] = model.graph.node[1].input[0] = "a=b"
        Path(f"{name}.onnx").write_bytes(model.SerializeToString())
    texts = {}
    for id, every in CASES.items():
        request = registry.load(id).request
        texts[id] = "\n".join(
            f"{', '.join(f'{k}={v!r}' for k, v in one.items()) or 'nothing'}: {told(request, one)}"
            for one in every
        )
    recorded(
        "refused_requests", {name: text.replace("PosixPath", "") for name, text in texts.items()}
    )
