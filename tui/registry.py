"""Every key and every command, in one place, of which bindings, footer, palette and help are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textual.binding import Binding, BindingType

from . import actions
from .actions import Action, Do, Say
from .commands import adjusting, comparing, copying, models, running, talk
from .parameters import PARAMETERS
from .themes import BY_NAME as THEMES


def _text(argument: str) -> str:
    return argument


def _number(argument: str) -> int:
    if not argument.isdecimal():
        raise actions.CommandError(f"/edit takes a number; 1 is the last prompt, not “{argument}”")
    return int(argument)


def _step(argument: str) -> int:
    steps = {"next": 1, "prev": -1, "previous": -1}
    if argument.lower() not in steps:
        raise actions.CommandError(f"/version is next or prev, not “{argument}”")
    return steps[argument.lower()]


PROMPT_ACTIONS = (
    Action("submit", "send the prompt", keys="enter", shown="Enter", where="prompt", footer="send"),
    Action(
        "newline", "new line", keys="ctrl+j,shift+enter,alt+enter", shown="Ctrl+J", where="prompt",
        footer="new line",
    ),
    Action(
        "complete", "complete the command or the path that is being typed", keys="tab", shown="Tab",
        where="prompt",
    ),
    Action("earlier", "on the first line: the prompt before", keys="up", shown="Up", where="prompt"),
    Action("later", "on the last line: the prompt after", keys="down", shown="Down", where="prompt"),
    Action("page_up", "scroll up", keys="pageup", shown="PageUp", where="prompt"),
    Action("page_down", "scroll down", keys="pagedown", shown="PageDown", where="prompt"),
    Action(
        "to_start", "to the start of the conversation", keys="ctrl+home", shown="Ctrl+Home", where="prompt"
    ),
    Action(
        "end", "to the end: of the line, then of the conversation", keys="end", shown="End", where="prompt"
    ),
    Action("to_end", "to the end of the conversation", keys="ctrl+end", shown="Ctrl+End", where="prompt"),
)  # fmt: skip

CHAT = (
    Action("stop", "stop the answer and keep it; else back to the end", running.stop, keys="escape",
           shown="Esc", footer="stop"),
    Action("regenerate", "answer the last prompt again", talk.regenerate, keys="f5", shown="F5",
           command="regen", also=("regenerate", "retry")),
    Action("continue", "go on with an answer that was stopped or cut", talk.go_on, keys="f6", shown="F6",
           command="continue"),
    Action("edit", "change the last prompt, or the N-th from the end, on a branch of its own", talk.edit,
           keys="f7", shown="F7", command="edit", argument="[N]", parse=_number, keeps_prompt=True),
    Action("version_before", "the version before, where there are several",
           lambda app, _: talk.version(app, -1), keys="ctrl+up", shown="Ctrl+Up"),
    Action("version", "the version after, where there are several", talk.version,
           keys="ctrl+down", shown="Ctrl+Down", command="version", argument="[next|prev]", parse=_step,
           completes=lambda _: ("next", "prev")),
    Action("new", "begin a new conversation", talk.new, keys="ctrl+n", shown="Ctrl+N", command="new",
           also=("clear",)),
    Action("chats", "go on with another conversation; find one by what was said", talk.chats, keys="f2",
           shown="F2", footer="chats", command="chats", also=("resume", "search"), argument="[WORDS]",
           parse=_text),
    Action("rename", "give the conversation a title", talk.rename, command="rename", argument="TITLE",
           parse=_text),
    Action("delete", "delete the conversation", talk.delete, command="delete"),
    Action("export", "write the conversation to a file, as Markdown or JSON", talk.export, command="export",
           argument="[md|json] [FILE]", parse=_text, completes=lambda _: ("md", "json")),
)  # fmt: skip

TEXT = (
    Action("copy", "copy the selection; else stop the answer", copying.copy_selection,
           keys="ctrl+c,super+c", shown="Ctrl+C", priority=True, group="Text"),
    Action("copy_answer", "copy the last answer, a code block of it, or everything", copying.copy_answer,
           keys="f8", shown="F8", command="copy", argument="[answer|code [N]|all]", parse=_text,
           completes=lambda _: ("answer", "code", "all"), group="Text"),
    Action("editor", "write the prompt in your editor", copying.external_editor, keys="ctrl+g",
           shown="Ctrl+G", command="editor", group="Text", keeps_prompt=True),
    Action("file", "send a text file along with the prompt; @path in the prompt does the same",
           copying.attach_file, command="file", argument="PATH", parse=_text, group="Text",
           keeps_prompt=True),
)  # fmt: skip

ANSWERS = (
    Action("parameters", "all parameters and presets on one screen", adjusting.parameters, keys="f3",
           shown="F3", footer="parameters", command="params", also=("set",), group="Answers"),
    Action("preset", "use the parameters saved under a name, or save them", adjusting.preset,
           command="preset", argument="[NAME|save NAME]", parse=_text,
           completes=lambda app: (*app.presets.names(), "save"), group="Answers"),
    Action("system", "what the model is told first; “none” removes it", adjusting.system, command="system",
           argument="TEXT", parse=_text, group="Answers"),
    *(
        Action(f"set_{each.name}", each.help, adjusting.set_parameter(each), command=each.name,
               argument="|".join(each.choices) or "X", parse=_text, completes=adjusting.words_of(each.name),
               group="Answers")
        for each in PARAMETERS
    ),
    Action("target", "choose the model that answers", models.pick_target, keys="f4", shown="F4",
           footer="models", command="model", also=("target",), argument="[GGUF]", parse=_text,
           group="Answers"),
    Action("draft", "choose the model that drafts, or none; the conversation stays", models.pick_draft,
           command="draft", argument="[GGUF|none]", parse=_text, completes=lambda _: ("none",),
           group="Answers"),
    Action("compare", "ask two pairs the same, side by side: the loaded one, and a draft, lookup or none",
           comparing.compare, command="compare", argument="[GGUF|lookup|none]", parse=_text,
           completes=lambda _: ("lookup", "none"), group="Answers"),
    Action("restart", "start the engine again, when it is gone or a load failed", running.restart,
           keys="ctrl+r", shown="Ctrl+R", command="restart", group="Answers"),
)  # fmt: skip

SCREEN = (
    Action("palette", "find an action by its name", adjusting.palette, keys="ctrl+p", shown="Ctrl+P",
           footer="actions", command="actions", group="Screen"),
    Action("origin", "colour answers by each token's origin", adjusting.origin, keys="ctrl+o",
           shown="Ctrl+O", footer="origin", command="origin", group="Screen"),
    Action("thoughts", "unfold what the model thought", adjusting.thoughts, keys="ctrl+t", shown="Ctrl+T",
           command="thoughts", group="Screen"),
    Action("panel", "show or hide the panel", adjusting.panel, keys="f9", shown="F9", command="panel",
           group="Screen"),
    Action("theme", "the colours", adjusting.theme, command="theme", argument="[NAME]", parse=_text,
           completes=lambda _: tuple(THEMES), group="Screen"),
    Action("help", "this help", adjusting.help_me, keys="f1", shown="F1", footer="help", command="help",
           group="Screen"),
    Action("leave", "leave", running.leave, keys="ctrl+q", shown="Ctrl+Q", footer="quit", priority=True,
           command="quit", also=("exit",), group="Screen"),
)  # fmt: skip

COMPARING = (
    Action("compare_left", "in /compare: choose what answers at the left", keys="f3", shown="F3",
           where="compare", footer="left side"),
    Action("compare_right", "in /compare: choose what answers at the right", keys="f4", shown="F4",
           where="compare", footer="right side"),
    Action("compare_back", "in /compare: stop the answers; then back to the chat", keys="escape",
           shown="Esc", where="compare", footer="stop, back"),
)  # fmt: skip

ACTIONS = (*PROMPT_ACTIONS, *CHAT, *TEXT, *ANSWERS, *SCREEN, *COMPARING)
COMMANDS = tuple(action for action in ACTIONS if action.command)
KEYS = tuple(action for action in ACTIONS if action.keys)
CHAT_KEYS = tuple(action for action in KEYS if action.where != "compare")
FOOTER = ("submit", "newline", "stop", "palette", "help", "leave", "chats", "target", "parameters")
"""What the footer shows, the most needed first: narrow terminals have no room for all."""
COMPARE_FOOTER = ("submit", "compare_left", "compare_right", "origin", "compare_back", "leave")
"""What the footer of a comparison shows."""
BY_NAME = {action.name: action for action in ACTIONS}
COMPARE_KEYS = (*PROMPT_ACTIONS, BY_NAME["origin"], BY_NAME["thoughts"], *COMPARING)
"""The keys of a comparison; those that go before all others work there as everywhere."""


def bindings() -> list[BindingType]:
    """The bindings of the app, which may be changed by name; the prompt looks its keys up itself."""
    return [
        Binding(
            each.keys,
            f"carry_out('{each.name}')",
            each.help,
            show=False,
            priority=each.priority,
            id=each.name,
        )
        for each in KEYS
        if each.where == "app"
    ]


def keys_by_name(other: Mapping[str, str], actions: Iterable[Action]) -> dict[str, Action]:
    """What each key does, with other keys for the actions named."""
    return {
        key.strip(): action
        for action in actions
        for key in other.get(action.name, action.keys).split(",")
        if key.strip()
    }


def understand(text: str) -> Say | Do:
    """What a submitted prompt is; raises `CommandError`."""
    return actions.understand(text, COMMANDS)
