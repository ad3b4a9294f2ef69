"""The real worker, with the scripted activity beside the real ones."""

from __future__ import annotations

from dld_tui.activities import registry, worker

FAKE = registry.ActivityInfo("fake", "Fake", "Plays a script.", "tests.support.fake_activity")
BROKEN = registry.ActivityInfo("broken", "Broken", "Needs what is absent.", "tests.support.absent")


def main() -> None:
    """Serve one request."""
    registry.ACTIVITIES += (FAKE, BROKEN)
    worker.main()
