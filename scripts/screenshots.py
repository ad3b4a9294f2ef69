"""Take the pictures of the documentation: the real program on its own demo models.

The pictures of graphs are of public models, and of `decoder_46k.onnx`, which is what
``benchmarks.transformers.decoder(135, 18)`` returns; give the folder with them as the argument,
else these pictures stay as they are. Take the report on an idle machine: it says how busy it was.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import tempfile
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
GRAPHS = (
    ("graph_minilm_small", "minilm_l6_int8.onnx", (80, 24), ["2", "m", *["pagedown"] * 3], "graph"),
    (
        "graph_minilm",
        "minilm_l6_int8.onnx",
        (200, 50),
        ["2", *["pagedown"] * 2, *["k"] * 12],  # to the layers, which are one row
        "Graph",
    ),
    ("graph_densenet", "light_densenet121.onnx", (150, 42), ["2", "j"], "Graph"),
    (
        "graph_silero",
        "silero_vad_16k_op15.onnx",
        (150, 42),
        ["1", "slash", "r", "n", "n", "enter", "2", "v", "v", "m"],
        "If",
    ),
    ("graph_densenet_small", "light_densenet121.onnx", (80, 24), ["2", "m", "j"], "Graph"),
    (
        "graph_silero_small",
        "silero_vad_16k_op15.onnx",
        (80, 24),
        ["1", "slash", "r", "n", "n", "enter", "2", "v", "v", "m"],
        "If",
    ),
    ("graph_46k", "decoder_46k.onnx", (200, 50), ["2", "j", "j"], "Graph"),
    ("graph_46k_small", "decoder_46k.onnx", (80, 24), ["2", "m", "j", "j"], "graph"),
)
"""Name, model, size, keys and the text that is waited for, of each picture of a graph."""
INVALID = "decoder_46k.onnx"
"""Shows only how a large graph is drawn: its picture is taken before the findings are there."""


async def take(
    name: str, path: Path, size: tuple[int, int], keys: list[str], wait_for: str
) -> None:
    """Open a file, press keys, and write what the screen then shows to ``docs/images``."""
    from dld_tui.app import DldApp
    from dld_tui.screens.workspace.page import WorkspaceScreen

    app = DldApp([path])
    async with app.run_test(size=size) as pilot:
        for _ in range(200):
            await pilot.pause(0.05)
            if wait_for in app.export_screenshot():
                break
        page = app.pages[0]
        for _ in range(600):
            if not isinstance(page, WorkspaceScreen) or page.model.has_fresh_types:
                break
            if path.name == INVALID:
                break
            await pilot.pause(0.1)
        for key in keys:
            for _ in range(200):
                if "is&#160;being&#160;arranged" not in app.export_screenshot():
                    break
                await pilot.pause(0.1)
            await pilot.press(key)
            await pilot.pause(0.1)
        await pilot.pause(0.5)
        picture = app.export_screenshot(title="dld")
    # Without the web font, the picture needs nothing from the network.
    picture = re.sub(r"@font-face\s*\{.*?\}", "", picture, flags=re.DOTALL)
    picture = picture.replace("Fira Code", "DejaVu Sans Mono")
    (IMAGES / f"{name}.svg").write_text(picture, encoding="utf-8")


def main() -> None:
    """Make the demo models and a report, and photograph them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="?", type=Path, help="a folder with the public models")
    models: Path | None = parser.parse_args().models
    with tempfile.TemporaryDirectory() as folder:
        for variable in ("CONFIG", "STATE", "CACHE"):
            os.environ[f"XDG_{variable}_HOME"] = f"{folder}/{variable}"
        os.environ["TEXTUAL_ANIMATIONS"] = "none"

        from dld_tui.cli.main import run
        from dld_tui.core.document.samples import write_demo_models

        classifier, transformer = write_demo_models(Path(folder))
        report = Path(folder) / "demo_classifier.dldprof"
        # One thread: what else the machine does shows less in the figures.
        profile = ["profile", "onnxruntime", str(classifier), "--duration", "2", "--threads", "1"]
        run([*profile, "-o", str(report)])
        IMAGES.mkdir(parents=True, exist_ok=True)
        asyncio.run(take("workspace", transformer, (150, 42), ["j"] * 6, "By scope"))
        for name, model, size, pressed, wait_for in GRAPHS:
            if models is not None and (models / model).exists():
                asyncio.run(take(name, models / model, size, pressed, wait_for))
        asyncio.run(take("report", report, (180, 50), [], "median"))


if __name__ == "__main__":
    main()
