"""The card of a report: text, SVG and PNG."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dld_tui.core.errors import UnavailableError
from dld_tui.core.reading.card import card_lines, card_svg, write_card
from dld_tui.core.reading.first_lines import headline
from tests.core.reading.test_story import report_of
from tests.support.report_files import HOSTILE


@pytest.mark.parametrize("network", ["tiny.onnx", HOSTILE])
def test_the_card_is_fit_for_a_chat_and_a_picture(tmp_path: Path, network: str) -> None:
    report = report_of(tmp_path / "r.dldprof", network=network)
    lines = card_lines(report)
    assert lines[0] == headline(report)
    assert ["Conv", "60.0", "%"] in [line.split()[:3] for line in lines]
    assert "\x1b" not in "".join(lines)
    picture = ElementTree.fromstring(card_svg(report))
    texts = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "4.00 ms" in texts
    assert "60.0 %" in texts


def test_the_name_says_whether_a_card_is_a_picture(tmp_path: Path) -> None:
    report = report_of(tmp_path / "r.dldprof")
    write_card(report, tmp_path / "c.svg", False)
    write_card(report, tmp_path / "c.txt", False)
    assert (tmp_path / "c.svg").read_text() == card_svg(report)
    assert (tmp_path / "c.txt").read_text().splitlines() == card_lines(report)


@pytest.mark.parametrize("network", ["tiny.onnx", HOSTILE, "模型.onnx"])
def test_a_png_has_the_bars_of_the_svg(tmp_path: Path, network: str) -> None:
    Image = pytest.importorskip("PIL.Image")
    report = report_of(tmp_path / "r.dldprof", network=network)
    write_card(report, tmp_path / "c.PNG", False)
    with Image.open(tmp_path / "c.PNG") as image:
        assert image.size == (1280, 720)
        assert image.getpixel((0, 0))[3] == 0
        assert image.getpixel((640, 20))[:3] == (0x15, 0x18, 0x1D)
        # 60 % of the time is Conv: 192 of the card's 640 columns, from the 190th.
        row = [image.getpixel((x, 2 * 244))[:3] == (0x56, 0xB4, 0xE9) for x in range(1280)]
        assert (row.index(True), sum(row)) == (380, 385)
        texts = sum(image.getpixel((x, 2 * 110))[:3] == (0x56, 0xB4, 0xE9) for x in range(1280))
    assert texts > 20


def test_without_pillow_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    report = report_of(tmp_path / "r.dldprof")
    with pytest.raises(UnavailableError, match="Pillow"):
        write_card(report, tmp_path / "c.png", False)
    assert not (tmp_path / "c.png").exists()
