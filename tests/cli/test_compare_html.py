"""``dld compare --html``."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import Dld
from tests.support.report_files import make_report


def test_the_page_is_written_beside_the_text(dld: Dld, tmp_path: Path) -> None:
    first, second = (make_report(tmp_path / f"{n}.dldprof", seed=n) for n in (1, 2))
    page = tmp_path / "c.html"
    outcome = dld("compare", first, second, "--html", page)
    assert (outcome.status, outcome.err) == (0, f"wrote {page}\n")
    assert "Comparison of 1.dldprof and 2.dldprof" in page.read_text()
    assert "--force" in dld.fails(2, "compare", first, second, "--html", page)
    assert dld("compare", first, second, "--html", page, "--force").status == 0
