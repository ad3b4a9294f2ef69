"""``dld inspect --budget``: what fits where, and how fast it can be."""

from __future__ import annotations

from pathlib import Path

from tests.support import decoders
from tests.support.cli import Dld


def test_the_command_says_what_fits_where(dld: Dld, tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai")
    arguments = ["inspect", folder, "--budget", "--batch", "1,100000", "--context", "64"]
    devices = ["--device", "tiny=1,1,0.2", "--device", "H200"]
    data = dld(*arguments, *devices, "--json").json
    assert [row["fits tiny"] for row in data["fits"]] == [True, False]
    assert [row["fits H200"] for row in data["fits"]] == [True, True]
    assert all(row["activation_bytes"] > 0 for row in data["fits"])  # of types that no file has
    assert {row["phase"] for row in data["times"]} == {"prefill", "decode"}
    assert len(data["times"]) == 2 * 2 * 2
    assert all(row["least_ms"] > 0 for row in data["times"])
    text = dld(*arguments[:3], "--device", "A10").out
    assert "KV cache   512 B a token of a sequence" in text
    dld.fails(2, "inspect", folder, "--context", "64")
