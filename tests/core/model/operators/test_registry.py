"""Finding operator schemas."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import onnx
import pytest

from dld_tui.core.model.operators import registry
from dld_tui.core.model.operators.registry import (
    DEFAULT_OPSET,
    importable_version,
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
from tests.support.recorded import Recorded


def known(op_type: str, domain: str = "", version: int | None = None) -> OperatorSchema:
    schema = schema_for(op_type, domain, version)
    assert schema is not None
    return schema


def option(formal: Any) -> str:
    return str(formal.option).rpartition(".")[2].lower()


def test_schemas_are_those_of_the_onnx_package() -> None:
    versions: dict[tuple[str, str], list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        versions.setdefault((schema.name, schema.domain), []).append(schema.since_version)
        ours = known(schema.name, schema.domain, schema.since_version)
        assert (ours.deprecated, ours.markdown) == (schema.deprecated, schema.doc)
        arities = (schema.min_input, schema.max_input, schema.min_output, schema.max_output)
        wanted_arities = [None if number == 2**31 - 1 else number for number in arities]
        found = [ours.min_inputs, ours.max_inputs, ours.min_outputs, ours.max_outputs]
        assert found == wanted_arities
        for formals, theirs in ((ours.inputs, schema.inputs), (ours.outputs, schema.outputs)):
            assert [(one.name, one.option, one.type_name, {*one.types}) for one in formals] == [
                (one.name, option(one), one.type_str, {*one.types}) for one in theirs
            ]
        assert [(one.name, {*one.types}) for one in ours.type_constraints] == [
            (one.type_param_str, {*one.allowed_type_strs}) for one in schema.type_constraints
        ]
        required = [item.required for item in ours.attributes]
        assert required == sorted(required, reverse=True)
        assert {item.name for item in ours.attributes} == {*schema.attributes}
        for name, attribute in schema.attributes.items():
            mine = ours.attribute(name)
            assert mine is not None
            assert mine.required == attribute.required
            default = attribute.default_value
            wanted = onnx.helper.get_attribute_value(default) if default.type else None
            assert mine.default == wanted
    assert len(versions) > 200
    for (name, domain), wanted in versions.items():
        assert onnx_versions(name, domain) == tuple(sorted(wanted))
        for version in range(min(wanted), newest_opset(domain) or 0):
            since = max(one for one in wanted if one <= version)
            assert known(name, domain, version).since_version == since
    for domain in {domain for _, domain in versions}:
        assert newest_opset(domain) == max(
            max(found) for (_, of), found in versions.items() if of == domain
        )


def test_both_spellings_of_the_standard_domain_are_the_same() -> None:
    assert known("Conv", "ai.onnx", 17) is known("Conv", "", 17)


def test_an_opset_from_the_future_means_the_newest_known() -> None:
    assert known("Conv", version=2**40) == known("Conv")


def test_operators_of_onnx_runtime_are_known_without_it(recorded: Recorded) -> None:
    names = ("BiasSoftmax", "CDist", "EPContext", "FusedConv", "QLinearConcat", "QuickGelu")
    schemas = [known(name, "com.microsoft") for name in names]
    for name, versions in registry._standard_schemas.__wrapped__().items():
        if name in ("Affine", "GroupNormalization", "SimplifiedLayerNormalization"):
            schemas += versions
    contrib = registry.contrib_schemas.__wrapped__()
    assert [*contrib] == sorted(contrib)
    assert [contrib[name] for name in names] == schemas[: len(names)]
    made = {}
    for schema in schemas:
        parts = (*schema.inputs, "->", *schema.outputs, *schema.attributes)
        lines = [*map(str, parts), *map(str, schema.type_constraints), schema.summary]
        numbers = (schema.min_inputs, schema.max_inputs, schema.min_outputs, schema.max_outputs)
        title = f"{schema.domain}:{schema.name} {schema.since_version} {schema.deprecated}"
        made[title] = "\n".join([str(numbers), *lines])
    recorded("contrib_schemas", made)


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
     ("nobody's", 3, 1), ("ai.onnx.ml", 0, 1), ("", 3, 8), ("", 8, 18)],
)  # fmt: skip
def test_what_can_be_imported_into_a_file(domain: str, ir_version: int, version: int) -> None:
    assert importable_version(domain, ir_version) == version


def test_runtimes_that_take_a_version() -> None:
    assert runtimes_for(DEFAULT_OPSET) == ["TensorRT 10.0", "TensorRT 10.15", "TensorRT 11"]
    assert runtimes_for(24) == ["TensorRT 10.15", "TensorRT 11"]
    assert runtimes_for(9) == runtimes_for(DEFAULT_OPSET)
    assert runtimes_for(25) == ["TensorRT 11"]
    assert runtimes_for(7) == runtimes_for(26) == []


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
        ("Conv", 0, 11, False),
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
