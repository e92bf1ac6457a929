"""Templates from strangers: whatever they try, a run ends soon, small, and with one line."""

from __future__ import annotations

import itertools
import sys
import time
from datetime import datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specchat.models.errors import TemplateError
from specchat.models.template import ChatTemplate
from specchat.models.template_sandbox import TemplateProgram

resource = pytest.importorskip("resource", reason="Windows does not tell the most memory held")

MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho " * 50}]
MOST_BYTES = 200_000_000
"""More than were held before."""


def run(source: str) -> str:
    """What the template writes; its two seconds pass after some thousand steps, on any machine."""
    ticks = itertools.count()
    program = TemplateProgram(source, lambda: datetime(2026, 11, 30), lambda: next(ticks) / 50)
    return program.run({"messages": MESSAGES}, given=152)


def outcome(source: str) -> str | None:
    """What it writes, or `None` for an error in one line; either soon, and without much memory."""
    held, started = most_held(), time.process_time()
    try:
        return run(source)
    except TemplateError as error:
        told = str(error)
    finally:
        assert time.process_time() - started < 10, source
        assert most_held() - held < MOST_BYTES, source
    assert told.isprintable()
    assert len(told) < 500
    return None


def most_held() -> int:
    """The most memory that this process has held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


LOOPS = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ range(1000000000000) | list }}",
    "{% for a in range(1000000000000) %}{% endfor %}",
    "".join(f"{{% for x{n} in 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' %}}" for n in range(6)) + "{% endfor %}" * 6,
    "".join(f"{{% for x{n} in 'x' * 99999 if x{n} == 'y' %}}{{% endfor %}}" for n in range(300)),
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% block a %}{{ self.a() }}{% endblock %}",
    "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}",
    "{{ range(99999) | map('string') | map('list') | map('join') | list | length }}",
]
MULTIPLIED = [
    "{{ ('a' * 9999999999) | length }}",
    "{{ (9999999999 * [1]) | length }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{% set big = 'a' * 90000 %}{% for n in range(9000) %}{{ big }}{% endfor %}",
    "{% set ns = namespace(x='a') %}{% for n in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='a') %}{% for n in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=9) %}{% for n in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[]) %}{% for n in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
    "{{ ns.x }}",
    "{% set ns = namespace(x={}) %}{% for n in range(60) %}{% set ns.x = {1: ns.x, 2: ns.x} %}{% endfor %}"
    "{{ ns.x | tojson }}",
    "{% set ns = namespace(x='a') %}{% for n in range(60) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"
    "{% endfor %}",
    "{% filter upper %}{% for n in range(9999) %}{{ 'a' * 99999 }}{% endfor %}{% endfilter %}",
    "{{ ('a' * 90000) | replace('a', 'b' * 90000) }}",
    "{{ ('a' * 90000) | replace(new='b' * 90000, old='a') }}",
    "{{ ('a' * 90000).replace('a', 'b' * 90000) }}",
    "{{ (['a'] * 90000) | join('b' * 90000) }}",
    "{{ ('b' * 90000).join(['a'] * 90000) }}",
    "{{ ('\\n' * 90000) | indent(90000) }}",
    "{{ {'a': [1] * 90000} | tojson(indent=999999999) }}",
    "{{ [1, 2] | tojson(separators=('a' * 90000, 'b')) }}",
    "{{ ([[1]] * 90000) | sum(start=[]) | length }}",
    "{% set a = [1] * 90000 %}{% set a = [a] * 90000 %}{{ a == a }}",
    "{% set a = ['x' * 90000] * 90000 %}{{ a | join }}",
]
IN_ONE_CALL = [
    "{{ '%9999999999d' % 1 }}",
    "{{ '%.9999999999f' % 1 }}",
    "{{ '%*d' % (9999999999, 1) }}",
    "{{ '%-*.*f' % (9, 9999999999, 1) }}",
    "{{ '%(a)9999999999d' | format(a=1) }}",
    "{{ '%(a(b)c)9999999999d' % {'a(b)c': 1} }}",
    "{{ ('%9999d' * 9999) | format(1) }}",
    "{{ '{:>9999999999}'.format(1) }}",
    "{{ '{:{w}}'.format(1, w=9999999999) }}",
    "{{ '{a:>9999999999}'.format_map({'a': 1}) }}",
    "{{ ('{0}' * 20000).format('a' * 90000) }}",
    "{{ ('a' | e).format('x').center(9999999999) }}",
    "{{ 'a'.center(9999999999) }}",
    "{{ 'a' | center(9999999999) }}",
    "{{ ('a' | e).ljust(9999999999) }}",
    "{{ ('\\t' * 90000).expandtabs(90000) }}",
    "{{ (5).to_bytes(9999999999, 'little') }}",
    "{{ dict.fromkeys(range(99999), 1) }}",
    "{{ 1.5 | round(9999999999, 'ceil') }}",
    "{{ ('a' * 90000).rfind('b' + 'a' * 45000) }}",
    "{{ ('a' * 90000).strip('b' * 90000) }}",
    "{{ [1] | batch(9999999999, 0) | list }}",
    "{{ [1] | slice(9999999999) | list }}",
    "{{ strftime_now('%Y' * 9000) }}",
    "{{ lipsum(n=999999999) }}",
]
REACHING_OUT = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.__class__.__base__ }}",
    "{{ raise_exception.__globals__['json'] }}",
    "{{ strftime_now.__closure__[0].cell_contents }}",
    "{{ range.__init__.__globals__ }}",
    "{{ cycler.next.__globals__.os }}",
    "{{ (messages | map(attribute='__class__') | list)[0].__name__ }}",
    "{{ self.__init__.__globals__ }}",
    "{{ '{0.__class__.__mro__}'.format('') }}{{ ''.__class__() }}",
    "{{ ('' | attr('__class__')).mro() }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update(role='x') }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
]
DEEP = [
    "{{ " + "(" * 40_000 + "1" + ")" * 40_000 + " }}",
    "{{ " + "[" * 40_000 + "]" * 40_000 + " }}",
    "{% if 1 %}" * 4_000 + "{% endif %}" * 4_000,
    "{{ 1" + "|abs" * 2_000 + " }}",
    "{{ " + "-" * 90_000 + "1 }}",
    "x" * 100_001,
]


@pytest.mark.parametrize(
    "source", [*LOOPS, *MULTIPLIED, *IN_ONE_CALL, *REACHING_OUT, *DEEP], ids=lambda s: s[:50]
)
def test_what_is_hostile_ends_in_one_line(source: str):
    assert outcome(source) is None


# Templates of any shape --------------------------------------------------------------------------

numbers = st.sampled_from(["0", "1", "-3", "7", "1000", "99999", "10000000000", "1.5"])
names = st.sampled_from("a b ns.x ns.y messages messages[0].content messages[-1] 'xy\\n'".split())
filters = st.sampled_from(
    "abs capitalize count default dictsort e escape first float groupby indent int items last length list "
    "lower max min reverse round safe sort string sum title tojson trim unique upper wordcount join center "
    "batch".split()
)
methods = st.sampled_from(
    "join split replace strip lstrip rsplit format format_map center ljust zfill encode splitlines title "
    "upper items keys get count index copy append expandtabs translate partition rfind".split()
)
operators = st.sampled_from("+ - * / // % ** ~ == < in and or".split())


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of smaller ones."""
    return st.one_of(
        st.builds("({} {} {})".format, inner, operators, inner),
        st.builds("({} | {})".format, inner, filters),
        st.builds("({} | {}({}))".format, inner, filters, inner),
        st.builds("({} | map('{}') | list)".format, inner, filters),
        st.builds("({}).{}({})".format, inner, methods, inner),
        st.builds("({}).{}({}, {})".format, inner, methods, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("({})[{}:]".format, inner, inner),
        st.builds("range({})".format, inner),
        st.builds("m({})".format, inner),
    )


expressions = st.recursive(numbers | names, grown, max_leaves=6)


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Statements around smaller ones."""
    return st.one_of(
        st.builds("{{% for a in {} %}}{}{{% endfor %}}".format, expressions, inner),
        st.builds("{{% for a in range(30) %}}{}{{% endfor %}}".format, inner),
        st.builds("{{% if {} %}}{}{{% endif %}}".format, expressions, inner),
        st.builds("{{% set ns.x %}}{}{{% endset %}}".format, inner),
        st.builds("{{% filter {} %}}{}{{% endfilter %}}".format, filters, inner),
        st.builds("{{% macro m(b) %}}{}{{% endmacro %}}".format, inner),
        st.builds("{}{}".format, inner, inner),
    )


statements = st.recursive(
    st.builds("{{{{ {} }}}}".format, expressions)
    | st.builds("{{% set ns.{} = {} %}}".format, st.sampled_from("xy"), expressions),
    nested,
    max_leaves=8,
)


@settings(max_examples=120, deadline=None)
@given(statements)
@example("{% filter last %}{{ a }}{% endfilter %}")
@example("{% filter list %}x{% endfilter %}")
@example("{% macro n() %}{% filter length %}x{% endfilter %}{% endmacro %}{{ n() }}")
def test_a_template_of_any_shape_ends_with_a_text_or_one_line(source: str):
    start = "{% set ns = namespace(x='ab', y=[1]) %}{% macro m(b) %}{{ b }}{{ b }}{% endmacro %}"
    written = outcome(start + source)
    assert written is None or len(written) < 4_100_000


@settings(max_examples=100, deadline=None)
@given(st.text("{}%# \n'\"|()[].,:=~+*-_abcdefinorstwx019\x1b\u202e", max_size=60))
def test_a_source_of_any_characters_is_a_template_or_one_line(source: str):
    outcome(source)


# What is not hostile -----------------------------------------------------------------------------


def test_a_long_talk_with_much_work_on_each_message_is_written():
    source = (
        "{% set ns = namespace(seen=[]) %}{% for m in messages[::-1] %}{% set ns.seen = ns.seen + [m] %}"
        "{% set c = m.content.split('</think>')[-1].strip() | trim %}{% if '<think>' in c %}-{% endif %}"
        "{{ '<|' ~ m.role ~ '|>' ~ c.rstrip('\\n').lstrip('\\n') + '\\n' }}{% endfor %}"
        "{{ messages | tojson }}"
    )
    talk = [{"role": "user", "content": f"{n} " + "words " * 2_000} for n in range(400)]
    program = TemplateProgram(source, datetime.now, lambda: 0.0)

    assert program.run({"messages": talk}, 400 * 12_000).count("words") == 400 * 2_000 * 2


# What the user can do ----------------------------------------------------------------------------

OFFER = "--chat-template chatml or transcript uses a built-in one instead, --chat-template FILE one of yours"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{% if %}", "the chat template cannot be compiled: "),
        ("{{ raise_exception('No.') }}", "the chat template failed: No."),
        ("{{ 'a' * 9999999 }}", "the chat template failed: a repetition is too long"),
        ("Hello!", "the chat template leaves out what the user says"),
        ("{{ messages[0].content }}", "the chat template leaves out what the user says"),
        ("{% for m in messages %}{% if m.role != 'user' %}{{ m.content }}{% endif %}{% endfor %}",
         "the chat template leaves out what the user says"),
    ],
)  # fmt: skip
def test_a_template_that_cannot_be_used_says_why_and_what_to_use_instead(source: str, told: str):
    with pytest.raises(TemplateError) as caught:
        ChatTemplate.from_model(source, "", "", ())
    assert str(caught.value).startswith(told)
    assert str(caught.value).endswith(OFFER)


LONG = "secret " + " ".join(f"word{number}" for number in range(100, 200))
SPACELESS = "secret" + "".join(chr(0x4E00 + number) for number in range(500))


@pytest.mark.parametrize(
    "content",
    [
        "{% if m.content | length < 100 %}{{ m.content }}{% endif %}",
        "{{ m.content[:60] }}",
        "{% if 'secret' not in m.content %}{{ m.content }}{% endif %}",
    ],
)
@pytest.mark.parametrize("said", [LONG, SPACELESS])
def test_a_template_that_leaves_out_only_some_texts_says_so_when_it_meets_one(content: str, said: str):
    used = ChatTemplate.from_model("{% for m in messages %}" + content + "{% endfor %}", "", "", ())
    with pytest.raises(TemplateError) as caught:
        used.render((("user", "Hello"), ("assistant", "Hello."), ("user", said)))
    assert str(caught.value) == f"the chat template leaves out what the user says; {OFFER}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{{ m.content | trim }}", "  \n two words\n"),
        ("{{ m.content | replace('<|im_end|>', '') }}", "What does <|im_end|> mean? " + LONG),
        ("{{ m.content | replace('\n', ' ') }}", "one\ntwo\n\nthree"),
        ("{{ m.content }}", ""),
    ],
)
def test_a_template_may_trim_a_text_and_change_a_few_words_of_it(content: str, said: str):
    used = ChatTemplate.from_model("{% for m in messages %}" + content + "{% endfor %}", "", "", ())
    used.render((("user", said),))


def test_chatml_can_be_named_and_ends_answers_where_the_model_has_no_token_for_it():
    known = ChatTemplate.from_model("chatml", "", "", ("<|im_start|>", "<|im_end|>"))
    unknown = ChatTemplate.from_model("chatml", "", "", ())

    asked = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert known.render((("user", "Hi"),)) == unknown.render((("user", "Hi"),)) == asked
    assert (known.stops, known.note) == ((), None)
    assert unknown.stops == ("<|im_end|>",)
    assert unknown.note == "The model does not have ChatML's tokens, and reads them as plain text."


def test_a_transcript_can_be_named():
    named = ChatTemplate.from_model("transcript", "", "", ())

    assert named.render((("user", "Hi"),)) == "User:\nHi\n\nAssistant:\n"
    assert named.stops == ("\nUser:", "\nAssistant:")
