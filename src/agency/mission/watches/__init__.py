"""Conditions that missions can wait for: the base class, and those that agency brings."""

from agency.mission.watches.declared import BaseWatch, Look, View
from agency.mission.watches.events import EventWatch
from agency.mission.watches.file_tail import FileTail
from agency.mission.watches.http import HttpCheck
from agency.mission.watches.sql import SqlCheck

__all__ = ["BaseWatch", "EventWatch", "FileTail", "HttpCheck", "Look", "SqlCheck", "View"]
