"""Programs handed to Spark."""
