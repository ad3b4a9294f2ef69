"""Install and run the program on an emulated aarch64 machine, as on a Jetson, and print a table.

A Debian arm64 root is made once with ``debootstrap`` and kept; ``qemu-user`` runs its programs. In
it, a copy of the working tree does ``make demo``, some tests, and the user interface in tmux. Times
are of the emulator, so each stands beside ``python -c pass`` and a hello-world of Textual there.
Needs root, and Debian's packages debootstrap, qemu-user-static and binfmt-support. Run it with
``make test-aarch64``; it ends with 69 where the machine cannot be made, with 1 where a step failed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dld-tui" / "aarch64"
SUITE = "bookworm"
PACKAGES = "ca-certificates,git,make,python3,python3-venv,tmux"
TESTED = (
    "tests/core/machine/test_jetson.py",
    "tests/core/files/test_wire.py",
    "tests/core/files/test_recognise.py",
    "tests/backends/test_jetson.py",
    "tests/backends/test_board_watch.py",
)
"""What touches the board, bytes and sysfs; more takes over a quarter of an hour there."""
TEST_TOOLS = "hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist"
LIMIT_S = 900.0
"""The most seconds that one step may take, on a machine that does nothing else."""
HELLO = """
from textual.app import App
from textual.widgets import Label
class Hello(App):
    def compose(self):
        yield Label("hello of Textual")
Hello().run()
"""
STAND_IN = "usr/lib/python3/dist-packages/tensorrt/__init__.py"
"""Where JetPack puts TensorRT; the root has an empty one, which the environment is to see."""


class MissingError(Exception):
    """Something that this needs is not there."""


def require() -> None:
    """Look for what is needed.

    Raises:
        MissingError: Names it, and the command that brings it.
    """
    if os.geteuid():
        raise MissingError("it needs root: debootstrap and chroot do")
    lacking = [name for name in ("debootstrap", "unshare", "chroot") if shutil.which(name) is None]
    emulated = platform.machine() != "aarch64"
    if lacking or (emulated and shutil.which("qemu-aarch64-static") is None):
        raise MissingError("apt-get install debootstrap qemu-user-static binfmt-support")
    if not emulated:
        return
    formats = Path("/proc/sys/fs/binfmt_misc")
    if not (formats / "status").exists():
        _prepare("mount", "-t", "binfmt_misc", "binfmt_misc", str(formats))
    if not (formats / "qemu-aarch64").exists():
        _prepare("update-binfmts", "--enable", "qemu-aarch64")


def _prepare(*command: str) -> None:
    try:
        subprocess.run(command, check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        raise MissingError(f"{command[0]} ended with {error.returncode}") from None


def mirror() -> str:
    """Return where this machine's own packages come from."""
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in printed.splitlines()]
    sites = [row[0] for row in rows if row[1:] == [SUITE]] or [row[0] for row in rows if row]
    if not sites:
        raise MissingError("apt knows no source of packages: apt-get update")
    return sites[0]


def make_root(root: Path) -> None:
    """Make the root, unless it is there.

    Raises:
        MissingError: Its packages cannot be had.
    """
    if (root / "made").exists():
        return
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    command = ["debootstrap", "--arch=arm64", "--variant=minbase", f"--include={PACKAGES}"]
    _prepare(*command, SUITE, str(root), mirror())
    (root / "made").touch()


def copy_tree(root: Path) -> None:
    """Put the files of the working tree into the root, and what pip needs to reach its index."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    home = root / "home" / "dld"
    shutil.rmtree(home, ignore_errors=True)
    for name in listed:
        if (ROOT / name).is_file():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, home / name)
    (home / "hello.py").write_text(HELLO, encoding="utf-8")
    for path in ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"):
        if Path("/", path).exists():
            (root / path).unlink(missing_ok=True)
            shutil.copy(Path("/", path), root / path)
    (root / STAND_IN).parent.mkdir(parents=True, exist_ok=True)
    (root / STAND_IN).write_text("__version__ = '0'\n", encoding="utf-8")


class Machine:
    """The emulated machine.

    Args:
        root: Its file system.
        limit_s: The most seconds that one command may take.
    """

    def __init__(self, root: Path, limit_s: float = LIMIT_S) -> None:
        self.root = root
        self.limit_s = limit_s

    def run(self, command: str) -> tuple[float, str, int]:
        """Run a shell command and return seconds, what it printed, and its exit status.

        Raises:
            RuntimeError: It took longer than it may.
        """
        place = shlex.quote(str(self.root))
        mounts = f"mount -t proc proc {place}/proc; mount --rbind /dev {place}/dev"
        inside = (
            f"cd /home/dld && export HOME=/home/dld LANG=C.UTF-8 TERM=xterm-256color; {command}"
        )
        outside = f"{mounts}; exec chroot {place} sh -c {shlex.quote(inside)}"
        kept = {name: value for name, value in os.environ.items() if name in _KEPT}
        begin = time.monotonic()
        try:
            done = subprocess.run(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", outside],
                env={**kept, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=self.limit_s,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{command}: no end after {self.limit_s:.0f} s") from None
        return time.monotonic() - begin, done.stdout, done.returncode

    def size(self, name: str) -> float:
        """Return the megabytes that a folder takes on the disk."""
        command = ["du", "-sm", str(self.root / name)]
        return float(subprocess.run(command, capture_output=True, text=True).stdout.split()[0])

    def on_screen(self, command: str, text: str, keys: Sequence[tuple[str, str]] = ()) -> str:
        """Run a program in tmux at 80x24 until a text shows, press keys, and return what was seen.

        Prints seconds to each text, and the memory of the program.
        """
        steps = [
            "tmux -L dld -f /dev/null new-session -d -x 80 -y 24 "
            + shlex.quote(command + "; sleep 2"),
            *_waiting(text),
        ]
        for key, then in keys:
            steps += [f"tmux -L dld send-keys {shlex.quote(key)}", *_waiting(then)]
        steps += [
            "grep -h VmRSS /proc/[0-9]*/status | sort -n -k 2 | tail -1",
            "tmux -L dld capture-pane -p",
            "tmux -L dld kill-server",
        ]
        return self.run("\n".join(steps))[1]


_KEPT = frozenset({"SSL_CERT_FILE", "PIP_CERT", "PIP_INDEX_URL", "HTTPS_PROXY", "HTTP_PROXY"})


def _waiting(text: str) -> list[str]:
    looked = f"tmux -L dld capture-pane -p | grep -qF {shlex.quote(text)}"
    return [
        "begin=$(date +%s.%N); n=0",
        f"until {looked}; do",
        f"  [ $n -lt 600 ] || {{ echo NOT SHOWN: {shlex.quote(text)}; break; }}",
        "  sleep 0.1; n=$((n+1))",
        "done",
        "echo took $(date +%s.%N) $begin",
    ]


def _took(printed: str) -> list[float]:
    rows = [line.split() for line in printed.splitlines() if line.startswith("took ")]
    return [float(row[1]) - float(row[2]) for row in rows]


def _memory(printed: str) -> float:
    rows = [line.split() for line in printed.splitlines() if line.startswith("VmRSS:")]
    return int(rows[0][1]) / 1000 if rows and len(rows[0]) > 1 else 0.0


def downloaded(log: Path) -> float:
    """Return the megabytes that pip says in its log that it downloaded."""
    text = log.read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"Downloading \S+\.(?:whl|tar\.gz) \(([\d.]+) (kB|MB)\)", text)
    return sum(float(size) / (1000 if unit == "kB" else 1) for size, unit in found)


def measure(machine: Machine) -> Iterator[tuple[str, str]]:
    """Install, run, test and look; yield the rows of the table.

    Raises:
        RuntimeError: A step failed; has what it printed.
    """

    def step(command: str) -> tuple[float, str]:
        print(f"$ {command}", file=sys.stderr)
        seconds, printed, status = machine.run(command)
        if status:
            raise RuntimeError(f"{command}: it ended with {status}\n{printed[-3000:]}")
        return seconds, printed

    yield "machine", step("uname -m; python3 --version")[1].replace("\n", " ").strip()
    seconds, _ = step("PIP_LOG=/home/dld/pip.log make demo")
    yield "make demo, with installation", f"{seconds:.0f} s"
    yield "download", f"{downloaded(machine.root / 'home/dld/pip.log'):.0f} MB"
    yield "disk", f"{machine.size('home/dld/.venv'):.0f} MB"
    step(".venv/bin/python -c 'import tensorrt'")  # the environment sees JetPack's
    yield "make demo again", f"{step('make demo')[0]:.1f} s"
    plain = min(step(".venv/bin/python -c pass")[0] for _ in range(3))
    yield "python -c pass", f"{plain:.2f} s"
    for name in ("--version", "inspect new.onnx"):
        step("test -e new.onnx || .venv/bin/dld new new.onnx --opset 21")
        taken = min(step(f".venv/bin/dld {name}")[0] for _ in range(2))
        yield f"dld {name}", f"{taken:.2f} s, {taken / plain:.1f} times"
    hello = 0.0
    model = "$(find /home/dld/.cache -name demo_classifier.onnx)"
    for title, command, text, keys in (
        ("hello-world of Textual", ".venv/bin/python hello.py", "hello of Textual", ()),
        ("start page", ".venv/bin/dld", "Demo models", ()),
        ("a small model", f".venv/bin/dld {model}", "Conv", (("j", "Conv"), ("?", "elp"))),
    ):
        printed = machine.on_screen(command, text, keys)
        print(printed, file=sys.stderr)
        if "NOT SHOWN" in printed or not _took(printed):
            raise RuntimeError(f"{title} did not show what is expected:\n{printed}")
        first = _took(printed)[0]
        hello = hello or first
        told = f"{first:.1f} s, {first / hello:.1f} times hello, {_memory(printed):.0f} MB"
        yield title, told
    step(f".venv/bin/pip install -q -c requirements/constraints.txt {TEST_TOOLS}")
    seconds, printed = step(f".venv/bin/python -m pytest -q -n 2 {' '.join(TESTED)}")
    yield "some tests", f"{printed.strip().splitlines()[-1]} ({seconds:.0f} s)"


def main() -> int:
    """Make the root, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, default=CACHE / SUITE, help="where the root is kept")
    parser.add_argument(
        "--limit-s", type=float, default=LIMIT_S, help="the most seconds that one step may take"
    )
    options = parser.parse_args()
    root = options.root.absolute()
    begin = time.monotonic()
    # `unshare` ignores it: what runs in the machine ends only when this program kills it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        require()
        make_root(root)
        copy_tree(root)
        for name, value in measure(Machine(root, options.limit_s)):
            print(f"{name:<30}{value}", flush=True)
    except (MissingError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"test-aarch64: {error}", file=sys.stderr)
        return os.EX_UNAVAILABLE if isinstance(error, MissingError) else 1
    minutes, load = (time.monotonic() - begin) / 60, os.getloadavg()[0]
    print(f"{'the whole run':<30}{minutes:.0f} min, at a load of {load:.0f} in the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
