from __future__ import annotations

import json
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.report.formats import json_stream
from dld_tui.core.report.formats.json_stream import ArrayReader, last_list
from tests.support.recorded import Recorded


def read(path: Path, data: str | bytes) -> tuple[list[object], ArrayReader]:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    reader = ArrayReader(path)
    return list(reader.objects()), reader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.json"


TEXTS: tuple[str | bytes, ...] = (
    '[{"a":1},{"b":2}]',
    '[\n{"a":1},\n{"b":2},\n]\n',
    ' [ {"a" : 1}\n\n {"b":2} ] trailing',
    '{"traceEvents": [{"a":1},{"b":2}], "more": {}}',
    json.dumps([{"a": 1}, {"b": 2}], indent=4),
    '[{"a":"é"}]'.encode("utf-16"),
    '[{"a":"é"}]'.encode("utf-8-sig"),
    b"\xfe\xff" + '[{"a":"é"}]'.encode("utf-16-be"),
    # A file that ends early keeps what is whole.
    '[{"a":1},{"b":',
    '[{"a":1},\n',
    '[{"a":1}',
    # Damage reaches up to the next line that begins with an object.
    '[\n{"a":1},\n{"b":NaN},\n{"c" 3},\nrubbish,\n{"d":4}\n]',
    # What follows a number that JSON does not know is whole.
    '[{"a":1},{"b":NaN,"c":{"d":[-Infinity]}},{"e":2},{"f":Infinity},{"g":3}]',
    '[\n  { "a" : 2 }\n, { "b" : NaN }\n, { "c" : 1 }\n]\n',
    '[\n{"b" 1},' + "\n" * 300 + '{"a":1}]',
    '[\n{"b":[1,],"c":?},\n{"c":[2,]}\n]\n',
    # An object over several lines.
    '[\n{"b": [1,\n{"y" 2},\n{"z":3},\n{\n "a": [\n  {\n   "b": 1\n  },\n  3\n ]\n}\n]',
    # ONNX Runtime writes stray commas where inputs are sequences.
    '[\n{"a":[{"float":[2,3]},{"int64":[]},],"b":1},\n{"a":[,{"float":[2]}]}\n]\n',
    '[\n{"a":[{"float":[2]},,{"float":[3]}]},\n{"a":[,],"b":{"c":1,},},\n{"d":4,}]\n',
    '[\n{"a":[1,],"b":",] ,} \\",]"},\n{"a":[1,],"b":NaN},\n{"a":[1,]} x\n]\n',
    # Several runs into one file.
    '[{"a":1}]\n[{"b":2},{"c":3}]\n',
    '[{"a":1}] [ ] [\n{"b":2}\n]\n[\n{"c":3},',
    '[{"a":[[1],[2]]}]' + " " * 40 + '[\n{"b":2}]\n\n',
    '[]\n[]\n[{"a":1}][',
    '[{"a":1},{"b" 2}]\n[{"c":3}]rest',
    "",
    "  \n",
    '{"a": 1}',
    "name,time",
    b"\x00\x01\x02",
)


def told(path: Path) -> str:
    """Return what a file has, what of it is damaged, and which of its lists is the last one."""
    try:
        reader = ArrayReader(path)
        found = list(reader.objects())
        last = last_list(path)
        shown = list(ArrayReader(path, only=last.index).objects())
    except InputError as error:
        return error.message
    return f"{found}\n{reader.damage}\n{last} {last.notes('trace')} {shown}"


def test_what_is_read(path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: dict[str, str] = {}
    for text in TEXTS:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        title = f"{text[:90]!r}"
        for size in (1 << 20, 16, 5):
            monkeypatch.setattr(json_stream, "_CHUNK", size)
            made = told(path)
            if made != texts.get(title):
                texts[title if title not in texts else f"{title}, {size} bytes at a time"] = made
    recorded("whole_streams", texts)


def test_deep_nesting_and_huge_numbers_are_damage_and_no_crash(path: Path) -> None:
    deep = '{"x":' + "[" * 100_000 + "]" * 100_000 + "}"
    huge = '{"x":' + "9" * 10_000 + "}"
    found, reader = read(path, f'[\n{deep},\n{huge},\n{{"a":1}}\n]')
    assert found[-1] == {"a": 1}
    assert reader.damage.skipped >= 1


def test_objects_across_any_chunk_border(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [{"name": f"é{i}", "args": {"x": [i] * (i % 7)}} for i in range(40)]
    text = json.dumps(events, ensure_ascii=False)
    for size in (1, 2, 3, 7, 64):
        monkeypatch.setattr(json_stream, "_CHUNK", size)
        assert read(path, text)[0] == events


def test_what_is_no_file(path: Path) -> None:
    for other in (path.with_name("none.json"), path.parent):
        with pytest.raises(InputError):
            list(ArrayReader(other).objects())


def test_a_trace_may_describe_much_before_its_events(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = {"schemaVersion": 1, "deviceProperties": [{"name": "x" * 5000}], "list": [1, {"a": 2}]}
    text = json.dumps({**head, "traceEvents": [{"a": 1}, {"b": 2}], "after": [{"c": 3}]})
    monkeypatch.setattr(json_stream, "_CHUNK", 100)
    found, reader = read(path, text)
    assert found == [{"a": 1}, {"b": 2}]
    assert reader.damage.skipped == 0
    monkeypatch.setattr(json_stream, "_LONGEST_HEAD", 1000)
    with pytest.raises(InputError, match="not a JSON array of events"):
        read(path, text)


@pytest.mark.parametrize("lines", [500, 1000])
def test_objects_that_are_never_closed_are_read_a_few_times_only(
    path: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    """Each was tried up to the end of the file, which took minutes for a few megabytes."""
    monkeypatch.setattr(json_stream, "_WASTED_AT_ALL", 1 << 10)
    line = '{"cat":"Node","args":[1,1,1,1,1,1,1,1,1,1,\n'
    found, reader = read(path, "[\n" + line * lines + '{"a":1},\n{"b":2}\n]')
    assert found == [{"a": 1}, {"b": 2}]
    assert reader.damage.skipped == lines
    assert reader._wasted < 8 * lines * len(line)
