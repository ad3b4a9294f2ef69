"""What the tests of screens share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.machine import providers
from dld_tui.screens.home import welcome
from dld_tui.screens.workspace.inference import Inference
from tests.support import models, style_sheets
from tests.support.ssh_fixtures import forks, shared_sshd, sshd
from tests.support.typist import Programs

__all__ = ["forks", "shared_sshd", "sshd"]

style_sheets.share()


@pytest.fixture(autouse=True)
def no_type_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no child process for each model that is opened, and for each edit."""
    monkeypatch.setattr(Inference, "INFER", False)


@pytest.fixture(autouse=True)
def no_question_for_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no child process for each form that is opened."""
    monkeypatch.setattr(providers, "find_installed", lambda: None)


@pytest.fixture(autouse=True)
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Browse an empty folder on the start page: what lies in the repository changes."""
    monkeypatch.setattr(welcome, "this_folder", lambda: str(tmp_path / "nothing here"))


@pytest.fixture
def type_inference(no_type_inference: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infer types, for the tests that need them."""
    monkeypatch.setattr(Inference, "INFER", True)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Return the file of a chain of four nodes."""
    return models.write(tmp_path, models.CHAIN)


@pytest.fixture
def branches(tmp_path: Path) -> Path:
    """Return the file of a model with subgraphs."""
    return models.write(tmp_path, models.BRANCHES)


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    """Return the file of a model with twelve equal layers."""
    return models.write(tmp_path, models.layered(12))


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    """Start programs in pseudo-terminals."""
    with Programs() as started:
        yield started
