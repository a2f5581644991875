"""The templates of protocol §3.1, and what an order's stem stands for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from parsers.addresses import scope_stem
from parsers.globs import matches
from parsers.substrates import BUILD, TEMPLATES, StemMeaning, meaning_of, template_of

GLOBS = (("src/cart/**",), ("src/shared.py",))
CORE = (
    "shapeup/cart/spec/domain-model.md",
    "shapeup/cart/spec/usecases/*.md#Steps",
    "shapeup/cart/spec/contracts/**",
    "shapeup/cart/spec/ux-behavior.md",
)


@pytest.mark.parametrize("operation", BUILD)
def test_a_build_order_may_write_what_its_scope_contract_names_and_its_spikes(operation: str) -> None:
    contract = template_of(operation, "cart", contract_globs=GLOBS, order_id="cart/core-r1-a1")
    assert contract.allowed == ("src/cart/**", ".shapeup/cart/spikes/**")
    assert contract.shared == ("src/shared.py",)
    assert (contract.append_only, contract.frozen) == ((), ())
    assert contract.is_constraining
    assert (contract.order_id, contract.operation) == ("cart/core-r1-a1", operation)


def test_only_build_orders_take_the_globs_of_a_scope_contract() -> None:
    for operation in set(TEMPLATES) - set(BUILD):
        contract = template_of(operation, "cart", contract_globs=GLOBS)
        assert "src/cart/**" not in contract.allowed
        assert contract.shared == ()


def test_the_core_of_the_spec_is_frozen_for_those_who_append_to_it() -> None:
    reconcile = template_of("reconcile", "cart")
    assert reconcile.frozen == CORE
    assert reconcile.append_only == (
        "shapeup/cart/spec/usecases/*.md#Invariants",
        "shapeup/cart/spec/usecases/*.md#Test Surface",
    )
    retrofit = template_of("retrofit-surface", "cart")
    assert (retrofit.allowed, retrofit.append_only, retrofit.frozen) == ((), reconcile.append_only[1:], CORE)
    assert template_of("coverage", "cart").frozen == CORE
    assert template_of("map-scopes", "cart").frozen == (*CORE, ".shapeup/cart/tasks/**")
    assert template_of("wire", "cart").frozen == (*CORE, "shapeup/cart/scopes/**", "shapeup/cart/project-profile.md")


def test_a_spec_folder_of_its_own_takes_the_place_of_the_usual_one() -> None:
    contract = template_of("evaluate", "cart", spec_dir="docs/spec/")
    assert contract.frozen == ("docs/spec/**", ".shapeup/cart/tasks/**")
    assert template_of("analyze", "cart", spec_dir="docs/spec").allowed == ("docs/spec/**", ".shapeup/cart/**")


def test_an_operation_that_the_table_does_not_name_opens_the_local_tree_alone() -> None:
    assert template_of("amend", "cart").allowed == (".shapeup/cart/**",)


def test_what_shapeupd_answers_itself_opens_nothing() -> None:
    contract = template_of("adjudicate", "cart")
    assert (contract.allowed, contract.shared, contract.append_only, contract.frozen) == ((), (), (), ())


def test_no_template_keeps_a_hole_of_its_own_spelling() -> None:
    for operation in TEMPLATES:
        contract = template_of(operation, "cart")
        for glob in (*contract.allowed, *contract.append_only, *contract.frozen):
            assert "<" not in glob
            assert glob.startswith((".shapeup/cart/", "shapeup/cart/", "shapeup/knowledge-base/"))


def test_no_template_opens_another_feature() -> None:
    for operation in set(TEMPLATES) - {"coach"}:
        contract = template_of(operation, "cart")
        for glob in (*contract.allowed, *contract.append_only):
            assert not matches(glob.partition("#")[0], "shapeup/other/spec/usecases/UC-1.md")
            assert not matches(glob.partition("#")[0], "src/app.py")


def test_a_slug_or_a_spec_folder_that_looks_like_a_hole_stays_text() -> None:
    assert template_of("orient", "cart", spec_dir="<L>/x").frozen == ("<L>/x/**",)


@pytest.mark.parametrize(
    ("order_id", "meaning"),
    [
        ("cart/core-r1-a1", StemMeaning(BUILD, "core")),
        ("cart/r1-a2", StemMeaning(BUILD, None)),
        ("cart/a-r1-b-r2-a3", StemMeaning(BUILD, "a-r1-b")),
        ("cart/evaluate-r1-a1", StemMeaning(BUILD, "evaluate")),  # a scope of that name
        ("cart/evaluate-r1", StemMeaning(("evaluate",), None)),
        ("cart/evaluate", StemMeaning(("evaluate",), None)),
        ("cart/map-scopes", StemMeaning(("map-scopes",), None)),
        ("cart/map-scopes-core-r2", StemMeaning(("map-scopes",), "core")),
        ("cart/retrofit-surface-r1", StemMeaning(("retrofit-surface",), None)),
        ("cart/execute-task-003", StemMeaning(("execute",), "task-003")),
        ("cart/execute-task-003-r2", StemMeaning(("execute",), "task-003")),
        ("cart/execute", StemMeaning(("execute",), None)),
        ("cart/hammer-inner-core-r2", StemMeaning(("hammer",), "inner-core")),
        ("cart/wire", StemMeaning(("wire",), None)),
        ("cart/wired", StemMeaning((), None)),
        ("cart/smoke-test", StemMeaning((), None)),
        ("cart/", StemMeaning((), None)),
        ("cart", StemMeaning((), None)),
        ("", StemMeaning((), None)),
    ],
)
def test_a_stem_stands_for_an_operation_and_perhaps_a_scope(order_id: str, meaning: StemMeaning) -> None:
    assert meaning_of(order_id) == meaning


def test_every_operation_is_read_back_from_the_stems_that_compile_makes() -> None:
    for operation in TEMPLATES:
        for stem in (operation, f"{operation}-r3", f"{operation}-core", f"{operation}-core-r3"):
            assert meaning_of(f"cart/{stem}").operations == (operation,), stem


def test_a_scope_is_read_back_as_stems_spell_it() -> None:
    for scope_id in ("core", "Cart_UI", "a.b-c", "r2"):
        assert meaning_of(f"cart/{scope_stem(scope_id)}-r1-a1").scope == scope_stem(scope_id)


def test_hooks_pay_nothing_heavy_for_it() -> None:
    code = "import sys, parsers.substrates; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert not {"pydantic", "dataclasses", "pathlib", "subprocess", "argparse"} & set(ran.stdout.split())
