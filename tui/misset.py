"""Settings of the screen that mean nothing here."""

from __future__ import annotations

from difflib import get_close_matches

from ..app.settings import ChatSettings
from . import themes
from .registry import CHAT_KEYS, COMPARE_KEYS, KEYS


def misset(settings: ChatSettings) -> list[str]:
    """What the settings say of the screen that means nothing here, a sentence each."""
    problems: list[str] = []
    if settings.theme not in themes.BY_NAME:
        problems.append(f"There is no theme “{settings.theme}”; there are {', '.join(themes.BY_NAME)}.")
    names = {action.name for action in KEYS}
    for name in settings.keys:
        if name not in names:
            near = get_close_matches(name, names, n=1, cutoff=0.0)
            problems.append(
                f"[keys]: there is no action “{name}”; the nearest is “{near[0]}” (F1 lists all)."
            )
    for together in (CHAT_KEYS, COMPARE_KEYS):
        used: dict[str, str] = {}
        for action in together:
            for key in settings.keys.get(action.name, action.keys).split(","):
                other = used.setdefault(key.strip(), action.name)
                if other != action.name:
                    problems.append(
                        f"[keys]: “{key.strip()}” is the key of “{other}” and of “{action.name}”."
                    )
    return list(dict.fromkeys(problems))
