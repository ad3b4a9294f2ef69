"""What tests do with a link: run a command, or be refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import ExitStatus
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.errors import LinkError
from dld_tui.targets.ssh.link import Link

PATIENCE_S = 30.0


def says(link: Link, *arguments: str) -> str:
    """Run a command that must succeed and return what it printed."""
    done = loop.call(link.run(arguments or ("echo", "here")), PATIENCE_S)
    assert done.code == 0, done
    return done.text.strip()


def refused(link: Link) -> LinkError:
    """Connect, which must fail, and return the error."""
    with pytest.raises(LinkError) as caught:
        loop.call(link.open(), PATIENCE_S)
    assert caught.value.status == ExitStatus.UNAVAILABLE
    return caught.value


def write_config(text: str) -> Path:
    """Write the user's configuration of OpenSSH; return its folder."""
    folder = Path.home() / ".ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "config").write_text(text)
    return folder
