"""An MCP server of the protocol's year 2025, written by hand: a banner on stdout, pages, text alone."""

import json
import sys
from typing import Any

TOOLS = [{"name": f"tool_{number}", "inputSchema": {"type": "object"}} for number in range(5)]


def listing(params: dict[str, Any]) -> dict[str, Any]:
    start = int(params.get("cursor", 0))
    page: dict[str, Any] = {"tools": TOOLS[start : start + 2]}
    return page if start + 2 >= len(TOOLS) else {**page, "nextCursor": str(start + 2)}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            about = {"name": "old", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return listing(params)
        case "tools/call":
            return {"content": [{"type": "text", "text": f"{params['name']} was called"}]}
    return None


def serve() -> None:
    print("old server 1.0 is ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = answer(asked["method"], asked.get("params") or {})
        unknown = {"error": {"code": -32601, "message": "Method not found"}}
        told = {"jsonrpc": "2.0", "id": asked["id"], **({"result": result} if result else unknown)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    serve()
