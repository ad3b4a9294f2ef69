"""The configuration is read back as Triton reads it: protobuf text of its ModelConfig."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.errors import InputError, UsageError
from dld_tui.extras.triton.repository import ServedModel, ServedTensor, model_config
from tests.support import models
from tests.support.cli import Dld
from tests.support.triton import parse, read, tensors


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return tmp_path / "repository"


ODD = """
<ir_version: 10, opset_import: ["" : 18]>
odd (int64[batch] i, bool[batch, 2, rest] "a\\"b é") => (int64[batch] j, bool[batch, 2, rest] n)
{
    j = Neg(i)
    n = Not("a\\"b é")
}
"""


def test_names_and_one_value_a_request(dld: Dld, tmp_path: Path, repository: Path) -> None:
    model = onnx.parser.parse_model(ODD.replace('"a\\"b é"', "b"))
    model.graph.input[1].name = model.graph.node[1].input[0] = 'a"b\\ é\n'
    path = tmp_path / "odd.onnx"
    onnx.save(model, path)
    asked = ("--max-batch", 7, "--kind", "cpu", "--count", 2)
    assert dld("triton", path, "-o", repository, *asked).status == 0
    found = read(repository / "odd" / "config.pbtxt")
    assert found.max_batch_size == 7
    assert tensors(found.input) == [
        ("i", "TYPE_INT64", [1]), ('a"b\\ é\n', "TYPE_BOOL", [2, -1])
    ]  # fmt: skip
    reshaped = [one.HasField("reshape") for one in (*found.input, *found.output)]
    assert reshaped == [True, False, True, False]
    assert list(found.input[0].reshape.shape) == []
    assert [(group.kind, group.count) for group in found.instance_group] == [(2, 2)]


def test_types_that_are_not_declared_are_inferred(
    dld: Dld, tmp_path: Path, repository: Path
) -> None:
    model = models.write(tmp_path, models.CHAIN.replace("float[N, 4] y)", "y)"))
    assert dld("triton", model, "-o", repository).status == 0
    found = read(repository / "model" / "config.pbtxt")
    assert tensors(found.input) == [("x", "TYPE_FP32", [4])]
    assert tensors(found.output) == [("y", "TYPE_FP32", [4])]


def test_data_files_come_along(dld: Dld, tmp_path: Path, repository: Path) -> None:
    model = onnx.parser.parse_model(models.CHAIN)
    for weights in model.graph.initializer:
        weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights), weights.name))
    path = tmp_path / "big.onnx"
    onnx.save(model, path, save_as_external_data=True, location="big.data", size_threshold=0)
    assert dld("triton", path, "-o", repository).status == 0
    copy = onnx.load(repository / "big" / "1" / "model.onnx")
    assert numpy_helper.to_array(copy.graph.initializer[0]).tolist() == [1, 2, 3, 4]
    assert len(list((repository / "big" / "1").iterdir())) == 2
    assert "--link only works for engines" in dld.fails(
        2, "triton", path, "-o", repository, "--link"
    )


def test_a_file_that_is_there_is_kept(dld: Dld, tmp_path: Path, repository: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    assert dld("triton", model, "-o", repository, "--name", "m").status == 0
    assert "file exists" in dld.fails(2, "triton", model, "-o", repository, "--name", "m")
    inside = repository / "m" / "1" / "model.onnx"
    again = ("triton", inside, "-o", repository, "--name", "m", "--force", "--max-batch", 9)
    assert dld(*again).status == 0
    assert read(repository / "m" / "config.pbtxt").max_batch_size == 9
    assert inside.read_bytes() == model.read_bytes()


def engine(folder: Path, tensors: list[dict[str, Any]], magic: bytes = b"ftrt") -> Path:
    path = folder / "net.engine"
    path.write_bytes(struct.pack("<4sI16x4B8x", magic, 0, 10, 3, 0, 26) + bytes(64))
    layers = {"Layers": [{"Name": "a", "LayerType": "NoOp"}], "I/O Tensors": tensors}
    (folder / "net.trt.json").write_text(json.dumps(layers))
    return path


def tensor(name: str, mode: str, dims: list[int], **more: Any) -> dict[str, Any]:
    return {
        "Name": name, "IOMode": mode, "DataType": "Half", "Dimensions": dims,
        "Location": "Device", "Format": "Linear", **more,
    }  # fmt: skip


PROFILES = [
    {"MinShape": [1, 3], "OptShape": [4, 3], "MaxShape": [6, 3]},
    {"MinShape": [1, 3], "OptShape": [4, 3], "MaxShape": [32, 3]},
]


@pytest.mark.parametrize("link", [False, True])
def test_an_engine(link: bool, dld: Dld, tmp_path: Path, repository: Path) -> None:
    path = engine(
        tmp_path,
        [
            tensor("x", "INPUT", [-1, 3], ProfileInfo=PROFILES),
            tensor("y", "OUTPUT", [-1, 2], DataType="Int64"),
        ],
    )
    options = ["--link"] if link else []
    outcome = dld("triton", path, "-o", repository, *options)
    assert outcome.status == 0
    assert "TensorRT 10.3.0.26" in outcome.err
    assert ("is linked" in outcome.err) is link
    found = read(repository / "net" / "config.pbtxt")
    assert (found.platform, found.backend, found.max_batch_size) == ("tensorrt_plan", "tensorrt", 6)
    assert tensors(found.input) == [("x", "TYPE_FP16", [3])]
    assert tensors(found.output) == [("y", "TYPE_INT64", [2])]
    assert found.instance_group[0].kind == 1
    written = repository / "net" / "1" / "model.plan"
    assert written.read_bytes() == path.read_bytes()
    assert written.samefile(path) is link
    assert "at most 6" in dld.fails(
        2, "triton", path, "-o", repository, "--name", "b", "--max-batch", 7
    )
    exact = ("triton", path, "-o", repository, "--name", "c", "--max-batch", 6)
    assert dld(*exact).status == 0
    # Newer layer information has the sizes of a profile where others have -1.
    engine(
        tmp_path, [tensor("x", "INPUT", [4, 3], ProfileInfo=PROFILES), tensor("y", "OUTPUT", [-1])]
    )
    dld("triton", path, "-o", repository, "--force")
    found = read(repository / "net" / "config.pbtxt")
    assert (found.max_batch_size, tensors(found.input)) == (6, [("x", "TYPE_FP16", [3])])
    # The first profile counts, whatever another one has.
    fixed = {key: [4, 3] for key in PROFILES[0]}
    ends = [
        tensor("x", "INPUT", [4, 3], ProfileInfo=[fixed, PROFILES[1]]), tensor("y", "OUTPUT", [4])
    ]  # fmt: skip
    engine(tmp_path, ends)
    dld("triton", path, "-o", repository, "--force")
    found = read(repository / "net" / "config.pbtxt")
    assert (found.max_batch_size, tensors(found.input)) == (0, [("x", "TYPE_FP16", [4, 3])])


def test_engines_that_differ(dld: Dld, tmp_path: Path, repository: Path) -> None:
    path = engine(
        tmp_path,
        [
            tensor("s", "INPUT", [2], Location="Host", DataType="Int32"),
            tensor("x", "INPUT", [1, 32, 8, 8], Format="Thirty-two wide channel vectorized Int8"),
            tensor("y", "OUTPUT", [1, 2]),
        ],
    )
    assert "'s' is not free" in dld("triton", path, "-o", repository).err
    found = read(repository / "net" / "config.pbtxt")
    assert found.max_batch_size == 0
    assert [one.is_shape_tensor for one in found.input] == [True, False]
    assert [one.is_non_linear_format_io for one in found.input] == [False, True]
    assert list(found.input[1].dims) == [1, 32, 8, 8]
    assert "GPU" in dld.fails(2, "triton", path, "-o", repository, "--kind", "cpu")
    for changed, said in (
        ({"DataType": "FP8"}, "no type for 'y': fp8"),
        ({"IOMode": ""}, "'y' is an input or an output"),
    ):
        ends = [tensor("x", "INPUT", [-1, 3]), tensor("z", "OUTPUT", [-1])]
        engine(tmp_path, [ends[0], tensor("y", "OUTPUT", [-1]) | changed, ends[1]])
        assert said in dld.fails(3, "triton", path, "-o", repository, "--force")
    engine(tmp_path, [tensor("x", "INPUT", [-1, 3]), tensor("y", "OUTPUT", [-1, 2])])
    assert "--max-batch" in dld("triton", path, "-o", repository, "--force").err
    assert read(repository / "net" / "config.pbtxt").max_batch_size == 1
    (tmp_path / "net.trt.json").write_text('{"Layers": ["a"], "Bindings": ["x", "y"]}')
    assert "detailed" in dld.fails(3, "triton", path, "-o", repository, "--force")
    engine(tmp_path, [], b"vtrt")
    assert "TensorRT-RTX" in dld.fails(3, "triton", path, "-o", repository, "--force")


TYPES = {"float32": "FP32", "float16": "FP16", "int64": "INT64", "uint8": "UINT8", "bf16": "BF16"}


@pytest.mark.parametrize("seed", range(12))
def test_drawn_interfaces(seed: int) -> None:
    """Dimensions with the batch before them are those that the model has."""
    random = np.random.default_rng(seed)

    def draw(name: str) -> ServedTensor:
        firsts: list[int | str | None] = ["N", "N", "N", None, "M", 3]
        dims = [firsts[random.integers(6)]]
        more: list[int | str | None] = [5, "S", 1]
        dims += [more[random.integers(3)] for _ in range(random.integers(0, 3))]
        most = int(random.integers(1, 9)) if random.random() < 0.3 else None
        return ServedTensor(name, str(random.choice(list(TYPES))), tuple(dims), most)

    sides = [[draw(f'{side}\n"é{at}') for at in range(random.integers(1, 4))] for side in "xy"]
    made = model_config("m", ServedModel("onnxruntime", tuple(sides[0]), tuple(sides[1])))
    config = parse(made.text)
    every = [*sides[0], *sides[1]]
    firsts = {one.dims[0] for one in every if one.dims}
    batched = 3 not in firsts and len(firsts - {None}) <= 1
    limits = [one.most for one in sides[0] if one.most is not None]
    assert config.max_batch_size == (min(limits, default=4) if batched else 0)
    assert bool(made.remarks) != batched
    for entry, one in zip([*config.input, *config.output], every, strict=True):
        own = list(entry.reshape.shape) if entry.HasField("reshape") else list(entry.dims)
        whole = ([-1] if batched else []) + own
        assert whole == [size if isinstance(size, int) else -1 for size in one.dims or ()]
        assert tensors([entry])[0][:2] == (one.name, f"TYPE_{TYPES[one.dtype or '']}")


X = ServedTensor("x", "float32", ("N", 2))


@pytest.mark.parametrize(
    ("tensor", "options", "said"),
    [
        (ServedTensor("x", "float32", ()), {}, "'x' is a scalar"),
        (ServedTensor("x", "complex64", ("N",)), {}, "no type for 'x': complex64"),
        (ServedTensor("x", "float32", ("N", 0)), {}, "a dimension of 0"),
        (ServedTensor("x", "float32", None), {}, "the shape of 'x' is not known"),
        (ServedTensor("x", None, None), {}, "the type of 'x' is not known"),
        (ServedTensor("x\udcff", "float32", ("N",)), {}, "not UTF-8"),
        (ServedTensor("x", "float32", (3, 2)), {"max_batch": 2}, "of 'x' is not free"),
        (ServedTensor("x", "int32", (None,), is_shape=True), {"max_batch": 2}, "'x' is a shape"),
        (ServedTensor("x", "float32", (None,), 3), {"max_batch": 4}, "at most 3"),
        (X, {"name": "../b"}, "is not a valid model name"),
        (X, {"name": ".."}, "is not a valid model name"),
        (X, {"name": "é"}, "is not a valid model name"),
        (X, {"name": "a b"}, "is not a valid model name"),
        (X, {"name": ""}, "is not a valid model name"),
    ],
)  # fmt: skip
def test_refused(tensor: ServedTensor, options: dict[str, object], said: str) -> None:
    served = ServedModel("onnxruntime", (tensor,), (X,))
    arguments: dict[str, object] = {"name": "m", **options}
    with pytest.raises((InputError, UsageError), match=said):
        model_config(served=served, **arguments)  # type: ignore[arg-type]
