from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from dld_tui.core.compare.comparison import Comparison, open_subject
from dld_tui.core.compare.export import comparison_page
from tests.support.browser import dom_after
from tests.support.known import known
from tests.support.report_files import HOSTILE, make_report

NASTY = '"><script>document.title="hit"</script><img src=x onerror=alert(1)>'


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    paths = [
        make_report(tmp_path / f"{seed}.dldprof", 30, 12, names=(HOSTILE, NASTY), seed=seed)
        for seed in (1, 2)
    ]
    return Comparison([open_subject(path) for path in paths])


def test_reports_of_one_name_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    paths = [make_report(tmp_path / name / "a.dldprof") for name in ("old", "new")]
    page = comparison_page(Comparison([open_subject(path) for path in paths]))
    assert "Comparison of old/a.dldprof and new/a.dldprof" in page
    assert "B: new/a.dldprof · " in page
    assert str(tmp_path) not in page.split("</header>")[0]
    same = open_subject(paths[0])
    assert "No differences in settings and environment." in comparison_page(
        Comparison([same, same])
    )


def test_in_a_browser_it_sorts_by_the_difference(comparison: Comparison, tmp_path: Path) -> None:
    script = """
    const heads = document.querySelectorAll("#layer-table thead button");
    heads[3].click();
    const told = [...document.querySelectorAll("#layer-table tbody tr")]
      .map((row) => parseFloat(row.cells[3].dataset.v));
    const out = document.createElement("pre");
    out.id = "told"; out.textContent = JSON.stringify([told, document.title]);
    document.body.append(out);
    """
    dom = dom_after(comparison_page(comparison), script, tmp_path)
    found = known(re.search(r'<pre id="told">(.*?)</pre>', dom, re.DOTALL))
    told, title = json.loads(html.unescape(found[1]))
    assert told == sorted(told, reverse=True)
    assert len(told) == len(comparison.rows("layer"))
    assert title.startswith("Comparison of ")
