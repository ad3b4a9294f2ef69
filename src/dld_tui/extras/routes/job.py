"""Find the build route that gives the fastest TensorRT engine, as trtexec's tuner does.

Each route is built, measured and compared in separate processes, as some crash the compiler. Trials
are recorded immediately, so an interrupted search can be resumed. The fastest engine
has to beat that of the default route in alternating runs.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.activities.separate_process import engine_ms, run_in_process
from dld_tui.core.accuracy.tensor_errors import ToleranceSettings, parse_tolerances
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.files import permission
from dld_tui.core.files.work_journal import WorkJournal
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.params import deciding, like, param, settings_of, to_json
from dld_tui.core.tensorrt.build_routes import Knobs, parse_routes, route_text
from dld_tui.core.tensorrt.run_settings import MeasureSettings
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.extras.routes.search import (
    FAST,
    FULL,
    MIXED,
    SEARCHES,
    RouteSearch,
    RouteTrial,
    combined_routes,
    fast_routes,
    fastest,
    full_routes,
    route_count,
)

if TYPE_CHECKING:
    from dld_tui.backends.tensorrt.library import Library
    from dld_tui.core.compare.gate import GateRow
    from dld_tui.core.model.document.document import Document

_PAGE = "Routes"


@dataclass(frozen=True)
class Request(BuildSettings):
    """The routes, the build, and the expected results."""

    output: Path | None = param(
        None,
        label="Save engine",
        help=(
            "Save the fastest engine here. By default NAME.engine in the current folder, if a "
            "route is faster than the default."
        ),
        kind="output",
        default_path=lambda request: request.engine_path,
        spellings=("--output", "-o", "--save-engine", "--saveEngine"),
        metavar="ENGINE",
    )
    routes: str = param(
        "",
        label="Routes",
        decides=False,
        help=(
            "Knobs and values to try, such as '-copy_ppg=[on|off] -peep:max=2'. Without this "
            "option, list the knobs."
        ),
        spellings=("--routes", "--tuneBuildRoutes"),
        metavar="EXPR",
        page=_PAGE,
        empty="list the knobs",
    )
    routes_file: Path | None = param(
        None,
        label="Routes file",
        decides=False,
        help="File with such an expression, one knob per line.",
        kind="file",
        spellings=("--routes-file", "--tuneBuildRouteFile"),
        metavar="FILE",
        page=_PAGE,
    )
    search: str = param(
        FAST,
        label="Search",
        decides=False,
        help=(
            "fast changes one knob at a time; full tries all combinations; mixed runs fast, "
            "then combines the knobs that helped."
        ),
        choices=SEARCHES,
        spellings=("--search", "--tuningSearch"),
        page=_PAGE,
    )
    budget: float = param(
        3600.0,
        label="Time",
        decides=False,
        help="Start no build after this time.",
        unit="s",
        minimum=1,
        spellings=("--budget", "--tuningTimeOut"),
        metavar="S",
        page=_PAGE,
    )
    limit: float = param(
        1800.0,
        label="Limit",
        decides=False,
        help="Time limit of each build.",
        unit="s",
        minimum=1,
        spellings=("--limit",),
        metavar="S",
        page=_PAGE,
    )
    tolerance: tuple[str, ...] = like(ToleranceSettings, "tolerance", page=_PAGE)
    inputs: Path | None = like(InputSettings, "inputs", page=_PAGE)
    seed: int = like(InputSettings, "seed", page=_PAGE)
    iterations: int = like(MeasureSettings, "iterations", 20, page=_PAGE)
    duration: float = like(MeasureSettings, "duration", 1.0, page=_PAGE)
    use_cuda_graph: bool = like(MeasureSettings, "use_cuda_graph", page=_PAGE)
    again: bool = param(
        False,
        label="Start over",
        decides=False,
        help="Start over instead of resuming an interrupted search.",
        spellings=("--from-start",),
        page=_PAGE,
    )

    @property
    def engine_path(self) -> Path:
        """Where the fastest engine goes."""
        return self.output or Path(f"{self.model.stem}.engine")

    def require(self) -> None:
        """Refuse settings that do not go together, before anything is loaded.

        Raises:
            UsageError: Says which.
        """
        parse_tolerances(self.tolerance)
        if self.routes and self.routes_file is not None:
            raise UsageError("--routes and --routes-file are both given")
        if self.build_route:
            raise UsageError("--build-route cannot be set: this search finds it")

    def expression(self) -> str:
        """Return the knobs to try; empty without any.

        Raises:
            UsageError: The file cannot be read.
        """
        if self.routes_file is None:
            return self.routes
        try:
            return self.routes_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{self.routes_file} cannot be read: {error}") from None


_OWN = ("model", "output", "open_metadata", "layer_info", "log", "build_route")
"""Settings of a build that each route has its own of."""


def run(request: Request) -> Iterator[Event]:
    """Search.

    Raises:
        UsageError: The library lacks the knobs, or a setting does not match the model.
        InputError: The model or an input cannot be read.
        UnavailableError: There is no working library, or no GPU for it.
        ActivityError: The model cannot be built or run by the default route.
        SaveError: The engine cannot be written.
    """
    from dld_tui.backends.tensorrt.cuda import select_device
    from dld_tui.backends.tensorrt.library import find_library
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.tensorrt.availability import require_available, require_driver

    request.require()
    yield Progress(0, None, stage="Loading TensorRT")
    select_device(request.device)  # before anything of CUDA
    library = find_library(request.library)
    title = library.capabilities.title
    knobs = _knobs(library)
    expression = request.expression()
    if not expression.strip():
        listed = tuple(knobs.knobs.values())
        yield Finished(RouteSearch(title, knobs.version, request.search, (), True, knobs=listed))
        return
    tried = parse_routes(expression, knobs)
    require_available(request, library.capabilities)
    require_driver(library.capabilities)
    yield Progress(0, None, stage="Reading the model")
    with contextlib.closing(open_document(request.model)) as document:
        yield from _Searching(request, library, document, knobs, tried).events()


def _knobs(library: Library) -> Knobs:
    from dld_tui.backends.tensorrt.builder import known_knobs
    from dld_tui.backends.tensorrt.library import trt

    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    return known_knobs(builder.create_builder_config(), library.capabilities)


class _KnownRoutes:
    """The trials of a search that was stopped, by route: a line each."""

    def __init__(self, path: Path) -> None:
        self._journal = WorkJournal(path)
        self.trials: dict[str, RouteTrial] = {}
        self._journal.read(self._take)

    def _take(self, entry: list[Any]) -> None:
        route, ms, problem = entry
        ms = None if ms is None else float(ms)
        self.trials[str(route)] = RouteTrial(str(route), ms, str(problem))

    def add(self, trial: RouteTrial) -> None:
        """Keep a trial."""
        self.trials[trial.route] = trial
        self._journal.add([trial.route, trial.ms, trial.problem])

    def close(self) -> None:
        """Let the next run of the same go on."""
        self._journal.close()


class _Searching:
    """One search."""

    def __init__(
        self,
        request: Request,
        library: Library,
        document: Document,
        knobs: Knobs,
        tried: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._request, self._library = request, library
        self._knobs, self._tried = knobs, tried
        self._begin = time.monotonic()
        self._shapes = _shapes(document, request)
        self._folder = _folder(request, library, document, knobs)
        permission.agree([self._folder])
        self._trials: dict[str, RouteTrial] = {}
        self._kept: dict[str, str] = {}

    def events(self) -> Iterator[Event]:
        from dld_tui.core.process.paths import ensure

        asked = self._request
        if asked.again:
            shutil.rmtree(self._folder, ignore_errors=True)
        ensure(self._folder)
        with contextlib.closing(_KnownRoutes(self._folder / "routes.jsonl")) as known:
            yield from self._search(known)

    def _search(self, known: _KnownRoutes) -> Iterator[Event]:
        asked = self._request
        routes = full_routes if asked.search == FULL else fast_routes
        count = route_count(self._tried, asked.search, self._knobs)
        is_whole = yield from self._all(routes(self._tried, self._knobs), known, count)
        if asked.search == MIXED and is_whole:
            ms = {
                name: trial.ms
                for name, trial in self._trials.items()
                if trial.ms and not trial.problem
            }
            more = combined_routes(ms, self._tried, self._knobs)
            is_whole = yield from self._all(iter(more), known, count + len(more))
        default, best = next(iter(self._trials.values())), fastest(self._trials.values())
        confirmed, engine = None, None
        if best is not None and best is not default and not default.problem:
            confirmed = yield from self._confirmed(default.route, best.route)
            if confirmed.is_faster:
                engine = self._keep(best.route)
        shutil.rmtree(self._folder, ignore_errors=True)
        yield Finished(
            RouteSearch(
                self._library.capabilities.title, self._knobs.version, asked.search,
                tuple(self._trials.values()), is_whole, confirmed, engine,
                self._command(best.route) if engine is not None and best is not None else "",
            )
        )  # fmt: skip

    def _all(
        self, routes: Iterator[dict[str, str]], known: _KnownRoutes, count: int
    ) -> Generator[Event, None, bool]:
        """Try routes; return whether there was time for all."""
        for values in routes:
            route = route_text(values)
            if self._trials and time.monotonic() - self._begin > self._request.budget:
                return False
            trial = known.trials.get(route)
            if trial is None:
                yield Progress(len(self._trials), count, "routes", f"Building {visible(route)}")
                trial = yield from self._trial(route)
                known.add(trial)
            self._trials[route] = trial
            result = visible(trial.problem) or f"{trial.ms:.4g} ms"
            yield Log(f"{visible(route)}: {result}")
        return True

    def _ask(self, activity: str, **settings: JSON) -> Generator[Progress, None, Any]:
        return run_in_process(activity, settings, self._folder, self._request.limit)

    def _trial(self, route: str) -> Generator[Event, None, RouteTrial]:
        engine = self._folder / "trial.engine"
        engine.unlink(missing_ok=True)
        ms = None
        try:
            ms = yield from self._built(route, engine)
            problem = yield from self._problem(engine)
        except (ActivityError, UnavailableError) as error:
            if not self._trials:  # without the default there is nothing to compare with
                raise
            return RouteTrial(route, ms, error.message)
        if not problem:
            self._keep_if_needed(route, ms, engine)
        return RouteTrial(route, ms, problem)

    def _keep_if_needed(self, route: str, ms: float, engine: Path) -> None:
        """Keep the engines of the default and of the fastest route so far."""
        best = fastest(self._trials.values())
        name = "default" if not self._trials else "best"
        if name == "default" or best is None or best.ms is None or ms < best.ms:
            engine.replace(self._folder / f"{name}.engine")
            self._kept[name] = route

    def _built(self, route: str, engine: Path) -> Generator[Event, None, float]:
        """Build an engine and return the median of its passes."""
        mine = to_json(self._request)
        names = {setting.name for setting in settings_of(BuildSettings)} - {*_OWN}
        settings = {name: mine[name] for name in names}
        return (
            yield from self._measured(
                **settings, build_route=route, output=str(engine), model=mine["model"]
            )
        )

    def _measured(self, **settings: JSON) -> Generator[Progress, None, float]:
        asked = self._request
        return engine_ms(
            self._folder, asked.limit, seed=asked.seed, shape=[*self._shapes],
            iterations=asked.iterations, duration=asked.duration,
            use_cuda_graph=asked.use_cuda_graph, **settings,
        )  # fmt: skip

    @property
    def _loading(self) -> Mapping[str, JSON]:
        asked = self._request
        plugins: list[JSON] = [*asked.all_plugins]
        device: dict[str, JSON] = {"library": asked.library, "device": asked.device}
        return {**device, "plugins": plugins, "trust": True}

    def _problem(self, engine: Path) -> Generator[Event, None, str]:
        """Return which output is wrong; empty where none is."""
        mine = to_json(self._request)
        shared = {name: mine[name] for name in ("tolerance", "inputs", "seed")}
        shapes: list[JSON] = [] if self._request.inputs is not None else [*self._shapes]
        result = yield from self._ask(
            "accuracy", model=mine["model"], against=str(engine), shape=shapes, **shared,
            **self._loading,
        )  # fmt: skip
        return "" if result.is_good else f"output {result.first} is not within {result.tolerance}"

    def _confirmed(self, default: str, best: str) -> Generator[Event, None, GateRow]:
        """Measure the engines of two routes in turns."""
        from dld_tui.core.compare.gate import LEAST_RUNS, RUNS, judge

        sides: tuple[list[float], list[float]] = ([], [])
        paths = []
        for name, route in (("default", default), ("best", best)):
            paths.append(self._folder / f"{name}.engine")
            if self._kept.get(name) != route:  # found by an earlier run of the program
                yield from self._built(route, paths[-1])
        model = str(self._request.model)
        for number in range(RUNS):
            late = time.monotonic() - self._begin > self._request.budget
            if number >= LEAST_RUNS and late:
                break
            yield Progress(number, RUNS, "pairs", "Confirming the fastest")
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                engine = str(paths[side])
                ms = yield from self._measured(
                    engine=engine, model=model, dla_core=self._request.dla_core, **self._loading
                )
                sides[side].append(ms)
        return judge("end to end", *sides)

    def _keep(self, route: str) -> Path:
        from dld_tui.core.files import permission
        from dld_tui.core.files.writer import write_pieces

        path = permission.place(self._request.engine_path.absolute())
        write_pieces(path, [(self._folder / "best.engine").read_bytes()])
        return path

    def _command(self, route: str) -> str:
        from dld_tui.core.params import command_line

        values = {name: one for name, one in to_json(self._request).items() if name not in _OWN}
        known = {setting.name for setting in settings_of(BuildSettings)}
        settings = {name: value for name, value in values.items() if name in known}
        return command_line(
            ("dld", "build"), BuildSettings,
            {**settings, "model": str(self._request.model), "build_route": route},
        )  # fmt: skip


def _shapes(document: Document, request: Request) -> list[str]:
    """Return the shapes to run with: the usual ones of the first profile."""
    from dld_tui.core.tensorrt.profiles import profiles_for, shape_inputs

    profiles = profiles_for(document, request).ranges
    values = shape_inputs(document)
    return [
        f"{name}:{'x'.join(map(str, ranged.opt))}"
        for name, ranged in (profiles[0] if profiles else {}).items()
        if name not in values
    ]


def _folder(request: Request, library: Library, document: Document, knobs: Knobs) -> Path:
    """Return where the trials of this very search are noted."""
    from dld_tui.core.conversion.search_key import search_conditions
    from dld_tui.core.process.paths import cache_dir
    from dld_tui.core.trials import search_name

    used: list[JSON] = [library.capabilities.title, library.capabilities.path, knobs.version]
    conditions = search_conditions(deciding(request), document, [request.inputs], library=used)
    return cache_dir() / "route-search" / search_name(conditions)
