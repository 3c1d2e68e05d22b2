"""A small project of agents for the tests of the runtime: in one process and across killed ones."""
