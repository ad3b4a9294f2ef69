"""Keys in one write end where slow typing ends, in a real terminal."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support import models, typed_tasks
from tests.support.random_keys import session
from tests.support.sequences import compare, compare_number
from tests.support.tiers import first
from tests.support.typed_tasks import KEYS
from tests.support.typist import Programs, keys_of


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


LIGHT = {
    "squeezenet": (80, 24), "shufflenet": (200, 50), "bvlc_alexnet": (80, 24),
    "densenet121": (200, 50), "inception_v1": (80, 24), "inception_v2": (80, 24),
    "resnet50": (200, 50), "vgg19": (200, 50), "zfnet512": (80, 24),
}  # fmt: skip
"""Models that the onnx package carries, and the terminal that each is edited in."""


def _wrong(
    programs: Programs,
    folder: Path,
    model: onnx.ModelProto | bytes,
    aims: typed_tasks.Aims,
    size: tuple[int, int],
) -> dict[str, str]:
    data = model if isinstance(model, bytes) else model.SerializeToString()
    typed_tasks.do(programs, folder, data, aims, list(KEYS), size)
    return typed_tasks.all_faults(folder, data, aims)


@pytest.mark.slow
def test_all_tasks_in_one_write(programs: Programs, tmp_path: Path) -> None:
    model, aims = typed_tasks.small_model(), typed_tasks.aims_at_small_model()
    assert not _wrong(programs, tmp_path, model, aims, (80, 24))


@pytest.mark.models
@pytest.mark.parametrize("name", first(2, LIGHT))
def test_all_tasks_on_a_light_model(programs: Programs, tmp_path: Path, name: str) -> None:
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    data = (light / f"light_{name}.onnx").read_bytes()
    aims = typed_tasks.aims_at(onnx.ModelProto.FromString(data))
    assert not _wrong(programs, tmp_path, data, aims, LIGHT[name])


def test_all_tasks_on_a_real_model(programs: Programs, tmp_path: Path, real_models: Path) -> None:
    data = (real_models / "onnx" / "minilm_l6_int8.onnx").read_bytes()
    aims = typed_tasks.aims_at(onnx.ModelProto.FromString(data))
    assert not _wrong(programs, tmp_path, data, aims, (200, 50))


_KEYS = 600
_ANSWER_S = 60.0
"""Machines that run tests are busy."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_keys_end_nothing_and_lose_nothing(
    programs: Programs, tmp_path: Path, seed: int
) -> None:
    outcome = session(programs, tmp_path, seed, _KEYS, _ANSWER_S)
    assert not outcome.faults
    assert outcome.pages
