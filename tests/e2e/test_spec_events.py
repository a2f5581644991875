"""A spec that changes under a living daemon is linted at once, and the log says what it brought and took. Source: issue 6 item 4."""

from __future__ import annotations

from tests.e2e.living import SLUG, SmallRun, daemon
from tests.reducers.lint_spec.feature import SPEC, contract, feature


def test_the_log_tells_what_a_change_of_the_specs_brings_and_takes(tmp_path):
    run = SmallRun(tmp_path, with_receipt=True)
    for path, text in feature().items():
        (run.root / path).parent.mkdir(parents=True, exist_ok=True)
        (run.root / path).write_text(text or "")
    rm = run.root / SPEC / "scopes/rm.md"
    with daemon(run.root) as living:
        rm.write_text(contract("rm", "UC-Rm", allowed="src/add/*, tests/rm.py"))
        told = living.wait_for("lint.found", f"{SPEC}/scopes/rm.md:6")
        assert (told["slug"], told["rule"], told["lint"], told["level"]) == (SLUG, "DISJOINT", "red", "warn")
        rm.write_text(contract("rm", "UC-Rm"))
        living.wait_for("lint.cleared", f"{SPEC}/scopes/rm.md:6")
        (run.root / SPEC / "spec/usecases/UC-Rm.md").write_text("# no steps\n")
        living.wait_for("lint.found", f"{SPEC}/spec/usecases/UC-Rm.md")
        assert not living.events("daemon.error")
