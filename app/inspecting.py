"""What a file is and whether a pair fits, from the headers, in words."""

from __future__ import annotations

from ..models.gguf_file import GgufHeader, read_header
from ..models.locate import locate_model
from ..models.pair import judge


def inspect(target: str, draft: str | None) -> int:
    """Print what the headers say; returns the exit code, 2 for a pair that cannot work.

    Raises:
        ModelFileError: a file is no usable model.
    """
    target_header = read_header(locate_model(target))
    print(_described(target_header))
    if draft is None:
        return 0
    draft_header = read_header(locate_model(draft))
    verdict = judge(target_header, draft_header)
    print(_described(draft_header))
    print({"fits": "fits", "fits_but": "fits, but:", "cannot": "cannot draft for it:"}[verdict.kind])
    for reason in verdict.reasons:
        print(f"  {reason}")
    return 0 if verdict.usable else 2


def _described(header: GgufHeader) -> str:
    vocabulary = header.vocabulary
    return (
        f"{header.path}\n"
        f"  {header.name}: {header.architecture}, {header.parameters / 1e9:.2f} billion parameters, "
        f"{header.quantization}, {header.size_bytes / 1e6:.0f} MB\n"
        f"  trained for {header.train_context} tokens of context; {len(vocabulary.tokens)} tokens "
        f"({vocabulary.kind}); {'a' if header.chat_template else 'no'} chat template"
    )
