"""Previews of files of all kinds, compared with ``whole_previews.txt``."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dld_tui.core.errors import CancelledError
from dld_tui.core.reading.preview import age_text, ago, preview
from tests.support import models
from tests.support.recorded import Recorded, settled
from tests.support.report_files import make_report
from tests.support.transcript_files import FILES

WIDE = """
<ir_version: 10, opset_import: ["d" : 1], producer_name: "p\x1b">
wide (float[batch_size] a, int64 b, c, string[2] e, float[2] w) => (float[2] y, float[z] o)
<string[1] s = {"t"}, int64[1] i = {1}, float[2] w = {1, 2}> {
 p = d.Op1(a) q = d.Op2(p) r = d.Op3(q) s = d.Op4(r) t = d.Op5(s) u = d.Op6(t) v = d.Op7(u)
 y = Add(v, w) o = Neg(v) }"""
STRINGS = "float[4] w = {1, 2, 3, 4}, float[2] unused = {5, 6}"
MODELS = {
    "wide": WIDE,
    "strings": models.CHAIN.replace(STRINGS, 'string[2] w = {"t", "u"}'),
    "no outputs": models.CHAIN.replace("=> (float[N, 4] y)", "=> ()"),
    "three types": models.CHAIN.replace("unused = {5, 6}", "unused = {5, 6}, int8[2] i = {1, 2}"),
    "many parts": models.layered(8).replace("s3 = Mul", "s3 = d.Op"),
}
KINDS = {
    "ONNX": (
        "chain.onnx", "deep.onnx", "hostile.onnx", "image.onnx", "functions.onnx", "tokens.onnx",
        "equal.onnx", "attributes.onnx", "branches.onnx", "classifier.onnx", "shady.onnx",
        "page.onnx", "empty.onnx", "none.onnx",
    ),
    "REPORT": ("rich.dldprof", "gpu.dldprof", "killed.dldprof", "decoder.dldprof", "text.dldprof"),
    "ENGINE_LAYERS": ("resnet.graph.json", "engine.graph.json", "cut.json"),
    "ENGINE_PROFILE": ("engine.graph.json",),
    "TUNING": ("m.tune.json",),
    "SWEEP": ("sizes.sweep.json", "failed.sweep.json"),
    "SCRIPT": ("rename.jsonl",),
}  # fmt: skip


def told(path: Path, kind: str, folder: Path) -> str:
    found = preview(str(path), kind, lambda: False)
    lines = [f"{title}: {text}" for title, text in found.lines]
    lines += [f"{title} | {text} | {share:.4f}" for title, text, share in found.parts]
    return settled("\n".join([*lines, found.problem]), folder)


def test_whole_previews(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for kind, names in KINDS.items():
        for name in names:
            path = tmp_path / name
            if name in FILES and not path.exists():
                FILES[name](path)
            texts[f"{name} {kind}"] = told(path, kind, tmp_path)
    for title, text in MODELS.items():
        texts[title] = told(models.write(tmp_path, text), "ONNX", tmp_path)
    texts["a folder"] = told(tmp_path, "REPORT", tmp_path)
    recorded("whole_previews", texts)
    assert preview("a\0b", "ONNX", lambda: False).problem


def test_the_newest_report_that_can_be_read_is_told(tmp_path: Path) -> None:
    model, other = tmp_path / "chain.onnx", tmp_path / "other.onnx"
    FILES["chain.onnx"](model)
    reports = []
    for name in ("new", "old"):
        reports.append(make_report(tmp_path / f"{name}.dldprof", layers=2, model=model))
        os.utime(reports[-1], (time.time() - 7500,) * 2)
    told = dict(preview(str(model), "ONNX", lambda: False, map(str, reports)).lines)
    assert told["profile"].endswith(", 2 h ago: new.dldprof")
    reports[0].unlink()
    told = dict(preview(str(model), "ONNX", lambda: False, map(str, reports)).lines)
    assert told["profile"].endswith(", 2 h ago: old.dldprof")
    model.rename(other)
    assert "profile" not in dict(preview(str(other), "ONNX", lambda: False, ()).lines)
    with pytest.raises(CancelledError):
        preview(str(other), "ONNX", lambda: True)


def test_ages_on_both_sides_of_each_unit() -> None:
    day, year = 86400, 86400 * 365
    ages = (0, 59, 60, 3599, 3600, day - 1, day, 30 * day - 1, 30 * day, year - 1, year, 2 * year)
    assert [age_text(age) for age in ages] == [
        "now", "now", "1 min", "59 min", "1 h", "23 h", "1 d", "29 d", "1 mo",
        "12 mo", "1 y", "2 y",
    ]  # fmt: skip
    assert [ago(59.9), ago(60)] == ["just now", "1 min ago"]
