"""The common design, for contrast: a Celery task an iteration, a countdown, late acknowledgement, a status check."""
