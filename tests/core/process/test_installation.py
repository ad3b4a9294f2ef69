from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dld_tui.core.process import installation
from tests.support.known import known


def test_a_remedy_is_for_the_environment_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fix = "pip uninstall -y a; pip install 'b[c]'"
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    made = tmp_path / "my env"
    assert installation.in_environment(fix, str(made)) == (
        f"uv pip uninstall --python '{made}' -y a; uv pip install --python '{made}' 'b[c]'"
    )
    pip = made / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.touch(0o755)
    assert installation.in_environment(fix, str(made)) == (
        f"'{pip}' uninstall -y a; '{pip}' install 'b[c]'"
    )
    monkeypatch.setenv("PATH", str(pip.parent))
    assert installation.in_environment(fix, str(made)) == fix
    other = "sudo apt install python3-pip && /usr/bin/python3 -m venv x"
    assert installation.in_environment(other, "/nowhere") == other


def test_an_extra_is_installed_by_its_packages() -> None:
    """`dld-tui[…]` would ask an index for this program, whoever has put it there."""
    project = Path(__file__).parents[3] / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    extras = "cpu gpu pictures simplify polygraphy parquet excel rtx agents"
    for extra in extras.split():
        wanted = known(re.search(rf"^{extra} = \[(.*?)\]", text, re.MULTILINE | re.DOTALL))
        found = installation.packages_of(extra)
        assert sorted(shlex.split(found)) == sorted(re.findall(r'"([^"]+)"', wanted[1]))
        command = installation.install_command(extra, "more")
        assert command.endswith(f"{found} more")
        assert installation.in_environment(command) == command  # the same when it is said again
    assert installation.packages_of("unknown") == "'dld-tui[unknown]'"
