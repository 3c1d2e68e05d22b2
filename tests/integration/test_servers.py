"""The servers of the tests: they answer, and die with whoever started them."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from kombu import Connection

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys
from tests import servers

with servers.valkey() as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def hung_up(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.fixture
def holder() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


def test_the_broker_answers(broker_url: str) -> None:
    with Connection(broker_url, connect_timeout=5) as broker:
        assert broker.connect()
        assert broker.connected


def test_postgresql_answers(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as session:
        assert session.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.usefixtures("broker_url")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_killed_owner_leaves_no_server(holder: "subprocess.Popen[str]") -> None:
    assert holder.stdout is not None
    path = urlsplit(holder.stdout.readline().strip()).path
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(path)
        client.sendall(b"PING\r\n")
        assert client.recv(16) == b"+PONG\r\n"
        holder.kill()
        holder.communicate()
        assert hung_up(client)
    shutil.rmtree(Path(path).parent)
