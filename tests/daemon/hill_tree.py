"""A run's files on disk, as far as the hill looks at them."""

from __future__ import annotations

import json
from pathlib import Path

from parsers.facts import sha256_of

RUN_ID = "cart-20260301T095900Z-0a1b2c3d"
SLUG = "cart"


class RunTree:
    """Writes the files of one run below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, content: object) -> bytes:
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        return data

    def append(self, path: str, row: object) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def receipt(self) -> None:
        self.write(
            f".shapeup/{SLUG}/receipt.json",
            {
                "receipt_version": 1,
                "slug": SLUG,
                "run_id": RUN_ID,
                "started_at": "2026-03-01T09:59:00.000Z",
                "config": {},
            },
        )

    def scope(self, name: str, more: str = "", scope_id: str = "") -> None:
        text = f'---\nscope_id: {scope_id or name}\ne2e_verification_fixtures: ["run {name}"]\n{more}---\n\n# {name}\n'
        self.write(f"shapeup/{SLUG}/scopes/{name}.md", text)

    def t0(self, scope: str, name: str, *, green: bool = True, seesaw: bool = True, status: str = "kept") -> None:
        """An artifact and, unless `status` is empty, its trial row."""
        round_, attempt, trial = (int(part[1:]) for part in name.split("-"))
        score = {"regressions": 0, "fixtures_passed": int(green), "fixtures_total": 1, "db_probe": None}
        said = {
            "round": round_,
            "attempt": attempt,
            "at": f"2026-03-0{round_}T1{attempt}:00:00.000Z",
            "scope_id": scope,
        }
        artifact = {**said, "trial": trial, "run_id": RUN_ID, "overall": "green" if green else "red", "score": score}
        artifact["seesaw"] = {"ran": seesaw, "pass": True, "scopes_checked": [], "failing": []}
        data = self.write(f".shapeup/{SLUG}/t0/verdicts/{name}.json", artifact)
        if status:
            row = {"schema_version": 1, "trial": trial, "run_id": RUN_ID, **said, "score": score, "status": status}
            row |= {"artifact": f"t0/verdicts/{name}.json", "sha256": sha256_of(data)}
            self.append(f".shapeup/{SLUG}/t0/trials.jsonl", row)

    def evaluate(self, round_: int, overall: str, outcome: str = "") -> None:
        """An evaluation's result and, where an outcome is given, what ingest recorded of it."""
        order_id = f"{SLUG}/evaluate-r{round_}"
        result = {"schema_version": 1, "order_id": order_id, "status": "done", "verdict": {"overall": overall}}
        data = self.write(f".shapeup/{SLUG}/results/evaluate-r{round_}.json", result)
        if outcome:
            row = {"at": "2026-03-03T00:00:00.000Z", "run_id": RUN_ID, "order_id": order_id, "order_sha256": None}
            row |= {
                "result": f"evaluate-r{round_}.json",
                "sha256": sha256_of(data),
                "outcome": outcome,
                "verdict": overall,
            }
            self.append(f".shapeup/{SLUG}/receipts/ingest.jsonl", row)

    def order(self, stem: str) -> None:
        order = {"schema_version": 1, "order_id": f"{SLUG}/{stem}", "run_id": RUN_ID, "worker": "task-executor"}
        order |= {
            "mode": "orchestrated",
            "operation": "execute",
            "compiled_at": "2026-03-01T10:00:00.000Z",
            "payload": {},
        }
        self.write(f".shapeup/{SLUG}/orders/{stem}.json", order)

    def ledger(self, *blocks: tuple[str, str]) -> None:
        told = "".join(f"\n## Discovered — {order_id} (2026-03-01)\n{lines}\n" for order_id, lines in blocks)
        self.write(
            f".shapeup/{SLUG}/discovery/ledger.md", f"---\nfeature: {SLUG}\n---\n# Discovery Ledger — {SLUG}\n{told}"
        )
