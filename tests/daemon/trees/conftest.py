"""Trees are kept in memory where the machine has a place for it: thousands of fsyncs prove nothing more."""

from tests.crash.conftest import tmp_path

__all__ = ["tmp_path"]
