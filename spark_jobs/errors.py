"""What may go wrong in spark_jobs, each error with the next step for the person who reads it."""


class TidemarkError(Exception):
    """A fault told in one line: what happened, and what to do."""


class SpecError(TidemarkError):
    """The spec cannot be used as it is written."""


class SourceError(TidemarkError):
    """The source does not give what the offsets promise."""


class StaleEpoch(TidemarkError):
    """A newer driver or a restore owns the tables; this process must end."""


class OutOfStep(TidemarkError):
    """Spark's logs and the tables disagree on which batch comes next."""


class LedgerError(TidemarkError):
    """A row was read and is in no class, or in two."""


class JobLocked(TidemarkError):
    """Another driver of the same job is alive."""
