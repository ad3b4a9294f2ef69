"""JSON in the states of repair that engine files are found in."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.tensorrt.plan.json_text import documents, parsed, read_text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"Layers": [{"Name": "a", "LayerType": "kg', "JSON ends early at line 1 column 40"),
        ('{"Layers": [\n{"Name": "a"},', "JSON ends early at line 2 column 15"),
        ('{"Layers": nonsense}', "Not JSON: Expecting value at line 1 column 12"),
        ("[" * 100_000, "JSON is nested too deep"),
        ("[" + "9" * 5000 + "]", "JSON has a number with too many digits"),
        ('{"a": 1} x', "Not JSON: there is data after the document at line 1 column 9"),
    ],
)
def test_damage_is_one_line(text: str, message: str) -> None:
    with pytest.raises(CorruptFileError) as caught:
        parsed(text, "f.json")
    assert str(caught.value) == f"f.json: {message}"


def test_what_is_no_number_is_unknown() -> None:
    assert parsed('{"a": NaN, "b": "x\x1ey"}', "f") == {"a": None, "b": "x\x1ey"}


def test_layers_one_after_another() -> None:
    divided = '--- Layer 0 ---\n{"Name": "a"}\n--- Layer 1 ---\n{"Name": "b"}\n'
    assert documents(divided, "f") == ([{"Name": "a"}, {"Name": "b"}], [])
    assert documents('{"Name": "a"}\n{"Name": "b"}', "f")[0] == [{"Name": "a"}, {"Name": "b"}]


def test_a_damaged_layer_is_left_out() -> None:
    found, notes = documents('--- Layer 0 ---\n{"Name": "a"}\n--- Layer 1 ---\n{"Na', "f")
    assert found == [{"Name": "a"}]
    assert notes == ["1 of the layers are not complete JSON and left out"]


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes('{"é": 1}'.encode("utf-16"))
    assert read_text(path) == '{"é": 1}'
    path.write_bytes(b"\xef\xbb\xbf[]")
    assert read_text(path) == "[]"
    path.write_bytes(b" \n")
    with pytest.raises(InputError, match="empty"):
        read_text(path)
