"""What the object that notebooks use takes; whole_plans.txt has what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dld_tui import api
from tests.support.plans import write_layers


def test_it_loads_neither_a_user_interface_nor_a_runtime(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "conv", "of": "Int8"}])
    code = (
        "import sys; from dld_tui.api import Plan; Plan(sys.argv[1]).layers;"
        " print({'textual', 'onnx', 'onnxruntime', 'tensorrt'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = api.absent
