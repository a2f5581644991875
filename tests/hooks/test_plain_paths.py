"""What plain paths say yes to, the policy says yes to: on generated globs and paths, and on names that are nearly ours."""

from __future__ import annotations

import os
import random

import pytest

from hooks.blobs import Given
from hooks.path_change import ABSENT_MODE, GITLINK_MODE, SYMLINK_MODE, PathChange
from hooks.policy import judge
from hooks.range.plain_paths import PlainPaths
from parsers.policy_file import Contract, Policy
from parsers.substrates import TEMPLATES, template_of

PARTS = [
    "src",
    "a",
    "b.ts",
    "Src",
    "shapeup",
    ".shapeup",
    "SHAPEUP",
    ".Shapeup",
    "shapeup.md",
    "cart",
    "scopes",
    "core.md",
]
PARTS += [".shape\u200cup", "\uff53hapeup", "x y", "d\u0301", "shapeup ", "shapeup~1", ".git", "..", "a\\b", "\udcff"]
STARS = ["*", "**", "?", "*.ts", "**/a", "shapeup*", "s*"]
MODES = ["100644", "100755", SYMLINK_MODE, GITLINK_MODE, ABSENT_MODE]
COUNT = max(3000, int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "0")))


def change_of(path: str, mode: str) -> PathChange:
    raw = path.encode("utf-8", "surrogateescape")
    blob = "0" * 40 if mode == ABSENT_MODE else "1" * 40
    return PathChange(
        "D" if mode == ABSENT_MODE else "A", raw, "100644" if mode == ABSENT_MODE else ABSENT_MODE, mode, "2" * 40, blob
    )


def test_no_plain_yes_is_a_no_of_the_policy() -> None:
    dice = random.Random(20260301)

    def some(words: list[str], most: int) -> str:
        return "/".join(dice.choice(words) for _ in range(dice.randint(1, most)))

    said_yes = 0
    for _ in range(COUNT):
        globs = [tuple(some(PARTS + STARS, 3) for _ in range(dice.randint(0, 3))) for _ in range(3)]
        frozen = tuple(some(PARTS + STARS, 2) for _ in range(dice.randint(0, 2))) if dice.random() < 0.4 else ()
        order = Contract("cart/core-r1-a1", dice.choice(["execute", "analyze", ""]), *globs, frozen)
        policy = Policy("", (order,) if dice.random() < 0.8 else ())
        plain = PlainPaths(policy)
        for _ in range(4):
            path = dice.choice([some(PARTS, 3), *(glob for part in globs for glob in part)])
            change = change_of(path, dice.choice(MODES))
            if plain.permit(change):
                said_yes += 1
                content = Given(new={change.path: b"/etc/passwd"})
                order_id = order.order_id if policy.contracts else None
                assert judge((change,), policy, content, order_id=order_id) == (), (policy, change)
    assert said_yes > COUNT // 10


@pytest.mark.parametrize("operation", sorted(TEMPLATES))
def test_a_template_opens_plainly_nothing_of_the_two_trees(operation: str) -> None:
    plain = PlainPaths(Policy("", (template_of(operation, "cart", None, (("src/**",), ()), "cart/x"),)))
    for path in ("shapeup/cart/scopes/core.md", ".shapeup/cart/orders/x.json", "Shapeup/cart/REPORT.md", "shapeup"):
        assert not plain.permit(change_of(path, "100644"))
    assert plain.permit(change_of("src/a", "100644")) == (operation in ("execute", "fix", "spike"))


def test_links_deletions_and_submodules_are_left_to_the_policy() -> None:
    plain = PlainPaths(Policy("", (Contract("cart/x", "execute", ("**",)),)))
    assert [mode for mode in MODES if plain.permit(change_of("src/a", mode))] == ["100644", "100755"]
