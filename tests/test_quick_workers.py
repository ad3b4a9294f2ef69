"""Workers of tests are forked: else each takes 0.4 to 0.6 s, and nobody sees why."""

from __future__ import annotations

import os

from dld_tui.targets.process import worker_command
from tests.support.fork_server import server


def test_a_worker_is_forked_whatever_the_environment_of_pytest() -> None:
    assert server.takes(worker_command(), os.environ)
