"""The real worker, with the scripted activity beside the real ones."""

from __future__ import annotations

from dld_tui.activities import registry, worker

FAKE = registry.Activity(
    "fake", "Fake", "Plays a script.",
    "tests.support.fake_activity:Request", "tests.support.fake_activity:run",
)  # fmt: skip
BROKEN = registry.Activity(
    "broken", "Broken", "Needs what is absent.",
    "tests.support.absent:Request", "tests.support.absent:run",
)  # fmt: skip


def main() -> None:
    registry.ACTIVITIES += (FAKE, BROKEN)
    worker.main()
