"""Measures the queue: hops from commit to next start beside no-op Celery tasks, answers, waiting rows.

Real processes: PostgreSQL with fsync, Valkey, a Celery worker with threads, the dispatcher. Only what a run
does is replaced: it commits an iteration and is due again at once, as a mission with a model of no cost is.
"""

HOPS = 25
CHAINS = 20
