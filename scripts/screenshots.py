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
SIZES = {"_small": (80, 24), "": (120, 35), "_wide": (200, 50)}
"""The sizes at which the screens are taken, by the ending of their names."""
SCREENS: tuple[tuple[str, str, list[str], str, str], ...] = (
    ("workspace", "demo_transformer.onnx", ["j"] * 6, "Graph", ""),
    ("report", "demo_classifier.dldprof", [], "median", ""),
    ("tune", "demo_classifier.tune.json", [], "original", ""),
    ("certificate", "demo_classifier.onnx", ["f8", "f", "f5"], "Graph", "Converted"),
    ("form", "demo_classifier.onnx", ["f8", "q"], "Graph", "Method"),
)
"""Name, file, keys and the texts that are waited for before and after them, of each screen."""
INVALID = "decoder_46k.onnx"
"""Shows only how a large graph is drawn: its picture is taken before the findings are there."""


async def take(
    name: str, path: Path, size: tuple[int, int], keys: list[str], wait_for: str, until: str = ""
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
        for _ in range(600):
            if until in app.export_screenshot():
                break
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
    given: Path | None = parser.parse_args().models
    models = None if given is None else given.absolute()
    with tempfile.TemporaryDirectory() as folder:
        for variable in ("CONFIG", "STATE", "CACHE"):
            os.environ[f"XDG_{variable}_HOME"] = f"{folder}/{variable}"
        os.environ["TEXTUAL_ANIMATIONS"] = "none"

        from dld_tui.cli.main import run
        from dld_tui.core.model.document.samples import write_demo_models

        classifier, _ = write_demo_models(Path(folder))
        report = classifier.with_suffix(".dldprof")
        # One thread: what else the machine does shows less in the figures.
        profile = ["profile", "onnxruntime", str(classifier), "--duration", "2", "--threads", "1"]
        run([*profile, "-o", str(report)])
        tuned = classifier.with_suffix(".tune.json")
        run(["tune", str(classifier), "--budget", "60", "-o", str(tuned)])
        IMAGES.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)  # paths are short then
        for name, file, pressed, wait_for, until in SCREENS:
            for ending, size in SIZES.items():
                asyncio.run(take(f"{name}{ending}", Path(file), size, pressed, wait_for, until))
        for name, model, size, pressed, wait_for in GRAPHS:
            if models is not None and (models / model).exists():
                asyncio.run(take(name, models / model, size, pressed, wait_for))


if __name__ == "__main__":
    main()
