"""What a person types: one module a command group."""
