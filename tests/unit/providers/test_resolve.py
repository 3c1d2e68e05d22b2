"""From a name to a client, from an environment to a name."""

import subprocess
import sys

import pytest

from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.providers import choose_model, resolve_model
from agency.errors import ConfigurationError


class Echo:
    def generate(self, request: LlmRequest) -> LlmResponse:
        return LlmResponse([])


ECHO = Echo()
NO_CLIENT = "text"


def make_echo() -> Echo:
    return Echo()


def make_nothing() -> None:
    return None


@pytest.mark.parametrize("name", ["opnai:x", "gpt-5", "openai:", ""])
def test_an_unknown_provider_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"openai, .*anthropic, google, local.*extras"):
        resolve_model(name)


def test_a_script_is_found_by_module_and_attribute() -> None:
    assert resolve_model(f"scripted:{__name__}:ECHO") is ECHO


@pytest.mark.parametrize("attribute", ["make_echo", "Echo"])
def test_a_factory_makes_the_script(attribute: str) -> None:
    assert hasattr(resolve_model(f"scripted:{__name__}:{attribute}"), "generate")


@pytest.mark.parametrize("target", ["nowhere:X", f"{__name__}:ABSENT", "", f"{__name__}:make_nothing"])
def test_a_script_that_cannot_be_had_is_named(target: str) -> None:
    with pytest.raises(ConfigurationError, match="scripted:"):
        resolve_model(f"scripted:{target}")


def test_the_named_model_wins() -> None:
    assert choose_model({"AGENCY_MODEL": "local:small", "OPENAI_API_KEY": "sk-x"}).name == "local:small"


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("OPENAI_API_KEY", "openai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GOOGLE_API_KEY", "google"),
        ("GEMINI_API_KEY", "google"),
    ],
)
def test_a_key_chooses_its_provider_and_is_not_shown(variable: str, provider: str) -> None:
    choice = choose_model({variable: "very-secret-value"})
    assert choice.name.startswith(f"{provider}:")
    assert variable in choice.reason
    assert "very-secret-value" not in choice.reason


@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": " "}, {"AGENCY_MODEL": ""}])
def test_without_a_key_the_local_model_is_used(environ: dict[str, str]) -> None:
    assert choose_model(environ).name == "local:default"


def test_naming_a_model_loads_no_sdk() -> None:
    code = (
        "import sys; from agency.agent.providers import resolve_model, choose_model; choose_model({})\n"
        "resolve_model('local:tiny')\n"
        "print([m for m in ('django', 'pydantic_ai', 'openai', 'anthropic', 'httpx', 'httpx2', 'xllamacpp', "
        "'huggingface_hub', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
