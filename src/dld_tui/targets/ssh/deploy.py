"""Making a target ready: our package, and an environment with what an activity needs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dld_tui.core import fmt
from dld_tui.core.errors import UnavailableError
from dld_tui.core.machine.health import BROKEN, GOOD, MISSING, Check
from dld_tui.core.text import clip, visible
from dld_tui.targets.ssh import requirements
from dld_tui.targets.ssh.bootstrap import Machine
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.link import Patience
from dld_tui.targets.ssh.requirements import Need, Needs
from dld_tui.targets.ssh.transfer import Amount, LocalFile, Upload

ROUTES = ("auto", "target", "here")
"""Where packages are fetched: by the target and else here, only by the target, only here."""

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
        patience: For lost connections.
        route: One of :data:`ROUTES`.
        pip_options: For pip on the target, e.g. ``("--find-links", FOLDER)``.
    """

    def __init__(
        self,
        agent: Agent,
        amount: Amount,
        patience: Patience,
        route: str = "auto",
        pip_options: Sequence[str] = (),
    ) -> None:
        self._agent = agent
        self._amount = amount
        self._patience = patience
        self._route = route
        self._pip_options = list(pip_options)

    async def prepare(self, needs: Needs) -> Prepared:
        """Look what is there, and bring what is missing.

        Raises:
            UnavailableError: The target has no Python that serves, no room, or packages are
                missing that cannot be brought.
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
        """Look again the next time: something that was there is missing."""
        await self._agent.call("ready", name=needs.key(self._agent.python), value=None)

    async def checks(self, needs: Needs) -> list[Check]:
        """Return what is there and what is not, without changing anything but our package."""
        machine = await self._agent.probe()
        found = machine_checks(machine)
        if machine.writable and needs.modules:
            if not machine.package:
                await self._agent.send_package()
            there = await self._modules(self._python_of(machine), needs)
            absent = any(need.fix and not need.optional for need in _missing(needs, there))
            if needs.otherwise is not None and absent:
                needs = needs.otherwise
                there = await self._modules(self._python_of(machine, needs.flavour), needs)
            found += [_check(need, there) for need in needs.modules]
        return found

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
            # A virtual environment is somebody's choice of packages: it runs the job, as it is.
            names = " ".join(need.requirement for need in missing)
            self._amount.notes.append(
                f"{names} not in the Python of {self._agent.where}, it is done without;"
                f" install with: {visible(base)} -m pip install {names}"
            )
            return Prepared(machine, base)
        name = environment_name(machine, needs.flavour)
        python = f"{machine.root}/venv/{name}/bin/python"
        if needs.otherwise is not None:
            if name in machine.environments:
                missing = _missing(needs, await self._modules(python, needs))
            if any(need.fix and not need.optional for need in missing):
                return await self._otherwise(machine, missing, needs.otherwise)
        if str((await self._agent.call("create", name=name))["python"]) != python:
            raise UnavailableError("its agent makes no sense", where=self._agent.where)
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

    async def _otherwise(
        self, machine: Machine, missing: Sequence[Need], otherwise: Needs
    ) -> Prepared:
        """Bring what serves as well as what a person would have to install."""
        try:
            return await self._environment(machine, otherwise)
        except UnavailableError as error:
            absent = next(need for need in missing if need.fix)
            raise UnavailableError(
                f"{absent.requirement} is not there, and instead of it {error.message}",
                where=self._agent.where, hint=absent.fix, details=error.details,
            ) from error  # fmt: skip

    async def _modules(self, python: str, needs: Needs) -> dict[str, str]:
        modules = {need.module: list(need.packages) for need in needs.modules}
        answer = await self._agent.call("modules", python=python, modules=modules)
        found = answer.get("found")
        return {
            str(module): str(version)
            for module, version in (found.items() if isinstance(found, dict) else ())
            if _VERSION.fullmatch(str(version))
        }

    def _require_installable(self, missing: Sequence[Need]) -> None:
        for need in missing:
            if need.fix and not need.optional:
                raise UnavailableError(
                    f"{need.requirement} is not there", where=self._agent.where, hint=need.fix
                )

    async def _try_optional(
        self, machine: Machine, python: str, name: str, needs: Sequence[Need]
    ) -> None:
        specifiers = [need.requirement for need in needs]
        try:
            await self._install(machine, python, f"{name}-more", specifiers)
        except UnavailableError as error:
            self._amount.notes.append(f"{error.message}; it is done without")

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
            self._amount.notes.append(f"the target cannot fetch packages ({why}): sent from here")
        self._amount.step(f"Fetching {named}")
        files = [LocalFile.at(path) for path in await requirements.fetch(machine, specifiers, name)]
        upload = Upload(self._agent, self._patience, amount=self._amount)
        sent = await upload.send(files)
        self._amount.step(f"Installing {named}")
        names = [[file.path.name, sha256] for file, sha256 in sent.items()]
        await self._agent.call("wheels", python=python, wheels=names)


def environment_name(machine: Machine, flavour: str) -> str:
    """Return the name of our virtual environment of a kind.

    One that adds to a virtual environment of the user belongs to that one alone.
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
        found = f"{visible(machine.here)} is not writable"
        folder = Check("Target", "folder", BROKEN, found, fix)
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
        found = f"{version}, older than {need.oldest}"
        return Check("Packages", need.module, MISSING, found, "installed with the first job")
    return Check("Packages", need.module, GOOD, version or "there")
