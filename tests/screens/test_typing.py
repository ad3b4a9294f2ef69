"""Keys in one write end where slow typing ends, in a real terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import models
from tests.support.sequences import compare, sequence
from tests.support.typist import Programs, keys_of

_TEXTS = (models.CHAIN, models.BRANCHES, models.FUNCTIONS, models.layered(), models.SHADY)


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs() as started:
        yield started


def _bytes(text: str) -> bytes:
    return models.parse(text).SerializeToString()


def test_a_search_an_edit_and_enter_once_too_often(programs: Programs) -> None:
    outcome = compare(programs, _bytes(models.CHAIN), "/add<enter>d<enter><enter>", ahead=True)
    assert not outcome.fault
    assert outcome.quick["documents"]["model.onnx *"]
    assert "second" not in str(outcome.quick["screens"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(32))
def test_any_keys(programs: Programs, seed: int) -> None:
    size = (80, 24) if seed % 3 else (200, 50)
    model = _bytes(_TEXTS[seed % len(_TEXTS)])
    outcome = compare(programs, model, sequence(seed), size=size, ahead=not seed % 4)
    assert not outcome.fault


def test_quitting_is_never_held_up(programs: Programs, tmp_path: Path) -> None:
    """A file that cannot be read yet holds the keys, but not Ctrl+Q when it has for a while."""
    import os

    os.mkfifo(tmp_path / "late.onnx")
    with programs.start(tmp_path, "late.onnx") as typist:
        typist.wait_for_screen()
        typist.write("jjj")
        typist.settle(1.2)
        assert typist.runs()
        typist.write("".join(keys_of("<^q>")))
        typist.settle()
        assert not typist.runs()
