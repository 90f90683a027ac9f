"""How the jobs are steered and read."""
