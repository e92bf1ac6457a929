from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.models.errors import TemplateError
from specchat.models.template import ChatTemplate, Message

# As the models' files have them; of Qwen's the part about tools is shortened.
QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are Qwen.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""  # noqa: E501
SMOLLM = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful AI assistant named SmolLM<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""  # noqa: E501
# In the manner of Llama 3, Mistral and Gemma.
LLAMA = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = strftime_now("%d %b %Y") %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: " + date_string + "\\n\\n" }}
{{- system_message + "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim }}
    {{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}"""
MISTRAL = """{{ bos_token }}{% for message in messages %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {% endif %}
    {% if message['role'] == 'user' %}
        {{- '[INST] ' + message['content'] + ' [/INST]' }}
    {%- elif message['role'] == 'assistant' %}
        {%- generation %}{{- message['content'] + eos_token }}{% endgeneration -%}
    {%- endif %}
{%- endfor %}"""
GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {{ raise_exception('System role not supported') }}
{%- endif -%}
{%- for message in messages -%}
    {%- if message['role'] == 'assistant' -%}{%- set role = 'model' -%}
    {%- else -%}{%- set role = message['role'] -%}{%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + message['content'] + '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}"""

MODELS_OWN = {"qwen": QWEN, "smollm": SMOLLM, "llama": LLAMA, "mistral": MISTRAL, "gemma": GEMMA}
CHATML_TOKENS = ("<|im_start|>", "<|im_end|>")


def clock() -> datetime:
    return datetime(2026, 11, 30, 3, 4)


def template(source: str | None, special_tokens: tuple[str, ...] = ()) -> ChatTemplate:
    return ChatTemplate.from_model(source, "<s>", "</s>", special_tokens, now=clock)


TEMPLATES = {name: template(source) for name, source in MODELS_OWN.items()} | {
    "chatml fallback": template(None, CHATML_TOKENS),
    "transcript fallback": template(None),
}


SAID = "{{ messages[-1].content }}"
"""A template that leaves this out is refused."""


def failure(source: str, *messages: tuple[str, str]) -> str:
    """The one line with which this template fails."""
    with pytest.raises(TemplateError) as caught:
        template(source).render(messages or (("user", "Hi"),))
    message = str(caught.value)
    assert message.isprintable()
    return message


# What is rendered


def test_a_model_s_own_template_is_used_as_it_is_meant():
    assert TEMPLATES["smollm"].render((("system", "Be brief."), ("user", "Hi"))) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert TEMPLATES["qwen"].render((("user", "Hi"),)) == (
        "<|im_start|>system\nYou are Qwen.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert TEMPLATES["mistral"].render((("user", "Hi"), ("assistant", "Ho"), ("user", "?"))) == (
        "<s>[INST] Hi [/INST]Ho</s>[INST] ? [/INST]"
    )
    assert all(TEMPLATES[name].note is None for name in ("qwen", "smollm", "llama"))


def test_the_clock_that_was_given_is_the_one_that_templates_read():
    assert "Today Date: 30 Nov 2026" in TEMPLATES["llama"].render((("user", "Hi"),))


def test_json_is_written_for_models_and_not_for_web_pages():
    source = "{{ {'é': '<&>'} | tojson }} {{ [1] | tojson(indent=1) }}"

    assert template(source + SAID).render((("user", "Hi"),)) == '{"é": "<&>"} [\n 1\n]Hi'


def test_loops_can_be_left_early():
    source = "{% for n in range(9) %}{% if n == 2 %}{% break %}{% endif %}{{ n }}{% endfor %}"

    assert template(source + SAID).render((("user", "Hi"),)) == "01Hi"


def test_tools_are_none_and_can_be_asked_for():
    assert template("{{ tools is none }}{{ documents is none }}" + SAID).render((("user", "Hi"),)) == (
        "TrueTrueHi"
    )


turns = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text == text.strip()
)


@settings(max_examples=30, deadline=None)
@given(questions=st.lists(turns, min_size=2, max_size=4), answers=st.lists(turns, min_size=4, max_size=4))
@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("system", [(), (("system", "Be brief."),)])
def test_a_prompt_and_its_answer_begin_the_next_prompt(
    name: str, system: tuple[tuple[str, str], ...], questions: list[str], answers: list[str]
):
    messages = list(system)
    before = ""
    for question, answer in zip(questions, answers, strict=False):
        messages.append(("user", question))
        prompt = TEMPLATES[name].render(messages)
        assert prompt.startswith(before)
        before = prompt + answer
        messages.append(("assistant", answer))


# Fallbacks


def test_without_a_template_chatml_is_used_where_its_tokens_exist_and_says_so():
    fallback = TEMPLATES["chatml fallback"]

    assert fallback.render((("system", "S"), ("user", "Hi"))) == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert fallback.note == "The model has no chat template; ChatML is used, whose tokens it has."
    assert fallback.stops == ()


@pytest.mark.parametrize("source", [None, ""])
def test_without_a_template_and_those_tokens_a_transcript_is_used_and_says_so(source: str | None):
    fallback = template(source, ("<|im_start|>",))

    assert fallback.render((("user", "Hi"), ("assistant", "Ho"), ("user", "?"))) == (
        "User:\nHi\n\nAssistant:\nHo\n\nUser:\n?\n\nAssistant:\n"
    )
    assert fallback.note == "The model has no chat template; a plain User/Assistant transcript is used."
    assert fallback.stops == ("\nUser:", "\nAssistant:")


# System messages


@pytest.mark.parametrize("name", ["gemma", "mistral"])
def test_a_refused_system_message_goes_before_the_first_user_message_and_that_is_said(name: str):
    refusing = TEMPLATES[name]

    asked = (("user", "Hi"), ("assistant", "Ho"), ("user", "?"))
    assert refusing.render((("system", "Be brief."), *asked)) == refusing.render(
        (("user", "Be brief.\n\nHi"), *asked[1:])
    )
    assert refusing.note is not None
    assert "takes no system message" in refusing.note


def test_a_system_message_that_a_template_leaves_out_is_not_lost():
    deaf = template("{% for m in messages if m.role == 'user' %}{{ m.content }};{% endfor %}")

    assert deaf.render((("system", "Be brief."), ("user", "Hi"))) == "Be brief.\n\nHi;"
    assert deaf.render((("user", "Hi"), ("system", "Stop."))) == "Hi;Stop.;"


# Templates that fail, and those that mean harm


def test_a_template_that_cannot_be_compiled_says_where():
    assert failure("line\n{% if %}").startswith(
        "the chat template cannot be compiled: Expected an expression"
    )
    assert "(line 2)" in failure("line\n{% if %}")


def test_a_refusal_is_told_in_the_template_s_own_words():
    told = failure(MISTRAL, ("user", "a"), ("user", "b"))

    assert told.startswith("the chat template failed: Conversation roles must alternate")


@pytest.mark.parametrize(
    "source",
    [
        "{{ nothing.at.all }}",
        "{{ 1 / 0 }}",
        "{{ 'a' + 1 }}",
        "{{ messages[99].content.x }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include 'other' %}",
        "{{ raise_exception('two\nlines\x1b[2J') }}",
        "{{ strftime_now(3) }}",
    ],
)
def test_whatever_goes_wrong_inside_is_one_line(source: str):
    assert failure(source).startswith("the chat template failed: ")


def test_a_long_conversation_is_no_run_away():
    long = "x" * 30_000_000

    assert long in TEMPLATES["qwen"].render((("user", long),))


def test_what_one_rendering_used_up_is_there_for_the_next():
    counting = template("{% for n in range(40000) %}{% endfor %}" + SAID)

    assert [counting.render((("user", "Hi"),)) for _ in range(4)] == ["Hi"] * 4


# What a model thought


def test_a_thought_is_given_apart_from_the_text_and_only_where_there_is_one():
    source = "{% for m in messages %}{{ m.content }}({{ m.reasoning_content | default('none') }}){% endfor %}"
    talk = (("user", "Hi"), Message("assistant", "Ho", "hm"), Message("assistant", "Ho", ""))

    assert template(source).render(talk) == "Hi(none)Ho(hm)Ho(none)"


def test_a_thought_stays_with_its_message_where_the_system_text_is_moved():
    source = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
        "{{ m.role }} {{ m.content }} {{ m.reasoning_content }}\n{% endfor %}"
    )
    talk = (("system", "Be brief."), ("user", "Hi"), Message("assistant", "Ho", "hm"))

    assert template(source).render(talk) == "user Be brief.\n\nHi \nassistant Ho hm\n"


SYSTEM = "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"


@pytest.mark.parametrize("system", ["", SYSTEM])
def test_a_template_that_forgets_what_was_said_before_says_so(system: str):
    forgetting = ChatTemplate.from_model(f"{system}{{{{ messages[-1].content }}}}", "", "", ())
    assert forgetting.note is not None
    assert "leaves out what was said before the last question" in forgetting.note
    assert ("takes no system message" in forgetting.note) == (not system)


def test_a_template_that_takes_no_second_question_is_not_told_to_forget():
    once = ChatTemplate.from_model(
        "{% if messages | length > 2 %}{{ raise_exception('one question') }}{% endif %}"
        "{% for message in messages %}{{ message.content }}{% endfor %}",
        *("", "", ()),
    )
    assert once.note is None
