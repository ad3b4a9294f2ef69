"""``dld inspect``: its text, its JSON, and files that are no models."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dld_tui.cli.models import inspect
from tests.support import decoders, models
from tests.support.cli import Dld


def test_json(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.BRANCHES)
    document = dld("inspect", path, "--json").json
    assert document["path"] == str(path)
    assert (document["nodes"], document["nodes_total"]) == (2, 6)
    assert document["op_types"]["Add"] == 1
    assert "node_list" not in document
    nodes = dld("inspect", path, "--json", "--nodes").json["node_list"]
    assert nodes[2] == {
        "scope": ["choose:then_branch"], "name": "inner", "op_type": "Neg", "domain": "",
        "inputs": ["a"], "outputs": ["h"],
    }  # fmt: skip


def test_a_name_that_is_not_utf8_is_kept_as_it_is(dld: Dld, tmp_path: Path) -> None:
    data = models.parse(models.CHAIN).SerializeToString().replace(b"first", b"f\xff\xfest")
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    nodes = dld("inspect", path, "--nodes", "--json").json["node_list"]
    assert nodes[0]["name"] == "f\udcff\udcfest"


def test_every_bad_file_is_shown_or_refused_in_one_line(dld: Dld, real_files: Path) -> None:
    for path in sorted((real_files / "bad").glob("*.onnx")):
        outcome = dld("inspect", path)
        assert outcome.status in (0, 3), outcome
        assert "Traceback" not in outcome.err
        assert "\x1b" not in outcome.out + outcome.err
        if outcome.status == 3:
            assert outcome.err.count("\n") == 1, outcome
            assert str(path) in outcome.err


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


def test_operators_are_listed_in_a_table(dld: Dld) -> None:
    rows = dld("operators").out.splitlines()
    assert rows[0].split() == ["operator", "domain", "since", "category", "does"]
    assert any(row.startswith("Conv ") and " ai.onnx " in row and " layer " in row for row in rows)
    assert any(" com.microsoft " in row for row in rows)


def test_each_compiled_node_is_a_line_with_the_ranges_of_its_engine(
    dld: Dld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
    m (float[1] x) => (float[1] y) {
        t = com.microsoft.EPContext <embed_mode = 0, ep_cache_context = "a.engine"> (x)
        y = com.microsoft.EPContext <embed_mode = 0, ep_cache_context = "gone.engine"> (t) }"""
    (tmp_path / "a.engine").write_bytes(b"not one")
    engine = SimpleNamespace(ranges=[SimpleNamespace(text="x: 1 to 8")])
    for found, ranges in ((engine, ["x: 1 to 8"]), (None, [])):
        known = {"a.engine": found}
        monkeypatch.setattr(inspect, "cached_engine", lambda p, known=known: known.get(p.name))
        lines = dld("inspect", models.write(tmp_path, text)).out.splitlines()
        (at,) = (n for n, line in enumerate(lines) if line.startswith("compiled "))
        assert "a.engine" in lines[at]
        below = [line.strip() for line in lines[at + 1 : at + 2 + len(ranges)]]
        assert below[:-1] == ranges
        assert "gone.engine" in below[-1]


def test_a_budget_says_what_fits_where_and_how_fast_it_can_be(dld: Dld, tmp_path: Path) -> None:
    words = ["inspect", decoders.folder(tmp_path / "genai"), "--budget", "--context", "64"]
    devices = ["--batch", "1,100000", "--device", "tiny=1,1,0.2", "--device", "H200"]
    data = dld(*words, *devices, "--json").json
    assert [row["fits tiny"] for row in data["fits"]] == [True, False]
    assert [row["fits H200"] for row in data["fits"]] == [True, True]
    assert all(row["activation_bytes"] > 0 for row in data["fits"])  # of types that no file has
    assert {row["phase"] for row in data["times"]} == {"prefill", "decode"}
    assert len(data["times"]) == 2 * 2 * 2
    assert all(row["least_ms"] > 0 for row in data["times"])
