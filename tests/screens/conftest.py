"""What the tests of screens share."""

from __future__ import annotations

import pytest

from dld_tui.screens.workspace.inference import TypeInference
from tests.support import style_sheets
from tests.support.ssh_fixtures import sshd

__all__ = ["sshd"]

style_sheets.share()


@pytest.fixture(autouse=True)
def no_type_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no child process for each model that is opened, and for each edit."""
    monkeypatch.setattr(TypeInference, "INFER", False)


@pytest.fixture
def type_inference(no_type_inference: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infer types, for the tests that need them."""
    monkeypatch.setattr(TypeInference, "INFER", True)
