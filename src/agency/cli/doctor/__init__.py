"""`agency doctor`: examines this installation and says how to mend what is wrong. Pays nothing."""

from agency.cli.doctor import database, machine, model, project, queue
from agency.cli.doctor.finding import Finding
from agency.cli.doctor.rows import check_rows

__all__ = ["Finding", "check_rows", "diagnose"]


def diagnose() -> list[Finding]:
    """All findings, in the order in which they are best mended.

    Without a project that loads, what needs one is left out.
    """
    findings = [machine.python(), machine.home()]
    loaded = project.loads()
    findings.append(loaded)
    if loaded.ok:
        findings += [*project.definitions(), *database.examine(), project.broker(), *queue.examine()]
    return [*findings, *model.examine()]
