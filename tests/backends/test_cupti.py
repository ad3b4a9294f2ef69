from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.backends.machine import cupti
from dld_tui.backends.machine.capture import (
    HardwareSampler,
    attribution_notes,
    attribution_property,
)
from dld_tui.backends.machine.cupti import ActivityTracer, demangled
from dld_tui.core.errors import UnavailableError
from dld_tui.core.report.gpu_kernels import ActivityLog, AttributedWork, KernelSum
from tests.support import gpu


def trace(*records: Any) -> ActivityTracer:
    tracer = ActivityTracer(module=gpu.FakeCupti(list(records)))
    tracer.start()
    return tracer


def test_work_and_the_calls_that_launched_it() -> None:
    log = trace(
        gpu.call(90, 1),
        gpu.call(95, 1, gpu.Kind.DRIVER),  # inside the runtime's call, of the same number
        gpu.kernel("gemm", 100, 150, 1),
        gpu.call(200, 2),
        gpu.copy(210, 220, 2, 4096),
        gpu.memset(230, 240, 3, 16),
        gpu.overhead(300, 400),
    ).stop()

    assert log.launches == {1: 90, 2: 200}
    assert [(w.kind, w.name, w.stream, w.bytes) for w in log.work] == [
        ("kernel", "gemm", "stream 7", None),
        ("memcpy", "HtoD", "stream 7", 4096),
        ("memset", "memset", "stream 7", 16),
        ("overhead", "CUPTI buffer flush", "overhead", None),
    ]
    assert log.work[0].details == {
        "grid": [1, 1, 1], "block": [1, 1, 1], "registers": 32, "shared_bytes": 1024
    }  # fmt: skip
    assert log.dropped == 0


def test_kernels_alone_record_no_calls() -> None:
    fake = gpu.FakeCupti([gpu.kernel("gemm", 100, 150, 1, graph_node_id=5)])
    tracer = ActivityTracer(module=fake, calls=False)
    tracer.start()

    assert fake.enabled == {gpu.Kind.CONCURRENT_KERNEL, gpu.Kind.MEMCPY, gpu.Kind.MEMSET}
    assert [work.graph_node for work in tracer.stop().work] == [5]
    assert not fake.enabled


def test_records_without_times_or_fields_are_counted_not_shown() -> None:
    broken = gpu.kernel("no stream", 1, 2, 1)
    del broken.stream_id
    log = trace(
        gpu.kernel("never ran", 0, 0, 1), broken, gpu.kernel("good", 5, 6, 2),
        gpu.kernel("short", 7, 7, 2), gpu.kernel("backwards", 8, 7, 2), gpu.overhead(0, 5),
        gpu.overhead(6, 6), gpu.overhead(8, 7), SimpleNamespace(kind=99),
    ).stop()  # fmt: skip
    assert [(work.name, work.correlation) for work in log.work] == [
        ("good", 2), ("short", 2), ("CUPTI buffer flush", -1)
    ]  # fmt: skip
    assert log.dropped == 5


def test_named_ranges_are_paired_by_their_numbers() -> None:
    fake = gpu.FakeCupti([
        gpu.marker(10, 1, "pass"), gpu.marker(20, 2, "conv"), gpu.marker(30, 2),
        gpu.marker(35, 9),  # began before the tracer
        gpu.marker(40, 1), gpu.marker(50, 3, "never ends"), gpu.marker(60, 4, "empty"),
        gpu.marker(60, 4), gpu.marker(70, 5, "backwards"), gpu.marker(65, 5),
        gpu.marker(0, 6, "no time"), gpu.marker(80, 6), gpu.marker(90, 5),
    ])  # fmt: skip
    tracer = ActivityTracer(module=fake, ranges=True)
    tracer.start()
    assert gpu.Kind.MARKER in fake.enabled
    assert tracer.stop().ranges == [
        ("conv", 20, 30), ("pass", 10, 40), ("empty", 60, 60)
    ]  # fmt: skip


def test_the_library_that_hears_ranges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cupti._INJECTION, "mine.so")
    cupti.enable_nvtx()
    assert os.environ[cupti._INJECTION] == "mine.so"
    monkeypatch.delenv(cupti._INJECTION)
    library = tmp_path / "cu13" / "lib" / cupti._LIBRARIES[0]
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setitem(sys.modules, "nvidia", SimpleNamespace(__path__=[str(tmp_path)]))
    cupti.enable_nvtx()
    assert os.environ.pop(cupti._INJECTION) == str(library)


PEAK = ".avg.pct_of_peak_sustained_elapsed"
NAMES = [
    "sm__cycles_active",
    "dram__throughput",
    "sm__pipe_tensor_cycles_active",
    "pcie__throughput",
]


def sampler(
    accepts: list[str],
    base: list[str] | None = None,
    rounds: tuple[int, ...] = (3,),
    refuses: Exception | None = None,
) -> tuple[HardwareSampler, Any]:
    class Collector(gpu.FakeCollector):
        alive = 0

    Collector.accepts = frozenset(name + PEAK for name in accepts)
    Collector.rounds, Collector.refuses = rounds, refuses
    host = gpu.fake_host(NAMES if base is None else base)
    modules = (SimpleNamespace(Collector=Collector), host)
    return HardwareSampler(0, 10.0, 100, modules), Collector


def test_samples_of_all_rows() -> None:
    found, collector = sampler(NAMES)
    found.start()
    series = found.stop()

    assert [one.spec.title for one in series] == ["SM active", "DRAM", "Tensor Core", "PCIe"]
    assert series[0].samples == [(1050, 0.0), (1150, 10.0), (1250, 20.0)]  # at the middle
    assert series[3].samples[0] == (1050, 3.0)
    assert {one.absent for one in series} == {None}
    assert collector.alive == 0


def test_rows_that_a_chip_cannot_count_together_are_given_up_and_named() -> None:
    found, collector = sampler(NAMES[:2])
    assert [spec.title for spec in found.specs] == ["SM active", "DRAM"]
    found.start()
    series = found.stop()

    assert [one.spec.title for one in series if one.samples] == ["SM active", "DRAM"]
    absent = {one.spec.title: one.absent for one in series if not one.samples}
    assert absent == dict.fromkeys(
        ("PCIe", "Tensor Core"), "this GPU does not count it together with the other rows"
    )
    assert collector.alive == 0


def test_what_is_flushed_between_passes_and_of_which_device(tmp_path: Path) -> None:
    fake = gpu.FakeCupti([gpu.kernel("a", 1, 2, 1)])
    tracer = ActivityTracer(module=fake)
    tracer.start()
    tracer.flush()
    fake.lost = 3
    fake.records = [gpu.kernel("b", 3, 4, 2, device_id=3)]
    log = tracer.stop()
    assert (fake.flushed, log.dropped) == ([0, 1], 3), "the last also what is not full"
    work = log.work
    assert [(one.name, one.stream) for one in work] == [("a", "stream 7"), ("b", "GPU 3 stream 7")]
    assert not fake.enabled


def test_a_refusal_switches_everything_off_again_and_says_what_gives_permission() -> None:
    fake = gpu.FakeCupti([], refuses=RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"))
    with pytest.raises(UnavailableError, match="recording the activity of the GPU is not perm"):
        ActivityTracer(module=fake).start()
    assert not fake.enabled
    with pytest.raises(UnavailableError) as caught, cupti.cupti_errors("counting"):
        raise PermissionError("see the web")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in str(caught.value.hint)
    assert "group debug" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("_Z4gemmPfi", "gemm(float*, int)"), ("gemm", "gemm"), ("_Z is no name", "_Z is no name")],
)
def test_names_are_demangled(name: str, shown: str) -> None:
    assert demangled(name) == shown


@pytest.mark.parametrize(
    ("source", "said"),
    [(None, "cupti-python is not installed"),
     ("raise RuntimeError('CUDA driver is not found')", "cannot be loaded: CUDA driver is not")],
)  # fmt: skip
def test_a_missing_and_a_broken_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None, said: str
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "cupti"]:
        monkeypatch.delitem(sys.modules, name)
    if source is None:
        monkeypatch.setitem(sys.modules, "cupti", None)
    else:
        (tmp_path / "cupti.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
    cupti.load.cache_clear()
    try:
        with pytest.raises(UnavailableError, match=said) as caught:
            ActivityTracer()
        assert caught.value.status == 4
    finally:
        cupti.load.cache_clear()


@pytest.mark.parametrize(
    ("rounds", "first_start", "samples", "absent"),
    [
        ((3, 2), 1000, {3}, {None}),  # a second call gives no times and values (CUPTI 13.4, H200)
        ((3,), 0, {2}, {None}),
        ((0,), 1000, {0}, {"the GPU returned no sample"}),
    ],
    ids=["in one go", "a sample without a start", "none"],
)
def test_samples_that_count(
    rounds: tuple[int, ...], first_start: int, samples: set[int], absent: set[str | None]
) -> None:
    found, collector = sampler(NAMES, rounds=rounds)
    collector.first_start = first_start
    found.start()
    series = found.stop()
    assert {len(one.samples) for one in series} == samples
    assert {one.absent for one in series} == absent


def test_what_cannot_be_counted_is_said() -> None:
    found, _ = sampler(NAMES, base=[name for name in NAMES if "pcie" not in name])
    assert [(one.spec.title, one.absent) for one in found.absent] == [
        ("PCIe", "this GPU has no such counter")
    ]
    assert len(found.specs) == 3
    with pytest.raises(UnavailableError, match="cannot sample its counters: not in one pass"):
        sampler([])
    with pytest.raises(UnavailableError, match="not permitted") as caught:
        sampler(NAMES, refuses=PermissionError("no"))
    assert "root" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("work", "by_layer", "dropped", "said"),
    [
        (AttributedWork(), True, 0, ["The GPU ran no kernel in the passes that were recorded."]),
        (AttributedWork(kernels=KernelSum(3, 10), given=KernelSum(3, 10)), True, 0, []),
        (AttributedWork(kernels=KernelSum(3, 11), given=KernelSum(2, 8), unclaimed=KernelSum(1, 2)),
         True, 0, ["20.0 % of the GPU's kernel time was launched between the layers and belongs to"
                   " none."]),
        (AttributedWork(kernels=KernelSum(3, 10), unclaimed=KernelSum(3, 10)), False, 0,
         ["Kernels are shown by stream: which layer launched them is unknown."]),
        (AttributedWork(kernels=KernelSum(3, 10), given=KernelSum(2, 8)), True, 1_200,
         ["The kernels' times do not add up: 2.0 us are missing.",
          "1,200 records of the GPU were lost or unreadable."]),
        (AttributedWork(kernels=KernelSum(3, 10), given=KernelSum(3, 12)), True, 0,
         ["The kernels' times do not add up: -2.0 us are missing."]),
    ],
    ids=["no kernel", "all by layers", "between layers", "no layers", "lost", "too much"],
)  # fmt: skip
def test_what_is_told_of_the_work_of_a_gpu(
    work: AttributedWork, by_layer: bool, dropped: int, said: list[str]
) -> None:
    log = ActivityLog(dropped=dropped)
    assert [note.text for note in attribution_notes(work, log, by_layer)] == said
    fact = attribution_property(work, log)
    assert (fact["kernel_us"], fact["dropped_records"]) == (work.kernels.time_us, dropped)


def test_libraries_of_packages_are_loaded_from_the_first_folder_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cublas", "cuda_cupti", "other"):
        folder = tmp_path / "nvidia" / name / "lib"
        folder.mkdir(parents=True)
        if name != "cublas":
            (folder / "libcupti.so.13").touch()
    loaded: list[tuple[str, int]] = []

    def load(path: str, mode: int) -> None:
        loaded.append((path, mode))
        raise OSError(path)  # the others are tried nevertheless

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    cupti._preload()
    folder = tmp_path / "nvidia" / "cuda_cupti" / "lib"
    libraries = ("libcupti.so.13", "libnvperf_target.so", "libnvperf_host.so")
    assert loaded == [(str(folder / name), ctypes.RTLD_GLOBAL) for name in libraries]
    monkeypatch.setitem(sys.modules, "nvidia", None)
    cupti._preload()
    assert len(loaded) == 3
