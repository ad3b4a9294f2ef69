"""Making a target ready: our package, and an environment with the wheels that an activity needs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import cast

from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import is_engine, needs_tensorrt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UnavailableError
from dld_tui.core.files.writer import write_text
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING, Check
from dld_tui.core.params import current_id
from dld_tui.core.process import paths
from dld_tui.core.process.child import Child
from dld_tui.core.process.plugins import plugins
from dld_tui.core.tensorrt.capabilities import AUTO
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.targets.ssh.bootstrap import Machine
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.link import RetryPolicy
from dld_tui.targets.ssh.loop import within
from dld_tui.targets.ssh.transfer import Amount, LocalFile, Upload

_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{0,60}")
_LEAST_BYTES = 20 << 20


@dataclass(frozen=True)
class Prepared:
    """A target that is ready for an activity."""

    machine: Machine
    python: str
    """The Python of its jobs."""
    installed: tuple[str, ...] = ()
    """What had to be installed now."""


class Deployment:
    """Makes one target ready.

    Args:
        agent: On the target.
        amount: Is kept up to date, for progress and the log.
        retries: For lost connections.
        route: What downloads packages: ``target``, ``here``, or ``auto`` for the first that can.
        pip_options: For pip on the target, e.g. ``("--find-links", FOLDER)``.
    """

    def __init__(
        self,
        agent: Agent,
        amount: Amount,
        retries: RetryPolicy,
        route: str = "auto",
        pip_options: Sequence[str] = (),
    ) -> None:
        self._agent = agent
        self._amount = amount
        self._retries = retries
        self._route = route
        self._pip_options = list(pip_options)

    async def prepare(self, needs: Needs) -> Prepared:
        """Check what is installed, and install what is missing.

        Raises:
            UnavailableError: The target has no suitable Python, no disk space, or packages are
                missing that cannot be installed.
        """
        self._amount.step(f"Looking at {self._agent.link.connection.name}")
        key = needs.key(self._agent.python)
        machine = await self._agent.probe(key)
        self._require_room(machine)
        if not machine.package:
            self._amount.step("Sending the worker")
            self._amount.sent += await self._agent.send_package()
        if machine.ready is not None:
            return Prepared(machine, machine.ready)
        if not needs.modules:
            return Prepared(machine, self._python_of(machine))
        prepared = await self._environment(machine, needs)
        await self._agent.call("ready", name=key, value={"python": prepared.python})
        return prepared

    async def forget(self, needs: Needs) -> None:
        """Check again next time: an installed part is missing."""
        await self._agent.call("ready", name=needs.key(self._agent.python), value=None)

    async def checks(self, needs: Needs) -> list[Check]:
        """Return what is installed and what is missing, changing nothing."""
        machine = await self._agent.probe()
        checks = machine_checks(machine)
        if machine.writable and needs.modules:
            there = await self._modules(self._python_of(machine), needs)
            absent = any(need.fix and not need.optional for need in _missing(needs, there))
            if needs.otherwise is not None and absent:
                needs = needs.otherwise
                there = await self._modules(self._python_of(machine, needs.flavour), needs)
            checks += [_check(need, there) for need in needs.modules]
        return checks

    def _require_room(self, machine: Machine) -> None:
        where = self._agent.where
        if not machine.writable:
            raise UnavailableError(
                f"no permission to write to {clip(visible(machine.here), 200)}",
                where=where,
                hint="Choose another folder with --directory",
            )
        if not machine.package and machine.free is not None and machine.free < _LEAST_BYTES:
            raise UnavailableError(
                f"the disk is full: {fmt.size(machine.free)} are free for"
                f" {clip(visible(machine.root), 200)}",
                where=where,
                hint="Free some space there, or choose another folder with --directory",
            )

    def _python_of(self, machine: Machine, flavour: str = "") -> str:
        """Return the Python of an environment that is there, else that of the system."""
        names = [environment_name(machine, kind) for kind in (flavour, "gpu", "rtx", "cpu")]
        for name in names:
            if name in machine.environments:
                return f"{machine.root}/venv/{name}/bin/python"
        return machine.executable or self._agent.python

    async def _environment(self, machine: Machine, needs: Needs) -> Prepared:
        self._amount.step("Looking for packages")
        base = machine.executable or self._agent.python
        missing = _missing(needs, await self._modules(base, needs))
        if not missing:
            return Prepared(machine, base)
        if machine.virtual and all(need.optional for need in missing):
            # A virtual environment is the user's choice of packages: it runs the job unchanged.
            names = " ".join(need.requirement for need in missing)
            self._amount.notes.append(
                f"{names} not in the Python of {self._agent.where}, it is skipped;"
                f" install with: {visible(base)} -m pip install {names}"
            )
            return Prepared(machine, base)
        name = environment_name(machine, needs.flavour)
        python = f"{machine.root}/venv/{name}/bin/python"
        if needs.otherwise is not None:
            if name in machine.environments:
                missing = _missing(needs, await self._modules(python, needs))
            if any(need.fix and not need.optional for need in missing):
                return await self._install_or_explain(machine, missing, needs.otherwise)
        if str((await self._agent.call("create", name=name))["python"]) != python:
            raise UnavailableError("its agent sent an invalid answer", where=self._agent.where)
        missing = _missing(needs, await self._modules(python, needs))
        self._require_installable(missing)
        required = [need for need in missing if not need.optional]
        optional = [need for need in missing if need.optional]
        if required:
            await self._install(machine, python, name, [need.requirement for need in required])
        if optional:
            await self._try_optional(machine, python, name, optional)
        still = [n for n in _missing(needs, await self._modules(python, needs)) if not n.optional]
        if still:
            names = ", ".join(need.requirement for need in still)
            raise UnavailableError(
                f"{names}: still missing after the installation", where=self._agent.where
            )
        return Prepared(machine, python, tuple(need.requirement for need in missing))

    async def _install_or_explain(
        self, machine: Machine, missing: Sequence[Need], otherwise: Needs
    ) -> Prepared:
        """Install what can be installed, and return what the user has to install."""
        try:
            return await self._environment(machine, otherwise)
        except UnavailableError as error:
            absent = next(need for need in missing if need.fix)
            raise UnavailableError(
                f"{absent.requirement} is missing, and in its place {error.message}",
                where=self._agent.where, hint=absent.fix, details=error.details,
            ) from error  # fmt: skip

    async def _modules(self, python: str, needs: Needs) -> dict[str, str]:
        modules = {need.module: list(need.packages) for need in needs.modules}
        answer = await self._agent.call("modules", python=python, modules=modules)
        installed = answer.get("found")
        return {
            str(module): str(version)
            for module, version in (installed.items() if isinstance(installed, dict) else ())
            if _VERSION.fullmatch(str(version))
        }

    def _require_installable(self, missing: Sequence[Need]) -> None:
        for need in missing:
            if need.fix and not need.optional:
                raise UnavailableError(
                    f"{need.requirement} is missing", where=self._agent.where, hint=need.fix
                )

    async def _try_optional(
        self, machine: Machine, python: str, name: str, needs: Sequence[Need]
    ) -> None:
        specifiers = [need.requirement for need in needs]
        try:
            await self._install(machine, python, f"{name}-more", specifiers)
        except UnavailableError as error:
            self._amount.notes.append(f"{error.message}; it is skipped")

    async def _install(
        self, machine: Machine, python: str, name: str, specifiers: list[str]
    ) -> None:
        named = ", ".join(specifiers)
        if self._route != "here":
            self._amount.step(f"Installing {named}")
            answer = await self._agent.call(
                "pip", python=python, requirements=specifiers, options=self._pip_options
            )
            if answer.get("ok") is True:
                return
            why = clip(visible(str(answer.get("why", ""))), 300)
            if self._route == "target":
                raise UnavailableError(
                    f"{named} cannot be installed: {why}", where=self._agent.where
                )
            self._amount.notes.append(
                f"the target cannot download packages ({why}): sent from here"
            )
        self._amount.step(f"Fetching {named}")
        files = [LocalFile.at(path) for path in await fetch(machine, specifiers, name)]
        upload = Upload(self._agent, self._retries, amount=self._amount)
        sent = await upload.send(files)
        self._amount.step(f"Installing {named}")
        names = [[file.path.name, sha256] for file, sha256 in sent.items()]
        await self._agent.call("wheels", python=python, wheels=names)


def environment_name(machine: Machine, flavour: str) -> str:
    """Return the name of our virtual environment of a kind.

    One that extends a virtual environment of the user belongs to that one only.
    """
    name = f"py{machine.python[0]}.{machine.python[1]}-{flavour}"
    if machine.virtual:
        name += f"-{hashlib.sha256(machine.virtual.encode()).hexdigest()[:8]}"
    return name


def machine_checks(machine: Machine) -> list[Check]:
    """Return what the probe says, as rows for people."""
    version = ".".join(map(str, machine.python))
    free = "unknown" if machine.free is None else f"{fmt.size(machine.free)} free"
    full = machine.free is not None and machine.free < _LEAST_BYTES
    folder = Check("Target", "folder", GOOD, visible(machine.root))
    if not machine.writable:
        fix = "choose another folder with --directory"
        text = f"{visible(machine.here)} is not writable"
        folder = Check("Target", "folder", BROKEN, text, fix)
    worker = Check("Target", "worker", GOOD, "this version is there")
    if not machine.package:
        worker = Check("Target", "worker", MISSING, "sent with the first job")
    return [
        Check("Target", "host", GOOD, visible(f"{machine.host}, {machine.machine}")),
        Check("Target", "Python", GOOD, visible(f"{version} ({machine.executable})")),
        folder,
        Check("Target", "disk", BROKEN if full else GOOD, free, "free some space" if full else ""),
        worker,
    ]


def _missing(needs: Needs, there: dict[str, str]) -> list[Need]:
    return [
        need
        for need in needs.modules
        if need.module not in there or not need.serves(there[need.module])
    ]


def _check(need: Need, there: dict[str, str]) -> Check:
    version = there.get(need.module)
    if version is None:
        fix = need.fix or "installed with the first job"
        return Check("Packages", need.module, MISSING, "not there", fix)
    if not need.serves(version):
        text = f"{version}, older than {need.oldest}"
        return Check("Packages", need.module, MISSING, text, "installed with the first job")
    return Check("Packages", need.module, GOOD, version or "there")


_MACHINE = re.compile(r"[a-z0-9_]{2,20}")
_LEGACY = {"x86_64": {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"},
           "aarch64": {17: "manylinux2014"}}  # fmt: skip
_OLDEST_GLIBC = 5
_NEWEST_MUSL = 2
_SLOW_S = 1800.0


def platform_tags(machine: Machine) -> list[str]:
    """Return the platform tags of wheels that run on a target, the best first.

    Raises:
        UnavailableError: The target is no Linux, or says nothing sensible.
    """
    name, version = machine.libc
    kind = machine.machine
    if machine.system != "Linux" or not _MACHINE.fullmatch(kind):
        platform = clip(visible(f"{machine.system} {kind}"), 60)
        raise UnavailableError(f"packages for {platform} cannot be downloaded here")
    if name != "glibc":  # Alpine: Python does not say which musl it is
        return [f"musllinux_1_{minor}_{kind}" for minor in range(_NEWEST_MUSL, -1, -1)]
    numbers = re.findall(r"\d+", version)
    minor = int(numbers[1]) if len(numbers) > 1 and numbers[0] == "2" else 17
    tags = []
    for number in range(min(minor, 99), _OLDEST_GLIBC - 1, -1):
        tags.append(f"manylinux_2_{number}_{kind}")
        if number in _LEGACY.get(kind, {}):
            tags.append(f"{_LEGACY[kind][number]}_{kind}")
    return [*tags, f"linux_{kind}"]


def download_command(machine: Machine, requirements: Sequence[str], folder: Path) -> list[str]:
    """Return the command that fetches wheels for a target into a folder."""
    major, minor, _ = machine.python
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input"]
    command += ["--only-binary", ":all:", "--dest", str(folder), "--implementation", "cp"]
    command += ["--python-version", f"{major}.{minor}"]
    for abi in (f"cp{major}{minor}", "abi3", "none"):
        command += ["--abi", abi]
    for tag in platform_tags(machine):
        command += ["--platform", tag]
    return [*command, *requirements]


async def fetch(machine: Machine, requirements: Sequence[str], name: str) -> list[Path]:
    """Download wheels for a target with the pip of this Python; return their files.

    Args:
        machine: The target.
        requirements: For pip.
        name: Of the folder in our cache; files in it are not downloaded again, unless damaged.

    Raises:
        UnavailableError: There is no pip here, or it does not find them.
    """
    major, minor, _ = machine.python
    where = f"{name}-py{major}.{minor}-{platform_tags(machine)[0]}"
    folder = paths.ensure(paths.cache_dir() / "wheels" / where)
    note = folder / "wheels.json"
    wheels = await asyncio.to_thread(_kept, note, requirements)
    if wheels is None:
        await _download(machine, requirements, folder)
        wheels = sorted(folder.glob("*.whl"))
        names = {wheel.name: await asyncio.to_thread(_hash_of, wheel) for wheel in wheels}
        write_text(
            note, json.dumps({"requirements": list(requirements), "wheels": names}), overwrite=True
        )
    return wheels


def _kept(note: Path, requirements: Sequence[str]) -> list[Path] | None:
    """Return the wheels that were downloaded before; None where some are missing or damaged."""
    try:
        kept = json.loads(note.read_text(encoding="utf-8"))
        if kept["requirements"] != list(requirements):
            return None
        names: dict[str, str] = kept["wheels"]
        wheels = sorted(note.with_name(Path(name).name) for name in names)
        is_whole = all(_hash_of(wheel) == names[wheel.name] for wheel in wheels)
    except (OSError, InputError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return wheels if is_whole else None


def _hash_of(path: Path) -> str:
    return LocalFile.at(path).sha256()


async def _download(machine: Machine, requirements: Sequence[str], folder: Path) -> None:
    for old in folder.glob("*.whl"):
        old.unlink()
    command = download_command(machine, requirements, folder)
    child = Child(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        printed, _ = await within(_SLOW_S, asyncio.to_thread(child.communicate))
    finally:
        child.kill()  # and so the thread ends
    if child.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise _not_found(printed.decode("utf-8", "replace"), requirements)


_NO_PIP = "No module named pip"


def _not_found(printed: str, requirements: Sequence[str]) -> UnavailableError:
    names = ", ".join(requirements)
    if _NO_PIP in printed:
        return UnavailableError(
            f"{names}: the target cannot download them, and the Python here has no pip to do it",
            hint=f"{sys.executable} -m ensurepip",
        )
    errors = [line for line in printed.splitlines() if line.startswith("ERROR:")]
    last = (errors or printed.strip().splitlines() or ["pip gives no reason"])[-1]
    return UnavailableError(
        f"{names}: neither the target nor this machine can download them:"
        f" {clip(visible(last.removeprefix('ERROR: ')), 300)}",
        hint="Install them on the target by hand",
        details=printed,
    )


@dataclass(frozen=True)
class Need:
    """A module that an activity imports."""

    module: str
    packages: tuple[str, ...]
    """What may bring it; the first is the one that is installed."""
    oldest: str = ""
    """The oldest version that serves."""
    optional: bool = False
    """Whether the activity also works without, if not as well."""
    fix: str = ""
    """Instructions for the user, for packages that are not installed by us."""

    @property
    def requirement(self) -> str:
        """The arguments of pip."""
        return f"{self.packages[0]}>={self.oldest}" if self.oldest else self.packages[0]

    def serves(self, version: str) -> bool:
        """Return whether a version is new enough; an unknown one is."""
        return not version or _numbers(version) >= _numbers(self.oldest)


@dataclass(frozen=True)
class Needs:
    """What an activity needs, and the kind of environment that holds it."""

    modules: tuple[Need, ...]
    flavour: str
    """``cpu``, ``gpu`` or ``rtx``: onnxruntime and onnxruntime-gpu share one module."""
    otherwise: Needs | None = None
    """What serves as well, where something is missing that a person has to install."""

    def key(self, python: str) -> str:
        """Return the name of the note that all of it is there."""
        words = [_NOTES, python, self.flavour]
        words += [f"{need.requirement}{'?' * need.optional}" for need in self.modules]
        if self.otherwise is not None:
            words.append(self.otherwise.key(python))
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:24]


_NOTES = "3"
"""The version of the rules by which notes are made; a note of other rules does not count."""
_NUMPY = Need("numpy", ("numpy",), "2.2")
_ONNX = Need("onnx", ("onnx",), "1.19")
_PROTOBUF = Need("google.protobuf", ("protobuf",), "4.25")
_BASE = (_NUMPY, _ONNX, _PROTOBUF)
_ORT_CPU = Need("onnxruntime", ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino"), "1.23")
_ORT_GPU = Need("onnxruntime", ("onnxruntime-gpu",), "1.23")
_CUPTI = Need("cupti", ("cupti-python",), "13.0", optional=True)
_CUPTI_LIBRARY = Need("nvidia.cuda_cupti", ("nvidia-cuda-cupti",), "13.0", optional=True)
_NVML = Need("pynvml", ("nvidia-ml-py",), "13", optional=True)
_GPU_TOOLS = (_CUPTI, _CUPTI_LIBRARY, _NVML)
_TENSORRT = Need(
    "tensorrt",
    ("tensorrt",),
    "10",
    fix="Install NVIDIA's there: sudo apt install python3-libnvinfer, or pip install tensorrt",
)
_RTX = Need("tensorrt_rtx", ("tensorrt-rtx-cu13",), "1.1")
_POLYGRAPHY = Need("polygraphy", ("polygraphy",), "0.53")
_LINT = replace(_POLYGRAPHY, optional=True)
_SURGEON = Need("onnx_graphsurgeon", ("onnx-graphsurgeon",), "0.6")
_SLIM = Need("onnxslim", ("onnxslim",), "0.1.98", optional=True)
_SIMPLIFIERS = (_POLYGRAPHY, _SURGEON, _SLIM)
_FLOAT16 = Need("onnxconverter_common", ("onnxconverter-common",))
_ON_CUDA = ("cuda", "tensorrt", "nv")
"""Parts of the names of the providers that onnxruntime-gpu has."""


def needs_of(activity_id: str, request: Mapping[str, JSON]) -> Needs:
    """Return what an activity needs for a request; what the request does not say is the default."""
    find = NEEDS.get(activity_id)
    if find is None:
        added = {current_id(plugin.name): plugin.value for plugin in plugins("needs", FunctionType)}
        find = cast("Callable[..., Needs]", added.get(activity_id, _document))
    return find(request)


def _nothing(request: Mapping[str, JSON]) -> Needs:
    return Needs((), "")


def _document(request: Mapping[str, JSON]) -> Needs:
    return Needs(_BASE, "cpu")


def onnxruntime_needs(request: Mapping[str, JSON]) -> Needs:
    """Return what sessions with the providers of a request need."""
    providers = f"{request.get('provider', '')},{request.get('against_provider', '')}".lower()
    if any(name in providers for name in _ON_CUDA):
        return Needs((*_BASE, _ORT_GPU), "gpu")
    return Needs((*_BASE, _ORT_CPU), "cpu")


def _verified(request: Mapping[str, JSON]) -> Needs:
    """Return the needs of a conversion that uses ONNX Runtime only for verification."""
    return _document(request) if request.get("verify") is False else onnxruntime_needs(request)


def _profile_onnxruntime(request: Mapping[str, JSON]) -> Needs:
    needs = onnxruntime_needs(request)
    return replace(needs, modules=(*needs.modules, *(_GPU_TOOLS if needs.flavour == "gpu" else ())))


def _time_pair(request: Mapping[str, JSON]) -> Needs:
    """Return the needs of both versions: a GPU runtime also measures on the CPU."""
    own = (request.get(name) for name in ("base_settings", "new_settings"))
    versions = [request, *(settings for settings in own if isinstance(settings, dict))]
    needs = [_profile_onnxruntime(version) for version in versions]
    return next((need for need in needs if need.flavour == "gpu"), needs[0])


def _tensorrt(request: Mapping[str, JSON], more: tuple[Need, ...] = ()) -> Needs:
    """Return what the library of a request needs, and more; a folder of a library needs no module.

    A request for any library is for TensorRT where it is there, else for TensorRT-RTX, which can be
    installed without the system's help.
    """
    library = request.get("library") or AUTO
    rtx = Needs((*_BASE, _RTX, *more), "rtx")
    if library == "tensorrt_rtx":
        return rtx
    if library == AUTO:
        return Needs((*_BASE, _TENSORRT, *more), "gpu", otherwise=rtx)
    return Needs((*_BASE, *([_TENSORRT] if library == "tensorrt" else []), *more), "gpu")


def _tensorrt_measured(request: Mapping[str, JSON]) -> Needs:
    return _tensorrt(request, _GPU_TOOLS)


def both_needs(request: Mapping[str, JSON]) -> Needs:
    """Return what TensorRT needs, and what computes the values that are right."""
    with_cuda = onnxruntime_needs(request).flavour == "gpu"
    return _tensorrt(request, (_ORT_GPU if with_cuda else _ORT_CPU,))


def _accuracy(request: Mapping[str, JSON]) -> Needs:
    return both_needs(request) if needs_tensorrt(request) else onnxruntime_needs(request)


def _search(request: Mapping[str, JSON]) -> Needs:
    return (
        both_needs(request) if request.get("backend") == "tensorrt" else onnxruntime_needs(request)
    )


def _load(request: Mapping[str, JSON]) -> Needs:
    model = request.get("model")
    is_built = isinstance(model, str) and is_engine(model)
    return _tensorrt(request) if is_built else onnxruntime_needs(request)


def _placement(request: Mapping[str, JSON]) -> Needs:
    return (
        both_needs(request) if request.get("runtime") == "tensorrt" else onnxruntime_needs(request)
    )


def _convert_fp16(request: Mapping[str, JSON]) -> Needs:
    by_polygraphy = request.get("library") == "polygraphy"
    more = (_POLYGRAPHY, _SURGEON, _FLOAT16) if by_polygraphy else ()
    return Needs((*_BASE, _ORT_CPU, *more), "cpu")


def _sanitize(request: Mapping[str, JSON]) -> Needs:
    return Needs((*_BASE, _ORT_CPU, *_SIMPLIFIERS), "cpu")


def _tune(request: Mapping[str, JSON]) -> Needs:
    runs = _profile_onnxruntime(request)
    return Needs((*runs.modules, *_SIMPLIFIERS), runs.flavour)


def _selftest(request: Mapping[str, JSON]) -> Needs:
    """Return the needs of a self-test; missing parts of a target are unavailable."""
    backend = request.get("backend")
    if backend == "tensorrt":
        needs = both_needs({**request, "provider": "CPU"})
    else:
        needs = onnxruntime_needs({"provider": "CPU" if backend == "cpu" else "CUDA"})
    return replace(needs, modules=(*needs.modules, *_SIMPLIFIERS))


def _check_full(request: Mapping[str, JSON]) -> Needs:
    return Needs((*_BASE, _ORT_CPU, _LINT) if request.get("polygraphy") else _BASE, "cpu")


NEEDS: Mapping[str, Callable[[Mapping[str, JSON]], Needs]] = {
    "profile_onnxruntime": _profile_onnxruntime,
    "time_pair": _time_pair,
    "gate": onnxruntime_needs,
    "tune": _tune,
    "startup": onnxruntime_needs,
    "placement": _placement,
    "sweep": onnxruntime_needs,
    "load": _load,
    "memory": onnxruntime_needs,
    "providers": onnxruntime_needs,
    "profile_llm": onnxruntime_needs,
    "build": _tensorrt_measured,
    "profile_tensorrt": _tensorrt_measured,
    "refit": _tensorrt_measured,
    "accuracy": _accuracy,
    "score": onnxruntime_needs,
    "search_precision": _search,
    "tactics": both_needs,
    "reduce": _document,
    "selftest": _selftest,
    "infer_shapes": onnxruntime_needs,
    "check_full": _check_full,
    "check_sound": _document,
    "convert_opset": _verified,
    "convert_fp16": _convert_fp16,
    "convert_bf16": onnxruntime_needs,
    "convert_shape": onnxruntime_needs,
    "convert_merge": onnxruntime_needs,
    "convert_prepend": onnxruntime_needs,
    "convert_append": onnxruntime_needs,
    "convert_clean": _verified,
    "convert_fold": onnxruntime_needs,
    "convert_io": onnxruntime_needs,
    "convert_sanitize": _sanitize,
    "convert_precisions": onnxruntime_needs,
    "convert_tensors": onnxruntime_needs,
    "convert_dequantize": _verified,
    "convert_external": _verified,
    "convert_inline": _verified,
    "convert_strip": _document,
    "convert_restore": _verified,
    "convert_quantize": onnxruntime_needs,
    "tool": _document,
    "tensorrt_libraries": _nothing,
    "doctor": _nothing,
}
"""Of our activities; those of packages say it themselves."""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
