"""What TensorRT says of its knobs, and what cannot be read."""

from __future__ import annotations

import json

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.tensorrt.build_routes import Knobs, parse_routes, read_knobs


def knobs(**defaults: str) -> Knobs:
    options = [
        {
            "option": f"-{name}",
            "allowed_values": f"-{name}={'[on|off]' if value in ('on', 'off') else '[0|1|2]'}",
            "default_value": value,
        }
        for name, value in defaults.items()
    ]
    return read_knobs(json.dumps({"tuner_version": "2.17.83", "tuner_options": options}))


KNOBS = knobs(opt1="off", opt2="2")


def test_what_the_library_says_of_its_knobs() -> None:
    known = read_knobs(
        json.dumps({
            "tuner_version": "2.19.45",
            "tuner_options": [
                {"option": "-a:b", "allowed_values": "-a:b=[ 0 | 1 ]", "default_value": "0"},
                {"option": "-range", "allowed_values": "-range=[0|...|9]", "default_value": "3"},
                {"option": "-number", "allowed_values": "-number=int32_t"},
                {"option": "-none", "default_value": 0},
                {"option": ""}, 7, {"option": 3},
            ],
        })
    )  # fmt: skip
    assert known.version == "2.19.45"
    assert {name: (knob.values, knob.default) for name, knob in known.knobs.items()} == {
        "-a:b": (("0", "1"), "0"), "-range": ((), "3"), "-number": ((), ""), "-none": ((), "0"),
    }  # fmt: skip
    for text in ("", "{", "[]", "null", '{"tuner_options": 3}'):
        assert not read_knobs(text).knobs
    assert parse_routes("\n-range=12\n-a:b=[1]\n", known) == {"-range": ("12",), "-a:b": ("1",)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no knob is given"),
        ("-opt1", "is not part of a build route"),
        ("opt1=on", "is not part of a build route"),
        ("-opt1=[on", "is not part of a build route"),
        ("-opt1=on -opt1=off", "given twice"),
        ("-opt=on", "unknown knob -opt"),
        ("-opt1=[]", "has no value"),
        ("-opt2=[0|7]", "-opt2 cannot be 7"),
        ("-opt2=\x1b[31m", "is not part of a build route"),
    ],
)
def test_what_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        parse_routes(text, KNOBS)
    assert "\x1b" not in error.value.message
