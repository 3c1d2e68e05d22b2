import pytest

from agency.agent.providers.choice import _KEYS
from agency.agent.providers.prices import is_price_known


@pytest.mark.parametrize("name", [model for _, model in _KEYS])
def test_what_a_key_chooses_has_a_price(name: str) -> None:
    assert is_price_known(name, {})


@pytest.mark.parametrize(
    ("name", "environ"),
    [
        ("openai:no-such-model", {}),
        ("openai-compatible:my-own", {"AGENCY_MODEL_BASE_URL": "http://127.0.0.1:9/v1"}),
        ("openai-compatible:my-own", {}),
        ("anthropic:", {}),
    ],
)
def test_a_model_that_is_on_no_list_has_none(name: str, environ: dict[str, str]) -> None:
    assert not is_price_known(name, environ)


@pytest.mark.parametrize("name", ["local:default", "scripted:tests.mine:client"])
def test_what_runs_here_costs_nothing_or_says_it_itself(name: str) -> None:
    assert is_price_known(name, {})


def test_a_server_whose_prices_are_known_is_found_by_its_address() -> None:
    served = {"AGENCY_MODEL_BASE_URL": "https://api.groq.com/openai/v1"}
    assert is_price_known("openai-compatible:llama-3.3-70b-versatile", served)
