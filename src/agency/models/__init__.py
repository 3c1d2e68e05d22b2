"""The rows. One Django app; writing goes through the stores of the layers above."""

from agency.models.access import visible_to
from agency.models.agent import ConfiguredAgent
from agency.models.blob import Blob
from agency.models.event import Event
from agency.models.execution import Execution
from agency.models.gate import ProviderGate
from agency.models.human import HumanRequest, HumanRequestItem
from agency.models.iteration import Iteration
from agency.models.mission import Mission
from agency.models.schedule import Schedule, ScheduleSlot
from agency.models.signal import Signal
from agency.models.step import Step
from agency.models.thread import Message, Thread
from agency.models.token import ApiToken

__all__ = [
    "ApiToken",
    "Blob",
    "ConfiguredAgent",
    "Event",
    "Execution",
    "HumanRequest",
    "HumanRequestItem",
    "Iteration",
    "Message",
    "Mission",
    "ProviderGate",
    "Schedule",
    "ScheduleSlot",
    "Signal",
    "Step",
    "Thread",
    "visible_to",
]
