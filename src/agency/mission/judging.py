"""How a small model judges best: not by the answer it would write, but by what it has made of the transcript.

It leans to some verdicts whatever it reads, and believes an agent that says it is done. Its state after
reading tells the cases apart all the same: a probe that was fitted on labelled transcripts reads it there
(`benchmarks/supervisor/calibrate.py`), and nothing is written for it.
"""

import json

from agency.agent.llm import LlmClient
from agency.agent.providers.local_probe import probe_request
from agency.enums import DecisionStatus
from agency.errors import ModelOutputInvalid
from agency.mission.local_prompt import decision_request
from agency.mission.prompt import Matter

PROBES = {"local:default": "agency.mission:probes/local-default.json"}
"""By model; each is to be fitted anew when the model's file or this prompt (`local_prompt`) changes."""


def judged(supervisor: LlmClient, matter: Matter) -> DecisionStatus | None:
    """The status, or `None` for a model that takes no probes or has none."""
    probe = PROBES.get(getattr(supervisor, "model_name", None) or "")
    if probe is None or not getattr(supervisor, "takes_probes", False):
        return None
    try:
        scores = _scores(supervisor.generate(probe_request(decision_request(matter), probe)).text)
    except ModelOutputInvalid:
        return None
    return max(scores, key=lambda status: scores[status])


def _scores(text: str) -> dict[DecisionStatus, float]:
    try:
        told = json.loads(text)
        return {status: float(told[status.value]) for status in DecisionStatus}
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelOutputInvalid("the probe told no scores", raw=text) from exc
