"""What the tests of screens share."""

from __future__ import annotations

from tests.support.ssh_fixtures import sshd

__all__ = ["sshd"]
