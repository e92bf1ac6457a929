"""What the exit code says."""

DONE = 0
FAILED = 1
"""Something failed while running."""
UNUSABLE = 2
"""Bad usage, or a model or pair that cannot be used."""
INTERRUPTED = 130
"""Ctrl+C."""
