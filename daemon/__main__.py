"""`python -I -m daemon VERB …`: the same program without the console script. Source: rulings D5."""

from daemon.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
