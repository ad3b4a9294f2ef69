"""Patterns: ONNX text of a function, or an expression of calls, with wildcards.

::

    (x) => (y) {                                     Mul(x, Sigmoid(x))
        s = Sigmoid(x)                               Transpose<perm = p>(&Transpose<perm = q>(x))
        y = Mul(x, s)                                Add|Sub(Conv(x, w, b?), c) where c is constant
    }

=====================  ============================================================================
``Relu|Gelu``          one of several operators; ``com.microsoft.Gelu`` is of another operator set
``_``                  any operator, or as an input any value
``x?``                 an input that may be left out; ``""`` one that must be
``...``                any further inputs
``2.0``, ``[1, 2]``    a constant with this value, whether a Constant node or an initializer
``Foo~(a, b)``         the two inputs may be the other way round; Add, Mul and the like always
``<axis = -1>``        an attribute, its default counts; or the constant input that it is since then
``<axis = a>``         any value, known as ``a`` in conditions and in what replaces the pattern
``&Relu(x)``           its output may have other uses: the node stays if there are any
``Relu?(x)``           an optional node: without it, its input is its output
``c: Conv(x, w)``      a name for the node, whose operator and attributes a replacement can take
=====================  ============================================================================

What nodes of a pattern make, but for its outputs and what has ``&``, must not be used elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.rewrite.expression import (
    FUNCTIONS,
    TYPED,
    Expression,
    Reader,
    read_expression,
    read_sum,
)
from dld_tui.core.model.rewrite.query import parse_kinds

COMMUTATIVE = frozenset(
    ("Add", "Mul", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max",
     "Min", "Sum", "Mean")
)  # fmt: skip
"""Operators of ai.onnx whose two inputs may be the other way round."""
MOST_NODES = 100
"""Of a pattern."""
MOST_LOOSE = 6
"""The most optional nodes of a pattern: each doubles the number of variants."""


@dataclass(frozen=True)
class Variable:
    """A value: of any name where it is ``_``."""

    name: str
    optional: bool = False


@dataclass(frozen=True)
class Literal:
    """A constant with a value: a number, or lists of them."""

    value: object


@dataclass(frozen=True)
class OmittedInput:
    """An optional input that is left out."""


@dataclass(frozen=True)
class ComputedConstant:
    """A constant that a replacement works out: ``{sqrt(w.value)}``."""

    expression: Expression


Argument: TypeAlias = "Variable | Literal | OmittedInput | ComputedConstant"


@dataclass(frozen=True)
class Call:
    """An operator call of a pattern or a replacement."""

    kinds: frozenset[tuple[str, str]]
    """Domain and operator; empty for any, and where `label` names a matched node to repeat."""
    inputs: tuple[Argument, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Expression | str], ...] = ()
    """An expression, or in a pattern the name under which any value is known."""
    more: bool = False
    """Whether further inputs are allowed."""
    swaps: bool = False
    """Whether its two inputs may be the other way round."""
    label: str = ""
    may_miss: bool = False
    """Whether it need not be there, and its first input that a call makes, or its first, is its
    output."""

    @property
    def title(self) -> str:
        """Its operators, ``_`` for any."""
        names = (f"{domain}.{name}" if domain else name for domain, name in sorted(self.kinds))
        return "|".join(names) or "_"


@dataclass(frozen=True)
class Body:
    """Calls, with their inputs and outputs."""

    calls: tuple[Call, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """Names of values; of a replacement that is one of the inputs, this."""
    shared: frozenset[str] = frozenset()
    """Values inside that may have other uses."""
    name: str = ""
    results: tuple[Argument, ...] = ()
    """What the outputs of a replacement are where they are no call's: in the same order."""

    @property
    def made(self) -> dict[str, tuple[int, int]]:
        """The call and the place among its outputs of each value that the calls make."""
        return {
            name: (at, place)
            for at, call in enumerate(self.calls)
            for place, name in enumerate(call.outputs)
            if name
        }


@dataclass(frozen=True)
class Pattern:
    """What is looked for."""

    text: str
    body: Body
    conditions: tuple[Expression, ...] = ()
    captures: frozenset[str] = field(default_factory=frozenset)
    """Names of attributes."""
    absent: frozenset[str] = frozenset()
    """Names that only nodes have which are missing from it."""

    @property
    def names(self) -> frozenset[str]:
        """Everything that an expression can name."""
        calls = self.body.calls
        names = {n for call in calls for n in call.outputs if n} | set(self.captures)
        names |= {item.name for call in calls for item in call.inputs if isinstance(item, Variable)}
        return frozenset(names | {call.label for call in calls if call.label} - {"_"})

    @cached_property
    def variants(self) -> tuple[Pattern, ...]:
        """It without the nodes that may be missing, in all ways; the longest first."""
        calls = self.body.calls
        loose = [at for at, call in enumerate(calls) if call.may_miss]
        if not loose:
            return (self,)
        variants = [
            shorter
            for count in range(len(loose) + 1)
            for dropped in combinations(loose, count)
            if (shorter := self._without(set(dropped))) is not None
        ]
        return tuple(variants)

    def _without(self, dropped: set[int]) -> Pattern | None:
        calls, instead = self.body.calls, dict[str, str]()
        produced = self.body.made
        for at in sorted(dropped):  # what comes in is made before: a chain is followed at once
            names = [item.name for item in calls[at].inputs if isinstance(item, Variable)]
            passed = next((name for name in names if name in produced), names[0] if names else "")
            instead[calls[at].outputs[0]] = instead.get(passed, passed)
        kept = tuple(
            replace(call, inputs=tuple(_renamed(item, instead) for item in call.inputs))
            for at, call in enumerate(calls)
            if at not in dropped
        )
        outputs = tuple(instead.get(name, name) for name in self.body.outputs)
        left = {name for call in kept for name in call.outputs}
        if not all(name in left for name in outputs):
            return None  # nothing would be left of an output
        used = {item.name for call in kept for item in call.inputs if isinstance(item, Variable)}
        body = replace(
            self.body, calls=kept, outputs=outputs,
            inputs=tuple(name for name in self.body.inputs if name in used),
            results=tuple(_renamed(item, instead) for item in self.body.results),
        )  # fmt: skip
        shorter = replace(self, body=body)
        gone = self.names - shorter.names if dropped else frozenset()
        captured = {name for call in kept for _, name in call.attributes if isinstance(name, str)}
        gone |= self.captures - captured
        require_sound(shorter)
        return replace(shorter, absent=gone, captures=frozenset(captured))

    @property
    def needs_types(self) -> bool:
        """Whether a condition reads types, for which shape inference may have to run."""
        words = {w for c in self.conditions for w in re.findall(r"\w+", c.text)}
        return bool(words & TYPED)


def _renamed(item: Argument, names: dict[str, str]) -> Argument:
    if isinstance(item, Variable) and item.name in names:
        return replace(item, name=names[item.name])
    return item


_FUNCTION = re.compile(r"(?:<[^>]*>\s*)?(?:[A-Za-z_][\w.]*\s*)?(?:<[^>]*>\s*)?"
                       r"\([^()]*\)\s*=>\s*\([^()]*\)\s*\{")  # fmt: skip
_CALL = re.compile(
    r"(?:[A-Za-z_]\w*\s*:\s*)?(?:_|[A-Za-z_][\w.]*(?:\s*\|\s*[A-Za-z_][\w.]*)*)\s*[~?]*\s*"
    r"(?:<|\()"
)
_NAME = re.compile(r"[A-Za-z_][\w.]*|\"[^\"]*\"")
_KINDS = re.compile(r"[A-Za-z_][\w.]*(?:\s*\|\s*[A-Za-z_][\w.]*)*")
_STATEMENT = re.compile(r"(?:\[[^\]]*\]\s*)?[A-Za-z_][\w.]*(?:\s*,\s*(?:[A-Za-z_][\w.]*|\"\"))*"
                        r"\s*=(?![=>])")  # fmt: skip
_TYPED = re.compile(r"(?:float|double|float16|bfloat16|u?int(?:8|16|32|64)|bool)\s*"
                    r"(?:\[[\d\s,]*\])?\s*(?=\{)")  # fmt: skip
_ATTRIBUTE_TYPE = re.compile(r":\s*(?:int|float|string|tensor)s?\s*(?==)")
_BARE = re.compile(r"@?([A-Za-z_]\w*)\s*(?=[,>])")
_SIGNED = re.compile(r"-\s*(?=[\d.])")


def parse_pattern(text: str) -> Pattern:
    """Return the pattern of a text.

    Raises:
        UsageError: It is none, falls apart, or matches everything; says where.
    """
    reader = Reader(text)
    pattern = read_pattern(reader)
    reader.end()
    return pattern


def read_pattern(reader: Reader) -> Pattern:
    """Take a pattern, and the condition behind it, from a text; see :func:`parse_pattern`."""
    reader.space()
    start = reader.at
    parser = BodyReader(reader, is_pattern=True)
    body = parser.body()
    pattern = Pattern(reader.text[start : reader.at].strip(), body, (), frozenset(parser.captures))
    require_sound(pattern)
    _ = pattern.variants  # which must be sound, too
    return with_condition(reader, pattern)


def with_condition(reader: Reader, pattern: Pattern) -> Pattern:
    """Add the condition that comes next in a text, if there is one, to a pattern."""
    if not reader.take("where"):
        return pattern
    known = pattern.names | {"opset", *FUNCTIONS}
    condition = read_expression(reader, known)
    unknown = sorted(condition.names - known - {f"@{name}" for name in known})
    if unknown:
        raise UsageError(f"the pattern has no {unknown[0]!r:.60}, which the condition names")
    text = f"{pattern.text} where {condition.text}"
    return replace(pattern, text=text, conditions=(*pattern.conditions, condition))


def require_sound(pattern: Pattern) -> None:
    """Refuse a pattern that matches everything or falls apart.

    Raises:
        UsageError: It does.
    """
    calls = pattern.body.calls
    if not calls:
        raise UsageError("the pattern has no operator")
    if len(calls) > MOST_NODES:
        raise UsageError(f"the pattern has more than {MOST_NODES} operators")
    if sum(call.may_miss for call in calls) > MOST_LOOSE:
        raise UsageError(f"more than {MOST_LOOSE} nodes of the pattern may be missing")
    if not any(call.kinds for call in calls):
        raise UsageError(
            "the pattern names no operator: it matches everything",
            hint="Name one, or use dld find for single nodes",
        )
    produced = pattern.body.made
    linked: dict[int, set[int]] = {at: set() for at in range(len(calls))}
    users: dict[str, list[int]] = {}
    for at, call in enumerate(calls):
        for item in call.inputs:
            if isinstance(item, Variable) and item.name != "_":
                users.setdefault(item.name, []).append(at)
    for name, places in users.items():
        places = [produced[name][0], *places] if name in produced else places
        for other in places[1:]:
            linked[places[0]].add(other)
            linked[other].add(places[0])
    reached, waiting = {0}, [0]
    while waiting:
        for other in linked[waiting.pop()] - reached:
            reached.add(other)
            waiting.append(other)
    if len(reached) < len(calls):
        lost = next(call for at, call in enumerate(calls) if at not in reached)
        raise UsageError(
            f"the pattern falls apart: {lost.title} shares no value with {calls[0].title}",
            hint="Look for one part at a time",
        )


class BodyReader:
    """Reads calls.

    Args:
        reader: The text.
        is_pattern: False for a replacement, in which attributes are worked out.
        known: Names that mean something in expressions.
        labels: Names of matched nodes, which a replacement can repeat.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        is_pattern: bool,
        known: frozenset[str] = frozenset(),
        labels: frozenset[str] = frozenset(),
    ) -> None:
        self._reader = reader
        self._is_pattern = is_pattern
        self._known = known | frozenset(FUNCTIONS) | {"opset"}
        self._labels = labels
        self._calls: list[Call] = []
        self._shared: set[str] = set()
        self._same: dict[str, Argument] = {}
        """Names of constants in function text."""
        self.captures: set[str] = set()

    def body(self) -> Body:
        """Take a function, statements in braces, or one expression."""
        reader = self._reader
        name, inputs, outputs = "", None, None
        if reader.match(_FUNCTION) is not None:
            name, inputs, outputs = self._header()
        if inputs is None and not self._sees_statements():
            result = self._expression()
            return self._closed("", None, (result,))
        reader.expect("{")
        while not reader.take("}"):
            if reader.take(";"):
                continue
            self._statement()
        results: tuple[Argument, ...] | None = None
        if outputs is not None:
            results = tuple(self._same.get(item, Variable(item)) for item in outputs)
        return self._closed(name, inputs, results)

    def _sees_statements(self) -> bool:
        """Return whether a brace comes next that is not that of a computed constant."""
        reader = self._reader
        if not reader.sees("{") or self._is_pattern:
            return reader.sees("{")
        start = reader.at
        reader.expect("{")
        sees = reader.sees("}") or reader.match(_STATEMENT) is not None
        reader.at = start
        return sees

    def _closed(
        self, name: str, inputs: list[str] | None, results: tuple[Argument, ...] | None
    ) -> Body:
        calls = tuple(self._calls)
        produced = {out for call in calls for out in call.outputs if out}
        free_names = dict.fromkeys(
            item.name
            for call in calls
            for item in call.inputs
            if isinstance(item, Variable) and item.name not in produced and item.name != "_"
        )
        used = {item.name for call in calls for item in call.inputs if isinstance(item, Variable)}
        if results is None:
            ends = [out for call in calls for out in call.outputs if out and out not in used]
            results = tuple(Variable(out) for out in ends)
        if self._is_pattern:
            for result in results:
                if not isinstance(result, Variable) or result.name not in produced:
                    raise UsageError("an output of the pattern is made by none of its operators")
        if inputs is not None and (strange := [n for n in free_names if n not in inputs]):
            raise UsageError(f"{strange[0]!r:.60} is neither an input nor the output of a call")
        outputs = tuple(item.name if isinstance(item, Variable) else "" for item in results)
        return Body(
            calls, tuple(inputs or free_names), outputs, frozenset(self._shared), name, results
        )

    def _header(self) -> tuple[str, list[str], list[str]]:
        reader = self._reader
        self._skip_angles()
        name = ""
        if (match := reader.match(_NAME)) is not None:
            name, reader.at = match.group(), match.end()
        self._skip_angles()
        inputs = self._names()
        reader.expect("=>")
        return name, inputs, self._names()

    def _skip_angles(self) -> None:
        """Pass over the operator sets and the attributes of function text."""
        if self._reader.take("<"):
            end = self._reader.text.find(">", self._reader.at)
            self._reader.at = end + 1

    def _names(self) -> list[str]:
        reader = self._reader
        reader.expect("(")
        names: list[str] = []
        while not reader.take(")"):
            names.append(reader.word("the name of a value"))
            reader.take("?")
            if not reader.take(",") and not reader.sees(")"):
                raise reader.error("',' or ')' is expected")
        return names

    def _statement(self) -> None:
        reader = self._reader
        if reader.match(_STATEMENT) is None:
            raise reader.error("a line such as y = Relu(x) is expected")
        if reader.take("["):  # the name of a node in ONNX text
            reader.at = reader.text.index("]", reader.at) + 1
        outputs: list[str] = []
        while True:
            match = reader.match(_NAME)
            if match is None:
                raise reader.error("the name of a value is expected")
            reader.at = match.end()
            outputs.append(match.group().strip('"'))
            if not reader.take(","):
                break
        reader.expect("=")
        used_names = {name for call in self._calls for name in call.outputs} | set(self._same)
        for name in outputs:
            if name and name in used_names:
                raise reader.error(f"{name!r:.60} is made twice,")
        result = self._expression(tuple(outputs))
        if not isinstance(result, Variable) or result.name != outputs[0]:
            self._same[outputs[0]] = result

    def _expression(self, outputs: tuple[str, ...] = ()) -> Argument:
        """Take a call, which is entered, or an argument; return what stands for its value."""
        reader = self._reader
        shared = reader.take("&")
        match = reader.match(_CALL)
        if match is None:
            if shared:
                raise reader.error("an operator is expected behind &")
            return self._argument()
        label = ""
        kinds_match = reader.match(_KINDS)
        assert kinds_match is not None
        word = kinds_match.group()
        reader.at = kinds_match.end()
        if reader.take(":"):
            label, kinds_match = word, reader.match(_KINDS)
            if kinds_match is None:
                raise reader.error("an operator is expected")
            word = kinds_match.group()
            reader.at = kinds_match.end()
        repeats = not self._is_pattern and word in self._labels
        kinds = frozenset() if repeats else parse_kinds(word)
        if not self._is_pattern and not repeats and len(kinds) != 1:
            raise reader.error("a replacement needs one operator, or the name of a matched node,")
        may_miss = self._is_pattern and reader.take("?")
        swaps = reader.take("~")
        may_miss = may_miss or (self._is_pattern and reader.take("?"))
        with reader.deeper():
            attributes = self._attributes() if reader.take("<") else ()
            inputs, more = self._inputs()
        if self._is_constant(kinds, inputs, attributes):
            return self._constant_of(attributes)
        if not outputs:
            # Those of a replacement are others than those of the pattern.
            outputs = (f"{'%' if self._is_pattern else '%%'}{len(self._calls)}",)
            while outputs[0] in {name for call in self._calls for name in call.outputs}:
                outputs = (f"{outputs[0]}'",)
        known = all(not domain and name in COMMUTATIVE for domain, name in kinds) and kinds
        if shared:
            self._shared.update(outputs)
        self._calls.append(
            Call(
                kinds, inputs, outputs, attributes, more,
                len(inputs) == 2 and not more and bool(swaps or known),
                word if repeats else label, may_miss,
            )
        )  # fmt: skip
        return Variable(outputs[0])

    @staticmethod
    def _is_constant(
        kinds: frozenset[tuple[str, str]],
        inputs: tuple[Argument, ...],
        attributes: tuple[tuple[str, Expression | str], ...],
    ) -> bool:
        return kinds == {("", "Constant")} and not inputs and len(attributes) == 1

    @staticmethod
    def _constant_of(attributes: tuple[tuple[str, Expression | str], ...]) -> Argument:
        value = attributes[0][1]
        if isinstance(value, str):
            raise UsageError("a constant of any value is an input, with a condition: c is constant")
        return Literal(value.value(lambda name: None))

    def _inputs(self) -> tuple[tuple[Argument, ...], bool]:
        reader = self._reader
        reader.expect("(")
        arguments: list[Argument] = []
        while not reader.take(")"):
            if self._is_pattern and reader.take("..."):
                reader.expect(")")
                return tuple(arguments), True
            arguments.append(self._expression())
            if not reader.take(",") and not reader.sees(")"):
                raise reader.error("',' or ')' is expected")
        return tuple(arguments), False

    def _argument(self) -> Argument:
        reader = self._reader
        if reader.take('""'):
            return OmittedInput()
        if reader.take("{"):
            if self._is_pattern:
                raise reader.error("a pattern has no computed constants:")
            expression = read_expression(reader, self._known)
            reader.expect("}")
            self._require_known(expression)
            return ComputedConstant(expression)
        if reader.sees("[") or reader.match(_SIGNED) or (reader.match(re.compile(r"[\d.]"))):
            return Literal(self._literal())
        match = reader.match(_NAME)
        if match is None:
            raise reader.error("a value, a constant or an operator is expected")
        reader.at = match.end()
        name = match.group()
        if reader.take("?"):
            return Variable(name, optional=True)
        return self._same.get(name, Variable(name))

    def _literal(self) -> object:
        reader = self._reader
        if reader.take("["):
            items = []
            with reader.deeper():
                while not reader.take("]"):
                    items.append(self._literal())
                    if not reader.take(",") and not reader.sees("]"):
                        raise reader.error("',' or ']' is expected")
            return items
        negative = reader.take("-")
        number = reader.number()
        if number is None:
            raise reader.error("a number is expected")
        return -number if negative else number

    def _attributes(self) -> tuple[tuple[str, Expression | str], ...]:
        reader = self._reader
        attributes: list[tuple[str, Expression | str]] = []
        while not reader.take(">"):
            name = reader.word("an attribute")
            if (match := reader.match(_ATTRIBUTE_TYPE)) is not None:
                reader.at = match.end()
            reader.expect("=")
            attributes.append((name, self._attribute()))
            if not reader.take(",") and not reader.sees(">"):
                raise reader.error("',' or '>' is expected")
        return tuple(attributes)

    def _attribute(self) -> Expression | str:
        reader = self._reader
        if (typed := reader.match(_TYPED)) is not None:
            reader.at = typed.end()
        bare = reader.match(_BARE)
        if self._is_pattern and bare is not None and bare.group(1).lower() not in ("true", "false"):
            reader.at = bare.end()
            self.captures.add(bare.group(1))
            return bare.group(1)
        start = reader.at
        if reader.take("{"):  # a tensor of ONNX text, or a computed value
            values = [read_sum(reader, self._known)]
            while reader.take(","):
                values.append(read_sum(reader, self._known))
            reader.expect("}")
            expression = values[0]
            if len(values) > 1:
                text = f"[{', '.join(value.text for value in values)}]"
                expression = Expression(
                    text, lambda names: [value.value(names) for value in values], frozenset()
                )
        else:
            expression = read_sum(reader, self._known)
        if self._is_pattern and expression.names:
            reader.at = start
            raise reader.error("a value, or the name for any value, is expected")
        self._require_known(expression)
        return expression

    def _require_known(self, expression: Expression) -> None:
        names = {name.removeprefix("@") for name in expression.names}
        unknown = sorted(names - self._known)
        if unknown and not self._is_pattern:
            raise UsageError(f"the pattern has no {unknown[0]!r:.60}, which the replacement names")
