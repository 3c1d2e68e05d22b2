"""The stored executions: does what the rows say agree, within each and between the tables?"""

from agency.cli.doctor.finding import Finding, fine, wrong

FIX = (
    "Please report it with these ids: no sequence of crashes may leave rows so. "
    "Keep a copy of the database before you change anything."
)


def check_rows() -> list[Finding]:
    """A finding for each invariant, in words; Django must be set up."""
    from agency.execution.invariants import invariants, violations
    from agency.runtime import conf

    broken = {one.invariant: one for one in violations(conf.current().CLAIM_CAP)}
    return [
        wrong("Invariant", str(broken[name]), FIX) if name in broken else fine("Invariant", name)
        for name in invariants()
    ]
