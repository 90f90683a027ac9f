"""The few things that are asked of Airflow's own API, as the admin that `tidemark up` made."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from include.errors import UsageError
from spark_jobs.sinks.json_files import read_json

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class AirflowApi:
    def __init__(self, url: str, passwords_file: Path, user: str = "admin") -> None:
        self._url = url.rstrip("/")
        passwords = read_json(passwords_file)
        if not passwords or user not in passwords:
            raise UsageError(f"no password of {user} in {passwords_file}; start Airflow with `tidemark up`")
        self._token = ""
        answer = self._send("POST", "/auth/token", {"username": user, "password": passwords[user]})
        self._token = answer["access_token"]

    def unpause(self, dag: str) -> None:
        self._send("PATCH", f"/api/v2/dags/{dag}?update_mask=is_paused", {"is_paused": False})

    def get(self, path: str) -> Any:
        return self._send("GET", f"/api/v2{path}")

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._send("POST", f"/api/v2{path}", body)

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self._token}"} if self._token else {}
        )
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}{path}", data, headers, method=method)
        try:
            with _OPENER.open(request, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise UsageError(f"Airflow refused {method} {path}: {error.code} {error.read().decode()[:300]}") from None
        except (urllib.error.URLError, OSError) as error:
            raise UsageError(f"Airflow does not answer at {self._url}: {error}") from None
