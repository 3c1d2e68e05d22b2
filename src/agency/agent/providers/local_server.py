"""The child process that serves a local model: `python -m agency.agent.providers.local_server FILE`.

Prints one JSON line, `{"url", "key", "pid"}`, when the model is loaded. Ends on SIGTERM, when its stdin
closes or when its parent is gone, so that a killed parent leaves no orphan.
"""

import argparse
import json
import os
import secrets
import signal
import threading
from typing import Any

# Read by the OpenMP runtime when it loads: threads that wait must sleep, not spin, or one busy
# neighbour on a small machine costs most of the speed.
os.environ["OMP_WAIT_POLICY"] = "passive"
os.environ["GOMP_SPINCOUNT"] = "0"

_LOOK = 1.0


def main() -> None:
    options = _options()
    _die_with_parent()
    server = _serve(options)
    # The key is made here and told over the pipe: a command line can be read by every user of the machine.
    line = {"url": str(server.listening_address), "key": options.key, "pid": os.getpid()}
    print(json.dumps(line), flush=True)
    threading.Event().wait()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="local_server", description=__doc__)
    parser.add_argument("file", help="the model, a GGUF file")
    parser.add_argument("--context", type=int, default=8192, help="tokens of context (default 8192)")
    parser.add_argument("--threads", type=int, default=0, help="threads (default: one a core)")
    options = parser.parse_args()
    options.key = secrets.token_urlsafe(24)
    return options


def _serve(options: argparse.Namespace) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.file
    params.n_ctx = options.context
    params.n_parallel = 1
    params.cache_ram_mib = 256
    params.port = 0
    params.api_keys = [options.key]
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 1
    if options.threads:
        params.cpuparams.n_threads = options.threads
    return xllamacpp.Server(params)


def _die_with_parent() -> None:
    # Ctrl-C reaches the whole process group; the parent decides when the model is no longer needed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_watch_stdin, daemon=True).start()
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()


def _watch_stdin() -> None:
    # Not through sys.stdin: its lock, held by this thread, would turn a failed start into a crash.
    while os.read(0, 1024):
        pass
    os._exit(0)


def _watch_parent(parent: int) -> None:
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(_LOOK)
    os._exit(0)


if __name__ == "__main__":
    main()
