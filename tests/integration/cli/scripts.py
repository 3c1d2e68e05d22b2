"""Models that the command line's tests name as `scripted:tests.integration.cli.scripts:NAME`."""

from agency.agent.testing import ScriptedLlm


def shelves() -> ScriptedLlm:
    return ScriptedLlm('{"shelved": 3}')


def mumbles() -> ScriptedLlm:
    return ScriptedLlm("no JSON", loop=True)
