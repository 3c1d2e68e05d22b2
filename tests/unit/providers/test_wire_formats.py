"""The order desk's agent in OpenAI's and Anthropic's wire formats: their shapes sent, their answers read."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from agency.agent import (
    Agent,
    ExecutionContext,
    LlmClient,
    RunStatus,
    SelectingBuilder,
    SummaryBuilder,
    TrimmingBuilder,
    tool,
)
from agency.agent.providers import resolve_model
from agency.agent.testing import ScriptedLlm
from tests.order_desk import TASKS, Task, check, clerk, find_customer, find_price, find_stock
from tests.unit.providers import replies, shapes
from tests.unit.providers.wire import Wire

KEY = "sk-test-0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Api:
    """One API of a vendor: a model that uses it, its path, its requests and its answers."""

    model: str
    path: str
    check: Callable[[dict[str, Any]], None]
    calls: Callable[..., dict[str, Any]]
    text: Callable[[str], dict[str, Any]]


OPENAI, ANTHROPIC = "openai:gpt-6-luna", "anthropic:claude-haiku-4-5"
APIS = [
    Api(OPENAI, "/v1/chat/completions", shapes.chat, replies.chat_calls, replies.chat_text),
    Api(OPENAI, "/v1/responses", shapes.responses, replies.responses_calls, replies.responses_text),
    Api(ANTHROPIC, "/v1/messages", shapes.messages, replies.messages_calls, replies.messages_text),
]
CHAT, RESPONSES, MESSAGES = APIS


@pytest.fixture(params=APIS, ids=lambda api: api.path.removeprefix("/v1/"))
def api(request: pytest.FixtureRequest) -> Api:
    return request.param


@pytest.fixture
def model(api: Api, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> LlmClient:
    """The vendor's client, with its vendor played by `wire`."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", wire.url)
    if api is CHAT:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{wire.url}/v1")
    made: Any = resolve_model(api.model)
    if api is RESPONSES:
        # A base URL of one's own means chat completions; so the SDK is told where its vendor is.
        made.model.client.base_url = f"{wire.url}/v1"
    return made


def desk(model: LlmClient | str, tools: Sequence[Any] = ()) -> Agent:
    """The agent; without `max_tokens` Anthropic's answer would have to be a stream."""
    return clerk(model, tools, settings={"max_tokens": 500})


def answer(task: Task) -> str:
    return task.offer.model_dump_json()


def said(body: dict[str, Any]) -> list[Any]:
    return body["messages"] if "messages" in body else body["input"]


def sound(wire: Wire, api: Api) -> list[dict[str, Any]]:
    """The bodies of all requests, each of which was checked."""
    bodies = [request["body"] for request in wire.requests]
    for body in bodies:
        api.check(body)
    return bodies


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.article)
def test_the_agent_does_its_tasks_with_three_tools_at_once(
    api: Api, model: LlmClient, wire: Wire, task: Task
) -> None:
    wire.reply(
        api.calls(
            ("call_1", "find_customer", {"company": task.company}),
            ("call_2", "find_price", {"article": task.article}),
            ("call_3", "find_stock", {"article": task.article}),
        )
    )
    wire.reply(api.text(answer(task)))

    result = desk(model).run(task.inquiry)

    check(result, task)
    assert result.usage.cached_tokens == 24
    first, second = sound(wire, api)
    assert {request["path"] for request in wire.requests} == {api.path}
    assert any(KEY in value for value in wire.requests[0]["headers"].values())
    assert len(first["tools"]) == len(second["tools"]) == 3
    assert str(task.offer.price) in json.dumps(second)
    assert said(second)[: len(said(first))] == said(first)


def test_after_errors_and_a_correction_the_history_is_still_one_that_the_vendor_takes(
    api: Api, model: LlmClient, wire: Wire
) -> None:
    task = TASKS[0]
    wire.reply(
        api.calls(
            ("call_1", "find_customer", {"firm": task.company}),
            ("call_2", "find_money", {}),
            ("call_3", "find_price", {"article": "unicorn"}),
        )
    )
    wire.reply(api.text('{"customer_number": "C-31"}'))
    wire.reply(api.calls(("call_4", "find_customer", {"company": task.company})))
    wire.reply(
        api.calls(
            ("call_5", "find_price", {"article": "desk"}), ("call_6", "find_stock", {"article": "desk"})
        )
    )
    wire.reply(api.text(answer(task)))

    check(desk(model).run(task.inquiry), task)

    last = json.dumps(sound(wire, api)[-1])
    assert "company: Field required" in last
    assert "There is no tool 'find_money'" in last
    assert "KeyError: 'unicorn'" in last
    assert "does not have the required shape" in last


@pytest.mark.parametrize("api", [CHAT, RESPONSES], indirect=True, ids=["chat/completions", "responses"])
@pytest.mark.parametrize("raw", ['{"company": "Nordw', '["Nordwind GmbH"]', "null"])
def test_broken_arguments_go_back_as_valid_json_and_are_answered(
    api: Api, model: LlmClient, wire: Wire, raw: str
) -> None:
    wire.reply(api.calls(("call_1", "find_customer", raw)))
    wire.reply(api.text(answer(TASKS[0])))

    result = desk(model).run(TASKS[0].inquiry)

    assert result.status is RunStatus.COMPLETED
    assert "not a JSON object; it was not run" in json.dumps(sound(wire, api)[-1])


def test_a_call_that_nobody_answered_is_answered_before_the_vendor_sees_it(
    api: Api, model: LlmClient, wire: Wire
) -> None:
    @tool(requires_confirmation=True)
    def order(article: str) -> str:
        """Order an article."""
        raise AssertionError("nobody confirmed")

    agent = desk(model, [find_customer, find_price, find_stock, order])
    wire.reply(
        api.calls(("call_1", "order", {"article": "desk"}), ("call_2", "find_stock", {"article": "desk"}))
    )
    wire.reply(api.text(answer(TASKS[0])))

    paused = agent.run("Order a desk.")
    assert paused.status is RunStatus.INTERRUPTED
    result = agent.run(TASKS[0].inquiry, paused.context, discard_pending=True)

    assert result.output == TASKS[0].offer
    assert "was interrupted and has no result" in json.dumps(sound(wire, api)[-1])


def test_what_a_builder_leaves_of_a_long_history_is_still_one_that_the_vendor_takes(
    api: Api, model: LlmClient, wire: Wire
) -> None:
    writer = ScriptedLlm("They asked for a desk.", loop=True)
    summary = SummaryBuilder(turns=1, block=2, llm=writer)
    agent = desk(model)
    agent.request_builder = SelectingBuilder(summary, TrimmingBuilder(steps=1, block=1, characters=1))
    context = ExecutionContext()
    for turn, task in enumerate(TASKS[:4]):
        wire.reply(api.calls((f"call_{turn}a", "find_stock", {"article": task.article})))
        wire.reply(api.calls((f"call_{turn}b", "find_price", {"article": task.article})))
        wire.reply(api.text(answer(task)))
    for task in TASKS[:4]:
        assert agent.run(task.inquiry, context).output == task.offer

    bodies = sound(wire, api)
    last = json.dumps(said(bodies[-1]))
    assert "They asked for a desk." in last
    assert TASKS[0].inquiry in last
    assert "call_0a" not in last
    assert len(writer.requests) == 1


def test_where_the_vendor_holds_no_schema_the_final_answer_is_a_tool(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", wire.url)
    task = TASKS[3]
    wire.reply(
        replies.messages_calls(
            ("call_1", "find_customer", {"company": task.company}),
            ("call_2", "find_price", {"article": task.article}),
            ("call_3", "find_stock", {"article": task.article}),
        )
    )
    wire.reply(replies.messages_calls(("call_4", "final_answer", {"customer_number": "C-31"})))
    wire.reply(replies.messages_calls(("call_5", "final_answer", task.offer.model_dump())))

    check(desk("anthropic:claude-3-5-haiku-latest").run(task.inquiry), task)

    bodies = sound(wire, MESSAGES)
    assert "final_answer" not in [one["name"] for one in bodies[0]["tools"]]
    assert bodies[0]["tool_choice"]["type"] == "any"
    assert [one["name"] for one in bodies[1]["tools"]][-1] == "final_answer"
    assert "output_config" not in bodies[0]
    assert "Not accepted: article: Field required" in json.dumps(bodies[-1])
