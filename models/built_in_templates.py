"""The chat templates that come with specchat: for models that have none, and for those that a user names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class BuiltInTemplate(NamedTuple):
    """A chat template, and what ends an answer where the model knows no token for it."""

    source: str
    stops: tuple[str, ...]
    words: str
    """What it is, in a sentence."""


BUILT_IN_TEMPLATES: Mapping[str, BuiltInTemplate] = {
    "chatml": BuiltInTemplate(
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
        ("<|im_end|>",),
        "ChatML",
    ),
    # A line end rather than a space after the role: a prompt that ends in a space tokenizes badly.
    "transcript": BuiltInTemplate(
        "{% for message in messages %}"
        "{{ message['role'] | capitalize + ':\\n' + message['content'] + '\\n\\n' }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ 'Assistant:\\n' }}{% endif %}",
        ("\nUser:", "\nAssistant:"),
        "a plain User/Assistant transcript",
    ),
}
"""By the names that `--chat-template` takes."""
