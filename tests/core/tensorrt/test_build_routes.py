"""What TensorRT says of its knobs, and what cannot be read."""

from __future__ import annotations

import json

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
