"""Fetches a file from the Hugging Face hub into the shared cache, and goes on where an attempt stopped."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from ..models.errors import SpecchatError
from ..models.gguf_layout import shown
from ..models.text import is_plain
from .byte_counts import bytes_text
from .hub import DownloadError, Listed, bad_name, discreet, in_words, no_hub

Progress = Callable[[int, int], None]
"""Told the bytes that are there and the bytes there will be."""

_PIECE = 1 << 20
_WAITS_S = (1.0, 2.0, 4.0)
"""Before connecting again after the connection broke without a byte having come."""
_LOCK_PATIENCE_S = 0.2
# SHA-256 of a large file, SHA-1 of a small one; it becomes a file's name, and the server could send anything.
_ETAG = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class DownloadCancelled(SpecchatError):
    """A download that was stopped; what has come is kept, and the next one goes on from there."""


def download(
    repository: str,
    file: str,
    *,
    on_progress: Progress,
    cancelled: Callable[[], bool],
    token: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Path:
    """Fetch a file into the shared Hugging Face cache, unless it is there.

    Endpoint, cache, token and offline mode are what huggingface_hub reads from its environment.

    Args:
        repository: `owner/name` on the hub.
        file: The file's path in the repository; of a split model each part is a file.
        on_progress: Called from this thread, at first with what an earlier attempt left.
        cancelled: Looked at after every piece, and while waiting to connect again.
        token: In place of the one from the environment.
        pause: Waits so many seconds.

    Raises:
        DownloadError: It cannot be had; the message is one line and says what to do.
        DownloadCancelled: `cancelled` said so.
    """
    _refuse_impossible(repository, file)
    # Only here, since importing it takes longer than the rest of a start.
    from huggingface_hub import (
        constants,
        hf_hub_download,  # pyright: ignore[reportUnknownVariableType]
        try_to_load_from_cache,
    )
    from huggingface_hub.file_download import repo_folder_name

    with in_words(repository, file), discreet():
        cached = try_to_load_from_cache(repository, file)
        if isinstance(cached, str):
            return Path(cached)
        source = _ask(repository, file, token)
        cache = Path(constants.HF_HUB_CACHE).expanduser()
        folder = repo_folder_name(repo_id=repository, repo_type="model")
        blob = cache / folder / "blobs" / source.etag
        if not blob.exists():
            blob.parent.mkdir(parents=True, exist_ok=True)
            with _alone(cache / ".locks" / folder / f"{source.etag}.lock", file):
                _fetch(source, blob, _Watch(file, source.size, on_progress, cancelled, pause))
        # The library finds the blob there and gives it its place and its name.
        return Path(hf_hub_download(repository, file, token=token))


def require_room(files: Iterable[tuple[str, Listed]]) -> None:
    """Refuse what the cache's disk has no room for, before any of it comes.

    Args:
        files: Each with its repository; what earlier attempts left of them is not needed again.

    Raises:
        DownloadError: There is not enough, the cache is no folder, or a path leads out of its repository.
    """
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.file_download import repo_folder_name

    cache, needed = Path(constants.HF_HUB_CACHE).expanduser().absolute(), 0
    for repository, file in files:
        _refuse_impossible(repository, file.path)
        with in_words(repository, file.path):
            if isinstance(try_to_load_from_cache(repository, file.path), str):
                continue
            blobs = cache / repo_folder_name(repo_id=repository, repo_type="model") / "blobs"
            known = bool(_ETAG.fullmatch(file.checksum))
            blob, partial = blobs / file.checksum, blobs / f"{file.checksum}.incomplete"
            there = max(_size(blob), _size(partial)) if known else 0
            needed += max(0, file.size_bytes - there)
    with in_words("", str(cache)):
        _refuse_for_want_of_room(needed, cache)


@dataclass(frozen=True)
class _Source:
    """Where a file's bytes are, and which."""

    url: str
    headers: Mapping[str, str]
    etag: str
    size: int


@dataclass(frozen=True)
class _Watch:
    """Who looks on while a file comes."""

    file: str
    size: int
    on_progress: Progress
    cancelled: Callable[[], bool]
    pause: Callable[[float], None]

    def check(self, done: int) -> None:
        if self.cancelled():
            raise DownloadCancelled(
                f"{shown(Path(self.file))} was stopped at {bytes_text(done)} of {bytes_text(self.size)}; "
                "fetching it again goes on from there"
            )

    def progress(self, done: int) -> None:
        self.check(done)
        self.on_progress(done, self.size)

    def wait(self, seconds: float, done: int) -> None:
        for _ in range(round(seconds * 10)):
            self.check(done)
            self.pause(0.1)


def _refuse_impossible(repository: str, file: str) -> None:
    """What the library's versions do not all refuse, or only once the file has come."""
    if not is_plain(repository):
        raise DownloadError(bad_name(repository))
    steps = PurePosixPath(file).parts
    anchored = PurePosixPath(file).is_absolute() or PureWindowsPath(file).anchor
    if not steps or anchored or ".." in steps or "\\" in file or not is_plain(file):
        raise DownloadError(f"{file!a} is no path inside a repository; give one like folder/model.gguf")


def _ask(repository: str, file: str, token: str | None) -> _Source:
    from huggingface_hub import (
        get_hf_file_metadata,  # pyright: ignore[reportUnknownVariableType]
        hf_hub_url,
    )
    from huggingface_hub.utils import build_hf_headers  # pyright: ignore[reportUnknownVariableType]

    told = get_hf_file_metadata(hf_hub_url(repository, file), token=token)
    if told.commit_hash is None or told.size is None or not _ETAG.fullmatch(told.etag or ""):
        raise DownloadError(no_hub())
    return _Source(
        # By commit, so that what comes after a cut connection is of the same file.
        url=hf_hub_url(repository, file, revision=told.commit_hash),
        # A compressed answer could not be gone on with.
        headers={**build_hf_headers(token=token), "accept-encoding": "identity"},
        etag=told.etag or "",
        size=told.size,
    )


def _fetch(source: _Source, blob: Path, watch: _Watch) -> None:
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HTTPError,  # pyright: ignore[reportPrivateImportUsage] - of httpx, whose name changes between versions
    )

    partial = blob.with_name(f"{source.etag}.incomplete")
    if _size(partial) > source.size:
        partial.unlink()
    _refuse_for_want_of_room(source.size - _size(partial), blob.parent)
    watch.progress(_size(partial))
    failures = 0
    while (before := _size(partial)) < source.size:
        broken: Exception | None = None
        try:
            _transfer(source, partial, watch)
        except HfHubHTTPError:
            raise
        except HTTPError as error:
            broken = error
        now = _size(partial)
        failures = 0 if now > before else failures + 1
        if failures == len(_WAITS_S):
            raise broken or DownloadError(f"{shown(Path(watch.file))} does not come whole; try again later")
        if now < source.size:
            watch.wait(_WAITS_S[failures], now)
    if _checksum(partial, source.etag, watch) != source.etag:
        partial.unlink()
        raise DownloadError(f"{shown(Path(watch.file))} arrived damaged and was removed; fetch it again")
    partial.replace(blob)


def _transfer(source: _Source, partial: Path, watch: _Watch) -> None:
    """Take what one connection brings, after what is there already."""
    from huggingface_hub import constants, get_session, hf_raise_for_status

    done = _size(partial)
    headers = {**source.headers, **({"range": f"bytes={done}-"} if done else {})}
    with get_session().stream(
        "GET", source.url, headers=headers, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT
    ) as response:
        hf_raise_for_status(response)
        # A server that knows no ranges sends all of it again.
        goes_on = response.status_code == 206
        done = done if goes_on else 0
        with partial.open("ab" if goes_on else "wb") as kept:
            for piece in response.iter_bytes():
                kept.write(piece)
                done += len(piece)
                if done > source.size:
                    break
                watch.progress(done)
    if done > source.size:
        partial.unlink()
        raise DownloadError(f"{shown(Path(watch.file))} came with more bytes than it has; fetch it again")


def _checksum(path: Path, etag: str, watch: _Watch) -> str:
    """What the file's etag would be by its content; only large files have one that can be told so."""
    if len(etag) != 64:
        return etag
    summed = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            summed.update(piece)
            watch.check(watch.size)
    return summed.hexdigest()


def _refuse_for_want_of_room(needed: int, folder: Path) -> None:
    there = next(above for above in (folder, *folder.parents) if above.exists())
    free = shutil.disk_usage(there).free
    if needed > free:
        raise DownloadError(
            f"{shown(folder)} has room for {bytes_text(free)} and {bytes_text(needed)} are to come; "
            "free some, or set HF_HUB_CACHE to a folder on another disk"
        )


@contextlib.contextmanager
def _alone(lock: Path, file: str) -> Generator[None, None, None]:
    """Under the lock that huggingface_hub's own downloads of this file take."""
    from huggingface_hub.utils import WeakFileLock

    lock.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(WeakFileLock(lock, timeout=_LOCK_PATIENCE_S))
        except TimeoutError:
            raise DownloadError(
                f"{shown(Path(file))} is being fetched by another program; wait until it is there"
            ) from None
        yield


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
