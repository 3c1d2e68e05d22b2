"""What the supervisor starts: `python -m agency.config.child ROLE`, one process a role.

A mistake in the configuration ends it with one sentence and status 78, so that it is not started again.
"""

import json
import os
import socket
import sys
import warnings
from collections.abc import Callable

from agency.errors import AgencyError, ConfigurationError
from agency.runtime import lifeline

WEB_SOCKET = "AGENCY_WEB_FD"
BEAT_SECONDS = 10.0
LONGEST_MESSAGE = 4_096
"""Bytes that a socket's client may say at once: it has nothing to say."""
GRACEFUL_SECONDS = 2
"""For open requests and streams at the end: less than the supervisor's limit for the whole service."""


def web() -> None:
    """Serve the API on the socket that the supervisor holds open."""
    import asyncio

    import uvicorn

    config = uvicorn.Config(
        "agency.config.asgi:application",
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=LONGEST_MESSAGE,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
    config.load()
    server = uvicorn.Server(config)
    listener = socket.socket(fileno=int(os.environ[WEB_SOCKET]))

    async def beating() -> None:
        while not server.started:
            await asyncio.sleep(0.01)
        while True:
            lifeline.beat()
            await asyncio.sleep(BEAT_SECONDS)

    async def serve() -> None:
        beats = asyncio.create_task(beating())
        await server.serve(sockets=[listener])
        beats.cancel()

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(serve())


def worker() -> None:
    """A Celery worker with threads. Its poll thread looks at the database when the broker is silent."""
    _setup()
    from celery.platforms import SecurityWarning

    from agency.config.celery import app

    # A message holds ids and no pickles: what Celery fears of root does not apply.
    warnings.simplefilter("ignore", SecurityWarning)
    app.worker_main(
        [
            "--quiet",
            "worker",
            *("--pool", "threads", "--loglevel", "WARNING"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ]
    )


def poller() -> None:
    """A worker for a machine without a broker: it polls the database."""
    from django.core.management import call_command

    _setup()
    call_command("agency_worker")


def dispatcher() -> None:
    """Bring the database up to date and choose the model, which one JSON line tells; then dispatch.

    One process for both, since loading Django is most of what either costs at the start.
    """
    from django.core.management import call_command

    _setup()
    from agency.config.preparation import check_definitions, choose_model, migrate

    migrate()
    check_definitions()
    print(json.dumps(choose_model()), flush=True)
    call_command("agency_dispatcher")


def model(name: str) -> None:
    """Become the server of the local model, fetching the model first if it is not in the cache."""
    from agency.agent.providers.weights import locate

    file = str(locate(name))
    command = [sys.executable, "-P", "-m", "agency.agent.providers.local_server", file]
    if threads := os.environ.get("AGENCY_LOCAL_THREADS"):
        command += ["--threads", threads]
    os.execv(command[0], command)


def _setup() -> None:
    import django
    from django.core.exceptions import ImproperlyConfigured

    os.environ["DJANGO_SETTINGS_MODULE"] = "agency.config.settings"
    try:
        django.setup()
    except ImproperlyConfigured as error:
        raise ConfigurationError(f"The settings do not fit: {error}") from error
    except ImportError as error:
        raise ConfigurationError(
            f"{error}: AGENCY_APPS must name importable Django apps (now {os.environ.get('AGENCY_APPS')!r}), "
            f"AGENCY_APPS_DIR the directory they are in."
        ) from error


ROLES: dict[str, Callable[..., None]] = {
    role.__name__: role for role in (web, worker, poller, dispatcher, model)
}


def main(role: str, *arguments: str) -> int:
    lifeline.tie()
    try:
        ROLES[role](*arguments)
    except AgencyError as error:
        print(error, file=sys.stderr, flush=True)
        return os.EX_CONFIG
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
