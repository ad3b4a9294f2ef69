"""What the tests of screens share."""

from __future__ import annotations

from tests.support import style_sheets
from tests.support.ssh_fixtures import sshd

__all__ = ["sshd"]

style_sheets.share()
