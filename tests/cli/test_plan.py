"""``dld plan``: engine plans as text, tables, CSV, JSON and files of TREx."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Dld
from tests.support.plans import write_layers, write_profile

HOSTILE = "odd\x1b[2J"


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    path = write_layers(
        tmp_path / "net.graph.json",
        [
            {"Name": "conv", "of": "Int8", "to": "Float", "Metadata": "[ONNX Layer: conv]"},
            {"Name": HOSTILE, "LayerType": "Reformat", "ParameterType": "Reformat"},
        ],
    )
    write_profile(tmp_path / "net.profile.json", [("conv", 3.0), (HOSTILE, 1.0)])
    return path


def test_a_page_to_mail(dld: Dld, layers: Path, tmp_path: Path) -> None:
    page = tmp_path / "net.html"
    outcome = dld("plan", layers, "--html", page)
    assert (outcome.status, outcome.err) == (0, f"wrote {page}\n")
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "\x1b" not in text
    assert dld("plan", layers, "--html", page).status == 2
