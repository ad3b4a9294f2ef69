from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.settings.saved_targets import (
    Connection,
    changed,
    hops,
    problems,
    split_hop,
    validate,
)

GOOD = Connection("orin", "orin.lan")


def test_the_defaults_can_be_used() -> None:
    assert problems(GOOD) == []
    assert validate(GOOD) is GOOD
    assert GOOD.address == "orin.lan"
    assert changed(GOOD, user="me", port=2222).address == "me@orin.lan:2222"
    assert hash(GOOD) == hash(Connection("orin", "orin.lan"))


@pytest.mark.parametrize("host", ["10.0.0.7", "fe80::1%eth0", "::1", "[::1]", "a_b", "box-1.lan"])
def test_hosts_that_can_be_used(host: str) -> None:
    assert problems(changed(GOOD, host=host)) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", name) for name in ("", "local", "a b", "-x", ".x", "a/b", "a\n", "x" * 64, "ü")),
        *(
            ("host", host)
            for host in ("", "-oProxyCommand=id", "a b", "$(id)", "a;b", "a\n", "`x`")
        ),
        *(("user", user) for user in ("-l", "a b", "$(id)", "a;b", "a'b", "a\x1b")),
        ("port", 0),
        ("port", 65536),
        ("auth", "magic"),
        ("remember", "disk"),
        ("directory", ""),
        ("directory", "a\x1b[31m"),
        ("python", ""),
        ("launcher", ("srun", "")),
        ("proxy_command", "nc\n"),
        ("jump", "a,b:x"),
        ("jump", "a;b"),
        ("environment", {"A B": ""}),
        ("environment", {"A": "\0"}),
    ],
)
def test_what_cannot_be_used_is_named(field: str, value: object) -> None:
    connection = changed(GOOD, **{field: value})
    assert len(problems(connection)) == 1
    with pytest.raises(UsageError, match="target"):
        validate(connection)


def test_jump_and_proxy_command_exclude_each_other() -> None:
    assert "exclude" in problems(changed(GOOD, jump="a", proxy_command="b"))[0]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gate", ("", "gate", None)),
        ("me@gate:2222", ("me", "gate", 2222)),
        ("ssh://me@gate:2222/", ("me", "gate", 2222)),
        ("me@corp@gate", ("me@corp", "gate", None)),
        ("[fe80::1]:22", ("", "fe80::1", 22)),
        ("fe80::1", ("", "fe80::1", None)),
    ],
)
def test_the_parts_of_a_jump_host(text: str, parts: tuple[str, str, int | None]) -> None:
    assert split_hop(text) == parts


@pytest.mark.parametrize("text", ["", "me@", "gate:0", "gate:x", "-x", "$(id)@gate"])
def test_what_is_no_jump_host(text: str) -> None:
    with pytest.raises(UsageError):
        split_hop(text)


def test_several_jump_hosts() -> None:
    assert hops("a, b:22 ,c") == ("a", "b:22", "c")
    assert hops("none") == hops("") == ()


def test_no_secret_has_a_place_in_it() -> None:
    fields = set(Connection.__dataclass_fields__)
    assert not {name for name in fields if "pass" in name or "secret" in name}
    assert Connection("a", "b", key=Path("k")).key == Path("k")
