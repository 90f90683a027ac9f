"""What the numbers mean: everything that runs with Spark alone."""
