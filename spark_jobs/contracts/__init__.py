"""Names, schemas and windows that every room shares; standard library only."""
