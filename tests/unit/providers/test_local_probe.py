"""A probe of a local model, over a real socket: what is asked, how it is weighed, what surprises do."""

import json
from math import log
from pathlib import Path
from typing import Any

import pytest

from agency.agent.events import Message
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.named import NamedModel
from agency.agent.providers.local_probe import UNLIKELY, Probe, probe_of, probe_request
from agency.errors import ModelOutputInvalid
from tests.unit.providers.wire import Wire

PROBE = {
    "begun": ['{"verdict": "', '{"missing": "'],
    "tokens": [11, 22],
    "rows": {"yes": [0.5, 1.0, 0.0, 2.0, 0.0], "no": [0.0, 0.0, 1.0, 0.0, 0.0]},
}


@pytest.fixture(autouse=True)
def _server(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_LOCAL_URL", wire.url)
    monkeypatch.setenv("AGENCY_LOCAL_KEY", "the-key")


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A probe in a package of its own."""
    package = tmp_path / "a_project_with_a_probe"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "probe.json").write_text(json.dumps(PROBE))
    monkeypatch.syspath_prepend(tmp_path)
    probe_of.cache_clear()
    return "a_project_with_a_probe:probe.json"


def ask(named: str) -> LlmResponse:
    request = LlmRequest(instructions=["Judge."], contents=[Message(role="user", content="hi")])
    return NamedModel("local:small").generate(probe_request(request, named))


def told(**probabilities: float) -> dict[str, Any]:
    top = [{"id": int(token[1:]), "token": "?", "prob": value} for token, value in probabilities.items()]
    return {"completion_probabilities": [{"top_probs": top}], "timings": {"prompt_n": 7, "cache_n": 30}}


def test_the_state_is_read_after_each_beginning_by_lifting_the_tokens_above_all_others(
    wire: Wire, named: str
) -> None:
    wire.reply({"prompt": "<chat>"})
    wire.reply(told(t11=0.2, t22=0.8, t33=0.1))
    ask(named)
    template, *completions = wire.requests
    assert template["path"] == "/apply-template"
    assert [one["role"] for one in template["body"]["messages"]] == ["system", "user"]
    assert [one["path"] for one in completions] == ["/completion"] * 2
    assert [one["body"]["prompt"] for one in completions] == [
        '<chat>{"verdict": "',
        '<chat>{"missing": "',
    ]
    body = completions[0]["body"]
    assert (body["n_predict"], body["n_probs"], body["post_sampling_probs"]) == (1, 2, True)
    assert [token for token, lift in body["logit_bias"] if lift > 20] == [11, 22]
    assert (body["samplers"], body["temperature"]) == ([], 1)


def test_a_score_is_the_weighed_distance_of_each_logit_from_the_mean_of_its_beginning(
    wire: Wire, named: str
) -> None:
    wire.reply({"prompt": "<chat>"})
    wire.reply(told(t22=0.8, t11=0.2))
    wire.reply(told(t22=0.5, t11=0.5))
    response = ask(named)
    half = log(0.2 / 0.8) / 2
    assert json.loads(response.text) == pytest.approx({"yes": 0.5 + half, "no": -half}, abs=1e-4)
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.cached_tokens) == (74, 60)
    assert response.usage.model_calls == 2


def test_a_token_without_any_probability_counts_as_most_unlikely(wire: Wire, named: str) -> None:
    wire.reply({"prompt": "<chat>"})
    wire.reply(told(t11=0.0, t22=1.0))
    assert json.loads(ask(named).text)["no"] == pytest.approx(-UNLIKELY / 2)


@pytest.mark.parametrize(
    "answer",
    [{}, {"completion_probabilities": []}, {"completion_probabilities": 5}, told(t11=0.2), {"error": "no"}],
)
def test_an_answer_without_the_probabilities_is_an_invalid_answer(
    wire: Wire, named: str, answer: dict[str, Any]
) -> None:
    wire.reply({"prompt": "<chat>"})
    wire.reply(answer)
    with pytest.raises(ModelOutputInvalid, match="no probabilities"):
        ask(named)


def test_a_chat_that_the_server_does_not_write_is_not_guessed(wire: Wire, named: str) -> None:
    wire.reply({"prompt": None})
    with pytest.raises(ModelOutputInvalid, match="no text for the chat"):
        ask(named)
    assert len(wire.requests) == 1


def test_a_row_that_does_not_fit_what_is_read_is_no_score() -> None:
    with pytest.raises(ValueError, match="zip"):
        Probe(("",), (1, 2), {"yes": (0.0, 1.0)}).scores([1.0, 2.0])


def test_a_model_that_is_only_named_tells_that_it_can() -> None:
    assert NamedModel("local:small").takes_probes
