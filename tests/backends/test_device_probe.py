"""Parts of divided GPUs and DLA cores, from what tools and the device tree say."""

from __future__ import annotations

from pathlib import Path

from dld_tui.backends.machine.probe import dla_checks, part_checks

LISTING = """\
GPU 0: NVIDIA H100 (UUID: GPU-1f4c)
GPU 1: NVIDIA H100 (UUID: GPU-5d5b)
  MIG 3g.40gb     Device  0: (UUID: MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b)
  MIG 1g.10gb     Device  1: (UUID: MIG-GPU-5d5b/1/0)
"""


def test_parts_of_gpus_are_listed_with_what_chooses_them() -> None:
    checks = list(part_checks(lambda command: LISTING))

    assert [(check.name, check.found) for check in checks] == [
        ("MIG", "3g.40gb of GPU 1: --device MIG-11c29e81-e611-50b5-b5ef-609c0a0fe58b"),
        ("MIG", "1g.10gb of GPU 1: --device MIG-GPU-5d5b/1/0"),
    ]


def test_undivided_gpus_and_no_driver_say_nothing() -> None:
    assert list(part_checks(lambda command: LISTING.partition("  MIG")[0])) == []
    assert list(part_checks(lambda command: None)) == []


def test_dla_cores_are_those_that_are_on(tmp_path: Path) -> None:
    assert list(dla_checks(tmp_path)) == []
    for name, status in (("nvdla0@15880000", b"okay\0"), ("nvdla1@158c0000", b"disabled\0")):
        node = tmp_path / "bus@0" / "host1x@13e00000" / name
        node.mkdir(parents=True)
        (node / "status").write_bytes(status)

    (check,) = dla_checks(tmp_path)
    assert check.found == "cores 0: --dla-core N"
    (tmp_path / "bus@0/host1x@13e00000/nvdla1@158c0000/status").unlink()
    (check,) = dla_checks(tmp_path)
    assert check.found == "cores 0, 1: --dla-core N"
