"""An escalation over HTTP: a signed request, and an answer at once or later."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from otel_loopguard.breaking.escalation import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from otel_loopguard.breaking.questions import Escalate, Request

SIGNATURE: Final = "X-Loopguard-Signature"
TIMESTAMP: Final = "X-Loopguard-Timestamp"
_LATER: Final = 202
_CALL_S: Final = 10.0


def webhook(
    url: str,
    secret: bytes,
    *,
    retries: int = 5,
    poll_s: float = 5.0,
    timeout_s: float = 300.0,
    clock: Callable[[], float] = time.time,
) -> Escalate:
    """Asks by a POST of JSON: the fields of the request, no content of the conversation.

    The answer is JSON with `approved`. Status 202 with a `Location` says that it is to be had there
    later; it is then asked for every `poll_s` seconds, for `timeout_s` at most. Refused connections
    and statuses 429, 502, 503, 504 are tried again with growing pauses.

    Args:
        url: where to.
        secret: signs each request: `X-Loopguard-Signature` is the hex HMAC-SHA256 of the text
            `<X-Loopguard-Timestamp>.<body>` (for a GET, of `<timestamp>.`).
        retries: how often one request is tried again.
        poll_s: seconds between two looks for a late answer.
        timeout_s: seconds until no answer is taken for a no.
        clock: seconds since the epoch.
    """

    async def ask(request: Request, /) -> bool:
        return await in_thread(
            lambda: _Call(url, secret, retries, clock).wait(request, poll_s, timeout_s)
        )

    return ask


class _Call:
    """One escalation: its session, and how it signs."""

    def __init__(self, url: str, secret: bytes, retries: int, clock: Callable[[], float]) -> None:
        self._url, self._secret, self._clock = url, secret, clock
        adapter = HTTPAdapter(max_retries=Retry(
            retries, backoff_factor=0.5, backoff_jitter=0.5, status_forcelist=(429, 502, 503, 504),
            allowed_methods=("GET", "POST"),
        ))  # fmt: skip
        self._session = requests.Session()
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def wait(self, request: Request, poll_s: float, timeout_s: float) -> bool:
        """Ask, and look for a late answer until the time is up."""
        over = time.monotonic() + timeout_s
        with self._session:
            body = json.dumps(asdict(request)).encode()
            answer = self._send("POST", self._url, body)
            where = urljoin(self._url, answer.headers.get("Location", ""))
            while answer.status_code == _LATER and time.monotonic() + poll_s < over:
                time.sleep(poll_s)
                answer = self._send("GET", where, b"")
            return answer.status_code != _LATER and answer.json().get("approved") is True

    def _send(self, method: str, url: str, body: bytes) -> requests.Response:
        stamp = str(int(self._clock()))
        signed = hmac.new(self._secret, stamp.encode() + b"." + body, hashlib.sha256)
        headers = {TIMESTAMP: stamp, SIGNATURE: signed.hexdigest()}
        if body:
            headers["Content-Type"] = "application/json"
        answer = self._session.request(
            method, url, data=body or None, headers=headers, timeout=_CALL_S, allow_redirects=False
        )
        answer.raise_for_status()
        return answer
