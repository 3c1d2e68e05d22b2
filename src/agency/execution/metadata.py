"""Names in an execution's `metadata` that modules of several layers read. Knows nothing but words."""

LOOP_CONFIG = "loop_config"
"""A mission's configuration as it was when it was dispatched; answers of people may raise its limits."""
OPENING = "opening"
"""The message with which a mission's next iteration begins, and who said it."""
WAIT = "wait"
"""What a mission waits for, for as long as it does."""
