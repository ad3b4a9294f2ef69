from __future__ import annotations

from tests.support.cli import Dld


def test_a_list_of_all(dld: Dld) -> None:
    outcome = dld("operators")
    rows = outcome.out.splitlines()
    assert rows[0].split() == ["operator", "domain", "since", "category", "does"]
    assert any(row.startswith("Conv ") and " ai.onnx " in row and " layer " in row for row in rows)
    assert any(" com.microsoft " in row for row in rows)


def test_the_documentation_of_one(dld: Dld) -> None:
    out = dld("operators", "gemm").out
    assert out.startswith("Gemm\nai.onnx · since version ")
    for title in ("Inputs", "Outputs", "Attributes", "Types", "Versions"):
        assert f"\n{title}\n" in out
    assert max(map(len, out.splitlines())) <= 78
