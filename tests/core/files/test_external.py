from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.files.blobs import Blob, BlobTable, SpillFile
from dld_tui.core.files.external import (
    ExternalDataError,
    ExternalFiles,
    decoded,
    entries_of,
    has_values_as_stored,
    in_huggingface_cache,
    inline_blob,
    is_pending,
    make_plain,
    payload_length,
    require_location,
    resolve_external,
    set_pending,
)
from dld_tui.core.files.source import Source
from tests.support.payloads import cut_file, everything, write_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a model's folder with data in it, below it and outside."""
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (home / "m.onnx").touch()
    (home / "w.bin").write_bytes(bytes(range(200)))
    (home / "sub" / "w.bin").write_bytes(b"below")
    (tmp_path / "secret").write_bytes(b"secret")
    return home


@pytest.fixture
def never_outside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail when a call looks at anything outside the model's folder."""
    calls = {name: getattr(os, name) for name in ("open", "stat", "lstat", "readlink")}
    outside = []

    def guarded(name: str) -> object:
        def call(path: object, *rest: object, **options: object) -> object:
            if not isinstance(path, int) and not Path(os.fsdecode(path)).is_relative_to(folder):  # type: ignore[arg-type]
                outside.append(f"{name}({path!r})")
            return calls[name](path, *rest, **options)

        return call

    # What resolves the model's own folder is not at issue.
    real = os.path.realpath(folder)
    with monkeypatch.context() as patched:
        patched.setattr(os.path, "realpath", lambda path: real if path == str(folder) else path)
        for name in calls:
            patched.setattr(os, name, guarded(name))
        yield
    assert outside == []


def refusal(folder: Path, location: str) -> str:
    with pytest.raises(ExternalDataError) as raised:
        resolve_external(folder / "m.onnx", location)
    assert raised.value.where == str(folder / "m.onnx")
    return raised.value.message


@pytest.mark.usefixtures("never_outside")
@pytest.mark.parametrize(
    "location",
    [
        "../secret",
        "sub/../../secret",
        "sub/../..",
        "..",
        "/etc/passwd",
        "//etc/passwd",
        "..\\secret",
        "sub\\w.bin",
        "C:\\Windows\\win.ini",
        "C:w.bin",
        "\\\\server\\share\\w.bin",
    ],
)
def test_paths_out_of_the_folder_are_refused_untouched(folder: Path, location: str) -> None:
    assert refusal(folder, location).startswith("External data path leaves the model folder")


@pytest.mark.usefixtures("never_outside")
@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("gone/../w.bin", "not found"),  # as the system and ONNX Runtime see it
        ("w.bin/../w.bin", "not found"),
        ("sub/w.bin/..", "not found"),
        ("sub/..", "not a regular file"),
    ],
)
def test_a_way_up_leads_through_folders_that_are_there(
    folder: Path, location: str, words: str
) -> None:
    assert words in refusal(folder, location)


@pytest.mark.usefixtures("never_outside")
@pytest.mark.parametrize(
    "target",
    ["../secret", "{outside}/secret", "sub/../../secret", "../home/../secret", "out2", "..", "/"],
)
def test_links_out_of_the_folder_are_refused_untouched(folder: Path, target: str) -> None:
    os.symlink(target.format(outside=folder.parent), folder / "out")
    os.symlink("../missing", folder / "out2")
    location = {"..": "out/secret", "/": "out/etc/passwd"}.get(target, "out")
    assert "leaves the model folder through a link" in refusal(folder, location)


@pytest.mark.usefixtures("never_outside")
def test_links_inside_the_folder_are_followed(folder: Path) -> None:
    os.symlink("sub", folder / "folder-link")
    os.symlink("../w.bin", folder / "sub" / "up")
    os.symlink(folder / "w.bin", folder / "absolute")
    os.symlink(".//../sub/./up", folder / "sub" / "again")
    for location in ("folder-link/up", "sub/up", "absolute", ".//sub/./again"):
        assert resolve_external(folder / "m.onnx", location) == folder / "w.bin"


@pytest.mark.usefixtures("never_outside")
def test_what_is_no_file_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    os.symlink("loop", folder / "loop")
    assert refusal(folder, "fifo") == "External data fifo is not a regular file"
    assert refusal(folder, "sub") == "External data sub is not a regular file"
    assert refusal(folder, ".") == "External data . is not a regular file"
    assert refusal(folder, "loop") == "External data loop is not a regular file"
    assert refusal(folder, "missing.bin") == "External data missing.bin not found"
    assert refusal(folder, "w.bin/deeper") == "External data w.bin/deeper not found"
    assert "invalid location" in refusal(folder, "")
    assert "invalid location" in refusal(folder, "a\0b")
    assert "File name too long" in refusal(folder, "n" * 300)


def test_messages_show_hostile_names_safely(folder: Path) -> None:
    message = refusal(folder, "\x1b]0;title\x07" + "n" * 100_000)
    assert "\x1b" not in message
    assert len(message) < 400


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return a model in the layout of a Hugging Face cache."""
    root = tmp_path / "models--org--name"
    snapshot = root / "snapshots" / "0123abcd"
    (root / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name, blob in (("model.onnx", "aa"), ("model.onnx_data", "bb")):
        (root / "blobs" / blob).write_bytes(name.encode())
        (snapshot / name).symlink_to(f"../../blobs/{blob}")
    return snapshot


def test_a_hugging_face_cache_is_read_as_onnxruntime_does(cache: Path) -> None:
    model = cache / "model.onnx"
    for allowed in (False, True):
        found = resolve_external(model, "model.onnx_data", allow_linked=allowed)
        assert found == cache.parents[1] / "blobs" / "bb"
        blob = ExternalFiles(model, allow_linked=allowed).blob({"location": "model.onnx_data"})
        assert blob.read() == b"model.onnx_data"
    assert in_huggingface_cache(model)
    assert not in_huggingface_cache(cache.parents[1] / "blobs" / "aa")


def test_a_cache_whose_links_lead_elsewhere_is_read_when_links_are_allowed(cache: Path) -> None:
    outside = cache.parents[2] / "outside"
    outside.write_bytes(b"outside")
    (cache / "other_data").symlink_to(outside)
    with pytest.raises(ExternalDataError) as raised:
        resolve_external(cache / "model.onnx", "other_data")
    assert raised.value.link
    assert "Hugging Face cache" in (raised.value.hint or "")
    assert resolve_external(cache / "model.onnx", "other_data", allow_linked=True) == outside


def test_allowing_links_allows_nothing_else(folder: Path) -> None:
    os.symlink("..", folder / "up")
    os.symlink("/dev/zero", folder / "zero")
    os.symlink("../gone", folder / "gone")
    model = folder / "m.onnx"
    assert resolve_external(model, "up/secret", allow_linked=True) == folder.parent / "secret"
    for location, words in (
        ("../secret", "leaves the model folder"),
        ("/etc/passwd", "leaves the model folder"),
        ("zero", "not a regular file"),
        ("gone", "not found"),
    ):
        with pytest.raises(ExternalDataError, match=words):
            resolve_external(model, location, allow_linked=True)


@pytest.mark.parametrize(
    ("offset", "length"),
    [
        ("-1", "4"),
        ("0", "-4"),
        ("201", "0"),
        ("0", "201"),
        ("199", "2"),
        ("9223372036854775808", "4"),
        ("9223372036854775807", "9223372036854775807"),
        ("9" * 100_000, "4"),
        ("0x10", "4"),
        ("1e2", "4"),
        ("", "4"),
        ("١", "4"),
    ],
)
def test_bad_offsets_and_lengths(folder: Path, offset: str, length: str) -> None:
    with pytest.raises(ExternalDataError, match="Invalid offset/length") as raised:
        ExternalFiles(folder / "m.onnx").blob(
            {"location": "w.bin", "offset": offset, "length": length}
        )
    assert len(str(raised.value)) < 1000


def test_data_of_a_linked_model_may_be_beside_the_real_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "short.onnx").symlink_to("home/m.onnx")
    files = ExternalFiles(tmp_path / "short.onnx")
    assert files.blob({"location": "w.bin", "length": "3"}).read() == b"\0\1\2"
    with pytest.raises(ExternalDataError, match="not found"):
        files.blob({"location": "missing"})
    with pytest.raises(ExternalDataError, match="leaves the model folder"):
        files.blob({"location": "../secret"})


def test_a_file_that_appears_later_is_found(folder: Path) -> None:
    files = ExternalFiles(folder / "m.onnx")
    with pytest.raises(ExternalDataError, match="not found"):
        files.blob({"location": "late"})
    (folder / "late").write_bytes(b"late")
    assert files.blob({"location": "late"}).read() == b"late"


def test_more_files_than_the_usual_limit(folder: Path) -> None:
    """Some exporters write a file for each weight."""
    for index in range(300):
        (folder / f"w{index}").write_bytes(b"x")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1024:
        pytest.skip("this system does not let a process open 1024 files")
    used = len(os.listdir("/proc/self/fd"))  # tests before this one may have left some open
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, used + 250), hard))
    try:
        files = ExternalFiles(folder / "m.onnx")
        blobs = [files.blob({"location": f"w{index}"}) for index in range(300)]
        assert b"".join(blob.read() for blob in blobs) == b"x" * 300
        files.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_payloads_that_were_cut_out_are_found_and_decoded(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.onnx", everything())
    originals = {tensor.name: tensor for tensor in typed_tensors_of(path)}
    skeleton, blobs = cut_file(path)
    found = 0
    for tensor in onnx.ModelProto.FromString(skeleton).graph.initializer:
        blob = inline_blob(tensor, blobs)
        if tensor.name == "string":
            assert blob is None
            continue
        assert blob is not None, tensor.name
        found += 1
        original = originals[tensor.name]
        values = numpy_helper.to_array(original)
        if has_values_as_stored(blob):
            data = blob.read()
        else:
            data = decoded(tensor, blobs)
        expected = numpy_helper.from_array(values).raw_data
        assert data == expected, tensor.name
        assert payload_length(tensor) == len(expected)
    assert found == len(originals) - 1


def typed_tensors_of(path: Path) -> list[TensorProto]:
    return list(onnx.ModelProto.FromString(path.read_bytes()).graph.initializer)


def test_a_payload_that_is_not_all_of_the_tensor_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(100))
    blobs = BlobTable()
    source = Source.open(tmp_path / "f")
    sentinel = blobs.add(Blob(source, 0, 100, "raw_data"))
    floats = np.frombuffer(blobs.add(Blob(source, 0, 100, "float_data")), "<f4").tolist()
    assert inline_blob(TensorProto(raw_data=sentinel), blobs) is not None
    assert inline_blob(TensorProto(float_data=floats), blobs) is not None
    assert inline_blob(TensorProto(raw_data=sentinel, float_data=[1.0]), blobs) is None
    assert inline_blob(TensorProto(float_data=floats * 2), blobs) is None  # two chunks
    assert inline_blob(TensorProto(raw_data=b"x" * 32), blobs) is None
    assert inline_blob(TensorProto(), blobs) is None
    assert inline_blob(TensorProto(int64_data=[-1] * 32), blobs) is None


@pytest.mark.parametrize(
    ("dtype", "dims", "length"),
    [
        (TensorProto.FLOAT, [3, 4], 48),
        (TensorProto.FLOAT, [], 4),
        (TensorProto.FLOAT, [0, 7], 0),
        (TensorProto.BFLOAT16, [5], 10),
        (TensorProto.COMPLEX128, [2], 32),
        (TensorProto.INT4, [5], 3),
        (TensorProto.FLOAT, [2**40, 2**40], 2**82),
        (TensorProto.FLOAT, [-1], None),
        (TensorProto.UNDEFINED, [1], None),
        (TensorProto.STRING, [1], None),
        (99, [1], None),
    ],
)
def test_length_by_type_and_shape(dtype: int, dims: list[int], length: int | None) -> None:
    assert payload_length(TensorProto(data_type=dtype, dims=dims)) == length


def test_every_type_of_the_onnx_package_has_the_length_that_it_writes() -> None:
    for dtype in TensorProto.DataType.values():
        if dtype in (TensorProto.UNDEFINED, TensorProto.STRING):
            continue
        numbers = np.zeros(11, helper.tensor_dtype_to_np_dtype(dtype))
        tensor = numpy_helper.from_array(numbers)
        assert tensor.data_type == dtype
        assert payload_length(tensor) == len(tensor.raw_data), dtype


def test_where_data_can_be_written(folder: Path) -> None:
    os.symlink("..", folder / "up")
    os.symlink("sub", folder / "below")
    model = folder / "m.onnx"
    for location, path in (("new", "new"), ("w.bin", "w.bin"), ("below/./new", "sub/new")):
        assert require_location(model, location) == folder / path
    for location in ("sub/../new", "up/new", ".", "sub", "below/", "\udc80"):
        with pytest.raises(ExternalDataError, match="External data cannot be written to"):
            require_location(model, location)
    with pytest.raises(ExternalDataError, match="leaves the model folder"):
        require_location(model, "../new")
    with pytest.raises(ExternalDataError, match="invalid location"):
        require_location(model, "")


def test_data_that_is_to_be_written_is_inline_until_then() -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.UINT8, dims=[2], raw_data=b"ab")
    plain = tensor.SerializeToString()
    set_pending(tensor, "w.bin", b"ab")
    assert is_pending(tensor)
    assert entries_of(tensor)["location"] == "w.bin"
    make_plain(tensor)
    assert tensor.SerializeToString() == plain
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    stored = tensor.SerializeToString()
    make_plain(tensor)
    assert tensor.SerializeToString() == stored, "it is in a file"


def test_data_that_was_copied_is_read_from_the_copy(folder: Path) -> None:
    files = ExternalFiles(folder / "m.onnx")
    entries = {"location": "w.bin", "offset": "4", "length": "8"}
    first, whole = files.blob(entries), files.blob({"location": "w.bin"})
    assert (whole.offset, whole.length) == (0, 200)
    (folder / "copy").write_bytes(b"xyz" + first.read() + b"?")
    copy = Source.open(folder / "copy")
    files.adopt([b"xyz", first, SpillFile().append(b"?")], copy)
    for size, source, offset in ((8, copy, 3), (2, copy, 3), (9, first.source, 4)):
        blob = files.blob({**entries, "length": str(size)})
        assert (blob.source, blob.offset, blob.length) == (source, offset, size)
        assert blob.read() == bytes(range(4, 4 + size))
    assert files.original(entries).source is first.source
    assert files.blob({"location": "w.bin"}).source is first.source
