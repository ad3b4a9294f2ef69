"""All operators that can be added to a model: grouped, and found by fuzzy search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from dld_tui.core.operators.categories import CATEGORIES, category_of
from dld_tui.core.operators.registry import known_domains, newest_opset, operators, versions_of
from dld_tui.core.operators.schema import OperatorSchema
from dld_tui.core.text.fuzzy import score

_USED = 12
"""What an operator that the model uses is worth more: about one letter at a word's beginning."""
_DEPRECATED = -40
_NEWER = 2
_LEAST_PART = 3
"""Letters from which a word is looked for in category and domain, too."""


class Grouping(Enum):
    """How the operators are listed."""

    NAME = "name"
    COLLECTION = "collection"
    CATEGORY = "category"
    VERSION = "version"
    """The opset that brought the present signature, the newest first."""

    @property
    def following(self) -> Grouping:
        """The next one, after the last the first."""
        all_of_them = list(Grouping)
        return all_of_them[(all_of_them.index(self) + 1) % len(all_of_them)]


class Origin(Enum):
    """Where an operator is known from."""

    SCHEMA = "schema"
    FUNCTION = "function"
    """A local function of the model."""
    CUSTOM = "custom"
    """Only seen in the model: no schema is known."""


@dataclass(frozen=True)
class PaletteOperator:
    """One operator of the palette. Names of functions and custom ones are foreign text."""

    name: str
    domain: str
    """The operator set, ``""`` for ai.onnx."""
    schema: OperatorSchema
    """Of a custom operator: what its nodes in the model have."""
    origin: Origin = Origin.SCHEMA
    imported: bool = True
    """False when the model does not import its operator set."""
    too_new: int | None = None
    """The opset that the model would have to import; None when it can be added as it is."""
    uses: int = 0
    """Nodes of the model that call it."""

    @property
    def key(self) -> tuple[str, str]:
        """Its domain and name."""
        return self.domain, self.name

    @property
    def collection(self) -> str:
        """The domain for people."""
        return domain_title(self.domain)

    @property
    def category(self) -> str:
        """One of ``CATEGORIES``."""
        return "custom" if self.origin is not Origin.SCHEMA else category_of(self.name, self.domain)

    @cached_property
    def place(self) -> str:
        """Category and domain in lower case, for search."""
        return f"{self.category} {self.collection}".lower()

    @property
    def deprecated(self) -> bool:
        """Whether its operator set advises against it."""
        return self.schema.deprecated

    @property
    def available(self) -> bool:
        """Whether the model can take it without another import."""
        return self.imported and self.too_new is None

    @cached_property
    def summary(self) -> str:
        """One line of documentation. Foreign text for functions."""
        if self.origin is Origin.CUSTOM:
            return "Custom operator of this model."
        text = self.schema.summary
        return text or ("Local function." if self.origin is Origin.FUNCTION else "")


class OperatorPalette:
    """The operators for a model, or all that are known when there is none.

    Args:
        imports: Operator set versions by domain, ``""`` being ai.onnx.
        functions: Signatures of the model's local functions.
        custom: Signatures of operators that are only known from the model's nodes.
        uses: How many nodes call an operator, by (domain, name).
    """

    def __init__(
        self,
        imports: Mapping[str, int],
        *,
        functions: Iterable[OperatorSchema] = (),
        custom: Iterable[OperatorSchema] = (),
        uses: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        self.imports = dict(imports)
        self._uses = dict(uses or {})
        found: dict[tuple[str, str], PaletteOperator] = {}
        # A local function stands in front of an operator of the same name.
        for schema in functions:
            self._enter(found, schema, Origin.FUNCTION)
        for schema in operators(self._known_imports()):
            self._enter(found, schema, Origin.SCHEMA)
        for schema in operators(newest_opsets()):
            is_imported = schema.domain in self.imports
            newer = versions_of(schema.name, schema.domain)[0] if is_imported else None
            self._enter(found, schema, Origin.SCHEMA, imported=is_imported, too_new=newer)
        for schema in custom:
            self._enter(found, schema, Origin.CUSTOM)
        self.operators = sorted(found.values(), key=lambda item: (item.name.lower(), item.domain))
        """All of them by name, whether available or not."""

    def _known_imports(self) -> dict[str, int]:
        known = known_domains()
        return {domain: version for domain, version in self.imports.items() if domain in known}

    def _enter(
        self,
        found: dict[tuple[str, str], PaletteOperator],
        schema: OperatorSchema,
        origin: Origin,
        *,
        imported: bool = True,
        too_new: int | None = None,
    ) -> None:
        key = (schema.domain, schema.name)
        if key not in found:
            found[key] = PaletteOperator(
                schema.name, schema.domain, schema, origin, imported, too_new,
                self._uses.get(key, 0),
            )  # fmt: skip

    def operator(self, name: str, domain: str = "") -> PaletteOperator | None:
        """Return one operator, or None."""
        return next((item for item in self.operators if item.key == (domain, name)), None)

    def search(self, text: str) -> list[PaletteOperator]:
        """Return the operators that fit a text: those that can be added first, the best first."""
        words = text.split()
        if not words:
            return sorted(self.operators, key=_rank)
        scored = []
        for item in self.operators:
            points = _points(item, words)
            if points is not None:
                scored.append((_rank(item), -points, len(item.name), item))
        return [item for *_, item in sorted(scored, key=lambda row: row[:3])]

    def grouped(
        self, grouping: Grouping, found: Sequence[PaletteOperator] | None = None
    ) -> list[tuple[str, list[PaletteOperator]]]:
        """Return (title, operators) by group; what must be imported first is in groups at the end.

        Args:
            grouping: How to group those that can be added.
            found: The operators to group, in their order; by default all.
        """
        groups: dict[str, list[PaletteOperator]] = {}
        items = self.operators if found is None else found
        for title in _titles(grouping, items):
            groups[title] = []
        others: dict[str, list[PaletteOperator]] = {}
        for item in items:
            if item.available:
                groups.setdefault(_group_of(item, grouping), []).append(item)
            else:
                others.setdefault(_other_group(item), []).append(item)
        ordered = sorted(others.items(), key=lambda group: group[0])
        return [(title, items) for title, items in (*groups.items(), *ordered) if items]


def newest_opsets() -> dict[str, int]:
    """Return the newest version of every operator set that is known here, by domain."""
    return {domain: newest_opset(domain) or 1 for domain in known_domains()}


def warm_up() -> None:
    """Read all schemas once, so that a palette is there in a few milliseconds."""
    operators(newest_opsets())


def domain_title(domain: str) -> str:
    """Return a domain for people: ``ai.onnx`` for the nameless one. Foreign text."""
    return domain or "ai.onnx"


def _points(item: PaletteOperator, words: Sequence[str]) -> int | None:
    """Return how well an operator fits: each word its name, or a part of its category or domain."""
    total = _USED * bool(item.uses) + _DEPRECATED * item.deprecated
    for word in words:
        found = score(word, item.name)
        if found is None and not (len(word) >= _LEAST_PART and word.lower() in item.place):
            return None
        total += found or 0
    return total


def _rank(item: PaletteOperator) -> int:
    return 0 if item.available else 1 if item.too_new is None else _NEWER


def _titles(grouping: Grouping, items: Iterable[PaletteOperator]) -> Iterable[str]:
    """Return the groups in their order; others follow as they come."""
    if grouping is Grouping.VERSION:
        pairs = {(item.collection, -item.schema.since_version): item for item in items}
        return [_group_of(pairs[pair], grouping) for pair in sorted(pairs)]
    if grouping is Grouping.CATEGORY:
        return CATEGORIES
    return ("ai.onnx",) if grouping is Grouping.COLLECTION else ()


def _group_of(item: PaletteOperator, grouping: Grouping) -> str:
    if grouping is Grouping.NAME:
        return ""
    if grouping is Grouping.CATEGORY:
        return item.category
    if grouping is Grouping.VERSION:
        return f"{item.collection} {item.schema.since_version}"
    return "local functions" if item.origin is Origin.FUNCTION else item.collection


def _other_group(item: PaletteOperator) -> str:
    if item.too_new is not None:
        return f"newer opset of {item.collection}"
    return f"not imported: {item.collection}"
