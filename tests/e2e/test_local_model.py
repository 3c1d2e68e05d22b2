"""The real local models: they load, keep to a schema, end a tool loop, and leave nothing running."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agency.agent import (
    Agent,
    Delta,
    Hooks,
    LlmRequest,
    Message,
    RunStatus,
    background,
    tool,
    with_structured_output,
)
from agency.agent.providers import local_probe, local_wire, resolve_model
from agency.agent.providers.local import endpoint_for, shared_server
from agency.errors import ContextOverflow, RunCancelled
from agency.mission.judging import judged
from benchmarks.supervisor.cases import load
from tests.e2e.local_models import one_server

ORDER = """Dear team,
please send us 3 boxes of pencils at 12.50 EUR each and 2 desk lamps at 40.00 EUR each.
The total should be 117.50 EUR. Our order number is PO-7741.
Kind regards, Anna Berg, Nordwind GmbH, anna.berg@nordwind.example"""


class Contact(BaseModel):
    """Who wrote."""

    name: str = Field(min_length=1, description="the person who signed")
    company: str = Field(min_length=1)
    email: str = Field(min_length=3)


class Order(BaseModel):
    """The order in the document."""

    order_number: str = Field(min_length=1)
    company: str = Field(min_length=1)
    total: float = Field(description="total in EUR")


@tool
def find_customer(company: str) -> dict[str, str]:
    """Find a customer's number by the company's name."""
    return {"company": company, "customer_number": "C-31"}


@tool
def multiply(quantity: float, price: float) -> float:
    """Multiply a quantity by a price."""
    return quantity * price


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    yield from one_server("small")


@pytest.fixture(scope="module")
def default() -> Iterator[str]:
    yield from one_server("default")


def wait_until(true: Callable[[], bool], what: str, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f"{what} did not happen within {seconds} s"
        time.sleep(0.05)


def user(text: str) -> LlmRequest:
    return LlmRequest(contents=[Message(role="user", content=text)])


@pytest.mark.local_model
def test_the_small_model_answers_and_counts_its_tokens(small: str) -> None:
    response = resolve_model(small).generate(user("Say hello in one short sentence."))
    assert response.text.strip()
    assert response.usage is not None
    assert response.usage.input_tokens > 5
    assert response.usage.output_tokens > 0


@pytest.mark.local_model
def test_the_small_model_keeps_to_a_schema(small: str) -> None:
    contact = with_structured_output(resolve_model(small), Contact).generate(
        user(f"Who wrote this message?\n\n{ORDER}")
    )
    assert contact.email == "anna.berg@nordwind.example"


@pytest.mark.local_model
def test_the_small_model_ends_a_loop_with_two_tools(small: str) -> None:
    agent = Agent(
        "clerk",
        small,
        "You read orders. Find the customer first, then give the final answer.",
        [find_customer, multiply],
        max_steps=6,
        output_type=Order,
    )
    result = agent.run(f"Read this order:\n\n{ORDER}")
    assert result.status is RunStatus.COMPLETED
    assert result.output.order_number == "PO-7741"
    assert result.output.total == 117.5


@pytest.mark.local_model
def test_a_probe_reads_the_logits_that_the_model_has_of_itself(small: str) -> None:
    endpoint, asked = endpoint_for("small"), user("What colour is the sky? One word.")
    messages = [{"role": "user", "content": "What colour is the sky? One word."}]
    chat = background.run(local_wire.ask(endpoint, {"messages": messages}, 60, "/apply-template"))["prompt"]
    body = {"prompt": f"{chat}It is", "n_predict": 1, "n_probs": 300, "temperature": 0}
    told = background.run(local_wire.ask(endpoint, body, 60, "/completion"))
    own = told["completion_probabilities"][0]["top_logprobs"][::30]
    read, usage = local_probe.read(endpoint, asked, ["It is"], [one["id"] for one in own], 60)
    mean = sum(one["logprob"] for one in own) / len(own)
    assert read == pytest.approx([one["logprob"] - mean for one in own], abs=0.3)
    assert (usage.model_calls, usage.output_tokens) == (1, 1)


@pytest.mark.large_model
def test_the_probe_of_the_default_model_finds_each_status_in_a_plain_transcript(default: str) -> None:
    client = resolve_model(default)
    plain = {case.label: case for case in reversed(load("tuned"))}
    assert {status: judged(client, case.matter) for status, case in plain.items()} == {
        status: status for status in plain
    }


@pytest.mark.local_model
def test_the_small_model_streams_text_and_shows_no_half_call(small: str) -> None:
    seen: list[Delta] = []
    agent = Agent(
        "clerk",
        small,
        "Find the customer first, then answer in one short sentence.",
        [find_customer],
        max_steps=4,
        hooks=Hooks(on_delta=seen.append),
    )
    result = agent.run("What is the customer number of Nordwind GmbH?")
    assert result.status is RunStatus.COMPLETED
    told = [piece.text for piece in seen if piece.kind == "text"]
    assert "".join(told) == result.output
    assert len(told) > 2
    calls = [call for event in result.context.events for call in event.tool_calls]
    shown = [json.loads(piece.text) for piece in seen if piece.kind == "tool_call" and piece.text]
    assert shown == [call.arguments for call in calls]
    assert result.usage.output_tokens > 0


@pytest.mark.local_model
def test_a_cancelled_stream_frees_the_model(small: str) -> None:
    client: Any = resolve_model(small)
    long = user("Count from 1 to 2000, one number a line.")
    long.settings = {"max_tokens": 4000}
    stream = client.stream(long)
    assert next(stream)
    stream.close()
    short = user("Say yes.")
    short.settings = {"max_tokens": 4, "timeout": 60}
    assert client.generate(short).content


@pytest.mark.local_model
def test_too_long_a_prompt_is_a_context_overflow(small: str) -> None:
    with pytest.raises(ContextOverflow, match="context"):
        resolve_model(small).generate(user("word " * 9000))


@pytest.mark.local_model
def test_a_cancelled_request_frees_the_model(small: str) -> None:
    client = resolve_model(small)
    long = user("Count from 1 to 2000, one number a line.")
    long.settings = {"max_tokens": 4000}
    until = time.monotonic() + 2
    token = background.stop_signal.set(lambda: time.monotonic() > until)
    try:
        with pytest.raises(RunCancelled):
            client.generate(long)
    finally:
        background.stop_signal.reset(token)
    short = user("Say yes.")
    short.settings = {"max_tokens": 4, "timeout": 60}
    assert client.generate(short).content


@pytest.mark.local_model
def test_a_killed_server_is_started_again_for_the_next_request(small: str) -> None:
    server = shared_server("small")
    first = server.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not server.alive(), "the death of the server")
    assert resolve_model(small).generate(user("Say yes.")).content
    assert server.pid != first
    assert server.health()


OWNER = """
import json, sys
from agency.agent.providers.local import shared_server
server = shared_server("small")
print(json.dumps({"url": server.start().url, "pid": server.pid}), flush=True)
sys.stdin.read()
"""


@pytest.mark.local_model
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_owner_leaves_no_model_behind(how: signal.Signals) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    told = json.loads(owner.stdout.readline())
    owner.send_signal(how)
    owner.communicate()
    wait_until(lambda: not runs(told["pid"]), "the end of the model's process")


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.large_model
def test_the_default_model_reads_a_contact_right(default: str) -> None:
    contact = with_structured_output(resolve_model(default), Contact).generate(
        user(f"Who wrote this message?\n\n{ORDER}")
    )
    assert contact == Contact(name="Anna Berg", company="Nordwind GmbH", email="anna.berg@nordwind.example")
