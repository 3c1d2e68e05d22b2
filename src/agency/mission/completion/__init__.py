"""Checks that must pass before a mission's claim to be complete counts."""

from agency.mission.completion.declared import BaseCompletionCheck, ClaimedCompletion

__all__ = ["BaseCompletionCheck", "ClaimedCompletion"]
