"""A plain model of conversations, kept beside the real history, and what the two are compared by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from specchat.app.history import History


@dataclass
class Node:
    """One message of the plain model; texts are kept as digests, so that the model itself stays small."""

    parent: Node | None
    role: str
    digest: bytes


@dataclass
class Told:
    """A conversation as it should be in the file."""

    nodes: list[Node] = field(default_factory=list)
    """Of all branches, the oldest first."""
    path: list[Node] = field(default_factory=list)
    """The branch in view."""

    def add(self, role: str, digest: bytes) -> Node:
        """A message after the last in view."""
        node = Node(self.path[-1] if self.path else None, role, digest)
        self.nodes.append(node)
        self.path.append(node)
        return node

    def before(self) -> tuple[list[Node], list[Node]]:
        """What there is and what is in view, to come back to."""
        return list(self.nodes), list(self.path)

    def take_back(self, nodes: list[Node], path: list[Node]) -> None:
        """What was said since there were these was never said."""
        self.nodes, self.path = nodes, path

    def shape(self) -> list[tuple[int, str, bytes]]:
        """All messages, each with the place of the one that it follows, and -1 for none."""
        places = {id(node): place for place, node in enumerate(self.nodes)}
        return [
            (-1 if node.parent is None else places[id(node.parent)], node.role, node.digest)
            for node in self.nodes
        ]


def digest_of(text: str, token_ids: tuple[int, ...]) -> bytes:
    return hashlib.blake2b(f"{text}\0{token_ids}".encode(), digest_size=16).digest()


def shape_of(history: History, conversation: int) -> list[tuple[int, str, bytes]]:
    """All messages of a conversation in the file, as `Told.shape` has them."""
    messages = history.messages(conversation)
    places = {message.id: place for place, message in enumerate(messages)}
    return [
        (
            -1 if message.parent is None else places[message.parent],
            message.role,
            digest_of(message.text, message.token_ids),
        )
        for message in messages
    ]


def summary_of(shape: list[tuple[int, str, bytes]]) -> tuple[int, bytes]:
    return len(shape), hashlib.blake2b(repr(shape).encode(), digest_size=16).digest()
