"""What a person may get wrong at the command line, told in one line."""


class UsageError(Exception):
    """The command cannot do what was asked; the message names the reason and the next step."""
