from __future__ import annotations

from tests.support.cli import Dld


def test_a_list_of_all(dld: Dld) -> None:
    outcome = dld("operators")
    rows = outcome.out.splitlines()
    assert rows[0].split() == ["operator", "domain", "since", "category", "does"]
    assert any(row.startswith("Conv ") and " ai.onnx " in row and " layer " in row for row in rows)
    assert any(" com.microsoft " in row for row in rows)


def test_one_domain_in_one_version(dld: Dld) -> None:
    entries = dld("operators", "--domain", "ai.onnx", "--opset", 13, "--json").json["operators"]
    names = {entry["name"]: entry for entry in entries}
    assert names["Relu"]["since_version"] == 13
    assert names["Relu"]["domain"] == "ai.onnx"
    assert "Gelu" not in names
    assert names["Upsample"]["deprecated"] is True


def test_the_documentation_of_one(dld: Dld) -> None:
    out = dld("operators", "gemm").out
    assert out.startswith("Gemm\nai.onnx · since version ")
    for title in ("Inputs", "Outputs", "Attributes", "Types", "Versions"):
        assert f"\n{title}\n" in out
    assert max(map(len, out.splitlines())) <= 78


def test_operators_of_one_name_in_two_domains(dld: Dld) -> None:
    found = dld("operators", "Gelu", "--json").json["operators"]
    assert {entry["domain"] for entry in found} == {"ai.onnx", "com.microsoft"}
    entry = next(entry for entry in found if entry["domain"] == "ai.onnx")
    assert entry["attributes"][0]["name"] == "approximate"
    assert entry["attributes"][0]["default"] == "none"
    assert entry["inputs"][0]["types"]
    assert entry["versions"] == [{"version": 20, "changes": ["first"]}]


def test_every_operator_has_a_json_document(dld: Dld) -> None:
    assert dld("operators", "LabelEncoder", "--json").status == 0
    assert dld("operators", "ConstantOfShape", "--json").json["operators"][0]["attributes"]
