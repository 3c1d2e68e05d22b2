"""The common design, for contrast: a task an iteration, a countdown, late acknowledgement, a status check."""
