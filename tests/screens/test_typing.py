"""Keys in one write end where slow typing ends, in a real terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import models
from tests.support.sequences import compare, compare_number
from tests.support.tiers import first
from tests.support.typist import Programs, keys_of


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs() as started:
        yield started


def _bytes(text: str) -> bytes:
    return models.parse(text).SerializeToString()


@pytest.mark.slow
def test_a_search_an_edit_and_enter_once_too_often(programs: Programs) -> None:
    outcome = compare(programs, _bytes(models.CHAIN), "/add<enter>d<enter><enter>", ahead=True)
    assert not outcome.fault
    assert outcome.quick["documents"]["model.onnx"]
    assert "second" not in str(outcome.quick["screens"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "keys"),
    [
        (models.BRANCHES, "4f<esc>"),  # the pane that has the keys goes with its last finding
        (models.layered(), "Dt'<backtab><backspace>fw<enter>"),  # a blinking cursor never rests
        (models.FUNCTIONS, "b%.conv3jjj"),  # the keys below follow the cursor
        (models.FUNCTIONS, "<pgdn>2v2jj<enter>b"),  # the panes follow each row that is passed
        # Types that come while a dialog is open are painted in the list below it.
        (models.layered(), "<enter><enter>aa b<enter>2jj<enter>"),
        (models.FUNCTIONS, "<enter>gg<f2>jj<enter><up>hy<enter>;"),  # glyphs there and back
    ],
)
def test_what_once_differed(programs: Programs, model: str, keys: str) -> None:
    outcome = compare(programs, _bytes(model), keys, size=(200, 50), ahead=True)
    assert not outcome.fault


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(3, range(10)))
def test_any_keys(programs: Programs, seed: int) -> None:
    assert not compare_number(programs, seed).fault


@pytest.mark.slow
def test_ctrl_q_leaves_from_a_dialog(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(_bytes(models.CHAIN))
    with programs.start(tmp_path, "model.onnx") as typist:
        typist.settle()
        typist.write("".join(keys_of("<^o>abc<^q>")))
        typist.wait_for_end()
