"""The colours, as Textual's design tokens."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="specchat-dark",
    primary="#7AA2C9",
    secondary="#86B39A",
    accent="#D6A86A",
    warning="#D9B36C",
    error="#D47A75",
    success="#8CC08A",
    foreground="#D5DAE0",
    background="#14171B",
    surface="#1A1E23",
    panel="#20252B",
    dark=True,
    variables={
        "text": "#D5DAE0",
        "text-muted": "#97A1AC",
        "text-disabled": "#5F6A75",
        "code-background": "#1B2026",
        "prompt-background": "#1C2229",
        "scrollbar": "#2C333B",
        "scrollbar-hover": "#3A434D",
        "scrollbar-active": "#4A5561",
        "scrollbar-background": "#14171B",
        "scrollbar-background-hover": "#14171B",
        "scrollbar-background-active": "#14171B",
        "scrollbar-corner-color": "#14171B",
    },
)

LIGHT = Theme(
    name="specchat-light",
    primary="#2F6391",
    secondary="#3E7A5A",
    accent="#9A6415",
    warning="#8A6100",
    error="#A93B36",
    success="#2E7D4F",
    foreground="#24292F",
    background="#FAFAF7",
    surface="#F1F1EC",
    panel="#E9E9E3",
    dark=False,
    variables={
        "text": "#24292F",
        "text-muted": "#5D666F",
        "text-disabled": "#9AA1A8",
        "code-background": "#EFEFEA",
        "prompt-background": "#EDF1F4",
        "scrollbar": "#CFCFC8",
        "scrollbar-hover": "#BDBDB6",
        "scrollbar-active": "#A9A9A2",
        "scrollbar-background": "#FAFAF7",
        "scrollbar-background-hover": "#FAFAF7",
        "scrollbar-background-active": "#FAFAF7",
        "scrollbar-corner-color": "#FAFAF7",
    },
)
