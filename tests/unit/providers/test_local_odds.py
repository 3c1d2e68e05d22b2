"""How likely a local model's answers are, over a real socket: what is asked, read, and made of surprises."""

import json
from typing import Any

import pytest

from agency.agent.events import Message
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.named import NamedModel
from agency.agent.providers.local_odds import UNLIKELY, by_choice, odds_request
from agency.errors import ModelOutputInvalid
from tests.unit.providers.wire import Wire

CHOICES = ["all done", "ask a person", "wait"]


@pytest.fixture(autouse=True)
def _server(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_LOCAL_URL", wire.url)
    monkeypatch.setenv("AGENCY_LOCAL_KEY", "the-key")


def ask(**settings: Any) -> LlmResponse:
    request = LlmRequest(instructions=["Judge."], contents=[Message(role="user", content="hi")])
    request.settings = settings
    return NamedModel("local:small").generate(odds_request(request, '{"verdict": "', CHOICES))


def told(**rivals: float) -> dict[str, Any]:
    top = [{"token": token, "logprob": logarithm} for token, logarithm in rivals.items()]
    return {
        "completion_probabilities": [{"top_logprobs": top}],
        "timings": {"prompt_n": 7, "cache_n": 30},
    }


def test_one_token_is_asked_for_after_what_the_answer_has_begun_with(wire: Wire) -> None:
    wire.reply({"prompt": "<chat>"})
    wire.reply(told(wait=-0.25, ask=-1.5))
    response = ask()
    template, completion = wire.requests
    assert (template["path"], completion["path"]) == ("/apply-template", "/completion")
    assert [one["role"] for one in template["body"]["messages"]] == ["system", "user"]
    assert completion["body"]["prompt"] == '<chat>{"verdict": "'
    assert (completion["body"]["n_predict"], completion["body"]["temperature"]) == (1, 0)
    assert json.loads(response.text) == {"all done": UNLIKELY, "ask a person": -1.5, "wait": -0.25}
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.cached_tokens) == (37, 30)


def test_a_beginning_of_two_choices_speaks_for_neither() -> None:
    rivals = {"a": -0.1, "al": -2.0, "all": -1.0, "": 0.0, "waiting": -0.5, " wait": -0.2}
    assert by_choice(rivals, CHOICES) == {"all done": -1.0, "ask a person": UNLIKELY, "wait": UNLIKELY}


@pytest.mark.parametrize("answer", [{}, {"completion_probabilities": []}, {"completion_probabilities": 5}])
def test_an_answer_without_probabilities_is_an_invalid_answer(wire: Wire, answer: dict[str, Any]) -> None:
    wire.reply({"prompt": "<chat>"})
    wire.reply(answer)
    with pytest.raises(ModelOutputInvalid, match="no probabilities"):
        ask()


def test_a_chat_that_the_server_does_not_write_is_not_guessed(wire: Wire) -> None:
    wire.reply({"prompt": None})
    with pytest.raises(ModelOutputInvalid, match="no text for the chat"):
        ask()
    assert len(wire.requests) == 1


def test_a_model_that_is_only_named_tells_that_it_can() -> None:
    assert NamedModel("local:small").tells_odds
