"""What is said of a self-test."""

from __future__ import annotations

from dld_tui.core.machine.selftest import FAILED, PASSED, SelfTest, Step, selftest_lines


def test_lines_for_people() -> None:
    steps = (Step("cpu", "one", PASSED, 1.0, "fine", "not said"),
             Step("cuda", "two", FAILED, 1.0, "bad", "do\x1b[31m this"))  # fmt: skip
    lines = selftest_lines(SelfTest(steps, {"cpu": "A CPU"}, []))
    assert lines[0] == "2 steps on A CPU: 1 passed, 1 failed."
    assert "not said" not in "".join(lines)
    assert "\x1b" not in "".join(lines)
