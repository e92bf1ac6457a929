"""What a loaded model was made from, by which the next load knows whether it can stay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..models.errors import LoadError
from ..models.gguf_layout import shown
from .processor import thread_count
from .requests import LoadOptions


@dataclass(frozen=True)
class LoadRecipe:
    """What a loaded model was made from: with an equal one, loading it again would change nothing."""

    path: Path
    file: tuple[int, int, int, int]
    """Device, inode, size and time of its last change: a file that was written anew is another one."""
    gpu_layers: int
    context_size: int
    threads: int
    cache_types: tuple[str, str]
    flash_attn: str

    @classmethod
    def of(cls, path: Path, options: LoadOptions, gpu_layers: int, context_size: int) -> LoadRecipe:
        """The recipe of a file that is to be loaded now.

        Raises:
            LoadError: the file is gone.
        """
        try:
            file = _file(path)
        except OSError as error:
            raise LoadError(f"{shown(path)} could not be loaded: {error.strerror}") from None
        return cls(
            path=path,
            file=file,
            gpu_layers=gpu_layers,
            context_size=context_size,
            threads=thread_count(options.threads),
            cache_types=(options.cache_type_k, options.cache_type_v),
            flash_attn=options.flash_attn,
        )

    @property
    def unchanged(self) -> bool:
        """Whether the file is still the one that was loaded."""
        try:
            return self.file == _file(self.path)
        except OSError:
            return False


def _file(path: Path) -> tuple[int, int, int, int]:
    state = path.stat()
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
