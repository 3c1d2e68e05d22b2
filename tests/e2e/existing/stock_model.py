"""A language model that needs none: its answer says in which process it was asked."""

import json
import os

from agency.agent import LlmRequest, LlmResponse, Message


class SaysWhoAsks:
    model_name = "scripted:who"
    output_mode = "tool"

    def generate(self, request: LlmRequest) -> LlmResponse:
        return LlmResponse([Message(role="assistant", content=json.dumps({"title": os.environ["ROLE"]}))])


model = SaysWhoAsks()
