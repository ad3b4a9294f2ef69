"""Build routes: the examples of trtexec's documentation, and what cannot be read."""

from __future__ import annotations

import itertools
import json

from dld_tui.core.compare.gate import judge
from dld_tui.core.tensorrt.build_routes import Knobs, parse_routes, read_knobs, route_text
from dld_tui.core.tensorrt.facts import LibraryFacts
from dld_tui.extras.routes.pages import reasons
from dld_tui.extras.routes.search import (
    RouteSearch,
    RouteTrial,
    combined_routes,
    fast_routes,
    full_routes,
    route_count,
    search_lines,
    trial_table,
)


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
TRIED = parse_routes("-opt1=[on|off] -opt2=[0|1|2]", KNOBS)


def test_the_fast_search_of_trtexecs_header() -> None:
    assert [route_text(route) for route in fast_routes(TRIED, KNOBS)] == [
        "-opt1=off -opt2=2",
        "-opt1=off -opt2=0",
        "-opt1=off -opt2=1",
        "-opt1=on -opt2=2",
    ]
    assert route_count(TRIED, "fast", KNOBS) == 4


def test_the_full_search_has_each_combination_once_and_the_default_first() -> None:
    routes = [tuple(route.values()) for route in full_routes(TRIED, KNOBS)]
    assert routes[0] == ("off", "2")
    assert sorted(routes) == sorted(itertools.product(("on", "off"), "012"))
    assert route_count(TRIED, "full", KNOBS) == 6
    other = parse_routes("-opt1=on -opt2=[0|1]", KNOBS)
    assert [route_text(route) for route in full_routes(other, KNOBS)] == [
        "-opt1=on -opt2=2", "-opt1=on -opt2=0", "-opt1=on -opt2=1"
    ]  # fmt: skip
    assert route_count(other, "full", KNOBS) == 3


def test_the_mixed_search_of_trtexecs_readme() -> None:
    abc = knobs(A="on", B="on", C="on")
    tried = parse_routes("-A=[on|off] -B=[on|off] -C=[on|off]", abc)
    base, c, b, a = (route_text(route) for route in fast_routes(tried, abc))
    # A and C improved; their combinations with B at its default, less what was measured.
    ms = {base: 2.0, a: 1.8, b: 2.1, c: 1.9}
    assert [route_text(one) for one in combined_routes(ms, tried, abc)] == ["-A=off -B=on -C=off"]
    assert combined_routes({base: 2.0, a: 1.8, b: 2.1}, tried, abc) == []


def test_a_default_that_is_not_told_is_left_to_the_library() -> None:
    known = knobs(a="", b="on")
    tried = parse_routes("-a=[1|2] -b=[on|off]", known)
    routes = [route_text(route) for route in fast_routes(tried, known)]
    assert routes == ["-b=on", "-b=off", "-a=1 -b=on", "-a=2 -b=on"]
    assert all(parse_routes(route, known) for route in routes)
    ms = dict(zip(routes, (4.0, 3.0, 2.0, 5.0), strict=True))
    assert [route_text(one) for one in combined_routes(ms, tried, known)] == ["-a=1 -b=off"]


def test_what_is_said_of_a_search() -> None:
    trials = (
        RouteTrial("-a=1 -b=1", 2.0),
        RouteTrial("-a=0 -b=1", 1.0),
        RouteTrial("-a=1 -b=0", None, "crashed: \x1b[31mSIGSEGV"),
    )
    row = judge("end to end", [2.0] * 6, [1.0] * 6)
    search = RouteSearch("TensorRT 11.4", "2.19", "fast", trials, False, row, None, "dld build m")
    cells = [column.value(trial_table(search).rows[0]) for column in trial_table(search).columns]
    assert cells == ["-a=0", 1.0, 2.0, ""]
    lines = search_lines(search)
    assert lines[0] == "TensorRT 11.4, tuner 2.19: 3 routes built, right results from 2"
    assert lines[1] == "The time limit ended before all routes were tried"
    assert lines[2].startswith("-a=0 is faster than the default: 2 to 1 ms, -50.0 %")
    assert lines[3] == "Build it again: dld build m"
    same = RouteSearch("T", "2", "fast", trials[:1], True)
    assert search_lines(same)[-1] == "No route is faster than the default"
    lost = RouteSearch(
        "T", "2", "fast", (RouteTrial("-a=1 -b=1", 2.0, "y is off"), trials[1]), True
    )
    assert search_lines(lost)[1:] == [
        "The default route gives none: y is off",
        "The fastest that does is -a=0; there is nothing to compare it with",
    ]
    wrong = RouteSearch("T", "2", "fast", trials[2:], True)
    assert search_lines(wrong)[-1] == "No engine gives right results"


def test_a_search_of_build_routes_needs_knobs() -> None:
    rtx = LibraryFacts("x", "tensorrt_rtx", "1.3")
    assert reasons({}, rtx)[""] == "no build routes: TensorRT-RTX has no knobs"
    with_knobs = LibraryFacts(
        "x", "tensorrt", "11.4", has=frozenset({"IBuilderConfig.build_route"})
    )
    found = reasons({}, with_knobs)
    assert "" not in found
    assert found["build_route"] == "the search sets it"
    assert "" not in reasons({}, None)
