"""The further files of a model that is split over several."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from .errors import ModelFileError
from .gguf_layout import Layout, damaged, read_layout, shown
from .shape import Keys

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
_NUMBER, _COUNT, _TENSORS = "split.no", "split.count", "split.tensors.count"
_ARCHITECTURE = "general.architecture"

_U16 = 2


def read_further_parts(first: Layout, keys: Keys) -> list[Layout]:
    """The layouts of a split model's further parts; none for a model in one file.

    Args:
        first: Of the first part.
        keys: Its keys.

    Raises:
        ModelFileError: A part is missing, cannot be read, or is none of this model.
    """
    paths = _paths(first.path, keys)
    parts: list[Layout] = []
    for number, path in enumerate(paths, start=1):
        part = read_layout(path)
        _refuse_other_part(first, part, number, len(paths) + 1)
        parts.append(replace(part, values={}, types={}))  # nothing more is wanted of what it says
    if parts:
        _refuse_other_tensors([first, *parts])
    return parts


def _paths(path: Path, keys: Keys) -> list[Path]:
    count = keys.number(_COUNT)
    if count <= 1:
        return []
    named = _PART.fullmatch(path.name)
    if named is None or int(named["count"]) != count:
        raise ModelFileError(
            f"{shown(path)} is part of a model split into {count} files and was renamed; "
            f"give it back its name, which ends in -00001-of-{count:05}.gguf"
        )
    part = [path.with_name(f"{named['stem']}-{n:05}-of-{count:05}.gguf") for n in range(1, count + 1)]
    if int(named["number"]) != 1 or keys.number(_NUMBER) != 0:
        raise ModelFileError(
            f"{shown(path)} is part {keys.number(_NUMBER) + 1} of {count} of a model; "
            f"name the first, {shown(Path(part[0].name))}"
        )
    missing = [other for other in part if not other.exists()]
    if missing:
        raise ModelFileError(
            f"{shown(path)} is the first of {count} files of one model, and {len(missing)} of them not "
            f"there, first {shown(Path(missing[0].name))}; download it into the same folder"
        )
    return part[1:]


def _refuse_other_part(first: Layout, part: Layout, number: int, count: int) -> None:
    told = part.values.get(_NUMBER)
    # llama.cpp ends its process over a number of any other type.
    if part.types.get(_NUMBER) != _U16 or not isinstance(told, int):
        raise damaged(part.path, f"it does not say that it is part {number + 1} of {count}")
    if told != number:
        raise damaged(part.path, f"it says that it is part {told + 1} and not {number + 1}")
    whole = part.values.get(_COUNT, count)
    if whole != count:
        raise damaged(part.path, f"it says that it is one of {str(whole)[:60]!a} parts and not of {count}")
    architecture = part.values.get(_ARCHITECTURE, first.values.get(_ARCHITECTURE))
    if architecture != first.values.get(_ARCHITECTURE):
        raise damaged(
            part.path, f"it is part of another model, of the architecture {str(architecture)[:60]!a}"
        )


def _refuse_other_tensors(layouts: list[Layout]) -> None:
    seen: set[str] = set()
    for layout in layouts:
        for tensor in layout.tensors:
            if tensor.name in seen:
                raise damaged(layout.path, f"the tensor {tensor.name[:60]!a} is in two of the model's files")
            seen.add(tensor.name)
    expected = layouts[0].values.get(_TENSORS, len(seen))
    if expected != len(seen):
        raise damaged(layouts[0].path, f"its files hold {len(seen):,} tensors and not {str(expected)[:60]}")
