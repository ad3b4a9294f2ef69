"""Finding operator schemas."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import onnx

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
from tests.support.recorded import Answered, Recorded


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


VERSIONS: dict[str, Callable[..., object]] = {
    "least": least_ir_version, "importable": importable_version, "runtimes": runtimes_for,
    "same": same_meaning,
}  # fmt: skip


def test_what_versions_mean_is_what_the_record_says(answered: Answered) -> None:
    def told(question: str) -> str:
        word, _, arguments = question.partition(" ")
        return str(VERSIONS[word](*json.loads(arguments)))

    answered("versions", told)


def test_an_operator_outside_of_the_standard_is_there_from_its_version_on() -> None:
    for name in ("SimplifiedLayerNormalization", "Affine", "ScaledTanh"):
        first = standard_schema(name, None)
        assert first is not None
        assert standard_schema(name, first.since_version) is not None
        assert standard_schema(name, first.since_version - 1) is None
