"""The tutorial, typed as the page says, in a pseudo-terminal; the screens are those it quotes."""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic

import pytest

from dld_tui.core.model.document.samples import TRANSFORMER_NAME, write_demo_models
from tests.support import documented_keys
from tests.support.typist import Programs, Typist

pytest.importorskip("onnxruntime")
PAGE = Path(__file__).parents[2] / "docs/start/tutorial.md"
_STEP = re.compile(r"^\*\*Type\*\* ([^\n]+)$|^```screen\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LIMIT_S = 120
"""A measurement takes 40 s, longer on a busy machine."""
_FRAME = re.compile(r"[─━│┃┌┐└┘┏┓┗┛▌]")


def plain(text: str) -> str:
    """Return a line without frames, with every number as 0 and single blanks."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*", "0", _FRAME.sub(" ", text))).strip()


def missing(quoted: str, screen: list[str]) -> list[str]:
    """Return the quoted lines that are not on the screen in their order; … is any text."""
    rows = [plain(line) for line in screen]
    found = []
    for line in quoted.splitlines():
        pattern = re.compile(".*".join(re.escape(plain(part)) for part in line.split("…")))
        at = next((place for place, row in enumerate(rows) if pattern.search(row)), None)
        if at is None:
            found.append(line)
        else:
            rows = rows[at + 1 :]
    return found


def test_a_line_that_is_not_on_the_screen_is_found() -> None:
    screen = ["┃ Conv  12.5 ms │ x ┃", "┃ Relu  3 ms ┃"]
    assert missing("Conv 1 ms …\n… 9 ms", screen) == []
    assert missing("Relu … ms\nConv …\nMatMul", screen) == ["Conv …", "MatMul"]


def wait_for(user: Typist, screen: str) -> list[str]:
    """Return the lines in front, once they have what is quoted, or after a while."""
    until = monotonic() + _LIMIT_S
    while True:
        state = user.state()
        assert not state["faults"]
        shown = list(state["screens"][-1][1:])
        if not missing(screen, shown) or monotonic() > until:
            return shown
        user.settle(1.0)


@pytest.mark.slow
def test_the_tutorial_shows_what_it_says(tmp_path: Path) -> None:
    steps = _STEP.findall(PAGE.read_text(encoding="utf-8"))
    assert sum(bool(screen) for _, screen in steps) > 4
    write_demo_models(tmp_path)
    with Programs() as programs, programs.start(tmp_path, TRANSFORMER_NAME, size=(100, 32)) as user:
        user.wait_for_screen()
        user.settle()
        for keys, screen in steps:
            if keys:
                user.slowly(documented_keys.typed(keys))
                user.settle(0.5)
            else:
                shown = wait_for(user, screen)
                assert missing(screen, shown) == [], "\n".join(shown)
