"""``dld compare``: its text, its JSON, its CSV, and what it refuses."""

from __future__ import annotations

import csv
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from dld_tui.core.report.records import Layer, NodeLink
from tests.support.cli import Dld, process
from tests.support.profiles import kernel, run, write_profile, write_report
from tests.support.report_files import make_report

PASSES = 20


def layer(name: str, type: str, *nodes: str) -> Layer:
    links = tuple(NodeLink((), node, node, type, share=1 / len(nodes)) for node in nodes)
    return Layer(name, type, provider="CPU", nodes=links, confidence="tensor")


def about(middle: float) -> list[float]:
    """Return the milliseconds of a layer in each pass: `middle` in the fastest."""
    return [middle * (1 + 0.002 * (number % 4)) for number in range(PASSES)]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return a report of three layers, and one in which two are fused and one is inserted."""
    apart = [
        (layer("/stem/conv", "Conv", "/stem/conv"), about(4.0)),
        (layer("/stem/relu", "Relu", "/stem/relu"), about(2.0)),
        (layer("/head/add\x1b[2J", "Add", "/head/add"), about(1.0)),
    ]
    fused = [
        (layer("/stem/fused", "FusedConv", "/stem/conv", "/stem/relu"), about(3.0)),
        (layer("/head/add\x1b[2J", "Add", "/head/add"), about(1.0)),
        (layer("reorder", "ReorderOutput"), about(0.5)),
    ]
    return write_report(tmp_path / "a.dldprof", apart), write_report(tmp_path / "b.dldprof", fused)


def test_text(dld: Dld, pair: tuple[Path, Path]) -> None:
    outcome = dld("compare", *pair)
    assert (outcome.status, outcome.err) == (0, "")
    first, second = pair
    made = "ONNX Runtime 1.31.1 · CPU · a processor"
    assert outcome.out == (
        f"""\
A  base  {first} · {made}
B  {second} · {made}

No differences in settings and environment.

! Whether the model is the same is not recorded.

             A ms   B ms   delta      ±  ratio
end to end  7.021  4.514  -2.508  0.011  0.64×
all layers  7.000  4.500  -2.500  0.007  0.64×

B takes 4.514 ms where A takes 7.021 ms: -2.508 ms (0.64×), more than the noise within the runs\
 (95 % interval -2.519 to -2.496 ms).
Layers together: -2.500 ms a pass.
1 of 3 rows changed by more than noise, 1 did not, 1 in one only.
The 2 largest rows make 100 % of all that moved:
     -3.000 ms  /stem/conv  0.50×  A 2 layers, B 1
     +0.500 ms  reorder  only in B
Fused in B, not in A: 1 layer of B does the work of 2 of A (-3.000 ms in B).
  FusedConv (/stem/fused)  =  Conv + Relu
Only in B: 1 layer, 0.500 ms (ReorderOutput); all convert a layout, type or device.

layer        A ms   B ms   delta      ±  ratio     %
/stem/conv  6.000  3.000  -3.000  0.006  0.50×  85.7  2>1
reorder         –  0.500  +0.500             –  14.3  only B
/head/add   1.000  1.000  +0.000  0.002  1.00×   0.0  noise

± is half the width of the 95 % interval of the difference (percentile bootstrap,\
 1000 resamples, Efron and Tibshirani 1993); a row is noise where the interval contains 0, or\
 where the Mann-Whitney test of all rows together (Benjamini and Hochberg 1995, 5 %) does not\
 tell it apart: so a difference larger than its ± can be noise, too
"""
    )


def test_json(dld: Dld, pair: tuple[Path, Path]) -> None:
    document = dld("compare", *pair, "--json").json
    assert [one["path"] for one in document["reports"]] == [str(path) for path in pair]
    assert [row["key"] for row in document["rows"]] == [
        "/stem/conv", "reorder", "/head/add\x1b[2J",
    ]  # fmt: skip
    first = document["rows"][0]
    assert first["time_ms"] == pytest.approx([6.0, 3.0])
    assert first["ratio"] == pytest.approx(0.5)
    assert first["noise"]["within"] is False
    assert first["layers"] == [["/stem/conv", "/stem/relu"], ["/stem/fused"]]


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("node", ["/stem/conv", "(no ONNX node)", "/stem/relu", "/head/add"]),
        ("type", ["Conv", "FusedConv", "Relu", "ReorderOutput", "Add"]),
        ("scope", ["/stem", "(no ONNX node)", "/head"]),
        ("provider", ["CPU"]),
    ],
)
def test_groups(dld: Dld, pair: tuple[Path, Path], by: str, keys: list[str]) -> None:
    document = dld("compare", *pair, "--by", by, "--json").json
    assert [row["key"] for row in document["rows"]] == keys


def test_sort_base_and_top(dld: Dld, pair: tuple[Path, Path]) -> None:
    by_name = dld("compare", *pair, "--sort", "name", "--base", 2, "--top", 1, "--json").json
    assert [row["key"] for row in by_name["rows"]] == ["/head/add\x1b[2J"]
    assert (by_name["base"], by_name["rows_total"]) == (1, 3)
    assert by_name["end_to_end"]["delta_ms"] == pytest.approx(2.5075)
    text = dld("compare", *pair, "--top", 1).out
    assert "2 more rows: --top 0 shows all" in text
    assert "more row" not in dld("compare", *pair, "--top", 0).out


def test_csv(dld: Dld, pair: tuple[Path, Path], tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    outcome = dld("compare", *pair, "--csv", target)
    assert (outcome.status, outcome.err) == (0, f"wrote {target}\n")
    with target.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["key"] for row in rows] == ["/stem/conv", "reorder", "/head/add\\x1b[2J"]
    assert rows[1]["time_ms_A"] == ""
    assert "--force" in dld.fails(2, "compare", *pair, "--csv", target)
    assert dld("compare", *pair, "--csv", target, "--force").status == 0


def test_a_profile_of_onnx_runtime_beside_a_report(
    dld: Dld, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    events = [kernel("/stem/conv", "Conv", 0, 100), run(0, 200)]
    outcome = dld("compare", pair[0], write_profile(tmp_path / "p.json", events))
    assert outcome.status == 0
    assert "/stem/conv" in outcome.out
    assert "cannot be told" in outcome.out


def test_refusals(dld: Dld, pair: tuple[Path, Path], tmp_path: Path) -> None:
    assert "two or more" in dld.fails(2, "compare", pair[0])
    assert "there are 2 reports" in dld.fails(2, "compare", *pair, "--base", 3)
    assert "colour" in dld.fails(2, "compare", *pair, "--by", "colour")
    assert "nothing.dldprof" in dld.fails(3, "compare", pair[0], tmp_path / "nothing.dldprof")
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    assert "x.json" in dld.fails(3, "compare", pair[0], tmp_path / "x.json")


def test_no_runtime_and_no_user_interface_is_loaded(pair: tuple[Path, Path]) -> None:
    code = (
        "import sys; from dld_tui.cli.main import run; status = run(sys.argv[1:]);"
        " bad = {'textual', 'onnxruntime', 'onnx'} & set(sys.modules);"
        " sys.exit(f'loaded {bad}' if bad else status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "compare", *map(str, pair)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_it_fits_a_terminal(pair: tuple[Path, Path]) -> None:
    lines = on_terminal(80, "compare", *map(str, pair))
    assert any("/stem/conv" in line for line in lines)
    # Only a path or a name that cannot be cut may be longer.
    assert [line for line in lines if len(line) > 80 and "/" not in line] == []


def on_terminal(columns: int, *arguments: str) -> list[str]:
    """Run ``dld`` on a terminal of a width and return its lines."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "dld_tui", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm"},
    )
    os.close(slave)
    written = b""
    try:
        while part := os.read(master, 65536):
            written += part
    except OSError:
        pass  # how Linux says that the other end was closed
    finally:
        os.close(master)
        child.wait(timeout=60)
    return written.decode().split("\r\n")


@pytest.mark.slow
def test_the_built_in_model_at_two_optimisation_levels(dld: Dld, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from dld_tui.core.document.samples import write_demo_models

    model = write_demo_models(tmp_path)[0]
    reports = []
    for level in ("disabled", "all"):
        reports.append(tmp_path / f"{level}.dldprof")
        arguments = ("--iterations", 20, "--optimization-level", level, "-o", reports[-1])
        assert process("profile", "onnxruntime", model, *arguments).returncode == 0
    document = dld("compare", *reports, "--json").json
    assert document["differences"][0]["name"] == "optimization_level"
    text = "\n".join(document["explanation"])
    assert "Fused in B, not in A" in text
    assert "Conv + BatchNormalization + Relu" in text
    assert all(row["match"] in ("node", "") for row in document["rows"])


def test_the_page_is_written_beside_the_text(dld: Dld, tmp_path: Path) -> None:
    first, second = (make_report(tmp_path / f"{n}.dldprof", seed=n) for n in (1, 2))
    page = tmp_path / "c.html"
    outcome = dld("compare", first, second, "--html", page)
    assert (outcome.status, outcome.err) == (0, f"wrote {page}\n")
    assert "Comparison of 1.dldprof and 2.dldprof" in page.read_text()
    assert "--force" in dld.fails(2, "compare", first, second, "--html", page)
    assert dld("compare", first, second, "--html", page, "--force").status == 0
