"""One execution in a process of its own: `python -m agency.runtime.lodger ID`, started by `alone`.

It ends with its execution, with the worker that started it, or when asked to, and then gives its claim back;
and when the run does not stop though it was told to, so that the worker's place is free again.
"""

import os
import sys
import threading

from agency.runtime import lifeline

LOOK_SECONDS = 1.0


def main(execution_id: str) -> None:
    lifeline.tie()
    import django

    django.setup()
    from agency.runtime.ending import end_now, end_on_signal
    from agency.runtime.hint import hint
    from agency.runtime.slots import slots

    places = slots()
    places.resize(1)

    def stop() -> None:
        if not places.leave():
            end_now(0)

    end_on_signal(stop)
    hint().tend()
    running = threading.Thread(target=places.run, args=(execution_id,), name="agency-run", daemon=True)
    running.start()
    while running.is_alive():
        running.join(LOOK_SECONDS)
        if places.has_too_many_stuck():
            end_now(os.EX_TEMPFAIL)


if __name__ == "__main__":
    main(sys.argv[1])
