"""``dld reduce``: the smallest part that still fails, resumed, and checks that do not."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import onnx
import pytest

from dld_tui.activities.reduce_model import Request, run
from dld_tui.core.conversion.reduction import Reduction
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Finished
from tests.support import models

BODIES = """If (c) <then_branch = yes () => (float[2] t) { [a] a = Neg (v20) [s] t = Sigmoid (a) },
    else_branch = no () => (float[2] e) { [e] e = Abs (v20) }>"""
LINES = "\n".join(
    f"[n{at}] v{at + 1} = {BODIES if at == 20 else f'Relu (v{at})'}" for at in range(40)
)
MODEL = (
    '<ir_version: 10, opset_import: ["" : 18]>\n'
    f"g (float[2] v0, bool c) => (float[2] v40) {{ {LINES} }}"
)
CHECK = "import sys; sys.exit(b'Sigmoid' in open(sys.argv[1], 'rb').read())"


def request(folder: Path, check: str, **more: object) -> Request:
    model = models.write(folder, MODEL)
    command = shlex.join([sys.executable, "-S", "-c", check, "{model}"])
    return Request(model, command, folder / "small.onnx", **more)  # type: ignore[arg-type]


def result(request: Request) -> Reduction:
    last = list(run(request))[-1]
    assert isinstance(last, Finished)
    assert isinstance(last.result, Reduction)
    return last.result


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


def test_smallest_model_still_fails_and_a_second_search_knows(tmp_path: Path) -> None:
    asked = request(tmp_path, f"print('looked')\n{CHECK}")
    found = result(asked)
    assert (found.nodes_before, found.nodes_after) == (43, 2)
    assert found.nodes == ["n20", "n20:then_branch › s"]
    assert found.said == "looked\n"
    small = onnx.load(found.path)
    assert [node.op_type for node in small.graph.node] == ["If"]
    onnx.checker.check_model(small, full_check=True)
    assert small.graph.input[1].type.tensor_type.shape.dim[0].dim_value == 2
    again = result(asked)
    assert (again.tried, again.known) == (0, found.tried)


def test_only_the_failure_that_is_meant_counts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not fail"):
        list(run(request(tmp_path, "")))
    with pytest.raises(UsageError, match="does not fail"):
        list(run(request(tmp_path, CHECK, fail_codes=("3",))))
    with pytest.raises(UsageError, match="does not fail"):
        list(run(request(tmp_path, CHECK, fail_text="segfault")))
    with pytest.raises(UsageError, match="no check"):
        list(run(Request(models.write(tmp_path, MODEL), "", tmp_path / "o.onnx")))
