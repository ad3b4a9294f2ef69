"""Tactics: replay files, logs of editable timing caches, and who can choose them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dld_tui.core.codec import decode, encode
from dld_tui.core.errors import InputError
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.tensorrt.tactics import (
    CACHE,
    REPLAY,
    Tactic,
    TensorForm,
    by_time,
    measured_tactics,
    parse_replay,
    reason_against,
    replay_text,
)

FORM = TensorForm("HALF", (64, 8, 1), -1, 1)
TACTIC = Tactic(-5, 7, (FORM,), (FORM, FORM), "kernel", 0.25)

# As TensorRT 10.8 logs it (README of its sample of the editable timing cache).
LOG = """\
[V] Autotuning op matMul1(key: 0x1814870c44ff0f8574df6e3dda04cbd7):
[V] Sorted table of all evaluated tactics:
[V] tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
[V]    3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_tilesize32x32x64, 0x665ded9abbf88,
[V]    5, 0.0118784, 1.05455, 0.51157, sm80_xmma_gemm_tilesize64x32x64, 0x393e4ef8ad243,
[V] The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
[V] Writing the best tactic (0x665ded9abbf88) to cache
[V]    9, 1, 1, 1, not_of_a_table, 0x1,
"""  # noqa: E501


def test_a_replay_file_holds_the_choices() -> None:
    text = replay_text({"conv + relu": TACTIC})
    assert parse_replay(text, "x") == {"conv + relu": TACTIC}
    assert json.loads(text)["polygraphy_class"] == "TacticReplayData"
    stored = decode(Tactic, json.loads(json.dumps(encode(TACTIC))))
    assert (stored, stored.name, stored.ms) == (TACTIC, "kernel", 0.25)
    assert replace(TACTIC, name="other", ms=9.0) == TACTIC
    assert by_time([Tactic(1), Tactic(2, ms=2.0), Tactic(3, ms=1.0), Tactic(2)]) == (
        Tactic(3), Tactic(2), Tactic(1),
    )  # fmt: skip
    assert TACTIC.shown == "kernel (0x7:0xfffffffffffffffb)"
    assert replace(TACTIC, name="").shown == "0x7:0xfffffffffffffffb half→half+half"


def test_polygraphy_reads_what_is_written() -> None:
    pytest.importorskip("polygraphy")
    from polygraphy.backend.trt.algorithm_selector import TacticReplayData
    from polygraphy.json import from_json

    # Without a tensor: their types would need the library itself.
    bare = replace(TACTIC, inputs=(), outputs=())
    found = from_json(replay_text({"conv": bare}))
    assert isinstance(found, TacticReplayData)
    assert (found["conv"].implementation, found["conv"].tactic) == (7, -5)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"replay": {"a": 1}}', '{"replay": {"a": {}}}'])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a tactic replay file"):
        parse_replay(text, "x")


def test_what_was_measured_is_in_the_log() -> None:
    found = measured_tactics(LOG.splitlines())
    assert list(found) == ["0x1814870c44ff0f8574df6e3dda04cbd7"]
    (one,) = found.values()
    assert one.layer == "matMul1"
    assert [(t.tactic, t.name, t.ms) for t in one.tactics] == [
        (0x665DED9ABBF88, "sm80_xmma_gemm_tilesize32x32x64", 0.011264),
        (0x393E4EF8AD243, "sm80_xmma_gemm_tilesize64x32x64", 0.0118784),
    ]


def test_who_can_choose() -> None:
    editing = {f"ITimingCache.{name}" for name in ("queryKeys", "query", "update")}
    old = LibraryCapabilities(
        "", "tensorrt", has=frozenset({"IAlgorithmSelector", "IBuilderConfig.algorithm_selector"})
    )
    new = LibraryCapabilities(
        "", "tensorrt", flags=frozenset({"EDITABLE_TIMING_CACHE"}), has=frozenset(editing)
    )
    assert not reason_against(REPLAY, old)
    assert "cannot be edited" in reason_against(CACHE, old)
    assert "no algorithm selector" in reason_against(REPLAY, new)
    assert not reason_against(CACHE, new)
    assert "does nothing" in reason_against(CACHE, replace(new, module="tensorrt_rtx"))
