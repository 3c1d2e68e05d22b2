"""What a small model makes of the transcripts, kept in a file so that nothing is read twice."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agency.agent.providers import local_probe
from agency.agent.providers.local import endpoint_for
from agency.enums import DecisionStatus
from agency.mission.local_prompt import decision_request
from benchmarks.supervisor.cases import Case
from benchmarks.supervisor.remembered import answers_of, asked_for

_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The logits that a probe reads after a case."""

    half: str
    label: DecisionStatus
    logits: list[float]


def readings(model: str, probe: local_probe.Probe, cases: Sequence[Case]) -> Iterator[Reading]:
    """Of each case, in their order; a model reads about ten transcripts in a minute."""
    path = answers_of(model).with_suffix(".readings.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = {told["asked"]: told["logits"] for told in map(json.loads, lines)}
    for number, case in enumerate(cases, start=1):
        request = decision_request(case.matter)
        settings = {"begun": probe.begun, "tokens": probe.tokens}
        asked = asked_for(replace(request, settings=settings))
        if asked not in known:
            endpoint = endpoint_for(model.removeprefix("local:"))
            read, _ = local_probe.read(endpoint, request, probe.begun, probe.tokens, _TIMEOUT)
            known[asked] = [round(logit, 3) for logit in read]
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"asked": asked, "logits": known[asked]}) + "\n")
            print(f"{model} {number}/{len(cases)} {case.id}", flush=True)
        yield Reading(case.half, case.label, known[asked])
