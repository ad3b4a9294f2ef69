"""What a comparison can set of engines: the declarations of builds, on a page of their own."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.accuracy.engine_settings import PAGE, EngineSettings, is_low, settings_text
from dld_tui.core.params import settings_of
from dld_tui.core.tensorrt.settings import BuildSettings

MODEL, ENGINE = Path("m.onnx"), Path("m.engine")


def test_the_settings_are_those_of_builds() -> None:
    builds = {setting.name: setting for setting in settings_of(BuildSettings)}
    for setting in settings_of(EngineSettings):
        assert setting.param.page == PAGE
        if setting.name != "trust":
            known = builds[setting.name]
            assert setting.param.spellings == known.param.spellings
            assert (setting.type, setting.optional) == (known.type, known.optional)
            assert setting.default == known.default


def test_what_is_set_is_named_and_said() -> None:
    settings = EngineSettings(library="tensorrt", tf32=False, no_timing_cache=True)
    assert settings.engine_options == ["--library", "--no-tf32", "--no-timing-cache"]
    assert settings.build_options == ["--no-tf32", "--no-timing-cache"]
    assert EngineSettings().engine_options == []
    settings = EngineSettings(
        fp16=True, tf32=False, optimization_level=5, layer_precision=("a:fp32", "b:fp32"),
        device="1", no_timing_cache=True,
    )  # fmt: skip
    build = settings.build_settings(MODEL, ENGINE)
    assert settings_text(build) == (
        "no tf32, fp16, layer-precision a:fp32 b:fp32, optimization-level 5, no-timing-cache"
    )
    assert settings_text(BuildSettings(MODEL, ENGINE)) == ""
    assert is_low(BuildSettings(MODEL, ENGINE))
    assert not is_low(BuildSettings(MODEL, ENGINE, tf32=False))
    assert is_low(BuildSettings(MODEL, ENGINE, tf32=False, bf16=True))
