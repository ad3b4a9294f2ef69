from __future__ import annotations

import pytest

from dld_tui.activities.machine import doctor
from dld_tui.backends.machine import probe
from dld_tui.core.codec import encode
from dld_tui.core.events import Finished, Progress
from dld_tui.core.machine.health import GOOD, Check


def test_every_look_is_told_before_and_its_checks_are_in_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = Check("GPU", "GPU 0", GOOD, "fast")
    monkeypatch.setattr(probe, "steps", lambda: [("one", list), ("two", lambda: [check])])
    *before, last = doctor.run(doctor.Request())
    assert [(event.done, event.stage) for event in before if isinstance(event, Progress)] == [
        (0, "one"),
        (1, "two"),
    ]
    assert isinstance(last, Finished)
    checks = encode(last.result)["checks"]
    assert isinstance(checks, list)
    assert checks[-1] == encode(check)
    assert {"Python", "Folders", "GPU"} == {c["group"] for c in checks if isinstance(c, dict)}
