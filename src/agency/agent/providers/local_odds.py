"""How likely a local model is to go on with each of some texts: one token is asked for, and its rivals read.

What a small model would write, if its answer is only the likeliest one, says less than how near the others
were: code can weigh that.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agency.agent import background
from agency.agent.events import Message, Usage
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.providers import local_wire, schema_mode
from agency.agent.providers.local import Endpoint
from agency.errors import ModelOutputInvalid

SETTING = "odds"
RIVALS = 80
UNLIKELY = -12.0
"""For a choice that is not among the likeliest tokens."""


def odds_request(request: LlmRequest, begun: str, choices: Sequence[str]) -> LlmRequest:
    """`request`, asking how an answer that has `begun` so goes on; each choice begins unlike the others."""
    settings = {**request.settings, SETTING: {"begun": begun, "choices": list(choices)}}
    return LlmRequest(instructions=request.instructions, contents=request.contents, settings=settings)


def answer(endpoint: Endpoint, request: LlmRequest, model: str, timeout: float) -> LlmResponse:
    """A JSON object as text: for each choice the natural logarithm of its probability."""
    asked = request.settings[SETTING]
    messages = schema_mode.messages(request, schema_mode.choices(request, frozenset()))
    chat = _ask(endpoint, {"messages": messages}, timeout, "/apply-template").get("prompt")
    if not isinstance(chat, str):
        raise ModelOutputInvalid("the local server gave no text for the chat")
    body = {
        "prompt": chat + asked["begun"],
        "n_predict": 1,
        "n_probs": RIVALS,
        "temperature": 0,
        "cache_prompt": True,
    }
    told = _ask(endpoint, body, timeout, "/completion")
    try:
        rivals = {one["token"]: one["logprob"] for one in told["completion_probabilities"][0]["top_logprobs"]}
        fresh, known = int(told["timings"]["prompt_n"]), int(told["timings"]["cache_n"])
    except (KeyError, IndexError, TypeError, ValueError) as exc:
        raise ModelOutputInvalid("the local server told no probabilities", raw=str(told)[:2000]) from exc
    text = json.dumps(by_choice(rivals, asked["choices"]))
    usage = Usage(model_calls=1, input_tokens=fresh + known, output_tokens=1, cached_tokens=known, cost=0.0)
    return LlmResponse([Message(role="assistant", content=text)], usage, "stop", model)


def by_choice(rivals: Mapping[str, float], choices: Sequence[str]) -> dict[str, float]:
    """The likeliest beginning of each choice that begins no other one."""
    found = dict.fromkeys(choices, UNLIKELY)
    for token, logarithm in rivals.items():
        begun = [choice for choice in choices if token and choice.startswith(token)]
        if len(begun) == 1:
            found[begun[0]] = max(found[begun[0]], round(logarithm, 4))
    return found


def _ask(endpoint: Endpoint, body: dict[str, Any], timeout: float, path: str) -> dict[str, Any]:
    return background.run(local_wire.ask(endpoint, body, timeout, path))
