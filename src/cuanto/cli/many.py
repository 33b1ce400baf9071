"""``cuanto energy ... --out TABLE``: many molecules on all cores or on a cluster, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from cuanto.cli.calculate import BAD_INPUT, NOT_CONVERGED, Job, run_job
from cuanto.cli.lines import as_flags, print_text
from cuanto.cli.show import progress_bar
from cuanto.errors import CuantoError, InputError
from cuanto.files import require_writable
from cuanto.wording import HINT, count

if TYPE_CHECKING:
    from cuanto.batch.entry import Entry
    from cuanto.batch.run import Batch, Counts
    from cuanto.batch.table import Row

MAX_FAILURES = 10
"""Failures that are printed; the table has all of them."""
MAX_WARNINGS = 20
"""Different warnings that are printed."""


def run_given(job: Job, flags: Mapping[str, Any]) -> None:
    """Compute one molecule after the other, or a table with `--out`; leave with the exit status."""
    out, workers, scheduler = (flags[name] for name in ("out", "workers", "scheduler"))
    if out is None and (workers is not None or scheduler is not None):
        raise InputError("--workers and --scheduler are for many molecules: name a table with --out")
    status = run_job(job) if out is None else run_batch(job, out, workers, scheduler)
    if status:
        raise typer.Exit(status)


def run_batch(job: Job, out: Path, workers: int | None, scheduler: str | None) -> int:
    """Compute a table; exit status 0 all converged, 1 some did not, 2 some failed (their rows say why)."""
    from cuanto.batch.run import Batch
    from cuanto.batch.table import Table

    for name, path in {**job.outputs, "restart": job.restart}.items():
        if path is not None:
            raise InputError(f"--{name} is for single molecules and --out for many: leave out one of them")
    table = Table(out)
    for file in (out, table.journal):
        require_writable(file, *job.inputs)
    entries = _entries(job)
    console = Console(highlight=False, soft_wrap=True)
    with Batch(entries, table, workers, scheduler) as batch:
        rows = _run_with_progress(console, batch, job.quiet)
    remarks = Console(highlight=False, soft_wrap=True, stderr=job.quiet)
    print_warnings(remarks, rows)
    print_failures(remarks, rows)
    print_counts(console, batch.counts, len(rows), out)
    if batch.counts.failed:
        if table.journal.exists():
            print_text(console, f"run the same command to try these again; {table.journal} has the others")
        return BAD_INPUT
    return NOT_CONVERGED if batch.counts.unconverged else 0


def _entries(job: Job) -> list[Entry]:
    from cuanto.batch.entry import entries_of
    from cuanto.batch.run import require_readable
    from cuanto.methods.request import check

    electrons = (job.charge, job.multiplicity)
    found = [entry for given in job.sources for entry in entries_of(given, job.model, *electrons)]
    require_readable(found)
    readable = [entry for entry in found if entry.molecule is not None]
    for method in dict.fromkeys(entry.model.method for entry in readable):  # files may have methods of their own
        assert method is not None
        check(method, job.basis, job.keywords)
    return found


def _run_with_progress(console: Console, batch: Batch, quiet: bool) -> list[Row]:
    """Run the batch; on Ctrl-C and errors, say what is kept."""
    bar, step = _bar(console, batch, quiet)
    with bar:
        try:
            return batch.run(step)
        except (KeyboardInterrupt, CuantoError):
            if batch.table is not None and batch.table.journal.exists():
                kept = f"{batch.counts.computed + batch.counts.known} of {len(batch.entries)}"
                print_text(console, f"{kept} are kept in {batch.table.journal}: run the same command to continue")
            raise


def _bar(console: Console, batch: Batch, quiet: bool) -> tuple[AbstractContextManager[Any], Callable[[Row], object]]:
    """A progress bar on a terminal, nothing elsewhere."""
    if quiet or not console.is_terminal:
        return nullcontext(), lambda row: None
    bar = progress_bar(console, "{task.fields[rate]}")
    task = bar.add_task("molecules", total=len(batch.entries), rate="")

    def step(row: Row) -> None:
        bar.update(task, advance=1, rate=f"{batch.counts.rate:.3g}/s" if batch.counts.computed else "")

    return bar, step


def print_failures(console: Console, rows: Sequence[Row]) -> None:
    """Print the first few molecules that failed or did not converge."""
    bad = [row for row in rows if row.error or not row.converged]
    for row in bad[:MAX_FAILURES]:
        made = count(row.iterations, "iteration") if row.steps is None else count(row.steps, "step")
        text = row.error or f"NOT converged in {made}"
        print_text(console, f"{row.name}: {text}", "red")
    if len(bad) > MAX_FAILURES:
        print_text(console, f"and {len(bad) - MAX_FAILURES} more; the table has them all", "red")


def print_warnings(console: Console, rows: Sequence[Row]) -> None:
    """Print every warning once, with the first few molecules that have it."""
    names: dict[str, list[str]] = {}
    for row in rows:
        if row.warnings:
            names.setdefault(row.warnings, []).append(row.name)
    for warning, found in list(names.items())[:MAX_WARNINGS]:
        more = f" and {len(found) - MAX_FAILURES} more" if len(found) > MAX_FAILURES else ""
        what = warning if warning.startswith(HINT) else f"WARNING: {warning}"
        text = as_flags(f"{', '.join(found[:MAX_FAILURES])}{more}: {what}")
        print_text(console, text, "yellow")
    if len(names) > MAX_WARNINGS:
        print_text(console, f"and {len(names) - MAX_WARNINGS} other warnings; the table has them all", "yellow")


def print_counts(console: Console, counts: Counts, total: int, out: Path) -> None:
    """Print what was done, and how fast."""
    rate = f" ({counts.rate:.3g} per second)" if counts.computed else ""
    parts = [count(total, "molecule"), f"{counts.computed} computed in {counts.seconds:.1f} s{rate}"]
    parts += [f"{counts.known} already known"] * bool(counts.known)
    parts += [f"{counts.failed} failed"] * bool(counts.failed)
    parts += [f"{counts.unconverged} NOT converged"] * bool(counts.unconverged)
    good = not counts.failed and not counts.unconverged
    print_text(console, f"{', '.join(parts)}: {out}", "bold green" if good else "bold red")
