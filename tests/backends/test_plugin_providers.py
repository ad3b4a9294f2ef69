"""Libraries of execution providers: what is registered, what a session gets, what is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.backends.onnxruntime import runtime
from dld_tui.backends.onnxruntime.runtime import add_providers, devices, library_checks, register
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.errors import InputError, UnavailableError, UsageError
from dld_tui.core.machine.health import BROKEN
from tests.support.engines import write_model

onnxruntime = pytest.importorskip("onnxruntime")
if not hasattr(onnxruntime, "register_execution_provider_library"):
    pytest.skip("ONNX Runtime before 1.23", allow_module_level=True)

NONE = """
#include <stddef.h>
void *CreateEpFactories(const char *name, const void *api, const void *logger, void **factories,
                        size_t most, size_t *count) { *count = 0; return NULL; }
void *ReleaseEpFactory(void *factory) { return NULL; }
"""


class Runtime:
    """Has one provider with two devices when its library is registered."""

    def __init__(self) -> None:
        self.registered: list[tuple[str, str]] = []
        self.made: list[Any] = []

    def register_execution_provider_library(self, name: str, path: str) -> None:
        self.registered.append((name, path))

    def get_ep_devices(self) -> list[Any]:
        def device(provider: str, kind: str, **about: str) -> Any:
            here = SimpleNamespace(type=SimpleNamespace(name=kind), vendor="Acme", metadata=about)
            found = SimpleNamespace(ep_name=provider, ep_metadata={"version": "2"}, device=here)
            assert vars(found).keys() <= set(dir(onnxruntime.OrtEpDevice))
            assert vars(here).keys() <= set(dir(onnxruntime.OrtHardwareDevice))
            return found

        toys = [device("ToyExecutionProvider", kind, Description="big") for kind in ("GPU", "NPU")]
        return [device("CPUExecutionProvider", "CPU"), *(toys if self.registered else ())]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    runtime._register.cache_clear()
    found = Runtime()
    monkeypatch.setattr(runtime, "load", lambda: found)
    (tmp_path / "libtoy.so").touch()
    yield found
    runtime._register.cache_clear()


def test_a_library_is_registered_once_and_its_devices_listed(fake: Any, tmp_path: Path) -> None:
    path = tmp_path / "libtoy.so"
    register([path, path])
    assert fake.registered == [(str(path), str(path))]
    assert [about.text for about, _ in devices()][1:] == [
        "Toy: Acme GPU (2, big)",
        "Toy: Acme NPU (2, big)",
    ]


def test_a_session_gets_the_device_of_its_number(fake: Any, tmp_path: Path) -> None:
    register([tmp_path / "libtoy.so"])
    given: list[tuple[Any, dict[str, str]]] = []
    options = SimpleNamespace(
        add_provider=lambda name, own: given.append((name, own)),
        add_provider_for_devices=lambda found, own: given.append((found[0].device.type.name, own)),
    )
    assert vars(options).keys() <= set(dir(onnxruntime.SessionOptions))
    add_providers(options, ["Toy", "Xnnpack", "CPU"], 1, {"Toy": {"a": "1"}})
    assert given == [("NPU", {"a": "1"}), ("XnnpackExecutionProvider", {}), ("CPU", {})]
    with pytest.raises(UsageError, match="Toy has no device 2") as error:
        add_providers(options, ["Toy"], 2, {})
    assert "0 Toy: Acme GPU" in (error.value.hint or "")


def test_an_old_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runtime, "load", lambda: SimpleNamespace(__version__="1.20"))
    with pytest.raises(UnavailableError, match="cannot load provider libraries"):
        register([tmp_path / "one.so"])


ENDS = """
#include <stdlib.h>
__attribute__((constructor)) static void end(void) { abort(); }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_real_libraries_without_a_device_or_a_provider(tmp_path: Path) -> None:
    source, library, other = (tmp_path / name for name in ("none.c", "none.so", "other.so"))
    source.write_text(NONE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "empty.c").touch()
    subprocess.run(["cc", "-shared", "-fPIC", "-o", other, tmp_path / "empty.c"], check=True)
    (tmp_path / "ends.c").write_text(ENDS)
    ends = tmp_path / "ends.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", ends, tmp_path / "ends.c"], check=True)
    paths = (ends, library, other, tmp_path / "nothing.so")
    checks = list(library_checks(map(str, paths)))
    assert {check.state for check in checks} == {BROKEN}
    assert [check.name for check in checks] == [path.name for path in paths]
    assert [check.found.split(":")[0] for check in checks[1:]] == [
        "the provider library finds no usable device here",
        f"is not a provider library for ONNX Runtime {onnxruntime.__version__}",
        "the provider library does not exist",
    ]
    assert checks[0].found == "crashed: SIGABRT"
    model = write_model(tmp_path / "m.onnx")
    with pytest.raises(InputError, match="is not a provider library"):
        Session(model, SessionSettings(provider_libraries=(other,)))
