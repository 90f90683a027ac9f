"""Expressions of a spec as Spark columns: checked by name before a stream starts, harmless to it afterwards."""

import logging
from typing import Any

from pyspark import SparkContext
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from spark_jobs.errors import SpecError

logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # it repeats each error with its JVM stack


def attempt(text: str) -> Column:
    """The value of the expression, or NULL where it fails for a row: one bad row must not end a stream.

    Spark has `try_` forms of some functions only; this is the node that they share.
    """
    utils = _jvm().org.apache.spark.sql.classic.ExpressionUtils
    attempted = _jvm().org.apache.spark.sql.catalyst.expressions.TryEval(utils.expression(F.expr(text)._jc))
    return Column(utils.column(attempted))


def _jvm() -> Any:
    context = SparkContext._active_spark_context
    assert context is not None
    return context._jvm


def type_of(frame: DataFrame, name: str, text: str) -> DataType:
    """The type of the expression over `frame`; SpecError names the field `name` when it cannot be used."""
    try:
        analysed = frame.select(*frame.columns, attempt(text).alias("__checked"))
        plan = analysed._jdf.queryExecution().analyzed()
        if not plan.deterministic():
            raise SpecError(f"{name}: {text!r} gives another value each time; a replayed batch needs the same one")
        if plan.containsPattern(_jvm().org.apache.spark.sql.catalyst.trees.TreePattern.WINDOW()):
            raise SpecError(f"{name}: {text!r} looks at other rows; a stream sees one row at a time")
        return analysed.schema["__checked"].dataType
    except (AnalysisException, ParseException, PySparkException) as error:
        raise SpecError(f"{name}: {text!r}: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    """What Spark says, without the plan and the place in a text that the user never wrote."""
    text = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
    for noise in (" SQLSTATE:", "; 'Project", " == SQL", "(line 1"):
        text = text.split(noise)[0]
    return text.strip()
