"""A small Hugging Face hub on this machine: as much of its protocol as fetching a file takes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c" * 40


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
    """Serves one file of one repository; what is set here changes how it answers."""

    content: bytes = b""
    repository: str = "makers/tiny-GGUF"
    file: str = "q4/tiny.gguf"
    refusal: tuple[int, dict[str, str]] | None = None
    """Instead of any answer: a status, and headers that say why."""
    cuts: list[int] = field(default_factory=list)
    """After so many bytes of its body the next answer ends, one by one."""
    ranges: bool = True
    """Whether only what is asked for is sent."""
    size: int | None = None
    """The size it tells, where that is not the content's."""
    checksum: str | None = None
    """The checksum it tells, where that is not the content's."""
    commit: str | None = COMMIT
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    store: str = ""
    """The other server, where the bytes are."""

    @property
    def fetches(self) -> list[Seen]:
        """The requests for bytes."""
        return [seen for seen in self.seen if seen.path == "/store" and seen.method == "GET"]


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
        if self.path == "/store":
            self.send_content()
        elif hub.refusal is not None:
            self.send(*hub.refusal)
        elif not self.path.startswith(f"/{hub.repository}/resolve/"):
            self.send(401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif not self.path.endswith(f"/{hub.file}"):
            self.send(404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"})
        else:
            checksum = hub.checksum or hashlib.sha256(hub.content).hexdigest()
            headers = {
                "Location": f"{hub.store}/store",
                "ETag": '"0123456789012345678901234567890123456789"',
                "X-Linked-Etag": f'"{checksum}"',
                "X-Linked-Size": str(len(hub.content) if hub.size is None else hub.size),
                "X-HF-Warning": "Topic; The library prints such words.",
                "X-Xet-Hash": "d" * 64,
                "X-Xet-Refresh-Route": f"{hub.url}/xet-token",
            }
            self.send(302, headers | ({"X-Repo-Commit": hub.commit} if hub.commit else {}))

    def send(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_content(self) -> None:
        hub = self.hub
        start = 0
        if hub.ranges and self.headers["Range"]:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        body = hub.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if hub.cuts:
            body = body[: hub.cuts.pop(0)]
            self.close_connection = True
        self.wfile.write(body)


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """The hub and the store that it leads to, on ports of their own."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler) for _ in range(2)]
    hub.url, hub.store = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in servers]
    for server, thread in zip(servers, threads, strict=True):
        server.daemon_threads = True
        thread.start()
    try:
        yield hub
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()
