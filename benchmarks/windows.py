"""The windows that every engine is asked for; standard library only, since every engine's program reads it."""

GRAINS = {"1 minute": 60, "1 hour": 3_600, "1 day": 86_400}
"""Tumbling windows of page views and unique visitors, by name and in seconds."""
HOT_LENGTH = 3_600
HOT_SLIDE = 300
HOT_TOP = 10
"""The most viewed items of each hour, every five minutes; equal views are ranked by the lower item id."""
WATERMARK_SECONDS = 10
CORES = 2
"""Threads, slots or partitions of every engine."""
HEAP_GB = 4
"""For the engines that run in a Java process; this project runs with what a spec has by default."""
