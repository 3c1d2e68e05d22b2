"""A real HTTP server on the loopback interface that answers as it is told and records what it was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """One answer; `stall` keeps the connection open without a byte until the server is stopped.

    `promised` more bytes are announced than come; then the connection is cut, or `stall`s if both are set.
    """

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    stall: bool = False
    promised: int = 0


class Wire:
    """`replies` are given in order, the last one again and again; `requests` hold path, headers, body."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.requests: list[dict[str, Any]] = []
        self.asked = threading.Event()
        self.stopping = threading.Event()
        self.url = ""

    def reply(self, body: Any, **options: Any) -> None:
        self.replies.append(Reply(body, **options))

    @property
    def last(self) -> dict[str, Any]:
        return self.requests[-1]["body"]

    def take(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def completion(text: str | None = None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion as OpenAI-compatible servers write it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 5,
            "total_tokens": 25,
            "prompt_tokens_details": {"cached_tokens": 12},
        },
    }


def tool_call(name: str, arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@contextmanager
def serving() -> Iterator[Wire]:
    wire = Wire()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = {
                "path": self.path,
                "headers": {k.lower(): v for k, v in self.headers.items()},
                "body": json.loads(raw),
            }
            wire.requests.append(request)
            wire.asked.set()
            reply = wire.take()
            if reply.stall and not reply.promised:
                wire.stopping.wait()
                self.close_connection = True
                return
            data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data) + reply.promised))
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = bool(reply.promised)
            if reply.promised and reply.stall:
                wire.stopping.wait()

        def log_message(self, format: str, *args: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    wire.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield wire
    finally:
        wire.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()
