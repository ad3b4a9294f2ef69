"""Finding operator schemas."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import onnx
import pytest

from dld_tui.core.model.operators.registry import (
    DEFAULT_OPSET,
    history_of,
    importable_version,
    known_domains,
    known_versions,
    least_ir_version,
    newest_opset,
    onnx_versions,
    operators,
    runtimes_for,
    same_meaning,
    schema_for,
    standard_schema,
)
from dld_tui.core.model.operators.schema import OperatorSchema


def known(op_type: str, domain: str = "", version: int | None = None) -> OperatorSchema:
    schema = schema_for(op_type, domain, version)
    assert schema is not None
    return schema


def test_a_schema_has_the_version_that_the_model_imports() -> None:
    assert known("Softmax", version=11).since_version == 11
    assert known("Softmax", version=17).since_version == 13
    assert known("Softmax", version=11).attribute("axis") != known("Softmax").attribute("axis")
    assert known("ReduceSum", version=11).attribute("axes") is not None
    assert known("ReduceSum", version=13).attribute("axes") is None


def test_versions_and_defaults_are_those_of_the_onnx_package() -> None:
    versions: dict[tuple[str, str], list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        versions.setdefault((schema.name, schema.domain), []).append(schema.since_version)
        ours = known(schema.name, schema.domain, schema.since_version)
        for name, attribute in schema.attributes.items():
            mine = ours.attribute(name)
            assert mine is not None
            default = attribute.default_value
            wanted = onnx.helper.get_attribute_value(default) if default.type else None
            assert mine.default == wanted
    assert len(versions) > 200
    for (name, domain), wanted in versions.items():
        assert onnx_versions(name, domain) == tuple(sorted(wanted))
    for domain in {domain for _, domain in versions}:
        assert newest_opset(domain) == max(
            max(found) for (_, of), found in versions.items() if of == domain
        )


@pytest.mark.parametrize(
    ("op_type", "version", "changes"),
    [
        ("Softmax", 1, ["first"]),
        ("Softmax", 11, ["the same signature, other words or behaviour"]),
        ("Softmax", 13, ["attribute axis has another default", "takes bfloat16"]),
        ("Clip", 11, ["new input min", "new input max", "no attribute max any more",
                      "no attribute min any more"]),
        ("Cast", 6, ["attribute to is int, was string"]),
        ("Gemm", 11, ["input C is optional, was single"]),
        ("Upsample", 10, ["deprecated"]),
        ("GRU", 3, ["output Y_h is optional, was single", "new attribute linear_before_reset",
                    "attribute direction has another default"]),
    ],
)  # fmt: skip
def test_what_a_version_changed_in_an_operator(
    op_type: str, version: int, changes: list[str]
) -> None:
    versions = [number for number, _ in history_of(op_type)]
    assert versions == sorted(versions, reverse=True)
    assert dict(history_of(op_type))[version] == changes
    assert history_of("Gelu", "com.microsoft") == [(1, ["first"])]
    assert history_of("Nobody") == []


@pytest.mark.parametrize(
    ("op_type", "version", "change"),
    [("Concat", 4, "attribute axis is required"), ("Constant", 11, "attribute value is optional")],
)
def test_a_version_may_require_an_attribute(op_type: str, version: int, change: str) -> None:
    assert change in dict(history_of(op_type))[version]


def test_both_spellings_of_the_standard_domain_are_the_same() -> None:
    assert known("Conv", "ai.onnx", 17) is known("Conv", "", 17)


@pytest.mark.parametrize(
    ("op_type", "domain", "version"),
    [
        ("LayerNormalization", "", 16),
        ("Convolve", "", 17),
        ("Conv", "my.plugins", 1),
        ("Conv", "", 0),
        ("Conv", "", -(2**40)),
        ("FusedConv", "", 17),
    ],
)
def test_an_unknown_operator_has_no_schema(op_type: str, domain: str, version: int) -> None:
    assert schema_for(op_type, domain, version) is None


def test_an_opset_from_the_future_means_the_newest_known() -> None:
    assert known("Conv", version=2**40) == known("Conv")


def test_required_attributes_come_first() -> None:
    names = [(item.name, item.required) for item in known("Concat").attributes]
    assert names == [("axis", True)]
    assert [item.required for item in known("Scan").attributes] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


def test_a_variadic_formal_repeats() -> None:
    concat = known("Concat", version=17)
    assert concat.max_inputs is None
    assert concat.input(0) is concat.input(9)
    assert concat.output(0) is not None
    assert concat.output(1) is None
    clip = known("Clip", version=17)
    assert [item.option for item in clip.inputs] == ["single", "optional", "optional"]
    assert clip.input(3) is None
    assert (clip.min_inputs, clip.max_inputs) == (1, 3)


def test_documentation_is_plain_text() -> None:
    gemm = known("Gemm", version=17)
    assert gemm.summary == "General Matrix multiplication"
    assert "unidirectional broadcasting" in gemm.doc
    assert "**" not in gemm.doc
    assert all(len(line) <= 40 for line in gemm.doc_lines(40) if "https" not in line)


def test_type_constraints_are_kept() -> None:
    gelu = known("Gelu")
    assert [constraint.name for constraint in gelu.type_constraints] == ["T"]
    assert "tensor(float16)" in gelu.inputs[0].types
    assert gelu.inputs[0].type_name == "T"


def test_deprecated_operators_say_so() -> None:
    assert known("Upsample", version=17).deprecated
    assert not known("Upsample", version=9).deprecated


def test_contrib_operators_are_known_without_onnxruntime() -> None:
    attention = known("GroupQueryAttention", "com.microsoft", 1)
    heads = attention.attribute("num_heads")
    assert heads is not None
    assert heads.required
    assert attention.summary.startswith("Group Query")
    assert attention.inputs[1].option == "optional"
    fused = known("FusedConv", "com.microsoft", 1).attribute("auto_pad")
    assert fused is not None
    assert fused.default == b"NOTSET"
    assert known("EPContext", "com.microsoft").inputs[0].option == "variadic"


@pytest.mark.parametrize("opset", [9, 10, 16, 17, 21])
@pytest.mark.parametrize(
    ("name", "attributes", "has_scale"),
    [
        ("SimplifiedLayerNormalization", {}, True),
        ("LayerNormalization", {}, True),
        ("ThresholdedRelu", {}, False),
        ("Affine", {"alpha": 1.0, "beta": 0.0}, False),
        ("ScaledTanh", {"alpha": 1.0, "beta": 1.0}, False),
        ("NoSuchOperator", {}, False),
    ],
)
def test_operators_of_ai_onnx_are_those_that_onnxruntime_loads(
    name: str, attributes: dict[str, Any], has_scale: bool, opset: int
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node(name, ["x", "w"] if has_scale else ["x"], ["y"], **attributes)
    infos = [value(each, onnx.TensorProto.FLOAT, [1, 4]) for each in ("x", "y")]
    weights = [onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [4], [1.0] * 4)]
    graph = onnx.helper.make_graph([node], "one", infos[:1], infos[1:], weights)
    imports = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=8)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        runtime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        loads = True
    except Exception:  # noqa: BLE001 - ONNX Runtime's errors share no base class
        loads = False
    known = schema_for(name, "", opset) or standard_schema(name, opset)
    assert loads == (known is not None)


def test_contrib_types_are_in_onnx_notation() -> None:
    for schema in operators({"com.microsoft": 1}):
        for formal in (*schema.inputs, *schema.outputs):
            assert formal.types, (schema.name, formal.name)
            assert all("(" in name for name in formal.types)


def test_all_operators_of_the_imports_are_listed() -> None:
    found = operators({"": 17, "ai.onnx.ml": 3, "unknown.domain": 1})
    names = [(schema.domain, schema.name) for schema in found]
    assert names == sorted(names)
    assert ("", "LayerNormalization") in names
    assert ("", "Gelu") not in names
    assert ("ai.onnx.ml", "TreeEnsembleClassifier") in names
    assert len(names) == len(set(names))
    assert operators({"ai.onnx": 17, "": 17}) == operators({"": 17})


def test_the_newest_opsets_are_known() -> None:
    newest = newest_opset()
    assert newest is not None
    assert newest >= 22
    assert newest_opset("ai.onnx") == newest
    assert newest_opset("com.microsoft") == 1
    assert newest_opset("unknown.domain") is None
    assert {"", "ai.onnx.ml", "com.microsoft"} <= set(known_domains())


def test_importing_the_registry_imports_no_onnx() -> None:
    code = (
        "import sys, dld_tui.core.model.operators.registry;"
        "import dld_tui.core.model.operators.categories;"
        "print(sorted({'onnx', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_known_versions_end_with_the_newest() -> None:
    assert known_versions()[0] == 7
    assert known_versions()[-1] == newest_opset()
    assert known_versions("com.microsoft") == (1,)
    assert known_versions("nobody's") == ()
    assert DEFAULT_OPSET in known_versions()


@pytest.mark.parametrize(
    ("imports", "least"),
    [({}, 3), ({"": 18}, 8), ({"": 18, "ai.onnx.ml": 5}, 10), ({"own": 1, "": 21}, 10)],
)
def test_the_file_version_that_imports_need(imports: dict[str, int], least: int) -> None:
    assert least_ir_version(imports) == least


@pytest.mark.parametrize(
    ("domain", "ir_version", "version"),
    [("ai.onnx.ml", 8, 3), ("ai.onnx.ml", 10, 5), ("ai.onnx.ml", 1, 1), ("com.microsoft", 3, 1),
     ("nobody's", 3, 1)],
)  # fmt: skip
def test_what_can_be_imported_into_a_file(domain: str, ir_version: int, version: int) -> None:
    assert importable_version(domain, ir_version) == version


def test_runtimes_that_take_a_version() -> None:
    assert runtimes_for(DEFAULT_OPSET) == ["TensorRT 10.0", "TensorRT 10.15", "TensorRT 11"]
    assert runtimes_for(24) == ["TensorRT 10.15", "TensorRT 11"]
    assert runtimes_for(7) == []


@pytest.mark.parametrize(
    ("op_type", "there", "here", "same"),
    [
        ("Relu", 13, 18, True),
        ("Relu", 14, 13, False),  # 14 takes integers, 13 does not
        ("LeakyRelu", 12, 18, True),
        ("Hardmax", 12, 13, False),  # the default axis
        ("ReduceMax", 13, 18, False),  # axes became an input
        ("Reshape", 13, 14, False),  # a new attribute
        ("Upsample", 9, 18, True),  # deprecated later, with the same signature
        ("GroupNormalization", 17, 18, False),
        ("MyOwn", 1, 9, True),
    ],
)
def test_same_meaning(op_type: str, there: int, here: int, same: bool) -> None:
    assert same_meaning(op_type, "", there, here) is same


def test_an_operator_outside_of_the_standard_is_there_from_its_version_on() -> None:
    for name in ("SimplifiedLayerNormalization", "Affine", "ScaledTanh"):
        first = standard_schema(name, None)
        assert first is not None
        assert standard_schema(name, first.since_version) is not None
        assert standard_schema(name, first.since_version - 1) is None
