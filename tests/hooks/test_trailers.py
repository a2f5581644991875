"""Our trailers in a commit message, as every wall reads them."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.trailers import NO_TRAILERS, SCISSORS, Trailers, is_all_trailers, parse_trailers

EXAMPLES = int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "60"))


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("", NO_TRAILERS),
        ("fix the cart", NO_TRAILERS),
        ("fix\n\nShapeup-Order: cart/core-r1-a1\n", Trailers("cart/core-r1-a1")),
        ("fix\n\nSigned-off-by: A <a@b>\nShapeup-Order: a/b\nShapeup-Operation: wire\n", Trailers("a/b", "wire")),
        ("fix\n\nShapeup-Override: the build is red\n", Trailers(None, None, "the build is red")),
        ("fix\n\nSHAPEUP-ORDER :  a/b  \n", Trailers("a/b")),
        ("fix\n\nShapeup-Order: a/b\n\nand more text\n", NO_TRAILERS),
        ("fix\n\nShapeup-Order: a/b\n\n\n", Trailers("a/b")),
        ("fix\n\nShapeup-Order: a/b\n# Please enter the message\n#\n", Trailers("a/b")),
        (f"fix\n\nShapeup-Order: a/b\n{SCISSORS}\ndiff\n\nShapeup-Order: c/d\n", Trailers("a/b")),
        ("fix\n\nShapeup-Override: a long\n  reason\n", Trailers(None, None, "a long reason")),
        ("fix\n\nShapeup-Order:\n", NO_TRAILERS),
        ("fix\n\nShapeup-Order: a/b\nShapeup-Order: a/b\n", Trailers("a/b")),
        ("fix\n\nShapeup-Order: a/b\nShapeup-Order: c/d\n", Trailers("a/b, c/d")),
        ("fix\r\n\r\nShapeup-Order: a/b\r\n", Trailers("a/b")),
        ("Shapeup-Order: a/b\n", Trailers("a/b")),
        ("a word in front\nShapeup-Order: a/b\n", Trailers("a/b")),
    ],
)
def test_the_last_paragraph_holds_the_trailers(message: str, found: Trailers) -> None:
    assert parse_trailers(message.encode()) == found


def test_bytes_that_are_no_utf_8_stay_apart() -> None:
    assert parse_trailers(b"fix\n\nShapeup-Override: \xff\xfe\n").override == "\udcff\udcfe"


@pytest.mark.parametrize(
    ("message", "is_all"),
    [
        ("", False),
        ("\n# comment\n", False),
        ("\n\nShapeup-Order: a/b\nShapeup-Operation: wire\n\n# Please enter the message\n", True),
        ("Shapeup-Order: a/b\n\nShapeup-Override: x\n", True),
        ("fix\n\nShapeup-Order: a/b\n", False),
        ("Signed-off-by: a\nShapeup-Order: a/b\n", False),
    ],
)
def test_a_message_of_trailers_alone_is_known(message: str, is_all: bool) -> None:
    assert is_all_trailers(message.encode()) is is_all


_TITLE = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=30).filter(
    lambda text: not text.startswith("#") and text.strip() and ":" not in text
)


@settings(max_examples=max(20, EXAMPLES // 4), deadline=None)
@given(
    st.lists(_TITLE, min_size=1, max_size=4), st.booleans(), st.from_regex(r"[a-z]{1,5}/[a-z0-9-]{1,9}", fullmatch=True)
)
def test_what_git_stamps_is_what_we_read(paragraphs: list[str], is_signed: bool, order_id: str) -> None:
    message = "\n\n".join(paragraphs) + ("\n\nSigned-off-by: A <a@b>" if is_signed else "") + "\n"
    stamped = subprocess.run(
        [
            "git",
            "interpret-trailers",
            "--no-divider",
            "--if-exists",
            "doNothing",
            "--trailer",
            f"Shapeup-Order: {order_id}",
        ],
        input=message.encode(),
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"},
        cwd="/",
    ).stdout
    assert parse_trailers(stamped) == Trailers(order_id)
    assert not is_all_trailers(stamped)
