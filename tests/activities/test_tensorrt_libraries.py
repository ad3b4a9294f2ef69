from __future__ import annotations

import json
from pathlib import Path

from dld_tui.activities.machine.tensorrt_libraries import Request, Result, run
from dld_tui.core.codec import decode, encode
from dld_tui.core.events import Finished, Progress


def test_all_libraries_are_told_with_reasons(tmp_path: Path) -> None:
    good = tmp_path / "good"
    (good / "tensorrt_rtx").mkdir(parents=True)
    (good / "tensorrt_rtx" / "__init__.py").write_text(
        "__version__ = '9.9'\nclass Builder: pass\nclass BuilderFlag: TF32 = 1\n",
        encoding="utf-8",
    )
    *steps, last = run(Request((str(good), str(tmp_path / "gone"))))
    assert all(isinstance(step, Progress) and step.total == 4 for step in steps)
    assert isinstance(last, Finished)
    found = decode(Result, json.loads(json.dumps(encode(last.result)))).libraries
    assert [facts.name for facts in found][:2] == ["tensorrt", "tensorrt_rtx"]
    assert (found[2].version, found[2].world, found[2].why) == ("9.9", "strong", "")
    assert found[2].flags == {"TF32"}
    assert found[3].why == "the folder does not exist"
