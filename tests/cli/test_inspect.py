"""``dld inspect``: its text, its JSON, and files that are no models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import models
from tests.support.cli import Dld, process


def test_text(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.PLAIN_BRANCHES)
    outcome = dld("inspect", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert (
        outcome.out
        == f"""\
model      {path}
format     ONNX IR 10
opsets     ai.onnx 18
inputs     choice  bool
           x  float32[N, 4]
outputs    y  float32[N, 4]
nodes      2, 6 with subgraphs and functions
subgraphs  2
weights    none

operator  count
Abs           1
Add           1
If            1
Mul           1
Neg           1
Relu          1
"""
    )


def test_functions_and_weights_in_text(dld: Dld, tmp_path: Path) -> None:
    out = dld("inspect", models.write(tmp_path, models.FUNCTIONS)).out
    assert "functions  local.twice, 1 node" in out
    out = dld("inspect", models.write(tmp_path, models.CHAIN)).out
    assert "weights    24 B, 6 parameters in 2 initializers" in out


def test_weights_in_constant_nodes_are_in_text_and_costs(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, """
<ir_version: 10, opset_import: ["" : 18]>
g (float[2, 3] x) => (float[2, 4] y) {
    w = Constant<value = float[3, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>()
    y = MatMul(x, w)
}
""")  # fmt: skip
    assert "weights    48 B, 12 parameters in 1 Constant node" in dld("inspect", path).out
    assert dld("inspect", path, "--json").json["constants"] == {
        "nodes": 1, "parameters": 12, "bytes": 48,
    }  # fmt: skip
    cost = dld("inspect", path, "--cost", "--json").json["cost"]
    assert (cost["parameters"], cost["weight_bytes"]) == (12, 48)


def test_nodes_are_one_line_each_with_their_place(dld: Dld, tmp_path: Path) -> None:
    lines = dld("inspect", models.write(tmp_path, models.BRANCHES), "--nodes").out.splitlines()
    assert lines == [
        "pre  Relu(x) -> a",
        "choose  If(choice) -> y",
        "choose:then_branch › inner  Neg(a) -> h",
        "choose:then_branch › >t  Add(h, a) -> t",
        "choose:else_branch › shadow  Abs(a) -> x",
        "choose:else_branch › >e  Mul(x, x) -> e",
    ]


def test_json(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.BRANCHES)
    document = dld("inspect", path, "--json").json
    assert document["path"] == str(path)
    assert (document["nodes"], document["nodes_total"]) == (2, 6)
    assert document["op_types"]["Add"] == 1
    assert "node_list" not in document
    nodes = dld("inspect", path, "--json", "--nodes").json["node_list"]
    assert nodes[2] == {
        "scope": ["choose:then_branch"],
        "name": "inner",
        "op_type": "Neg",
        "domain": "",
        "inputs": ["a"],
        "outputs": ["h"],
    }


def test_names_cannot_reach_the_terminal_raw(dld: Dld, tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    model.graph.node[0].name = "a\x1b]52;c;x\x07\u202eb"
    path = tmp_path / "odd\x1b[2J.onnx"
    path.write_bytes(model.SerializeToString())
    for arguments in (["--nodes"], []):
        out = dld("inspect", path, *arguments).out
        assert not any(char in out for char in "\x1b\x07\u202e")


def test_name_that_is_not_utf8(dld: Dld, tmp_path: Path) -> None:
    data = models.parse(models.CHAIN).SerializeToString().replace(b"first", b"f\xff\xfest")
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    assert r"f\xff\xfest  Relu" in dld("inspect", path, "--nodes").out
    nodes = dld("inspect", path, "--nodes", "--json").json["node_list"]
    assert nodes[0]["name"] == "f\udcff\udcfest"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"PK\x03\x04 and so on", "ZIP"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"\x08", "m.onnx"),
    ],
)
def test_files_that_are_no_models(dld: Dld, tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    line = dld.fails(3, "inspect", path)
    assert reason in line
    assert str(path) in line


def test_folder_is_refused_by_name(dld: Dld, tmp_path: Path) -> None:
    assert str(tmp_path) in dld.fails(3, "inspect", tmp_path)


def test_every_bad_file_is_shown_or_refused_in_one_line(dld: Dld, real_files: Path) -> None:
    for path in sorted((real_files / "bad").glob("*.onnx")):
        outcome = dld("inspect", path)
        assert outcome.status in (0, 3), outcome
        assert "Traceback" not in outcome.err
        assert "\x1b" not in outcome.out + outcome.err
        if outcome.status == 3:
            assert outcome.err.count("\n") == 1, outcome
            assert str(path) in outcome.err


def test_a_process_of_its_own(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    done = process("inspect", path)
    assert done.returncode == 0
    assert done.stderr == f"{path}: warning: Initializer unused is never used\n"
    assert done.stdout.startswith("model ")


def test_findings_are_warnings_with_their_place(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.BRANCHES.replace("Neg(a)", "Neg(ghost)"))
    outcome = dld("inspect", path, "--json")
    assert outcome.status == 0
    assert f"{path}: error: choose:then_branch › " in outcome.err
    assert "ghost" in outcome.err
    assert outcome.json["findings"][0]["scope"] == ["choose:then_branch"]


def test_costs_as_text_json_and_csv(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.PLAIN_BRANCHES)
    outcome = dld("inspect", path, "--cost", "--shape", "x:3x4", "--csv", tmp_path / "c.csv")
    assert outcome.status == 0
    assert outcome.out.startswith("MACs       0\nFLOPs      36\nmoved      336 B\n")
    data = dld("inspect", path, "--cost", "--shape", "x:3x4", "--json").json
    assert data["cost"]["flops"] == 36  # of three nodes: of the If two, one branch runs
    assert (tmp_path / "c.csv").read_text().count("\n") == len(data["cost"]["nodes"]) + 1
    symbolic = dld("inspect", path, "--cost", "--json").json
    assert symbolic["cost"]["flops"] == "12·N"
    assert symbolic["inputs"] == data["inputs"]  # as the file has them, whatever was counted
    assert dld("inspect", path, "--shape", "x:3x4").status == 2
    assert dld("inspect", path, "--cost", "--csv", tmp_path / "c.csv").status == 2


def test_costs_have_the_names_of_the_contract(dld: Dld, tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    m (float[2, 4] x, bool c) => (float[2, 3] y) <float[4, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12}>
    {
        [dense] d = MatMul (x, w)
        [choose] y = If (c) <then_branch = a () => (float[2, 3] t) { [flip] t = Neg (d) },
                             else_branch = b () => (float[2, 3] e) { [keep] e = Identity (d) }>
    }
    """
    path = models.write(tmp_path, text)
    data = dld("inspect", path, "--cost", "--json").json
    plain = dld("inspect", path, "--json").json
    assert {name: data[name] for name in plain if name != "findings"} == {
        name: value for name, value in plain.items() if name != "findings"
    }
    cost = data["cost"]
    assert (cost["macs"], cost["flops"], cost["parameters"]) == (24, 54, 12)
    assert (cost["weight_bytes"], cost["activation_bytes"]) == (48, 48)
    rows = {row["node"]: row for row in cost["nodes"]}
    assert rows["dense"] == {
        "scope": [], "node": "dense", "op_type": "MatMul", "domain": "", "macs": 24, "flops": 48,
        "read_bytes": 32 + 48, "written_bytes": 24, "parameters": 12, "intensity": 48 / 104,
    }  # fmt: skip
    assert (rows["flip"]["scope"], rows["flip"]["flops"]) == (["choose:then_branch"], 6)


def test_memory_is_told_with_what_is_alive_at_the_peak(tmp_path: Path, dld: Dld) -> None:
    text = "m (float[N, 64] x) => (float[N, 64] y) { [a] a = Relu(x) [y] y = Add(a, x) }"
    path = models.write(tmp_path, f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')
    data = dld("inspect", path, "--memory", "--shape", "x:4x64", "--json").json
    assert (data["inputs"], data["peak"], data["at"]) == (1024, 2048, "y")
    assert {one["tensor"]: one["last_consumer"] for one in data["alive"]} == {"a": "y", "y": None}
    assert (
        "activations  2.05 kB at the peak"
        in dld("inspect", path, "--memory", "--shape", "x:4x64").out
    )
    assert dld("inspect", path, "--memory", "--cost").status == 2
