"""A chat template as a program from a stranger: it reaches nothing but its variables, and ends.

jinja2's sandbox keeps it away from Python's objects. Nothing can stop Python inside one call, so a call that
might take long or make much is refused before it is made: each text and list that a template makes is paid
for out of what one run may make, what multiplies is paid for beforehand, and each step looks at the clock.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import BuiltinMethodType
from typing import Any, TypeVar, cast

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.filters import make_attrgetter  # pyright: ignore[reportUnknownVariableType]
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from .errors import TemplateError
from .template_meter import CHECKS, LONGEST_NEEDLE, Check, Meter, check_braces, check_percent, check_product
from .text import on_one_line

AnyCallable = TypeVar("AnyCallable", bound=Callable[..., Any])

_MADE, _JOINED = "made, and paid for", "joined, and paid for"
"""Filters of our own."""
_LONGEST_SOURCE = 100_000
"""Characters; the longest templates that models come with have a third of that."""
_MOST_STEPS = 100_000
"""How many numbers all `range`s of one run may give."""
_MOST_MADE = 4_000_000
"""Characters and items that one run may make, beyond `_TIMES_GIVEN` times what it was given."""
_TIMES_GIVEN = 50

_FILTERS = frozenset((
    "abs", "attr", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float",
    "format", "groupby", "indent", "int", "items", "last", "length", "list", "lower", "map", "max", "min",
    "reject", "rejectattr", "replace", "reverse", "round", "select", "selectattr", "sort", "string", "sum",
    "title", "trim", "unique", "upper", "wordcount",
))  # fmt: skip
"""Of jinja2's filters those that conversations are written with; the others lay out web pages."""

_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset((
        "capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha", "isascii",
        "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle",
        "isupper", "join", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind",
        "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase",
        "title", "upper",
    )),
    dict: frozenset(("copy", "get", "items", "keys", "values")),
    list: frozenset(("copy", "count", "index")),
    tuple: frozenset(("count", "index")),
    float: frozenset(("is_integer",)),
}  # fmt: skip


class TemplateProgram:
    """A template, compiled once and run within bounds, one run at a time."""

    def __init__(self, source: str, now: Callable[[], datetime], clock: Callable[[], float]) -> None:
        """Compile it.

        Args:
            source: The template.
            now: The clock behind `strftime_now`.
            clock: Seconds of the processor's time, for what a run may take.

        Raises:
            TemplateError: It cannot be compiled.
        """
        self._environment = _Environment(now)
        self._clock = clock
        if len(source) > _LONGEST_SOURCE:
            raise TemplateError(
                f"the chat template cannot be used: it has {len(source):,} characters, "
                f"and templates may have {_LONGEST_SOURCE:,}"
            )
        try:
            tree = cast("nodes.Template", _Bounded().visit(self._environment.parse(source)))
            tree.set_environment(self._environment)
            with warnings.catch_warnings():
                # Python warns, on stderr, of what looks wrong in the code that it is compiled to.
                warnings.simplefilter("ignore")
                code = self._environment.compile(tree)
            self._template = jinja2.Template.from_code(
                self._environment, code, self._environment.make_globals(None)
            )
        except Exception as error:
            raise TemplateError(f"the chat template cannot be compiled: {_first_line(error)}") from None

    def run(self, variables: Mapping[str, Any], given: int) -> str:
        """What it writes.

        Args:
            variables: What it sees.
            given: How many characters there are to be written.

        Raises:
            TemplateError: It refuses, fails, or runs away.
        """
        meter = self._environment.meter = Meter(_MOST_MADE + _TIMES_GIVEN * given, self._clock)
        parts: list[str] = []
        try:
            for part in self._template.generate(dict(variables), range=_Steps()):
                meter.pay(len(part))
                parts.append(part)
            return "".join(parts)  # a filter over a block may have written what is no text
        except Exception as error:  # a template may raise anything that Python can
            raise TemplateError(f"the chat template failed: {_first_line(error)}") from None


class _Environment(ImmutableSandboxedEnvironment):
    """The environment that chat templates are written for, which is that of `transformers`."""

    intercepted_binops = frozenset(("*", "**", "+", "%"))

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", _GenerationTag],
            optimized=False,  # what it would work out beforehand has no bounds
            finalize=self._written,
        )
        self.meter = Meter(0, lambda: 0.0)

        def strftime_now(form: str) -> str:
            if len(form) > LONGEST_NEEDLE:
                raise jinja2.TemplateRuntimeError("the form of a date is too long")
            return now().strftime(form)

        # jinja2 leaves the types of these tables open.
        filters = cast("dict[str, Any]", self.filters)  # pyright: ignore[reportUnknownMemberType]
        functions = cast("dict[str, Any]", self.globals)  # pyright: ignore[reportUnknownMemberType]
        tests = cast("dict[str, Any]", self.tests)  # pyright: ignore[reportUnknownMemberType]
        own = {"tojson": self._to_json, "join": self._join, "safe": str}
        for name, filter_ in [*filters.items(), *own.items()]:
            if name in _FILTERS or name in own:
                filters[name] = self._bounded(filter_, CHECKS.get(name))
            else:
                del filters[name]
        filters[_MADE], filters[_JOINED] = self._made, self._joined
        for name, test in tests.items():
            tests[name] = self._bounded(test, None)
        functions |= {"raise_exception": _raise, "strftime_now": strftime_now, "namespace": _Namespace}
        # It writes as much nonsense text as it is asked for, and no chat needs it.
        del functions["lipsum"]

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Of the methods of Python's own types, those that are known to be harmless."""
        if not super().is_safe_attribute(obj, attr, value):
            return False
        names = next((names for kind, names in _METHODS.items() if isinstance(obj, kind)), None)
        if not callable(value) or (names is None and not isinstance(value, BuiltinMethodType)):
            return True
        return attr in (names or ())

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`format` of a text, which cannot be asked for what is huge."""
        method = super().wrap_str_format(value)
        if method is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            check_braces(self.meter, value.__self__, (args, kwargs))
            return self.meter.made(method(*args, **kwargs))

        return bounded

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what a template calls."""
        subject = getattr(__obj, "__self__", None)
        __self.meter.pay(0)
        if isinstance(subject, str) and (check := CHECKS.get(__obj.__name__)):
            check(__self.meter, (subject, *args), kwargs)
        return __self.meter.made(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operator between two values, if what it makes is bounded."""
        if operator == "**":
            raise jinja2.TemplateRuntimeError("powers are not allowed")
        if operator == "*":
            check_product(left, right)
        elif operator == "%" and isinstance(left, str):
            check_percent(self.meter, left, right)
        elif operator == "+" and isinstance(left, str | list | tuple):
            self.meter.pay(len(cast("Sequence[Any]", left)))
        return self.meter.made(super().call_binop(context, operator, left, right))

    def concat(self, parts: Iterable[str]) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What a macro or a block has written."""
        parts = list(parts)
        self.meter.pay(sum(map(len, parts)))
        return "".join(parts)

    def _bounded(self, function: AnyCallable, check: Check | None) -> AnyCallable:
        # jinja2 gives some of its functions the context or the environment first.
        skipped = 1 if getattr(function, "jinja_pass_arg", None) else 0

        @functools.wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            self.meter.pay(0)
            if check is not None:
                check(self.meter, args[skipped:], kwargs)
            return self.meter.made(function(*args, **kwargs))

        return cast("AnyCallable", bounded)

    @jinja2.pass_context
    def _written(self, _context: Context, value: Any) -> Any:
        return self.meter.written(value)

    def _made(self, value: Any) -> Any:
        return self.meter.made(value)

    def _joined(self, parts: list[Any]) -> str:
        self.meter.written(parts)
        return "".join(map(str, parts))

    def _join(self, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
        getter = make_attrgetter(self, attribute) if attribute is not None else None
        texts = [str(self.meter.written(getter(part) if getter else part)) for part in value]
        self.meter.pay(len(texts) * len(d))
        return str(d).join(texts)

    def _to_json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        # jinja2's own escapes <, > and & for web pages, which no model has seen in its prompts.
        self.meter.written(value)
        if sum(map(len, separators or ())) > 100 or (indent or 0) > 100:
            raise jinja2.TemplateRuntimeError("what stands between JSON's parts is too long")
        encoder = json.JSONEncoder(
            ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )
        return "".join(self.meter.made(part) for part in encoder.iterencode(value))


class _Bounded(NodeTransformer):
    """Has a template pay for what jinja2 compiles to plain Python: literals, joined texts, slices, loops."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        step = nodes.ExprStmt(_filter(_MADE, nodes.Const(None), node.lineno), lineno=node.lineno)
        node.body.insert(0, step)
        if node.test is not None:
            node.test = _filter(_MADE, cast("nodes.Expr", node.test), node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        self.generic_visit(node)
        return _filter(_JOINED, nodes.List(node.nodes, lineno=node.lineno), node.lineno)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        self.generic_visit(node)
        return node if node.ctx == "store" else _filter(_MADE, node, node.lineno)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        return _filter(_MADE, node, node.lineno) if isinstance(node.arg, nodes.Slice) else node

    def _visit_made(self, node: nodes.Expr) -> nodes.Expr:
        self.generic_visit(node)
        return _filter(_MADE, node, node.lineno)

    visit_List = visit_Dict = visit_Compare = _visit_made


def _filter(name: str, node: nodes.Expr, line: int) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=line)


class _Steps:
    """`range` for one run: nested loops multiply, so what is bounded is the sum of all ranges."""

    def __init__(self) -> None:
        self._left = _MOST_STEPS

    def __call__(self, *bounds: int) -> range:
        numbers = range(*bounds)
        self._left -= len(numbers)
        if self._left < 0:
            raise jinja2.TemplateRuntimeError(f"its loops take more than {_MOST_STEPS:,} steps")
        return numbers


class _Namespace(Namespace):
    """jinja2's, which would otherwise write all that is in it where it is printed."""

    def __repr__(self) -> str:
        return "<Namespace>"


class _GenerationTag(Extension):
    """`{% generation %}` marks the assistant's words for training; here it is its content and no more."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise(message: str) -> None:
    raise jinja2.TemplateRuntimeError(message)


def _first_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply, or calls itself without end"
    lines = str(error).splitlines()
    text = lines[0] if lines else type(error).__name__
    where = f" (line {error.lineno})" if isinstance(error, jinja2.TemplateSyntaxError) else ""
    return on_one_line(text, 300) + where
