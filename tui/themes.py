"""The colours, as Textual's design tokens."""

from __future__ import annotations

from textual.theme import Theme


def _theme(
    name: str, *, dark: bool, background: str, surface: str, panel: str, text: str, muted: str, disabled: str,
    primary: str, secondary: str, accent: str, warning: str, error: str, success: str, code: str, prompt: str,
    scrollbar: tuple[str, str, str],
) -> Theme:  # fmt: skip
    """A theme; the scroll bar is told apart from the background by its own colours alone."""
    return Theme(
        name=f"specchat-{name}",
        primary=primary,
        secondary=secondary,
        accent=accent,
        warning=warning,
        error=error,
        success=success,
        foreground=text,
        background=background,
        surface=surface,
        panel=panel,
        dark=dark,
        variables={
            "text": text,
            "text-muted": muted,
            "text-disabled": disabled,
            "code-background": code,
            "prompt-background": prompt,
            "scrollbar": scrollbar[0],
            "scrollbar-hover": scrollbar[1],
            "scrollbar-active": scrollbar[2],
            "scrollbar-background": background,
            "scrollbar-background-hover": background,
            "scrollbar-background-active": background,
            "scrollbar-corner-color": background,
        },
    )


DARK = _theme(
    "dark", dark=True, background="#14171B", surface="#1A1E23", panel="#20252B", text="#D5DAE0",
    muted="#97A1AC", disabled="#5F6A75", primary="#7AA2C9", secondary="#86B39A", accent="#D6A86A",
    warning="#D9B36C", error="#D47A75", success="#8CC08A", code="#1B2026", prompt="#1C2229",
    scrollbar=("#2C333B", "#3A434D", "#4A5561"),
)  # fmt: skip

LIGHT = _theme(
    "light", dark=False, background="#FAFAF7", surface="#F1F1EC", panel="#E9E9E3", text="#24292F",
    muted="#5D666F", disabled="#9AA1A8", primary="#2F6391", secondary="#3E7A5A", accent="#9A6415",
    warning="#8A6100", error="#A93B36", success="#2E7D4F", code="#EFEFEA", prompt="#EDF1F4",
    scrollbar=("#CFCFC8", "#BDBDB6", "#A9A9A2"),
)  # fmt: skip

DUSK = _theme(
    "dusk", dark=True, background="#1F1B24", surface="#262130", panel="#2D2739", text="#DDD6E3",
    muted="#A79DB2", disabled="#6C6377", primary="#B79BD9", secondary="#D39AA9", accent="#E0B27A",
    warning="#E0B86E", error="#E07C86", success="#97C59B", code="#282231", prompt="#2A2434",
    scrollbar=("#3A3347", "#4A4159", "#5B5069"),
)  # fmt: skip

PAPER = _theme(
    "paper", dark=False, background="#F5EFE0", surface="#ECE4D1", panel="#E4DAC3", text="#3B352A",
    muted="#6E6553", disabled="#A79C85", primary="#7A5C2E", secondary="#4F6F52", accent="#A4572A",
    warning="#8F5E00", error="#A23B2D", success="#3F7148", code="#EBE2CC", prompt="#EDE5D2",
    scrollbar=("#CFC4A9", "#BEB293", "#ABA07F"),
)  # fmt: skip

CONTRAST = _theme(
    "contrast", dark=True, background="#000000", surface="#0B0B0B", panel="#161616", text="#FFFFFF",
    muted="#C8C8C8", disabled="#8A8A8A", primary="#6CB6FF", secondary="#7EE787", accent="#FFD866",
    warning="#FFD866", error="#FF7B72", success="#7EE787", code="#101010", prompt="#141414",
    scrollbar=("#4A4A4A", "#6A6A6A", "#8A8A8A"),
)  # fmt: skip

BY_NAME = {"dark": DARK, "light": LIGHT, "dusk": DUSK, "paper": PAPER, "contrast": CONTRAST}
"""All themes, by the names that they are chosen by."""
