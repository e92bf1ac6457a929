"""Counts of bytes as a person says them."""

from __future__ import annotations


def bytes_text(count: int) -> str:
    """In megabytes, and from a gigabyte on in gigabytes with two decimals."""
    return f"{count / 1e9:,.2f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
