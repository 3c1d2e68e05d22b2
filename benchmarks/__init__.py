"""Measures the loop of the agent core beside a hand-written loop and other agent libraries."""
