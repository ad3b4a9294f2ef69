"""Making the graph of a scope away from the event loop: a large one with a child process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from threading import Event

from dld_tui.core.document import Node, Scope
from dld_tui.core.document.node import NodeTexts
from dld_tui.core.errors import CancelledError
from dld_tui.core.graph.build import ScopeGraph, graph_of
from dld_tui.core.graph.child import FROM as CHILD_FROM
from dld_tui.core.graph.child import ArrangingChild
from dld_tui.core.graph.graph import Graph
from dld_tui.core.graph.overview import Arranged
from dld_tui.core.types import CancelCheck
from dld_tui.widgets.graph.model import GraphModel
from dld_tui.widgets.tasks import begin_thread

_LOOK_S = 0.1


def make_graph(
    scope: Scope,
    constants: bool,
    exceptions: frozenset[Node],
    texts: NodeTexts | None,
    cancelled: CancelCheck,
) -> GraphModel:
    """Return the graph of a scope, ready to be shown.

    Args:
        scope: What to draw.
        constants: Whether constants are drawn, too.
        exceptions: Constants that are drawn where the others are not, or the other way round.
        texts: The texts of its nodes, where somebody has read them already.
        cancelled: Asked now and then.

    Raises:
        CancelledError: `cancelled` said so.
    """
    if len(scope.nodes) < CHILD_FROM:
        drawn = graph_of(scope, constants=constants, exceptions=exceptions, texts=texts)
        return _made(scope, constants, exceptions, drawn, lambda graph: None)
    with closing(ArrangingChild()) as child:  # it starts while the model is read
        drawn = graph_of(scope, constants=constants, exceptions=exceptions, texts=texts)
        return _made(
            scope, constants, exceptions, drawn, lambda graph: child.arrange(graph, cancelled)
        )


def _made(
    scope: Scope,
    constants: bool,
    exceptions: frozenset[Node],
    drawn: ScopeGraph,
    arrange: Callable[[Graph], Arranged | None],
) -> GraphModel:
    model = GraphModel(
        scope, constants=constants, exceptions=exceptions, drawn=drawn, arrange=arrange
    )
    model.prepare()
    return model


class EarlyGraph:
    """The graph of a large model, begun while the rest of it is still being opened.

    It is read at once; the rest is up to a child process, and to a thread that waits for it.

    Args:
        scope: What to draw.
        constants: Whether constants are drawn, too.
        texts: The texts of its nodes.
        cancelled: Asked now and then.
    """

    def __init__(
        self, scope: Scope, constants: bool, texts: NodeTexts, cancelled: CancelCheck
    ) -> None:
        self._cancelled = cancelled
        self._dropped = False
        self._model: GraphModel | None = None
        self._done = Event()
        child = ArrangingChild()
        try:
            drawn = graph_of(scope, constants=constants, texts=texts)
            arguments = (scope, constants, drawn, child)
            begin_thread(self._make, *arguments)
        except BaseException:
            child.close()
            raise

    def _make(
        self, scope: Scope, constants: bool, drawn: ScopeGraph, child: ArrangingChild
    ) -> None:
        try:
            with closing(child):
                self._model = _made(
                    scope,
                    constants,
                    frozenset(),
                    drawn,
                    lambda graph: child.arrange(graph, self._is_cancelled),
                )
        except CancelledError:
            pass
        finally:
            self._done.set()

    def _is_cancelled(self) -> bool:
        return self._dropped or self._cancelled()

    def result(self, cancelled: CancelCheck) -> GraphModel | None:
        """Wait for the graph, on a thread; None when it could not be made.

        Raises:
            CancelledError: `cancelled` said so.
        """
        while not self._done.wait(_LOOK_S):
            if cancelled():
                self.drop()
                raise CancelledError
        return self._model

    def drop(self) -> None:
        """End it: nobody wants it any more."""
        self._dropped = True
