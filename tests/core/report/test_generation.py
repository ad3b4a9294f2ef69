"""The figures of a decoder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.reading.first_lines import latency_title
from dld_tui.core.report.generation import (
    GENERATION,
    GenerationFigures,
    generation_story,
    llm_json,
)
from dld_tui.core.report.report import Report
from tests.support.profiles import start_report


def test_figures_by_phase() -> None:
    row = GenerationFigures(2, 8, 3, 10.0, 12.0, 6.0, (1.0, 2.0, 3.0), 64)
    assert llm_json([row, replace(row, batch=1, prompt=16)]) == {
        "prefill": [
            {"prompt": 8, "batch": 2, "ms": 10.0, "tokens_s": 1600.0},
            {"prompt": 16, "batch": 1, "ms": 10.0, "tokens_s": 1600.0},
        ],
        "decode": [
            {"context": 10, "batch": 2, "ms_token": 2.0, "tokens_s": 1000.0},
            {"context": 18, "batch": 1, "ms_token": 2.0, "tokens_s": 500.0},
        ],
        "ttft_ms": 12.0,
        "tokens_s": 1000.0,
        "new_shape_ms": None,
        "kv_bytes": 64,
    }
    assert llm_json([]) is None


@pytest.mark.parametrize(
    ("decode_ms", "text"), [(2.0, "3,000"), (60.0, "100"), (60.1, "99.8"), (0.0, "0")]
)
def test_the_rate_as_people_read_it(decode_ms: float, text: str) -> None:
    row = GenerationFigures(2, 8, 3, 10.0, 12.0, decode_ms, (), 64)
    assert row.rate_text == text


def test_the_story_compares_prompts_and_batches() -> None:
    def figures(batch: int, prompt: int, ms: float) -> GenerationFigures:
        return GenerationFigures(batch, prompt, 2, 10.0, 12.0, 2 * ms, (ms, ms), 64)

    uneven = replace(figures(1, 8, 4.0), longest_step_ms=13.0)
    assert [*generation_story([uneven])] == ["The slowest token takes 13.0 ms."]
    often = [*generation_story([replace(uneven, step_p99_ms=9.0)])]
    assert often == ["The slowest token takes 13.0 ms, one of 100 more than 9.00 ms."]
    assert not [*generation_story([replace(uneven, longest_step_ms=7.9)])]
    said = [*generation_story([figures(1, 8, 1.0), figures(1, 64, 1.5), figures(4, 8, 2.0)])]
    assert said == [
        "At a prompt of 64 a token takes 1.50× as long.",
        "A batch of 4 makes 2.0× as many tokens a second.",
    ]


def test_a_difference_that_repetitions_do_not_show_is_not_certain() -> None:
    def figures(batch: int, prompt: int, *repeats: float) -> GenerationFigures:
        middle = sorted(repeats)[len(repeats) // 2]
        return GenerationFigures(
            batch, prompt, 2, 10.0, 12.0, middle, (middle / 2,) * 2, 64, repeats_ms=repeats
        )

    first = figures(1, 8, 2.0, 2.2, 2.6)
    overlapping = [*generation_story([first, figures(1, 64, 2.1, 2.5, 2.9)])]
    assert overlapping == [
        "At a prompt of 64 a token takes 1.14× as long, which is not certain: repetitions overlap."
    ]
    apart = [*generation_story([first, figures(1, 64, 3.1, 3.3, 3.5)])]
    assert apart == ["At a prompt of 64 a token takes 1.50× as long."]
    assert [*generation_story([first, figures(4, 8, 2.0, 2.2, 2.4)])] == [
        "A batch of 4 makes 4.0× as many tokens a second."
    ]
    assert "not certain" in next(generation_story([first, figures(2, 8, 3.0, 4.2, 5.4)]))


@pytest.mark.parametrize("repeats", [(2.0, 3.0, 9.0), ()])
def test_single_steps_of_a_file_are_no_repetitions(
    repeats: tuple[float, ...], tmp_path: Path
) -> None:
    row = GenerationFigures(1, 8, 2, 10.0, 12.0, 3.0, (1.0, 2.0), 64, repeats_ms=repeats)
    with start_report(tmp_path / "r.dldprof") as made:
        made.add_latencies([0.5, 1.5, 1.0, 2.0, 0.7, 8.3])
        made.set_property(GENERATION, [row])
    with Report.open(tmp_path / "r.dldprof") as report:
        assert report.latency is not None
        titles = {3: "time of a token over the repetitions", 6: "time of a token over the tokens"}
        assert latency_title(report) == titles[report.latency.count]
        assert report.latency.median == (row.token_ms if repeats else 1.25)
