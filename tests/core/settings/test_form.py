from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.params import from_json
from dld_tui.core.settings.saved_targets import (
    Connection,
    ConnectionForm,
    changed_by,
    connection_of,
    form_values,
)

FULL = Connection(
    "orin", "orin.lan", 2222, "me", "key", Path("/k"), Path("~/known"), "gate", "", False,
    "/data/dld", "python3.12", {"A": "b=c d"}, ("docker", "exec", "a b"), "keyring",
)  # fmt: skip


@pytest.mark.parametrize("connection", [FULL, Connection("box", "a")])
def test_a_connection_survives_its_form(connection: Connection) -> None:
    assert connection_of(from_json(ConnectionForm, form_values(connection))) == connection


def test_files_are_found_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = connection_of(ConnectionForm("a", "b", key=Path("id"), known_hosts=Path("~/known")))
    assert (made.key, made.known_hosts) == (tmp_path / "id", Path("~/known"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("environment", ("A",)), ("launcher", "srun 'x"), ("host", ""), ("directory", "")],
)
def test_what_cannot_be_used_is_refused(field: str, value: object) -> None:
    values = {"name": "a", "host": "b", field: value}
    with pytest.raises(UsageError):
        connection_of(ConnectionForm(**values))  # type: ignore[arg-type]


def test_some_settings_change_and_the_others_stay() -> None:
    made = changed_by(FULL, {"port": 22, "user": None, "environment": ("B=1",), "key": Path()})
    assert (made.port, made.user, made.key) == (22, "me", None)
    assert made.environment == {"A": "b=c d", "B": "1"}
    assert changed_by(made, {"user": "", "launcher": ""}).launcher == ()
