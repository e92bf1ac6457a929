"""The Hugging Face hub's own client, kept quiet: what a repository holds, and its errors in one line each."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from ..models.errors import SpecchatError
from ..models.gguf_layout import shown


class DownloadError(SpecchatError):
    """Something on the hub that could not be had."""


@dataclass(frozen=True)
class Listed:
    """A file, as its repository lists it."""

    path: str
    size_bytes: int
    checksum: str
    """SHA-256; empty for a small file, which is kept in git itself."""


def list_files(repository: str) -> list[Listed]:
    """The files of a repository's branch `main`, those in folders too.

    Endpoint, token and offline mode are what huggingface_hub reads from its environment.

    Raises:
        DownloadError: The repository does not exist or may not be seen, or the hub cannot be reached.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.hf_api import RepoFile

    with in_words(repository, repository), discreet():
        hub = HfApi(endpoint=constants.ENDPOINT)
        try:
            # The listing is tried again and again for half a minute where there is no network; this is not.
            told = hub.model_info(repository, timeout=constants.HF_HUB_ETAG_TIMEOUT)
            listed = hub.list_repo_tree(repository, recursive=True, revision=told.sha)
            return [
                Listed(entry.path, entry.size, entry.lfs.sha256 if entry.lfs else "")
                for entry in listed
                if isinstance(entry, RepoFile)
            ]
        except (KeyError, TypeError, AttributeError):
            # What the library runs into where the answer has another form than a hub's.
            raise DownloadError(no_hub()) from None


def no_hub() -> str:
    """What is said to an endpoint that is something else."""
    from huggingface_hub import constants

    return f"{constants.ENDPOINT} does not answer as a Hugging Face hub does; check HF_ENDPOINT"


@contextlib.contextmanager
def discreet() -> Generator[None, None, None]:
    """The library without telemetry, Xet's own protocol and words on stderr, while this lasts.

    Its environment is read when it is first imported, which may have been long before.
    """
    from huggingface_hub import constants

    names = ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_XET")
    before = {name: getattr(constants, name) for name in names}
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    try:
        for name in names:
            setattr(constants, name, True)
        logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for name, value in before.items():
            setattr(constants, name, value)
        logger.setLevel(level)


@contextlib.contextmanager
def in_words(repository: str, what: str) -> Generator[None, None, None]:
    """Turn what the library raises into one line that says what to do.

    Args:
        repository: The one that is asked.
        what: What it is asked for: a file in it, or itself.

    Raises:
        DownloadError: The line.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        HTTPError,  # pyright: ignore[reportPrivateImportUsage] - as above
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    hub, name, path = constants.ENDPOINT, shown(Path(repository)), shown(Path(what))
    unreachable = f"{hub} cannot be reached; check the network, then fetch {path} again"
    try:
        yield
        return
    except SpecchatError:
        raise
    except HFValidationError:
        told = bad_name(repository)
    except OfflineModeIsEnabled:
        told = f"{path} is not in the cache, and HF_HUB_OFFLINE forbids fetching it; unset HF_HUB_OFFLINE"
    except GatedRepoError:
        told = (
            f"{name} is gated: accept its terms on {hub}/{name}, make a token on {hub}/settings/tokens "
            "and set HF_TOKEN to it"
        )
    except RepositoryNotFoundError:
        told = f"{hub} has no repository {name}, or it is private; check its name, or set HF_TOKEN"
    except LocalEntryNotFoundError:
        told = unreachable
    except EntryNotFoundError:
        told = f"{name} has no file {path}; see {hub}/{name}/tree/main"
    except HfHubHTTPError as error:
        told = _refused(error.response.status_code, hub, name)
    except HTTPError:
        told = unreachable
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            told = f"the disk is full, and {path} is not all there; free some of it and fetch it again"
        else:
            told = f"{path} cannot be kept: {error.strerror or error}; check HF_HUB_CACHE and its disk"
    except ValueError as error:
        told = (
            f"{path} cannot be fetched: {' '.join(str(error).split())[:200]}; check HF_ENDPOINT and HF_TOKEN"
        )
    raise DownloadError(told) from None


def bad_name(repository: str) -> str:
    """What is said to a name that no repository can have."""
    return f"{repository!a} is no repository's name; give one like owner/name"


def _refused(status: int, hub: str, name: str) -> str:
    if status == 401:
        return f"{hub} does not know the token; make one on {hub}/settings/tokens and set HF_TOKEN to it"
    if status == 403:
        return f"{hub} refuses {name} to this token; allow it on {hub}/settings/tokens, or use another"
    if status == 429:
        return f"{hub} has had too many requests from here; try again in some minutes, or set HF_TOKEN"
    return f"{hub} answered with error {status}; try again later"
