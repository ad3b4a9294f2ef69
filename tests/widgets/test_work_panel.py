"""The panel of long work."""

from __future__ import annotations

from dld_tui.widgets.shell.progress import WorkPanel


def text_of(panel: WorkPanel, width: int = 80) -> str:
    return "\n".join("".join(text for text, _ in row) for row in panel.content(width))


def test_it_says_what_and_how_far() -> None:
    panel = WorkPanel("Opening big [/x].onnx")
    assert "Opening big [/x].onnx" in text_of(panel)
    panel.report(500_000, 2_000_000)
    assert "25%  500 kB of 2 MB" in text_of(panel)
    assert "█" in text_of(panel)


def test_one_row_when_docked() -> None:
    panel = WorkPanel("Saving x", classes="-line")
    panel.report(1, 2)
    assert text_of(panel) == " Saving x  50%  1 B of 2 B  Esc stops"


def test_an_unknown_total_shows_what_is_done() -> None:
    panel = WorkPanel("Working")
    panel.report(5000, 0)
    assert "5 kB" in text_of(panel)
