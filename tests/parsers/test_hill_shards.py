"""Hill shards: two lines exactly, and nothing else is one. Source: protocol §1.4, §5.4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.hill_shards import PHASES, HillShard, parse_hill_shard, render_hill_shard


@pytest.mark.parametrize("phase", PHASES)
def test_every_known_phase_reads_back_as_written(phase: str) -> None:
    shard = HillShard("cart-core", phase)
    assert render_hill_shard(shard) == b"scope_id: cart-core\nphase: %s\n" % phase.encode()
    assert parse_hill_shard(render_hill_shard(shard)) == shard


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"scope_id: a\nphase: FINISHED",
        b"scope_id: a\r\nphase: FINISHED\r\n",
        b"scope_id: a\nphase: finished\n",
        b"scope_id: a\nphase: DONE\n",
        b"scope_id:  a\nphase:  FINISHED\n",
        b"phase: FINISHED\nscope_id: a\n",
        b"scope_id: a\nphase: FINISHED\n\n",
        b"scope_id: a\nphase: FINISHED\n# by hand\n",
        b"scope_id: a\nphase: FINISHED # note\n",
        b"\xef\xbb\xbfscope_id: a\nphase: FINISHED\n",
        b"scope_id: \xff\nphase: FINISHED\n",
        b"scope_id: " + b"a" * 5000 + b"\nphase: FINISHED\n",
    ],
)
def test_anything_else_is_no_shard(data: bytes) -> None:
    assert parse_hill_shard(data) is None


@given(st.binary(max_size=60) | st.binary(max_size=20).map(lambda tail: b"scope_id: a\nphase: FINISHED\n" + tail))
def test_what_reads_as_a_shard_is_its_own_rendering(data: bytes) -> None:
    shard = parse_hill_shard(data)
    assert shard is None or render_hill_shard(shard) == data
