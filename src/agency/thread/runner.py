"""Takes the turns of a thread: one message in, one answer out, and a record of whose message it was."""

from collections.abc import Sequence

from agency.agent.agent import Agent
from agency.agent.confirmation import Confirmation
from agency.agent.context import ExecutionContext
from agency.agent.result import AgentResult

SUPERVISOR = "supervisor"


class ThreadRunner:
    """One agent in one thread. `confirmations` are what people have decided on calls of the open turn.

    A turn that was begun before, by a process that died or before a person was asked, goes on from the
    journal of the agent's scope: it is opened again with the same call.
    """

    def __init__(
        self, agent: Agent, context: ExecutionContext, confirmations: Sequence[Confirmation] = ()
    ) -> None:
        self.agent = agent
        self.context = context
        self._confirmations = confirmations

    def run(self, prompt: str) -> AgentResult:
        """The turn that the thread's owner asks for."""
        return self.agent.run(prompt, self.context, self._confirmations)

    def continue_turn(self, follow_up: str, said_by: str = SUPERVISOR) -> AgentResult:
        """A turn that goes on with the work: the message is on record as `said_by`'s."""
        return self.agent.run(follow_up, self.context, self._confirmations, said_by=said_by)
