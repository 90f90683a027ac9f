"""The same work on this project, Spark's own windows, Flink and DuckDB: equal answers first, then times."""
