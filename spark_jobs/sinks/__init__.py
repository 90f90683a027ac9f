"""Commits that are safe to repeat."""
