"""A process that claims one execution, runs it and ends: `python -m tests.faults.claimer ID`."""

import sys


def main(execution_id: str) -> None:
    import django

    django.setup()
    from agency.runtime.body import run_claimed
    from agency.runtime.claim import claim

    claimed = claim(execution_id)
    if claimed is None:
        sys.exit("nothing to claim")
    print(run_claimed(claimed).value)


if __name__ == "__main__":
    main(sys.argv[1])
