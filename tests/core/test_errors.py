"""Errors are one line that says where, what and what next, and carry their exit status."""

from __future__ import annotations

from dld_tui.core import errors


def test_the_line() -> None:
    error = errors.InputError("File is empty (0 bytes)", where="m.onnx", hint="Download it again")
    assert str(error) == "m.onnx: File is empty (0 bytes). Download it again"
    assert str(errors.UsageError("no")) == "no"


def test_the_status_of_each_class() -> None:
    assert {kind: int(kind.status) for kind in (
        errors.UsageError, errors.InputError, errors.CorruptFileError, errors.FileChangedError,
        errors.EditError, errors.UnavailableError, errors.ActivityError, errors.SaveError,
        errors.CancelledError,
    )} == {
        errors.UsageError: 2, errors.InputError: 3, errors.CorruptFileError: 3,
        errors.FileChangedError: 3, errors.EditError: 3, errors.UnavailableError: 4,
        errors.ActivityError: 5, errors.SaveError: 5, errors.CancelledError: 130,
    }  # fmt: skip
