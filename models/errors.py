"""What can go wrong with models, told so that a person knows what to do."""

from __future__ import annotations


class SpecchatError(Exception):
    """Something the user can act on; its message is one line that stands alone."""


class ModelFileError(SpecchatError):
    """A file that is not a usable GGUF model."""


class PairError(SpecchatError):
    """A draft that cannot serve this target."""


class LoadError(SpecchatError):
    """llama.cpp would not load a model or make a context; carries its own reason."""


class PassError(SpecchatError):
    """llama.cpp would not run a pass; the cache still holds what it held before."""


class TemplateError(SpecchatError):
    """A chat template that cannot be compiled or refuses the conversation."""


class ContextFullError(SpecchatError):
    """A prompt that is longer than the context."""
