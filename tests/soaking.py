"""A chat that goes on and on in one process, on tiny models, and is looked at after every turn.

The real engine answers the real session, which keeps everything in a real history file; a plain model of the
conversation is kept beside it and compared. Whatever the seed says is done in between: answers are cancelled,
made again, gone on with, prompts changed on branches, drafts swapped, parameters changed, contexts filled.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from specchat.app.conversation import build_prompt
from specchat.app.decoding.settings import Sampling
from specchat.app.engine import Engine
from specchat.app.events import Ask, Event, Failed, Finished, Load, Loaded, Progress
from specchat.app.history import History
from specchat.app.remembered import Remembered
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions
from specchat.tui.session import Session
from tests.fresh_rows import fresh_row
from tests.plain_history import Node, Told, digest_of, shape_of, summary_of
from tests.soak_report import Report
from tests.tiny_models import EXACT, write_tiny_model

CONTEXT = 320
_PROBE = 104
_WORDS = "tell me of tigers and whales, then sort this list by name or say what you would do".split()


class Soak:
    """The chat, and what is known of it."""

    def __init__(self, folder: Path, seed: int, *, compare_every: int = 1) -> None:
        """Files go to `folder`; every so many turns the caches are compared with fresh contexts'."""
        self._random = random.Random(seed)
        self._compare_every = compare_every
        target = write_tiny_model(folder / "target.gguf", ends=True)
        self._drafts = [
            None,
            str(write_tiny_model(folder / "close.gguf", noise=0.05, ends=True)),
            str(write_tiny_model(folder / "far.gguf", noise=0.4, ends=True)),
            str(target),
        ]
        self._load = LoadOptions(str(target), self._drafts[1], ctx_size=CONTEXT, threads=1, **EXACT)
        self._path = folder / "history.db"
        self._looks_left: int | None = None
        self._last: Event | None = None
        self._so_far = ""
        self._engine = Engine(self._take, self._cancelled, remembered=Remembered(folder / "measured.json"))
        self._history = History(self._path)
        self._session = Session(AnswerOptions(), "be brief", self._history)
        self._plain = Told()
        self._kept: dict[int, tuple[int, bytes]] = {}
        """Of conversations that were left: how many messages each has, and a digest of all of it."""
        self.report = Report()

    def begin(self) -> None:
        """Load the first pair."""
        self._swap(self._drafts[1], cancelled_after=None)

    def turn(self) -> None:
        """Do something that ends in an answer, after what may be done between two answers; look at it all."""
        self._between()
        how = self._random.choices(
            (self._ask, self._again, self._go_on, self._edit, self._too_long), (45, 20, 12, 18, 5)
        )[0]
        how()
        self._compare_history()
        self.report.turns += 1
        if self.report.turns % self._compare_every == 0:
            self._compare_caches()
        self.report.measure()

    def end(self) -> Report:
        """Close everything, and read the file anew."""
        self._leave()
        self._engine.close()
        self._history.close()
        history = History(self._path)
        for conversation, kept in self._kept.items():
            assert summary_of(shape_of(history, conversation)) == kept
        assert len(history.conversations(limit=10**9)) == sum(1 for count, _ in self._kept.values() if count)
        self.report.conversations = len(self._kept)
        self.report.messages = sum(count for count, _ in self._kept.values())
        history.close()
        return self.report

    # What a person does.

    def _between(self) -> None:
        draw = self._random.random
        if draw() < 0.15:
            self._swap(self._random.choice(self._drafts), self._some(0.15, 40))
        if draw() < 0.3:
            self._change_parameters()
        if draw() < 0.06:
            self._leave()
            if draw() < 0.5:
                self._open_another()
        if draw() < 0.08:
            self._another_version()

    def _swap(self, draft: str | None, cancelled_after: int | None) -> None:
        """Another draft, the target staying as it is; a load that was stopped is made again."""
        load = LoadOptions(**{**vars(self._load), "draft": draft})
        before = self._engine.pair
        held = list(before.target.context.tokens) if before else []
        self._looks_left = cancelled_after
        self._engine.load(Load(load, self._session.options.drafting))
        self._looks_left = None
        if isinstance(self._last, Failed):
            assert self._last.message == "loading was stopped"
            self.report.done["load stopped"] += 1
            self._engine.load(Load(load, self._session.options.drafting))
        assert isinstance(self._last, Loaded), self._last
        after = self._engine.pair
        assert after is not None
        if before is not None:
            assert after.target is before.target
            # Passes are timed after what a cache holds; one that is full makes room for them.
            room = after.target.context.size - 2
            assert after.target.context.tokens in (held, held[:room])
        self._load, self._session.loaded = load, self._last
        self.report.done["draft swapped"] += 1

    def _change_parameters(self) -> None:
        pick = self._random.choice
        self._session.options = AnswerOptions(
            Sampling(
                temperature=pick((0.0, 0.8, 1.5)),
                top_k=pick((0, 5, 40)),
                min_p=pick((0.0, 0.05)),
                repeat_penalty=pick((1.0, 1.0, 1.3)),
                seed=pick((None, 7)),
            ),
            Drafting(
                speculate=pick(("auto", "auto", "always", "off")),
                drafter=pick(("model", "lookup", "both")),
                draft_max=pick((None, 1, 3, 16)),
                draft_sampling=pick(("auto", "sampled", "argmax")),
                draft_p_min=pick((None, 0.0)),
            ),
            max_tokens=pick((1, 5, 10, 10, 20, 20, 20, 40, None)),
        )
        if self._random.random() < 0.1:
            self._session.set_system(" ".join(self._random.choices(_WORDS, k=4)))
        self.report.done["parameters changed"] += 1

    def _leave(self) -> None:
        """Begin another conversation."""
        session = self._session
        if session.conversation is not None:
            self._kept[session.conversation] = summary_of(self._plain.shape())
        session.clear()
        self._plain = Told()

    def _open_another(self) -> None:
        """Go on with a conversation that was left, from where it was left."""
        if not self._kept:
            return
        opened = self._random.choice(list(self._kept))
        self._session.open(opened)
        shape = shape_of(self._history, opened)
        assert summary_of(shape) == self._kept.pop(opened)
        nodes: list[Node] = []
        for parent, role, digest in shape:
            nodes.append(Node(None if parent < 0 else nodes[parent], role, digest))
        self._plain = Told(nodes)
        self._follow()
        self.report.done["conversation opened"] += 1

    def _another_version(self) -> None:
        self._session.show_version(self._random.choice((-1, 1)))
        self._follow()
        self.report.done["version changed"] += 1

    def _follow(self) -> None:
        """The branch that the session shows, in the plain model: it must be one of its own."""
        conversation, plain = self._session.conversation, self._plain
        if conversation is None:
            return
        ids = [message.id for message in self._history.messages(conversation)]
        path = [plain.nodes[ids.index(message.id)] for message in self._session.messages]
        assert [node.parent for node in path] == [None, *path][: len(path)]
        plain.path = path

    def _ask(self) -> None:
        words = self._random.choices(_WORDS, k=self._random.choice((1, 5, 5, 20)))
        self._say(" ".join(words), "asked")

    def _too_long(self) -> None:
        """More than the context holds: refused, and nothing is kept of it."""
        self._say("far too long " * CONTEXT, "asked too much")
        assert isinstance(self._last, Failed)

    def _say(self, text: str, what: str) -> None:
        before = self._plain.before()
        place = self._session.editing
        command = self._session.ask(text, {})
        if place is not None:
            del self._plain.path[place:]
        self._plain.add("user", digest_of(text, ()))
        self._answer(command, what, before)

    def _again(self) -> None:
        if not self._session.messages:
            self._ask()
            return
        before = self._plain.before()
        if not self._session.unanswered:
            self._plain.path.pop()
        self._answer(self._session.again(), "answered again", before)

    def _go_on(self) -> None:
        if not self._session.messages or self._session.unanswered:
            self._again()
            return
        self._answer(self._session.go_on(), "gone on with", self._plain.before())

    def _edit(self) -> None:
        session = self._session
        prompts = [place for place, message in enumerate(session.messages) if message.role == "user"]
        if prompts:
            session.editing = self._random.choice(prompts[-3:])
            self.report.done["prompt changed"] += 1
        self._ask()

    # What comes of it.

    def _answer(self, command: Ask, what: str, earlier: tuple[list[Node], list[Node]]) -> None:
        """Have it answered; where nothing comes of it, all is as it was earlier."""
        session, plain = self._session, self._plain
        going_on = bool(plain.path) and plain.path[-1].role == "assistant"
        before = session.messages[-1] if going_on else None
        self._looks_left, self._so_far = self._some(0.25, 30), ""
        self._engine.ask(command)
        self._looks_left = None
        event, text, ids = self._last, "", ()
        if isinstance(event, Finished):
            text, ids = event.text, event.token_ids
            self._compare_tokens(command, event)
            session.finished(event)
            self.report.done[f"ended: {event.reason}"] += 1
            self.report.done["older turns left out"] += event.dropped_turns > 0
        else:
            assert isinstance(event, Failed)
            assert "the context holds" in event.message
            session.end_answer("", mark="failed", record=session.made_with)
            self.report.done["ended: refused"] += 1
        if before is not None:
            plain.path[-1].digest = digest_of(before.text + text, (*before.token_ids, *ids))
        elif text:
            plain.add("assistant", digest_of(text, ids))
        else:
            plain.take_back(*earlier)
        assert session.trouble == ""
        self.report.done[what] += 1

    def _compare_tokens(self, command: Ask, event: Finished) -> None:
        """The target holds what it was asked and what it said, as far as it came, and nothing else."""
        pair = self._engine.pair
        assert pair is not None
        context = pair.target.context
        prompt = build_prompt(command.turns, pair.template, pair.target.model, context.size).tokens
        assert context.tokens == [*prompt, *event.token_ids][: len(context.tokens)]
        if event.reason != "cancelled":
            assert len(context.tokens) >= len(prompt) + len(event.token_ids) - 1

    def _compare_history(self) -> None:
        conversation, plain = self._session.conversation, self._plain
        if conversation is None:
            return
        shape = shape_of(self._history, conversation)
        assert shape == plain.shape()
        path = [digest_of(each.text, each.token_ids) for each in self._history.branch(conversation)]
        assert path == [node.digest for node in plain.path]

    def _compare_caches(self) -> None:
        """What the contexts would say next is what contexts say that have seen nothing else."""
        pair = self._engine.pair
        assert pair is not None
        for loaded in (pair.target, pair.draft):
            if loaded is None:
                continue
            context = loaded.context
            held = min(len(context.tokens), context.size - 1)
            context.truncate(held)
            tokens = [*context.tokens, _PROBE]
            found = context.decode([_PROBE], 1)[0].copy()
            context.truncate(held)
            difference = float(np.abs(found - fresh_row(context, tokens)).max())
            assert difference < 1e-3, f"after {self.report.turns} turns the cache is off by {difference}"
            self.report.rows_compared += 1
            self.report.worst_row = max(self.report.worst_row, difference)

    def _some(self, chance: float, most: int) -> int | None:
        """So many looks at whether to stop, sometimes; `None` is never."""
        return self._random.randrange(most) if self._random.random() < chance else None

    def _cancelled(self) -> bool:
        if self._looks_left is None:
            return False
        self._looks_left -= 1
        return self._looks_left < 0

    def _take(self, event: Event) -> None:
        self._last = event
        if isinstance(event, Progress):
            self._so_far += "".join(piece.text for piece in event.pieces)
            if self._random.random() < 0.2:
                self._session.keep_so_far(self._so_far)
                self.report.done["kept so far"] += 1
