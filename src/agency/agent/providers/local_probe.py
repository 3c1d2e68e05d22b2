"""Reads what a local model has made of a text without having it write: a linear probe of its state.

What a small model would write tells less than it has understood. Its logits are a linear image of its state
after the last token; so the logits of some hundred tokens, weighed by a probe that was fitted on labelled
texts, say which label fits. Costs no more than reading the text does.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from agency.agent import background
from agency.agent.events import Message, Usage
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.providers import local_wire, schema_mode
from agency.agent.providers.local import Endpoint
from agency.errors import ModelOutputInvalid

SETTING = "probe"
LIFT = 60.0
"""Added to the logits of the tokens that are read, so that they come before all others."""
UNLIKELY = -60.0


@dataclass(frozen=True, slots=True)
class Probe:
    """What is read, and how it is weighed.

    `begun` are ways in which an answer may begin; the model's state is read after each. `tokens` are the ids
    of those whose logits are read. `rows` has a row for each label: an offset, then for each beginning a
    weight for each token.
    """

    begun: tuple[str, ...]
    tokens: tuple[int, ...]
    rows: Mapping[str, tuple[float, ...]]

    def scores(self, logits: Sequence[float]) -> dict[str, float]:
        """How well each label fits; the highest fits best."""
        return {label: round(self._score(row, logits), 4) for label, row in self.rows.items()}

    @staticmethod
    def _score(row: Sequence[float], logits: Sequence[float]) -> float:
        return row[0] + sum(weight * logit for weight, logit in zip(row[1:], logits, strict=True))


def probe_request(request: LlmRequest, probe: str) -> LlmRequest:
    """`request`, asking for the scores of a probe: a file of a package, as "package:path/in/it.json"."""
    settings = {**request.settings, SETTING: probe}
    return LlmRequest(instructions=request.instructions, contents=request.contents, settings=settings)


@lru_cache
def probe_of(name: str) -> Probe:
    """The probe that lies in a package: `name` is "package:path/in/it.json"."""
    package, _, path = name.partition(":")
    told = json.loads(files(package).joinpath(path).read_text(encoding="utf-8"))
    rows = {label: tuple(row) for label, row in told["rows"].items()}
    return Probe(tuple(told["begun"]), tuple(told["tokens"]), rows)


def answer(endpoint: Endpoint, request: LlmRequest, model: str, timeout: float) -> LlmResponse:
    """A JSON object as text: for each label of the probe its score."""
    probe = probe_of(request.settings[SETTING])
    logits, usage = read(endpoint, request, probe.begun, probe.tokens, timeout)
    text = json.dumps(probe.scores(logits))
    return LlmResponse([Message(role="assistant", content=text)], usage, "stop", model)


def read(
    endpoint: Endpoint, request: LlmRequest, begun: Sequence[str], tokens: Sequence[int], timeout: float
) -> tuple[list[float], Usage]:
    """For each beginning the logit of each of `tokens` after the chat of `request`, from their mean."""
    messages = schema_mode.messages(request, schema_mode.choices(request, frozenset()))
    chat = _ask(endpoint, {"messages": messages}, timeout, "/apply-template").get("prompt")
    if not isinstance(chat, str):
        raise ModelOutputInvalid("the local server gave no text for the chat")
    logits: list[float] = []
    usage = Usage()
    for beginning in begun:
        told = _ask(endpoint, _body(chat + beginning, tokens), timeout, "/completion")
        try:
            logits += _logits(told["completion_probabilities"][0]["top_probs"], tokens)
            usage += _usage(told["timings"])
        except (KeyError, IndexError, TypeError, ValueError) as exc:
            raise ModelOutputInvalid("the local server told no probabilities", raw=str(told)[:2000]) from exc
    return logits, usage


def _body(prompt: str, tokens: Sequence[int]) -> dict[str, Any]:
    return {
        "prompt": prompt,
        "n_predict": 1,
        "n_probs": len(tokens),
        "post_sampling_probs": True,
        "samplers": [],
        "temperature": 1,
        "logit_bias": [[token, LIFT] for token in tokens],
        "cache_prompt": True,
    }


def _logits(told: Sequence[Mapping[str, Any]], tokens: Sequence[int]) -> list[float]:
    likely = {one["id"]: float(one["prob"]) for one in told}
    logits = [math.log(likely[token]) if likely[token] > 0 else UNLIKELY for token in tokens]
    mean = sum(logits) / len(logits)
    return [logit - mean for logit in logits]


def _usage(timings: Mapping[str, Any]) -> Usage:
    fresh, known = int(timings["prompt_n"]), int(timings["cache_n"])
    return Usage(model_calls=1, input_tokens=fresh + known, output_tokens=1, cached_tokens=known, cost=0.0)


def _ask(endpoint: Endpoint, body: dict[str, Any], timeout: float, path: str) -> dict[str, Any]:
    return background.run(local_wire.ask(endpoint, body, timeout, path))
