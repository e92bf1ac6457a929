"""A small Hugging Face hub on this machine: as much of its protocol as listing and fetching files takes."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
from huggingface_hub import constants

COMMIT = "c" * 40
CONTENT = random.Random(1).randbytes(700_000)


@dataclass(frozen=True)
class Seen:
    """One request."""

    method: str
    path: str
    authorization: str | None
    range: str | None
    encoding: str | None


@dataclass
class Hub:
    """Serves the files of one repository; what is set here changes how it answers."""

    content: bytes = b""
    repository: str = "makers/tiny-GGUF"
    twin: str = "makers/twin-GGUF"
    """Another repository with the same files."""
    file: str = "q4/tiny.gguf"
    others: dict[str, bytes] = field(default_factory=dict)
    """Further files by their paths."""
    refusal: tuple[int, dict[str, str]] | None = None
    """Instead of any answer: a status, and headers that say why."""
    refuses: str = ""
    """What stands in the path of a request that is refused."""
    listing: Any = None
    """What it answers in place of the list of files."""
    page: int = 1000
    """How many files it lists at once."""
    cuts: list[int] = field(default_factory=list)
    """After so many bytes of its body the next answer ends, one by one."""
    ranges: bool = True
    """Whether only what is asked for is sent."""
    size: int | None = None
    """The size it tells, where that is not the content's."""
    checksum: str | None = None
    """The checksum it tells, where that is not the content's."""
    commit: str | None = COMMIT
    hold: threading.Event | None = None
    """Once half of a body is sent, the rest of it waits for this."""
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    store: str = ""
    """The other server, where the bytes are."""

    @property
    def fetches(self) -> list[Seen]:
        """The requests for bytes."""
        return [seen for seen in self.seen if seen.path.startswith("/store") and seen.method == "GET"]

    @property
    def files(self) -> dict[str, bytes]:
        """All files by their paths."""
        return {self.file: self.content, **self.others}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        hub = self.hub
        asked = (self.headers[name] for name in ("Authorization", "Range", "Accept-Encoding"))
        hub.seen.append(Seen(self.command, self.path, *asked))
        path = unquote(urlsplit(self.path).path)
        repository = hub.twin if hub.twin in path else hub.repository
        if path.startswith("/store"):
            self.send_content(hub.files[path.removeprefix("/store").removeprefix("/") or hub.file])
        elif hub.refusal is not None and hub.refuses in path:
            self.send(*hub.refusal)
        elif path == f"/api/models/{repository}":
            self.send_json({"id": repository, "sha": hub.commit, "tags": [], "siblings": []})
        elif path == f"/api/models/{repository}/tree/{hub.commit}":
            self.send_listing()
        elif not path.startswith(f"/{repository}/resolve/"):
            self.send(401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif (file := path.removeprefix(f"/{repository}/resolve/").split("/", 1)[1]) not in hub.files:
            self.send(404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"})
        else:
            content = hub.files[file]
            checksum = hub.checksum or hashlib.sha256(content).hexdigest()
            headers = {
                "Location": f"{hub.store}/store" + ("" if file == hub.file else f"/{quote(file)}"),
                "ETag": '"0123456789012345678901234567890123456789"',
                "X-Linked-Etag": f'"{checksum}"',
                "X-Linked-Size": str(len(content) if hub.size is None else hub.size),
                "X-HF-Warning": "Topic; The library prints such words.",
                "X-Xet-Hash": "d" * 64,
                "X-Xet-Refresh-Route": f"{hub.url}/xet-token",
            }
            self.send(302, headers | ({"X-Repo-Commit": hub.commit} if hub.commit else {}))

    def send_listing(self) -> None:
        hub = self.hub
        listed: list[dict[str, Any]] = [{"type": "directory", "path": "a folder", "oid": "e" * 40, "size": 0}]
        for path, content in hub.files.items():
            size, checksum = (
                len(content) if hub.size is None else hub.size,
                hashlib.sha256(content).hexdigest(),
            )
            large = {"oid": checksum, "size": size, "pointerSize": 134}
            listed.append({"type": "file", "path": path, "oid": "f" * 40, "size": size, "lfs": large})
        start = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        end = start + hub.page
        here = urlsplit(self.path).path
        more = (
            {"Link": f'<{hub.url}{here}?recursive=True&cursor={end}>; rel="next"'}
            if end < len(listed)
            else {}
        )
        self.send_json(listed[start:end] if hub.listing is None else hub.listing, more)

    def send_json(self, told: Any, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(told).encode()
        self.send_response(200)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_content(self, content: bytes) -> None:
        hub = self.hub
        start = 0
        if hub.ranges and self.headers["Range"]:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        body = content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if hub.cuts:
            body = body[: hub.cuts.pop(0)]
            self.close_connection = True
        if hub.hold is not None:
            half = len(body) // 2
            self.wfile.write(body[:half])
            hub.hold.wait(30)
            body = body[half:]
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is gone is nothing to tell."""


def point_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this for the hub, in this process."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """The hub and the store that it leads to, on ports of their own."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    servers = [_Server(("127.0.0.1", 0), handler) for _ in range(2)]
    hub.url, hub.store = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()
