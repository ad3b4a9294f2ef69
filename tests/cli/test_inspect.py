"""``dld inspect``: its text, its JSON, and files that are no models."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dld_tui.cli.models import inspect
from tests.support import models
from tests.support.cli import Dld


def test_every_bad_file_is_shown_or_refused_in_one_line(dld: Dld, real_files: Path) -> None:
    for path in sorted((real_files / "bad").glob("*.onnx")):
        outcome = dld("inspect", path)
        assert outcome.status in (0, 3), outcome
        assert "Traceback" not in outcome.err
        assert "\x1b" not in outcome.out + outcome.err
        if outcome.status == 3:
            assert outcome.err.count("\n") == 1, outcome
            assert str(path) in outcome.err


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
