"""Tells people once that a job gave up: in the log, in a file, or by a webhook that an Airflow connection names."""

import json
import logging
import urllib.request
from pathlib import Path
from typing import Any

from include.settings import load_spec, resolve_home
from spark_jobs.contracts.layout import Layout

log = logging.getLogger(__name__)


def notify_failure(context: dict[str, Any]) -> None:
    """The failure callback of supervising DAGs."""
    job = context["task"].job
    message = {"job": job, "run": context["dag_run"].run_id, "error": str(context.get("exception"))}
    section = load_spec(job).notify
    log.error("job %s failed: %s", job, message["error"])
    if section.kind == "file":
        path = Layout(resolve_home(), job).job_home / "notifications.jsonl"
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")
    elif section.kind == "webhook" and section.connection:
        _post(section.connection, message)


def _post(connection: str, message: dict[str, Any]) -> None:
    from airflow.sdk import Connection

    held = Connection.get(connection)
    url = f"{held.schema or 'https'}://{held.host}{f':{held.port}' if held.port else ''}/"
    headers = {"Content-Type": "application/json"}
    if held.password:
        headers["Authorization"] = f"Bearer {held.password}"
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    urllib.request.urlopen(request, timeout=10).close()
