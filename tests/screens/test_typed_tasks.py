"""Twelve editing tasks, each typed at full speed in one write, leave the files that they should."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from tests.support import typed_tasks
from tests.support.tiers import first
from tests.support.typed_tasks import KEYS
from tests.support.typist import Programs

LIGHT = {
    "squeezenet": (80, 24), "shufflenet": (200, 50), "bvlc_alexnet": (80, 24),
    "densenet121": (200, 50), "inception_v1": (80, 24), "inception_v2": (80, 24),
    "resnet50": (200, 50), "vgg19": (200, 50), "zfnet512": (80, 24),
}  # fmt: skip
"""Models that the onnx package carries, and the terminal that each is edited in."""


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs() as started:
        yield started


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
