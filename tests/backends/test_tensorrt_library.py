from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dld_tui.backends.tensorrt import library as tensorrt_library
from dld_tui.backends.tensorrt.library import (
    capabilities_of,
    find_library,
    library_check,
    probe,
    probe_in_process,
    trt,
    use,
    using,
)
from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import result_of
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from tests.support.fake_tensorrt import STRONGLY_TYPED, fake_tensorrt, install
from tests.support.rtx import needs_rtx, own_library

SOURCE = "__version__ = '10.3.0'\nclass Builder: pass\nclass BuilderFlag:\n    FP16 = 1\n"


@pytest.fixture(autouse=True)
def _own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trt, "module", None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(tensorrt_library, "_driver_problem", lambda: "")


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


def package(folder: Path, source: str, name: str = "tensorrt") -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(source, encoding="utf-8")
    return folder


def test_auto_takes_the_first_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_tensorrt()
    install(monkeypatch, fake)
    library = find_library("auto")
    assert library.module is fake
    assert trt.Builder is fake.Builder  # the chosen one of the process


def test_none_that_works_is_one_line_with_all_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "tensorrt", "tensorrt_rtx")
    with pytest.raises(UnavailableError, match="TensorRT: not installed; TensorRT-RTX: not inst"):
        find_library("auto")
    with pytest.raises(
        UnavailableError, match=r"TensorRT-RTX cannot be used: not .*tensorrt-rtx-cu13"
    ):
        find_library("tensorrt_rtx")


@pytest.mark.parametrize("inside", [".", "python", "lib/python3.11/site-packages"])
def test_a_folder_with_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inside: str
) -> None:
    monkeypatch.delitem(sys.modules, "tensorrt", raising=False)
    package(tmp_path / inside, SOURCE)
    facts = probe(str(tmp_path))
    assert (facts.name, facts.version, facts.why) == (str(tmp_path), "10.3.0", "")
    assert Path(facts.path) == (tmp_path / inside / "tensorrt").resolve()
    monkeypatch.delitem(sys.modules, "tensorrt")


def test_shared_libraries_without_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, "tensorrt")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libnvinfer.so.10").touch()
    (tmp_path / "python").mkdir()
    wheel = f"tensorrt-10.3.0-cp{sys.version_info[0]}{sys.version_info[1]}-none-linux_x86_64.whl"
    (tmp_path / "python" / wheel).touch()
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: None)
    facts = probe(str(tmp_path))
    assert facts.why.startswith("the folder has the shared libraries but no Python package")
    assert facts.hint == f"pip install {tmp_path / 'python' / wheel}"
    install(monkeypatch, fake_tensorrt())
    assert probe(str(tmp_path)).usable
    monkeypatch.setattr(tensorrt_library, "_driver_problem", lambda: "there is none")
    assert probe(str(tmp_path)).why == "it needs an NVIDIA driver to build: there is none"


def test_tensorrt_needs_a_driver_to_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorrt_library, "_driver_problem", lambda: "there is none")
    fake = fake_tensorrt()
    install(monkeypatch, fake)
    facts = probe("tensorrt")
    assert facts.why == "it needs an NVIDIA driver to build: there is none"
    assert facts.version == "10.13.0.35"
    fake.__name__ = "tensorrt_rtx"
    install(monkeypatch, fake, "tensorrt_rtx")
    assert probe("tensorrt_rtx").usable
    assert probe("tensorrt_rtx").no_driver == "there is none"


def asked(choice: str, limit_s: float = 60.0) -> LibraryCapabilities:
    return result_of(probe_in_process(choice, limit_s))


@pytest.mark.broad
def test_a_library_that_hangs_is_given_up(tmp_path: Path) -> None:
    package(tmp_path, "import threading\nthreading.Event().wait()\n")
    assert asked(str(tmp_path), 1.0).why == "loading it took over 1 s"


def test_the_lines_of_doctor() -> None:
    missing = library_check(
        LibraryCapabilities("tensorrt", "tensorrt", why="not installed", hint="pip")
    )
    assert (missing.state, missing.found, missing.fix) == (MISSING, "not installed", "pip")
    facts = LibraryCapabilities(
        "tensorrt_rtx", "tensorrt_rtx", "1.7", world="strong", no_driver="none"
    )
    check = library_check(facts)
    assert check.state == GOOD
    assert check.found == ("1.7, strongly typed only, builds engines but cannot load them: none")


class TestRtx:
    pytestmark = needs_rtx

    def test_the_real_library(self) -> None:
        with own_library():
            facts = probe("tensorrt_rtx")
        assert facts.usable, facts.why
        assert facts.world == "strong"
        assert "8.9" in facts.compute_capabilities
        assert "IBuilderConfig.progress_monitor" in facts.has
        assert "FP16" not in facts.flags


def test_a_library_is_asked_for_its_names() -> None:
    weak, strong = capabilities_of(fake_tensorrt()), capabilities_of(fake_tensorrt(STRONGLY_TYPED))
    assert (weak.module, weak.version, weak.world) == ("tensorrt", "10.13.0.35", "weak")
    assert {"FP16", "TF32", "REFIT"} <= weak.flags
    assert "WORKSPACE" in weak.pools
    assert "CUBLAS" in weak.tactic_sources
    assert {
        "ILayer.precision", "IBuilderConfig.builder_optimization_level", "IInt8EntropyCalibrator2",
        "OnnxParserFlag.NATIVE_INSTANCENORM",
    } <= weak.has  # fmt: skip
    assert weak.compute_capabilities == ()
    assert strong.world == "strong"
    assert "ILayer.precision" not in strong.has
    assert "INT8" not in strong.flags


def test_what_is_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stubs = ModuleType("tensorrt")
    stubs.__path__ = [str(tmp_path / "stubs")]
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs" / "__init__.pyi").touch()
    for module, why in (
        (stubs, "only type stubs are installed under its name"),
        (ModuleType("tensorrt"), "is not TensorRT: it has no Builder"),
    ):
        install(monkeypatch, module)
        assert why in probe("tensorrt").why
    assert probe(str(tmp_path / "gone")).why == "the folder does not exist"
    assert probe(str(tmp_path)).why == "the folder has no TensorRT"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libnvinfer.so.10").write_bytes(b"not a library")
    why = probe(str(tmp_path)).why
    assert "invalid ELF header" in why or "too short" in why


def test_a_module_is_used_for_a_while() -> None:
    with pytest.raises(RuntimeError, match="no TensorRT library was chosen"):
        _ = trt.Builder
    first, second = fake_tensorrt(), fake_tensorrt(STRONGLY_TYPED)
    use(first)
    with using(second) as library:
        assert trt.Builder is second.Builder
        assert library.capabilities.world == "strong"
    assert trt.Builder is first.Builder


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
         "loading it crashed with SIGSEGV"),
        ("import sys\nsys.exit('no licence')\n", "loading it failed: no licence"),
    ],
    ids=["crashes", "leaves"],
)  # fmt: skip
def test_a_library_that_ends_the_process_is_only_its_own_fault(
    tmp_path: Path, source: str, why: str
) -> None:
    facts = asked(str(package(tmp_path, source)))
    assert facts.why == why
    assert library_check(facts).state == BROKEN
