"""The views that people ask, and a reader for them."""
