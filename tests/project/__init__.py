"""A small Django app that stands for a user's project: its agents and executions are the tests' own."""
