"""What the options of a command ask for."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ..models.built_in_templates import BUILT_IN_TEMPLATES
from .bounded_files import read_bounded
from .decoding.settings import Sampling
from .options import Parser
from .private_files import open_to_append
from .requests import AnswerOptions, Drafting, LoadOptions


def load_options(parser: Parser, options: argparse.Namespace) -> LoadOptions:
    """What to load; there is a target."""
    template = options.chat_template
    if template is not None and template not in BUILT_IN_TEMPLATES:
        try:
            template = read_bounded(Path(options.chat_template).expanduser(), encoding="utf-8")
            if not template.strip():
                parser.error(f"the chat template {options.chat_template} is empty")
        except (OSError, UnicodeDecodeError, RuntimeError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            parser.error(f"the chat template {options.chat_template} could not be read: {reason}")
    return LoadOptions(
        target=options.target,
        draft=options.draft,
        ctx_size=options.ctx_size,
        threads=options.threads,
        gpu_layers=options.gpu_layers,
        gpu_layers_draft=options.gpu_layers_draft,
        cache_type_k=options.cache_type_k,
        cache_type_v=options.cache_type_v,
        flash_attn=options.flash_attn,
        chat_template=template,
        memory_check=options.memory_check,
    )


def answer_options(parser: Parser, options: argparse.Namespace) -> AnswerOptions:
    """How to answer."""
    if options.drafter == "model" and options.draft is None and options.speculate == "always":
        parser.error("--speculate always needs a draft: give --draft, or --drafter lookup")
    return AnswerOptions(
        sampling=Sampling(
            temperature=options.temp,
            top_k=options.top_k,
            top_p=options.top_p,
            min_p=options.min_p,
            repeat_penalty=options.repeat_penalty,
            seed=options.seed,
        ),
        drafting=Drafting(
            speculate=options.speculate,
            drafter=options.drafter,
            draft_max=options.draft_max,
            draft_p_min=options.draft_p_min,
            draft_sampling=options.draft_sampling,
            strict=options.strict,
        ),
        max_tokens=options.max_tokens,
    )


def log_file(parser: Parser, options: argparse.Namespace) -> Path | None:
    """Where llama.cpp's log goes; a file that cannot be written is bad usage."""
    if not options.log_file:
        return None
    path = Path(options.log_file).expanduser()
    try:
        os.close(open_to_append(path))
    except OSError as error:
        parser.error(f"the log file {path} cannot be written: {error.strerror}")
    return path
