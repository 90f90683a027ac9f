"""Clickstreams for trying things out: synthetic, or replayed from a file."""
