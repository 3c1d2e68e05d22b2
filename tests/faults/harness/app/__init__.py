"""The harness's project: an agent whose model and whose one tool live in other processes."""
