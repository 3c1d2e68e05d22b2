"""One execution in a process of its own: `python -m agency.runtime.lodger ID`, started by `alone`.

It ends with its execution, with the worker that started it, or when asked to, and then gives its claim back.
"""

import sys

from agency.runtime import lifeline


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
    places.run(execution_id)


if __name__ == "__main__":
    main(sys.argv[1])
