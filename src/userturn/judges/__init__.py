"""Judges: from a generated user turn and its context to a label."""
