"""The rows and the text of a comparison."""

from __future__ import annotations

import pytest

from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.text import cell_width
from dld_tui.widgets.results.report_compare import about_lines
from tests.support.compared import noisy, subject, timed


def compared(*factors: float) -> Comparison:
    subjects = [
        subject(
            timed("slow", noisy(2.0 * factor, number), ["s"]),
            timed("same", noisy(1.0, 10 + number), ["t"], "Add"),
            *([timed("gone", noisy(0.5, 20))] if number == 0 else []),
            title=f"{number}.dldprof",
            settings={"threads": number},
        )
        for number, factor in enumerate(factors)
    ]
    return Comparison(subjects)


def test_the_text_fits_its_width_and_begins_with_the_times_and_how_fair_they_are() -> None:
    for width in (40, 76, 190):
        lines = about_lines(compared(1.0, 2.0), width)
        texts = ["".join(text for text, _ in line) for line in lines]
        assert texts[2].startswith("end to end")
        warning = next(i for i, text in enumerate(texts) if "Whether the model" in text)
        assert 2 < warning < texts.index("threads  0 / 1")
        assert max(cell_width(text) for text in texts if "ms" not in text) <= width


@pytest.mark.parametrize(("factor", "style"), [(2.0, "bad"), (0.5, "good"), (1.25, "dim")])
def test_only_a_sure_difference_of_the_sums_has_a_colour(factor: float, style: str) -> None:
    comparison = compared(1.0, factor)
    key = comparison.layer_sum.key
    (line,) = [line for line in about_lines(comparison, 190) if line and line[0][0].startswith(key)]
    assert line[-1][1] == style


def test_the_first_token_of_decoders_is_told_beside_the_layers() -> None:
    both = [
        subject(timed("a", noisy(1.0, 1)), latencies=noisy(2.0, 2), first_tokens_ms=noisy(ms, 3))
        for ms in (8.0, 4.0)
    ]
    lines = ["".join(text for text, _ in line) for line in about_lines(Comparison(both), 100)]
    [told] = [line for line in lines if line.startswith("first token")]
    assert "A 7.900 ms  B 3.950 ms 0.50× (-3.950" in told
