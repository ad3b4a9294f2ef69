from __future__ import annotations

from dld_tui.core.model.graph.pictures.drawing import box_id, html_of


def test_a_page_says_its_title_as_text_and_offers_times_where_there_are_some() -> None:
    page = html_of("<svg/>", "<b>&", {3: 0.5})
    assert "<title>&lt;b&gt;&amp;</title>" in page
    assert f'const HEATS={{"{box_id(3)}": 0.5}};' in page
    assert 'id="heat"' in page
    assert 'id="heat"' not in html_of("<svg/>", "x", {})
