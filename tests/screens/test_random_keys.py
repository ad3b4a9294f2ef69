"""Whatever is typed, the program goes on, answers, and loses no edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.random_keys import session
from tests.support.typist import Programs

_KEYS = 600
_ANSWER_S = 60.0
"""Machines that run tests are busy."""


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs() as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_keys_end_nothing_and_lose_nothing(
    programs: Programs, tmp_path: Path, seed: int
) -> None:
    outcome = session(programs, tmp_path, seed, _KEYS, _ANSWER_S)
    assert not outcome.faults
    assert outcome.pages
