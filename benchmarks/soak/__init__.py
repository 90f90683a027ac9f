"""Whether a stream stays as fast as on its first day: thousands of small batches, tables with a day of commits."""
