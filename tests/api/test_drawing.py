"""A model in a notebook: its picture is that of ``dld draw``."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui import api
from dld_tui.core.errors import UsageError
from tests.support import models
from tests.support.cli import Dld


@pytest.mark.broad
def test_the_picture_is_that_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = models.write(tmp_path, models.BRANCHES)
    for name in ("m.svg", "m.html", "m.txt"):
        assert Dld(capsys)("draw", path, "-o", tmp_path / name).status == 0
        with api.open_model(path) as model:
            picture = model.draw(tmp_path / f"mine.{name}")
        assert picture.data == (tmp_path / name).read_bytes()
        assert picture.data == (tmp_path / f"mine.{name}").read_bytes()


def test_notebooks_show_it_with_unsaved_edits(tmp_path: Path) -> None:
    with api.open_model(models.write(tmp_path, models.CHAIN)) as model:
        node = model.main.nodes[0]
        model.edit.rename_node(node=node, name="renamed_by_me")
        ((mime, text),) = model.draw(node="renamed_by_me", hops=1)._repr_mimebundle_().items()
        assert mime == "image/svg+xml"
        assert isinstance(text, str)
        assert "renamed_by_me" in text


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    with api.open_model(path) as model:
        with pytest.raises(UsageError, match="no scheme 'pink'"):
            model.draw(scheme="pink")
        with pytest.raises(UsageError, match=r"a picture cannot be a \.pdf file"):
            model.draw(tmp_path / "m.pdf")
        (tmp_path / "m.svg").touch()
        with pytest.raises(UsageError, match="force=True"):
            model.draw(tmp_path / "m.svg")
        with pytest.raises(UsageError, match="no node 'nothing'"):
            model.draw(node="nothing")
        assert model.draw(tmp_path / "m.svg", force=True).kind == "svg"
